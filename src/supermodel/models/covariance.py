r"""Gaussian noise that hangs together: $y \sim N(\mu, C)$, datum by datum in two ways.

With $C = L L^T$ and $z = L^{-1}(y - \mu)$ the chain rule gives
$\ln p(y_i \mid y_1 \dots y_{i-1}) = -z_i^2/2 - \ln L_{ii} - \ln(2\pi)/2$, whose sum is $\ln L$. What is left out of the data is
predicted from all the rest: with the precision $P = C^{-1}$ and $q = P(y - \mu)$

$\ln p(y_b \mid y_{-b}) = -q_b^T P_{bb}^{-1} q_b / 2 + \ln\det P_{bb} / 2 - n_b \ln(2\pi) / 2$

(Sundararajan and Keerthi 2001; Bürkner, Gabry and Vehtari 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from supermodel.errors import DataError

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
SYMMETRIC = 1e-8  # of the largest element: rounding of a matrix that was read from a file
WIDTH = "a covariance of n data is n × n"


def checked_matrix(value: Any, label: str) -> np.ndarray:
    """A square array of finite numbers."""
    array = np.asarray(value, float)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise DataError(f"`{label}` must be a square array; got the shape {array.shape}. For errors alone give sigma.")
    if not np.all(np.isfinite(array)):
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise DataError(
            f"`{label}` holds {array[at]} in row {at[0]}, column {at[1]} (counted from 0); it must be finite."
        )
    return array


def cholesky(covariance: np.ndarray, label: str = "covariance") -> np.ndarray:
    """L of a matrix of numbers; one that is no covariance is refused with the reason."""
    c = checked_matrix(covariance, label)
    gap = np.abs(c - c.T)
    if gap.max() > SYMMETRIC * np.abs(c).max():
        i, j = (int(k) for k in np.unravel_index(gap.argmax(), gap.shape))
        raise DataError(
            f"`{label}` is not symmetric: {c[i, j]:.6g} in row {i}, column {j}, and {c[j, i]:.6g} in row {j}, column {i}. "
            "Give C itself, or its lower factor as cholesky=."
        )
    try:
        return np.linalg.cholesky(c)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(c)[0])
        raise DataError(
            f"`{label}` is not positive definite: its least eigenvalue is {least:.3g}, so that some sum of data would have "
            "no error, or a negative one. Add the errors of the single data to its diagonal."
        ) from None


def factor(matrix: np.ndarray) -> np.ndarray:
    """A lower factor as it was given, if it is one."""
    found = checked_matrix(matrix, "cholesky")
    if np.any(np.triu(found, 1)) or np.any(np.diagonal(found) <= 0):
        raise DataError(
            "`cholesky` must be lower triangular with a positive diagonal, L of C = L L^T (numpy.linalg.cholesky(C)). "
            "A covariance is given as covariance=."
        )
    return found


def whitened(lower: Any, residual: Any) -> Any:
    """z = L^-1 (y - mu)."""
    import jax.numpy as jnp
    from jax.scipy.linalg import solve_triangular

    if isinstance(lower, np.ndarray):  # known once for all: a product is quicker at many points than a solution
        return jnp.asarray(_inverse(lower)) @ residual
    return solve_triangular(lower, residual, lower=True)


def _inverse(lower: np.ndarray) -> np.ndarray:
    from scipy.linalg import solve_triangular

    return solve_triangular(lower, np.eye(len(lower)), lower=True)


def chain_rule(lower: Any, residual: Any) -> Any:
    """(n,): ln p of each datum given those before it."""
    import jax.numpy as jnp

    return -0.5 * whitened(lower, residual) ** 2 - jnp.log(jnp.diagonal(jnp.asarray(lower))) - HALF_LOG_2PI


def left_out(lower: Any, residual: Any, blocks: Sequence[np.ndarray] | None = None) -> Any:
    """(blocks,): ln p of each datum, or of each block of rows, given all the others."""
    import jax.numpy as jnp
    from jax.scipy.linalg import cho_solve

    n = lower.shape[0]
    precision = cho_solve((jnp.asarray(lower), True), jnp.eye(n))
    q = precision @ residual
    if blocks is None:
        p = jnp.diagonal(precision)
        return -0.5 * q**2 / p + 0.5 * jnp.log(p) - HALF_LOG_2PI
    parts = []
    for rows in blocks:
        own, pull = precision[np.ix_(rows, rows)], q[rows]
        size = 0.5 * jnp.linalg.slogdet(own)[1] - len(rows) * HALF_LOG_2PI
        parts.append(size - 0.5 * pull @ jnp.linalg.solve(own, pull))
    return jnp.stack(parts)
