r"""Which objects are of a model, at what rate of false discoveries.

An object is of model `first` with probability $p_i$ given all data, and $1 - p_i$ is its local rate of false discovery. Ranked
by $p_i$, the best n hold a share $\frac1n \sum_{i \le n} (1 - p_i)$ of false ones on average. The discoveries at a level are as
many of the best as keep this share at or below it (Müller, Parmigiani, Robert and Rousseau 2004). The $p_i$ are those of the
population: they know its fractions, and are averaged over the errors of ln B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.report.numbers import probability, thousands
from supermodel.report.tables import Cells, dressed

if TYPE_CHECKING:
    import pandas as pd

    from supermodel.survey.population import Population

SHOWN = 10


def false_discoveries(local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of the objects by their local rates, surest first, and the mean of these over the first 1, 2, … of them."""
    order = np.argsort(local, kind="stable")
    return order, np.cumsum(local[order]) / np.arange(1, len(local) + 1)


@dataclass(frozen=True, eq=False)
class Discoveries:
    """Objects ranked by the probability that `first` is right, and how many of them are discoveries."""

    first: str
    against: str
    false_discovery: float
    table: (
        pd.DataFrame
    )  # row, dataset, probability, local_rate = 1 - probability, false_discovery_rate (mean down to here), is_discovery
    n_left_out: int

    def __len__(self) -> int:
        return int(self.table["is_discovery"].sum())

    @property
    def names(self) -> list[object]:
        """The data sets that are discoveries, best first."""
        return self.table[self.table["is_discovery"]]["dataset"].tolist()

    def cells(self, most: int = SHOWN) -> Cells:
        """The best of them, ready to be printed."""
        rows = [
            (
                str(r.dataset),
                *map(probability, (r.probability, r.local_rate, r.false_discovery_rate)),
                "yes" if r.is_discovery else "no",
            )
            for r in self.table.head(most).itertuples()
        ]
        return Cells(("data set", f"p({self.first})", "p(other)", "false down to here", "discovery"), tuple(rows))

    def sentence(self) -> str:
        """`12 of 500 objects are "periodic" rather than another, of which 1.1 false are expected (at most 10%)`."""
        n = len(self)
        expected = float(self.table["local_rate"].to_numpy()[:n].sum())
        left = f"; {thousands(self.n_left_out)} without a usable answer not ranked" if self.n_left_out else ""
        return (
            f"{thousands(n)} of {thousands(len(self.table))} objects are {self.first!r} rather than {self.against}, with "
            f"{expected:.2g} false ones expected among them (level {self.false_discovery:g}){left}"
        )

    def __str__(self) -> str:
        return f"{self.sentence()}\n{self.cells().text()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return dressed(self.sentence(), "", self.cells().html())


def ranked(found: Population, first: str, second: str | None, false_discovery: float) -> Discoveries:
    """The ranking that follows from a population."""
    if first not in found.models or second == first or second not in (None, *found.models):
        raise SupermodelError(
            f"there is no pair {first!r}, {second!r} to rank by; the models are {', '.join(map(repr, found.models))}."
        )
    if isinstance(false_discovery, bool) or not 0.0 < float(false_discovery) < 1.0:
        raise SupermodelError(
            f"`false_discovery` is the share of false ones among the discoveries, between 0 and 1; got {false_discovery!r}."
        )
    p = found.fit.probabilities
    others = [k for k, name in enumerate(found.models) if name != first and second in (None, name)]
    right, wrong = (
        p[:, found.models.index(first)],
        p[:, others].sum(1),
    )  # not 1 - p, which rounds to 0 where ln B is large
    local = wrong / np.maximum(right + wrong, np.finfo(float).tiny)
    order, rates = false_discoveries(local)
    told = found.rows.iloc[order].reset_index(drop=True)
    told = told.assign(probability=1 - local[order], local_rate=local[order], false_discovery_rate=rates)
    told = told.assign(is_discovery=rates <= false_discovery)
    against = "another" if second is None else repr(second)
    return Discoveries(first, against, float(false_discovery), told, found.n_left_out)
