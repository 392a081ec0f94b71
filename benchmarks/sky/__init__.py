"""ln Z of the problems that scientists bring: {name: generator(data_seed)}, every one with its truth.

`python -m benchmarks sky`. Families in TUNED may be looked at while the engine is built; the others only report.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.fire.problem import Problem
from benchmarks.sky import lines, planets, populations, regressions, series, signals

FAMILIES: dict[str, Callable[[int], Problem]] = {
    name: family
    for module in (planets, signals, lines, series, populations, regressions)
    for name, family in module.FAMILIES.items()
}  # fmt: skip

TUNED: frozenset[str] = frozenset({
    "planet_circular", "planet_strong_jitter", "change_point", "spectral_line", "outlier_line", "normal_mixture_2",
    "hierarchy_noncentred", "transit_box",
})  # fmt: skip


def problem(name: str, seed: int) -> Problem:
    """The seed makes the data, and the random numbers of the run."""
    return FAMILIES[name](seed)
