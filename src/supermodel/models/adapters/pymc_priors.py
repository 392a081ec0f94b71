"""The priors of a PyMC model one by one: those of a known family that depend on no other variable are priors of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supermodel.errors import PriorError
from supermodel.models.families import FAMILIES, Member
from supermodel.models.priors import Prior, as_prior, short

CLOSE = 1e-5  # nats: PyMC keeps some arguments in single precision


def _same(*arguments: np.ndarray) -> tuple[np.ndarray, ...]:
    return arguments


def _inverse(scale: np.ndarray) -> np.ndarray:
    """A rate; 1/3 in single precision, or its shortest number, was a rate of 3."""
    rate = 1.0 / np.asarray(scale)
    return np.where(np.abs(rate - np.round(rate, 5)) < 1e-6 * rate, np.round(rate, 5), rate)


# PyMC's family and its arguments, as their graph has them, to ours (see models/families.py).
TWINS: dict[str, tuple[str, Callable[..., tuple[np.ndarray, ...]]]] = {
    **{name: (name, _same) for name in (
        "Normal", "Uniform", "LogNormal", "Cauchy", "HalfCauchy", "StudentT", "Laplace", "Logistic", "Gumbel", "Beta",
        "InverseGamma", "TruncatedNormal",
    )},
    "HalfNormal": ("HalfNormal", lambda loc, scale: (scale,)),
    "Exponential": ("Exponential", lambda scale: (_inverse(scale),)),
    "Gamma": ("Gamma", lambda shape, scale: (shape, _inverse(scale))),
    "Weibull": ("Weibull", lambda shape, scale: (scale, shape)),
    "Pareto": ("Pareto", lambda alpha, low: (low, alpha)),
    "MultivariateNormal": ("MultivariateNormal", lambda mean, covariance: (mean, np.linalg.cholesky(covariance))),
}  # fmt: skip


def kind(variable: Any) -> str:
    """`Normal`, `HalfNormal`, ..."""
    op = variable.owner.op
    return getattr(op, "_print_name", (type(op).__name__.removesuffix("RV"),))[0]


def alone(model: Any, variable: Any) -> Prior | None:
    """The prior of a variable that depends on no other, in a family that we know and with PyMC's own density; or None."""
    arguments = _constants(model, variable)
    if kind(variable) not in TWINS or arguments is None or not _is_usual(model, variable):
        return None
    import pymc as pm

    family, turn = TWINS[kind(variable)]
    draws = np.asarray(pm.draw(variable, draws=5, random_seed=0))
    try:
        values = turn(*arguments)
        distribution = Member(family, dict(zip(FAMILIES[family].arguments, values, strict=True))).build()
        if tuple(distribution.shape()) != draws.shape[1:]:
            distribution = distribution.expand(draws.shape[1:])
        prior = as_prior(variable.name, distribution)
        ours = [float(np.sum(np.asarray(distribution.log_prob(draw)))) for draw in draws]
        theirs = [float(np.sum(pm.logp(variable, draw).eval())) for draw in draws]
    except (PriorError, ValueError, TypeError, NotImplementedError):
        return None
    return prior if np.allclose(ours, theirs, rtol=CLOSE, atol=CLOSE) else None


def described(model: Any, variable: Any) -> str:
    """`Normal(mu, 2)`: numbers, the names of other variables, and … for what is computed from them."""
    if not hasattr(variable.owner.op, "dist_params"):
        return f"{kind(variable)}(…)"
    arguments = _constants(model, variable)
    if arguments is None:
        parts = [_argument(parameter) for parameter in variable.owner.op.dist_params(variable.owner)]
    else:
        parts = [short(value) for value in arguments]
    parts = parts[1:] if kind(variable) == "HalfNormal" else parts  # a place that is always 0
    return f"{kind(variable)}({', '.join(parts)})"


def _argument(parameter: Any) -> str:
    while parameter.owner is not None and type(parameter.owner.op).__name__ == "DimShuffle":
        parameter = parameter.owner.inputs[0]  # a scalar that is stretched to a vector
    value = getattr(parameter, "data", None)
    return (parameter.name or "…") if value is None else short(_written(np.asarray(value)))


def _constants(model: Any, variable: Any) -> list[np.ndarray] | None:
    """The arguments of a variable's distribution, if none of them is random."""
    from pytensor.graph.traversal import ancestors

    if not hasattr(variable.owner.op, "dist_params"):
        return None
    parameters = variable.owner.op.dist_params(variable.owner)
    if set(ancestors(parameters)) & set(model.basic_RVs):
        return None
    values = [np.asarray(parameter.eval()) for parameter in parameters]
    return [_written(value, kind(variable) == "MultivariateNormal") for value in values]


def _written(value: Any, is_vector: bool = False) -> np.ndarray:
    """As it was written: a number that PyMC stretched, or rounded to single precision (then the shortest that rounds to it)."""
    array = np.asarray(value)
    if array.size == 1 and not is_vector:
        array = array.reshape(())
    if array.dtype != np.float32:
        return np.asarray(array, float)
    return np.array([float(str(v)) for v in array.ravel()]).reshape(array.shape)


def _is_usual(model: Any, variable: Any) -> bool:
    """Whether the variable has the transform of its kind: another one, such as `ordered`, may cut its support."""
    from pymc.distributions.transforms import _default_transform

    usual = _default_transform(variable.owner.op, variable)
    return type(usual) is type(model.rvs_to_transforms.get(variable))
