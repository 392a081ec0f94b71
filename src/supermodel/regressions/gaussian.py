r"""Bayes factors of Gaussian models in closed form given g, and by quadrature over $\ln g$.

With Jeffreys priors $p(\mu, \sigma^2) \propto 1/\sigma^2$ shared by all models, $\mu$, $\theta$ and $\sigma$ integrate to

$$\ln B(g) = -\tfrac12 \ln |I + D X^T X D| - \tfrac\nu2 \ln(1 - R^2_g), \qquad
R^2_g = y^T X D (I + D X^T X D)^{-1} D X^T y / y^T y,$$

against the model of $\mu$ alone; X and y are centred (unless there is no $\mu$), $D = \mathrm{diag}\sqrt{g}$, and $\nu$
is n - 1 (or n). Both terms are diagonals of one Cholesky factor, that of the matrix with y as one more column.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.special import stdtr

from supermodel.errors import DataError
from supermodel.estimation.estimate import Estimate
from supermodel.regressions.blocks import Block
from supermodel.regressions.elimination import CHUNK, Elimination
from supermodel.regressions.integral import Integral, integrate

LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)
HUGE = 30.0  # of ln g: beyond, rounding is all that is left of a rank-deficient block
FEWEST_NODES = 1000  # of g among the draws, where a factor of all columns takes long


def _factor_or_nan(matrix: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


class GaussianFit:
    """One Gaussian model: ln B against the model of the mean alone, and its posterior."""

    def __init__(self, y: np.ndarray, blocks: Sequence[Block], intercept: bool = True):
        self.y, self.blocks, self.intercept = y, tuple(blocks), intercept
        self.dof = len(y) - intercept
        inner = y - y.mean() if intercept else y
        self.norm = float(np.linalg.norm(inner))
        x = np.hstack([np.empty((len(y), 0)), *(b.columns.values for b in blocks)])
        self.middle, self._unit_y = x.mean(axis=0), inner / self.norm
        both = np.column_stack([x - self.middle if intercept else x, inner / self.norm])
        self._products = both.T @ both
        self._block_of = np.repeat(np.arange(len(blocks)), [b.size for b in blocks])
        self._rscales = np.array([b.rscale for b in blocks])
        self._check_noise(both[:, :-1], both[:, -1])

    def _check_noise(self, x: np.ndarray, y: np.ndarray) -> None:
        """Refuse a perfect fit by fewer columns than rows: without noise every Bayes factor is infinite."""
        if x.shape[1] < self.dof and np.linalg.norm(y - x @ np.linalg.lstsq(x, y)[0]) < 1e-7:
            names = " + ".join(block.name for block in self.blocks)
            raise DataError(
                f"{names} fits the response perfectly in all {len(y)} rows: there is no noise to weigh effects against, and the "
                "Bayes factor is infinite. Is the response made of these columns?"
            )

    # -- the evidence -----------------------------------------------------------------------------------------------

    @cached_property
    def integral(self) -> Integral:
        return integrate(self._log_joint, 2 * np.log(self._rscales))

    @property
    def log_bayes_factor(self) -> Estimate:
        """Against the model of the mean alone, or of nothing where there is no mean."""
        return Estimate(self.integral.log_value, self.integral.error) if self.blocks else Estimate(0.0, 0.0)

    def log_bayes_factor_at(self, log_g: np.ndarray) -> np.ndarray:
        """ln B given g: (m, blocks) to (m,)."""
        if len(self.blocks) > 1 and any(b.groups is not None for b in self.blocks):
            try:
                return self._eliminated.log_bayes_factor_at(log_g)
            except np.linalg.LinAlgError:  # rounding somewhere: below, point by point
                pass
        return self._log_bayes_factor_in_full(log_g)

    @cached_property
    def _eliminated(self) -> Elimination:
        return Elimination(self._unit_y, self.blocks, self.intercept)

    def _log_bayes_factor_in_full(self, log_g: np.ndarray) -> np.ndarray:
        if len(self.blocks) == 1:  # in the axes of X'X, each g is a handful of sums
            eigenvalues, along = self._axes
            shrunk = 1.0 + np.exp(log_g) * eigenvalues
            left = 1.0 - np.sum(np.exp(log_g) * along**2 / shrunk, axis=1)
            return -0.5 * np.log(shrunk).sum(axis=1) - 0.5 * self.dof * np.log(np.maximum(left, 1e-300))
        log_diagonal = np.log(np.diagonal(self._factor(log_g), axis1=1, axis2=2))
        return -log_diagonal[:, :-1].sum(axis=1) - self.dof * log_diagonal[:, -1]

    @cached_property
    def _axes(self) -> tuple[np.ndarray, np.ndarray]:
        """The eigenvalues of X'X, and X'y along its axes."""
        eigenvalues, axes = np.linalg.eigh(self._products[:-1, :-1])
        return np.maximum(eigenvalues, 0.0), axes.T @ self._products[:-1, -1]

    def _log_joint(self, log_g: np.ndarray) -> np.ndarray:
        """ln B(g) and the density of ln g under the inverse gamma prior."""
        result = np.full(len(log_g), -np.inf)
        inside = np.all((log_g < HUGE) & (log_g > -HUGE), axis=1)
        prior = np.log(self._rscales) - LOG_ROOT_2PI - 0.5 * log_g - 0.5 * self._rscales**2 * np.exp(-log_g)
        batch = max(int(CHUNK / len(self._products) ** 2), 1)
        places = np.flatnonzero(inside)
        for some in (places[i : i + batch] for i in range(0, len(places), batch)):
            result[some] = self.log_bayes_factor_at(log_g[some]) + prior[some].sum(axis=1)
        return np.where(np.isnan(result), -np.inf, result)

    def _factor(self, log_g: np.ndarray) -> np.ndarray:
        scale = np.column_stack([np.exp(0.5 * log_g)[:, self._block_of], np.ones(len(log_g))])
        matrices = scale[:, :, None] * self._products * scale[:, None, :]
        p = len(self._block_of)
        matrices[:, np.arange(p), np.arange(p)] += 1.0
        try:
            return np.linalg.cholesky(matrices)
        except np.linalg.LinAlgError:  # somewhere rounding has left nothing of the noise: only there is no answer
            return np.stack([_factor_or_nan(matrix) for matrix in matrices])

    # -- the posterior ----------------------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
        """The effects on the mean, without those of single groups."""
        return tuple(label for b in self.blocks if b.kind != "random" for label in b.columns.labels)

    @property
    def _all_labels(self) -> tuple[str, ...]:
        return tuple(label for b in self.blocks for label in b.columns.labels)

    @property
    def _readout(self) -> np.ndarray:
        """(labels, columns): effects that a reader knows, of the coefficients."""
        rows = [b.columns.readout for b in self.blocks]
        result = np.zeros((sum(len(r) for r in rows), len(self._block_of)))
        row = column = 0
        for r in rows:
            result[row : row + r.shape[0], column : column + r.shape[1]] = r
            row, column = row + r.shape[0], column + r.shape[1]
        return result

    @property
    def effective_size(self) -> int:
        """The most values of g among the draws: where columns are many, each takes long."""
        return max(FEWEST_NODES, int(2e8 / (1 + len(self._block_of)) ** 3))

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Posterior draws of every effect, of the group-level standard deviations, the intercept and sigma."""
        if not self.blocks:
            sigma = self.norm / np.sqrt(rng.chisquare(self.dof, n))
            return self._with_mean({}, np.zeros((n, 0)), sigma, rng)
        nodes = rng.choice(len(self.integral.weights), min(n, self.effective_size), p=self.integral.weights)
        chosen, counts = np.unique(np.resize(nodes, n), return_counts=True)
        log_g = self.integral.points[chosen]
        scale = np.exp(0.5 * log_g)[:, self._block_of]
        factor = self._factor(log_g)
        theta, sigma = np.empty((n, len(self._block_of))), np.empty(n)
        ends = np.concatenate([[0], np.cumsum(counts)])
        for i, (a, b) in enumerate(zip(ends, ends[1:], strict=False)):
            sigma[a:b] = self.norm * factor[i, -1, -1] / np.sqrt(rng.chisquare(self.dof, b - a))
            noise = rng.standard_normal((len(self._block_of), b - a))
            inner = self.norm * factor[i, -1, :-1, None] + sigma[a:b] * noise
            theta[a:b] = (scale[i][:, None] * np.linalg.solve(factor[i, :-1, :-1].T, inner)).T
        found = dict(zip(self._all_labels, (theta @ self._readout.T).T, strict=True))
        for k, block in enumerate(self.blocks):
            if block.kind == "random":
                found[f"sd{block.name}"] = block.unit * np.repeat(np.exp(0.5 * log_g[:, k]), counts) * sigma
        return self._with_mean(found, theta, sigma, rng)

    def _with_mean(self, found, theta: np.ndarray, sigma: np.ndarray, rng) -> dict[str, np.ndarray]:
        if self.intercept:
            mean = self.y.mean() + sigma / np.sqrt(len(self.y)) * rng.standard_normal(len(sigma))
            found["Intercept"] = mean - theta @ self.middle
        order = rng.permutation(len(sigma))  # draws came node by node: a part of them shall be as good as the whole
        return {name: values[order] for name, values in (found | {"sigma": sigma}).items()}

    def prior_draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Prior draws of every effect in units of sigma."""
        root_g = self._rscales / np.abs(rng.standard_normal((n, len(self.blocks))))
        theta = root_g[:, self._block_of] * rng.standard_normal((n, len(self._block_of)))
        return dict(zip(self._all_labels, (theta @ self._readout.T).T, strict=True))

    def probability_positive(self, contrast: dict[str, float]) -> float:
        """P(sum of c_i effect_i > 0 | y), exactly: given g it is Student's t with n - 1 degrees of freedom."""
        c = np.array([contrast.get(label, 0.0) for label in self._all_labels]) @ self._readout
        factor = self._factor(self.integral.points)
        scaled = c * np.exp(0.5 * self.integral.points)[:, self._block_of]
        v = np.linalg.solve(factor[:, :-1, :-1], scaled[:, :, None])[:, :, 0]
        mean = np.einsum("mi,mi->m", v, factor[:, -1, :-1])
        t = mean / (np.linalg.norm(v, axis=1) * factor[:, -1, -1]) * np.sqrt(self.dof)
        return float(self.integral.weights @ stdtr(self.dof, t))
