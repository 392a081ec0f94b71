"""The tidy table: one row for each data set and pair of models, in memory or as Parquet."""

from __future__ import annotations

import io
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supermodel.errors import StorageError, SupermodelError
from supermodel.survey.job import Outcome

if TYPE_CHECKING:
    import pandas as pd

KEY = b"supermodel"  # of our own words in the metadata of a Parquet file
NUMBERS = (
    *("log_bayes_factor", "error", "log_evidence_first", "error_first"),
    *("log_evidence_second", "error_second", "seconds"),
)
TEXTS = ("first", "second", "verdict", "codes", "reason", "route")
COLUMNS = (
    *("row", "dataset", "first", "second", *NUMBERS[:-1]),
    *("verdict", "codes", "reason", "route", "evaluations", "seconds"),
)
UNKNOWN = (math.nan, math.nan)


def pairs_of(models: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs, in the order of the models."""
    return list(itertools.combinations(models, 2))


def columns_of(outcomes: Iterable[Outcome], models: Sequence[str]) -> dict[str, list[Any]]:
    """The columns of the table; without an answer there are NaNs, a verdict and a reason."""
    found = []
    for o in outcomes:
        for first, second in pairs_of(models):
            ends = (*o.evidences.get(first, UNKNOWN), *o.evidences.get(second, UNKNOWN))
            level, codes, reason = o.scopes.get((first, second), (o.level, o.codes, o.reason))
            told = (level, ",".join(codes), reason, o.route, o.evaluations, o.seconds)
            found.append((o.row, o.name, first, second, *o.pairs.get((first, second), UNKNOWN), *ends, *told))
    return dict(zip(COLUMNS, map(list, zip(*found, strict=True)) if found else [[] for _ in COLUMNS], strict=True))


def frame_of(outcomes: Iterable[Outcome], models: Sequence[str]) -> pd.DataFrame:
    """The table in memory."""
    import pandas as pd

    return in_order(pd.DataFrame(columns_of(outcomes, models), columns=list(COLUMNS)), models)


def in_order(frame: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Sorted by data set, and by pair in the order of the models."""
    ranks = {pair: rank for rank, pair in enumerate(pairs_of(models))}
    pair = [ranks[key] for key in zip(frame["first"], frame["second"], strict=True)]
    return frame.assign(_pair=pair).sort_values(["row", "_pair"]).drop(columns="_pair").reset_index(drop=True)


# -- Parquet ----------------------------------------------------------------------------------------------------------


def arrow() -> Any:
    """pyarrow, or what to do without it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise SupermodelError(
            "`out` is written with pyarrow, which is not installed. Install it: pip install 'supermodel-bayes[parquet]'; or pass "
            "out=None to keep the table in memory, where nothing can be resumed."
        ) from None
    return pyarrow


def schema(is_numbered: bool, told: Mapping[str, Any]) -> Any:
    """What the columns are; names of data sets are numbers where all of them are."""
    pa = arrow()
    kinds = dict.fromkeys(NUMBERS, pa.float64()) | dict.fromkeys(TEXTS, pa.string())
    kinds |= {"row": pa.int64(), "evaluations": pa.int64(), "dataset": pa.int64() if is_numbered else pa.string()}
    return pa.schema([(name, kinds[name]) for name in COLUMNS], {KEY: json.dumps(told).encode()})


def as_parquet(outcomes: Sequence[Outcome], models: Sequence[str], told: Mapping[str, Any]) -> bytes:
    """One row group, with our own words about it."""
    pa = arrow()
    columns = columns_of(outcomes, models)
    is_numbered = all(isinstance(name, int) and not isinstance(name, bool) for name in columns["dataset"])
    columns["dataset"] = columns["dataset"] if is_numbered else list(map(str, columns["dataset"]))
    kinds = schema(is_numbered, told)
    arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in kinds]  # NaN is null there
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_arrays(arrays, schema=kinds), buffer)
    return buffer.getvalue()


def words_of(path: Path) -> dict[str, Any] | None:
    """Our own words in a Parquet file; None where it is damaged or not ours."""
    pa = arrow()
    try:
        found = pa.parquet.read_schema(path).metadata or {}
        return json.loads(found[KEY])
    except (OSError, pa.ArrowException, KeyError, ValueError):
        return None


def is_readable(path: Path) -> bool:
    """Whether all of a file can be read."""
    pa = arrow()
    try:
        pa.parquet.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException):
        return False
    return True


def is_numbered(path: Path) -> bool:
    """Whether data sets are named by numbers there."""
    return str(arrow().parquet.read_schema(path).field("dataset").type) == "int64"


def joined(parts: Sequence[Path], to: Path, told: Mapping[str, Any]) -> None:
    """All parts in one file, a row group each; only one of them is in memory at a time."""
    pa = arrow()
    kinds = schema(all(map(is_numbered, parts)), told)
    with pa.parquet.ParquetWriter(to, kinds) as writer:
        for part in parts:
            writer.write_table(_read(part).cast(kinds))


def read(files: Sequence[Path], models: Sequence[str]) -> pd.DataFrame:
    """The table in some files."""
    import pandas as pd

    if not files:
        return frame_of((), models)
    tables = [_read(path) for path in files]
    pa = arrow()
    if not all(map(is_numbered, files)):
        at = COLUMNS.index("dataset")
        tables = [table.set_column(at, "dataset", table.column(at).cast(pa.string())) for table in tables]
    return in_order(pd.DataFrame(pa.concat_tables(tables).to_pandas()), models)


def _read(path: Path) -> Any:
    pa = arrow()
    try:
        return pa.parquet.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(
            f"{str(path)!r} cannot be read: {str(error).splitlines()[0]}. Run again with resume=True."
        ) from None
