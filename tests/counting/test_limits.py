"""A limit that leaves no room for a number: the smaller ones keep their answer, and the result says what was not reached."""

from __future__ import annotations

import numpy as np
import pytest
from tests.counting.test_count import DATA, LEVEL, WAVE, exact

import supermodel as sm

ASKED = {"most": 4, "background": LEVEL, "noise": sm.Gaussian("error"), "progress": False}
LIMIT = 40_000  # enough for one wave, which is what the data hold, and not for two


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits") / "run.nc"
    return sm.count(WAVE, DATA, max_evaluations=LIMIT, checkpoint=path, **ASKED), path


def test_what_was_reached_is_right_and_what_was_not_is_told(limited):
    found, _ = limited
    assert found.numbers == (0, 1) and found.evaluations["likelihood"] <= LIMIT
    for k in found.numbers:
        e = found.log_evidence(k)
        assert abs(e.value - exact(k)) < 4 * e.error < 0.5
    # ln Z had not fallen: more may be there, and nobody has looked.
    assert found.verdict.level == "limit" and "not_reached" in [r.code for r in found.verdict.reasons]
    assert "'2 waves' was not explored" in str(found)
    assert "not reached" in found.stopped and "max_evaluations" in found.stopped
    assert "if there are at most 1: more were not reached" in found.headline
    assert np.isnan(found.more) and "about nan" not in str(found)


def test_files_and_a_run_that_is_resumed_say_the_same(limited, tmp_path):
    found, path = limited
    resumed = sm.count(WAVE, DATA, max_evaluations=LIMIT, checkpoint=path, **ASKED)
    for again in (sm.load(found.save(tmp_path / "answer.nc")), resumed):
        assert again.probabilities == found.probabilities and again.headline == found.headline
        assert again.verdict.level == "limit" and again.stopped == found.stopped


def test_where_no_wave_could_be_looked_for_nothing_is_known():
    found = sm.count(WAVE, DATA, max_evaluations=4000, **ASKED)
    assert found.numbers == (0,) and not found.verdict.is_reliable
    assert "how many waves there are is not known: max_evaluations left no room" in found.headline


def test_after_a_fall_it_is_a_caution():
    """Where the numbers that were reached have their best below the last, the others are only not known."""
    found = sm.count(WAVE, DATA, max_evaluations=60_000, **ASKED)
    last = found.numbers[-1]
    assert 1 == found.best < last < 4 and found.verdict.level == "caution"
    assert f"if there are at most {last}: more were not reached" in found.headline
