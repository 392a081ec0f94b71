"""Draws of N(0, 1) as draws of N(m, s^2): the mean ratio, the new weights, and when they fail."""

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm

from supermodel.results.reweighting import HEAVY, reweighted, tail_shape

N = 40_000
SIGMAS = float(-ndtri(1e-6 / 2))  # of false alarm 1e-6 each


def moved(mean: float, sd: float):
    x = np.random.default_rng(3).standard_normal(N)
    return x, reweighted(np.full(N, -np.log(N)), norm.logpdf(x, mean, sd) - norm.logpdf(x) + 2.0)


def test_the_mean_ratio_and_the_new_moments_are_right_and_a_wrong_shift_is_seen():
    x, found = moved(0.5, 0.8)
    error = np.sqrt(np.sum(found.weights**2) - 1 / N)  # of ln of a mean of independent ratios
    assert abs(found.log_mean - 2.0) < SIGMAS * error < abs(found.log_mean - 2.1)
    spread = np.sqrt(np.sum((found.weights * (x - 0.5)) ** 2))
    assert abs(found.weights @ x - 0.5) < SIGMAS * spread < abs(found.weights @ x - 0.45)
    assert found.pareto_k < HEAVY and 1 < found.effective_size < N


def test_weights_without_end_are_flagged_and_equal_ones_are_not():
    flat, below = np.full(N, -np.log(N)), (np.arange(N) + 0.5) / N
    heavy, light = (
        reweighted(flat, -k * np.log1p(-below)).pareto_k for k in (1.2, 0.3)
    )  # Pareto's quantiles themselves
    assert light < HEAVY < heavy
    assert moved(0.0, 1.0)[1].pareto_k == 0.0
    nothing = reweighted(np.full(9, -np.log(9)), np.full(9, -np.inf))
    assert nothing.log_mean == -np.inf and np.isnan(nothing.weights).all() and nothing.pareto_k == np.inf
    assert tail_shape(np.full(9, -np.inf)) == np.inf
