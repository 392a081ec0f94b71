r"""Whether chains agree on a parameter: bulk ESS and R-hat of rank-normalised draws, and what chains remember.

The definitions are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), which ArviZ and Stan print. `x` is
(chains, draws) throughout; what is not finite or never moves gives NaN.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import fft
from scipy.special import ndtri, stdtr

from supermodel.estimation.error import as_chains, is_constant


def ranks(x: np.ndarray) -> np.ndarray:
    """The rank of every number among all of them, 1 for the least; equal ones share the mean of theirs."""
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts - 1))[which].reshape(np.shape(x))


def normal_scores(x: np.ndarray) -> np.ndarray:
    r"""$\Phi^{-1}\left((r - 3/8) / (S + 1/4)\right)$ with the ranks r of the S numbers: their order, without their tails."""
    return ndtri((ranks(x) - 0.375) / (np.size(x) + 0.25))


def halves(x: np.ndarray) -> np.ndarray:
    """Both halves of every chain, as chains of their own."""
    n = x.shape[1] // 2
    return np.concatenate([x[:, :n], x[:, -n:]])


def potential_scale_reduction(parts: np.ndarray) -> float:
    r"""$\hat R = \sqrt{\frac{n-1}{n} + \frac{B}{nW}}$ of chains as they are given; infinite where none of them moves."""
    n, within = parts.shape[1], parts.var(axis=1, ddof=1).mean()
    return float(math.sqrt((n - 1) / n + parts.mean(axis=1).var(ddof=1) / within)) if within > 0 else math.inf


def rank_rhat(x: np.ndarray) -> float:
    """R-hat of the half chains' normal scores, of the draws or of their distance from the median, whichever is worse.

    NaN for a single chain. Below 1.01 is the usual standard, made for four chains with 100 effective draws each.
    """
    x = as_chains(x)
    if len(x) < 2 or not _is_usable(x):
        return math.nan
    parts = halves(x)
    folded = np.abs(parts - np.median(parts))
    return max(potential_scale_reduction(normal_scores(each)) for each in (parts, folded))


def bulk_ess(x: np.ndarray) -> float:
    """Effective draws by the half chains' normal scores: of the bulk, whatever the tails."""
    x = as_chains(x)
    return _size(normal_scores(halves(x))) if _is_usable(x) else math.nan


def mean_ess(x: np.ndarray) -> float:
    """Effective draws of the mean: by the half chains as they are."""
    x = as_chains(x)
    return _size(halves(x)) if _is_usable(x) else math.nan


def _size(z: np.ndarray) -> float:
    r"""$S / \tau$, $\tau = -1 + 2 \sum_t \rho_t$, of chains, summed by Geyer's rule.

    $\rho_t$ is taken about the common mean of all chains, so chains that stand apart look as correlated as they are. The
    sum of pairs $\rho_{2k} + \rho_{2k+1}$, which for a reversible chain are positive and fall, ends at the first that is
    not positive. Antithetic chains may be worth more than their number of draws, by a factor of log10 S at most.
    """
    n = z.shape[1]
    size = fft.next_fast_len(2 * n, real=True)  # padded: no lag wraps around
    spectrum = np.abs(fft.rfft(z - z.mean(axis=1, keepdims=True), size, axis=1)) ** 2
    covariance = fft.irfft(spectrum, size, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    rho = 1.0 - (within - covariance) / (covariance[0] + z.mean(axis=1).var(ddof=1))
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    last = max(math.ceil((n - 2) / 2) - 1, 0)  # the last lags are noise
    ends = np.flatnonzero(pairs[1 : last + 1] <= 0)
    end = int(ends[0]) + 1 if len(ends) else last
    tau = -1.0 + 2.0 * np.minimum.accumulate(pairs[:end]).sum() + max(rho[2 * end], 0.0)
    return float(z.size / max(tau, 1.0 / math.log10(z.size)))


def memory(x: np.ndarray) -> float:
    """The probability that chance alone makes chains look as if they remembered where they were.

    A chain that moves freely has forgotten its first third by the last one. Over chains, the ranks of the two thirds'
    means are then uncorrelated; chains that are stuck apart keep their order. Small where they do; 1 for fewer than
    eight chains or nine draws, which tell nothing.
    """
    x = as_chains(x)
    chains, third = len(x), x.shape[1] // 3
    if chains < 8 or third < 3 or not _is_usable(x):
        return 1.0
    first, last = (ranks(part.mean(axis=1)) for part in (x[:, :third], x[:, -third:]))
    r = float(np.corrcoef(first, last)[0, 1])
    if not r < 1.0:
        return 0.0 if r >= 1.0 else 1.0
    return float(stdtr(chains - 2, -r * math.sqrt((chains - 2) / (1.0 - r**2))))


def _is_usable(x: np.ndarray) -> bool:
    return bool(x.shape[1] >= 4 and np.all(np.isfinite(x)) and not is_constant(x))
