"""The error of a mean over correlated chains."""

import numpy as np
from scipy.signal import lfilter

from exact_draws import is_calibrated
from supermodel.estimation.error import autocorrelation_time, standard_error


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
