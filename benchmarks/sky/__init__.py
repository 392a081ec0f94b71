"""ln Z of the problems that scientists bring: {name: generator(data_seed)}, every one with its truth."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.fire.problem import Problem
from benchmarks.sky import lines, populations, regressions, series, signals

FAMILIES: dict[str, Callable[[int], Problem]] = {
    name: family
    for module in (signals, lines, series, populations, regressions)
    for name, family in module.FAMILIES.items()
}  # fmt: skip

TUNED: frozenset[str] = frozenset({
    "planet_circular", "planet_strong_jitter", "change_point", "spectral_line", "outlier_line", "normal_mixture_2",
    "hierarchy_noncentred", "transit_box",
})  # fmt: skip
