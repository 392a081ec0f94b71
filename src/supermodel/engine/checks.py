"""What the record of one edge says about itself: its estimate, a second one, and the signs of trouble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supermodel.engine.edge import Block, Edge
from supermodel.engine.kernels import Tuning
from supermodel.estimation.ladder import capped_time, multistate, rao_blackwell, standard_error
from supermodel.estimation.tail import pareto_k
from supermodel.verdict.diagnostics import split_rhat


@dataclass(frozen=True)
class EdgeReport:
    """ln Z_first - ln Z_second of one edge and how far it can be trusted."""

    value: float
    error: float
    second_value: float  # Rao-Blackwell
    second_error: float
    ess: float
    rhat: float
    crossings: int
    n_draws: int
    rungs: int
    start_z: float  # chains started at one end against those started at the other, in errors
    drift_z: float  # first half against second half
    acceptance: float
    pareto_k: float  # tail of the weights J_first / J_second over draws at the second end
    share_first: float  # time spent at the first model's own rung, among the two ends

    @property
    def disagreement(self) -> float:
        """The two estimators' difference in units of the larger error."""
        scale = max(self.error, self.second_error)
        return abs(self.value - self.second_value) / scale if scale > 0 else 0.0

    @property
    def is_settled(self) -> bool:
        """Enough has been seen for the error to mean something."""
        calm = max(self.start_z, self.drift_z) < 4.0 and self.disagreement < 3.0
        return self.ess >= 100 and self.crossings >= 20 and self.rhat < 1.05 and calm

    @property
    def is_stuck(self) -> bool:
        """Long chains that hardly ever go from one end to the other."""
        return self.n_draws > 25_000 and self.crossings < 4

    @property
    def is_hopeless(self) -> bool:
        """More of the same would not mend it."""
        return self.n_draws > 200_000


def count_crossings(rung: np.ndarray, low: int, high: int) -> int:
    """Passages from one end of the ladder to the other, over all chains."""
    total = 0
    for chain in rung:
        ends = chain[(chain == low) | (chain == high)]
        total += int(np.sum(ends[1:] != ends[:-1]))
    return total


def examine(edge: Edge, tuning: Tuning) -> EdgeReport:
    """All that the kept record of an edge tells."""
    return examine_record(edge.record(), np.asarray(tuning.table), np.asarray(tuning.log_prior))


def examine_record(record: Block, table: np.ndarray, log_prior: np.ndarray) -> EdgeReport:
    """`examine` for plain arrays."""
    used = np.isfinite(log_prior)
    table, log_prior = table[used], log_prior[used]
    top = len(table) - 1
    fit = multistate(record.log_joints, record.rung, table)
    other = rao_blackwell(record.log_joints, table, log_prior)
    influence = fit.influence[..., top] - fit.influence[..., 0]
    share = other.influence[..., top] - other.influence[..., 0]
    value, error = fit.difference(top, 0)
    second_value, second_error = other.difference(top, 0)
    # Where the warp is exact nothing scatters but rounding: an error is never below that floor.
    floor = (
        256
        * np.finfo(float).eps
        * float(np.max(np.abs(record.log_joints[np.isfinite(record.log_joints)]), initial=1.0))
    )
    chains, n = record.rung.shape
    halves = (influence[:, : n // 2], influence[:, n // 2 :])
    starts = (influence[: chains // 2], influence[chains // 2 :])
    ends = np.bincount(record.rung.ravel(), minlength=top + 1)[[0, top]]
    # What limits the answer is the slowest of: the influence itself and the walk along the ladder.
    tau = max(capped_time(influence), capped_time(record.rung.astype(float)))
    ess = record.rung.size / tau
    if ends.min() == 0:
        # An end without a draw: all that is known is that its probability is below 3 / ESS (95%).
        value, error = _bound(ends / record.rung.size, ess, log_prior[top] - log_prior[0]), float("inf")
    return EdgeReport(
        value=value,
        error=max(error, floor),
        second_value=second_value,
        second_error=max(second_error, floor),
        ess=ess,
        rhat=_rhat(share),
        crossings=count_crossings(record.rung, 0, top),
        n_draws=record.rung.size,
        rungs=len(table),
        start_z=_z(*starts, floor),
        drift_z=_z(*halves, floor),
        acceptance=record.acceptance,
        pareto_k=_tail(record),
        share_first=float(ends[1] / max(ends.sum(), 1)),
    )


def _bound(visits: np.ndarray, ess: float, prior_log_odds: float) -> float:
    """The 95% limit on ln Z_first - ln Z_second when one end (second, first) was never visited; NaN when neither was."""
    if visits.max() == 0:
        return float("nan")
    second, first = np.where(visits > 0, visits, 3.0 / ess)
    return float(np.log(first) - np.log(second) - prior_log_odds)


def _tail(record: Block) -> float:
    """Pareto k of the weights that lead from the second end to the first; 0 where they hardly differ."""
    gap = (record.log_joints[..., 0] - record.log_joints[..., 1])[record.rung == 0]
    gap = gap[np.isfinite(gap)]
    if len(gap) < 50 or np.std(gap) < 0.1:
        return 0.0
    return float(pareto_k(gap))


def _rhat(share: np.ndarray) -> float:
    """Split R-hat; 1 where nothing moves but rounding."""
    value = split_rhat(share)
    return 1.0 if np.isnan(value) and np.all(np.isfinite(share)) else value


def _z(a: np.ndarray, b: np.ndarray, floor: float) -> float:
    """Difference of two means in their joint error."""
    error = np.hypot(standard_error(a), standard_error(b))
    return float(abs(a.mean() - b.mean()) / max(error, floor))
