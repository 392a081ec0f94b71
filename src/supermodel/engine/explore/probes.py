r"""Probes: an even net of gradients over the core of each hill, for spikes that stand inside.

A spike of width $w$ inside a hill, both in standard deviations of the hill, is felt within about $w \sqrt{2 \ln(J_s / J_h) + 8}$ of
its top and nowhere else. Draws of the hill fall there by chance; a net of $n$ points per unit of volume whose meshes are no wider
cannot miss it. There the slope is one that no neighbour shares, and it points to the top.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from supermodel.engine.explore.climb import Mode
from supermodel.engine.explore.slopes import Slopes

NEIGHBOURS = 8  # probes that a slope is compared with
ALIKE = 1e-5  # slopes, in units of the hill, that differ by no more are the same: those of a normal law
STRANGE = 8.0  # times the scatter of its neighbours' slopes about their middle, from which on a slope is none of theirs
STANDS_OUT = 3.0  # nats above the hill
ALONG = np.append(0.0, 2.0 * 0.6 ** np.arange(10))  # meshes along a strange slope, on which its summit is looked for


class Cores(NamedTuple):
    """A uniform density on the balls of one radius about the modes, each in the coordinates of its hill."""

    modes: list[Mode]
    radius: float

    def log_density(self, x: np.ndarray) -> np.ndarray:
        d = x.shape[1]
        log_ball = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1) + d * np.log(self.radius)
        inside = [np.sum(mode.warp.inverse(x) ** 2, axis=1) <= self.radius**2 for mode in self.modes]
        parts = [np.where(i, np.exp(-m.warp.log_det_value()), 0.0) for i, m in zip(inside, self.modes, strict=True)]
        with np.errstate(divide="ignore"):
            return np.log(np.mean(parts, axis=0)) - log_ball

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """An even net on each ball; moved at random, so that each point is a draw of the density."""
        sizes = np.bincount(np.arange(n) % len(self.modes), minlength=len(self.modes))
        nets = [self.radius * net(rng, size, len(m.point)) for size, m in zip(sizes, self.modes, strict=True)]
        return np.concatenate([m.warp.points(u) for u, m in zip(nets, self.modes, strict=True)])


def net(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    r"""$n$ points spread evenly over the unit ball of two or three dimensions: the seeds of a sunflower.

    Shells of equal volume, one for each point, and directions by the golden section and its like: $\{s_i + k g^{-i}\}$ with
    $g^d = g + 1$. The shifts $s$ are random, so that each point is a uniform draw.
    """
    g = np.max(np.real(np.roots([1.0, *np.zeros(d - 2), -1.0, -1.0])))
    turn = (rng.random(d - 1) + np.arange(n)[:, None] * g ** -np.arange(1.0, d)) % 1.0
    radius, angle = ((np.arange(n) + rng.random()) / n) ** (1 / d), 2 * np.pi * turn[:, 0]
    height = 2 * turn[:, 1] - 1 if d == 3 else np.zeros(n)
    around = np.sqrt(1 - height**2)
    return radius[:, None] * np.stack([around * np.cos(angle), around * np.sin(angle), height], axis=1)[:, :d]


def strangers(u: np.ndarray, slope: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Probes whose slopes are none of their neighbours', the strangest first, and the directions in which these point.

    In the coordinates of a hill $\nabla \ln J = -u$ if it is normal; what is left, $\nabla \ln J + u$, changes little from a probe
    to the next. A slope far from the middle of its neighbours', in units of their scatter, is due to something narrow.
    """
    from scipy.spatial import cKDTree

    left = slope + u
    near = left[cKDTree(u).query(u, k=NEIGHBOURS + 1)[1][:, 1:]]
    middle = np.median(near, axis=1)
    scatter = np.median(np.linalg.norm(near - middle[:, None], axis=2), axis=1)
    off = left - middle
    size = np.linalg.norm(off, axis=1)
    strange = size / (scatter + ALIKE)
    rows = np.argsort(-strange, kind="stable")[:most]
    rows = rows[strange[rows] > STRANGE]
    return u[rows], off[rows] / size[rows, None]


def starts(modes: list[Mode], slopes: Slopes, most: int, height: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Points from which a climb leads to what stands inside a hill: those high above it, and the highest on short lines along
    the strangest slopes. `height`: ln J.
    """
    u = np.stack([mode.warp.inverse(slopes.x) for mode in modes])  # (M, n, d)
    below = np.array([mode.log_joint for mode in modes])[:, None] - 0.5 * np.sum(u**2, axis=2)
    owner, excess = np.argmax(below, axis=0), slopes.log_joint - np.max(below, axis=0)
    rows = np.argsort(-excess, kind="stable")[:most]
    found = [slopes.x[rows[excess[rows] > STANDS_OUT]]]
    for k, mode in enumerate(modes):
        rows = np.flatnonzero((owner == k) & slopes.is_known)
        if len(rows) > NEIGHBOURS:
            found += _along(mode, u[k, rows], slopes.gradient[rows] @ np.asarray(mode.warp.factor), most, height)
    return np.concatenate(found)


def _along(mode: Mode, u: np.ndarray, slope: np.ndarray, most: int, height: Callable) -> list[np.ndarray]:
    """The highest point above the hill on a short line along each strange slope, (1, d) each."""
    mesh, found = np.max(np.linalg.norm(u, axis=1)) * len(u) ** (-1 / u.shape[1]), []
    for at, way in zip(*strangers(u, slope, most), strict=True):
        line = at + mesh * ALONG[:, None] * way
        best = int(np.argmax(height(mode.warp.points(line)) + 0.5 * np.sum(line**2, axis=1)))
        found.append(mode.warp.points(line[[best]]))
    return found
