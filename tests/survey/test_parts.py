"""Parts of a table: whole or not there, known again, and joined to one file."""

import errno
import json
import os

import numpy as np
import pytest

from supermodel.errors import StorageError, SupermodelError
from supermodel.results import storage
from supermodel.survey import table
from supermodel.survey.buckets import refused
from supermodel.survey.job import Outcome
from supermodel.survey.parts import Parts

MODELS = ("one", "two", "three")
PAIRS = [("one", "two"), ("one", "three"), ("two", "three")]
IDENTITY = {"models": dict.fromkeys(MODELS, {}), "seed": 0, "likelihoods": {"one": [0.1 + 0.2, "-inf"]}}


def good(row, name=None):
    numbers = {model: (row + i / 10, 0.1) for i, model in enumerate(MODELS)}
    pairs = {pair: (0.5 * row, 0.2) for pair in PAIRS}
    return Outcome(
        row,
        row if name is None else name,
        numbers,
        pairs,
        "caution",
        ("rough", "thrifty"),
        "Why not.",
        "engine",
        7,
        0.1,
    )


def store(path, resume=True, **changed):
    found = Parts(path, MODELS)
    found.begin(IDENTITY | changed, resume)
    return found


def filled(path, n=3, **changed):
    found = store(path, **changed)
    for i in range(n):
        if not found.has(i, f"digest {i}"):
            found.add(i, f"digest {i}", [good(2 * i), refused(2 * i + 1, 2 * i + 1, "data", "torn")])
    return found


def test_the_table_has_a_row_for_each_data_set_and_pair(tmp_path):
    done = filled(tmp_path / "out.parquet")
    done.finish()
    assert os.listdir(tmp_path) == ["out.parquet"]
    found = table.read([done.path], MODELS)
    assert tuple(found.columns) == table.COLUMNS and found["row"].tolist() == np.repeat(range(6), 3).tolist()
    assert list(zip(found["first"], found["second"], strict=True)) == PAIRS * 6
    first = found.iloc[6].to_dict()
    assert first == {
        "row": 2, "dataset": 2, "first": "one", "second": "two", "log_bayes_factor": 1.0, "error": 0.2,
        "log_evidence_first": 2.0, "error_first": 0.1, "log_evidence_second": 2.1, "error_second": 0.1, "verdict": "caution",
        "codes": "rough,thrifty", "reason": "Why not.", "route": "engine", "evaluations": 7, "seconds": 0.1,
    }  # fmt: skip
    failed = found[found["row"] == 1]
    assert (
        failed["log_bayes_factor"].isna().all()
        and set(failed["verdict"]) == {"fail"}
        and set(failed["reason"]) == {"torn"}
    )
    assert found.equals(
        table.frame_of(
            [o for i in range(3) for o in (good(2 * i), refused(2 * i + 1, 2 * i + 1, "data", "torn"))], MODELS
        )
    )


def test_numbers_stay_numbers_unless_a_name_is_none(tmp_path):
    parts = store(tmp_path / "out.parquet")
    for i, name in enumerate([17, "NGC 4038"]):
        parts.has(i, "x")
        parts.add(i, "x", [good(i, name)])
    assert table.read([parts.part(0)], MODELS)["dataset"].tolist() == [17] * 3
    both = table.read([parts.part(0), parts.part(1)], MODELS)["dataset"]
    parts.finish()
    assert both.tolist() == table.read([parts.path], MODELS)["dataset"].tolist() == ["17"] * 3 + ["NGC 4038"] * 3


def test_a_name_that_ends_in_a_stroke_keeps_the_parts(tmp_path):
    done = filled(f"{tmp_path}/many/")
    done.finish()
    assert sorted(os.listdir(tmp_path / "many")) == [*(f"part-00000{i}.parquet" for i in range(3)), "run.json"]
    assert all(filled(tmp_path / "many").has(i, f"digest {i}") for i in range(3))


def test_parts_that_are_there_are_known_and_torn_ones_are_not(tmp_path):
    parts = filled(tmp_path / "out.parquet")
    torn = parts.part(1)
    torn.write_bytes(torn.read_bytes()[:-20])
    (parts.folder / ".part-000002.parquet.abc.tmp").write_bytes(b"left by a kill")
    again = store(tmp_path / "out.parquet")
    assert [again.has(i, f"digest {i}") for i in range(4)] == [True, False, True, False]


