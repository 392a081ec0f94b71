"""Climbs: maxima of a known density, their curvature and their masses."""

from types import SimpleNamespace

import numpy as np
import pytest

from engine_problems import Box, log_normal
from supermodel.embedding.warp import identity
from supermodel.engine.explore.climb import Climber, Climbs, Mode, find_modes, hills_of, summits
from supermodel.engine.explore.cloud import Cloud, Prior, scale_of

MEANS = np.array([[-3.0, -1.0], [2.0, 2.0], [3.0, -3.0]])
SDS, SHARES = np.array([0.5, 0.2, 0.05]), np.array([0.6, 0.3, 0.1])


def mixture(x):
    """ln p and its gradient, of round hills that do not overlap."""
    parts = np.stack([np.log(s) + log_normal(x, m, w) for s, m, w in zip(SHARES, MEANS, SDS, strict=True)], axis=1)
    value = np.logaddexp.reduce(parts, axis=1)
    share = np.exp(parts - value[:, None])
    pull = (MEANS[None] - x[:, None]) / SDS[None, :, None] ** 2
    return value, np.einsum("nm,nmi->ni", share, pull)


def climber(function, centre, scale, far=np.inf):
    """A climber on any function of NumPy; `calls` counts its points, and what is beyond `far` is outside of the prior."""
    calls, joint = [], SimpleNamespace(is_far=lambda x: np.linalg.norm(x, axis=1) > far)

    def value_and_gradient(joint, points, free):
        calls.append(len(points))
        value, gradient = function(points)
        return value, gradient if free is None else np.where(free, gradient, 0.0)

    found = Climber(joint, SimpleNamespace(value_and_gradient=value_and_gradient), centre, scale)
    found.calls = calls
    return found


@pytest.fixture
def prior_draws(rng):
    return 4.0 * rng.standard_normal((512, 2))


def test_all_modes_of_a_mixture_are_found_from_prior_draws(prior_draws):
    there = climber(mixture, np.zeros(2), np.full(2, 4.0))
    rows = summits(prior_draws, mixture(prior_draws)[0], 12)
    modes, _ = find_modes(there, prior_draws[rows], 12)
    assert len(modes) == 3
    for mode, k in zip(modes, np.argsort(-SHARES), strict=True):  # heaviest first
        assert np.allclose(mode.point, MEANS[k], atol=1e-3 * SDS[k])
        assert mode.log_mass == pytest.approx(np.log(SHARES[k]), abs=1e-3)
        assert np.allclose(mode.warp.factor, SDS[k] * np.eye(2), rtol=1e-3, atol=1e-3 * SDS[k])
    hills = hills_of(modes, np.inf)
    x = MEANS[np.argsort(-SHARES)]
    assert np.allclose(hills.log_density(x), mixture(x)[0], atol=2e-3)


def test_summits_stand_above_their_neighbours(prior_draws):
    values = mixture(prior_draws)[0]
    rows = summits(prior_draws, values, 12)
    assert np.all(np.diff(values[rows]) <= 0) and rows[0] == np.argmax(values) and len(rows) <= 12
    values[:] = -np.inf
    assert len(summits(prior_draws, values, 12)) == 0
    values[5] = 0.0
    assert summits(prior_draws, values, 12).tolist() == [5]


@pytest.mark.parametrize("start", [0.0, 30.0])
def test_the_curvature_of_a_gaussian_is_exact_over_twelve_orders_of_magnitude(start, rng):
    """In coordinates scaled by the prior, widths from 1e-6 to 1; in those of the user 1e-6 to 1e6, and correlated."""
    prior = np.array([1.0, 1e3, 1e6, 1.0])
    widths = np.array([1e-6, 1.0, 1e6, 0.3])
    mixing = np.tril(0.4 * rng.standard_normal((4, 4)), -1) + np.eye(4)
    centre = 0.3 * prior

    def gaussian(x):
        z = np.linalg.solve(mixing, ((x - centre) / widths).T).T
        return -0.5 * np.sum(z**2, axis=1), -np.linalg.solve(mixing.T, z.T).T / widths

    point = centre + start * 1e-3 * widths  # near the top: a climb has come so far
    mode = climber(gaussian, np.zeros(4), prior).mode_at(point, float(gaussian(point[None])[0][0]))
    assert np.allclose((mode.point - centre) / widths, 0, atol=1e-5)
    assert np.allclose(mode.warp.factor / widths[:, None], mixing, rtol=0, atol=1e-4)
    assert mode.log_mass == pytest.approx(2 * np.log(2 * np.pi) + np.log(widths).sum(), abs=1e-3)


