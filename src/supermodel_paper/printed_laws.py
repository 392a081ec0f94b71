r"""The paper's own laws of precision, (2.8) and Appendix D as printed, and the overlap of two posteriors by quadrature.

Orientation as in `supermodel.estimation.by_alpha.precision`, which has the laws that hold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from supermodel.estimation.by_alpha.precision import bin_centres, sech2
from supermodel.exact.quadrature import Box, LogJoint, Values, expectation_by_quadrature
from supermodel_paper.alpha_laws import intercept, slope


def paper_law(log_bayes_factor: Values, n: float) -> np.ndarray:
    r"""$1/(\sqrt N\,c(2-c))$: (2.8) with the constant 1. The true constant falls from 3.46 at l = 0 to 1 at l = 10."""
    return 1 / (math.sqrt(n) * sech2(np.asarray(log_bayes_factor, float)))


class Overlap(NamedTuple):
    r"""$O = \int \frac{p_1 p_2}{P p_1 + (1-P) p_2}$, the probability P, $\lambda$, and $\sigma\sqrt N$."""

    overlap: float
    probability: float
    log_bayes_factor: float
    sigma_sqrt_n: float


def overlap_by_quadrature(first: LogJoint, second: LogJoint, box: Box, tilt: float = 0.0, **options) -> Overlap:
    r"""$O = 1 - \mathrm{Var}(w)/(P(1-P))$, $w = \frac{e^\eta L_1\pi}{e^\eta L_1\pi + L_2\pi}$, for 1 to 3 parameters.

    `first` and `second` are log joints over the same parameters (a parameter that a model lacks keeps its prior).
    """

    def joint(theta: np.ndarray) -> np.ndarray:
        return np.logaddexp(tilt + first(theta), second(theta))

    def shares(theta: np.ndarray) -> np.ndarray:
        log_odds = tilt + first(theta) - second(theta)
        w = expit(log_odds)
        return np.column_stack([w, expit(-log_odds), w * expit(-log_odds)])

    p, q, pq = expectation_by_quadrature(joint, box, shares, **options).value
    # E[w(1-w)] = P(1-P) O: the overlap itself, without the difference of a variance
    overlap = pq / (p * q)
    return Overlap(overlap, p, math.log(p) - math.log(q) - tilt, math.sqrt((1 - overlap) / (p * q)))


def expected_counts(log_bayes_factor: float, n: float, bins: int) -> np.ndarray:
    r"""$n_i = \frac Nm (m_{slope}\, a_i + c)$ at the centres $a_i$ of equal bins of [0, 1]."""
    return n / bins * (slope(log_bayes_factor) * bin_centres(bins) + intercept(log_bayes_factor))


def printed_binned_sigma(log_bayes_factor: float, counts: Values) -> float:
    r"""$\sigma^2 = \frac{4m}{N c^2(2-c)^2} \sum_i \frac{n_i}{(1-2a_i)^2}$ as printed (E13): wrong, for comparison only.

    It does not fall with N, grows with m, and is infinite for odd m.
    """
    counts = np.asarray(counts, float)
    with np.errstate(divide="ignore"):
        terms = counts / (1 - 2 * bin_centres(len(counts))) ** 2
    return float(2 / sech2(log_bayes_factor) * np.sqrt(len(counts) / counts.sum() * terms.sum()))
