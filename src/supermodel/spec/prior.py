"""Priors as text, e.g. `Normal(1, 2)` or `Uniform(low=0, high=2 * pi)`, over a closed list of distributions."""

from __future__ import annotations

from math import inf
from typing import Any

from supermodel.errors import suggestion
from supermodel.models import families
from supermodel.spec.formula import constant
from supermodel.spec.grammar import Call, FormulaError, parse
from supermodel.spec.source import Place, Source

TEXTS = {name: f.text for name, f in families.FAMILIES.items() if isinstance(f.text, families.Text)}
FAMILIES = {name: families.FAMILIES[name] for name in TEXTS}


def parse_prior(source: Source, where: Place, given: Any) -> Any:
    """The numpyro distribution that a text describes; mistakes are shown in their place in the file."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        raise source.error(
            where, f"the prior is the number {given}", "A fixed value is no parameter: write it into the formula."
        )
    text = source.text(where, given)
    try:
        return build_prior(text)
    except FormulaError as error:
        raise source.error(where, error.problem, error.hint, text, error.start, error.end) from None


def build_prior(text: str) -> Any:
    """The numpyro distribution that a text describes.

    >>> build_prior("Uniform(0, 2 * pi)").high
    6.283185307179586
    """
    tree = parse(text)
    if not isinstance(tree, Call) or not tree.name.isidentifier() or text[tree.start : tree.start + 1] == "-":
        raise FormulaError("a prior is one distribution", text, tree.start, tree.end, "Write e.g. Normal(0, 1).")
    if tree.name not in FAMILIES:
        hint = suggestion(tree.name, FAMILIES) or f"Distributions are {', '.join(FAMILIES)}."
        raise FormulaError(f"unknown distribution {tree.name!r}", text, tree.start, tree.start + len(tree.name), hint)
    return _distribution(tree, text)


def _distribution(tree: Call, text: str) -> Any:
    family, written = FAMILIES[tree.name], TEXTS[tree.name]
    usage = f"{tree.name}({', '.join(family.arguments)})"
    if len(tree.arguments) > len(family.arguments):
        extra = tree.arguments[len(family.arguments)]
        raise FormulaError("an argument too many", text, extra.start, extra.end, f"It is {usage}.")
    nodes = dict(zip(family.arguments, tree.arguments, strict=False))
    for name, node in tree.keywords:
        if name not in family.arguments or name in nodes:
            problem = f"{name!r} is given twice" if name in nodes else f"{tree.name} has no argument {name!r}"
            raise FormulaError(problem, text, node.start, node.end, f"It is {usage}.")
        nodes[name] = node
    missing = [name for name in family.arguments if name not in nodes and name not in written.defaults]
    if missing:
        raise FormulaError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
                           text, tree.start, tree.end, f"It is {usage}.")  # fmt: skip
    values = {
        name: constant(nodes[name], text) if name in nodes else written.defaults[name] for name in family.arguments
    }
    for name in written.positive:
        if not values[name] > 0:
            node = nodes[name]
            raise FormulaError(
                f"{name} must be positive; it is {values[name]:g}", text, node.start, node.end, f"It is {usage}."
            )
    low, high = values.get("low", -inf), values.get("high", inf)
    if not low < high:
        raise FormulaError(f"low must be below high; they are {low:g} and {high:g}", text, tree.start, tree.end)
    return families.Member(tree.name, values).build()
