"""The report of a count: one HTML page, in the dress of every other report."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from supermodel.counting.words import methods, number_cells
from supermodel.report import count_plots as plots
from supermodel.report.corner_plot import corner
from supermodel.report.html import Section, Wanted, facts, rendered, section, sections
from supermodel.report.methods import cite
from supermodel.report.scales import DEFAULT
from supermodel.report.tables import parameter_cells
from supermodel.report.text import symmetries, verdict_words
from supermodel.verdict.next_steps import next_steps

if TYPE_CHECKING:
    from supermodel.counting.result import Count

MOST = 12  # components with a picture of their own
LIKELY = 0.01  # numbers that have a picture of their posterior
# Sections of the comparison that the count has in its own form. It has none on the prior of a parameter: P1 is another planet in
# each model, and the prior of one planet alone is not asked for.
INSTEAD = ("The answer", "Data and predictions", "Prior sensitivity", "Posteriors")


def page(result: Count, title: str | None = None, scale: Any = DEFAULT) -> str:
    """The whole report as one HTML text."""
    inner, called = result.comparison, result.asked["component"]
    built = [
        section(
            f"How many {called}s", "The probability of each number, beside its prior.", [number_cells(result)],
            [(partial(plots.numbers, result), "Dashes: the prior. Bars: the probability, with its error.", (5.6, 3.2))],
        ),
        *_found(result),
        section("Posteriors", " ".join(symmetries(inner)), [parameter_cells(inner)], _posteriors(result)),
        *sections(inner, scale, INSTEAD),
    ]  # fmt: skip
    return rendered(
        title=title or f"How many {called}s?", headline=result.headline, meaning=result.stopped, odds="",
        level=result.verdict.level, verdict=verdict_words(inner), reasons=result.verdict.reasons,
        steps=next_steps(result.verdict, inner.names), sections=[s for s in built if s.tables or s.pictures or s.notes],
        methods=methods(result), bibtex=cite(inner), facts=facts(inner),
    )  # fmt: skip


def _found(result: Count) -> list[Section]:
    """What was found, if anything can be said of it."""
    called, n = result.asked["component"], result.best if result.comparison.weighed else 0
    if not result.comparison.weighed:
        return [Section(f"The {called}s", notes=(f"{result.headline[0].upper()}{result.headline[1:]}.",))]
    cells = [result.components.cells()] if n > 0 else []
    whole = section(
        f"The {called}s", "", cells, [(partial(plots.found, result), partial(_caption, result), (6.4, 4.6))]
    )
    if n == 0 or not whole.pictures:  # why there is no picture is told once
        return [whole]
    about = f"Data without the background and all other {called}s; the curve is what the {called} adds: its mean and 68% band."
    alone = [(partial(plots.component, result, i), "", (5.6, 3.0)) for i in range(1, min(n, MOST) + 1)]
    return [whole, section(f"Each {called} alone", about, [], alone)]


def _caption(result: Count) -> str:
    """What is seen in the picture of the data."""
    grid, mean = result.contributions.on_grid, "the mean of the prediction with its 68% and 95% bands"
    if grid is None or grid.whole is None:
        mean = "the prediction of each with its 68% and 95% bands"
    dashed = "; dashed: the background" if grid is not None and grid.background is not None and grid.parts else ""
    thin = f"; thin: each {result.asked['component']} on it" if dashed and len(result.components) > 1 else ""
    return f"Above: data, and {mean}{dashed}{thin}. Below: data minus the mean."


def _posteriors(result: Count) -> Iterator[Wanted]:
    inner = result.comparison
    for k, name in result.names.items():
        if result.probabilities[k].value >= LIKELY and inner.posteriors[name].parameters:
            yield partial(corner, inner, name), "Contours hold 39% and 86%.", (5.2, 4.8)
