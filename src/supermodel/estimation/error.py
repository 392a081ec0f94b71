r"""The error of a mean, or of the logarithm of one, over correlated chains. `x` is (chains, draws) throughout.

NaN stays NaN; a series that never moves has no autocorrelation time (NaN: nothing is known of it), and no effective
size ever exceeds the number of draws.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import fft
from scipy.special import logsumexp

WINDOW = 5.0  # Sokal's: sum the autocorrelation up to the first lag beyond WINDOW times tau
FEW_CHAINS = 4  # below which their spread says nothing


def as_chains(x: np.ndarray) -> np.ndarray:
    """(chains, draws) as floats; a single series is one chain."""
    x = np.asarray(x, float)
    return x[None] if x.ndim == 1 else x


def is_constant(x: np.ndarray) -> bool:
    """Whether x never moves by more than rounding."""
    return bool(np.ptp(x) <= 16 * np.finfo(float).eps * np.abs(x).max())


def autocorrelation(x: np.ndarray) -> np.ndarray:
    r"""$\rho_t$ of lags 0, 1, ..., averaged over the chains, about the mean of *all* chains.

    The common mean matters: chains stuck in different places then look as correlated as they are.
    """
    covariance = autocovariances(x).mean(axis=0)
    return covariance / covariance[0]


def autocovariances(x: np.ndarray) -> np.ndarray:
    r"""$c_t$ of lags 0, 1, ... of each chain about the mean of all, in units of the largest deviation: (chains, draws)."""
    x = as_chains(x)
    n = x.shape[1]
    size = fft.next_fast_len(2 * n, real=True)  # padded: no lag wraps around
    centred = x - x.mean()
    spectrum = np.abs(fft.rfft(centred / np.abs(centred).max(), size, axis=1)) ** 2
    return fft.irfft(spectrum, size, axis=1)[:, :n] / n


def autocorrelation_time(x: np.ndarray) -> float:
    r"""$\tau = 1 + 2 \sum_{t \ge 1} \rho_t$, summed up to the first window $M \ge 5 \tau(M)$ (Sokal).

    The error of a mean is $\sigma \sqrt{\tau/N}$; for an AR(1) chain $\tau = (1+\rho)/(1-\rho)$. NaN for a constant or
    for fewer than four draws a chain. Chains shorter than some $50 \tau$ give too small a value: look at R-hat as well.
    """
    x = as_chains(x)
    if not np.all(np.isfinite(x)) or x.shape[1] < 4 or is_constant(x):
        return math.nan
    running = 2.0 * np.cumsum(autocorrelation(x)) - 1.0
    beyond = np.arange(len(running)) >= WINDOW * np.maximum(running, 2.0)  # ten lags at least, for antithetic chains
    return float(running[np.argmax(beyond)] if beyond.any() else running.max())


def effective_size(x: np.ndarray) -> float:
    r"""$N/\tau$, and never more than N: an antithetic chain has no more draws than it has."""
    x = as_chains(x)
    tau = autocorrelation_time(x)
    return math.nan if math.isnan(tau) else float(x.size / max(tau, 1.0))


def capped_time(x: np.ndarray) -> float:
    """The autocorrelation time, at least 1 (no effective size exceeds the draws); 1 if nothing moves."""
    tau = autocorrelation_time(x)
    return max(tau, 1.0) if tau == tau else 1.0


def standard_error(x: np.ndarray) -> float:
    r"""$s \sqrt{1 + v}$, with $s^2$ the variance of the mean of x and v its own relative variance.

    Two estimates of $s^2$: $\sigma^2 \tau / N$, precise but low where chains are short, and the spread of the chains'
    means, true but noisy. They are averaged 2 : 1 (of fewer than four chains the first alone is taken),
    unless the chains stand apart more than chance allows (99.9% point): then their spread alone counts. Infinite for
    one draw, or where a value is infinite.

    A variance that is itself estimated makes the mean of $z^2$ equal to $\mathrm{E}[\sigma^2 / s^2] \approx 1 + v$, hence the
    factor; see `_unsure` for v.
    """
    x = as_chains(x)
    if not np.all(np.isfinite(x)):
        return math.nan if np.any(np.isnan(x)) else math.inf
    if x.size < 2:
        return math.inf
    chains = len(x)
    tau = capped_time(x)
    within = float(x.var() * tau / x.size)
    if chains == 1:
        return math.sqrt(within * (1 + _normal_unsure(x, tau)))
    between = float(x.mean(axis=1).var(ddof=1) / chains)
    if between > within * (1 + _normal_unsure(x, tau)) * _chi2_999(chains - 1):
        return math.sqrt(between)
    if chains < FEW_CHAINS:
        return math.sqrt(within * (1 + _normal_unsure(x, tau)))
    return math.sqrt((2 * within + between) / 3 * (1 + _unsure(x, tau)))


def _normal_unsure(x: np.ndarray, tau: float) -> float:
    r"""$2 (2M + 1) / N$ with the window M: the relative variance of $\sigma^2 \tau / N$ of a normal series (Sokal)."""
    return 2 * (2 * WINDOW * max(tau, 2.0) + 1) / x.size


def _unsure(x: np.ndarray, tau: float) -> float:
    r"""$v = \mathrm{Var}_c[T_c] / (C\, \bar T^2)$: the relative variance of $s^2 = \bar T / N$ by its parts from the C chains.

    $T_c = \frac23 \sum_{|t| \le M} c_t + \frac13 \frac{C}{C - 1} n\, \bar x_c^2$, from each chain's autocovariances $c_t$ and mean
    about the common one. Chains are independent, so this holds for series that are far from normal, where
    `_normal_unsure` is too small: one that sticks now and then owes much of its variance to few events.
    """
    chains, n = x.shape
    centred = x - x.mean()
    if is_constant(x):
        return 0.0
    scale = np.abs(centred).max()
    window = int(min(np.ceil(WINDOW * max(tau, 2.0)), n - 1))
    covariances = autocovariances(x)[:, : window + 1]
    apart = n * chains / (chains - 1) * (centred.mean(axis=1) / scale) ** 2
    parts = (2 * (2 * covariances.sum(axis=1) - covariances[:, 0]) + apart) / 3
    mean = (2 * (centred / scale).var() * tau + apart.mean()) / 3  # as `standard_error` has it, with tau at least 1
    return float(parts.var(ddof=1) / (chains * mean**2))


def _chi2_999(dof: int) -> float:
    """99.9% point of chi-square over its degrees of freedom (Wilson-Hilferty)."""
    return (1 - 2 / (9 * dof) + 3.0902 * np.sqrt(2 / (9 * dof))) ** 3


def log_mean_exp(terms: np.ndarray) -> np.ndarray:
    """The logarithm of the mean over chains and draws of e^terms (chains, draws, K): (K,)."""
    return logsumexp(terms, axis=(0, 1)) - np.log(terms.shape[0] * terms.shape[1])


def influence_of(terms: np.ndarray, log_means: np.ndarray) -> np.ndarray:
    r"""$e^{x_k - \ln\overline{e^{x_k}}} - 1$: what each draw does to the log-mean; not finite if none has a share."""
    with np.errstate(invalid="ignore"):
        return np.expm1(terms - log_means)


def covariance_of_means(x: np.ndarray) -> np.ndarray:
    r"""Covariance of the means of K series, x (chains, draws, K), up to what is common to all of them.

    $C = -\frac12 H V H$ with $V_{ab} = \mathrm{error}(x_a - x_b)^2$ and H the centring matrix, so every difference has
    just the error that `standard_error` gives it: $C_{aa} + C_{bb} - 2C_{ab} = V_{ab}$. Negative eigenvalues, which K > 2
    separate errors may cause, are set to zero; that only raises errors. A series that is not finite has an infinite
    variance.
    """
    k = x.shape[-1]
    known = np.flatnonzero(np.all(np.isfinite(x), axis=(0, 1)))
    v = np.zeros((len(known), len(known)))
    for i, a in enumerate(known):
        for j, b in enumerate(known[:i]):
            v[i, j] = v[j, i] = standard_error(x[..., a] - x[..., b]) ** 2
    covariance = np.diag(np.where(np.isin(np.arange(k), known), 0.0, np.inf))
    covariance[np.ix_(known, known)] = _gower(v)
    return covariance


def _gower(v: np.ndarray) -> np.ndarray:
    if len(v) == 0 or not np.all(np.isfinite(v)):
        return np.diag(np.full(len(v), np.inf))
    centred = v - v.mean(axis=0) - v.mean(axis=1)[:, None] + v.mean()
    values, vectors = np.linalg.eigh(-0.5 * centred)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
