"""What the user has, as a stream of data sets: lists of dicts, stacked arrays, frames, Parquet and Arrow files or folders.

Files are read a few rows at a time, so that memory does not grow with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.errors import DataError, suggestion
from supermodel.models.columns import as_columns
from supermodel.models.table_file import PARQUET

ARROW = (".arrow", ".feather", ".ipc")
BATCH = 4096  # rows of a file that are in memory at once, beside its row group
WHAT = (
    "Give a list of dicts of arrays, a dict of stacked arrays {name: (n, length)}, a frame or table (with by= the column that "
    "tells data sets apart, or one row per data set), or the path of a Parquet or Arrow file or of a folder of them."
)


@dataclass(frozen=True)
class Unreadable:
    """In the place of a data set that cannot be read: why not."""

    reason: str


@dataclass(frozen=True, eq=False)
class DataSets:
    """A stream of (name, columns); a name of None is the running number. `total` and `columns` where they are known."""

    stream: Callable[[], Iterator[tuple[Any, Any]]]
    total: int | None = None
    columns: tuple[str, ...] | None = None

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self.stream()

    def renamed(self, columns: Mapping[str, str]) -> DataSets:
        """The same data sets with the column `columns[name]` under `name`, for all that are named; others are left out."""

        def renaming() -> Iterator[tuple[Any, Any]]:
            for name, given in self.stream():
                known = isinstance(given, Mapping)
                yield name, {new: given[old] for new, old in columns.items() if old in given} if known else given

        return replace(self, stream=renaming, columns=tuple(columns))


def collected(datasets: Any, by: str | None = None, id: str | None = None) -> DataSets:
    """The data sets of whatever the user gave; `DataError` where it is no collection of data sets at all."""
    if isinstance(datasets, DataSets):
        return datasets
    if isinstance(datasets, str | os.PathLike):
        return _of_path(Path(datasets), by, id)
    if hasattr(datasets, "collect_schema") and hasattr(datasets, "collect"):  # a lazy frame
        datasets = datasets.collect()
    if hasattr(datasets, "to_batches") or hasattr(datasets, "read_next_batch"):  # Arrow
        batches = datasets.to_batches() if hasattr(datasets, "to_batches") else datasets
        known = len(datasets) if hasattr(datasets, "to_batches") else None
        if by is None:
            return _of_tables(lambda: map(_columns, batches), datasets.schema.names, None, id, known)
        datasets = as_columns(datasets if hasattr(datasets, "to_batches") else datasets.read_all())
    if isinstance(datasets, np.ndarray) and not datasets.dtype.names:
        datasets = _named(datasets)
    if isinstance(datasets, np.ndarray) or hasattr(datasets, "columns"):
        datasets = as_columns(datasets)
    if isinstance(datasets, Mapping):
        return _of_mapping(datasets, by, id)
    if by is not None or not isinstance(datasets, Iterable) or isinstance(datasets, bytes):
        kept = "by= needs a table with that column" if isinstance(datasets, Iterable) else "these are no data sets"
        raise DataError(f"{kept}; got {type(datasets).__name__}. {WHAT}")
    total = len(datasets) if isinstance(datasets, Sized) else None
    return DataSets(lambda: ((_name_of(item, id), _without(item, id)) for item in datasets), total)


def _named(array: np.ndarray) -> dict[str, np.ndarray]:
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(f"an array of data sets has the shape (n, length), of numbers; got {array.shape}. {WHAT}")
    return {"y": array}


def _name_of(item: Any, id: str | None) -> Any:
    if id is None:
        return None
    found: Any = item.get(id) if isinstance(item, Mapping) else None
    return plain(found) if np.ndim(found) == 0 else None


def _without(item: Any, id: str | None) -> Any:
    return {name: v for name, v in item.items() if name != id} if id is not None and isinstance(item, Mapping) else item


def plain(name: Any) -> Any:
    """A name as a plain number or text."""
    return name.item() if isinstance(name, np.generic) else name


# -- tables in memory -------------------------------------------------------------------------------------------------


def _of_mapping(given: Mapping[Any, Any], by: str | None, id: str | None) -> DataSets:
    if not given:
        raise DataError(f"there are no data sets: the dict is empty. {WHAT}")
    if all(isinstance(value, Mapping) for value in given.values()):
        return DataSets(lambda: iter(given.items()), len(given))
    table = as_columns(given)
    sizes = {name: len(column) for name, column in table.items() if isinstance(column, Sequence) or np.ndim(column)}
    if len(set(sizes.values())) != 1:
        raise DataError(
            f"a dict of stacked arrays has one row per {'point' if by else 'data set'} in each; their lengths are {sizes}. "
            f"Stack what is the same for all as well: np.broadcast_to(x, (n, len(x))). {WHAT}"
        )
    n = next(iter(sizes.values()))
    table = {str(name): column if name in sizes else np.broadcast_to(column, n) for name, column in table.items()}
    if by is None:
        return _of_tables(lambda: iter([table]), list(table), None, id, n)
    _check_column(by, table, "by")
    codes, values = _codes(table[by])
    order = np.argsort(codes, kind="stable")  # by first appearance; points of one data set in their order
    sorted_table = {name: np.asarray(column)[order] for name, column in table.items()}
    return _of_tables(lambda: iter([sorted_table]), list(table), by, id, len(values))


def _codes(values: Any) -> tuple[np.ndarray, Any]:
    """Numbers in the order of first appearance, and what they stand for; missing values are one of them."""
    import pandas as pd

    return pd.factorize(np.asarray(values), use_na_sentinel=False)


def _check_column(name: str, columns: Iterable[str], option: str) -> None:
    if name not in columns:
        hint = suggestion(name, columns)
        raise DataError(f"{option}={name!r} names no column; there are {', '.join(map(str, columns))}. {hint}".rstrip())


def _of_tables(
    tables: Callable[[], Iterator[Any]], columns: Sequence[str], by: str | None, id: str | None, total: int | None
) -> DataSets:
    for option, name in (("by", by), ("id", id)):
        if name is not None:
            _check_column(name, columns, option)
    rows: Callable[[], Iterator[tuple[Any, Any]]]
    rows = (lambda: _long(tables(), by)) if by is not None else (lambda: _wide(tables(), id))
    return DataSets(rows, total, tuple(name for name in columns if name not in (by, id)))


def _wide(tables: Iterator[Any], id: str | None) -> Iterator[tuple[Any, Any]]:
    """One row, one data set."""
    for table in tables:
        if isinstance(table, list):  # of unreadable ones
            yield from ((None, row) for row in table)
            continue
        for i in range(len(next(iter(table.values())))):
            name = None if id is None else plain(table[id][i])
            yield name, {column: values[i] for column, values in table.items() if column != id}


def _long(tables: Iterator[Any], by: str) -> Iterator[tuple[Any, Any]]:
    """Rows of one value of `by`, one after the other, are one data set, also across tables."""
    name: Any = None
    held: list[dict[str, Any]] = []
    for table in tables:
        codes, values = _codes(table[by])
        ends = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        for first, last in zip(ends[:-1], ends[1:], strict=True):
            points = {column: v[first:last] for column, v in table.items() if column != by}
            here = plain(values[codes[first]])
            if held and not _is_same(here, name):
                yield _gathered(name, held, by)
                held = []
            name = here
            held.append(points)
    if held:
        yield _gathered(name, held, by)


def _is_same(a: Any, b: Any) -> bool:
    return bool(a == b) or (_is_missing(a) and _is_missing(b))


def _is_missing(name: Any) -> bool:
    return name is None or name != name or name == ""  # an empty text: that is how missing ones are read


def _gathered(name: Any, held: list[dict[str, Any]], by: str) -> tuple[Any, Any]:
    if _is_missing(name):
        return None, Unreadable(f"these points belong to no data set: their {by!r} is missing")
    return name, held[0] if len(held) == 1 else {c: np.concatenate([part[c] for part in held]) for c in held[0]}


# -- files ------------------------------------------------------------------------------------------------------------


def _of_path(path: Path, by: str | None, id: str | None) -> DataSets:
    if path.suffix.lower() not in (*PARQUET, *ARROW) and path.is_file():  # a text file: a table in memory
        return _of_mapping(as_columns(path), by, id)
    files = _files(path)
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise DataError(
            f"{str(path)!r} is read with pyarrow, which is not installed. Install it: pip install 'supermodel-bayes[parquet]'"
        ) from None
    opened = [_opened(file) for file in files]
    columns = list(dict.fromkeys(name for names, _, _ in opened for name in names))
    total: int | None = None
    if by is not None:
        _check_column(by, columns, "by")
        total = _count_groups(path, (batch for _, _, read in opened for batch in read([by])), by)
    elif all(rows is not None for _, rows, _ in opened):
        total = sum(rows for _, rows, _ in opened if rows is not None)
    return _of_tables(lambda: (table for _, _, read in opened for table in read(None)), columns, by, id, total)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix.lower() in (*PARQUET, *ARROW))
        found = [file for file in found if not file.name.startswith((".", "_"))]
        if not found:
            raise DataError(
                f"the folder {str(path)!r} holds no Parquet or Arrow file ({', '.join((*PARQUET, *ARROW))})."
            )
        return found
    if not path.is_file():
        raise DataError(f"there is no file or folder {str(path)!r}.")
    return [path]


Read = Callable[[list[str] | None], Iterator[Any]]


def _opened(path: Path) -> tuple[list[str], int | None, Read]:
    """Names of the columns, the number of rows, and how to read them."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        if path.suffix.lower() in PARQUET:
            with parquet.ParquetFile(path) as file:
                return file.schema_arrow.names, file.metadata.num_rows, lambda names: _parquet_tables(path, names)
        with _ipc(path) as reader:
            return reader.schema.names, None, lambda names: _ipc_tables(path, names)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{str(path)!r} cannot be read: {str(error).splitlines()[0]}") from None


