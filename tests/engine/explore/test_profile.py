"""The profile of a component: a normalised density, and the masses of its cells are exact where all else is normal."""

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.stats import chi2

import supermodel as sm
from engine_problems import meter
from supermodel.engine.explore.climb import Climber
from supermodel.engine.explore.profile import Profile, profiled
from supermodel.engine.policy import PROFILE_EVEN
from supermodel.models.joint import Joint

T = np.sort(np.random.default_rng(2).uniform(0, 4, 25))
Y = 1.3 * np.cos(2 * np.pi * 1.7 * T + 0.4) + 0.5 * np.random.default_rng(3).standard_normal(25)
SD, SPREAD = 0.5, 2.0


def made(rng, cells=4, q=2):
    factors = np.tril(rng.normal(size=(cells, q, q)), -1) + np.eye(q) * rng.uniform(0.3, 2, (cells, 1, 1))
    weights = rng.dirichlet(np.ones(cells))
    return Profile(np.array(1), np.array([-1.0, 0.2, 0.5, 2.0, 2.5]), np.log(weights), rng.normal(size=(cells, q)), factors)


def test_draws_have_the_density(rng):
    """Of draws of another normalised density p, the mean of h / p is 1, and those of h lie in cells as often as they should."""
    profile = made(rng)
    n = 200_000
    phi = np.column_stack([rng.standard_t(3, n) * 3, rng.uniform(-1, 2.5, n), rng.standard_t(3, n) * 3])
    from scipy.stats import t

    log_p = t.logpdf(phi[:, 0], 3, scale=3) + t.logpdf(phi[:, 2], 3, scale=3) - np.log(3.5)
    ratio = np.exp(profile.log_density(phi) - log_p)
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(n) < 0.1
    drawn = profile.draw(rng, n)
    counts = np.histogram(drawn[:, 1], profile.edges)[0]
    expected = n * np.exp(profile.log_weights)
    assert np.sum((counts - expected) ** 2 / expected) < chi2.isf(1e-6, 3)
    inverse = np.exp(log_density_of_box(profile, drawn))  # of a box within all hills: its mean over draws is its volume
    assert abs(inverse.mean() - 1) < 5 * inverse.std() / np.sqrt(n) < 0.1


def log_density_of_box(profile, phi):
    """ln of the uniform density of a box, over that of the profile."""
    inside = np.all(np.abs(phi[:, [0, 2]]) < 1.0, axis=1)
    return np.where(inside, -np.log(4 * 3.5) - profile.log_density(phi), -np.inf)


def test_outside_of_its_cells_there_is_nothing(rng):
    assert np.all(made(rng).log_density(np.array([[0.0, -1.1, 0.0], [0.0, 2.6, 0.0]])) == -np.inf)


def wave():
    import jax.numpy as jnp

    def log_likelihood(p):
        phase = 2 * np.pi * p["f"] * T
        off = (Y - p["a"] * jnp.cos(phase) - p["b"] * jnp.sin(phase)) / SD
        return -0.5 * jnp.sum(off**2) - T.size * np.log(SD * np.sqrt(2 * np.pi))

    priors = {"f": dist.Uniform(0.5, 4), "a": dist.Normal(0, SPREAD), "b": dist.Normal(0, SPREAD)}
    return Joint("wave", sm.Model(priors, log_likelihood))


def exact(f):
    """ln of the likelihood at a frequency, amplitudes by algebra."""
    from benchmarks.sky.truths import linear

    design = np.stack([np.cos(2 * np.pi * f * T), np.sin(2 * np.pi * f * T)], axis=-1)
    return linear(design, Y, np.full(T.size, SD), SPREAD)


@pytest.mark.parametrize("tries", [1, 2])
def test_masses_are_exact_where_amplitudes_are_linear(tries, rng):
    joint, cells = wave(), 40
    drawn = joint.space.sample_prior(rng, 4000)
    climber = Climber(joint, meter(), np.median(drawn, axis=0), drawn.std(axis=0))
    edges = np.quantile(drawn[:, 0], np.linspace(0, 1, cells + 1))
    starts = joint.space.sample_prior(rng, tries * cells)
    starts[:, 0] = np.tile(0.5 * (edges[1:] + edges[:-1]), tries)
    profile, tops, log_mass = profiled(climber, starts.reshape(tries, cells, 3), edges, 0, np.array([1, 2]))
    f = joint.space.values_at(tops)["f"]
    middle = np.column_stack([0.5 * (edges[1:] + edges[:-1]), np.zeros((cells, 2))])
    log_prior_of_f = joint.space.priors["f"].log_density_at(middle[:, :1])
    found = log_mass + np.log(2 * np.pi)  # of two dimensions: masses are told without it
    expected = np.array([exact(each) for each in f]) + log_prior_of_f + np.log(np.diff(edges))
    assert np.max(np.abs(found - expected)) < 2e-3  # of differences of slopes
    share = np.exp(expected - expected.max())
    wanted = (1 - PROFILE_EVEN) * share / share.sum() + PROFILE_EVEN / cells
    assert np.allclose(np.exp(profile.log_weights), wanted, rtol=1e-2, atol=1e-9)
