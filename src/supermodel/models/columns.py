r"""Data as people have them, as likelihoods are given them: a dict of NumPy columns, without holes.

Frames (pandas, polars, Arrow), xarray datasets, structured arrays and paths of files become such a dict, and lists in a
dict become arrays. Anything else is handed on as it is. What is no finite number is told with its column and row before
any likelihood is called, or its row is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from supermodel.errors import DataError
from supermodel.models.table_file import Table, read_table


class Reader(Protocol):
    """A model: which of the columns it reads, or None where it may read them all."""

    def reads(self, names: Iterable[str]) -> set[str] | None: ...


class Received(NamedTuple):
    """What likelihoods are given, and how many of how many rows were dropped for it."""

    data: Any
    dropped: int = 0
    rows: int = 0


def received(data: Any, models: Iterable[Reader] = (), missing: str = "raise") -> Received:
    """The data as likelihoods are given them; holes in what the models read are refused, dropped or kept."""
    table = read_table(Path(data)) if isinstance(data, str | os.PathLike) else None
    data = as_columns(data) if table is None else table.columns
    if missing == "keep":
        return Received(data)
    leaves = _leaves(data)
    _not_empty(data)
    columns = data if isinstance(data, Mapping) else {}
    read = [model.reads(columns or leaves) for model in models]
    named = set().union(*(names for names in read if names is not None))
    for name in named & set(columns):
        if where := text_among_numbers(columns[name], is_number=name == "y"):
            raise DataError(_text_told(name, columns[name], where, table))
    looked_at = {
        name: values
        for name, values in leaves.items()
        if name in named or ((None in read or not read) and np.asarray(values).dtype.kind != "U")
    }
    refused = {name: _infinite(v) | (missing == "raise") & _absent(v) for name, v in looked_at.items()}
    if any(hole.any() for hole in refused.values()):
        raise DataError(_told(leaves, {name: hole for name, hole in refused.items() if hole.any()}, table))
    absent = {name: hole for name, v in looked_at.items() if (hole := _absent(v)).any()}
    return _dropped(data, leaves, absent) if absent else Received(data)


# -- forms ------------------------------------------------------------------------------------------------------------


def as_columns(data: Any) -> Any:
    """A dict of columns of frames, datasets and structured arrays; of a dict the same with arrays in place of lists."""
    if isinstance(data, str | os.PathLike):
        return read_table(Path(data)).columns
    if hasattr(data, "data_vars") or (hasattr(data, "to_dataset") and hasattr(data, "dims")):  # xarray
        whole = data if hasattr(data, "data_vars") else data.to_dataset(name=data.name or "y")
        data = whole.to_dataframe().reset_index()
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):  # a lazy frame
        data = data.collect()
    if isinstance(data, Mapping):
        columns = {name: as_column(values) for name, values in data.items()}
        return columns if any(columns[name] is not values for name, values in data.items()) else data
    if isinstance(data, np.ndarray) and data.dtype.names:
        return {name: as_column(data[name]) for name in data.dtype.names}
    if (names := _frame_names(data)) is not None:
        index = getattr(data, "index", None)
        if index is not None and any(name is not None and name not in names for name in index.names):
            data = data.reset_index()
            names = list(data.columns)
        if len({str(name) for name in names}) < len(names):
            twice = next(name for name in names if [str(n) for n in names].count(str(name)) > 1)
            raise DataError(
                f"the frame has two columns named {twice!r}; likelihoods ask for columns by name. Rename one."
            )
        return {str(name): as_column(data[name]) for name in names}
    return as_column(data) if isinstance(data, list) else data


def _frame_names(data: Any) -> list[Any] | None:
    if hasattr(data, "to_pandas") or hasattr(data, "to_numpy"):
        names = getattr(data, "column_names", None) or getattr(data, "columns", None)
        return None if names is None or callable(names) else list(names)
    return None


def as_column(values: Any) -> Any:
    """An array of a series, or of a list of numbers, truth values or texts; whatever else it is stays what it is."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        values = values.data.astype(object) if hidden.any() else values.data
        if hidden.any():
            values[hidden] = None
    if isinstance(values, np.ndarray):
        return _plain(values) if values.dtype.kind == "O" else values
    if not isinstance(values, list | tuple) or any(hasattr(v, "__array__") and np.ndim(v) for v in values):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # lists of unequal lengths: no column
        return values
    array = _plain(np.asarray(values, object)) if array.dtype.kind in "OU" else array
    return array if array.dtype.kind in "biufU" and array.size else values


def _plain(objects: np.ndarray) -> np.ndarray:
    """Objects that are all numbers, or all texts, as an array of those: NaN, or an empty text, where one is missing."""
    flat = objects.ravel().tolist()
    there = [value for value in flat if not _is_missing(value)]
    if there and all(isinstance(value, bool | np.bool_) for value in there) and len(there) == len(flat):
        return objects.astype(bool)
    if there and all(isinstance(value, Number | Decimal) and not isinstance(value, complex) for value in there):
        return np.array([np.nan if _is_missing(v) else float(v) for v in flat]).reshape(objects.shape)
    if there and all(isinstance(value, str) for value in there):
        return np.array(["" if _is_missing(v) else v for v in flat], str).reshape(objects.shape)
    return objects


def _is_missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


# -- holes ------------------------------------------------------------------------------------------------------------


def _leaves(data: Any) -> dict[str, Any]:
    """The arrays and numbers among the data, by name."""
    named = {str(i): v for i, v in enumerate(data)} if isinstance(data, tuple) else data
    named = named if isinstance(named, Mapping) else {"data": data}
    return {name: value for name, value in named.items() if isinstance(value, float | np.generic) or _is_array(value)}


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and getattr(getattr(value, "dtype", None), "kind", "") in tuple("biufcUmMO")


