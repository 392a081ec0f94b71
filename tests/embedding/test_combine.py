"""Σ w ln J and the rung given u, in NumPy and in JAX."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supermodel.embedding.combine import rung_given, times, weighted

TABLE = np.array([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]])
LOGS = np.array([[-2.0, 5.0], [-np.inf, 1.0], [3.0, -np.inf], [np.nan, 2.0]])


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_a_weight_of_zero_silences_even_an_impossible_point(xp):
    found = np.asarray(weighted(xp, xp.asarray(TABLE), xp.asarray(LOGS)[:, None, :]))
    expected = [[-2.0, 0.3 * -2.0 + 0.7 * 5.0, 5.0], [-np.inf, -np.inf, 1.0], [3.0, -np.inf, -np.inf]]
    np.testing.assert_array_equal(found[:3], expected)
    assert np.isnan(found[3, :2]).all() and found[3, 2] == 2.0  # NaN stays NaN where it has a say
    with np.errstate(invalid="ignore"):
        assert not np.array_equal((LOGS[:3, None, :] * TABLE).sum(-1), expected)  # planted: the bare sum


def test_the_gradient_with_respect_to_a_silenced_density_is_zero():
    slopes = jax.vmap(jax.grad(lambda x, w: times(jnp, w, x)))(jnp.array([-np.inf, 2.0]), jnp.array([0.0, 0.7]))
    np.testing.assert_array_equal(slopes, [0.0, 0.7])


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_the_rung_follows_its_densities(xp, rng):
    """Shares of 20 000 draws; Hoeffding, false alarm below 1e-6 for all five. Planted: shares of another density."""
    logs = np.array([-800.0, -1.0, 0.5, -np.inf, -2.0]) + 700.0
    n, p = 20_000, np.exp(logs - np.logaddexp.reduce(logs))
    rungs = np.asarray(rung_given(xp, xp.asarray(rng.random(n)), xp.asarray(np.broadcast_to(logs, (n, 5)))))
    shares, bound = np.bincount(rungs, minlength=5) / n, math.sqrt(math.log(10 / 1e-6) / (2 * n))
    assert np.all(np.abs(shares - p) < bound) and shares[3] == 0
    assert np.any(np.abs(shares - np.roll(p, 1)) > bound)


def test_the_ends_of_the_uniform_stay_on_the_ladder():
    """Ten thousand rungs, whose rounded shares do not add up to 1."""
    ends = np.array([0.0, np.nextafter(1.0, 0.0)])
    rungs = rung_given(np, ends, np.broadcast_to(np.linspace(0.0, 1e-3, 10_000), (2, 10_000)))
    assert rungs[0] == 0 and rungs[1] == 9_999
    forbidden = np.array([-np.inf, 0.0, -np.inf])
    np.testing.assert_array_equal(rung_given(np, ends, np.broadcast_to(forbidden, (2, 3))), [1, 1])
