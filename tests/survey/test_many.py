"""`compare_many` from end to end."""

import os
import signal
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import supermodel as sm
from supermodel.errors import DataError, StorageError, SupermodelError
from supermodel.survey import many
from survey_problems import data_sets, hurried, models, none, one, same_but_for_seconds, shifted, truth

OPTIONS = {"chunk": 4, "progress": False}


@pytest.fixture
def at_once(monkeypatch):
    hurried(monkeypatch.setattr)


def test_the_engine_gives_exact_answers_and_flags_the_rest():
    given = data_sets(5, (5, 9))
    given[1]["y"][2] = np.nan
    given[3] = "no data set"
    result = sm.compare_many(models(), given, out=None, explore="quick", **OPTIONS)
    table = result.table
    assert table["row"].tolist() == table["dataset"].tolist() == [0, 1, 2, 3, 4] and len(result) == 5
    assert table["verdict"].tolist() == ["ok", "fail", "ok", "fail", "ok"]
    good = [0, 2, 4]
    assert np.allclose(table["log_bayes_factor"][good], truth([given[i] for i in good]), atol=1e-9)
    assert np.allclose(table["log_evidence_first"][good], [one({}, given[i]) for i in good], atol=1e-9)
    assert np.allclose(table["log_evidence_second"][good], [none({}, given[i]) for i in good], atol=1e-9)
    assert result.flagged["codes"].tolist() == ["data", "data"] and len(result.ok) == 3


def test_the_table_stays_in_memory_and_needs_no_pyarrow(at_once, tmp_path, monkeypatch):
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    monkeypatch.chdir(tmp_path)
    result = sm.compare_many(models(), data_sets(3), **OPTIONS)
    assert len(result.table) == 3 and os.listdir(tmp_path) == []


def test_workers_give_the_bits_of_none():
    """The engine itself, on a black box with a parameter; the exact ln B is that of a normal mean."""
    given = data_sets(3, seed=2)
    both = [
        sm.compare_many(shifted(), given, out=None, explore="quick", executor=n, **OPTIONS).table for n in (None, 1)
    ]
    assert same_but_for_seconds(*both)
    y = np.array([data["y"] for data in given])
    exact = 0.5 * 4 * y.sum(1) ** 2 / (1 + 4 * 5) - 0.5 * np.log(1 + 4 * 5)
    assert np.all(np.abs(both[0]["log_bayes_factor"] - exact) < 5 * both[0]["error"] + 1e-6)


def test_a_likelihood_that_raises_is_told_in_its_row():
    def picky(p, data):
        if data["y"][0] > 0:
            raise ZeroDivisionError("not this one")
        return none(p, data)

    given = {"y": np.array([[-1.0, 2.0], [1.0, 2.0], [-3.0, 1.0]])}
    found = sm.compare_many(
        {"one": models()["one"], "picky": sm.Model({}, picky)}, given, out=None, explore="quick", **OPTIONS
    )
    assert found.table["verdict"].tolist() == ["ok", "fail", "ok"]
    assert found.table["codes"][1] == "model" and "not this one" in found.table["reason"][1]


def test_resumed_it_calls_no_likelihood_again_and_the_table_is_the_same(at_once, tmp_path, monkeypatch):
    given, out = data_sets(30, (5, 9, 7)), tmp_path / "out.parquet"
    given[11] = {"y": []}
    whole = sm.compare_many(models(), given, out=None, **OPTIONS)
    kept = []

    def stopping(source, after):
        for i, data in enumerate(source):
            if i == after:
                raise KeyboardInterrupt
            yield data

    for after in (14, 19, 27):
        part = sm.compare_many(models(), stopping(given, after), out=out, **OPTIONS)
        assert not part.is_complete and "interrupted" in str(part)
        kept.append(len(part))
    assert kept == sorted(kept) and 0 < kept[-1] < 30 and not out.exists()
    result = sm.compare_many(models(), given, out=out, **OPTIONS)
    assert result.is_complete and os.listdir(tmp_path) == ["out.parquet"]
    assert same_but_for_seconds(result.table, whole.table)
    # A finished table asks nobody.
    monkeypatch.setattr(many, "spread", lambda job, chunks, *_: (pytest.fail("asked") for _ in chunks))
    again = sm.compare_many(models(), given, out=out, **OPTIONS)
    assert again.table.equals(result.table)


def test_another_run_is_refused(at_once, tmp_path):
    given, out = data_sets(6), tmp_path / "out.parquet"
    sm.compare_many(models(), given, out=out, **OPTIONS)
    with pytest.raises(StorageError, match="target_error: 0.2 there, 0.1 here"):
        sm.compare_many(models(), given, out=out, target_error=0.1, **OPTIONS)
    with pytest.raises(StorageError, match="likelihoods"):
        sm.compare_many({**models(), "one": models()["none"]}, given, out=out, **OPTIONS)
    given[5] = data_sets(1, seed=8)[0]
    with pytest.raises(StorageError, match="the data have changed"):
        sm.compare_many(models(), given, out=out, **OPTIONS)
    anew = sm.compare_many(models(), given, out=out, resume=False, **OPTIONS)
    assert np.allclose(anew.table["log_bayes_factor"], truth(given))


