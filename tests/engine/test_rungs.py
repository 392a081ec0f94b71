"""Rungs: placed by length, balanced by what is known of ln Z."""

import numpy as np
import pytest
from scipy import stats

from supermodel.engine.policy import MOST_RUNGS, SPACING
from supermodel.engine.rungs import Gap, gap, independent_acceptance, place, rebalance


def normal_differences(s, n=4001):
    """D = ln J_a - ln J_b of two normal densities of unit width, s apart: N(s^2/2, s^2) under a, N(-s^2/2, s^2) under b."""
    z = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return 0.5 * s**2 + s * z, -0.5 * s**2 + s * z


@pytest.mark.parametrize("s", [0.3, 2.0])
def test_the_gap_of_two_normal_densities(s):
    found = gap(*normal_differences(s))
    assert np.allclose(found, (0.5 * s**2, -0.5 * s**2, s, s), rtol=0.01)
    assert found.length == pytest.approx(s, rel=0.01)  # a geodesic of constant speed


def test_the_length_is_the_logarithmic_mean_of_the_speeds():
    """A speed that is geometric between its ends, b^(1-w) a^w, has the integral (a - b) / ln(a / b)."""
    w = np.linspace(0, 1, 100_001)
    speed = 0.5 ** (1 - w) * 3.0**w
    assert Gap(0.0, 0.0, 3.0, 0.5).length == pytest.approx(np.sum(0.5 * (speed[1:] + speed[:-1])) * 1e-5, rel=1e-6)
    assert Gap(0.0, 0.0, 2.0, 2.0).length == 2.0


def test_wild_values_do_not_stretch_the_gap(rng):
    first, second = normal_differences(1.0)
    wild = np.concatenate([second, [np.nan, -np.inf, -1e9]])
    assert gap(first, wild).length == pytest.approx(gap(first, second).length, rel=0.05)
    assert np.all(np.isfinite(gap(first, wild)))
    # A second mode that the other end hardly sees is not wild: it must lengthen the path.
    assert gap(np.concatenate([first, np.full(600, 30.0)]), second).spread_first > 5


@pytest.mark.parametrize("s", [0.01, 0.5, 2.0])
def test_acceptance_of_independent_draws(s):
    r"""$E \min(1, e^X)$ with X = D_2 - D_1 ~ N(-s^2, 2 s^2) is 2 Phi(-s / sqrt 2)."""
    assert independent_acceptance(*normal_differences(s, 1001)) == pytest.approx(
        2 * stats.norm.cdf(-s / np.sqrt(2)), abs=2e-3
    )


def test_rungs_are_placed_by_length_and_balanced():
    table, log_prior = place(Gap(4.0, -2.0, 3.0, 3.0))
    assert table[0].tolist() == [0.0, 1.0] and table[-1].tolist() == [1.0, 0.0]
    assert len(table) == 1 + int(np.ceil(3.0 / SPACING))
    assert np.allclose(np.diff(table[:, 0]), 1 / (len(table) - 1), atol=1e-3)  # constant speed: equal steps
    assert abs(np.logaddexp.reduce(log_prior)) < 1e-12
    # d ln Z / dw runs from -2 to 4: ln Z_first - ln Z_second = 1, so the first end is less likely a priori by e.
    assert abs(log_prior[0] - log_prior[-1] - 1.0) < 1e-9


def test_rungs_stand_closer_where_the_path_is_fast():
    table, _ = place(Gap(0.0, 0.0, 8.0, 0.5))
    steps = np.diff(table[:, 0])
    assert np.all(np.diff(steps) < 0) and np.allclose(table.sum(1), 1)
    speed = 0.5 ** (1 - table[:, 0]) * 8.0 ** table[:, 0]
    lengths = np.diff(speed) / np.log(8.0 / 0.5)  # the integral of the speed between neighbours
    assert np.allclose(lengths, lengths[0], rtol=0.01)
    assert len(place(Gap(0.0, 0.0, 1e4, 1e4))[0]) == MOST_RUNGS and len(place(Gap(0.0, 0.0, 0.0, 0.0))[0]) == 2


def test_a_balance_makes_every_rung_equally_probable():
    log_z, prior = np.array([3.0, -2.0, 0.5, np.nan]), np.array([-1.0, -1.0, -1.0, -np.inf])  # the last one only pads
    fresh = rebalance(log_z, prior)
    assert np.allclose(fresh[:3] + log_z[:3], (fresh + log_z)[0]) and fresh[3] == -np.inf
    assert abs(np.logaddexp.reduce(fresh)) < 1e-12
