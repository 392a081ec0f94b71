"""A bilby likelihood and its priors as a `Model`."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from supermodel.errors import ModelError, PriorError
from supermodel.jax_scope import in_float64
from supermodel.models.adapters.from_unit_cube import cube_space
from supermodel.models.circle import turn_of
from supermodel.models.model import Model
from supermodel.models.priors import Quantile


@in_float64
def from_bilby(likelihood: Any, priors: Any, *, constraint_draws: int = 200_000) -> Model:
    """The model of a bilby `Likelihood` and a `PriorDict` (or a dict of bilby priors).

    Parameters whose `boundary` is "periodic" go round a circle.

    `DeltaFunction` priors are constants. `Constraint` priors cut the prior, which then must be normalised anew: its
    remaining mass is estimated from `constraint_draws` draws, and refused if that is not good to 0.01 in the log.
    """
    import bilby.core.prior as bilby_prior

    if not hasattr(likelihood, "log_likelihood"):
        raise ModelError(
            f"from_bilby needs a bilby Likelihood, with `log_likelihood`; got {type(likelihood).__name__}."
        )
    if not isinstance(priors, bilby_prior.PriorDict):
        priors = bilby_prior.PriorDict(dict(priors))
    free = list(priors.non_fixed_keys)
    constants = {key: float(priors[key].peak) for key in priors.fixed_keys}
    mass = log_mass(priors, constraint_draws) if priors.constraint_keys else 0.0
    cut = priors if priors.constraint_keys else None
    function = _Likelihood(likelihood, constants, cut, mass)
    _try_out(function, priors, free)
    if isinstance(priors, bilby_prior.ConditionalPriorDict) or any(
        isinstance(priors[key], bilby_prior.JointPrior) for key in free
    ):
        described = {key: type(priors[key]).__name__ for key in free}
        found = Model.from_space(cube_space(free, _Rescale(priors, free), described), function)
    else:
        quantiles = {key: _quantile(priors[key]) for key in free}
        found = Model(quantiles, function, periodic=_periodic(priors, quantiles) or None)
    return found.with_labels(
        {key: label for key in free if (label := getattr(priors[key], "latex_label", None)) and label != key},
        {key: unit for key in free if (unit := getattr(priors[key], "unit", None))},
    )


def _periodic(priors: Mapping[str, Any], quantiles: Mapping[str, Quantile]) -> tuple[str, ...]:
    """Those whose boundary is periodic, as bilby has it, and whose prior is the same at both ends."""
    return tuple(
        key
        for key, prior in quantiles.items()
        if getattr(priors[key], "boundary", None) == "periodic" and turn_of(prior) is not None
    )


def _quantile(prior: Any) -> Quantile:
    arguments = ", ".join(f"{v:g}" for v in prior.get_instantiation_dict().values() if isinstance(v, int | float))
    return Quantile(prior.rescale, f"{type(prior).__name__}({arguments})", cdf=prior.cdf)


class _Rescale:
    """Values of all free parameters from the unit cube, for priors that depend on each other."""

    def __init__(self, priors: Any, keys: list[str]):
        self.priors, self.keys = priors, keys

    def __call__(self, u: Any) -> dict[str, Any]:
        return {key: value[0] for key, value in self.many(np.asarray(u)[None]).items()}  # refuses tracers: NumPy only

    def many(self, u: np.ndarray) -> dict[str, np.ndarray]:
        rows = [np.ravel(np.array(self.priors.rescale(self.keys, row), float)) for row in u]
        return dict(zip(self.keys, np.array(rows).T, strict=True))


class _Likelihood:
    """One call of the likelihood, in either of bilby's forms; worker processes can receive it."""

    def __init__(self, likelihood: Any, constants: dict[str, float], cut: Any, log_mass: float):
        self.likelihood, self.constants, self.cut, self.log_mass = likelihood, constants, cut, log_mass
        self.is_new = _takes_parameters(likelihood)

    def __call__(self, values: Mapping[str, Any], data: Any = None) -> float:
        parameters = {**{key: float(value) for key, value in values.items()}, **self.constants}
        if self.cut is not None and not np.all(self.cut.evaluate_constraints(dict(parameters))):
            return -math.inf
        with _quietly():
            if self.is_new:
                value = self.likelihood.log_likelihood(parameters)
            else:
                self.likelihood.parameters.update(parameters)
                value = self.likelihood.log_likelihood()
        return float(np.nan_to_num(value, nan=-math.inf, posinf=math.inf, neginf=-math.inf)) - self.log_mass


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without bilby's warning, at every call, that its likelihoods keep parameters as their state: bilby's own do so too.

    It is bilby's own switch, and one that the user has set to refuse such likelihoods stays as it is.
    """
    home: Any = sys.modules.get("bilby.core.likelihood")  # loaded with any likelihood of bilby's
    loud = getattr(home, "PARAMETERS_AS_STATE", None) == "WARN"  # since bilby 2.7
    if loud:
        home.PARAMETERS_AS_STATE = "TRUE"
    try:
        yield
    finally:
        if loud:
            home.PARAMETERS_AS_STATE = "WARN"


def _takes_parameters(likelihood: Any) -> bool:
    import inspect

    return "parameters" in inspect.signature(likelihood.log_likelihood).parameters


def log_mass(priors: Any, n: int) -> float:
    """ln of the prior probability that the constraints are met; the same at every call."""
    with _same_draws():
        draws = {key: np.asarray(value) for key, value in priors.sample_subset(priors.non_fixed_keys, size=n).items()}
    draws |= {key: np.full(n, float(priors[key].peak)) for key in priors.fixed_keys}
    inside = float(np.mean(np.asarray(priors.evaluate_constraints(draws), bool)))
    error = math.sqrt((1 - inside) / (inside * n)) if inside > 0 else math.inf
    if error > 0.01:
        raise PriorError(
            f"the constraints {list(priors.constraint_keys)} leave {inside:.2%} of the prior, found from {n} draws: "
            f"its normalisation, and with it ln Z, would be uncertain by {error:.2g}. Narrow the priors to what the "
            "constraints allow, or give more constraint_draws."
        )
    return math.log(inside)


@contextlib.contextmanager
def _same_draws() -> Iterator[None]:
    """Within, bilby draws from a generator of ours, always the same; its own goes on afterwards as if nothing had been."""
    from bilby.core.utils import random

    own, random.Generator.rng = random.Generator.rng, np.random.default_rng(0)
    try:
        yield
    finally:
        random.Generator.rng = own


def _try_out(function: _Likelihood, priors: Any, free: list[str]) -> None:
    values = {key: priors[key].rescale(0.5) for key in free if not hasattr(priors[key], "required_variables")}
    if len(values) < len(free):
        return
    try:
        function(values)
    except Exception as error:
        raise ModelError(
            f"the bilby likelihood fails at the centre of its prior, {values}: {type(error).__name__}: {error}. "
            "Do the priors name exactly the likelihood's parameters?"
        ) from error
