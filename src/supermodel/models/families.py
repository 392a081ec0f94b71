r"""The families of distributions: one table, in which a new prior is one row.

A row says everything that the package asks of a family: its arguments in NumPyro, its name and arguments in SciPy, its
density, draws and quantiles in NumPy (by default SciPy's), where its support ends, how it is made wider, and how it is
written in a text. What a family cannot do, its row says too, with the reason: `Unsupported`.

Here v is a value, p a probability from below, q one from above; a, b, m, s, k, r are arguments in the row's order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from supermodel.errors import PriorError
from supermodel.jax_scope import numpyro_distributions

LOG_2PI = math.log(2 * math.pi)


class Unsupported(NamedTuple):
    """A capability that a family lacks, and why."""

    why: str


class Scipy(NamedTuple):
    """Names in scipy.stats; arguments as SciPy's (shapes..., loc, scale), and back (None where loc changes the family)."""

    names: tuple[str, ...]
    to: Callable[..., tuple]
    back: Callable[..., tuple | None]


class Plain(NamedTuple):
    """A family in NumPy: ln density, draws, quantiles from below and above, and the probabilities that invert them."""

    log_prob: Callable[..., Any]  # (v, *arguments)
    sample: Callable[..., Any]  # (rng, size, *arguments)
    ppf: Callable[..., Any]  # (p, *arguments)
    isf: Callable[..., Any]  # (q, *arguments)
    cdf: Callable[..., Any]  # (v, *arguments)
    sf: Callable[..., Any]  # (v, *arguments)


class Text(NamedTuple):
    """How a family is written: defaults of arguments, and those that must be positive. `low` must be below `high`."""

    defaults: Mapping[str, float]
    positive: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """One row.

    `edges` are the ends of the support. `straight` is the map of v that makes the quantiles smooth ("" for none, "log",
    "logit" or "asinh"); `gaussian` says that with it v is normal already, and no other coordinate is called for.
    """

    arguments: tuple[str, ...]
    scipy: Scipy | Unsupported
    plain: Plain | Unsupported
    edges: Callable[..., tuple[Any, Any]]
    widen: Callable[..., dict[str, Any]] | Unsupported  # (arguments by name, scale, shift)
    text: Text | Unsupported
    straight: str = ""
    gaussian: bool = False
    read: Callable[[Any], dict[str, Any] | None] | None = None  # where a class in NumPyro is more than the family
    build: Callable[..., Any] | None = None


class Member(NamedTuple):
    """One distribution of a family: `name(**arguments)`, then `.expand(...)` and `.to_event(...)` as in `wraps`."""

    name: str
    arguments: dict[str, Any]
    wraps: tuple[tuple[str, Any], ...] = ()

    @property
    def family(self) -> Family:
        return FAMILIES[self.name]

    def build(self) -> Any:
        """The distribution of NumPyro."""
        built = (self.family.build or getattr(numpyro_distributions(), self.name))(**self.arguments)
        for wrap, value in self.wraps:
            built = getattr(built, wrap)(tuple(value) if wrap == "expand" else value)
        return built


def member_of(distribution: Any) -> Member | None:
    """The row and the arguments of a distribution of NumPyro; None if it is in no row."""
    wraps: list[tuple[str, Any]] = []
    while type(distribution).__name__ in ("ExpandedDistribution", "Independent"):
        expanded = type(distribution).__name__ == "ExpandedDistribution"
        size = list(distribution.batch_shape) if expanded else int(distribution.reinterpreted_batch_ndims)
        wraps.insert(0, ("expand" if expanded else "to_event", size))
        distribution = distribution.base_dist
    if not type(distribution).__module__.startswith("numpyro.distributions"):
        return None
    kind = type(distribution).__name__
    for name, family in FAMILIES.items():
        if family.read is None:
            found = {a: getattr(distribution, a) for a in family.arguments} if kind == name else None
        else:
            found = family.read(distribution)
        if found is not None:
            return Member(name, found, tuple(wraps))
    return None


def from_scipy(name: str, *arguments: float) -> Any:
    """The distribution of NumPyro that is SciPy's `name(shapes..., loc, scale)`; None if no row has it."""
    for own, family in FAMILIES.items():
        if isinstance(family.scipy, Scipy) and name in family.scipy.names:
            found = family.scipy.back(*arguments)
            return None if found is None else Member(own, dict(zip(family.arguments, found, strict=True))).build()
    return None


