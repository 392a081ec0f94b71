r"""A model as nested samplers want it: a log likelihood and a transform of the unit cube.

With $u = \Phi(z)$ the prior is exactly $N(0, I)$ in $z$: normalised by construction, whatever the transform does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from supermodel.errors import ModelError
from supermodel.jax_scope import in_float64
from supermodel.models.joint_space import JointSpace, Site
from supermodel.models.model import Model
from supermodel.models.priors import LOG_ROOT_2PI

# A cube coordinate of 0 or 1 would often be an infinite value.
LOWEST, HIGHEST = 1e-300, 1.0 - 2.0**-53


@in_float64
def from_unit_cube(
    loglike: Callable[[Any], Any],
    prior_transform: Callable[[Any], Any],
    names: Sequence[str],
    *,
    vectorized: bool = False,
) -> Model:
    """The model of `loglike(theta)` with `theta = prior_transform(u)`, as dynesty and UltraNest take them.

    Both take and return plain arrays, in the order of `names`. `vectorized`: both take (n, d) arrays. Functions written
    for JAX are differentiated; others are called as they are.
    """
    names = _checked_names(names)
    transform = _Transform(prior_transform, names, vectorized)
    transform.try_out()
    likelihood = _Likelihood(loglike, names, vectorized)
    return Model.from_space(cube_space(names, transform), likelihood, vectorized=vectorized)


def cube_space(names: Sequence[str], transform: Any, descriptions: Mapping[str, str] | None = None) -> JointSpace:
    """The space of a transform of the unit cube: `transform(u)` gives {name: value}, `.many(u)` those of many."""
    import jax.numpy as jnp
    from jax.scipy.special import ndtr

    def density(z):
        return -0.5 * jnp.sum(z * z) - LOG_ROOT_2PI * len(names)

    def to_values(z):
        return transform(jnp.clip(ndtr(z), LOWEST, HIGHEST))

    def many_values(points):
        from scipy.special import ndtr as ndtr_numpy

        return transform.many(np.clip(ndtr_numpy(points), LOWEST, HIGHEST))

    def many_densities(points):
        return -0.5 * np.sum(points**2, axis=1) - LOG_ROOT_2PI * len(names)

    def draw(rng, n):
        return rng.standard_normal((n, len(names)))

    described = descriptions or {}
    priors = {name: Site((), 1, described.get(name, "from the unit cube")) for name in names}
    return JointSpace(priors, to_values, density, draw, None, many_values, many_densities, is_standard_normal=True)


class _Transform:
    """The user's transform, of one point (traced or not) and of many."""

    def __init__(self, function: Callable[[Any], Any], names: tuple[str, ...], vectorized: bool):
        self.function, self.names, self.vectorized = function, names, vectorized

    def __call__(self, u: Any) -> dict[str, Any]:
        import jax.numpy as jnp

        theta = self.function(u[None])[0] if self.vectorized else self.function(u)
        theta = jnp.stack(list(theta)) if isinstance(theta, list | tuple) else theta
        return {name: theta[i] for i, name in enumerate(self.names)}

    def many(self, u: np.ndarray) -> dict[str, np.ndarray]:
        if self.vectorized:
            theta = np.asarray(self.function(u.copy()), float)
        else:  # a copy for each call: some transforms write into what they are given
            theta = np.array([np.asarray(self.function(row.copy()), float) for row in u])
        return {name: theta[:, i] for i, name in enumerate(self.names)}

    def try_out(self) -> None:
        d = len(self.names)
        try:
            theta = self.function(np.full((1, d) if self.vectorized else d, 0.5))
            theta = np.asarray(theta, float)
        except Exception as error:
            raise ModelError(
                f"`prior_transform` fails at the centre of the unit cube, u = [0.5] * {d}: {type(error).__name__}: "
                f"{error}. It must take an array of {d} numbers between 0 and 1 and return {d} parameter values."
            ) from error
        wanted = (1, d) if self.vectorized else (d,)
        if theta.shape != wanted or not np.all(np.isfinite(theta)):
            raise ModelError(
                f"`prior_transform` of the centre of the unit cube is {theta.tolist()}, of shape {theta.shape}; "
                f"{wanted} finite numbers are needed, one for each of {', '.join(self.names)}."
            )


class _Likelihood:
    """The user's log likelihood of an array, as one of named values; worker processes can receive it."""

    def __init__(self, function: Callable[[Any], Any], names: tuple[str, ...], vectorized: bool):
        self.function, self.names, self.vectorized = function, names, vectorized

    def __call__(self, values: Mapping[str, Any], data: Any = None) -> Any:
        theta = stacked([values[name] for name in self.names])
        if self.vectorized and theta.ndim == 1:
            return self.function(theta[None])[0]
        return self.function(theta)


def stacked(values: list[Any]) -> Any:
    """One array, NumPy's own unless JAX is tracing."""
    if all(isinstance(v, np.ndarray | np.generic | float | int) for v in values):
        return np.stack([np.asarray(v, float) for v in values], axis=-1)
    import jax.numpy as jnp

    return jnp.stack([jnp.asarray(v) for v in values], axis=-1)


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ModelError(f"`names` must be a list of parameter names; got the text {names!r}. Write [{names!r}].")
    names = tuple(names)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ModelError(
            f"`names` must be a list of parameter names, one for each dimension of the cube; got {names!r}."
        )
    if len(set(names)) != len(names):
        raise ModelError(f"`names` has a name twice: {names}.")
    return names
