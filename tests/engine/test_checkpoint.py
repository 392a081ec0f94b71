"""Runs that survive: killed at random moments, resumed, and equal to the bit."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from engine_problems import gamma_rates
from supermodel.errors import StorageError
from supermodel.results.storage import load_arrays, save_arrays

OPTIONS = {"seed": 2, "target_error": 0.0015, "progress": False}

WORKER = """
import json, os, sys, time
sys.path.insert(0, sys.argv[2])
import supermodel as sm
from engine_problems import gamma_rates
import supermodel.comparing, supermodel.engine.checkpoint  # loaded once, before the children are made
path, options = sys.argv[1], json.loads(sys.argv[3])
for line in sys.stdin:  # one child per line: "run"
    child = os.fork()
    if child == 0:
        result = sm.compare(gamma_rates()[0], checkpoint=path, **options)
        estimate = result.log_bayes_factor("separate", "pooled")
        print("done", repr(estimate.value), repr(estimate.error), result.evaluations["likelihood"], flush=True)
        os._exit(0)
    print("pid", child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


@pytest.fixture(scope="module")
def uninterrupted():
    return sm.compare(gamma_rates()[0], **OPTIONS)


def test_killed_at_random_moments_and_resumed_is_equal_to_the_bit(tmp_path, uninterrupted):
    """`kill -9` at least 25 times. Black boxes compile nothing, so children can be forked from one loaded parent."""
    path = tmp_path / "run.nc"
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), os.path.dirname(os.path.dirname(__file__)), json.dumps(OPTIONS)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    dice = random.Random(7)
    kills, answer, saved = 0, None, 0
    try:
        for _ in range(400):
            worker.stdin.write("run\n")
            worker.stdin.flush()
            pid = int(worker.stdout.readline().split()[1])
            if kills < 25:
                # Measured against a whole run: often in the pilots, now and then far into the blocks, where there is a checkpoint.
                time.sleep(dice.random() ** 2 * uninterrupted.seconds)
                try:
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
            line = worker.stdout.readline().split()
            if line[0] == "done":
                answer = line
                assert worker.stdout.readline().split() == ["ended"]
                if kills >= 25:
                    break
                path.unlink()  # it was quicker than the killer: begin anew
            saved += path.exists()
            assert sorted(p.name for p in tmp_path.iterdir() if not p.name.endswith(".tmp")) in ([], ["run.nc"])
    finally:
        worker.stdin.close()
        worker.terminate()
        worker.wait()
        worker.stdout.close()
    estimate = uninterrupted.log_bayes_factor("separate", "pooled")
    assert kills >= 25 and saved > 0
    assert answer[1:] == [repr(estimate.value), repr(estimate.error), str(uninterrupted.evaluations["likelihood"])]


def test_a_finished_run_is_not_run_again(tmp_path, uninterrupted):
    path = tmp_path / "run.nc"
    first = sm.compare(gamma_rates()[0], checkpoint=path, **OPTIONS)
    again = sm.compare(gamma_rates()[0], checkpoint=path, **OPTIONS)
    assert first.log_bayes_factor("separate", "pooled") == uninterrupted.log_bayes_factor("separate", "pooled")
    assert again.log_bayes_factor("separate", "pooled") == first.log_bayes_factor("separate", "pooled")
    assert again.evaluations == first.evaluations


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.nc"
    sm.compare(gamma_rates()[0], checkpoint=path, seed=2, target_error=0.1, progress=False)
    return path


@pytest.mark.parametrize(
    "models, options, told",
    [
        (gamma_rates()[0], {"seed": 3}, "seed: 2 then, 3 now"),
        (gamma_rates(shape=2.4)[0], {"seed": 2}, "models"),
        (gamma_rates(counts=(3, 9, 4, 8))[0], {"seed": 2}, "likelihood has changed"),
        (gamma_rates(constant=1.0)[0], {"seed": 2}, "likelihood has changed"),
    ],
)
def test_another_run_is_refused_and_told_apart(checkpoint, models, options, told):
    before = checkpoint.read_bytes()
    with pytest.raises(StorageError, match=told):
        sm.compare(models, checkpoint=checkpoint, progress=False, **options)
    assert checkpoint.read_bytes() == before


