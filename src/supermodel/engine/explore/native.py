r"""The user's own coordinates: what is a normal law there is none any more in coordinates that stretch a box to all of space.

With $y_i = T_i(x_i)$, one coordinate after the other, the posterior density of $y$ is $\ln p(y) = \ln J(x) - \sum_i \ln T_i'(x_i)$,
and its gradient $(\partial_i \ln J - \partial_i \ln T_i') / T_i'$. Differences give the derivatives of $T$, at no likelihood call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supermodel.embedding.warp import Warp
from supermodel.engine.explore.climb import Mode
from supermodel.engine.explore.slopes import HOME, ODD, Slopes, likeness

STEP = 1e-3  # of a difference, in coordinates whose prior is of order 1
SHORT = 1e-4  # of a step on the way to a summit, in the same
STRANGE = 0.5  # of the rise that a normal law has there, or its inverse, below which a point is looked at further
SURE = 0.8  # likeness from which on a climb leads to a mode that is known
ALONE = 1e-9  # of its own change: what a coordinate may move another by


def values(space, x: np.ndarray) -> np.ndarray:
    """The parameters as one array (n, D)."""
    return np.concatenate([np.reshape(v, (len(x), -1)) for v in space.values_at(x).values()], axis=1)


def is_plain(space, x: np.ndarray) -> bool:
    """Whether each parameter depends on one coordinate alone; asked at the point `x` (d,)."""
    d = len(x)
    here, moved = values(space, x[None]), values(space, x + STEP * np.eye(d))
    if here.shape[1] != d:
        return False
    change = np.abs(moved - here)
    own = np.diagonal(change)
    return bool(np.all(own > 0) and np.all(change - np.diag(own) <= ALONE * own[:, None]))


def _derivatives(space, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""$T$, $\ln T'$ and its derivative."""
    low, lower, here, higher, high = (values(space, x + k * STEP) for k in (-2, -1, 0, 1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        left, middle, right = (
            np.log(np.abs(a - b) / (2 * STEP)) for a, b in ((here, low), (higher, lower), (high, here))
        )
        return here, middle, (right - left) / (2 * STEP)


def seen(space, slopes: Slopes) -> Slopes:
    """Slopes in the user's coordinates."""
    y, log_slope, bend = _derivatives(space, slopes.x)
    with np.errstate(over="ignore", invalid="ignore"):
        return Slopes(y, slopes.log_joint - log_slope.sum(axis=1), (slopes.gradient - bend) / np.exp(log_slope))


def mode_of(space, mode: Mode) -> Mode:
    """A mode in the user's coordinates."""
    y, log_slope, _ = (found[0] for found in _derivatives(space, mode.point[None]))
    factor = np.exp(log_slope)[:, None] * np.asarray(mode.warp.factor)
    return Mode(y, mode.log_joint - float(log_slope.sum()), Warp(y, factor))


def likeness_of(space, slopes: Slopes, modes: list[Mode]) -> np.ndarray:
    """How well the modes explain each slope, in these coordinates or in the user's, whichever is better."""
    like = likeness(modes, slopes)
    if is_plain(space, modes[0].point):
        like = np.maximum(like, likeness([mode_of(space, mode) for mode in modes], seen(space, slopes)))
    return like


def odd(space, slopes: Slopes, modes: list[Mode], most: int) -> np.ndarray:
    """Rows of the slopes that lead to none of the modes, the oddest first."""
    like = likeness_of(space, slopes, modes)
    rows = np.flatnonzero(slopes.is_known & (like < ODD))
    return rows[np.argsort(like[rows], kind="stable")][:most]


def strange(
    space, x: np.ndarray, log_joint: np.ndarray, modes: list[Mode], height: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    r"""Rows at which the straight way to a summit, in the user's coordinates, rises unlike on a normal law; the strangest first.

    One call each, without gradients: with $s$ the summit whose hill is highest at $y$, a normal law has
    $\partial_t \ln p(y + t (s - y)) = 2 [\ln p(s) - \ln p(y)]$ at $t = 0$. Near a narrow mode elsewhere the left side is larger, of
    either sign.
    """
    plain = is_plain(space, modes[0].point)

    def seen_from(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _derivatives(space, at)[:2] if plain else (at, np.zeros_like(at))

    known = [mode_of(space, mode) for mode in modes] if plain else modes
    y, log_slope = seen_from(x)
    here = log_joint - log_slope.sum(axis=1)
    squares = np.stack([np.sum(mode.warp.inverse(y) ** 2, axis=1) for mode in known])
    tops = np.array([mode.log_joint for mode in known])
    owner = np.argmax(tops[:, None] - 0.5 * squares, axis=0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        way = (np.stack([mode.point for mode in known])[owner] - y) / np.exp(log_slope)
        t = SHORT / np.linalg.norm(way, axis=1)
        there = x + t[:, None] * way
        rise = (height(there) - seen_from(there)[1].sum(axis=1) - here) / t
        ratio = rise / (2 * (tops[owner] - here))
        like = np.where(ratio > 0, np.minimum(ratio, 1 / ratio), 0.0)
    like = np.where(np.min(squares, axis=0) < HOME**2, 1.0, like)
    rows = np.flatnonzero(np.isfinite(log_joint) & (like < STRANGE))
    return rows[np.argsort(like[rows], kind="stable")]


def homeward(space, modes: list[Mode]) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Which climbers are surely on their way to a mode that is known."""
    return lambda x, log_joint, gradient: likeness_of(space, Slopes(x, log_joint, gradient), modes) > SURE
