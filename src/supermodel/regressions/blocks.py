r"""A design in blocks, each with its own g: the one form that t tests, regressions and random effects all take.

$y = \mu + \sum_b X_b \theta_b + \epsilon$, with $\theta_b \mid g_b \sim N(0, g_b \sigma^2 I)$ and $g_b \sim$
Inverse-Gamma(1/2, $r_b^2/2$): a Cauchy prior of scale $r_b$ on effects in units of the noise (Zellner & Siow 1980; Rouder
et al. 2012). A factor, an interaction of factors and a group-level term are each one block. All columns that hold a
covariate are together one block, $\theta \sim N(0, g \sigma^2 (X^T X / n)^{-1})$, made into the same form by whitening.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from supermodel.errors import DataError, SupermodelError
from supermodel.regressions.contrasts import Columns

ROOT2 = float(np.sqrt(2.0))
RSCALES = {"continuous": ROOT2 / 4, "fixed": 0.5, "random": 1.0}
WORDS = {
    "continuous": {"medium": ROOT2 / 4, "wide": 0.5, "ultrawide": ROOT2 / 2},
    "fixed": {"medium": 0.5, "wide": ROOT2 / 2, "ultrawide": 1.0},
    "random": {"medium": 0.5, "wide": ROOT2 / 2, "ultrawide": 1.0, "nuisance": 1.0},
    "ttest": {"medium": ROOT2 / 2, "wide": 1.0, "ultrawide": ROOT2},
    "correlation": {"medium": 1 / 3, "wide": 3**-0.5, "ultrawide": 1.0},
    "proportion": {"medium": 0.5, "wide": ROOT2 / 2, "ultrawide": 1.0},
}


@dataclass(frozen=True, eq=False)
class Block:
    """Columns that share one g; `kind` is continuous, fixed or random."""

    name: str
    kind: str
    columns: Columns
    rscale: float
    groups: np.ndarray | None = None  # of a group-level term: the group of each row
    unit: float = 1.0  # what a standard deviation of its coefficients is multiplied by to be told in the user's units

    @property
    def size(self) -> int:
        return self.columns.values.shape[1]


def as_rscale(value: float | str, kind: str) -> float:
    """The scale of a Cauchy prior: a positive number, or one of the usual words."""
    found = WORDS[kind].get(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int | float | np.number) or not 0 < float(found) < np.inf:
        raise SupermodelError(
            f"`rscale` of a {kind} effect is the scale of its prior, a positive number or one of "
            f"{', '.join(WORDS[kind])}; got {value!r}."
        )
    return float(found)


def as_rscales(given: float | str | Mapping[str, float | str] | None, terms: Sequence[str]) -> dict[str, float]:
    """Scales by kind, and by the name of a term where one was given: {"fixed": 0.5, "supp": 1.0, ...}."""
    if given is None:
        return dict(RSCALES)
    if not isinstance(given, Mapping):
        given = dict.fromkeys(("continuous", "fixed"), given)
    known = (*RSCALES, *terms)
    for name in given:
        if name not in known:
            raise SupermodelError(f"`rscale` has {name!r}, which is no kind and no term; known are {', '.join(known)}.")
    return RSCALES | {name: as_rscale(value, name if name in RSCALES else "fixed") for name, value in given.items()}


def whitened(columns: Sequence[Columns], rscale: float, centre: bool, name: str = "continuous") -> Block:
    r"""Columns of covariates as one block with $X^T X / n = I$; `centre` says whether X is centred in that product."""
    values = np.hstack([c.values for c in columns])
    labels = tuple(label for c in columns for label in c.labels)
    inner = values - values.mean(axis=0) if centre else values
    scale = np.sqrt(np.mean(inner**2, axis=0))
    n, p = values.shape
    if p >= n - 1:
        raise DataError(
            f"{p} columns of covariates need more than {p + 1} rows; there are {n}. The prior on slopes is scaled by "
            f"their covariance, which is singular then. Drop terms: {', '.join(labels)}."
        )
    _check_collinear(inner / scale, labels)
    root = np.linalg.cholesky(np.linalg.inv((inner / scale).T @ (inner / scale) / n)) / scale[:, None]
    readout = np.zeros((sum(len(c.labels) for c in columns), p))
    row = column = 0
    for c in columns:
        height, width = c.readout.shape
        readout[row : row + height, column : column + width] = c.readout
        row, column = row + height, column + width
    return Block(name, "continuous", Columns(values @ root, labels, readout @ root), rscale)


def _check_collinear(inner: np.ndarray, labels: Sequence[str]) -> None:
    """Refuse columns of which one is a linear combination of the others, and name them."""
    _, singular, axes = np.linalg.svd(inner, full_matrices=False)
    if singular[-1] > 1e-9 * singular[0]:
        return
    part = np.abs(axes[-1]) > 1e-6
    names = [label for label, has in zip(labels, part, strict=False) if has] or list(labels)
    raise DataError(
        f"the columns {', '.join(names)} are perfectly collinear: one is a linear combination of the others, so that "
        "their coefficients cannot be told apart. Leave one of them out."
    )
