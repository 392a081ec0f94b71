"""When a run ends: a decision, or a budget."""

import time

from supermodel.engine.goals import Goals
from supermodel.estimation.estimate import Estimate


def test_a_decision_needs_the_whole_interval_on_one_side():
    aims = Goals(decide=(-1.0, 3.0))
    assert aims.is_decided(Estimate(5.0, 0.9)) and not aims.is_decided(Estimate(5.0, 1.1))
    assert aims.is_decided(Estimate(-3.0, 0.9)) and aims.is_decided(Estimate(1.0, 0.9))
    assert not aims.is_decided(Estimate(1.0, 1.1)) and not Goals().is_decided(Estimate(50.0, 0.1))


def test_budgets_are_met_exactly():
    now = time.monotonic()
    assert Goals(max_evaluations=100).over_budget(99, now) == ""
    assert Goals(max_evaluations=100).over_budget(100, now) == "max_evaluations"
    assert Goals(max_seconds=50.0).over_budget(10**9, now) == ""
    assert Goals(max_seconds=50.0).over_budget(0, now - 50.0) == "max_seconds"
    assert Goals().over_budget(10**9, now) == "" and Goals().over_budget(200, now, patience=100) == "max_evaluations"
