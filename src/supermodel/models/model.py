"""A model as its user writes it: priors, and either a log likelihood or a prediction with its noise."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from supermodel.errors import DataError, ModelError, suggestion
from supermodel.models import declared
from supermodel.models.columns import as_columns
from supermodel.models.joint_space import JointSpace
from supermodel.models.noise import Gaussian, Noise, check_scales, columns_of, total
from supermodel.models.space import Space


def own(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values in a dict and in arrays that the receiver may write into: the sampler's points stay what they are."""
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _length(value: Any) -> str:
    return f"{np.shape(value)[0]} values" if np.ndim(value) == 1 else f"an array of shape {np.shape(value)}"


def _lengths(data: Mapping[str, Any]) -> str:
    """`x 49, y 50`, the lengths of the one-dimensional columns; empty if they are one."""
    found = {name: len(values) for name, values in data.items() if np.ndim(values) == 1}
    return ", ".join(f"{name} {n}" for name, n in found.items()) if len(set(found.values())) > 1 else ""


class Observed(NamedTuple):
    """What a model that brings its own data knows of them: ln p of each, the data, and how its axes are called."""

    log_densities: Callable[[Mapping[str, Any]], dict[str, Any]]  # values to {observed variable: ln p of each datum}
    data: dict[str, np.ndarray]
    dims: dict[str, tuple[str, ...]]  # {parameter or observed variable: names of its axes}
    coords: dict[str, Any]
    derived: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None  # values to {deterministic site: its value}


