r"""A model with its data: $\ln J(x) = \ln L(x) + \ln \pi(x)$ as a function of one flat unconstrained vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.errors import ModelError, SupermodelError
from supermodel.jax_scope import in_float64
from supermodel.models.answers import Answer, Call, Failure, no_number, real, told
from supermodel.models.columns import texts_told
from supermodel.models.many_points import compiled, in_parts, over_points, width
from supermodel.models.model import Model
from supermodel.models.rolled import LOOP, rolled
from supermodel.models.rounding import shifts
from supermodel.models.stopwatch import Stopwatch

ROUNDING = 8.0  # units in the last place that a logistic and what a likelihood does with it may take
FAR = 30.0  # nats of prior density below the lowest of some prior draws: no posterior that could be found is there


class Joint:
    """One model bound to its data. Scalar functions of `x` can be traced; `..._at` take many points in NumPy."""

    def __init__(self, name: str, model: Model, data: Any = None):
        self.name, self.model, self.data = name, model, data
        self.space = model.space
        self.dimension = model.space.dimension
        self.pace = np.inf  # processor seconds of the quickest call, where it was computed
        self._is_warm = False  # whether a traced likelihood has run: what compiles is not timed
        self._rejected = 0  # points that counted as impossible because there was no number
        self.unread: tuple[str, ...] = ()  # parameters that ln L does not depend on, where it is known
        self.opened = self  # the same in the same coordinates, without a fold: ln J has no edges there
        self.origin: Joint | None = None  # of a folded model, the one that was folded

    def folded(self, space: Any) -> Joint:
        """The same model in one labelling of its symmetries, with its calls counted here."""
        twin = Joint(self.name, self.model.with_space(space), self.data)
        same_coordinates = all(prior is self.space.priors[name] for name, prior in space.priors.items())
        twin.opened = self if same_coordinates else Joint(self.name, self.model.with_space(space.opened), self.data)
        for joint in (twin, twin.opened):
            joint.unread = self.unread
            if joint is not self:
                joint.origin = self
        return twin

    @property
    def rejected(self) -> int:
        return self._rejected if self.origin is None else self.origin.rejected

    @rejected.setter
    def rejected(self, n: int) -> None:
        if self.origin is None:
            self._rejected = n
        else:
            self.origin.rejected = n

    # -- one point, traced ----------------------------------------------------------------------------------------

    def log_likelihood(self, x):
        r"""$\ln L(x)$; what it does for one parameter after the other is done for all of them at once."""
        return self._as_written(x) if self._rolled is None else self._rolled(x)

    def _as_written(self, x):
        import jax.numpy as jnp

        answer = self.model.log_likelihood(self.space.constrain(x), self.data)
        if answer is None or jnp.result_type(answer).kind in "bc":
            raise no_number(answer, self.name)
        # A likelihood that is NaN is left NaN: hiding it would hide the user's mistake.
        return jnp.asarray(answer, float)

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
        """The likelihood as a jaxpr, as it was written, or None."""
        try:
            traced = self._traced(self._as_written)
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

    @cached_property
    @in_float64
    def _rolled(self) -> Callable[[Any], Any] | None:
        return rolled(self._trace) if self.dimension >= LOOP and self.is_traceable else None

    def _traced(self, function: Callable[[Any], Any]) -> Any:
        import jax

        return jax.make_jaxpr(function)(jax.ShapeDtypeStruct((self.dimension,), float))

    @in_float64
    def shifts(self, points: np.ndarray) -> np.ndarray:
        """Draws of what numbers of single precision in the likelihood or the prior may have moved ln Z by, in nats."""
        traces = [self._trace] if self.is_traceable else []
        if getattr(self.space, "traceable", True):
            traces.append(self._traced(self.log_prior))
        return shifts(traces, points, self.name, self.width if self.is_traceable else 1)

    @cached_property
    @in_float64
    def width(self) -> int:
        """Numbers that a traced likelihood needs for each point: about as many as there are data."""
        trace = self._trace if self._rolled is None else self._traced(self._rolled)
        return width(trace, self.dimension)

    # -- many points, NumPy ---------------------------------------------------------------------------------------

    @cached_property
    def _compiled(self):
        if self.opened is not self:  # ln L has no fold: it is compiled once
            return self.opened._compiled
        return compiled(over_points(self.log_likelihood, self.width))

    def _timed(self, points: np.ndarray) -> np.ndarray:
        watch = Stopwatch()
        values = np.asarray(self._compiled(points))
        if self._is_warm:
            self.pace = min(self.pace, watch.seconds() / len(points))
        self._is_warm = True
        return values

    @cached_property
    def _with_gradient(self):
        import jax

        return compiled(over_points(jax.value_and_grad(self.__call__), self.width))

    @in_float64
    def value_and_gradient_at(self, points: np.ndarray, size: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """ln J and its gradient at (n, dimension) points of a traceable model, `size` at a time."""
        value, gradient = in_parts(self._with_gradient, points, size or len(points))
        return self.admitted(points, value), gradient

    @in_float64
    def log_likelihood_at(self, points: np.ndarray, executor: Any = None, size: int = 0) -> np.ndarray:
        """ln L at (n, dimension) points: compiled, vectorised or one by one (on an executor if there is one).

        What is compiled is given `size` points at a time, or all at once. NaN and +inf do not leave here, see `admitted`.
        """
        n = len(points)
        if n == 0:
            return np.zeros(0)
        if self.is_traceable:
            return self.admitted(points, in_parts(self._timed, points, size or n))
        values, call = self.space.values_at(points), Call(self.name, self.model, self.data)
        if self.model.vectorized:
            watch = Stopwatch()
            answer = call.raw(values)
            self.pace = min(self.pace, watch.seconds() / n)
            if not isinstance(answer, Failure):
                return self.admitted(points, self._one_each(answer, n))
            # Which point was it? Each alone is asked again.
            each = [call.raw({name: value[i : i + 1] for name, value in values.items()}) for i in range(n)]
            answers = [a if isinstance(a, Failure) else float(self._one_each(a, 1)[0]) for a in each]
        else:
            run = map if executor is None else executor.map
            told_each = list(run(call, [{name: value[i] for name, value in values.items()} for i in range(n)]))
            self.pace = min([self.pace, *(a.seconds for a in told_each if isinstance(a, Answer))])
            answers = [a.value if isinstance(a, Answer) else a for a in told_each]
        failures = {i: a for i, a in enumerate(answers) if isinstance(a, Failure)}
        return self.admitted(
            points, real([np.nan if i in failures else a for i, a in enumerate(answers)], self.name), failures
        )

    def admitted(
        self, points: np.ndarray, values: np.ndarray, failures: Mapping[int, Failure] | None = None
    ) -> np.ndarray:
        """`values` (ln L, or ln J) at the points, if they are numbers below +inf.

        +inf is refused: no evidence exists. NaN, and what was raised (`failures`), is refused or, where the model says
        `on_error="reject"`, counts as impossible. So it does without a word where parameters overflow, or far outside of
        the prior, where samplers look but no posterior is; and so does +inf too where a parameter is at the edge of its
        support to rounding: a Beta density may have no bound there, and an integral all the same.
        """
        odd = np.flatnonzero(~(values < np.inf))
        if not len(odd):
            return values
        seen, top = self.space.values_at(points[odd]), np.isposinf(values[odd])
        overflown = ~np.all(
            [np.isfinite(v).reshape(len(odd), -1).all(axis=1) for v in seen.values()] or [top | True], axis=0
        )
        bad = ~overflown & ~self._is_on_edge(points[odd]) & (top | ~self.is_far(points[odd]))
        if np.any(bad & top) or (np.any(bad) and self.model.on_error == "raise"):
            row = int(np.flatnonzero(bad & top if np.any(bad & top) else bad)[0])
            raise self._refusal(
                told(seen, row), bool(top[row]), f"{bad.sum()} of {len(points)}", (failures or {}).get(int(odd[row]))
            )
        self.rejected += int(bad.sum())
        return np.where(values < np.inf, values, -np.inf)

    def _is_on_edge(self, points: np.ndarray) -> np.ndarray:
        """Where a step of one outwards moves some parameter by rounding only, though it is no constant."""
        here, further, middle = map(self.space.values_at, (points, points + np.sign(points), 0.0 * points))
        edge = np.zeros(len(points), bool)
        with np.errstate(invalid="ignore"):
            for name, value in here.items():
                still = np.abs(further[name] - value) <= ROUNDING * np.spacing(np.abs(value))
                edge |= (still & (value != middle[name])).reshape(len(points), -1).any(axis=1)
        return edge

    def is_far(self, points: np.ndarray) -> np.ndarray:
        """Which points are so far outside of the prior that no posterior is there."""
        return ~(self.space.log_prior_at(points) > self._lowest - FAR)

    @cached_property
    def _lowest(self) -> float:
        """Of the log prior at some of its draws."""
        return float(self.space.log_prior_at(self.space.sample_prior(np.random.default_rng(0), 64)).min())

    def _refusal(self, where: str, is_top: bool, share: str, failure: Failure | None) -> ModelError:
        if is_top:
            return ModelError(
                f"the log likelihood of model {self.name!r} is +inf at {where}: the data would be certain there, and the "
                "evidence does not exist. Look for a density without bound (a standard deviation that goes to 0), a "
                "division by zero or an overflow."
            )
        error = ModelError(
            f"the log likelihood of model {self.name!r} {'is NaN' if failure is None else f'raises {failure.words}'} at "
            f"{where} ({share} points at once), so that nothing is known of the model there. Mend it: look for 0/0, the log "
            'of a negative number or overflow, and return -inf where the model is impossible. Or pass on_error="reject": '
            "such points then count as impossible, and the verdict says how many there were." + texts_told(self.data)
        )
        if failure is not None and failure.error is not None:
            failure.error.add_note(f"raised by the log likelihood of model {self.name!r} at {where}")
            error.__cause__ = failure.error
        return error

    def log_joint_at(self, points: np.ndarray, executor: Any = None) -> np.ndarray:
        """ln J at (n, dimension) points; where the prior is zero the likelihood still is called."""
        return self.log_likelihood_at(points, executor) + self.space.log_prior_at(points)

    def _one_each(self, answer: Any, n: int) -> np.ndarray:
        result = real(answer, self.name)
        if result.shape == () and not self.space.names:  # no parameters: nothing to vectorise over
            result = np.full(n, float(result))
        if result.shape != (n,):
            raise ModelError(
                f"model {self.name!r} is `vectorized`, but for {n} points its log likelihood returned an array of shape "
                f"{result.shape} instead of ({n},). Return one number per point, or drop vectorized=True."
            )
        return result

    def probe(
        self, rng: np.random.Generator, n: int = 64, evaluate: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Prior draws and ln L there (by `evaluate`, if given); not all of them may be impossible."""
        evaluate = evaluate or self.log_likelihood_at
        points = self.space.sample_prior(rng, n)
        values = evaluate(points)
        if np.all(np.isneginf(values)):
            points, values = self._look_further(rng, points, values, evaluate)
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
            + (f" (It was NaN, or raised, at {self.rejected} of them.)" if self.rejected else "")
        )
