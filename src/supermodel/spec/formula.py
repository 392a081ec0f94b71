r"""Formulas as text, turned into functions that JAX can trace: `sin(omega * x + phi)`.

Names are columns, parameters or constants, and functions come from a closed list; what is in none of them is a mistake,
shown with a caret under the place and, where one comes to mind, a suggestion. Nothing is evaluated as Python.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from supermodel.errors import suggestion
from supermodel.jax_scope import float64
from supermodel.spec.grammar import Call, FormulaError, Name, Node, Number, parse


@functools.cache
def _functions() -> dict[str, tuple[int, int | None, Callable[..., Any]]]:
    """{name: (fewest arguments, most arguments or None, function)}: all that a formula can call."""
    import jax
    import jax.numpy as jnp

    def fold(function):
        def folded(first, *rest):
            for value in rest:
                first = function(first, value)
            return first

        return folded

    def number(comparison):
        return lambda a, b: jnp.where(comparison(a, b), 1.0, 0.0)

    one = {
        "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "arcsin": jnp.arcsin, "arccos": jnp.arccos,
        "arctan": jnp.arctan, "sinh": jnp.sinh, "cosh": jnp.cosh, "tanh": jnp.tanh, "arcsinh": jnp.arcsinh,
        "exp": jnp.exp, "expm1": jnp.expm1, "log": jnp.log, "log1p": jnp.log1p, "log10": jnp.log10, "log2": jnp.log2,
        "sqrt": jnp.sqrt, "abs": jnp.abs, "sign": jnp.sign, "floor": jnp.floor, "erf": jax.scipy.special.erf,
        "erfc": jax.scipy.special.erfc, "sigmoid": jax.nn.sigmoid, "lgamma": jax.scipy.special.gammaln,
        "negative": jnp.negative,
    }  # fmt: skip
    one |= {
        "ln": one["log"],
        "asin": one["arcsin"],
        "acos": one["arccos"],
        "atan": one["arctan"],
        "expit": one["sigmoid"],
    }
    table: dict[str, tuple[int, int | None, Callable[..., Any]]] = {name: (1, 1, f) for name, f in one.items()}
    table |= {
        "+": (2, 2, jnp.add), "-": (2, 2, jnp.subtract), "*": (2, 2, jnp.multiply), "/": (2, 2, jnp.true_divide),
        "^": (2, 2, jnp.power), "arctan2": (2, 2, jnp.arctan2), "atan2": (2, 2, jnp.arctan2),
        "min": (2, None, fold(jnp.minimum)), "max": (2, None, fold(jnp.maximum)),
        "where": (3, 3, lambda c, a, b: jnp.where(c != 0, a, b)),
        "<": (2, 2, number(jnp.less)), "<=": (2, 2, number(jnp.less_equal)), ">": (2, 2, number(jnp.greater)),
        ">=": (2, 2, number(jnp.greater_equal)), "==": (2, 2, number(jnp.equal)), "!=": (2, 2, number(jnp.not_equal)),
    }  # fmt: skip
    return table


CONSTANTS = {"pi": math.pi, "e": math.e}


@dataclass(frozen=True, eq=False)
class Formula:
    """A checked formula: call it with a mapping of names to numbers or arrays."""

    text: str
    names: tuple[str, ...]  # the columns and parameters that it uses, in order of appearance
    _evaluate: Callable[[Mapping[str, Any]], Any]

    def __call__(self, known: Mapping[str, Any]) -> Any:
        return self._evaluate(known)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"


def compile_formula(text: str, known: Collection[str]) -> Formula:
    """The function that a formula describes, of the names in `known` (columns and parameters).

    >>> float(compile_formula("a + 2 * x^2", ["a", "x"])({"a": 1.0, "x": 3.0}))
    19.0
    """
    return _compiled(parse(text), text, known)


def constant(node: Node, text: str) -> float:
    """The value of a part that must be a plain number, such as an argument of a prior."""
    try:
        formula = _compiled(node, text, ())
    except FormulaError as error:
        if error.problem.startswith(UNKNOWN_NAME):
            hint = "An argument of a prior is a number; it cannot depend on a column or another parameter."
            raise FormulaError("a number is needed here", text, error.start, error.end, hint) from None
        raise
    with float64():
        value = float(formula({}))
    if not math.isfinite(value):
        raise FormulaError(f"this is {value}, not a finite number", text, node.start, node.end)
    return value


def _compiled(tree: Node, text: str, known: Collection[str]) -> Formula:
    """A list of steps for a stack of values: a long sum must not exhaust Python's own stack."""
    functions = _functions()
    used: dict[str, None] = {}
    steps: list[tuple[int, Callable[..., Any]]] = []  # (how many values it takes, what it does with them)
    for node in _inside_out(tree):
        if isinstance(node, Number):
            steps.append((0, lambda known, value=node.value: value))
        elif isinstance(node, Name):
            steps.append((0, _named(node, text, known, functions, used)))
        elif node.name == "^" and (power := _whole_power(node.arguments[1])) is not None:
            # An integer power has a derivative everywhere, also at 0 and below.
            steps.append((1, lambda base, power=power: functions["*"][2](1.0, base) ** power))
        else:
            steps.append((len(node.arguments), _function(node, text, known, functions)))

    def evaluate(values: Mapping[str, Any]) -> Any:
        stack: list[Any] = []
        for n, step in steps:
            if n == 0:
                stack.append(step(values))
            else:
                stack[-n:] = [step(*stack[-n:])]
        return stack[0]

    return Formula(text, tuple(used), evaluate)