def test_a_ridge_is_no_wider_than_the_prior():
    """No curvature along one axis: its width is the prior's."""
    mode = climber(
        lambda x: (-0.5 * x[:, 0] ** 2 / 0.01, np.stack([-x[:, 0] / 0.01, 0 * x[:, 1]], axis=1)),
        np.zeros(2), np.array([3.0, 5.0]),
    ).mode_at(np.zeros(2), 0.0)  # fmt: skip
    assert np.allclose(np.diagonal(mode.warp.factor), [0.1, 5.0], rtol=1e-3)


def test_a_wall_is_not_climbed():
    """ln J is NaN beyond 1: the climb ends below it."""

    def walled(x):
        value = np.where(x[:, 0] < 1, x[:, 0], np.nan)
        return value, np.where(x < 1, 1.0, np.nan)

    (point, value), = climber(walled, np.zeros(1), np.ones(1)).climb(np.zeros((1, 1)))  # fmt: skip
    assert 0 < point[0] < 1 and value == point[0]


@pytest.mark.parametrize("visits, alone", [([4], 0.0), ([3, 2], 0.0), ([3, 1, 1], 0.4), ([1, 1], 1.0), ([1], 0.0)])
def test_the_share_of_climbs_that_ended_alone(visits, alone):
    """Good and Turing: singletons over climbs, the chance that the next one ends at a mode not seen."""
    tops = [(np.array([10.0 * k]), -0.1 * k) for k, n in enumerate(visits) for _ in range(n)]
    made = SimpleNamespace(
        climb=lambda starts: tops,
        mode_at=lambda point, value: Mode(point, value, identity(1)._replace(mean=point)),
    )
    modes, share = find_modes(made, np.zeros((1, 1)), 12)
    assert len(modes) == len(visits) and share == pytest.approx(alone)


def test_modes_that_hold_nothing_are_left_out():
    tops = [(np.array([0.0]), 0.0), (np.array([9.0]), -13.0), (np.array([20.0]), -60.0)]
    made = SimpleNamespace(
        climb=lambda starts: tops,
        mode_at=lambda point, value: Mode(point, value, identity(1)._replace(mean=point)),
    )
    modes, _ = find_modes(made, np.zeros((1, 1)), 12)
    assert len(modes) == 2  # the third is not worth its curvature
    assert len(hills_of(modes, 5.0).hills.log_weights) == 1  # e^-13 of the posterior is not worth a hill
    assert find_modes(made, np.zeros((0, 1)), 12) == ([], 0.0)


def test_the_scale_is_that_of_the_prior_draws(rng):
    box = Box(lambda x: np.zeros(len(x)), 2, wide=7.0)
    cloud = Cloud(box.joint, box.joint.log_likelihood_at)
    cloud.grow(Prior(box.joint), 4000, rng)
    centre, scale = scale_of(cloud)
    # Quantiles of 4000 normal draws: errors below 0.02 widths each.
    assert np.all(np.abs(centre) < 4.9 * 0.02 * 7.0) and np.all(np.abs(scale / 7.0 - 1) < 4.9 * 0.02)


