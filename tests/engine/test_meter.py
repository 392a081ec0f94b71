"""The meter: nothing is begun that the budget does not hold, and every call is counted."""

import numpy as np
import pytest
from scipy import stats

from engine_problems import Conjugate, meter
from supermodel.engine import goals
from supermodel.engine import meter as module
from supermodel.engine.goals import Goals
from supermodel.engine.meter import Meter, Spent
from supermodel.engine.policy import BATCH, CHAINS, PATIENCE, TOGETHER
from supermodel.models.joint import Joint
from supermodel.models.model import Model


def test_calls_are_counted_and_values_are_right(rng):
    for traced in (False, True):
        problem, counter = Conjugate(2, traced=traced), meter()
        x = rng.standard_normal((2 * BATCH + 7, 2))
        assert np.allclose(counter.likelihood(problem.joint, x), problem.joint.log_likelihood_at(x), rtol=1e-12)
        assert counter.evaluations == len(x) and counter.gradients == 0
        assert counter.room == PATIENCE - len(x)
    assert meter().likelihood(problem.joint, np.zeros((0, 2))).shape == (0,)


def test_gradients_are_counted_and_right(rng):
    problem, counter = Conjugate(3, traced=True), meter()
    x = rng.standard_normal((21, 3))
    value, gradient = counter.value_and_gradient(problem.joint, x)
    assert np.allclose(value, problem.joint.log_joint_at(x))
    assert np.allclose(gradient, -(x - problem.mean) / problem.sd**2)
    assert counter.evaluations == counter.gradients == 21


@pytest.mark.parametrize("asked", [CHAINS, BATCH])
def test_what_is_computed_is_what_is_counted(asked, rng):
    """Chains and looks ask for whole parts of a program: no copies fill it up, and one shape serves both."""
    problem, counter, computed = Conjugate(2, traced=True), meter(), []
    program = problem.joint._compiled
    problem.joint._compiled = lambda points: computed.append(len(points)) or program(points)
    counter.likelihood(problem.joint, rng.standard_normal((asked, 2)))
    assert sum(computed) == counter.evaluations == asked and set(computed) == {TOGETHER}


def test_no_batch_is_begun_that_the_budget_does_not_hold(rng):
    problem, counter = Conjugate(2), meter(most=BATCH + 10)
    with pytest.raises(Spent, match="max_evaluations"):
        counter.likelihood(problem.joint, rng.standard_normal((3 * BATCH, 2)))
    assert problem.calls == counter.evaluations == BATCH
    counter.likelihood(problem.joint, np.zeros((10, 2)))  # what is left can be spent
    assert counter.over() == "max_evaluations" and counter.room == 0
    with pytest.raises(Spent):
        counter.check()


def test_time_is_a_limit_as_well(monkeypatch):
    now = [100.0]
    for place in (goals, module):
        monkeypatch.setattr(place, "time", type("clock", (), {"monotonic": staticmethod(lambda: now[0])}))
    counter = meter(seconds=5.0)
    counter.check()
    now[0] += 5.0
    assert counter.over() == "max_seconds"
    with pytest.raises(Spent, match="max_seconds"):
        counter.check()


def test_slow_calls_come_about_a_second_at_a_time(monkeypatch):
    """A plain-Python likelihood of 0.3 s: a limit of 4 s is overrun by less than two seconds, not by a batch of 19."""
    now = [0.0]
    for place in (goals, module):
        monkeypatch.setattr(place, "time", type("clock", (), {"monotonic": staticmethod(lambda: now[0])}))

    def slow(p):
        float(p["x"])  # nothing for JAX to trace
        now[0] += 0.3
        return 0.0

    joint, counter = Joint("slow", Model({"x": stats.norm()}, slow)), meter(seconds=4.0)
    with pytest.raises(Spent, match="max_seconds"):
        counter.likelihood(joint, np.zeros((300, 1)))
    assert 4.0 <= now[0] < 6.0


def test_each_check_is_told():
    told = []
    counter = Meter(Goals(), tell=lambda: told.append(1))
    counter.check()
    counter.check(5)
    assert len(told) == 2


def test_what_is_worth_a_share_of_the_budget():
    assert meter().affords(100, 0.01) and not meter(most=1000).affords(11, 0.01) and meter(most=1000).affords(10, 0.01)
    slow = meter(seconds=100.0)
    slow.evaluations, slow.seconds_calling = 10, 5.0
    assert slow.affords(1, 0.01) and not slow.affords(3, 0.01)
