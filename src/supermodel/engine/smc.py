r"""A tempered pilot: particles carried from the prior to the posterior along $\pi L^\beta$, $\beta: 0 \to 1$.

Needs no gradient, finds separated modes as long as the prior draws can reach them, and leaves an estimate of $\ln Z$
of its own, $\sum_t \ln \langle L^{\beta_{t+1} - \beta_t} \rangle_t$, against which the final answer is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.embedding.warp import Warp
from supermodel.engine.whiten import by_moments
from supermodel.models.joint import Joint


@dataclass(frozen=True, eq=False)
class Particles:
    """Equally weighted draws of the posterior (approximately), with what is known there."""

    points: np.ndarray  # (n, d)
    log_likelihood: np.ndarray  # (n,)
    log_prior: np.ndarray  # (n,)
    log_evidence: float
    evaluations: int
    temperatures: int
    acceptance: float

    @property
    def log_evidence_error(self) -> float:
        r"""About $\sqrt{2 T / n}$: each of T temperatures halves the effective size, and moves leave some correlation."""
        return float(np.sqrt(2 * self.temperatures / len(self.points)))

    @property
    def log_joint(self) -> np.ndarray:
        return self.log_likelihood + self.log_prior


def next_temperature(log_likelihood: np.ndarray, beta: float, share: float = 0.5) -> float:
    """The largest temperature at which reweighting leaves an effective size of `share` n."""
    low, high = 0.0, 1.0 - beta

    def effective(step: float) -> float:
        w = log_likelihood * step
        w = np.exp(w - w.max())
        return w.sum() ** 2 / np.sum(w**2) / len(w)

    if effective(high) >= share:
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= share else (low, middle)
    return beta + max(low, 1e-12)


def systematic(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """Systematic resampling: indices with expected counts n w."""
    n = len(weights)
    positions = (rng.random() + np.arange(n)) / n
    return np.minimum(np.searchsorted(np.cumsum(weights), positions), n - 1)


def temper(
    joint: Joint,
    rng: np.random.Generator,
    n: int,
    executor: Any = None,
    moves: int = 3,
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> Particles:
    """Carry `n` particles from the prior to the posterior. `start`: prior draws already evaluated, not paid again."""
    points = joint.space.sample_prior(rng, n)
    fresh = n
    if start is not None:
        reused = min(n, len(start[0]))
        points[:reused] = start[0][:reused]
        fresh = n - reused
        log_likelihood = np.concatenate([start[1][:reused], joint.log_likelihood_at(points[reused:], executor)])
    else:
        log_likelihood = joint.log_likelihood_at(points, executor)
    evaluations = fresh
    # Prior draws where the likelihood vanishes are legal; they leave at the first reweighting, but need a number.
    log_likelihood = np.where(np.isfinite(log_likelihood), log_likelihood, -1e290)
    log_prior = joint.space.log_prior_at(points)
    beta, log_evidence, temperatures, rate = 0.0, 0.0, 0, 1.0
    while beta < 1.0:
        following = next_temperature(log_likelihood, beta)
        gain = (following - beta) * log_likelihood
        top = gain.max()
        weights = np.exp(gain - top)
        log_evidence += top + np.log(weights.mean())
        chosen = systematic(rng, weights / weights.sum())
        warp = by_moments(points, weights)
        points, log_likelihood, log_prior = points[chosen], log_likelihood[chosen], log_prior[chosen]
        beta = following
        temperatures += 1
        last = beta >= 1.0
        points, log_likelihood, log_prior, cost, rate = _move(
            joint, rng, points, log_likelihood, log_prior, beta, warp, executor, moves * (2 if last else 1)
        )
        evaluations += cost
    return Particles(points, log_likelihood, log_prior, float(log_evidence), evaluations, temperatures, rate)


def _move(joint, rng, points, log_likelihood, log_prior, beta, warp: Warp, executor, moves):
    """Crank-Nicolson steps about the particles' own Gaussian until they have been renewed about `moves` times."""
    n, d = points.shape
    u = warp.inverse(points)
    renewed, cost, b, rate = 0.0, 0, 0.8, 1.0
    for _ in range(8 * moves):
        proposal = np.sqrt(1 - b * b) * u + b * rng.standard_normal((n, d))
        x = warp.points(proposal)
        prior = joint.space.log_prior_at(x)
        likelihood = np.nan_to_num(joint.log_likelihood_at(x, executor), nan=-np.inf, neginf=-1e290)
        cost += n
        gap = beta * (likelihood - log_likelihood) + prior - log_prior
        gap = gap + 0.5 * np.sum(proposal**2, axis=1) - 0.5 * np.sum(u**2, axis=1)
        accepted = np.log(1.0 - rng.random(n)) < gap
        u = np.where(accepted[:, None], proposal, u)
        log_likelihood = np.where(accepted, likelihood, log_likelihood)
        log_prior = np.where(accepted, prior, log_prior)
        rate = accepted.mean()
        renewed += rate * b**2
        b = float(np.clip(b * np.exp(rate - 0.35), 0.05, 1.0))
        if renewed >= 0.5 * moves:
            break
    return warp.points(u), log_likelihood, log_prior, cost, rate
