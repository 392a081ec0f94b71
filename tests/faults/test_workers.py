"""Executors whose workers die or hang: a sentence or an answer, in time, and the checkpoint of the last block."""

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from scipy import stats

import supermodel as sm
from supermodel.errors import ModelError, SupermodelError
from supermodel.shell.cli import main

OPTIONS = {"seed": 1, "explore": "quick", "target_error": 0.05, "progress": False}


def sound(p):
    return -0.5 * (0.7 - float(p["mu"])) ** 2


def deadly(p):
    """At module level, so that workers can receive it; far out in the prior it takes its process along."""
    if float(p["mu"]) > 4.0:
        os._exit(1)
    return sound(p)


def sound_with(lock, p):
    return sound(p)


def model(likelihood):
    return sm.Model({"mu": stats.norm(0, 3)}, likelihood)


def test_a_worker_that_dies_is_told():
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        with pytest.raises(SupermodelError, match="a worker of the executor died .* given a new executor"):
            sm.evidence(model(deadly), executor=pool, **OPTIONS)


def test_after_the_death_of_a_worker_the_run_goes_on_from_its_checkpoint(tmp_path):
    """A pool that breaks in the middle, as a process pool does, and a new one for the second call."""

    class Breaking(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *given):
            self.submitted += 1
            if self.submitted > 150:
                from concurrent.futures.process import BrokenProcessPool

                raise BrokenProcessPool("a process was terminated abruptly")
            return super().submit(*given)

    path, options = tmp_path / "run.nc", OPTIONS | {"target_error": 0.01}
    with Breaking(2) as pool, pytest.raises(SupermodelError, match="a worker of the executor died"):
        sm.evidence(model(sound), executor=pool, checkpoint=path, **options)
    assert path.exists()
    with ThreadPoolExecutor(2) as pool:
        resumed = sm.evidence(model(sound), executor=pool, checkpoint=path, **options)
    straight = sm.evidence(model(sound), **options)
    assert (resumed.value, resumed.error, resumed.evaluations) == (straight.value, straight.error, straight.evaluations)


def test_a_pool_that_dies_while_it_is_given_work_is_told_as_that(monkeypatch):
    """Its pipes are closed under `submit` then, which Python tells as an OSError."""

    def closed(*given, **named):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(ProcessPoolExecutor, "submit", closed)
    with pytest.raises(SupermodelError, match="a worker of the executor died"):
        sm.evidence(model(sound), executor=1, **OPTIONS)


class Hanging:
    """A likelihood that from its 300th call on waits until it is released."""

    def __init__(self):
        self.released, self.calls = threading.Event(), 0

    def __call__(self, p):
        value = sound(p)  # JAX, which tries to trace it, gets no further
        self.calls += 1
        if self.calls > 300:
            self.released.wait(60)
        return value


@pytest.mark.parametrize("stop", ["limit", "ctrl-c"])
def test_a_likelihood_that_hangs_on_an_executor_costs_no_answer(stop):
    hanging, began = Hanging(), time.monotonic()
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    limit = {"max_seconds": 1.5} if stop == "limit" else {}
    with ThreadPoolExecutor(2) as pool:
        try:
            if stop == "ctrl-c":
                timer.start()
            result = sm.evidence(model(hanging), executor=pool, **OPTIONS | limit)
        finally:
            timer.cancel()
            hanging.released.set()
    assert time.monotonic() - began < 10
    assert result.settings["ended"] == ("max_seconds" if stop == "limit" else "interrupted")
    assert result.verdict.level == "fail"


def test_a_number_of_worker_processes_gives_the_bits_of_none():
    alone = sm.evidence(model(sound), **OPTIONS)
    shared = sm.evidence(model(sound), executor=2, **OPTIONS)
    assert (shared.value, shared.error, shared.evaluations) == (alone.value, alone.error, alone.evaluations)


@pytest.mark.parametrize("likelihood", [lambda p: sound(p), functools.partial(sound_with, threading.Lock())])
def test_a_likelihood_that_cannot_be_sent_is_told_what_to_do(likelihood):
    with pytest.raises(ModelError, match="model 'model' cannot be sent to worker processes .*Define it with `def`"):
        sm.evidence(model(likelihood), executor=1, **OPTIONS)


ORPHANED = """
import multiprocessing, os, time
from supermodel.engine.workers import pool_of

if __name__ == "__main__":
    with pool_of(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc to look into")
def test_workers_end_when_the_process_that_they_work_for_is_killed(tmp_path):
    (tmp_path / "orphaned.py").write_text(ORPHANED)
    with subprocess.Popen([sys.executable, "orphaned.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as driver:
        worker = int(driver.stdout.readline())
        assert is_running(worker)
        driver.kill()
    end = time.monotonic() + 20
    while is_running(worker) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_running(worker)


SCRIPT = """
import supermodel as sm
from scipy import stats

def likelihood(p):
    return -0.5 * (0.7 - float(p["mu"])) ** 2

models = {"one": sm.Model({"mu": stats.norm(0, 3)}, likelihood), "none": sm.Model({}, lambda p: -1.0)}
options = {"explore": "quick", "max_evaluations": 500}
"""


def test_a_script_without_a_guard_is_told_of_it(tmp_path):
    (tmp_path / "bare.py").write_text(SCRIPT + "sm.evidence(models['one'], executor=1, progress=False, **options)\n")
    done = subprocess.run([sys.executable, "bare.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    said = done.stderr.splitlines()
    assert done.returncode == 1 and 'Write the line `if __name__ == "__main__":` above it' in said[-1]
    assert "import bare.py anew and would come to line 10 of it" in said[-1] and len(said) < 20


def test_a_guard_in_a_function_of_the_script_or_another_one_is_no_guard_but_enough_for_silence(tmp_path):
    """A script whose guard does not hold the call: the workers end without a word, and the sentence is that of a death."""
    call = "\ndef work():\n    sm.evidence(models['one'], executor=1, progress=False, **options)\n\nwork()\n"
    (tmp_path / "half.py").write_text(SCRIPT + call + "if __name__ == '__main__':\n    print('never')\n")
    done = subprocess.run([sys.executable, "half.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    said = done.stderr.splitlines()
    assert done.returncode == 1 and 'below `if __name__ == "__main__":`' in said[-1]
    assert done.stderr.count("Traceback") <= 2


def test_a_script_with_a_guard_runs(tmp_path):
    call = "    print(sm.evidence(models['one'], executor=1, progress=False, **options).evaluations['likelihood'])\n"
    (tmp_path / "guarded.py").write_text(SCRIPT + "if __name__ == '__main__':\n" + call)
    done = subprocess.run([sys.executable, "guarded.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and int(done.stdout) > 0, done.stderr


def test_workers_on_the_command_line(tmp_path, capsys):
    """The file is imported by the workers, from wherever the command was given."""
    (tmp_path / "mine_to_compare.py").write_text(
        SCRIPT.replace("lambda p: -1.0", "likelihood_of_none").replace(
            "models =", "def likelihood_of_none(p):\n    return -1.0 + 0.0 * len(p)\n\nmodels ="
        )
    )
    found = []
    for extra in ([], ["--workers", "1"]):
        assert main(["compare", str(tmp_path / "mine_to_compare.py"), "--json", *extra]) in (0, 3, 4)
        found.append(json.loads(capsys.readouterr().out)["log_bayes_factors"])
    assert found[0] == found[1]
