"""Surveys whose driver or workers are killed, whose disk fills up: the table is the one of a quiet day, row for row."""

import errno
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import supermodel as sm
from supermodel.errors import StorageError
from supermodel.results import storage
from survey_problems import data_sets, hurried, models, same_but_for_seconds

TESTS = Path(__file__).resolve().parent.parent
OPTIONS = {"chunk": 3, "progress": False}
N = 60


def given(n=N, nap=0.01):
    """Some are slow, some cannot be read, some raise: all of that is the same after a kill."""
    found = data_sets(n, (5, 9))
    for i, data in enumerate(found):
        data["do"] = -1.0 if i % 17 == 5 else nap
    found[7], found[8]["y"][0] = "torn", float("nan")
    return found


@pytest.fixture
def whole(monkeypatch):
    hurried(monkeypatch.setattr)
    return sm.compare_many(models(), given(), out=None, **OPTIONS).table


def sound(table, whole):
    assert table["row"].tolist() == list(range(N))  # none twice, none lost
    assert same_but_for_seconds(table, whole)


def parts(out):
    return len(list(Path(f"{out}.parts").glob("part-*.parquet")))


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.002)


DRIVER = """
import sys
sys.path.insert(0, {tests!r})
from faults.test_survey import given, models, hurried, sm, OPTIONS

if __name__ == "__main__":
    hurried(setattr)
    sm.compare_many(models(), given(), out={out!r}, executor={executor}, **OPTIONS)
"""


def kill_drivers(kills, folder, executor):
    """Drivers that are killed after a random number of parts, at a random moment."""
    rng, out = random.Random(0), str(folder / "out.parquet")
    (folder / "driver.py").write_text(DRIVER.format(tests=str(TESTS), out=out, executor=executor))
    seen = []
    for _ in range(kills):
        driver = subprocess.Popen([sys.executable, str(folder / "driver.py")], stderr=subprocess.DEVNULL)
        try:
            goal = parts(out) + rng.choice([0, 1, 1, 2])
            wait_for(lambda goal=goal, driver=driver: parts(out) >= goal or driver.poll() is not None)
            time.sleep(rng.uniform(0, 0.04))
        finally:
            driver.kill()
            driver.wait()
        seen.append(parts(out))
    assert seen == sorted(seen) and seen[-1] > 0
    return out


def test_a_driver_that_is_killed_goes_on_where_it_was(whole, tmp_path):
    out = kill_drivers(2, tmp_path, None)
    sound(sm.compare_many(models(), given(), out=out, **OPTIONS).table, whole)
    assert sorted(os.listdir(tmp_path)) == ["driver.py", "out.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("executor", [None, 2])
def test_ten_kills_of_the_driver(executor, whole, tmp_path):
    out = kill_drivers(10, tmp_path, executor)
    sound(sm.compare_many(models(), given(), out=out, **OPTIONS).table, whole)


def kill_workers(kills, out):
    """From another thread: a worker process is killed whenever another part has been written."""
    rng = random.Random(1)

    def killer():
        for _ in range(kills):
            before = parts(out)
            try:
                wait_for(lambda before=before: parts(out) > before, 20)
            except AssertionError:
                return
            time.sleep(rng.uniform(0, 0.03))
            for child in multiprocessing.active_children()[:1]:
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)

    killed: list[int] = []
    thread = threading.Thread(target=killer)
    thread.start()
    return thread, killed


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_workers_that_are_killed_are_replaced(kills, whole, tmp_path):
    out = tmp_path / "out.parquet"
    thread, killed = kill_workers(kills, out)
    found = sm.compare_many(
        models(), given(nap=0.04), out=out, executor=2, **OPTIONS
    )  # slow enough to be caught at work
    thread.join()
    assert killed
    sound(found.table, whole)


@pytest.mark.slow
def test_a_data_set_that_kills_its_worker_is_flagged_alone(whole, tmp_path):
    bad = given()
    bad[30]["do"] = -2.0
    found = sm.compare_many(models(), bad, out=tmp_path / "out.parquet", executor=2, **OPTIONS).table
    assert found["codes"][30] == "worker" and "its worker died" in found["reason"][30]
    assert found.drop(30).drop(columns="seconds").equals(whole.drop(30).drop(columns="seconds"))


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fills_up_costs_nothing_that_was_done(step, whole, tmp_path, monkeypatch):
    out, calls, real = tmp_path / "out.parquet", [], getattr(os, step)

    def full(*given):
        calls.append(1)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "_sync_folder", lambda folder: None)
        patch.setattr(storage.os, step, full)
        with pytest.raises(StorageError, match="the disk is full .* call again, and the run goes on"):
            sm.compare_many(models(), given(), out=out, **OPTIONS)
    assert parts(out) == 4 and not list(Path(f"{out}.parts").glob(".*"))
    sound(sm.compare_many(models(), given(), out=out, **OPTIONS).table, whole)


def test_a_folder_without_permission_is_told_before_any_work(tmp_path, monkeypatch):
    calls = []
    hurried(
        lambda module, name, value: monkeypatch.setattr(module, name, lambda *given: calls.append(1) or value(*given))
    )
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="is not a folder"):
        sm.compare_many(models(), given(), out=tmp_path / "file" / "out.parquet", **OPTIONS)
    assert calls == []
