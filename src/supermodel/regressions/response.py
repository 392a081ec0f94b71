"""What is explained: numbers, counts, successes or categories, checked against the family that is to describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from supermodel.errors import DataError
from supermodel.regressions.formula import Formula, check_finite, evaluate

OF_CATEGORIES = ("cumulative logit", "cumulative probit", "multinomial")
FAMILIES = ("gaussian", "student", "bernoulli", "binomial", "poisson", "negative binomial", *OF_CATEGORIES)
ALIASES = {"normal": "gaussian", "t": "student", "student_t": "student", "studentt": "student", "logistic": "bernoulli",
           "negbinomial": "negative binomial", "negative_binomial": "negative binomial", "negbin": "negative binomial",
           **dict.fromkeys(("cumulative", "ordinal", "ordered", "ordered logit", "ordinal logit"), "cumulative logit"),
           **dict.fromkeys(("ordered probit", "ordinal probit"), "cumulative probit"),
           **dict.fromkeys(("categorical", "nominal", "softmax"), "multinomial")}  # fmt: skip

MOST_CATEGORIES = 20


@dataclass(frozen=True, eq=False)
class Response:
    """y in every row; `trials` of a binomial, which value of a bernoulli response counts as success, and the categories
    that y counts from 0, in their order.
    """

    name: str
    y: np.ndarray
    offset: np.ndarray
    trials: np.ndarray
    success: str = ""
    levels: tuple[str, ...] = ()


def as_family(name: Any) -> str:
    """The family of a name."""
    family = ALIASES.get(str(name).lower(), str(name).lower())
    if family not in FAMILIES:
        raise DataError(f"there is no family {name!r}; families are {', '.join(FAMILIES)}.")
    return family


def as_response(formula: Formula, table: pd.DataFrame, family: str, levels: Sequence[Any] | None = None) -> Response:
    """The response of a formula in a table; `levels` are its categories in their order, if it has any."""
    name, values = formula.response_name, evaluate(formula.response, table)
    ones = np.ones(len(table))
    if family not in OF_CATEGORIES and levels is not None:
        raise DataError(
            f"`levels` are the categories of the response of {', '.join(OF_CATEGORIES)}; the family is {family!r}. Leave them out."
        )
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
    if family in OF_CATEGORIES:
        return _categories(formula, values, table, family, offset, levels)
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


# -- categories -----------------------------------------------------------------------------------------------------


def _categories(
    formula: Formula, values: Any, table: pd.DataFrame, family: str, offset: np.ndarray, levels: Sequence[Any] | None
) -> Response:
    """Categories, counted from 0 in their order; those that no row has are left out."""
    name, ordered = formula.response_name, family != "multinomial"
    if not formula.intercept:
        raise DataError(
            f"family={family!r} without an intercept ('0 +' or '- 1') has no shares of the categories from which its terms could "
            "deviate. Leave the intercept in."
        )
    if not ordered and formula.offsets:
        raise DataError(
            f"family={family!r} has log odds of several categories, and an offset belongs to none of them: leave "
            f"{formula.offsets[0]} out."
        )
    values = pd.Series(values)
    column = (
        _in_order(name, values, levels, table) if levels is not None else _as_they_are(name, values, ordered, table)
    )
    column = column.remove_unused_categories()
    found = [_text(level) for level in column.categories]
    if not 2 <= len(found) <= MOST_CATEGORIES:
        raise DataError(
            f"family={family!r} is for a response of 2 to {MOST_CATEGORIES} categories; {name!r} has {len(found)} in "
            f"{len(table)} rows ({', '.join(found[:4])}{', ...' if len(found) > 4 else ''}). "
            + ("It is constant: there is nothing to explain." if len(found) < 2 else "Numbers as fine as these are for "
               'family="gaussian" or "student"; else join categories.')
        )  # fmt: skip
    baseline = getattr(formula.response, "reference", None)
    if baseline is not None:
        if ordered or str(baseline) not in found:
            raise DataError(
                f"{name}[{baseline}]: "
                + (f"ordered categories have no baseline; write {name} alone." if ordered else
                   f"the baseline is one of the categories of {name!r}, {', '.join(found)}.")
            )  # fmt: skip
        first = column.categories[found.index(str(baseline))]
        column = column.reorder_categories([first, *(c for c in column.categories if c != first)])
        found = [str(baseline), *(text for text in found if text != str(baseline))]
    return Response(name, np.asarray(column.codes, float), offset, np.ones(len(table)), levels=tuple(found))


def _as_they_are(name: str, values: pd.Series, ordered: bool, table: pd.DataFrame) -> pd.Categorical:
    """Categories in the order that the column itself has."""
    column = pd.Categorical(values)
    if not ordered or column.ordered or pd.api.types.is_bool_dtype(values):
        return column
    if isinstance(values.dtype, pd.CategoricalDtype) or not pd.api.types.is_numeric_dtype(values):
        shown = ", ".join(repr(str(level)) for level in list(column.categories)[:4])
        raise DataError(
            f"the response {name!r} has categories in no known order ({shown}{', ...' if len(column.categories) > 4 else ''}), "
            f"and the order is what an ordinal family is about. Give it, lowest first, as levels=[...], or the column as "
            f'pandas.Categorical(..., ordered=True). Without an order: family="multinomial".'
        )
    y = np.asarray(values, float)
    check_finite(name, y, table)
    if (bad := np.flatnonzero(y != np.floor(y))).size:
        raise DataError(
            f"the response {name!r} must be categories (1, 2, 3, ...) for an ordinal family; {table.index[bad[0]]} is "
            f'{y[bad[0]]:g}. Measured numbers are for family="gaussian" or "student".'
        )
    return pd.Categorical(y.astype(int))


def _in_order(name: str, values: pd.Series, levels: Sequence[Any], table: pd.DataFrame) -> pd.Categorical:
    """Categories in the order that was told; numbers and their texts are one."""
    texts = [] if isinstance(levels, str) else [_text(level) for level in levels]
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise DataError(
            f'`levels` are two or more categories, each once, e.g. ["low", "middle", "high"]; got {levels!r}.'
        )
    has = [_text(value) for value in values]
    if bad := [i for i, text in enumerate(has) if text not in texts]:
        raise DataError(
            f"{name!r} is {has[bad[0]]!r} in {table.index[bad[0]]}, which is none of the levels {', '.join(texts)}. "
            "Name every category that occurs."
        )
    return pd.Categorical(has, categories=texts, ordered=True)


def _text(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float | np.floating) else str(level)
