r"""Draws of one density as draws of another: $w_i' \propto w_i r(\theta_i)$, and whether these weights can be trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.verdict.diagnostics import pareto_k

HEAVY = 0.7  # Pareto k above which the mean of the weights cannot be trusted at any affordable number of draws
EVEN = 1.5  # weights of which none exceeds the mean by more than this factor have no tail to speak of


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
    """Pareto k of the weights; 0 where they are nearly equal, infinite where nothing is left to fit.

    A law fitted to the top of nearly equal weights describes their last digits: its shape may be anything.
    """
    finite = log_weights[np.isfinite(log_weights)]
    if len(finite) == 0:
        return np.inf
    mean = np.logaddexp.reduce(finite) - np.log(len(log_weights))
    if finite.max() - mean < np.log(EVEN):
        return 0.0
    k = pareto_k(finite)
    return np.inf if np.isnan(k) else k
