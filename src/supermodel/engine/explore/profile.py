r"""The profile of a new component: what the others leave of ln J along the one coordinate in which it turns most often.

Let s be that coordinate of a component (a period, a place, a moment), t its others, and all else be held at the best point that is
known. In each of N cells of s the others climb to $\hat t(s)$, with covariance C(s) by the curvature there, as people look for
planets and lines by hand. This is a density, too:

$h(s, t) = \sum_c w_c\, U_c(s)\, t_\nu(t; \hat t_c, C_c), \quad w_c \propto J(s_c, \hat t_c)\, |C_c|^{1/2}\, |c|$

with $U_c$ uniform over cell c, of width |c|. A thousand needles, which no mixture of a few hills holds, are in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.embedding.reference import log_bell, stretches
from supermodel.engine.explore.climb import Climber, Climbs
from supermodel.engine.policy import DOF, PROFILE_EVEN, PROFILE_STEPS, WIDER

FIRST, SHARE = 1e-3, 1e-2  # widths of the prior, and then of the curvature, by which differences of slopes are taken


class Profile(NamedTuple):
    """Cells of one coordinate, each with a hill in the others; in the coordinates of one component."""

    axis: np.ndarray  # (): which of its coordinates is parted
    edges: np.ndarray  # (N + 1,)
    log_weights: np.ndarray  # (N,)
    tops: np.ndarray  # (N, q)
    factors: np.ndarray  # (N, q, q), lower triangular

    @property
    def _others(self) -> np.ndarray:
        return np.delete(np.arange(self.tops.shape[1] + 1), int(self.axis))

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        cells, q = rng.choice(len(self.log_weights), n, p=np.exp(self.log_weights)), self.tops.shape[1]
        phi = np.empty((n, q + 1))
        phi[:, int(self.axis)] = rng.uniform(self.edges[cells], self.edges[cells + 1])
        step = np.einsum("nij,nj->ni", self.factors[cells], rng.standard_normal((n, q)))
        phi[:, self._others] = self.tops[cells] + stretches(rng, DOF, (n,))[:, None] * step
        return phi

    def log_density(self, phi: np.ndarray) -> np.ndarray:
        s = phi[:, int(self.axis)]
        cells = np.clip(np.searchsorted(self.edges, s, side="right") - 1, 0, len(self.log_weights) - 1)
        found = self.log_weights[cells] - np.log(np.diff(self.edges))[cells]
        if self.tops.shape[1]:
            inverses = np.linalg.inv(self.factors)
            z = np.einsum("nij,nj->ni", inverses[cells], phi[:, self._others] - self.tops[cells])
            log_det = np.log(np.abs(np.diagonal(inverses, axis1=1, axis2=2))).sum(-1)
            found = found + log_det[cells] + log_bell(np, np.sum(z * z, axis=1), z.shape[1], DOF)
        return np.where((s >= self.edges[0]) & (s < self.edges[-1]), found, -np.inf)


def profiled(
    climber: Climber, starts: np.ndarray, edges: np.ndarray, axis: int, others: np.ndarray
) -> tuple[Profile, np.ndarray, np.ndarray]:
    """The profile over the cells between `edges`; and in each cell the top, all coordinates of it, and its ln mass.

    `starts`: (tries, N, d), several in each cell, of which the one that comes highest counts. `axis` and `others` are the
    coordinates of the component among all.
    """
    tries, n, d = starts.shape
    held = np.ones(d, bool)
    held[others] = False
    climbs = Climbs.begun(climber.holding(held), starts.reshape(-1, d))
    if len(others):
        climbs.go(PROFILE_STEPS)
    best = np.argmax(climbs.value.reshape(tries, n), axis=0) * n + np.arange(n)
    climbs = climbs.kept(best)
    _, factors, _, _ = curved(climbs, others, np.zeros(0, int))
    log_mass = climbs.value + np.log(np.diff(edges)) + np.log(np.abs(np.diagonal(factors, axis1=1, axis2=2))).sum(-1)
    seen = np.where(np.isfinite(log_mass), log_mass, -np.inf)
    share = np.exp(seen - seen.max()) if np.isfinite(seen.max()) else np.ones(n)
    share = (1 - PROFILE_EVEN) * share / share.sum() + PROFILE_EVEN / n
    own = np.sort(np.append(others, axis))
    place = np.searchsorted(own, axis)
    return Profile(np.array(place), edges, np.log(share), climbs.x[:, others], WIDER * factors), climbs.x, seen


def curved(
    climbs: Climbs, others: np.ndarray, axes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""By the curvature at each top: tops of `others` after a Newton step, factors of their covariance, their slopes
    $\partial \hat t / \partial s$ in what is held at `axes`, and the rise of ln J by that step. Of directions that do not fall the
    covariance is that of the prior.
    """
    n, q, m, scale = len(climbs.y), len(others), len(axes), climbs.climber.scale
    if q == 0:
        return climbs.x[:, others], np.zeros((n, 0, 0)), np.zeros((n, 0, m)), np.zeros(n)
    curvature, across = np.zeros((n, q, q)), np.zeros((n, q, m))
    width = np.full((n, q), FIRST / SHARE)

    def change(coordinate: int, step: np.ndarray) -> np.ndarray:
        y = climbs.y.copy()
        y[:, coordinate] += step
        return (climbs.gradient - climbs.climber.evaluate(y)[1])[:, others] / step[:, None]

    for _ in range(2):  # the first pass finds the scale on which to take differences
        for j, other in enumerate(others):
            curvature[:, j] = change(other, SHARE * width[:, j])
        diagonal = np.abs(np.diagonal(curvature, axis1=1, axis2=2))
        width = np.clip(1 / np.sqrt(np.maximum(diagonal, 1e-12)), 1e-12, 1.0)
    for j, axis in enumerate(axes):
        across[:, :, j] = change(axis, np.full(n, FIRST * SHARE))
    curvature = 0.5 * (curvature + np.swapaxes(curvature, 1, 2)) * width[:, :, None] * width[:, None, :]
    values, vectors = np.linalg.eigh(np.where(np.isfinite(curvature), curvature, np.eye(q)))
    floor = np.sum((vectors * width[:, :, None]) ** 2, axis=1)  # no wider than the prior
    values = np.maximum(np.maximum(values, floor), 1e-10 * values[:, -1:])
    half = vectors * (1 / np.sqrt(values))[:, None, :] * width[:, :, None]
    inner = half @ np.swapaxes(half, 1, 2)
    covariance = inner * scale[others, None] * scale[others]
    tiny = 1e-12 * np.trace(covariance, axis1=1, axis2=2)[:, None, None] * np.eye(q)
    gradient = climbs.gradient[:, others]
    step = np.einsum("nij,nj->ni", inner, gradient)
    slopes = -np.einsum("nij,njk->nik", inner, np.where(np.isfinite(across), across, 0.0))
    slopes = slopes * scale[others, None] / scale[axes] if m else slopes
    rise = 0.5 * np.einsum("ni,ni->n", gradient, step)
    return climbs.x[:, others] + scale[others] * step, np.linalg.cholesky(covariance + tiny), slopes, rise
