"""From a formula and a table to the blocks of each model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

from supermodel.errors import DataError
from supermodel.regressions.blocks import Block, whitened
from supermodel.regressions.contrasts import Columns, Covariate, Factor, of_effect, of_group
from supermodel.regressions.formula import Formula, FormulaError, Term, as_levels, component, evaluate


@dataclass(frozen=True, eq=False)
class Design:
    """The components of a formula in a table, ready to be put together for any of its models."""

    terms: tuple[Term, ...]
    groups: tuple[Term, ...]
    components: Mapping[str, Factor | Covariate]  # of the mean; covariates are centred if there is an intercept
    grouping: Mapping[tuple[str, ...], Factor]
    intercept: bool

    @classmethod
    def of(cls, formula: Formula, table: pd.DataFrame, as_factors: bool = False) -> Design:
        used = {name for term in (*formula.terms, *formula.groups) for name in term.components}
        found = {name: component(formula.components[name], table, as_factors) for name in used}
        for name, part in found.items():
            if isinstance(part, Covariate) and formula.intercept:
                found[name] = Covariate(name, part.values - part.values.mean(axis=0))
            if isinstance(part, Factor) and not formula.intercept:
                raise FormulaError(
                    f"without an intercept ('0 +' or '- 1') the factor {name!r} has no mean from which its levels could "
                    "deviate. Leave the intercept in; the effects of all levels are told all the same."
                )
        grouped = [term for term in (*formula.terms, *formula.groups) if term.group]
        grouping = {term.group: _grouping(term, formula, table) for term in grouped}
        for term in grouped:
            if set(term.components) & set(term.group):
                raise FormulaError(f"the group-level term {term.name} has the same column on both sides of '|'.")
        return cls(formula.terms, formula.groups, found, grouping, formula.intercept)

    def kind(self, term: Term) -> str:
        """Which default scale a term has."""
        if term.group:
            return "random"
        return "continuous" if any(isinstance(self.components[c], Covariate) for c in term.components) else "fixed"

    def columns(self, term: Term) -> Columns:
        """The columns of one term."""
        parts = [of_effect(self.components[name]) for name in term.components]
        if not term.group:
            return reduce(Columns.times, parts)
        groups = of_group(self.grouping[term.group])
        found, unit = reduce(Columns.times, [*parts, groups]), self._unit(term)
        effects = reduce(Columns.times, parts).labels if parts else ("1",)
        labels = tuple(f"{effect} | {group}" for effect in effects for group in groups.labels)
        return Columns(found.values * unit, labels, found.readout * unit)

    def _unit(self, term: Term) -> float:
        """1 / sd of the covariates of a group-level term: slopes that vary by group then have no unit of their own."""
        covariates = [c for c in (self.components[name] for name in term.components) if isinstance(c, Covariate)]
        return float(np.prod([1 / np.sqrt(np.mean(c.values**2)) for c in covariates])) if term.group else 1.0

    def _groups(self, term: Term) -> np.ndarray | None:
        return self.grouping[term.group].codes if term.group else None

    def blocks(
        self, model: Sequence[Term], rscales: Mapping[str, float], own: Collection[str] = ()
    ) -> tuple[Block, ...]:
        """The blocks of a model with the group-level terms; terms in `own` (with a prior of the user's) stand alone."""
        kinds = {term: self.kind(term) for term in (*model, *self.groups)}
        shared = [term for term, kind in kinds.items() if kind == "continuous" and term.name not in own]
        alone = [term for term in kinds if term not in shared]
        blocks = [
            Block(
                t.name,
                kinds[t],
                self.columns(t),
                rscales.get(t.name, rscales[kinds[t]]),
                self._groups(t),
                self._unit(t),
            )
            for t in alone
        ]
        if shared:
            # Where factors stand beside covariates, BayesFactor does not centre products of both in X'X / n: as it does.
            centre = self.intercept and not alone
            name = shared[0].name if len(shared) == 1 else "continuous"
            blocks.append(whitened([self.columns(t) for t in shared], rscales["continuous"], centre, name))
        return tuple(blocks)


def _grouping(term: Term, formula: Formula, table: pd.DataFrame) -> Factor:
    """The groups of `| a:b`: every combination of levels that occurs."""
    parts = [as_levels(name, getattr(v := evaluate(formula.components[name], table), "data", v)) for name in term.group]
    labels = [":".join(p.levels[p.codes[i]] for p in parts) for i in range(len(table))]
    levels = tuple(dict.fromkeys(labels))
    if len(levels) >= len(table):
        raise DataError(
            f"the group-level term {term.name} has as many groups as rows ({len(levels)}): its effects cannot be told from "
            "the noise. Group by a column whose values repeat."
        )
    places = {level: i for i, level in enumerate(levels)}
    return Factor(":".join(term.group), levels, np.array([places[label] for label in labels]))
