"""How well alpha can know the Bayes factor: closed laws, the tables of the errata, and Monte Carlo."""

import csv
import math
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import chi2, norm

from supermodel.errors import SupermodelError
from supermodel.estimation.by_alpha.precision import (
    binned_sigma,
    information,
    information_exponential,
    information_index,
    information_line,
    optimum_cutoff,
    rao_blackwell_sigma,
    samples_needed,
    sigma,
    sigma_line,
)
from supermodel.exact import LinearGaussian, fix, polynomial, prior_box, savage_dickey
from supermodel_paper.alpha_laws import LineAlpha, gaussian_prior, steep
from supermodel_paper.printed_laws import expected_counts, overlap_by_quadrature, paper_law, printed_binned_sigma

# The tables are in the paper's l = -log_bayes_factor. All numbers are sigma sqrt(N), printed to four digits.
TABLE = [
    # l, f = alpha, index, e^alpha (cutoff -4), the same with labels swapped, the paper's law
    (0, 3.464, 2.000, 3.931, 3.931, 1.000),
    (1, 4.105, 2.255, 6.269, 3.233, 1.272),
    (2, 6.482, 3.086, 11.91, 3.726, 2.381),
    (3, 12.36, 4.705, 25.15, 5.869, 5.534),
    (4.88, 54.15, 11.56, 120.2, 24.30, 33.41),
    (5.02, 60.94, 12.39, 135.8, 27.52, 38.35),
    (8, 860.1, 54.62, 2003, 486.7, 745.7),
    (10, 5506, 148.4, 12990, 3576, 5507),
]


def close(found, printed, digits=4):
    """Equal to the printed number, of which `digits` are significant."""
    return abs(found - printed) <= 0.5001 * 10.0 ** (math.floor(math.log10(abs(printed))) - digits + 1)


@pytest.mark.parametrize("row", TABLE)
def test_table_of_section_3_1(row):
    l, line, index, exp, swapped, law = row
    assert close(information_line(-l) ** -0.5, line)
    assert close(information_index(-l) ** -0.5, index)
    assert close(information_exponential(-l) ** -0.5, exp)
    assert close(information_exponential(l) ** -0.5, swapped)
    assert close(paper_law(-l, 1), law)


@pytest.mark.parametrize("log_bayes_factor", [-10.0, -4.88, -0.7, -1e-3, 0.0, 0.4, 3.3])
def test_closed_forms_against_the_general_variance(log_bayes_factor):
    general = information(log_bayes_factor)
    assert abs(information_line(log_bayes_factor) / general - 1) < 1e-9
    for cutoff in (-12.0, -4.0, -0.3, -0.04, -1e-3):
        general = information(log_bayes_factor, np.exp, low=cutoff, high=0)
        assert abs(information_exponential(log_bayes_factor, cutoff) / general - 1) < 1e-9
    nearly_index = information(log_bayes_factor, steep(20_000))
    assert abs(information_index(log_bayes_factor) / nearly_index - 1) < 2e-3


@pytest.mark.parametrize("log_bayes_factor", [-3.1, 1.7])
def test_information_is_that_of_fisher(log_bayes_factor):
    """int p (d ln p / d lambda)^2 by differences, for an f and a prior that have no closed form."""
    f, log_prior = (lambda a: a**1.7), gaussian_prior(0.6, 0.4)
    raw = lambda a, l: math.exp(log_prior(a)) * (f(a) * math.exp(l) + 1 - f(a))
    p = lambda a, l, z: raw(a, l) / z
    h = 1e-3
    ls = [log_bayes_factor + k * h for k in (-1, 0, 1)]
    z = [quad(raw, 0, 1, args=(l,), epsrel=1e-13)[0] for l in ls]
    score = lambda a: (math.log(p(a, ls[2], z[2])) - math.log(p(a, ls[0], z[0]))) / (2 * h)
    fisher = quad(lambda a: p(a, ls[1], z[1]) * score(a) ** 2, 0, 1, epsrel=1e-12)[0]
    assert abs(information(log_bayes_factor, f, log_prior) / fisher - 1) < 1e-5  # h^2


