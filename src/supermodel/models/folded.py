r"""One labelling of a symmetric model: $\ln\pi(x) + \ln |G|$ where x is in order, and nothing elsewhere.

If $J(gx) = J(x)$ for all g of a group G, the integral of J is |G| times that over any set of which the images under G fill the
space once. Here this set is "blocks in the order of one of their numbers", "this number above its centre" and "as a declared
canonical form leaves it". Every answer is as before: ln Z is that of the whole, a posterior is the same with its labels in a
stated order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.models.circle import turned
from supermodel.models.space import Space
from supermodel.models.symmetry import (
    Canonical,
    Circle,
    Exchange,
    Reflection,
    Symmetry,
    coordinate,
    exchanged,
    formed,
    formed_points,
    is_circular,
    points_at,
    reflected,
)

AS_IT_WAS = 1e-6  # relative: rounding of a canonical form, far below how far any other image is


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
        self.canonicals = [s for s in symmetries if isinstance(s, Canonical)]

    @cached_property
    def opened(self) -> Space:
        """The same coordinates without the fold: ln J is smooth there."""
        return Space(self.priors)

    @property
    def log_images(self) -> float:
        """ln |G|."""
        return sum((math.log(s.images) for s in [*self.reflections, *self.exchanges, *self.canonicals]), 0.0)

    @property
    def copies(self) -> float:
        """How many times smaller than the whole prior the part is that is kept: |G|, and parts of turns."""
        parts = [prior.parts for name, prior in self.priors.items() if is_circular(self, name)]
        return math.exp(self.log_images) * math.prod(parts)

    @cached_property
    def _keys(self) -> list[tuple[Exchange, list[int] | None]]:
        """Where the numbers stand that put the blocks of each exchange in order."""
        found = []
        for exchange in self.exchanges:
            at = [coordinate(self, block[exchange.by]) for block in exchange.blocks]
            circle = any(is_circular(self, block[exchange.by][0]) for block in exchange.blocks)
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
        for canonical in self.canonicals if xp is not np else ():
            inside = inside & self._is_form(values, canonical.form(dict(values)), xp)
        return inside

    @staticmethod
    def _is_form(values: Mapping[str, Any], form: Mapping[str, Any], xp: Any) -> Any:
        """Whether one point is its own canonical form."""
        close = [xp.all(xp.isclose(form[n], v, rtol=AS_IT_WAS, atol=AS_IT_WAS * 1e-6)) for n, v in values.items()]
        return xp.all(xp.stack(close))

    @cached_property
    def _needs_values(self) -> bool:
        return bool(self.canonicals) or any(at is None for _, at in self._keys)

    def log_prior(self, x):
        import jax.numpy as jnp

        inside = self._inside(x, self.constrain(x) if self._needs_values else {}, jnp)
        return jnp.where(inside, super().log_prior(x) + self.log_images, -jnp.inf)

    def log_prior_at(self, points: np.ndarray) -> np.ndarray:
        inside = self._inside(points, self.values_at(points) if self._needs_values else {}, np)
        for canonical in self.canonicals:
            inside = inside & self._in_form(points, canonical)
        return np.where(inside, super().log_prior_at(points) + self.log_images, -np.inf)

    def _in_form(self, points: np.ndarray, canonical: Canonical) -> np.ndarray:
        values, forms = formed(self, points, canonical)
        each = [
            np.isclose(forms[n], v, rtol=AS_IT_WAS, atol=AS_IT_WAS * 1e-6).all(axis=tuple(range(1, v.ndim)))
            for n, v in values.items()
        ]
        return np.all(each, axis=0)

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
            x = exchanged(self, x, exchange, np.argsort(key, axis=1, kind="stable"))
        for canonical in self.canonicals:
            x = formed_points(self, x, canonical)
        return x

    def anywhere(self, rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
        """Any image of each point, all of exchanges and reflections with one probability."""
        for exchange in self.exchanges:
            x = exchanged(self, x, exchange, np.argsort(rng.random((len(x), len(exchange.blocks))), axis=1))
        for reflection in self.reflections:
            x = np.where(rng.random((len(x), 1)) < 0.5, reflected(self, x, reflection), x)
        return x

    def points_from(self, space: Space, x: np.ndarray) -> np.ndarray:
        """Points of the space that was folded, in the coordinates of this one."""
        result = x.copy()
        for name, prior in self.priors.items():
            if is_circular(self, name):
                place = self.slices[name]
                result[:, place] = prior.points_at(space.priors[name].values_at(x[:, place]))
        return self.in_order(result)

    def points_in(self, space: Space, x: np.ndarray) -> np.ndarray:
        """Points of this space in the coordinates of the one that was folded."""
        result = x.copy()
        for name, prior in self.priors.items():
            if is_circular(self, name):
                place = self.slices[name]
                result[:, place] = points_at(space.priors[name], prior.values_at(x[:, place]))
        return result
