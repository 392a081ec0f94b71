"""Closed forms of linear models, against N(y; Xm, C), quadrature, and the numbers of data/README.md."""

import csv
import math
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from supermodel.errors import DataError, ModelError, PriorError
from supermodel.exact import LinearGaussian, moments_by_quadrature, polynomial, prior_box


def read(name):
    text = (files("supermodel") / "data" / name).read_text().splitlines()
    return np.array([[float(v) for v in row] for row in list(csv.reader(text))[1:]]).T


X, Y, SIGMA = read("linear.csv")
POWERS = {"first": (0, 1, 2, 4), "second": (0, 1, 4), "full": (0, 1, 2, 3, 4)}
LINEAR = {name: LinearGaussian(polynomial(X, powers), Y, SIGMA) for name, powers in POWERS.items()}


def awkward(seed=5, n=17, d=4):
    """Nothing conveniently 0 or 1: uneven noise, full prior covariance, prior mean."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(n, d)) + 0.3
    root = rng.normal(size=(d, d))
    sigma = rng.uniform(0.3, 1.7, n)
    y = design @ rng.normal(size=d) + sigma * rng.normal(size=n)
    return LinearGaussian(design, y, sigma, root @ root.T + 0.4 * np.eye(d), rng.normal(size=d))


def direct_log_evidence(m):
    """ln N(y; Xm, sigma^2 + X P X^T), which knows nothing of D, b or P^-1."""
    covariance = np.diag(m.sigma**2) + m.design @ m.prior_covariance @ m.design.T
    return multivariate_normal.logpdf(m.y, m.design @ m.prior_mean, covariance)


def corrected_appendix_a(m):
    """The formula of the errata as it stands, for a prior of mean zero."""
    D, b, inverse = m.scaled_design, m.y / m.sigma, np.linalg.inv(m.prior_covariance)
    precision = D.T @ D + inverse
    square = b @ b - (D.T @ b) @ np.linalg.solve(precision, D.T @ b)
    logs = np.linalg.slogdet(precision)[1] + np.linalg.slogdet(m.prior_covariance)[1]
    return -0.5 * square - np.log(math.sqrt(2 * math.pi) * m.sigma).sum() - 0.5 * logs


@pytest.mark.parametrize(
    ("name", "log_evidence", "maximum"),
    [
        ("first", 220.4694086057, 246.438075),
        ("second", 225.3486558041, 246.162428),
        ("full", 215.1998539561, 247.604006),
    ],
)
def test_the_numbers_of_linear_csv(name, log_evidence, maximum):
    m = LINEAR[name]
    assert abs(m.log_evidence - log_evidence) < 1e-10
    assert abs(m.max_log_likelihood - maximum) < 1e-6
    assert abs(m.log_evidence - direct_log_evidence(m)) < 1e-8  # the direct route itself has 2e-9


def test_posterior_of_linear_csv():
    first, second = LINEAR["first"], LINEAR["second"]
    np.testing.assert_allclose(first.map, [0.9986566731, 0.20006755, 0.0042925396, 0.0994762058], atol=1e-8, rtol=0)
    np.testing.assert_allclose(second.map, [1.0007407698, 0.20006755, 0.1006037525], atol=1e-8, rtol=0)
    sds = np.sqrt(np.diag(first.posterior_covariance))
    np.testing.assert_allclose(sds, [0.00375081, 0.00171481, 0.00575851, 0.00157831], atol=1e-8, rtol=0)
    fits = [m.predict(m.map) for m in (first, second)]
    assert np.abs(fits[0] - fits[1]).max() < 0.15 * 0.02


def test_likelihood_and_evidence_prefer_different_models():
    maxima = [LINEAR[name].max_log_likelihood for name in ("full", "first", "second")]
    evidences = [LINEAR[name].log_evidence for name in ("second", "first", "full")]
    assert maxima == sorted(maxima, reverse=True)
    assert evidences == sorted(evidences, reverse=True)


def test_aic_and_bic():
    m = LINEAR["first"]
    assert abs(m.aic - (2 * 4 - 2 * 246.438075)) < 2e-6
    assert abs(m.bic - (4 * math.log(100) - 2 * 246.438075)) < 2e-6


def test_evidence_on_the_unit_interval_of_the_readme():
    x = np.linspace(0, 1, 20000)
    y = 1.0 + 0.2 * x + 0.1 * x**4 + 0.02 * np.random.default_rng(425).standard_normal(20000)
    z = [LinearGaussian(polynomial(x, p), y, 0.02).log_evidence for p in ((0, 1, 2, 4), (0, 1, 4))]
    np.testing.assert_allclose(z, [49933.59982284, 49938.47960614], atol=1e-7, rtol=0)


def test_evidence_is_the_density_of_the_data():
    m = awkward()
    assert abs(m.log_evidence - direct_log_evidence(m)) < 1e-11


def test_evidence_is_the_corrected_formula_and_not_the_printed_one():
    m = awkward()
    m = LinearGaussian(m.design, m.y, m.sigma, m.prior_covariance)
    assert abs(m.log_evidence - corrected_appendix_a(m)) < 1e-11
    # the planted error is E3: the determinant of the prior precision in place of the covariance
    printed = corrected_appendix_a(m) + np.linalg.slogdet(m.prior_covariance)[1]
    assert abs(m.log_evidence - printed) > 0.1


def test_evidence_and_moments_against_quadrature():
    rng = np.random.default_rng(3)
    x = np.linspace(-1, 1.5, 12)
    covariance = np.array([[0.8, 0.3], [0.3, 1.7]])
    m = LinearGaussian(
        polynomial(x, (0, 2)), 0.4 - 0.7 * x**2 + 0.3 * rng.normal(size=12), 0.3, covariance, [0.2, -0.1]
    )
    box = prior_box(m.prior_mean, np.sqrt(np.diag(covariance)))
    found = moments_by_quadrature(lambda theta: m.log_likelihood(theta) + m.log_prior(theta), box)
    assert abs(found.log_evidence - m.log_evidence) < 1e-10
    np.testing.assert_allclose(found.mean, m.posterior_mean, atol=1e-10, rtol=0)
    np.testing.assert_allclose(found.covariance, m.posterior_covariance, atol=1e-10, rtol=0)


@given(st.integers(0, 10_000), st.floats(-3, 3), st.floats(0.2, 5))
def test_bayes_identity_holds_at_every_parameter(seed, shift, scale):
    """ln Z = ln L + ln prior - ln posterior, wherever it is read off."""
    m = awkward(seed)
    theta = m.posterior_mean + shift
    posterior = multivariate_normal.logpdf(theta, m.posterior_mean, m.posterior_covariance)
    assert m.posterior.logpdf(theta) == pytest.approx(posterior, abs=1e-9)
    identity = m.log_likelihood(theta) + m.log_prior(theta) - posterior
    assert abs(identity - m.log_evidence) < 1e-8 * (1 + abs(identity))
    # y -> scale y, with everything that has its units: Z is a density of n data
    scaled = LinearGaussian(m.design, scale * m.y, scale * m.sigma, scale**2 * m.prior_covariance, scale * m.prior_mean)
    assert abs(scaled.log_evidence - m.log_evidence + len(m.y) * math.log(scale)) < 1e-9


@given(st.integers(0, 10_000), st.lists(st.floats(-5, 5), min_size=4, max_size=4))
def test_moving_data_and_prior_mean_together_changes_nothing(seed, move):
    m = awkward(seed)
    moved = LinearGaussian(m.design, m.y + m.design @ move, m.sigma, m.prior_covariance, m.prior_mean + move)
    assert abs(moved.log_evidence - m.log_evidence) < 1e-9


def test_samples_have_the_moments_of_the_posterior(rng):
    m, n = awkward(), 100_000
    draws = m.sample_posterior(rng, n)
    whiten = np.linalg.inv(np.linalg.cholesky(m.posterior_covariance)).T
    z = (draws - m.posterior_mean) @ whiten
    limit = 5.3  # two-sided normal: 1e-7 each, about 1e-6 for the 14 numbers below
    assert np.all(np.abs(z.mean(axis=0)) < limit / math.sqrt(n))
    assert np.all(np.abs(z.T @ z / n - np.eye(4)) < limit * math.sqrt(2 / n))
    # planted: the posterior of a prior mean of zero is caught
    wrong = LinearGaussian(m.design, m.y, m.sigma, m.prior_covariance)
    assert np.any(np.abs(((draws - wrong.posterior_mean) @ whiten).mean(axis=0)) > limit / math.sqrt(n))


def test_scalar_diagonal_and_full_covariance_are_one():
    m = awkward()
    values = [LinearGaussian(m.design, m.y, 0.7, c).log_evidence for c in (2.5, [2.5] * 4, 2.5 * np.eye(4))]
    assert max(values) - min(values) < 1e-12


def test_log_prior_keeps_the_shape_of_its_argument():
    m = awkward()
    theta = np.arange(24.0).reshape(2, 3, 4) / 10
    expected = multivariate_normal.logpdf(theta, m.prior_mean, m.prior_covariance)
    np.testing.assert_allclose(m.log_prior(theta), expected, atol=1e-11, rtol=0)
    assert m.log_prior(theta[0, 0]).shape == ()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y": np.ones(3)}, DataError, "one row for each datum"),
        ({"sigma": -0.1}, DataError, "standard deviation"),
        ({"y": np.full(17, np.nan)}, DataError, "NaN"),
        ({"prior_covariance": np.ones(3)}, ModelError, "prior_covariance"),
        ({"prior_covariance": np.triu(np.ones((4, 4)))}, PriorError, "symmetric"),
    ],
)
def test_bad_input_is_refused_with_a_reason(change, error, words):
    m = awkward()
    with pytest.raises(error, match=words):
        LinearGaussian(**{"design": m.design, "y": m.y, **change})


def test_a_degenerate_prior_has_no_evidence():
    m = awkward()
    with pytest.raises(PriorError, match="not positive definite"):
        _ = LinearGaussian(m.design, m.y, 1.0, np.ones((4, 4)) - 1e-3 * np.eye(4)).log_evidence
