"""Slopes: a concave ln J is told from others."""

import numpy as np
import pytest

from engine_problems import log_normal
from supermodel.embedding.warp import from_covariance
from supermodel.engine.explore.slopes import Slopes

D = 5


def hill(x, centre, sd):
    return log_normal(x, np.full(x.shape[1], centre), sd), (centre - x) / sd**2


def wide_and_narrow(x):
    """Half of the mass about -4, half in a fifth of the width about 5: value and gradient."""
    (a, slope_a), (b, slope_b) = hill(x, -4.0, 1.0), hill(x, 5.0, 0.2)
    value = np.logaddexp(a, b)
    return value, np.exp(a - value)[:, None] * slope_a + np.exp(b - value)[:, None] * slope_b


def logistic(x):
    """A sum of ln sigmoids and a normal prior, which is concave and no quadratic."""
    design = np.random.default_rng(0).standard_normal((40, D))
    eta = x @ design.T
    value = -np.logaddexp(0.0, eta).sum(1) - 0.5 * np.sum(x**2, axis=1)
    return value, -(1 / (1 + np.exp(-eta))) @ design - x


def tails(x):
    """ln of a Student density: one mode, and not concave."""
    square = np.sum(x**2, axis=1)
    return -3.0 * np.log1p(square), -6.0 * x / (1 + square)[:, None]


def at(function, x):
    return Slopes(x, *function(x))


def warp(centre, sd):
    return from_covariance(np.full(D, centre), sd**2 * np.eye(D))


@pytest.mark.parametrize("function, is_concave", [(logistic, True), (tails, False), (wide_and_narrow, False)])
def test_concave_or_not(function, is_concave, rng):
    x = 3.0 * rng.standard_normal((300, D))
    x = np.concatenate([x, 0.2 * rng.standard_normal((10, D)) + 5.0])  # some in the narrow mode
    assert at(function, x).is_concave(warp(0.0, 1.0)) == is_concave


def test_what_is_not_known_everywhere_is_not_concave(rng):
    slopes = at(logistic, rng.standard_normal((20, D)))
    assert slopes.is_concave(warp(0.0, 1.0))
    for planted in (np.nan, -np.inf):
        value = slopes.log_joint.copy()
        value[3] = planted
        assert not slopes._replace(log_joint=value).is_concave(warp(0.0, 1.0))


def test_a_narrow_mode_that_no_draw_has_met_contradicts_nothing():
    """Concave as far as these slopes tell: what is said of ln J is said of where it was looked at."""
    x = 0.5 * np.random.default_rng(1).standard_normal((300, D)) - 4.0
    assert at(wide_and_narrow, x).is_concave(warp(-4.0, 1.0))
    for place, is_concave in (
        (4.9, False),
        (5.1, True),
    ):  # before its top the slope leads away from the others, behind it home
        seen = np.concatenate([x, np.full((1, D), place)])
        assert at(wide_and_narrow, seen).is_concave(warp(-4.0, 1.0)) == is_concave


def test_a_kink_upwards_of_a_hundred_thousandth_is_seen(rng):
    """A rise of the slope above the rounding that is allowed, 1e-7 of a product, and one below it."""
    x = rng.uniform(-1, 1, (60, 1))
    for kink, is_concave in ((1e-5, False), (0.0, True)):
        slopes = Slopes(x, np.zeros(60), -np.sign(x) + kink * (x > 0.5))
        assert slopes.is_concave(from_covariance(np.zeros(1), np.eye(1))) == is_concave


def test_joined_slopes_are_those_of_both(rng):
    slopes = at(logistic, rng.standard_normal((20, D)))
    nothing = Slopes.none(D).joined(slopes)
    assert all(np.array_equal(a, b) for a, b in zip(nothing, slopes, strict=True))
    twice = slopes.joined(slopes)
    assert len(twice.x) == 40 and np.array_equal(twice.gradient[20:], slopes.gradient)