def test_ctrl_c_returns_what_is_done(at_once, tmp_path):
    given = data_sets(12)

    def pressed():
        for i, data in enumerate(given):
            if i == 9:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            yield data

    part = sm.compare_many(models(), pressed(), out=tmp_path / "out.parquet", **OPTIONS)
    assert not part.is_complete and 0 < len(part) < 12
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(sm.compare_many(models(), given, out=tmp_path / "out.parquet", **OPTIONS)) == 12


def test_memory_does_not_hold_the_survey(at_once, tmp_path, monkeypatch):
    """A generator is not read ahead by more than a chunk."""
    read, done, real = [0], [], many.Parts.add

    def stream():
        for data in data_sets(40):
            read[0] += 1
            yield data

    monkeypatch.setattr(many.Parts, "add", lambda *given: done.append(read[0]) or real(*given))
    sm.compare_many(models(), stream(), out=tmp_path / "out.parquet", **OPTIONS)
    assert done == list(range(4, 41, 4))


def test_some_are_run_again_with_a_smaller_target(at_once):
    given = data_sets(12)
    first = sm.compare_many(models(), given, out=None, **OPTIONS)
    names = first.select("one", "none", within=2.0)
    assert names == [i for i, value in enumerate(truth(given)) if abs(value) <= 2.0] and 0 < len(names) < 12
    second = sm.compare_many(models(), given, only=names, target_error=0.05, out=None, **OPTIONS)
    assert second.table["dataset"].tolist() == second.table["row"].tolist() == names
    assert second.notes == (many.SLOW,)
    third = sm.compare_many(models(), given, only=[*names, "nobody"], out=None, **OPTIONS)
    assert len(third) == len(names) and third.notes == (
        "1 of the names in `only` are no data sets, e.g. 'nobody'.",
        many.SLOW,
    )


def test_groups_of_a_frame_give_names(at_once, tmp_path):
    frame = pd.DataFrame({"object": ["b", "b", "a", "a"], "y": [0.1, 0.2, 0.3, 0.4]})
    result = sm.compare_many(models(), frame, by="object", out=tmp_path / "out.parquet", **OPTIONS)
    assert result.table["dataset"].tolist() == ["b", "a"]
    loaded = sm.ManyResult.load(tmp_path / "out.parquet")
    assert loaded.table.equals(result.table) and loaded.models == ("one", "none") and loaded.settings["seed"] == 0
    metadata = pq.read_metadata(tmp_path / "out.parquet")
    assert metadata.num_rows == 2


def test_a_folder_is_resumed_and_loaded(at_once, tmp_path):
    given = data_sets(10)
    folder = f"{tmp_path}/many/"
    result = sm.compare_many(models(), given, out=folder, **OPTIONS)
    assert len(os.listdir(folder)) == 4 and sm.ManyResult.load(folder).table.equals(result.table)
    assert sm.compare_many(models(), given, out=folder, **OPTIONS).table.equals(result.table)


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"chunk": 0}, "`chunk` must be a whole number"),
        ({"chunk": 2.5}, "`chunk` must be a whole number"),
        ({"executor": "many"}, "`executor` must be a number of worker processes"),
        ({"executor": 0}, "`executor` must be"),
        ({"resume": "yes"}, "`resume` must be true or false"),
        ({"target_error": -1}, "`target_error` must be a positive number"),
        ({"missing": "mend"}, "`missing` must be one of"),
        ({"explore": "hard"}, "`explore` must be one of"),
        ({"prior_odds": {"one": 1}}, "odds"),
        ({"seed": -1}, "`seed` must be"),
        ({"progress": 3}, "`progress` must be"),
    ],
)
def test_wrong_options_are_refused_at_the_start(wrong, told, tmp_path):
    with pytest.raises(SupermodelError, match=told):
        sm.compare_many(models(), data_sets(2), **{"out": tmp_path / "out.parquet"} | wrong)
    assert os.listdir(tmp_path) == []


def test_what_is_no_collection_raises():
    with pytest.raises(DataError, match="no data sets"):
        sm.compare_many(models(), 7, out=None)
    with pytest.raises(SupermodelError, match="two"):
        sm.compare_many({"one": models()["one"]}, data_sets(2), out=None)


def test_no_data_sets_are_a_table_without_rows(at_once, tmp_path):
    result = sm.compare_many(models(), [], out=tmp_path / "out.parquet", **OPTIONS)
    assert len(result) == 0 and "0 data sets" in str(result)


def test_progress_tells_rows_pace_and_flagged(at_once, capsys, monkeypatch, tmp_path):
    from supermodel.engine import progress

    monkeypatch.setattr(progress, "EVERY_LOG", 0.0)
    given = [*data_sets(7), 7]
    sm.compare_many(models(), given, out=None, chunk=4, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("supermodel: 8 of 8 data sets · ") and lines[-1].endswith(" · 1 flagged")
    assert "4 of 8 data sets" in lines[0] and "left" in lines[0]
    out = tmp_path / "out/"
    sm.compare_many(models(), given, out=f"{out}/", chunk=4, progress=False)
    next(out.glob("part-000000*")).unlink()
    sm.compare_many(models(), given, out=f"{out}/", chunk=4, progress=True)
    assert capsys.readouterr().err.splitlines()[-1].endswith(" · 1 flagged")  # also those of an earlier process
    sm.compare_many(models(), given, out=None, chunk=4, progress=False)
    assert capsys.readouterr().err == ""
