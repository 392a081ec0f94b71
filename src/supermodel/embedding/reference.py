r"""References: normalised densities of evidence 1 that can be drawn from, against which a model's evidence is measured.

$r(u) = (1 - e)\,q(u) + e\,\pi(u)$: hills $q(u) = \sum_m p_m\,t_\nu(u; \mu_m, \Sigma_m)$ fitted to what exploration found, and a
share $e$ of the model's own prior, which is normalised, can be drawn from, and leaves nothing uncovered: what the hills miss, the
prior still proposes, and weights stay bounded by $L_{max}/e$.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

LOG_2PI = float(np.log(2 * np.pi))
REFERENCE = "reference"


class Hills(NamedTuple):
    """Arrays only, so that compiled code takes them as arguments; `dof` is infinite for Gaussian hills."""

    log_weights: Any  # (M,)
    means: Any  # (M, d)
    factors: Any  # (M, d, d), lower triangular
    inverses: Any  # (M, d, d)
    dof: Any  # ()

    def log_parts(self, xp, x, squares=None):
        r"""$\ln \pi_m t_m(x)$ at (n, d) points: (n, M). `squares`, where they are known already."""
        d = self.means.shape[1]
        log_det = xp.log(xp.abs(xp.diagonal(self.inverses, axis1=1, axis2=2))).sum(-1)
        squares = self.squares(xp, x) if squares is None else squares
        return self.log_weights + log_det + log_bell(xp, squares, d, self.dof)

    def squares(self, xp, x):
        """Squared Mahalanobis distance of (n, d) points from every hill: (n, M)."""
        if xp is np and len(x) > 1:
            found = _by_products(x, self)
            if found is not None:
                return found
        z = xp.matmul(x[None] - self.means[:, None], xp.swapaxes(self.inverses, 1, 2))
        return (z * z).sum(-1).T

    def log_density(self, xp, x):
        r"""$\ln q(x)$ at (n, d) points."""
        terms = self.log_parts(xp, x)
        top = terms.max(axis=1, keepdims=True)
        top = xp.where(xp.isfinite(top), top, 0.0)
        return (top + xp.log(xp.exp(terms - top).sum(1, keepdims=True)))[:, 0]

    def transform(self, xp, normal, uniform, stretch):
        r"""Draws of q from standard normals (n, d), uniforms (n,) and `stretch`, $\sqrt{\nu/\chi^2_\nu}$ (n,)."""
        return self.means[self.component(xp, uniform)] + stretch[:, None] * self.step(xp, normal, uniform)

    def step(self, xp, normal, uniform):
        """A zero-mean step with the shape of a hill chosen at random: symmetric, so good for a random walk."""
        return xp.einsum("nij,nj->ni", self.factors[self.component(xp, uniform)], normal)

    def component(self, xp, uniform):
        cumulative = xp.cumsum(xp.exp(self.log_weights))
        return xp.minimum(xp.sum(uniform[:, None] > cumulative[None], axis=1), len(self.log_weights) - 1)

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """`n` draws of q."""
        d = self.means.shape[1]
        return self.transform(np, rng.standard_normal((n, d)), rng.random(n), stretches(rng, float(self.dof), (n,)))

    def islands(self) -> int:
        """How many groups of hills stand apart."""
        return int(self.island_of().max()) + 1

    def island_of(self) -> np.ndarray:
        """Which group each hill belongs to, (M,): the crest of a banana is one island, two modes are two."""
        from scipy.sparse.csgraph import connected_components

        reach = 1.0 + 2.0 * np.sqrt(self.means.shape[1])  # radii at which neighbouring hills still share draws
        near = np.sqrt(self.squares(np, self.means)) < reach
        return connected_components(near | near.T, directed=False)[1]

    def widened(self, by: float) -> Hills:
        """Each hill wider by a factor, so that the tails of the target are covered and weights stay bounded."""
        return self._replace(factors=self.factors * by, inverses=self.inverses / by)

    def mapped(self, mean: np.ndarray, factor: np.ndarray) -> Hills:
        """The same density of $y$ = mean + factor x, with a lower-triangular factor."""
        from scipy.linalg import solve_triangular

        inverse = solve_triangular(factor, np.eye(len(mean)), lower=True)
        means = mean + self.means @ factor.T
        return self._replace(means=means, factors=factor @ self.factors, inverses=self.inverses @ inverse)


def log_bell(xp, squares, d: int, dof):
    """Log density of a standard normal or Student t vector at squared radius `squares`."""
    if not np.isfinite(dof):
        return -0.5 * squares - 0.5 * d * LOG_2PI
    norm = gammaln((dof + d) / 2) - gammaln(dof / 2) - 0.5 * d * np.log(dof * np.pi)
    return norm - 0.5 * (dof + d) * xp.log1p(squares / dof)


def stretches(rng: np.random.Generator, dof: float, shape: tuple[int, ...]) -> np.ndarray:
    r"""$\sqrt{\nu / \chi^2_\nu}$: what makes a normal vector a Student t one."""
    return np.ones(shape) if not np.isfinite(dof) else np.sqrt(dof / rng.chisquare(dof, shape))


def one_hill(mean: np.ndarray, factor: np.ndarray, dof: float = np.inf) -> Hills:
    """A single hill."""
    return Hills(np.zeros(1), mean[None], factor[None], np.linalg.inv(factor)[None], dof)


def joined(parts: list[tuple[float, Hills]]) -> Hills:
    """Several sets of hills of equal `dof` under one density, with the given shares."""
    shares = np.array([share for share, _ in parts])
    logs = np.concatenate([np.log(s) + h.log_weights for s, (_, h) in zip(shares / shares.sum(), parts, strict=True)])
    means, factors, inverses = (np.concatenate([h[i] for _, h in parts]) for i in (1, 2, 3))
    return Hills(logs, means, factors, inverses, parts[0][1].dof)


class Reference(NamedTuple):
    """Hills in warped coordinates, and the share of the prior beside them."""

    hills: Hills
    prior_share: float

    @property
    def is_standard_normal(self) -> bool:
        """Whether the reference is N(0, I) and nothing else."""
        one = len(self.hills.log_weights) == 1 and not np.isfinite(self.hills.dof) and self.prior_share == 0
        return bool(
            one
            and not np.any(self.hills.means)
            and np.array_equal(self.hills.factors[0], np.eye(self.hills.means.shape[1]))
        )

    def log_density(self, xp, u, log_prior):
        r"""$\ln r(u)$ at (n, d) points; `log_prior` is the prior's own log density there, in the same coordinates."""
        fit = self.hills.log_density(xp, u)
        if self.prior_share == 0:
            return fit
        return xp.logaddexp(np.log1p(-self.prior_share) + fit, np.log(self.prior_share) + log_prior)

    def transform(self, xp, normal, uniform, stretch, prior):
        """Draws of r: prior draws where the uniform falls in their share, else draws of the hills."""
        if self.prior_share == 0:
            return self.hills.transform(xp, normal, uniform, stretch)
        inner = xp.maximum((uniform - self.prior_share) / (1 - self.prior_share), 0.0)
        return xp.where((uniform < self.prior_share)[:, None], prior, self.hills.transform(xp, normal, inner, stretch))


