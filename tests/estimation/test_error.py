"""The error of a mean over correlated chains."""

import numpy as np
from scipy.signal import lfilter

from exact_draws import is_calibrated
from supermodel.estimation.error import _normal_unsure, _unsure, autocorrelation_time, capped_time, standard_error


def autoregression(rng, rho, chains, n):
    """Stationary chains of unit variance with tau = (1 + rho) / (1 - rho)."""
    noise = np.sqrt(1 - rho**2) * rng.standard_normal((chains, n))
    noise[:, 0] /= np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], noise, axis=1)


def test_errors_of_an_autoregression_are_true(rng):
    """300 records: mean / error has the spread 1, by chi-square at 1e-6. Errors that forget tau = 9 are seen."""
    records = [autoregression(rng, 0.8, 16, 1000) for _ in range(300)]
    z = np.array([x.mean() / standard_error(x) for x in records])
    assert is_calibrated(z)
    assert not is_calibrated([x.mean() / (x.std() / np.sqrt(x.size)) for x in records])


def test_the_autocorrelation_time_of_an_autoregression(rng):
    """tau = 9 from 64 chains of 4000: its own error is tau sqrt(2 (2 W + 1) / N), W = 5 tau the window (Sokal)."""
    x = autoregression(rng, 0.8, 64, 4000)
    error = 9.0 * np.sqrt(2 * (2 * 45 + 1) / x.size)
    assert abs(autocorrelation_time(x) - 9.0) < 4.9 * error
    assert abs(autocorrelation_time(autoregression(rng, 0.9, 64, 4000)) - 9.0) > 4.9 * error


def visits(rng, enters, leaves, records, chains, n):
    """0 or 1: stationary chains that go from 0 to 1 with probability `enters` and back with `leaves`; (records, chains, n)."""
    inside = rng.random((records, chains)) < enters / (enters + leaves)
    x = np.empty((n, records, chains))
    for t in range(n):
        u = rng.random((records, chains))
        inside = np.where(inside, u >= leaves, u < enters)
        x[t] = inside
    return np.moveaxis(x, 0, 2)


def test_the_variance_of_chains_that_stick_now_and_then_is_as_unsure_as_it_says(rng):
    """400 records of 16 chains that are away one step in 21, for five steps each time: tau = 8.5, mean 1/21.

    v against the relative variance of s^2 over the records, whose own error is sqrt((k + 2) / 400) with k their excess
    kurtosis: 4.9 of these (1e-6). The value for normal series is too small by far more. Errors are true.
    """
    records = visits(rng, 0.01, 0.2, 400, 16, 1000)
    tau = [capped_time(x) for x in records]
    v = np.array([_unsure(x, t) for x, t in zip(records, tau, strict=True)])
    error = np.array([standard_error(x) for x in records])
    squares = error**2 / (1 + v)
    relative = squares / squares.mean() - 1
    found = relative.var()
    tolerance = 4.9 * np.sqrt((np.mean(relative**4) / found**2 - 1) / len(relative))
    assert abs(v.mean() / found - 1) < tolerance
    normal = np.mean([_normal_unsure(x, t) for x, t in zip(records, tau, strict=True)])
    assert abs(normal / found - 1) > tolerance
    assert is_calibrated((records.mean(axis=(1, 2)) - 1 / 21) / error)


def test_a_series_that_hardly_moves_has_its_own_small_error(rng):
    """Scale does not matter, down to that of rounding; a constant has the error 0."""
    x = autoregression(rng, 0.5, 16, 64)
    assert np.isclose(standard_error(1e-9 * x), 1e-9 * standard_error(x), rtol=1e-6)
    assert standard_error(np.ones((16, 64))) == 0
