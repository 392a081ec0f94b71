"""Quadrature against closed forms: narrow peaks, many peaks, hidden peaks, correlated peaks, hard walls."""

import csv
import math
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm

from supermodel.errors import ModelError, SupermodelError
from supermodel.exact.quadrature import (
    Density,
    expectation_by_quadrature,
    find_peaks,
    log_evidence_by_quadrature,
    moments_by_quadrature,
    prior_box,
)


def sine(n_parameters):
    text = (files("supermodel") / "data" / "sine.csv").read_text().splitlines()
    x, y, sigma = np.array([[float(v) for v in row] for row in list(csv.reader(text))[1:]]).T

    def log_joint(theta):
        phase = theta[:, 1:] if n_parameters == 2 else 0.0
        residual = (y - np.sin(theta[:, :1] * x + phase)) / sigma
        value = -0.5 * (residual**2).sum(axis=1) - np.log(math.sqrt(2 * math.pi) * sigma).sum()
        value += norm.logpdf(theta[:, 0], 1, 2)
        return value + (norm.logpdf(theta[:, 1], 0, 0.05) if n_parameters == 2 else 0.0)

    return log_joint


def test_sine_without_phase():
    found = moments_by_quadrature(sine(1), prior_box([1.0], [2.0]))
    assert abs(found.log_evidence - 66.0844029432) < 1e-9
    assert found.error < 1e-10
    np.testing.assert_allclose([found.mean[0], found.sd[0]], [1.02069494, 0.00494541], atol=6e-9, rtol=0)


def test_sine_with_phase():
    found = moments_by_quadrature(sine(2), prior_box([1.0, 0.0], [2.0, 0.05]))
    assert abs(found.log_evidence - 71.1066677433) < 1e-9
    assert found.error < 1e-10
    np.testing.assert_allclose(found.mean, [0.99789455, 0.05587449], atol=6e-9, rtol=0)
    np.testing.assert_allclose(found.sd, [0.00818234, 0.01601911], atol=6e-9, rtol=0)


def test_savage_dickey_inside_the_sine():
    """p(phi = 0 | D) / p(phi = 0) in the larger model is the ratio of the evidences."""
    box = prior_box([1.0], [2.0])
    at_zero = log_evidence_by_quadrature(lambda t: sine(2)(np.column_stack([t, 0 * t])), box).log_evidence
    ratio = at_zero - 71.1066677433 - norm.logpdf(0, 0, 0.05)
    assert abs(ratio + 5.0222648001) < 1e-9


@pytest.mark.parametrize("width", [1.0, 1e-2, 1e-3])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_lone_peak_of_any_width(d, width):
    centre = np.array([0.31, -0.42, 0.77])[:d]
    log_joint = lambda theta: norm.logpdf(theta, centre, width * np.array([1.0, 1.3, 0.8])[:d]).sum(axis=1) + 700
    box = np.stack([centre - max(12 * width, 0.6), centre + max(14 * width, 0.4)], axis=1)
    found = log_evidence_by_quadrature(log_joint, box, tolerance=1e-9)
    assert abs(found.log_evidence - 700) < 1e-9 + found.error
    assert found.error < 1e-8


@pytest.mark.parametrize("d", [1, 2])
def test_a_peak_of_a_thousandth_of_the_box_hidden_under_a_wide_one(d):
    """The flanks of the narrow peak drown in the wide one, so that only a point of the scan can find it."""
    wide, narrow = 0.7, 0.3

    def log_joint(theta):
        broad = math.log(wide) + norm.logpdf(theta, -0.1, 0.05).sum(axis=1)
        return np.logaddexp(broad, math.log(narrow) + norm.logpdf(theta, 0.2717, 1e-3).sum(axis=1))

    found = log_evidence_by_quadrature(log_joint, [[-0.55, 0.45]] * d)
    assert abs(found.log_evidence) < 1e-9
    assert found.resolution <= 1e-3
    assert len(find_peaks(log_joint, [[-0.55, 0.45]] * d).place) == 2


def test_in_three_dimensions_the_resolution_is_told():
    """There a hidden peak can be missed; what the answer says is how narrow."""
    log_joint = lambda theta: norm.logpdf(theta, 0.1, 0.2).sum(axis=1)
    assert log_evidence_by_quadrature(log_joint, [[-1.5, 2.0]] * 3, tolerance=1e-6).resolution == pytest.approx(1 / 128)


def test_several_peaks_far_apart():
    places, sds, weights = [-0.8, 0.1, 0.55], [0.002, 0.03, 0.001], [0.2, 0.5, 0.3]
    parts = lambda x: [math.log(w) + norm.logpdf(x, p, s) for p, s, w in zip(places, sds, weights, strict=True)]
    log_joint = lambda theta: np.logaddexp.reduce([p.sum(axis=1) for p in parts(theta)])
    found = moments_by_quadrature(log_joint, [[-1.0, 1.0]])
    assert abs(found.log_evidence) < 1e-10
    assert abs(found.mean[0] - np.dot(weights, places)) < 1e-10


def test_many_peaks_in_two_dimensions():
    places = np.random.default_rng(8).uniform(-0.8, 0.8, (9, 2))
    log_joint = lambda theta: (
        np.logaddexp.reduce([norm.logpdf(theta, p, 0.01).sum(axis=1) for p in places]) - math.log(len(places))
    )
    found = log_evidence_by_quadrature(log_joint, [[-1, 1], [-1, 1]])
    assert abs(found.log_evidence) < 1e-9


