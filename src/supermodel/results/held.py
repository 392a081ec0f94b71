"""The data that models hold themselves: arrays in closures, globals, defaults and objects, and the values that were observed.

Only arrays and what is made of them (lists of numbers, tables) are data; a single number is not, and neither is what a library
holds for itself. What is reached through a module (`config.Y`) is not seen.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from supermodel.results.fingerprint import fingerprint

LIBRARIES = frozenset(  # whose functions and objects hold no data of the user's, but much of their own
    "builtins numpy scipy jax jaxlib jaxtyping numpyro pymc pytensor torch tensorflow astropy matplotlib threading logging "
    "multiprocessing concurrent typing functools types collections random math os sys weakref".split()
)
DEPTH = 8  # from a model's likelihood to an array
NONE = "none"  # in place of a fingerprint, where no data are seen


def fingerprint_of_data(data: Any, models: Iterable[Any] = ()) -> str:
    """Twelve digits that change with `data` and with any array that the models hold; "none" where there are neither.

    Of models that hold the same arrays it is the same, whatever the models are called and however many there are.
    """
    held = sorted({fingerprint(leaf) for model in models for leaf in held_by(model)})
    if not held:
        return NONE if data is None else fingerprint(data)
    return fingerprint([*([] if data is None else [fingerprint(data)]), *held])


def held_by(model: Any) -> Iterator[Any]:
    """The arrays that the likelihood of a model, its prediction and its noise hold, and what it has observed."""
    observed = getattr(model, "observed", None)
    parts = [getattr(model, name, None) for name in ("_log_likelihood", "predict", "noise")]
    yield from _Walk().through([*parts, None if observed is None else observed.data], 0)


class _Walk:
    """A walk over objects and what they hold, which looks at each of them once."""

    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}  # the objects too: a number is used again once its object is gone

    def through(self, value: Any, depth: int) -> Iterator[Any]:
        if value is None or isinstance(value, str | bytes | bool | int | float | complex | type | types.ModuleType):
            return
        if depth > DEPTH or id(value) in self.seen:
            return
        self.seen[id(value)] = value
        if _is_data(value):
            yield value
            return
        for part in _parts(value):
            yield from self.through(part, depth + 1)


def _is_data(value: Any) -> bool:
    """An array with at least one axis, a table, a list of numbers, or a distribution, which holds some."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return True
    if hasattr(value, "arg_constraints") and hasattr(value, "log_prob"):
        return True
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        return np.ndim(value) > 0 and getattr(value.dtype, "kind", "") in "biufcUS"
    if isinstance(value, list | tuple) and value:
        return all(isinstance(each, int | float | np.number) and not isinstance(each, bool) for each in value)
    return False


def _parts(value: Any) -> list[Any]:
    """What an object holds that may hold data."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if callable(held := getattr(value, "held_data", None)):  # an adapter knows where its library keeps them
        return [held()]
    if hasattr(value, "__wrapped__"):  # of jit and other decorators
        return [value.__wrapped__]
    if _library(type(value)) in LIBRARIES:
        return []
    slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ()) if isinstance(name, str)]
    return [*getattr(value, "__dict__", {}).values(), *slots, *(f for f in [vars(type(value)).get("__call__")] if f)]


def _library(thing: Any) -> str:
    return (getattr(thing, "__module__", None) or "").split(".")[0]


def _of_function(function: types.FunctionType) -> list[Any]:
    """Its closure, its defaults, and the globals that it and the functions within it name."""
    if _library(function) in LIBRARIES:
        return []
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # a name that has no value yet
            continue
    if _library(function) == "supermodel":  # an adapter's function holds what it was given, in its closure
        return [*cells, function.__defaults__, function.__kwdefaults__]
    known = function.__globals__
    named = [known[name] for name in sorted(_globals_of(function.__code__)) if name in known]
    return [*cells, function.__defaults__, function.__kwdefaults__, *named]


def _globals_of(code: types.CodeType) -> set[str]:
    found = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found.union(*(_globals_of(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))
