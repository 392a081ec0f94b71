r"""Draws of one density as draws of another: $w_i' \propto w_i r(\theta_i)$, and whether these weights can be trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.verdict.diagnostics import pareto_k

HEAVY = 0.7  # Pareto k above which the mean of the weights cannot be trusted at any affordable number of draws


class Reweighted(NamedTuple):
    """New weights for old draws, and what they rest on."""

    log_mean: float  # ln sum w_i r_i: by how much ln Z moves
    weights: np.ndarray  # (n,), of sum 1; NaN where nothing is left
    pareto_k: float

    @property
    def effective_size(self) -> float:
        r"""$1 / \sum w'^2$."""
        return float(1.0 / np.sum(self.weights**2))


def reweighted(log_weights: np.ndarray, log_ratio: np.ndarray) -> Reweighted:
    """The draws of weights exp(`log_weights`), of sum 1, for a density that differs by the factor exp(`log_ratio`)."""
    logs = log_weights + log_ratio
    total = float(np.logaddexp.reduce(logs))
    weights = np.exp(logs - total) if np.isfinite(total) else np.full(len(logs), np.nan)
    return Reweighted(total, weights, tail_shape(logs))


def tail_shape(log_weights: np.ndarray) -> float:
    """Pareto k of the weights; infinite where nothing is left to fit."""
    k = pareto_k(np.where(np.isfinite(log_weights), log_weights, -np.inf))
    return np.inf if np.isnan(k) else k
