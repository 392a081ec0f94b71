r"""Parameters under one joint prior: hierarchies, dynamic supports, unit cubes, densities given as functions.

`Space` multiplies one prior per parameter. Where the prior of one parameter depends on another, only the joint density
$\pi(x)$ of all of them is known; `JointSpace` carries it, with the same interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.errors import ModelError, PriorError
from supermodel.jax_scope import in_float64
from supermodel.models.space import check_name, check_names


@dataclass(frozen=True)
class Site:
    """One parameter of a joint prior: its shape as the user sees it and its number of unconstrained coordinates."""

    shape: tuple[int, ...]
    size: int
    description: str = "joint prior"
    alone: Any = None  # the prior by itself, where it depends on no other parameter and its family is known

    def _refuse(self, *_: Any) -> Any:
        raise PriorError(
            f"this parameter ({self.description}) belongs to a joint prior, so it has no density of its own. Methods "
            "that need one (companions from priors, prior sensitivity of one parameter) cannot use it; `compare` can."
        )

    constrain = unconstrain = log_jacobian = log_density = sample = values_at = log_density_at = _refuse


@dataclass(frozen=True, eq=False)
class JointSpace:
    r"""$x \in R^d \leftrightarrow \{name: value\}$ and $\ln \pi(x)$, given as functions.

    `to_values(x)` and `density(x)` take one point; `draw(rng, n)` gives (n, d) points; `to_points(values)` gives one.
    `many_values` and `many_densities`, if given, take (n, d) points at once, in NumPy: nothing is compiled then.
    Where `to_values` or `density` cannot be traced by JAX, `traceable` is false and points are taken one by one.
    """

    priors: Mapping[str, Site]
    to_values: Callable[[Any], Mapping[str, Any]]
    density: Callable[[Any], Any]
    draw: Callable[[np.random.Generator, int], np.ndarray]
    to_points: Callable[[Mapping[str, Any]], Any] | None = None
    many_values: Callable[[np.ndarray], Mapping[str, np.ndarray]] | None = None
    many_densities: Callable[[np.ndarray], np.ndarray] | None = None
    traceable: bool = True
    is_standard_normal: bool = False  # the density is N(0, I)
    # Where coordinate i of the functions above stands in x: parameters may be packed in another order.
    order: np.ndarray | None = None

    def __post_init__(self):
        for name in self.priors:
            check_name(name, "a parameter name")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.priors)

    @cached_property
    def slices(self) -> dict[str, slice]:
        ends = np.cumsum([0] + [site.size for site in self.priors.values()])
        return {name: slice(int(a), int(b)) for name, a, b in zip(self.priors, ends, ends[1:], strict=False)}

    @property
    def dimension(self) -> int:
        return sum(site.size for site in self.priors.values())

    def reordered(self, names: Sequence[str]) -> JointSpace:
        """The same space with its parameters packed in another order."""
        priors = {name: self.priors[name] for name in names}
        twin = replace(self, priors=priors, order=None)
        mine = np.arange(self.dimension) if self.order is None else self.order
        # Coordinate i of the functions stood at mine[i]; the parameter it belongs to has moved.
        moved = np.empty(self.dimension, int)
        for name in self.names:
            moved[self.slices[name]] = np.arange(twin.slices[name].start, twin.slices[name].stop)
        object.__setattr__(twin, "order", moved[mine])
        return twin

    def _inner(self, x: Any) -> Any:
        return x if self.order is None else x[..., self.order]

    def _outer(self, x: np.ndarray) -> np.ndarray:
        if self.order is None:
            return x
        result = np.empty_like(x)
        result[..., self.order] = x
        return result

    # -- one point ----------------------------------------------------------------------------------------------------

    def constrain(self, x: Any) -> dict[str, Any]:
        """Values in the user's coordinates at one point."""
        values = self.to_values(self._inner(x))
        return {name: values[name] for name in self.priors}

    def log_prior(self, x: Any) -> Any:
        r"""$\ln \pi(x)$, Jacobian included."""
        return self.density(self._inner(x))

    @in_float64
    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        """The point whose values are `values`."""
        check_names(self.names, values)
        if self.to_points is None:
            raise ModelError(
                "values of this model cannot be turned into unconstrained coordinates: it was given as a transform "
                "from the unit cube, whose inverse is not known. Samples of it cannot serve as a pilot."
            )
        return self._outer(np.asarray(self.to_points(values), float))

    def points_of(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The points (n, dimension) of many values (n, ...)."""
        n = len(next(iter(values.values())))
        return np.stack([self.unconstrain({name: values[name][i] for name in self.names}) for i in range(n)])

    # -- many points, NumPy -------------------------------------------------------------------------------------------

    def sample_prior(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """`n` prior draws, (n, dimension), unconstrained."""
        return self._outer(np.asarray(self.draw(rng, n), float).reshape(n, self.dimension))

    @cached_property
    def _compiled(self):
        import jax

        return jax.jit(jax.vmap(self.constrain)), jax.jit(jax.vmap(self.log_prior))

    @in_float64
    def values_at(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """`constrain` of many points (n, dimension), as NumPy arrays (n, ...)."""
        if self.many_values is not None:
            values = self.many_values(np.asarray(self._inner(points)))
            return {name: np.asarray(values[name]) for name in self.priors}
        if self.traceable:
            return {name: np.asarray(value) for name, value in self._compiled[0](points).items()}
        each = [self.constrain(x) for x in np.asarray(points)]
        return {name: np.stack([np.asarray(v[name], float) for v in each]) for name in self.priors}

    @in_float64
    def log_prior_at(self, points: np.ndarray) -> np.ndarray:
        """`log_prior` of many points (n, dimension)."""
        if self.many_densities is not None:
            return self.many_densities(np.asarray(self._inner(points)))
        if self.traceable:
            return np.asarray(self._compiled[1](points))
        return np.array([float(self.log_prior(x)) for x in np.asarray(points)])
