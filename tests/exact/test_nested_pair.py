"""A model with and without a block of parameters: Savage-Dickey, combined likelihood, combined model."""

import csv
import math
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.special import expit
from scipy.stats import multivariate_normal

from supermodel.errors import DataError, ModelError, PriorError
from supermodel.exact import (
    LinearGaussian,
    combined_model_alpha,
    combined_model_log_density,
    combined_model_spike,
    condition,
    fix,
    log_density_ratio,
    polynomial,
    prior_correction,
    savage_dickey,
)
from supermodel.exact.nested_pair import _marginal_precision
from supermodel_paper.appendix_c import combined_likelihood_line, log_likelihood_ratio, nested_likelihood_line

TRUTH = 4.8792471984  # ln Z_second - ln Z_first of linear.csv, with theta2 in the first


def linear(powers=(0, 1, 2, 4)):
    text = (files("supermodel") / "data" / "linear.csv").read_text().splitlines()
    x, y, sigma = np.array([[float(v) for v in row] for row in list(csv.reader(text))[1:]]).T
    return LinearGaussian(polynomial(x, powers), y, sigma)


def awkward(seed=11, n=19, correlated=False, mean=False):
    """Five parameters of which (1, 3) are phi2; blocks of the prior are full matrices."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(n, 5)) + 0.2
    roots = rng.normal(size=(5, 5))
    covariance = roots @ roots.T + 0.5 * np.eye(5)
    if not correlated:
        block = np.isin(np.arange(5), (1, 3))
        covariance = np.where(block[:, None] == block, covariance, 0.0)
    sigma = rng.uniform(0.4, 1.5, n)
    y = design @ [0.5, -0.8, 1.1, 0.3, -0.2] + sigma * rng.normal(size=n)
    return LinearGaussian(design, y, sigma, covariance, rng.normal(size=5) if mean else 0.0)


def blocks(m, columns=(1, 3)):
    columns = list(columns)
    rest = [i for i in range(m.n_parameters) if i not in columns]
    D, C = m.scaled_design, m.prior_covariance
    return D[:, rest], D[:, columns], C[np.ix_(rest, rest)], C[np.ix_(columns, columns)], m.y / m.sigma


def direct(m):
    covariance = np.diag(m.sigma**2) + m.design @ m.prior_covariance @ m.design.T
    return multivariate_normal.logpdf(m.y, m.design @ m.prior_mean, covariance)


def scaled(m, columns, weight):
    """The combined model at one weight, as a linear model of its own."""
    factor = np.ones(m.n_parameters)
    factor[list(columns)] = weight
    return LinearGaussian(m.design * factor, m.y, m.sigma, m.prior_covariance, m.prior_mean)


# Savage-Dickey


def test_savage_dickey_of_linear_csv():
    assert abs(savage_dickey(linear(), [2]) - TRUTH) < 1e-10
    assert abs(savage_dickey(linear(), [-2]) - TRUTH) < 1e-10  # counted from the end
    assert abs(fix(linear(), [2]).log_evidence - linear((0, 1, 4)).log_evidence) < 1e-10


def test_savage_dickey_is_the_corrected_appendix_a():
    m = awkward()
    D1, D2, C1, C2, b = blocks(m)
    A = np.linalg.inv(D1.T @ D1 + np.linalg.inv(C1))
    B = np.linalg.inv(C2) + D2.T @ D2 - D2.T @ D1 @ A @ D1.T @ D2
    E = D2.T @ D1 @ A @ D1.T @ b - D2.T @ b
    log_det = lambda M: np.linalg.slogdet(M)[1]
    expected = 0.5 * (log_det(C2) + log_det(B) - E @ np.linalg.solve(B, E))
    assert abs(savage_dickey(m, [1, 3]) - expected) < 1e-11
    assert abs(expected - (direct(fix(m, [1, 3])) - direct(m))) < 1e-10
    assert abs(savage_dickey(m, [1, 3]) - (expected - log_det(C2))) > 0.1  # E7 as printed is caught


@pytest.mark.parametrize("value", [0.0, 0.37, [0.4, -1.3]])
def test_savage_dickey_at_any_value_with_prior_mean(value):
    m = awkward(mean=True)
    assert abs(savage_dickey(m, [1, 3], value) - (direct(fix(m, [1, 3], value)) - direct(m))) < 1e-10


def test_the_marginal_precision_is_that_of_the_block_of_the_posterior():
    """E5, E6: the block of the posterior is N(-B^{-1} E, B^{-1}), with E counted from the prior mean."""
    m, columns = awkward(correlated=True, mean=True), np.array([3, 1])
    B, E = _marginal_precision(m, columns)
    covariance = np.linalg.inv(B)
    np.testing.assert_allclose(m.prior_mean[columns] - covariance @ E, m.posterior_mean[columns], atol=1e-11, rtol=0)
    np.testing.assert_allclose(covariance, m.posterior_covariance[np.ix_(columns, columns)], atol=1e-11, rtol=0)


def test_a_correlated_prior_is_refused_and_corrected():
    m = awkward(correlated=True, mean=True)
    with pytest.raises(PriorError, match="corrected=True"):
        savage_dickey(m, [1, 3], 0.2)
    truth = direct(fix(m, [1, 3], 0.2)) - direct(m)
    assert abs(savage_dickey(m, [1, 3], 0.2, corrected=True) - truth) < 1e-10
    assert abs(log_density_ratio(m, [1, 3], 0.2) - (direct(condition(m, [1, 3], 0.2)) - direct(m))) < 1e-10
    assert abs(log_density_ratio(m, [1, 3], 0.2) - truth) > 0.1  # without the correction it is wrong (E17)


def test_correction_at_correlation_08():
    """rho = 0.8 on linear.csv: the uncorrected ratio is off by half a unit."""
    m = linear()
    covariance = np.eye(4)
    covariance[2, 3] = covariance[3, 2] = 0.8
    m = LinearGaussian(m.design, m.y, m.sigma, covariance)
    truth = fix(m, [2]).log_evidence - m.log_evidence
    assert abs(savage_dickey(m, [2], corrected=True) - truth) < 1e-9
    assert abs(log_density_ratio(m, [2]) - truth) > 0.4


def test_correction_by_monte_carlo(rng):
    """E[pi(phi1)/pi(phi1 | phi2)] over the posterior at phi2 = value: the definition, not the two evidences."""
    m = awkward(correlated=True, n=60)
    given_value, marginal = condition(m, [1, 3], 0.1), fix(m, [1, 3], 0.1)
    n = 200_000
    draws = given_value.sample_posterior(rng, n)
    ratio = np.exp(marginal.log_prior(draws) - given_value.log_prior(draws) - prior_correction(m, [1, 3], 0.1))
    error = ratio.std() / math.sqrt(n)
    assert error < 0.01
    assert abs(ratio.mean() - 1) < 4.9 * error  # 1e-6
    assert abs(ratio.mean() * 1.1 - 1) > 4.9 * error  # a correction wrong by 0.1 is caught
    assert prior_correction(awkward(), [1, 3], 0.1) == pytest.approx(0, abs=1e-11)


@given(st.integers(0, 10_000), st.floats(-4, 4))
def test_block_by_block_is_all_at_once(seed, value):
    """Removing column 1, then what was column 3, is removing both."""
    m = awkward(seed)
    diagonal = LinearGaussian(m.design, m.y, m.sigma, np.diag(m.prior_covariance))
    both = savage_dickey(diagonal, [1, 3], [value, 0.3])
    one = savage_dickey(diagonal, [1], value)
    assert abs(both - one - savage_dickey(fix(diagonal, [1], value), [2], 0.3)) < 1e-8 * (1 + abs(both))


@pytest.mark.parametrize("columns", [[], [0, 0], [7], [0, 1, 2, 3, 4]])
def test_columns_must_split_the_model(columns):
    with pytest.raises(ModelError, match="split"):
        savage_dickey(awkward(), columns)


# Combined likelihood


def test_log_likelihood_ratio_of_appendix_c(rng):
    m = awkward()
    theta = rng.normal(size=(6, 5)) * 3
    without = theta.copy()
    without[:, [1, 3]] = 0
    expected = m.log_likelihood(theta) - m.log_likelihood(without)
    np.testing.assert_allclose(log_likelihood_ratio(m, [1, 3], theta), expected, atol=1e-9, rtol=0)
    far = LinearGaussian(m.design, m.y * 1e9, m.sigma)  # where both log likelihoods have lost all their decimals
    tiny = np.array([0.3, 1e-14, 0.2, -1e-14, 0.1])
    exact = tiny[[1, 3]] @ (far.scaled_design[:, [1, 3]].T @ (far.y / far.sigma))
    assert abs(log_likelihood_ratio(far, [1, 3], tiny) / exact - 1) < 1e-6


def test_weights_above_one_make_the_combined_likelihood_negative(rng):
    """1.4: 99.8% of the draws of the second model at f = 1.1; the tolerance is Hoeffding's at 1e-6."""
    m, n = linear(), 200_000
    second = fix(m, [2])
    draws = np.insert(second.sample_posterior(rng, n), 2, rng.standard_normal(n), axis=1)
    negative = np.mean(log_likelihood_ratio(m, [2], draws) < math.log(0.1 / 1.1))
    assert abs(negative - 0.998) < math.sqrt(math.log(2e6) / (2 * n)) + 5e-4


