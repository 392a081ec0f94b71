r"""Symmetries: permutations and reflections of its parameters, and parts of a turn, that leave a model's ln J as it is.

$J(g\,\theta) = J(\theta)$ for all g of a group means that the posterior is many copies of one. Of k exchangeable components
there are k! labellings; a factor and its loadings may change their signs together; a wave of half a period repeats itself.
Candidates come from names and priors (equal priors of `P1, K1` and `P2, K2`, entries of vectors, rows of matrices); whether
ln L stays what it was, to rounding, is asked at a few draws of the prior.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.models.circle import turn_of
from supermodel.models.joint import Joint
from supermodel.models.priors import Bijected
from supermodel.models.space import Space

Ask = Callable[[np.ndarray], np.ndarray]

MOST_CALLS = 100  # of the likelihood, that looking for symmetries of one model may take
SAME = 1e-8  # of ln L: what another order of the same sums leaves
SURE = 4  # further draws, and random elements of a group, at which ln L must stay before it is believed
PAIRS = 4  # components up to which every pair is tried; of more, neighbours
TURNS = (2 * np.pi, np.pi, 360.0, 180.0, 24.0, 1.0)  # widths of a uniform prior that may be a whole turn
NEAR_CUT = 1e-5  # of a turn, on either side of the cut: so far the slope is felt
PARTS = (2, 3, 4)  # of a turn after which a likelihood may repeat itself

Entry = tuple[str, tuple[int, ...]]  # a number in a parameter


class Exchange(NamedTuple):
    """Blocks of numbers that may be exchanged, and which entry of a block puts them in order."""

    blocks: tuple[tuple[Entry, ...], ...]
    by: int = -1  # -1: they are not put in order

    def __str__(self) -> str:
        named = " and ".join(told(block) for block in self.blocks)
        return f"{named} are exchangeable" + (
            f", in the order of {told(e[self.by] for e in self.blocks)}" * self.is_used
        )

    @property
    def is_used(self) -> bool:
        return self.by >= 0

    @property
    def images(self) -> float:
        return float(np.prod(np.arange(1, len(self.blocks) + 1)))


class Reflection(NamedTuple):
    """Numbers that may be reflected together, x to 2 c - x in unconstrained coordinates, and which one is kept above its c."""

    entries: tuple[Entry, ...]
    centres: tuple[float, ...]
    by: int = -1

    def __str__(self) -> str:
        kept = f", {told([self.entries[self.by]])} is kept above its middle" if self.is_used else ""
        return f"{told(self.entries)} may be reflected" + " together" * (len(self.entries) > 1) + kept

    @property
    def is_used(self) -> bool:
        return self.by >= 0

    @property
    def images(self) -> float:
        return 2.0


class Circle(NamedTuple):
    """A parameter that goes round: where its circle is cut, above its lower end, and after which part of a turn ln L repeats."""

    name: str
    cut: tuple[float, ...] = (0.0,)
    parts: int = 1

    def __str__(self) -> str:
        again = f", and ln L repeats itself {self.parts} times a turn" if self.parts > 1 else ""
        return f"{self.name} goes round a circle{again}"

    @property
    def is_used(self) -> bool:
        return self.parts > 1 or any(self.cut)


Symmetry = Exchange | Reflection | Circle


def told(entries: Any) -> str:
    """`(P1, K1)`; a single one without brackets."""
    names = [name + (str(list(index)) if index else "") for name, index in entries]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


# -- what may be tried ------------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """The same number in each of k components."""

    label: str
    entries: tuple[Entry, ...]


def columns_of(space: Any, left_out: Sequence[str]) -> list[list[Column]]:
    """Columns that belong together by their names, largest families first: along one axis of an array, or of one stem."""
    families: list[list[Column]] = []
    stems: dict[str, list[tuple[str, str]]] = {}
    for name in space.names:
        shape = tuple(space.priors[name].shape)
        if name in left_out:
            continue
        if shape == ():
            stem, suffix = _split(name)
            stems.setdefault(stem, []).append((suffix, name))
        for axis, length in enumerate(shape):
            if length > 1 and (places(space, name) is not None or _is_simplex(space, name)):
                rest = itertools.product(*(range(n) for i, n in enumerate(shape) if i != axis))
                families.append(
                    [Column(name, tuple((name, (*r[:axis], i, *r[axis:])) for i in range(length))) for r in rest]
                )
    alike = _by_prior(space, [n for n in space.names if tuple(space.priors[n].shape) == () and n not in left_out])
    suffixes: dict[tuple[str, ...], list[Column]] = {}
    for stem, members in stems.items():
        if len(members) > 1 and all(suffix for suffix, _ in members):
            key = tuple(suffix for suffix, _ in members)
            suffixes.setdefault(tuple(sorted(key)), []).append(
                Column(stem, tuple((name, ()) for _, name in sorted(members)))
            )
    families += [[column] for group in suffixes.values() for column in group]
    named = {e for family in families for column in family for e in column.entries}
    for members in alike:  # without a number in their names: those of one prior, in the order in which they stand
        entries = tuple((name, ()) for name in members if (name, ()) not in named)
        if len(entries) > 1:
            families.append([Column(entries[0][0], entries)])
    return families


def _split(name: str) -> tuple[str, str]:
    """A name without the number, or the single letter after a mark, that tells components apart."""
    found = re.fullmatch(r"(.*?)_?\[?(\d+)\]?(.*)", name) or re.fullmatch(r"(.+)[_.]([A-Za-z])()", name)
    return (f"{found[1]}#{found[3]}", found[2]) if found else (name, "")


def _by_prior(space: Any, names: Sequence[str]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(f"{type(space.priors[name]).__name__} {space.priors[name].description}", []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def places(space: Any, name: str) -> np.ndarray | None:
    """Which coordinate each number of a parameter has, of its shape; None where numbers and coordinates do not correspond."""
    prior, place = space.priors[name], space.slices[name]
    n = int(np.prod(prior.shape))
    if n != prior.size or (isinstance(prior, Bijected) and prior.unconstrained_shape != prior.shape):
        return None
    return np.arange(place.start, place.stop).reshape(prior.shape)


def _is_simplex(space: Any, name: str) -> bool:
    prior = space.priors[name]
    return isinstance(prior, Bijected) and len(prior.shape) == 1 and prior.size == prior.shape[0] - 1


def coordinate(space: Any, entry: Entry) -> int | None:
    """Which unconstrained coordinate a number is, if it is one."""
    found = places(space, entry[0])
    return None if found is None else int(found[entry[1]])


# -- actions ----------------------------------------------------------------------------------------------------------


@in_float64
def exchanged(space: Any, x: np.ndarray, blocks: Sequence[Sequence[Entry]], order: np.ndarray) -> np.ndarray:
    """Points whose i-th block has what block `order[:, i]` had: (n, d)."""
    result = x.copy()
    values: dict[str, np.ndarray] = {}
    for column in zip(*blocks, strict=True):
        at = [coordinate(space, entry) for entry in column]
        priors = [space.priors[name] for name, _ in column]
        if None in at:  # a simplex: its numbers are exchanged, and mapped back
            name = column[0][0]
            every = values.setdefault(name, space.values_at(x)[name].copy())
            where = [index[0] for _, index in column]
            every[:, where] = np.take_along_axis(every[:, where], order, axis=1)
        elif any(hasattr(prior, "points_at") for prior in priors):  # circles, each with its own cut
            seen = np.stack(
                [space.priors[n].values_at(x[:, space.slices[n]])[(slice(None), *i)] for n, i in column], axis=1
            )
            seen = np.take_along_axis(seen, order, axis=1)
            for i, ((name, index), place) in enumerate(zip(column, at, strict=True)):
                whole = space.priors[name].values_at(x[:, space.slices[name]]).copy()
                whole[(slice(None), *index)] = seen[:, i]
                flat = place - space.slices[name].start
                result[:, place] = space.priors[name].points_at(whole)[:, flat]
        else:
            result[:, at] = np.take_along_axis(x[:, at], order, axis=1)
    for name, every in values.items():
        result[:, space.slices[name]] = simplex_points(space.priors[name], every)
    return result


@in_float64
def simplex_points(prior: Any, values: np.ndarray) -> np.ndarray:
    """Unconstrained coordinates of many values of a simplex."""
    return np.asarray(prior._transform.inv(values), float).reshape(len(values), prior.size)


def reflected(space: Any, x: np.ndarray, symmetry: Reflection) -> np.ndarray:
    """Points reflected at the centres."""
    result, at = x.copy(), [coordinate(space, entry) for entry in symmetry.entries]
    result[:, at] = 2 * np.array(symmetry.centres) - x[:, at]
    return result


# -- what is there ----------------------------------------------------------------------------------------------------


class _Spent(Exception):
    """As many calls as may be have been made."""


class _Trial:
    """Whether ln J stays what it was at moved prior draws; counts its calls."""

    def __init__(self, joint: Joint, x: np.ndarray, log_likelihood: np.ndarray, ask: Ask):
        order = np.argsort(-np.where(np.isfinite(log_likelihood), log_likelihood, -np.inf), kind="stable")
        order = order[np.isfinite(log_likelihood[order])]
        self.joint, self.space, self.ask, self.calls = joint, joint.space, ask, 0
        self.x, self.value = x[order], log_likelihood[order]
        self.simplices = [
            name for name in self.space.names if isinstance(self.space, Space) and _is_simplex(self.space, name)
        ]

    def prior(self, x: np.ndarray) -> np.ndarray:
        """ln of the prior's density of the values, where a permutation of values is none of coordinates."""
        density = self.space.log_prior_at(x)
        for name in self.simplices:
            import jax

            density = density - np.asarray(
                jax.vmap(self.space.priors[name].log_jacobian)(x[:, self.space.slices[name]])
            )
        return density

    def has_prior(self, move: Callable[[np.ndarray], np.ndarray], n: int = 4) -> bool:
        """Whether the prior's density stays: that costs no call."""
        before = self.prior(self.x[:n])
        return len(before) > 0 and bool(
            np.all(np.abs(self.prior(move(self.x[:n])) - before) <= SAME * (1 + np.abs(before)))
        )

    def stays(self, move: Callable[[np.ndarray], np.ndarray], rows: slice) -> bool:
        """Whether ln L stays at some of the draws."""
        x, before = self.x[rows], self.value[rows]
        if not len(x):
            return False
        if self.calls + len(x) > MOST_CALLS:
            raise _Spent
        self.calls += len(x)
        return bool(np.all(same(self.ask(move(x)), before)))


