"""Tables in files: one separator for all lines, missing cells, Parquet, and what is said of the others."""

import numpy as np
import pytest

import supermodel as sm
from supermodel.errors import DataError
from supermodel.models.columns import received
from supermodel.models.table_file import read_table


def written(folder, text, name="d.csv"):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("x,y\n1,2\n3;4\n", "line 3: 1 values.*separated by commas in the first line, and by semicolons here"),
        ("x y\n1 2\n3,4\n", "line 3: 1 values.*blanks in the first line, and by commas"),
        ("x,y\n1 2\n", "line 2: 1 values"),
        ("x;y\n1,5;2\n3;4;5\n", "line 3: 3 values"),
        ("# x y\n1,2\n3 4\n", "line 3: 1 values"),
    ],
)
def test_rows_of_another_separator_are_refused(text, hint, tmp_path):
    with pytest.raises(DataError, match=hint):
        read_table(written(tmp_path, text))


def test_cells_may_be_missing_and_are_told_by_their_line(tmp_path):
    path = written(tmp_path, "# made by hand\nx,y,who\n1,2,a\n3,NA,b\n,5,\n")
    table = read_table(path)
    assert np.isnan(table.columns["y"][1]) and np.isnan(table.columns["x"][2])
    assert table.columns["who"].tolist() == ["a", "b", ""]
    with pytest.raises(DataError, match=r"column 'x', line 5 of d.csv is missing \(1 in 'x', 1 in 'y' in all\)"):
        sm.evidence(sm.Model({}, lambda p, d: 0.0), path)
    found = received(path, (), "drop")
    assert (found.dropped, found.rows, found.data["x"].tolist()) == (2, 3, [1])
    with pytest.raises(DataError, match="line 2 of d.csv is inf.*not missing"):
        received(written(tmp_path, "x\ninf\n"))


def test_parquet_gives_what_csv_gives(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"x": [1.5, None], "n": [1, 2], "who": ["a", "b"]}), tmp_path / "d.parquet")
    columns = read_table(tmp_path / "d.parquet").columns
    assert columns["n"].tolist() == [1, 2] and columns["who"].tolist() == ["a", "b"]
    with pytest.raises(DataError, match="column 'x', row 2 of d.parquet is missing"):
        received(tmp_path / "d.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "bad.parquet")


def test_no_file_and_no_table(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        sm.evidence(sm.Model({}, lambda p, d: 0.0), "nowhere.csv")
    (tmp_path / "d.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8 text"):
        read_table(tmp_path / "d.bin")
