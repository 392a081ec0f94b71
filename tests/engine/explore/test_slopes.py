"""Slopes: a concave ln J is told from others, and a slope that leads elsewhere from those that lead home."""

import numpy as np
import pytest
from supermodel.engine.explore.native import SURE

from engine_problems import log_normal
from supermodel.embedding.warp import from_covariance
from supermodel.engine.explore.climb import Mode
from supermodel.engine.explore.slopes import ODD, Slopes, likeness

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


def mode(centre, sd):
    return Mode(np.full(D, centre), 0.0, from_covariance(np.full(D, centre), sd**2 * np.eye(D)))


@pytest.mark.parametrize("function, is_concave", [(logistic, True), (tails, False), (wide_and_narrow, False)])
def test_concave_or_not(function, is_concave, rng):
    x = 3.0 * rng.standard_normal((300, D))
    x = np.concatenate([x, 0.2 * rng.standard_normal((10, D)) + 5.0])  # some in the narrow mode
    assert at(function, x).is_concave(mode(0.0, 1.0).warp) == is_concave


def test_what_is_not_known_everywhere_is_not_concave(rng):
    slopes = at(logistic, rng.standard_normal((20, D)))
    assert slopes.is_concave(mode(0.0, 1.0).warp)
    for planted in (np.nan, -np.inf):
        value = slopes.log_joint.copy()
        value[3] = planted
        assert not slopes._replace(log_joint=value).is_concave(mode(0.0, 1.0).warp)


def test_where_a_narrow_mode_is_felt_no_other_explains_the_slope(rng):
    """Two thousand draws of a box of side 20: about four stand where the narrow mode is felt, none within it."""
    x = rng.uniform(-10, 10, (2000, D))
    slopes, wide, narrow = at(wide_and_narrow, x), mode(-4.0, 1.0), mode(5.0, 0.2)
    top = {
        name: Mode(m.point, float(wide_and_narrow(m.point[None])[0][0]), m.warp)
        for name, m in (("w", wide), ("n", narrow))
    }
    felt = np.exp(hill(x, 5.0, 0.2)[0] - slopes.log_joint)
    like = likeness([top["w"]], slopes)
    assert np.sum(felt > 0.5) > 0 and np.all(like[felt > 0.5] < ODD)
    assert like[felt < 1e-9] == pytest.approx(1.0, abs=1e-6)
    assert np.all(likeness([top["w"], top["n"]], slopes)[(felt < 1e-9) | (felt > 1 - 1e-9)] > 1 - 1e-6)
    assert np.linalg.norm((x[felt > 0.5] - 5) / 0.2, axis=1).min() > 5


def test_slopes_of_one_hill_are_all_its_own(rng):
    slopes = at(lambda x: hill(x, 1.0, 0.5), 4 * rng.standard_normal((500, D)))
    top = float(hill(np.ones((1, D)), 1.0, 0.5)[0][0])
    assert likeness([Mode(np.ones(D), top, mode(1.0, 0.5).warp)], slopes) == pytest.approx(1.0)
    assert likeness([mode(9.0, 0.5)], slopes).max() < SURE  # planted: the wrong summit explains none for sure
    nothing = Slopes.none(D).joined(slopes)
    assert all(np.array_equal(a, b) for a, b in zip(nothing, slopes, strict=True))
