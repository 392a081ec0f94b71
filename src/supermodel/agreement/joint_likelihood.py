r"""$\ln L_{ab}(\theta) = \ln L_a(\theta) + \ln L_b(\theta)$: the model of each data set, and the one of both.

The data of both travel together, {name: data}, and each likelihood is given its own. So all three models are compared on
the same data, and stay what the two were: traced by JAX if both are, plain Python otherwise, pickled if both can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.errors import ModelError
from supermodel.models.model import Model
from supermodel.models.space import Space
from supermodel.models.symmetry import Canonical
from supermodel.results.fingerprint import fingerprint
from supermodel.results.held import held_by

HELD = "data"  # a data set travels in a dict of its own: `compare` then hands it on as it is, whatever it is
TRIED = 16  # prior draws at which two priors are compared


@dataclass(frozen=True)
class Parts:
    r"""$\sum_k \ln L_k(\theta_k)$, each part with its own parameters and its own data."""

    models: Mapping[str, Model]
    names: Mapping[str, tuple[str, ...]]  # {part: its parameters}
    vectorized: bool  # whether all parts take many points at once

    def __call__(self, values: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
        return sum(self._of(part, values, data[part][HELD]) for part in self.models)

    def _of(self, part: str, values: Mapping[str, Any], data: Any) -> Any:
        model, own = self.models[part], {name: values[name] for name in self.names[part]}
        if not model.vectorized or self.vectorized:
            return model.log_likelihood(own, data)
        # One part takes many points at once and the other does not: they go one by one.
        one = {name: value[None] if hasattr(value, "shape") else np.asarray(value)[None] for name, value in own.items()}
        return model.log_likelihood(one, data)[0]

    def held_data(self) -> list[Any]:
        """What the models have observed or hold in closures, for the fingerprint of the data."""
        return [leaf for model in self.models.values() for leaf in held_by(model)]


def three(models: Mapping[str, Model], joint: str) -> dict[str, Model]:
    """{first, second, joint: model}, each of which is given the data of both."""
    spaces = [model.space for model in models.values()]
    together = spaces[0] if spaces[0] is spaces[1] else _union(models)
    return {name: _only(name, model) for name, model in models.items()} | {joint: _both(models, together)}


def shared_of(models: Mapping[str, Model]) -> tuple[str, ...]:
    """The parameters that both have."""
    first, second = models.values()
    return tuple(name for name in first.space.names if name in second.space.names)


def _bare(model: Model) -> Model:
    """The model without its priors, which its likelihood does not need: neither a worker nor a fingerprint of data wants them."""
    return model.with_space(Space({}))


def _parts(models: Mapping[str, Model]) -> Parts:
    return Parts(
        {name: _bare(model) for name, model in models.items()},
        {name: model.space.names for name, model in models.items()},
        all(model.vectorized for model in models.values()),
    )


def _only(name: str, model: Model) -> Model:
    """The model of one data set, as it was declared."""
    parts = _parts({name: model})
    found = Model.from_space(model.space, parts, vectorized=parts.vectorized).with_labels(model.labels, model.units)
    found.exchangeable, found.periodic, found.pilot_points = model.exchangeable, model.periodic, model.pilot_points
    return found


def _both(models: Mapping[str, Model], space: Any) -> Model:
    """The model of both data sets; what each declares of symmetries holds as far as the other has no say or says the same."""
    first, second = models.values()
    parts = _parts(models)
    found = Model.from_space(space, parts, vectorized=parts.vectorized)
    found = found.with_labels(second.labels | first.labels, second.units | first.units)
    found.periodic = _periodic(first, second)
    found.exchangeable = _exchangeable(first, second)
    return found


def _periodic(first: Model, second: Model) -> Any:
    if False in (first.periodic, second.periodic) and first.periodic == second.periodic:
        return False
    own = [(model, other) for model, other in ((first, second), (second, first)) if isinstance(model.periodic, tuple)]
    names = {
        name
        for model, other in own
        for name in model.periodic
        if name not in other.space.names or (isinstance(other.periodic, tuple) and name in other.periodic)
    }
    return tuple(sorted(names)) or None


def _exchangeable(first: Model, second: Model) -> Any:
    if first.exchangeable is False and second.exchangeable is False:
        return False
    kept: list[Any] = []
    for model, other in ((first, second), (second, first)):
        theirs = other.exchangeable if isinstance(other.exchangeable, tuple) else ()
        for each in model.exchangeable if isinstance(model.exchangeable, tuple) else ():
            is_known = isinstance(each, Canonical) or any(
                name in other.space.names for block in each.blocks for name, _ in block
            )
            if (not is_known or each in theirs) and each not in kept:
                kept.append(each)
    return tuple(kept) or None


def _union(models: Mapping[str, Model]) -> Space:
    """The parameters of both; those that both have must have one prior."""
    (a, first), (b, second) = models.items()
    for name, model in models.items():
        if not isinstance(model.space, Space):
            raise ModelError(
                f"model {name!r} has one joint prior of all its parameters ({type(model.space).__name__}), so that nobody can see "
                "whether parameters of one name have one prior, and what both have together is not known. Write both with "
                "priors parameter by parameter, Model(priors={...}, ...), or one model that takes either data set: "
                "sm.tension(model, data_a, data_b)."
            )
    shared = shared_of(models)
    if not shared:
        raise ModelError(
            f"models {a!r} and {b!r} share no parameter ({a!r} has {_list(first)}; {b!r} has {_list(second)}): whatever the data, "
            "R is 1 and there is nothing that they could disagree about. Give what they have in common one name in both."
        )
    for name in shared:
        check_equal(name, {a: first.priors[name], b: second.priors[name]})
    return Space({**second.priors, **first.priors}).reordered(
        [*first.space.names, *(name for name in second.space.names if name not in first.space.names)]
    )


def _list(model: Model) -> str:
    return ", ".join(map(repr, model.space.names)) or "none"


def check_equal(name: str, priors: Mapping[str, Any]) -> None:
    """Refuse two priors of one parameter that are not the same density."""
    (a, first), (b, second) = priors.items()
    if first is second or (tuple(first.shape) == tuple(second.shape) and _alike(first, second)):
        return
    raise ModelError(
        f"parameter {name!r} has two priors: {first.description} in model {a!r} and {second.description} in model {b!r} "
        f"(shapes {tuple(first.shape)} and {tuple(second.shape)}). R, D and S compare one universe with two, and both must be as "
        "probable before the data: with two priors of one parameter there is no joint model. Give both models the same prior; or, "
        "if they are two different things, two names."
    )


def _alike(first: Any, second: Any) -> bool:
    """Whether two priors are equal: of the same arguments, or of the same density at draws of either."""
    if first.description == second.description and fingerprint(first) == fingerprint(second):
        return True
    if first.size != second.size:
        return False
    rng = np.random.default_rng(0)
    for one, other in ((first, second), (second, first)):
        values = one.values_at(one.sample(rng, TRIED))
        for value in values:
            densities = []
            for prior in (one, other):
                with np.errstate(all="ignore"):
                    u = np.ravel(np.asarray(prior.unconstrain(value), float))
                    densities.append(float(np.sum(prior.log_density(u) - prior.log_jacobian(u))))
            if not np.isclose(*densities, rtol=1e-9, atol=1e-9):
                return False
    return True