# -- SciPy: arguments there and back ------------------------------------------------------------------------------


def _same(*names: str) -> Scipy:
    """The arguments are SciPy's own: shapes, loc, scale."""
    return Scipy(names, lambda *a: a, lambda *a: a)


def _from_zero(name: str, to: Callable[..., tuple], back: Callable[..., tuple]) -> Scipy:
    """Families that begin at 0: `to` and `back` speak of (shapes..., scale), and loc must be 0."""

    def there(*a):
        *shapes, scale = to(*a)
        return *shapes, 0.0, scale

    return Scipy((name,), there, lambda *a: back(*a[:-2], a[-1]) if a[-2] == 0 else None)


def _by_scipy(twin: Scipy) -> Plain:
    """Density, draws and quantiles by SciPy: a tenth of a millisecond slower per call than a formula, and always there."""

    def call(method):
        return lambda v, *a: getattr(getattr(scipy.stats, twin.names[0]), method)(v, *twin.to(*a))

    def draw(rng, size, *a):
        return getattr(scipy.stats, twin.names[0]).rvs(*twin.to(*a), size=size, random_state=rng)

    return Plain(call("logpdf"), draw, call("ppf"), call("isf"), call("cdf"), call("sf"))


# -- Supports -----------------------------------------------------------------------------------------------------


def _real(*_: Any) -> tuple[float, float]:
    return -np.inf, np.inf


def _positive(*_: Any) -> tuple[float, float]:
    return 0.0, np.inf


# -- Widening: the spread times s about the centre or the edge, then a shift ----------------------------------------


def _located(a: dict[str, Any], s: Any, shift: Any) -> dict[str, Any]:
    return {**a, "loc": a["loc"] + shift, "scale": s * a["scale"]}


def _stretched(argument: str, power: int = 1, edge: str = "0") -> Callable[..., dict[str, Any]]:
    """The edge stays, so that there is nothing to shift; `power` is -1 for a rate."""

    def widen(a, s, shift):
        if not (isinstance(shift, float) and shift == 0.0):
            raise PriorError(
                f"a prior that begins at {edge} cannot be shifted and stay one of its kind. "
                "Use scales=, or give the new prior with replace=."
            )
        return {**a, argument: s * a[argument] if power == 1 else a[argument] / s}

    return widen


def _about_the_middle(a: dict[str, Any], s: Any, shift: Any) -> dict[str, Any]:
    centre, half = 0.5 * (a["low"] + a["high"]) + shift, 0.5 * s * (a["high"] - a["low"])
    return {"low": centre - half, "high": centre + half}


def _about_the_middle_of_the_log(a: dict[str, Any], s: Any, shift: Any) -> dict[str, Any]:
    import jax.numpy as jnp

    logs = {end: jnp.log(jnp.asarray(value)) for end, value in a.items()}
    return {end: jnp.exp(value) for end, value in _about_the_middle(logs, s, shift).items()}


# -- Densities that more than one row uses, or that are too long for one ----------------------------------------------


def _gammaln(x):
    return scipy.special.gammaln(x)


def _normal(v, m, s):
    return -0.5 * ((v - m) / s) ** 2 - np.log(s) - 0.5 * LOG_2PI


def _cauchy(v, m, s):
    return -np.log(np.pi * s) - np.log1p(((v - m) / s) ** 2)


def _beta(v, a, b):
    return _gammaln(a + b) - _gammaln(a) - _gammaln(b) + (a - 1) * np.log(v) + (b - 1) * np.log1p(-v)


def _student(v, df, m, s):
    tail = -0.5 * (df + 1) * np.log1p(((v - m) / s) ** 2 / df)
    return tail + _gammaln(0.5 * (df + 1)) - _gammaln(0.5 * df) - 0.5 * np.log(np.pi * df) - np.log(s)


def _student_quantile(p, df):
    """SciPy's, but far out the tail's own power law: SciPy's fails for p below some 1e-75, depending on df."""
    log_tail = _gammaln(0.5 * (df + 1)) - _gammaln(0.5 * df) - 0.5 * np.log(np.pi) + (0.5 * df - 1) * np.log(df)
    with np.errstate(over="ignore", divide="ignore"):
        far = -np.exp((log_tail - np.log(p)) / df)
    return np.where(far < -1e8 * (1 + df), far, scipy.special.stdtrit(df, p))


