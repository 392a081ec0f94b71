"""Exploration: find all of one model's posterior before it is weighed.

An explorer takes (joint, prior draws already evaluated, seed, stream, meter, effort, pilot of the model that this one extends,
if any) and returns a `Pilot`; a new way to find a posterior is one new module and one row of `EXPLORERS`, which are tried in
turn: the first that applies serves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supermodel.engine.explore.brought import look_at_brought
from supermodel.engine.explore.growing import look_at_few
from supermodel.engine.explore.many import look_at_many
from supermodel.engine.explore.nothing import look_at_nothing
from supermodel.engine.explore.pilot import Look as Look
from supermodel.engine.explore.pilot import Pilot as Pilot
from supermodel.engine.meter import Meter
from supermodel.engine.policy import FEW, FEW_GROWN, Effort
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint

Known = tuple[np.ndarray, np.ndarray]  # prior draws and ln L there


class Explorer(NamedTuple):
    """A way to explore, and the models that it is for."""

    name: str
    applies: Callable[[Joint], bool]
    look: Callable[[Joint, Any, int, int, Meter, Effort, Pilot | None], Pilot]


EXPLORERS = (
    Explorer("nothing", lambda joint: joint.dimension == 0, look_at_nothing),
    Explorer("brought", lambda joint: joint.model.pilot_points is not None, look_at_brought),
    Explorer("few", lambda joint: joint.dimension <= (FEW if joint.model.extends is None else FEW_GROWN), look_at_few),
    Explorer("many", lambda joint: True, look_at_many),
)


@in_float64
def explore(
    joint: Joint, known: Known, seed: int, stream: int, meter: Meter, effort: Effort, smaller: Pilot | None = None
) -> Pilot:
    """Find the posterior of one model."""
    explorer = next(e for e in EXPLORERS if e.applies(joint))
    return explorer.look(joint, known, seed, stream, meter, effort, smaller)
