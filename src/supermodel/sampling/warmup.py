"""What Metropolis learns before it counts: covariances and scales of its steps, pooled over the chains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from supermodel.embedding.warp import from_covariance
from supermodel.sampling.blocks import Block, Record
from supermodel.sampling.metropolis import State, Tuning
from supermodel.sampling.target import Target

ROUNDS = 20
TARGET_ACCEPTANCE = 0.3
MEMORY = 0.6  # of the draws of earlier rounds; the start is forgotten within ten


class Moments:
    r"""Weighted sums of 1, $u$ and $u u^T$ for each temperature and model; earlier rounds fade."""

    def __init__(self):
        self.weight: Any = 0.0  # (T, K) after the first round; `first` and `second` have D and D x D more
        self.first: Any = 0.0
        self.second: Any = 0.0
        self.origin: np.ndarray | None = None  # sums about a near point: u u^T of a far one would lose the digits

    def add(self, target: Target, record: Record) -> None:
        if self.origin is None:
            self.origin = record.position.mean(axis=(0, 2))[:, None, :]
        u = record.position - self.origin
        shares = target.shares(record.alpha, record.log_joints)
        self.weight = MEMORY * self.weight + np.einsum("ntck->tk", shares)
        self.first = MEMORY * self.first + np.einsum("ntck,ntci->tki", shares, u)
        self.second = MEMORY * self.second + np.stack([_outer(shares[:, t], u[:, t]) for t in range(u.shape[1])])

    def factor(self, t: int, k: int, fallback: np.ndarray) -> np.ndarray:
        """The new factor, or the old one while too few draws belong to the model."""
        if self.weight[t, k] < 20 * (len(fallback) + 1):
            return fallback
        mean = self.first[t, k] / self.weight[t, k]
        covariance = self.second[t, k] / self.weight[t, k] - np.outer(mean, mean)
        return from_covariance(mean, covariance).factor


def _outer(shares: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Weighted sums of u u^T over draws and chains, one for each model: (K, D, D)."""
    flat, weights = u.reshape(math.prod(u.shape[:-1]), u.shape[-1]), shares.reshape(-1, shares.shape[-1])
    return np.stack([(flat * w[:, None]).T @ flat for w in weights.T])


def warm_up(
    target: Target, block: Block, size: int, state: State, tuning: Tuning, key, steps: int
) -> tuple[State, Tuning, int]:
    """Run about `steps` steps in rounds and adapt between them: (state, tuning, steps taken)."""
    moments = Moments()
    rounds = min(ROUNDS, max(steps, 1))
    taken = 0
    for r in range(rounds if steps > 0 else 0):
        per_round = max(steps // rounds, 1)
        n = min(size, per_round)
        state, records = block(state, tuning, key, n, per_round // n)
        taken += n * (per_round // n)
        moments.add(target, records)
        tuning = _adapted(target, tuning, state, moments, gain=3.0 / (1.0 + 0.3 * r))
    return state, tuning, taken


def _adapted(target: Target, tuning: Tuning, state: State, moments: Moments, gain: float) -> Tuning:
    tally = state.tally
    tried = np.asarray(tally.tried)
    rate = np.asarray(tally.accepted) / np.maximum(tried, 1)
    scales = np.asarray(tuning.scales) * np.where(tried > 0, np.exp(gain * (rate - TARGET_ACCEPTANCE)), 1.0)
    alpha_rate = np.asarray(tally.alpha_accepted) / max(tried.sum(), 1)
    alpha_scales = np.asarray(tuning.alpha_scales) * np.exp(gain * (alpha_rate - TARGET_ACCEPTANCE))
    factors = np.array(tuning.factors)
    for t, k in np.ndindex(*scales.shape):
        factors[t, k] = moments.factor(t, k, factors[t, k])
    # A factor that shrinks or grows would change the acceptance twice, through scale and factor: bounded scales
    # keep a bad round from running away.
    optimum = 2.4 / max(target.dimension, 1) ** 0.5
    return tuning._replace(
        factors=factors,
        scales=np.clip(scales, 1e-4 * optimum, 10 * optimum),
        alpha_scales=np.clip(alpha_scales, 1e-6, alpha_width(target)),
    )


def alpha_width(target: Target) -> float:
    """The length of alpha's interval, beyond which no step need go."""
    return float(getattr(target.coordinate, "high", 1.0) - getattr(target.coordinate, "low", 0.0))
