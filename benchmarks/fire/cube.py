"""A model of the trial as nested samplers want it: ln L and a transform of the unit cube, in NumPy and quick to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainccinv, gammaincinv, ndtri

import supermodel as sm
from benchmarks.fire.problem import Side

QUANTILES: dict[str, Callable[[Any, Any], Any]] = {
    "Normal": lambda u, d: d.loc + d.scale * ndtri(u),
    "Uniform": lambda u, d: d.low + (d.high - d.low) * u,
    "LogUniform": lambda u, d: d.low * (d.high / d.low) ** u,
    "Gamma": lambda u, d: gammaincinv(d.concentration, u) / d.rate,
    "InverseGamma": lambda u, d: d.rate / gammainccinv(d.concentration, u),
    "Cauchy": lambda u, d: d.loc + d.scale * np.tan(np.pi * (u - 0.5)),
    "Exponential": lambda u, d: -np.log1p(-u) / d.rate,
    "HalfCauchy": lambda u, d: d.scale * np.tan(0.5 * np.pi * u),
}
ARGUMENTS = ("loc", "scale", "low", "high", "concentration", "rate")


class Cube(NamedTuple):
    """Functions of one point, (d,), and of many, (n, d)."""

    dimension: int
    log_likelihood: Callable[[np.ndarray], float]
    prior_transform: Callable[[np.ndarray], np.ndarray]
    log_likelihood_at: Callable[[np.ndarray], np.ndarray]
    prior_transform_at: Callable[[np.ndarray], np.ndarray]


class _Arguments:
    """The numbers of a numpyro distribution as floats: an array of JAX costs a dispatch at every use."""

    def __init__(self, distribution: Any):
        for name in ARGUMENTS:
            if hasattr(distribution, name):
                setattr(self, name, float(getattr(distribution, name)))


def cube(side: Side, seed: int) -> Cube:
    """The transform by quantiles; where numbers of a prior hang together, as `sm.to_dynesty` does it."""
    if side.priors is None:
        return _by_library(side, seed)
    maps, places, start = [], {}, 0
    for name, prior in side.priors().items():
        shape, size = tuple(prior.shape()), int(np.prod(prior.shape(), dtype=int))
        while type(prior).__name__ in ("ExpandedDistribution", "Independent"):
            prior = prior.base_dist
        if type(prior).__name__ not in QUANTILES:
            return _by_library(side, seed)
        maps.append((QUANTILES[type(prior).__name__], _Arguments(prior), slice(start, start + size)))
        places[name] = (slice(start, start + size), shape)
        start += size

    def transform(u):
        u = np.clip(u, 1e-300, 1 - 2.0**-53)
        return np.concatenate([f(u[..., where], d) for f, d, where in maps] or [u], axis=-1)

    def log_likelihood_at(x):
        p = {name: x[..., where].reshape(x.shape[:-1] + shape) for name, (where, shape) in places.items()}
        with np.errstate(all="ignore"):
            found = np.asarray(side.log_likelihood(p, np), float)
        return np.where(np.isnan(found), -np.inf, found)

    return Cube(start, lambda x: float(log_likelihood_at(x)), transform, log_likelihood_at, transform)


def _by_library(side: Side, seed: int) -> Cube:
    f = sm.to_dynesty(side.model("traced"), seed=seed)
    return Cube(f.dimension, f.log_likelihood, f.prior_transform, f.log_likelihood_at, f.prior_transform_at)
