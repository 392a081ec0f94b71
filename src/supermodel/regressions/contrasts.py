r"""Columns of a design that do not depend on how levels are coded, and the way back to effects a reader knows.

A factor of a levels has a - 1 columns: its indicators times Q, an orthonormal basis of the contrasts, $Q Q^T = I - J/a$
(Rouder, Morey, Speckman & Province 2012). With one variance for all columns of a block the prior is the same for every such
basis. Interactions are products of columns, row by row; effects of levels are read out as $Q \theta$, which sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Factor:
    """A column of labels: row i has `levels[codes[i]]`."""

    name: str
    levels: tuple[str, ...]
    codes: np.ndarray

    @property
    def indicators(self) -> np.ndarray:
        return np.eye(len(self.levels))[self.codes]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{self.name}[{level}]" for level in self.levels)


@dataclass(frozen=True, eq=False)
class Covariate:
    """A number in each row, or several (a polynomial, a spline): (n, k)."""

    name: str
    values: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.name,) if self.values.shape[1] == 1 else tuple(
            f"{self.name}[{i}]" for i in range(self.values.shape[1])
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Columns:
    """(n, p) columns of a design; `readout` (q, p) turns their coefficients into the q effects named in `labels`."""

    values: np.ndarray
    labels: tuple[str, ...]
    readout: np.ndarray

    def times(self, other: Columns) -> Columns:
        """Products of every pair of columns: an interaction."""
        values = np.einsum("ni,nj->nij", self.values, other.values).reshape(len(self.values), -1)
        labels = tuple(f"{a}:{b}" for a in self.labels for b in other.labels)
        return Columns(values, labels, np.kron(self.readout, other.readout))


def orthonormal(n_levels: int) -> np.ndarray:
    """(a, a - 1): an orthonormal basis of the contrasts of a levels, Helmert's.

    >>> basis = orthonormal(3)
    >>> np.allclose(basis @ basis.T, np.eye(3) - 1 / 3)
    True
    """
    basis = np.triu(np.ones((n_levels, n_levels - 1)))
    basis[np.arange(1, n_levels), np.arange(n_levels - 1)] = -np.arange(1, n_levels)
    return basis / np.linalg.norm(basis, axis=0)


def of_effect(component: Factor | Covariate) -> Columns:
    """The columns of a main effect."""
    if isinstance(component, Factor):
        basis = orthonormal(len(component.levels))
        return Columns(component.indicators @ basis, component.labels, basis)
    return Columns(component.values, component.labels, np.eye(component.values.shape[1]))


def of_group(group: Factor) -> Columns:
    """One column for each group: group-level effects are exchangeable, they need not sum to zero."""
    return Columns(group.indicators, group.labels, np.eye(len(group.levels)))
