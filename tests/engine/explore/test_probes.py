"""Probes: an even net over a hill, whose meshes nothing narrow slips through, and slopes that no neighbour shares."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.special import gammaln

import supermodel as sm
from engine_problems import log_normal
from supermodel.embedding.warp import from_covariance, identity
from supermodel.engine.explore.climb import Mode
from supermodel.engine.explore.probes import STRANGE, Cores, net, starts, strangers
from supermodel.engine.explore.slopes import Slopes

SPIKE, SD = np.array([0.31, -0.22]), 0.005  # of a hill N(0, I): inside, and two hundred times as narrow


def mode(centre, covariance):
    return Mode(np.asarray(centre, float), 0.0, from_covariance(np.asarray(centre, float), np.asarray(covariance)))


def ball(rng, n, d):
    """Independent points of the unit ball."""
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)


@pytest.mark.parametrize("d, n", [(2, 800), (2, 3840), (3, 800)])
def test_the_net_has_no_hole_that_a_random_one_would_not_have(d, n, rng):
    """Points of the ball are nearer to the net than twice the radius of the volume that each of its points stands for; 800
    random points leave a hole of that size, for it is empty with probability e^-4 in the plane and e^-8 in space.
    """
    places = 0.95 * ball(rng, 4000, d)
    reach = 2.0 * n ** (-1 / d)
    assert cKDTree(net(rng, n, d)).query(places)[0].max() < reach
    if d == 2:
        assert cKDTree(ball(rng, n, d)).query(places)[0].max() > reach


@pytest.mark.parametrize("d", [2, 3])
def test_each_point_of_the_net_is_a_uniform_draw(d):
    """Over many shifts the mean of r^d is 1/2 and that of the coordinates 0, within 5 errors of independent shells."""
    rng = np.random.default_rng(3)
    x = np.stack([net(rng, 40, d) for _ in range(400)])
    volume = np.linalg.norm(x, axis=2) ** d
    assert np.all((volume >= 0) & (volume <= 1))
    assert abs(volume.mean() - 0.5) < 5 / np.sqrt(12 * 400 * 40)
    assert np.all(np.abs(x.mean(axis=(0, 1))) < 5 * x.std() / np.sqrt(400 * 40))


def test_the_density_of_the_cores_is_that_of_their_net(rng):
    """Mean of 1/q over draws of q is the volume of its support, that of two ellipses which do not meet."""
    modes = [mode([0.0, 0.0], [[2.0, 0.9], [0.9, 1.0]]), mode([9.0, 9.0], 0.01 * np.eye(2))]
    cores = Cores(modes, 1.5)
    areas = [np.pi * 1.5**2 * np.exp(m.warp.log_det_value()) for m in modes]
    found = np.exp(-cores.log_density(cores.draw(rng, 600)))
    assert found[:300] == pytest.approx(2 * areas[0]) and found[300:] == pytest.approx(2 * areas[1])
    assert np.all(np.isneginf(cores.log_density(np.array([[4.0, 4.0], [100.0, 0.0]]))))


def test_a_ball_in_three_dimensions_has_its_volume(rng):
    cores = Cores([mode(np.zeros(3), np.eye(3))], 2.0)
    log_volume = 1.5 * np.log(np.pi) - gammaln(2.5) + 3 * np.log(2.0)
    assert cores.log_density(cores.draw(rng, 50)) == pytest.approx(-log_volume)


def spiked(x, share):
    """ln of a standard normal hill with a share of its mass in a spike, and the gradient."""
    a, b = log_normal(x, np.zeros(2), 1.0) + np.log1p(-share), log_normal(x, SPIKE, SD) + np.log(share)
    value = np.logaddexp(a, b)
    return value, -np.exp(a - value)[:, None] * x + np.exp(b - value)[:, None] * (SPIKE - x) / SD**2


def bent(x):
    """A smooth hill that is far from normal."""
    return -0.5 * np.sum(x**2, axis=1) - 0.3 * x[:, 0] ** 3, -x - np.stack([0.9 * x[:, 0] ** 2, 0 * x[:, 0]], axis=1)


def test_a_strange_slope_points_to_the_spike_that_it_feels(rng):
    u = 0.9 * net(rng, 800, 2)
    at, way = strangers(u, spiked(u, 0.9)[1], 4)
    to_spike = SPIKE - at
    far = np.linalg.norm(to_spike, axis=1)
    assert len(at) and far[0] < 0.05
    assert np.sum(way[0] * to_spike[0]) > 0.99 * far[0]


def test_no_slope_of_a_smooth_hill_is_strange(rng):
    """Negative control, and one that differs from its neighbours by less than the bar does not count either."""
    u = 0.9 * net(rng, 800, 2)
    assert len(strangers(u, -u, 4)[0]) == 0 and len(strangers(u, bent(u)[1], 4)[0]) == 0
    noise = rng.standard_normal(u.shape)
    noise[400] *= 0.3 * STRANGE
    assert 400 not in np.flatnonzero((u[:, None] == strangers(u, noise - u, 1)[0]).all(2).any(1))


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_climbs_start_on_the_spike(share, rng):
    cores = Cores([mode([0.0, 0.0], np.eye(2))], 0.85)
    x = cores.draw(rng, 800)
    hill = Mode(np.zeros(2), float(spiked(np.zeros((1, 2)), share)[0][0]), identity(2))
    found = starts([hill], Slopes(x, *spiked(x, share)), 4, lambda at: spiked(at, share)[0])
    assert np.min(np.linalg.norm(found - SPIKE, axis=1)) < 5 * SD
    hill = Mode(np.zeros(2), 0.0, identity(2))
    smooth = starts([hill], Slopes(x, *bent(x)), 4, lambda at: bent(at)[0])
    assert len(smooth) == 0


def spike_in_a_slab(sd):
    """Nine tenths of the mass in a spike inside a slab of sd 2, half a unit off its middle; ln Z = -2 ln 40."""
    import jax.numpy as jnp
    import numpyro.distributions as dist

    def log_ball(x, centre, width):
        return -0.5 * jnp.sum(((x - centre) / width) ** 2) - 2 * np.log(width * np.sqrt(2 * np.pi))

    def log_likelihood(p):
        x = jnp.stack([p["a"], p["b"]])
        return jnp.logaddexp(np.log(0.9) + log_ball(x, 0.5, sd), np.log(0.1) + log_ball(x, 0.0, 2.0))

    return sm.Model({name: dist.Uniform(-20, 20) for name in "ab"}, log_likelihood)


@pytest.mark.parametrize("seed", range(3))
def test_a_spike_of_a_two_hundredth_of_its_slab_is_found(seed):
    """It is felt on 4 in 10 000 draws of the slab; without it ln Z is low by 2.3."""
    found = sm.evidence(spike_in_a_slab(0.01), seed=seed, progress=False)
    assert abs(found.value + 2 * np.log(40)) < 5 * found.error < 0.5
