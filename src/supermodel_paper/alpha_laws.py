r"""Laws of alpha that the paper writes down or needs: the line, $f = e^\alpha$ (also as printed), hats, the simplex.

Orientation as in `supermodel.exact.alpha_density`: `log_bayes_factor` $\lambda = \ln Z_{first} - \ln Z_{second}$, and the
paper's $\ell$ is $-\lambda$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, gammaln, log_softmax, logsumexp, softmax, xlogy

from supermodel.errors import CoordinateError, SupermodelError
from supermodel.exact import MixtureAlpha
from supermodel.exact.alpha_density import LogPrior, Map, flat_prior
from supermodel.exact.quadrature import Values


def exponential(alpha: np.ndarray) -> np.ndarray:
    r"""$f = e^\alpha$, for alpha in [cutoff, 0]."""
    return np.exp(alpha)


def steep(k: float) -> Map:
    r"""$f = \frac12(1 + \tanh(k(\alpha-\frac12))/\tanh(k/2))$: the model index as k grows, f = alpha as k vanishes."""
    return lambda alpha: 0.5 * (1 + np.tanh(k * (np.asarray(alpha) - 0.5)) / math.tanh(k / 2))


def gaussian_prior(mean: float = 0.5, sd: float = 1.0) -> LogPrior:
    r"""$\ln N(\alpha; \mu, s^2)$; the interval of the density truncates it.

    If it is symmetric about 1/2 then $E_{prior}[fB + 1 - f] = (B+1)/2$ has the same l in it as under a flat prior, and
    fitting the plain line is exact. An asymmetric one (N(.6, .3^2): bias 3.4) must be divided out.
    """
    return lambda alpha: -0.5 * ((np.asarray(alpha) - mean) / sd) ** 2


class Lahiri(NamedTuple):
    """Draws by rejection, and the share of the proposals that were kept."""

    alpha: np.ndarray
    acceptance: float


def lahiri(mixture: MixtureAlpha, rng: np.random.Generator, n: int) -> Lahiri:
    r"""Draw alpha from its prior, keep it with probability $(fB + 1-f)/\max(B, 1)$; until n are kept.

    Flat prior, f = alpha: the acceptance is $1/(1 + |\tanh(\lambda/2)|)$.
    """

    def from_prior(n: int) -> np.ndarray:
        flat = mixture.log_prior is flat_prior
        return rng.uniform(mixture.low, mixture.high, n) if flat else mixture.prior.sample(rng, n)

    kept: list[np.ndarray] = []
    n_kept = n_tried = 0
    top = max(mixture.log_bayes_factor, 0.0)
    while n_kept < n:
        # exactly as many as are missing, so that the last batch does not bias the acceptance
        alpha = from_prior(n - n_kept)
        good = alpha[np.log(rng.random(len(alpha))) < mixture.log_weight_of(alpha) - top]
        kept.append(good)
        n_kept, n_tried = n_kept + len(good), n_tried + len(alpha)
    return Lahiri(np.concatenate(kept), n_kept / n_tried)


# f = alpha, flat: a line m alpha + c.


def intercept(log_bayes_factor: Values) -> np.ndarray:
    r"""$c = 2/(1+B)$, the density at alpha = 0."""
    return 2 * expit(-np.asarray(log_bayes_factor, float))


def slope(log_bayes_factor: Values) -> np.ndarray:
    r"""$m = 2(1-c) = 2\tanh(\lambda/2)$."""
    return 2 * np.tanh(0.5 * np.asarray(log_bayes_factor, float))


def log_bayes_factor_from_intercept(c: Values) -> np.ndarray:
    r"""$\lambda = \ln\frac{2-c}{c}$ (2.7, with the sign of this library)."""
    c = _between("c", c, 0, 2)
    return np.log(2 - c) - np.log(c)


def log_bayes_factor_from_slope(m: Values) -> np.ndarray:
    r"""$\lambda = 2\,\mathrm{artanh}(m/2)$."""
    return 2 * np.arctanh(_between("m", m, -2, 2) / 2)


@dataclass(frozen=True)
class LineAlpha:
    r"""$p(\alpha) = m\alpha + c$ on [0, 1]: the closed form for f = alpha and a flat prior (2.6)."""

    log_bayes_factor: float

    @property
    def m(self) -> float:
        return float(slope(self.log_bayes_factor))

    @property
    def c(self) -> float:
        return float(intercept(self.log_bayes_factor))

    def pdf(self, alpha: Values) -> np.ndarray:
        alpha = np.asarray(alpha, float)
        # both terms positive: no digit is lost at the low end
        p = self.c * (1 - alpha) + float(intercept(-self.log_bayes_factor)) * alpha
        return np.where((alpha >= 0) & (alpha <= 1), p, 0.0)

    def logpdf(self, alpha: Values) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.pdf(alpha))

    def cdf(self, alpha: Values) -> np.ndarray:
        r"""$\frac12 m\alpha^2 + c\alpha$."""
        x = np.clip(np.asarray(alpha, float), 0, 1)
        return x * (self.c + 0.5 * self.m * x)

    def ppf(self, q: Values) -> np.ndarray:
        r"""$2q/(c + \sqrt{c^2 + 2mq})$."""
        q = np.asarray(q, float)
        return 2 * q / (self.c + np.sqrt(self.c**2 + 2 * self.m * q))

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n independent draws, by inversion."""
        return self.ppf(rng.random(n))