def test_line_of_linear_csv():
    for line in (combined_likelihood_line(linear(), linear((0, 1, 4))), nested_likelihood_line(linear(), [2])):
        assert abs(line.log_bayes_factor + TRUTH) < 1e-9
        assert abs(line.intercept - 2 * expit(TRUTH)) < 1e-10
        assert abs(line.slope - 2 * (1 - line.intercept)) < 1e-12


def test_p_and_q_of_appendix_c_for_general_covariance():
    m = awkward()
    D1, D2, C1, C2, b = blocks(m)
    line = nested_likelihood_line(m, [1, 3])
    norm = -m.log_noise_norm + 0.5 * (np.linalg.slogdet(2 * np.pi * C1)[1] + np.linalg.slogdet(2 * np.pi * C2)[1])
    assert abs(line.log_p - (direct(m) + norm)) < 1e-10
    assert abs(line.log_q - (direct(fix(m, [1, 3])) + norm)) < 1e-10
    printed_q = line.log_q - np.linalg.slogdet(C2)[1]  # E10
    assert abs(printed_q - line.log_p + savage_dickey(m, [1, 3])) > 0.1


@given(st.integers(0, 10_000))
def test_swapping_the_models_flips_the_sign(seed):
    m = awkward(seed, correlated=True, mean=True)
    forward, backward = combined_likelihood_line(m, fix(m, [0])), combined_likelihood_line(fix(m, [0]), m)
    assert forward.log_bayes_factor == -backward.log_bayes_factor
    assert forward.slope == -backward.slope
    assert forward.intercept + backward.intercept == pytest.approx(2, abs=1e-14)


