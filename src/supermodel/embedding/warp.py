r"""Warps: $x = m + C u$, so that a posterior looks like $N(0, I)$ in $u$. The Jacobian leaves $Z$ as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Warp(NamedTuple):
    """An affine map with a lower-triangular factor. A pytree: warps are arguments of compiled code, never constants.

    Cholesky, not eigenvectors: with shared parameters first, equal axes of two models then mean equal parameters.
    """

    mean: Any  # (d,)
    factor: Any  # (d, d), lower triangular, positive diagonal

    def __call__(self, u):
        return self.mean + self.factor @ u

    @property
    def log_det(self):
        import jax.numpy as jnp

        return jnp.log(jnp.diagonal(self.factor)).sum()

    def points(self, u: np.ndarray) -> np.ndarray:
        """The map for many points (n, d), in NumPy."""
        return self.mean + u @ np.asarray(self.factor).T

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """u of many points x (n, d), in NumPy."""
        from scipy.linalg import solve_triangular

        return solve_triangular(np.asarray(self.factor), (np.asarray(x) - self.mean).T, lower=True).T

    def log_det_value(self) -> float:
        """`log_det` as a float, in NumPy."""
        return float(np.log(np.diagonal(self.factor)).sum())


def identity(dimension: int) -> Warp:
    """The map that does nothing."""
    return Warp(np.zeros(dimension), np.eye(dimension))


def from_covariance(mean: np.ndarray, covariance: np.ndarray) -> Warp:
    """Whitens a density of this mean and covariance; a covariance that is not quite positive is lifted a little."""
    covariance = np.atleast_2d(np.asarray(covariance, float))
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    correlation = covariance / np.outer(scale, scale)
    lift = 0.0
    while True:
        try:
            factor = np.linalg.cholesky(correlation + lift * np.eye(len(scale)))
            return Warp(np.asarray(mean, float), scale[:, None] * factor)
        except np.linalg.LinAlgError:
            lift = max(10 * lift, 1e-12)
