r"""How a symmetric posterior is folded into one labelling: by the number that tells the components best apart.

At the modes that climbs have found, two neighbours of an ordering are confused with probability $\Phi(-g / s)$, g being their
gap and s its standard deviation by the curvature. An edge through a mode would cost more than labels do: where no number keeps
the components apart, nothing is folded. Of numbers that do, the one serves that leaves the modes nearest together. Circles are
cut where the modes are least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from supermodel.engine.explore.climb import RIVAL, Mode
from supermodel.engine.explore.symmetries import symmetries
from supermodel.engine.policy import CONFUSED, CUTS, CUTS_NOTHING, NOT_CONFUSED
from supermodel.errors import ModelError
from supermodel.models.folded import Folded
from supermodel.models.joint import Joint
from supermodel.models.symmetry import (
    Canonical,
    Circle,
    Entry,
    Exchange,
    Reflection,
    Refuted,
    Symmetry,
    coordinate,
    moved,
    same,
)

Ask = Callable[[np.ndarray], np.ndarray]
By = Callable[[Exchange], int | None]

ASKED = 6  # of the heaviest modes, at which a symmetry is asked again
SHUFFLED = 8  # draws of a folded posterior at which other images must leave ln L as it is


def folded(
    joint: Joint, found: Sequence[Symmetry], modes: Sequence[Mode], ask: Ask, by: By | None = None
) -> tuple[Joint, tuple[Symmetry, ...]]:
    """The model in one labelling of its components, and with its circles cut where no mode is; itself if that gains nothing.

    And the symmetries as they are used, those that do not hold at modes being refuted. `by`: of an exchange, the number that puts
    its blocks in order whether it keeps them apart or not; where it names none, the one that does it best.
    """
    if not found or not modes:
        return joint, tuple(found)
    found = confirmed(joint, found, np.array([mode.point for mode in modes[:ASKED]]), ask, "at a mode")
    weights = np.exp(np.maximum([mode.log_mass for mode in modes], modes[0].log_mass - RIVAL) - modes[0].log_mass)
    modes, weights = list(modes), weights / weights.sum()
    circles = [s for s in found if isinstance(s, Circle)]
    round_ = {s.name for s in circles}
    chosen: list[Symmetry] = [_ordered(joint, s, modes, weights, round_, by) for s in found if isinstance(s, Exchange)]
    chosen += _kept_above(joint, [s for s in found if isinstance(s, Reflection)], chosen, modes, weights)
    chosen += [s for s in found if isinstance(s, Canonical | Refuted)]
    in_order = Folded(joint.space, chosen).in_order(np.array([mode.point for mode in modes]))
    chosen += [_cut(joint, s, in_order, modes, weights) for s in circles]
    if not any(s.is_used for s in chosen):
        return joint, tuple(found)
    return joint.folded(Folded(joint.space, chosen)), tuple(chosen)


# -- whether it holds -------------------------------------------------------------------------------------------------


def confirmed(joint: Joint, found: Sequence[Symmetry], x: np.ndarray, ask: Ask, where: str) -> list[Symmetry]:
    """Those of the symmetries that ln L has at the points `x` too, and in place of others what became of them.

    What was declared and does not hold is an error.
    """
    before = ask(x) if any(not isinstance(s, Circle) or s.parts > 1 for s in found) else np.zeros(0)
    result: list[Symmetry] = []
    for symmetry in found if len(x) else ():
        if isinstance(symmetry, Refuted) or (isinstance(symmetry, Circle) and symmetry.parts == 1):
            result.append(symmetry)
            continue
        images = moved(joint.space, x, symmetry, np.random.default_rng(1))
        after = ask(images)
        wrong = np.flatnonzero(~same(after, before))
        if not len(wrong):
            result.append(symmetry)
        elif _is_declared(joint, symmetry):
            i = int(wrong[0])
            raise _contradicted(joint, symmetry, x[i], images[i], before[i], after[i], where)
        elif isinstance(symmetry, Circle):
            result += [symmetry._replace(parts=1), Refuted(str(symmetry))]
        else:
            result.append(Refuted(str(symmetry)))
    return result


def _is_declared(joint: Joint, symmetry: Symmetry) -> bool:
    declared = joint.model.exchangeable
    if not declared:
        return False
    return symmetry in declared or (isinstance(symmetry, Exchange) and symmetry._replace(by=-1) in declared)


def _contradicted(joint: Joint, symmetry: Symmetry, x, image, before: float, after: float, where: str) -> ModelError:
    def at(point: np.ndarray) -> str:
        values = joint.space.values_at(point[None])
        return "{" + ", ".join(f"{n}: {np.round(v[0], 8).tolist()}" for n, v in values.items()) + "}"

    return ModelError(
        f"model {joint.name!r} declares that {symmetry}, but its log likelihood says otherwise ({where}): it is {before:.10g} at "
        f"{at(x)} and {after:.10g} at the image {at(image)}. Folded so, its evidence would be wrong. Declare what is exchangeable "
        "and nothing else, or leave `exchangeable` out: symmetries are found."
    )


def checked_symmetries(joint: Joint, x: np.ndarray, log_likelihood: np.ndarray, ask: Ask) -> tuple[Symmetry, ...]:
    """Those that are found, and those declared, which must hold, at prior draws."""
    found = symmetries(joint, x, log_likelihood, ask, joint.unread)
    _check_declared(joint, found, x[np.isfinite(log_likelihood)][:SHUFFLED], ask)
    return found


def _check_declared(joint: Joint, found: Sequence[Symmetry], x: np.ndarray, ask: Ask) -> None:
    """Refuse a declared symmetry that ln L contradicts at prior draws, and a canonical form that is none."""
    declared = [s for s in found if _is_declared(joint, s)]
    confirmed(joint, declared, x, ask, "at draws of its prior")
    for symmetry in declared:
        if isinstance(symmetry, Canonical):
            _check_form(joint, symmetry)


FORMED = 2000  # prior draws of which one in so many as there are images must be in canonical form
FALSE_ALARM = 5.0  # standard deviations: 1e-6
DIFFERENCE = 1e-6  # of a coordinate, by which the volume of a canonical form is taken
VOLUME = 1e-3  # nats: far above what differences of this size leave


def _check_form(joint: Joint, canonical: Canonical) -> None:
    """Whether one in so many prior draws is its own form, forms are their own, and prior times volume stays."""
    space = joint.space
    x = space.sample_prior(np.random.default_rng(0), FORMED)
    kept, p = np.isfinite(Folded(space, [canonical]).log_prior_at(x)), 1 / canonical.images
    if abs(kept.mean() - p) > FALSE_ALARM * np.sqrt(p * (1 - p) / FORMED):
        raise ModelError(
            f"the canonical form of model {joint.name!r} is said to be one of {canonical.images} images, but {kept.mean():.3f} of "
            f"its prior, not {p:.3f}, is in that form: ln Z would be off. Give the number of images of a point, itself among "
            "them; or the prior is not the same at all images."
        )
    some, rng = x[: 2 * SHUFFLED], np.random.default_rng(0)

    def form(points: np.ndarray) -> np.ndarray:
        return moved(space, points, canonical, rng)

    steps = DIFFERENCE * np.eye(x.shape[1])
    slopes = np.stack([(form(some + step) - form(some - step)) / (2 * DIFFERENCE) for step in steps], axis=-1)
    volume = np.linalg.slogdet(slopes)[1]
    off = space.log_prior_at(form(some)) + volume - space.log_prior_at(some)
    # A draw within a step of where the form changes tells nothing: the middle one counts.
    if not np.median(np.abs(off)) < VOLUME:
        raise ModelError(
            f"the canonical form of model {joint.name!r} changes prior times volume, by a factor of "
            f"{np.exp(np.median(np.abs(off))):.3g} at the middle one of {len(some)} prior draws: its images are not equally "
            "probable a priori, and the evidence of one of them would not tell that of all."
        )


def refuted(joint: Joint, x: np.ndarray, images: np.ndarray | None, ask: Ask) -> tuple[Refuted, ...]:
    """What ln L contradicts of the symmetries of a folded model: at points and their images, or else at posterior draws `x`.

    `ask` takes points of the model that was folded.
    """
    whole = joint.origin
    if whole is None or not len(x):
        return ()
    if images is None:
        x = x[:: max(len(x) // SHUFFLED, 1)][:SHUFFLED]
    points = joint.space.points_in(whole.space, x)
    if images is not None and np.all(same(ask(joint.space.points_in(whole.space, images)), ask(points))):
        return ()
    known = {str(s) for s in joint.space.symmetries if isinstance(s, Refuted)}
    found = confirmed(whole, joint.space.symmetries, points, ask, "in its posterior" if images is None else "at a mode")
    wrong = tuple(s for s in found if isinstance(s, Refuted) and str(s) not in known)
    if images is None or wrong:
        return wrong
    return tuple(Refuted(str(s)) for s in joint.space.symmetries if s.is_used)


# -- how it is folded -------------------------------------------------------------------------------------------------


def _ordered(
    joint: Joint, exchange: Exchange, modes: list[Mode], weights: np.ndarray, round_: set[str], wanted: By | None
) -> Exchange:
    """By the number that keeps the blocks apart, if there is one; by the one that is wanted, where one is."""
    best, order = (1, CONFUSED if wanted is None else np.inf, np.inf), -1
    first = None if wanted is None else wanted(exchange)
    for by in range(len(exchange.blocks[0])) if first is None else [first]:
        entries = [block[by] for block in exchange.blocks]
        at = [coordinate(joint.space, entry) for entry in entries]
        if None in at or round_ & {name for name, _ in entries}:  # of a simplex, or of a circle, which has no first
            continue
        confused = float(weights @ [_confused(mode, at) for mode in modes])
        apart = _apart(joint, exchange._replace(by=by), modes, weights)
        # Of those that never confuse, the one that gathers the modes; else the one that confuses least.
        rank = (0, apart, confused) if confused < NOT_CONFUSED else (1, confused, apart)
        if rank < best:
            best, order = rank, by
    return exchange._replace(by=order)


def _confused(mode: Mode, at: list[Any]) -> float:
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
    chosen: Sequence[Symmetry],
    modes: list[Mode],
    weights: np.ndarray,
) -> list[Reflection]:
    """Each by the number that is furthest from its centre, unless an order of blocks and it would undo each other.

    A reflection within each of the exchanged blocks is kept by the same number of all of them: then the blocks can still be put
    in order. One that touches blocks otherwise is left.
    """

    def confused(reflection: Reflection) -> dict[Entry, float]:
        found = {}
        for entry, centre in zip(reflection.entries, reflection.centres, strict=True):
            at = coordinate(joint.space, entry)
            sd = np.array([np.linalg.norm(np.asarray(mode.warp.factor)[at]) for mode in modes])
            gap = np.abs([mode.point[at] - centre for mode in modes])
            found[entry] = float(weights @ ndtr(-gap / np.maximum(sd, 1e-300)))
        return found

    chance = {s: confused(s) for s in reflections}
    for exchange in chosen:
        if not isinstance(exchange, Exchange) or not exchange.is_used:
            continue
        place = {entry: i for block in exchange.blocks for i, entry in enumerate(block)} | dict.fromkeys(
            exchange.mirrored, -1
        )
        within = [s for block in exchange.blocks for s in reflections if set(s.entries) <= set(block)]
        by_places: dict[tuple[int, ...], list[Reflection]] = {}
        for s in within:
            by_places.setdefault(tuple(sorted(place[e] for e in s.entries)), []).append(s)
        for group in by_places.values():
            if len(group) == len(exchange.blocks):
                worst: dict[int, float] = {}
                for s in group:
                    for entry, p in chance[s].items():
                        worst[place[entry]] = max(worst.get(place[entry], 0.0), p)
                # The same number of every block, in the order of places: ties are broken alike.
                for s in group:
                    chance[s] = {e: worst[place[e]] for e in sorted(s.entries, key=place.__getitem__)}
            else:
                chance |= {s: dict.fromkeys(s.entries, 1.0) for s in group}
        mixed = [s for s in reflections if s not in within and set(s.entries) & set(place)]
        chance |= {s: dict.fromkeys(s.entries, 1.0) for s in mixed}
    return [_kept(s, chance[s]) for s in reflections]


def _kept(reflection: Reflection, chance: dict[Entry, float]) -> Reflection:
    entry = min(chance, key=chance.__getitem__)
    return reflection._replace(by=reflection.entries.index(entry) if chance[entry] < CONFUSED else -1)


def _cut(joint: Joint, circle: Circle, x: np.ndarray, modes: list[Mode], weights: np.ndarray) -> Circle:
    """Where the modes, put in order, are least; where they are few at the prior's own ends, there."""
    space, place = joint.space, joint.space.slices[circle.name]
    values = space.priors[circle.name].values_at(x[:, place]).reshape(len(x), -1)
    share = (values - circle.low) / circle.turn
    scale = np.array([np.linalg.norm(np.asarray(mode.warp.factor)[place], axis=1) for mode in modes])
    width = scale * share * (1 - share)
    tried = np.arange(CUTS) / CUTS
    cuts = []
    for k in range(share.shape[1]):
        off = np.abs((circle.parts * (share[:, k, None] - tried) + 0.5) % 1.0 - 0.5) / circle.parts
        there = weights @ np.exp(-0.5 * (off / np.maximum(width[:, k, None], 1 / CUTS)) ** 2)
        cuts.append(0.0 if there[0] <= CUTS_NOTHING else float(tried[np.argmin(there)] * circle.turn))
    return circle._replace(cut=tuple(cuts))
