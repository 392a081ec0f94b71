r"""Tests of one number: a t test, a correlation, a proportion. Each is one integral, or the design of a single column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaln, expit, hyp2f1, log_expit, logit, xlog1py, xlogy

from supermodel.errors import DataError, SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.regressions.blocks import Block, as_rscale
from supermodel.regressions.contrasts import Columns
from supermodel.regressions.formula import Term, parse
from supermodel.regressions.gaussian import GaussianFit
from supermodel.regressions.integral import Integral, integrate
from supermodel.regressions.result import Fit, Regression, judged
from supermodel.regressions.table import as_table, checked_columns

SIDES = {"two-sided": 0, "greater": 1, "less": -1}
METHOD = "One-dimensional quadrature with the error that it finds in itself"


def ttest(
    x: Any = None,
    y: Any = None,
    *,
    t: float | None = None,
    n: Any = None,
    group: Any = None,
    data: Any = None,
    paired: bool = False,
    mu: float = 0.0,
    alternative: str = "two-sided",
    rscale: float | str = "medium",
    missing: str = "raise",
) -> Regression:
    r"""The JZS t test (Rouder et al. 2009): $\delta = (\mu_1 - \mu_2)/\sigma$ is 0, or Cauchy of scale `rscale`.

    `ttest(x)` asks whether the mean is `mu`, `ttest(x, y)` whether two samples have one mean, and `paired=True` takes
    x - y. `ttest(values, group)` splits one column by another with two values (by `group=` where it could be a sample), the
    first of them minus the second; pairs stand in the same order in both. `ttest("extra ~ group", data=...)` names columns.
    `alternative`: "two-sided", "greater" (x above y) or "less". `rscale`: "medium" (0.707), "wide" (1), "ultrawide", a number.

    From a paper that gives no data: `ttest(t=2.3, n=20)` of one sample or of pairs, `ttest(t=2.3, n=(20, 22))` of two samples.
    """
    side, scale = _side(alternative), as_rscale(rscale, "ttest")
    is_told = t is not None or n is not None
    if is_told:
        if x is not None or y is not None or t is None or n is None:
            raise DataError(
                "ttest(t=..., n=...) takes the t statistic and the size of the sample (or both sizes), and no data."
            )
        x, y = _samples_of(t, n)
    elif x is None:
        raise DataError("a t test is of data, ttest(x, ...), or of a t statistic, ttest(t=2.3, n=20).")
    if isinstance(x, str):
        formula = parse(x)
        table, _ = checked_columns(as_table(data), formula.columns, missing)
        (term,) = formula.terms if len(formula.terms) == 1 else (None,)
        if term is None or len(term.components) != 1:
            raise DataError(f"a t test is of the form 'value ~ group'; got {x!r}.")
        x, group = table[formula.response_name], table[term.name]
    first, second, names, dropped = _samples(x, y, group, paired, missing)
    if second is None or paired:
        values = first - (mu if second is None else second + mu)
        columns, label = Columns(np.ones((len(values), 1)), ("difference" if paired else "mean",), np.eye(1)), names
    else:
        values = np.concatenate([first, second])
        signs = np.repeat([0.5, -0.5], [len(first), len(second)])[:, None]
        columns, label = Columns(signs, ("difference",), np.eye(1)), names
    if len(values) < 2 or np.ptp(values) == 0:
        raise DataError(f"a t test needs at least two values that differ; got {len(values)}, all {values[:1]}.")

    def fitted(factor: float) -> dict[str, Fit]:
        block = Block("effect", "fixed", columns, factor * scale)
        intercept = second is not None and not paired
        fit = _TTest(GaussianFit(values, [block], intercept), columns.labels[0], is_told)
        return {"null": _Point(), "alternative": _sided(fit, side)}

    kind = f"{'paired ' if paired else ''}t test"
    label = f"t = {t:g}, n = {n}" if is_told else label
    return _result(kind, label, "gaussian", len(values), dropped, fitted, f"JZS, r = {scale:.3g}", "delta", alternative)


def _samples_of(t: Any, n: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Samples of a unit spread that have this t: of all data that have it, ln B and delta are the same."""
    sizes = [int(size) for size in np.atleast_1d(np.asarray(n)) if size == int(size) and size >= 1]
    if not np.isfinite(t) or len(sizes) != np.size(n) or len(sizes) not in (1, 2) or sum(sizes) <= len(sizes):
        raise DataError(
            f"ttest(t=..., n=...) needs a finite t and the size of one sample, from 2 up, or of two; got t={t!r}, n={n!r}."
        )
    spread = [np.linspace(-1.0, 1.0, size) if size > 1 else np.zeros(1) for size in sizes]
    unit = np.sqrt(sum(np.sum(each**2) for each in spread) / (sum(sizes) - len(sizes)))
    first = spread[0] / unit + float(t) * np.sqrt(sum(1.0 / size for size in sizes))
    return first, spread[1] / unit if len(sizes) == 2 else None


