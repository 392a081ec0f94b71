r"""A race: thousands of climbs from the prior, in which coordinates that turn too often to be climbed are searched instead.

Let $s$ be those coordinates (a period, the place of a line, a step in time) and $t$ the others. A climb in all of them seldom
ends on a needle of $s$, for $s$ leaves its basin before $t$ fits. So $s$ is held at stratified draws of the prior while $t$
climbs to the profile $\max_t \ln J(s, t)$; the better half goes on, each bears a child nearby in $s$, and the child takes its
place if it is higher. In the end all coordinates climb.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from supermodel.engine.explore.climb import ITERATIONS, Climber, Climbs
from supermodel.engine.meter import Meter
from supermodel.engine.policy import (
    BATCH,
    BESIDE,
    CONCAVE_TO,
    EXPLAINED,
    NEARBY,
    RACE_GENERATIONS,
    RACE_LAP,
    RACE_LAST,
    ROUGH_STEP,
    ROUGH_TURNS,
    STARTS_PER_TURN,
    STRATUM,
    TRIMS,
)  # fmt: skip
from supermodel.models.joint import Joint


def rough(joint: Joint, meter: Meter, x: np.ndarray, scale: np.ndarray, step: float = ROUGH_STEP) -> np.ndarray:
    r"""Which coordinates turn too often to be climbed, (d,): steps of h up and again h up do not lead the same way.

    On ground that is smooth at scale h, $\ln L(x + h) - \ln L(x)$ and $\ln L(x + 2h) - \ln L(x + h)$ have one sign; on a plateau
    they are zero, and a slope leads nowhere either.
    """
    return turning(joint, meter, x, scale, step) > ROUGH_TURNS


def turning(joint: Joint, meter: Meter, x: np.ndarray, scale: np.ndarray, step: float = ROUGH_STEP) -> np.ndarray:
    """The share of such pairs of steps that turn, along each coordinate."""
    return _turns(joint, meter, x, scale, np.arange(x.shape[1]), step)


def _turns(joint: Joint, meter: Meter, x: np.ndarray, scale: np.ndarray, axes: np.ndarray, step: float) -> np.ndarray:
    """The share of pairs of steps, of h and of 2 h, that do not lead the same way, along each of some axes."""
    n, d = x.shape
    steps = step * np.array([0.0, 1.0, 2.0, 4.0])
    points = x[:, None, None] + steps[:, None] * np.diag(scale)[axes, None]  # (n, axes, 4, d)
    value = meter.likelihood(joint, points.reshape(-1, d)).reshape(n, len(axes), 4)
    turns = [(b - a) * (c - b) for a, b, c in (value[..., :3].T[:, :, :], value[..., [0, 2, 3]].T)]
    return np.mean([np.where(np.isfinite(turn), ~(turn > 0), False).mean(axis=1) for turn in turns], axis=0)


def starts_for(joint: Joint, meter: Meter, x: np.ndarray, scale: np.ndarray, held: np.ndarray, most: int) -> int:
    """Climbs that a race needs for one to begin in every basin of what is held, up to `most`."""
    needed = 1.0
    for axis in np.flatnonzero(held):
        step = ROUGH_STEP
        while needed / step < most and _turns(joint, meter, x, scale, np.array([axis]), step)[0] > ROUGH_TURNS:
            step /= 2
        needed *= STARTS_PER_TURN / step
    return int(min(needed, most))


def seems_concave(joint: Joint, meter: Meter, x: np.ndarray, log_joint: np.ndarray, rng: np.random.Generator) -> bool:
    r"""Whether no pair of draws contradicts a concave ln J: $\ln J(\frac12 (x + y)) \ge \frac12 (\ln J(x) + \ln J(y))$."""
    other = rng.permutation(len(x))
    for rows in np.array_split(np.arange(len(x)), max(len(x) // BATCH, 1)):
        pairs = rows[np.isfinite(log_joint[rows]) & np.isfinite(log_joint[other[rows]])]
        middle = 0.5 * (x[pairs] + x[other[pairs]])
        ends = 0.5 * (log_joint[pairs] + log_joint[other[pairs]])
        there = meter.likelihood(joint, middle) + joint.space.log_prior_at(middle)
        if not np.all(there >= ends - CONCAVE_TO * np.abs(ends)):
            return False
    return True


def stratified(joint: Joint, n: int, axes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """About `n` prior draws that are spread evenly along some axes: from each of n cells of equal probability, one.

    Cells are halved along each axis in turn, at the median of many draws.
    """
    halvings = int(np.log2(max(n, 1)))
    cells = joint.space.sample_prior(rng, STRATUM * 2**halvings)[None]
    for k in range(halvings):
        order = np.argsort(cells[..., axes[k % len(axes)]], axis=1, kind="stable")
        cells = np.take_along_axis(cells, order[..., None], axis=1).reshape(2 * len(cells), -1, cells.shape[-1])
    return cells[np.arange(len(cells)), rng.integers(STRATUM, size=len(cells))]


def standing_out(joint: Joint, x: np.ndarray, log_likelihood: np.ndarray, most: int) -> np.ndarray:
    r"""Rows of the draws whose ln L a quadratic through all of them explains least, beside draws for which it is as high.

    The quadratic is of the user's parameters, in which a normal likelihood is one. In the basin of a narrow mode ln L is far
    above that of its wide neighbour, however low it stands.
    """
    seen = np.flatnonzero(np.isfinite(log_likelihood))
    height, n = log_likelihood[seen], len(seen)
    y = np.concatenate([np.reshape(part, (n, -1)) for part in joint.space.values_at(x[seen]).values()], axis=1)
    y = (y - y.mean(axis=0)) / np.maximum(y.std(axis=0), 1e-300)
    i, k = np.triu_indices(y.shape[1])
    terms = np.concatenate([np.ones((n, 1)), y, y[:, i] * y[:, k]], axis=1)
    if n < 2 * max(terms.shape[1], BESIDE):
        return seen[:0]
    fitted = height >= np.quantile(height, 1 - EXPLAINED)
    for _ in range(TRIMS):  # without those that it does not explain
        expected = terms @ np.linalg.lstsq(terms[fitted], height[fitted], rcond=None)[0]
        off = np.abs(height - expected)
        fitted = off <= np.quantile(off, EXPLAINED)
    order, left = np.argsort(-expected, kind="stable"), height - expected
    first = np.clip(np.arange(n) - BESIDE, 0, n - 2 * BESIDE - 1)
    beside = left[order][first[:, None] + np.arange(2 * BESIDE + 1)]
    low, middle, high = np.quantile(beside, [0.25, 0.5, 0.75], axis=1)
    above = (left[order] - middle) / np.maximum(high - low, 1e-9)
    return seen[order[np.argsort(-above, kind="stable")[:most]]]


def race(climber: Climber, starts: np.ndarray, held: np.ndarray, rng: np.random.Generator, fixed: Any = None) -> list:
    """(point, ln J) of the tops of those that are left of many climbs; what is `fixed` moves only at the end."""
    last = max(len(starts) // RACE_LAST, BATCH)
    climbs = Climbs.begun(climber.holding(held if fixed is None else held | fixed), starts)
    while len(climbs.y) > last:
        climbs.go(RACE_LAP)
        climbs = climbs.kept(np.argsort(-climbs.value, kind="stable")[: max(len(climbs.y) // 2, last)])
    if not held.any():
        climbs.go(ITERATIONS)
        return climbs.tops() if fixed is None else climber.climb(climbs.x)
    left = []
    while len(climbs.y):
        for _ in range(RACE_GENERATIONS):
            climbs = climbs.higher(_children(climbs, held, rng))
        half = len(climbs.y) // 2 if len(climbs.y) > RACE_LAST else 0
        order = np.argsort(-climbs.value, kind="stable")
        left.append(climbs.x[order[half:]])
        climbs = climbs.kept(order[:half])
    return climber.climb(np.concatenate(left))


def _children(climbs: Climbs, held: np.ndarray, rng: np.random.Generator) -> Climbs:
    """One of each, displaced on any scale in what is held, and climbed in the rest from where its parent stands."""
    n = len(climbs.y)
    size = np.exp(rng.uniform(np.log(NEARBY), 0.0, (n, 1)))
    some = rng.random((n, held.sum())) < rng.choice([0.5, 1.0], (n, 1))
    y = climbs.y.copy()
    y[:, held] += size * rng.standard_normal((n, held.sum())) * some
    children = Climbs.begun(climbs.climber, climbs.climber.centre + climbs.climber.scale * y)
    children.go(RACE_LAP)
    return children
