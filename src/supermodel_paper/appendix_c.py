r"""Appendix C: the combined likelihood of nested linear models, with its errors removed (errata E9-E11). p(alpha) is a line.

$\theta = (\phi_1, \phi_2)$, with $\phi_2$ = theta[columns]; the second model has $\phi_2 = 0$.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from supermodel.errors import DataError
from supermodel.exact import LinearGaussian
from supermodel.exact.linear_gaussian import LOG_2PI, log_det
from supermodel.exact.nested_pair import Columns, need_appendix_prior, split_columns
from supermodel.exact.quadrature import Values


def log_likelihood_ratio(model: LinearGaussian, columns: Columns, theta: Values) -> np.ndarray:
    r"""$\ln L_1 - \ln L_2 = \phi_2^T D_2^T (b - D_1\phi_1 - \frac12 D_2\phi_2)$ (Appendix C, E11), theta (..., d).

    $L_1$ is of `model`, $L_2$ of the same with $\phi_2 = 0$. Right even where the likelihoods themselves underflow.
    """
    columns, _ = split_columns(model, columns)
    theta = np.asarray(theta, float)
    extra = theta[..., columns] @ model.scaled_design[:, columns].T
    residual = model.y / model.sigma - theta @ model.scaled_design.T
    return (extra * (residual + 0.5 * extra)).sum(axis=-1)


class CombinedLine(NamedTuple):
    r"""$p(\alpha) = \frac{2(P-Q)}{P+Q}\alpha + \frac{2Q}{P+Q}$: P belongs to alpha = 1, the first model."""

    log_p: float
    log_q: float

    @property
    def log_bayes_factor(self) -> float:
        """ln Z_first - ln Z_second."""
        return self.log_p - self.log_q

    @property
    def slope(self) -> float:
        return 2 * math.tanh(0.5 * (self.log_p - self.log_q))

    @property
    def intercept(self) -> float:
        return float(2 * expit(self.log_q - self.log_p))


def combined_likelihood_line(first: LinearGaussian, second: LinearGaussian) -> CombinedLine:
    r"""$P = Z_1$, $Q = Z_2$ for any two linear models of the same data, nested or not."""
    if not (np.array_equal(first.y, second.y) and np.array_equal(first.sigma, second.sigma)):
        raise DataError(
            f"combined_likelihood_line got two models of different data ({len(first.y)} and {len(second.y)} points): "
            "the ratio of their evidences would mean nothing. Give both the same y and sigma."
        )
    return CombinedLine(first.log_evidence, second.log_evidence)


def nested_likelihood_line(model: LinearGaussian, columns: Columns) -> CombinedLine:
    r"""$P = \sqrt{|2\pi\Sigma_1^{-1}||2\pi\Sigma_2^{-1}|}\,e^{-\chi_1^2/2}$, and Q likewise.

    $Q = \sqrt{|2\pi\Sigma_3^{-1}||2\pi C_2|}\,e^{-\chi_2^2/2}$; this is Appendix C with
    $\Sigma_1 = D_2^T D_2 + C_2^{-1}$ and $|2\pi C_2|$ (E9, E10). It needs a prior that is independent between the
    blocks and centred on zero; `combined_likelihood_line` needs neither.
    """
    columns, rest = split_columns(model, columns)
    need_appendix_prior(model, columns, rest, "nested_likelihood_line")
    D1, D2, b = model.scaled_design[:, rest], model.scaled_design[:, columns], model.y / model.sigma
    C1, C2 = (model.prior_covariance[np.ix_(i, i)] for i in (rest, columns))
    sigma_1 = D2.T @ D2 + np.linalg.inv(C2)
    onto_2 = np.linalg.solve(sigma_1, D2.T)
    sigma_2 = np.linalg.inv(C1) + D1.T @ D1 - D1.T @ D2 @ onto_2 @ D1
    sigma_3 = D1.T @ D1 + np.linalg.inv(C1)
    k = D1.T @ (D2 @ (onto_2 @ b) - b)
    chi_1 = b @ (b - D2 @ (onto_2 @ b)) - k @ np.linalg.solve(sigma_2, k)
    chi_2 = b @ (b - D1 @ np.linalg.solve(sigma_3, D1.T @ b))
    # |2 pi S^-1| has 2 pi to the power of the dimension; P and Q have the same total
    twopi = model.n_parameters * LOG_2PI
    log_p = 0.5 * (twopi - log_det(sigma_1) - log_det(sigma_2) - chi_1)
    return CombinedLine(float(log_p), float(0.5 * (twopi - log_det(sigma_3) + log_det(C2) - chi_2)))
