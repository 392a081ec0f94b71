"""Priors are normalised densities of their unconstrained coordinate, or refused."""

import math
import pickle

import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from scipy.integrate import quad

from supermodel.errors import PriorError
from supermodel.models.priors import Quantile, as_prior

SCALARS = {
    "Normal": (dist.Normal(1.0, 2.0), scipy.stats.norm(1.0, 2.0)),
    "HalfNormal": (dist.HalfNormal(1.5), scipy.stats.halfnorm(0.0, 1.5)),
    "Uniform": (dist.Uniform(-1.0, 3.0), scipy.stats.uniform(-1.0, 4.0)),
    "Beta": (dist.Beta(2.0, 3.0), scipy.stats.beta(2.0, 3.0)),
    "Gamma": (dist.Gamma(2.0, 3.0), scipy.stats.gamma(2.0, scale=1 / 3)),
    "InverseGamma": (dist.InverseGamma(3.0, 2.0), scipy.stats.invgamma(3.0, scale=2.0)),
    "LogNormal": (dist.LogNormal(0.3, 0.4), scipy.stats.lognorm(0.4, scale=math.exp(0.3))),
    "LogUniform": (dist.LogUniform(0.1, 9.0), scipy.stats.loguniform(0.1, 9.0)),
    "StudentT": (dist.StudentT(4.0, 0.5, 2.0), scipy.stats.t(4.0, 0.5, 2.0)),
    "Exponential": (dist.Exponential(2.0), scipy.stats.expon(0.0, 0.5)),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scipy_and_numpyro_agree_and_integrate_to_one(name):
    """∫ p(u) du = 1, Jacobian included; and both spellings are the same density."""
    numpyro_prior, scipy_prior = (as_prior("v", d) for d in SCALARS[name])
    u = np.linspace(-3, 3, 7)
    for point in u[:, None]:
        assert abs(float(numpyro_prior.log_density(point)) - float(scipy_prior.log_density(point))) < 1e-9
        value = float(numpyro_prior.constrain(point))
        expected = SCALARS[name][1].logpdf(value) + float(numpyro_prior.log_jacobian(point))
        assert abs(float(numpyro_prior.log_density(point)) - expected) < 1e-9
        np.testing.assert_allclose(numpyro_prior.unconstrain(value), point, atol=1e-6)
    total = _integral(numpyro_prior)
    assert abs(total - 1) < 1e-5  # planted: without the Jacobian no bounded one would pass
    if name not in ("Normal", "StudentT"):
        assert abs(_integral(numpyro_prior, jacobian=False) - 1) > 1e-2


def _integral(prior, jacobian=True):
    import jax

    u = np.linspace(-80, 80, 16_001)[:, None]
    log_p = np.asarray(jax.vmap(prior.log_density)(u))
    if not jacobian:
        log_p = log_p - np.asarray(jax.vmap(prior.log_jacobian)(u))
    return float(np.exp(np.where(np.isnan(log_p), -np.inf, log_p)).sum() * 1e-2)


def test_any_scipy_family_through_its_quantiles():
    frozen = scipy.stats.betaprime(3.0, 6.0)
    prior = as_prior("v", frozen)
    assert isinstance(prior, Quantile) and "betaprime" in prior.description
    u = np.array([-6.0, -1.3, 0.0, 0.7, 5.0])
    traced = np.array([float(prior.constrain(np.array([z]))) for z in u])
    np.testing.assert_allclose(traced, prior.values(u), rtol=1e-6)
    # u is standard normal, so the Jacobian must make it the density of v
    for z, v in zip(u, prior.values(u), strict=True):
        expected = frozen.logpdf(v) + float(prior.log_jacobian(np.array([z])))
        assert abs(float(prior.log_density(np.array([z]))) - expected) < 1e-4
        assert abs(prior.unconstrain(v)[0] - z) < 1e-6


def test_prior_draws_follow_the_prior(rng):
    import jax

    for name, (distribution, frozen) in SCALARS.items():
        prior = as_prior(name, distribution)
        points = prior.sample(rng, 4000)
        share = np.mean(np.asarray(jax.vmap(prior.constrain)(points)) < frozen.ppf(0.3))
        tolerance = math.sqrt(math.log(2e6) / 8000)  # Hoeffding, false alarm 1e-6
        assert abs(share - 0.3) < tolerance, name
        assert abs(share - 0.4) > tolerance


def test_vectors_and_simplices():
    import jax

    vector = as_prior("v", dist.Normal(np.array([0.0, 1.0]), 2.0))
    assert vector.shape == (2,) and vector.size == 2
    assert abs(float(vector.log_density(np.zeros(2))) - scipy.stats.norm(0, 2).logpdf([0, -1]).sum()) < 1e-12
    simplex = as_prior("s", dist.Dirichlet(np.array([1.0, 2.0, 3.0])))
    assert simplex.shape == (3,) and simplex.size == 2
    grid = np.linspace(-14, 14, 281)
    points = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    total = np.exp(np.asarray(jax.vmap(simplex.log_density)(points))).sum() * 0.01
    assert abs(total - 1) < 1e-4


class Unnormalised(dist.Normal):
    def log_prob(self, value):
        return super().log_prob(value) + 0.3


Unnormalised.__module__ = "user.code"


class Ppf:
    """A prior of the user's own: quantiles, and a density that may belie them."""

    def __init__(self, factor):
        self.factor = factor

    def ppf(self, q):
        return scipy.stats.norm.ppf(q)

    def logpdf(self, v):
        return scipy.stats.norm.logpdf(v) + math.log(self.factor)


REFUSED = {
    "not a normalised density": dist.ImproperUniform(dist.constraints.real, (), ()),
    "is not a normalised density. The evidence": dist.Normal(0, 1).mask(False),
    "integrates to 1.35": Unnormalised(0.0, 1.0),
    "Poisson.*is discrete": dist.Poisson(3.0),
    "'poisson', which is discrete": scipy.stats.poisson(3.0),
    "point mass": dist.Delta(1.0),
    "array arguments": scipy.stats.norm([0.0, 1.0], 1.0),
    "define no density": scipy.stats.norm(0.0, -1.0),
    "puts a mass of 1.96": Ppf(2.0),
    "of type float": 3.0,
    "of type tuple": (0, 1),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_density_is_refused(message):
    with pytest.raises(PriorError, match=message) as caught:
        as_prior("mass", REFUSED[message])
    assert "'mass'" in str(caught.value)


def test_a_normalised_prior_of_the_users_own_is_taken():
    assert as_prior("v", Ppf(1.0)).size == 1
    assert quad(lambda v: math.exp(Ppf(1.0).logpdf(v)), -9, 9)[0] == pytest.approx(1)


@pytest.mark.parametrize(
    "prior",
    [
        dist.Normal("0", 1),
        dist.Normal(0, True),
        scipy.stats.norm("0", 1),
        scipy.stats.norm(0, True),
        scipy.stats.norm(1j),
    ],
)
def test_texts_truths_and_complex_numbers_are_no_arguments(prior):
    with pytest.raises(PriorError, match="'a'.*numbers are needed"):
        as_prior("a", prior)
    assert as_prior("a", dist.TruncatedNormal(0, 1, low=-np.inf, high=2)).shape == ()  # nothing is cut off below


@pytest.mark.parametrize("family", [scipy.stats.norm, scipy.stats.gamma, dist.Normal, dist.Gamma])
def test_a_family_is_no_prior_before_it_has_its_arguments(family):
    """scipy.stats.norm itself has quantiles, and would pass for N(0, 1)."""
    with pytest.raises(PriorError, match="is the family .*, not one of its members: place and width are missing"):
        as_prior("a", family)


@pytest.mark.parametrize("distribution", [*(pair[1] for pair in SCALARS.values()), dist.Dirichlet(np.ones(3))])
def test_a_prior_that_was_used_can_be_sent_to_a_worker(distribution):
    """What it has compiled or looked up since cannot go, and need not."""
    prior, rng = as_prior("v", distribution), np.random.default_rng(0)
    points = prior.sample(rng, 3)
    before = prior.values_at(points), prior.log_density_at(points)
    sent = pickle.loads(pickle.dumps(prior))
    assert np.array_equal(sent.values_at(points), before[0]) and np.array_equal(sent.log_density_at(points), before[1])
