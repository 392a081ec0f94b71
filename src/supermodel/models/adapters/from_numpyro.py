"""A NumPyro model as a `Model`: latent sites are parameters, `obs` sites are the likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from supermodel.errors import ModelError, PriorError
from supermodel.jax_scope import in_float64
from supermodel.models.joint_space import JointSpace, Site
from supermodel.models.model import Model, Observed
from supermodel.models.priors import as_prior, describe_numpyro


@in_float64
def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Model:
    """The NumPyro model `model(*args, **kwargs)`, its data given as it always is.

    Plates, transforms, masks of data, dynamic supports and hierarchies are understood. What makes a density neither
    prior nor likelihood (`numpyro.factor`), unnormalised or discrete is refused. Data given to `compare` are not used.
    """
    if not callable(model):
        raise ModelError(f"from_numpyro needs a NumPyro model, a function with numpyro.sample inside; got {model!r}.")
    tracer = _Tracer(model, args, kwargs)
    try:
        sites = tracer.sites({})
    except NotImplementedError as error:
        raise PriorError(
            "a site of the NumPyro model cannot be drawn from: it has an improper prior or a distribution "
            "without a sampler. The evidence needs normalised priors; use e.g. dist.Uniform with limits."
        ) from error
    latent = {name: site for name, site in sites.items() if site["type"] == "sample" and not site["is_observed"]}
    _check(sites, latent)
    alone = _independent(model, args, kwargs, latent)
    if alone == set(latent):
        found = Model({name: site["fn"] for name, site in latent.items()}, tracer.log_likelihood)
    else:
        found = Model.from_space(_joint_space(tracer, latent, alone), tracer.log_likelihood)
    return found.with_observed(_observed(tracer, sites))


def _observed(tracer: _Tracer, sites: Mapping[str, Any]) -> Observed:
    """The `obs` sites one by one; axes that belong to a plate are called by its name."""
    drawn = {name: site for name, site in sites.items() if site["type"] == "sample"}
    dims: dict[str, tuple[str, ...]] = {}
    coords: dict[str, Any] = {}
    for name, site in drawn.items():
        batch, shape = len(site["fn"].batch_shape), np.shape(site["value"])
        plates = {frame.dim + batch: frame for frame in site["cond_indep_stack"] if frame.dim + batch >= 0}
        plates = {axis: frame for axis, frame in plates.items() if axis < len(shape) and shape[axis] == frame.size}
        dims[name] = tuple(plates[axis].name if axis in plates else f"{name}_dim_{axis}" for axis in range(len(shape)))
        coords |= {frame.name: np.arange(frame.size) for frame in plates.values()}
    data = {name: np.asarray(site["value"]) for name, site in drawn.items() if site["is_observed"]}
    return Observed(tracer.log_densities, data, dims, coords, tracer.derived if tracer.derived({}) else None)


class _Tracer:
    """The model's sites at given values of the parameters."""

    def __init__(self, model: Callable[..., Any], args: tuple, kwargs: dict):
        self.model, self.args, self.kwargs = model, args, kwargs

    def sites(self, values: Mapping[str, Any], key: Any = 0, substitute: Callable | None = None) -> dict[str, Any]:
        from numpyro import handlers

        given = {"substitute_fn": substitute} if substitute else {"data": dict(values)}
        traced = handlers.trace(handlers.substitute(handlers.seed(self.model, key), **given))
        found = traced.get_trace(*self.args, **self.kwargs)
        return {name: site for name, site in found.items() if site["type"] in ("sample", "param", "plate")}

    def derived(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """{deterministic site: its value}."""
        from numpyro import handlers

        traced = handlers.trace(handlers.substitute(handlers.seed(self.model, 0), data=dict(values)))
        found = traced.get_trace(*self.args, **self.kwargs)
        return {name: site["value"] for name, site in found.items() if site["type"] == "deterministic"}

    def log_densities(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """{`obs` site: ln p of each datum}."""
        return {name: _scaled(site, site["fn"].log_prob(site["value"])) for name, site in self.observed(values)}

    def log_likelihood(self, values: Mapping[str, Any], data: Any = None) -> Any:
        sites = self.observed(values)
        return sum((_scaled(site, site["fn"].log_prob(site["value"]).sum()) for _, site in sites), 0.0)

    def observed(self, values: Mapping[str, Any]) -> list[tuple[str, Any]]:
        sites = self.sites(values).items()
        return [(name, site) for name, site in sites if site["type"] == "sample" and site["is_observed"]]


def _scaled(site: Mapping[str, Any], density: Any) -> Any:
    return density if site.get("scale") is None else site["scale"] * density


def _check(sites: Mapping[str, Any], latent: Mapping[str, Any]) -> None:
    from numpyro.distributions import Unit

    for name, site in sites.items():
        if site["type"] == "param":
            raise ModelError(
                f"the NumPyro model has the `numpyro.param` {name!r}. A param is tuned, not sampled: it has no prior, "
                "and the evidence would depend on its value. Make it a numpyro.sample with a prior, or a constant."
            )
        if site["type"] == "plate":
            size, subsample = site["args"]
            if subsample not in (None, size):
                raise ModelError(
                    f"the plate {name!r} takes {subsample} of {size} data at random. The likelihood would be an "
                    "estimate, and the evidence wrong. Use the plate without subsample_size."
                )
        elif isinstance(site["fn"], Unit):
            raise ModelError(
                f"the NumPyro model has the factor {name!r}. A factor may belong to the prior or to the likelihood, "
                "which "
                "NumPyro does not say and the evidence depends on. Write it as numpyro.sample(..., obs=...) if it is "
                "likelihood (a log density of data), or as a prior distribution of its own; or use from_log_density."
            )
    if not any(site["type"] == "sample" and site["is_observed"] for site in sites.values()):
        raise ModelError(
            "the NumPyro model has no observed site, so nothing is its likelihood. Pass the data, "
            "e.g. from_numpyro(model, x, y=y), and use them in numpyro.sample(..., obs=y)."
        )
    for name, site in latent.items():
        _check_prior(name, site)


def _check_prior(name: str, site: Mapping[str, Any]) -> None:
    from numpyro.distributions import Delta, ImproperUniform, MaskedDistribution

    layer = site["fn"]
    while layer is not None:
        if isinstance(layer, ImproperUniform | MaskedDistribution):
            raise PriorError(
                f"the prior of the NumPyro site {name!r} ({type(layer).__name__}) is not a normalised density. The "
                "evidence is "
                "proportional to its normalisation, so a Bayes factor with it would be arbitrary. Use a proper prior."
            )
        if isinstance(layer, Delta):
            raise PriorError(f"the NumPyro site {name!r} is a point mass: use a constant, or numpyro.deterministic.")
        layer = getattr(layer, "base_dist", None)
    if getattr(site["fn"].support, "is_discrete", False):
        raise PriorError(
            f"the NumPyro site {name!r} is discrete; parameters are sampled as continuous numbers. Sum the likelihood "
            "over its values (e.g. with dist.MixtureSameFamily), or make each value a model of its own."
        )
    if site.get("scale") is not None and np.any(np.asarray(site["scale"]) != 1):
        raise PriorError(
            f"the prior of the NumPyro site {name!r} is scaled by handlers.scale, so it is not normalised. Drop the "
            "scale."
        )


def _independent(model: Any, args: tuple, kwargs: dict, latent: Mapping[str, Any]) -> set[str]:
    """The sites whose prior depends on no other site: such a one has a prior of its own."""
    from numpyro.infer.inspect import get_dependencies

    try:
        depends = get_dependencies(model, args, kwargs)["prior_dependencies"]
    except Exception:  # a model that the tracker of dependencies cannot follow: the joint prior is right in any case
        return set()
    return {name for name in latent if set(depends.get(name, {name: None, "?": None})) <= {name}}


# -- a joint prior --------------------------------------------------------------------------------------------------


def _joint_space(tracer: _Tracer, latent: Mapping[str, Any], alone: set[str]) -> JointSpace:
    """The support of a site may depend on other sites: its bijection is made anew at every point."""
    import jax
    import jax.numpy as jnp
    from numpyro.distributions import biject_to

    shapes, priors, slices, end = {}, {}, {}, 0
    for name, site in latent.items():
        shape = tuple(site["fn"].shape())
        shapes[name] = tuple(biject_to(site["fn"].support).inverse_shape(shape))
        size = math.prod(shapes[name])
        slices[name] = slice(end, end + size)
        own = as_prior(name, site["fn"]) if name in alone else None
        described = own.description if own is not None else f"{describe_numpyro(site['fn']).split('(')[0]}(…)"
        priors[name] = Site(shape, size, described, own)
        end += size

    def at(x):
        def place(site):
            if site["type"] != "sample" or site["name"] not in priors:
                return None
            name = site["name"]
            return biject_to(site["fn"].support)(x[slices[name]].reshape(shapes[name]))

        return tracer.sites({}, substitute=place)

    def density(x):
        sites, total = at(x), 0.0
        for name in priors:
            site, inner = sites[name], x[slices[name]].reshape(shapes[name])
            jacobian = biject_to(site["fn"].support).log_abs_det_jacobian(inner, site["value"])
            total = total + site["fn"].log_prob(site["value"]).sum() + jnp.sum(jacobian)
        return total

    def to_values(x):
        sites = at(x)
        return {name: sites[name]["value"] for name in priors}

    def flat(sites):
        parts = [biject_to(sites[n]["fn"].support).inv(sites[n]["value"]).reshape(-1) for n in priors]
        return jnp.concatenate(parts) if parts else jnp.zeros(0)

    from_keys = jax.jit(jax.vmap(lambda key: flat(tracer.sites({}, key))))

    @in_float64
    def draw(rng, n):
        points = np.asarray(from_keys(jax.random.split(jax.random.key(rng.integers(2**31)), n)))
        # A draw that rounds onto the edge of its support has no unconstrained image: pull it just inside.
        return np.clip(np.nan_to_num(points, nan=0.0, posinf=36.0, neginf=-700.0), -700.0, 1e300)

    def to_points(values):
        return flat(tracer.sites({name: jnp.asarray(v, float) for name, v in values.items()}))

    return JointSpace(priors, to_values, density, draw, to_points)
