r"""A prior on a circle, cut open where it does no harm: $v = l + ((v_0 - l) / m + c) \bmod t$.

The coordinates of a bounded prior end where the circle is cut, and a mode across the cut is two halves. Here the cut is put
anywhere: $v_0 = T(u)$ is the value in the prior's own coordinates, $l$ the lower end, $t$ the whole turn and $c$ the cut. A
likelihood that repeats itself m times a turn is known from one part, which stands for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.models.families import member_of
from supermodel.models.priors import Bijected, Prior, Quantile

EVEN = np.linspace(0.01, 0.99, 15)  # quantiles that lie evenly only in a uniform law
WHOLE = 1e-9  # of a turn: rounding of its ends as they are written


@dataclass(frozen=True, eq=False)
class Turned:
    """The prior `base` on a circle that is cut `cut` above its lower end; one of `parts` equal parts of it."""

    base: Prior
    low: float
    turn: float
    cut: np.ndarray  # of the shape of the value
    parts: int = 1
    density: Callable[[Any], Any] | None = None  # ln p(v), where it is not uniform

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.shape

    @property
    def size(self) -> int:
        return self.base.size

    @property
    def description(self) -> str:
        return self.base.description

    def _turned(self, value: Any, xp: Any) -> Any:
        return self.low + xp.mod((value - self.low) / self.parts + self.cut, self.turn)

    def constrain(self, u):
        import jax.numpy as jnp

        return self._turned(self.base.constrain(u), jnp)

    def values_at(self, points: np.ndarray) -> np.ndarray:
        return self._turned(self.base.values_at(points), np)

    def _straight(self, value: Any) -> Any:
        """The value in the coordinates of `base`, of any of the parts."""
        inside = np.mod(np.asarray(value, float) - self.low - self.cut, self.turn / self.parts) * self.parts
        return self.low + np.clip(inside, WHOLE * self.turn, (1 - WHOLE) * self.turn)

    def unconstrain(self, value):
        return self.base.unconstrain(self._straight(value))

    def points_at(self, values: np.ndarray) -> np.ndarray:
        """Unconstrained coordinates (n, size) of many values (n, ...)."""
        share = (self._straight(values) - self.low) / self.turn
        return self._to_points(share.reshape(len(values), self.size))

    def _to_points(self, share: np.ndarray) -> np.ndarray:
        from scipy.special import logit, ndtri

        return ndtri(share) if isinstance(self.base, Quantile) else logit(share)

    def log_jacobian(self, u):
        import jax.numpy as jnp

        return self.base.log_jacobian(u) - self.size * jnp.log(self.parts)

    def log_density(self, u):
        if self.density is None:
            return self.base.log_density(u)
        return self.density(self.constrain(u)).sum() + self.base.log_jacobian(u)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return self.base.sample(rng, n) if self.density is None else self.points_at(self._drawn(rng, n))

    def _drawn(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return self.base.values_at(self.base.sample(rng, n))

    def log_density_at(self, points: np.ndarray) -> np.ndarray:
        if self.density is None:
            return self.base.log_density_at(points)
        import jax

        return np.asarray(jax.vmap(self.log_density)(points))


def turn_of(prior: Any) -> tuple[float, float, Callable[[Any], Any] | None] | None:
    """(lower end, turn, ln p unless it is uniform) of a prior on one interval; None of any other."""
    if isinstance(prior, Turned):
        return None
    if isinstance(prior, Quantile):
        low, high = (float(prior.values(np.array(end))) for end in (-prior.FAR, prior.FAR))
        if not (np.isfinite(low) and np.isfinite(high) and high > low):
            return None
        quantiles = np.asarray(prior.ppf(EVEN), float)
        is_even = np.allclose(quantiles, low + (high - low) * EVEN, rtol=0, atol=1e-9 * (high - low))
        return (low, high - low, None) if is_even else None
    if not isinstance(prior, Bijected) or not prior.size or prior.unconstrained_shape != prior.shape:
        return None
    member = member_of(prior.distribution)
    if member is not None and member.name == "Uniform":
        ends = [np.unique(np.asarray(member.arguments[end], float)) for end in ("low", "high")]
        return (float(ends[0][0]), float((ends[1] - ends[0])[0]), None) if len(ends[0]) == len(ends[1]) == 1 else None
    if type(prior.distribution).__name__ == "VonMises" and prior.size == 1:
        return -np.pi, 2 * np.pi, prior.distribution.log_prob
    return None


def is_round(prior: Any) -> bool:
    """Whether a prior is one on a circle by its family."""
    found = turn_of(prior)
    return found is not None and found[2] is not None


def turned(prior: Any, cut: Any = 0.0, parts: int = 1) -> Turned:
    """A prior on an interval as one on a circle, cut open at `cut` above its lower end."""
    low, turn, density = turn_of(prior) or (np.nan, np.nan, None)
    return Turned(prior, low, turn, np.broadcast_to(np.asarray(cut, float), prior.shape), parts, density)
