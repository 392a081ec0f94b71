r"""Placing the rungs of an edge, and balancing them: $p(m) \propto 1 / Z(w_m)$."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supermodel.engine.kernels import Kernel, Tuning, leapfrogs
from supermodel.engine.policy import MOST_RUNGS, SPACING
from supermodel.estimation.mbar import multistate


class Gap(NamedTuple):
    r"""$D = \ln J_a - \ln J_b$ under each end: its mean and its spread."""

    mean_first: float
    mean_second: float
    spread_first: float
    spread_second: float

    @property
    def length(self) -> float:
        """Thermodynamic length of the path, about; what the variance of an estimate along it grows with."""
        a, b = max(self.spread_first, 1e-12), max(self.spread_second, 1e-12)
        return float((a - b) / np.log(a / b)) if abs(np.log(a / b)) > 1e-6 else a


def gap(difference_first: np.ndarray, difference_second: np.ndarray) -> Gap:
    """From values of D at draws of either end."""
    parts = [_clipped(x) for x in (difference_first, difference_second)]
    return Gap(parts[0].mean(), parts[1].mean(), parts[0].std(), parts[1].std())


def _clipped(x: np.ndarray) -> np.ndarray:
    """Wild values clipped; low ones to the reach of the high ones: a draw where J_a is nothing beside J_b is one draw
    wasted, while one where J_a is large beside it tells of a part that b hardly sees.
    """
    x = np.nan_to_num(x, nan=-1e6, posinf=1e6, neginf=-1e6)
    low, middle, high = np.quantile(x, [0.1, 0.5, 0.9])
    below = min(middle - low, max(high - middle, 0.1))
    return np.clip(x, middle - 4 * below - 1e-9, middle + 4 * (high - middle) + 1e-9)


def independent_acceptance(difference_first: np.ndarray, difference_second: np.ndarray) -> float:
    r"""Chance that a draw of the second end is accepted by a chain in the first: $\langle \min(1, e^{D_2 - D_1}) \rangle$."""
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = np.minimum(1.0, np.exp(difference_second[:, None] - difference_first[None, :]))
    return float(np.nan_to_num(ratio).mean())


def place(gap: Gap) -> tuple[np.ndarray, np.ndarray]:
    r"""Rungs at equal steps of length from the second model (rung 0) to the first, and their balance.

    The speed along the path is taken as geometric between its values at the ends, and $d \ln Z / dw = E_w[D]$ as linear.
    """
    n = int(np.clip(1 + np.ceil(gap.length / SPACING), 2, MOST_RUNGS))
    fine = np.linspace(0.0, 1.0, 2001)
    a, b = max(gap.spread_first, 1e-6), max(gap.spread_second, 1e-6)
    speed = b ** (1 - fine) * a**fine
    travelled = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]))])
    weight = np.interp(np.linspace(0, travelled[-1], n), travelled, fine)
    weight[0], weight[-1] = 0.0, 1.0
    table = np.stack([weight, 1.0 - weight], axis=1)
    log_z = gap.mean_second * weight + 0.5 * (gap.mean_first - gap.mean_second) * weight**2
    return table, -log_z - np.logaddexp.reduce(-log_z)


def rebalance(log_z: np.ndarray, log_prior: np.ndarray) -> np.ndarray:
    """The prior that makes every rung equally probable, for the rungs in use."""
    used = np.isfinite(log_prior)
    fresh = np.where(used & np.isfinite(log_z), -log_z, -np.inf)
    return fresh - np.logaddexp.reduce(fresh)


def learnt(kernel: Kernel, record: Any, tuning: Tuning) -> Tuning:
    """A better balance (by MBAR on the warm-up draws of a block) and, for trajectories, a better step."""
    table, prior = np.asarray(tuning.table), np.asarray(tuning.log_prior)
    used = np.isfinite(prior)
    fit = multistate(record.log_joints, record.rung, table[used])
    log_z = np.full(len(prior), np.nan)
    log_z[used] = fit.log_z
    step = kernel.steered(float(tuning.step), record.acceptance)
    return Tuning(table, rebalance(log_z, prior), step, leapfrogs(step), tuning.bold)
