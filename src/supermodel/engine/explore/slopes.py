r"""Gradients at draws of the prior: whether ln J is concave.

$(g_i - g_j) \cdot (x_i - x_j) \le 0$ for all pairs if it is: then there is one mode, and no shoulder. A draw in the basin of a
narrow mode is as low as any other, but its gradient contradicts those of the wide one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.embedding.warp import Warp

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

    def is_concave(self, warp: Warp) -> bool:
        """Whether no two slopes contradict a concave ln J; in the coordinates of a warp, whose numbers are of order 1."""
        if not np.all(self.is_known):
            return False
        u, g = warp.inverse(self.x), self.gradient @ np.asarray(warp.factor)
        product, size = g @ u.T, np.outer(np.linalg.norm(g, axis=1), np.linalg.norm(u, axis=1))
        own = np.diagonal(product)
        rise = own[:, None] + own[None] - product - product.T
        return bool(np.all(rise <= ROUNDING * (size + size.T + np.diagonal(size)[:, None] + np.diagonal(size)[None])))
