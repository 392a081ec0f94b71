"""A posterior that is plain: normal to rounding, or smooth to a quadratic that may be bent."""

from __future__ import annotations

from typing import Any

import numpy as np

from supermodel.engine.explore.bent import fit_bent
from supermodel.engine.explore.cloud import Cloud, Prior
from supermodel.engine.explore.quadratic import fitted_quadratic
from supermodel.engine.explore.scout import Scout
from supermodel.engine.policy import BATCH, EXACT, SMOOTH, SMOOTH_BENT
from supermodel.engine.whiten import spread

CROWDED = 10.0  # widths of a cloud's highest points within which its posterior is
# Times the draws of a level that must be normal to rounding as well, before a posterior is taken for that: of up to four
# parameters, and of more, where a mode apart is a smaller part of the prior.
FAR_DRAWS = (12, 48)
HELD_IN = 0.7  # of the points that bends are fitted to; the others judge them


def through_all(cloud: Cloud) -> Any:
    """The quadratic through all points of a cloud, which may be crowded about its summit."""
    return fitted_quadratic(cloud.x, cloud.log_joint, np.exp(cloud.log_joint - cloud.log_joint.max()), CROWDED, CROWDED)


def is_exact(cloud: Cloud, warp: Any) -> bool:
    """Whether the warp makes ln J a normal law's to rounding, at every point of the cloud.

    Rounding grows with ln J, so each point is held to its own: a draw of the prior at -1e16 would else excuse all others, and so
    would a centre so far away that distances from it have no digits left.
    """
    log_joint = cloud.log_joint
    if not np.all(np.isfinite(log_joint)):
        return False
    scale = np.sqrt(np.maximum(np.abs(log_joint), 1.0))
    fall = 0.5 * np.sum(warp.inverse(cloud.x) ** 2, axis=1)
    off = (log_joint + fall - (log_joint + fall)[np.argmax(log_joint)]) / scale
    has_digits = np.all(np.finfo(float).eps * fall < EXACT * scale)
    return bool(has_digits and np.sqrt(np.mean(off**2)) < EXACT)


def is_smooth(cloud: Cloud, rng: np.random.Generator) -> bool:
    """Whether the quadratic through all points leaves little of the posterior unexplained, or bends of it still less."""
    warp, seen = through_all(cloud), np.isfinite(cloud.log_weights())
    if warp is None:
        return False
    x, log_joint, root = cloud.x[seen], cloud.log_joint[seen], np.sqrt(cloud.joint.dimension)
    weight = np.exp(cloud.log_weights()[seen] - cloud.log_weights().max())
    if spread(log_joint, x, warp, weight) < SMOOTH * root:
        return True
    fitted = rng.random(len(x)) < HELD_IN
    bent = fit_bent(x[fitted], weight[fitted], log_joint[fitted], warp)
    held = ~fitted
    return spread(log_joint[held], x[held], bent, weight[held]) < SMOOTH_BENT * root


def look_far(scout: Scout, cloud: Cloud, rng: np.random.Generator, net: np.random.Generator) -> None:
    """Further draws of the prior, and a net over the hill that is known, before nothing else is believed to be there."""
    n = max(scout.effort.second, BATCH // 2)
    cloud.grow(Prior(scout.joint), (2 if scout.effort.is_thrifty else FAR_DRAWS[scout.joint.dimension > 4]) * n, rng)
    if scout.modes:
        scout.probe(cloud, net)
