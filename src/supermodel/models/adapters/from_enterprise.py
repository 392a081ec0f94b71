r"""A pulsar timing array of `enterprise` as a `Model`: `pta.get_lnlikelihood(xs)` and the priors of `pta.params`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from supermodel.errors import ModelError, PriorError, suggestion
from supermodel.jax_scope import in_float64
from supermodel.models.model import Model
from supermodel.models.priors import Quantile

KNOWN = {"uniform": ("pmin", "pmax"), "linearexp": ("pmin", "pmax"), "normal": ("mu", "sigma")}
LEVELS = np.array([0.1, 0.5, 0.8])  # of quantiles at which enterprise's density is asked for


@in_float64
def from_enterprise(pta: Any, priors: Mapping[str, Any] | None = None) -> Model:
    """The model of an enterprise `PTA`: its likelihood as it is, and its parameters by the names of `pta.param_names`.

    `Uniform`, `Normal` and `LinearExp` parameters are understood, and compared with enterprise's own density. `priors` =
    {name: distribution} has those of other kinds; a number of a vector parameter is `name_0`, `name_1`, ...
    """
    for needed in ("params", "param_names", "get_lnlikelihood"):
        if not hasattr(pta, needed):
            raise ModelError(
                f"from_enterprise needs an enterprise PTA, with `{needed}`; got {type(pta).__name__}. "
                "Write from_enterprise(PTA([model(psr) for psr in psrs]))."
            )
    given = dict(priors or {})
    found: dict[str, Any] = {}
    for parameter in pta.params:
        found |= _laws_of(parameter, given)
    names = list(pta.param_names)
    if given:
        raise ModelError(
            f"`priors` names {sorted(given)}, which the array does not have. {suggestion(next(iter(given)), names)} "
            f"Its parameters are {', '.join(names)}."
        )
    return Model({name: found[name] for name in names}, _Likelihood(pta, names))


def _laws_of(parameter: Any, given: dict[str, Any]) -> dict[str, Any]:
    """{name: distribution} of one parameter, or of the numbers of a vector; taken out of `given` where they stand there."""
    size = getattr(parameter, "size", None)
    names = [parameter.name] if not size else [f"{parameter.name}_{i}" for i in range(size)]
    if all(name in given for name in names):
        return {name: given.pop(name) for name in names}
    arguments = _arguments(parameter, names)
    columns = [np.broadcast_to(np.asarray(value, float), len(names)) for value in arguments]
    laws = [LAWS[_kind(parameter)](*each) for each in zip(*columns, strict=True)]
    for level in LEVELS:
        values = np.array([float(law.ppf(level)) for law in laws])
        ours = sum(float(law.logpdf(v)) for law, v in zip(laws, values, strict=True))
        theirs = float(parameter.get_logpdf(values if size else values[0]))
        if not abs(ours - theirs) < 1e-6 * (1 + abs(ours)):
            raise PriorError(
                f"the prior of {parameter.name!r} calls itself {_kind(parameter)!r}, but its density at {values.tolist()} is "
                f"exp({theirs:.6g}) and not exp({ours:.6g}). {_instead(names)}"
            )
    return {name: law.as_prior() if isinstance(law, LinearExp) else law for name, law in zip(names, laws, strict=True)}


def _kind(parameter: Any) -> str:
    return str(getattr(parameter, "type", "") or type(parameter).__name__).lower()


def _arguments(parameter: Any, names: list[str]) -> list[Any]:
    """pmin and pmax, or mu and sigma, as plain numbers."""
    kind, held = _kind(parameter), getattr(getattr(parameter, "prior", None), "func_kwargs", {})
    if kind not in KNOWN:
        raise PriorError(
            f"the prior of {parameter.name!r} is of the kind {type(parameter).__name__!r}, whose density has no name here; known "
            f"are Uniform, Normal and LinearExp. {_instead(names)}"
        )
    found = [held.get(key) for key in KNOWN[kind]]
    for key, value in zip(KNOWN[kind], found, strict=True):
        try:
            array = np.asarray(value, float)
        except (TypeError, ValueError):
            array = np.full(1, np.nan)
        if array.ndim > 1 or not np.all(np.isfinite(array)):
            raise PriorError(
                f"the prior of {parameter.name!r} has {key} = {value!r}: numbers are needed, one or one for each number of a "
                f"vector, and not parameters of their own or a covariance. {_instead(names)}"
            )
    return found


def _instead(names: list[str]) -> str:
    return f"Give it yourself: from_enterprise(pta, priors={{{names[0]!r}: a distribution of scipy.stats or NumPyro, ...}})."


class LinearExp:
    r"""$p(x) = \ln 10 \cdot 10^x / (10^b - 10^a)$ on (a, b): uniform in $10^x$."""

    def __init__(self, low: float, high: float):
        self.low, self.high = float(low), float(high)

    def __repr__(self) -> str:
        return f"LinearExp({self.low:g}, {self.high:g})"

    @property
    def _share(self) -> float:
        return 10 ** (self.low - self.high)

    def as_prior(self) -> Quantile:
        return Quantile(self.ppf, repr(self), self.isf, self.cdf, self.sf)

    def ppf(self, p: Any) -> Any:
        return self.high + np.log10(self._share + np.asarray(p, float) * (1 - self._share))

    def isf(self, q: Any) -> Any:
        return self.high + np.log1p(-np.asarray(q, float) * (1 - self._share)) / np.log(10)

    def cdf(self, x: Any) -> Any:
        return np.clip((10 ** (np.asarray(x, float) - self.high) - self._share) / (1 - self._share), 0, 1)

    def sf(self, x: Any) -> Any:
        return np.clip(-np.expm1(np.log(10) * (np.asarray(x, float) - self.high)) / (1 - self._share), 0, 1)

    def logpdf(self, x: Any) -> Any:
        x = np.asarray(x, float)
        inside = np.log(np.log(10)) + np.log(10) * (x - self.high) - np.log1p(-self._share)
        return np.where((x >= self.low) & (x <= self.high), inside, -np.inf)


LAWS = {
    "uniform": lambda low, high: stats.uniform(low, high - low),
    "normal": lambda mean, sd: stats.norm(mean, sd),
    "linearexp": LinearExp,
}


class _Likelihood:
    """`pta.get_lnlikelihood` of an array in the order of `pta.param_names`."""

    def __init__(self, pta: Any, names: list[str]):
        self.pta, self.names = pta, names

    def __call__(self, values: Mapping[str, Any], data: Any = None) -> float:
        return float(self.pta.get_lnlikelihood(np.array([float(values[name]) for name in self.names])))
