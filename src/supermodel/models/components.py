"""Numbers that may belong to components: by their names, their places in arrays, and their priors."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from supermodel.models.symmetry import Entry, is_simplex, places


class Column(NamedTuple):
    """The same number in each of k components."""

    label: str
    entries: tuple[Entry, ...]


Family = list[Column]  # columns that cannot be moved apart: those of one array


def families_of(space: Any, left_out: Sequence[str]) -> list[Family]:
    """Columns that belong together by their names: along one axis of an array, or of one stem (`P1`, `P2`); else of one prior."""
    families: list[Family] = []
    scalars = [n for n in space.names if tuple(space.priors[n].shape) == () and n not in left_out]
    for name in space.names:
        shape = tuple(space.priors[name].shape)
        if name in left_out or not (places(space, name) is not None or is_simplex(space, name)):
            continue
        for axis, length in enumerate(shape):
            if length > 1:
                rest = itertools.product(*(range(n) for i, n in enumerate(shape) if i != axis))
                families.append(
                    [Column(name, tuple((name, (*r[:axis], i, *r[axis:])) for i in range(length))) for r in rest]
                )
    stems: dict[str, dict[str, str]] = {}
    for name in scalars:
        for stem, label in splits(name):
            stems.setdefault(stem, {})[label] = name
    for stem, members in stems.items():
        if len(members) > 1:
            families.append([Column(stem, tuple((members[label], ()) for label in sorted(members, key=_rank)))])
    named = {e for family in families for column in family for e in column.entries}
    by_prior: dict[str, list[Entry]] = {}
    for name in scalars:  # without a number in their names: in the order in which they stand
        if (name, ()) not in named:
            by_prior.setdefault(f"{type(space.priors[name]).__name__} {space.priors[name].description}", []).append(
                (name, ())
            )
    return families + [[Column(e[0][0], tuple(e))] for e in by_prior.values() if len(e) > 1]


def splits(name: str) -> Iterator[tuple[str, str]]:
    """A name without one of its numbers, or without the letter after its last mark, that tells components apart."""
    for found in re.finditer(r"\d+", name):
        yield f"{name[: found.start()]}#{name[found.end() :]}", found[0]
    letter = re.fullmatch(r"(.+[_.])([A-Za-z])", name)
    if letter:
        yield f"{letter[1]}#", letter[2]


def _rank(label: str) -> tuple[int, str]:
    return (int(label), "") if label.isdigit() else (0, label)