def _by_products(x: np.ndarray, hills: Hills) -> np.ndarray | None:
    r"""$x'Px - 2x'Pm + m'Pm$ with the precision P of every hill, as one product of matrices; None where digits would be lost."""
    i, j = np.triu_indices(x.shape[1])
    centre = hills.means.mean(axis=0)
    y, m = x - centre, hills.means - centre
    precision = np.matmul(np.swapaxes(hills.inverses, 1, 2), hills.inverses)
    widest = np.max(np.sum(y * y, axis=1)) * np.max(np.trace(precision, axis1=1, axis2=2))
    if not widest < LOST_DIGITS / np.finfo(float).eps:
        return None
    shift = np.matmul(precision, m[..., None])[..., 0]
    packed = precision[:, i, j] * np.where(i == j, 1.0, 2.0)
    return np.maximum((y[:, i] * y[:, j]) @ packed.T - 2 * y @ shift.T + np.sum(m * shift, axis=1), 0.0)


LOST_DIGITS = 1e-6  # of a squared distance


def standard_normal(dimension: int) -> Reference:
    """N(0, I)."""
    return Reference(one_hill(np.zeros(dimension), np.eye(dimension)), 0.0)


def defended(dimension: int, prior_share: float) -> Reference:
    r"""$\frac34 N(0, I) + \frac14 N(0, s^2 I)$, $s = 1 + 1.5/\sqrt d$, beside the prior: the wider hill covers heavier tails.

    Rare draws far out would else carry large weights, and an error estimated before the first of them has come is too small.
    """
    wide = 1.0 + 1.5 / np.sqrt(max(dimension, 1))
    inner, outer = (one_hill(np.zeros(dimension), s * np.eye(dimension)) for s in (1.0, wide))
    return Reference(joined([(0.75, inner), (0.25, outer)]), prior_share)
