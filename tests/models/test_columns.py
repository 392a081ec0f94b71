"""Data in all the forms that people have them: the same numbers reach the likelihood, and holes are told before it is called."""

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from supermodel.errors import DataError
from supermodel.models.columns import as_columns, received

X, Y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.1, 0.9, 2.2, 2.9])


def frames():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa, xr = pytest.importorskip("pyarrow"), pytest.importorskip("xarray")
    columns = {"x": X.tolist(), "y": Y.tolist()}
    return {
        "dict of arrays": {"x": X, "y": Y},
        "dict of lists": columns,
        "dict of tuples": {"x": tuple(X), "y": [np.float64(v) for v in Y]},
        "dict of series": {"x": pd.Series(X, index=[9, 8, 7, 6]), "y": pl.Series(Y)},
        "pandas": pd.DataFrame(columns, index=[3, 1, 2, 0]),
        "pandas, x in the index": pd.DataFrame({"y": Y}, index=pd.Index(X, name="x")),
        "pandas, nullable": pd.DataFrame(columns).convert_dtypes(),
        "polars": pl.DataFrame(columns),
        "polars, lazy": pl.LazyFrame(columns),
        "arrow": pa.table(columns),
        "xarray": xr.Dataset({"y": ("x", Y)}, coords={"x": X}),
        "xarray array": xr.DataArray(Y, dims="x", coords={"x": X}),
        "structured": np.array(list(zip(X, Y, strict=True)), dtype=[("x", float), ("y", float)]),
        "masked": {"x": np.ma.array(X), "y": np.ma.array(Y)},
    }


def line(seen=None):
    def predict(p, x):
        if seen is not None:
            seen.append(x)
        return p["b"] * x

    return sm.Model({"b": stats.norm(0, 2)}, predict=predict, noise=sm.Gaussian(0.3))


def test_every_form_gives_the_same_columns_and_the_same_likelihood():
    expected = line().log_likelihood({"b": 1.1}, {"x": X, "y": Y})
    for label, data in frames().items():
        columns = as_columns(data)
        for name, values in (("x", X), ("y", Y)):
            assert isinstance(columns[name], np.ndarray), label
            np.testing.assert_array_equal(np.asarray(columns[name], float), values, err_msg=label)
        assert line().log_likelihood({"b": 1.1}, data) == expected, label


def test_a_dataset_of_several_axes_is_a_long_table():
    xr = pytest.importorskip("xarray")
    y = np.arange(6.0).reshape(2, 3)
    data = xr.Dataset(
        {"y": (("site", "t"), y), "depth": ("site", [5.0, 7.0])}, coords={"site": ["a", "b"], "t": [1, 2, 3]}
    )
    columns = as_columns(data)
    assert columns["y"].tolist() == y.ravel().tolist() and columns["t"].tolist() == [1, 2, 3] * 2
    assert columns["site"].tolist() == ["a"] * 3 + ["b"] * 3 and columns["depth"].tolist() == [5.0] * 3 + [7.0] * 3


def test_compare_takes_a_frame_and_gives_the_bits_of_the_dict(tmp_path):
    pd = pytest.importorskip("pandas")
    models = {
        "line": sm.Model({"b": stats.norm(0, 2)}, lambda p, d: stats.norm.logpdf(d["y"], p["b"] * d["x"], 0.3).sum()),
        "flat": sm.Model({}, lambda p, d: stats.norm.logpdf(d["y"], 0.0, 0.3).sum()),
    }
    frame = pd.DataFrame({"x": X, "y": Y, "who": ["a", "b", "c", "d"]})
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    found = [
        sm.compare(models, data, max_evaluations=1500, explore="quick", progress=False).log_bayes_factor("line", "flat")
        for data in ({"x": X, "y": Y}, frame, str(tmp_path / "d.csv"), tmp_path / "d.parquet")
    ]
    assert all(np.isfinite(each.value) and each == found[0] for each in found)


def test_what_is_no_table_is_handed_on_as_it_is():
    matrix, ragged = np.eye(3), [[1.0], [2.0, 3.0]]
    data = {"X": matrix, "sigma": 0.1, "limits": np.inf, "name": "run 3", "ragged": ragged, "parts": [X, Y], "f": len}
    assert as_columns(data) is data and received(data).data is data
    for whole in (matrix, (X, 3.0), None, object()):
        assert received(whole).data is whole
    mixed = {"x": [1, "a"], "n": [1, 2], "empty": []}
    assert as_columns(mixed)["x"] == [1, "a"] and as_columns(mixed)["empty"] == []
    assert as_columns(mixed)["n"].dtype.kind == "i"


