"""Scalar priors of one family as one vector prior: a hundred named numbers at the price of one array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.models.families import Member, member_of
from supermodel.models.priors import Bijected

ALIKE = 8  # scalars of one family from which on they are taken together: fewer cost little one by one


class Bundle(NamedTuple):
    """Parameters that are taken together, the places of their coordinates, and their joint prior."""

    names: tuple[str, ...]
    places: np.ndarray | slice
    prior: Bijected


@in_float64
def bundles(priors: Mapping[str, Any], slices: Mapping[str, slice]) -> list[Bundle]:
    """Those scalars of a space that are alike."""
    families: dict[str, dict[str, Member]] = {}
    for name, prior in priors.items():
        member = member_of(prior.distribution) if isinstance(prior, Bijected) and prior.shape == () else None
        # A row with its own reader or builder stands for a class that is more than it, and may want numbers, no arrays.
        if member is not None and member.family.read is None and member.family.build is None:
            families.setdefault(member.name, {})[name] = member
    return [_bundle(kind, members, slices) for kind, members in families.items() if len(members) >= ALIKE]


def _bundle(kind: str, members: Mapping[str, Member], slices: Mapping[str, slice]) -> Bundle:
    of_one = next(iter(members.values())).arguments
    stacked = {a: np.array([float(member.arguments[a]) for member in members.values()]) for a in of_one}
    places = np.array([slices[name].start for name in members])
    span = slice(int(places[0]), int(places[-1]) + 1)  # XLA compiles it faster than a list of places
    prior = Bijected(Member(kind, stacked).build(), f"{len(members)} {kind}")
    neighbours = np.array_equal(places, np.arange(span.start, span.stop))
    return Bundle(tuple(members), span if neighbours else places, prior)