def _inside_out(tree: Node) -> list[Node]:
    """Every part after the parts that it needs, left before right."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if isinstance(node, Call):
            whole = node.name == "^" and _whole_power(node.arguments[1]) is not None
            waiting.extend(node.arguments[:1] if whole else node.arguments)
    return found[::-1]


def _function(node: Call, text: str, known: Collection[str], functions: Mapping[str, Any]) -> Callable[..., Any]:
    words = sorted(name for name in functions if name.isidentifier() and name != "negative")
    if node.name not in functions or (node.name == "negative" and text[node.start] != "-"):
        if node.name in known or node.name in CONSTANTS:
            hint = f"{node.name!r} is a number here, not a function; a product needs '*'."
        else:
            hint = suggestion(node.name, words) or f"Functions are {', '.join(words)}."
        raise FormulaError(f"unknown function {node.name!r}", text, node.start, node.start + len(node.name), hint)
    if node.keywords:
        keyword, value = node.keywords[0]
        raise FormulaError(f"{node.name}() takes no argument by name ({keyword!r})", text, value.start, value.end)
    fewest, most, function = functions[node.name]
    n = len(node.arguments)
    if n < fewest or (most is not None and n > most):
        wanted = f"{fewest}" if fewest == most else f"at least {fewest}"
        problem = f"{node.name}() takes {wanted} argument{'s' if wanted != '1' else ''}, not {n}"
        raise FormulaError(problem, text, node.start, node.end)
    return function


UNKNOWN_NAME = "unknown name"


def _named(node: Name, text: str, known: Collection[str], functions: Mapping[str, Any], used: dict[str, None]):
    name = node.name
    if name in known:
        used[name] = None
        return lambda values: values[name]
    if name in CONSTANTS:
        return lambda values: CONSTANTS[name]
    if name in functions:
        raise FormulaError(f"the function {name!r} needs arguments in parentheses", text, node.start, node.end)
    hint = suggestion(name, [*known, *CONSTANTS]) or f"Known here: {', '.join(map(str, known))}."
    problem = f"{UNKNOWN_NAME} {name!r}: neither a column of the data nor a parameter with a prior"
    raise FormulaError(problem, text, node.start, node.end, hint)


def _whole_power(node: Node) -> int | None:
    sign, inner = (-1, node.arguments[0]) if isinstance(node, Call) and node.name == "negative" else (1, node)
    if isinstance(inner, Number) and inner.value.is_integer() and inner.value <= 64:
        return sign * int(inner.value)
    return None
