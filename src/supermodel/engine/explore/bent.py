r"""Fitting a `Bent` warp to points at which ln J is known: what the posterior's third derivatives ask for, by least squares.

In whitened coordinates let $r(u) = \ln J + \frac12 |u|^2$. A map $u + Q(u)$ takes it away to first order if $r = u \cdot Q - \nabla
\cdot Q$ + const, which is linear in the coefficients of Q: a quadratic triangular Q has one coefficient for every cubic monomial.
What is left in the new coordinates is fitted again, some times. Values tell much more than draws do: $\ln J$ has no noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from supermodel.embedding.warp import SKEWED, Bent, Warp, pairs, straight

ROUNDS = 6  # of fitting what is left: each leaves about a third, until the family is exhausted
SETTLED = 0.97  # of the spread before: no further round
REACH = 4.0  # standard deviations beyond the root of d within which points are fitted: what is further has no weight in ln Z
WILD = 10.0  # nats of r: what is further off is no small bend
STRETCH = 0.3  # the most by which one round changes a log scale
TAKEN = 0.5  # of the effective points that coefficients may be
RIDGES = 10.0 ** np.arange(-6, 4)  # in units of the mean square of a column


def fit_bent(x: np.ndarray, weight: np.ndarray, log_joint: np.ndarray, start: Warp | Bent) -> Bent:
    """The warp of points (n, d) with posterior weights, from the one that whitens them so far; that one if they are too few."""
    rows = np.isfinite(log_joint) & (weight > 1e-9 * weight.max())
    x, log_joint = x[rows], log_joint[rows]
    weight = weight[rows] / weight[rows].sum()

    def left(warp: Bent) -> Left:
        u = warp.inverse(x)
        rest = log_joint + warp.log_det_at(u) + 0.5 * np.sum(u**2, axis=1)
        rest -= weight @ rest
        return Left(u, rest, float(np.sqrt(weight @ np.clip(rest, -2 * WILD, 2 * WILD) ** 2)))

    # Ridges make something of fewer points than third derivatives, but nothing better than slopes have told.
    most = 1.0 if isinstance(start, Bent) else 3.0
    return _improved(start, left, lambda u, rest: _by_values(u, rest, weight, most))


def bent_by_slopes(x: np.ndarray, gradient: np.ndarray, start: Warp) -> Bent:
    """The warp of posterior draws (n, d) with the gradients of ln J there; `start` if they are too few.

    A gradient holds d numbers: two or three times the `coefficients` of a quadratic tell all third derivatives, where values would
    take $d^3 / 6$.
    """

    def left(warp: Bent) -> Left:
        u = warp.inverse(x)
        rest = warp.pulled_back(u, gradient) + u
        return Left(u, rest, float(np.sqrt(np.mean(np.clip(rest, -WILD, WILD) ** 2))))

    return _improved(start, left, _by_slopes)


class Left(NamedTuple):
    """What a warp leaves: r, or its gradient, at the points u, and how large it is."""

    u: np.ndarray
    rest: np.ndarray
    size: float


def _improved(start: Warp | Bent, left: Callable[[Bent], Left], step: Callable[..., Step | None]) -> Bent:
    """Steps that take away what is left, for as long as each leaves less."""
    best = warp = straight(start) if isinstance(start, Warp) else start
    least = np.inf
    for _ in range(ROUNDS):
        now = left(warp)
        if not now.size < SETTLED * least:
            break
        best, least = warp, now.size
        found = step(now.u, now.rest)
        if found is None:
            break
        warp = _changed(warp, found)
    return best


def _by_slopes(u: np.ndarray, rest: np.ndarray) -> Step | None:
    r"""$\nabla r \approx g + H u + \frac12 T u u$: a regression for each coordinate on the same terms, then made symmetric."""
    near = _is_near(u)
    u, rest = u[near], rest[near]
    n, d = u.shape
    j, k = pairs(d)
    low, products = np.concatenate([np.ones((n, 1)), u], axis=1), u[:, j] * u[:, k] * np.where(j == k, 0.5, 1.0)
    found = ridged(low, products, np.clip(rest, -WILD, WILD), float(n))
    if found is None:
        return None
    first, second = found
    hessian, third = first[1:].T, np.zeros((d, d, d))
    third[:, j, k] = third[:, k, j] = second.T
    hessian = 0.5 * (hessian + hessian.T)
    third = (third + third.transpose(1, 0, 2) + third.transpose(1, 2, 0)) / 3
    cubic: list[np.ndarray] = []
    shift = first[0].copy()
    for i in range(d):
        before = i * (i + 1) // 2
        bend = third[i, j[:before], k[:before]] * np.where(j[:before] == k[:before], 0.5, 1.0)
        flare, skew = 0.5 * third[i, i, :i], third[i, i, i] / 3
        shift[:i] += flare
        shift[i] += skew
        cubic += [bend, flare, skew[None]]
    return Step(shift, hessian[k, j] * np.where(j == k, 0.5, 1.0), np.concatenate(cubic))


class Step(NamedTuple):
    """Coefficients of Q: of u, of products of two coordinates, and of cubic terms."""

    shift: np.ndarray
    second: np.ndarray
    cubic: np.ndarray


def _by_values(u: np.ndarray, rest: np.ndarray, weight: np.ndarray, most: float) -> Step | None:
    r"""$r \approx u \cdot Q - \nabla \cdot Q$ + const by weighted least squares, of `most` third derivatives a point."""
    near, d = _is_near(u), u.shape[1]
    u, rest = u[near], rest[near]
    # Between the posterior's weights and equal ones: the middle has the weight, the outskirts tell a cubic from a line.
    w = np.sqrt(weight[near])
    n = float(np.sum(w)) ** 2 / max(float(np.sum(w**2)), 1e-300)
    if d * (d + 1) * (d + 2) / 6 > most * n:
        return None
    low, cubic = _terms(u)
    root = np.sqrt(w)[:, None]
    found = ridged(low * root, cubic * root, np.clip(rest, -WILD, WILD)[:, None] * root, n)
    if found is None:
        return None
    first, second = (part[:, 0] for part in found)
    return Step(first[1 : 1 + d], first[1 + d :], second)


def _is_near(u: np.ndarray) -> np.ndarray:
    """Which points are near enough to be fitted; coordinates far out, or that overflow, are not."""
    return np.sum(u**2, axis=1) < (np.sqrt(u.shape[1]) + REACH) ** 2


def ridged(free: np.ndarray, bound: np.ndarray, target: np.ndarray, n: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Least squares of targets (rows, m) on free columns, and on bound ones that carry the ridge which generalised cross-validation
    with `n` effective points prefers; None if these are too few.
    """
    if free.shape[1] > TAKEN * n:
        return None
    basis, triangle = np.linalg.qr(free)
    along = basis.T @ bound
    bound = bound - basis @ along
    missed = target - basis @ (basis.T @ target)
    values, vectors = np.linalg.eigh(bound.T @ bound)
    values, projected = np.maximum(values, 0.0), vectors.T @ (bound.T @ missed)
    total, powers = float(np.sum(missed**2)), np.sum(projected**2, axis=1)
    unit = max(float(values.mean()), 1e-300)

    def score(ridge: float) -> float:
        taken = (free.shape[1] + np.sum(values / (values + ridge))) / n
        explained = np.sum(powers * (values + 2 * ridge) / (values + ridge) ** 2)
        return max(total - explained, 0.0) / (1 - taken) ** 2 if taken < TAKEN else np.inf

    scores = [score(unit * ridge) for ridge in RIDGES]
    ridge = unit * RIDGES[int(np.argmin(scores)) if np.isfinite(min(scores)) else -1]
    found = vectors @ (projected / (values + ridge)[:, None])
    return np.linalg.solve(triangle, basis.T @ target - along @ found), found