def test_different_data_are_refused():
    with pytest.raises(DataError, match="different data"):
        combined_likelihood_line(linear(), awkward())


@pytest.mark.parametrize("function", [nested_likelihood_line, combined_model_spike])
def test_forms_of_the_paper_refuse_priors_it_does_not_have(function):
    for m in (awkward(correlated=True), awkward(mean=True)):
        with pytest.raises(PriorError, match="need neither"):
            function(m, [1, 3])


# Combined model


def appendix_b(alpha, m, columns):
    """As printed, which is right: ln p(alpha) up to a constant."""
    D1, D2, C1, C2, b = blocks(m, columns)
    P = np.linalg.inv(alpha**2 * D2.T @ D2 + np.linalg.inv(C2))
    Q = np.linalg.inv(D1.T @ D1 - alpha**2 * D1.T @ D2 @ P @ D2.T @ D1 + np.linalg.inv(C1))
    A, B = b @ D2 @ P @ D2.T @ b, D1.T @ D2 @ P @ D2.T @ b
    r = alpha**2 * B - D1.T @ b
    return 0.5 * (np.linalg.slogdet(P)[1] + np.linalg.slogdet(Q)[1] + alpha**2 * A + r @ Q @ r)


def test_combined_model_is_appendix_b():
    m, alpha = awkward(), np.linspace(0, 1, 7)
    printed = np.array([appendix_b(a, m, [1, 3]) for a in alpha])
    found = combined_model_log_density(alpha, m, [1, 3])
    assert np.ptp(found - printed) < 1e-10


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_combined_model_is_the_density_of_the_data(correlated, mean):
    m, alpha = awkward(correlated=correlated, mean=mean), np.array([[0.0, 0.13, 0.5], [0.91, 1.0, -0.4]])
    expected = [[direct(scaled(m, [1, 3], a)) for a in row] for row in alpha]
    np.testing.assert_allclose(combined_model_log_density(alpha, m, [1, 3]), expected, atol=1e-10, rtol=0)
    assert abs(combined_model_log_density(0.0, m, [1, 3]) - direct(fix(m, [1, 3]))) < 1e-10


