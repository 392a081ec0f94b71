"""The models side by side: the ranking with its checks, and ln B of every pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supermodel.estimation.estimate import Estimate
from supermodel.report.tables import Cells, ranking_cells, scalars

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison


class Matrix(NamedTuple):
    """ln B of the row's model against the column's, and its error; models best first."""

    names: tuple[str, ...]
    values: np.ndarray  # (K, K)
    errors: np.ndarray  # (K, K)
    levels: np.ndarray  # (K, K): of the verdict on each pair


def matrix_of(result: Comparison) -> Matrix:
    """See `Comparison.matrix`."""
    names = result.ranking
    pairs = [[result.log_bayes_factor(a, b) for b in names] for a in names]
    levels = [["ok" if a == b else result.verdict_between(a, b).level for b in names] for a in names]
    return Matrix(
        names, np.array([[e.value for e in row] for row in pairs]), np.array([[e.error for e in row] for row in pairs]),
        np.array(levels),
    )  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One model: its place, its numbers, and the checks of the chains that they rest on."""

    rank: int
    model: str
    log_evidence: Estimate | None  # None where only ratios are known
    log_bayes_factor: Estimate  # of this model against the reference
    probability: float
    probability_error: float
    n_parameters: int
    fit: float  # posterior mean of ln L
    occam: float  # minus the information gained, ln Z - fit; NaN where ln Z is unknown
    effective_size: float  # bulk ESS of the worst parameter
    rhat: float  # of the worst parameter
    crossings: float  # the fewest of the edges that touch the model; below, the worst of them
    disagreement: float  # of the two estimators, in errors
    level: str = "ok"  # of the verdict on ln B against the reference; of the reference itself, on its ln Z


@dataclass(frozen=True)
class Ranking:
    """The rows of `Comparison.table`, best first. Shows itself as text; `markdown()` and `latex()` for papers."""

    rows: tuple[Row, ...]
    reference: str
    prior_odds: dict[str, float]
    level: str  # of the verdict on the whole
    excluded: tuple[str, ...] = ()  # models that could not be weighed: probabilities are those among the others

    def __iter__(self):
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self) -> Cells:
        """The table as strings."""
        return ranking_cells(self)

    def __str__(self) -> str:
        return str(self.cells())

    __repr__ = __str__

    def markdown(self, columns: Sequence[str] | None = None) -> str:
        """The table in Markdown; `columns` as of `latex`."""
        return self.cells().only(columns).markdown()

    def latex(self, columns: Sequence[str] | None = None) -> str:
        """The table in LaTeX (booktabs); `columns` chooses some and their order, e.g. ("model", "ln B", "P")."""
        return self.cells().only(columns).latex()

    def _repr_html_(self) -> str:
        return self.cells()._repr_html_()

    def to_dataframe(self) -> Any:
        """The numbers as a pandas table, one row per model."""
        import pandas as pd

        records = []
        for row in self.rows:
            record = {
                key: value for key, value in vars(row).items() if not isinstance(value, Estimate) and value is not None
            }
            for key in ("log_evidence", "log_bayes_factor"):
                estimate = getattr(row, key)
                if estimate is not None:
                    record |= {key: estimate.value, f"{key}_error": estimate.error}
            records.append(record)
        return pd.DataFrame(records).set_index("model")


def rank(result: Comparison, reference: str | None, prior_odds: Mapping[str, float] | None) -> Ranking:
    """See `Comparison.table`."""
    against = result.best if reference is None else reference
    result.evidences.index(against)
    odds = dict(prior_odds or result.prior_odds)
    probabilities, errors = result.probabilities_for(odds), result.probability_errors(odds)
    rows = []
    for place, name in enumerate(result.ranking, start=1):
        posterior = result.posteriors.get(name)
        fit = float(posterior.average(posterior.log_likelihood)) if posterior is not None else math.nan
        evidence = result.log_evidence(name) if result.evidences.absolute else None
        reports = [edge.report for edge in result.edges if name in (edge.first, edge.second)]
        rows.append(
            Row(
                place, name, evidence, result.log_bayes_factor(name, against), probabilities[name], errors[name],
                len(scalars(posterior)) if posterior is not None else 0,
                fit, evidence.value - fit if evidence is not None else math.nan,
                posterior.worst_ess if posterior is not None else math.nan,
                posterior.worst_rhat if posterior is not None else math.nan,
                min((r.get("crossings", math.nan) for r in reports), default=math.nan),
                max((_disagreement(r) for r in reports), default=math.nan),
                (result.verdict_of(name) if name == against else result.verdict_between(name, against)).level,
            )
        )  # fmt: skip
    return Ranking(tuple(rows), against, odds, result.verdict.level, result.excluded)


def _disagreement(report: Mapping[str, float]) -> float:
    scale = max(report.get("error", math.nan), report.get("second_error", math.nan))
    return abs(report.get("value", math.nan) - report.get("second_value", math.nan)) / scale if scale > 0 else 0.0
