r"""The common priors in plain NumPy: draws, log densities and bijections without compiling anything.

A black-box likelihood is called on a handful of points at a time; compiling its priors for every batch size would take
longer than the whole run. `twin(distribution)` gives a `Twin` for the families below, and None for any other, which
JAX then serves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LOG_2PI = float(np.log(2 * np.pi))
Array = np.ndarray


def _gammaln(x):
    from scipy.special import gammaln

    return gammaln(x)


@dataclass(frozen=True)
class Family:
    """One family: the names of its arguments, its log density, its sampler, and its support."""

    arguments: tuple[str, ...]
    log_prob: Callable[..., Array]  # (x, *arguments)
    sample: Callable[..., Array]  # (rng, size, *arguments)
    support: str  # "real", "positive" or "interval"


def _normal(x, m, s):
    return -0.5 * ((x - m) / s) ** 2 - np.log(s) - 0.5 * LOG_2PI


def _cauchy(x, m, s):
    return -np.log(np.pi * s) - np.log1p(((x - m) / s) ** 2)


def _gamma(x, k, r):
    return k * np.log(r) + (k - 1) * np.log(x) - r * x - _gammaln(k)


def _inverse_gamma(x, k, s):
    return k * np.log(s) - (k + 1) * np.log(x) - s / x - _gammaln(k)


def _beta(x, a, b):
    return _gammaln(a + b) - _gammaln(a) - _gammaln(b) + (a - 1) * np.log(x) + (b - 1) * np.log1p(-x)


def _student(x, df, m, s):
    tail = -0.5 * (df + 1) * np.log1p(((x - m) / s) ** 2 / df)
    return tail + _gammaln(0.5 * (df + 1)) - _gammaln(0.5 * df) - 0.5 * np.log(np.pi * df) - np.log(s)


FAMILIES: dict[str, Family] = {
    "Normal": Family(("loc", "scale"), _normal, lambda g, n, m, s: g.normal(m, s, n), "real"),
    "Uniform": Family(("low", "high"), lambda x, a, b: -np.log(b - a) + 0 * x, lambda g, n, a, b: g.uniform(a, b, n), "interval"),
    "LogUniform": Family(
        ("low", "high"), lambda x, a, b: -np.log(x) - np.log(np.log(b / a)),
        lambda g, n, a, b: a * (b / a) ** g.random(n), "interval"),
    "HalfNormal": Family(
        ("scale",), lambda x, s: np.log(2) + _normal(x, 0.0, s), lambda g, n, s: np.abs(g.normal(0, s, n)), "positive"),
    "Cauchy": Family(("loc", "scale"), _cauchy, lambda g, n, m, s: m + s * g.standard_cauchy(n), "real"),
    "HalfCauchy": Family(
        ("scale",), lambda x, s: np.log(2) + _cauchy(x, 0.0, s), lambda g, n, s: np.abs(s * g.standard_cauchy(n)), "positive"),
    "Exponential": Family(("rate",), lambda x, r: np.log(r) - r * x, lambda g, n, r: g.exponential(1 / r, n), "positive"),
    "LogNormal": Family(
        ("loc", "scale"), lambda x, m, s: _normal(np.log(x), m, s) - np.log(x),
        lambda g, n, m, s: g.lognormal(m, s, n), "positive"),
    "Gamma": Family(("concentration", "rate"), _gamma, lambda g, n, k, r: g.gamma(k, 1 / r, n), "positive"),
    "InverseGamma": Family(("concentration", "rate"), _inverse_gamma, lambda g, n, k, s: s / g.gamma(k, 1.0, n), "positive"),
    "Beta": Family(("concentration1", "concentration0"), _beta, lambda g, n, a, b: g.beta(a, b, n), "interval"),
    "StudentT": Family(("df", "loc", "scale"), _student, lambda g, n, v, m, s: m + s * g.standard_t(v, n), "real"),
    "Laplace": Family(
        ("loc", "scale"), lambda x, m, s: -np.abs(x - m) / s - np.log(2 * s), lambda g, n, m, s: g.laplace(m, s, n), "real"),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Twin:
    """A prior in NumPy. Points are (n, size), values (n, *shape)."""

    family: Family
    arguments: tuple[Array, ...]
    low: Array
    high: Array
    shape: tuple[int, ...]

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` unconstrained draws."""
        values = self.family.sample(rng, (n, *self.shape), *self.arguments)
        return self.points(values)

    def points(self, values: Array) -> Array:
        """Unconstrained coordinates of values; one that rounds onto an edge is pulled just inside."""
        if self.family.support == "positive":
            values = np.log(np.maximum(values, 1e-300))
        elif self.family.support == "interval":
            inside = np.clip((values - self.low) / (self.high - self.low), 1e-300, 1 - 1e-16)
            values = np.log(inside) - np.log1p(-inside)
        return values.reshape(len(values), -1)

    def values(self, points: Array) -> Array:
        """Values in the user's coordinates."""
        u = points.reshape(len(points), *self.shape)
        if self.family.support == "positive":
            return np.exp(u)
        if self.family.support == "interval":
            from scipy.special import expit

            # The same clipping as numpyro's: strictly inside, so that log densities stay finite.
            tiny, top = np.finfo(float).tiny, 1 - np.finfo(float).eps
            return self.low + (self.high - self.low) * np.clip(expit(u), tiny, top)
        return u

    def log_density(self, points: Array) -> Array:
        """ln of the normalised density of the unconstrained coordinates: (n,)."""
        u = points.reshape(len(points), *self.shape)
        value = self.values(points)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            terms = self.family.log_prob(value, *self.arguments)
            if self.family.support == "positive":
                terms = terms + u
            elif self.family.support == "interval":
                terms = terms + np.log(self.high - self.low) - np.logaddexp(0, u) - np.logaddexp(0, -u)
        return np.nan_to_num(terms.reshape(len(points), -1).sum(axis=1), nan=-np.inf)


