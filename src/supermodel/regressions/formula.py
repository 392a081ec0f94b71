"""A formula in the language of R and Bambi: the response, the terms of the mean, and the group-level terms.

Parsed by `formulae`; names are columns of the data, and functions come from a closed list, so that a formula from a file
cannot run anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from supermodel.errors import DataError, SupermodelError
from supermodel.regressions.contrasts import Covariate, Factor

MATHS = {
    name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "exp", "sqrt", "abs", "sin", "cos", "tanh")
}
OF_FORMULAE = ("C", "I", "center", "scale", "standardize", "poly", "bs", "offset", "p", "prop", "proportion")
LANGUAGE = "Write it as in R: 'y ~ a * b + log(x) + (1 | group)'"


class FormulaError(SupermodelError):
    """A formula that cannot be read, or that asks for what there is not."""


@dataclass(frozen=True)
class Term:
    """An effect: the names of its components, and for a group-level term those of its group."""

    components: tuple[str, ...]
    group: tuple[str, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        """All that it is made of; a term whose columns are some of these is a part of it."""
        return frozenset((*self.components, *self.group))

    @property
    def name(self) -> str:
        inner = ":".join(self.components)
        return f"({inner or '1'} | {':'.join(self.group)})" if self.group else inner


@dataclass(frozen=True, eq=False)
class Formula:
    """What a formula says; `components` are those of formulae by name, to be evaluated in a table."""

    text: str
    response: Any
    terms: tuple[Term, ...]
    groups: tuple[Term, ...]
    intercept: bool
    offsets: tuple[str, ...]
    components: dict[str, Any]

    def with_groups_as_terms(self) -> Formula:
        """The same, with group-level terms among those that a model may lack."""
        return replace(self, terms=(*self.terms, *self.groups), groups=())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are needed, the response's first."""
        parts = [self.response, *self.components.values()]
        return tuple(dict.fromkeys(name for part in parts for name in sorted(_names(part))))

    @property
    def response_name(self) -> str:
        return self.response.name


def parse(text: str) -> Formula:
    """The parts of a formula."""
    from formulae import model_description
    from formulae.terms.terms import Intercept

    if not isinstance(text, str):
        raise FormulaError(f"a formula is a text; got {type(text).__name__}. {LANGUAGE}.")
    if "~" not in text:
        raise FormulaError(f"the formula {text!r} has no '~': what is explained stands to its left. {LANGUAGE}.")
    try:
        found = model_description(text)
    except RecursionError:
        raise FormulaError("the formula is nested too deeply.") from None
    except Exception as error:  # formulae has a kind of its own for each of its steps
        hint = " Powers are written ** (or I(x**2))." if "^" in text else ""
        raise FormulaError(
            f"the formula {text!r} cannot be read: {str(error).rstrip('.')}.{hint} {LANGUAGE}."
        ) from None
    components: dict[str, Any] = {}

    def named(term: Any) -> tuple[str, ...]:
        components.update({c.name: c for c in term.components})
        return tuple(c.name for c in term.components)

    common = [named(term) for term in found.common_terms if not isinstance(term, Intercept)]
    offsets = tuple(name for (name, *_) in common if name.startswith("offset("))
    groups = [Term(() if isinstance(g.expr, Intercept) else named(g.expr), named(g.factor)) for g in found.group_terms]
    if found.response is None:
        raise FormulaError(f"the formula {text!r} has no response to the left of '~'. {LANGUAGE}.")
    for part in (found.response.term.components[0], *components.values()):
        _check_functions(part)
    return Formula(
        text=" ".join(text.split()),
        response=found.response.term.components[0],
        terms=tuple(Term(names) for names in sorted(common, key=len) if not names[0].startswith("offset(")),
        groups=tuple(groups),
        intercept=any(isinstance(term, Intercept) for term in found.common_terms),
        offsets=offsets,
        components=components,
    )


def _nodes(part: Any) -> Iterator[Any]:
    """A component and all that it is made of."""
    yield part
    inner = [getattr(part, "call", None), *getattr(part, "args", ()), *getattr(part, "kwargs", {}).values()]
    for node in inner:
        if node is not None:
            yield from _nodes(node)


def _names(part: Any) -> set[str]:
    """Columns that a component asks for."""
    if not hasattr(part, "call"):
        return {part.name}
    return {node.name for node in _nodes(part) if type(node).__name__ == "LazyVariable"}


def _check_functions(part: Any) -> None:
    """Refuse functions that are not on the list, wherever they stand."""
    for callee in (node.callee for node in _nodes(part) if hasattr(node, "callee")):
        if callee.removeprefix("np.") not in (*MATHS, *OF_FORMULAE):
            known = ", ".join((*MATHS, *OF_FORMULAE))
            raise FormulaError(
                f"the formula calls {callee!r}; a formula may call {known}. Make the column in your data, and name it."
            )


# -- values -------------------------------------------------------------------------------------------------------


def evaluate(part: Any, table: pd.DataFrame) -> Any:
    """What a component is in a table: a Series, an array, or one of formulae's own boxes."""
    if not hasattr(part, "call"):
        return table[part.name]
    from formulae.environment import Environment
    from formulae.transforms import TRANSFORMS

    functions = (
        MATHS
        | {"np": SimpleNamespace(**MATHS)}
        | {name: TRANSFORMS[name] for name in OF_FORMULAE if name in TRANSFORMS}
    )
    try:
        with np.errstate(all="ignore"):
            return part.call.eval(table, Environment([functions]))
    except Exception as error:
        raise FormulaError(f"{part.name!r} cannot be computed from the data: {error}.") from None


def component(part: Any, table: pd.DataFrame, as_factor: bool = False) -> Factor | Covariate:
    """A component as a factor (labels, truth values, categories, or whatever stands in C(...)) or a covariate."""
    values = evaluate(part, table)
    levels = None
    if hasattr(values, "contrast"):  # C(...)
        values, levels, as_factor = values.data, values.levels, True
    if as_factor or not _is_numeric(values):
        return as_levels(part.name, values, levels)
    array = np.asarray(values, float)
    array = array[:, None] if array.ndim == 1 else array
    check_finite(part.name, array, table)
    if np.all(array == array[0]):
        raise DataError(
            f"{part.name!r} is {array[0, 0]:g} in all {len(array)} rows: a constant explains nothing. Drop it."
        )
    return Covariate(part.name, array)


def _is_numeric(values: Any) -> bool:
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def as_levels(name: str, values: Any, levels: Any = None) -> Factor:
    """A column of labels; levels that no row has are left out."""
    column = pd.Categorical(values) if levels is None else pd.Categorical(values, categories=levels)
    column = column.remove_unused_categories()
    if len(column.categories) < 2:
        raise DataError(
            f"the factor {name!r} has one level only ({column.categories[0]!r}) in {len(column)} rows, so that it has no "
            "effect to be tested. Drop it, or give data in which it varies."
        )
    texts = tuple(f"{level:g}" if isinstance(level, float) else str(level) for level in column.categories)
    return Factor(name, texts, np.asarray(column.codes))


def check_finite(name: str, array: np.ndarray, table: pd.DataFrame) -> None:
    """Refuse a column that a function has made infinite or NaN, with the row."""
    bad = np.flatnonzero(~np.all(np.isfinite(array), axis=tuple(range(1, array.ndim))))
    if len(bad):
        value = np.ravel(array[bad[0]])[0]
        raise DataError(f"{name!r} is {value} in {table.index[bad[0]]}: only finite numbers can be used.")
