"""Cycles of edges: a direct edge of two models must agree with the way round through the reference, which holds the prior."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supermodel.engine.arm import Arm
from supermodel.engine.policy import CLOSED, CLOSING_ERROR, HOPELESS


def cycles(arms: Sequence[Arm]) -> list[tuple[Arm, Arm, Arm]]:
    """(direct edge, the two edges of its models to the reference) of every direct edge on the tree."""
    to_reference = {arm.first: arm for arm in arms if arm.second is None}
    return [
        (arm, to_reference[arm.first], to_reference[arm.second])
        for arm in arms
        if arm.second is not None and arm.is_used and _vouches(to_reference, arm)
    ]


def _vouches(to_reference: dict[int, Arm], arm: Arm) -> bool:
    """Whether the way round goes through references that hold the prior: others may be cut off like the direct edge."""
    ends = [to_reference.get(arm.first), to_reference.get(-1 if arm.second is None else arm.second)]
    references = [None if end is None else end.edge.pair.reference for end in ends]
    return all(reference is not None and reference.prior_share > 0 for reference in references)


def close_cycles(arms: Sequence[Arm]) -> None:
    """A direct edge that disagrees with the way through the reference is not used."""
    for direct, first, second in cycles(arms):
        around = first.report.value - second.report.value
        error = float(np.hypot(first.report.error, second.report.error))
        if error > CLOSING_ERROR:  # not known well enough to tell
            continue
        if not abs(direct.report.value - around) <= CLOSED * np.hypot(error, direct.report.error):
            direct.is_used = False
            first.is_used = second.is_used = True


def open_cycle(arms: Sequence[Arm]) -> Arm | None:
    """The edge to the reference that keeps a direct edge from being checked."""
    for _, first, second in cycles(arms):
        if not np.hypot(first.report.error, second.report.error) <= CLOSING_ERROR:
            worse = max((first, second), key=lambda arm: arm.report.error)
            if worse.report.n_draws < HOPELESS:
                return worse
    return None
