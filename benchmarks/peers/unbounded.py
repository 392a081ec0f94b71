r"""A model as samplers of $R^d$ want it: $\ln\pi(z)$ with the Jacobian, and $\ln L(z)$, of one flat vector, in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fire.problem import Side


class Unbounded(NamedTuple):
    """Functions of one flat vector z, and draws of it from the prior."""

    dimension: int
    log_prior: Callable[[Any], Any]
    log_likelihood: Callable[[Any], Any]
    prior_draws: Callable[[Any, int], Any]  # key, n -> (n, dimension)


def unbounded(side: Side) -> Unbounded:
    """By numpyro's own bijections: positive parameters by their logarithm, the rest as they are."""
    import jax
    import jax.numpy as jnp
    from numpyro.distributions import biject_to

    priors = side.priors()
    sizes = {name: int(np.prod(prior.shape(), dtype=int)) for name, prior in priors.items()}
    ends = np.cumsum(list(sizes.values()))
    maps = {name: biject_to(prior.support) for name, prior in priors.items()}

    def parts(z):
        for (name, prior), end in zip(priors.items(), ends, strict=True):
            yield name, prior, maps[name], z[end - sizes[name] : end].reshape(prior.shape())

    def log_prior(z):
        total = 0.0
        for _, prior, bijection, piece in parts(z):
            x = bijection(piece)
            total += jnp.sum(prior.log_prob(x)) + jnp.sum(bijection.log_abs_det_jacobian(piece, x))
        return total

    def log_likelihood(z):
        return side.log_likelihood({name: bijection(piece) for name, _, bijection, piece in parts(z)}, jnp)

    def prior_draws(key, n):
        keys = jax.random.split(key, len(priors))
        pieces = [
            maps[name].inv(prior.sample(k, (n,))).reshape(n, -1)
            for k, (name, prior) in zip(keys, priors.items(), strict=True)
        ]
        return jnp.concatenate(pieces, axis=1)

    return Unbounded(int(ends[-1]), log_prior, log_likelihood, prior_draws)
