r"""Which symmetries a model has: candidates from names and priors, and whether ln L stays what it was, to rounding.

A candidate that the prior does not have costs no call. One that it has costs a call at the best of some prior draws, and a few
more, at random elements of its group, if ln L stays there. What is found so is asked again at modes and in the posterior.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from supermodel.engine.policy import SYMMETRY_CALLS
from supermodel.jax_scope import in_float64
from supermodel.models.circle import turn_of
from supermodel.models.components import Column, Family, families_of, splits
from supermodel.models.declared import circular_by_prior
from supermodel.models.joint import Joint
from supermodel.models.priors import Bijected
from supermodel.models.space import Space
from supermodel.models.symmetry import (
    SAME,
    Circle,
    Entry,
    Exchange,
    Move,
    Reflection,
    Symmetry,
    coordinate,
    exchanged,
    exchanges_prior,
    keeps_prior,
    moved,
    places,
    points_at,
    reflected,
    same,
    shifted,
)

Ask = Callable[[np.ndarray], np.ndarray]

SURE = 4  # further draws, and random elements of a group, at which ln L must stay before it is believed
PAIRS = 4  # components up to which every pair is tried; of more, neighbours
MANY_FAMILIES = 5  # up to which two of them are tried together without the others
TURNS = (2 * np.pi, np.pi, 360.0, 180.0, 24.0, 1.0)  # widths of a uniform prior that may be a whole turn
NEAR_CUT = 1e-5  # of a turn, on either side of the cut: so far the slope is felt
AT_CUT = 1e-12  # of a turn: so near an end is taken for it
BENT = 0.5  # of the larger slope, by which those on either side of a cut may differ: a kink is 2
PARTS = (2, 3, 4)  # of a turn after which a likelihood may repeat itself


class _Spent(Exception):
    """As many calls as this kind of symmetry may take have been made."""


class _Trial:
    """Prior draws, those of the highest ln L first, and whether ln L stays there; counts its calls."""

    def __init__(self, joint: Joint, x: np.ndarray, log_likelihood: np.ndarray, ask: Ask):
        seen = np.flatnonzero(np.isfinite(log_likelihood))
        order = seen[np.argsort(-log_likelihood[seen], kind="stable")]
        self.joint, self.space, self._ask, self.calls, self.most = joint, joint.space, ask, 0, 0
        self.x = x[order][: 1 + SURE]

    def ask(self, x: np.ndarray) -> np.ndarray:
        if self.calls + len(x) > self.most:
            raise _Spent
        self.calls += len(x)
        return self._ask(x)

    @cached_property
    def value(self) -> np.ndarray:
        """ln L asked anew: what is known may be ln J less the prior, which has other digits."""
        return self.ask(self.x)

    def stays(self, move: Move) -> bool:
        """Whether ln L stays at the best draw, and then at a few others."""
        return self.stays_at(move, slice(0, 1)) and self.stays_at(move, slice(1, 1 + SURE))

    def stays_at(self, move: Move, rows: slice) -> bool:
        x = self.x[rows]
        before = self.value[rows]
        return not len(x) or bool(np.all(same(self.ask(move(x)), before)))

    def keeps_prior(self, move: Move) -> bool:
        return keeps_prior(self.space, self.x[:SURE], move)


@in_float64
def symmetries(
    joint: Joint, x: np.ndarray, log_likelihood: np.ndarray, ask: Ask, left_out: Sequence[str] = ()
) -> tuple[Symmetry, ...]:
    """Those of a model that hold at some of its prior draws `x`; `ask` gives ln L at further points.

    `left_out`: parameters that ln L does not read. What the model declares is taken as it is declared.
    """
    trial, declared = _Trial(joint, x, log_likelihood, ask), joint.model.exchangeable
    found: list[Symmetry] = []
    if not len(trial.x) or not isinstance(joint.space, Space):
        return ()

    def collect(some: Iterator[Symmetry], calls: int) -> None:
        trial.most += calls
        with contextlib.suppress(_Spent):  # what was found by then is right
            found.extend(some)

    if declared is None:
        collect(_exchanges(trial, left_out), SYMMETRY_CALLS[0])
    else:
        trial.most += SYMMETRY_CALLS[0]
        found += declared or ()
    collect(_circles(trial, left_out), SYMMETRY_CALLS[1])
    if declared is None:
        collect(_reflections(trial, left_out, found), SYMMETRY_CALLS[2])
    return tuple(found)


# -- exchanges --------------------------------------------------------------------------------------------------------


def _exchanges(trial: _Trial, left_out: Sequence[str]) -> Iterator[Exchange]:
    families = [f for f in families_of(trial.space, left_out) if _may_be_exchanged(trial, f)]
    done: set[Entry] = set()
    for length in sorted({len(f[0].entries) for f in families}):
        group = [f for f in families if len(f[0].entries) == length]
        for chosen in _unions(group):
            columns = [column for family in chosen for column in family]
            entries = [entry for column in columns for entry in column.entries]
            if done & set(entries) or len(set(entries)) < len(entries):
                continue
            for exchange in _classes(trial, columns, length) or _mirrored(trial, columns, left_out):
                yield exchange
                done |= {*entries, *exchange.mirrored}


def _may_be_exchanged(trial: _Trial, family: Family) -> bool:
    """Whether the priors of some two of its components are equal."""
    k = len(family[0].entries)
    return any(_keeps(trial, _of(family, pair)) for pair in itertools.combinations(range(k), 2))


def _of(columns: Sequence[Column], members: Sequence[int]) -> Exchange:
    return Exchange(tuple(tuple(column.entries[i] for column in columns) for i in members))


def _keeps(trial: _Trial, exchange: Exchange) -> bool:
    return exchanges_prior(trial.space, trial.x[:SURE], exchange)


def _unions(families: list[Family]) -> Iterator[list[Family]]:
    """All of them, all but one, pairs, and each alone: what moves together is tried together first."""
    n, seen = len(families), set()
    for size in dict.fromkeys([n, n - 1, *((2,) if n <= MANY_FAMILIES else ()), 1]):
        for rows in itertools.combinations(range(n), size) if 0 < size <= n else ():
            if rows not in seen:
                seen.add(rows)
                yield [families[i] for i in rows]


def _swapping(trial: _Trial, exchange: Exchange) -> Move:
    """Two blocks change places."""
    return lambda x: exchanged(trial.space, x, exchange, np.tile([1, 0], (len(x), 1)))


def _classes(trial: _Trial, columns: list[Column], k: int) -> list[Exchange]:
    """Components that may be exchanged, as classes of two and more."""
    of, found = list(range(k)), []
    pairs = itertools.combinations(range(k), 2) if k <= PAIRS else zip(range(k), range(1, k), strict=False)
    for i, j in pairs:
        pair = _of(columns, (i, j))
        if of[i] != of[j] and _keeps(trial, pair) and trial.stays_at(_swapping(trial, pair), slice(0, 1)):
            of = [of[i] if label == of[j] else label for label in of]
    for label in dict.fromkeys(of):
        members = [i for i in range(k) if of[i] == label]
        exchange = _of(columns, members)
        if len(members) > 1 and trial.stays_at(_any(trial, exchange), slice(1, 1 + SURE)):
            found.append(exchange)
    return found


def _any(trial: _Trial, symmetry: Symmetry) -> Move:
    """Any other image of each point, always the same ones."""
    return lambda x: moved(trial.space, x, symmetry, np.random.default_rng(0))


def _mirrored(trial: _Trial, columns: list[Column], left_out: Sequence[str]) -> Iterator[Exchange]:
    """Two components that may be exchanged if a further number is reflected, as the share of the first of two is."""
    taken = {entry for column in columns for entry in column.entries}
    pair = _of(columns, (0, 1))
    if len(columns[0].entries) != 2 or not _keeps(trial, pair):
        return
    for entry in _entries(trial, left_out):
        if entry in taken or (centre := _centre(trial, entry)) is None:
            continue
        exchange = pair._replace(mirrored=(entry,), centres=(centre,))
        if trial.stays(_swapping(trial, exchange)):
            yield exchange
            return


# -- reflections ------------------------------------------------------------------------------------------------------


def _entries(trial: _Trial, left_out: Sequence[str]) -> Iterator[Entry]:
    """Numbers that are coordinates."""
    for name in trial.space.names:
        if name not in left_out and places(trial.space, name) is not None:
            yield from ((name, index) for index in np.ndindex(*trial.space.priors[name].shape))


def _reflections(trial: _Trial, left_out: Sequence[str], known: Sequence[Symmetry]) -> Iterator[Reflection]:
    """Of single numbers, and of those of a column or an array together."""
    circles = {s.name for s in known if isinstance(s, Circle)}
    mirrored = {e for s in known if isinstance(s, Exchange) for e in s.mirrored}
    centre = {
        entry: c
        for entry in _entries(trial, left_out)
        if entry[0] not in circles and entry not in mirrored and (c := _centre(trial, entry)) is not None
    }
    alone = []
    for entry in centre:
        reflection = Reflection((entry,), (centre[entry],))
        if trial.stays(_reflecting(trial, reflection)):
            alone.append(entry)
            yield reflection
    done: set[Entry] = set()
    blocks = [block for s in known if isinstance(s, Exchange) for block in s.blocks]
    for entries in _together([entry for entry in centre if entry not in alone], blocks):
        reflection = Reflection(tuple(entries), tuple(centre[e] for e in entries))
        if len(entries) > 1 and not done & set(entries) and trial.stays(_reflecting(trial, reflection)):
            done |= set(entries)
            yield reflection


def _reflecting(trial: _Trial, reflection: Reflection) -> Move:
    return lambda x: reflected(trial.space, x, reflection)


def _together(left: list[Entry], blocks: Sequence[tuple[Entry, ...]]) -> Iterator[list[Entry]]:
    """Small groups first: blocks that may be exchanged, a column of one array, a factor's loadings and scores, one parameter, one
    stem; in the end all.
    """
    groups: dict[object, list[Entry]] = {block: list(block) for block in blocks if set(block) <= set(left)}
    for name, index in left:
        last = index[-1] if index else None
        keys: list[object] = [("column", name, last), ("last", last), ("name", name), "all"]
        for stem, label in splits(name):
            keys += [("stem", stem), ("label", label)]
        for key in dict.fromkeys(keys):
            groups.setdefault(key, []).append((name, index))
    yield from sorted({tuple(group): list(group) for group in groups.values()}.values(), key=len)


def _centre(trial: _Trial, entry: Entry) -> float | None:
    """The coordinate about which the prior of a number is symmetric: its mean, or the middle of an interval; None if none."""
    prior, place = trial.space.priors[entry[0]], coordinate(trial.space, entry)
    tried = [0.0]
    if isinstance(prior, Bijected):
        with contextlib.suppress(NotImplementedError, AttributeError, ValueError, TypeError):  # without a mean
            tried.insert(0, float(np.broadcast_to(np.asarray(prior.distribution.mean), prior.shape)[entry[1]]))
    for c in tried:

        def move(x: np.ndarray, c=c) -> np.ndarray:
            result = x.copy()
            result[:, place] = 2 * c - x[:, place]
            return result

        if np.isfinite(c) and trial.keeps_prior(move):
            return c
    return None


# -- circles ----------------------------------------------------------------------------------------------------------


def _circles(trial: _Trial, left_out: Sequence[str]) -> Iterator[Circle]:
    """Declared ones, those of circular priors, and those whose ln L, and its slope, are one at both ends of a uniform prior
    that is a whole turn wide.
    """
    declared = trial.joint.model.periodic
    if declared is False:
        return
    known = (*(declared or ()), *circular_by_prior(trial.space))
    for name in sorted(trial.space.names, key=lambda name: name not in known):  # those that cost nothing first
        turn = turn_of(trial.space.priors[name])
        if turn is None or name in left_out:
            continue
        low, width, density = turn
        is_tried = declared is None and np.any(np.isclose(width, TURNS, rtol=1e-6))
        if name in known or (is_tried and _closes(trial, name, low, width)):
            circle = Circle(name, (0.0,) * trial.space.priors[name].size, 1, low, width)
            may_repeat = density is None and trial.space.priors[name].size == 1 and declared is None
            yield circle._replace(parts=_parts(trial, circle)) if may_repeat else circle


def _closes(trial: _Trial, name: str, low: float, turn: float) -> bool:
    """ln L just above the lower end, a little further, a little below the upper end and just below it: one smooth curve."""
    prior, rows = trial.space.priors[name], trial.x[:2]
    values = prior.values_at(rows[:, trial.space.slices[name]]).reshape(len(rows), prior.size)
    for k, row in itertools.product(range(prior.size), range(len(rows))):

        def at(shares: Sequence[float], k=k, row=row) -> np.ndarray:
            each = np.repeat(values[row][None], len(shares), axis=0)
            each[:, k] = low + turn * np.array(shares)
            points = np.repeat(rows[row][None], len(shares), axis=0)
            points[:, trial.space.slices[name]] = points_at(prior, each.reshape(-1, *prior.shape))
            return trial.ask(points)

        first, last = at([AT_CUT, 1 - AT_CUT])
        if not (np.isfinite(first) and same(last, first)):
            return False
        further, before = at([NEAR_CUT, 1 - NEAR_CUT])
        up, down = further - first, last - before
        steeper, rounding = max(abs(up), abs(down)), SAME * NEAR_CUT * (1 + abs(first))
        if not (steeper > rounding and abs(up - down) <= BENT * steeper + rounding):
            return False  # ln L has a kink there, or does not depend on the parameter
    return True


def _parts(trial: _Trial, circle: Circle) -> int:
    """After which part of a turn ln L repeats itself: 1 if after a whole one only."""

    def turning(parts: int) -> Move:
        return lambda x: shifted(trial.space, x, circle._replace(parts=parts), np.ones(len(x)))

    return max((m for m in PARTS if trial.stays(turning(m))), default=1)
