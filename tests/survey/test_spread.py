"""Chunks over workers: the same answers everywhere, a bounded number under way, and the guilty found when workers die."""

import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

import numpy as np
import pytest

import supermodel as sm
from supermodel.engine.interrupts import Interrupts
from supermodel.errors import ModelError, SupermodelError
from supermodel.survey import spread as module
from supermodel.survey.buckets import Bucketing
from supermodel.survey.datasets import collected
from supermodel.survey.job import Job
from supermodel.survey.spread import halves, spread
from survey_problems import data_sets, hurried, models, truth


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    hurried(monkeypatch.setattr)


def chunks(given, size=4):
    return Bucketing(models(), size).pieces(collected(given))


def run(given, executor, size=4):
    job = Job(models(), f"token {id(given)}")
    return list(spread(job, chunks(given, size), executor, Interrupts()))


def outcomes(found):
    return {o.row: o for _, some in found for o in some}


class Mortal:
    """An executor of one thread; `do` == -2 in the data breaks it for all, as the death of a process does, or for itself."""

    def __init__(self, is_pool=True, doomed=(-2,)):
        self.is_pool, self.is_dead, self.doomed, self.submitted = is_pool, False, doomed, []
        self.pending = []

    def submit(self, call, job, *chunk):
        if self.is_dead:
            raise BrokenExecutor("dead")
        future = Future()
        if not chunk:
            future.set_result(call(job))
            return future
        self.submitted.append(chunk[0].rows.tolist())
        future.set_running_or_notify_cancel()
        if set(chunk[0].columns["do"]) & set(self.doomed):
            future.set_exception(BrokenExecutor("killed") if self.is_pool else RuntimeError("KilledWorker"))
            self.is_dead = self.is_pool
        else:
            future.set_result(call(job, *chunk))
        return future


class Reborn(module._Given):
    """The crew of such executors, replaced as our own pool is."""

    width = 2

    def renew(self):
        self.executor.is_dead = False


def mortal(monkeypatch, **options):
    executor = Mortal(**options)
    monkeypatch.setattr(module, "_Given", Reborn)
    return executor


def test_here_in_threads_and_in_processes_the_same():
    given = data_sets(10)
    here = outcomes(run(given, None))
    with ThreadPoolExecutor(2) as pool:
        threads = outcomes(run(given, pool))
    processes = outcomes(run(given, 2))
    for found in (here, threads, processes):
        assert sorted(found) == list(range(10))
        assert np.allclose([found[i].pairs["one", "none"][0] for i in range(10)], truth(given), rtol=1e-12)
    assert all(here[i].pairs == threads[i].pairs == processes[i].pairs for i in here)


@pytest.mark.parametrize("is_pool", [True, False])
def test_the_one_that_kills_workers_is_found_and_flagged(is_pool, monkeypatch):
    given = data_sets(24)
    for i in (5, 17, 18):
        given[i]["do"] = -2.0
    executor = mortal(monkeypatch, is_pool=is_pool)
    found = outcomes(run(given, executor, size=8))
    assert sorted(found) == list(range(24))
    assert sorted(row for row, o in found.items() if o.level == "fail") == [5, 17, 18]
    assert found[5].codes == ("worker",) and "its worker died" in found[5].reason
    assert executor.submitted.count([5]) == 2  # tried once more, alone


def test_a_death_that_was_nobodys_fault_flags_nobody(monkeypatch):
    given, executor = data_sets(24), mortal(monkeypatch)
    real, left = executor.submit, [3]

    def submit(call, job, *chunk):
        future = real(call, job, *chunk)
        if chunk and left[0] and len(executor.submitted) > 1:
            left[0] -= 1
            future = Future()
            future.set_exception(BrokenExecutor("killed at random"))
        return future

    executor.submit = submit
    found = outcomes(run(given, executor, size=2))
    assert sorted(found) == list(range(24)) and all(o.level == "ok" for o in found.values())


def test_only_a_few_chunks_are_under_way():
    taken, lock = [], threading.Lock()

    def counted(source):
        for chunk in source:
            with lock:
                taken.append(chunk.number)
            yield chunk

    with ThreadPoolExecutor(2) as pool:
        job = Job(models(), "window")
        stream = spread(job, counted(chunks(data_sets(100), 2)), pool, Interrupts())
        next(stream)
        assert len(taken) <= 2 * module.AHEAD + 1
        assert len(list(stream)) == 49


def test_a_slow_worker_keeps_nobody_waiting():
    given = data_sets(40)
    given[0]["do"] = 0.5
    with ThreadPoolExecutor(2) as pool:
        order = [chunk.number for chunk, _ in run(given, pool, size=2)]
    assert order[-1] == 0 and sorted(order) == list(range(20))


def test_a_foreign_pool_that_is_lost_is_told():
    given = data_sets(8)
    given[3]["do"] = -2.0
    with pytest.raises(SupermodelError, match="takes no more work. What was done before is kept"):
        run(given, Mortal())


def test_models_that_cannot_be_sent_are_told_before_anything_else():
    job = Job({"one": sm.Model({}, lambda p, data: 0.0), "none": models()["none"]}, "lambda")
    with pytest.raises(ModelError, match="cannot be sent to workers .*lambdas"):
        list(spread(job, chunks(data_sets(2)), 1, Interrupts()))


def test_nothing_to_do_starts_no_worker(monkeypatch):
    monkeypatch.setattr(module, "_Own", None)
    assert list(spread(Job(models(), "none"), iter(()), 2, Interrupts())) == []


@pytest.mark.parametrize("executor", [None, "threads"])
def test_ctrl_c_ends_between_chunks(executor):
    given = data_sets(12)
    for data in given:
        data["do"] = 0.05
    with Interrupts() as interrupts, ThreadPoolExecutor(1) as pool:
        stream = spread(Job(models(), "ctrl-c"), chunks(given, 1), pool if executor else None, interrupts)
        next(stream)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            list(stream)


def environment():
    time.sleep(0.01)
    return {name: os.environ.get(name, "") for name in (*module.ALONE, "XLA_FLAGS")}


def test_workers_of_our_own_have_one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # the user's word counts
    before = dict(os.environ)
    crew = module._Own(1)
    try:
        found = crew.submit(environment).result(timeout=60)
    finally:
        crew.close()
    assert dict(os.environ) == before and found["OMP_NUM_THREADS"] == "3" and found["OPENBLAS_NUM_THREADS"] == "1"
    assert "xla_cpu_multi_thread_eigen=false" in found["XLA_FLAGS"]


def test_halves_are_the_whole():
    (chunk,) = Bucketing(models(), 5, is_padded=True).pieces(collected(data_sets(5, (3, 5))))
    first, second = halves(chunk)
    assert [*first.rows, *second.rows] == chunk.rows.tolist() and first.names + second.names == chunk.names
    assert np.array_equal(np.concatenate([first.lengths, second.lengths]), chunk.lengths)
    assert first.number == second.number == chunk.number and len(first) == 2
