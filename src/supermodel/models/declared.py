"""What a model's user says of its symmetries, `exchangeable=` and `periodic=`, checked against its priors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from supermodel.errors import ModelError, suggestion
from supermodel.models.circle import is_round, turn_of
from supermodel.models.space import Space
from supermodel.models.symmetry import Canonical, Entry, Exchange, exchanges_prior, is_simplex, places

TRIED = 4  # prior draws at which exchanged priors are compared
Declared = tuple[Exchange | Canonical, ...]

HOW = (
    'Write blocks of one length, e.g. exchangeable=[("P1", "K1"), ("P2", "K2")] or [("f[0]", "A[0]"), ("f[1]", "A[1]")]; names '
    'of arrays whose first axis counts components, e.g. ["f", "A"]; several such lists in a list; a Canonical form; or False.'
)


def exchangeable(space: Any, given: Any) -> Declared | bool | None:
    """The declared exchanges; None: they are looked for; False: nothing is."""
    if given is None or given is False:
        return given
    if isinstance(given, Canonical):
        return (given,)
    if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
        raise ModelError(f"`exchangeable` is {given!r}. {HOW}")
    if not isinstance(space, Space):
        raise ModelError("`exchangeable` needs a prior of each parameter; this model has one joint prior.")
    depth = _depth(given)
    if depth == 3 or any(isinstance(part, Canonical) for part in given):
        parts = [exchangeable(space, part) for part in given]
        return tuple(each for part in parts for each in part)  # type: ignore[union-attr]
    if depth > 3:
        raise ModelError(f"`exchangeable` is {given!r}. {HOW}")
    blocks = _along_first_axis(space, given) if depth == 1 else _blocks(space, given)
    return (_checked(space, Exchange(tuple(blocks))),)


def _depth(given: Any) -> int:
    if isinstance(given, str | Canonical) or not isinstance(given, Sequence):
        return 0
    return 1 + max((_depth(part) for part in given), default=0)


def _along_first_axis(space: Space, names: Sequence[Any]) -> list[tuple[Entry, ...]]:
    """`["P1", "P2"]`: single numbers; `["f", "A"]`: the i-th of each array is a block."""
    whole = [entries(space, name) for name in names]
    shapes = [tuple(space.priors[name].shape) if name in space.priors else () for name in names]
    if all(shape == () for shape in shapes):
        return [tuple(each) for each in whole]
    lengths = {name: shape[0] if shape else 1 for name, shape in zip(names, shapes, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ModelError(
            f"`exchangeable`: the first axes of {names!r} have the lengths {lengths}; they must be one. {HOW}"
        )
    return [
        tuple((name, (i, *rest)) for name, shape in zip(names, shapes, strict=True) for rest in np.ndindex(*shape[1:]))
        for i in range(shapes[0][0])
    ]


def _blocks(space: Space, given: Sequence[Any]) -> list[tuple[Entry, ...]]:
    blocks = [
        tuple(e for part in ([block] if isinstance(block, str) else block) for e in entries(space, part))
        for block in given
    ]
    lengths = [len(block) for block in blocks]
    if len(set(lengths)) > 1:
        raise ModelError(
            f"`exchangeable`: the blocks of {list(given)!r} hold {lengths} numbers; they must be of one length."
        )
    return blocks


def entries(space: Space, text: Any) -> list[Entry]:
    """`P1`, `f[0]`, `W[2]` (a row) or `W[2,1]` as places of numbers."""
    found = re.fullmatch(r"(.*?)(?:\[([\d,\s]+)\])?", text) if isinstance(text, str) else None
    name = text if found is None or text in space.priors else found[1]
    if name not in space.priors:
        raise ModelError(
            f"`exchangeable` names {text!r}, which is no parameter; parameters are {', '.join(space.names) or 'none'}. "
            f"{suggestion(str(name), space.names)} {HOW}"
        )
    if places(space, name) is None and not is_simplex(space, name):
        raise ModelError(
            f"`exchangeable` names {name!r}, whose prior {space.priors[name].description} ties its numbers to each other, so that "
            "they cannot change places one by one. Declare a Canonical form instead."
        )
    shape = tuple(space.priors[name].shape)
    index = tuple(int(i) for i in found[2].split(",")) if name != text and found is not None else ()
    if len(index) > len(shape) or any(i >= n for i, n in zip(index, shape, strict=False)):
        raise ModelError(f"`exchangeable` names {text!r}, but {name!r} is of the shape {shape}; the first index is 0.")
    return [(name, (*index, *rest)) for rest in np.ndindex(*shape[len(index) :])]


def _checked(space: Space, exchange: Exchange) -> Exchange:
    flat = [entry for block in exchange.blocks for entry in block]
    if len(exchange.blocks) < 2 or len(set(flat)) < len(flat):
        raise ModelError(
            f"`exchangeable` needs at least two blocks that have nothing in common; got {_named(exchange)}. {HOW}"
        )
    x = space.sample_prior(np.random.default_rng(0), TRIED)
    if not exchanges_prior(space, x, exchange):
        priors = ", ".join(f"{name} ~ {space.priors[name].description}" for name in dict.fromkeys(n for n, _ in flat))
        raise ModelError(
            f"`exchangeable`: {_named(exchange)} have unequal priors ({priors}), so that the "
            "posterior changes when they change places. Give equal priors, or leave the declaration out."
        )
    return exchange


def _named(exchange: Exchange) -> str:
    return str(exchange).removesuffix(" are exchangeable")


def periodic(space: Any, given: Any) -> tuple[str, ...] | bool | None:
    """Names of parameters that go round; None: they are looked for; False: none does."""
    if given is None or given is False:
        return given
    if given is True:
        return tuple(name for name in space.names if turn_of(space.priors[name]) is not None)
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name not in space.names:
            raise ModelError(
                f"`periodic` names {name!r}, which is no parameter; parameters are {', '.join(space.names) or 'none'}. "
                f"{suggestion(str(name), space.names)}"
            )
        if turn_of(space.priors[name]) is None:
            raise ModelError(
                f"`periodic` names {name!r}, whose prior is {space.priors[name].description}. What goes round needs a prior that "
                "is the same at both ends of one turn: uniform over it, or VonMises. Give such a prior, or leave the name out."
            )
    return names


def circular_by_prior(space: Any) -> tuple[str, ...]:
    """Parameters whose prior is one on a circle."""
    return tuple(name for name in space.names if is_round(space.priors[name]))