def test_on_flat_ground_no_climb_leaves_the_prior():
    """A slope that hardly bends promises a summit thousands of widths away, where likelihoods overflow."""

    def ramp(x):
        assert np.all(np.linalg.norm(x, axis=1) <= 30.0), "asked far outside of the prior"
        return 3.0 * x[:, 0] - 1e-6 * x[:, 0] ** 2, np.stack([3.0 - 2e-6 * x[:, 0], 0.0 * x[:, 1]], axis=1)

    tops = climber(ramp, np.zeros(2), np.ones(2), far=30.0).climb(np.array([[0.0, 0.0], [-3.0, 1.0]]))
    assert all(20.0 < point[0] <= 30.0 for point, _ in tops)


def test_a_ridge_is_one_mode(rng):
    """Climbs from everywhere along a narrow ridge end short of its top; Newton steps take them there."""
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    precision = turn @ np.diag([1.0, 1e6]) @ turn.T

    def ridge(x):
        return -0.5 * np.einsum("ni,ij,nj->n", x, precision, x), -x @ precision

    modes, _ = find_modes(climber(ridge, np.zeros(2), np.full(2, 3.0)), 3.0 * rng.standard_normal((12, 2)), 12)
    assert len(modes) == 1 and np.linalg.norm(modes[0].point) < 1e-3


def test_what_is_held_stays_to_the_bit_and_the_rest_climbs_to_the_profile():
    """ln J = -(b - a)^2 / 2 w^2 - a^2 / 2: with a held, the top is at b = a."""
    w = 0.1

    def profile(x):
        a, b = x.T
        pull = (b - a) / w**2
        return -0.5 * ((b - a) / w) ** 2 - 0.5 * a**2, np.stack([pull - a, -pull], axis=1)

    starts = np.array([[0.3, 2.0], [-1.7, 0.5], [0.0, 0.0]])
    free = climber(profile, np.zeros(2), np.full(2, 2.0))
    held = Climbs.begun(free.holding(np.array([True, False])), starts)
    held.go(60)
    assert np.array_equal(held.x[:, 0], starts[:, 0])
    # A climb ends where less than 1e-3 nats are promised: within sqrt(2e-3) widths of the profile.
    assert np.all(np.abs(held.x[:, 1] - starts[:, 0]) < np.sqrt(2e-3) * w)
    assert held.value == pytest.approx(-0.5 * starts[:, 0] ** 2, abs=1e-3)
    modes, _ = find_modes(free, starts, 4)  # negative control: nothing is held, and all come to one top
    assert len(modes) == 1 and np.linalg.norm(modes[0].point) < 1e-3
    assert free.holding(np.zeros(2, bool)).free is None  # nothing held is all free


def test_some_climbs_go_on_as_they_would_have_in_company(prior_draws):
    """Kept rows take their memory with them: the same tops to the bit, whoever climbs beside them."""
    there = climber(mixture, np.zeros(2), np.full(2, 4.0))
    rows = np.array([9, 2, 30])
    company = Climbs.begun(there, prior_draws[:40])
    company.go(3)
    alone = company.kept(rows)
    assert np.array_equal(alone.x, company.x[rows]) and np.array_equal(alone.steps, company.steps[:, rows])
    company.go(60), alone.go(60)
    assert np.array_equal(alone.x, company.x[rows]) and np.array_equal(alone.value, company.value[rows])


def test_of_each_two_climbs_the_higher_goes_on(prior_draws):
    there = climber(mixture, np.zeros(2), np.full(2, 4.0))
    first, second = Climbs.begun(there, prior_draws[:30]), Climbs.begun(there, prior_draws[30:60])
    best, is_second = first.higher(second), second.value > first.value
    assert 0 < is_second.sum() < 30
    for name in ("y", "value", "gradient", "going"):
        a, b = getattr(first, name), getattr(second, name)
        wanted = [b[k] if is_second[k] else a[k] for k in range(30)]
        assert np.array_equal(getattr(best, name), wanted)
    assert np.array_equal(best.steps[:, is_second], second.steps[:, is_second])
    assert np.array_equal(best.changes[:, ~is_second], first.changes[:, ~is_second])
