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

ODD = 0.3  # likeness below which a summit does not explain a slope
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

    def is_concave(self, warp: Warp) -> bool:
        """Whether no two slopes contradict a concave ln J; in the coordinates of a warp, whose numbers are of order 1."""
        if not np.all(self.is_known):
            return False
        u, g = warp.inverse(self.x), self.gradient @ np.asarray(warp.factor)
        product, size = g @ u.T, np.outer(np.linalg.norm(g, axis=1), np.linalg.norm(u, axis=1))
        own = np.diagonal(product)
        rise = own[:, None] + own[None] - product - product.T
        return bool(np.all(rise <= ROUNDING * (size + size.T + np.diagonal(size)[:, None] + np.diagonal(size)[None])))


def likeness(modes: list[Mode], slopes: Slopes) -> np.ndarray:
    r"""How well the best of the modes explains each slope: 1 on a hill, or on the far slope of a normal law; 0 where it leads away.

    With $u$ the way from a summit of height $\ln \hat J$ in the metric of its hill, a normal law has $g = -u$ and
    $-g \cdot u = 2 (\ln \hat J - \ln J)$. So the cosine between $g$ and $-u$ is taken, times the ratio of the two sides or its
    inverse, whichever is below 1. In the basin of another mode, $r$ from it and $R$ from this one, that is at most $r / R$: small
    if that mode is narrow.
    """
    most = np.zeros(len(slopes.x))
    for mode in modes:
        u, g = mode.warp.inverse(slopes.x), slopes.gradient @ np.asarray(mode.warp.factor)
        far, rise, drop = np.linalg.norm(u, axis=1), -np.sum(u * g, axis=1), mode.log_joint - slopes.log_joint
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine, ratio = rise / (far * np.linalg.norm(g, axis=1)), rise / (2 * drop)
            like = np.where((rise > 0) & (drop > 0), cosine * np.minimum(ratio, 1 / ratio), 0.0)
        most = np.maximum(most, np.where((far < HOME) | np.isnan(like), 1.0, like))
    return most
