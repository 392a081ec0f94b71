r"""Formulas as text, turned into functions that JAX can trace: `sin(omega * x + phi)`.

A tokenizer and a Pratt parser over a closed list of operators and functions. What is not in the list is a mistake,
shown with a caret under the place and, where one comes to mind, a suggestion. Nothing is evaluated as Python: the
parser knows numbers, names, operators and calls, and a name means a column, a parameter or a constant, never an object.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from supermodel.errors import SupermodelError

LONGEST, DEEPEST = 4000, 60  # characters, levels of nesting: far above any formula, far below Python's stack


class FormulaError(SupermodelError):
    """A formula that cannot be understood, with the place of the mistake."""

    def __init__(self, problem: str, text: str, start: int, end: int | None = None, hint: str = ""):
        self.problem, self.text, self.hint = problem, text, hint
        self.start = min(start, len(text))
        self.end = max(self.start + 1, self.start + 1 if end is None else end)
        super().__init__(f"{problem}{'. ' + hint if hint else ''}\n{pointed(text, self.start, self.end)}")


def pointed(line: str, start: int, end: int, indent: str = "  ") -> str:
    """A line with carets under the columns `start` to `end`, cut to what surrounds them if it is long."""
    first = max(0, start - 60)
    shown = "".join(c if c.isprintable() else " " for c in line[first : max(end, start + 1) + 40])
    lead, tail = ("…" if first else ""), ("…" if len(line) > first + len(shown) else "")
    return f"{indent}{lead}{shown}{tail}\n{indent}{' ' * (len(lead) + start - first)}{'^' * min(end - start, 60)}"


def suggestion(word: str, known: Collection[str]) -> str:
    """Did you mean ...? Empty where nothing is near."""
    near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6) or [
        k for k in sorted(known) if k.lower() == word.lower()
    ]
    return f"Did you mean {near[0]!r}?" if near else ""


# -- the tree -----------------------------------------------------------------------------------------------------


class Number(NamedTuple):
    """A literal."""

    value: float
    start: int
    end: int


class Name(NamedTuple):
    """A column, a parameter or a constant."""

    name: str
    start: int
    end: int


class Call(NamedTuple):
    """A function or distribution of arguments; operators are calls as well, e.g. `Call("+", ...)`."""

    name: str
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]
    start: int
    end: int


Node = Number | Name | Call

# -- tokens -------------------------------------------------------------------------------------------------------


class Token(NamedTuple):
    """kind: number, name, op or end."""

    kind: str
    text: str
    start: int
    end: int


_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NAME = re.compile(r"[^\W\d]\w*")
_OPERATOR = re.compile(r"\*\*|<=|>=|==|!=|[-+*/^(),<>=]")
_SPACE = re.compile(r"\s*")
_LOOKALIKES = {"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/"}
_FOREIGN = {
    "[": "vectors and indices are not known here",
    "{": "braces are not known here; use parentheses",
    "'": "text has no place in a formula",
    '"': "text has no place in a formula",
    "%": "the operator % is not known",
    "&": "use a product of comparisons, e.g. (x > 1) * (x < 2)",
    "|": "use a sum of comparisons, or abs(x) for |x|",
    ".": "attributes are not known here; a number needs a digit",
}


def tokenize(text: str) -> list[Token]:
    """The tokens of a formula, closed by one of kind `end`."""
    if len(text) > LONGEST:
        raise FormulaError(f"the formula has {len(text)} characters; {LONGEST} are the limit", text, LONGEST)
    tokens, at = [], _SPACE.match(text).end()  # type: ignore[union-attr]
    while at < len(text):
        for kind, pattern in (("number", _NUMBER), ("name", _NAME), ("op", _OPERATOR)):
            found = pattern.match(text, at)
            if found:
                tokens.append(Token(kind, found.group(), at, found.end()))
                break
        else:
            if text[at] not in _LOOKALIKES:
                raise FormulaError(f"unexpected {text[at]!r}", text, at, hint=_FOREIGN.get(text[at], ""))
            tokens.append(Token("op", _LOOKALIKES[text[at]], at, at + 1))
        at = _SPACE.match(text, tokens[-1].end).end()  # type: ignore[union-attr]
    return [*tokens, Token("end", "", len(text), len(text) + 1)]


# -- the parser ---------------------------------------------------------------------------------------------------

# operator: (binding power to its left, to its right). `^` binds to the right, and tighter than a sign before it.
_BINARY = {
    "<": (10, 11), "<=": (10, 11), ">": (10, 11), ">=": (10, 11), "==": (10, 11), "!=": (10, 11),
    "+": (20, 21), "-": (20, 21), "*": (30, 31), "/": (30, 31), "^": (51, 50), "**": (51, 50),
}  # fmt: skip
_SIGN = 40
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class _Parser:
    def __init__(self, text: str):
        self.text, self.tokens, self.at, self.depth = text, tokenize(text), 0, 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def fail(self, problem: str, token: Token | None = None, hint: str = "") -> FormulaError:
        token = token or self.token
        return FormulaError(problem, self.text, token.start, token.end, hint)

    def take(self, text: str) -> bool:
        if self.token.kind == "op" and self.token.text == text:
            self.at += 1
            return True
        return False

    def whole(self) -> Node:
        if self.token.kind == "end":
            raise self.fail("the formula is empty")
        tree = self.expression(0)
        if self.token.kind != "end":
            if self.token.text == ")":
                raise self.fail("a closing parenthesis too many")
            if self.token.text == "=":
                raise self.fail("a formula has no '='", hint="Write only the right-hand side; to compare, use '=='.")
            if self.token.kind in ("name", "number") or self.token.text == "(":
                raise self.fail(f"unexpected {self.token.text!r}: an operator is missing before it", hint="A product needs '*'.")
            raise self.fail(f"unexpected {self.token.text!r}")
        return tree

    def expression(self, least: int) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"nested more than {DEEPEST} levels deep", hint="Write it in a simpler way.")
        left = self.prefix()
        while self.token.kind == "op" and self.token.text in _BINARY:
            operator = self.token
            to_left, to_right = _BINARY[operator.text]
            if to_left < least:
                break
            self.at += 1
            right = self.expression(to_right)
            if operator.text in _COMPARISONS and isinstance(left, Call) and left.name in _COMPARISONS:
                raise self.fail("two comparisons in a row", operator, "Write (a < x) * (x < b).")
            name = "^" if operator.text == "**" else operator.text
            left = Call(name, (left, right), (), left.start, right.end)
        self.depth -= 1
        return left

    def prefix(self) -> Node:
        token = self.token
        self.at += 1
        if token.kind == "number":
            value = float(token.text)
            if not math.isfinite(value):
                raise self.fail("a number too large for double precision", token)
            return Number(value, token.start, token.end)
        if token.kind == "name":
            return self.call(token) if self.token.text == "(" else Name(token.text, token.start, token.end)
        if token.text in ("-", "+"):
            inner = self.expression(_SIGN)
            return inner if token.text == "+" else Call("negative", (inner,), (), token.start, inner.end)
        if token.text == "(":
            inner = self.expression(0)
            if not self.take(")"):
                raise self.fail("a closing parenthesis is missing" if self.token.kind == "end" else
                                f"unexpected {self.token.text!r}; a closing parenthesis is missing before it")  # fmt: skip
            return inner
        self.at -= 1
        if token.kind == "end":
            raise self.fail("the formula ends where a number, a name or a parenthesis is needed", token)
        raise self.fail(f"unexpected {token.text!r}; a number, a name or a parenthesis is needed here", token)

    def call(self, name: Token) -> Call:
        self.at += 1
        arguments: list[Node] = []
        keywords: list[tuple[str, Node]] = []
        while not self.take(")"):
            if arguments or keywords:
                if not self.take(","):
                    raise self.fail(f"the parenthesis of {name.text}(...) is not closed, or a comma is missing")
            following = self.tokens[self.at + 1] if self.token.kind == "name" else None
            if following is not None and following.kind == "op" and following.text == "=":
                keyword = self.token.text
                self.at += 2
                if keyword in dict(keywords):
                    raise self.fail(f"{keyword!r} is given twice", self.tokens[self.at - 2])
                keywords.append((keyword, self.expression(0)))
            elif keywords:
                raise self.fail("an argument without a name after one with a name")
            else:
                arguments.append(self.expression(0))
        return Call(name.text, tuple(arguments), tuple(keywords), name.start, self.tokens[self.at - 1].end)


def parse(text: str) -> Node:
    """The tree of a formula."""
    if not isinstance(text, str):
        raise SupermodelError(f"a formula is a text, e.g. \"a + b * x\"; got {text!r} of type {type(text).__name__}.")
    return _Parser(text).whole()


# -- meaning ------------------------------------------------------------------------------------------------------


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
    one |= {"ln": one["log"], "asin": one["arcsin"], "acos": one["arccos"], "atan": one["arctan"], "expit": one["sigmoid"]}
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
    from supermodel.float64 import float64

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
