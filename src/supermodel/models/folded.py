r"""One labelling of a symmetric model: $\ln\pi(x) + \ln |G|$ where x is in order, and nothing elsewhere.

If $J(gx) = J(x)$ for all g of a group G, the integral of J is |G| times that over any set of which the images under G fill the
space once. Here this set is "blocks in the order of one of their numbers" and "this number above its centre". Every answer is
as before: ln Z is that of the whole, a posterior is the same with its labels in a stated order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.models.circle import turned
from supermodel.models.space import Space
from supermodel.models.symmetry import Circle, Exchange, Reflection, Symmetry, coordinate, exchanged, reflected


class Folded(Space):
    """A space of which only one image of each point is kept; circles are cut where it was said."""

    def __init__(self, inner: Space, symmetries: Sequence[Symmetry]):
        circles = {s.name: s for s in symmetries if isinstance(s, Circle) and s.is_used}
        priors: dict[str, Any] = dict(inner.priors)
        for name, circle in circles.items():
            cut = np.asarray(circle.cut).reshape(inner.priors[name].shape)
            priors[name] = turned(inner.priors[name], cut, circle.parts)
        super().__init__(priors)
        self.symmetries = tuple(symmetries)
        self.reflections = [s for s in symmetries if isinstance(s, Reflection) and s.is_used]
        self.exchanges = [s for s in symmetries if isinstance(s, Exchange) and s.is_used]

    @cached_property
    def opened(self) -> Space:
        """The same coordinates without the fold: ln J is smooth there."""
        return Space(self.priors)

    @property
    def log_images(self) -> float:
        """ln |G|."""
        return sum((math.log(s.images) for s in [*self.reflections, *self.exchanges]), 0.0)

    @cached_property
    def _keys(self) -> list[tuple[Exchange, list[int] | None]]:
        """Where the numbers stand that put the blocks of each exchange in order."""
        found = []
        for exchange in self.exchanges:
            at = [coordinate(self, block[exchange.by]) for block in exchange.blocks]
            circle = any(hasattr(self.priors[block[exchange.by][0]], "points_at") for block in exchange.blocks)
            found.append((exchange, None if None in at or circle else at))
        return found

    def _key(self, exchange: Exchange, at: list[int] | None, x: Any, values: Mapping[str, Any], xp: Any) -> Any:
        """(..., k) numbers that are to rise."""
        if at is not None:
            return x[..., np.array(at)]
        return xp.stack(
            [values[name][..., *index] for name, index in (b[exchange.by] for b in exchange.blocks)], axis=-1
        )

    def _inside(self, x: Any, values: Mapping[str, Any], xp: Any) -> Any:
        inside = xp.ones(x.shape[:-1], bool)
        for reflection in self.reflections:
            place = coordinate(self, reflection.entries[reflection.by])
            inside = inside & (x[..., place] >= reflection.centres[reflection.by])
        for exchange, at in self._keys:
            inside = inside & xp.all(xp.diff(self._key(exchange, at, x, values, xp), axis=-1) >= 0, axis=-1)
        return inside

    @cached_property
    def _needs_values(self) -> bool:
        return any(at is None for _, at in self._keys)

    def log_prior(self, x):
        import jax.numpy as jnp

        inside = self._inside(x, self.constrain(x) if self._needs_values else {}, jnp)
        return jnp.where(inside, super().log_prior(x) + self.log_images, -jnp.inf)

    def log_prior_at(self, points: np.ndarray) -> np.ndarray:
        inside = self._inside(points, self.values_at(points) if self._needs_values else {}, np)
        return np.where(inside, super().log_prior_at(points) + self.log_images, -np.inf)

    def sample_prior(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return self.in_order(super().sample_prior(rng, n))

    def in_order(self, x: np.ndarray) -> np.ndarray:
        """The image of each point that is kept."""
        for reflection in self.reflections:
            place = coordinate(self, reflection.entries[reflection.by])
            below = x[:, place] < reflection.centres[reflection.by]
            x = np.where(below[:, None], reflected(self, x, reflection), x)
        for exchange, at in self._keys:
            key = self._key(exchange, at, x, self.values_at(x) if at is None else {}, np)
            x = exchanged(self, x, exchange.blocks, np.argsort(key, axis=1, kind="stable"))
        return x

    def shuffled(self, rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
        """Any image of each point, all with one probability."""
        for exchange in self.exchanges:
            order = np.argsort(rng.random((len(x), len(exchange.blocks))), axis=1)
            x = exchanged(self, x, exchange.blocks, order)
        for reflection in self.reflections:
            x = np.where(rng.random((len(x), 1)) < 0.5, reflected(self, x, reflection), x)
        return x

    def points_from(self, space: Space, x: np.ndarray) -> np.ndarray:
        """Points of the space that was folded, in the coordinates of this one."""
        result = x.copy()
        for name, prior in self.priors.items():
            if hasattr(prior, "points_at"):
                place = self.slices[name]
                result[:, place] = prior.points_at(space.priors[name].values_at(x[:, place]))
        return self.in_order(result)
