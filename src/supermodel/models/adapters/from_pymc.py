"""A PyMC model as a `Model`: free variables are parameters, observed ones the likelihood, through PyMC's JAX graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.errors import ModelError, PriorError
from supermodel.jax_scope import in_float64
from supermodel.models.adapters.pymc_priors import alone, described, kind
from supermodel.models.joint_space import JointSpace, Site
from supermodel.models.model import Model, Observed
from supermodel.models.priors import Prior


@in_float64
def from_pymc(model: Any) -> Model:
    """The PyMC model `with pm.Model() as model: ...`, with the data it was written with.

    Hierarchies and transforms are understood. `pm.Potential`, which is neither prior nor likelihood, and discrete
    parameters are refused. Data given to `compare` are not used.
    """
    import pymc as pm

    if not isinstance(model, pm.Model):
        raise ModelError(f"from_pymc needs a pymc.Model; got {type(model).__name__}.")
    _check(model)
    likelihood = _Likelihood(model)
    own = {v.name: alone(model, v) for v in model.free_RVs}
    found = (
        Model(own, likelihood)
        if all(prior is not None for prior in own.values())
        else Model.from_space(_space(model, own), likelihood)
    )
    return found.with_observed(_observed(model, likelihood))


def _observed(model: Any, likelihood: _Likelihood) -> Observed:
    """The observed variables one by one, and the names that the model gives its axes."""
    values = {v.name: model.rvs_to_values[v] for v in model.observed_RVs}
    data = {name: np.asarray(v.data if hasattr(v, "data") else v.get_value()) for name, v in values.items()}
    named = {name: tuple(dims) for name, dims in model.named_vars_to_dims.items() if None not in dims}
    coords = {dim: np.asarray(ticks) for dim, ticks in model.coords.items() if ticks is not None}
    derived = likelihood.derived if likelihood.plain.deterministics else None
    return Observed(likelihood.log_densities, data, named, coords, derived)


def _check(model: Any) -> None:
    if model.potentials:
        names = [v.name for v in model.potentials]
        raise ModelError(
            f"the PyMC model has the potentials {names}. A potential may belong to the prior or to the likelihood, "
            "which PyMC does not say and the evidence depends on. Write it as an observed variable (pm.CustomDist(..., "
            "observed=...)) if it is likelihood, or as a normalised prior of its own."
        )
    if model.discrete_value_vars:
        names = [model.values_to_rvs[v].name for v in model.discrete_value_vars]
        raise PriorError(
            f"the PyMC variables {names} are discrete; parameters are sampled as continuous numbers. Sum the "
            "likelihood over their values (pm.Mixture), or make each value a model of its own."
        )
    started = [v.name for v, value in model.rvs_to_initial_values.items() if value is not None]
    if started:
        raise ModelError(
            f"the PyMC variables {started} have initial values, and PyMC cannot take such a model apart. Leave `initval` out: it "
            "is for pm.sample, and nothing here starts from it."
        )
    if not model.observed_RVs:
        raise ModelError(
            "the PyMC model has no observed variable, so nothing is its likelihood. Give one `observed=data`."
        )
    for variable in model.free_RVs:
        if kind(variable) in ("Flat", "HalfFlat"):
            raise PriorError(
                f"the prior of the PyMC variable {variable.name!r} is {kind(variable)}, which cannot be normalised: the evidence "
                "would be arbitrary. Use a proper prior, e.g. pm.Uniform with limits that you can defend."
            )


class _Likelihood:
    """ln L of values in the user's coordinates: the model without its transforms."""

    def __init__(self, model: Any):
        from pymc.model.transform.conditioning import remove_value_transforms

        self.plain = plain = remove_value_transforms(model)
        self.names = [plain.values_to_rvs[v].name for v in plain.continuous_value_vars]
        self.function = _jax(plain.continuous_value_vars, [plain.logp(vars=plain.observed_RVs, sum=True)])

    @cached_property
    def pointwise(self) -> Any:
        """The same before the sum: few ask for it, and its graph takes a second."""
        import jax

        with jax.ensure_compile_time_eval():  # asked for within a trace, its constants must outlive it
            return _jax(self.plain.continuous_value_vars, self.plain.logp(vars=self.plain.observed_RVs, sum=False))

    def held_data(self) -> list[np.ndarray]:
        """The arrays that the model was written with: covariates and other constants of its graph, and what was observed."""
        from pytensor.graph.traversal import graph_inputs

        values = [self.plain.rvs_to_values[v] for v in self.plain.observed_RVs]
        leaves = [*graph_inputs([*self.plain.observed_RVs, *values])]
        found = [
            v.data if hasattr(v, "data") else v.get_value()
            for v in leaves
            if hasattr(v, "data") or hasattr(v, "get_value")
        ]
        return [array for each in found if getattr(array := np.asarray(each), "ndim", 0) and array.dtype.kind in "biuf"]

    def __call__(self, values: Mapping[str, Any], data: Any = None) -> Any:
        return self.function(*self._arguments(values))[0]

    def log_densities(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """{observed variable: ln p of each datum}."""
        found = self.pointwise(*self._arguments(values))
        return dict(zip((v.name for v in self.plain.observed_RVs), found, strict=True))

    @cached_property
    def deterministic(self) -> Any:
        """The deterministic variables; their graph, too, is made where it is asked for."""
        import jax

        with jax.ensure_compile_time_eval():
            outputs = self.plain.replace_rvs_by_values(self.plain.deterministics)
            return _jax(self.plain.continuous_value_vars, outputs)

    def derived(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """{deterministic variable: its value}."""
        found = self.deterministic(*self._arguments(values))
        return dict(zip((v.name for v in self.plain.deterministics), found, strict=True))

    def _arguments(self, values: Mapping[str, Any]) -> list[Any]:
        import jax.numpy as jnp

        return [jnp.asarray(values[name], float) for name in self.names]


def _jax(inputs: list[Any], outputs: list[Any]) -> Any:
    from pymc.sampling.jax import get_jaxified_graph

    return get_jaxified_graph(inputs=list(inputs), outputs=list(outputs))


def _space(model: Any, own: Mapping[str, Prior | None]) -> JointSpace:
    import jax.numpy as jnp
    import pymc as pm
    import pytensor

    variables = list(model.free_RVs)
    values = [model.rvs_to_values[v] for v in variables]
    initial = model.initial_point()
    shapes = {v.name: np.shape(initial[value.name]) for v, value in zip(variables, values, strict=True)}
    seen = {v.name: np.shape(x) for v, x in zip(variables, pm.draw(variables, random_seed=0), strict=True)}
    texts = {v.name: getattr(own[v.name], "description", None) or described(model, v) for v in variables}
    priors = {n: Site(tuple(seen[n]), math.prod(shapes[n]), text, own[n]) for n, text in texts.items()}
    ends = np.cumsum([0] + [site.size for site in priors.values()])
    density = _jax(values, [model.logp(vars=variables, sum=True)])
    constrained = _jax(values, model.replace_rvs_by_values(variables))
    # Bounds may depend on other variables, so a transform is drawn together with what it depends on.
    forward = [_forward(model, v) for v in variables]
    inverse = pytensor.function(variables, forward, on_unused_input="ignore")

    def split(x):
        return [x[a:b].reshape(shapes[n]) for n, a, b in zip(priors, ends, ends[1:], strict=False)]

    def draw(rng, n):
        drawn = pm.draw(forward, draws=n, random_seed=int(rng.integers(2**31)))
        points = np.concatenate([np.asarray(d, float).reshape(n, -1) for d in drawn], axis=1)
        return np.clip(np.nan_to_num(points, nan=0.0, posinf=36.0, neginf=-700.0), -700.0, 1e300)

    def to_points(given):
        parts = inverse(*(np.asarray(given[v.name], v.dtype) for v in variables))
        return np.concatenate([np.ravel(part) for part in parts])

    return JointSpace(
        priors,
        lambda x: dict(zip(priors, constrained(*split(x)), strict=True)),
        lambda x: jnp.sum(density(*split(x))[0]),
        draw,
        to_points,
    )


def _forward(model: Any, variable: Any) -> Any:
    transform = model.rvs_to_transforms.get(variable)
    return variable if transform is None else transform.forward(variable, *variable.owner.inputs)
