"""What is explained: numbers, counts or successes, checked against the family that is to describe them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from supermodel.errors import DataError
from supermodel.regressions.formula import Formula, check_finite, evaluate

FAMILIES = ("gaussian", "student", "bernoulli", "binomial", "poisson", "negative binomial")
ALIASES = {"normal": "gaussian", "t": "student", "student_t": "student", "studentt": "student", "logistic": "bernoulli",
           "negbinomial": "negative binomial", "negative_binomial": "negative binomial", "negbin": "negative binomial"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Response:
    """y in every row; `trials` of a binomial, and which value of a bernoulli response counts as success."""

    name: str
    y: np.ndarray
    offset: np.ndarray
    trials: np.ndarray
    success: str = ""


def as_family(name: Any) -> str:
    """The family of a name."""
    family = ALIASES.get(str(name).lower(), str(name).lower())
    if family not in FAMILIES:
        raise DataError(f"there is no family {name!r}; families are {', '.join(FAMILIES)}.")
    return family


def as_response(formula: Formula, table: pd.DataFrame, family: str) -> Response:
    """The response of a formula in a table."""
    name, values = formula.response_name, evaluate(formula.response, table)
    ones = np.ones(len(table))
    offset = sum((_offset(formula.components[o], table) for o in formula.offsets), np.zeros(len(table)))
    if hasattr(values, "trials"):
        if family != "binomial":
            raise DataError(
                f'{name!r} is successes out of trials, which is for family="binomial"; the family is {family!r}.'
            )
        return Response(name, np.asarray(values.successes, float), offset, np.asarray(values.trials, float) * ones)
    if family == "binomial":
        raise DataError(
            f'family="binomial" needs successes and trials: write the response as prop(k, n), not {name!r}.'
        )
    if family == "bernoulli":
        return _two_values(name, values, getattr(formula.response, "reference", None), offset, ones)
    if not pd.api.types.is_numeric_dtype(values):
        row = next((i for i, v in enumerate(values) if not isinstance(v, int | float)), 0)
        raise DataError(
            f"the response {name!r} must be numbers for family={family!r}; {table.index[row]} is {values.iloc[row]!r}."
        )
    y = np.asarray(values, float)
    check_finite(name, y, table)
    if len(y) < 3 or np.all(y == y[0]):
        raise DataError(
            f"the response {name!r} is {y[0]:g} in all {len(y)} rows: there is nothing to explain. At least three rows that "
            "differ are needed."
        )
    if family in ("poisson", "negative binomial") and (bad := np.flatnonzero((y < 0) | (y != np.floor(y)))).size:
        raise DataError(
            f"the response {name!r} must be counts (0, 1, 2, ...) for family={family!r}; {table.index[bad[0]]} is "
            f"{y[bad[0]]:g}."
        )
    return Response(name, y, offset, ones)


def _offset(part: Any, table: pd.DataFrame) -> np.ndarray:
    values = np.broadcast_to(np.asarray(evaluate(part, table).x, float), len(table))
    check_finite(part.name, values, table)
    return values


def _two_values(name: str, values: Any, success: Any, offset: np.ndarray, ones: np.ndarray) -> Response:
    column = pd.Categorical(values).remove_unused_categories()
    levels = [str(level) for level in column.categories]
    if len(levels) != 2:
        shown = ", ".join(levels[:6]) + (", ..." if len(levels) > 6 else "")
        raise DataError(
            f"a bernoulli response has exactly two values (0 and 1, yes and no, ...); {name!r} has {len(levels)}: {shown}. "
            'For successes out of trials use family="binomial" and prop(k, n); for counts family="poisson".'
        )
    chosen = levels[1] if success is None else str(success)
    if chosen not in levels:
        raise DataError(f"{name}[{chosen}]: {name!r} has the values {levels[0]} and {levels[1]}.")
    return Response(name, (column.codes == levels.index(chosen)).astype(float), offset, ones, chosen)
