r"""Points that stand higher than the hill that was found lets expect: is another hill behind them?

At equal distance $r$ from the fitted Gaussian, $\ln J$ of a single hill varies with the direction only. The points that stand
out furthest from the others at their distance are asked: on the straight way to the summit $J$ must rise. Where it falls
first, a valley lies between, and points are drawn about them on all scales, for whatever road comes next.
"""

from __future__ import annotations

import numpy as np

from supermodel.embedding.reference import joined, one_hill
from supermodel.embedding.warp import Warp, identity
from supermodel.engine.explore.cloud import Cloud, Warped

ASKED = 8  # points that stand out, and as many others
ON_THE_WAY = np.array([0.02, 0.1, 0.4])  # shares of the way to the summit
NEIGHBOURS = 12  # in distance, on either side, that a point is compared with
SCALES = 12  # halvings of its distance from the summit at which a suspect's surroundings are drawn from
ABOUT = 48  # draws about all suspects
LEVEL = 1e-6  # of |ln J|: what counts as equal


def follow(cloud: Cloud, warp: Warp, rng: np.random.Generator, dof: float) -> int:
    """Draw about the points that a valley parts from the summit; how many there were."""
    found = suspects(cloud, warp)
    if len(found):
        distance = np.linalg.norm((found - warp.mean) / np.diagonal(warp.factor), axis=1)
        hills = [
            (1.0, one_hill(x, np.diag(r * np.diagonal(warp.factor) * 0.5**k), dof))
            for x, r in zip(found, distance, strict=True)
            for k in range(1, SCALES)
        ]
        cloud.grow(Warped(identity(len(warp.mean)), joined(hills)), ABOUT, rng)
    return len(found)


def suspects(cloud: Cloud, warp: Warp) -> np.ndarray:
    """The outliers of a cloud from whose place the way to the summit goes down first."""
    log_joint = cloud.log_likelihood + cloud.log_prior
    rows = outliers(np.linalg.norm(warp.inverse(cloud.x), axis=1), log_joint)
    if not len(rows):
        return cloud.x[:0]
    start = cloud.x[rows]
    way = (start[:, None] + ON_THE_WAY[:, None] * (warp.mean - start[:, None])).reshape(-1, cloud.x.shape[1])
    value = (cloud.evaluate(way) + cloud.joint.space.log_prior_at(way)).reshape(len(rows), -1)
    here = log_joint[rows]
    falls = np.min(value, axis=1) < here - LEVEL * np.abs(here)
    return start[falls]


def outliers(distance: np.ndarray, log_joint: np.ndarray) -> np.ndarray:
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
    return np.unique(np.concatenate([ranked[:ASKED], ranked[ASKED :: max((n - ASKED) // ASKED, 1)][:ASKED]]))
