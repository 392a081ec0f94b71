"""First calls: the models in a common order of parameters, some prior draws of each, and what a call costs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from supermodel.engine.explore import Known
from supermodel.engine.meter import Meter
from supermodel.engine.policy import BATCH, SMALL_SHARE
from supermodel.models.joint import Joint
from supermodel.models.model import Model
from supermodel.models.space import Space
from supermodel.models.unread import unread

WITH_GRADIENT = 3.0  # times what a value costs that a value with its gradient does, about


def canonical(models: Mapping[str, Model], data: Any) -> list[Joint]:
    """The models with their parameters in one common order: those that most models have first, then by name."""
    counts: dict[str, int] = {}
    for model in models.values():
        for name in model.space.names:
            counts[name] = counts.get(name, 0) + 1
    found = []
    for name, model in models.items():
        joint = Joint(name, model.reordered(sorted(model.space.names, key=lambda p: (-counts[p], p))), data)
        if not joint.is_traceable and isinstance(joint.space, Space):
            joint = Joint(name, joint.model.with_space(joint.space.with_gaussian_tails()), data)
        found.append(joint)
    return found


def probe(models: Mapping[str, Model], data: Any, seed: int, meter: Meter) -> list[tuple[Joint, Known]]:
    """Prior draws of every model with ln L there, in the order in which the models are taken."""
    joints = canonical(models, data)
    # A budget that does not hold a batch of every model holds a smaller one.
    n = int(np.clip(meter.room // (8 * len(joints)), 8, BATCH))
    probed = [(j, j.probe(np.random.default_rng(seed), n, partial(_in_parts, meter, j))) for j in joints]
    # Models are taken in an order that depends on what they say, not on how they are listed or named:
    # swapping two models then flips the sign of ln B to the last bit.
    return sorted(probed, key=lambda item: (item[0].dimension, tuple(item[1][1])))


def _in_parts(meter: Meter, joint: Joint, points: np.ndarray) -> np.ndarray:
    """In four parts: what the quickest of several calls costs, a busy machine leaves as it is."""
    return np.concatenate([meter.likelihood(joint, part) for part in np.array_split(points, 4)])


def pace(probed: list[tuple[Joint, Known]]) -> float:
    """Processor seconds a call of the slowest model, of a traced one with its gradient; 0 where none has been timed."""
    each = [joint.pace * (WITH_GRADIENT if joint.is_traceable else 1.0) for joint, _ in probed]
    return max((seconds for seconds in each if np.isfinite(seconds)), default=0.0)


def unread_of(probed: list[tuple[Joint, Known]], meter: Meter) -> dict[str, tuple[str, ...]]:
    """The parameters that ln L of a model does not depend on; a black box is asked where that is a small part of the budget."""
    found = {}
    for joint, (points, values) in probed:
        affordable = meter.affords(1 + len(joint.space.names), SMALL_SHARE)
        ask = partial(meter.likelihood, joint) if affordable else None
        found[joint.name] = unread(joint, points, values, ask)
    return found
