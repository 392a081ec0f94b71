"""Integrals whose value is known: the rule finds it, and its error says how far off it is."""

import numpy as np
import pytest
from scipy.special import gammaln

from supermodel.regressions.integral import integrate


def log_gammas(shapes):
    """u_i = ln of a Gamma(shape) variable, unnormalised: left and right tails fall at different speeds."""
    shapes = np.asarray(shapes, float)
    return lambda u: (shapes * u - np.exp(np.minimum(u, 700.0))).sum(axis=1)


@pytest.mark.parametrize("shapes", [(0.5,), (4.0,), (0.5, 3.0), (0.7, 2.0, 9.0), (0.5, 0.5, 1.0, 2.0, 30.0)])
def test_products_of_gammas(shapes):
    found = integrate(log_gammas(shapes), np.zeros(len(shapes)))
    wanted = gammaln(shapes).sum()
    assert abs(found.log_value - wanted) < 5 * found.error + 1e-9
    assert found.error < 0.02
    mean = found.weights @ np.exp(found.points)
    assert np.allclose(mean, shapes, rtol=20 * max(found.error, 1e-6))


def test_a_turned_normal():
    covariance = np.array([[2.0, 1.5], [1.5, 3.0]])
    precision = np.linalg.inv(covariance)
    found = integrate(lambda u: -0.5 * np.einsum("mi,ij,mj->m", u - 4.0, precision, u - 4.0), np.zeros(2))
    wanted = np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    assert abs(found.log_value - wanted) < 5 * found.error + 1e-9


def test_two_modes_are_either_found_or_told():
    def log_f(u):
        return np.logaddexp(-0.5 * u[:, 0] ** 2, -0.5 * ((u[:, 0] - 9.0) / 0.5) ** 2)

    found = integrate(log_f, np.zeros(1))
    assert abs(found.log_value - np.log(np.sqrt(2 * np.pi) * 1.5)) < 5 * found.error + 1e-9


def test_a_function_that_is_too_rough_says_so():
    """Negative control: a spike between the nodes is missed by the coarse grid, and the error is large."""
    found = integrate(lambda u: -0.5 * u[:, 0] ** 2 + 6 * np.cos(40 * u[:, 0]), np.array([0.3]))
    assert found.error > 0.05
