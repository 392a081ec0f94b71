"""The exact density of alpha under a combined likelihood, for any f and prior, against plain quadrature."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from supermodel.errors import CoordinateError, SupermodelError
from supermodel.exact import MixtureAlpha
from supermodel_paper.alpha_laws import LineAlpha, exponential, gaussian_prior, steep

ODD_PRIOR = lambda alpha: 1.3 * np.log(alpha + 0.2) - 0.7 * alpha


# The mixture with any f and prior


@pytest.mark.parametrize("log_bayes_factor", [-4.88, -0.3, 0.0, 2.7])
@pytest.mark.parametrize(
    ("f", "low", "high"), [(exponential, -1.3, 0.0), (steep(4.0), 0.0, 1.0), (np.square, -0.4, 0.9)]
)
def test_density_is_prior_times_weight(log_bayes_factor, f, low, high):
    mixture = MixtureAlpha(log_bayes_factor, f, gaussian_prior(0.1, 0.6), low, high)
    prior = lambda alpha: math.exp(-0.5 * ((alpha - 0.1) / 0.6) ** 2)
    raw = lambda alpha: prior(alpha) * (f(alpha) * math.exp(log_bayes_factor) + 1 - f(alpha))
    norm = quad(raw, low, high, epsabs=0, epsrel=1e-13)[0]
    alpha = np.linspace(low, high, 5)
    np.testing.assert_allclose(mixture.pdf(alpha), [raw(a) / norm for a in alpha], rtol=1e-11)
    below = [quad(raw, low, a, epsabs=0, epsrel=1e-13)[0] / norm for a in alpha[1:]]
    np.testing.assert_allclose(mixture.cdf(alpha[1:]), below, rtol=1e-11)
    mean = quad(lambda a: f(a) * raw(a), low, high, epsabs=0, epsrel=1e-13)[0] / norm
    assert abs(mixture.density.expectation(f) - mean) < 1e-11
    assert abs(mixture.log_norm - math.log(norm / quad(prior, low, high, epsrel=1e-13)[0])) < 1e-11


def test_density_is_zero_outside_and_ppf_inverts_cdf():
    mixture = MixtureAlpha(-3.1, exponential, low=-4, high=0)
    assert mixture.pdf(0.1) == 0
    np.testing.assert_array_equal(mixture.cdf([-5.0, 1.0]), [0, 1])
    q = np.linspace(0.001, 0.999, 11)
    np.testing.assert_allclose(mixture.cdf(mixture.ppf(q)), q, atol=1e-13, rtol=0)
    assert np.isnan(mixture.ppf(1.2))


@given(st.floats(-12, 12), st.floats(0.3, 4.0))
@settings(max_examples=20)
def test_mean_share_is_the_posterior_probability(log_bayes_factor, power):
    mixture = MixtureAlpha(log_bayes_factor, lambda alpha: alpha**power, ODD_PRIOR)
    assert abs(mixture.density.expectation(mixture.share) - mixture.probability) < 1e-9


@given(st.floats(-9, 9), st.floats(0.01, 0.99))
@settings(max_examples=20)
def test_swapping_the_models_mirrors_alpha(log_bayes_factor, alpha):
    forward = MixtureAlpha(log_bayes_factor, log_prior=ODD_PRIOR)
    backward = MixtureAlpha(-log_bayes_factor, log_prior=lambda alpha: ODD_PRIOR(1 - alpha))
    assert abs(forward.logpdf(alpha) - backward.logpdf(1 - alpha)) < 1e-10


def test_no_overflow_at_huge_bayes_factors():
    for log_bayes_factor in (-2000.0, 2000.0):
        mixture = MixtureAlpha(log_bayes_factor)
        assert abs(mixture.log_norm - (max(log_bayes_factor, 0) - math.log(2))) < 1e-9
        assert abs(mixture.pdf(0.5) - 1) < 1e-12


def test_marginal_weights_of_the_sine_example():
    """1.4: prior weight .5 and .2454, posterior weight .00655 and .00214 at the l of sine.csv."""
    line, exp = MixtureAlpha(-5.0222648), MixtureAlpha(-5.0222648, exponential, low=-4, high=0)
    np.testing.assert_allclose([line.prior_mean_weight, exp.prior_mean_weight], [0.5, 0.2454], atol=5e-5, rtol=0)
    np.testing.assert_allclose([line.probability, exp.probability], [0.00655, 0.00214], atol=5e-6, rtol=0)
    assert abs(MixtureAlpha(-4.8792471984).probability - 0.00755) < 5e-6


@pytest.mark.parametrize(("sd", "deviation"), [(0.3, 1.23), (1.0, 0.14), (5.0, 0.006)])
def test_gaussian_prior_bends_the_line(sd, deviation):
    alpha = np.linspace(0, 1, 2001)
    p = MixtureAlpha(-4.88, log_prior=gaussian_prior(0.5, sd)).pdf(alpha)
    found = np.abs(p - (p[0] * (1 - alpha) + p[-1] * alpha)).max()  # from the straight line through its ends
    assert abs(found - deviation) < 0.5 * 10.0 ** (-2 if sd < 5 else -3)


def fitted_by_the_plain_line(mixture):
    """Where the likelihood of the plain line peaks, given infinitely many draws of `mixture`."""
    loss = lambda l: -mixture.density.expectation(LineAlpha(l).logpdf)
    return minimize_scalar(loss, bracket=(-6, -4), options={"xtol": 1e-10}).x


def test_plain_line_is_exact_for_symmetric_priors_only():
    symmetric = MixtureAlpha(-4.88, log_prior=gaussian_prior(0.5, 0.3))
    assert abs(fitted_by_the_plain_line(symmetric) + 4.88) < 1e-5  # flat top of a minimum: square root of rounding
    assert abs(symmetric.log_norm - math.log((1 + math.exp(-4.88)) / 2)) < 1e-12
    asymmetric = MixtureAlpha(-4.88, log_prior=gaussian_prior(0.6, 0.3))
    assert abs(fitted_by_the_plain_line(asymmetric) + 4.88 - 3.4) < 0.05


def test_bad_coordinates_are_refused():
    with pytest.raises(CoordinateError, match="outside"):
        MixtureAlpha(1.0, high=1.1)
    with pytest.raises(SupermodelError, match="finite"):
        MixtureAlpha(math.inf)
    with pytest.raises(SupermodelError, match="low < high"):
        _ = MixtureAlpha(1.0, low=0.5, high=0.5).log_norm
