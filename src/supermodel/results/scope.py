"""Which models of a comparison stand: what a finding forbids is what rests on it, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison


def by_evidence(result: Comparison) -> list[str]:
    """The names, largest evidence first; one whose evidence is unknown comes last."""
    values = np.where(np.isnan(result.evidences.values), -np.inf, result.evidences.values)
    return [result.names[k] for k in np.argsort(-values, kind="stable")]


def weighed(result: Comparison) -> tuple[str, ...]:
    """The largest set of models of which every two have an ln B that can be used; () where no two have.

    Of sets as large as each other that with the largest evidence. A lone model stands if its ln Z does.
    """
    if len(result.names) == 1:
        return result.names if result.verdict.is_reliable else ()
    sets: list[list[str]] = []
    for name in by_evidence(result):
        fitting = (some for some in sets if all(result.verdict_between(name, other).is_reliable for other in some))
        found = next(fitting, None)
        if found is None:
            sets.append([name])
        else:
            found.append(name)
    largest = max(sets, key=len)
    return tuple(name for name in result.names if name in largest) if len(largest) > 1 else ()