def test_ends_of_the_combined_model_are_the_evidences():
    ends = combined_model_log_density(np.array([1.0, 0.0]), linear(), [2])
    assert abs(ends[1] - ends[0] - TRUTH) < 1e-9
    assert abs(ends[0] - linear().log_evidence) < 1e-10


def test_spike_of_linear_csv():
    spike = combined_model_spike(linear(), [2])
    assert abs(spike.S[0, 0] - 30155) < 0.5
    assert abs(spike.t[0] ** 2 / spike.S[0, 0] - 0.556) < 5e-4
    assert abs(spike.half_width - 0.0058) < 5e-5


def test_spike_for_general_covariance():
    m, f = awkward(), np.linspace(-0.3, 1.1, 9)
    expected = combined_model_log_density(f, m, [1, 3]) - combined_model_log_density(0.0, m, [1, 3])
    spike = combined_model_spike(m, [1, 3])
    C2 = spike.prior_covariance
    found = [
        0.5 * w**2 * spike.t @ np.linalg.solve(np.linalg.inv(C2) + w**2 * spike.S, spike.t)
        - 0.5 * np.linalg.slogdet(np.eye(2) + w**2 * C2 @ spike.S)[1]
        for w in f
    ]
    np.testing.assert_allclose(found, expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize(("cutoff", "miss"), [(-4, -0.951), (-6, -0.042), (-8, -0.00075), (-10, -1.4e-5)])
def test_cutoff_of_the_exponential_misses_the_end(cutoff, miss):
    density = combined_model_alpha(linear(), [2], np.exp, low=cutoff, high=0)
    found = density.logpdf(cutoff) - density.logpdf(0.0) - TRUTH
    assert abs(found - miss) < 0.5 * 10.0 ** (math.floor(math.log10(-miss)) - 1)  # two printed digits
    assert abs(density.cdf(0.0) - 1) < 1e-12


def test_simpson_needs_a_thousand_intervals():
    model, density = linear(), combined_model_alpha(linear(), [2])
    for intervals, relative in ((50, -1.6e-2), (200, -2.7e-4), (500, 3.5e-6), (1000, 5e-10)):
        alpha = np.linspace(0, 1, intervals + 1)
        log_values = combined_model_log_density(alpha, model, [2])
        rough = simpson(np.exp(log_values - density.log_norm), x=alpha) - 1
        assert abs(rough / relative - 1) < 0.1
    fine = np.linspace(0, 1, 20_001)
    norm = simpson(np.exp(combined_model_log_density(fine, model, [2]) - density.log_norm), x=fine)
    assert abs(norm - 1) < 1e-11


def test_only_samples_near_the_ends_count():
    density = combined_model_alpha(linear(), [2])
    assert abs(1 - density.cdf(0.99) - 1.8e-3) < 5e-5
    assert abs(density.cdf(0.001) - 2.3e-2) < 5e-4
    q = np.array([1e-6, 0.02, 0.4, 0.93, 1 - 1e-9])
    np.testing.assert_allclose(density.cdf(density.ppf(q)), q, atol=1e-13, rtol=0)


def test_prior_of_alpha_multiplies():
    log_prior = lambda alpha: -0.5 * ((alpha - 0.4) / 0.3) ** 2
    flat, tilted = combined_model_alpha(linear(), [2]), combined_model_alpha(linear(), [2], log_prior=log_prior)
    alpha = np.linspace(0.01, 1, 6)
    assert np.ptp(tilted.logpdf(alpha) - flat.logpdf(alpha) - log_prior(alpha)) < 1e-12


def test_replicated_parameters_change_the_inside_but_not_the_ends():
    """1.4: with parameters of its own for each model, ln p(1/2) differs by 0.516 on linear.csv."""
    first, second = linear(), linear((0, 1, 4))
    replicated = lambda f: (
        LinearGaussian(np.hstack([f * first.design, (1 - f) * second.design]), first.y, first.sigma).log_evidence
    )
    shared = combined_model_log_density(np.array([0.0, 0.5, 1.0]), first, [2])
    differences = shared - [replicated(0.0), replicated(0.5), replicated(1.0)]
    assert abs(differences[0]) < 1e-9
    assert abs(differences[2]) < 1e-9
    assert abs(abs(differences[1]) - 0.516) < 5e-4