def same(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Which values of ln L are equal to rounding."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(before), np.abs(after - before) <= SAME * (1 + np.abs(before)), after == before)


@in_float64
def symmetries(
    joint: Joint, x: np.ndarray, log_likelihood: np.ndarray, ask: Ask, left_out: Sequence[str] = ()
) -> tuple[Symmetry, ...]:
    """Those of a model that hold at some of its prior draws `x`; `ask` gives ln L at further points.

    `left_out`: parameters that ln L does not read. What the model declares is taken as it is declared.
    """
    trial, found = _Trial(joint, x, log_likelihood, ask), []
    if not len(trial.x) or not isinstance(joint.space, Space):
        return ()
    declared = joint.model.exchangeable
    try:
        for symmetry in _circles(trial, left_out):
            found.append(symmetry)
        if declared is None:
            for exchange in _exchanges(trial, left_out):
                found.append(exchange)
        elif declared is not False:
            found += declared
        if declared is not False:
            for reflection in _reflections(trial, left_out, {c.name for c in found if isinstance(c, Circle)}):
                found.append(reflection)
    except _Spent:
        pass  # what was found by then is right
    return tuple(found)


def _exchanges(trial: _Trial, left_out: Sequence[str]) -> Iterator[Exchange]:
    families = [f for f in columns_of(trial.space, left_out) if _swaps_prior(trial, f)]
    for length in sorted({len(f[0].entries) for f in families}):
        group = [f for f in families if len(f[0].entries) == length]
        done: set[Entry] = set()
        for chosen in _unions(group):
            columns = [column for family in chosen for column in family]
            entries = [entry for column in columns for entry in column.entries]
            if done & set(entries) or len(set(entries)) < len(entries):
                continue
            for members in _classes(trial, columns, length):
                blocks = tuple(tuple(column.entries[i] for column in columns) for i in members)
                yield Exchange(blocks)
                done |= set(entries)


def _unions(families: list[list[Column]]) -> Iterator[list[list[Column]]]:
    """All of them, all but one, pairs, and each alone: what moves together is tried together first."""
    n, seen = len(families), set()
    for size in dict.fromkeys([n, n - 1, *((2,) if n <= 5 else ()), 1]):
        for rows in itertools.combinations(range(n), size) if 0 < size <= n else ():
            if rows not in seen:
                seen.add(rows)
                yield [families[i] for i in rows]


def _swap(space: Any, columns: Sequence[Column], i: int, j: int) -> Callable[[np.ndarray], np.ndarray]:
    blocks = [tuple(column.entries[k] for column in columns) for k in (i, j)]
    return lambda x: exchanged(space, x, blocks, np.tile([1, 0], (len(x), 1)))


def _swaps_prior(trial: _Trial, family: list[Column]) -> bool:
    return trial.has_prior(_swap(trial.space, family, 0, 1)) or len(family[0].entries) > 2


def _classes(trial: _Trial, columns: list[Column], k: int) -> Iterator[list[int]]:
    """Components that may be exchanged, as classes of two and more."""
    of = list(range(k))
    pairs = itertools.combinations(range(k), 2) if k <= PAIRS else zip(range(k), range(1, k), strict=False)
    for i, j in pairs:
        move = _swap(trial.space, columns, i, j)
        if of[i] != of[j] and trial.has_prior(move) and trial.stays(move, slice(0, 1)):
            of = [of[i] if label == of[j] else label for label in of]
    rng = np.random.default_rng(0)
    for label in dict.fromkeys(of):
        members = [i for i in range(k) if of[i] == label]
        if len(members) < 2:
            continue
        blocks = [tuple(column.entries[i] for column in columns) for i in members]

        def shuffle(x: np.ndarray, blocks=blocks) -> np.ndarray:
            orders = np.array([_moved(rng, len(blocks)) for _ in x])
            return exchanged(trial.space, x, blocks, orders)

        if trial.stays(shuffle, slice(1, 1 + SURE)):
            yield members


def _moved(rng: np.random.Generator, k: int) -> np.ndarray:
    """A permutation that is not the identity."""
    order = rng.permutation(k)
    return order if np.any(order != np.arange(k)) else np.roll(order, 1)


def _reflections(trial: _Trial, left_out: Sequence[str], circles: set[str]) -> Iterator[Reflection]:
    """Of single numbers, and of those of a column or an array together."""
    centre: dict[Entry, float] = {}
    for name in trial.space.names:
        if name not in left_out and name not in circles and places(trial.space, name) is not None:
            for index in np.ndindex(*trial.space.priors[name].shape):
                found = _centre(trial, (name, index))
                if found is not None:
                    centre[name, index] = found
    alone = set()
    for entry in centre:
        if _holds(trial, [entry], centre):
            alone.add(entry)
            yield Reflection((entry,), (centre[entry],))
    left = [entry for entry in centre if entry not in alone]
    done: set[Entry] = set()
    for entries in _together(trial.space, left):
        if len(entries) > 1 and not done & set(entries) and _holds(trial, entries, centre):
            done |= set(entries)
            yield Reflection(tuple(entries), tuple(centre[e] for e in entries))


def _holds(trial: _Trial, entries: Sequence[Entry], centre: dict[Entry, float]) -> bool:
    symmetry = Reflection(tuple(entries), tuple(centre[e] for e in entries))

    def move(x: np.ndarray) -> np.ndarray:
        return reflected(trial.space, x, symmetry)

    return trial.stays(move, slice(0, 1)) and trial.stays(move, slice(1, 1 + SURE))


def _together(space: Any, left: list[Entry]) -> Iterator[list[Entry]]:
    """Small groups first: a column of one array, a factor's loadings and scores, one parameter, one stem; in the end all."""
    groups: dict[Any, list[Entry]] = {}
    for name, index in left:
        last, (stem, suffix) = index[-1] if index else None, _split(name)
        for key in (("column", name, last), ("last", last), ("name", name), ("stem", stem), ("suffix", suffix), "all"):
            groups.setdefault(key, []).append((name, index))
    yield from sorted({tuple(group): list(group) for group in groups.values()}.values(), key=len)


def _centre(trial: _Trial, entry: Entry) -> float | None:
    """The coordinate about which the prior of a number is symmetric: its mean, or the middle of an interval; None if none."""
    prior, place = trial.space.priors[entry[0]], coordinate(trial.space, entry)
    tried = [0.0]
    if isinstance(prior, Bijected):
        try:
            tried.insert(0, float(np.broadcast_to(np.asarray(prior.distribution.mean), prior.shape)[entry[1]]))
        except (NotImplementedError, AttributeError, ValueError, TypeError):
            pass  # without a mean
    for c in tried:

        def move(x: np.ndarray, c=c) -> np.ndarray:
            result = x.copy()
            result[:, place] = 2 * c - x[:, place]
            return result

        if np.isfinite(c) and trial.has_prior(move):
            return c
    return None


def _circles(trial: _Trial, left_out: Sequence[str]) -> Iterator[Circle]:
    """Declared ones, and those whose ln L, and its slope, are one at both ends of a uniform prior that is a whole turn wide."""
    declared = trial.joint.model.periodic
    if declared is False:
        return
    for name in trial.space.names:
        turn = turn_of(trial.space.priors[name])
        if turn is None or name in left_out:
            continue
        if declared is not None and name in declared:
            is_circle = True
        elif np.any(np.isclose(turn[1], TURNS, rtol=1e-6)):
            is_circle = declared is None and _closes(trial, name, *turn[:2])
        else:
            is_circle = False
        if is_circle:
            size = trial.space.priors[name].size
            yield Circle(name, (0.0,) * size, _parts(trial, name, *turn))


def _with_value(space: Any, x: np.ndarray, name: str, value: np.ndarray) -> np.ndarray:
    """Points at which a parameter has other values: (n, ...)."""
    result = x.copy()
    result[:, space.slices[name]] = [np.ravel(space.priors[name].unconstrain(each)) for each in value]
    return result


def _closes(trial: _Trial, name: str, low: float, turn: float) -> bool:
    """ln L just above the lower end, a little further, a little below the upper end and just below it: one smooth curve."""
    shares = np.array([1e-13, NEAR_CUT, 1 - NEAR_CUT, 1 - 1e-13])
    rows = trial.x[:2]
    size = trial.space.priors[name].size
    for k in range(size):
        values = trial.space.values_at(rows)[name].reshape(len(rows), size)
        each = np.repeat(values[:, None], 4, axis=1)
        each[:, :, k] = low + turn * shares
        points = _with_value(
            trial.space, np.repeat(rows, 4, axis=0), name, each.reshape(-1, *trial.space.priors[name].shape)
        )
        if trial.calls + len(points) > MOST_CALLS:
            raise _Spent
        trial.calls += len(points)
        first, further, before, last = trial.ask(points).reshape(len(rows), 4).T
        with np.errstate(invalid="ignore"):
            up, down = further - first, last - before
            rounding = SAME * NEAR_CUT * (1 + np.abs(first))
            is_one = np.abs(up - down) <= 0.5 * np.maximum(np.abs(up), np.abs(down)) + rounding
            moves = np.maximum(np.abs(up), np.abs(down)) > rounding
            if not (np.all(same(last, first)) and np.all(is_one) and np.any(moves)):
                return False
    return True


def _parts(trial: _Trial, name: str, low: float, turn: float, density: Any) -> int:
    """After which part of a turn ln L repeats itself: 1 if after a whole one only."""
    if density is not None or trial.space.priors[name].size > 1:
        return 1

    def shifted(parts: int) -> Callable[[np.ndarray], np.ndarray]:
        def move(x: np.ndarray) -> np.ndarray:
            value = trial.space.values_at(x)[name]
            return _with_value(trial.space, x, name, low + np.mod(value - low + turn / parts, turn))

        return move

    held = [m for m in PARTS if trial.stays(shifted(m), slice(0, 1)) and trial.stays(shifted(m), slice(1, 1 + SURE))]
    return max(held, default=1)