def _beta_quantile(p, a, b):
    """SciPy's, but near 0 the power law that the distribution has there: SciPy's fails for p below some 1e-150."""
    with np.errstate(divide="ignore"):
        near = np.exp((np.log(p) + np.log(a) + scipy.special.betaln(a, b)) / a)
    return np.where(near * (1 + b) < 1e-13, near, scipy.special.betaincinv(a, b, p))


def _truncated_quantile(p, a, b):
    r"""x in (a, b) with $\Phi(x) = \Phi(a) + p M$, in logarithms and from the lighter side, so that no tail rounds away."""
    flip = a > 0
    inner, outer = np.where(flip, -a, b), np.where(flip, -b, a)
    log_inner, log_outer = scipy.special.log_ndtr(inner), scipy.special.log_ndtr(outer)
    share = -np.expm1(log_outer - log_inner)  # M over Phi of the inner end
    with np.errstate(divide="ignore"):
        up = np.logaddexp(scipy.special.log_ndtr(a), np.log(p) + log_inner + np.log(share))
        down = log_inner + np.log1p(-p * share)
    return np.where(flip, -scipy.special.ndtri_exp(down), scipy.special.ndtri_exp(np.minimum(up, 0.0)))


def _read_truncated_normal(d: Any) -> dict[str, Any] | None:
    if "TruncatedDistribution" not in type(d).__name__ or type(d.base_dist).__name__ != "Normal":
        return None
    ends = {"low": getattr(d, "low", -np.inf), "high": getattr(d, "high", np.inf)}
    return {"loc": d.base_dist.loc, "scale": d.base_dist.scale, **ends}


def _build_truncated_normal(loc: Any, scale: Any, low: Any, high: Any) -> Any:
    dist = numpyro_distributions()
    ends = {"low": low, "high": high}
    return dist.TruncatedNormal(loc, scale, **{k: None if np.all(np.isinf(v)) else v for k, v in ends.items()})


_TRUNCNORM = Scipy(
    ("truncnorm",),
    lambda m, s, low, high: ((low - m) / s, (high - m) / s, m, s),
    lambda a, b, m, s: (m, s, m + a * s, m + b * s),
)
_WEIBULL = _from_zero("weibull_min", lambda s, k: (k, s), lambda k, s: (s, k))
_PARETO = _from_zero("pareto", lambda s, a: (a, s), lambda a, s: (s, a))
_VECTOR = Unsupported("it is a vector, and its numbers hang together")
_NO_WIDTH = Unsupported("it has no width that could be scaled in one obvious way")
_LOCATED = Text({"loc": 0.0, "scale": 1.0}, ("scale",))

