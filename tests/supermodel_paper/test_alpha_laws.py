"""Laws of alpha in the paper: closed forms against quadrature, samplers against their distribution functions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import dirichlet

from supermodel.errors import CoordinateError, SupermodelError
from supermodel.exact import MixtureAlpha
from supermodel_paper.alpha_laws import (
    ExponentialAlpha,
    HatAlpha,
    LineAlpha,
    SimplexAlpha,
    cured_log_bayes_factor,
    exponential,
    gaussian_prior,
    hats,
    intercept,
    lahiri,
    log_bayes_factor_from_b,
    log_bayes_factor_from_intercept,
    log_bayes_factor_from_slope,
    printed_b,
    printed_log_bayes_factor,
    slope,
    steep,
)

FALSE_ALARM = 1e-6


def dkw(n):
    """The empirical distribution function strays further anywhere with probability below FALSE_ALARM."""
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))


def distance(samples, cdf):
    """Kolmogorov's distance between a sample and a distribution function."""
    u = np.sort(cdf(samples))
    steps = np.arange(len(u) + 1) / len(u)
    return max(np.max(u - steps[:-1]), np.max(steps[1:] - u))


@pytest.mark.parametrize(
    ("f", "low", "high", "log_prior"),
    [(lambda a: a, 0.0, 1.0, None), (exponential, -2.0, 0.0, None), (steep(5), 0.0, 1.0, gaussian_prior(0.6, 0.4))],
)
@pytest.mark.parametrize("log_bayes_factor", [-4.88, 1.2])
def test_lahiri_and_inversion_draw_from_the_density(f, low, high, log_prior, log_bayes_factor, rng):
    prior = {} if log_prior is None else {"log_prior": log_prior}
    mixture, n = MixtureAlpha(log_bayes_factor, f, low=low, high=high, **prior), 8_000
    wrong = MixtureAlpha(
        log_bayes_factor - 3 if log_bayes_factor > 0 else log_bayes_factor + 4, f, low=low, high=high, **prior
    )
    for draws in (lahiri(mixture, rng, n).alpha, mixture.sample(rng, n)):
        assert draws.shape == (n,)
        assert distance(draws, mixture.cdf) < dkw(n)
        assert distance(draws, wrong.cdf) > dkw(n)


def test_acceptance_of_lahiri(rng):
    """3.5: 1/(1+|r|) = 0.504 at l = 4.88; half of the tolerance is for n, which is fixed while the tries are not."""
    n = 200_000
    expected = 1 / (1 + math.tanh(2.44))
    assert abs(expected - 0.504) < 5e-4
    found = lahiri(MixtureAlpha(-4.88), rng, n).acceptance
    assert abs(found - expected) < 4.9 * expected * math.sqrt((1 - expected) / n)
    assert abs(found - 0.52) > 4.9 * expected * math.sqrt((1 - expected) / n)


# f = alpha, flat


@given(st.floats(-20, 20))
def test_slope_and_intercept_give_back_the_bayes_factor(log_bayes_factor):
    c, m = intercept(log_bayes_factor), slope(log_bayes_factor)
    assert abs(m - 2 * (1 - c)) < 4e-15
    scale = math.exp(abs(log_bayes_factor))  # one digit of c or m, seen in l
    assert abs(log_bayes_factor_from_intercept(c) - log_bayes_factor) < 1e-15 * scale + 1e-14
    assert abs(log_bayes_factor_from_slope(m) - log_bayes_factor) < 1e-15 * scale + 1e-14


def test_line_is_the_mixture():
    for log_bayes_factor in (-4.88, 0.0, 2.2):
        line, mixture = LineAlpha(log_bayes_factor), MixtureAlpha(log_bayes_factor)
        alpha = np.linspace(0, 1, 9)
        np.testing.assert_allclose(line.pdf(alpha), mixture.pdf(alpha), rtol=1e-11)
        np.testing.assert_allclose(line.cdf(alpha), mixture.cdf(alpha), atol=1e-12, rtol=0)
        np.testing.assert_allclose(line.cdf(line.ppf(alpha)), alpha, atol=1e-14, rtol=0)
        assert abs(line.c / (line.m + line.c) - math.exp(-log_bayes_factor)) < 1e-12 * math.exp(-log_bayes_factor)


@pytest.mark.parametrize("c", [0.0, 2.0, 2.3])
def test_lines_without_a_bayes_factor_are_refused(c):
    with pytest.raises(SupermodelError, match="no positive density"):
        log_bayes_factor_from_intercept(c)


# f = e^alpha


@pytest.mark.parametrize("cutoff", [-10.0, -4.0, -0.5, -0.02, -1e-4])
@pytest.mark.parametrize("log_bayes_factor", [-5.02, 0.0, 0.9, 4.88])
def test_exponential_closed_form(log_bayes_factor, cutoff):
    closed, mixture = (
        ExponentialAlpha(log_bayes_factor, cutoff),
        MixtureAlpha(log_bayes_factor, exponential, low=cutoff, high=0),
    )
    alpha = np.linspace(cutoff, 0, 7)
    np.testing.assert_allclose(closed.pdf(alpha), mixture.pdf(alpha), rtol=1e-9)
    np.testing.assert_allclose(closed.a * np.exp(alpha) + closed.b, mixture.pdf(alpha), rtol=1e-9)
    np.testing.assert_allclose(closed.cdf(alpha), mixture.cdf(alpha), atol=1e-9, rtol=0)
    # a, b, K as the errata write them, with B = e^l turned over
    B, q = math.exp(-log_bayes_factor), 1 - math.exp(cutoff)
    K = -cutoff * B + (1 - B) * q
    assert abs(closed.b * K / B - 1) < 1e-9
    assert abs(closed.a - (1 - B) / K) < 1e-9 * (abs(closed.a) + closed.b)
    assert abs((closed.a + closed.b) / closed.b / math.exp(log_bayes_factor) - 1) < 1e-9  # E14, corrected
    if cutoff < -0.1:
        assert abs(log_bayes_factor_from_b(closed.b, cutoff) - log_bayes_factor) < 1e-10


