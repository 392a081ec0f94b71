r"""A model with its data: $\ln J(x) = \ln L(x) + \ln \pi(x)$ as a function of one flat unconstrained vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.errors import ModelError, SupermodelError
from supermodel.jax_scope import in_float64
from supermodel.models.many_points import compiled, is_large, over_points, width
from supermodel.models.model import Model, own
from supermodel.models.rounding import shifts


class Joint:
    """One model bound to its data. Scalar functions of `x` can be traced; `..._at` take many points in NumPy."""

    def __init__(self, name: str, model: Model, data: Any = None):
        self.name, self.model, self.data = name, model, data
        self.space = model.space
        self.dimension = model.space.dimension

    # -- one point, traced ----------------------------------------------------------------------------------------

    def log_likelihood(self, x):
        import jax.numpy as jnp

        # A likelihood that is NaN is left NaN: hiding it would hide the user's mistake.
        return jnp.asarray(self.model.log_likelihood(self.space.constrain(x), self.data), float)

    def log_prior(self, x):
        return self.space.log_prior(x)

    def __call__(self, x):
        r"""$\ln J(x)$."""
        return self.log_likelihood(x) + self.log_prior(x)

    def prediction(self, x):
        return self.model.prediction(self.space.constrain(x), self.data)

    # -- what kind of likelihood it is ----------------------------------------------------------------------------

    @cached_property
    def is_traceable(self) -> bool:
        """Whether JAX can trace the likelihood, found out by trying; a wrong shape is an error at once."""
        return self._trace is not None

    @cached_property
    @in_float64
    def _trace(self) -> Any:
        """The likelihood as a jaxpr, or None."""
        try:
            traced = self._traced(self.log_likelihood)
        except SupermodelError:
            raise  # our own refusals (a missing column, a wrong shape) are no sign of plain Python
        except Exception:  # whatever a plain-Python likelihood does with a tracer; `probe` shows true mistakes
            return None
        if traced.out_avals[0].shape != ():
            raise ModelError(
                f"the log likelihood of model {self.name!r} returns an array of shape {traced.out_avals[0].shape}; it must "
                "return one number, the log of the joint density of all the data. Sum over the data."
            )
        return traced

    def _traced(self, function: Callable[[Any], Any]) -> Any:
        import jax

        return jax.make_jaxpr(function)(jax.ShapeDtypeStruct((self.dimension,), float))

    @in_float64
    def shifts(self, points: np.ndarray) -> np.ndarray:
        """Draws of what numbers of single precision in the likelihood or the prior may have moved ln Z by, in nats."""
        traces = [self._trace] if self.is_traceable else []
        if getattr(self.space, "traceable", True):
            traces.append(self._traced(self.log_prior))
        return shifts(traces, points, self.name)

    @cached_property
    @in_float64
    def width(self) -> int:
        """Numbers that a traced likelihood needs for each point: about as many as there are data."""
        return width(self._trace, self.dimension)

    @property
    def is_large(self) -> bool:
        """Whether a traced likelihood closes over so many numbers that programs should not hold them."""
        return is_large(self._trace)

    # -- many points, NumPy ---------------------------------------------------------------------------------------

    @cached_property
    def _compiled(self):
        return compiled(over_points(self.log_likelihood, self.width), self.is_large)

    @cached_property
    def _with_gradient(self):
        import jax

        return compiled(over_points(jax.value_and_grad(self.__call__), self.width), self.is_large)

    @in_float64
    def value_and_gradient_at(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln J and its gradient at (n, dimension) points of a traceable model."""
        value, gradient = self._with_gradient(points)
        return np.asarray(value), np.asarray(gradient)

    @in_float64
    def log_likelihood_at(self, points: np.ndarray, executor: Any = None) -> np.ndarray:
        """ln L at (n, dimension) points: compiled, vectorised or one by one (on an executor if there is one)."""
        if len(points) == 0:
            return np.zeros(0)
        if self.is_traceable:
            return np.asarray(self._compiled(points))
        values = self.space.values_at(points)
        if self.model.vectorized:
            return self._vectorized(values, len(points))
        each = [{name: value[i] for name, value in values.items()} for i in range(len(points))]
        if executor is None:
            return np.array([self._scalar(v) for v in each])
        return np.array(list(executor.map(_Likelihood(self.name, self.model, self.data), each)))

    def log_joint_at(self, points: np.ndarray, executor: Any = None) -> np.ndarray:
        """ln J at (n, dimension) points; where the prior is zero the likelihood still is called."""
        return self.log_likelihood_at(points, executor) + self.space.log_prior_at(points)

    def _vectorized(self, values: Mapping[str, np.ndarray], n: int) -> np.ndarray:
        result = np.asarray(self.model.log_likelihood(values, self.data), float)
        if result.shape == () and not self.space.names:  # no parameters: nothing to vectorise over
            result = np.full(n, float(result))
        if result.shape != (n,):
            raise ModelError(
                f"model {self.name!r} is `vectorized`, but for {n} points its log likelihood returned an array of shape "
                f"{result.shape} instead of ({n},). Return one number per point, or drop vectorized=True."
            )
        return result

    def _scalar(self, values: Mapping[str, Any]) -> float:
        return _Likelihood(self.name, self.model, self.data)(values)

    def probe(
        self, rng: np.random.Generator, n: int = 64, evaluate: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Prior draws and ln L there (by `evaluate`, if given); refuses NaN and +inf (minus infinity is legal)."""
        evaluate = evaluate or self.log_likelihood_at
        points = self.space.sample_prior(rng, n)
        values = evaluate(points)
        if np.all(np.isneginf(values)):
            points, values = self._look_further(rng, points, values, evaluate)
        if np.any(np.isnan(values)):
            where = {k: np.round(v[np.isnan(values)][0], 6).tolist() for k, v in self.space.values_at(points).items()}
            raise ModelError(
                f"the log likelihood of model {self.name!r} is NaN at the prior draw {where} "
                f"({np.isnan(values).sum()} of {n} draws). A NaN would end every chain that meets it. "
                "Return -inf where the model is impossible, and look for 0/0, log of a negative number or overflow."
            )
        if np.any(np.isposinf(values)):
            raise ModelError(
                f"the log likelihood of model {self.name!r} is +inf at a prior draw: the data would be certain."
            )
        return points, values

    def _look_further(self, rng, points, values, evaluate, batches: int = 15):
        """More prior draws, in search of one that the likelihood allows."""
        n = len(points)
        for _ in range(batches):
            points = self.space.sample_prior(rng, n)
            values = evaluate(points)
            if not np.all(np.isneginf(values)):
                return points, values
        raise ModelError(
            f"the log likelihood of model {self.name!r} is -inf at all of {n * (batches + 1)} prior draws: the data are "
            "impossible under it, or possible only in a sliver of its prior. Check the units of data and parameters, "
            "or narrow the prior to where the likelihood is not zero."
        )


class _Likelihood:
    """One call of a plain-Python likelihood, as an object that worker processes can receive."""

    def __init__(self, name: str, model: Model, data: Any):
        self.name, self.function, self.data = name, model._log_likelihood or model.log_likelihood, data

    def __call__(self, values: Mapping[str, Any]) -> float:
        result = self.function(own(values), *(() if self.data is None else (self.data,)))
        array = np.asarray(result, float)
        if array.shape != ():
            raise ModelError(
                f"the log likelihood of model {self.name!r} returned an array of shape {array.shape}; it must return one "
                "number. Sum over the data, or set vectorized=True if it takes arrays of parameter values."
            )
        return float(array)
