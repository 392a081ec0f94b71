import math

import numpy as np
import pytest
from scipy import stats

from exact_draws import is_calibrated, is_within, linear_csv
from supermodel.errors import PriorError, SupermodelError
from supermodel.estimation.by_alpha.nested import check_priors, savage_dickey, savage_dickey_from_conditional

NAMES = ("nested", "larger")


def linear_posterior():
    problem = linear_csv()
    _, mean, covariance = problem.posterior(np.array([1.0, 0.0]), "product")
    return problem, mean, covariance


@pytest.mark.parametrize("method", ["logspline", "kde", "gaussian"])
def test_the_linear_example(method, rng):
    """A4: the density of theta_2 at 0 over its prior there is B21."""
    problem, mean, covariance = linear_posterior()
    draws = rng.multivariate_normal(mean, covariance, 20_000, method="cholesky")
    found = savage_dickey(draws[:, 2], stats.norm.logpdf(0.0), 0.0, method=method).log_bayes_factor(*NAMES)
    assert is_within(found, -problem.log_bayes_factor()) and found.error < 0.03
    assert not is_within(found, -problem.log_bayes_factor() + 0.3)


@pytest.mark.parametrize("method", ["logspline", "gaussian"])
@pytest.mark.parametrize("value", [0.4, 2.6])
def test_errors_are_calibrated(method, value, rng):
    z, noise = [], math.sqrt(1 - 0.8**2)
    for _ in range(60):
        x = np.zeros(1500)
        steps = rng.standard_normal(1500)
        x[0] = steps[0]
        for t in range(1, 1500):
            x[t] = 0.8 * x[t - 1] + noise * steps[t]
        found = savage_dickey(x, 0.0, value, method=method).log_bayes_factor(*NAMES)
        z.append((found.value - stats.norm.logpdf(value)) / found.error)
    assert is_calibrated(z)
    assert not is_calibrated(np.array(z) * 3 - 1)


def test_a_skew_density_needs_more_than_a_gaussian(rng):
    law = stats.gamma(4.0)
    draws = law.rvs(20_000, random_state=rng)
    assert is_within(savage_dickey(draws, 0.0, 10.0).log_bayes_factor(*NAMES), law.logpdf(10.0))
    assert not is_within(savage_dickey(draws, 0.0, 10.0, method="gaussian").log_bayes_factor(*NAMES), law.logpdf(10.0))


def test_two_parameters(rng):
    mean, covariance = np.array([0.3, -0.4]), np.array([[1.2, 0.5], [0.5, 0.7]])
    draws = rng.multivariate_normal(mean, covariance, 20_000, method="cholesky")
    exact = stats.multivariate_normal(mean, covariance).logpdf([1.0, 0.2])
    assert is_within(savage_dickey(draws, 0.0, [1.0, 0.2], method="gaussian").log_bayes_factor(*NAMES), exact)
    smoothed = savage_dickey(draws, 0.0, [1.0, 0.2], method="kde").log_bayes_factor(*NAMES)
    assert abs(smoothed.value - exact) < 5 * smoothed.error + 0.05
    with pytest.raises(SupermodelError, match="one parameter"):
        savage_dickey(draws, 0.0, [1.0, 0.2])
    with pytest.raises(SupermodelError, match="shape"):
        savage_dickey(draws, 0.0, 1.0)


def test_the_conditional_beats_every_density_estimate(rng):
    problem, mean, covariance = linear_posterior()
    draws = rng.multivariate_normal(mean, covariance, 2000, method="cholesky")
    rest = [0, 1, 3]
    gain = covariance[2, rest] @ np.linalg.inv(covariance[np.ix_(rest, rest)])
    centre = mean[2] + (draws[:, rest] - mean[rest]) @ gain
    sd = math.sqrt(covariance[2, 2] - gain @ covariance[rest, 2])
    found = savage_dickey_from_conditional(stats.norm.logpdf(0.0, centre, sd), stats.norm.logpdf(0.0))
    estimate = found.log_bayes_factor(*NAMES)
    assert is_within(estimate, -problem.log_bayes_factor())
    assert not is_within(estimate, -problem.log_bayes_factor() + 0.5)


def test_the_condition_on_the_priors(rng):
    """Errata E17: a correlated prior (rho = 0.8) breaks it."""
    theta = rng.standard_normal(20)
    nested, at_value = stats.norm.logpdf(theta), stats.norm.logpdf(0.3)
    assert check_priors(nested + at_value, nested, at_value) < 1e-12
    joint = stats.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]]).logpdf(np.stack([theta, np.full(20, 0.3)], axis=1))
    with pytest.raises(PriorError, match="differ by up to"):
        savage_dickey(rng.standard_normal(50), at_value, 0.3, priors=(joint, nested))
    with pytest.warns(UserWarning, match="supermodel"):
        assert check_priors(joint, nested, at_value, on_mismatch="warn") > 0.1


def test_an_unknown_method_is_refused():
    with pytest.raises(SupermodelError, match="logspline"):
        savage_dickey(np.arange(9.0), 0.0, method="magic")
