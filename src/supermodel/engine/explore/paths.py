r"""Two ways for a cloud to find the posterior from the prior, without gradients.

`by_temperature` follows $\pi L^\beta$; `by_level` follows the prior cut at rising likelihoods, $\pi\,[L > \lambda]$, as
nested sampling does, which passes where a thermal path cannot (a phase transition: a small high peak beside a large low
one). Either fits hills to the cloud's weights, draws from them, and goes on.
"""

from __future__ import annotations

import numpy as np

from supermodel.engine.explore.cloud import Cloud, effective_size, fitted, log_sum
from supermodel.engine.policy import ENOUGH

HILLS, DOF, WIDER = 16, 5.0, 1.2
MOST_ROUNDS = 30  # temperatures: a population that is not there by then is on a path that hills cannot follow


def by_temperature(cloud: Cloud, rng: np.random.Generator, n: int, beyond: float = 4.0) -> None:
    r"""Raise $\beta$ as fast as the effective size allows, to 1 and, for the sake of narrow peaks, beyond."""
    beta, least = 0.0, max(0.25 * n, 3 * (cloud.joint.dimension + 1))
    for _ in range(MOST_ROUNDS):
        following = _next(cloud, beta, least, beyond)
        cloud.grow(fitted(cloud, cloud.log_weights(following), rng, HILLS, DOF, WIDER), n, rng)
        if following >= beyond:
            break
        beta = max(beta, following)


def _next(cloud: Cloud, beta: float, least: float, last: float) -> float:
    if effective_size(cloud.log_weights(last)) >= least:
        return last
    low, high = 0.0, last
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective_size(cloud.log_weights(middle)) >= least else (low, middle)
    return max(low, 1e-12)


def by_level(cloud: Cloud, rng: np.random.Generator, n: int, keep: float = 0.3, left: float = 0.05) -> None:
    """Cut away all but `keep` of the prior's volume, again and again, until less than `left` of the evidence is above."""
    volume = 1.0
    for _ in range(200):
        log_v = cloud.log_volume
        order = np.argsort(-cloud.log_likelihood, kind="stable")
        cumulative = np.cumsum(np.exp(log_v[order]))
        volume = min(volume, cumulative[-1]) * keep
        # At least enough points to shape a hill.
        n_above = max(int(np.searchsorted(cumulative, volume)), 2 * cloud.joint.dimension + 4)
        level = cloud.log_likelihood[order[min(n_above, len(order) - 1)]]
        above = cloud.log_likelihood > level
        if above.sum() < 2 * cloud.joint.dimension + 4:  # a plateau: it is one set
            above = cloud.log_likelihood >= level
        volume, before = float(np.exp(log_sum(np.where(above, log_v, -np.inf)))), np.sum(cloud.log_likelihood > level)
        cloud.grow(fitted(cloud, np.where(above, log_v, -np.inf), rng, HILLS, DOF, WIDER), n, rng)
        share = log_sum(np.where(cloud.log_likelihood > level, cloud.log_weights(), -np.inf)) - log_sum(
            cloud.log_weights()
        )
        if (
            share < np.log(left)
            or level >= cloud.log_likelihood.max()
            or np.sum(cloud.log_likelihood > level) == before
        ):
            break


def polish(cloud: Cloud, rng: np.random.Generator, n: int, rounds: int = 3, enough: float = 0.5) -> None:
    """Fit the posterior itself and draw from it, until its own draws are nearly equally weighted or no longer improve."""
    for _ in range(rounds):
        if effective_size(cloud.log_weights()) > ENOUGH and effective_size(cloud.log_weights()[-n:]) > enough * n:
            break
        cloud.grow(fitted(cloud, cloud.log_weights(), rng, HILLS, DOF, 1.1), n, rng)
        if effective_size(cloud.log_weights()[-n:]) > enough * n:
            break
