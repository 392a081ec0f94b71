r"""A prior made wider, moved, or replaced, and the ratio of its density to the old one.

Widening by s multiplies the width about the centre and keeps the family: $N(m, \sigma) \to N(m, s\sigma)$, a uniform
prior keeps its midpoint, a positive one with a scale keeps its edge at 0. Where the width is one of the logarithm
(`LogNormal`, `LogUniform`), so are the scale and the shift.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from supermodel.errors import PriorError
from supermodel.jax_scope import in_float64
from supermodel.models.families import Unsupported, member_of
from supermodel.models.joint_space import Site
from supermodel.models.priors import Bijected, Quantile, as_prior


@in_float64
def rescaled(name: str, prior: Any, scale: float = 1.0, shift: float = 0.0) -> Any:
    """The prior of parameter `name` made `scale` times as wide and moved by `shift`."""
    if not (np.isfinite(scale) and scale > 0 and np.isfinite(shift)):
        raise PriorError(
            f"a prior is scaled by a positive number and shifted by a finite one; got {scale} and {shift}."
        )
    return as_prior(name, _rebuilt(name, prior, scale, shift))


def _rebuilt(name: str, prior: Any, scale: Any, shift: Any) -> Any:
    member = member_of(prior.distribution) if isinstance(prior, Bijected) else None
    if member is None or isinstance(member.family.widen, Unsupported):
        raise _not_scalable(name, prior)
    return member._replace(arguments=member.family.widen(member.arguments, scale, shift)).build()


def _not_scalable(name: str, prior: Any) -> PriorError:
    if isinstance(prior, Site):
        return _bound(f"the prior of {name!r}, {prior.description},")
    return PriorError(
        f"the prior of {name!r}, {prior.description}, has no width that could be scaled in one obvious way. "
        "Say what to compare it with: sensitivity(..., replace=distribution) or replace={label: distribution, ...}."
    )


def _bound(what: str) -> PriorError:
    return PriorError(
        f"{what} belongs to a joint prior: it depends on other parameters, or its density is not known by itself, so that it "
        "cannot be changed alone. Ask for the parameters that it depends on, or build the models with the other prior and compare "
        "again."
    )


@in_float64
def log_density(prior: Any, values: np.ndarray) -> np.ndarray:
    """ln of the prior density at values (n, *shape) in the user's coordinates; -inf outside the support."""
    import jax
    import jax.numpy as jnp

    if isinstance(prior, Bijected):
        return np.asarray(_log_prob()(prior.distribution, jnp.asarray(values)))
    if isinstance(prior, Quantile):
        u = jnp.asarray(np.array([np.asarray(prior.unconstrain(v)) for v in values]))
        return np.asarray(jax.jit(jax.vmap(lambda z: prior.log_density(z) - prior.log_jacobian(z)))(u))
    if isinstance(prior, Site):
        raise _bound(f"the prior {prior.description}")
    raise PriorError(
        f"the prior {getattr(prior, 'description', prior)!r} was read from a file and is known by its name only, so "
        "its density cannot be computed. Load with load(path, models={...}) to have the models back."
    )


@functools.cache
def _log_prob() -> Any:
    """ln density of (distribution, values), summed over all but the first axis; compiled once for each family and shape.

    numpyro does not look at the support: its uniform is flat everywhere.
    """
    import jax
    import jax.numpy as jnp

    def log_prob(distribution, values):
        inside = distribution.support(values).reshape(len(values), -1).all(axis=1)
        return jnp.where(inside, distribution.log_prob(values).reshape(len(values), -1).sum(axis=1), -jnp.inf)

    return jax.jit(log_prob)


@in_float64
def log_density_of_rescaled(name: str, prior: Any, kind: str, grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(len(grid), n): ln density at draws of the prior scaled or shifted by each number of the grid."""
    import jax.numpy as jnp

    def changed(x: float) -> Any:
        return _rebuilt(name, prior, *((x, 0.0) if kind == "scale" else (1.0, x)))

    draws = jnp.asarray(values)
    return np.stack([np.asarray(_log_prob()(changed(float(x)), draws)) for x in grid])


def is_cut_off(old: Any, new: Any, values: np.ndarray, weights: np.ndarray) -> bool:
    """Whether the posterior leans on an edge of the old prior that the new one moves outwards.

    Beyond that edge there are no draws to reweight, and no weight can tell: the evidence found there would be missed.
    """
    if values.ndim != 1 or not isinstance(old, Bijected) or not isinstance(new, Bijected):
        return False
    ends = (*edges(old), *edges(new))
    if _leans(ends, values, weights):
        return True
    if not 0 < ends[0] < ends[1] < np.inf:
        return False
    with np.errstate(divide="ignore"):  # between positive edges a posterior may be near one in the logarithm only
        return _leans(np.log(np.maximum(ends, 0.0)), np.log(values), weights)


def _leans(ends: Any, values: np.ndarray, weights: np.ndarray) -> bool:
    low, high, new_low, new_high = ends
    if np.isfinite(low) and np.isfinite(high):
        reach = 0.02 * (high - low)
    else:
        sd = float(np.sqrt(np.sum(weights * (values - np.sum(weights * values)) ** 2)))
        reach = 0.2 * sd
    rounding = 1e-9 * reach
    leans_low = np.isfinite(low) and new_low < low - rounding and np.sum(weights[values < low + reach]) > 1e-3
    leans_high = np.isfinite(high) and new_high > high + rounding and np.sum(weights[values > high - reach]) > 1e-3
    return bool(leans_low or leans_high)


def has_edges(prior: Any) -> bool:
    """Whether the prior ends somewhere that scaling or shifting would move."""
    return prior.shape == () and all(np.isfinite(edges(prior)))


def edges(prior: Any) -> tuple[float, float]:
    """Where the support of a scalar prior begins and ends; infinite where it does not, or where nothing is known."""
    support = getattr(getattr(prior, "distribution", None), "support", None)
    low, high = getattr(support, "lower_bound", -np.inf), getattr(support, "upper_bound", np.inf)
    return float(np.min(np.asarray(low))), float(np.max(np.asarray(high)))
