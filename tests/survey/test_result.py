"""What a survey's result answers."""

import numpy as np
import pytest

from supermodel.errors import StorageError, SupermodelError
from supermodel.survey import table
from supermodel.survey.buckets import refused
from supermodel.survey.job import Outcome
from supermodel.survey.page import _reasons, worst_rows
from supermodel.survey.result import ManyResult


def made(n=6):
    found = []
    for i in range(n):
        pairs = {("a", "b"): (i - 2.0, 0.1 * i), ("a", "c"): (1.0, 0.1), ("b", "c"): (3.0 - i, 0.1)}
        found.append(Outcome(i, f"n{i}", {"a": (1.0, 0.1), "b": (2.0, 0.2), "c": (3.0, 0.3)}, pairs, "ok", ("rough",)))
    found.append(refused(n, "last", "data", "torn <b>"))
    return ManyResult(("a", "b", "c"), {}, frame=table.frame_of(found, ("a", "b", "c")), notes=("A note.",))


def test_a_pair_can_be_asked_for_both_ways():
    result = made()
    forth, back = result.rows("a", "b"), result.rows("b", "a")
    assert len(result) == len(forth) == 7 and tuple(back.columns) == table.COLUMNS
    assert np.array_equal(back["log_bayes_factor"], -forth["log_bayes_factor"], equal_nan=True)
    assert set(back["first"]) == {"b"} and back["log_evidence_first"][0] == 2.0 and back["error_second"][0] == 0.1
    with pytest.raises(SupermodelError, match="no pair 'a', 'z'"):
        result.rows("a", "z")


def test_of_three_models_one_may_fail():
    """The rows of the others can be used; the data set counts as flagged, and is left out of the population."""
    pairs = {("a", "b"): (1.0, 0.1), ("a", "c"): (2.0, 0.1), ("b", "c"): (1.0, 0.3)}
    scopes = {("a", "b"): ("ok", (), "")}
    outcomes = [
        Outcome(0, "x", {}, pairs),
        Outcome(1, "y", {}, pairs, "fail", ("looks_disagree",), "no.", scopes=scopes),
    ]
    result = ManyResult(("a", "b", "c"), {}, frame=table.frame_of(outcomes, ("a", "b", "c")))
    assert result.rows("a", "b")["verdict"].tolist() == ["ok", "ok"]
    assert result.rows("b", "c")["verdict"].tolist() == ["ok", "fail"] and result.rows("a", "b")["codes"].tolist() == [
        "",
        "",
    ]
    assert result.counts == {"ok": 1, "fail": 1} and set(result.flagged["dataset"]) == {"y"} and len(result.ok) == 4
    assert result.population().n_left_out == 1
    assert worst_rows(result, 2)[["dataset", "verdict"]].to_numpy().tolist() == [["y", "fail"], ["x", "ok"]]
    assert [(r.code, r.sentence) for r in _reasons(result)] == [("looks_disagree", "1 data set, e.g. y: no.")]


def test_selections():
    result = made()
    assert result.select("a", "b", error_above=0.35) == ["n4", "n5", "last"]  # an unknown error is not a small one
    assert result.select("a", "b", within=1.0) == ["n1", "n2", "n3"]
    assert result.select(verdict="fail") == result.select(code="data") == ["last"]
    assert result.select("a", "b", within=1.0, error_above=0.25) == ["n3"]
    assert result.select() == [*(f"n{i}" for i in range(6)), "last"]
    with pytest.raises(SupermodelError, match="one or more of ok"):
        result.select(verdict="bad")


def test_it_shows_itself():
    text = str(made())
    assert text.splitlines()[0] == "7 data sets, 3 models: 6 ok, 1 fail"
    assert "ln B(a : b): median 0.50" in text and "last: fail (data): torn <b>" in text and "A note." in text
    html = made()._repr_html_()
    assert "torn &lt;b&gt;" in html and "<table" in html and repr(made()) == "<ManyResult: 7 data sets, a, b, c>"


def test_what_is_no_table_of_ours_is_told(tmp_path):
    (tmp_path / "x.parquet").write_text("")
    for path in (tmp_path / "x.parquet", tmp_path, tmp_path / "none"):
        with pytest.raises(StorageError, match="no table of compare_many"):
            ManyResult.load(path)
