r"""A reference with several hills: $r(u) = \sum_m \pi_m N(u; \mu_m, \Sigma_m)$, of evidence 1 like $N(0, I)$.

Where one Gaussian leaves too much spread (several modes, a banana), a mixture fitted to the tempered particles serves as
the reference instead: it can be drawn from, its density is known, and independent proposals from it jump between modes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LOG_2PI = float(np.log(2 * np.pi))


class Mixture(NamedTuple):
    """Weights, means, Cholesky factors and inverse factors of the hills, as arrays that compiled code takes as arguments."""

    log_weights: Any  # (M,)
    means: Any  # (M, d)
    factors: Any  # (M, d, d)
    inverses: Any  # (M, d, d)

    def log_density(self, xp, u):
        r"""$\ln r(u)$ at (n, d) points."""
        d = self.means.shape[1]
        z = xp.einsum("mij,nmj->nmi", self.inverses, u[:, None, :] - self.means[None])
        log_det = xp.log(xp.abs(xp.diagonal(self.inverses, axis1=1, axis2=2))).sum(-1)
        terms = self.log_weights + log_det - 0.5 * (z**2).sum(-1) - 0.5 * d * LOG_2PI
        top = terms.max(axis=1, keepdims=True)
        return (top + xp.log(xp.exp(terms - top).sum(1, keepdims=True)))[:, 0]

    def transform(self, xp, normal, uniform):
        """Draws of r from standard normals (n, d) and uniforms (n,)."""
        return self.means[self.component(xp, uniform)] + self.step(xp, normal, uniform)

    def step(self, xp, normal, uniform):
        """A zero-mean step with the covariance of a hill chosen at random: symmetric, so good for a random walk."""
        return xp.einsum("nij,nj->ni", self.factors[self.component(xp, uniform)], normal)

    def component(self, xp, uniform):
        cumulative = xp.cumsum(xp.exp(self.log_weights))
        return xp.minimum(xp.sum(uniform[:, None] > cumulative[None], axis=1), len(self.log_weights) - 1)


def standard(dimension: int) -> Mixture:
    """$N(0, I)$ as a mixture of one."""
    eye = np.eye(dimension)[None]
    return Mixture(np.zeros(1), np.zeros((1, dimension)), eye, eye)


def defended(dimension: int) -> Mixture:
    r"""$\frac34 N(0, I) + \frac14 N(0, s^2 I)$, $s = 1 + 1.5/\sqrt d$: the wider hill covers tails heavier than the normal's.

    Rare draws far out would else carry large weights, and an error estimated before the first of them has come is too
    small; a chain that got there would be held fast.
    """
    scale = np.array([1.0, 1.0 + 1.5 / np.sqrt(max(dimension, 1))])[:, None, None]
    factors = scale * np.eye(dimension)
    return Mixture(np.log([0.75, 0.25]), np.zeros((2, dimension)), factors, factors / scale**2)


def fit(points: np.ndarray, hills: int, rng: np.random.Generator, iterations: int = 60) -> Mixture:
    """Expectation-maximisation from a k-means start, each hill's covariance shrunk towards the whole sample's."""
    from scipy.cluster.vq import kmeans2

    n, d = points.shape
    _, label = kmeans2(points, hills, minit="++", seed=rng)
    share = np.eye(hills)[label]
    whole = np.atleast_2d(np.cov(points.T)) / max(hills, 1) ** (2 / d)
    for _ in range(iterations):
        mixture = _maximise(points, share, whole)
        log_parts = _log_parts(points, mixture)
        share = np.exp(log_parts - np.logaddexp.reduce(log_parts, axis=1)[:, None])
    return mixture


def _maximise(points: np.ndarray, share: np.ndarray, whole: np.ndarray) -> Mixture:
    n, d = points.shape
    counts = share.sum(0) + 1e-9
    means = (share.T @ points) / counts[:, None]
    factors = []
    for m, count in enumerate(counts):
        centred = points - means[m]
        covariance = (share[:, m, None] * centred).T @ centred / count
        prior = (d + 2) / (d + 2 + count)
        factors.append(
            np.linalg.cholesky((1 - prior) * covariance + prior * whole + 1e-10 * np.trace(whole) * np.eye(d))
        )
    stacked = np.array(factors)
    return Mixture(np.log(counts / counts.sum()), means, stacked, np.linalg.inv(stacked))


def _log_parts(points: np.ndarray, mixture: Mixture) -> np.ndarray:
    z = np.einsum("mij,nmj->nmi", mixture.inverses, points[:, None, :] - mixture.means[None])
    log_det = np.log(np.abs(np.diagonal(mixture.inverses, axis1=1, axis2=2))).sum(-1)
    return mixture.log_weights + log_det - 0.5 * (z**2).sum(-1)


def best_fit(points: np.ndarray, rng: np.random.Generator, most: int = 16) -> Mixture:
    """The number of hills under which draws that were not fitted are most probable, then fitted to all of them.

    The mean of ln r over the posterior is its cross-entropy: a hill that covers empty land lowers it.
    """
    n, d = points.shape
    order = rng.permutation(n)
    train, test = points[order[: n // 2]], points[order[n // 2 :]]
    best, chosen, hills = -np.inf, 1, 1
    while hills <= most and n // 2 >= 3 * hills * (d + 1):
        score = float(np.mean(fit(train, hills, rng).log_density(np, test)))
        if score > best + 0.02:
            best, chosen = score, hills
        hills += 1 if hills < 4 else 2 if hills < 8 else 4
    return widened(fit(points, chosen, rng))


def widened(mixture: Mixture, by: float = 1.15) -> Mixture:
    """Each hill a little wider, so that the tails of J are covered and weights stay bounded."""
    return Mixture(mixture.log_weights, mixture.means, mixture.factors * by, mixture.inverses / by)
