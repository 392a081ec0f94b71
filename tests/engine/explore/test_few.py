"""Looks at few parameters: two that share nothing, a third where they disagree, and none that is believed alone."""

import numpy as np
import pytest

from engine_problems import Box, Conjugate, meter, two_modes
from supermodel.engine.explore import few
from supermodel.engine.explore.few import look_at_few
from supermodel.engine.explore.paths import by_level
from supermodel.engine.policy import BATCH, EFFORTS

AUTO = EFFORTS["auto"]


def looked(problem, effort=AUTO, counter=None):
    counter = counter or meter()
    known = problem.joint.probe(np.random.default_rng(0), BATCH, lambda x: counter.likelihood(problem.joint, x))
    return look_at_few(problem.joint, known, 1, 0, counter, effort)


def test_a_normal_posterior_is_recognised_to_rounding_and_costs_little():
    problem = Conjugate(3, traced=True)
    counter = meter()
    pilot = looked(problem, counter=counter)
    assert pilot.reference.is_standard_normal and pilot.spread == 0.0
    assert np.allclose(pilot.warp.mean, problem.mean, atol=1e-6) and np.allclose(
        pilot.warp.factor, problem.sd * np.eye(3), atol=1e-6
    )
    assert counter.evaluations < 2000


@pytest.fixture(scope="module")
def black_box():
    box = Box(two_modes, 2)
    return box, looked(box)


def test_a_black_box_is_looked_at_twice_by_different_paths(black_box):
    box, pilot = black_box
    assert [look.name for look in pilot.looks[:2]] == ["levels", "temperatures"] and pilot.is_agreed
    for look in pilot.looks:
        assert abs(look.log_evidence - box.log_evidence) < 5 * look.error < 1.0


def test_a_quick_look_is_one():
    pilot = looked(Box(two_modes, 2), EFFORTS["quick"])
    assert len(pilot.looks) == 1


@pytest.fixture
def first_look_is_wrong(monkeypatch):
    """It claims another evidence, by three nats."""
    note = few.Explorer._note

    def wrong(self, name, *rest):
        note(self, name, *rest)
        if len(self.looks) == 1:
            self.looks[0] = self.looks[0]._replace(log_evidence=self.looks[0].log_evidence + 3.0)

    monkeypatch.setattr(few.Explorer, "_note", wrong)


def test_looks_that_disagree_are_not_agreed(first_look_is_wrong):
    assert not looked(Box(two_modes, 2), AUTO._replace(nested=0)).is_agreed


@pytest.mark.parametrize("thinned", [False, True])
def test_further_looks_settle_what_two_disagree_on(first_look_is_wrong, monkeypatch, thinned):
    """Wider levels first; nested slices only where these lost their population."""
    if thinned:
        monkeypatch.setattr(few, "by_level", lambda *rest: by_level(*rest) and False)
    box = Box(two_modes, 2)
    pilot = looked(box, AUTO._replace(nested=100))
    names = [look.name for look in pilot.looks[2:]]
    assert names == ["wider levels", "nested slices"][: 1 + thinned]
    assert pilot.is_agreed
    assert abs(pilot.looks[-1].log_evidence - box.log_evidence) < 5 * pilot.looks[-1].error


def test_same_seed_same_bits(black_box):
    _, pilot = black_box
    again = looked(Box(two_modes, 2))
    assert np.array_equal(again.points, pilot.points) and again.looks == pilot.looks
