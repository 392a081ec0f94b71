"""Every parameter in one table: moments, quantiles, and what they rest on. A pandas DataFrame that shows itself well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from supermodel.report.numbers import number
from supermodel.report.tables import Cells, all_scalars, scalar_label, symmetry_lines, unusable
from supermodel.results.posterior import STANDARD, ModelPosterior

LEVELS = (0.05, 0.5, 0.95)
FORMATS = {"ess": ".0f", "rhat": ".3f"}  # the others have four digits


class Summary(pd.DataFrame):
    """Rows (model, parameter), best model first; columns mean, mean_error, sd, 5%, 50%, 95%, ess, rhat, prior."""

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame  # what is cut out of it is an ordinary table

    def cells(self) -> Cells:
        """The table as strings."""
        header = (*self.index.names, *self.columns)
        rows = [
            (
                index[0],
                self.attrs.get("names", {}).get(index[1], index[1]),
                *(v if isinstance(v, str) else number(v, FORMATS.get(c, ".4g")) for c, v in row.items()),
            )
            for index, row in self.iterrows()
        ]
        return Cells(header, tuple(rows), left=frozenset({0, 1, len(header) - 1}), note=self.attrs.get("note", ""))

    def __repr__(self) -> str:
        return self.cells().text()

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return self.cells()._repr_html_()


def summary(
    posteriors: Mapping[str, ModelPosterior],
    priors: Mapping[str, Mapping[str, Any]],
    level: str = "ok",
    named: Callable[[str, tuple[int, ...]], str] = scalar_label,
    levels: Mapping[str, str] | None = None,
) -> Summary:
    """Every number in every parameter of these posteriors, in their order; `named` is what they are shown as.

    `levels`: of the verdict on each, where that on the whole is not on all of them.
    """
    index, rows, names = [], [], {}
    for name, posterior in posteriors.items():
        for parameter in dict.fromkeys(name for name, _ in all_scalars(posterior)):
            values = posterior.draws(parameter)
            columns = {
                "mean": posterior.mean(parameter), "mean_error": posterior.mean_error(parameter),
                "sd": posterior.sd(parameter),
                **{f"{100 * level:g}%": posterior.quantile(parameter, level) for level in LEVELS},
                "ess": posterior.ess(parameter), "rhat": posterior.rhat(parameter),
            }  # fmt: skip
            prior = getattr(
                priors.get(name, {}).get(parameter),
                "description",
                "–" if parameter in posterior.parameters else "deterministic",
            )
            for at in np.ndindex(*values.shape[1:]):
                index.append((name, scalar_label(parameter, at)))
                names[index[-1][1]] = named(parameter, at)
                rows.append({column: float(found[at]) for column, found in columns.items()} | {"prior": prior})
    table = Summary(rows, index=pd.MultiIndex.from_tuples(index or [], names=["model", "parameter"]))
    table.attrs["names"] = names
    table.attrs["note"] = "\n".join(
        [
            *unusable(level, levels),
            *symmetry_lines(posteriors),
            *([STANDARD] if any(p.short for p in posteriors.values()) else []),
        ]
    )
    return table
