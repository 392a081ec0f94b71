r"""An edge's report from those of its chapters, so that the memory of a run does not grow with its length.

Of a long chain only the last CHAPTER to twice CHAPTER draws are kept; what came before is a chapter that has been read.
With $n_i$ draws and the estimate $x_i \pm e_i$ of each, the whole has $x = \sum n_i x_i / n$, $e^2 = \sum n_i^2 e_i^2 / n^2$.
An estimate from so many draws is biased by about $e_i^2 / 2$, far below e for any number of chapters that can be run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from supermodel.verdict.examine import Report


def whole(chapters: Sequence[Report]) -> Report:
    """One report of all draws. Counts add up; a sign of trouble is that of the worst chapter, drift also that between them."""
    last = chapters[-1]
    if len(chapters) == 1:
        return last
    heaviest = max(chapters, key=lambda c: c.surely_heavy)
    return replace(
        last,
        value=_mean(chapters, "value"),
        error=_error(chapters, "error"),
        second_value=_mean(chapters, "second_value"),
        second_error=_error(chapters, "second_error"),
        acceptance=_mean(chapters, "acceptance"),
        n_draws=sum(c.n_draws for c in chapters),
        ess=sum(c.ess for c in chapters),
        crossings=sum(c.crossings for c in chapters),
        rhat=_worst(chapters, "rhat"),
        pareto_k=heaviest.pareto_k,
        pareto_error=heaviest.pareto_error,
        largest=heaviest.largest,
        start_z=_worst(chapters, "start_z"),
        drift_z=max(_worst(chapters, "drift_z"), _drift(chapters)),
    )


def _shares(chapters: Sequence[Report]) -> np.ndarray:
    draws = np.array([c.n_draws for c in chapters], float)
    return draws / draws.sum()


def _column(chapters: Sequence[Report], field: str) -> np.ndarray:
    return np.array([getattr(c, field) for c in chapters], float)


def _mean(chapters: Sequence[Report], field: str) -> float:
    return float(_shares(chapters) @ _column(chapters, field))


def _error(chapters: Sequence[Report], field: str) -> float:
    return float(np.linalg.norm(_shares(chapters) * _column(chapters, field)))


def _worst(chapters: Sequence[Report], field: str) -> float:
    return float(_column(chapters, field).max())  # NaN stays NaN


def _drift(chapters: Sequence[Report]) -> float:
    """The first half of the chapters against the second, in errors."""
    halves = chapters[: len(chapters) // 2], chapters[len(chapters) // 2 :]
    first, second = (_mean(half, "value") for half in halves)
    error = math.hypot(*(_error(half, "error") for half in halves))
    return abs(first - second) / error if error > 0 else 0.0