FAMILIES: dict[str, Family] = {
    "Normal": Family(
        ("loc", "scale"), _same("norm"),
        Plain(_normal, lambda g, n, m, s: g.normal(m, s, n),
              lambda p, m, s: m + s * scipy.special.ndtri(p), lambda q, m, s: m - s * scipy.special.ndtri(q),
              lambda v, m, s: scipy.special.ndtr((v - m) / s), lambda v, m, s: scipy.special.ndtr((m - v) / s)),
        _real, _located, _LOCATED, gaussian=True),
    "Uniform": Family(
        ("low", "high"), Scipy(("uniform",), lambda a, b: (a, b - a), lambda loc, scale: (loc, loc + scale)),
        Plain(lambda v, a, b: -np.log(b - a) + 0 * v, lambda g, n, a, b: g.uniform(a, b, n),
              lambda p, a, b: a + (b - a) * p, lambda q, a, b: b - (b - a) * q,
              lambda v, a, b: (v - a) / (b - a), lambda v, a, b: (b - v) / (b - a)),
        lambda a, b: (a, b), _about_the_middle, Text({}, ())),
    "LogUniform": Family(
        ("low", "high"),
        Scipy(("loguniform", "reciprocal"), lambda a, b: (a, b, 0.0, 1.0),
              lambda a, b, loc, scale: (a * scale, b * scale) if loc == 0 else None),
        Plain(lambda v, a, b: -np.log(v) - np.log(np.log(b / a)), lambda g, n, a, b: a * (b / a) ** g.random(n),
              lambda p, a, b: a * (b / a) ** p, lambda q, a, b: b * (a / b) ** q,
              lambda v, a, b: np.log(v / a) / np.log(b / a), lambda v, a, b: np.log(b / v) / np.log(b / a)),
        lambda a, b: (a, b), _about_the_middle_of_the_log, Text({}, ("low", "high")), "log"),
    "HalfNormal": Family(
        ("scale",), _from_zero("halfnorm", lambda s: (s,), lambda s: (s,)),
        Plain(lambda v, s: np.log(2) + _normal(v, 0.0, s), lambda g, n, s: np.abs(g.normal(0, s, n)),
              lambda p, s: s * math.sqrt(2) * scipy.special.erfinv(p), lambda q, s: -s * scipy.special.ndtri(0.5 * q),
              lambda v, s: scipy.special.erf(v / s / math.sqrt(2)), lambda v, s: 2 * scipy.special.ndtr(-v / s)),
        _positive, _stretched("scale"), Text({"scale": 1.0}, ("scale",)), "log"),
    "HalfCauchy": Family(
        ("scale",), _from_zero("halfcauchy", lambda s: (s,), lambda s: (s,)),
        Plain(lambda v, s: np.log(2) + _cauchy(v, 0.0, s), lambda g, n, s: np.abs(s * g.standard_cauchy(n)),
              lambda p, s: s * np.tan(0.5 * np.pi * p), lambda q, s: s / np.tan(0.5 * np.pi * q),
              lambda v, s: 2 * np.arctan(v / s) / np.pi, lambda v, s: 2 * np.arctan2(s, v) / np.pi),
        _positive, _stretched("scale"), Text({"scale": 1.0}, ("scale",)), "log"),
    "Cauchy": Family(
        ("loc", "scale"), _same("cauchy"),
        Plain(_cauchy, lambda g, n, m, s: m + s * g.standard_cauchy(n),
              lambda p, m, s: m - s / np.tan(np.pi * p), lambda q, m, s: m + s / np.tan(np.pi * q),
              lambda v, m, s: np.arctan2(s, m - v) / np.pi, lambda v, m, s: np.arctan2(s, v - m) / np.pi),
        _real, _located, _LOCATED, "asinh"),
    "StudentT": Family(
        ("df", "loc", "scale"), _same("t"),
        Plain(_student, lambda g, n, v, m, s: m + s * g.standard_t(v, n),
              lambda p, v, m, s: m + s * _student_quantile(p, v), lambda q, v, m, s: m - s * _student_quantile(q, v),
              lambda x, v, m, s: scipy.special.stdtr(v, (x - m) / s),
              lambda x, v, m, s: scipy.special.stdtr(v, (m - x) / s)),
        _real, _located, Text({"loc": 0.0, "scale": 1.0}, ("df", "scale")), "asinh"),
    "Laplace": Family(
        ("loc", "scale"), _same("laplace"),
        _by_scipy(_same("laplace"))._replace(
            log_prob=lambda v, m, s: -np.abs(v - m) / s - np.log(2 * s), sample=lambda g, n, m, s: g.laplace(m, s, n)),
        _real, _located, _LOCATED),
    "Logistic": Family(("loc", "scale"), _same("logistic"), _by_scipy(_same("logistic")), _real, _located, _LOCATED),
    "Gumbel": Family(("loc", "scale"), _same("gumbel_r"), _by_scipy(_same("gumbel_r")), _real, _located, _LOCATED),
    "LogNormal": Family(
        ("loc", "scale"),
        _from_zero("lognorm", lambda m, s: (s, np.exp(m)), lambda s, scale: (math.log(scale), s)),
        Plain(lambda v, m, s: _normal(np.log(v), m, s) - np.log(v), lambda g, n, m, s: g.lognormal(m, s, n),
              lambda p, m, s: np.exp(m + s * scipy.special.ndtri(p)),
              lambda q, m, s: np.exp(m - s * scipy.special.ndtri(q)),
              lambda v, m, s: scipy.special.ndtr((np.log(v) - m) / s),
              lambda v, m, s: scipy.special.ndtr((m - np.log(v)) / s)),
        _positive, _located, _LOCATED, "log", gaussian=True),
    "Exponential": Family(
        ("rate",), _from_zero("expon", lambda r: (1 / r,), lambda s: (1.0 / s,)),
        Plain(lambda v, r: np.log(r) - r * v, lambda g, n, r: g.exponential(1 / r, n),
              lambda p, r: -np.log1p(-p) / r, lambda q, r: -np.log(q) / r,
              lambda v, r: -np.expm1(-r * v), lambda v, r: np.exp(-r * v)),
        _positive, _stretched("rate", -1), Text({"rate": 1.0}, ("rate",)), "log"),
    "Gamma": Family(
        ("concentration", "rate"), _from_zero("gamma", lambda k, r: (k, 1 / r), lambda k, s: (k, 1.0 / s)),
        Plain(lambda v, k, r: k * np.log(r) + (k - 1) * np.log(v) - r * v - _gammaln(k),
              lambda g, n, k, r: g.gamma(k, 1 / r, n),
              lambda p, k, r: scipy.special.gammaincinv(k, p) / r, lambda q, k, r: scipy.special.gammainccinv(k, q) / r,
              lambda v, k, r: scipy.special.gammainc(k, r * v), lambda v, k, r: scipy.special.gammaincc(k, r * v)),
        _positive, _stretched("rate", -1), Text({"rate": 1.0}, ("concentration", "rate")), "log"),
    "InverseGamma": Family(
        ("concentration", "rate"), _from_zero("invgamma", lambda k, s: (k, s), lambda k, s: (k, s)),
        Plain(lambda v, k, s: k * np.log(s) - (k + 1) * np.log(v) - s / v - _gammaln(k),
              lambda g, n, k, s: s / g.gamma(k, 1.0, n),
              lambda p, k, s: s / scipy.special.gammainccinv(k, p), lambda q, k, s: s / scipy.special.gammaincinv(k, q),
              lambda v, k, s: scipy.special.gammaincc(k, s / v), lambda v, k, s: scipy.special.gammainc(k, s / v)),
        _positive, _stretched("rate"), Text({"rate": 1.0}, ("concentration", "rate")), "log"),
    "Beta": Family(
        ("concentration1", "concentration0"),
        Scipy(("beta",), lambda a, b: (a, b, 0.0, 1.0), lambda a, b, loc, s: (a, b) if (loc, s) == (0, 1) else None),
        Plain(_beta, lambda g, n, a, b: g.beta(a, b, n),
              _beta_quantile, lambda q, a, b: 1 - _beta_quantile(q, b, a),
              lambda v, a, b: scipy.special.betainc(a, b, v), lambda v, a, b: scipy.special.betaincc(a, b, v)),
        lambda *_: (0.0, 1.0), _NO_WIDTH, Text({}, ("concentration1", "concentration0")), "logit"),
    "Weibull": Family(
        ("scale", "concentration"), _WEIBULL, _by_scipy(_WEIBULL),
        _positive, _stretched("scale"), Text({}, ("scale", "concentration")), "log"),
    "Pareto": Family(
        ("scale", "alpha"), _PARETO, _by_scipy(_PARETO),
        lambda s, a: (s, np.inf), _stretched("alpha", -1, "its scale"), Text({}, ("scale", "alpha")), "log"),
    "TruncatedNormal": Family(
        ("loc", "scale", "low", "high"), _TRUNCNORM,
        _by_scipy(_TRUNCNORM)._replace(
            ppf=lambda p, m, s, low, high: m + s * _truncated_quantile(p, (low - m) / s, (high - m) / s),
            isf=lambda q, m, s, low, high: m - s * _truncated_quantile(q, (m - high) / s, (m - low) / s)),
        lambda m, s, low, high: (low, high), _NO_WIDTH, Text({"low": -np.inf, "high": np.inf}, ("scale",)),
        read=_read_truncated_normal, build=_build_truncated_normal),
    "MultivariateNormal": Family(
        ("loc", "scale_tril"), _VECTOR, _VECTOR, _real,
        lambda a, s, shift: {"loc": a["loc"] + shift, "scale_tril": s * a["scale_tril"]}, _VECTOR),
}  # fmt: skip