def test_strong_correlation_in_three_dimensions():
    covariance = np.array([[1.0, 0.95, 0.2], [0.95, 1.0, 0.1], [0.2, 0.1, 0.7]]) * 1e-4
    precision = np.linalg.inv(covariance)
    constant = 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    log_joint = lambda t: -0.5 * np.einsum("ni,ij,nj->n", t - 0.3, precision, t - 0.3) - constant
    found = moments_by_quadrature(log_joint, [[-3, 3]] * 3, tolerance=1e-7)
    assert abs(found.log_evidence) < 1e-9 + found.error
    assert found.error < 1e-5
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-10, rtol=0)


def test_hard_walls_and_forbidden_regions():
    log_joint = lambda theta: np.where(theta[:, 0] > 0.25, 3.0 - 5 * theta[:, 0], -np.inf)
    found = log_evidence_by_quadrature(log_joint, [[0.0, 1.0]])
    assert abs(found.log_evidence - (3 + math.log((math.exp(-1.25) - math.exp(-5)) / 5))) < 1e-9


def test_an_exhausted_budget_is_told_in_the_error():
    log_joint = lambda theta: norm.logpdf(theta, 0.1, 1e-3).sum(axis=1)
    found = log_evidence_by_quadrature(log_joint, [[-1, 1]] * 2, max_evaluations=2000)
    assert found.error > 0.5
    assert abs(found.log_evidence) < found.error


def test_a_forest_of_peaks_is_confessed():
    """Each scan meets other spikes of this comb; the error must not be small."""
    comb = lambda theta: np.log(np.cos(2345.6 * np.pi * theta[:, 0]) ** 2 + 1e-30) * 4000
    assert log_evidence_by_quadrature(comb, [[0, 1]]).error == math.inf


def test_expectations_and_their_errors():
    log_joint = lambda theta: norm.logpdf(theta[:, 0], 0.4, 0.3)
    found = expectation_by_quadrature(log_joint, [[-4, 5]], lambda t: np.column_stack([t[:, 0] ** 3, np.cos(t[:, 0])]))
    expected = [0.4**3 + 3 * 0.4 * 0.09, math.exp(-0.045) * math.cos(0.4)]
    np.testing.assert_allclose(found.value, expected, atol=1e-10, rtol=0)
    assert np.all(found.error < 1e-9)


@given(st.floats(-500, 500), st.floats(0.5, 20), st.floats(-3, 3))
@settings(max_examples=12)
def test_constants_scales_and_shifts(constant, scale, shift):
    log_joint = lambda theta: np.logaddexp(norm.logpdf(theta[:, 0], 0, 1), norm.logpdf(theta[:, 0], 3, 0.2) - 1)
    moved = lambda theta: log_joint((theta - shift) / scale) + constant
    plain = log_evidence_by_quadrature(log_joint, [[-10, 12]]).log_evidence
    found = log_evidence_by_quadrature(moved, [[shift - 10 * scale, shift + 12 * scale]]).log_evidence
    assert abs(found - plain - constant - math.log(scale)) < 1e-9


@pytest.mark.parametrize(
    ("log_joint", "box", "error", "words"),
    [
        (lambda t: t[:, 0], [[0, 1]] * 4, SupermodelError, "one to three"),
        (lambda t: t[:, 0], [[1, 0]], SupermodelError, "low < high"),
        (lambda t: t[:, 0], [[0, math.inf]], SupermodelError, "finite"),
        (lambda t: t.sum(), [[0, 1]], ModelError, "Vectorise"),
        (lambda t: t[:, 0] * np.nan, [[0, 1]], ModelError, "nan"),
        (lambda t: np.full(len(t), -np.inf), [[0, 1]], ModelError, "no mass"),
    ],
)
def test_bad_input_is_refused_with_a_reason(log_joint, box, error, words):
    with pytest.raises(error, match=words):
        log_evidence_by_quadrature(log_joint, box)


def test_density_against_scipy():
    law = beta(2.5, 0.7)  # infinite, but integrable, at one end
    density = Density(lambda x: 1.5 * np.log(x) - 0.3 * np.log1p(-x))
    x = np.linspace(0.05, 0.95, 7)
    np.testing.assert_allclose(density.pdf(x), law.pdf(x), rtol=1e-8)
    np.testing.assert_allclose(density.cdf(x), law.cdf(x), atol=1e-8, rtol=0)


def test_density_with_whole_number_ends():
    """Ends given as integers once made integer cells, and halves that were none."""
    density = Density(lambda x: 40.0 * x, -4, 0)
    assert abs(density.log_norm + math.log(40)) < 1e-12
    np.testing.assert_allclose(density.ppf([0.1, 0.9]), np.log([0.1, 0.9]) / 40, atol=1e-13, rtol=0)
    exact = 40 * np.trapezoid(np.exp(40 * (g := np.linspace(-4, 0, 400_001))) * np.tanh(90 * (g + 0.02)), g)
    assert abs(density.expectation(lambda x: np.tanh(90 * (x + 0.02))) - exact) < 1e-6