def peaked(bump=0.0, width=0.3):
    """Two black boxes; with `bump`, the first is raised within `width` of its peak alone."""

    def likelihood(p):
        mu = np.asarray(p["mu"])
        return -0.5 * ((0.7 - mu) / 0.5) ** 2 + bump * (np.abs(mu - 0.7) < width)

    widths = {"wide": 30, "narrow": 1}
    models = {name: sm.Model({"mu": stats.norm(0, s)}, likelihood, vectorized=True) for name, s in widths.items()}
    return models


def test_a_likelihood_that_changed_near_its_peak_only_is_refused(tmp_path):
    """Draws of a prior sixty times as wide do not see it; points of the posterior do, and the error names one."""
    path, options = tmp_path / "run.nc", {"seed": 4, "explore": "quick", "progress": False}
    first = sm.compare(peaked(), checkpoint=path, **options)
    with pytest.raises(StorageError, match="likelihood of model '(wide|narrow)' was .* and is now") as error:
        sm.compare(peaked(bump=5.0), checkpoint=path, **options)
    at, then, now = re.search(r"at \{'mu': (.*?)\} .* was (.*?) and is now (.*?),", str(error.value)).groups()
    assert abs(float(at) - 0.7) < 0.3 and float(now) - float(then) == pytest.approx(5.0, abs=1e-6)
    again = sm.compare(peaked(), checkpoint=path, **options)  # what is the same goes on
    assert again.evidences.values.tolist() == first.evidences.values.tolist()


def test_a_noisy_likelihood_is_still_known_again(tmp_path):
    """Single precision: batches of other sizes differ in their last digits."""

    def single(p):
        return np.float32(-1e4 - 0.5 * ((0.7 - np.asarray(p["mu"])) / 0.5) ** 2).astype(float)

    model = sm.Model({"mu": stats.norm(0, 1)}, single, vectorized=True)
    options = {"seed": 4, "explore": "quick", "progress": False, "checkpoint": tmp_path / "run.nc"}
    assert sm.evidence(model, **options).value == sm.evidence(model, **options).value


def test_a_damaged_checkpoint_is_refused(checkpoint, tmp_path):
    broken = tmp_path / "broken.nc"
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 2] ^= 0xFF
    for damaged in (bytes(content), bytes(content[: len(content) // 3]), b"not a file of ours"):
        broken.write_bytes(damaged)
        with pytest.raises(StorageError):
            sm.compare(gamma_rates()[0], checkpoint=broken, seed=2, progress=False)


def test_a_folder_that_cannot_be_written_is_told_before_work_is_lost(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        sm.compare(gamma_rates()[0], checkpoint=tmp_path / "no" / "run.nc", seed=2, progress=False)


def test_a_tighter_target_continues(checkpoint):
    wider = sm.compare(gamma_rates()[0], checkpoint=checkpoint, seed=2, target_error=0.1, progress=False)
    target = 0.6 * wider.log_bayes_factor("separate", "pooled").error  # however much better than its target that was
    finer = sm.compare(gamma_rates()[0], checkpoint=checkpoint, seed=2, target_error=target, progress=False)
    assert finer.log_bayes_factor("separate", "pooled").error <= target
    assert finer.evaluations["likelihood"] > wider.evaluations["likelihood"]
    assert np.isfinite(finer.log_evidence("pooled").value)


def test_roughness_is_kept_and_may_be_missing_from_an_older_file(tmp_path):
    """A run that ends early and goes on has the error of one that did not; without the field it is not looked at again."""
    models = {name: sm.Model(dict.fromkeys(name, stats.norm(0, 1)), noisy, vectorized=True) for name in ("a", "ab")}
    path, options = tmp_path / "run.nc", {"seed": 1, "progress": False}
    whole = sm.compare(models, target_error=0.01, **options).log_bayes_factor(*models)
    sm.compare(models, target_error=0.05, checkpoint=path, **options)
    groups, attrs = load_arrays(path)
    assert all(row["roughness"][0] > 0.01 for row in attrs["pilots"])
    resumed = sm.compare(models, target_error=0.01, checkpoint=path, **options).log_bayes_factor(*models)
    assert resumed == whole and whole.error > 0.01
    older = [{key: value for key, value in row.items() if key != "roughness"} for row in attrs["pilots"]]
    kept = {key: value for key, value in attrs.items() if key != "format"} | {"pilots": older}
    save_arrays(path, groups, kept)
    assert sm.compare(models, target_error=0.01, checkpoint=path, **options).log_bayes_factor(*models).error < 0.01


def noisy(p):
    return sum(stats.norm.logpdf(0.7, x, 0.5) + 0.05 * np.sin(1e9 * x) for x in p.values())
