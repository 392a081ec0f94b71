"""The models between the null and the full one: all that respect marginality, or those that are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from supermodel.errors import SupermodelError
from supermodel.regressions.formula import Formula, FormulaError, Term, parse

MOST_MODELS = 2**13


def marginal_models(terms: Sequence[Term]) -> list[tuple[Term, ...]]:
    """Every set of terms that holds, with an interaction, all terms of the formula that are part of it; smallest first.

    >>> a, b, ab = Term(("a",)), Term(("b",)), Term(("a", "b"))
    >>> [" + ".join(t.name for t in model) or "1" for model in marginal_models([a, b, ab])]
    ['1', 'a', 'b', 'a + b', 'a + b + a:b']
    """
    parts = {t: {s for s in terms if s.columns < t.columns} for t in terms}
    found: list[tuple[Term, ...]] = [()]
    for term in sorted(terms, key=lambda t: len(t.columns)):  # parts come before the whole
        found += [(*model, term) for model in found if parts[term] <= set(model)]
        if len(found) > MOST_MODELS:
            raise SupermodelError(
                f"the formula has more than {MOST_MODELS} models between the null and the full one. Name those of "
                'interest, e.g. models=["1", "a + b"], or leave terms out.'
            )
    order = {term: i for i, term in enumerate(terms)}
    return sorted(found, key=lambda m: (len(m), [order[t] for t in m]))


def named_models(models: Sequence[str], formula: Formula) -> list[tuple[Term, ...]]:
    """The models of a list of right-hand sides, the null among them; each may hold terms of the formula only."""
    if isinstance(models, str) or not models:
        raise SupermodelError(f'`models` is a list of right-hand sides, e.g. ["1", "a", "a + b"]; got {models!r}.')
    found: list[tuple[Term, ...]] = [()]
    for text in models:
        given = parse(text if "~" in str(text) else f"{formula.response_name} ~ {text}")
        known = {_key(term): term for term in formula.terms}
        wanted = [
            term for term in (*given.terms, *given.groups) if term not in formula.groups
        ]  # those are in all models
        for term in wanted:
            if _key(term) not in known:
                names = ", ".join(t.name for t in formula.terms)
                raise FormulaError(f"the model {text!r} has the term {term.name!r}; the formula's terms are {names}.")
        model = {known[_key(term)] for term in wanted}
        kept = tuple(term for term in formula.terms if term in model)
        if kept not in found:
            found.append(kept)
    return found


def name_of(model: Sequence[Term]) -> str:
    """The right-hand side without group-level terms, which all models have: `wt + hp`, `1`."""
    return " + ".join(term.name for term in model) or "1"


def spelled(text: str, models: Mapping[str, Sequence[Term]], formula: Formula) -> str:
    """The name of the model that a text means: its name, or a formula of the same terms ("mpg ~ wt + hp", "hp + wt").

    A text that means none of them comes back as it is.
    """
    if text in models or not isinstance(text, str):
        return text
    try:
        given = parse(text if "~" in text else f"{formula.response_name} ~ {text}")
    except FormulaError:
        return text
    always = {_key(term) for term in formula.groups}
    wanted = {_key(term) for term in (*given.terms, *given.groups)} - always
    of_it = given.response_name == formula.response_name
    return next((name for name, terms in models.items() if of_it and {_key(term) for term in terms} == wanted), text)


def _key(term: Term) -> tuple[frozenset[str], Any]:
    """What makes two terms the same: `a:b` is `b:a`."""
    return frozenset(term.components), term.group
