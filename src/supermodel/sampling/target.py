r"""The density that is sampled, $\ln p(\alpha) + \ln J(u; f(\alpha))$, split into what is dear and what is free.

The models are run once per point $u$; what they give (`Terms`) is kept beside the point, so that moving alpha,
changing the temperature or choosing a rung costs no further run. All functions take any batch of points (..., D).
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.combine import times
from supermodel.embedding.supermodel import Supermodel
from supermodel.errors import ModelError
from supermodel.jax_scope import in_float64
from supermodel.models.many_points import over_points
from supermodel.models.noise import total


class Terms(NamedTuple):
    """What the models say of a point: all that is needed to combine them with any weights at any temperature."""

    log_priors: Any  # (..., K): ln(pi_k q_k) with the Jacobian of the warp
    log_likelihoods: Any = None  # (..., K): ln L_k; None for a blend, whose likelihood needs alpha
    predictions: Any = None  # (..., K, n_data): a blend only


@functools.lru_cache(maxsize=8)
def target_of(supermodel: Supermodel, executor: Any = None) -> Target:
    """The target of a supermodel; the same object for the same supermodel, so that its compiled code is found again."""
    return Target(supermodel, executor)


class Target:
    """A supermodel as its samplers see it."""

    def __init__(self, supermodel: Supermodel, executor: Any = None):
        self.supermodel = supermodel
        self.executor = executor  # for likelihoods in plain Python
        self.coordinate: Any = supermodel.coordinate
        self.n_models = len(supermodel.names)
        self.dimension = supermodel.dimension
        self.is_traceable = all(joint.is_traceable for joint in supermodel.joints)
        if supermodel.is_blend and not self.is_traceable:
            raise ModelError(
                "a blend mixes predictions inside compiled code, but the `predict` of "
                f"{[j.name for j in supermodel.joints if not j.is_traceable]} cannot be traced by JAX. "
                "Write it with jax.numpy, or use combine='mixture', 'product' or 'index'."
            )

    # -- the dear part --------------------------------------------------------------------------------------------

    def terms(self, u) -> Terms:
        """Run every model once at each point (..., D); JAX can trace it."""
        import jax

        widest = max(joint.width for joint in self.supermodel.joints)
        flat = over_points(self._terms_at_point, widest)(u.reshape(math.prod(u.shape[:-1]), self.dimension))
        return jax.tree.map(lambda x: x.reshape(u.shape[:-1] + x.shape[1:]), flat)

    def _terms_at_point(self, u) -> Terms:
        import jax.numpy as jnp

        sm = self.supermodel
        log_priors = sm.log_extended_priors(u)
        if sm.is_blend:
            return Terms(log_priors, None, sm.predictions(u))
        own = [joint.log_likelihood(sm.own(k, u)) for k, joint in enumerate(sm.joints)]
        return Terms(log_priors, jnp.stack(own))

    @in_float64
    def terms_in_numpy(self, u: np.ndarray) -> Terms:
        """The same for models in plain Python, which only take points one by one or as NumPy arrays."""
        flat = np.asarray(u).reshape(math.prod(np.shape(u)[:-1]), self.dimension)
        joints = self.supermodel.joints
        own = [joint.log_likelihood_at(self.own_points(k, flat), self.executor) for k, joint in enumerate(joints)]
        log_priors = np.asarray(self._compiled_priors(flat))
        shape = (*np.shape(u)[:-1], self.n_models)
        return Terms(log_priors.reshape(shape), np.stack(own, axis=-1).reshape(shape))

    @property
    def _compiled_priors(self):
        import jax

        if not hasattr(self, "_priors"):
            self._priors = jax.jit(jax.vmap(self.supermodel.log_extended_priors))
        return self._priors

    def own_points(self, k: int, points: np.ndarray) -> np.ndarray:
        """The unconstrained vectors of model `k` at the points (n, D) of the supermodel."""
        mine, warps = points[:, self.supermodel.places[k]], self.supermodel.warps
        return mine if warps is None else warps[k].points(mine)

    # -- the free part --------------------------------------------------------------------------------------------

    def log_joints(self, terms: Terms):
        r"""$\ln J_k$ from what is kept; a blend's from its predictions, without running a model again."""
        import jax
        import jax.numpy as jnp

        if terms.predictions is None:
            return terms.log_priors + terms.log_likelihoods
        noise: Any = self.supermodel.joints[0].model.noise
        data = self.supermodel.data
        flat = terms.predictions.reshape(-1, terms.predictions.shape[-1])
        log_likelihoods = jax.vmap(lambda mean: total(noise.pointwise(mean, data)))(flat)
        return terms.log_priors + jnp.reshape(log_likelihoods, terms.log_priors.shape)

    def parts(self, alpha, terms: Terms):
        r"""$(\ln P_0, \ln J - \ln P_0)$, where $P_0$ combines the priors alone; tempered, $P_0 (J/P_0)^\beta$."""
        weights = self.coordinate.weights(alpha)
        base = self._combined_priors(weights, terms.log_priors)
        return base, self._combined(weights, terms) - base

    def log_density(self, alpha, terms: Terms, betas=None):
        r"""$\ln p(\alpha) + \ln P_0 + \beta (\ln J - \ln P_0)$; without `betas`, $\beta = 1$."""
        import jax.numpy as jnp

        if betas is None:
            return self.coordinate.log_prior(alpha) + self._combined(self.coordinate.weights(alpha), terms)
        base, rest = self.parts(alpha, terms)
        # At infinite temperature the likelihood has no say, not even an impossible one.
        return self.coordinate.log_prior(alpha) + base + times(jnp, betas, rest)

    def _combined(self, weights, terms: Terms):
        import jax

        sm = self.supermodel
        if not sm.is_blend:
            return sm.combined(weights, terms.log_priors + terms.log_likelihoods)
        function = sm.log_blend
        for _ in range(weights.ndim - 1):
            function = jax.vmap(function)
        return function(weights, terms.predictions, terms.log_priors)

    def _combined_priors(self, weights, log_priors):
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        if not self.supermodel.is_blend:
            return self.supermodel.combined(weights, log_priors - self.supermodel.tilt)
        inside = jnp.clip(weights, 0.0, 1.0)
        return logsumexp(log_priors, axis=-1, b=inside / inside.sum(-1, keepdims=True))

    def rung_log_densities(self, terms: Terms, betas=None):
        """ln density of every rung of a ladder at points (...): (..., M)."""
        import jax
        import jax.numpy as jnp

        def of_rung(rung):
            return self.log_density(jnp.full(terms.log_priors.shape[:-1], rung), terms, betas)

        return jnp.moveaxis(jax.vmap(of_rung)(jnp.arange(self.coordinate.n_rungs)), 0, -1)

    def shares(self, alpha: np.ndarray, log_joints: np.ndarray) -> np.ndarray:
        """How much of each draw belongs to each model: (..., K), summing to 1. Only the tuning asks."""
        weights = np.clip(self.coordinate.weights_of(alpha), 0.0, 1.0)
        if self.supermodel.combine != "mixture":
            return weights / weights.sum(-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(weights) + log_joints + self.supermodel.tilt
            shares = np.exp(logs - logs.max(-1, keepdims=True))
        return np.nan_to_num(shares / shares.sum(-1, keepdims=True))
