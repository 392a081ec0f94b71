r"""$\ln R = \ln Z_{ab} - \ln Z_a - \ln Z_b = \ln I + \ln S$: what the data sets say of each other, each with its error.

With $D_k = \langle \ln L_k \rangle_k - \ln Z_k$, the information gained (Kullback-Leibler divergence of posterior from prior),

$$ \ln I = D_a + D_b - D_{ab}, \qquad
   \ln S = \ln R - \ln I = \langle \ln L_{ab} \rangle_{ab} - \langle \ln L_a \rangle_a - \langle \ln L_b \rangle_b . $$

The evidences cancel in $\ln S$: its error is that of three posterior means, whatever the error of the evidences. The
dimensionality of each posterior is $d_k = 2 \, \mathrm{var}_k(\ln L_k)$, and $d = d_a + d_b - d_{ab}$ counts the parameters that
both constrain; where the posteriors are normal and the data agree, $d - 2 \ln S$ follows $\chi^2_d$ (Handley & Lemos 2019).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from supermodel.estimation.estimate import Estimate

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison

TINY = 1e-290  # p below which a double holds too few digits of it
TERMS = 200  # of the continued fraction: far out a few would do
STEP = 1e-4  # of the slope of p and sigma in ln S and d


@dataclass(frozen=True, eq=False)
class Quantities:
    """The numbers, from one comparison of the models of the first data set, of the second, and of both."""

    comparison: Comparison
    names: tuple[str, str, str]  # first, second, both

    # -- from the evidences -----------------------------------------------------------------------------------------

    @cached_property
    def log_r(self) -> Estimate:
        """The error is that of the sum, with the covariance that shared ways to the reference give the three."""
        evidences = self.comparison.evidences
        sign = np.zeros(len(evidences.names))
        for name, s in zip(self.names, (-1.0, -1.0, 1.0), strict=True):
            sign[evidences.index(name)] = s
        variance = sign @ evidences.covariance @ sign
        return Estimate(float(sign @ evidences.values), float(np.sqrt(max(variance, 0.0))))

    # -- from the posteriors ----------------------------------------------------------------------------------------

    def _means(self, of: Callable[[np.ndarray, float], np.ndarray], signs: tuple[float, float, float]) -> Estimate:
        """A sum of posterior means of functions of (ln L, its mean), whose draws are independent of each other."""
        value, variance = 0.0, 0.0
        for name, sign in zip(self.names, signs, strict=True):
            posterior = self.comparison.posterior(name)
            each = of(self._log_likelihood(name), self.fit(name).value)
            value += sign * float(posterior.average(each))
            variance += float(posterior.average_error(each)) ** 2
        return Estimate(value, float(np.sqrt(variance)))

    def _log_likelihood(self, name: str) -> np.ndarray:
        """ln L of each draw; one without weight has none to be counted, and may be impossible."""
        posterior = self.comparison.posterior(name)
        return np.where(posterior.weights > 0, posterior.log_likelihood, 0.0)

    def fit(self, name: str) -> Estimate:
        r"""$\langle \ln L \rangle$ of one of the three."""
        return self.comparison.split(name).fit

    def information(self, name: str) -> Estimate:
        r"""$D = \langle \ln L \rangle - \ln Z$ of one of the three."""
        fit, evidence = self.fit(name), self.comparison.log_evidence(name)
        return Estimate(fit.value - evidence.value, float(np.hypot(fit.error, evidence.error)))

    def dimensionality_of(self, name: str) -> Estimate:
        r"""$2 \, \mathrm{var}(\ln L)$: how many parameters the data of one of the three constrain."""
        posterior, log_likelihood = self.comparison.posterior(name), self._log_likelihood(name)
        each = 2 * (log_likelihood - self.fit(name).value) ** 2
        return Estimate(float(posterior.average(each)), float(posterior.average_error(each)))

    @cached_property
    def log_s(self) -> Estimate:
        return self._means(lambda log_likelihood, _: log_likelihood, (-1.0, -1.0, 1.0))

    @cached_property
    def log_i(self) -> Estimate:
        """Its error is that of ln R and of ln S together: ln I = ln R - ln S."""
        return Estimate(self.log_r.value - self.log_s.value, float(np.hypot(self.log_r.error, self.log_s.error)))

    @cached_property
    def dimensionality(self) -> Estimate:
        return self._means(lambda log_likelihood, mean: 2 * (log_likelihood - mean) ** 2, (1.0, 1.0, -1.0))

    # -- p and sigma ------------------------------------------------------------------------------------------------

    @cached_property
    def p(self) -> Estimate:
        r"""The probability that data sets of one universe disagree as much: $P(\chi^2_d > d - 2 \ln S)$."""
        return self._derived(lambda log_s, d: float(stats.chi2.sf(d - 2 * log_s, d)))

    @cached_property
    def sigma(self) -> Estimate:
        """The same as so many standard deviations of a normal law, on both sides."""
        return self._derived(two_sided)

    def _derived(self, of: Callable[[float, float], float]) -> Estimate:
        """A function of (ln S, d), whose error minds that both are of the same draws."""
        log_s, d = self.log_s.value, self.dimensionality.value
        if not d > 0:
            return Estimate(float("nan"), float("nan"))
        up = min(STEP, 0.1 * d)
        by_s = (of(log_s + up, d) - of(log_s - up, d)) / (2 * up)
        by_d = (of(log_s, d + up) - of(log_s, d - up)) / (2 * up)

        def slope(log_likelihood: np.ndarray, mean: float, sign: float) -> np.ndarray:
            return sign * (by_s * log_likelihood - 2 * by_d * (log_likelihood - mean) ** 2)

        variance = 0.0
        for name, sign in zip(self.names, (-1.0, -1.0, 1.0), strict=True):
            each = slope(self._log_likelihood(name), self.fit(name).value, sign)
            variance += float(self.comparison.posterior(name).average_error(each)) ** 2
        return Estimate(of(log_s, d), float(np.sqrt(variance)))


def two_sided(log_s: float, d: float) -> float:
    """p as standard deviations: p = 0.0455 is 2; 0 where the data agree better than any could disagree."""
    p = stats.chi2.sf(d - 2 * log_s, d)
    if p > TINY:
        return float(max(stats.norm.isf(p / 2), 0.0))
    # Too small to be written down: ln(p / 2) = ln Q(sigma), by Newton's steps from its first term.
    wanted = _log_tail(0.5 * d, 0.5 * d - log_s) - np.log(2.0)
    sigma = np.sqrt(-2 * wanted)
    for _ in range(50):
        value = stats.norm.logsf(sigma)
        sigma += (value - wanted) * np.exp(value - stats.norm.logpdf(sigma))
    return float(sigma)


def _log_tail(a: float, x: float) -> float:
    r"""$\ln \Gamma(a, x) / \Gamma(a)$ far out, by Legendre's continued fraction
    $\Gamma(a, x) = e^{-x} x^a / (x + 1 - a - \frac{1 (1 - a)}{x + 3 - a - \cdots})$.
    """
    fraction = 0.0
    for i in range(TERMS, 0, -1):
        fraction = i * (i - a) / (x + 2 * i + 1 - a - fraction)
    return float(a * np.log(x) - x - np.log(x + 1 - a - fraction) - special.gammaln(a))