# f = e^alpha on [cutoff, 0] (Section 5).


@dataclass(frozen=True)
class ExponentialAlpha:
    r"""$p(\alpha) = a e^\alpha + b$ on $[\Lambda, 0]$, $a = (B-1)/K$, $b = 1/K$, $K = -\Lambda + (B-1)(1-e^\Lambda)$.

    errata 1.2 with B turned over. Exact for every `cutoff` = Lambda < 0, because the end alpha = -inf need not be
    reached: $B = (a+b)/b$.
    """

    log_bayes_factor: float
    cutoff: float = -4.0

    def __post_init__(self):
        _checked_cutoff(self.cutoff)

    @cached_property
    def log_norm(self) -> float:
        r"""$\ln K$, $K = Bq + (-\Lambda - q)$ with $q = 1 - e^\Lambda$: a sum of two positive terms."""
        return float(np.logaddexp(self.log_bayes_factor + math.log(-math.expm1(self.cutoff)), _log_rest(self.cutoff)))

    @property
    def a(self) -> float:
        return math.exp(self.log_bayes_factor - self.log_norm) - self.b

    @property
    def b(self) -> float:
        return math.exp(-self.log_norm)

    def logpdf(self, alpha: Values) -> np.ndarray:
        alpha = np.asarray(alpha, float)
        inside = (alpha >= self.cutoff) & (alpha <= 0)
        alpha = np.where(inside, alpha, self.cutoff)
        with np.errstate(divide="ignore"):
            value = np.logaddexp(alpha + self.log_bayes_factor, np.log(-np.expm1(alpha))) - self.log_norm
        return np.where(inside, value, -np.inf)

    def pdf(self, alpha: Values) -> np.ndarray:
        return np.exp(self.logpdf(alpha))

    def cdf(self, alpha: Values) -> np.ndarray:
        r"""$a(e^\alpha - e^\Lambda) + b(\alpha - \Lambda)$."""
        x = np.clip(np.asarray(alpha, float), self.cutoff, 0)
        return self.a * (np.exp(x) - math.exp(self.cutoff)) + self.b * (x - self.cutoff)


def log_bayes_factor_from_b(b: Values, cutoff: float) -> np.ndarray:
    r"""$\lambda = \ln\left(\frac{1/b + \Lambda}{1-e^\Lambda} + 1\right)$: the exact form, turned round."""
    q = -math.expm1(_checked_cutoff(cutoff))
    return np.log((1 / np.asarray(b, float) + cutoff) / q + 1)


