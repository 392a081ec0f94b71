"""The grammar of formulas: a tokenizer, a Pratt parser, and mistakes shown with a caret under the place.

Numbers, names, the operators + - * / ^ (or **), comparisons, parentheses and calls: nothing else can be said.
"""

from __future__ import annotations

import math
import re
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
                raise self.fail(
                    f"unexpected {self.token.text!r}: an operator is missing before it", hint="A product needs '*'."
                )
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
                found = "" if self.token.kind == "end" else f"unexpected {self.token.text!r}: "
                raise self.fail(f"{found}a closing parenthesis is missing")
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
        raise SupermodelError(f'a formula is a text, e.g. "a + b * x"; got {text!r} of type {type(text).__name__}.')
    return _Parser(text).whole()
