r"""How a symmetric posterior is folded into one labelling: by the number that tells the components best apart.

At the modes that climbs have found, two neighbours of an ordering are confused with probability $\Phi(-g / s)$, g being their
gap and s its standard deviation by the curvature. An edge through a mode would cost more than labels do: where no number keeps
the components apart, nothing is folded. Of numbers that do, the one serves that leaves the modes nearest together. Circles are
cut where the modes are least.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from supermodel.engine.explore.climb import RIVAL, Mode
from supermodel.engine.policy import CONFUSED, CUTS, CUTS_NOTHING, NOT_CONFUSED
from supermodel.models.folded import Folded
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Circle, Entry, Exchange, Reflection, Symmetry, coordinate


def folded(joint: Joint, found: Sequence[Symmetry], modes: Sequence[Mode], always: bool = False) -> Joint:
    """The model in one labelling of its components, and with its circles cut where no mode is; itself if that gains nothing."""
    if not found or not modes:
        return joint
    weights = np.exp(np.maximum([mode.log_mass for mode in modes], modes[0].log_mass - RIVAL) - modes[0].log_mass)
    modes, weights = list(modes), weights / weights.sum()
    chosen: list[Symmetry] = [_ordered(joint, s, modes, weights, always) for s in found if isinstance(s, Exchange)]
    chosen += _kept_above(joint, [s for s in found if isinstance(s, Reflection)], chosen, modes, weights)
    in_order = Folded(joint.space, chosen).in_order(np.array([mode.point for mode in modes]))
    circles = [_cut(joint, s, in_order, modes, weights) for s in found if isinstance(s, Circle)]
    chosen = [*chosen, *circles]
    return joint.folded(Folded(joint.space, chosen)) if any(s.is_used for s in chosen) else joint


def _ordered(joint: Joint, exchange: Exchange, modes: list[Mode], weights: np.ndarray, always: bool) -> Exchange:
    """By the number that keeps the blocks apart, if there is one."""
    best, order = (1, np.inf if always else CONFUSED, np.inf), -1
    for by in range(len(exchange.blocks[0])):
        at = _straight(joint, [block[by] for block in exchange.blocks])
        if at is None:
            continue
        confused = float(weights @ [_confused(mode, at) for mode in modes])
        apart = _apart(joint, exchange._replace(by=by), modes, weights)
        # Of those that never confuse, the one that gathers the modes; else the one that confuses least.
        rank = (0, apart, confused) if confused < NOT_CONFUSED else (1, confused, apart)
        if rank < best:
            best, order = rank, by
    return exchange._replace(by=order)


def _straight(joint: Joint, entries: Sequence[Entry]) -> list[int] | None:
    """The coordinates of numbers that have one each and go round no circle."""
    at = [coordinate(joint.space, entry) for entry in entries]
    return None if None in at else [int(i) for i in at if i is not None]


def _confused(mode: Mode, at: list[int]) -> float:
    """The chance that a draw of a mode has its blocks in another order than the mode."""
    factor = np.asarray(mode.warp.factor)[at]
    order = np.argsort(mode.point[at])
    gap = np.diff(mode.point[at][order])
    sd = np.linalg.norm(np.diff(factor[order], axis=0), axis=1)
    return float(1 - np.prod(1 - ndtr(-gap / np.maximum(sd, 1e-300))))


def _apart(joint: Joint, exchange: Exchange, modes: list[Mode], weights: np.ndarray) -> float:
    """Variance of the modes, in units of the prior's, when they are put in order so."""
    points = np.array([mode.point for mode in modes])
    x = Folded(joint.space, [exchange]).in_order(points)
    prior = joint.space.sample_prior(np.random.default_rng(0), 64).std(axis=0)
    return float(np.sum(weights @ ((x - weights @ x) / prior) ** 2))


def _kept_above(
    joint: Joint,
    reflections: list[Reflection],
    exchanges: Sequence[Symmetry],
    modes: list[Mode],
    weights: np.ndarray,
) -> list[Reflection]:
    """Each by the number that is furthest from its centre; those of exchangeable blocks by the same number of each."""

    def confused(reflection: Reflection, by: int) -> float:
        at, centre = coordinate(joint.space, reflection.entries[by]), reflection.centres[by]
        sd = [np.linalg.norm(np.asarray(mode.warp.factor)[at]) for mode in modes]
        return float(weights @ ndtr(-np.abs([mode.point[at] - centre for mode in modes]) / np.maximum(sd, 1e-300)))

    chance = {s: [confused(s, by) for by in range(len(s.entries))] for s in reflections}
    for exchange in exchanges:
        if not isinstance(exchange, Exchange) or not exchange.is_used:
            continue
        within = [s for block in exchange.blocks for s in reflections if set(s.entries) <= set(block)]
        touched = {e for block in exchange.blocks for e in block}
        mixed = [s for s in reflections if touched & set(s.entries) and s not in within]
        alike = len({tuple(sorted(map(_place(exchange), s.entries))) for s in within}) == 1
        for s in within if alike and len(within) == len(exchange.blocks) else []:
            by_place = [sorted(s.entries, key=_place(exchange)) for s in within]
            together = [
                max(chance[t][t.entries.index(row[i])] for t, row in zip(within, by_place, strict=True))
                for i in range(len(s.entries))
            ]
            chance[s] = [together[sorted(s.entries, key=_place(exchange)).index(entry)] for entry in s.entries]
        for s in mixed + (within if not (alike and len(within) == len(exchange.blocks)) else []):
            chance[s] = [1.0] * len(s.entries)  # an order of blocks and such a reflection would undo each other
    return [s._replace(by=int(np.argmin(chance[s])) if min(chance[s]) < CONFUSED else -1) for s in reflections]


def _place(exchange: Exchange):
    """Which number of its block an entry is."""
    where = {entry: i for block in exchange.blocks for i, entry in enumerate(block)}
    return lambda entry: where[entry]


def _cut(joint: Joint, circle: Circle, x: np.ndarray, modes: list[Mode], weights: np.ndarray) -> Circle:
    """Where the modes, put in order, are least; where they are few at the prior's own ends, there."""
    space = joint.space
    place = space.slices[circle.name]
    shape = (len(x), place.stop - place.start)
    ends = space.values_at(np.stack([np.full(x.shape[1], -40.0), np.full(x.shape[1], 40.0)]))[circle.name]
    low, turn = ends[0].ravel(), (ends[1] - ends[0]).ravel()
    share = (space.values_at(x)[circle.name].reshape(shape) - low) / turn
    width = (
        np.array([np.linalg.norm(np.asarray(mode.warp.factor)[place], axis=1) for mode in modes]) * share * (1 - share)
    )
    tried = np.arange(CUTS) / CUTS
    cuts = []
    for k in range(shape[1]):
        off = np.abs((circle.parts * (share[:, k, None] - tried) + 0.5) % 1.0 - 0.5) / circle.parts
        there = weights @ np.exp(-0.5 * (off / np.maximum(width[:, k, None], 1 / CUTS)) ** 2)
        cuts.append(0.0 if there[0] <= CUTS_NOTHING else float(tried[np.argmin(there)] * turn[k]))
    return circle._replace(cut=tuple(cuts))
