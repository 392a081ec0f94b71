"""The same seed gives the same bits, also beside processes that take the cores away, and with a limit that is never met."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import supermodel as sm

BUSY = "while True: pass"


def wave_of_unknown_period():
    rng = np.random.default_rng(4)
    t = np.sort(rng.uniform(0, 10, 30))
    y = np.sin(2 * np.pi * t / 1.37 + 0.4) + 0.3 * rng.standard_normal(30)

    def log_likelihood(p):
        a, b, period = (np.asarray(p[name])[:, None] for name in ("a", "b", "period"))
        angle = 2 * np.pi * t / period
        return -0.5 * np.sum(((y - a * np.sin(angle) - b * np.cos(angle)) / 0.3) ** 2, axis=1)

    priors = {"a": stats.norm(0, 1), "b": stats.norm(0, 1), "period": stats.uniform(1, 3)}
    return sm.Model(priors, log_likelihood, vectorized=True)


def bits(seed=5, **limits):
    found = sm.evidence(wave_of_unknown_period(), seed=seed, explore="auto", progress=False, **limits)
    assert found.settings["ended"] == "target"
    return found.value, found.error, tuple(found.evaluations.values()), found.settings["pilots"]["model"]["method"]


@pytest.fixture
def busy_cores():
    """Two processes that compute for ever, on the cores that this one may use."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    for k, other in enumerate(others):
        if cores[0] is not None:
            os.sched_setaffinity(other.pid, {cores[k % len(cores)]})
    yield others
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.slow
def test_busy_cores_and_a_limit_that_is_never_met_change_no_bit(busy_cores):
    beside = bits(max_seconds=3600.0)
    assert all(other.poll() is None for other in busy_cores)  # they were busy to the end
    for other in busy_cores:
        other.kill()
    assert bits() == beside
    assert bits(seed=6)[:2] != beside[:2]  # negative control