def test_information_at_zero():
    assert abs(information_line(0.0) - 1 / 12) < 1e-16
    for l in (0.499, 0.51, 0.52):  # across the switch from series to closed form, r = 1/4
        assert abs(information_line(l) / information(l) - 1) < 1e-11


@pytest.mark.parametrize(
    ("l", "constant"), [(0, 3.464), (1, 3.228), (2, 2.722), (3, 2.233), (4.88, 1.621), (8, 1.153), (10, 1.0)]
)
def test_constant_of_the_paper_is_not_constant(l, constant):
    assert close(sigma_line(-l, 5e4) / paper_law(-l, 5e4), constant)


@pytest.mark.parametrize(("k", "found"), [(2, 44.3), (5, 25.8), (10, 16.2), (20, 13.3), (50, 12.2), (200, 11.7)])
def test_steep_coordinates_approach_the_index(k, found):
    assert close(information(-4.88, steep(k)) ** -0.5, found, 3)


def test_limits_of_steepness():
    assert close(information(-4.88, steep(1e-3)) ** -0.5, 54.15)
    assert close(information(-4.88, steep(1e6)) ** -0.5, 11.56)


@pytest.mark.parametrize(
    ("n", "quoted", "truth", "at_quoted", "at_truth"),
    [
        (6.7e4, 4.83, 4.8792471984, 0.201, 0.209),
        (2.5e5, 4.91, 4.8792471984, 0.111, 0.108),
        (5e4, 5.21, 5.0222648001, 0.320, 0.273),
    ],
)
def test_runs_of_the_paper_with_the_line(n, quoted, truth, at_quoted, at_truth):
    assert close(float(sigma_line(-quoted, n)), at_quoted, 3)
    assert close(sigma(-truth, n), at_truth, 3)


@pytest.mark.parametrize(
    ("n", "quoted", "truth", "at_quoted", "at_truth"),
    [(3.3e5, 4.77, 4.8792471984, 0.190, 0.209), (4e5, 4.98, 5.0222648001, 0.207, 0.215)],
)
def test_runs_of_the_paper_with_the_exponential(n, quoted, truth, at_quoted, at_truth):
    assert close(sigma(-quoted, n, np.exp, low=-4, high=0), at_quoted, 3)
    assert close(sigma(-truth, n, np.exp, low=-4, high=0), at_truth, 3)


def test_law_by_monte_carlo(rng):
    """The score of N draws has the variance N I; the tolerance is that of chi squared at 1e-6."""
    l, n, runs = -2.0, 2000, 400
    alpha = LineAlpha(l).sample(rng, n * runs).reshape(runs, n)
    share = expit(np.log(alpha) - np.log1p(-alpha) + l)
    score = (share - expit(l)).sum(axis=1)
    found = (score**2).sum() / (n * information_line(l))
    low, high = chi2.ppf([5e-7, 1 - 5e-7], runs)
    assert low < found < high
    # planted: the paper's law with constant 1 in place of 2.72
    assert not low < (score**2).sum() * paper_law(l, n) ** 2 < high


def test_spread_of_fitted_values(rng):
    """One Newton step from the truth is an efficient estimate: its spread is sigma."""
    l, n, runs = -2.0, 5000, 300
    alpha = LineAlpha(l).sample(rng, n * runs).reshape(runs, n)
    share = expit(np.log(alpha) - np.log1p(-alpha) + l)
    fitted = (share.mean(axis=1) - expit(l)) / information_line(l)
    low, high = chi2.ppf([5e-7, 1 - 5e-7], runs)
    assert low < (fitted**2).sum() / sigma_line(l, n) ** 2 < high
    assert not low < (fitted**2).sum() / sigma_line(l, 2 * n) ** 2 < high


# Planner, tilt, cutoff


