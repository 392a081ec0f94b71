r"""A prior of a known family in plain NumPy: draws, log densities and bijections without compiling anything.

A black-box likelihood is called on a handful of points at a time; compiling its priors for every batch size would take
longer than the whole run. The bijections are NumPyro's: $e^u$ beyond one edge, the logistic function between two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.models.families import Plain, Unsupported, member_of

Array = np.ndarray
INSIDE = (np.finfo(float).tiny, 1 - np.finfo(float).eps)  # NumPyro's clipping: log densities stay finite


@dataclass(frozen=True, eq=False)
class Twin:
    """A prior in NumPy. Points are (n, size), values (n, *shape)."""

    plain: Plain
    arguments: tuple[Array, ...]
    low: Array
    high: Array
    shape: tuple[int, ...]

    @cached_property
    def edges(self) -> tuple[bool, bool]:
        """Whether the support ends below and above."""
        return bool(np.all(np.isfinite(self.low))), bool(np.all(np.isfinite(self.high)))

    def sample(self, rng: np.random.Generator, n: int) -> Array:
        """`n` unconstrained draws."""
        return self.points(self.plain.sample(rng, (n, *self.shape), *self.arguments))

    def points(self, values: Array) -> Array:
        """Unconstrained coordinates of values; one that rounds onto an edge is pulled just inside."""
        if self.edges == (True, True):
            inside = np.clip((values - self.low) / (self.high - self.low), 1e-300, 1 - 1e-16)
            values = np.log(inside) - np.log1p(-inside)
        elif self.edges != (False, False):
            values = np.log(np.maximum(values - self.low if self.edges[0] else self.high - values, 1e-300))
        return values.reshape(len(values), math.prod(self.shape))  # -1 would not do: there may be no values

    def values(self, points: Array) -> Array:
        """Values in the user's coordinates."""
        u = points.reshape(len(points), *self.shape)
        if self.edges == (True, True):
            from scipy.special import expit

            return self.low + (self.high - self.low) * np.clip(expit(u), *INSIDE)
        if self.edges == (False, False):
            return u
        return self.low + np.exp(u) if self.edges[0] else self.high - np.exp(u)

    def log_density(self, points: Array) -> Array:
        """ln of the normalised density of the unconstrained coordinates: (n,)."""
        u = points.reshape(len(points), *self.shape)
        value = self.values(points)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            terms = self.plain.log_prob(value, *self.arguments)
            if self.edges == (True, True):
                terms = terms + np.log(self.high - self.low) - np.logaddexp(0, u) - np.logaddexp(0, -u)
            elif self.edges != (False, False):
                terms = terms + u
        return np.nan_to_num(terms.reshape(len(points), math.prod(self.shape)).sum(axis=1), nan=-np.inf)


def twin(distribution: Any) -> Twin | None:
    """The NumPy twin of a numpyro distribution, or None."""
    member = member_of(distribution)
    if member is None or isinstance(member.family.plain, Unsupported):
        return None
    arguments = tuple(np.asarray(value, float) for value in member.arguments.values())
    low, high = (np.asarray(edge) for edge in member.family.edges(*arguments))
    return Twin(member.family.plain, arguments, low, high, tuple(distribution.shape()))
