"""Chapters: a long record read in parts gives the answer of the whole, and memory does not grow."""

import math
from dataclasses import replace

import pytest

import supermodel as sm
from engine_problems import assert_within, gamma_rates, good_report
from supermodel.engine import arm
from supermodel.engine.chapters import whole
from supermodel.engine.policy import CHAINS, STEPS

OPTIONS = {"seed": 3, "target_error": 1e-6, "explore": "quick", "max_evaluations": 20_000, "progress": False}


def test_values_are_averaged_errors_add_up_and_trouble_is_the_worst():
    parts = [
        replace(good_report(1.0, 0.03, rhat=1.2, start_z=2.0, crossings=10), n_draws=1000),
        replace(good_report(1.3, 0.04, ess=500.0, drift_z=1.0), n_draws=3000),
    ]
    found = whole(parts)
    assert found.value == pytest.approx(0.25 * 1.0 + 0.75 * 1.3)
    assert found.error == pytest.approx(math.hypot(0.25 * 0.03, 0.75 * 0.04))
    assert (found.n_draws, found.ess, found.crossings) == (4000, 1400.0, 410)
    assert (found.rhat, found.start_z) == (1.2, 2.0)
    assert found.drift_z == pytest.approx(0.3 / 0.05)  # between the chapters: more than within any of them
    assert whole(parts[:1]) is parts[0]


def test_nothing_that_is_unknown_becomes_known():
    assert math.isnan(whole([good_report(1.0, 0.1, rhat=math.nan), good_report(1.0, 0.1)]).rhat)
    assert whole([good_report(1.0, math.inf), good_report(1.0, 0.1)]).error == math.inf


def test_a_long_run_keeps_few_draws_and_loses_no_accuracy(tmp_path, monkeypatch):
    """The chains of a lone edge do not know of chapters: the same draws, all of them kept and read in parts."""
    models, truth = gamma_rates()
    model, most, path = models["separate"], 16 * CHAINS * STEPS, tmp_path / "run.nc"
    every = sm.evidence(model, **OPTIONS)
    monkeypatch.setattr(arm, "CHAPTER", most // 2)
    found = sm.evidence(model, **OPTIONS)
    sm.evidence(model, checkpoint=path, **OPTIONS | {"max_evaluations": 19_000})
    resumed = sm.evidence(model, checkpoint=path, **OPTIONS)
    n = every.edges[0].rung.size
    assert n > 3 * most > 3 * found.edges[0].rung.size
    assert n == found.edges[0].report["n_draws"] == resumed.edges[0].report["n_draws"]
    assert_within(found, truth["separate"])
    assert abs(found.value - every.value) < 0.3 * every.error and 0.7 < found.error / every.error < 1.4
    assert abs(resumed.value - found.value) < 0.3 * found.error
    # The planted error: the draws that are left alone do not know as much.
    assert found.edges[0].ends().difference(0, 1)[1] > 1.4 * found.error
