r"""Symmetries of a model: exchanges of blocks of numbers, reflections, parts of a turn; what each is, does and is called.

$J(g\,\theta) = J(\theta)$ for all g of a group means that the posterior is many copies of one. Of k exchangeable components
there are k! labellings; a factor and its loadings may change their signs together; a wave of half a period repeats itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from supermodel.errors import ModelError
from supermodel.jax_scope import in_float64
from supermodel.models.priors import Bijected

# Of ln L, relative: the same sums in another order leave 1e-13 of it, where large terms cancel or a matrix is factorised up to a
# thousand times more.
SAME = 1e-10

Entry = tuple[str, tuple[int, ...]]  # a number in a parameter
Move = Callable[[np.ndarray], np.ndarray]


class Exchange(NamedTuple):
    """Blocks of numbers that may be exchanged, and which entry of a block puts them in order.

    `mirrored`: numbers that are reflected about their `centres` when two blocks change places, as w becomes 1 - w.
    """

    blocks: tuple[tuple[Entry, ...], ...]
    by: int = -1  # -1: they are not put in order
    mirrored: tuple[Entry, ...] = ()
    centres: tuple[float, ...] = ()

    def __str__(self) -> str:
        named = " and ".join(told(block) for block in self.blocks)
        mirror = f", {told(self.mirrored)} being reflected" if self.mirrored else ""
        order = f": labelled by increasing {told(e[self.by] for e in self.blocks)}" if self.is_used else ""
        return f"{named} are exchangeable{mirror}{order}"

    @property
    def is_used(self) -> bool:
        return self.by >= 0

    @property
    def images(self) -> float:
        return float(math.factorial(len(self.blocks)))


class Reflection(NamedTuple):
    """Numbers that may be reflected together, x to 2 c - x in unconstrained coordinates, and which one is kept above its c."""

    entries: tuple[Entry, ...]
    centres: tuple[float, ...]
    by: int = -1

    def __str__(self) -> str:
        kept = f": {told([self.entries[self.by]])} is kept above the middle of its prior" if self.is_used else ""
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
    low: float = 0.0
    turn: float = 0.0

    def __str__(self) -> str:
        again = f", and ln L repeats itself {self.parts} times a turn: one of these parts is kept" * (self.parts > 1)
        return f"{self.name} goes round a circle of {self.turn:.4g}{again}"

    @property
    def is_used(self) -> bool:
        return self.parts > 1 or any(self.cut)


@dataclass(frozen=True)
class Canonical:
    """A symmetry that is no permutation of parameters, declared: `form` takes values to the one image of them that is kept.

    `images`: how many images a point has, itself among them. `form(values)` gets and returns a dict of all parameters, written
    with `jax.numpy` if the likelihood is; it leaves prior times volume, and ln L, as they are.

    >>> Canonical(lambda p: {**p, "a": abs(p["a"])}, images=2)
    Canonical(images=2)
    """

    form: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    images: int

    def __post_init__(self):
        if (
            not callable(self.form)
            or isinstance(self.images, bool)
            or not isinstance(self.images, int)
            or self.images < 2
        ):
            raise ModelError(
                "Canonical(form, images) needs a function of a dict of values and the number of images of a point, at least 2; "
                f"got form={self.form!r}, images={self.images!r}."
            )

    def __repr__(self) -> str:
        return f"Canonical(images={self.images})"

    def __str__(self) -> str:
        return f"each point has {self.images} images: that in the declared canonical form is kept"

    @property
    def is_used(self) -> bool:
        return True


class Refuted(NamedTuple):
    """What held at draws of the prior and not where the posterior is."""

    sentence: str

    def __str__(self) -> str:
        return f"not so in the posterior, and not used: {self.sentence}"

    is_used = False


Symmetry = Exchange | Reflection | Circle | Canonical | Refuted


def told(entries: Any) -> str:
    """`(P1, K1)`; a single one without brackets."""
    names = [name + (str(list(index)) if index else "") for name, index in entries]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


# -- places -----------------------------------------------------------------------------------------------------------


def places(space: Any, name: str) -> np.ndarray | None:
    """Which coordinate each number of a parameter has, of its shape; None where numbers and coordinates do not correspond."""
    prior, place = space.priors[name], space.slices[name]
    n = int(np.prod(prior.shape))
    if n != prior.size or (isinstance(prior, Bijected) and prior.unconstrained_shape != prior.shape):
        return None
    return np.arange(place.start, place.stop).reshape(prior.shape)


def is_simplex(space: Any, name: str) -> bool:
    """Whether a parameter is some numbers of sum 1."""
    prior = space.priors[name]
    return isinstance(prior, Bijected) and len(prior.shape) == 1 and prior.size == prior.shape[0] - 1


def coordinate(space: Any, entry: Entry) -> int | None:
    """Which unconstrained coordinate a number is, if it is one."""
    found = places(space, entry[0])
    return None if found is None else int(found[entry[1]])


def is_circular(space: Any, name: str) -> bool:
    """Whether a parameter has been put on a circle, in coordinates of its own cut."""
    return hasattr(space.priors[name], "points_at")


# -- actions ----------------------------------------------------------------------------------------------------------


@in_float64
def exchanged(space: Any, x: np.ndarray, exchange: Exchange, order: np.ndarray) -> np.ndarray:
    """Points whose i-th block has what block `order[:, i]` had: (n, d)."""
    result, whole = x.copy(), {}
    for column in zip(*exchange.blocks, strict=True):
        names = [name for name, _ in column]
        at = [coordinate(space, entry) for entry in column]
        if None not in at and not any(is_circular(space, name) for name in names):
            result[:, at] = np.take_along_axis(x[:, at], order, axis=1)
            continue
        # A simplex, or circles each with its own cut: values are exchanged, and mapped back.
        for name in names:
            if name not in whole:
                whole[name] = space.priors[name].values_at(x[:, space.slices[name]]).copy()
        seen = np.stack([whole[name][(slice(None), *index)] for name, index in column], axis=1)
        seen = np.take_along_axis(seen, order, axis=1)
        for i, (name, index) in enumerate(column):
            whole[name][(slice(None), *index)] = seen[:, i]
    for name, values in whole.items():
        result[:, space.slices[name]] = points_at(space.priors[name], values)
    if exchange.mirrored:
        mirrored = reflected(space, result, Reflection(exchange.mirrored, exchange.centres))
        result = np.where((order[:, 0] == 1)[:, None], mirrored, result)
    return result


@in_float64
def points_at(prior: Any, values: np.ndarray) -> np.ndarray:
    """Unconstrained coordinates (n, size) of many values (n, ...)."""
    if hasattr(prior, "points_at"):
        return prior.points_at(values)
    if isinstance(prior, Bijected):
        return np.asarray(prior._transform.inv(np.asarray(values, float)), float).reshape(len(values), prior.size)
    return np.array([np.ravel(prior.unconstrain(value)) for value in values])


def reflected(space: Any, x: np.ndarray, symmetry: Reflection) -> np.ndarray:
    """Points reflected at the centres."""
    result, at = x.copy(), [coordinate(space, entry) for entry in symmetry.entries]
    result[:, at] = 2 * np.array(symmetry.centres) - x[:, at]
    return result


def shifted(space: Any, x: np.ndarray, circle: Circle, parts: np.ndarray) -> np.ndarray:
    """Points whose angle is turned by so many of its parts, (n,); on a space that is not cut."""
    result, place, prior = x.copy(), space.slices[circle.name], space.priors[circle.name]
    values = prior.values_at(x[:, place])
    moved = np.mod(values - circle.low + circle.turn / circle.parts * parts, circle.turn)
    result[:, place] = points_at(prior, circle.low + inside(moved, circle.turn))
    return result


def inside(value: np.ndarray, turn: float) -> np.ndarray:
    """A value on an interval, kept off its ends by rounding."""
    return np.clip(value, 1e-12 * turn, (1 - 1e-12) * turn)


def moved(space: Any, x: np.ndarray, symmetry: Symmetry, rng: np.random.Generator) -> np.ndarray:
    """Another image of each point, any of them."""
    if isinstance(symmetry, Exchange):
        k = len(symmetry.blocks)
        orders = np.argsort(rng.random((len(x), k)), axis=1)
        still = np.all(orders == np.arange(k), axis=1)
        orders[still] = np.roll(orders[still], 1, axis=1)
        return exchanged(space, x, symmetry, orders)
    if isinstance(symmetry, Reflection):
        return reflected(space, x, symmetry)
    if isinstance(symmetry, Circle) and symmetry.parts > 1:
        return shifted(space, x, symmetry, rng.integers(1, symmetry.parts, len(x)))
    if isinstance(symmetry, Canonical):
        return formed_points(space, x, symmetry)
    return x


@in_float64
def formed(space: Any, x: np.ndarray, canonical: Canonical) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Values of many points, and their canonical forms."""
    values = space.values_at(x)
    each = [_called(canonical, {name: v[i] for name, v in values.items()}, space) for i in range(len(x))]
    return values, {name: np.array([one[name] for one in each], float).reshape(v.shape) for name, v in values.items()}