def test_planner():
    n = samples_needed(-4.88, 0.17)
    assert abs(n - 1e5) < 2e3
    assert sigma(-4.88, n) <= 0.17 < sigma(-4.88, n - 1)
    assert abs(samples_needed(-4.88, 0.17, tau=10) - 10 * n) <= 10
    assert samples_needed(-4.88, 0.17, tilt=4.88) == math.ceil(12 / 0.17**2)


@given(st.floats(-8, 8), st.floats(-8, 8))
@settings(max_examples=15)
def test_tilt_moves_the_bayes_factor(log_bayes_factor, tilt):
    assert information(log_bayes_factor, tilt=tilt) == pytest.approx(
        information_line(log_bayes_factor + tilt), rel=1e-9
    )


@given(st.floats(-12, 12))
def test_swapping_the_models_leaves_the_line_and_the_index(log_bayes_factor):
    assert information_line(log_bayes_factor) == information_line(-log_bayes_factor)
    assert information_index(log_bayes_factor) == information_index(-log_bayes_factor)


@pytest.mark.parametrize(
    ("cutoff", "found", "digits"),
    [
        *(
            (-10, 201.7, 4),
            (-8, 178.6, 4),
            (-6, 152.2, 4),
            (-4, 120.2, 4),
            (-2, 77.6, 3),
            (-1, 48.2, 3),
            (-0.5, 29.3, 3),
        ),
        *((-0.1, 10.27, 4), (-0.05, 7.50, 3), (-0.02, 6.27, 3), (-0.01, 6.86, 3)),
    ],
)
def test_choice_of_cutoff(cutoff, found, digits):
    assert close(information_exponential(-4.88, cutoff) ** -0.5, found, digits)


@pytest.mark.parametrize(("cutoff", "found"), [(-4, 24.3), (-6, 10.9), (-8, 7.11), (-10, 5.60)])
def test_choice_of_cutoff_with_the_favoured_model_first(cutoff, found):
    assert close(information_exponential(4.88, cutoff) ** -0.5, found, 3)


def test_optimum_cutoff():
    best = optimum_cutoff(-4.88)
    assert close(best.cutoff, -0.0192, 3)
    assert close(best.sigma_sqrt_n, 6.270)
    assert close(-best.cutoff * math.exp(4.88), 2.52, 3)
    best = optimum_cutoff(-5.02)
    assert abs(best.cutoff + 0.0167) < 1e-4  # the loss is flat there
    assert close(best.sigma_sqrt_n, 6.274)
    best = optimum_cutoff(4.88)
    assert close(best.cutoff, -141, 3)
    assert close(best.sigma_sqrt_n, 2.06, 3)


def test_optimum_cutoff_at_equal_evidences():
    """Var[e^alpha] = (1-e^2L)/(-2L) - ((1-e^L)/L)^2. Errata 3.3: -3.245 and 3.888."""
    variance = lambda L: (1 - math.exp(2 * L)) / (-2 * L) - ((1 - math.exp(L)) / L) ** 2
    best = optimum_cutoff(0.0)
    assert abs(best.sigma_sqrt_n - variance(best.cutoff) ** -0.5) < 1e-9
    assert variance(best.cutoff) >= max(variance(L) for L in np.linspace(-6, -1, 5001)) - 1e-12
    assert close(best.sigma_sqrt_n, 3.888)
    assert abs(variance(-3.22) ** -0.5 - 3.888) < 5e-4


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": -1.0}, {"n": math.nan}, {"n": 10, "tau": 0}])
def test_bad_counts_are_refused(wrong):
    with pytest.raises(SupermodelError, match="positive"):
        sigma(1.0, **wrong)


# Rao-Blackwell


def data(name):
    text = (files("supermodel") / "data" / name).read_text().splitlines()
    return np.array([[float(v) for v in row] for row in list(csv.reader(text))[1:]]).T


