r"""Slopes: gradients at draws of the prior, which tell more of a posterior than heights do.

A draw far from a narrow mode is as low as any other, but its slope points there: of a mode of sd 0.2 in a box of side 20 in five
dimensions, one draw in five hundred stands on a slope that leads to it, one in two million above the rest. And
$(g_i - g_j) \cdot (x_i - x_j) \le 0$ for all pairs if $\ln J$ is concave: then there is one mode, and no shoulder.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.embedding.warp import Warp
from supermodel.engine.explore.climb import Mode

ODD = 0.3  # cosine between a slope and the way to a summit, below which that summit does not explain it
HOME = 3.0  # standard deviations of a hill within which its slopes are its own
ROUNDING = 1e-7  # of a product of slope and distance


class Slopes(NamedTuple):
    """Points of a traced model with ln J and its gradient."""

    x: np.ndarray  # (n, d)
    log_joint: np.ndarray  # (n,)
    gradient: np.ndarray  # (n, d)

    @classmethod
    def none(cls, d: int) -> Slopes:
        return cls(np.zeros((0, d)), np.zeros(0), np.zeros((0, d)))

    def joined(self, other: Slopes) -> Slopes:
        return Slopes(*map(np.concatenate, zip(self, other, strict=True)))

    @property
    def is_known(self) -> np.ndarray:
        return np.isfinite(self.log_joint) & np.all(np.isfinite(self.gradient), axis=1)

    @property
    def is_blind(self) -> bool:
        """Whether there are points whose gradient is no number though ln J is: no climb starts there."""
        return bool(np.any(np.isfinite(self.log_joint) & ~self.is_known))

    def is_concave(self, warp: Warp) -> bool:
        """Whether no two slopes contradict a concave ln J; in the coordinates of a warp, whose numbers are of order 1."""
        if not np.all(self.is_known):
            return False
        u, g = warp.inverse(self.x), self.gradient @ np.asarray(warp.factor)
        product, size = g @ u.T, np.outer(np.linalg.norm(g, axis=1), np.linalg.norm(u, axis=1))
        own = np.diagonal(product)
        rise = own[:, None] + own[None] - product - product.T
        return bool(np.all(rise <= ROUNDING * (size + size.T + np.diagonal(size)[:, None] + np.diagonal(size)[None])))

    def odd(self, modes: list[Mode], most: int) -> np.ndarray:
        """Rows of the slopes that point to none of the modes, those that point away from all the most first."""
        explained = np.full(len(self.x), -1.0)
        for mode in modes:
            u, g = mode.warp.inverse(self.x), self.gradient @ np.asarray(mode.warp.factor)
            far = np.linalg.norm(u, axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                cosine = -np.sum(u * g, axis=1) / (far * np.linalg.norm(g, axis=1))
            explained = np.maximum(explained, np.where((far < HOME) | np.isnan(cosine), 1.0, cosine))
        rows = np.flatnonzero(self.is_known & (explained < ODD))
        return rows[np.argsort(explained[rows], kind="stable")][:most]
