"""How heavy the tail of a set of weights is: whether their mean can be trusted."""

from __future__ import annotations

import math

import numpy as np

BOUNDED = 4.0  # times their mean that weights may reach before their tail is looked at


def pareto_k(log_weights: np.ndarray) -> float:
    r"""Shape k of a generalised Pareto law of the largest $\min(N/5, 3\sqrt N)$ weights (Zhang and Stephens 2009).

    With the weak prior of PSIS towards 1/2. Above 0.7 the mean of the weights cannot be trusted at any affordable N. 0 where no
    weight is far above their mean: the shape of a bounded tail says nothing of what is missed. NaN where a weight is NaN or
    there are fewer than 25.
    """
    x = np.sort(np.ravel(np.asarray(log_weights, float)))
    n_tail = tail_size(len(x))
    if n_tail < 5 or np.any(np.isnan(x)) or not np.isfinite(x[-1]):
        return math.nan
    if np.mean(np.exp(x - x[-1])) > 1 / BOUNDED:
        return 0.0
    excess = np.exp(x[-n_tail:] - x[-1]) - np.exp(x[-n_tail - 1] - x[-1])
    return _pareto_shape(np.maximum(excess, 1e-300))


def tail_size(n: int) -> int:
    """How many of n weights are their tail."""
    return int(min(0.2 * n, 3 * math.sqrt(n)))


def pareto_error(k: float, n: int) -> float:
    r"""Standard error of a shape k found from n weights, $(1 + k) / \sqrt{n_{tail}}$."""
    return (1 + k) / math.sqrt(max(tail_size(n), 1))


def _pareto_shape(y: np.ndarray) -> float:
    """Zhang and Stephens' quasi-Bayes shape k of sorted excesses y, with PSIS's prior of ten draws at 1/2."""
    n = len(y)
    m = 30 + int(math.sqrt(n))
    theta = 1 / y[-1] + (1 - np.sqrt(m / (np.arange(m) + 0.5))) / (3 * max(y[int(n / 4 + 0.5) - 1], 1e-300))
    shape = np.log1p(-theta[:, None] * y).mean(axis=1)  # minus k in their sign
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = n * (np.log(-theta / shape) - shape - 1)
    likelihood = np.where(np.isfinite(likelihood), likelihood, -np.inf)
    weight = np.exp(likelihood - likelihood.max())
    mean = weight @ theta / weight.sum()
    k = float(np.log1p(-mean * y).mean())
    return (n * k + 10 * 0.5) / (n + 10)
