r"""How data scatter about a prediction: $\ln L = \sum_i \ln p(y_i \mid \mu_i)$."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from supermodel.errors import DataError, ModelError
from supermodel.models.covariance import WIDTH, chain_rule, cholesky, factor, left_out


def total(log_densities: Any) -> Any:
    """The sum, written as a product with ones: compiled for many points at once this runs three times as fast."""
    import jax.numpy as jnp

    flat = jnp.ravel(jnp.asarray(log_densities))
    return jnp.dot(flat, np.ones(flat.shape))


class Noise(Protocol):
    """Anything with a log density per datum."""

    def pointwise(self, prediction: Any, data: Mapping[str, Any]) -> Any: ...


def quantity(value: Any, label: str, known: Mapping[str, Any]) -> Any:
    """A number or an array as it is; a name looked up among columns and parameters; a function called with both."""
    if callable(value):
        return value(known)
    if not isinstance(value, str):
        return value
    if value not in known:
        raise DataError(
            f"the noise takes its {label} from {value!r}, but there are only {sorted(known)}. "
            f"Give the data such a column, the model such a parameter, or {label} as a number or an array."
        )
    return known[value]


def columns_of(noise: Noise) -> list[Any]:
    """What a noise looks up: names and functions; of a noise that is not ours one function, which may read all."""
    ours = isinstance(noise, Gaussian | StudentT | Poisson | Binomial)
    parts = [v for name, v in vars(noise).items() if name != "link"] if ours else [noise.pointwise]
    return [part for part in parts if isinstance(part, str) or callable(part)]


def same(first: Any, second: Any) -> bool:
    """Whether two such values are one."""
    if any(part is None or isinstance(part, str) or callable(part) for part in (first, second)):
        return first is second or (type(first) is type(second) is str and first == second)
    return bool(np.array_equal(first, second))


@dataclass(frozen=True, eq=False)
class Gaussian:
    r"""$y_i \sim N(\mu_i, \sigma_i^2)$, or $y \sim N(\mu, C)$ with a covariance.

    `sigma` is a number, an array, the name of a column of the data or of a fitted parameter (by default "sigma"; a
    column goes first), or a function of all of them: `lambda k: jnp.hypot(k["sigma"], k["jitter"])`.

    `covariance` is an n × n array, the name of such a column, or a function of columns and parameters that returns one (a
    kernel); `cholesky` is its lower factor in its place. With a covariance `sigma` is added to it where it is given:
    $C + \mathrm{diag}(\sigma^2)$, e.g. `Gaussian("scatter", covariance=C)`. A second name that is no matrix is a second error
    of each datum, as in `Gaussian("jitter", "error")`: $\sigma_i^2 = j^2 + e_i^2$.
    """

    sigma: Any = None
    covariance: Any = None
    cholesky: Any = None

    def __post_init__(self):
        if self.covariance is not None and self.cholesky is not None:
            raise ModelError("a Gaussian noise takes `covariance` or its factor `cholesky`, and not both.")
        if self.sigma is None and not self.is_correlated:
            object.__setattr__(self, "sigma", "sigma")
        for name, factor_of in (("covariance", cholesky), ("cholesky", factor)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str) and not callable(value):
                object.__setattr__(self, "_lower", factor_of(value))  # here, so that a wrong one is told at once
        check_scales(self)

    @property
    def is_correlated(self) -> bool:
        """Whether the data hang together, so that none can be looked at without the others."""
        return self.covariance is not None or self.cholesky is not None

    def _independent(self, known: Mapping[str, Any]) -> Any:
        """The error of each datum where they do not hang together; else None."""
        if not self.is_correlated:
            return quantity(self.sigma, "sigma", known)
        if not isinstance(self.covariance, str) or self.sigma is None:
            return None
        second = quantity(self.covariance, "covariance", known)
        if np.ndim(second) > 1:
            return None
        import jax.numpy as jnp

        return jnp.hypot(jnp.asarray(quantity(self.sigma, "sigma", known)), jnp.asarray(second))

    def scale(self, data: Mapping[str, Any]) -> Any:
        """The error of each datum by itself."""
        alone = self._independent(data)
        if alone is not None:
            return alone
        lower = np.asarray(self.lower(data))
        return np.sqrt((lower**2).sum(axis=1))

    def lower(self, known: Mapping[str, Any]) -> Any:
        """L of C = L L^T: an array of numbers where it is known once for all."""
        import jax.numpy as jnp

        if (alone := self._independent(known)) is not None:
            return jnp.diag(jnp.broadcast_to(jnp.asarray(alone), np.shape(known["y"])))
        lower = vars(self).get("_lower")
        if lower is None and self.cholesky is not None:
            lower = quantity(self.cholesky, "cholesky", known)
            lower = jnp.asarray(lower) if callable(self.cholesky) else factor(lower)
        if lower is None:
            found = quantity(self.covariance, "covariance", known)
            # Where a kernel gives no covariance, ln L is NaN, which is told with the point.
            lower = jnp.linalg.cholesky(jnp.asarray(found)) if callable(self.covariance) else cholesky(found)
        n = np.shape(known["y"])
        if n != np.shape(lower)[:1] or np.shape(lower) != 2 * n:
            raise DataError(
                f'the covariance is {" × ".join(map(str, np.shape(lower)))}, but data["y"] has the shape {n}: '
                f"{WIDTH}. Were rows of the data dropped, or sorted, without those of the covariance?"
            )
        if self.sigma is None:
            return lower
        sigma = jnp.broadcast_to(jnp.asarray(quantity(self.sigma, "sigma", known)), n)
        return jnp.linalg.cholesky(jnp.asarray(lower) @ jnp.asarray(lower).T + jnp.diag(sigma**2))

    def pointwise(self, prediction: Any, data: Mapping[str, Any]) -> Any:
        """ln p of each datum; with a covariance given those before it."""
        import jax.numpy as jnp

        alone = self._independent(data)
        if alone is None:
            return chain_rule(self.lower(data), data["y"] - prediction)
        sigma = jnp.asarray(alone)
        return -0.5 * ((data["y"] - prediction) / sigma) ** 2 - jnp.log(sigma) - 0.5 * math.log(2 * math.pi)

    def left_out(self, prediction: Any, data: Mapping[str, Any], blocks: Sequence[np.ndarray] | None) -> Any:
        """ln p of each datum, or block of rows, given all the others."""
        return left_out(self.lower(data), data["y"] - prediction, blocks)

    def draw(self, rng: np.random.Generator, known: Mapping[str, Any]) -> np.ndarray:
        """Noise, as new data would have it."""
        z = rng.standard_normal(np.shape(known["y"]))
        return np.asarray(self.lower(known)) @ z if self.is_correlated else np.asarray(self.scale(known)) * z

    def same_as(self, other: Any) -> bool:
        names = ("sigma", "covariance", "cholesky")
        return isinstance(other, Gaussian) and all(same(getattr(self, n), getattr(other, n)) for n in names)


@dataclass(frozen=True, eq=False)
class StudentT:
    r"""$(y_i - \mu_i) / \sigma_i \sim t_\nu$: outliers are expected. `df` and `sigma` as `Gaussian`'s sigma."""

    df: Any
    sigma: Any = "sigma"

    def __post_init__(self):
        check_scales(self)

    def pointwise(self, prediction: Any, data: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import gammaln

        sigma = jnp.asarray(quantity(self.sigma, "sigma", data))
        df = jnp.asarray(quantity(self.df, "df", data))
        constant = gammaln(0.5 * (df + 1)) - gammaln(0.5 * df) - 0.5 * jnp.log(math.pi * df) - jnp.log(sigma)
        return constant - 0.5 * (df + 1) * jnp.log1p(((data["y"] - prediction) / sigma) ** 2 / df)

    def same_as(self, other: Any) -> bool:
        return isinstance(other, StudentT) and same(self.df, other.df) and same(self.sigma, other.sigma)


@dataclass(frozen=True, eq=False)
class Poisson:
    r"""Counts $y_i$ of mean $\mu_i$; with `link="log"` the prediction is $\ln \mu_i$. A mean below 0 is impossible."""

    link: str = "identity"

    def __post_init__(self):
        _check_link(self.link, ("identity", "log"))

    def check(self, data: Mapping[str, Any]) -> None:
        """Refuse what are no counts; of traced data nothing is known."""
        _counts(data["y"], "Poisson")

    def pointwise(self, prediction: Any, data: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import gammaln

        y = _counts(data["y"], "Poisson")
        if self.link == "log":
            return y * prediction - jnp.exp(prediction) - gammaln(y + 1.0)
        possible = (prediction > 0) | ((prediction == 0) & (y == 0))
        mean = jnp.where(prediction > 0, prediction, 1.0)  # a mean that is safe to take the log of
        value = y * jnp.log(mean) - jnp.where(prediction > 0, mean, 0.0) - gammaln(y + 1.0)
        return jnp.where(possible, value, -jnp.inf)

    def same_as(self, other: Any) -> bool:
        return isinstance(other, Poisson) and self.link == other.link


@dataclass(frozen=True, eq=False)
class Binomial:
    r"""$y_i$ successes in `trials`; the prediction is $\ln[p_i / (1 - p_i)]$, or $p_i$ with `link="identity"`.

    `trials` is a number, an array or the name of a column; 1 is the logistic regression of zeros and ones.
    """

    trials: Any = 1
    link: str = "logit"

    def __post_init__(self):
        _check_link(self.link, ("logit", "identity"))

    def check(self, data: Mapping[str, Any]) -> None:
        """Refuse what are no counts, or more than there were trials; of traced data nothing is known."""
        y = _counts(data["y"], "Binomial")
        n = _counts(quantity(self.trials, "trials", data), "Binomial (trials)")
        if not _is_traced(y) and not _is_traced(n) and np.any(y > n):
            worst = np.ravel(y - n).argmax()
            raise DataError(
                f"the noise is Binomial, but datum {worst} has {np.ravel(y)[worst]:g} successes in "
                f"{np.ravel(np.broadcast_to(n, np.shape(y)))[worst]:g} trials. Check `trials` (default 1) and "
                'data["y"].'
            )

    def pointwise(self, prediction: Any, data: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import gammaln, xlog1py, xlogy

        self.check(data)
        y = _counts(data["y"], "Binomial")
        n = _counts(quantity(self.trials, "trials", data), "Binomial (trials)")
        ways = gammaln(n + 1.0) - gammaln(y + 1.0) - gammaln(n - y + 1.0)
        if self.link == "logit":
            return ways + y * prediction - n * jnp.logaddexp(0.0, prediction)
        possible = (prediction >= 0) & (prediction <= 1)
        p = jnp.where(possible, prediction, 0.5)
        return jnp.where(possible, ways + xlogy(y, p) + xlog1py(n - y, -p), -jnp.inf)

    def same_as(self, other: Any) -> bool:
        return isinstance(other, Binomial) and self.link == other.link and same(self.trials, other.trials)


def _check_link(link: str, known: tuple[str, ...]) -> None:
    if link not in known:
        raise ModelError(f"`link` must be one of {', '.join(known)}; got {link!r}.")


def _is_traced(values: Any) -> bool:
    import jax

    return isinstance(values, jax.core.Tracer)


def check_scales(noise: Any, columns: Mapping[str, Any] | None = None) -> None:
    """Refuse numbers that can be no scale, where column and row are still known: of the noise itself, or of `columns`.

    What parameters and functions give is not judged: there ln L tells.
    """
    for label in ("sigma", "df"):
        value = getattr(noise, label, None)
        if value is None or callable(value) or isinstance(value, str) != (columns is not None):
            continue
        if isinstance(value, str) and value not in (columns or {}):
            continue
        found = columns[value] if columns is not None else value
        if not _is_traced(found):  # whoever traces data checks them before
            name = f"column {value!r}" if isinstance(value, str) else f"`{label}` of the noise"
            _refuse_scale(np.asarray(found, float), name, getattr(noise, "is_correlated", False))


def _refuse_scale(array: np.ndarray, name: str, allows_zero: bool) -> None:
    wrong = np.flatnonzero(~(np.isfinite(array) & ((array >= 0) if allows_zero else (array > 0))))
    if len(wrong):
        where = f", row {wrong[0]} (counted from 0)," if array.ndim else ""
        raise DataError(
            f"{name}{where} is {np.ravel(array)[wrong[0]]:g}: it must be a number {'from 0 up' if allows_zero else 'above 0'}, "
            "or the datum has no density. Write a standard deviation (not its negative or a flag such as 0 or -99), and "
            "leave out what has none."
        )


def _counts(values: Any, noise: str) -> Any:
    if _is_traced(values):  # whoever traces data checks them before
        return values
    array = np.asarray(values, float)
    wrong = ~((array >= 0) & (array == np.floor(array)) & np.isfinite(array))
    if np.any(wrong):
        where = int(np.flatnonzero(np.ravel(wrong))[0])
        raise DataError(
            f"the noise is {noise}, which is for whole numbers from 0 up, but datum {where} is "
            f"{np.ravel(array)[where]:g}. Give counts as they were counted, neither scaled nor subtracted from."
        )
    return array
