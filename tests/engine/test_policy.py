"""The policy: efforts that grow from quick to thorough, and shrink with a budget."""

import pytest

from supermodel.engine import policy
from supermodel.engine.policy import EFFORTS
from supermodel.options import checked


def test_every_effort_can_be_asked_for():
    for name, effort in EFFORTS.items():
        assert checked("explore", name) == name == effort.name


def test_efforts_grow():
    quick, auto, thorough = (EFFORTS[name] for name in ("quick", "auto", "thorough"))
    assert all(a <= b <= c for a, b, c in zip(quick[1:8], auto[1:8], thorough[1:8], strict=True))
    assert quick.second == 0 < auto.second


@pytest.mark.parametrize("name", EFFORTS)
def test_a_smaller_budget_makes_a_smaller_effort_of_the_same_kind(name):
    effort = EFFORTS[name]
    assert effort.scaled(1.0) == effort == effort.scaled(7.0)
    for by in (0.01, 0.5):
        small = effort.scaled(by)
        assert all(a <= b for a, b in zip(small[1:8], effort[1:8], strict=True))
        assert min(small.first, small.first_black, small.level, small.climbs) > 0
        assert small.is_thrifty == (by < 0.5 or effort.is_thrifty)  # a tight limit is a price put on calls
        assert small.nested == 0  # a third look costs more than a small budget holds
    assert (small.second > 0) == (effort.second > 0)  # half a budget still buys two looks, where two were asked for


def test_numbers_that_must_fit_together():
    assert policy.CHAINS % 2 == 0  # half of the chains start at either end
    assert policy.CHAINS <= policy.BATCH  # they start at draws of a measured pair
    assert policy.AGREE_ERRORS < policy.DISAGREE_ERRORS  # a caution comes before a failure
    assert 0 < policy.PRIOR_SHARE < 0.5 and 0 < policy.EXPLORING < 1


def test_more_parameters_or_several_modes_ask_for_more_slopes():
    auto = EFFORTS["auto"]
    assert [auto.scouts(d) for d in (1, 2, 3, 20)] == [20, 160, auto.most_scouts, auto.most_scouts]
    assert [auto.scouts(d, several=True) for d in (1, 2, 5)] == [600, 4800, 2 * auto.most_scouts]
    assert all(auto.scouts(d, several=True) > auto.scouts(d) for d in range(1, 21))