def correlation(
    x: Any,
    y: Any,
    *,
    data: Any = None,
    alternative: str = "two-sided",
    rscale: float | str = "medium",
    missing: str = "raise",
) -> Regression:
    r"""Pearson's correlation (Ly, Verhagen & Wagenmakers 2016): $\rho$ is 0, or $(\rho + 1)/2 \sim$ Beta(1/r, 1/r).

    `x` and `y` are samples, or names of columns of `data`. `rscale`: "medium" (1/3), "wide" (0.577), "ultrawide" (1, uniform).
    """
    side, scale = _side(alternative), as_rscale(rscale, "correlation")
    table = pd.DataFrame({"x": _numbers("x", x), "y": _numbers("y", y)}) if data is None else as_table(data)
    names = ["x", "y"] if data is None else [x, y]
    table, dropped = checked_columns(table, names, missing)
    first, second = (_numbers(name, table[name]) for name in names)
    n = len(first)
    if n < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        raise DataError(
            f"a correlation needs at least three pairs, and values that differ in both columns; there are {n}."
        )
    r = float(np.corrcoef(first, second)[0, 1])
    if abs(r) > 1 - 1e-12:
        raise DataError(
            f"{names[0]} and {names[1]} are perfectly correlated (r = {r:+.0f}): there is no noise to weigh."
        )

    def log_likelihood(rho: np.ndarray) -> np.ndarray:
        """Of r given rho (Fisher 1915), over that at rho = 0."""
        inner = [hyp2f1(0.5, 0.5, n - 0.5, 0.5 * (1 + r * v)) for v in (rho, 0.0)]
        return 0.5 * (n - 1) * np.log1p(-(rho**2)) - (n - 1.5) * np.log1p(-r * rho) + np.log(inner[0] / inner[1])

    def fitted(factor: float) -> dict[str, Fit]:
        a = 1 / (factor * scale)

        def log_joint(z: np.ndarray) -> np.ndarray:
            """With rho = tanh z."""
            rho = np.tanh(z)
            log_width = 2 * (np.log(2) - np.logaddexp(z, -z))  # 1 - rho^2
            inside = np.abs(rho) < 1
            value = log_likelihood(np.where(inside, rho, 0.0)) - (2 * a - 1) * np.log(2) - betaln(a, a) + a * log_width
            return np.where(inside, value, -np.inf)

        return {
            "null": _Point(),
            "alternative": _sided(_OneNumber("rho", log_joint, np.tanh, float(np.arctanh(r)), 0.0), side),
        }

    prior = f"stretched beta, r = {scale:.3g}"
    return _result(
        "correlation",
        f"{names[0]} and {names[1]}, r = {r:.3f}",
        "gaussian",
        n,
        dropped,
        fitted,
        prior,
        "rho",
        alternative,
    )


