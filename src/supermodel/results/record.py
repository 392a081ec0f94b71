"""The record of a run as a result keeps it: plain arrays, enough for every estimator, plot and file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.estimation.conditional import log_sum, weights_of
from supermodel.estimation.mbar import Fit, ends, rung_log_densities
from supermodel.estimation.rao_blackwell import density, log_shares
from supermodel.sampling.draws import Draws
from supermodel.verdict.examine import Report, anchor_of

CURVE = 81  # points of the curve along alpha
MOST = 6_000  # draws that a curve is made of: it is a picture, not the estimate


@dataclass(frozen=True, eq=False)
class EdgeRecord:
    """The record of one two-model supermodel on its ladder: all that its estimators and plots need."""

    first: str
    second: str
    table: np.ndarray  # (M, 2): weights of the rungs; rung 0 is `second` alone
    log_prior: np.ndarray  # (M,): the balance
    rung: np.ndarray  # (chains, draws)
    log_joints: np.ndarray  # (chains, draws, 2)
    report: dict[str, float]  # the figures of the checks
    log_anchor: np.ndarray | None = None  # (chains, draws): ln of a density of evidence 1 that stands for `second`

    @classmethod
    def of(cls, draws: Draws, report: Report) -> EdgeRecord:
        """The record of an edge from its draws."""
        ladder: Any = draws.supermodel.coordinate
        first, second = draws.names
        rung, joints = draws.alpha, draws.log_joints
        figures = report.figures()
        return cls(first, second, ladder.table, ladder.log_prior_table, rung, joints, figures, anchor_of(draws))

    def ends(self, cut: slice = slice(None)) -> Fit:
        """MBAR of `first` and `second`, from a part of every chain."""
        anchor = None if self.log_anchor is None else self.log_anchor[:, cut]
        return ends(self.log_joints[:, cut], self.rung[:, cut], self.table, anchor)

    @property
    def log_shares(self) -> np.ndarray:
        r"""$\ln J_k / \bar J$ of both ends, (chains, draws, 2): their log-means are Rao-Blackwell's ln Z + const."""
        rungs = rung_log_densities(self.log_joints, self.table) + self.log_prior
        second = self.log_joints[..., 1] if self.log_anchor is None else self.log_anchor
        return np.stack([self.log_joints[..., 0], second], axis=-1) - log_sum(rungs)[..., None]


@dataclass(frozen=True, eq=False)
class ChainRecord:
    """The record of the paper's chain on (alpha, theta): all that its estimator and its plots need."""

    names: tuple[str, ...]
    weights: np.ndarray  # (chains, draws, K): f(alpha)
    log_shares: np.ndarray  # (chains, draws, K): ln J_k / J-bar, whose log-means are ln Z + const
    grid: np.ndarray  # (M,): alpha, for two models the weight of the first; empty on a simplex
    density: np.ndarray  # (M,): p(alpha | D) / p(alpha), averaged over the conditionals of alpha
    is_discrete: bool  # whether alpha has the corners only
    report: dict[str, float]  # the figures of the checks

    @classmethod
    def of(cls, draws: Draws, report: Report) -> ChainRecord:
        coordinate: Any = draws.supermodel.coordinate
        grid = np.zeros(0)
        if coordinate.is_discrete:
            grid = np.arange(coordinate.n_rungs)
        elif not coordinate.is_simplex:
            grid = np.linspace(coordinate.low, coordinate.high, CURVE)
        curve = grid
        if len(grid):
            curve = density(draws.thin(max(1, draws.log_joints[..., 0].size // MOST)), grid)
            curve = curve / np.exp(coordinate.log_prior_of(grid))
        return cls(
            draws.names, weights_of(draws), log_shares(draws), grid, curve, coordinate.is_discrete, report.figures()
        )