@pytest.mark.parametrize(
    ("l", "bias"), [(4.88, -0.0183), (5.02, -0.0184), (0, 0), (-2, 0.111), (-4, 0.684), (-8, 4.018)]
)
def test_printed_exponential_form_is_biased_and_cured(l, bias):
    printed = printed_log_bayes_factor(-l, -4)
    assert abs(-printed - l - bias) < 5e-4 if abs(bias) > 0.05 else abs(-printed - l - bias) < 5e-5
    assert abs(cured_log_bayes_factor(printed, -4) + l) < 1e-10
    assert abs(printed_b(printed, -4.0) - ExponentialAlpha(-l, -4).b) < 4e-14 * ExponentialAlpha(-l, -4).b + 1e-13
    assert printed < 4


def test_cured_results_of_the_paper():
    np.testing.assert_allclose(-cured_log_bayes_factor([-4.77, -4.98], -4), [4.788, 4.998], atol=5e-4, rtol=0)
    assert np.isnan(cured_log_bayes_factor(4.1, -4))


def test_a_cutoff_that_is_none_is_refused():
    with pytest.raises(CoordinateError, match="cutoff"):
        ExponentialAlpha(1.0, 4.0)


# More models


LOG_EVIDENCES = np.array([220.4694086057, 225.3486558041, 215.1998539561, 224.1])


def test_hats_are_a_partition_of_unity():
    alpha = np.linspace(0, 3, 13)
    np.testing.assert_allclose(hats(alpha, 4).sum(axis=1), 1)
    np.testing.assert_array_equal(hats(np.arange(4.0), 4), np.eye(4))


def test_hat_density():
    hat = HatAlpha(LOG_EVIDENCES)
    np.testing.assert_allclose(np.diff(np.log(hat.node_values)), np.diff(LOG_EVIDENCES), atol=1e-10, rtol=0)
    alpha = np.array([0.3, 1.0, 1.7, 2.99, 3.0])
    below = [quad(hat.pdf, 0, a, points=[k for k in (1, 2) if k < a] or None)[0] for a in alpha]
    np.testing.assert_allclose(hat.cdf(alpha), below, atol=1e-12, rtol=0)
    np.testing.assert_allclose(hat.ppf(hat.cdf(alpha)), alpha, atol=1e-6, rtol=0)
    assert hat.pdf(-0.2) == hat.pdf(3.2) == 0
    two = HatAlpha([0.7, -1.1])  # models at 0 and 1: the line, with the second model at 1
    np.testing.assert_allclose(two.pdf([0.0, 0.4, 1.0]), LineAlpha(-1.8).pdf([0.0, 0.4, 1.0]), rtol=1e-13)


def test_hat_sampler(rng):
    n = 20_000
    draws = HatAlpha(LOG_EVIDENCES).sample(rng, n)
    assert distance(draws, HatAlpha(LOG_EVIDENCES).cdf) < dkw(n)
    assert distance(draws, HatAlpha(LOG_EVIDENCES + [0, 0, 0, 0.3]).cdf) > dkw(n)


@pytest.mark.parametrize("concentration", [1.0, np.array([0.6, 2.0, 1.3, 0.9])])
def test_simplex_density_is_a_mixture_of_dirichlets(concentration):
    simplex = SimplexAlpha(LOG_EVIDENCES, concentration)
    a, pi = np.broadcast_to(concentration, 4), simplex.probabilities
    point = np.array([0.1, 0.25, 0.3, 0.35])
    mixture = sum(pi[i] * dirichlet.pdf(point, a + np.eye(4)[i]) for i in range(4))
    assert abs(simplex.logpdf(point) - math.log(mixture)) < 1e-12
    weighted = dirichlet.pdf(point, a) * point @ np.exp(LOG_EVIDENCES - 225)  # prior times likelihood
    evidence = (a / a.sum()) @ np.exp(LOG_EVIDENCES - 225)
    assert abs(simplex.logpdf(point) - math.log(weighted / evidence)) < 1e-12


def test_vertex_density_of_the_flat_simplex():
    simplex = SimplexAlpha(LOG_EVIDENCES)
    np.testing.assert_allclose(np.exp(simplex.logpdf(np.eye(4))), math.factorial(4) * simplex.probabilities, rtol=1e-12)
    np.testing.assert_allclose(simplex.mean, (1 + simplex.probabilities) / 5, rtol=1e-14)


@pytest.mark.parametrize("concentration", [1.0, np.array([0.6, 2.0, 1.3, 0.9])])
def test_simplex_sampler(concentration, rng):
    n, simplex = 100_000, SimplexAlpha(LOG_EVIDENCES, concentration)
    mean = simplex.sample(rng, n).mean(axis=0)
    hoeffding = math.sqrt(math.log(2 * 4 / FALSE_ALARM) / (2 * n))
    assert np.all(np.abs(mean - simplex.mean) < hoeffding)
    assert np.any(np.abs(mean - SimplexAlpha(LOG_EVIDENCES + [0, 0, 0, 1.0], concentration).mean) > hoeffding)


def test_bad_evidences_are_refused():
    for make in (HatAlpha, SimplexAlpha):
        with pytest.raises(SupermodelError, match="two or more"):
            make([1.0])
    with pytest.raises(CoordinateError, match="positive"):
        SimplexAlpha([1.0, 2.0], [1.0, -1.0])
