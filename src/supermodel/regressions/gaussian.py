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

from supermodel.estimation.estimate import Estimate
from supermodel.regressions.blocks import Block
from supermodel.regressions.integral import Integral, integrate

LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)
HUGE = 30.0  # of ln g: beyond, rounding is all that is left of a rank-deficient block
CHUNK = 4e6  # numbers in a batch of matrices


class GaussianFit:
    """One Gaussian model: ln B against the model of the mean alone, and its posterior."""

    def __init__(self, y: np.ndarray, blocks: Sequence[Block], intercept: bool = True):
        self.y, self.blocks, self.intercept = y, tuple(blocks), intercept
        self.dof = len(y) - intercept
        inner = y - y.mean() if intercept else y
        self.norm = float(np.linalg.norm(inner))
        x = np.hstack([np.empty((len(y), 0)), *(b.columns.values for b in blocks)])
        self.middle = x.mean(axis=0)
        both = np.column_stack([x - self.middle if intercept else x, inner / self.norm])
        self._products = both.T @ both
        self._block_of = np.repeat(np.arange(len(blocks)), [b.size for b in blocks])
        self._rscales = np.array([b.rscale for b in blocks])

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
        log_diagonal = np.log(np.diagonal(self._factor(log_g), axis1=1, axis2=2))
        return -log_diagonal[:, :-1].sum(axis=1) - self.dof * log_diagonal[:, -1]

    def _log_joint(self, log_g: np.ndarray) -> np.ndarray:
        """ln B(g) and the density of ln g under the inverse gamma prior."""
        result = np.full(len(log_g), -np.inf)
        inside = np.all((log_g < HUGE) & (log_g > -HUGE), axis=1)
        prior = np.log(self._rscales) - LOG_ROOT_2PI - 0.5 * log_g - 0.5 * self._rscales**2 * np.exp(-log_g)
        batch = max(int(CHUNK / len(self._products) ** 2), 1)
        for some in np.array_split(np.flatnonzero(inside), max(inside.sum() // batch, 1)):
            result[some] = self.log_bayes_factor_at(log_g[some]) + prior[some].sum(axis=1)
        return result

    def _factor(self, log_g: np.ndarray) -> np.ndarray:
        scale = np.column_stack([np.exp(0.5 * log_g)[:, self._block_of], np.ones(len(log_g))])
        matrices = scale[:, :, None] * self._products * scale[:, None, :]
        p = len(self._block_of)
        matrices[:, np.arange(p), np.arange(p)] += 1.0
        return np.linalg.cholesky(matrices)

    # -- the posterior ----------------------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
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

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Posterior draws of every effect, of the group-level standard deviations, the intercept and sigma."""
        if not self.blocks:
            sigma = self.norm / np.sqrt(rng.chisquare(self.dof, n))
            return self._with_mean({}, np.zeros((n, 0)), sigma, rng)
        chosen, counts = np.unique(
            rng.choice(len(self.integral.weights), n, p=self.integral.weights), return_counts=True
        )
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
        found = dict(zip(self.labels, (theta @ self._readout.T).T, strict=True))
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
        return dict(zip(self.labels, (theta @ self._readout.T).T, strict=True))

    def probability_positive(self, contrast: dict[str, float]) -> float:
        """P(sum of c_i effect_i > 0 | y), exactly: given g it is Student's t with n - 1 degrees of freedom."""
        c = np.array([contrast.get(label, 0.0) for label in self.labels]) @ self._readout
        factor = self._factor(self.integral.points)
        scaled = c * np.exp(0.5 * self.integral.points)[:, self._block_of]
        v = np.linalg.solve(factor[:, :-1, :-1], scaled[:, :, None])[:, :, 0]
        mean = np.einsum("mi,mi->m", v, factor[:, -1, :-1])
        t = mean / (np.linalg.norm(v, axis=1) * factor[:, -1, -1]) * np.sqrt(self.dof)
        return float(self.integral.weights @ stdtr(self.dof, t))
