"""A model as its user writes it: priors, and either a log likelihood or a prediction with its noise."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from supermodel.errors import DataError, ModelError
from supermodel.models.noise import Gaussian, Noise, total
from supermodel.models.space import Space


class Model:
    r"""A hypothesis: normalised priors $\pi(\theta)$ and a likelihood $L(\theta)$ with all its constants.

    `log_likelihood(p)` takes a dict of scalars and arrays and returns a scalar; with `data` it is called as
    `log_likelihood(p, data)`. It may be written for JAX or in plain Python; which of the two is found out by
    trying. Alternatively `predict` and `noise`: `predict(p, x)` is given `data["x"]`. Its arguments after the
    first are filled by name from the data; one whose name is no column gets the data whole.

    `vectorized`: a plain-Python log likelihood that takes arrays of n values for every parameter and returns n.

    >>> import numpyro.distributions as dist
    >>> Model({"omega": dist.Normal(1, 2)}, lambda p: -0.5 * p["omega"] ** 2)
    Model(omega ~ Normal(1, 2))
    """

    def __init__(
        self,
        priors: Mapping[str, Any],
        log_likelihood: Callable[..., Any] | None = None,
        *,
        predict: Callable[..., Any] | None = None,
        noise: Noise | None = None,
        vectorized: bool = False,
    ):
        if not isinstance(priors, Mapping):
            raise ModelError(
                f"`priors` must be a dict of name to distribution; got {type(priors).__name__}. "
                'Write e.g. priors={"omega": dist.Normal(1, 2)}; a model without parameters has priors={}.'
            )
        if (log_likelihood is None) == (predict is None):
            raise ModelError(
                "a model needs either `log_likelihood` or `predict` (with `noise`), and not both; "
                f"got log_likelihood={log_likelihood!r}, predict={predict!r}."
            )
        for function, label in ((log_likelihood, "log_likelihood"), (predict, "predict")):
            if function is not None and not callable(function):
                raise ModelError(f"`{label}` must be a function of a dict of parameters; got {function!r}.")
        if noise is not None and predict is None:
            raise ModelError("`noise` says how data scatter about `predict`; with `log_likelihood` it has no meaning.")
        self.space = Space(priors)
        self.predict = predict
        self.noise: Noise | None = (noise or Gaussian()) if predict is not None else None
        self.vectorized = vectorized
        self._log_likelihood = log_likelihood

    @property
    def priors(self) -> dict[str, Any]:
        return self.space.priors

    def reordered(self, names: Sequence[str]) -> Model:
        """The same model with its parameters packed in another order."""
        twin = copy.copy(self)
        twin.space = Space({name: self.space.priors[name] for name in names})
        return twin

    def __repr__(self) -> str:
        inner = ", ".join(f"{name} ~ {prior.description}" for name, prior in self.priors.items())
        return f"Model({inner or 'no parameters'})"

    def prediction(self, values: Mapping[str, Any], data: Any) -> Any:
        r"""$\mu(\theta)$."""
        if self.predict is None:
            raise ModelError(
                "this model has a `log_likelihood` but no `predict`, and predictions are asked for (a blend mixes "
                "predictions). Write it as Model(priors, predict=..., noise=Gaussian(sigma))."
            )
        wanted = list(inspect.signature(self.predict).parameters.values())[1:]
        wanted = [p for p in wanted if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        arguments = [data[p.name] if isinstance(data, Mapping) and p.name in data else data for p in wanted]
        return self.predict(values, *arguments)

    def log_likelihood(self, values: Mapping[str, Any], data: Any = None) -> Any:
        r"""$\ln L(\theta)$ in the user's coordinates."""
        if self._log_likelihood is not None:
            return self._log_likelihood(values) if data is None else self._log_likelihood(values, data)
        return total(self.pointwise_log_likelihood(values, data))

    def pointwise_log_likelihood(self, values: Mapping[str, Any], data: Any) -> Any:
        r"""$\ln p(y_i \mid \theta)$ for every datum; for models with `predict` and `noise`."""
        if self.noise is None:
            raise ModelError("pointwise log likelihoods need a model written with `predict` and `noise`.")
        if not isinstance(data, Mapping) or "y" not in data:
            raise DataError(
                'a model with `predict` and `noise` needs data with a column "y", e.g. data={"x": x, "y": y}; '
                f"got {sorted(data) if isinstance(data, Mapping) else type(data).__name__}."
            )
        result = self.noise.pointwise(self.prediction(values, data), data)
        if np.shape(result) != np.shape(data["y"]):
            raise DataError(
                f"`predict` and the noise give an array of shape {np.shape(result)} for data[\"y\"] of shape "
                f"{np.shape(data['y'])}: data would be counted more than once, or not at all. "
                "Return one prediction per datum (or one number for all), and give sigma as a number or per datum."
            )
        return result
