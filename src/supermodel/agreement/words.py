"""A tension in words and tables: the printed answer, what a notebook shows, the methods paragraph."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import escape

from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import as_ratio, mean_and_sd, number, shown, thousands
from supermodel.report.tables import Cells, dressed, scalars
from supermodel.report.text import WIDTH, provenance, symmetries, verdict_lines
from supermodel.verdict.verdict import WORDS

if TYPE_CHECKING:
    from supermodel.agreement.result import Tension

MODERATE, STRONG = 2.0, 3.0  # sigma from which on data sets are said to be in tension
MOST = 12  # shared numbers that are printed
PRIOR = (
    "ln R is a Bayes factor and depends on the priors: a prior twice as wide of one parameter that both data sets constrain adds "
    "ln 2 = 0.69 to ln R and to ln I, and nothing to ln S, as long as it is wide beside the posteriors."
)
NORMAL = "p and sigma suppose that the posteriors are about normal (in some coordinates)"


def _is_usable(result: Tension) -> bool:
    return result.verdict.is_reliable and bool(np.isfinite(result.log_s.value))


def _apart(result: Tension) -> str:
    """`1.23 ± 0.06 sigma apart (p = 0.22)`, or why it is not known."""
    if not np.isfinite(result.sigma.value):
        return f"ln S = {shown(result.log_s, sign=True)}, sigma unknown (d = {shown(result.dimensionality)})"
    return f"{_rounded(result.sigma)} sigma apart (p {_p(result.p.value)})"


def _rounded(e: Estimate) -> str:
    return f"{e.value:.2f} ± {max(e.error, 0.01):.2f}"


def headline(result: Tension) -> str:
    """The data sets and how far they are apart; or that nothing is known."""
    first, second, _ = result.names
    if not _is_usable(result):
        return f"{first} and {second}: whether they agree is not known, see the verdict"
    return f"{first} and {second}: {_apart(result)}"


def sentence(result: Tension) -> str:
    """The answer in plain language."""
    first, second, _ = result.names
    if not _is_usable(result):
        why = "the checks failed" if result.verdict.level == "fail" else "only a bound is known"
        return f"Whether {first} and {second} agree is not known: {why}."
    universes = _universes(result.log_r)
    if not np.isfinite(result.sigma.value):
        return (
            f"How far {first} and {second} are apart cannot be said in sigma: {_nothing_in_common(result)} "
            f"By R, {universes}."
        )
    said = _band(result.sigma)
    return f"{first} and {second} {said}: {_apart(result)}. By R, at these priors, {universes}."


def _band(sigma: Estimate) -> str:
    """A word only if the whole 2-sigma interval of the number of sigma deserves it, else both."""
    low, high = (int(value >= MODERATE) + int(value >= STRONG) for value in sigma.interval(2.0))
    if low == 0:
        return ("agree", "agree or are in moderate tension", "may agree or be in tension")[high]
    words = ("moderate", "strong")
    return f"are in {words[low - 1]}{'' if low == high else f' to {words[high - 1]}'} tension"


def _universes(r: Estimate) -> str:
    """R in words, the larger probability first."""
    if not np.isfinite(r.value):
        return "nothing is known"
    more, less = ("one universe for both", "one for each") if r.value > 0 else ("one universe for each", "one for both")
    return f"these data are {as_ratio(abs(r.value))} times as probable in {more} as in {less}"


def _p(p: float) -> str:
    """`= 0.81`, `= 8.4e-16`: two digits, which is what draws know of it."""
    return f"= {p:.2g}" if p > 1e-99 else "< 1e-99"


def _nothing_in_common(result: Tension) -> str:
    return (
        f"the dimensionality d = {shown(result.dimensionality)} is not positive, so that the data sets constrain nothing in "
        "common, or their posteriors are far from normal."
    )


def cautions(result: Tension) -> tuple[str, ...]:
    """What the numbers are not good for; of numbers that are of no use at all the verdict tells."""
    if not _is_usable(result):
        return ()
    found, d = [], result.dimensionality
    count = shared_numbers(result)
    if not d.value > 0:
        found.append(f"p and sigma are not given: {_nothing_in_common(result)} ln R and ln S stand.")
    elif d.value < 2 * d.error:
        found.append(
            f"d = {shown(d)} is hardly known to be positive, and p and sigma rest on it. {NORMAL}, and that both data sets "
            "constrain something in common. More draws (min_ess) tell d better."
        )
    elif d.value > count + max(3 * d.error, 0.5):
        found.append(
            f"d = {shown(d)} is more than the {count} numbers that both models have: the posteriors are not normal. {NORMAL}: "
            "take them as rough."
        )
    if result.log_s.error > 2 * result.target_error:
        more = (result.log_s.error / result.target_error) ** 2 * min(
            result.posterior(name).worst_ess for name in result.names
        )
        asks = f"min_ess={float(f'{more:.1g}'):.0f} asks for as many draws as bring it there" if more <= 50_000 else ""
        found.append(
            f"ln S has an error of {result.log_s.error:.2g}, from the number of draws; that of ln R was to be "
            f"{result.target_error:g}.{' ' + asks + '.' if asks else ''}"
        )
    return tuple(found)


def shared_numbers(result: Tension) -> int:
    """How many numbers the shared parameters have."""
    return sum(name in result.shared for name, _ in scalars(result.posterior(result.names[2])))


# -- tables -----------------------------------------------------------------------------------------------------------


def data_cells(result: Tension) -> Cells:
    """A row for each data set and for both: ln Z = <ln L> - D, d, and what they rest on."""
    rows = [
        (
            name, shown(result.comparison.log_evidence(name)), shown(result.fit(name)), shown(result.information(name)),
            shown(result.dimensionality_of(name)), number(result.posterior(name).worst_ess, ".0f"),
        )
        for name in result.names
    ]  # fmt: skip
    return Cells(("data", "ln Z", "⟨ln L⟩", "D", "d", "ESS"), tuple(rows))


def number_cells(result: Tension) -> Cells:
    """R, I, S and d, each with what it is."""
    first, second, both = result.names
    rows = (
        ("ln R", shown(result.log_r, sign=True), f"ln Z({both}) - ln Z({first}) - ln Z({second})"),
        (
            "ln I",
            shown(result.log_i, sign=True),
            f"D({first}) + D({second}) - D({both}): information, depends on the prior",
        ),
        ("ln S", shown(result.log_s, sign=True), "ln R - ln I: suspiciousness, does not"),
        ("d", shown(result.dimensionality), f"d({first}) + d({second}) - d({both}): parameters that both constrain"),
    )
    return Cells(("", "", ""), rows, left=frozenset({0, 2}))


def shared_cells(result: Tension) -> Cells:
    """Mean ± sd of each shared number, given either data set and both."""
    inner, rows = result.comparison, []
    posteriors = [result.posterior(name) for name in result.names]
    for parameter, index in scalars(posteriors[2]):
        if parameter in result.shared:
            cells = [mean_and_sd(float(p.mean(parameter)[index]), float(p.sd(parameter)[index])) for p in posteriors]
            rows.append((inner.name_of(parameter, index), *cells))
    more = f"… and {len(rows) - MOST} more: comparison.summary() has all" if len(rows) > MOST else ""
    return Cells(("parameter", *result.names), tuple(rows[:MOST]), note=more)


def text(result: Tension) -> str:
    """What `print(result)` shows."""
    level = result.verdict.level
    head = "\n".join([
        headline(result) + ("" if level == "ok" else f"   [{level.upper()}]"), *_filled(sentence(result)),
    ])  # fmt: skip
    numbers = "\n".join(number_cells(result).text().splitlines()[1:])
    blocks = [head, textwrap.indent(numbers, "  ")]
    blocks += [textwrap.indent(cells.text(), "  ") for cells in (data_cells(result), shared_cells(result))]
    blocks += ["\n".join(line for said in (*result.cautions, PRIOR) for line in _filled(said, "· "))]
    folded = [line for said in symmetries(result.comparison) for line in _filled(said)]
    blocks += ["\n".join(folded)] if folded else []
    gone = [f"{n} of {rows} rows of {name} miss a value and were dropped" for name, (n, rows) in result.dropped.items()]
    last = "\n".join([*gone, provenance(result.comparison)])
    return "\n\n".join([*blocks, verdict_lines(result.verdict, WORDS[level], result.names), last])


def _filled(said: str, mark: str = "") -> list[str]:
    return textwrap.wrap(said, WIDTH - 2, initial_indent="  " + mark, subsequent_indent="  " + " " * len(mark))


def html(result: Tension) -> str:
    """What a notebook shows."""
    said = "".join(f"<p>{escape(line)}</p>" for line in (*result.cautions, PRIOR))
    return dressed(
        headline(result), sentence(result), number_cells(result).html(), data_cells(result).html(),
        shared_cells(result).html(), said, result.verdict.html(WORDS[result.verdict.level]),
        f'<p class="made">{escape(provenance(result.comparison))}</p>',
    )  # fmt: skip


def methods(result: Tension) -> str:
    """A paragraph for the methods section of a paper."""
    first, second, both = result.names
    draws = min(result.posterior(name).worst_ess for name in result.names)
    p = (
        f"With the Bayesian model dimensionality d = {shown(result.dimensionality)} this is p {_p(result.p.value)}, or "
        f"{_rounded(result.sigma)} sigma, from the survival function of chi-squared at d - 2 ln S."
        if np.isfinite(result.sigma.value)
        else f"The Bayesian model dimensionality is d = {shown(result.dimensionality)}, so that no p value is given."
    )
    r, i, log_s = shown(result.log_r), shown(result.log_i), shown(result.log_s)
    return (
        f"The agreement of {first} and {second} on {', '.join(result.shared)} was measured by the Bayes factor of one set of "
        f"parameters for both against one for each, ln R = ln Z({both}) - ln Z({first}) - ln Z({second}) = {r}, and by the "
        f"suspiciousness (Handley & Lemos 2019), ln S = ln R - ln I = {log_s}, in which the information ln I = {i}, and with it "
        "the width of the priors, is taken out. ln S is a difference of posterior means of ln L, with the error of the draws "
        f"(at least {thousands(draws)} effective ones of each parameter). {p} Errors are one standard error. The three models were "
        f"run together with supermodel {result.comparison.versions.get('supermodel', '')} (seed {result.seed}; "
        f"{thousands(result.evaluations['likelihood'])} likelihood calls); the verdict is {result.verdict.level!r}."
    )
