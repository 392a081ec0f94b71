"""Whether a mean of weights can be trusted: the shape of their tail, where they have one."""

from __future__ import annotations

import numpy as np

from supermodel.verdict.diagnostics import pareto_k

HEAVY = 0.7  # above, the mean of the weights cannot be trusted at any affordable number of draws
EVEN = 1.5  # weights of which none exceeds the mean by more than this factor have no tail to speak of


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
