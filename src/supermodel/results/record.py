"""The record of a run as a result keeps it: plain arrays, enough for every estimator, plot and file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
