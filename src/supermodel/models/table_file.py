"""Tables from files: CSV and its kin, and Parquet, as columns by name with the lines that they stand on."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from supermodel.errors import DataError

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "."})
PARQUET = (".parquet", ".pq")


class Table(NamedTuple):
    """Columns by name: of numbers, NaN where one is missing, or of texts; and where their rows stand in the file."""

    columns: dict[str, np.ndarray]
    name: str = ""
    lines: tuple[int, ...] = ()  # of each row; none in a binary file

    def where(self, row: int) -> str:
        """`line 7 of obs.csv`."""
        return f"line {self.lines[row]} of {self.name}" if self.lines else f"row {row + 1} of {self.name}"


def read_table(path: Path) -> Table:
    """A Parquet file, or columns with a header, separated by commas, semicolons, tabs or blanks; `#` begins a comment."""
    try:
        if not path.is_file():
            raise DataError(f"there is no file {str(path)!r}")
        if path.suffix.lower() in PARQUET:
            return _parquet(path)
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(
            f"the file {str(path)!r} is not UTF-8 text; a table is a text of columns with a header, or a Parquet file "
            f"({' or '.join(PARQUET)})"
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the file {str(path)!r} cannot be read: {error}") from None
    rows = _rows(text, str(path))
    if len(rows) < 2:
        raise DataError(f"{str(path)!r} has no data: a header line and at least one row are needed")
    header = [name.strip() for name in rows[0][1]]
    if all(_number(name) is not None for name in header):
        raise DataError(
            f"{str(path)!r} has no header: its first line is {', '.join(header[:6])}. Write names for the columns there"
        )
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise DataError(f"{str(path)!r} has two columns named {twice!r}")
    columns = {name: _column([cells[j] for _, cells in rows[1:]]) for j, name in enumerate(header)}
    return Table(columns, path.name, tuple(line for line, _ in rows[1:]))


def _parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(
            f"{str(path)!r} is read with pyarrow, which is not installed. Install it: pip install 'supermodel-bayes[parquet]'"
        ) from None
    from supermodel.models.columns import as_columns

    columns = as_columns(parquet.read_table(path))
    if not columns or not len(next(iter(columns.values()))):
        raise DataError(f"{str(path)!r} has no data: at least one column and one row are needed")
    return Table(columns, path.name)


def _column(cells: list[str]) -> np.ndarray:
    numbers = [_number(cell) for cell in cells]
    missing = [cell.strip().lower() in MISSING for cell in cells]
    if all(missing) or any(number is None and not gone for number, gone in zip(numbers, missing, strict=True)):
        return np.array([cell.strip() for cell in cells])
    return np.array([np.nan if number is None else number for number in numbers])


def _rows(text: str, path: str) -> list[tuple[int, list[str]]]:
    """(line number, cells) of every line that is not empty or a comment; a header may itself stand behind `#`."""
    lines = [(n + 1, line) for n, line in enumerate(text.splitlines()) if line.strip()]
    data = [(n, line) for n, line in lines if not line.lstrip().startswith("#")]
    commented = [(n, line.lstrip()[1:]) for n, line in lines if line.lstrip().startswith("#")]
    if data and commented and all(_number(cell) is not None for cell in _cells(data[0][1], _separator(data[0][1]))):
        before = [(n, line) for n, line in commented if n < data[0][0]]
        first = data[0][1]
        if before and len(_cells(before[-1][1], _separator(before[-1][1]))) == len(_cells(first, _separator(first))):
            # A header in a comment is often written with blanks over columns of another separator.
            names = _cells(before[-1][1], _separator(before[-1][1]))
            return [(before[-1][0], names), *_alike(data, _separator(first), len(names), path)]
    if not data:
        return []
    separator = _separator(data[0][1])
    return _alike(data, separator, len(_cells(data[0][1], separator)), path)


def _alike(lines: list[tuple[int, str]], separator: str | None, n: int, path: str) -> list[tuple[int, list[str]]]:
    """The cells of every line by the one separator of the file."""
    rows = [(line, _cells(text, separator)) for line, text in lines]
    for (line, cells), (_, text) in zip(rows, lines, strict=True):
        if len(cells) != n:
            other = _separator(text)
            hint = (
                f". Columns are separated by {SEPARATORS[separator]} in the first line, and by {SEPARATORS[other]} here"
                if other != separator and len(_cells(text, other)) == n
                else ""
            )
            raise DataError(f"{path!r}, line {line}: {len(cells)} values, but the header names {n} columns{hint}")
    return rows


SEPARATORS: dict[str | None, str] = {",": "commas", ";": "semicolons", "\t": "tabs", None: "blanks"}


def _separator(line: str) -> str | None:
    return next((mark for mark in (",", ";", "\t") if mark in line), None)


def _cells(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    try:
        return next(csv.reader(io.StringIO(line), delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return line.split(separator)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