def printed_b(log_bayes_factor: Values, cutoff: float) -> np.ndarray:
    r"""$b = \frac{1-e^{\Lambda-\ell}}{e^{-\ell}(\Lambda e^\Lambda+1-e^\Lambda)-(\Lambda+1-e^\Lambda)}$ (5.2).

    As printed, with $\ell = -\lambda$. Right for the definition printed with it, $B_{21} = (ae^\Lambda+b)/(a+b)$, which
    is not the Bayes factor (E14): see `printed_log_bayes_factor`.
    """
    B, e = np.exp(np.asarray(log_bayes_factor, float)), math.exp(_checked_cutoff(cutoff))
    return (1 - e * B) / (B * (cutoff * e + 1 - e) - (cutoff + 1 - e))


def printed_log_bayes_factor(log_bayes_factor: Values, cutoff: float = -4.0) -> np.ndarray:
    r"""$\lambda' = -\ln(e^\Lambda + (1-e^\Lambda)e^{-\lambda})$: what a fit of the printed form returns (E14).

    It never exceeds $-\Lambda$.
    """
    return -np.logaddexp(_checked_cutoff(cutoff), math.log(-math.expm1(cutoff)) - np.asarray(log_bayes_factor, float))


def cured_log_bayes_factor(printed: Values, cutoff: float = -4.0) -> np.ndarray:
    r"""$\lambda = -\ln\frac{e^{-\lambda'} - e^\Lambda}{1-e^\Lambda}$: the bias of the printed form removed.

    NaN where $\lambda' > -\Lambda$, which the printed form cannot give.
    """
    printed = np.asarray(printed, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return printed - np.log1p(-np.exp(_checked_cutoff(cutoff) + printed)) + math.log(-math.expm1(cutoff))


# More than two models.


def hats(alpha: Values, n_models: int) -> np.ndarray:
    r"""$h_i(\alpha) = \max(0, 1 - |\alpha - i|)$, (..., n_models): model i alone at alpha = i."""
    return np.clip(1 - np.abs(np.asarray(alpha, float)[..., None] - np.arange(n_models)), 0, None)


@dataclass(frozen=True, eq=False)
class HatAlpha:
    r"""$p(\alpha) = \sum_i Z_i h_i(\alpha) / \sum_i Z_i \int h_i$ on [0, K-1]: piecewise linear, $p(i) \propto Z_i$."""

    log_evidences: np.ndarray  # (K,)

    def __post_init__(self):
        object.__setattr__(self, "log_evidences", _checked_evidences(self.log_evidences))

    @cached_property
    def node_values(self) -> np.ndarray:
        r"""$p(i)$ at the nodes; $\int h_i$ is 1, and 1/2 at both ends."""
        halves = np.ones(len(self.log_evidences))
        halves[[0, -1]] = 0.5
        return np.exp(self.log_evidences - logsumexp(self.log_evidences, b=halves))

    @cached_property
    def _below(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(0.5 * (self.node_values[1:] + self.node_values[:-1]))])

    def pdf(self, alpha: Values) -> np.ndarray:
        return hats(alpha, len(self.node_values)) @ self.node_values * self._inside(alpha)

    def _inside(self, alpha: Values) -> np.ndarray:
        return (np.asarray(alpha) >= 0) & (np.asarray(alpha) <= len(self.node_values) - 1)

    def cdf(self, alpha: Values) -> np.ndarray:
        p, last = self.node_values, len(self.node_values) - 1
        x = np.clip(np.asarray(alpha, float), 0, last)
        i = np.minimum(x.astype(int), last - 1)
        t = x - i
        return self._below[i] + t * (p[i] + 0.5 * t * (p[i + 1] - p[i]))

    def ppf(self, q: Values) -> np.ndarray:
        p, q = self.node_values, np.asarray(q, float)
        i = np.clip(np.searchsorted(self._below, q, side="right") - 1, 0, len(p) - 2)
        rest = np.maximum(q - self._below[i], 0)
        root = np.sqrt(np.maximum(p[i] ** 2 + 2 * (p[i + 1] - p[i]) * rest, 0))
        # the quotient is 0/0 only where both nodes are empty
        return np.minimum(i + 2 * rest / np.maximum(p[i] + root, 1e-300), i + 1)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n independent draws, by inversion."""
        return self.ppf(rng.random(n))


@dataclass(frozen=True, eq=False)
class SimplexAlpha:
    r"""$p(\alpha) = \sum_i \pi_i\, \mathrm{Dir}(\alpha; a + e_i)$, $\pi_i \propto a_i Z_i$: K models on a simplex.

    `concentration` = a of the Dirichlet prior; 1 is flat: then $p = K!\sum_i \pi_i\alpha_i$, $K!\,\pi_i$ at vertex i.
    """

    log_evidences: np.ndarray  # (K,)
    concentration: Any = 1.0  # a scalar or (K,)

    def __post_init__(self):
        log_evidences = _checked_evidences(self.log_evidences)
        a = np.broadcast_to(np.asarray(self.concentration, float), log_evidences.shape)
        if not np.all(a > 0):
            raise CoordinateError(
                f"the concentration of a simplex of models is {a.tolist()}; a Dirichlet prior needs positive values."
            )
        object.__setattr__(self, "log_evidences", log_evidences)
        object.__setattr__(self, "concentration", a)

    @cached_property
    def probabilities(self) -> np.ndarray:
        r"""$\pi_i = a_i Z_i/\sum_j a_j Z_j$, the posterior probabilities of the models."""
        return softmax(self.log_evidences + np.log(self.concentration))

    @property
    def mean(self) -> np.ndarray:
        r"""$E[\alpha_i] = (a_i + \pi_i)/(1 + \sum_j a_j)$; flat: $(1+\pi_i)/(K+1)$."""
        return (self.concentration + self.probabilities) / (1 + self.concentration.sum())

    def logpdf(self, alpha: Values) -> np.ndarray:
        """Density on the simplex, in its first K-1 coordinates; alpha (..., K)."""
        alpha, a = np.asarray(alpha, float), self.concentration
        log_dirichlet = xlogy(a - 1, alpha).sum(axis=-1) + gammaln(a.sum()) - gammaln(a).sum()
        log_pi = log_softmax(self.log_evidences + np.log(a))
        # Dir(a + e_i) = Dir(a) alpha_i sum(a) / a_i
        with np.errstate(divide="ignore"):
            return log_dirichlet + logsumexp(log_pi - np.log(a) + np.log(alpha), axis=-1) + math.log(a.sum())

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n independent draws, (n, K): pick a model, then a point of its Dirichlet density."""
        model = rng.choice(len(self.probabilities), size=n, p=self.probabilities)
        gamma = rng.standard_gamma(self.concentration + np.eye(len(self.probabilities))[model])
        return gamma / gamma.sum(axis=1, keepdims=True)


