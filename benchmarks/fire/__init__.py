"""Trial by fire: hard problems with exact answers, run by this library and by its peers. `python -m benchmarks fire`."""

from __future__ import annotations

from benchmarks.fire import edges, hierarchies, joint_priors, modes, pairs, shapes
from benchmarks.fire.problem import Problem

CATALOGUE: dict[str, Problem] = {
    problem.name: problem
    for module in (pairs, modes, shapes, edges, joint_priors, hierarchies)
    for problem in module.PROBLEMS
}  # fmt: skip


def problem(name: str, seed: int) -> Problem:
    """The same for every seed: what differs is the random numbers of the run."""
    return CATALOGUE[name]