def _parquet_tables(path: Path, names: list[str] | None) -> Iterator[Any]:
    """Row group by row group; of one that is damaged the reason, once for every row of it that has not been read."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            left = file.metadata.row_group(group).num_rows
            try:
                for batch in file.iter_batches(BATCH, row_groups=[group], columns=names):
                    yield _columns(batch)
                    left -= len(batch)
            except (OSError, pa.ArrowException) as error:
                why = f"row group {group} of {path.name} cannot be read: {str(error).splitlines()[0]}"
                if names is not None:
                    raise DataError(
                        f"{why}. Without its groups nothing tells data sets apart: mend the file."
                    ) from None
                yield [Unreadable(why)] * left


def _ipc(path: Path) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(pa.memory_map(str(path)))
    except pa.ArrowInvalid:  # a stream has no footer
        return pa.ipc.open_stream(pa.memory_map(str(path)))


def _ipc_tables(path: Path, names: list[str] | None) -> Iterator[Any]:
    with _ipc(path) as reader:
        n = getattr(reader, "num_record_batches", None)
        for batch in reader if n is None else map(reader.get_batch, range(n)):
            yield _columns(batch if names is None else batch.select(names))


def _count_groups(path: Path, tables: Iterator[Any], by: str) -> int:
    """How many data sets a long table has; refused where the points of one stand in several places."""
    import pandas as pd

    firsts: list[np.ndarray] = []
    last: Any = None
    for table in tables:
        codes, values = _codes(table[by])
        begins = np.flatnonzero(np.diff(codes, prepend=-1))
        if firsts and len(codes) and _is_same(plain(values[codes[0]]), last):
            begins = begins[1:]  # goes on from the table before
        firsts.append(np.asarray(values)[codes[begins]])
        last = plain(values[codes[-1]]) if len(codes) else last
    names = pd.Series(np.concatenate(firsts)) if firsts else pd.Series([], dtype=float)
    twice = names[names.duplicated()]
    if len(twice):
        raise DataError(
            f"{str(path)!r} is no table of one data set after the other: the points of {by} = {plain(twice.iloc[0])!r} stand in "
            f"several places ({len(twice)} such cases), and files are read piece by piece. Sort it by {by!r} first; or read it "
            "into a frame and give that, which may be in any order."
        )
    return len(names)


class _Lists:
    """A column of lists: `column[i]` is the array of row i, or None where it is missing."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray, valid: np.ndarray):
        self.values, self.offsets, self.valid = values, offsets, valid

    def __len__(self) -> int:
        return len(self.valid)

    def __getitem__(self, i: int) -> np.ndarray | None:
        return self.values[self.offsets[i] : self.offsets[i + 1]] if self.valid[i] else None


def _columns(batch: Any) -> dict[str, Any]:
    return {name: _column(batch.column(i)) for i, name in enumerate(batch.schema.names)}


def _column(array: Any) -> Any:
    import pyarrow.types as types

    kind = array.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list:
        return as_columns({"": array.to_numpy(zero_copy_only=False)})[""]
    if types.is_nested(kind.value_type):  # matrices: rare, and slower
        return array.to_pylist()
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if types.is_fixed_size_list(kind):
        ends = np.concatenate([[0], np.cumsum(np.where(valid, kind.list_size, 0))])
        return _Lists(array.flatten().to_numpy(zero_copy_only=False), ends, valid)
    return _Lists(array.values.to_numpy(zero_copy_only=False), array.offsets.to_numpy(), valid)