def proportion(
    k: Any, n: Any, *, p: float = 0.5, alternative: str = "two-sided", rscale: float | str = "medium"
) -> Regression:
    r"""Is a probability `p`? k successes in n trials: the log odds are those of p, or logistic about them with scale `rscale`.

    `k` and `n` may be arrays: all are of one probability. `rscale`: "medium" (1/2), "wide" (0.707), "ultrawide" (1).
    """
    side, scale = _side(alternative), as_rscale(rscale, "proportion")
    successes, trials = np.atleast_1d(_numbers("k", k)), np.atleast_1d(_numbers("n", n))
    if not 0 < p < 1:
        raise DataError(f"`p`, the probability under the null, lies between 0 and 1; got {p!r}.")
    whole = np.all(successes == np.floor(successes)) and np.all(trials == np.floor(trials))
    if (
        successes.shape != trials.shape
        or not whole
        or np.any(successes < 0)
        or np.any(successes > trials)
        or not trials.sum()
    ):
        raise DataError(f"k successes in n trials are whole numbers with 0 <= k <= n and n > 0; got k = {k}, n = {n}.")
    hits, misses, middle = float(successes.sum()), float((trials - successes).sum()), float(logit(p))

    def fitted(factor: float) -> dict[str, Fit]:
        r = factor * scale

        def log_joint(z: np.ndarray) -> np.ndarray:
            likelihood = hits * log_expit(z) + misses * log_expit(-z) - xlogy(hits, p) - xlog1py(misses, -p)
            return likelihood + log_expit((z - middle) / r) + log_expit(-(z - middle) / r) - np.log(r)

        start = float(logit((hits + 0.5) / (hits + misses + 1)))
        return {"null": _Point(), "alternative": _sided(_OneNumber("p", log_joint, expit, start, middle), side)}

    said = f"{hits:g} of {hits + misses:g}, p = {p:g}"
    return _result(
        "proportion", said, "binomial", int(trials.sum()), 0, fitted, f"logistic, r = {scale:.3g}", "p", alternative
    )


# -- fits -----------------------------------------------------------------------------------------------------------


class _Point:
    """The null: nothing is free."""

    log_bayes_factor = Estimate(0.0, 0.0)
    labels: tuple[str, ...] = ()

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {}

    prior_draws = draws


@dataclass(frozen=True, eq=False)
class _TTest:
    """The one column of a t test, with the effect size beside the difference."""

    inner: GaussianFit
    label: str
    is_told: bool = False  # from t and n: differences and their spread are known in units of each other only

    labels = ("delta",)

    @property
    def log_bayes_factor(self) -> Estimate:
        return self.inner.log_bayes_factor

    def share(self, side: int) -> float:
        return self.inner.probability_positive({self.label: float(side)})

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        found = self.inner.draws(n, rng)
        return {"delta": found[self.label] / found["sigma"]} | ({} if self.is_told else found)

    def prior_draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"delta": self.inner.prior_draws(n, rng)[self.label]}


@dataclass(frozen=True, eq=False)
class _OneNumber:
    """A single number v = to_value(z): ln of likelihood ratio times prior is `log_joint(z)`; the null is at z = `null`."""

    label: str
    log_joint: Callable[[np.ndarray], np.ndarray]
    to_value: Callable[[np.ndarray], np.ndarray]
    start: float
    null: float

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,)

    @cached_property
    def integral(self) -> Integral:
        return integrate(lambda z: self.log_joint(z[:, 0]), np.array([self.start]))

    @property
    def log_bayes_factor(self) -> Estimate:
        return Estimate(self.integral.log_value, self.integral.error)

    def share(self, side: int) -> float:
        """P(z on this side of the null | data): the integral over z = null ± e^v."""
        half = integrate(lambda v: self.log_joint(self.null + side * np.exp(v[:, 0])) + v[:, 0],
                         np.array([np.log(max(abs(self.start - self.null), 0.01))]))  # fmt: skip
        return float(np.exp(half.log_value - self.integral.log_value))

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """By the inverse of the distribution function between nodes."""
        order = np.argsort(self.integral.points[:, 0])
        z, w = self.integral.points[order, 0], self.integral.weights[order]
        return {self.label: self.to_value(np.interp(rng.random(n), np.cumsum(w) - 0.5 * w, z))}

    def prior_draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        raise SupermodelError('for one side of a single number use alternative="greater" or "less".')