def test_texts_categories_and_truth_values_stay():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({
        "group": pd.Categorical(["a", "b", "a"]), "name": ["u", None, "w"], "on": [True, False, True],
        "when": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]), "dose": pd.Categorical([1, 2, 1]),
    })  # fmt: skip
    columns = received(frame).data
    assert columns["group"].tolist() == ["a", "b", "a"] and columns["name"].tolist() == ["u", "", "w"]
    assert columns["on"].dtype == bool and columns["when"].dtype.kind == "M" and columns["dose"].tolist() == [1, 2, 1]
    # A text that a model asks for by name may not be missing.
    model = sm.Model({"b": stats.norm(0, 2)}, predict=lambda p, name: p["b"] * (name == "u"), noise=sm.Gaussian(0.3))
    with pytest.raises(DataError, match=r"column 'name', row 1 \(counted from 0\) is missing"):
        received(frame.assign(y=1.0), [model])


def with_hole(value):
    y = Y.copy()
    y[2] = value
    return {"x": X, "y": y, "notes": np.array([np.nan, 1, 2, 3])}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_holes_are_told_with_column_and_row_before_the_likelihood_is_called(value):
    seen = []
    models = {"line": line(seen), "again": line(seen)}
    for call in (lambda d: sm.compare(models, d), lambda d: sm.evidence(models["line"], d)):
        with pytest.raises(DataError, match=rf"column 'y', row 2 \(counted from 0\) is {value}.*Mend them"):
            call(with_hole(value))
    assert seen == []
    # Columns that no model reads may be as they are; a log likelihood may read them all.
    received({**with_hole(1.0)}, models.values())
    with pytest.raises(DataError, match="'notes', row 0"):
        received(with_hole(1.0), [sm.Model({}, lambda p, d: 0.0)])
    kept = with_hole(value)
    assert received(kept, models.values(), "keep").data is kept


def test_missing_values_have_many_dresses():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for holed in (
        {"y": [1.0, None, 2.0]}, pd.DataFrame({"y": pd.array([1, None, 2], dtype="Int64")}), pl.DataFrame({"y": [1, None, 2]}),
        {"y": np.ma.array([1.0, 5.0, 2.0], mask=[0, 1, 0])}, np.array([1.0, np.nan, 2.0]), (np.array([1.0, np.nan]), 3.0),
        pd.DataFrame({"y": pd.to_datetime(["2020-01-01", None, "2020-01-03"])}),
    ):  # fmt: skip
        with pytest.raises(DataError, match=r"row 1 \(counted from 0\) is (missing|nan|NaT)"):
            received(holed)
    with pytest.raises(DataError, match=r"column 'X', element \[1, 0\] is nan"):
        received({"X": np.array([[1.0, 2.0], [np.nan, 3.0]])})
    with pytest.raises(DataError, match="column 'sigma' is nan"):
        received({"sigma": np.nan})


def test_rows_are_dropped_and_counted():
    n, whole = 4, with_hole(np.nan)
    whole |= {"X": np.arange(8.0).reshape(n, 2), "knots": np.arange(3.0), "s": 0.2}
    found = received(whole, [line()], "drop")
    assert (found.dropped, found.rows) == (1, 4)
    assert found.data["x"].tolist() == [0, 1, 3] and found.data["X"].tolist() == [[0, 1], [2, 3], [6, 7]]
    assert found.data["knots"] is whole["knots"] and found.data["s"] == 0.2 and len(found.data["notes"]) == 3
    assert received(np.array([1.0, np.nan, 2.0]), (), "drop").data.tolist() == [1, 2]
    kept = received((X, with_hole(np.nan)["y"], "s"), (), "drop").data
    assert kept[0].tolist() == [0, 1, 3] and kept[2] == "s"
    for wrong, why in (
        ({**whole, "C": np.eye(n)}, "4 × 4"),
        ({**whole, "y": np.full(n, np.nan)}, "all 4 rows"),
        (with_hole(np.inf), "infinite is not missing"),
    ):
        with pytest.raises(DataError, match=why):
            received(wrong, [line()], "drop")
    with pytest.raises(DataError, match=r"\['knots'\] have missing values and no such rows"):
        received({"y": Y, "knots": np.array([np.nan])}, (), "drop")


