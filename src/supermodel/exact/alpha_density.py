r"""$p(\alpha|D) \propto p(\alpha)\,[f B + (1-f)]$: exact densities of alpha under the combined likelihood.

Orientation: weight f = 1 is wholly the first model and $B = e^\lambda$ with `log_bayes_factor`
$\lambda = \ln Z_{first} - \ln Z_{second}$. The paper's $\ell = \ln B_{21}$, with its M1 as first, is $-\lambda$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from supermodel.errors import CoordinateError, SupermodelError
from supermodel.exact.quadrature import Density, Values

Map = Callable[[np.ndarray], np.ndarray]  # alpha -> f(alpha) in [0, 1]
LogPrior = Callable[[np.ndarray], np.ndarray]  # alpha -> ln p(alpha), up to a constant


def identity(alpha: np.ndarray) -> np.ndarray:
    r"""$f = \alpha$."""
    return alpha


def flat_prior(alpha: np.ndarray) -> np.ndarray:
    """A constant."""
    return np.zeros_like(np.asarray(alpha, float))


@dataclass(frozen=True, eq=False)
class MixtureAlpha:
    r"""$p(\alpha|D) = p(\alpha)\,[fB + 1-f] / E_{prior}[fB + 1-f]$ on [low, high], $B = e^{\lambda}$.

    `f` maps alpha into [0, 1]; `log_prior` need not be normalised.
    """

    log_bayes_factor: float
    f: Map = identity
    log_prior: LogPrior = flat_prior
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self):
        if not math.isfinite(self.log_bayes_factor):
            raise SupermodelError(
                f"MixtureAlpha got log_bayes_factor = {self.log_bayes_factor}; with no finite ratio alpha has no "
                "density. Give ln Z_first - ln Z_second."
            )
        f = np.asarray(self.f(np.linspace(self.low, self.high, 257)))
        # the limit of 1e-12 lets rounding pass, as in tanh(x)/tanh(x)
        if not (np.all(f >= -1e-12) and np.all(f <= 1 + 1e-12)):
            raise CoordinateError(
                f"f maps [{self.low}, {self.high}] onto values from {f.min()} to {f.max()}; outside [0, 1] the "
                "combined likelihood is negative somewhere and is no likelihood. Change f or the interval."
            )

    def log_weight_of(self, alpha: Values) -> np.ndarray:
        r"""$\ln(fB + 1 - f)$."""
        f = np.clip(self.f(np.asarray(alpha, float)), 0, 1)
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log(f) + self.log_bayes_factor, np.log1p(-f))

    @cached_property
    def prior(self) -> Density:
        return Density(self.log_prior, self.low, self.high)

    @cached_property
    def density(self) -> Density:
        return Density(lambda alpha: self.log_prior(alpha) + self.log_weight_of(alpha), self.low, self.high)

    @cached_property
    def log_norm(self) -> float:
        r"""$\ln E_{prior}[fB + 1 - f]$."""
        return self.density.log_norm - self.prior.log_norm

    def logpdf(self, alpha: Values) -> np.ndarray:
        return self.density.logpdf(alpha)

    def pdf(self, alpha: Values) -> np.ndarray:
        return self.density.pdf(alpha)

    def cdf(self, alpha: Values) -> np.ndarray:
        return self.density.cdf(alpha)

    def ppf(self, q: Values) -> np.ndarray:
        return self.density.ppf(q)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n independent draws, by inversion."""
        return self.density.sample(rng, n)

    def share(self, alpha: Values) -> np.ndarray:
        r"""$w(\alpha) = fB/(fB + 1-f) = P(\text{first} | \alpha, D)$: the score of the Bayes factor."""
        f = np.clip(self.f(np.asarray(alpha, float)), 0, 1)
        with np.errstate(divide="ignore"):
            return expit(np.log(f) - np.log1p(-f) + self.log_bayes_factor)

    @cached_property
    def prior_mean_weight(self) -> float:
        r"""$\bar f = E_{prior}[f]$: the prior probability of the first model, once alpha is integrated out."""
        return self.prior.expectation(self.f)

    @cached_property
    def probability(self) -> float:
        r"""$E[w|D] = \bar f B/(\bar f B + 1 - \bar f)$: the posterior probability of the first model."""
        mean = self.prior_mean_weight
        return float(expit(math.log(mean) - math.log1p(-mean) + self.log_bayes_factor))

    @cached_property
    def information(self) -> float:
        r"""$I = \mathrm{Var}[w(\alpha) | D]$: what one independent alpha tells about $\lambda$ (errata 3.1)."""
        return self.density.expectation(lambda alpha: (self.share(alpha) - self.probability) ** 2)
