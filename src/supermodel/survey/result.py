"""What came of a survey: a table of Bayes factors, one row for each data set and pair of models."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import escape

from supermodel.errors import StorageError, SupermodelError
from supermodel.results.storage import write_atomically
from supermodel.survey import parts, table
from supermodel.verdict.verdict import LEVELS

if TYPE_CHECKING:
    import pandas as pd

    from supermodel.models.model import Model
    from supermodel.survey.population import Population
    from supermodel.survey.ranking import Discoveries

RELIABLE = ("ok", "caution")
SHOWN = 5  # flagged data sets that are shown with their reasons


@dataclass(frozen=True, eq=False)
class ManyResult:
    """The table of `compare_many`, read from its file when it is first asked for.

    `is_complete` is false where the run was interrupted: data sets that are not done yet are not in the table.
    """

    models: tuple[str, ...]
    settings: Mapping[str, Any]
    path: Path | None = None  # the file, or the folder of parts
    frame: pd.DataFrame | None = None  # in memory
    is_complete: bool = True
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ManyResult:
        """The result in a file, or in a folder of parts, that `compare_many` wrote."""
        where = Path(path)
        try:
            told = json.loads((where / parts.RUN).read_text()) if where.is_dir() else (table.words_of(where) or {})
        except (OSError, ValueError):
            told = {}
        identity = told if where.is_dir() else told.get("identity", {})
        if "models" not in identity:
            raise StorageError(f"{str(where)!r} is no table of compare_many, or is damaged. Is the path right?")
        return cls(tuple(identity["models"]), identity, where)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row for each data set and pair: `log_bayes_factor` = ln Z_first - ln Z_second, its `error`, the verdict, …"""
        if self.frame is not None:
            return self.frame
        assert self.path is not None
        files = sorted(self.path.glob("part-*.parquet")) if self.path.is_dir() else [self.path]
        return table.read(files, self.models)

    def __len__(self) -> int:
        return len(self.table) // max(len(table.pairs_of(self.models)), 1)

    @property
    def ok(self) -> pd.DataFrame:
        """Rows whose answer can be used: verdict "ok" or "caution"; of three models one may fail and the others stand."""
        return self.table[self.table["verdict"].isin(RELIABLE)]

    @property
    def flagged(self) -> pd.DataFrame:
        """Rows without an answer that can be used, each with its codes and reason."""
        return self.table[~self.table["verdict"].isin(RELIABLE)]

    def rows(self, first: str, second: str) -> pd.DataFrame:
        """One row for each data set: ln B(first, second), in whatever order the two are asked for."""
        if first == second or not {first, second} <= set(self.models):
            raise SupermodelError(
                f"there is no pair {first!r}, {second!r}; the models are {', '.join(map(repr, self.models))}."
            )
        found = self.table
        if (first, second) in table.pairs_of(self.models):
            return found[(found["first"] == first) & (found["second"] == second)].reset_index(drop=True)
        turned = self.rows(second, first)
        ends = (("first", "second"), ("second", "first"))
        names = {f"{what}_{a}": f"{what}_{b}" for what in ("log_evidence", "error") for a, b in ends}
        turned = turned.rename(columns=names).assign(first=first, second=second)
        return turned.assign(log_bayes_factor=-turned["log_bayes_factor"])[list(table.COLUMNS)]

    def select(
        self,
        first: str | None = None,
        second: str | None = None,
        *,
        error_above: float | None = None,
        within: float | None = None,
        verdict: str | Sequence[str] | None = None,
        code: str | None = None,
    ) -> list[Any]:
        """Names of data sets to run again, e.g. with a smaller target: `compare_many(..., only=names, target_error=0.05)`.

        Those for which, in one of the pairs asked for, all of this holds that is given: the error is larger than
        `error_above` or unknown; |ln B| is at most `within`; the verdict is (one of) `verdict`; `code` is among the codes.
        """
        found = self.table if first is None or second is None else self.rows(first, second)
        chosen = found["row"] >= 0
        if error_above is not None:
            chosen &= ~(found["error"] <= error_above)
        if within is not None:
            chosen &= found["log_bayes_factor"].abs() <= within
        if verdict is not None:
            levels = [verdict] if isinstance(verdict, str) else list(verdict)
            if unknown := sorted(set(levels) - set(LEVELS)):
                raise SupermodelError(f"`verdict` has {unknown}; it is one or more of {', '.join(LEVELS)}.")
            chosen &= found["verdict"].isin(levels)
        if code is not None:
            chosen &= found["codes"].str.split(",").map(lambda codes: code in codes)
        return list(dict.fromkeys(found[chosen]["dataset"].tolist()))

    # -- what a survey asks next --------------------------------------------------------------------------------------

    def population(self, prior: float | Mapping[str, float] | None = None) -> Population:
        """What fraction of the objects are of each model, and p(model | its data, all the others) of each object.

        `prior`: alpha of the Dirichlet prior of the fractions, a number or {model: number}; without it `prior_odds` times
        the number of models, which is 1, uniform, for equal odds. Flagged objects are left out, and counted.
        """
        from supermodel.survey.population import checked_alpha, population

        alpha = checked_alpha(prior, self.models, self.settings.get("prior_odds"))
        return population(self.table, self.models, alpha, int(self.settings.get("seed", 0)))

    def ranking(
        self,
        first: str,
        second: str | None = None,
        *,
        false_discovery: float = 0.1,
        prior: float | Mapping[str, float] | None = None,
    ) -> Discoveries:
        """Objects ranked by the probability that `first` is right rather than `second`, or than all others.

        Discoveries are as many of the best as hold at most a share `false_discovery` of false ones, on average.
        """
        from supermodel.survey.ranking import ranked

        return ranked(self.population(prior), first, second, false_discovery)

    def report(
        self,
        path: str | os.PathLike[str],
        truths: Any = None,
        models: Mapping[str, Model] | None = None,
        datasets: Any = None,
        *,
        first: str | None = None,
        worst: int = 5,
        by: str | None = None,
        id: str | None = None,
    ) -> Path:
        """Write one HTML page (ln B of all, the population, discoveries of `first`, calibration, the worst rows); its path.

        `truths`: {data set: the model that made it}, or {data set: exact ln B of the first two models}, for injected objects.
        With `models` and `datasets`, given as to `compare_many`, the `worst` rows are compared again, and their full
        reports written beside the page and linked.
        """
        from supermodel.survey.page import full_reports, page

        first = self.models[0] if first is None else first
        links: dict[int, str] = {}
        notes: list[str] = []
        if models is not None and datasets is not None:
            links, notes = full_reports(self, models, datasets, by, id, Path(path), worst)
        write_atomically(path, page(self, first, truths, links, notes, worst).encode())
        return Path(path)

    # -- shown --------------------------------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, int]:
        """How many data sets have each verdict: the worst of their pairs."""
        found = self.table["verdict"].map(LEVELS.index).groupby(self.table["row"]).max().value_counts()
        return {level: int(found[i]) for i, level in enumerate(LEVELS) if i in found}

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {level}" for level, n in self.counts.items())
        lines = [f"{len(self)} data sets, {len(self.models)} models" + (f": {counts}" if counts else "")]
        for first, second in table.pairs_of(self.models):
            known = self.rows(first, second)
            known = known[known["verdict"].isin(RELIABLE)]
            if len(known):
                low, middle, high = known["log_bayes_factor"].quantile([0.05, 0.5, 0.95])
                error = known["error"].median()
                lines.append(
                    f"  ln B({first} : {second}): median {middle:.2f}, 90% between {low:.2f} and {high:.2f}; "
                    f"median error {error:.2g}"
                )
        troubled = self.flagged.drop_duplicates("row")
        for _, row in troubled.head(SHOWN).iterrows():
            lines.append(f"  {row['dataset']}: {row['verdict']} ({row['codes']}): {row['reason']}")
        if len(troubled) > SHOWN:
            lines.append(f"  … and {len(troubled) - SHOWN} more, in .flagged")
        lines += [f"  {note}" for note in self.notes]
        lines += [] if self.path is None else [f"  table: {self.path}"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ManyResult: {len(self)} data sets, {', '.join(self.models)}>"

    def _repr_html_(self) -> str:
        """The summary and the first rows: what a notebook shows."""
        return f"<pre>{escape(str(self))}</pre>{self.table.head(SHOWN).to_html(index=False)}"
