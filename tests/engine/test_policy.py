"""The policy: efforts that grow from quick to thorough, and shrink with a budget."""

import itertools

import pytest

from supermodel.engine import policy
from supermodel.engine.policy import EFFORTS
from supermodel.errors import SupermodelError
from supermodel.options import BY_NAME, checked
from supermodel.options import EFFORTS as OFFERED

NUMBERS = {"first", "first_black", "level", "second", "climbs", "slopes", "race", "replicates", "patience"}


def test_every_effort_can_be_asked_for():
    for name, effort in EFFORTS.items():
        assert checked("explore", name) == name == effort.name
        assert name in BY_NAME["explore"].must
    assert set(OFFERED) == set(EFFORTS)
    with pytest.raises(SupermodelError, match="explore"):
        checked("explore", "impatient")


def test_efforts_grow():
    """In every number: draws, climbs, slopes, starts of a race, replicates, patience."""
    efforts = [EFFORTS[name] for name in ("quick", "auto", "patient", "thorough")]
    assert set(policy.Effort._fields[1:-1]) == NUMBERS
    for less, more in itertools.pairwise(efforts):
        assert all(getattr(less, name) <= getattr(more, name) for name in NUMBERS)
        assert less.race < more.race and less.replicates < more.replicates
    assert efforts[0].second == 0 < efforts[1].second


@pytest.mark.parametrize("name", EFFORTS)
def test_a_smaller_budget_makes_a_smaller_effort_of_the_same_kind(name):
    effort = EFFORTS[name]
    assert effort.scaled(1.0) == effort == effort.scaled(7.0)
    for by in (0.01, 0.5):
        small = effort.scaled(by)
        assert all(getattr(small, name) <= getattr(effort, name) for name in NUMBERS)
        assert min(small.first, small.first_black, small.level, small.climbs) > 0
        assert small.is_thrifty == (by < 0.5 or effort.is_thrifty)  # a tight limit is a price put on calls
        assert small.race <= by * effort.race and small.slopes <= by * effort.slopes
        assert (small.replicates, small.patience) == (effort.replicates, effort.patience)  # the meter holds the limit
    assert (small.second > 0) == (effort.second > 0)  # half a budget still buys two looks, where two were asked for


def test_numbers_that_must_fit_together():
    assert policy.CHAINS % 2 == 0  # half of the chains start at either end
    assert policy.CHAINS <= policy.BATCH  # they start at draws of a measured pair
    assert policy.AGREE_ERRORS < policy.DISAGREE_ERRORS  # a caution comes before a failure
    assert 0 < policy.PRIOR_SHARE < 0.5 and 0 < policy.EXPLORING < 1


def test_more_parameters_ask_for_more_slopes():
    auto = EFFORTS["auto"]
    assert [auto.scouts(d) for d in (1, 2, 3, 20)] == [20, 160, auto.slopes, auto.slopes]
    assert auto._replace(slopes=100).scouts(2) == 100  # never more than the effort holds


def test_a_call_that_is_cheap_is_not_dear():
    assert 0 < policy.CHEAP < policy.DEAR
    a, b = policy.CAPTURE_PRIOR
    # Two replicates that agree in all leave less than MISSED; one that missed half of the mass leaves more.
    from scipy.special import beta

    def missed(hits, k=2):
        return beta(a + hits, b + 2 * k - hits) / beta(a + hits, b + k - hits)

    assert missed(2) < policy.MISSED < missed(1.5)
