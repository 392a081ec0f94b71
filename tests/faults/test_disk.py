"""A disk that fills up, a folder that goes away: the answer comes, and what was stored before stays."""

import errno
import os
import shutil

import pytest

import supermodel as sm
from engine_problems import gamma_rates
from supermodel.engine import keeper
from supermodel.errors import StorageError
from supermodel.results import storage

OPTIONS = {"seed": 2, "target_error": 0.05, "explore": "quick", "progress": False}
CODE = "checkpoint_lost"


@pytest.fixture(scope="module")
def whole():
    return sm.compare(gamma_rates()[0], **OPTIONS)


@pytest.fixture
def eager(monkeypatch):
    """Every border is written."""
    monkeypatch.setattr(keeper, "COST", float("inf"))


def codes(result):
    return [reason.code for reason in result.verdict.reasons]


def same(a, b):
    return a.evidences.values.tolist() == b.evidences.values.tolist() and a.evaluations == b.evaluations


class Full:
    """A step of writing (`fsync`, `replace`) that fails from its second use on, or between two uses."""

    def __init__(self, step, number, until=10**9):
        self.used, self.number, self.until, self.real = 0, number, until, getattr(os, step)

    def __call__(self, *given):
        self.used += 1
        if 1 < self.used < self.until:
            raise OSError(self.number, os.strerror(self.number))
        return self.real(*given)


@pytest.mark.parametrize("step, number", [("fsync", errno.ENOSPC), ("replace", errno.EDQUOT)])
def test_a_disk_that_fills_up_costs_neither_the_answer_nor_the_last_checkpoint(
    step, number, whole, eager, tmp_path, monkeypatch
):
    path = tmp_path / "run.nc"
    monkeypatch.setattr(storage, "_sync_folder", lambda folder: None)
    monkeypatch.setattr(storage.os, step, Full(step, number))
    result = sm.compare(gamma_rates()[0], checkpoint=path, **OPTIONS)
    monkeypatch.undo()
    assert same(result, whole) and result.verdict.level == "caution" and codes(result) == [*codes(whole), CODE]
    assert "Nothing that was there before has been changed" in result.verdict.reasons[-1].sentence
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]
    resumed = sm.compare(gamma_rates()[0], checkpoint=path, **OPTIONS)  # from the one checkpoint that was written
    assert same(resumed, whole) and CODE not in codes(resumed)


def test_a_disk_that_has_room_again_is_written_again(whole, eager, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_sync_folder", lambda folder: None)
    full = Full("fsync", errno.ENOSPC, until=4)
    monkeypatch.setattr(storage.os, "fsync", full)
    result = sm.compare(gamma_rates()[0], checkpoint=tmp_path / "run.nc", **OPTIONS)
    assert full.used > 4 and same(result, whole) and CODE not in codes(result)


@pytest.mark.parametrize("put", ["nothing", "file"])
def test_a_folder_that_goes_away(put, whole, eager, tmp_path):
    folder, models = tmp_path / "folder", gamma_rates()[0]
    folder.mkdir()
    inner, calls = models["pooled"].log_likelihood, []

    def likelihood(p):
        calls.append(1)
        if len(calls) == 12 and folder.exists():
            shutil.rmtree(folder)
            if put == "file":
                folder.write_text("in its place")
        return inner(p)

    models["pooled"] = sm.Model(models["pooled"].priors, likelihood, vectorized=True)
    result = sm.compare(models, checkpoint=folder / "run.nc", **OPTIONS)
    assert same(result, whole) and codes(result) == [*codes(whole), CODE]


def test_a_path_that_never_could_be_written_is_told_before_the_work(tmp_path):
    calls = []
    models = {"one": sm.Model({}, lambda p: calls.append(1) or 0.0), "two": sm.Model({}, lambda p: 0.0)}
    with pytest.raises(StorageError, match="does not exist"):
        sm.compare(models, checkpoint=tmp_path / "none" / "run.nc", **OPTIONS)
    assert len(calls) <= 64
