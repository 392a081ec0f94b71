r"""A `Model` as nested samplers want it: a log likelihood and a transform of the unit cube.

Priors with a quantile function are transformed exactly, vectors number by number, multivariate normal and Dirichlet
vectors as they are drawn. Others (hierarchies, densities) have none; there the cube is sent to a Student t density $q$ near
the prior and $\ln \pi - \ln q$ is added to the log likelihood: evidence and posterior are the same,
$Z = \int L\,(\pi / q)\,q$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.models.columns import as_columns
from supermodel.models.families import FAMILIES, Family, Plain, member_of
from supermodel.models.joint import Joint
from supermodel.models.joint_space import JointSpace
from supermodel.models.model import Model
from supermodel.models.priors import Bijected, Quantile


class ForNested(NamedTuple):
    """Arguments of a nested sampler: `NestedSampler(f.log_likelihood, f.prior_transform, f.dimension)`.

    Points are unconstrained coordinates; `values(points)` gives {name: values} of an array (n, d) of them. The two
    functions ending in `_at` take (n, d) arrays.
    """

    log_likelihood: Callable[[np.ndarray], float]
    prior_transform: Callable[[np.ndarray], np.ndarray]
    dimension: int
    names: tuple[str, ...]
    values: Callable[[np.ndarray], dict[str, np.ndarray]]
    log_likelihood_at: Callable[[np.ndarray], np.ndarray]
    prior_transform_at: Callable[[np.ndarray], np.ndarray]


class _Block(NamedTuple):
    """Some coordinates: from the cube to them, and what the transform leaves to be added to ln L. One point, traced."""

    where: slice
    transform: Callable[[Any], Any]  # (size,) of the cube -> (size,)
    correction: Callable[[Any], Any] | None  # (size,) -> scalar


@in_float64
def to_dynesty(model: Model, data: Any = None, *, name: str = "model", seed: int = 0) -> ForNested:
    """`model` (with its data) as dynesty, UltraNest and nautilus take it."""
    import jax
    import jax.numpy as jnp

    joint = Joint(name, model, as_columns(data))
    blocks = _blocks(model, np.random.default_rng(seed))
    corrected, compiles = any(block.correction is not None for block in blocks), getattr(model.space, "traceable", True)

    def transform(u):
        u = jnp.clip(u, 1e-300, 1.0 - 2.0**-53)
        parts = [block.transform(u[block.where]) for block in blocks]
        return jnp.clip(jnp.nan_to_num(jnp.concatenate(parts), nan=0.0, posinf=36.0, neginf=-700.0), -700.0, 1e300)

    def correction(x):
        return sum((b.correction(x[b.where]) for b in blocks if b.correction is not None), 0.0)

    one, many, corrections = jax.jit(transform), jax.jit(jax.vmap(transform)), jax.jit(jax.vmap(correction))
    traced = jax.jit(lambda x: joint.log_likelihood(x) + correction(x))

    @in_float64
    def log_likelihood_at(x: np.ndarray) -> np.ndarray:
        x = np.atleast_2d(np.asarray(x, float))
        extra: Any = 0.0
        if corrected:
            extra = _in_sizes(corrections, x) if compiles else np.array([float(correction(row)) for row in x])
        total = joint.log_likelihood_at(x, size=_size(len(x))) + extra
        return np.where(np.isnan(total), -np.inf, total)

    @in_float64
    def log_likelihood(x: np.ndarray) -> float:
        value = float(traced(x)) if compiles and joint.is_traceable else float(log_likelihood_at(x)[0])
        return -np.inf if np.isnan(value) else value

    return ForNested(
        log_likelihood,
        in_float64(lambda u: np.asarray(one(u))),
        joint.dimension,
        joint.space.names,
        joint.space.values_at,
        log_likelihood_at,
        in_float64(lambda u: _in_sizes(many, np.atleast_2d(u))),
    )


def _size(n: int) -> int:
    """At least n, a power of two: peers ask for all numbers of points, and each number would be compiled for."""
    return 1 << max(n - 1, 0).bit_length()


def _in_sizes(function: Callable[[Any], Any], points: np.ndarray) -> np.ndarray:
    """A compiled function of many points, with copies of the first beyond the last."""
    n = len(points)
    return np.asarray(function(np.concatenate([points, np.repeat(points[:1], _size(n) - n, axis=0)])))[:n]


def _blocks(model: Model, rng: np.random.Generator) -> list[_Block]:
    from jax.scipy.special import ndtri

    space = model.space
    if isinstance(space, JointSpace) and space.is_standard_normal:
        return [_Block(slice(0, space.dimension), ndtri, None)]
    draws = space.sample_prior(rng, 4000)
    priors = _each_alone(space, draws) if isinstance(space, JointSpace) else space.priors
    if priors is None:
        return [_stand_in(slice(0, space.dimension), draws, space.log_prior)]
    blocks = []
    for name, prior in priors.items():
        where = space.slices[name]
        exact = ndtri if isinstance(prior, Quantile) else _by_quantiles(prior)
        blocks.append(_Block(where, exact, None) if exact else _stand_in(where, draws[:, where], prior.log_density))
    return blocks


def _each_alone(space: JointSpace, draws: np.ndarray) -> dict[str, Any] | None:
    """The priors of NumPyro's or PyMC's parameters one by one, if none depends on another; None otherwise."""
    alone = {name: site.alone for name, site in space.priors.items()}
    if any(prior is None for prior in alone.values()):
        return None
    some = draws[:64]
    apart = sum(
        (prior.log_density_at(some[:, space.slices[name]]) for name, prior in alone.items()), np.zeros(len(some))
    )
    return alone if np.allclose(space.log_prior_at(some), apart, rtol=1e-9, atol=1e-9) else None


def _by_quantiles(prior: Any) -> Callable[[Any], Any] | None:
    """x from the cube through the prior's own quantile functions; None if there are none.

    Numbers of a vector that are independent go one by one through the quantiles of what the vector is made of.
    """
    if not isinstance(prior, Bijected):
        return None
    for way in (_one_by_one, _by_table, _correlated, _stick_by_stick):
        values = way(prior)
        if values is None:
            continue
        try:
            middle = np.asarray(prior.unconstrain(values(np.full(prior.size, 0.5))))
        except Exception:  # numpyro raises NotImplementedError, ImportError and others where a family has no quantiles
            continue
        if np.all(np.isfinite(middle)):
            return _through(prior, values)
    return None


def _through(prior: Any, values: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda u: prior.unconstrain(values(u))


def _one_by_one(prior: Bijected) -> Callable[[Any], Any] | None:
    """Independent numbers, by numpyro's quantiles."""
    alone = _unwrapped(prior.distribution)
    return (lambda u: alone.icdf(u.reshape(prior.shape))) if _independent(prior, alone) else None


