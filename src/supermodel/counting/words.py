"""A count in words and tables: the printed answer, what a notebook shows, the methods paragraph, and plain data."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.report.numbers import probability, shown
from supermodel.report.tables import UNUSABLE, Cells, dressed
from supermodel.report.text import WIDTH, provenance, symmetries, verdict_lines, verdict_words

if TYPE_CHECKING:
    from supermodel.counting.result import Count


def headline(result: Count) -> str:
    """`2 planets: probability 0.981 ± 0.002`, or that nothing is known."""
    if result.limited and len(result.numbers) == 1:
        return f"how many {result.asked['component']}s there are is not known: {result.limited} left no room to look for any"
    if not result.verdict.is_reliable and not result.comparison.weighed:
        return f"how many {result.asked['component']}s there are is not known: the checks failed"
    best = result.best
    weighed = f", if there are at most {result.numbers[-1]}: more were not reached" if result.limited else ""
    return f"{result.names[best]}: probability {chance(result, best)}{weighed}"


def chance(result: Count, k: int) -> str:
    """`0.981 ± 0.002`; of what is all but certain without an error that would say nothing."""
    e = result.probabilities[k]
    if not np.isfinite(e.value):
        return "unknown"
    return probability(e.value) if not e.error >= 5e-5 else f"{e.value:.{e.decimals}f} ± {e.error:.{e.decimals}f}"


def number_cells(result: Count) -> Cells:
    """A row for each number: its prior, its probability, ln Z, and ln B against one component less."""
    rows = []
    for k, name in result.names.items():
        step = shown(result.log_bayes_factor(k, k - 1), sign=True) if k - 1 in result.names else "–"
        rows.append((
            name, probability(result.prior[k]), chance(result, k), shown(result.log_evidence(k)), step,
            result.comparison.verdict_of(name).level,
        ))  # fmt: skip
    more = [k for k in result.prior if k not in result.names]
    if more and np.isfinite(result.more):
        rows.append((f"more, to {more[-1]}", probability(sum(result.prior[k] for k in more)), f"about {result.more:.1g}", *"–––"))
    if more and result.limited:
        rows.append((f"more, to {more[-1]}", probability(sum(result.prior[k] for k in more)), "not reached", *"–––"))
    header = ("number", "prior", "P(number|data)", "ln Z", "ln B vs one less", "verdict")
    return Cells(header, tuple(rows), left=frozenset({0, 5}), note=UNUSABLE.get(result.verdict.level, ""))


def text(result: Count) -> str:
    """What `print(result)` shows."""
    inner = result.comparison
    level = result.verdict.level
    parts = [headline(result) + ("" if level == "ok" else f"   [{level.upper()}]")]
    parts += textwrap.wrap(result.stopped, WIDTH - 2, initial_indent="  ", subsequent_indent="  ")
    blocks = ["\n".join(parts), textwrap.indent(number_cells(result).text(), "  ")]
    if inner.weighed and result.best > 0:
        cells = result.components.cells()
        note = textwrap.fill(cells.note, WIDTH - 2)
        blocks.append(textwrap.indent(Cells(cells.header, cells.rows, cells.left).text() + "\n" + note, "  "))
    found = [textwrap.fill(line, WIDTH, subsequent_indent="    ", initial_indent="  ") for line in symmetries(inner)]
    blocks += ["\n".join(found)] if found else []
    return "\n\n".join([*blocks, verdict_lines(result.verdict, verdict_words(inner), inner.names), provenance(inner)])


def html(result: Count) -> str:
    """What a notebook shows."""
    from markupsafe import escape

    inner = result.comparison
    found = result.components.cells().html() if inner.weighed and result.best > 0 else ""
    return dressed(
        headline(result), "", f"<p>{escape(result.stopped)}</p>", number_cells(result).html(), found,
        result.verdict.html(verdict_words(inner)), f'<p class="made">{escape(provenance(inner))}</p>',
    )  # fmt: skip


def methods(result: Count) -> str:
    """A paragraph for the methods section of a paper."""
    name, prior = result.asked["component"], list(result.prior.values())
    law = "uniform" if np.allclose(prior, prior[0]) else "as stated"
    said = (
        f"Models of {result.numbers[0]} to {result.numbers[-1]} {name}s were compared, with the same independent priors for each "
        f"{name} and a prior on their number that is {law}. The further {name} of each larger model was first searched for in what "
        f"draws of the smaller one leave, and then all were moved together. {result.stopped}"
    )
    return f"{said} {result.comparison.methods()}"


def asdict(result: Count) -> dict[str, Any]:
    """Plain data."""

    def pair(e: Any) -> dict[str, float]:
        return {"value": e.value, "error": e.error}

    weighed = bool(result.comparison.weighed)
    components = [
        {
            "label": c.label, "probability": pair(c.probability), "within": list(c.within),
            "parameters": {p: {"mean": c.mean(p), "sd": c.sd(p), "quantiles": list(c.quantiles(p))}
                           for p, values in c.draws.items() if values.ndim == 1},
        }
        for c in (result.components if weighed else ())
    ]  # fmt: skip
    return {
        "component": result.asked["component"], "best": result.best if weighed else None,
        "probabilities": {str(k): pair(e) for k, e in result.probabilities.items()},
        "prior": {str(k): p for k, p in result.prior.items()}, "more": result.more, "stopped": result.stopped,
        "components": components, "ordered_by": result.components.by if weighed else None,
        "comparison": result.comparison.asdict(),
    }  # fmt: skip
