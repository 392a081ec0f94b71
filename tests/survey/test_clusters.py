"""Dask and MPI, real ones with worker processes: the same bits as here, whatever their number, also when a worker is killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from survey_problems import data_sets, hurried, models, same_but_for_seconds, truth

TESTS = Path(__file__).resolve().parent.parent
MPIEXEC = Path(sys.executable).with_name("mpiexec")
BLACK_BOX = {"seed": 1, "explore": "quick", "max_evaluations": 300, "progress": False}


def black_box(p):
    return -0.5 * (0.7 - float(p["mu"])) ** 2


def black_boxes():
    return {name: sm.Model({"mu": stats.norm(0, scale)}, black_box) for name, scale in (("wide", 3), ("narrow", 1))}


def bits(result):
    assert np.all(np.isfinite(result.evidences.values))  # NaN is no bits to compare
    return [*map(float, result.evidences.values), *map(float, np.ravel(result.evidences.covariance))]


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, protocol="tcp"
        ) as cluster:
            with distributed.Client(cluster) as client:
                yield client


def test_a_survey_on_dask_whose_worker_is_killed(cluster, monkeypatch, tmp_path):
    hurried(monkeypatch.setattr)
    given = data_sets(40)
    for data in given:
        data["do"] = 0.05
    here = sm.compare_many(models(), given, out=None, chunk=2, progress=False)
    out = tmp_path / "out.parquet"

    there = []  # parts when the worker was killed

    def kill():
        while len(list(Path(f"{out}.parts").glob("part-*"))) < 2:
            time.sleep(0.01)
        pid = next(iter(cluster.run(os.getpid).values()))
        there.append(len(list(Path(f"{out}.parts").glob("part-*"))))
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    found = sm.compare_many(models(), given, out=out, chunk=2, executor=cluster.get_executor(), progress=False)
    thread.join()
    assert 0 < there[0] < 20
    assert same_but_for_seconds(found.table, here.table) and np.allclose(here.table["log_bayes_factor"], truth(given))


@pytest.mark.slow
def test_calls_of_a_black_box_on_dask_give_the_same_bits_whatever_their_number(cluster):
    cluster.wait_for_workers(2)
    alone = bits(sm.compare(black_boxes(), **BLACK_BOX))
    for workers in (None, list(cluster.scheduler_info()["workers"])[:1]):
        pool = cluster.get_executor() if workers is None else cluster.get_executor(workers=workers)
        assert bits(sm.compare(black_boxes(), executor=pool, **BLACK_BOX)) == alone


RANKS = """
import sys
sys.path[:0] = [{tests!r}]
import json
from mpi4py.futures import MPIPoolExecutor
from survey.test_clusters import BLACK_BOX, bits, black_boxes, sm
from survey_problems import data_sets, hurried, models

if __name__ == "__main__":
    hurried(setattr)
    with MPIPoolExecutor() as pool:
        table = sm.compare_many(models(), data_sets(9), out=None, chunk=2, executor=pool, progress=False).table
        found = bits(sm.compare(black_boxes(), executor=pool, **BLACK_BOX))
    print(json.dumps([found, table["log_bayes_factor"].tolist()]))
"""


@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec: pip install mpich")
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_ranks_of_mpi_give_the_same_bits(ranks, tmp_path):
    pytest.importorskip("mpi4py")
    (tmp_path / "ranks.py").write_text(RANKS.format(tests=str(TESTS)))
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, "-m", "mpi4py.futures", "ranks.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found, values = json.loads(done.stdout)
    assert found == bits(sm.compare(black_boxes(), **BLACK_BOX)) and np.allclose(values, truth(data_sets(9)))