@dataclass(frozen=True)
class Quantiles:
    """Quantiles from below, from above, and the cumulative probability of a family, each with its arguments last."""

    lower: Callable[..., Array]
    upper: Callable[..., Array]
    cumulative: Callable[..., Array]


def _quantiles() -> dict[str, Quantiles]:
    """Families whose tails are not Gaussian in their unconstrained coordinate; special functions, so fast."""
    from scipy import special as sp

    def cauchy_upper(q, m, s):
        return m + s / np.tan(np.pi * q)

    return {
        "Uniform": Quantiles(
            lambda p, a, b: a + (b - a) * p, lambda q, a, b: b - (b - a) * q, lambda x, a, b: (x - a) / (b - a)),
        "LogUniform": Quantiles(
            lambda p, a, b: a * (b / a) ** p, lambda q, a, b: b * (a / b) ** q,
            lambda x, a, b: np.log(x / a) / np.log(b / a)),
        "HalfNormal": Quantiles(
            lambda p, s: s * sp.ndtri(0.5 + 0.5 * p), lambda q, s: -s * sp.ndtri(0.5 * q),
            lambda x, s: 2 * sp.ndtr(x / s) - 1),
        "Cauchy": Quantiles(
            lambda p, m, s: m - s / np.tan(np.pi * p), cauchy_upper, lambda x, m, s: 0.5 + np.arctan((x - m) / s) / np.pi),
        "HalfCauchy": Quantiles(
            lambda p, s: s * np.tan(0.5 * np.pi * p), lambda q, s: s / np.tan(0.5 * np.pi * q),
            lambda x, s: 2 * np.arctan(x / s) / np.pi),
        "Exponential": Quantiles(
            lambda p, r: -np.log1p(-p) / r, lambda q, r: -np.log(q) / r, lambda x, r: -np.expm1(-r * x)),
        "Gamma": Quantiles(
            lambda p, k, r: sp.gammaincinv(k, p) / r, lambda q, k, r: sp.gammainccinv(k, q) / r,
            lambda x, k, r: sp.gammainc(k, r * x)),
        "InverseGamma": Quantiles(
            lambda p, k, s: s / sp.gammainccinv(k, p), lambda q, k, s: s / sp.gammaincinv(k, q),
            lambda x, k, s: sp.gammaincc(k, s / x)),
        "Beta": Quantiles(
            lambda p, a, b: sp.betaincinv(a, b, p), lambda q, a, b: 1 - sp.betaincinv(b, a, q),
            lambda x, a, b: sp.betainc(a, b, x)),
        "StudentT": Quantiles(
            lambda p, v, m, s: m + s * sp.stdtrit(v, p), lambda q, v, m, s: m - s * sp.stdtrit(v, q),
            lambda x, v, m, s: sp.stdtr(v, (x - m) / s)),
    }  # fmt: skip


def quantiles(distribution: Any) -> tuple[Callable, Callable, Callable] | None:
    """(ppf, isf, cdf) of a scalar numpyro distribution with other than Gaussian tails; None for any other."""
    found = twin(distribution)
    if found is None or found.shape != ():
        return None
    while type(distribution).__name__ in ("ExpandedDistribution", "Independent"):
        distribution = distribution.base_dist
    entry = _quantiles().get(type(distribution).__name__)
    if entry is None:
        return None
    a = found.arguments
    return lambda p: entry.lower(p, *a), lambda q: entry.upper(q, *a), lambda x: entry.cumulative(x, *a)


def twin(distribution: Any) -> Twin | None:
    """The NumPy twin of a numpyro distribution, or None."""
    shape = tuple(distribution.shape())
    while type(distribution).__name__ in ("ExpandedDistribution", "Independent"):
        distribution = distribution.base_dist
    name = type(distribution).__name__
    if name not in FAMILIES or not type(distribution).__module__.startswith("numpyro.distributions"):
        return None
    family = FAMILIES[name]
    arguments = tuple(np.asarray(getattr(distribution, a), float) for a in family.arguments)
    low = high = np.zeros(())
    if family.support == "interval":
        low, high = (np.zeros(()), np.ones(())) if name == "Beta" else arguments
    return Twin(family, arguments, low, high, shape)
