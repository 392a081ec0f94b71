r"""A race: thousands of climbs from the prior, in which coordinates that turn too often to be climbed are searched instead.

Let $s$ be those coordinates (a period, the place of a line, a step in time) and $t$ the others. A climb in all of them seldom ends on
a needle of $s$, for $s$ leaves its basin before $t$ fits. So $s$ is held at stratified draws of the prior while
$t$ climbs to the profile $\max_t \ln J(s, t)$; the better half goes on, each bears a child nearby in $s$, and takes its place if
that is higher. In the end all coordinates climb.
"""

from __future__ import annotations

import numpy as np

from supermodel.engine.explore.climb import ITERATIONS, Climber, Climbs
from supermodel.engine.explore.cloud import Cloud
from supermodel.engine.meter import Meter
from supermodel.engine.policy import BATCH, RACE_GENERATIONS, RACE_LAP, RACE_LAST, ROUGH_STEP, ROUGH_TURNS
from supermodel.models.joint import Joint


def rough(joint: Joint, meter: Meter, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    r"""Which coordinates turn too often to be climbed, (d,): steps of h up and again h up do not lead the same way.

    On ground that is smooth at scale h, $\ln L(x + h) - \ln L(x)$ and $\ln L(x + 2h) - \ln L(x + h)$ have one sign; on a plateau they are
    zero, and a slope leads nowhere either.
    """
    n, d = x.shape
    steps = ROUGH_STEP * np.array([0.0, 1.0, 2.0, 4.0])  # pairs of steps of h and of 2 h
    points = x[:, None, None] + steps[:, None] * np.diag(scale)[:, None]  # (n, d, 4, d)
    value = meter.likelihood(joint, points.reshape(-1, d)).reshape(n, d, 4)
    turns = [(b - a) * (c - b) for a, b, c in (value[..., :3].T[:, :, :], value[..., [0, 2, 3]].T)]
    share = np.mean([np.where(np.isfinite(turn), ~(turn > 0), False).mean(axis=1) for turn in turns], axis=0)
    return share > ROUGH_TURNS


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


STRATUM = 8  # draws of the prior that stand for a cell, one of which is taken


def race(climber: Climber, starts: np.ndarray, held: np.ndarray, rng: np.random.Generator) -> list:
    """(point, ln J) of the tops of those that are left of many climbs."""
    last = max(len(starts) // RACE_LAST, BATCH)
    climbs = Climbs.begun(climber.holding(held), starts)
    while len(climbs.y) > last:
        climbs.go(RACE_LAP)
        climbs = climbs.kept(np.argsort(-climbs.value, kind="stable")[: max(len(climbs.y) // 2, last)])
    if not held.any():
        climbs.go(ITERATIONS)
        return climbs.tops()
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
    size = np.exp(rng.uniform(np.log(SMALLEST), 0.0, (n, 1)))
    some = rng.random((n, held.sum())) < rng.choice([0.5, 1.0], (n, 1))
    y = climbs.y.copy()
    y[:, held] += size * rng.standard_normal((n, held.sum())) * some
    children = Climbs.begun(climbs.climber, climbs.climber.centre + climbs.climber.scale * y)
    children.go(RACE_LAP)
    return children


SMALLEST = 1e-4  # widths of the prior
