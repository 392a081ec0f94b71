"""The user's data as a table: columns by name, rows without holes, and a sentence for whatever is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from supermodel.errors import DataError, suggestion
from supermodel.models.columns import as_columns
from supermodel.models.table_file import read_table


def as_table(data: Any) -> pd.DataFrame:
    """A frame, a dict of columns or the path of a file as a pandas frame, whose index says where each row comes from."""
    if isinstance(data, pd.DataFrame):  # as it is: categories keep their order
        return data.set_axis([f"row {i} (counted from 0)" for i in range(len(data))], axis=0)
    if isinstance(data, str | os.PathLike):
        found = read_table(Path(data))
        return pd.DataFrame(found.columns, index=[found.where(i) for i in range(_length(found.columns))])
    columns = as_columns(data)
    if not isinstance(columns, Mapping):
        raise DataError(
            f"`data` must be a table: a frame of pandas or polars, a dict of columns, or the path of a CSV file; got "
            f"{type(data).__name__}."
        )
    n = _length(columns)
    return pd.DataFrame(
        {str(name): column for name, column in columns.items()}, index=[f"row {i} (counted from 0)" for i in range(n)]
    )


def _length(columns: Mapping[str, Any]) -> int:
    sizes = {str(name): len(np.atleast_1d(column)) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(f"the columns of `data` must be equally long; their lengths are {sizes}.")
    return next(iter(sizes.values()), 0)


def checked_columns(table: pd.DataFrame, names: Sequence[str], missing: str) -> tuple[pd.DataFrame, int]:
    """The named columns without missing values, and the number of rows dropped; `missing` is "raise" or "drop"."""
    if missing not in ("raise", "drop"):
        raise DataError(f'`missing` is "raise" or "drop"; got {missing!r}.')
    unknown = [name for name in names if name not in table.columns]
    if unknown:
        hint = suggestion(unknown[0], map(str, table.columns))
        raise DataError(
            f"there is no column {unknown[0]!r} in the data; its columns are {', '.join(map(str, table.columns))}. {hint}".strip()
        )
    table = table[list(dict.fromkeys(names))]
    bad = np.column_stack([_holes(table[name]) for name in table])
    rows = np.flatnonzero(bad.any(axis=1))
    if len(rows) and missing == "raise":
        column = table.columns[int(np.argmax(bad[rows[0]]))]
        raise DataError(
            f"column {column!r}, {table.index[rows[0]]}, is {table[column].iloc[rows[0]] or 'empty'}: {len(rows)} of "
            f'{len(table)} rows are incomplete. Fill them, or leave them out with missing="drop".'
        )
    if len(rows) == len(table):
        raise DataError("no row of the data is complete.")
    return table.drop(index=table.index[rows]), len(rows)


def _holes(column: pd.Series) -> np.ndarray:
    """Where a value is missing, not finite, or an empty text."""
    hole = column.isna().to_numpy()
    if pd.api.types.is_numeric_dtype(column):
        return hole | ~np.isfinite(column.to_numpy(float, na_value=np.nan))
    return hole | (column.astype(str) == "").to_numpy()