@dataclass(frozen=True, eq=False)
class _OneSided:
    """Half of a symmetric prior: B = B_two-sided P(side | data) / (1/2)."""

    inner: Any
    side: int

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def log_bayes_factor(self) -> Estimate:
        two_sided, share = self.inner.log_bayes_factor, min(max(self.inner.share(self.side), 1e-300), 1.0)
        # Nodes without weight are left out of integrals: a share below 1e-12 is no more than that.
        return Estimate(two_sided.value + float(np.log(2 * share)), float(np.hypot(two_sided.error, 1e-13 / share)))

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draws of the two-sided model on this side, with repetitions where they are few."""
        found = self.inner.draws(20 * n, rng)
        middle = self.inner.to_value(self.inner.null) if hasattr(self.inner, "null") else 0.0
        rows = np.flatnonzero(self.side * (found[self.labels[0]] - middle) > 0)
        if not len(rows):
            return {name: np.full(n, np.nan) for name in found}
        rows = np.resize(rows, n)
        return {name: values[rows] for name, values in found.items()}

    def prior_draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {name: self.side * np.abs(v) for name, v in self.inner.prior_draws(n, rng).items()}


def _sided(fit: Any, side: int) -> Any:
    return _OneSided(fit, side) if side else fit


# -- input and output -----------------------------------------------------------------------------------------------


def _side(alternative: str) -> int:
    if alternative not in SIDES:
        raise SupermodelError(f"`alternative` is one of {', '.join(SIDES)}; got {alternative!r}.")
    return SIDES[alternative]


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be numbers; got {np.asarray(values).ravel()[:3]}.") from None


def _samples(x: Any, y: Any, group: Any, paired: bool, missing: str) -> tuple[np.ndarray, np.ndarray | None, str, int]:
    """The sample or the two, what they are called, and the number of values left out."""
    if group is None and y is not None and _is_grouping(x, y):
        y, group = None, y
    if group is not None:
        if len(np.ravel(x)) != len(np.ravel(group)):
            raise DataError(
                f"values and groups must be equally many; there are {len(np.ravel(x))} and {len(np.ravel(group))}."
            )
        table = pd.DataFrame({"value": np.ravel(_numbers("x", x)), "group": np.ravel(group)})
        table, dropped = checked_columns(table, ["value", "group"], "raise" if paired else missing)
        levels = list(pd.Categorical(table["group"]).remove_unused_categories().categories)
        if len(levels) != 2:
            raise DataError(
                f"a t test compares two groups; there are {len(levels)}: {', '.join(map(str, levels[:6]))}."
            )
        first, second = (table["value"][table["group"] == level].to_numpy() for level in levels)
        names = f"{levels[0]} - {levels[1]}"
    else:
        parts = [np.ravel(_numbers(name, v)) for name, v in (("x", x), ("y", y)) if v is not None]
        if paired and len(parts) == 2 and len(parts[0]) == len(parts[1]):
            table, dropped = checked_columns(pd.DataFrame({"x": parts[0], "y": parts[1]}), ["x", "y"], missing)
            first, second = table["x"].to_numpy(), table["y"].to_numpy()
        else:
            kept = [
                checked_columns(pd.DataFrame({name: v}), [name], missing) for name, v in zip("xy", parts, strict=False)
            ]
            first, second = kept[0][0]["x"].to_numpy(), kept[1][0]["y"].to_numpy() if len(kept) == 2 else None
            dropped = sum(k[1] for k in kept)
        names = "x - y" if len(parts) == 2 else "x"
    if paired and (second is None or len(first) != len(second)):
        sizes = len(first), 0 if second is None else len(second)
        raise DataError(f"pairs need two samples of one size; there are {sizes[0]} and {sizes[1]} values.")
    return first, second, names, dropped


def _is_grouping(x: Any, y: Any) -> bool:
    """Labels, or as many values as x of which only two are different."""
    if not pd.api.types.is_numeric_dtype(pd.Series(np.ravel(y))) or pd.api.types.is_bool_dtype(pd.Series(np.ravel(y))):
        return True
    return len(np.ravel(x)) == len(np.ravel(y)) > 2 and len(np.unique(y)) == 2 < len(np.unique(x))


def _result(kind, said, family, n, dropped, fitted, priors, effect, alternative) -> Regression:
    def made(factor: float) -> Regression:
        fits = fitted(factor)
        words = priors if alternative == "two-sided" else f"{priors}, {alternative}"
        return Regression(
            formula=said, kind=kind, family=family, n_rows=n, n_dropped=dropped, fits=fits, verdict=judged(fits),
            models={"null": (), "alternative": (Term((effect,)),)}, prior_odds={"null": 0.5, "alternative": 0.5},
            method=METHOD, priors=words if factor == 1 else f"{words} × {factor:g}", refit=made, tested=effect,
        )  # fmt: skip

    return made(1.0)