def sine_pair():
    x, y, noise = data("sine.csv")

    def joint(theta, phase):
        chi = (((y - np.sin(theta[:, :1] * x + phase)) / noise) ** 2).sum(axis=1)
        return -0.5 * chi + norm.logpdf(theta[:, 0], 1, 2) + norm.logpdf(theta[:, 1], 0, 0.05)

    # where the likelihood lives (outside it is below exp(-843) of the whole); phi keeps its whole prior
    box = [[0.85, 1.15], [-0.5, 0.5]]
    return lambda t: joint(t, 0.0), lambda t: joint(t, t[:, 1:]), box


def linear_pair():
    """The five-fold integral reduced to two: ln L1 - ln L2 depends on theta2 and u = D2^T (b - D1 phi1) alone."""
    x, y, noise = data("linear.csv")
    m = LinearGaussian(polynomial(x, (0, 1, 2, 4)), y, noise)
    second = fix(m, [2])
    d2 = m.scaled_design[:, 2]
    onto = second.scaled_design.T @ d2
    mean, variance = d2 @ (y / noise) - onto @ second.posterior_mean, onto @ second.posterior_covariance @ onto
    sd, square = math.sqrt(variance), d2 @ d2

    # t = (theta2, u whitened under the second model; the first spreads u 5.2 times as wide)
    def second_joint(t):
        return norm.logpdf(t[:, 0]) + norm.logpdf(t[:, 1])

    def first_joint(t):
        return second_joint(t) + t[:, 0] * (mean + sd * t[:, 1]) - 0.5 * t[:, 0] ** 2 * square

    return first_joint, second_joint, prior_box([0, 0], [1, 5.5], 9.0), -savage_dickey(m, [2])


@pytest.mark.parametrize(("eta", "p", "found"), [(0.0, 0.0065, 10.539), (2.0, 0.0464, 4.359), (5.0222648, 0.5, 1.928)])
def test_rao_blackwell_on_sine(eta, p, found):
    result = overlap_by_quadrature(*sine_pair(), tilt=eta, tolerance=1e-8)
    assert abs(result.log_bayes_factor + 5.0222648001) < 1e-7
    assert abs(result.probability - p) < 6e-5
    assert abs(result.sigma_sqrt_n - found) < 6e-4
    assert abs(rao_blackwell_sigma(-5.0222648, 1, result.overlap, eta) - found) < 6e-4


@pytest.mark.parametrize(("eta", "p", "found"), [(0.0, 0.0075, 10.856), (2.0, 0.0532, 4.380), (4.8792472, 0.5, 1.994)])
def test_rao_blackwell_on_linear(eta, p, found):
    first, second, box, truth = linear_pair()
    result = overlap_by_quadrature(first, second, box, tilt=eta, tolerance=1e-8)
    assert abs(result.log_bayes_factor - truth) < 1e-7
    assert abs(result.probability - p) < 6e-5
    assert abs(result.sigma_sqrt_n - found) < 6e-4


@pytest.mark.parametrize(
    ("truth", "eta", "index", "line"),
    [
        (4.8792471984, 0, 11.556, 54.11),
        (4.8792471984, 2, 4.456, 11.35),
        (4.8792471984, 4.8792471984, 2.000, 3.464),
        (5.0222648001, 0, 12.400, 61.05),
        (5.0222648001, 2, 4.753, 12.55),
    ],
)
def test_index_and_line_under_tilt(truth, eta, index, line):
    assert abs(rao_blackwell_sigma(-truth, 1, tilt=eta) - index) < 6e-4
    assert close(sigma(-truth, 1, tilt=eta), line)