def _terms(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""$u \cdot Q - \nabla \cdot Q$ of each coefficient: of constant, shift, stretch and shear; of bend, flare and skew."""
    n, d = u.shape
    j, k = pairs(d)
    products = u[:, j] * u[:, k]
    own = j == k
    low = np.concatenate([np.ones((n, 1)), u, products - own], axis=1)
    cubic: list[np.ndarray] = []
    for i in range(d):
        before = i * (i + 1) // 2
        cubic += [products[:, :before] * u[:, [i]], u[:, :i] * (u[:, [i]] ** 2 - 1), 0.5 * u[:, [i]] ** 3 - u[:, [i]]]
    return low, np.concatenate(cubic, axis=1)


def _changed(warp: Bent, step: Step) -> Bent:
    """The warp with a step's coefficients added; shift and stretch go into the affine part."""
    d = len(warp.mean)
    j, k = pairs(d)
    shear, bend, flare, skew = (np.array(part) for part in (warp.shear, warp.bend, warp.flare, warp.skew))
    off = j < k
    shear[k[off], j[off]] += step.second[off]
    at = 0
    for i in range(d):
        before = i * (i + 1) // 2
        bend[i, :before] += step.cubic[at : at + before]
        flare[i, :i] += step.cubic[at + before : at + before + i]
        skew[i] = np.clip(skew[i] + step.cubic[at + before + i], -SKEWED, SKEWED)
        at += before + i + 1
    stretch = np.exp(np.clip(step.second[~off], -STRETCH, STRETCH))
    # z becomes e^g times what it was: its location is divided by what the factor is multiplied with.
    mean, factor = warp.mean + warp.factor @ step.shift, warp.factor * stretch
    return Bent(mean, factor, shear / stretch[:, None], bend / stretch[:, None], flare, skew)
