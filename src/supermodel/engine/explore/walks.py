r"""Walks uphill from the points that stand out: do they lead to the hill that is known, or to another?

In the coordinates $u$ of a fitted Gaussian the hill that is known is $N(0, I)$, and a Newton step from $u$ is about
$u + \nabla \ln J$. The gradient is taken by differences, the step by a parabola along it: about d + 2 calls. From the points
that stand highest above others at their distance, and from some others, a few such steps lead home, or they end elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supermodel.embedding.reference import joined, one_hill
from supermodel.embedding.warp import Warp
from supermodel.engine.explore.cloud import Cloud, Warped

OUTLIERS, OTHERS = 4, 2  # walkers that start at points which stand out, and at others
STEPS = 10  # of a walk
LEAST_TRIALS, TRIALS = 3, 8  # lengths of a step that are tried; while none leads up
SMALL = 0.03  # widths of the hill: the difference that a gradient is taken by
LONGEST = 30.0  # times a Newton step
NEIGHBOURS = 12  # in distance, on either side, that a point is compared with
HOME = 2.5  # standard deviations of the hill, within which a walker is at home: nearer ones are covered by it
NOTHING = 15.0  # nats, and one for each parameter, below the summit: what ends there is no mode that counts
FAR = np.array([3.0, 4.5, 6.0, 8.0, 10.5, 13.5])  # standard deviations along a line,
BETWEEN = np.array([1.5, 1.5, 1.75, 2.25, 2.75, 3.0])  # and how much of it each stands for
BESIDE = 0.1  # share of the mass on a line beyond the hill that is no tail any more (of a normal law's: 0.024)
WAY = np.array([1.0, 0.8, 0.6, 0.4, 0.2])  # of the way from an end to the summit, where a valley is looked for
DIP = 0.1  # nats: the least valley
SCALES = 12  # halvings of a suspect's distance from the summit at which its surroundings are drawn from
ABOUT = 48  # draws about all suspects


def follow(cloud: Cloud, warp: Warp, rng: np.random.Generator, dof: float) -> int:
    """Draw about the ends of walks that did not lead to the known hill; how many there were."""
    ends = elsewhere(cloud, warp)
    if len(ends):
        cloud.grow(about(ends, warp, dof), ABOUT, rng)
    return len(ends)


def about(ends: np.ndarray, warp: Warp, dof: float) -> Warped:
    """Hills of all widths about the ends of walks, in the coordinates of a warp, up to half their distance from its middle."""
    far, unit = np.linalg.norm(ends, axis=1), np.eye(ends.shape[1])
    places = [(u, r * 0.5**k) for u, r in zip(ends, far, strict=True) for k in range(1, SCALES)]
    return Warped(warp, joined([(1.0, one_hill(u, width * unit, dof)) for u, width in places]))


def elsewhere(cloud: Cloud, warp: Warp) -> np.ndarray:
    """Where walks ended, in the coordinates of the hill, that are neither at home nor so low that they do not count."""
    log_joint = cloud.log_joint
    u = warp.inverse(cloud.x)
    rows = starts(np.linalg.norm(u, axis=1), log_joint)
    if not len(rows):
        return u[:0]

    height = heights(cloud, warp)
    summit = float(height(np.zeros((1, u.shape[1])))[0])
    beside = shoulders(warp, height, summit)
    if len(beside):
        return beside
    ends, tops = walk(u[rows], log_joint[rows], height)
    ends = ends[~at_home(ends) & (tops > max(summit, log_joint.max()) - NOTHING - u.shape[1])]
    return ends[_is_beyond_valley(ends, np.zeros_like(ends), np.full(len(ends), summit), height)]


def heights(cloud: Cloud, warp: Warp) -> Callable:
    """ln J in the coordinates of a warp."""

    def height(at: np.ndarray) -> np.ndarray:
        x = warp.points(at)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(cloud.evaluate(x) + cloud.joint.space.log_prior_at(x), nan=-np.inf)

    return height


def _is_beyond_valley(ends: np.ndarray, summits: np.ndarray, tops: np.ndarray, height: Callable) -> np.ndarray:
    """Which are parted from a summit: whoever is still on the way up, or on a ridge, sees it with nothing lower between."""
    if not len(ends):
        return np.zeros(0, bool)
    way = summits[:, None] + WAY[:, None] * (ends - summits)[:, None]
    between = height(way.reshape(-1, ends.shape[1])).reshape(len(ends), -1)
    return np.any(np.diff(np.append(between, tops[:, None], axis=1), axis=1) < -DIP, axis=1)


def shoulders(warp: Warp, height: Callable, summit: float) -> np.ndarray:
    r"""Points beyond the reach of the hill, along some parameter, where more than `BESIDE` of the mass on that line seems to be.

    On the line of the most probable points for a given $x_i$, at k standard deviations, a normal law falls as $e^{-k^2/2}$.
    """
    rows = np.asarray(warp.factor)
    lines = rows / np.linalg.norm(rows, axis=1, keepdims=True)  # unit vectors in u
    far = np.concatenate([FAR, -FAR])
    u = (lines[:, None] * far[:, None]).reshape(-1, len(lines))
    with np.errstate(over="ignore"):
        mass = np.exp(height(u) - summit).reshape(len(lines), -1) * np.tile(BETWEEN, 2)
    share = mass.sum(axis=1) / (mass.sum(axis=1) + np.sqrt(2 * np.pi))
    found = (share[:, None] > BESIDE) & (mass >= 0.1 * mass.sum(axis=1, keepdims=True))
    return u[found.ravel()]


def at_home(u: np.ndarray) -> np.ndarray:
    """Whether walkers have come to the summit of N(0, I)."""
    return np.linalg.norm(u, axis=1) < HOME


def walk(u: np.ndarray, value: np.ndarray, height: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Newton steps of all walkers at once, each until it is home or rises no further: where they end, and how high."""
    u, value, d = u.copy(), value.copy(), u.shape[1]
    going = ~at_home(u)
    for _ in range(STEPS):
        rows = np.flatnonzero(going)
        if not len(rows):
            break
        near = u[rows, None] + SMALL * np.eye(d)
        slope = (height(near.reshape(-1, d)).reshape(len(rows), d) - value[rows, None]) / SMALL
        slope = np.where(np.isfinite(slope), slope, 0.0)
        size, best, at = np.ones(len(rows)), value[rows], u[rows]
        steep = np.sum(slope**2, axis=1)
        for trials in range(TRIALS):  # a Newton step, and the summits of the parabolas through what it found
            now = np.flatnonzero((trials < LEAST_TRIALS) | (best <= value[rows]))
            if not len(now):
                break
            trial, before = u[rows[now]] + size[now, None] * slope[now], size[now]
            found = height(trial)
            higher = found > best[now]
            best[now], at[now] = np.where(higher, found, best[now]), np.where(higher[:, None], trial, at[now])
            bend = 2 * (value[rows[now]] + before * steep[now] - found) / before**2  # of the parabola along the slope
            with np.errstate(divide="ignore", invalid="ignore"):
                summit = np.where(bend > 0, steep[now] / bend, 2 * before)
            size[now] = np.clip(np.where(np.isfinite(found), summit, 0.1 * before), 0.01 * before, LONGEST * before)
        gain = best - value[rows]
        u[rows], value[rows] = at, best
        going[rows] = (gain > 0.5) & ~at_home(at)
    return u, value


def starts(distance: np.ndarray, log_joint: np.ndarray) -> np.ndarray:
    """Rows of the points that stand highest above the others at their distance, in their spreads, and of a few others."""
    order = np.argsort(distance, kind="stable")
    order = order[np.isfinite(log_joint[order])]
    if len(order) <= NEIGHBOURS:
        return order[:0]
    heights, n = log_joint[order], len(order)
    first = np.clip(np.arange(n) - NEIGHBOURS, 0, max(n - 2 * NEIGHBOURS - 1, 0))
    near = heights[np.minimum(first[:, None] + np.arange(2 * NEIGHBOURS + 1), n - 1)]
    low, middle, high = np.quantile(near, [0.25, 0.5, 0.75], axis=1)
    above = (heights - middle) / np.maximum(high - low, 1e-9)
    ranked = order[np.argsort(-above, kind="stable")]
    others = ranked[OUTLIERS :: max((n - OUTLIERS) // OTHERS, 1)][:OTHERS]
    return np.unique(np.concatenate([ranked[:OUTLIERS], others]))
