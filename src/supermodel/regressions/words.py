"""A regression in words and tables: the sentence, the APA style, the printed answer, and plain data."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import escape

from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import as_ratio, probability, shown, thousands
from supermodel.report.scales import DEFAULT, Scale
from supermodel.report.scales import scale as chosen_scale
from supermodel.report.tables import UNUSABLE, Cells
from supermodel.report.text import WIDTH, verdict_lines
from supermodel.verdict.verdict import WORDS

if TYPE_CHECKING:
    from supermodel.regressions.result import Regression, Robustness


def model_cells(result: Regression, most: int | None = 12) -> Cells:
    """The models, best first; the null is always among them."""
    share, usable = result.probabilities, result.verdict.is_reliable
    kept = list(result.ranking[:most])
    if result.null not in kept:
        kept.append(result.null)
    rows = []
    for name in kept:
        null, best = (result.log_bayes_factor(name, other) for other in (result.null, result.best))
        rows.append((
            name, "–" if name == result.null else shown(null, sign=True), "–" if name == result.best else shown(best, sign=True),
            probability(result.prior_odds[name]), probability(share[name]) if usable else "–",
        ))  # fmt: skip
    note = f"… and {len(result.names) - len(kept)} more: table(most=None)" if len(kept) < len(result.names) else ""
    note = UNUSABLE.get(result.verdict.level, note)
    return Cells(
        ("model", f"ln B vs {result.null}", "ln B vs best", "P(model)", "P(model|data)"), tuple(rows), note=note
    )


def inclusion_cells(result: Regression) -> Cells:
    """The inclusion Bayes factors."""
    rows = []
    for i in result.inclusion():
        both = [shown(e, sign=True) if e is not None else "–" for e in (i.log_bayes_factor, i.matched)]
        rows.append((i.term, probability(i.prior), probability(i.posterior), *both))
    header = ("term", "P(incl)", "P(incl|data)", "ln B incl, all models", "ln B incl, matched")
    return Cells(header, tuple(rows), note=UNUSABLE.get(result.verdict.level, ""))


def effect_cells(result: Regression) -> Cells:
    """The effects averaged over models."""
    found = result.effects()
    averaged = any(e.probability < 1 for e in found)
    rows = [
        (
            e.label,
            *([probability(e.probability)] if averaged else []),
            *(f"{v:.4g}" for v in (e.mean, e.sd, e.low, e.high)),
        )
        for e in found
    ]
    header = ("effect", *(["P(in model)"] if averaged else []), "mean", "sd", "2.5%", "97.5%")
    return Cells(header, tuple(rows), note=UNUSABLE.get(result.verdict.level, ""))


def robustness_cells(found: Robustness) -> Cells:
    """ln B by model and scale."""
    header = ("model", *(f"{scale:g} × rscale" for scale in found.rscales))
    rows = tuple(
        (name, *(shown(e, sign=True) for e in row)) for name, row in zip(found.models, found.estimates, strict=True)
    )
    return Cells(header, rows, note=f"ln B against {found.null}")


# -- sentences ----------------------------------------------------------------------------------------------------


def sentence(result: Regression, scale: Any = DEFAULT) -> str:
    """Who is favoured over whom, by how much, in the words of a scale that is named."""
    words = chosen_scale(scale)
    if not result.verdict.is_reliable:
        return "The checks failed: nothing can be concluded from these numbers."
    best, null = result.best, result.null
    if len(result.names) == 2:
        other = result.names[1]
        return favours(words, result.log_bayes_factor(other, null), other, null)
    second = result.ranking[1]
    if best == null:
        said = favours(words, result.log_bayes_factor(best, second), best, second)
        return f"No model is better than {null}. {said}"
    first = favours(words, result.log_bayes_factor(best, null), best, null)
    if second == null:
        return first
    last = favours(words, result.log_bayes_factor(best, second), best, f"the next, {second}", short=True)
    return f"{first} {last}"


def _times(log_value: float) -> str:
    return thousands(np.exp(log_value)) if np.log(1e3) <= log_value < np.log(1e4) else as_ratio(log_value)


def favours(words: Scale, estimate: Estimate, first: str, second: str, short: bool = False) -> str:
    """The sentence of one Bayes factor, in the words of a scale."""
    if estimate.value < 0:
        estimate, first, second = -estimate, second, first
    touched = words.touched(estimate)
    strength = touched[0] if len(touched) == 1 else f"{touched[0]} to {touched[-1]}"
    if strength.startswith("barely"):
        strength = f"evidence {strength}"
    elif strength != "inconclusive":
        strength = f"{strength} evidence"
    strength = f"{strength} ({words.name})"
    if short:
        return f"Against {second}, it is {_times(estimate.value)} times: {strength}."
    return f"The data are {_times(estimate.value)} times as probable under {first} as under {second}: {strength}."


def apa(result: Regression) -> str:
    """As journals of psychology want it: BF10 (or BF01 below 1), its error, the priors."""
    other = result.names[1] if len(result.names) == 2 else result.best
    said = f"A Bayesian {result.kind} ({result.priors})"
    if not result.verdict.is_reliable:
        return f"{said} failed its checks; no Bayes factor is reported."
    parts = [f"{said} of {result.formula}, N = {result.n_rows}"]
    if other == result.null:
        parts.append(f"favoured the null model over all {len(result.names) - 1} others")
        other = result.ranking[1]
    parts.append(f"gave {bayes_factor(result.log_bayes_factor(other, result.null))} for {other} against {result.null}")
    effects = {e.label: e for e in result.effects()}
    if result.tested in effects:
        draws = result.draws(result.names[-1])[result.tested]
        low, middle, high = np.quantile(draws, (0.025, 0.5, 0.975))
        parts.append(f"median {result.tested} = {middle:.2f}, 95% CI [{low:.2f}, {high:.2f}]")
    if len(result.names) > 2:
        found = [
            f"{i.term}: {bayes_factor(i.log_bayes_factor, 'incl')}"
            for i in result.inclusion()
            if i.log_bayes_factor is not None
        ]
        parts.append("inclusion across all models, " + "; ".join(found))
    return ", ".join(parts[:1]) + ", " + ", ".join(parts[1:]) + "."


def bayes_factor(estimate: Estimate, subscript: str = "10") -> str:
    """`BF_10 = 17.3 (error 0.12%)`; below 1 it is told as BF_01."""
    if subscript == "10" and estimate.value < 0:
        estimate, subscript = -estimate, "01"
    error = 100 * estimate.error
    return f"BF_{subscript} = {_times(estimate.value)} (error {'< 0.01' if error < 0.01 else format(error, '.2g')}%)"


# -- the whole ----------------------------------------------------------------------------------------------------


def about(result: Regression) -> str:
    """What was compared, in a line or two."""
    dropped = f" ({result.n_dropped} incomplete ones dropped)" if result.n_dropped else ""
    always = f"; every model has {' + '.join(result.always)}" if result.always else ""
    family = f", {result.family}" if result.kind in ("regression", "anova") else ""
    return f"{result.kind}: {result.formula}{family}, {result.n_rows} rows{dropped}, {len(result.names)} models{always}"


def text(result: Regression) -> str:
    """What `print(result)` shows."""
    level = result.verdict.level
    mark = "" if level == "ok" else f"   [{level.upper()}]"
    parts = [
        about(result) + mark,
        *textwrap.wrap(sentence(result), WIDTH - 2, initial_indent="  ", subsequent_indent="  "),
    ]
    blocks = ["\n".join(parts), _indented(model_cells(result))]
    if any(i.matched is not None for i in result.inclusion()) and len(result.names) > 2:
        blocks.append(_indented(inclusion_cells(result)))
    blocks.append(_indented(effect_cells(result)))
    blocks += [textwrap.fill(str(h), WIDTH, initial_indent="  ", subsequent_indent="    ") for h in result.hypotheses]
    blocks.append(verdict_lines(result.verdict, WORDS[result.verdict.level], result.names))
    blocks.append("\n".join(textwrap.wrap(f"{result.method}. Priors: {result.priors}.", WIDTH)))
    return "\n\n".join(blocks)


def _indented(cells: Cells) -> str:
    return textwrap.indent(cells.text(), "  ")


def html(result: Regression) -> str:
    """What a notebook shows."""
    tables = [model_cells(result), *([inclusion_cells(result)] if len(result.names) > 2 else []), effect_cells(result)]
    lines = [
        about(result),
        sentence(result),
        *map(str, result.hypotheses),
        verdict_lines(result.verdict, WORDS[result.verdict.level], result.names),
    ]
    return "".join(f"<p>{escape(line)}</p>" for line in lines) + "".join(cells.html() for cells in tables)


def asdict(result: Regression) -> dict[str, Any]:
    """Plain data."""

    def pair(e: Estimate | None) -> Any:
        return None if e is None else {"value": e.value, "error": e.error}

    share = result.probabilities
    reasons = [{"code": code, "sentence": sentence} for code, sentence in result.verdict.reasons]
    return {
        "kind": result.kind, "formula": result.formula, "family": result.family, "rows": result.n_rows,
        "dropped": result.n_dropped, "always": list(result.always), "method": result.method, "priors": result.priors,
        "verdict": {"level": result.verdict.level, "reasons": reasons},
        "null": result.null, "best": result.best,
        "models": {name: {"log_bayes_factor": pair(result.log_bayes_factor(name, result.null)),
                          "prior_probability": result.prior_odds[name], "probability": share[name]}
                   for name in result.ranking},
        "inclusion": [{"term": i.term, "prior": i.prior, "posterior": i.posterior,
                       "log_bayes_factor": pair(i.log_bayes_factor), "matched": pair(i.matched)}
                      for i in result.inclusion()],
        "effects": [vars(e) for e in result.effects()],
        "hypotheses": [{"hypothesis": h.hypothesis, "model": h.model, "log_bayes_factor": pair(h.log_bayes_factor),
                        "against_null": pair(h.against_null)} for h in result.hypotheses],
    }  # fmt: skip
