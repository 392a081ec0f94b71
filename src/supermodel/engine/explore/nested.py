r"""Nested slices: live points climb the likelihood by slice moves within $\pi\,[L > \lambda]$ (nested sampling).

It passes where no thermal path can (a small high peak beside a large low one), follows curved and disconnected shapes, and
costs about $n (H + 5) \cdot 4 (d + 2)$ calls, so it is for a doubt, or on request. Directions are differences of live points:
they know the shape of whatever the points have found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.engine.explore.cloud import log_sum
from supermodel.engine.meter import Meter
from supermodel.models.joint import Joint


class Nested(NamedTuple):
    """Weighted draws of the posterior and ln Z with its error."""

    x: np.ndarray  # (n, d)
    log_likelihood: np.ndarray
    log_weights: np.ndarray  # their sum is ln Z
    log_evidence: float
    error: float


def nested_slices(joint: Joint, meter: Meter, rng: np.random.Generator, live: int, left: float = 0.01) -> Nested:
    """Nested sampling with a tenth of the live points replaced at a time, until `left` of the evidence is among them."""
    d, batch = joint.dimension, max(live // 10, 1)
    x = joint.space.sample_prior(rng, live)
    value = _finite(meter.likelihood(joint, x))
    log_prior = np.array(joint.space.log_prior_at(x))  # a copy: what JAX returns cannot be written to
    log_volume, variance, dead, log_z = 0.0, 0.0, [], -np.inf
    for _ in range(100_000):
        order = np.argsort(value)
        level = value[order[batch - 1]]
        if level >= value.max():  # only a plateau is left
            break
        # Equal values go together: points that replace them lie above, so that a part of a plateau has no volume of its own.
        n_lost = int(np.sum(value <= level))
        lost, kept, left_over = order[:n_lost], order[n_lost:], live - np.arange(float(n_lost))
        shrink = np.cumsum(np.log((left_over - 1.0) / left_over))
        before = log_volume + np.concatenate([[0.0], shrink[:-1]])
        log_width = before + np.log1p(-np.exp(shrink - np.concatenate([[0.0], shrink[:-1]])))
        unsure = variance + np.cumsum(left_over**-2.0)
        dead.append((x[lost], value[lost], value[lost] + log_width, unsure))
        log_z = np.logaddexp(log_z, log_sum(value[lost] + log_width))
        log_volume, variance = log_volume + shrink[-1], unsure[-1]
        remaining = log_sum(value[kept]) - np.log(len(kept)) + log_volume
        top = value.max() + log_volume
        if np.isfinite(log_z) and max(remaining, top) < log_z + np.log(left):
            break
        chosen = rng.choice(kept, n_lost)
        moved = _slices(joint, meter, rng, x[kept], (x[chosen], value[chosen], log_prior[chosen]), level, d + 2)
        x[lost], value[lost], log_prior[lost] = moved
    rest = (x, value, value + log_volume - np.log(live), np.full(live, variance))
    points, values, weights, unsure = (np.concatenate(column) for column in zip(*dead, rest, strict=True))
    total = float(log_sum(weights))
    # The variance of the log volume where the evidence is: about H / live, and more where a plateau went at once.
    error = np.sqrt(max(float(np.exp(weights - total) @ unsure), 0.1 / live))
    return Nested(points, values, weights, total, float(error))


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), -np.inf, values)


def _slices(joint, meter, rng, crowd, state, level, repeats):
    """`repeats` slice moves of every walker along differences of two live points, within the level and the prior."""
    x, value, log_prior = (np.array(part) for part in state)
    n, d = x.shape
    for r in range(repeats):
        a, b = crowd[rng.integers(len(crowd), size=n)], crowd[rng.integers(len(crowd), size=n)]
        direction = a - b
        if r % 3 == 2:  # along one axis now and then: differences alone may all lie in a plane
            axis = rng.integers(d, size=n)
            direction = direction * (np.arange(d) == axis[:, None])
        flat = np.all(direction == 0, axis=1)
        direction[flat] = rng.standard_normal((int(flat.sum()), d)) * crowd.std(0)
        width = 2.0 * np.exp(0.7 * rng.standard_normal(n))
        low = -width * rng.random(n)
        high = low + width
        floor = log_prior + np.log(1.0 - rng.random(n))
        waiting = np.ones(n, bool)
        for _ in range(40):
            rows = np.flatnonzero(waiting)
            if len(rows) == 0:
                break
            t = low[rows] + (high - low)[rows] * rng.random(len(rows))
            trial = x[rows] + t[:, None] * direction[rows]
            trial_prior = joint.space.log_prior_at(trial)
            inside = trial_prior > floor[rows]
            trial_value = np.full(len(rows), -np.inf)
            if inside.any():
                trial_value[inside] = _finite(meter.likelihood(joint, trial[inside]))
            good = inside & (trial_value > level)
            done = rows[good]
            x[done], value[done], log_prior[done] = trial[good], trial_value[good], trial_prior[good]
            waiting[done] = False
            bad = rows[~good]
            low[bad] = np.where(t[~good] < 0, t[~good], low[bad])
            high[bad] = np.where(t[~good] >= 0, t[~good], high[bad])
    return x, value, log_prior
