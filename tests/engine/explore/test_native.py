"""The user's coordinates: normal laws in a box are normal laws there, and what leads elsewhere is told from what leads home."""

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

from supermodel.embedding.warp import Warp
from supermodel.engine.explore.climb import Mode
from supermodel.engine.explore.native import homeward, is_plain, mode_of, odd, seen, strange, values
from supermodel.engine.explore.slopes import ODD, Slopes, likeness
from supermodel.models.space import Space

BOX = Space({"a": dist.Uniform(-10, 10), "b": dist.Uniform(-10, 10), "c": dist.Uniform(-10, 10)})
WIDE, NARROW = (np.full(3, -4.0), 1.0), (np.full(3, 5.0), 0.2)
H = 1e-6


def log_ball(y, centre, sd):
    return stats.norm(centre, sd).logpdf(y).sum(axis=-1)


def log_joint(x, parts=(WIDE, NARROW)):
    """Equal parts of balls in the user's coordinates, as a density of x."""
    y = values(BOX, x)
    log_likelihood = np.logaddexp.reduce([log_ball(y, *part) for part in parts]) - np.log(len(parts)) + 3 * np.log(20.0)
    return log_likelihood + BOX.log_prior_at(x)


def slopes_at(x, parts=(WIDE, NARROW)):
    gradient = [(log_joint(x + H * e, parts) - log_joint(x - H * e, parts)) / (2 * H) for e in np.eye(3)]
    return Slopes(x, log_joint(x, parts), np.stack(gradient, axis=1))


def mode(centre, sd, parts=(WIDE, NARROW)):
    """The mode of a ball, in the coordinates of the space."""
    x = BOX.unconstrain(dict(zip("abc", centre, strict=True)))
    slope = np.diagonal((values(BOX, x + H * np.eye(3)) - values(BOX, x - H * np.eye(3))) / (2 * H))
    return Mode(x, float(log_joint(x[None], parts)[0]), Warp(x, np.diag(sd / slope)))


@pytest.fixture(scope="module")
def draws():
    return BOX.sample_prior(np.random.default_rng(4), 3000)


def test_a_ball_in_a_box_is_a_ball_in_the_users_coordinates(draws):
    found = seen(BOX, slopes_at(draws, (WIDE,)))
    y = values(BOX, draws)
    inner = np.all(np.abs(y) < 9.9, axis=1)  # where differences of the map are good
    assert found.x == pytest.approx(y)
    assert found.log_joint[inner] == pytest.approx(log_ball(y, *WIDE)[inner], abs=1e-4)
    assert found.gradient[inner] == pytest.approx((WIDE[0] - y)[inner], abs=0.01)
    there = mode_of(BOX, mode(*WIDE, (WIDE,)))
    assert there.point == pytest.approx(WIDE[0]) and np.asarray(there.warp.factor) == pytest.approx(np.eye(3), abs=1e-4)


def test_which_spaces_have_a_coordinate_for_each_parameter():
    mixed = Space({"a": dist.LogUniform(0.1, 10), "v": dist.Normal(0, 1).expand([3]), "g": dist.Gamma(2.0, 1.0)})
    assert is_plain(mixed, np.full(5, 0.3))
    for joint in (dist.Dirichlet(np.ones(3)), dist.LKJCholesky(3)):
        space = Space({"a": dist.Normal(0, 1), "s": joint})
        assert not is_plain(space, np.full(space.dimension, 0.3))


def test_far_slopes_of_a_ball_lead_home_in_the_users_coordinates_only(draws):
    """In those of the space, which stretch the box to all of space, many seem to lead elsewhere."""
    slopes, wide = slopes_at(draws, (WIDE,)), mode(*WIDE, (WIDE,))
    assert np.mean(likeness([wide], slopes) < ODD) > 0.02
    assert len(odd(BOX, slopes, [wide], 99)) == 0
    assert np.all(homeward(BOX, [wide])(*slopes)[np.all(np.abs(values(BOX, draws)) < 9.9, axis=1)])


def test_odd_slopes_are_those_of_the_narrow_mode(draws):
    slopes, wide, narrow = slopes_at(draws), mode(*WIDE), mode(*NARROW)
    y = values(BOX, draws)
    felt = log_ball(y, *NARROW) > log_ball(y, *WIDE)
    rows = odd(BOX, slopes, [wide], 99)
    shared = np.abs(log_ball(y, *NARROW) - log_ball(y, *WIDE)) < 10  # on the border of the two, a slope is neither's
    assert 0 < np.sum(felt[rows]) and np.all((felt | shared)[rows]) and np.sum(felt) < 0.03 * len(y)
    assert len(odd(BOX, slopes, [wide, narrow], 99)) <= 2  # those between the two
    assert not np.any(homeward(BOX, [wide])(*(part[felt] for part in slopes)))


def test_without_gradients_one_call_tells_most_of_them(draws):
    calls = []

    def height(x):
        calls.append(len(x))
        return log_joint(x)

    wide, narrow, y = mode(*WIDE), mode(*NARROW), values(BOX, draws)
    felt = np.flatnonzero(log_ball(y, *NARROW) > log_ball(y, *WIDE))
    rows = strange(BOX, draws, log_joint(draws), [wide], height)
    assert sum(calls) == len(draws)
    assert len(np.intersect1d(rows, felt)) > 0.5 * len(felt) and len(np.setdiff1d(rows, felt)) < 0.02 * len(draws)
    assert len(strange(BOX, draws, log_joint(draws), [wide, narrow], height)) < 0.02 * len(draws)
