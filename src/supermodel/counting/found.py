r"""The components of one number of them, each draw labelled in one order: their parameters, and how probable each is.

Component i is what has its ordering parameter where that of the i-th lies, with all but a hundredth of its posterior. The
probability that there is one is $\sum_k P(k \mid D)$ times the share of draws of k components of which one lies there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.counting.component import numbered
from supermodel.errors import SupermodelError, suggestion
from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import mean_and_sd, probability
from supermodel.report.tables import Cells, weighted_quantiles

if TYPE_CHECKING:
    from supermodel.counting.result import Count
    from supermodel.results.posterior import ModelPosterior

LEVELS = (0.05, 0.5, 0.95)
WITHIN = (0.005, 0.995)  # quantiles between which a component's ordering parameter is said to lie


@dataclass(frozen=True, eq=False)
class Found:
    """One component: its draws in the order of the model's posterior, and the probability that it is there."""

    label: str  # "planet 1"
    draws: dict[str, np.ndarray]  # {parameter: (n, ...)}
    weights: np.ndarray  # (n,)
    within: tuple[float, float]  # where its ordering parameter lies
    probability: Estimate

    def mean(self, parameter: str) -> float:
        return float(self.weights @ self.draws[parameter])

    def sd(self, parameter: str) -> float:
        off = self.draws[parameter] - self.mean(parameter)
        return float(np.sqrt(self.weights @ off**2))

    def quantiles(self, parameter: str, levels: tuple[float, ...] = LEVELS) -> tuple[float, ...]:
        return tuple(map(float, weighted_quantiles(self.draws[parameter], self.weights, levels)))


@dataclass(frozen=True, eq=False)
class Components:
    """Components by increasing `by`; iterate over them, or take one by its place."""

    found: tuple[Found, ...]
    by: str | None
    number: int  # of components of the model whose posterior this is

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Found]:
        return iter(self.found)

    def __getitem__(self, i: int) -> Found:
        return self.found[i]

    def cells(self) -> Cells:
        """The table: a row for each component."""
        if not self.found:
            return Cells(("component", "P(there)"), ())
        scalars = [name for name, values in self.found[0].draws.items() if values.ndim == 1]
        rows = tuple(
            (each.label, probability(each.probability.value), *(mean_and_sd(each.mean(p), each.sd(p)) for p in scalars))
            for each in self.found
        )
        note = (
            f"P(there): that a component is there whose {self.by} lies where this one's does (99% of its posterior), "
            "whatever the number of components." + (f" Labelled by increasing {self.by}." if len(self) > 1 else "")
        )
        return Cells(("component", "P(there)", *scalars), rows, note=note)

    def __str__(self) -> str:
        return self.cells().text() if self.found else "no components"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.cells().html()

    def to_dataframe(self) -> Any:
        """A row for each component: its probability with error, and mean, sd and quantiles of each parameter; a DataFrame."""
        import pandas as pd

        rows = []
        for each in self.found:
            row: dict[str, Any] = {"component": each.label, "probability": each.probability.value, "error": each.probability.error}
            for p, values in each.draws.items():
                if values.ndim == 1:
                    row |= {f"{p} mean": each.mean(p), f"{p} sd": each.sd(p)}
                    row |= {f"{p} {100 * q:g}%": v for q, v in zip(LEVELS, each.quantiles(p), strict=True)}
            rows.append(row)
        return pd.DataFrame(rows).set_index("component") if rows else pd.DataFrame(columns=["probability", "error"])


