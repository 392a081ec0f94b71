r"""Fitting a warp to draws of one model, and judging it by the spread of $\ln J(u) - \ln N(u; 0, I)$ that it leaves."""

from __future__ import annotations

import numpy as np

from supermodel.embedding.warp import Bent, Warp, from_covariance


def spread(log_joint: np.ndarray, points: np.ndarray, warp: Warp | Bent, weights: np.ndarray | None = None) -> float:
    r"""Standard deviation of $\ln J(u) - \ln N(u)$: 0 where the warp makes the posterior exactly normal."""
    if len(points) < 2 or points.shape[1] == 0:
        return 0.0
    u = warp.inverse(points)
    gap = log_joint + warp.log_det_at(u) + 0.5 * np.sum(u**2, axis=1)
    w = np.full(len(gap), 1 / len(gap)) if weights is None else weights / weights.sum()
    return float(np.sqrt(np.sum(w * (gap - np.sum(w * gap)) ** 2)))


def by_moments(points: np.ndarray, weights: np.ndarray | None = None, shrink_to: Warp | None = None) -> Warp:
    """Mean and covariance of (weighted) draws, shrunk towards a first guess, or towards their diagonal."""
    n, d = points.shape
    w = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    n_effective = 1.0 / np.sum(w**2)
    mean = w @ points
    centred = points - mean
    covariance = (centred * w[:, None]).T @ centred / max(1.0 - np.sum(w**2), 1e-9)
    if shrink_to is None:
        guess, share = np.diag(np.diagonal(covariance)), _noise_of_correlations(covariance, n_effective)
    else:
        guess = shrink_to.factor @ shrink_to.factor.T
        share = (d + 1) / (d + 1 + n_effective)  # as if the guess had been seen in d + 1 draws
    return from_covariance(mean, (1 - share) * covariance + share * guess)


def _noise_of_correlations(covariance: np.ndarray, n: float) -> float:
    r"""The share of shrinkage to the diagonal that leaves least square error: $\sum \mathrm{var}(r_{ij}) / \sum r_{ij}^2$.

    A correlation r seen in n normal draws has variance (1 - r^2)^2 / n: what is strongly correlated is left as it is. None
    where there are more draws than correlations: they may then belong to shapes that no normal law has.
    """
    if n > len(covariance) * (len(covariance) + 1) / 2:
        return 0.0
    sd = np.sqrt(np.diagonal(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.nan_to_num(covariance / np.outer(sd, sd))
    r = r[~np.eye(len(r), dtype=bool)]
    return float(min(np.sum((1 - r**2) ** 2) / n / max(np.sum(r**2), 1e-300), 1.0))


def by_scores(points: np.ndarray, gradients: np.ndarray, start: Warp) -> Warp:
    r"""The normal density whose score fits the gradients best: exact for Gaussian targets, whatever the draws.

    In the coordinates of `start`, regress $-\nabla \ln J$ on $u$: $g = -H(u - m)$. Stein's identity makes $H$ the mean
    curvature. With n draws in d dimensions the regression is shrunk towards $H = h I$.
    """
    u = start.inverse(points)
    g = gradients @ np.asarray(start.factor)
    n, d = u.shape
    mean_u, mean_g = u.mean(0), g.mean(0)
    du, dg = u - mean_u, g - mean_g
    scale = max(-np.sum(du * dg) / np.sum(du**2), 1e-3)  # h
    if n < 4 * d:
        # Too few draws for d x d numbers: keep the shape of `start`, correct its centre and its size.
        centre = mean_u + mean_g / scale
        return Warp(start.points(centre[None])[0], np.asarray(start.factor) / np.sqrt(scale))
    ridge = 1e-6 * n
    gram = du.T @ du + ridge * np.eye(d)
    hessian = -np.linalg.solve(gram, du.T @ dg - ridge * scale * np.eye(d))
    hessian = 0.5 * (hessian + hessian.T)
    values, vectors = np.linalg.eigh(hessian)
    values = np.clip(values, 0.05 * scale, None)
    covariance = (vectors / values) @ vectors.T
    centre = mean_u + covariance @ mean_g
    inner = from_covariance(centre, covariance)
    factor = np.asarray(start.factor) @ inner.factor
    return Warp(start.points(inner.mean[None])[0], factor)


def widened(warp: Warp | Bent, left: float) -> Warp | Bent:
    """The warp, a little wider where the posterior is not quite normal.

    Tails of J heavier than those of N would make rare draws carry large weights, and an error estimated before the first
    of them has come is too small. A reference slightly too wide costs a little spread and bounds the weights.
    """
    d = max(len(warp.mean), 1)
    by = 1.0 + 0.12 * min(1.0, left / 0.3) * min(1.0, 2.0 / np.sqrt(d))
    return warp._replace(factor=np.asarray(warp.factor) * by)
