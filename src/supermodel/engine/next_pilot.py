"""The next model is explored, within its part of what a limited budget has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supermodel.engine.explore import Pilot, explore
from supermodel.engine.meter import Enough
from supermodel.engine.policy import EXPLORING, Effort

if TYPE_CHECKING:
    from supermodel.engine.run import Run


def next_pilot(run: Run, stream: int, effort: Effort) -> tuple[Pilot | None, str]:
    """The pilot of a model, and "".

    Where models grow, and a limit ends the exploration of a larger one before it has an answer of its own: None, and which limit;
    the smaller ones have their answers.
    """
    joint, known = run.probes[stream]
    smaller = next((p for p in run.pilots if p.name == joint.model.extends), None)
    grows, each = run.until is not None, EXPLORING / len(run.probes)
    # Of models that grow nobody knows how many will be needed: each may take its part of what the others have left.
    part = EXPLORING if grows else each / (1 - stream * each)
    try:
        with run.meter.share(part):
            pilot = explore(joint, known, run.seed, stream, run.meter, effort, smaller)
    except Enough as limit:
        if not grows or smaller is None:
            raise
        return None, str(limit)
    if grows and smaller is not None and pilot.cut_short:
        return None, pilot.cut_short
    return pilot, ""
