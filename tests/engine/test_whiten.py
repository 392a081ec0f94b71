"""Warps fitted to draws, by moments and by scores, and judged by the spread that they leave."""

import numpy as np
import pytest
from scipy import stats

from supermodel.embedding.warp import Warp, identity
from supermodel.engine.whiten import by_moments, by_scores, spread, widened


def gaussian(rng, d, scales=1.0):
    factor = (np.tril(rng.standard_normal((d, d))) + 2 * np.eye(d)) * np.reshape(scales, (-1, 1))
    return rng.standard_normal(d), factor


@pytest.mark.parametrize("scales", [np.ones(4), np.array([1e-6, 1.0, 1e3, 1e6])])
def test_scores_give_the_exact_warp_of_a_gaussian(rng, scales):
    mean, factor = gaussian(rng, 4, scales)
    covariance = factor @ factor.T
    start = Warp(mean + 0.7 * scales, 1.3 * np.diag(scales))  # a poor first guess
    points = start.points(rng.standard_normal((64, 4)))
    gradients = -np.linalg.solve(covariance, (points - mean).T).T
    warp = by_scores(points, gradients, start)
    log_joint = -0.5 * np.sum(np.linalg.solve(factor, (points - mean).T) ** 2, axis=0)
    assert np.allclose(
        warp.factor @ warp.factor.T / np.outer(scales, scales),
        covariance / np.outer(scales, scales),
        rtol=1e-3,
        atol=1e-3,
    )
    assert spread(log_joint, points, warp) < 1e-2 < spread(log_joint, points, start)


def test_few_scores_correct_the_centre_and_the_size(rng):
    """With fewer than four draws a dimension the shape is kept: exact where only centre and size were wrong."""
    start = Warp(np.full(8, 0.3), 1.7 * np.eye(8))
    points = start.points(rng.standard_normal((10, 8)))
    warp = by_scores(points, -(points + 1.0) / 0.25, start)
    assert np.allclose(warp.mean, -1.0) and np.allclose(warp.factor, 0.5 * np.eye(8))


def test_moments_whiten(rng):
    factor = np.array([[2.0, 0.0], [1.5, 0.3]])
    points = rng.standard_normal((4000, 2)) @ factor.T + [5.0, -1.0]
    u = by_moments(points).inverse(points)
    assert np.allclose(u.mean(0), 0, atol=1e-9)  # the draws' own moments: exact, not statistical
    assert np.allclose(np.cov(u.T), np.eye(2), atol=1e-3)


def test_correlations_that_are_noise_are_left_out(rng):
    """d = 60 from 300 draws: the eigenvalues of a sample covariance run from 0.3 to 2.1 (Marchenko and Pastur)."""
    points = rng.standard_normal((300, 60))
    raw = np.linalg.eigvalsh(np.cov(points.T))
    found = by_moments(points)
    eigenvalues = np.linalg.eigvalsh(found.factor @ found.factor.T)
    assert raw[0] < 0.4 and raw[-1] > 1.9
    assert eigenvalues[0] > 0.6 and eigenvalues[-1] < 1.5  # variances: 1 ± 0.08 each, of 60 within four of them


def test_correlations_that_are_strong_stay(rng):
    factor = np.tril(np.ones((30, 30)))  # a random walk: neighbours at 0.9 and more
    points = rng.standard_normal((100, 30)) @ factor.T
    sample = np.corrcoef(points.T)[10, 11]
    found = by_moments(points)
    covariance = found.factor @ found.factor.T
    kept = covariance[10, 11] / np.sqrt(covariance[10, 10] * covariance[11, 11])
    assert 0.97 * sample < kept < sample


def test_weights_count_as_copies_do(rng):
    points, copies = rng.standard_normal((50, 3)), rng.integers(1, 4, 50)
    weighed, copied = by_moments(points, copies.astype(float)), by_moments(np.repeat(points, copies, axis=0))
    assert np.allclose(weighed.mean, copied.mean)
    # The covariance differs by what the effective number of draws says of its bias.
    assert np.allclose(weighed.factor, copied.factor, rtol=0.03, atol=0.03)


def test_few_draws_are_shrunk_to_the_guess(rng):
    points = rng.standard_normal((4, 6))
    guess = Warp(np.zeros(6), 3.0 * np.eye(6))
    warp = by_moments(points, shrink_to=guess)
    assert np.all(np.linalg.eigvalsh(warp.factor @ warp.factor.T) > 0.5)  # four draws alone span three directions


def test_the_spread_of_a_shifted_warp_is_the_shift(rng):
    """ln N(u) - ln N(u; delta) = -delta u + const: its standard deviation under N(0, 1) is delta."""
    u = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)[:, None]
    log_joint = stats.norm.logpdf(u[:, 0])
    assert spread(log_joint, u, identity(1)) < 1e-12
    assert spread(log_joint, u, Warp(np.array([0.4]), np.eye(1))) == pytest.approx(0.4, rel=0.01)
    half = np.where(u[:, 0] > 0, 2.0, 0.0)  # weights: a half-normal, of variance 1 - 2/pi
    left = spread(log_joint, u, Warp(np.array([0.4]), np.eye(1)), half)
    assert left == pytest.approx(0.4 * np.sqrt(1 - 2 / np.pi), rel=0.01)
    assert spread(log_joint[:1], u[:1], identity(1)) == 0.0


def test_a_warp_is_widened_with_what_is_left_and_less_in_many_dimensions():
    def growth(d, left):
        return widened(identity(d), left).factor[0, 0]

    assert growth(3, 0.0) == 1.0 < growth(3, 0.1) < growth(3, 0.3) == growth(3, 5.0) <= 1.12
    assert growth(100, 0.3) < growth(3, 0.3)
