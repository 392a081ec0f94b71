"""What a log likelihood may answer: one real number, or minus infinity. What else it says, or raises, is told in words."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from supermodel.errors import ModelError, SupermodelError, suggestion
from supermodel.models.model import Model, own
from supermodel.models.stopwatch import Stopwatch


class Failure:
    """An exception of a plain-Python likelihood. From worker processes its words travel, not itself: not all can."""

    def __init__(self, words: str, error: Exception | None = None):
        self.words, self.error = words, error

    def __reduce__(self):
        return Failure, (self.words,)

    @classmethod
    def of(cls, error: Exception, hint: str = "") -> Failure:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        first_line = (str(error).strip().splitlines() or [""])[0]
        return cls(
            f"{type(error).__name__}: {first_line} ({Path(frame.filename).name}, line {frame.lineno}{hint})", error
        )


class Answer(NamedTuple):
    """A number, and the seconds that it took where it was computed, on a worker or here."""

    value: float
    seconds: float


class Call:
    """One call of a plain-Python likelihood, as an object that worker processes can receive: a number or a `Failure`."""

    def __init__(self, name: str, model: Model, data: Any):
        self.name, self.function, self.data = name, model._log_likelihood or model.log_likelihood, data

    def __call__(self, values: Mapping[str, Any]) -> Answer | Failure:
        watch = Stopwatch()
        answer = self.raw(values)
        seconds = watch.seconds()
        if isinstance(answer, Failure):
            return answer
        array = real(answer, self.name)
        if array.shape != ():
            raise ModelError(
                f"the log likelihood of model {self.name!r} returned an array of shape {array.shape}; it must return one "
                "number. Sum over the data, or set vectorized=True if it takes arrays of parameter values."
            )
        return Answer(float(array), seconds)

    def raw(self, values: Mapping[str, Any]) -> Any:
        try:
            return self.function(own(values), *(() if self.data is None else (self.data,)))
        except SupermodelError:
            raise
        except Exception as error:
            return Failure.of(error, self._names(error, values))

    def _names(self, error: Exception, values: Mapping[str, Any]) -> str:
        """What there is in place of a parameter or a column that is not."""
        key = error.args[0] if isinstance(error, KeyError) and error.args else None
        columns = list(map(str, self.data)) if isinstance(self.data, Mapping) else []
        if not isinstance(key, str) or key in values or key in columns:
            return ""
        told = [
            f"{what} are {', '.join(names)}" for what, names in (("parameters", values), ("columns", columns)) if names
        ]
        hint = suggestion(key, [*values, *columns])
        return f"; {' and '.join(told) or 'the model has no parameters'}{'. ' + hint if hint else ''}"


def real(answer: Any, name: str) -> np.ndarray:
    """The answer as real numbers; a text, a truth value, a complex number or nothing at all is none."""
    try:
        array = np.asarray(answer)
        wrong = array.dtype.kind not in "fiuOV" or any(
            each is None or isinstance(each, str | bytes | bool | complex) for each in array.ravel()[:1].tolist()
        )
        if not wrong:
            return np.asarray(answer, float)
    except (TypeError, ValueError):
        pass
    raise no_number(answer, name)


def no_number(answer: Any, name: str) -> ModelError:
    """What is said of an answer of the wrong kind."""
    what = "nothing (None)" if answer is None else f"{str(answer)[:60]}, of type {type(answer).__name__}"
    dtype = getattr(answer, "dtype", None)
    return ModelError(
        f"the log likelihood of model {name!r} returned {what}{f' ({dtype})' if dtype is not None else ''}; it must return a "
        "real number, the log of the density of the data: no complex number, text or truth value can be one. Is a "
        "`return` missing, or a sum, or the real part of a result whose imaginary part is rounding?"
    )


def told(values: Mapping[str, np.ndarray], row: int) -> str:
    """The parameters at one of many points, as `a = 0.3, b = [1, 2]`."""

    def short(value: Any) -> str:
        return f"{value:.6g}" if not isinstance(value, list) else "[" + ", ".join(map(short, value)) + "]"

    return (
        ", ".join(f"{name} = {short(np.asarray(each[row]).tolist())}" for name, each in values.items()) or "any point"
    )
