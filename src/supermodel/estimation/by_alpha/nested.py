r"""The plain Savage-Dickey ratio: nested models, from posterior draws of the larger one alone.

$\ln Z_{nested} - \ln Z_{larger} = \ln p(\phi_0 | D) - \ln \pi(\phi_0)$, for the nested model $\phi = \phi_0$, *if*
$\pi(\theta|\phi_0) = \pi_{nested}(\theta)$ (errata E17: the paper does not say so; a correlated prior made -1.26 of
it).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from supermodel.errors import PriorError, SupermodelError
from supermodel.estimation.error import effective_size, standard_error
from supermodel.estimation.estimate import Evidences

NAMES = ("nested", "larger")


def savage_dickey(
    posterior_draws: np.ndarray,
    prior_log_density_at_value: float,
    value: float | Sequence[float] = 0.0,
    *,
    method: str = "logspline",
    priors: tuple[np.ndarray, np.ndarray] | None = None,
    names: Sequence[str] = NAMES,
) -> Evidences:
    r"""$\ln B = \ln \hat p(\phi_0|D) - \ln\pi(\phi_0)$ from draws (n,) or (n, k) of $\phi$ under the larger model.

    `method`: "logspline" ($\ln p$ a natural cubic spline by maximum likelihood; one parameter; trustworthy some sigma
    into the tail), "kde" (Gaussian kernels; flattens peaks and fails in tails), "gaussian" (any k; right only for a
    Gaussian posterior). The error allows for autocorrelation, the draws in their order being one chain. It is of the
    sampling alone: compare methods where the shape is in doubt. `details["sigmas"]` is how far $\phi_0$ lies from the
    mean; beyond some 4 no density estimate is to be trusted, and a supermodel is the way.

    `priors`: log prior densities at test points theta of both models, `(larger at (theta, value), nested at theta)`,
    by which the condition above is checked; see `check_priors`.
    """
    draws = np.asarray(posterior_draws, float)
    draws = draws[:, None] if draws.ndim == 1 else draws
    point = np.atleast_1d(np.asarray(value, float))
    if draws.ndim != 2 or point.shape != draws.shape[1:]:
        raise SupermodelError(f"draws of shape {np.shape(posterior_draws)} do not fit a value of shape {point.shape}.")
    if priors is not None:
        check_priors(*priors, prior_log_density_at_value)
    methods = {"logspline": _logspline, "kde": _kde, "gaussian": _gaussian}
    if method not in methods:
        raise SupermodelError(f"`method` must be one of {', '.join(methods)}; got {method!r}.")
    log_density, influence = methods[method](draws, point)
    centred = np.linalg.solve(np.atleast_2d(np.cov(draws.T)), point - draws.mean(axis=0))
    sigmas = float(np.sqrt(max((point - draws.mean(axis=0)) @ centred, 0.0)))
    details = {"estimator": f"savage_dickey, {method}", "log_density": log_density, "sigmas": sigmas}
    return Evidences.of_pair(names, log_density - prior_log_density_at_value, standard_error(influence), **details)


def savage_dickey_from_conditional(
    log_conditional: np.ndarray, prior_log_density_at_value: float, names: Sequence[str] = NAMES
) -> Evidences:
    r"""$\ln B = \ln E_\theta[p(\phi_0|\theta, D)] - \ln\pi(\phi_0)$: no density estimate if the conditional is known.

    `log_conditional` is $\ln p(\phi_0 | \theta_t, D)$, normalised over phi, at every draw: (n,) or (chains, n).
    """
    logs = np.asarray(log_conditional, float)
    log_density = float(logsumexp(logs) - math.log(logs.size))
    error = standard_error(np.exp(logs - log_density)) if math.isfinite(log_density) else math.inf
    value = log_density - prior_log_density_at_value
    return Evidences.of_pair(names, value, error, estimator="savage_dickey, conditional")


def check_priors(
    larger: np.ndarray,
    nested: np.ndarray,
    prior_log_density_at_value: float,
    *,
    tolerance: float = 1e-6,
    on_mismatch="raise",
) -> float:
    r"""The largest $|\ln\pi(\theta, \phi_0) - \ln\pi(\phi_0) - \ln\pi_{nested}(\theta)|$ over test points theta.

    Above `tolerance` the ratio is no Bayes factor; this is an error, or a warning with `on_mismatch="warn"`.
    """
    gap = np.asarray(larger, float) - prior_log_density_at_value - np.asarray(nested, float)
    worst = float(np.max(np.abs(gap)))
    if worst <= tolerance:
        return worst
    message = (
        "the larger model's prior, given the nested value, is not the nested model's prior: at the test points the log "
        f"densities differ by up to {worst:.4g}. The Savage-Dickey ratio is then no Bayes factor. Give both models "
        "the same conditional prior, or compare them by a supermodel, which needs no such condition."
    )
    if on_mismatch == "warn":
        warnings.warn(message, UserWarning, stacklevel=2)
        return worst
    raise PriorError(message)


def _gaussian(draws: np.ndarray, point: np.ndarray) -> tuple[float, np.ndarray]:
    mean, k = draws.mean(axis=0), draws.shape[1]
    covariance = np.atleast_2d(np.cov(draws.T, bias=True))
    pull = np.linalg.solve(covariance, point - mean)
    off = draws - mean
    along, size = off @ pull, np.sum(off * np.linalg.solve(covariance, off.T).T, axis=1)
    distance = float((point - mean) @ pull)
    log_density = -0.5 * (distance + np.linalg.slogdet(covariance)[1] + k * math.log(2 * math.pi))
    return float(log_density), along + 0.5 * (along**2 - distance) - 0.5 * (size - k)


def _kde(draws: np.ndarray, point: np.ndarray) -> tuple[float, np.ndarray]:
    """Gaussian kernels of the draws' own covariance, Scott's width."""
    n, k = draws.shape
    sizes = [effective_size(draws[:, i]) for i in range(k)]
    width = (n if np.isnan(min(sizes)) else min(sizes)) ** (-1.0 / (k + 4))
    covariance = np.atleast_2d(np.cov(draws.T)) * width**2
    off = draws - point
    logs = -0.5 * np.sum(off * np.linalg.solve(covariance, off.T).T, axis=1)
    logs -= 0.5 * (np.linalg.slogdet(covariance)[1] + k * math.log(2 * math.pi))
    log_density = float(logsumexp(logs) - math.log(n))
    return log_density, np.exp(logs - log_density)


def _logspline(draws: np.ndarray, point: np.ndarray, n_knots: int = 7) -> tuple[float, np.ndarray]:
    r"""$\ln p = \theta\cdot B(x) - A(\theta)$, B natural cubic splines and $x^2$: an exponential family, so Newton finds it."""
    if draws.shape[1] != 1:
        raise SupermodelError("the logspline is for one parameter; use method='gaussian' or 'kde' for several.")
    scale, centre = draws.std(), draws.mean()
    x, at = (draws[:, 0] - centre) / scale, (point[0] - centre) / scale
    basis = _splines(np.quantile(x, np.linspace(0.01, 0.99, n_knots)))
    low, high = min(x.min(), at) - 2.0, max(x.max(), at) + 2.0
    grid = np.linspace(low, high, 4001)
    b_grid, b_draws, b_point = basis(grid), basis(x), basis(np.array([at]))[0]
    theta = np.linalg.lstsq(b_grid, -0.5 * grid**2, rcond=None)[0]
    for _ in range(100):
        log_p, mean, information = _family(theta, grid, b_grid)
        step = np.linalg.solve(information, b_draws.mean(axis=0) - mean)
        theta = theta + step * min(1.0, 5.0 / np.max(np.abs(b_grid @ step)))
        if np.max(np.abs(step)) < 1e-10:
            break
    log_norm, mean, information = _family(theta, grid, b_grid)
    log_density = float(theta @ b_point - log_norm - math.log(scale))
    return log_density, (b_draws - mean) @ np.linalg.solve(information, b_point - mean)


def _family(theta: np.ndarray, grid: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The log norm, mean and covariance of the basis under the family's density."""
    logs = b @ theta
    p = np.exp(logs - logs.max())
    total = np.trapezoid(p, grid)
    p /= p.sum()
    mean = p @ b
    return float(logs.max() + math.log(total)), mean, (b - mean).T @ ((b - mean) * p[:, None])


def _splines(knots: np.ndarray):
    """Natural cubic splines through the knots, without the constant, and x²: (n,) to (n, knots).

    The square makes every Gaussian a member: splines alone are linear beyond their knots and biased in its tails.
    """
    from scipy.interpolate import CubicSpline

    each = CubicSpline(knots, np.eye(len(knots))[:, 1:], bc_type="natural")

    def basis(x: np.ndarray) -> np.ndarray:
        inside = np.clip(x, knots[0], knots[-1])
        return np.column_stack([each(inside) + (x - inside)[:, None] * each(inside, 1), x**2])

    return basis
