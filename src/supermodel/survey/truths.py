"""A survey against what is known of its objects: which model made them, or their exact ln B."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.report.tables import Cells
from supermodel.survey.population import Known, Population, blocks, known_of, shares
from supermodel.trust.calibrate import Calibration

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Truths:
    """What is known of some of the objects that have a usable answer, in the order of the population's."""

    population: Population
    found: pd.DataFrame  # the table
    values: list[Any]  # one for each object of the population; None where nothing is known

    @property
    def at(self) -> np.ndarray:
        """Places in the population of the objects of which something is known."""
        return np.flatnonzero([value is not None for value in self.values])

    @property
    def are_models(self) -> bool:
        """Whether the truths are names of models; otherwise they are exact ln B of the first two."""
        return isinstance(self.values[self.at[0]], str)

    def calibration(self) -> Calibration:
        """Stated probabilities against the models that made the data."""
        known = known_of(self.found, self.population.models)[0]
        at = self.at
        return Calibration(
            self.population.models, np.array([self.values[i] for i in at], dtype=str), known.log_z[at],
            np.sqrt(known.squares[at, 0, 1]), self.population.fit.probabilities[at], ("ok",) * len(at), 0.0, (),
        )  # fmt: skip

    def off(self) -> dict[str, float]:
        r"""{model: objects that it made minus what its probabilities add up to, in errors}.

        The number varies with the labels, $\sum_i p_i (1 - p_i)$, and with the fractions that all probabilities share.
        """
        known, fit, at = known_of(self.found, self.population.models)[0], self.population.fit, self.at
        totals = sum(
            np.stack([share.sum(0) for share in shares(z, fit.points)[1]], axis=1)
            for z, _ in blocks(Known(known.log_z[at], known.squares[at]), len(fit.points))
        )
        expected = fit.weights @ totals
        p = fit.probabilities[at]
        sd = np.sqrt(np.sum(p * (1 - p), axis=0) + fit.weights @ (totals - expected) ** 2)
        made = [sum(self.values[i] == name for i in at) for name in self.population.models]
        with np.errstate(invalid="ignore"):
            return dict(zip(self.population.models, np.nan_to_num((made - p.sum(0)) / sd), strict=True))

    def confusion(self) -> Cells:
        """How many objects that a model made are most probably of which model."""
        names, at = self.population.models, self.at
        best = self.population.fit.probabilities[at].argmax(1)
        rows = []
        for name in names:
            made = [best[i] for i, place in enumerate(at) if self.values[place] == name]
            counts = [made.count(k) for k in range(len(names))]
            right = f"{100 * counts[names.index(name)] / len(made):.3g}%" if made else "–"
            rows.append((name, *map(str, counts), right))
        return Cells(("made by", *(f"taken for {name}" for name in names), "right"), tuple(rows))

    def deviations(self) -> np.ndarray:
        """(ln B - exact) / error, where there is an error."""
        known, at = known_of(self.found, self.population.models)[0], self.at
        exact = np.array([self.values[i] for i in at], dtype=float)
        error = np.sqrt(known.squares[at, 0, 1])
        return ((known.log_z[at, 0] - known.log_z[at, 1] - exact)[error > 0]) / error[error > 0]


def checked_truths(truths: Any, found: pd.DataFrame, population: Population) -> Truths:
    """Truths by name of data set, from {data set: truth}, a pandas Series of the same, or one for each data set in order."""
    if not isinstance(truths, Mapping) and not hasattr(truths, "items"):
        names, given = found.drop_duplicates("row")["dataset"].tolist(), list(truths)
        if len(names) != len(given):
            raise SupermodelError(
                f"`truths` has {len(given)} values for {len(names)} data sets. Give one for each, or {{data set: truth}}."
            )
        truths = dict(zip(names, given, strict=True))
    known = {str(name): _plain(value) for name, value in truths.items() if value is not None}
    strange = {v for v in known.values() if isinstance(v, str)} - set(population.models)
    kinds = {isinstance(value, str) for value in known.values()}
    if strange or len(kinds) > 1:
        raise SupermodelError(
            f"`truths` are the names of models ({', '.join(map(repr, population.models))}) that made the data sets, or exact "
            f"ln B({population.models[0]} : {population.models[1]}), all of one kind; got {sorted(strange)[:5] or 'both kinds'}."
        )
    values = [known.get(str(name)) for name in population.rows["dataset"]]
    if all(value is None for value in values):
        raise SupermodelError(
            f"`truths` names no data set that has a usable answer: it has {list(known)[:3]}…, the table "
            f"{population.rows['dataset'].tolist()[:3]}…. Give truths by the names in the column `dataset`."
        )
    return Truths(population, found, values)


def _plain(value: Any) -> str | float:
    return str(value) if isinstance(value, str) else float(value)
