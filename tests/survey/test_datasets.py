"""Every form of data sets gives the same data sets; what is none raises, and what cannot be read is told in its place."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from supermodel.errors import DataError
from supermodel.survey.datasets import DataSets, Unreadable, collected

LENGTHS = (3, 1, 4)
X = [np.arange(n) + 0.5 for n in LENGTHS]
Y = [10.0 * i + np.arange(n) for i, n in enumerate(LENGTHS)]
NAMES = ["a", "b", "c"]
SETS = [{"x": x, "y": y} for x, y in zip(X, Y, strict=True)]
LONG = pd.DataFrame({"object": np.repeat(NAMES, LENGTHS), "x": np.concatenate(X), "y": np.concatenate(Y)})
LISTS = {"name": NAMES, "x": [x.tolist() for x in X], "y": [y.tolist() for y in Y]}


def written(folder, table, name="data.parquet", **options):
    pq.write_table(table, folder / name, **options)
    return folder / name


def arrow_file(folder):
    table = pa.table(LISTS)
    with pa.OSFile(str(folder / "data.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return folder / "data.arrow"


def parts_folder(folder):
    (folder / "many").mkdir()
    for i in range(3):
        written(folder / "many", pa.table({k: v[i : i + 1] for k, v in LISTS.items()}), f"part-{i}.parquet")
    return folder / "many"


def csv_file(folder):
    LONG.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv"


FORMS = {
    "dicts": lambda f: (SETS, {}, [None] * 3),
    "generator": lambda f: ((s for s in SETS), {}, [None] * 3),
    "dicts with a name": lambda f: (
        [{**s, "name": n} for s, n in zip(SETS, NAMES, strict=True)],
        {"id": "name"},
        NAMES,
    ),
    "dict of dicts": lambda f: (dict(zip(NAMES, SETS, strict=True)), {}, NAMES),
    "dict of lists of arrays": lambda f: ({"name": NAMES, "x": X, "y": Y}, {"id": "name"}, NAMES),
    "frames": lambda f: ([pd.DataFrame(s) for s in SETS], {}, [None] * 3),
    "pandas": lambda f: (LONG, {"by": "object"}, NAMES),
    "pandas, in no order": lambda f: (LONG.iloc[[0, 4, 3, 1, 5, 2, 6, 7]], {"by": "object"}, ["a", "c", "b"]),
    "polars": lambda f: (pl.from_pandas(LONG), {"by": "object"}, NAMES),
    "polars, lazy": lambda f: (pl.from_pandas(LONG).lazy(), {"by": "object"}, NAMES),
    "polars, lists": lambda f: (pl.DataFrame(LISTS), {"id": "name"}, NAMES),
    "arrow": lambda f: (pa.Table.from_pandas(LONG), {"by": "object"}, NAMES),
    "arrow, lists": lambda f: (pa.table(LISTS), {"id": "name"}, NAMES),
    "arrow, batches": lambda f: (pa.table(LISTS).to_reader(max_chunksize=2), {"id": "name"}, NAMES),
    "parquet": lambda f: (written(f, pa.table(LISTS), row_group_size=2), {"id": "name"}, NAMES),
    "parquet, as text": lambda f: (str(written(f, pa.table(LISTS))), {"id": "name"}, NAMES),
    "parquet, long": lambda f: (written(f, pa.Table.from_pandas(LONG), row_group_size=2), {"by": "object"}, NAMES),
    "arrow file": lambda f: (arrow_file(f), {"id": "name"}, NAMES),
    "folder": lambda f: (parts_folder(f), {"id": "name"}, NAMES),
    "csv": lambda f: (csv_file(f), {"by": "object"}, NAMES),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_data_sets(form, tmp_path):
    given, options, names = form(tmp_path)
    found = list(collected(given, **options))
    assert [name for name, _ in found] == names
    for (name, data), i in zip(found, range(3), strict=True):
        i = NAMES.index(name) if name is not None else i
        assert np.array_equal(np.sort(data["x"]), X[i]) and np.array_equal(np.sort(data["y"]), Y[i])


@pytest.mark.parametrize("form", [f for f in FORMS if f not in ("generator", "arrow, batches", "arrow file")])
def test_the_number_of_data_sets_is_known_before(form, tmp_path):
    given, options, _ = FORMS[form](tmp_path)
    assert collected(given, **options).total == 3


def test_stacked_arrays_and_numbers_of_each_data_set():
    x, z = np.arange(8.0).reshape(2, 4), np.array([0.1, 0.2])
    structured = np.zeros(2, [("x", float, 4), ("z", float)])
    structured["x"], structured["z"] = x, z
    for given in ({"x": x, "z": z}, structured, {"x": x, "z": z.tolist()}):
        found = [data for _, data in collected(given)]
        assert all(np.array_equal(d["x"], x[i]) and d["z"] == z[i] for i, d in enumerate(found)) and len(found) == 2
    assert np.array_equal([data["y"] for _, data in collected(x)], x)  # without names it is what was measured


def test_a_file_is_read_piece_by_piece(tmp_path, monkeypatch):
    n = 100
    path = written(tmp_path, pa.table({"y": [[float(i)] for i in range(n)]}), row_group_size=10)
    read = []
    real = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda s, *a, **k: read.append(k["row_groups"]) or real(s, *a, **k)
    )
    stream = iter(collected(path))
    for _ in range(15):
        next(stream)
    assert read == [[0], [1]]


def test_a_damaged_row_group_costs_its_own_rows_only(tmp_path):
    path = written(tmp_path, pa.table({"y": [[float(i)] * 50 for i in range(40)]}), row_group_size=10)
    where = pq.ParquetFile(path).metadata.row_group(2).column(0)
    content = bytearray(path.read_bytes())
    content[where.data_page_offset : where.data_page_offset + where.total_compressed_size // 2] = b"\xff" * (
        where.total_compressed_size // 2
    )
    path.write_bytes(content)
    found = [data for _, data in collected(path)]
    bad = [i for i, data in enumerate(found) if isinstance(data, Unreadable)]
    assert bad == list(range(20, 30)) and "row group 2 of data.parquet cannot be read" in found[20].reason


def test_points_without_a_data_set_are_told(tmp_path):
    table = LONG.assign(object=["a", "a", "a", None, "c", "c", "c", "c"])
    for given in (table, written(tmp_path, pa.Table.from_pandas(table))):
        found = list(collected(given, by="object"))
        assert [name for name, _ in found] == ["a", None, "c"] and "belong to no data set" in found[1][1].reason


def test_a_file_that_is_not_sorted_is_refused_before_anything_is_done(tmp_path):
    path = written(tmp_path, pa.Table.from_pandas(LONG.iloc[[0, 3, 1, 2, 4, 5, 6, 7]]))
    with pytest.raises(DataError, match="object = 'a' stand in several places .* Sort it by 'object'"):
        collected(path, by="object")


@pytest.mark.parametrize(
    "given, options, told",
    [
        (7, {}, "no data sets; got int"),
        (None, {}, "no data sets; got NoneType"),
        ({}, {}, "the dict is empty"),
        ({"x": np.zeros((3, 2)), "y": np.zeros((2, 2))}, {}, "lengths are {'x': 3, 'y': 2}"),
        (np.zeros(4), {}, r"shape \(n, length\)"),
        (SETS, {"by": "object"}, "by= needs a table"),
        (LONG, {"by": "objct"}, "Did you mean 'object'"),
        (LONG, {"id": "nme"}, "id='nme' names no column"),
        ("nowhere.parquet", {}, "no file or folder"),
    ],
)
def test_what_is_no_collection_of_data_sets_raises(given, options, told):
    with pytest.raises(DataError, match=told):
        collected(given, **options)


def test_files_that_are_none_are_told(tmp_path):
    (tmp_path / "a.parquet").write_text("no Parquet")
    with pytest.raises(DataError, match="a.parquet' cannot be read"):
        collected(tmp_path / "a.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no Parquet"):
        collected(tmp_path / "empty")


def test_columns_can_be_renamed():
    found = list(collected(LONG, by="object").renamed({"y": "x", "flux": "y"}))
    assert np.array_equal(found[0][1]["y"], X[0]) and np.array_equal(found[0][1]["flux"], Y[0])
    assert next(iter(DataSets(lambda: iter([(None, 7)])).renamed({"y": "x"}))) == (None, 7)
