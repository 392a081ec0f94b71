"""Data sets of about one length, padded and stacked: a handful of shapes, and so a handful of compilations.

Which data sets share a chunk follows from the input alone: it is the same on any number of workers, and when a run is
taken up again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supermodel.errors import DataError
from supermodel.models.columns import as_columns, received
from supermodel.models.model import Model
from supermodel.results.fingerprint import fingerprint
from supermodel.survey.datasets import DataSets, Unreadable
from supermodel.survey.job import Chunk, Outcome

SHORTEST, FACTOR = 8, 1.5  # lengths of buckets: 8, 12, 18, 27, ...
MANY_SHAPES = 10  # a note from there on: each shape of a JAX likelihood is compiled
ONE_NUMBER = (
    "Every column of the first data set is a single number, so that each row was taken for a data set of one datum. If rows are "
    "points, name the column that tells data sets apart: by=."
)
logger = logging.getLogger("supermodel")
KINDS = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64}


@dataclass(frozen=True, eq=False)
class Refused:
    """Data sets that cannot be compared, told as outcomes; numbered like a chunk."""

    number: int
    outcomes: tuple[Outcome, ...]

    def __len__(self) -> int:
        return len(self.outcomes)


def digest(piece: Chunk | Refused) -> str:
    """What tells whether a piece is the same as the one that a part of a table was made from."""
    if isinstance(piece, Refused):
        return fingerprint([(o.row, str(o.name), o.reason) for o in piece.outcomes])
    return fingerprint([piece.rows, list(map(str, piece.names)), piece.columns, piece.lengths])


def bucket(length: int) -> int:
    """The length that a data set is padded to.

    >>> [bucket(n) for n in (1, 8, 9, 50, 1000)]
    [8, 8, 12, 62, 1065]
    """
    found = SHORTEST
    while found < length:
        found = math.ceil(FACTOR * found)
    return found


@dataclass(eq=False)
class Bucketing:
    """Turns data sets into chunks of `size`; `is_padded` where the likelihoods can leave padding out."""

    models: Mapping[str, Model]
    size: int
    missing: str = "raise"
    is_padded: bool = False
    only: Collection[str] | None = None  # names, as texts: numbers may have become such in a table
    notes: list[str] = field(default_factory=list)  # what there is to tell at the end
    needed: set[str] | None = None  # columns that the first data set has and the models read
    dropped: list[int] = field(default_factory=lambda: [0, 0])  # points, data sets
    shapes: set[Any] = field(default_factory=set)
    met: set[str] = field(default_factory=set)  # of those in `only`
    reads: dict[tuple[str, ...], set[str]] = field(default_factory=dict)

    def pieces(self, datasets: DataSets) -> Iterator[Chunk | Refused]:
        """Chunks as they fill up, and what is left at the end, numbered from 0."""
        filling: dict[Any, list[tuple[int, Any, Any]]] = {}
        ragged: set[Any] = set()  # buckets that have been padded once, and are padded from then on
        number = 0
        for row, (given_name, given) in enumerate(datasets):
            name = row if given_name is None else given_name
            if self.only is not None:
                if str(name) not in self.only:
                    continue
                self.met.add(str(name))
            key, data = self._sorted(row, name, given)
            waiting = filling.setdefault(key, [])
            waiting.append((row, name, data))
            if len(waiting) == self.size:
                yield self._piece(number, key, filling.pop(key), ragged)
                number += 1
        for key in sorted(filling, key=lambda key: filling[key][0][0]):
            yield self._piece(number, key, filling[key], ragged)
            number += 1
        self._note()

    def _sorted(self, row: int, name: Any, given: Any) -> tuple[Any, Any]:
        """The bucket of a data set, and the data as they go into it; None for those that are refused."""
        try:
            data = self._ready(given)
        except Exception as error:  # a data set may be anything; whatever reading it does is told in its row
            told = str(error) if isinstance(error, DataError) else f"it cannot be read: {type(error).__name__}: {error}"
            return None, refused(row, name, "data", told)
        length = next((len(values) for values in data.values() if values.ndim), 0)
        shapes = tuple((n, v.dtype.kind, v.shape[1:] if v.ndim else None) for n, v in sorted(data.items()))
        return (shapes, bucket(length) if self.is_padded and length else length), data

    def _ready(self, given: Any) -> dict[str, np.ndarray]:
        """A data set as arrays of one length and numbers, without holes."""
        if isinstance(given, Unreadable):
            raise DataError(given.reason)
        columns = as_columns(given)
        if not isinstance(columns, Mapping) or not columns:
            raise DataError(
                f"a data set is a dict of columns, a frame or a structured array; this is {type(given).__name__}"
            )
        wanted = self._read_of(tuple(columns))
        if lacking := sorted((self.needed or set()) - set(columns)):
            raise DataError(f"the columns {lacking} are missing; it has {sorted(columns)}, the first data set had them")
        data = {str(name): _array(str(name), values) for name, values in columns.items() if name in wanted}
        lengths = {name: len(values) for name, values in data.items() if values.ndim}
        if len(set(lengths.values())) > 1:
            raise DataError(f"the columns have different lengths ({lengths}): a row of a data set is one datum")
        if 0 in lengths.values():
            raise DataError("there are no points in it")
        if self.missing != "keep" and not all(map(_is_whole, data.values())):
            found = received(data, self.models.values(), self.missing)
            data = {name: np.asarray(values) for name, values in found.data.items()}
            if found.dropped:
                self.dropped[0] += found.dropped
                self.dropped[1] += 1
        if self.needed is None:
            self.needed = set(data)
            if not lengths:
                self.notes.append(ONE_NUMBER)
                logger.warning(ONE_NUMBER)
        return data

    def _read_of(self, columns: tuple[str, ...]) -> set[str]:
        """Which of the columns the models read: all of them, unless all models say which."""
        if columns not in self.reads:
            read = [model.reads(columns) for model in self.models.values()]
            self.reads[columns] = set(columns) if None in read else set().union(*(names or () for names in read))
        return self.reads[columns]

    def _piece(self, number: int, key: Any, waiting: list[tuple[int, Any, Any]], ragged: set[Any]) -> Chunk | Refused:
        if key is None:
            return Refused(number, tuple(outcome for _, _, outcome in waiting))
        rows, names, data = zip(*waiting, strict=True)
        lengths = np.array([max((len(v) for v in one.values() if v.ndim), default=0) for one in data])
        if len(set(lengths)) > 1:
            ragged.add(key)
        longest = key[1] if key in ragged else int(lengths[0])
        columns = {name: np.stack([_padded(one[name], longest) for one in data]) for name in data[0]}
        self.shapes.add((key[0], longest))
        return Chunk(number, np.array(rows), names, columns, lengths if key in ragged else None)

    def _note(self) -> None:
        if not self.is_padded and len(self.shapes) > MANY_SHAPES:
            self.notes.append(
                f"The data sets have {len(self.shapes)} shapes, and these likelihoods cannot leave padding out: what is "
                "compiled is compiled for each. Models with `predict` and `noise` need a handful."
            )
        if self.only is not None and (lost := sorted(set(self.only) - self.met)):
            self.notes.append(f"{len(lost)} of the names in `only` are no data sets, e.g. {lost[0]!r}.")
        if self.dropped[0]:
            self.notes.append('missing="drop" dropped {} points of {} data sets.'.format(*self.dropped))


def refused(row: int, name: Any, code: str, reason: str, seconds: float = 0.0) -> Outcome:
    """A data set without an answer, and the reason."""
    return Outcome(int(row), name, {}, {}, "fail", (code,), " ".join(reason.split()), "none", 0, seconds)


def _array(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind in KINDS:
        return array.astype(KINDS[array.dtype.kind], copy=False)
    if array.dtype.kind in "UmM":
        return array
    what = "missing" if values is None else f"of the type {type(values).__name__}, no array of numbers or texts"
    raise DataError(f"the column {name!r} is {what}")


def _is_whole(values: np.ndarray) -> bool:
    """Whether there is no hole in a column."""
    if values.dtype.kind == "f":
        return bool(np.isfinite(values).all())
    return values.dtype.kind in "bi"


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    """The last point is repeated: a number that any likelihood can bear, since one that it cannot bear spoils gradients."""
    if not values.ndim or len(values) == length:
        return values
    return np.concatenate([values, np.repeat(values[-1:], length - len(values), axis=0)])