def formed_points(space: Any, x: np.ndarray, canonical: Canonical) -> np.ndarray:
    """The points whose values are the canonical forms."""
    values = formed(space, x, canonical)[1]
    parts = [points_at(space.priors[name], values[name]) for name in space.names]
    return np.concatenate(parts, axis=1) if parts else x


def _called(canonical: Canonical, values: Mapping[str, Any], space: Any) -> Mapping[str, Any]:
    found = canonical.form(dict(values))
    if not isinstance(found, Mapping) or set(found) != set(space.names):
        given = sorted(found) if isinstance(found, Mapping) else type(found).__name__
        raise ModelError(
            f"the canonical form must return a dict of exactly the parameters {sorted(space.names)}; it returned {given}."
        )
    return found


# -- what stays -------------------------------------------------------------------------------------------------------


def same(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Which values of ln L are equal to rounding."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(before), np.abs(after - before) <= SAME * (1 + np.abs(before)), after == before)


def log_prior_of_values(space: Any, x: np.ndarray) -> np.ndarray:
    """ln of the prior, of a simplex as a density of its values: a permutation of values is none of its coordinates."""
    density = space.log_prior_at(x)
    for name in space.names:
        if is_simplex(space, name):
            import jax

            density = density - np.asarray(jax.vmap(space.priors[name].log_jacobian)(x[:, space.slices[name]]))
    return density


@in_float64
def keeps_prior(space: Any, x: np.ndarray, move: Move) -> bool:
    """Whether the prior's density stays at some points."""
    before = log_prior_of_values(space, x)
    return len(x) > 0 and bool(
        np.all(np.abs(log_prior_of_values(space, move(x)) - before) <= 1e-8 * (1 + np.abs(before)))
    )


def exchanges_prior(space: Any, x: np.ndarray, exchange: Exchange) -> bool:
    """Whether a change of places of the first block with each other leaves the prior, and takes values to values."""
    k, before = len(exchange.blocks), space.values_at(x)
    for j in range(1, k):
        order = np.arange(k)
        order[[0, j]] = j, 0

        def move(x: np.ndarray, order=order) -> np.ndarray:
            return exchanged(space, x, exchange, np.tile(order, (len(x), 1)))

        after = space.values_at(move(x))
        for (first, i), (other, m) in zip(exchange.blocks[0], exchange.blocks[j], strict=True):
            if not np.allclose(after[first][:, *i], before[other][:, *m], rtol=1e-6, atol=0):
                return False  # equal coordinates that stand for other values: priors of another scale
        if not keeps_prior(space, x, move):
            return False
    return True


# -- as data, for files -----------------------------------------------------------------------------------------------


def as_data(symmetry: Symmetry) -> dict[str, Any]:
    """Names and numbers of a symmetry."""
    if isinstance(symmetry, Canonical):
        return {"kind": "Canonical", "images": symmetry.images}
    found: dict[str, Any] = {"kind": type(symmetry).__name__}
    for name, value in symmetry._asdict().items():
        if name in ("entries", "mirrored"):
            value = [_entry_data(e) for e in value]
        elif name == "blocks":
            value = [[_entry_data(e) for e in block] for block in value]
        elif isinstance(value, tuple):
            value = [float(v) for v in value]
        found[name] = value
    return found


def _entry_data(entry: Entry) -> list[Any]:
    return [entry[0], [int(i) for i in entry[1]]]


def from_data(row: Mapping[str, Any], canonical: Any = None) -> Symmetry:
    """The symmetry that `as_data` wrote; the function of a canonical form is the model's own."""

    def entries(rows: Any) -> tuple[Entry, ...]:
        return tuple((str(name), tuple(int(i) for i in index)) for name, index in rows)

    kind, numbers = row["kind"], {n: tuple(map(float, row[n])) for n in ("centres", "cut") if n in row}
    if kind == "Exchange":
        return Exchange(
            tuple(map(entries, row["blocks"])), int(row["by"]), entries(row["mirrored"]), numbers["centres"]
        )
    if kind == "Reflection":
        return Reflection(entries(row["entries"]), numbers["centres"], int(row["by"]))
    if kind == "Circle":
        return Circle(str(row["name"]), numbers["cut"], int(row["parts"]), float(row["low"]), float(row["turn"]))
    if kind == "Canonical" and isinstance(canonical, Canonical) and canonical.images == row["images"]:
        return canonical
    return Refuted(str(row.get("sentence", "a symmetry of another kind")))
