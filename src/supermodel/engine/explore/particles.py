r"""Tempered particles with moves: a population carried from the prior along $\pi L^\beta$, for black boxes of many parameters.

Where hills can no longer be fitted (many parameters), particles are moved instead of drawn anew. It leaves an estimate of
$\ln Z$ of its own, $\sum_t \ln \langle L^{\beta_{t+1} - \beta_t} \rangle_t$.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supermodel.engine.explore.cloud import effective_size
from supermodel.engine.meter import Meter
from supermodel.engine.whiten import by_moments
from supermodel.models.joint import Joint

SNAPSHOTS = 4  # of the population at the posterior, moves apart: a covariance wants more draws than there are particles


class Particles(NamedTuple):
    """Equally weighted draws of the posterior (approximately), with what is known there."""

    x: np.ndarray  # (n, d)
    log_likelihood: np.ndarray  # (n,)
    log_prior: np.ndarray  # (n,)
    log_evidence: float
    error: float


def next_temperature(log_likelihood: np.ndarray, beta: float, share: float = 0.5) -> float:
    """The largest temperature at which reweighting leaves an effective size of `share` n."""
    low, high = 0.0, 1.0 - beta
    if effective_size(high * log_likelihood) >= share * len(log_likelihood):
        return 1.0
    for _ in range(200):  # halving from 1 down to the smallest step that a log likelihood of -1e18 asks for
        middle = 0.5 * (low + high)
        enough = effective_size(middle * log_likelihood) >= share * len(log_likelihood)
        low, high = (middle, high) if enough else (low, middle)
        if high - low < 1e-3 * high:
            break
    return beta + max(low, 1e-300)


def systematic(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """Systematic resampling: indices with expected counts n w."""
    n = len(weights)
    positions = (rng.random() + np.arange(n)) / n
    return np.minimum(np.searchsorted(np.cumsum(weights), positions), n - 1)


def temper(joint: Joint, meter: Meter, rng: np.random.Generator, n: int, moves: int = 3, most: int = 400) -> Particles:
    """Carry `n` particles from the prior to the posterior, and move them on there: `SNAPSHOTS` times n draws."""
    x = joint.space.sample_prior(rng, n)
    value = meter.likelihood(joint, x)
    # Prior draws where the likelihood vanishes are legal; they leave at the first reweighting, but need a number.
    lowest = np.min(value[np.isfinite(value)], initial=0.0) - 1e3
    value = np.where(np.isfinite(value), value, lowest)
    log_prior = joint.space.log_prior_at(x)
    beta, log_evidence, temperatures = 0.0, 0.0, 0
    while beta < 1.0 and temperatures < most:
        following = next_temperature(value, beta)
        gain = (following - beta) * value
        weights = np.exp(gain - gain.max())
        log_evidence += gain.max() + np.log(weights.mean())
        warp = by_moments(x, weights)
        chosen = systematic(rng, weights / weights.sum())
        beta = following
        temperatures += 1
        state = (x[chosen], value[chosen], log_prior[chosen])
        x, value, log_prior = state = moved(joint, meter, rng, state, warp, moves, beta, lowest)
    seen = []
    for _ in range(SNAPSHOTS):
        state = moved(joint, meter, rng, state, by_moments(state[0]), moves, beta, lowest)
        seen.append(state)
    x, value, log_prior = map(np.concatenate, zip(*seen, strict=True))
    # Each temperature halves the effective size, and moves leave some correlation: sqrt(2 T / n).
    return Particles(x, value, log_prior, float(log_evidence), float(np.sqrt(2 * temperatures / n)))


State = tuple[np.ndarray, np.ndarray, np.ndarray]  # x, ln L and ln prior of all particles


def moved(
    joint: Joint, meter: Meter, rng: np.random.Generator, state: State, warp: Any, moves: int, beta: float = 1.0,
    lowest: float = -np.inf,
) -> State:  # fmt: skip
    r"""Crank-Nicolson steps along $\pi L^\beta$ in the coordinates of a warp until they have been renewed about `moves` times."""
    x, value, log_prior = state
    n, d = x.shape
    u = warp.inverse(x)
    log_det = warp.log_det_at(u)
    renewed, b = 0.0, 0.8
    for _ in range(8 * moves):
        proposal = np.sqrt(1 - b * b) * u + b * rng.standard_normal((n, d))
        trial, bent = warp.points(proposal), warp.log_det_at(proposal)
        prior = joint.space.log_prior_at(trial)
        likelihood = np.nan_to_num(meter.likelihood(joint, trial), nan=-np.inf, neginf=lowest)
        gap = beta * (likelihood - value) + prior - log_prior + bent - log_det
        gap = gap + 0.5 * np.sum(proposal**2, axis=1) - 0.5 * np.sum(u**2, axis=1)
        accepted = np.log(1.0 - rng.random(n)) < gap
        u, x = (np.where(accepted[:, None], new, old) for new, old in ((proposal, u), (trial, x)))
        value, log_prior, log_det = (
            np.where(accepted, new, old) for new, old in ((likelihood, value), (prior, log_prior), (bent, log_det))
        )
        rate = accepted.mean()
        renewed += rate * b**2
        b = float(np.clip(b * np.exp(rate - 0.35), 0.05, 1.0))
        if renewed >= 0.5 * moves:
            break
    return x, value, log_prior
