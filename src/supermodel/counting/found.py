r"""The components of one number of them, each draw labelled in one order: their parameters, and how probable each is.

Component i is what has its ordering parameter where that of the i-th lies, with all but a hundredth of its posterior. The
probability that there is one is $\sum_k P(k \mid D)$ times the share of draws of k components of which one lies there, beside
those that lie in narrower places.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    weights, each, regions = posterior.weights, [], []
    for i in range(k):
        each.append({p: straightened(posterior, numbered(p, i + 1), values[:, i]) for p, values in draws.items()})
        low, high = weighted_quantiles(each[-1][order], weights, WITHIN)
        regions.append((float(low), float(high)))
    chances = _probabilities(result, k, order, regions)
    labels = [f"{called} {i + 1}" if k > 1 else called for i in range(k)]
    made = zip(labels, each, regions, chances, strict=True)
    return Components(tuple(Found(label, own, weights, at, p) for label, own, at, p in made), order, k)


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


def _probabilities(result: Count, k: int, by: str, regions: list[tuple[float, float]]) -> list[Estimate]:
    """Of each region, that a component of its own is there, whatever the number of them."""
    known = np.nan_to_num([result.probabilities[j].value for j in result.numbers])
    shares = np.array([_shares(result, j, by, regions) for j in result.numbers])  # (numbers, k)
    own = shares[result.numbers.index(k)]
    found = []
    for used in np.minimum(shares / np.maximum(own, 1e-300), 1.0).T:
        total = float(known @ used)
        slope = known * (used - total)
        variance = float(slope @ result.comparison.evidences.covariance @ slope)
        found.append(Estimate(total, float(np.sqrt(max(variance, 0.0)))))
    return found


def _shares(result: Count, j: int, by: str, regions: list[tuple[float, float]]) -> np.ndarray:
    """The share of draws of j components of which one lies in each region; none counts for two, the narrowest comes first."""
    shares = np.zeros(len(regions))
    if j == 0:
        return shares
    posterior = result.posterior(j)
    n = len(posterior.weights)
    values = np.stack([np.reshape(posterior.draws(numbered(by, i)), (n, -1))[:, 0] for i in range(1, j + 1)], axis=1)
    free = np.ones(values.shape, bool)
    for i in np.argsort([high - low for low, high in regions], kind="stable"):
        inside = free & (values >= regions[i][0]) & (values <= regions[i][1])
        rows = np.flatnonzero(inside.any(axis=1))
        free[rows, np.argmax(inside[rows], axis=1)] = False
        shares[i] = posterior.weights[rows].sum()
    return shares
