r"""A `Model` as nested samplers want it: a log likelihood and a transform of the unit cube.

Priors with a quantile function are transformed exactly. Others (hierarchies, densities) have none; there the cube is
sent to a Student t density $q$ near the prior and $\ln \pi - \ln q$ is added to the log likelihood: the evidence and the
posterior are the same, $Z = \int L\,(\pi / q)\,q$.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from supermodel.float64 import in_float64
from supermodel.models.joint import Joint
from supermodel.models.joint_space import JointSpace
from supermodel.models.model import Model
from supermodel.models.priors import Bijected, Quantile

DF = 5.0  # of the stand-in for a prior that has no quantiles


class ForNested(NamedTuple):
    """Arguments of a nested sampler: `NestedSampler(f.log_likelihood, f.prior_transform, f.dimension)`.

    Points are unconstrained coordinates; `values(points)` gives {name: values} of an array (n, d) of them. The two
    functions ending in `_at` take (n, d) arrays.
    """

    log_likelihood: Callable[[np.ndarray], float]
    prior_transform: Callable[[np.ndarray], np.ndarray]
    dimension: int
    names: tuple[str, ...]
    values: Callable[[np.ndarray], dict[str, np.ndarray]]
    log_likelihood_at: Callable[[np.ndarray], np.ndarray]
    prior_transform_at: Callable[[np.ndarray], np.ndarray]


class _Block(NamedTuple):
    """Some coordinates: from the cube to them, and what the transform leaves to be added to ln L."""

    where: slice
    transform: Callable[[np.ndarray], np.ndarray]  # (n, size) of the cube -> (n, size)
    correction: Callable[[np.ndarray], np.ndarray] | None  # (n, size) -> (n,)


@in_float64
def to_dynesty(model: Model, data: Any = None, *, name: str = "model", seed: int = 0) -> ForNested:
    """`model` (with its data) as dynesty, UltraNest and nautilus take it."""
    joint = Joint(name, model, data)
    blocks = _blocks(model, np.random.default_rng(seed))

    def transform_at(u: np.ndarray) -> np.ndarray:
        u = np.clip(np.atleast_2d(u), 1e-300, 1.0 - 2.0**-53)
        return np.concatenate([b.transform(u[:, b.where]) for b in blocks], axis=1) if blocks else np.zeros((len(u), 0))

    def log_likelihood_at(x: np.ndarray) -> np.ndarray:
        x = np.atleast_2d(np.asarray(x, float))
        total = joint.log_likelihood_at(x)
        for b in blocks:
            if b.correction is not None:
                total = total + b.correction(x[:, b.where])
        return np.where(np.isnan(total), -np.inf, total)

    return ForNested(
        lambda x: float(log_likelihood_at(np.asarray(x)[None])[0]),
        lambda u: transform_at(np.asarray(u)[None])[0],
        joint.dimension,
        joint.space.names,
        joint.space.values_at,
        log_likelihood_at,
        transform_at,
    )


def _blocks(model: Model, rng: np.random.Generator) -> list[_Block]:
    space = model.space
    if isinstance(space, JointSpace):
        whole = slice(0, space.dimension)
        if space.is_standard_normal:
            return [_Block(whole, _normal, None)]
        return [_stand_in(whole, space.sample_prior(rng, 4000), space.log_prior_at)]
    blocks = []
    for name, prior in space.priors.items():
        where = space.slices[name]
        if isinstance(prior, Quantile):
            blocks.append(_Block(where, _normal, None))
            continue
        exact = _by_quantiles(prior)
        density = partial(_density_at, prior)
        blocks.append(_Block(where, exact, None) if exact else _stand_in(where, prior.sample(rng, 4000), density))
    return blocks


def _normal(u: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri

    return ndtri(u)


@in_float64
def _density_at(prior: Any, x: np.ndarray) -> np.ndarray:
    import jax

    return np.asarray(jax.vmap(prior.log_density)(x))


def _by_quantiles(prior: Any) -> Callable[[np.ndarray], np.ndarray] | None:
    """x from the cube through the prior's own quantile function; None if it has none or its numbers hang together."""
    import jax

    if not isinstance(prior, Bijected) or prior.distribution.event_dim > 0 or prior.unconstrained_shape != prior.shape:
        return None
    compiled = jax.jit(jax.vmap(lambda u: prior.unconstrain(prior.distribution.icdf(u.reshape(prior.shape)))))

    @in_float64
    def transform(u: np.ndarray) -> np.ndarray:
        return np.clip(np.nan_to_num(np.asarray(compiled(u)), nan=0.0, posinf=36.0, neginf=-700.0), -700.0, 1e300)

    try:
        middle = transform(np.full((1, prior.size), 0.5))
    except Exception:  # numpyro raises NotImplementedError and others where a distribution has no quantiles
        return None
    return transform if np.all(np.isfinite(middle)) else None


def _stand_in(where: slice, draws: np.ndarray, log_density: Callable[[np.ndarray], np.ndarray]) -> _Block:
    from scipy import stats

    low, centre, high = np.quantile(draws, [0.16, 0.5, 0.84], axis=0)
    width = np.maximum(0.6 * (high - low), 1e-12)
    marginal = stats.t(DF, centre, width)

    def correction(x: np.ndarray) -> np.ndarray:
        return log_density(x) - marginal.logpdf(x).sum(axis=1)

    return _Block(where, marginal.ppf, correction)
