r"""$\theta = (\phi_1, \phi_2)$: a linear model with and without the parameters $\phi_2$ = theta[columns].

Savage-Dickey ratio (Appendix A) and combined model (B), with their errors removed (errata E5-E8) and for any prior
covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from supermodel.errors import ModelError, PriorError
from supermodel.exact.linear_gaussian import LinearGaussian, broadcast, cholesky, log_det
from supermodel.exact.quadrature import Density, Values

Columns = np.ndarray | Sequence[int]


def fix(model: LinearGaussian, columns: Columns, value: Values = 0.0) -> LinearGaussian:
    r"""The nested model: $\phi_2$ = `value`, and $\phi_1$ with the *marginal* prior it has in `model`."""
    columns, rest = split_columns(model, columns)
    return LinearGaussian(
        model.design[:, rest],
        model.y - model.design[:, columns] @ broadcast("value", value, len(columns)),
        model.sigma,
        model.prior_covariance[np.ix_(rest, rest)],
        model.prior_mean[rest],
    )


def condition(model: LinearGaussian, columns: Columns, value: Values = 0.0) -> LinearGaussian:
    r"""The nested model with the *conditional* prior $\pi(\phi_1 | \phi_2 = \text{value})$: the one (1.1) speaks of."""
    columns, rest = split_columns(model, columns)
    given = broadcast("value", value, len(columns))
    slope = _regression(model, columns, rest)
    return replace(
        fix(model, columns, value),
        prior_mean=model.prior_mean[rest] + slope @ (given - model.prior_mean[columns]),
        prior_covariance=_conditional_covariance(model, columns, rest),
    )


def log_density_ratio(model: LinearGaussian, columns: Columns, value: Values = 0.0) -> float:
    r"""$\ln \frac{p(\phi_2|D)}{\pi(\phi_2)} = \frac12[\ln|C_2||B| - (E+Bv)^T B^{-1} (E+Bv) + v^T C_2^{-1} v]$.

    v is `value` counted from the prior mean; at v = 0 this is the corrected SDDR of Appendix A (E5-E7). It always
    equals $\ln Z - \ln Z_{model}$ of the nested model with the conditional prior, `condition(model, columns, value)`.
    """
    columns, _ = split_columns(model, columns)
    B, E = _marginal_precision(model, columns)
    C2 = model.prior_covariance[np.ix_(columns, columns)]
    v = broadcast("value", value, len(columns)) - model.prior_mean[columns]
    r = E + B @ v
    return float(0.5 * (log_det(C2) + log_det(B) - r @ np.linalg.solve(B, r) + v @ np.linalg.solve(C2, v)))


def prior_correction(model: LinearGaussian, columns: Columns, value: Values = 0.0) -> float:
    r"""$\ln E\left[\frac{\pi(\phi_1)}{\pi(\phi_1|\phi_2=v)}\right]$ over $p(\phi_1|\phi_2=v, D)$.

    What (1.1) lacks (E17). Zero if the prior of $\phi_1$ and $\phi_2$ is independent.
    """
    return fix(model, columns, value).log_evidence - condition(model, columns, value).log_evidence


def savage_dickey(model: LinearGaussian, columns: Columns, value: Values = 0.0, *, corrected: bool = False) -> float:
    r"""$\ln Z_{without} - \ln Z_{with}$ by the Savage-Dickey density ratio at $\phi_2$ = theta[columns] = `value`.

    The ratio is the Bayes factor only if $\pi(\phi_1 | \phi_2=v) = \pi(\phi_1)$ (E17). With a correlated prior this
    raises, unless `corrected`: then `prior_correction` is added.
    """
    columns, rest = split_columns(model, columns)
    ratio = log_density_ratio(model, columns, value)
    across = model.prior_covariance[np.ix_(rest, columns)]
    if not np.any(across):
        return ratio
    if not corrected:
        raise PriorError(
            f"savage_dickey at columns {columns.tolist()}: the prior correlates them with the others (covariance up to "
            f"{np.abs(across).max():.4g}), so that the density ratio is not the Bayes factor of the nested model "
            "with its own prior. Pass corrected=True, or take log_density_ratio if it has the conditional prior."
        )
    return ratio + prior_correction(model, columns, value)


# Combined model (Appendix B): predictions X1 phi1 + f X2 phi2.


class Spike(NamedTuple):
    r"""$\frac{p(f)}{p(0)} = |1 + f^2 C_2 S|^{-1/2} \exp[\frac12 f^2 t^T (C_2^{-1} + f^2 S)^{-1} t]$ (errata 1.3).

    $S = D_2^T(D_2 - D_1 A D_1^T D_2)$ and $t = D_2^T(b - D_1 A D_1^T b)$.
    """

    S: np.ndarray
    t: np.ndarray
    prior_covariance: np.ndarray  # C2

    @property
    def half_width(self) -> float:
        r"""$S^{-1/2}$, the least over all directions: a grid of f must resolve it."""
        root = cholesky(self.prior_covariance)
        return float(np.linalg.eigvalsh(root.T @ self.S @ root).max() ** -0.5)


def combined_model_spike(model: LinearGaussian, columns: Columns) -> Spike:
    """S and t of the combined model; needs a prior of mean zero, independent between the blocks."""
    columns, rest = split_columns(model, columns)
    need_appendix_prior(model, columns, rest, "combined_model_spike")
    K = _projected(model, columns, rest, model.scaled_design[:, columns], model._b)
    k = len(columns)
    return Spike(K[:k, :k], K[:k, k], model.prior_covariance[np.ix_(columns, columns)])


def combined_model_log_density(
    alpha: Values,
    model: LinearGaussian,
    columns: Columns,
    f: Callable[[np.ndarray], np.ndarray] = lambda alpha: alpha,
) -> np.ndarray:
    r"""$\ln Z(f) = \ln \int N(y; X_1\phi_1 + f X_2\phi_2, \sigma^2)\, \pi(\phi_1, \phi_2)$, $f = f(\alpha)$.

    Appendix B: the un-normalised log posterior of alpha under a flat prior, for any prior covariance and mean. It ends
    at the evidence of `model` (f = 1) and of `fix(model, columns)` (f = 0), also if the prior is correlated.
    """
    columns, rest = split_columns(model, columns)
    w = np.asarray(f(np.asarray(alpha, float)), float)
    D2, L2 = model.scaled_design[:, columns], cholesky(model.prior_covariance[np.ix_(columns, columns)])
    # phi1 = m1 + G (phi2 - m2) + independent rest; the rest is integrated out by the projection K
    H = model.scaled_design[:, rest] @ _regression(model, columns, rest) @ L2
    base = model.y / model.sigma - model.scaled_design[:, rest] @ model.prior_mean[rest]
    shift = D2 @ model.prior_mean[columns]
    k = len(columns)
    K = _projected(model, columns, rest, H, D2 @ L2, base, shift)
    ones = np.ones_like(w)
    # (..., 2k+2, k) and (..., 2k+2): the columns H + f D2 L2 and the residual base - f shift, in this basis
    V = np.concatenate([np.multiply.outer(ones, np.eye(k)), np.multiply.outer(w, np.eye(k))], axis=-2)
    V = np.concatenate([V, np.zeros((*w.shape, 2, k))], axis=-2)
    r = np.concatenate([np.zeros((*w.shape, 2 * k)), ones[..., None], -w[..., None]], axis=-1)
    t = np.einsum("...ak,ab,...b->...k", V, K, r)
    M = np.eye(k) + np.einsum("...ak,ab,...bl->...kl", V, K, V)
    gain = np.einsum("...k,...k->...", t, np.linalg.solve(M, t[..., None])[..., 0])
    chi = np.einsum("...a,ab,...b->...", r, K, r)
    return -0.5 * (chi - gain + np.linalg.slogdet(M)[1]) + model.log_noise_norm - _log_root(model, columns, rest)


def combined_model_alpha(
    model: LinearGaussian,
    columns: Columns,
    f: Callable[[np.ndarray], np.ndarray] = lambda alpha: alpha,
    log_prior: Callable[[np.ndarray], np.ndarray] | None = None,
    low: float = 0.0,
    high: float = 1.0,
) -> Density:
    r"""$p(\alpha|D) \propto Z(f(\alpha))\, p(\alpha)$ on [low, high], normalised adaptively (Appendix B).

    Adaptive, because Simpson's rule needs 1000 intervals to resolve the spike at f = 0 of `Spike.half_width`.
    """

    def log_density(alpha: np.ndarray) -> np.ndarray:
        value = combined_model_log_density(alpha, model, columns, f)
        return value if log_prior is None else value + log_prior(alpha)

    return Density(log_density, low, high)


def split_columns(model: LinearGaussian, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Indices of phi2 and of phi1."""
    d = model.n_parameters
    columns = np.atleast_1d(np.asarray(columns, int))
    wrapped = np.where(columns < 0, columns + d, columns)
    if len(set(wrapped.tolist())) != len(columns) or np.any((wrapped < 0) | (wrapped >= d)) or not 0 < len(columns) < d:
        raise ModelError(
            f"columns {columns.tolist()} do not split a model of {d} parameters in two: they must be distinct, lie in "
            f"0..{d - 1}, and leave at least one parameter on each side."
        )
    return wrapped, np.setdiff1d(np.arange(d), wrapped)