def test_a_part_whose_inside_is_damaged_is_made_again(tmp_path):
    parts = filled(tmp_path / "out.parquet", 1)
    content = bytearray(parts.part(0).read_bytes())
    content[4:40] = b"\xff" * 36
    parts.part(0).write_bytes(content)
    assert not store(tmp_path / "out.parquet").has(0, "digest 0")


def test_other_data_are_refused(tmp_path):
    filled(tmp_path / "out.parquet")
    with pytest.raises(StorageError, match="the data have changed since .* resume=False"):
        store(tmp_path / "out.parquet").has(0, "another")
    done = filled(tmp_path / "out.parquet")
    done.finish()
    finished = filled(tmp_path / "out.parquet", 2)
    with pytest.raises(StorageError, match="the data have changed since"):
        finished.finish()


@pytest.mark.parametrize("out", ["out.parquet", "out/"])
def test_data_that_have_become_fewer_leave_no_part_behind_unseen(out, tmp_path):
    filled(f"{tmp_path}/{out}", 3)
    with pytest.raises(StorageError, match="the data have changed since"):
        filled(f"{tmp_path}/{out}", 2).finish()


@pytest.mark.parametrize("is_finished", [False, True])
def test_another_run_is_told_with_what_differs(is_finished, tmp_path):
    done = filled(tmp_path / "out.parquet")
    if is_finished:
        done.finish()
    with pytest.raises(StorageError, match=r"another run \(seed: 0 there, 7 here\).*Give another `out`"):
        store(tmp_path / "out.parquet", seed=7)
    filled(tmp_path / "out.parquet", likelihoods={"one": [0.3, "-inf"]})  # rounding of another machine
    with pytest.raises(StorageError, match="likelihoods"):
        store(tmp_path / "out.parquet", likelihoods={"one": [0.3001, "-inf"]})


def test_begun_anew_nothing_of_the_old_run_is_left(tmp_path):
    filled(tmp_path / "out.parquet")
    again = store(tmp_path / "out.parquet", resume=False, seed=7)
    assert os.listdir(again.folder) == ["run.json"] and json.loads((again.folder / "run.json").read_text())["seed"] == 7
    again.finish()
    assert len(table.read([again.path], MODELS)) == 0


def test_a_finished_table_stays_until_its_successor_is_whole(tmp_path):
    filled(tmp_path / "out.parquet").finish()
    before = (tmp_path / "out.parquet").read_bytes()
    again = Parts(tmp_path / "out.parquet", MODELS)
    again.begin(IDENTITY | {"seed": 7}, False)
    again.has(0, "x")
    again.add(0, "x", [good(0)])
    assert (tmp_path / "out.parquet").read_bytes() == before
    again.finish()
    assert len(table.read([tmp_path / "out.parquet"], MODELS)) == 3


@pytest.mark.parametrize("content", [b"not Parquet at all", b""])
def test_a_file_of_another_kind_is_not_touched(content, tmp_path):
    (tmp_path / "out.parquet").write_bytes(content)
    with pytest.raises(StorageError, match="no table of compare_many"):
        store(tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").read_bytes() == content


def test_a_note_that_cannot_be_read_is_told(tmp_path):
    (store(tmp_path / "out.parquet").folder / "run.json").write_text("{")
    with pytest.raises(StorageError, match="nothing says which run"):
        store(tmp_path / "out.parquet")


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    parts = filled(tmp_path / "out.parquet", 2)
    with monkeypatch.context() as patch:
        patch.setattr(storage.os, "fsync", full)
        with pytest.raises(StorageError, match="the disk is full .*All parts before this one are kept"):
            parts.add(2, "digest 2", [good(4)])
        assert sorted(os.listdir(parts.folder)) == ["part-000000.parquet", "part-000001.parquet", "run.json"]
    done = filled(tmp_path / "out.parquet", 3)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(StorageError, match="the disk is full .*call again to join them"):
            done.finish()
    assert not (tmp_path / "out.parquet").exists() and len(os.listdir(done.folder)) == 4
    done.finish()
    assert os.listdir(tmp_path) == ["out.parquet"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="is not a folder"):
        store(tmp_path / "file" / "out.parquet")


def test_without_pyarrow_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(SupermodelError, match=r"pip install 'supermodel-bayes\[parquet\]'.*out=None"):
        Parts(tmp_path / "out.parquet", MODELS)
    assert len(table.frame_of([good(0)], MODELS)) == 3