def _between(name: str, value: Values, low: float, high: float) -> np.ndarray:
    value = np.asarray(value, float)
    if np.any((value <= low) | (value >= high)):
        raise SupermodelError(
            f"the line m alpha + c has {name} = {value}; outside ({low}, {high}) it is no positive density on [0, 1] "
            "and has no Bayes factor. Fit the line with this limit."
        )
    return value


def _checked_cutoff(cutoff: float) -> float:
    if not (math.isfinite(cutoff) and cutoff < 0):
        raise CoordinateError(
            f"cutoff is {cutoff}; f = e^alpha lives on [cutoff, 0] and needs a finite negative cutoff (the paper: -4)."
        )
    return float(cutoff)


def _log_rest(cutoff: float) -> float:
    r"""$\ln(-\Lambda - 1 + e^\Lambda)$, the integral of $1 - e^\alpha$."""
    if cutoff > -1e-2:  # the series, where -Lambda - q would lose its digits
        return math.log(cutoff**2 / 2) + math.log1p(cutoff / 3 * (1 + cutoff / 4 * (1 + cutoff / 5 * (1 + cutoff / 6))))
    return math.log(-cutoff + math.expm1(cutoff))


def _checked_evidences(log_evidences: Values) -> np.ndarray:
    log_evidences = np.asarray(log_evidences, float)
    if log_evidences.ndim != 1 or len(log_evidences) < 2 or not np.all(np.isfinite(log_evidences)):
        raise SupermodelError(
            f"log_evidences are {log_evidences.tolist()}; two or more finite values are needed, one for each model."
        )
    return log_evidences