def _regression(model: LinearGaussian, columns: np.ndarray, rest: np.ndarray) -> np.ndarray:
    r"""$C_{12} C_{22}^{-1}$: how the prior mean of phi1 follows phi2."""
    C22, C21 = model.prior_covariance[np.ix_(columns, columns)], model.prior_covariance[np.ix_(columns, rest)]
    return cho_solve(cho_factor(C22), C21).T


def _conditional_covariance(model: LinearGaussian, columns: np.ndarray, rest: np.ndarray) -> np.ndarray:
    r"""$C_{11} - C_{12} C_{22}^{-1} C_{21}$."""
    C11, C21 = model.prior_covariance[np.ix_(rest, rest)], model.prior_covariance[np.ix_(columns, rest)]
    covariance = C11 - _regression(model, columns, rest) @ C21
    return 0.5 * (covariance + covariance.T)


def _marginal_precision(model: LinearGaussian, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""$B = C_2^{-1} + D_2^T K D_2$ and $E = -D_2^T K b$, with $D_2 + D_1 C_{12}C_{22}^{-1}$ for $D_2$ if correlated.

    $K = 1 - D_1 A D_1^T$ is applied as a projection, so that nothing large is subtracted.
    """
    rest = np.setdiff1d(np.arange(model.n_parameters), columns)
    D2 = model.scaled_design[:, columns] + model.scaled_design[:, rest] @ _regression(model, columns, rest)
    K = _projected(model, columns, rest, D2, model._b)
    k = len(columns)
    C2 = model.prior_covariance[np.ix_(columns, columns)]
    return np.linalg.inv(C2) + K[:k, :k], -K[:k, k]


def _stacked(model: LinearGaussian, columns: np.ndarray, rest: np.ndarray) -> np.ndarray:
    root = cholesky(_conditional_covariance(model, columns, rest))
    return np.vstack([model.scaled_design[:, rest] @ root, np.eye(len(rest))])


def _projected(model: LinearGaussian, columns: np.ndarray, rest: np.ndarray, *vectors: np.ndarray) -> np.ndarray:
    r"""$W^T K W$ of the columns W of `vectors`, with $K = 1 - D_1 A D_1^T$ and $A = (D_1^T D_1 + C_1^{-1})^{-1}$.

    K is the upper block of the projection that removes $(D_1 L_1; 1)$, hence $W^T K W$ is a Gram matrix of residuals.
    """
    W = np.column_stack(vectors)
    W = np.vstack([W, np.zeros((len(rest), W.shape[1]))])
    Q = np.linalg.qr(_stacked(model, columns, rest))[0]
    residual = W - Q @ (Q.T @ W)
    residual -= Q @ (Q.T @ residual)  # twice is enough
    return residual.T @ residual


def _log_root(model: LinearGaussian, columns: np.ndarray, rest: np.ndarray) -> float:
    r"""$\frac12 \ln |1 + L_1^T D_1^T D_1 L_1|$."""
    triangle = np.linalg.qr(_stacked(model, columns, rest))[1]
    return float(np.log(np.abs(np.diag(triangle))).sum())


def need_appendix_prior(model: LinearGaussian, columns: np.ndarray, rest: np.ndarray, where: str) -> None:
    """The appendices have phi1 and phi2 independent, and everything centred on zero."""
    across = model.prior_covariance[np.ix_(rest, columns)]
    if np.any(across) or np.any(model.prior_mean):
        raise PriorError(
            f"{where}: the closed form of the paper needs a prior of mean zero, independent between the blocks; here "
            f"the mean reaches {np.abs(model.prior_mean).max():.4g}, the cross covariance {np.abs(across).max():.4g}. "
            "Use combined_likelihood_line or combined_model_log_density, which need neither."
        )
