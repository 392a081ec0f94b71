"""When no more components are tried."""

import numpy as np
import pytest

from supermodel.counting.stopping import Enough, beyond

PRIOR = {str(k): 0.2 for k in range(5)}


def test_the_probability_of_more_where_ln_z_falls_on():
    """Known are 0, -2, -5 of three numbers: at the milder fall, 2 nats, -7 and -9 follow."""
    found = beyond(PRIOR, {"0": 0.0, "1": -2.0, "2": -5.0})
    assert found == pytest.approx((np.exp(-7) + np.exp(-9)) / np.sum(np.exp([0, -2, -5, -7, -9])))


def test_the_prior_counts():
    prior = {"0": 0.1, "1": 0.1, "2": 0.1, "3": 0.7}
    found = beyond(prior, {"0": 0.0, "1": -1.0, "2": -2.0})
    assert found == pytest.approx(0.7 * np.exp(-3) / (0.1 * np.sum(np.exp([0, -1, -2])) + 0.7 * np.exp(-3)))


@pytest.mark.parametrize("known", [[0.0], [0.0, -9.0], [0.0, 3.0, -9.0], [0.0, -9.0, -8.0]])
def test_one_fall_tells_nothing(known):
    """A box needs two change points: the first alone is worth less than none."""
    assert beyond(PRIOR, {str(k): z for k, z in enumerate(known)}) == 1.0
    assert not Enough(PRIOR, 0.01)({str(k): z for k, z in enumerate(known)})


def test_beyond_the_largest_there_is_nothing():
    assert beyond(PRIOR, {str(k): float(k) for k in range(5)}) == 0.0


def test_it_stops_below_the_bound_and_not_above():
    known = {"0": 0.0, "1": -2.0, "2": -5.0}
    bound = beyond(PRIOR, known)
    assert Enough(PRIOR, bound * 1.01)(known) and not Enough(PRIOR, bound * 0.99)(known)
