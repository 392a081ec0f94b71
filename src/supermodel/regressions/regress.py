r"""`regression` and `anova`: every model between the null and a formula, by closed form where there is one, else by the engine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from supermodel.comparing import compare
from supermodel.errors import SupermodelError
from supermodel.regressions.blocks import as_rscales
from supermodel.regressions.design import Design
from supermodel.regressions.families import EngineFit, Linear, Regressor, check_own
from supermodel.regressions.formula import parse
from supermodel.regressions.gaussian import GaussianFit
from supermodel.regressions.response import Response, as_family, as_response
from supermodel.regressions.result import Fit, Regression, judged
from supermodel.regressions.space import marginal_models, name_of, named_models, spelled
from supermodel.regressions.table import as_table, checked_columns
from supermodel.results.odds import checked_odds

BY_QUADRATURE = "Closed form given g, quadrature over ln g with the error that it finds in itself"
BY_ENGINE = "By the engine, which samples supermodels"
MOST_BY_ENGINE = 64
Rscale = float | str | Mapping[str, float | str] | None


def regression(
    formula: str,
    data: Any,
    *,
    family: str = "gaussian",
    levels: Sequence[Any] | None = None,
    models: str | Sequence[str] = "all",
    rscale: Rscale = None,
    priors: Mapping[str, Any] | None = None,
    prior_odds: Mapping[str, float] | None = None,
    hypothesis: str | Sequence[str] = (),
    test_groups: bool = False,
    missing: str = "raise",
    seed: int = 0,
    **options: Any,
) -> Regression:
    """Bayes factors between all models that a formula spans, from the null to the full one.

    `formula`: as in R, `"y ~ a * b + log(x) + (1 | group)"`; `"y ~ ."` takes all columns. Columns of texts, categories and
    truth values are factors, and so is whatever stands in `C(...)`. Group-level terms are in every model, the null included.
    `models`: "all" that respect marginality (no interaction without its parts), or a list of right-hand sides.
    `family`: gaussian, student, bernoulli, binomial (response `prop(k, n)`), poisson, negative binomial; of categories
    cumulative logit (or "ordinal"), cumulative probit, multinomial.
    `levels`: the categories in their order, `["low", "middle", "high"]`, of a multinomial response the baseline first. An
    ordered Categorical of pandas and whole numbers have an order of their own.
    `rscale`: the scale of the Cauchy priors on effects: one number or word for all, or by kind and term,
    {"continuous": 0.35, "fixed": "wide", "random": 1, "supp": 0.7}.
    `priors`: distributions for a term ("wt", in units of the response per unit of wt), "Intercept", "sigma", "shares" (of
    the categories) and the like, or "(1 | group)", the standard deviation of a group-level term. All models are then weighed
    by the engine.
    `hypothesis`: orders to be tested, as `"a > b > c"`; see `Regression.hypothesis`.
    `test_groups`: group-level terms are tested like all others, and the null is the mean alone.
    `missing`: "raise", or "drop" to leave out rows with missing values. `options` are those of `compare`.
    """
    return _regression(formula, data, "regression", family, levels, models, rscale, priors, prior_odds, hypothesis, test_groups,
                       missing, seed, options)  # fmt: skip


def anova(
    formula: str, data: Any, *, models: str | Sequence[str] = "all", rscale: Rscale = None,
    prior_odds: Mapping[str, float] | None = None, hypothesis: str | Sequence[str] = (), test_groups: bool = False,
    missing: str = "raise", seed: int = 0,
) -> Regression:  # fmt: skip
    """Analysis of variance: `regression` in which every column, numbers as well, is a factor.

    `anova("score ~ a * b + (1 | subject)", data)`: subjects are in all models, as `whichRandom` of R's BayesFactor has it.
    """
    return _regression(formula, data, "anova", "gaussian", None, models, rscale, None, prior_odds, hypothesis, test_groups,
                       missing, seed, {})  # fmt: skip


def _regression(
    text: str, data: Any, kind: str, family: str, levels: Sequence[Any] | None, models: Any, rscale: Any,
    priors: Mapping[str, Any] | None, prior_odds: Mapping[str, float] | None, hypothesis: str | Sequence[str],
    test_groups: bool, missing: str, seed: int, options: dict[str, Any],
) -> Regression:  # fmt: skip
    table = as_table(data)
    formula, family = parse(_spelled_out(text, table.columns)), as_family(family)
    formula = formula.with_groups_as_terms() if test_groups else formula
    table, dropped = checked_columns(table, formula.columns, missing)
    response = as_response(formula, table, family, levels)
    design = Design.of(formula, table, as_factors=kind == "anova")
    sets = marginal_models(formula.terms) if models == "all" else named_models(models, formula)
    named = {name_of(terms): terms for terms in sets}
    single = [term.name for term in (*formula.terms, *formula.groups) if design.kind(term) != "continuous"]
    rscales = as_rscales(rscale, single)
    own = dict(priors or {})
    if own:
        check_own(own, [term.name for term in (*formula.terms, *formula.groups)], family, response)
    if len(named) < 2:
        raise SupermodelError(
            f"the formula {formula.text!r} has no model but the null: name a term to the right of '~'; a group-level one is "
            "in all models unless test_groups=True."
        )
    if isinstance(prior_odds, Mapping):
        prior_odds = {spelled(name, named, formula): share for name, share in prior_odds.items()}
    odds = checked_odds(prior_odds or dict.fromkeys(named, 1.0), tuple(named))

    def fitted(factor: float) -> Regression:
        scaled = {name: factor * value for name, value in rscales.items()}
        found = _by_engine if own or family != "gaussian" else _by_quadrature
        common = {
            "formula": formula.text, "kind": kind, "family": family, "n_rows": len(table), "n_dropped": dropped,
            "models": named, "prior_odds": odds, "priors": _said(design, scaled, own, response), "seed": seed,
            "always": tuple(term.name for term in formula.groups), "refit": fitted,
        }  # fmt: skip
        return found(design, response, named, scaled, own, common, {"seed": seed, **options})

    result = fitted(1.0)
    asked = (hypothesis,) if isinstance(hypothesis, str) else hypothesis
    return replace(result, hypotheses=tuple(result.hypothesis(text) for text in asked))


def _by_quadrature(design, response, named, rscales, own, common, options) -> Regression:
    y = response.y - response.offset
    if set(options) - {"seed", "progress"}:
        raise SupermodelError(
            f"{sorted(set(options) - {'seed', 'progress'})} are options of the engine, and these models have closed forms: "
            "leave them out."
        )
    fits: dict[str, Fit] = {
        name: GaussianFit(y, design.blocks(terms, rscales), design.intercept) for name, terms in named.items()
    }
    return Regression(fits=fits, verdict=judged(fits), method=BY_QUADRATURE, **common)


def _by_engine(design: Design, response: Response, named, rscales, own, common, options) -> Regression:
    if len(named) > MOST_BY_ENGINE:
        raise SupermodelError(
            f"{len(named)} models would go to the engine, which takes seconds for each; at most {MOST_BY_ENGINE} are taken. "
            'Name those of interest, e.g. models=["1", "a", "a + b"].'
        )
    sets = response.levels if common["family"] == "multinomial" else ()
    regressors = {
        name: Regressor(
            common["family"], response,
            tuple(Linear(block, own.get(block.name), sets) for block in design.blocks(terms, rscales, own)),
            design.intercept, own,
        )
        for name, terms in named.items()
    }  # fmt: skip
    models = {name: regressor.model for name, regressor in regressors.items()}
    found = compare(models, {"y": response.y}, prior_odds=common["prior_odds"], **options)
    null = next(iter(named))
    fits: dict[str, Fit] = {
        name: EngineFit(regressor, found.log_bayes_factor(name, null), found.posteriors[name])
        for name, regressor in regressors.items()
    }
    return Regression(fits=fits, verdict=found.verdict, method=BY_ENGINE, comparison=found, **common)


# -- words ----------------------------------------------------------------------------------------------------------


def _spelled_out(text: str, columns: Any) -> str:
    """`y ~ .` with the names of all other columns in place of the dot."""
    if not isinstance(text, str) or not re.search(r"~.*(?<![\w.])\.(?![\w.])", text):
        return text
    left, _, right = text.partition("~")
    others = [f"`{c}`" if not str(c).isidentifier() else str(c) for c in columns if str(c) not in (left.strip(), right)]
    used = set(re.findall(r"\w+", right))
    return f"{left}~" + re.sub(r"(?<![\w.])\.(?![\w.])", " + ".join(c for c in others if c not in used), right, count=1)


def _said(design: Design, rscales: Mapping[str, float], own: Mapping[str, Any], response: Response) -> str:
    """The priors in words."""
    kinds = dict.fromkeys(design.kind(term) for term in (*design.terms, *design.groups) if term.name not in own)
    parts = [f"{rscales[kind]:.3g} {kind}" for kind in kinds]
    parts += [f"{rscales[t.name]:.3g} {t.name}" for t in (*design.terms, *design.groups) if t.name in rscales]
    said = f"Zellner-Siow with r = {', '.join(parts)}" if parts else ""
    named = ", ".join(f"{name} ~ {_distribution(prior)}" for name, prior in own.items())
    flat = f"the {len(response.levels)} categories' shares at the mean of the predictors ~ Dirichlet(1)"
    shares = flat if response.levels and "shares" not in own else ""
    return "; ".join(part for part in (said, shares, named) if part)


def _distribution(prior: Any) -> str:
    from supermodel.models.priors import as_prior

    concentration = getattr(prior, "concentration", None)
    if np.ndim(concentration) == 1:  # in the words of all other priors an array is its shape
        return f"{type(prior).__name__}({', '.join(f'{a:g}' for a in np.asarray(concentration))})"
    return as_prior("a prior", prior).description