def test_the_result_says_how_many_rows_were_dropped(tmp_path):
    model = sm.Model({}, lambda p, d: stats.norm.logpdf(d["y"], 0.0, 1.0).sum())
    found = sm.evidence(model, {"y": [0.3, None, 0.1]}, missing="drop", progress=False)
    assert found.value == pytest.approx(stats.norm.logpdf([0.3, 0.1]).sum(), abs=1e-9)
    assert "1 of 3 rows of the data miss a value and were dropped" in str(found)
    found.save(tmp_path / "r.nc")
    assert "1 of 3 rows" in str(sm.load(tmp_path / "r.nc"))
    assert "rows of the data" not in str(sm.evidence(model, {"y": [0.3, 0.1]}, progress=False))


def test_columns_of_different_lengths_are_told_where_they_do_not_fit():
    with pytest.raises(DataError, match=r"`predict` gives 3 values for 4 values of data\[\"y\"\].*x 3, y 4"):
        sm.evidence(line(), {"x": [1, 2, 3], "y": Y})
    product = sm.Model({"b": stats.norm(0, 2)}, predict=lambda p, x, z: p["b"] * x * z, noise=sm.Gaussian(0.3))
    with pytest.raises(DataError, match="fails on columns of different lengths .x 4, z 3"):
        sm.evidence(product, {"x": X, "z": X[:3], "y": Y})
    with pytest.raises(DataError, match="sigma 3"):
        sm.evidence(
            sm.Model({"b": stats.norm(0, 2)}, predict=lambda p, x: p["b"] * x), {"x": X, "y": Y, "sigma": [1, 2, 3]}
        )
    # Arrays that are no columns may have any length.
    knots = sm.Model(
        {"b": stats.norm(0, 2)}, predict=lambda p, x, knots: p["b"] * x + sum(knots), noise=sm.Gaussian(0.3)
    )
    assert np.isfinite(knots.log_likelihood({"b": 1.0}, {"x": X, "y": Y, "knots": [1.0, 2.0]}))


def test_a_frame_with_two_columns_of_one_name_is_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="two columns named 'x'"):
        as_columns(pd.DataFrame([[1, 2]], columns=["x", "x"]))


def test_a_text_among_numbers_is_told_with_column_and_row(tmp_path):
    pd = pytest.importorskip("pandas")
    mixed = [0.1, 0.9, "n/a", 2.9]
    where = r"column 'y' holds a text: 'n/a' in row 2 \(counted from 0\), where 3 of 4 rows are numbers"
    for data in ({"x": X, "y": mixed}, pd.DataFrame({"x": X, "y": mixed}), {"x": X, "y": [str(v) for v in mixed]}):
        with pytest.raises(DataError, match=where):
            sm.evidence(line(), data, progress=False)
    with pytest.raises(DataError, match=r"column 'x' holds a text: 'one' in row 1"):
        sm.evidence(line(), {"x": [0.0, "one", 2.0, 3.0], "y": Y}, progress=False)
    with pytest.raises(DataError, match="column 'y' holds a text: '0.1' in row 0"):
        sm.evidence(line(), {"x": X, "y": [str(v) for v in Y]}, progress=False)
    path = tmp_path / "obs.csv"
    path.write_text("x,y\n0,0.1\n1,0.9\n2,bad\n3,2.9\n")
    with pytest.raises(DataError, match=r"column 'y' holds a text: 'bad' in line 4 of obs.csv"):
        sm.evidence(line(), path, progress=False)


def test_a_text_that_a_written_likelihood_meets_is_told_where_it_fails():
    def log_likelihood(p, data):
        return float(stats.norm.logpdf(np.asarray(data["flux"], float), p["b"]).sum())

    model = sm.Model({"b": stats.norm(0, 2)}, log_likelihood)
    with pytest.raises(sm.errors.ModelError, match="column 'flux' holds a text: 'n/a' in row 1"):
        sm.evidence(model, {"flux": [0.1, "n/a", 0.3]}, progress=False)
    # A column that it does not read, of names that look like numbers, is nobody's trouble.
    names = {"flux": [0.1, 0.2, 0.3], "name": ["2003", "2004", "2004ab"]}
    assert np.isfinite(sm.evidence(model, names, progress=False, explore="quick").value)


@pytest.mark.parametrize("data", [{"x": [], "y": []}, {"x": X, "y": Y[:0]}, np.zeros(0), {"x": Y[:0]}])
def test_data_of_zero_rows_are_refused(data):
    with pytest.raises(DataError, match="the data have no rows"):
        received(data, [line()])
    assert received({"x": X, "y": Y, "knots": []}, [line()]).data["y"] is Y  # a list of settings may be empty
    assert received(None).data is None and received({}).data == {}