def _by_table(prior: Bijected) -> Callable[[Any], Any] | None:
    """Independent numbers of a family that has quantiles in NumPy only: through an interpolant of them, one for each law."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import ndtri

    member = member_of(prior.distribution)
    if (
        member is None
        or not isinstance(member.family.plain, Plain)
        or not _independent(prior, member._replace(wraps=()).build())
    ):
        return None
    columns = [np.broadcast_to(np.asarray(value, float), prior.shape).ravel() for value in member.arguments.values()]
    laws: dict[tuple[float, ...], list[int]] = {}
    for place, arguments in enumerate(zip(*columns, strict=True)):
        laws.setdefault(arguments, []).append(place)
    tables = [(np.array(places), _table(member.family, arguments)) for arguments, places in laws.items()]

    def values(u):
        found = jnp.zeros(prior.size)
        for places, table in tables:
            found = found.at[places].set(jax.vmap(lambda z, table=table: table.constrain(z[None]))(ndtri(u[places])))
        return found.reshape(prior.shape)

    return values


def _table(family: Family, arguments: tuple[float, ...]) -> Quantile:
    plain: Any = family.plain
    ppf, isf = (lambda p, f=f: f(p, *arguments) for f in (plain.ppf, plain.isf))
    return Quantile(ppf, "a table", isf, straight=family.straight, reach=Quantile.FAR)


def _correlated(prior: Bijected) -> Callable[[Any], Any] | None:
    r"""$\mu + L z$ of a multivariate normal with covariance $L L^T$."""
    from jax.scipy.special import ndtri

    member = member_of(prior.distribution)
    if member is None or member.name != "MultivariateNormal":
        return None
    loc, factor = member.arguments["loc"], member.arguments["scale_tril"]
    return lambda u: loc + (factor @ ndtri(u.reshape(prior.shape))[..., None])[..., 0]


def _stick_by_stick(prior: Bijected) -> Callable[[Any], Any] | None:
    """Dirichlet shares: what share i takes of the rest is Beta(a_i, a_(i+1) + ... + a_k), whatever those before it took."""
    import jax.numpy as jnp
    from jax.scipy.special import ndtri

    if type(prior.distribution).__name__ != "Dirichlet" or prior.distribution.batch_shape != ():
        return None
    a = np.asarray(prior.distribution.concentration, float)
    rest = np.cumsum(a[::-1])[::-1][1:]
    tables = [_table(FAMILIES["Beta"], pair) for pair in zip(a[:-1], rest, strict=True)]

    def values(u):
        taken = jnp.stack([table.constrain(ndtri(u[i : i + 1])) for i, table in enumerate(tables)])
        left = jnp.concatenate([jnp.ones(1), jnp.cumprod(1 - taken)])
        return left * jnp.concatenate([taken, jnp.ones(1)])

    return values


def _unwrapped(distribution: Any) -> Any:
    """What a vector is made of, without `expand` and `to_event`."""
    while type(distribution).__name__ in ("ExpandedDistribution", "Independent"):
        distribution = distribution.base_dist
    return distribution


def _independent(prior: Bijected, alone: Any) -> bool:
    """Whether each number of the value is a draw of its own with a coordinate of its own."""
    return alone.event_dim == 0 and prior.unconstrained_shape == prior.shape


def _stand_in(where: slice, draws: np.ndarray, log_density: Callable[[Any], Any]) -> _Block:
    """Student t densities of 4 degrees of freedom, whose quantiles have a closed form, a bit wider than the draws."""
    import jax.numpy as jnp

    low, centre, high = np.quantile(draws, [0.16, 0.5, 0.84], axis=0)
    width = np.maximum(0.6 * (high - low), 1e-12)

    def transform(u):
        root = jnp.sqrt(4 * u * (1 - u))
        size = 2 * jnp.sqrt(jnp.maximum(jnp.cos(jnp.arccos(jnp.minimum(root, 1.0)) / 3) / root - 1, 0.0))
        return centre + width * jnp.sign(u - 0.5) * size

    def correction(x):
        z = (x - centre) / width
        return log_density(x) - jnp.sum(jnp.log(0.375 / width) - 2.5 * jnp.log1p(z * z / 4))

    return _Block(where, transform, correction)