def found_in(result: Count, k: int, by: str | None = None) -> Components:
    """See `Count.components_of`."""
    posterior = result.posterior(k)
    if k == 0:
        return Components((), None, 0)
    names, called = list(result.asked["parameters"]), result.asked["component"]
    order = ordering(result, k) if by is None else by
    if order not in names:
        raise SupermodelError(
            f"components are put in order by one of their parameters, {', '.join(names)}; got by={by!r}. "
            f"{suggestion(str(by), names)}"
        )
    draws = labelled(posterior, names, k, order)
    weights, found = posterior.weights, []
    for i in range(k):
        own = {name: straightened(posterior, numbered(name, i + 1), values[:, i]) for name, values in draws.items()}
        low, high = map(float, weighted_quantiles(own[order], weights, WITHIN))
        label = f"{called} {i + 1}" if k > 1 else called
        found.append(Found(label, own, weights, (low, high), _probability(result, k, order, (low, high))))
    return Components(tuple(found), order, k)


def ordering(result: Count, k: int) -> str:
    """The parameter by which the posterior is labelled; where none is, the one that is known best beside its prior."""
    name, names = result.names[k], list(result.asked["parameters"])
    for fold in result.comparison.settings.get("pilots", {}).get(name, {}).get("folds", ()):
        if fold["kind"] == "Exchange" and fold["by"] >= 0:
            entry = fold["blocks"][0][int(fold["by"])][0]
            return next((p for p in names if numbered(p, 1) == entry), names[0])
    posterior, rng = result.posterior(k), np.random.default_rng(0)
    narrow = {}
    for p in names:
        prior = result.comparison.priors.get(name, {}).get(numbered(p, 1))
        values = posterior.straight(numbered(p, 1))
        if values.ndim == 1 and hasattr(prior, "sample") and hasattr(prior, "values_at"):
            drawn = np.ravel(prior.values_at(prior.sample(rng, 1000)))
            low, high = weighted_quantiles(values, posterior.weights, (0.16, 0.84))
            narrow[p] = float(np.mean((drawn > low) & (drawn < high)))
    return min(narrow, key=lambda p: narrow[p]) if narrow else names[0]


def labelled(posterior: ModelPosterior, names: list[str], k: int, by: str) -> dict[str, np.ndarray]:
    """{parameter: (n, k, ...)}, the components of each draw in increasing order of `by`."""
    values = {p: np.stack([posterior.draws(numbered(p, i)) for i in range(1, k + 1)], axis=1) for p in names}
    rank = np.argsort(values[by].reshape(len(values[by]), k, -1)[..., 0], axis=1, kind="stable")
    return {p: v[np.arange(len(v))[:, None], rank] for p, v in values.items()}


def straightened(posterior: ModelPosterior, name: str, values: np.ndarray) -> np.ndarray:
    """Angles moved by whole turns to where most of them are, so that their mean is one."""
    if name not in posterior.circles:
        return values
    turn = posterior.circles[name][1]
    middle = turn * np.angle(posterior.weights @ np.exp(2j * np.pi * values / turn)) / (2 * np.pi)
    return values - turn * np.round((values - middle) / turn)


def _probability(result: Count, k: int, by: str, within: tuple[float, float]) -> Estimate:
    """That a component is there, whatever the number of them."""
    shares: Mapping[int, float] = {j: _share(result, j, by, within) for j in result.numbers}
    p = {j: e.value for j, e in result.probabilities.items()}
    used = np.array([min(shares[j] / max(shares[k], 1e-300), 1.0) for j in result.numbers])
    known = np.nan_to_num([p[j] for j in result.numbers])
    total = float(known @ used)
    slope = known * (used - total)
    variance = float(slope @ result.comparison.evidences.covariance @ slope)
    return Estimate(total, float(np.sqrt(max(variance, 0.0))))


def _share(result: Count, j: int, by: str, within: tuple[float, float]) -> float:
    """The share of draws of the model of j components of which one lies there."""
    if j == 0:
        return 0.0
    posterior = result.posterior(j)
    values = np.stack([np.reshape(posterior.draws(numbered(by, i)), (len(posterior.weights), -1))[:, 0] for i in range(1, j + 1)])
    return float(posterior.weights @ np.any((values >= within[0]) & (values <= within[1]), axis=0))
