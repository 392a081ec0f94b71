"""Conditional warps: which coordinates lead is found, and the spread falls."""

import numpy as np
import pytest

from engine_problems import log_normal
from supermodel.engine.explore.conditional import fit_conditional
from supermodel.engine.whiten import by_moments

N = 1500


def funnel(rng, n=N):
    """The third coordinate is the log width of the four others."""
    v = 1.5 * rng.standard_normal(n)
    x = np.exp(0.5 * v)[:, None] * rng.standard_normal((n, 4))
    draws = np.insert(x, 2, v, axis=1)
    return draws, log_normal(v[:, None], 0.0, 1.5) + log_normal(x / np.exp(0.5 * v)[:, None], 0.0, 1.0) - 2.0 * v


def banana(rng, n=N):
    """The second coordinate bends the first."""
    x = rng.standard_normal(n)
    y = x**2 + 0.3 * rng.standard_normal(n)
    return np.stack([y, x], axis=1), log_normal(x[:, None], 0, 1) + log_normal((y - x**2)[:, None], 0, 0.3)


def left(warp, draws, log_density):
    """Standard deviation of ln p - ln N on draws that were not fitted."""
    u = warp.inverse(draws)
    return np.std(log_density + warp.log_det_at(u) + 0.5 * np.sum(u**2, axis=1))


@pytest.mark.parametrize("shape, leader", [(funnel, 2), (banana, 1)])
def test_the_leader_is_found_and_the_spread_falls(shape, leader, rng):
    draws, _ = shape(rng)
    warp = fit_conditional(draws, np.ones(N), rng)
    assert warp is not None and warp.order[0] == leader
    fresh = shape(rng)
    assert left(warp, *fresh) < 0.5 * left(by_moments(draws), *fresh)


def test_a_gaussian_has_no_leader(rng):
    factor = np.tril(rng.standard_normal((4, 4))) + np.eye(4)
    assert fit_conditional(rng.standard_normal((N, 4)) @ factor.T, np.ones(N), rng) is None
    assert fit_conditional(rng.standard_normal((N, 1)), np.ones(N), rng) is None
    assert fit_conditional(rng.standard_normal((30, 3)), np.ones(30), rng) is None  # too few to tell


def test_weights_count(rng):
    """A funnel hidden among draws that weigh nothing."""
    draws, _ = funnel(rng)
    noise = 3 * rng.standard_normal((N, 5))
    warp = fit_conditional(np.concatenate([draws, noise]), np.repeat([1.0, 0.0], N), rng)
    fresh = funnel(rng)
    assert warp.order[0] == 2 and left(warp, *fresh) < 0.5 * left(by_moments(draws), *fresh)
