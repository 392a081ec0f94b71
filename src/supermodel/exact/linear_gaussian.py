r"""$y = X\theta + \epsilon$: everything about linear models with Gaussian noise and priors, in closed form.

The formulas are those of the paper's appendices A to C with their errors removed (errata E1-E11), rewritten so that
no large numbers are subtracted: parameters are whitened by the prior, residuals are formed before they are squared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from supermodel.errors import DataError, ModelError, PriorError
from supermodel.exact.quadrature import Values

LOG_2PI = math.log(2 * math.pi)


class Gaussian(NamedTuple):
    """Mean and covariance of a normal density."""

    mean: np.ndarray
    covariance: np.ndarray

    def logpdf(self, x: Values) -> float:
        r"""$-\frac12 (x-\mu)^T C^{-1} (x-\mu) - \frac12 \ln |2 \pi C|$."""
        r = np.broadcast_to(np.asarray(x, float), self.mean.shape) - self.mean
        return float(-0.5 * (r @ np.linalg.solve(self.covariance, r) + log_det(2 * np.pi * self.covariance)))


@dataclass(frozen=True, eq=False)
class LinearGaussian:
    r"""$y = X\theta + \epsilon$, $\epsilon_i \sim N(0, \sigma_i^2)$, $\theta \sim N(m, P)$ (Appendix A).

    `design` = X (n, d); `sigma` a scalar or (n,); `prior_covariance` = P a scalar, a diagonal (d,) or (d, d).
    """

    design: np.ndarray
    y: np.ndarray
    sigma: Any = 1.0  # (n,) once made, whatever was given
    prior_covariance: Any = 1.0  # (d, d) once made
    prior_mean: Any = 0.0  # (d,) once made

    def __post_init__(self):
        design, y = np.asarray(self.design, float), np.asarray(self.y, float)
        if design.ndim != 2 or y.shape != design.shape[:1]:
            raise DataError(
                f"LinearGaussian got a design of the shape {design.shape} and y of the shape {y.shape}; it needs "
                "(n, d) and (n,), one row for each datum. See polynomial(x, powers) for a design."
            )
        n, d = design.shape
        fields = {"design": design, "y": y, "sigma": broadcast("sigma", self.sigma, n)}
        fields["prior_mean"] = broadcast("prior_mean", self.prior_mean, d)
        fields["prior_covariance"] = _full_covariance(self.prior_covariance, d)
        for name, value in fields.items():
            _refuse_non_finite(name, value)
            object.__setattr__(self, name, value)
        if not np.all(self.sigma > 0):
            raise DataError(
                f"sigma of LinearGaussian has the least value {self.sigma.min()}; it is a standard deviation and "
                "divides the data. Give positive values."
            )

    # Whitened: theta = m + L u with u ~ N(0, 1), D = X / sigma, b = (y - X m) / sigma; then G = D L.
    @cached_property
    def _root(self) -> np.ndarray:
        return cholesky(self.prior_covariance)

    @cached_property
    def scaled_design(self) -> np.ndarray:
        r"""$D_{ij} = X_{ij} / \sigma_i$."""
        return self.design / self.sigma[:, None]

    @cached_property
    def _b(self) -> np.ndarray:
        return (self.y - self.design @ self.prior_mean) / self.sigma

    @cached_property
    def _triangle(self) -> np.ndarray:
        """R of the QR decomposition of (G; 1): R^T R = G^T G + 1, without ever squaring G."""
        return np.linalg.qr(np.vstack([self.scaled_design @ self._root, np.eye(self.n_parameters)]))[1]

    @cached_property
    def _whitened_mean(self) -> np.ndarray:
        stacked = np.vstack([self.scaled_design @ self._root, np.eye(self.n_parameters)])
        return np.linalg.lstsq(stacked, np.append(self._b, np.zeros(self.n_parameters)), rcond=None)[0]

    @property
    def n_parameters(self) -> int:
        return self.design.shape[1]

    @cached_property
    def log_noise_norm(self) -> float:
        r"""$-\sum_i \ln(\sqrt{2\pi} \sigma_i)$."""
        return float(-0.5 * len(self.y) * LOG_2PI - np.log(self.sigma).sum())

    @cached_property
    def log_evidence(self) -> float:
        r"""$\ln Z = -\frac12(|b - Dh|^2 + h^T P^{-1} h) - \sum\ln\sqrt{2\pi}\sigma_i - \frac12 \ln|D^T D + P^{-1}||P|$.

        h is the posterior mean and b, h are counted from the prior mean; the bracket equals the corrected
        $b^T b - (D^T b)^T (D^T D + P^{-1})^{-1} D^T b$ (E2, E3) but does not subtract two large numbers.
        """
        u = self._whitened_mean
        residual = self._b - self.scaled_design @ (self._root @ u)
        log_root = np.log(np.abs(np.diag(self._triangle))).sum()
        return float(-0.5 * (residual @ residual + u @ u) + self.log_noise_norm - log_root)

    @cached_property
    def posterior_mean(self) -> np.ndarray:
        r"""$m + (D^T D + P^{-1})^{-1} D^T b$."""
        return self.prior_mean + self._root @ self._whitened_mean

    @cached_property
    def _posterior_root(self) -> np.ndarray:
        return self._root @ solve_triangular(self._triangle, np.eye(self.n_parameters))

    @cached_property
    def posterior_covariance(self) -> np.ndarray:
        r"""$(D^T D + P^{-1})^{-1}$."""
        return self._posterior_root @ self._posterior_root.T

    @property
    def prior(self) -> Gaussian:
        return Gaussian(self.prior_mean, self.prior_covariance)

    @property
    def posterior(self) -> Gaussian:
        return Gaussian(self.posterior_mean, self.posterior_covariance)

    @property
    def map(self) -> np.ndarray:
        """The most probable parameters, which for a Gaussian are its mean."""
        return self.posterior_mean

    @cached_property
    def ml(self) -> np.ndarray:
        r"""$\arg\max_\theta L$: the least-squares parameters (of least norm, if the design is degenerate)."""
        return np.linalg.lstsq(self.scaled_design, self.y / self.sigma, rcond=None)[0]

    @cached_property
    def max_log_likelihood(self) -> float:
        return float(self.log_likelihood(self.ml))

    def predict(self, theta: Values) -> np.ndarray:
        r"""$X\theta$, for theta (..., d)."""
        return np.asarray(theta, float) @ self.design.T

    def log_likelihood(self, theta: Values) -> np.ndarray:
        r"""$-\frac12 |b - D\theta|^2 - \sum_i \ln(\sqrt{2\pi}\sigma_i)$ (E1), for theta (..., d)."""
        residual = (self.y - self.predict(theta)) / self.sigma
        return -0.5 * (residual**2).sum(axis=-1) + self.log_noise_norm

    def log_prior(self, theta: Values) -> np.ndarray:
        r"""$\ln N(\theta; m, P)$ (E3), for theta (..., d)."""
        flat = (np.reshape(theta, (-1, self.n_parameters)) - self.prior_mean).T
        u = solve_triangular(self._root, flat, lower=True)
        norm = 0.5 * self.n_parameters * LOG_2PI + np.log(np.diag(self._root)).sum()
        return (-0.5 * (u**2).sum(axis=0) - norm).reshape(np.shape(theta)[:-1])

    def sample_posterior(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Independent draws, (n, d)."""
        return self.posterior_mean + rng.standard_normal((n, self.n_parameters)) @ self._posterior_root.T

    def sample_prior(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Independent draws, (n, d)."""
        return self.prior_mean + rng.standard_normal((n, self.n_parameters)) @ self._root.T

    @property
    def aic(self) -> float:
        r"""$2k - 2 \ln L_{max}$."""
        return 2 * self.n_parameters - 2 * self.max_log_likelihood

    @property
    def bic(self) -> float:
        r"""$k \ln n - 2 \ln L_{max}$."""
        return self.n_parameters * math.log(len(self.y)) - 2 * self.max_log_likelihood


def polynomial(x: Values, powers: Sequence[int]) -> np.ndarray:
    r"""$X_{ij} = x_i^{p_j}$: the design of a polynomial that has only these powers."""
    return np.asarray(x, float)[:, None] ** np.asarray(powers)


def broadcast(name: str, value: Values, n: int) -> np.ndarray:
    """A scalar or (n,) as (n,); anything else is refused by `name`."""
    value = np.asarray(value, float)
    if value.shape not in ((), (1,), (n,)):
        raise ModelError(
            f"{name} of a linear model has the shape {value.shape}, but {n} values are wanted. Give a scalar or ({n},)."
        )
    return np.broadcast_to(value, (n,)).copy()


def _full_covariance(value: Values, d: int) -> np.ndarray:
    value = np.asarray(value, float)
    full = value if value.shape == (d, d) else np.diag(broadcast("prior_covariance", value, d))
    if not np.allclose(full, full.T, rtol=1e-12, atol=0):
        raise PriorError(
            f"prior_covariance of a linear model is not symmetric (by up to {np.abs(full - full.T).max():.4g}), so it "
            "is no covariance. Give a symmetric, positive definite matrix."
        )
    return full


def _refuse_non_finite(name: str, value: np.ndarray) -> None:
    if not np.all(np.isfinite(value)):
        where = np.argwhere(~np.isfinite(value))[0].tolist()
        raise DataError(
            f"{name} of a linear model is {value[tuple(where)]} at {where}; every closed form would become NaN. "
            "Remove or repair that entry."
        )


def cholesky(covariance: np.ndarray) -> np.ndarray:
    r"""$L$ with $P = LL^T$, for a prior covariance P."""
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise PriorError(
            "prior_covariance of a linear model is not positive definite (least eigenvalue "
            f"{np.linalg.eigvalsh(covariance).min():.4g}), so the prior is no density and the evidence does not exist. "
            "Remove the degenerate direction from the design."
        ) from None


def log_det(matrix: np.ndarray) -> float:
    r"""$\ln |M|$."""
    return float(np.linalg.slogdet(matrix)[1])
