r"""More than two models: the maximum-likelihood fits to alpha itself, on hat functions and on the simplex.

Both densities are one: $p(\alpha|D) = p(\alpha) \frac{\sum_k w_k(\alpha) z_k}{\sum_k \bar w_k z_k}$ with $z_k =
e^{\eta_k} Z_k$, a mixture of the known densities $p(\alpha) w_k / \bar w_k$ with unknown shares $\pi_k = \bar w_k z_k
/ \sum_j \bar w_j z_j$.
"""

from __future__ import annotations

import numpy as np

from supermodel.embedding.coordinate import Hats
from supermodel.errors import SupermodelError
from supermodel.estimation.conditional import prior_mean_weights, weights_of
from supermodel.estimation.error import covariance_of_means
from supermodel.estimation.estimate import Evidences
from supermodel.sampling.draws import Draws

NOTHING = 1e-9  # a share below is zero: the likelihood has its maximum on the boundary


def piecewise_linear(draws: Draws) -> Evidences:
    r"""$p(\alpha|D)$ is linear between the nodes $\alpha = k$ with values proportional to $Z_k$, by maximum likelihood.

    For `mixture` on `Hats` (errata 3.5). A model whose share comes out as zero has an infinite error and $\ln Z =
    -\infty$: tilt it, or use `shares`.
    """
    if not isinstance(draws.supermodel.coordinate, Hats):
        raise SupermodelError(
            "the piecewise-linear fit is one for coordinate.Hats; use `line_fit`, `simplex` or `shares`."
        )
    return _fit(draws, "piecewise_linear")


def simplex(draws: Draws) -> Evidences:
    r"""$p(\alpha|D) = \sum_k \pi_k\,\mathrm{Dir}(\alpha; 1 + e_k)$, $\pi_k \propto Z_k$, by maximum likelihood.

    For `mixture` on `Simplex`, whatever the concentration of the prior (it drops out). Check: $E[\alpha_k] =
    (1+\pi_k)/(K+1)$ for a flat prior. Information falls with K and with uneven evidences: tilt, or use `shares`.
    """
    if not draws.supermodel.coordinate.is_simplex:
        raise SupermodelError(
            "the simplex fit is one for coordinate.Simplex; use `line_fit`, `piecewise_linear` or `shares`."
        )
    return _fit(draws, "simplex")


def _fit(draws: Draws, name: str) -> Evidences:
    if draws.supermodel.combine != "mixture":
        raise SupermodelError(f"alpha has this density for a mixture only; these are draws of {draws.supermodel}.")
    mean = prior_mean_weights(draws.supermodel.coordinate)
    ratio = weights_of(draws) / mean
    k = ratio.shape[-1]
    share = maximum_shares(ratio.reshape(-1, k))
    r = share * ratio
    r /= r.sum(axis=-1, keepdims=True)  # responsibilities: (chains, draws, K)
    flat = r.reshape(-1, k)
    # The information about ln z is the covariance of the responsibilities (at the maximum their mean is the share).
    influence = (r - share) @ np.linalg.pinv(np.cov(flat.T, bias=True), rcond=1e-12)
    influence[..., share < NOTHING] = np.nan
    with np.errstate(divide="ignore"):
        values = np.log(np.where(share < NOTHING, 0.0, share)) - np.log(mean) - draws.supermodel.tilt
    details = {"estimator": name, "shares": dict(zip(draws.names, share.tolist(), strict=True))}
    return Evidences(draws.names, values, covariance_of_means(influence), False, details)


def maximum_shares(ratio: np.ndarray, tolerance: float = 1e-13) -> np.ndarray:
    r"""$\pi$ on the simplex that maximises $\sum_t \ln \sum_k \pi_k \rho_{tk}$, with $\rho$ = `ratio` (n, K).

    Expectation-maximisation, which always rises and keeps to the simplex, and Newton steps in $\ln\pi$ where they
    rise more.
    """
    n, k = ratio.shape
    if np.any(np.isnan(ratio)):
        return np.full(k, np.nan)
    share = np.full(k, 1.0 / k)
    for _ in range(500):
        r = share * ratio
        r /= r.sum(axis=1, keepdims=True)
        mean = r.mean(axis=0)
        if np.max(np.abs(mean - share)) < tolerance:
            break
        newton = _newton(r, mean, share)
        share = newton if _log_likelihood(ratio, newton) > _log_likelihood(ratio, mean) else mean
    return share


def _newton(r: np.ndarray, mean: np.ndarray, share: np.ndarray) -> np.ndarray:
    information = np.diag(share) - np.outer(share, share) - np.diag(mean) + r.T @ r / len(r)
    step = np.clip(np.linalg.lstsq(information, mean - share, rcond=1e-12)[0], -3.0, 3.0)
    trial = share * np.exp(step)
    return trial / trial.sum()


def _log_likelihood(ratio: np.ndarray, share: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(ratio @ share).mean())
