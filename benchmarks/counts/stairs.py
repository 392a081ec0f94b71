r"""Truths of change points, exact: a sum over the gaps between data that the steps fall in, one after another."""

from __future__ import annotations

from math import lgamma

import numpy as np
from scipy.special import logsumexp

from benchmarks.sky.truths import LOG_2PI


def log_evidences(x, y, sd: float, step_sd: float, base_sd: float, most: int) -> dict[int, tuple[float, float]]:
    r"""{k: (ln Z, 0)} for $y = c + \sum_{i \le k} d_i [x > t_i] \pm s$, t uniform over 0..1, d and c normal.

    In order of time the level is a random walk: between steps its mean m and variance v take up the data, at a step v grows. A
    gap that holds m of the steps does so in k! / m! orders per m-th power of its length.
    """
    n = len(y)
    log_gap = np.log(np.diff(np.concatenate([[0.0], x, [1.0]])))
    sums, squares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (y, y**2))

    def take(state, to):
        """The state after the data up to `to`."""
        at, m, v, log_z, *rest = state
        count, total, square = to - at, sums[to] - sums[at], squares[to] - squares[at]
        grown = sd**2 + count * v
        quad = (square - 2 * m * total + count * m**2) / sd**2 - v * (total - count * m) ** 2 / (sd**2 * grown)
        log_z = log_z - 0.5 * (count * (LOG_2PI + np.log(sd**2)) + np.log(grown / sd**2) + quad)
        return to, (m * sd**2 + v * total) / grown, v * sd**2 / grown, log_z, *rest

    state = (np.array([0]), np.array([0.0]), np.array([base_sd**2]), np.array([0.0]), np.array([0]))
    found = {}
    for k in range(most + 1):
        found[k] = (float(logsumexp(take(state, np.full(len(state[0]), n))[3]) + lgamma(k + 1)), 0.0)
        if k == most:
            break
        # Each state is followed by a step in its own gap or in a later one.
        at, same = state[0], state[4]
        choices = n + 1 - at
        parent = np.repeat(np.arange(len(at)), choices)
        gap = np.arange(len(parent)) - np.repeat(np.cumsum(choices) - choices, choices) + at[parent]
        moved = take(tuple(part[parent] for part in state), gap)
        again = np.where((gap == at[parent]) & (k > 0), same[parent] + 1, 1)
        state = (gap, moved[1], moved[2] + step_sd**2, moved[3] + log_gap[gap] - np.log(again), again)
    return found
