r"""$\sigma^2 = \tau / (N I)$, $I = \mathrm{Var}[w(\alpha)|D]$: how well N draws of alpha can know the Bayes factor.

Orientation: `log_bayes_factor` $\lambda = \ln Z_{first} - \ln Z_{second}$, weight 1 wholly first; the paper's l is
$-\lambda$. A tilt eta, $L_S = f e^\eta L_1 + (1-f) L_2$, replaces lambda by lambda + eta (l by l - eta).
Section numbers are those of docs/paper/errata.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from supermodel.errors import SupermodelError
from supermodel.exact.alpha_density import LogPrior, Map, MixtureAlpha, flat_prior, identity
from supermodel.exact.quadrature import Values


def information(
    log_bayes_factor: float,
    f: Map = identity,
    log_prior: LogPrior = flat_prior,
    low: float = 0.0,
    high: float = 1.0,
    tilt: float = 0.0,
) -> float:
    r"""$I = \mathrm{Var}[w|D]$, $w = fB/(fB+1-f)$: the Fisher information of one independent alpha (3.1)."""
    return MixtureAlpha(log_bayes_factor + tilt, f, log_prior, low, high).information


def information_line(log_bayes_factor: Values) -> np.ndarray:
    r"""$I = (1-r^2)^2\,\frac{l-2r}{8r^3}$, $r = \tanh(l/2)$: f = alpha, flat. Even in l, 1/12 at l = 0."""
    l = np.abs(np.asarray(log_bayes_factor, float))  # noqa: E741
    r = np.tanh(l / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = (l - 2 * r) / (8 * r**3)
    # l - 2r = 2 (r^3/3 + r^5/5 + ...) loses all its digits as l -> 0
    series = sum(r ** (2 * k) / (2 * k + 3) for k in range(16)) / 4
    return sech2(l) ** 2 * np.where(r < 0.25, series, direct)


def information_index(log_bayes_factor: Values) -> np.ndarray:
    r"""$I = B/(1+B)^2$: a model index, or the limit of a steep f."""
    return sech2(np.asarray(log_bayes_factor, float)) / 4


def information_exponential(log_bayes_factor: float, cutoff: float = -4.0) -> float:
    r"""$I = \frac1K\left[\frac{q}{1-B} + \frac{B\ln(B+(1-B)e^\Lambda)}{(1-B)^2}\right] - \frac{q^2}{K^2}$: f = e^alpha.

    Flat on [cutoff, 0]; $B = e^l = e^{-\lambda}$, $q = 1-e^\Lambda$, $K = -\Lambda B + (1-B)q$. Near B = 1, for a short
    interval and for extreme B the terms cancel; there the variance is taken by quadrature.
    """
    _need_positive(length_of_interval=-cutoff)
    l = -float(log_bayes_factor)  # noqa: E741
    if abs(l) < 0.1 or cutoff > -5e-2 or abs(l) > 8:
        return _variance_of_share(l, cutoff)
    B, e, q = math.exp(l), math.exp(cutoff), -math.expm1(cutoff)
    K = -cutoff * B + (1 - B) * q
    return (q / (1 - B) + B * math.log(B + (1 - B) * e) / (1 - B) ** 2) / K - (q / K) ** 2


def _variance_of_share(l: float, cutoff: float) -> float:  # noqa: E741
    """Var[w] for f = e^alpha on a rule that is graded towards alpha = 0, where w varies on the scale of 1/B."""
    z, weight = np.polynomial.legendre.leggauss(32)
    quarters = 1 - np.arange(4) / 8
    edges = cutoff * np.append(np.ravel(0.5 ** np.arange(60)[:, None] * quarters), 0.0)
    half = 0.5 * np.diff(edges)[:, None]
    alpha = edges[:-1, None] + half * (1 + z)
    log_first, log_second = alpha, np.log(-np.expm1(alpha)) + l
    log_p = np.logaddexp(log_first, log_second)
    p = np.exp(log_p - log_p.max()) * half * weight
    w = expit(log_first - log_second)
    mean = (p * w).sum() / p.sum()
    return float((p * (w - mean) ** 2).sum() / p.sum())


def sigma(log_bayes_factor: float, n: float, f: Map = identity, tau: float = 1.0, **law: Any) -> float:
    r"""$\sigma(\lambda) = \sqrt{\tau/(N I)}$ for n draws whose score w has the autocorrelation time tau (1.4).

    `law`: the further arguments of `information` (log_prior, low, high, tilt).
    """
    _need_positive(n=n, tau=tau)
    return math.sqrt(tau / (n * information(log_bayes_factor, f, **law)))


def sigma_line(log_bayes_factor: Values, n: float, tau: float = 1.0) -> np.ndarray:
    r"""$\sigma = \sqrt{\frac{8r^3}{l-2r}}\,\frac{1}{\sqrt N\,c(2-c)}$: f = alpha, flat (1.1)."""
    _need_positive(n=n, tau=tau)
    return np.sqrt(tau / (n * information_line(log_bayes_factor)))


def samples_needed(log_bayes_factor: float, error: float, **law: Any) -> int:
    r"""$N = \lceil \tau/(I \sigma^2) \rceil$: the draws that bring the standard error down to `error`.

    `law`: the further arguments of `sigma` (f, log_prior, low, high, tilt, tau).

    >>> samples_needed(4.88, 0.17)
    101443
    """
    _need_positive(error=error)
    return math.ceil((sigma(log_bayes_factor, 1.0, **law) / error) ** 2)


class Cutoff(NamedTuple):
    """The best interval [cutoff, 0] for f = e^alpha, and sigma sqrt(N) there."""

    cutoff: float
    sigma_sqrt_n: float


def optimum_cutoff(log_bayes_factor: float) -> Cutoff:
    r"""$\arg\max_\Lambda I(\lambda, \Lambda)$ for f = e^alpha (3.3); usable only with a fit of $a e^\alpha + b$."""
    from scipy.optimize import minimize_scalar

    loss = lambda log_length: -math.log(information_exponential(log_bayes_factor, -math.exp(log_length)))  # noqa: E731
    # a coarse look first: the loss is flat at both ends, where a bracketing search would go astray
    lengths = np.linspace(math.log(1e-6), math.log(2e3), 45)
    best = min(range(1, len(lengths) - 1), key=lambda i: loss(lengths[i]))
    bounds = (lengths[best - 1], lengths[best + 1])
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-7})
    return Cutoff(-math.exp(found.x), math.exp(found.fun / 2))


# Rao-Blackwell with tilt (3.4).


def rao_blackwell_sigma(
    log_bayes_factor: float, n: float, overlap: float = 0.0, tilt: float = 0.0, tau: float = 1.0
) -> float:
    r"""$\sigma^2 = \tau\,\frac{1-O}{N P(1-P)}$, $P = 1/(1+e^{-\lambda-\eta})$: the mean share instead of alpha.

    `overlap` = O of the two posteriors at this tilt; 0 gives the model index, the worst case.
    """
    _need_positive(n=n, tau=tau)
    if not 0 <= overlap < 1:
        raise SupermodelError(
            f"rao_blackwell_sigma got overlap = {overlap}; it lies in [0, 1): at 1 the two posteriors are the same and "
            "the error vanishes. Take 0 as the worst case."
        )
    return math.sqrt(tau * (1 - overlap) / (n * float(information_index(log_bayes_factor + tilt))))


# Appendix D: errors from a histogram.


def binned_sigma(log_bayes_factor: float, counts: Values) -> float:
    r"""$\sigma^2 = \left[\frac{2}{c(2-c)}\right]^2 \frac{(m/N)^2}{\sum_i (1-2a_i)^2/n_i}$: Poisson weights (1.1).

    `counts` = n_i, observed or expected; an empty bin has no weight of its own and is left out.
    """
    counts = np.asarray(counts, float)
    lever, full = 1 - 2 * bin_centres(len(counts)), counts > 0
    weight = (lever[full] ** 2 / counts[full]).sum()
    return float(2 / sech2(log_bayes_factor) * len(counts) / counts.sum() / np.sqrt(weight))


def bin_centres(bins: int) -> np.ndarray:
    """The centres of equal bins of [0, 1]."""
    return (np.arange(bins) + 0.5) / bins


def sech2(l: Values) -> np.ndarray:  # noqa: E741
    r"""$1 - \tanh^2(l/2) = c(2-c)$, without the difference."""
    l = np.asarray(l, float)  # noqa: E741
    return 4 * expit(l) * expit(-l)


def _need_positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise SupermodelError(
                f"the precision law got {name} = {value}; it is divided by, or a root is taken of it. "
                f"Give a positive {name}."
            )
