"""Counts of two categories together: from an array, a table of counts, or a table with a row for each observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from supermodel.errors import DataError
from supermodel.regressions.table import as_table, checked_columns

HOW = (
    "Give counts, contingency([[12, 5], [4, 9]]), a table of counts as pandas.crosstab makes it, or observations and the names "
    'of two columns, contingency(data, "treatment", "outcome")'
)


@dataclass(frozen=True, eq=False)
class Crosstab:
    """`counts` (R, C) with the names of both categories and of their levels."""

    counts: np.ndarray
    row_name: str
    column_name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    n_dropped: int = 0

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def expected(self) -> np.ndarray:
        r"""$n_{i \\cdot} n_{\\cdot j} / N$: what independence expects, given both margins."""
        return np.outer(self.counts.sum(axis=1), self.counts.sum(axis=0)) / self.counts.sum()


def as_crosstab(table: Any, rows: Any, columns: Any, missing: str) -> Crosstab:
    """The counts of a table."""
    if (rows is None) != (columns is None):
        raise DataError(f"observations are counted by two columns; got rows={rows!r} and columns={columns!r}. {HOW}.")
    if rows is not None:
        return _counted(table, rows, columns, missing)
    if isinstance(table, str):
        raise DataError(f"{table!r} is a file of observations: name the two columns to be counted. {HOW}.")
    names, labels = ["row", "column"], None
    if isinstance(table, pd.DataFrame):
        _check_margins(table)
        names = [
            str(axis.name) if axis.name is not None else name for axis, name in zip(table.axes, names, strict=True)
        ]
        labels = [tuple(map(str, axis)) for axis in table.axes]
    try:
        counts = np.asarray(table, float)
    except (TypeError, ValueError):
        raise DataError(f"the counts of a contingency table must be numbers; got {str(table)[:60]!r}. {HOW}.") from None
    if counts.ndim != 2 or min(counts.shape) < 2:
        raise DataError(
            f"a contingency table has at least two rows and two columns; got counts of shape {counts.shape}. {HOW}."
        )
    if (bad := np.argwhere(~((counts >= 0) & (counts == np.floor(counts))))).size:
        i, j = bad[0]
        raise DataError(
            f"the count in row {i}, column {j} (counted from 0) is {counts[i, j]:g}: counts are whole numbers from 0 up, as they "
            "were counted, neither shares nor percentages."
        )
    labels = labels or [tuple(str(i + 1) for i in range(size)) for size in counts.shape]
    return _checked(Crosstab(counts.astype(int), *names, *labels))


def _counted(table: Any, rows: Any, columns: Any, missing: str) -> Crosstab:
    if rows == columns:
        raise DataError(f"a contingency table is of two columns; both are {rows!r}.")
    data, dropped = checked_columns(as_table(table), [rows, columns], missing)
    found = [pd.Categorical(data[name]).remove_unused_categories() for name in (rows, columns)]
    shape = [len(each.categories) for each in found]
    if min(shape) < 2 or max(shape) > 50:
        name, size = next((n, s) for n, s in zip((rows, columns), shape, strict=True) if s < 2 or s > 50)
        raise DataError(
            f"the column {name!r} has {size} different values in {len(data)} rows; a contingency table is of 2 to 50 categories. "
            "Choose a column of categories, or make some of its numbers."
        )
    counts = np.zeros(shape, int)
    np.add.at(counts, tuple(each.codes for each in found), 1)
    labels = [tuple(f"{v:g}" if isinstance(v, float) else str(v) for v in each.categories) for each in found]
    return _checked(Crosstab(counts, str(rows), str(columns), *labels, dropped))


def _check_margins(table: pd.DataFrame) -> None:
    """Refuse sums among the counts: pandas.crosstab(..., margins=True) adds them as "All"."""
    for axis, what in enumerate(("row", "column")):
        if len(table.axes[axis]) > 2 and str(table.axes[axis][-1]).lower() in ("all", "total", "sum"):
            raise DataError(
                f"the last {what} is {str(table.axes[axis][-1])!r}: sums are no counts of their own, and every observation would "
                f"count twice. Leave it out, e.g. pandas.crosstab(..., margins=False)."
            )


def _checked(found: Crosstab) -> Crosstab:
    for axis, what, labels in ((1, "row", found.rows), (0, "column", found.columns)):
        if (empty := np.flatnonzero(found.counts.sum(axis=axis) == 0)).size:
            raise DataError(
                f"the {what} {labels[empty[0]]!r} has no counts at all: a category that nobody is in says nothing of a "
                "dependence, but its prior would change the answer. Leave it out."
            )
    return found