@pytest.mark.parametrize(("q", "found"), [("prior", 1.995), ("marginal", 1.75), ("conditional", 1.53)])
def test_pseudo_priors_by_exact_draws(q, found, rng):
    """3.4: sigma sqrt(N) with a pseudo-prior q for theta2 in the branch that lacks it, at eta = l."""
    x, y, noise = data("linear.csv")
    first = LinearGaussian(polynomial(x, (0, 1, 2, 4)), y, noise)
    second, n = fix(first, [2]), 100_000
    mean, covariance = first.posterior_mean, first.posterior_covariance
    rest = [0, 1, 3]
    gain = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, 2])
    narrow = math.sqrt(covariance[2, 2] - gain @ covariance[rest, 2])

    def law(phi1):
        if q == "prior":
            return norm(np.zeros(len(phi1)), 1.0)
        if q == "marginal":
            return norm(np.full(len(phi1), mean[2]), math.sqrt(covariance[2, 2]))
        return norm(mean[2] + (phi1 - mean[rest]) @ gain, narrow)

    phi1 = second.sample_posterior(rng, n)
    theta = np.vstack([first.sample_posterior(rng, n), np.insert(phi1, 2, law(phi1).rvs(n, random_state=rng), axis=1)])
    log_first = first.log_likelihood(theta) + first.log_prior(theta) - first.log_evidence
    phi1 = theta[:, rest]
    log_second = (
        second.log_likelihood(phi1) + second.log_prior(phi1) - second.log_evidence + law(phi1).logpdf(theta[:, 2])
    )
    w = expit(log_first - log_second)
    spread = 4 * w.std()
    # (w - 1/2)^2 lies in [0, 1/4], so Hoeffding at 1e-6 bounds its mean; the printed number is rounded besides
    hoeffding = 0.25 * math.sqrt(math.log(2e6) / (2 * len(w)))
    assert abs(spread**2 / 16 - found**2 / 16) < hoeffding + found * 0.005 / 8
    assert abs(spread**2 / 16 - (found + 0.2) ** 2 / 16) > hoeffding + found * 0.005 / 8


def test_overlap_is_refused_outside_its_range():
    with pytest.raises(SupermodelError, match="overlap"):
        rao_blackwell_sigma(1.0, 10, overlap=1.0)


# Appendix D


@pytest.mark.parametrize(
    ("bins", "corrected", "printed", "fractions"),
    [(10, 0.02948, 73, 0.33), (20, 0.02912, 148, 0.66), (50, 0.02901, 372, 1.7), (100, 0.02900, 746, 3.3)],
)
def test_binned_errors(bins, corrected, printed, fractions):
    counts = expected_counts(-2.0, 5e4, bins)
    assert abs(counts.sum() - 5e4) < 1e-8
    assert abs(binned_sigma(-2.0, counts) - corrected) < 6e-6
    assert abs(printed_binned_sigma(-2.0, counts) - printed) < 1
    assert close(printed_binned_sigma(-2.0, counts) / math.sqrt(5e4), fractions, 2)


def test_binned_error_tends_to_the_exact_law():
    assert abs(sigma_line(-2.0, 5e4) - 0.02899) < 5e-6
    assert abs(binned_sigma(-2.0, expected_counts(-2.0, 5e4, 20_000)) - sigma_line(-2.0, 5e4)) < 1e-8
    assert printed_binned_sigma(-2.0, expected_counts(-2.0, 5e4, 11)) == math.inf


def test_binned_error_by_monte_carlo(rng):
    """Weighted least squares on Poisson counts spreads as the corrected formula says, and not as the printed one."""
    l, n, bins, runs = -2.0, 50_000, 10, 400
    expected = expected_counts(l, n, bins)
    counts = rng.poisson(expected, (runs, bins))
    centres = (np.arange(bins) + 0.5) / bins
    lever = (1 - 2 * centres) / expected
    c = ((bins * counts / n - 2 * centres) * lever).sum(axis=1) / ((1 - 2 * centres) * lever).sum()
    truth = 2 * expit(2.0)
    z2 = (((c - truth) * 2 / (truth * (2 - truth))) ** 2).sum() / binned_sigma(l, expected) ** 2
    low, high = chi2.ppf([5e-7, 1 - 5e-7], runs)
    assert low < z2 < high
    assert not low < z2 * (binned_sigma(l, expected) / printed_binned_sigma(l, expected)) ** 2 < high


def test_empty_bins_carry_no_weight():
    assert math.isfinite(binned_sigma(-2.0, [30, 12, 5, 0]))