class Model:
    r"""A hypothesis: normalised priors $\pi(\theta)$ and a likelihood $L(\theta)$ with all its constants.

    `log_likelihood(p)` takes a dict of scalars and arrays and returns a scalar; with `data` it is called as
    `log_likelihood(p, data)`. It may be written for JAX or in plain Python; which of the two is found out by
    trying. Alternatively `predict` and `noise`: `predict(p, x)` is given `data["x"]`. Its arguments after the
    first are filled by name from the data; one whose name is no column gets the data whole.

    `vectorized`: a plain-Python log likelihood that takes arrays of n values for every parameter and returns n.
    `labels` and `units` of parameters, for tables and axes: {"omega": r"$\omega$"}, {"omega": "rad/s"}.
    `exchangeable`: blocks of parameters that may change places, `[("P1", "K1"), ("P2", "K2")]`, arrays whose first axis counts
    components, `["f", "A"]`, or a `Canonical` form; left out, such symmetries are looked for; False: they are not.
    `periodic`: names of parameters that go round a circle, or True for all that can; left out, they are looked for.

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
        labels: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        exchangeable: Any = None,
        periodic: Any = None,
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
        self.space: Space | JointSpace = Space(priors)
        self.pilot_points: dict[str, np.ndarray] | None = None  # posterior draws from elsewhere, see `with_pilot`
        self.predict = predict
        self.noise: Noise | None = (noise or Gaussian()) if predict is not None else None
        self.observed: Observed | None = None  # of a model from NumPyro or PyMC
        self.vectorized = vectorized
        self.on_error = "raise"  # where the log likelihood is NaN or raises; "reject": such points are impossible
        self._log_likelihood = log_likelihood
        self.written: dict[str, Any] | None = None  # the formulas of a model from a TOML file
        self.labels = self._checked("labels", labels)
        self.units = self._checked("units", units)
        self.exchangeable = declared.exchangeable(self.space, exchangeable)
        self.periodic = declared.periodic(self.space, periodic)
        self.extends: str | None = None  # the name of a smaller model, see `extending`

    def _checked(self, what: str, given: Mapping[str, str] | None) -> dict[str, str]:
        for name, text in (given or {}).items():
            if name not in self.space.names:
                raise ModelError(
                    f"`{what}` names {name!r}, which is no parameter; parameters are {', '.join(self.space.names) or 'none'}. "
                    f"{suggestion(str(name), self.space.names)}"
                )
            if not isinstance(text, str) or not text:
                raise ModelError(f"`{what}` must be a dict of name to text; that of {name!r} is {text!r}.")
        return dict(given or {})

    def with_labels(self, labels: Mapping[str, str] | None = None, units: Mapping[str, str] | None = None) -> Model:
        """The same model with labels and units of (some of) its parameters, for tables and axes."""
        twin = copy.copy(self)
        twin.labels = self.labels | self._checked("labels", labels)
        twin.units = self.units | self._checked("units", units)
        return twin

    @classmethod
    def from_space(
        cls, space: Space | JointSpace, log_likelihood: Callable[..., Any], *, vectorized: bool = False
    ) -> Model:
        """A model whose parameters live in a space made by hand: a joint prior, a unit cube, a density."""
        model = cls({}, log_likelihood, vectorized=vectorized)
        model.space = space
        return model

    def with_observed(self, observed: Observed) -> Model:
        """The same model, which also knows its data one by one."""
        return self._with(observed=observed)

    def _with(self, **changed: Any) -> Model:
        twin = copy.copy(self)
        vars(twin).update(changed)
        return twin

    @property
    def knows_each_datum(self) -> bool:
        """Whether there is a log likelihood of each datum, and not of all together only."""
        return self.noise is not None or self.observed is not None

    def log_densities(self, values: Mapping[str, Any], data: Any) -> dict[str, Any]:
        r"""{observed variable: $\ln p(y_i \mid \theta)$ of each datum}."""
        if self.observed is not None:
            return self.observed.log_densities(values)
        return {"y": self.pointwise_log_likelihood(values, data)}

    @property
    def priors(self) -> Mapping[str, Any]:
        return self.space.priors

    def reordered(self, names: Sequence[str]) -> Model:
        """The same model with its parameters packed in another order."""
        return self.with_space(self.space.reordered(names))

    def with_space(self, space: Any) -> Model:
        """The same model in other unconstrained coordinates."""
        return self._with(space=space)

    def with_on_error(self, on_error: str) -> Model:
        """The same model, whose points without a number are refused ("raise") or count as impossible ("reject")."""
        return self._with(on_error=on_error)

    def extending(self, smaller: str) -> Model:
        """The same model, whose further parameters are first searched for in what the model `smaller` of one comparison leaves."""
        return self._with(extends=smaller)

    def with_pilot(self, samples: Mapping[str, Any]) -> Model:
        """The same model with posterior draws {name: (n, ...)} that spare it its own pilot; they cannot bias the answer."""
        draws = {name: np.asarray(values, float) for name, values in samples.items()}
        missing = sorted(set(self.space.names) - set(draws))
        if missing:
            raise ModelError(
                f"the pilot has no draws of {missing}; the model's parameters are {sorted(self.space.names)}, the draws are of "
                f'{sorted(draws)}. Rename the columns, e.g. from_chains(model, chains, names={{"their name": "yours"}}).'
            )
        draws = {name: draws[name] for name in self.space.names}  # others (derived parameters) are left out
        sizes = {name: len(values) if values.ndim else 0 for name, values in draws.items()}
        if draws and (len(set(sizes.values())) != 1 or min(sizes.values()) < 2):
            raise ModelError(f"a pilot needs the same number of draws, at least 2, of every parameter; got {sizes}.")
        for name, values in draws.items():
            if values.shape[1:] != tuple(self.priors[name].shape):
                raise ModelError(
                    f"pilot draws of {name!r} have the shape {values.shape[1:]} each; in the model it is "
                    f"{tuple(self.priors[name].shape)}."
                )
            if not np.all(np.isfinite(values)):
                raise ModelError(
                    f"pilot draws of {name!r} hold {np.sum(~np.isfinite(values))} values that are not finite."
                )
        return self._with(pilot_points=draws)

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
        data = as_columns(data)
        named = {name: data[name] if isinstance(data, Mapping) and name in data else data for name in self._arguments()}
        try:
            found = self.predict(own(values), *named.values())
        except Exception as error:
            if "broadcast" in str(error) and _lengths(named):
                raise DataError(
                    f"`predict` fails on columns of different lengths ({_lengths(named)}): {error}. A row of the data is one "
                    "datum: give columns of one length."
                ) from error
            whole = [name for name, given in named.items() if given is data]
            if whole and isinstance(data, Mapping) and isinstance(error, TypeError):
                raise DataError(
                    f"`predict` fails ({type(error).__name__}: {error}). Its argument {whole[0]!r} is no column of the data, "
                    f"which has {', '.join(sorted(data))}, so that it is given all columns, as a dict. Name the argument as "
                    f'the column is called, or write {whole[0]}["name of a column"] for one of them.'
                ) from error
            raise
        if found is None:
            raise ModelError(
                "`predict` returned nothing (None); it must return one prediction per datum. Is a `return` missing?"
            )
        return found

    def _arguments(self) -> list[str]:
        """The names of what `predict` is given after the parameters."""
        if self.predict is None:
            return []
        wanted = list(inspect.signature(self.predict).parameters.values())[1:]
        return [
            p.name for p in wanted if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]

    def predicts_from(self, names: Iterable[str]) -> set[str] | None:
        """Which of the columns `names` the prediction reads; None where it is given the data whole."""
        if hasattr(self.predict, "columns"):
            return set(getattr(self.predict, "columns"))  # noqa: B009
        wanted = set(self._arguments())
        return wanted if wanted <= set(names) else None

    def reads(self, names: Iterable[str]) -> set[str] | None:
        """Which of the columns `names` the model reads; None where it may read them all."""
        if self.predict is None or self.noise is None:
            return None
        read = [self.predicts_from(names)]
        read += [{part} if isinstance(part, str) else getattr(part, "columns", None) for part in columns_of(self.noise)]
        return None if None in read else {"y"}.union(*read) & set(names)  # type: ignore[arg-type]

    def log_likelihood(self, values: Mapping[str, Any], data: Any = None) -> Any:
        r"""$\ln L(\theta)$ in the user's coordinates."""
        if self._log_likelihood is not None:
            return self._log_likelihood(own(values), *(() if data is None else (data,)))
        return total(self.pointwise_log_likelihood(values, data))

    def pointwise_log_likelihood(self, values: Mapping[str, Any], data: Any) -> Any:
        r"""$\ln p(y_i \mid \theta)$ for every datum; of a model that brings its own data one after the other."""
        if self.observed is not None:
            import jax.numpy as jnp

            return jnp.concatenate([jnp.ravel(part) for part in self.observed.log_densities(values).values()])
        return self._of_noise(values, data, lambda noise, mean, known: noise.pointwise(mean, known))

    def left_out_log_likelihood(self, values: Mapping[str, Any], data: Any, blocks: Sequence[Any] | None = None) -> Any:
        r"""$\ln p(y_b \mid y_{-b}, \theta)$ of every datum, or of every block of rows, given all the others.

        Where data are independent given the parameters this is ln p of the block; with a covariance it is not.
        """
        if self.observed is None and getattr(self.noise, "is_correlated", False):
            return self._of_noise(values, data, lambda noise, mean, known: noise.left_out(mean, known, blocks), blocks)
        terms = self.pointwise_log_likelihood(values, data)
        if blocks is None:
            return terms
        import jax.numpy as jnp

        return jnp.stack([jnp.sum(jnp.ravel(terms)[rows]) for rows in blocks])

    def _of_noise(self, values: Mapping[str, Any], data: Any, asked: Callable[..., Any], blocks: Any = None) -> Any:
        """What is asked of the noise, its prediction and what is known, with an answer for each datum (or block)."""
        if self.noise is None:
            raise ModelError(
                "pointwise log likelihoods need a model written with `predict` and `noise`, in NumPyro or in PyMC."
            )
        data = as_columns(data)
        if not isinstance(data, Mapping) or "y" not in data:
            raise DataError(
                'a model with `predict` and `noise` needs data with a column "y", e.g. data={"x": x, "y": y}; '
                f"got {sorted(data) if isinstance(data, Mapping) else type(data).__name__}. Call the measured column so."
            )
        check_scales(self.noise, data)
        # A noise may take a fitted parameter by name (Gaussian("scatter")); columns go first.
        mean, known = self.prediction(values, data), {**values, **data}
        try:
            result = asked(self.noise, mean, known)
        except (TypeError, ValueError) as error:
            if isinstance(error, DataError) or "broadcast" not in str(error):
                raise
            lengths = _lengths(data)
            told = f'`predict` gives {_length(mean)} for {_length(data["y"])} of data["y"]'
            raise DataError(
                f"the columns do not fit each other: {told}, and the lengths of the columns are {lengths}. A row of the data "
                "is one datum: give columns of one length."
                if lengths
                else f"{told}, and the columns are of one length. It must return one prediction per datum, or one number for "
                "all: does it cut or bin a column? (A sigma of another length fails in the same way.)"
            ) from error
        if np.shape(result) != (np.shape(data["y"]) if blocks is None else (len(blocks),)):
            raise DataError(
                f'`predict` and the noise give an array of shape {np.shape(result)} for data["y"] of shape '
                f"{np.shape(data['y'])}: data would be counted more than once, or not at all. "
                "Return one prediction per datum (or one number for all), and give sigma as a number or per datum."
            )
        return result