def _absent(values: Any) -> np.ndarray:
    """Where a value is missing."""
    array = np.asarray(values)
    if array.dtype.kind == "U":
        return array == ""
    if array.dtype.kind in "mM":
        return np.isnat(array)
    return np.isnan(array) if array.dtype.kind in "fc" else np.zeros(array.shape, bool)


def _infinite(values: Any) -> np.ndarray:
    """Where a value of a column is infinite; a number that stands alone, such as a limit, may be."""
    array = np.asarray(values)
    return np.isinf(array) if array.dtype.kind in "fc" and array.ndim else np.zeros(array.shape, bool)


def _not_empty(data: Any) -> None:
    """Refuse data without a row: no likelihood of them says anything, and ln B would be 0 without a word."""
    named = data if isinstance(data, Mapping) else {"data": data}
    rows = {
        str(name): len(v) for name, v in named.items() if isinstance(v, list | tuple) or (_is_array(v) and np.ndim(v))
    }
    if rows and (rows.get("y") == 0 or not any(rows.values())):
        name = "y" if rows.get("y") == 0 else next(iter(rows))
        raise DataError(
            f"the data have no rows (column {name!r} is empty), so that there is nothing to weigh models by. Was a filter too "
            "strict, or a file empty? A model without data is compared with data=None."
        )


class Place(NamedTuple):
    """Where a text stands in a column, and how many numbers there are beside it."""

    row: int
    value: str
    numbers: int


def text_among_numbers(values: Any, is_number: bool = False) -> Place | None:
    """The first text in a column most of which are numbers, or that must be one of numbers; None if there is none."""
    if not (isinstance(values, list | tuple) or getattr(getattr(values, "dtype", None), "kind", "") in ("O", "U")):
        return None
    each = np.asarray(values, object)
    if each.ndim != 1:
        return None
    texts = [row for row, value in enumerate(each.tolist()) if isinstance(value, str)]
    words = [row for row in texts if not _is_number(each[row])]
    numbers = len(each) - len(words)
    if words and (is_number or numbers > len(words)):
        return Place(words[0], each[words[0]], numbers)
    return Place(texts[0], each[texts[0]], 0) if texts and is_number else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text_told(name: str, values: Any, where: Place, table: Table | None) -> str:
    place = f"row {where.row} (counted from 0)" if table is None else table.where(where.row)
    beside = f", where {where.numbers} of {len(values)} rows are numbers" if where.numbers else ""
    return (
        f"column {name!r} holds a text: {where.value!r} in {place}{beside}. A likelihood cannot reckon with it. Write numbers; a "
        'value that is missing is NaN (pandas.to_numeric(column, errors="coerce") makes it so), and missing="drop" drops its row.'
    )


def texts_told(data: Any) -> str:
    """A sentence on each column of numbers in which a text stands, for errors of likelihoods that may read any column."""
    columns = data.items() if isinstance(data, Mapping) else ()
    found = ((name, values, text_among_numbers(values)) for name, values in columns)
    return "".join(" " + _text_told(str(name), values, where, None) for name, values, where in found if where)


def _told(leaves: Mapping[str, Any], holes: Mapping[str, np.ndarray], table: Table | None) -> str:
    name, hole = next(iter(holes.items()))
    array, place = np.asarray(leaves[name]), tuple(int(i) for i in np.argwhere(hole)[0])
    value = str(array[place]) if _infinite(array)[place] or (array.dtype.kind == "f" and table is None) else "missing"
    where = f", row {place[0]} (counted from 0)" if len(place) == 1 else f", element {list(place)}" if place else ""
    where = where if table is None else f", {table.where(place[0])}"
    advice = (
        'drop such rows with missing="drop", or pass missing="keep" to a likelihood that deals with them itself'
        if _absent(array)[place]
        else 'a value that is infinite is not missing, and missing="drop" does not drop it; missing="keep" hands it on to a '
        "likelihood that deals with it itself"
    )
    many = ", ".join(f"{int(hole.sum())} in {label!r}" for label, hole in holes.items())
    return (
        f"the data are not all finite numbers: column {name!r}{where} is {value} ({many} in all), and a likelihood of them "
        f"would be no number. Mend them; {advice}."
    )


def _dropped(data: Any, leaves: Mapping[str, Any], absent: Mapping[str, np.ndarray]) -> Received:
    """The data without the rows in which a value is missing."""
    lengths = {name: len(hole) if hole.ndim else 0 for name, hole in absent.items()}
    n = len(leaves["y"]) if "y" in leaves and np.ndim(leaves["y"]) else max(lengths.values())
    rows = {name: values for name, values in leaves.items() if np.ndim(values) and len(values) == n}
    if stray := sorted(name for name in absent if name not in rows):
        raise DataError(
            f'missing="drop" drops rows, of which there are {n}; but {stray} have missing values and no such rows (lengths '
            f"{lengths}). Mend those."
        )
    if square := [name for name, values in rows.items() if np.shape(values)[:2] == (n, n)]:
        raise DataError(
            f'missing="drop" would drop rows of the {n} × {n} array {square[0]!r}, which may be a matrix between the data '
            "whose columns go with them. Drop rows and columns yourself."
        )
    gone = np.any([hole.reshape(n, -1).any(axis=1) for hole in absent.values()], axis=0)
    if gone.all():
        raise DataError(f'missing="drop" would drop all {n} rows: each misses a value ({sorted(absent)}).')
    kept = {name: np.asarray(values)[~gone] for name, values in rows.items()}
    if isinstance(data, Mapping):
        whole: Any = {**data, **kept}
    else:
        whole = tuple(kept.get(str(i), v) for i, v in enumerate(data)) if isinstance(data, tuple) else kept["data"]
    return Received(whole, int(gone.sum()), n)
