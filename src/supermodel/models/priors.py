r"""Priors as normalised densities of unconstrained coordinates.

A prior on a value $v$ becomes a density of $u \in R^n$ through a bijection $v = T(u)$:
$\ln p(u) = \ln \pi(T(u)) + \ln |\det T'(u)|$. Two bijections serve everything:

* `Bijected`: numpyro's own map onto the support (exp, logit, ...), for numpyro distributions and
  for the scipy families that have a numpyro twin;
* `Quantile`: $v = F^{-1}(\Phi(u))$ for anything else with a quantile function; then $u \sim N(0, 1)$
  exactly, so such a prior is normalised by construction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from supermodel.errors import PriorError
from supermodel.jax_scope import in_float64, numpyro_distributions
from supermodel.models.families import Plain, from_scipy, member_of
from supermodel.models.numpy_twin import Twin, twin
from supermodel.models.rounding import in_doubles

LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


class Prior(Protocol):
    """What the rest of the package asks of a prior. `u` is a flat vector of `size` numbers."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # of the value that the user sees

    @property
    def size(self) -> int: ...  # of the unconstrained coordinates

    @property
    def description(self) -> str: ...

    def constrain(self, u: Any) -> Any: ...
    def unconstrain(self, value: Any) -> Any: ...
    def log_jacobian(self, u: Any) -> Any: ...
    def log_density(self, u: Any) -> Any: ...
    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray: ...
    def values_at(self, points: np.ndarray) -> np.ndarray: ...
    def log_density_at(self, points: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Bijected:
    r"""$v = T(u)$ with numpyro's bijection onto the support of `distribution`."""

    distribution: Any
    description: str

    def __getstate__(self) -> dict[str, Any]:
        """To a worker goes what it is made of: compiled functions and formulas of families cannot go, and are made anew there."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def twin(self) -> Twin | None:
        """The same prior in NumPy, where it is a common one."""
        return twin(self.distribution)

    def with_gaussian_tails(self) -> Bijected | Quantile:
        """The same prior through its quantiles, where there are any: then no posterior has tails heavier than N(0, I)."""
        member = member_of(self.distribution)
        if member is None or self.shape != () or member.family.gaussian or not isinstance(member.family.plain, Plain):
            return self
        plain, a = member.family.plain, tuple(np.asarray(value, float) for value in member.arguments.values())
        ppf, isf, cdf, sf = (lambda x, f=f: f(x, *a) for f in (plain.ppf, plain.isf, plain.cdf, plain.sf))
        return Quantile(ppf, self.description, isf, cdf, sf, member.family.straight, Quantile.FAR)

    @property
    def _transform(self):
        return numpyro_distributions().biject_to(self.distribution.support)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.distribution.shape())

    @property
    def unconstrained_shape(self) -> tuple[int, ...]:
        return tuple(self._transform.inverse_shape(self.shape))

    @property
    def size(self) -> int:
        return math.prod(self.unconstrained_shape)

    def constrain(self, u):
        return self._transform(u.reshape(self.unconstrained_shape))

    def unconstrain(self, value):
        import jax.numpy as jnp

        return jnp.reshape(self._transform.inv(jnp.asarray(value, float)), (self.size,))

    def log_jacobian(self, u):
        inner = u.reshape(self.unconstrained_shape)
        return self._transform.log_abs_det_jacobian(inner, self._transform(inner)).sum()

    def log_density(self, u):
        # One `.sum()` over all batch dimensions: a vector parameter has one joint prior.
        return self.distribution.log_prob(self.constrain(u)).sum() + self.log_jacobian(u)

    def log_density_at(self, points: np.ndarray) -> np.ndarray:
        if self.twin is not None:
            return self.twin.log_density(points)
        return np.asarray(self._compiled[1](_padded(points)))[: len(points)]

    def values_at(self, points: np.ndarray) -> np.ndarray:
        if self.twin is not None:
            return self.twin.values(points)
        return np.asarray(self._compiled[0](_padded(points)))[: len(points)]

    @cached_property
    def _compiled(self):
        import jax

        return jax.jit(jax.vmap(self.constrain)), jax.jit(jax.vmap(self.log_density))

    def sample(self, rng, n):
        return self._sample_compiled(rng, n) if self.twin is None else self.twin.sample(rng, n)

    @in_float64
    def _sample_compiled(self, rng, n):
        import jax

        values = self.distribution.sample(jax.random.key(rng.integers(2**31)), (_power_of_two(n),))
        u = np.asarray(self._transform.inv(values), float).reshape(len(values), self.size)[:n]
        # A draw that rounds onto the edge of its support has no unconstrained image: pull it just inside.
        return np.clip(np.nan_to_num(u, nan=0.0, posinf=36.0, neginf=-700.0), -700.0, 1e300)


def _power_of_two(n: int) -> int:
    """At least n and 64: few sizes, few compilations."""
    return max(64, 1 << (n - 1).bit_length())


def _padded(points: np.ndarray) -> np.ndarray:
    """The points and copies of the first, so that their number is a power of two."""
    return np.concatenate([points, np.repeat(points[:1], _power_of_two(len(points)) - len(points), axis=0)])


@dataclass(frozen=True, eq=False)
class Quantile:
    r"""$v = F^{-1}(\Phi(u))$, hence $u \sim N(0, 1)$: for any scalar distribution with a quantile function.

    JAX traces a cubic interpolant of $g(v(u))$ at knots, where g is the map that makes the quantiles smooth (`straight`):
    v itself, ln v, logit v, or asinh of v in units of its spread. Mass beyond $|u|$ = `reach` sits at the last value,
    and values are kept between 1e-300 and 1e300 where g is not v itself: mass piled up at 0 stays a number.
    """

    ppf: Callable[[np.ndarray], np.ndarray]
    description: str
    isf: Callable[[np.ndarray], np.ndarray] | None = None
    cdf: Callable[[np.ndarray], np.ndarray] | None = None
    sf: Callable[[np.ndarray], np.ndarray] | None = None
    straight: str = ""
    reach: float = 8.2  # beyond, 1 - Phi is below the spacing of doubles near 1
    shape: tuple[int, ...] = ()
    size: int = 1

    FAR = 37.0  # beyond, Phi(-u) is no double

    def values(self, u: np.ndarray) -> np.ndarray:
        """The map itself, in NumPy; the upper half through `isf`, where Phi(u) would round to 1."""
        from scipy.special import ndtr

        u = np.asarray(u, float)
        upper = self.isf if self.isf is not None else lambda q: self.ppf(1.0 - q)
        bounded = np.clip(u, -self.FAR, self.FAR if self.isf is not None else self.reach)
        with np.errstate(over="ignore", under="ignore"):
            v = np.where(u < 0, self.ppf(ndtr(np.minimum(bounded, 0.0))), upper(ndtr(-np.maximum(bounded, 0.0))))
        low, high = {"": (-np.inf, np.inf), "asinh": (-1e300, 1e300), "logit": (1e-300, 1 - 1e-16)}.get(
            self.straight, (1e-300, 1e300)
        )
        return np.clip(v, low, high)

    def constrain(self, u):
        """The map as a cubic interpolant that JAX can trace and differentiate (values at 4096 knots, or 8192 if far)."""
        import jax
        import jax.numpy as jnp

        knots, table, slopes = self._table
        z = jnp.clip(u[0], knots[0], knots[-1])
        h = knots[1] - knots[0]
        i = jnp.clip(jnp.floor((z - knots[0]) / h).astype(int), 0, len(knots) - 2)
        t = (z - jnp.asarray(knots)[i]) / h
        left, right = jnp.asarray(table)[i], jnp.asarray(table)[i + 1]
        m0, m1 = h * jnp.asarray(slopes)[i], h * jnp.asarray(slopes)[i + 1]
        g = ((1 + 2 * t) * left + t * m0) * (1 - t) ** 2 + (right * (3 - 2 * t) + m1 * (t - 1)) * t**2
        if self.straight == "asinh":
            return self._centre[0] + self._centre[1] * jnp.sinh(g)
        # Rounding must not carry a value over the edge of its support.
        v = {"": lambda g: g, "log": jnp.exp, "logit": jax.nn.sigmoid}[self.straight](g)
        return jnp.clip(v, *self.values(knots[[0, -1]]))

    @cached_property
    def _centre(self) -> tuple[float, float]:
        low, middle, high = (float(v) for v in self.values(np.array([-0.5, 0.0, 0.5])))
        return middle, high - low

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from scipy.interpolate import CubicSpline
        from scipy.special import logit

        knots = np.linspace(-self.reach, self.reach, 4096 if self.reach < self.FAR else 8192)
        table = self.values(knots)
        if self.straight == "asinh":
            table = np.arcsinh((table - self._centre[0]) / self._centre[1])
        elif self.straight:
            table = {"log": np.log, "logit": logit}[self.straight](table)
        if not np.all(np.isfinite(table)):
            raise PriorError(
                f"the quantile function of {self.description} is not finite between Phi(-8.2) and Phi(8.2). "
                "Values there are needed as starting points; give a distribution with a finite quantile function."
            )
        return knots, table, CubicSpline(knots, table)(knots, 1)

    def unconstrain(self, value):
        from scipy.special import ndtri

        if self.cdf is None:
            raise PriorError(f"{self.description} has no `cdf`, which is needed to map a value back to its coordinate.")
        value = np.asarray(value, float)
        u = ndtri(self.cdf(value))
        if self.sf is not None:  # Phi(u) rounds to 1 in the upper tail, its complement does not
            u = np.where(u > 0, -ndtri(self.sf(value)), u)
        return np.reshape(u, (1,))

    def log_jacobian(self, u):
        """ln dv/du, by differentiating the interpolant."""
        import jax
        import jax.numpy as jnp

        return jnp.log(jnp.abs(jax.grad(lambda z: self.constrain(z))(u)[0]))

    def log_density(self, u):
        return -0.5 * (u[0] * u[0]) - LOG_ROOT_2PI

    def sample(self, rng, n):
        return rng.standard_normal((n, 1))

    def log_density_at(self, points: np.ndarray) -> np.ndarray:
        return -0.5 * points[:, 0] ** 2 - LOG_ROOT_2PI

    def values_at(self, points: np.ndarray) -> np.ndarray:
        return self.values(points[:, 0])


def as_prior(name: str, distribution: Any) -> Prior:
    """The prior of parameter `name` from a numpyro distribution, a scipy frozen one, or any object with `ppf`."""
    if isinstance(distribution, (Bijected, Quantile)) or hasattr(distribution, "log_density_at"):
        return distribution  # a `Prior` already
    if isinstance(distribution, type) or hasattr(distribution, "freeze"):
        family = getattr(distribution, "__name__", None) or f"scipy.stats.{distribution.name}"
        raise PriorError(
            f"the prior of {name!r} is the family {family}, not one of its members: place and width are missing, and the evidence "
            f"depends on them. Give them, e.g. {family}({'0, 1' if 'norm' in family.lower() else '...'})."
        )
    module = type(distribution).__module__
    if module.startswith("numpyro.") or _is_numpyro(distribution):
        return _from_numpyro(name, distribution)
    if hasattr(distribution, "dist") and hasattr(distribution, "kwds"):
        return _from_scipy(name, distribution)
    if hasattr(distribution, "ppf"):
        return _from_quantiles(name, distribution)
    raise PriorError(
        f"the prior of {name!r} is {distribution!r}, of type {type(distribution).__name__}. A prior must be a "
        "normalised distribution: evidences are meaningless otherwise. Give a numpyro distribution, e.g. "
        "dist.Normal(0, 1), a frozen scipy one, e.g. scipy.stats.norm(0, 1), or an object with `ppf` and `logpdf`."
    )


def _is_numpyro(distribution: Any) -> bool:
    return hasattr(distribution, "log_prob") and hasattr(distribution, "support") and hasattr(distribution, "sample")


def _from_numpyro(name: str, distribution: Any) -> Bijected:
    dist, layers = numpyro_distributions(), _layers(distribution)
    if any(isinstance(layer, (dist.ImproperUniform, dist.MaskedDistribution, dist.Unit)) for layer in layers):
        raise PriorError(
            f"the prior of {name!r}, {type(distribution).__name__}, is not a normalised density. The evidence is "
            "proportional to the prior's normalisation, so a Bayes factor with it would be arbitrary. "
            "Use a proper prior, e.g. dist.Uniform(low, high) with limits that you can defend."
        )
    if any(isinstance(layer, dist.Delta) for layer in layers):
        raise PriorError(
            f"the prior of {name!r} is a point mass. A fixed value is no parameter: "
            "write it into the log likelihood and remove it from `priors`."
        )
    if getattr(distribution.support, "is_discrete", False):
        raise PriorError(
            f"the prior of {name!r}, {type(distribution).__name__}, is discrete; parameters are sampled as continuous "
            "numbers. Sum the likelihood over its values, or make each value a model of its own."
        )
    for layer in layers:
        _check_arguments(name, layer)
    distribution = in_doubles(distribution)  # what was written, where it was rounded to single precision
    prior = Bijected(distribution, describe_numpyro(distribution))
    if not type(distribution).__module__.startswith("numpyro."):
        _check_normalised(name, prior)
    return prior


def _check_arguments(name: str, layer: Any) -> None:
    """Refuse arguments that define no density; NumPyro may have been told not to look, and does not compare low with high."""
    kind = type(layer).__name__
    given = {key: vars(layer)[key] for key in getattr(layer, "arg_constraints", {}) if vars(layer).get(key) is not None}

    def refuse(what: str, why: str) -> None:
        raise PriorError(
            f"the prior of {name!r}, {kind}, has {what}: {why}. Such arguments define no density, and an evidence needs "
            "a normalised one. Check their order and their signs."
        )

    for key, value in given.items():
        array = np.asarray(value)
        open_end = "Truncated" in kind and key in ("low", "high")  # where nothing is cut off, an end may be infinite
        if array.dtype.kind not in "fiu":
            refuse(f"{key} = {array.tolist()!r}", "numbers are needed")
        if not np.all(~np.isnan(array) if open_end else np.isfinite(array)):
            refuse(f"{key} = {array.tolist()}", "it must be finite")
        if not _holds(layer.arg_constraints[key], array):
            refuse(f"{key} = {array.tolist()}", f"it must be {layer.arg_constraints[key]}")
    if {"low", "high"} <= set(given) and not np.all(np.asarray(given["low"]) < np.asarray(given["high"])):
        low, high = (np.asarray(given[key]).tolist() for key in ("low", "high"))
        refuse(f"low = {low} and high = {high}", "low must be below high")


def _holds(constraint: Any, value: np.ndarray) -> bool:
    """Whether an argument obeys its own constraint; one that depends on another argument is not for here."""
    try:
        return bool(np.all(np.asarray(constraint(value)))) or not np.all(np.isfinite(value))
    except (NotImplementedError, ValueError):
        return True


def _layers(distribution: Any) -> list[Any]:
    """A distribution and those that it wraps (`expand`, `mask`, `to_event`)."""
    layers = [distribution]
    while getattr(layers[-1], "base_dist", None) is not None:
        layers.append(layers[-1].base_dist)
    return layers


def _check_normalised(name: str, prior: Prior) -> None:
    """Integrate a scalar density of the user's own making; what is not one within 1e-3 is refused."""
    if prior.size != 1:
        return
    import jax

    grid = np.linspace(-60.0, 60.0, 48_001)
    density = np.exp(np.asarray(jax.vmap(prior.log_density)(grid[:, None])))
    total = float(np.trapezoid(np.nan_to_num(density), grid))
    if not abs(total - 1.0) < 1e-3:
        raise PriorError(
            f"the prior of {name!r}, {prior.description}, integrates to {total:.4g}, not to 1. The evidence is "
            "proportional to it, so the Bayes factor would be off by that factor. Normalise its log_prob."
        )


def _from_scipy(name: str, frozen: Any) -> Prior:
    family = frozen.dist.name
    if not hasattr(frozen, "pdf"):
        raise PriorError(
            f"the prior of {name!r} is scipy's {family!r}, which is discrete; parameters are sampled as continuous "
            "numbers. Sum the likelihood over its values, or make each value a model of its own."
        )
    if not hasattr(frozen.dist, "_parse_args"):
        raise PriorError(
            f"the prior of {name!r} is scipy's multivariate {family or type(frozen).__name__!r}. "
            "Give vector parameters a numpyro prior, e.g. dist.MultivariateNormal or dist.Normal(0, 1).expand([n])."
        )
    shapes, loc, scale = frozen.dist._parse_args(*frozen.args, **frozen.kwds)
    arguments = (*shapes, loc, scale)
    if any(np.ndim(a) for a in arguments):
        raise PriorError(
            f"the prior of {name!r}, scipy's {family!r}, has array arguments {arguments}. "
            "Give vector parameters a numpyro prior, e.g. dist.Normal(means, sds)."
        )
    if any(np.asarray(a).dtype.kind not in "fiu" for a in arguments):
        raise PriorError(f"the prior of {name!r}, scipy's {family!r}, has arguments {arguments}: numbers are needed.")
    if not np.all(np.isfinite(frozen.ppf([0.25, 0.75]))):
        raise PriorError(f"the prior of {name!r}, scipy's {family!r}{arguments}, has arguments that define no density.")
    known = from_scipy(family, *map(float, arguments))
    if known is not None:
        return _from_numpyro(name, known)
    label = f"{family}({', '.join(f'{float(a):g}' for a in arguments)})"
    return Quantile(frozen.ppf, label, frozen.isf, frozen.cdf, frozen.sf)


def _from_quantiles(name: str, distribution: Any) -> Quantile:
    prior = Quantile(
        distribution.ppf,
        type(distribution).__name__.strip("_"),
        getattr(distribution, "isf", None),
        getattr(distribution, "cdf", None),
        getattr(distribution, "sf", None),
    )
    if hasattr(distribution, "logpdf"):
        _check_quantiles_match_density(name, prior, distribution)
    return prior


def _check_quantiles_match_density(name: str, prior: Quantile, distribution: Any) -> None:
    """The mass that `logpdf` puts between two quantiles must be the mass that `ppf` claims."""
    low, high = (float(v) for v in prior.ppf(np.array([0.01, 0.99])))
    grid = np.linspace(low, high, 20_001)
    total = float(np.trapezoid(np.exp(distribution.logpdf(grid)), grid))
    if not abs(total - 0.98) < 0.01:
        raise PriorError(
            f"the prior of {name!r}, {prior.description}: `logpdf` puts a mass of {total:.4g} between the 1% and 99% "
            "quantiles of `ppf`, where 0.98 belongs. One of the two is wrong, or the density is not normalised."
        )


def describe_numpyro(distribution: Any) -> str:
    """`Normal(1, 2)` and the like, for tables."""
    member, shape = member_of(distribution), tuple(distribution.shape())
    if member is not None and isinstance(member.family.plain, Plain):
        name, arguments, is_vector = member.name, list(member.arguments.values()), False
    else:
        layer = _layers(distribution)[-1] if not hasattr(distribution, "transforms") else distribution
        name, is_vector = type(layer).__name__, bool(layer.event_shape)
        arguments = [getattr(layer, n) for n in getattr(layer, "arg_constraints", {}) if hasattr(layer, n)]
    suffix = f" × {shape if len(shape) > 1 else shape[0]}" if shape and not is_vector else ""
    return f"{name}({', '.join(map(short, arguments))}){suffix}"


def short(value: Any) -> str:
    """A number, or the shape of an array."""
    array = np.asarray(value, float)
    return f"{float(array):g}" if array.ndim == 0 else "[" + "×".join(map(str, array.shape)) + "]"
