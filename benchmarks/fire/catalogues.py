"""The two trials: shapes that we made (`fire`) and problems that scientists bring (`sky`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import fire, sky
from benchmarks.fire.problem import Problem

RESULTS = Path(__file__).resolve().parents[1] / "results"


@dataclass(frozen=True)
class Trial:
    """Names in the order of the table, and the problem of a name and a seed."""

    name: str
    names: tuple[str, ...]
    problem: Callable[[str, int], Problem]
    tuned: frozenset[str] = frozenset()

    @property
    def results(self) -> Path:
        return RESULTS / f"{self.name}.jsonl"


TRIALS = {
    "fire": Trial("fire", tuple(fire.CATALOGUE), fire.problem),
    "sky": Trial("sky", tuple(sky.FAMILIES), sky.problem, sky.TUNED),
}


def problem_of(trial: str, name: str, seed: int) -> Problem:
    return TRIALS[trial].problem(name, seed)
