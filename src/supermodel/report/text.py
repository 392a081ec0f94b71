"""The answer as text: headline, meaning, ranking, parameters, verdict, and what it was made from."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.report.numbers import as_ratio, duration, equals, mean_and_sd, shown, thousands
from supermodel.report.scales import DEFAULT
from supermodel.report.tables import (
    RESTS,
    Cells,
    all_scalars,
    heading,
    straight_values,
    symmetry_lines,
    weighted_quantiles,
)
from supermodel.verdict.next_steps import next_steps
from supermodel.verdict.verdict import WORDS

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison
    from supermodel.results.posterior import ModelPosterior
    from supermodel.verdict.verdict import Verdict

WIDTH = 100
MOST_PARAMETERS = 12
NOTICED = 1.015  # R-hat that the table shows above the usual 1.01
BLOCKS = " ▁▂▃▄▅▆▇█"


def text(result: Comparison) -> str:
    """What `print(result)` shows."""
    parts = [headline(result), textwrap.indent(str(result.table()), "  ")]
    marginals = parameters(result)
    if marginals is not None:
        parts.append(textwrap.indent(marginals.text(), "  "))
    told_of = [textwrap.fill(line, WIDTH, subsequent_indent="    ", initial_indent="  ") for line in symmetries(result)]
    if told_of:
        parts.append("\n".join(told_of))
    return "\n\n".join([*parts, verdict(result), provenance(result)])


def symmetries(result: Comparison) -> list[str]:
    """What was found of symmetries, best model first."""
    return symmetry_lines({name: result.posteriors[name] for name in result.ranking if name in result.posteriors})


def headline(result: Comparison, scale: Any = DEFAULT) -> str:
    """The number with both names, and what it means."""
    number, meaning, odds = told(result, scale)
    level = result.verdict_between(*result.pair()).level if result.excluded else result.verdict.level
    mark = "" if level == "ok" else f"   [{level.upper()}]"
    words = [textwrap.wrap(said, WIDTH - 2, initial_indent="  ", subsequent_indent="  ") for said in (meaning, odds)]
    return "\n".join([number + mark, *words[0], *words[1]])


def told(result: Comparison, scale: Any = DEFAULT) -> tuple[str, str, str]:
    """The number, what it means, and B with the probability; empty where there is nothing to say, or it is not to be used."""
    if len(result.names) == 1:
        return f"ln Z({result.best}) = {shown(result.log_evidence(result.best))}", "", ""
    said = result.interpret(scale=scale)
    odds = odds_sentence(result, said.first, said.second) if result.weighed else ""
    return said.headline, said.meaning, odds


def odds_sentence(result: Comparison, first: str, second: str) -> str:
    """`B = 152; P(free | data) = 0.9935 at equal prior odds`."""
    estimate = result.log_bayes_factor(first, second)
    best = max(result.weighed or result.names, key=lambda name: result.probabilities[name])
    share = equals(result.probabilities[best])
    among = (
        f", among {joined(result.weighed)} ({joined(result.excluded)} could not be weighed)" if result.excluded else ""
    )
    return f"B = {as_ratio(estimate.value)}, P({best} | data) {share} at {odds_words(result)}{among}"


def joined(names: Sequence[str]) -> str:
    """`a, b and c`."""
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last


def odds_words(result: Comparison) -> str:
    """`equal prior odds`, or the odds."""
    values = list(result.prior_odds.values())
    if np.allclose(values, values[0]):
        return "equal prior odds"
    return "prior probabilities " + ", ".join(f"{name} {value:.3g}" for name, value in result.prior_odds.items())


def verdict(result: Comparison) -> str:
    """The verdict and each reason on lines of its own."""
    return verdict_lines(result.verdict, verdict_words(result), result.names)


def verdict_words(result: Comparison) -> str:
    """What the level means; where it is not of all models, of which it is, and what still stands."""
    level = result.verdict.level
    if not result.excluded:
        return WORDS[level]
    kept = f"ln B and probabilities of {joined(result.weighed)} stand"
    return f"{level.upper()} for {joined(result.excluded)}: {RESTS[level]}; {kept}"


def verdict_lines(found: Verdict, words: str, names: Sequence[str]) -> str:
    """The verdict on these models in these words, each reason on lines of its own, and after a fail what to do next."""
    lines = textwrap.wrap(f"Verdict {words}", WIDTH, subsequent_indent="  ")
    for code, sentence in found.reasons:
        lines += textwrap.wrap(f"{code}: {sentence}", WIDTH, initial_indent="  · ", subsequent_indent="    ")
    steps = next_steps(found, names)
    lines += ["  What to do next, in this order:"] if steps else []
    for i, step in enumerate(steps, 1):
        lines += textwrap.wrap(step, WIDTH, initial_indent=f"  {i}. ", subsequent_indent="     ")
    return "\n".join(lines)


def provenance(result: Comparison) -> str:
    """Cost, seed, versions and fingerprints, in one line or two."""
    calls = result.evaluations.get("likelihood", 0)
    gradients = result.evaluations.get("gradient", 0)
    cost = f"{thousands(calls)} likelihood calls"
    if gradients:
        cost += f" ({thousands(gradients)} with gradient)"
    if np.isfinite(result.seconds):
        cost += f" in {duration(result.seconds)}"
    made = f"seed {result.seed} · supermodel {result.versions.get('supermodel', '?')} · schema {result.schema}"
    prints = " · ".join(f"{what} {digest}" for what, digest in result.fingerprints.items())
    return "\n".join([*explored(result), f"{cost} · {made}", *dropped_rows(result), f"fingerprints: {prints}"])


def explored(result: Comparison) -> list[str]:
    """For models that sealed replicates explored: how many there were, and the chance that all of them missed a mode."""
    pilots = {name: p for name, p in result.settings.get("pilots", {}).items() if p.get("replicates", 0) > 1}
    each = ", ".join(f"{name} by {p['replicates']} ({p['missed']:.1%})" for name, p in pilots.items())
    return [f"explored by sealed replicates (chance that all of them missed a mode): {each}"] if pilots else []


def dropped_rows(result: Comparison) -> list[str]:
    """`3 of 50 rows of the data miss a value and were dropped`, where any were."""
    dropped, rows = (result.settings.get(key, 0) for key in ("dropped", "rows"))
    return [f"{dropped} of {rows} rows of the data miss a value and were dropped"] if dropped else []


def parameters(result: Comparison) -> Cells | None:
    """Every scalar parameter: mean ± sd and a small picture of its marginal, model by model."""
    rows = []
    for name in result.ranking:
        if name not in result.posteriors:
            continue
        posterior = result.posteriors[name]
        for parameter, index in all_scalars(posterior):
            values = straight_values(posterior, parameter, index)
            numbers = mean_and_sd(float(posterior.mean(parameter)[index]), float(posterior.sd(parameter)[index]))
            own = "" if parameter in posterior.parameters else "deterministic"
            prior = getattr(result.priors.get(name, {}).get(parameter), "description", own)
            rows.append(
                (result.name_of(parameter, index), heading(result, name), numbers, *marginal(posterior, values), prior)
            )
    if not rows:
        return None
    more = (
        [f"… and {len(rows) - MOST_PARAMETERS} more: result.summary() has all"] if len(rows) > MOST_PARAMETERS else []
    )
    note = "\n".join(more + few_draws(result))
    header = ("parameter", "model", "mean ± sd", "5%", "marginal", "95%", "prior")
    return Cells(header, tuple(rows[:MOST_PARAMETERS]), left=frozenset({0, 1, 4, 6}), note=note)


def few_draws(result: Comparison) -> list[str]:
    """What to do where the worst posterior is below the usual standard; ln B is judged by the verdict, not by this."""
    short = [p for p in result.posteriors.values() if p.short]
    if not short:
        return []
    few, rhat = min(p.worst_ess for p in short), max(p.worst_rhat for p in short)
    chance = (
        f" R-hat of so few is up to {rhat:.2f} by chance." if NOTICED < rhat and result.verdict.level == "ok" else ""
    )
    return [
        f"Posteriors of as few as {few:.0f} effective draws have rough quantiles: min_ess=400 asks for more.{chance}"
    ]


def marginal(posterior: ModelPosterior, values: np.ndarray, bins: int = 16) -> tuple[str, str, str]:
    """The 5% point, bars from the 0.5% to the 99.5% point, the 95% point."""
    low, q5, q95, high = weighted_quantiles(values, posterior.weights, (0.005, 0.05, 0.95, 0.995))
    if not (np.isfinite(low) and np.isfinite(high) and high > low):
        return "", "", ""
    counts, _ = np.histogram(values, bins=bins, range=(low, high), weights=posterior.weights)
    heights = np.ceil(counts / counts.max() * (len(BLOCKS) - 1)).astype(int)
    return f"{q5:.4g}", "".join(BLOCKS[h] for h in heights), f"{q95:.4g}"
