"""Bent warps: a map that was bent is found again, from values and from slopes, and what is normal stays straight."""

import numpy as np
import pytest

from supermodel.embedding.warp import Bent, Warp, identity, pairs
from supermodel.engine.explore.bent import bent_by_slopes, fit_bent, ridged
from supermodel.engine.explore.quadratic import coefficients
from supermodel.engine.whiten import by_moments

N = 1200


def truth(d):
    """A bent normal law: small bends, flares and skews of every coordinate."""
    rng = np.random.default_rng(8)
    before = pairs(d)[1] < np.arange(d)[:, None]
    bend = np.where(before, 0.06 * rng.standard_normal(before.shape), 0.0)
    flare = np.tril(0.06 * rng.standard_normal((d, d)), -1)
    factor = np.tril(0.4 * rng.standard_normal((d, d)), -1) + np.diag(rng.uniform(0.5, 2.0, d))
    return Bent(rng.standard_normal(d), factor, np.zeros((d, d)), bend, flare, rng.uniform(-0.3, 0.3, d))


def log_density(warp, x):
    u = warp.inverse(x)
    return -0.5 * np.sum(u**2, axis=1) - warp.log_det_at(u)


def slopes(warp, x, h=1e-5):
    """Central differences of the log density."""
    steps = h * np.eye(x.shape[1])
    return np.stack([(log_density(warp, x + s) - log_density(warp, x - s)) / (2 * h) for s in steps], axis=1)


def left(warp, exact, rng):
    """Spread of ln p - ln N on fresh draws."""
    x = exact.points(rng.standard_normal((N, len(exact.mean))))
    u = warp.inverse(x)
    return np.std(log_density(exact, x) + warp.log_det_at(u) + 0.5 * np.sum(u**2, axis=1))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_values_tell_the_bends(d, rng):
    exact = truth(d)
    x = exact.points(rng.standard_normal((N, d)))
    affine = by_moments(x)
    found = fit_bent(x, np.ones(N), log_density(exact, x), affine)
    assert left(found, exact, rng) < 0.25 * left(affine, exact, rng)


def test_weights_count(rng):
    """Draws that are too wide, weighed as draws of the law."""
    exact = truth(3)
    u = 1.6 * rng.standard_normal((2 * N, 3))
    x = exact.points(u)
    weight = np.exp(-0.5 * np.sum(u**2, axis=1) * (1 - 1 / 1.6**2))
    affine = by_moments(x, weight)
    found = fit_bent(x, weight, log_density(exact, x), affine)
    assert left(found, exact, rng) < 0.25 * left(affine, exact, rng)


@pytest.mark.parametrize("d", [2, 6, 12])
def test_slopes_tell_them_from_far_fewer_points(d, rng):
    exact = truth(d)
    draws = exact.points(rng.standard_normal((N, d)))
    affine = by_moments(draws)
    x = draws[: max(2 * coefficients(d), 40)]
    found = bent_by_slopes(x, slopes(exact, x), affine)
    assert left(found, exact, rng) < 0.35 * left(affine, exact, rng)


def test_values_go_on_from_slopes(rng):
    exact = truth(5)
    x = exact.points(rng.standard_normal((N, 5)))
    first = bent_by_slopes(x[:50], slopes(exact, x[:50]), by_moments(x))
    second = fit_bent(x, np.ones(N), log_density(exact, x), first)
    assert left(second, exact, rng) < 1.02 * left(first, exact, rng)


def test_what_is_normal_stays_straight(rng):
    exact = Warp(np.array([1.0, -2.0]), np.array([[0.5, 0.0], [0.3, 2.0]]))
    x = exact.points(rng.standard_normal((N, 2)))
    found = fit_bent(x, np.ones(N), log_density(exact, x), by_moments(x))
    assert left(found, exact, rng) < 0.01
    assert max(np.abs(part).max() for part in (found.bend, found.flare, found.skew)) < 0.02


def test_too_few_points_tell_nothing(rng):
    x = rng.standard_normal((20, 4))
    for found in (
        fit_bent(x, np.ones(20), -np.sum(np.abs(x) ** 3, axis=1), identity(4)),
        bent_by_slopes(x[:6], -3 * x[:6] * np.abs(x[:6]), identity(4)),
    ):
        assert not any(np.any(part) for part in (found.shear, found.bend, found.flare, found.skew))


def test_coordinates_that_overflow_break_nothing(rng):
    """A banana so thin that bends of it send far points off to infinity: no crash, and what is found is a warp."""
    x = rng.standard_normal((400, 2))
    x[:, 1] = 200 * x[:, 0] ** 2 + 1e-3 * x[:, 1]
    values = -0.5 * x[:, 0] ** 2 - 0.5 * ((x[:, 1] - 200 * x[:, 0] ** 2) / 1e-3) ** 2
    far = np.concatenate([x, 1e200 * rng.standard_normal((5, 2))])
    with np.errstate(all="ignore"):
        found = fit_bent(
            far, np.append(np.ones(400), np.full(5, 1e-6)), np.append(values, np.full(5, -1e250)), by_moments(x)
        )
    assert all(np.all(np.isfinite(part)) for part in found)


def test_impossible_points_have_no_say(rng):
    exact = truth(2)
    x = exact.points(rng.standard_normal((N, 2)))
    values = log_density(exact, x)
    outside = np.concatenate([x, x + 30.0])
    found = fit_bent(outside, np.ones(2 * N), np.concatenate([values, np.full(N, -np.inf)]), by_moments(x))
    assert left(found, exact, rng) < 0.25 * left(by_moments(x), exact, rng)


def test_least_squares_with_a_ridge_finds_what_is_there_and_little_else(rng):
    free, bound = np.ones((200, 1)), rng.standard_normal((200, 30))
    target = 2.0 + bound[:, :1]
    first, second = ridged(free, bound, target, 200.0)
    np.testing.assert_allclose(first, [[2.0]], atol=1e-4)
    np.testing.assert_allclose(second[:, 0], np.eye(30)[0], atol=1e-4)
    noise = 3.0 * rng.standard_normal((200, 1))
    shrunk = ridged(free, bound, noise, 200.0)[1]
    plain = np.linalg.lstsq(np.concatenate([free, bound], axis=1), noise, rcond=None)[0][1:]
    assert np.sum(shrunk**2) < 0.5 * np.sum(plain**2)
