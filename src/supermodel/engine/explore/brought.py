"""Posterior draws that the user brought: they spare the search, and cannot bias the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from supermodel.engine.explore.pilot import Look, Pilot, fitted_reference
from supermodel.engine.meter import Meter
from supermodel.engine.policy import BATCH, Effort
from supermodel.models.joint import Joint

KEPT = 512  # draws at which the density is asked for


def look_at_brought(
    joint: Joint, known: Any, seed: int, stream: int, meter: Meter, effort: Effort, smaller: Pilot | None = None
) -> Pilot:
    """The reference fitted to draws from elsewhere."""
    rng, since = np.random.default_rng([seed, stream]), meter.evaluations - len(known[0])
    given: Any = joint.model.pilot_points
    rows = rng.permutation(len(next(iter(given.values()))))[:KEPT]
    points = joint.space.points_of({name: np.asarray(given[name])[rows] for name in joint.space.names})
    points = points[np.all(np.isfinite(points), axis=1)]
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        log_joint = meter.likelihood(joint, points) + joint.space.log_prior_at(points)
        weight = np.where(np.isfinite(log_joint), 1.0, 0.0)
        fit = fitted_reference(joint, points, weight, log_joint, rng)
    few = np.flatnonzero(weight)[np.arange(BATCH) % int(weight.sum())]
    look = Look("chains brought along", float("nan"), float("nan"), meter.evaluations - since)
    return Pilot(joint, fit.warp, fit.reference, points[few], log_joint[few], fit.spread, [look])
