"""A Cobaya model as a `Model`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from supermodel.errors import ModelError, PriorError
from supermodel.jax_scope import in_float64
from supermodel.models.circle import turn_of
from supermodel.models.model import Model
from supermodel.models.priors import as_prior

EXTERNAL = ("refuse", "normalised")


@in_float64
def from_cobaya(model: Any, *, external_priors: str = "refuse") -> Model:
    """The model of a Cobaya `Model` (of `cobaya.model.get_model(info)`): its sampled parameters, priors and likelihoods.

    The priors of the `params` block are normalised densities. What stands in the `prior` block need not be one, and ln Z would
    be off by the logarithm of its integral: it is refused, unless `external_priors="normalised"` says that all priors together
    integrate to 1. Parameters with `periodic: True` go round a circle.
    """
    if not hasattr(model, "parameterization") or not hasattr(model, "loglikes"):
        raise ModelError(
            f"from_cobaya needs a Cobaya model; got {type(model).__name__}. Write from_cobaya(get_model(info)), with get_model "
            "from cobaya.model."
        )
    if external_priors not in EXTERNAL:
        raise ModelError(f"`external_priors` must be one of {', '.join(EXTERNAL)}; got {external_priors!r}.")
    outer = list(model.prior.external)
    if outer and external_priors == "refuse":
        raise PriorError(
            f"the `prior` block of this Cobaya model has {', '.join(map(repr, outer))}. Cobaya does not know whether such a "
            "density is normalised, and the evidence is proportional to its integral. Put what it says into the priors of "
            '`params`; or move it to `likelihood`, if it is data; or say external_priors="normalised" if the product of all '
            "priors integrates to 1."
        )
    infos = model.parameterization.sampled_params_info()
    priors = {name: as_prior(name, law) for name, law in zip(infos, model.prior.pdf, strict=True)}
    around = [name for name, info in infos.items() if info.get("periodic") and turn_of(priors[name]) is not None]
    labels = model.parameterization.labels()
    return Model(
        priors,
        _Likelihood(model, list(infos), bool(outer)),
        labels={name: f"${labels[name]}$" for name in infos if labels.get(name, name) != name},
        periodic=around or None,
    )


class _Likelihood:
    """The sum of all likelihoods at one point, and of external priors, where these belong to the density.

    Cobaya's models cannot be sent to worker processes; their input can, and each worker makes the model once.
    """

    def __init__(self, model: Any, names: list[str], with_external: bool, mark: str = ""):
        self.model, self.names, self.with_external = model, names, with_external
        self.mark, self._input = mark or uuid.uuid4().hex, None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._input is None:
            self._input = self.model.info()
        return _made_once, (self.mark, self._input, self.names, self.with_external)

    def held_data(self) -> list[Any]:
        """What the likelihoods hold, for the fingerprint of the data, without what Cobaya holds for itself."""
        own = ("provider", "timer", "log")
        return [
            v for like in self.model.likelihood.values() for k, v in vars(like).items() if k[0] != "_" and k not in own
        ]

    def __call__(self, values: Mapping[str, Any], data: Any = None) -> float:
        point = np.array([float(values[name]) for name in self.names])  # refuses tracers: Cobaya is NumPy
        extra = 0.0
        if self.with_external:
            extra = float(np.sum(self.model.prior.logps_external(self.model.parameterization.to_input(point))))
            if extra == -np.inf:
                return -np.inf
        return float(self.model.loglike(point, return_derived=False, cached=False)) + extra


_MADE: dict[str, _Likelihood] = {}  # in a worker: by their marks


def _made_once(mark: str, info: Any, names: list[str], with_external: bool) -> _Likelihood:
    if mark not in _MADE:
        from cobaya.model import get_model

        _MADE[mark] = _Likelihood(get_model(info), names, with_external, mark)
    return _MADE[mark]
