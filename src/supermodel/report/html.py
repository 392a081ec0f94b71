"""The report: one page that needs nothing but a browser. Figures are inline SVG that follow the page's colours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from supermodel.errors import SupermodelError
from supermodel.report import plots
from supermodel.report.methods import cite, methods
from supermodel.report.numbers import duration, thousands
from supermodel.report.overview import telling_parameters
from supermodel.report.prediction_plots import axis_of
from supermodel.report.scales import DEFAULT
from supermodel.report.svg import svg
from supermodel.report.tables import (
    UNUSABLE,
    Cells,
    dressed,
    matrix_cells,
    parameter_cells,
    prior_cells,
    ranking_cells,
    scalars,
)
from supermodel.report.text import parameters, provenance, symmetries, told, verdict_words
from supermodel.verdict.next_steps import next_steps

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison

MOST_PARAMETERS = 6  # of each kind of plot that comes once per parameter
MOST_MODELS = 6


class Picture(NamedTuple):
    """A figure ready for the page: its SVG, what it shows, and what to look at."""

    svg: Markup
    caption: str


class Section(NamedTuple):
    """A heading with tables, figures and notes beneath it."""

    title: str
    text: str = ""
    tables: tuple[Cells, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()


def rendered(**parts: Any) -> str:
    """The page of a headline, a verdict, sections, methods, citation and facts."""
    import jinja2

    template = resources.files("supermodel.report").joinpath("report.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(template).render(**{"steps": []} | parts)


def page(result: Comparison, title: str | None = None, scale: Any = DEFAULT) -> str:
    """The whole report as one HTML text."""
    headline, meaning, odds = told(result, scale)
    return rendered(
        title=title or (" against " if len(result.names) == 2 else ", ").join(result.ranking),
        headline=headline,
        meaning=meaning,
        odds=odds,
        level=result.verdict.level,
        verdict=verdict_words(result),
        reasons=result.verdict.reasons,
        steps=next_steps(result.verdict, result.names),
        sections=sections(result, scale),
        methods=methods(result),
        bibtex=cite(result),
        facts=facts(result),
    )


def facts(result: Comparison) -> list[tuple[str, str]]:
    """What the answer was made from, as pairs of a name and a value."""
    settings = {k: v for k, v in result.settings.items() if isinstance(v, str | int | float)}
    return [
        ("likelihood calls", thousands(result.evaluations.get("likelihood", 0))),
        ("of these with gradient", thousands(result.evaluations.get("gradient", 0))),
        ("time", duration(result.seconds) if np.isfinite(result.seconds) else "unknown"),
        ("seed", str(result.seed)),
        *(
            (name.replace("_", " "), f"{value:g}" if isinstance(value, float) else str(value))
            for name, value in settings.items()
        ),
        *((f"fingerprint of the {what}", digest) for what, digest in result.fingerprints.items()),
        ("schema", str(result.schema)),
        ("versions", ", ".join(f"{library} {version}" for library, version in result.versions.items())),
    ]


def sections(result: Comparison, scale: Any, without: Collection[str] = ()) -> list[Section]:
    """All parts of the report that this result can fill, but for those with a title of `without`."""

    def part(title: str, *rest: Any) -> Section:
        return Section(title) if title in without else section(title, *rest)

    matrix = [matrix_cells(result.matrix())] if len(result.names) > 2 else []
    built = [
        part(
            "The answer",
            "Models, best first. ln Z = fit + Occam: how well the model fits on average, minus the information gained "
            "about its parameters.",
            [ranking_cells(result.table()), *matrix],
            _answer_plots(result, scale),
        ),
        part("Data and predictions", "", [], _data_plots(result)),
        part(
            "What drives the preference",
            "How much of ln B each datum would take away if it were left out.",
            [],
            _drivers_plots(result),
        ),
        _prediction(result),
        part(
            "Prior sensitivity",
            "ln B if a prior were wider or narrower, by reweighting the draws: no likelihood was called. Shaded where "
            "the weights fail: to know more there, run with that prior.",
            [],
            _sensitivity_plots(result, scale),
        ),
        part("Posteriors", " ".join(symmetries(result)), [parameter_cells(result)], _posterior_plots(result)),
        part(
            "Priors, and who shares what",
            "Every prior is normalised; a Bayes factor depends on it.",
            [prior_cells(result)],
            [],
        ),
        part(
            "Inside the run",
            "Each supermodel joins two ends through α. The draws must cross often, both estimators must agree, and "
            "the chains must tell the same story.",
            [_edge_cells(result)],
            _record_plots(result),
        ),
    ]
    return [s for s in built if s.tables or s.pictures or s.notes]


def _prediction(result: Comparison) -> Section:
    """LOO beside the Bayes factor, where every model knows ln p of each datum."""
    if len(result.names) < 2 or not result.weighed:
        return Section("Prediction of new data")
    try:
        cells = result.loo().cells()
    except SupermodelError:  # the section on what drives the preference says why
        return Section("Prediction of new data")
    return Section("Prediction of new data", cells.note, (replace(cells, note=""),))


# What to draw on an Axes, the caption (or what makes it, once the picture is drawn), and the size in inches.
Wanted = tuple[Callable[..., Any], str | Callable[[], str], tuple[float, float]]


def _answer_plots(result: Comparison, scale: Any) -> Iterator[Wanted]:
    k = len(result.names)
    if k > 1:
        caption = "ln B of the best model over each other one; thick ± 1σ, thin ± 2σ."
        yield partial(plots.bayes_factors, result, scale), caption, (6.4, 0.75 + 0.42 * k)
    if k > 2:
        yield partial(plots.matrix, result), "ln B of every pair with its joint error.", (5.6, 1.2 + 0.62 * k)


def _data_plots(result: Comparison) -> Iterator[Wanted]:
    if axis_of(result) is not None:
        caption = "Grey: 68% and 95% of the prediction averaged over models, without noise."
        yield partial(plots.predictions, result), caption, (6.4, 3.6)


def _drivers_plots(result: Comparison) -> Iterator[Wanted]:
    if len(result.names) > 1:
        caption = "Open circles: the posterior leans too heavily on the datum for reweighting."
        yield lambda ax: plots.drivers(result.drivers(), ax=ax), caption, (6.4, 3.2)


def _sensitivity_plots(result: Comparison, scale: Any) -> Iterator[Wanted]:
    chosen = telling_parameters(result)[:MOST_PARAMETERS]
    found = cache(result.sensitivity)  # the plot and its caption ask for the same

    def drawn(parameter: str, ax: Any) -> Any:
        if found(parameter).level in UNUSABLE:
            raise SupermodelError(sentence(parameter))
        return plots.sensitivity(found(parameter), scale, ax=ax)

    def sentence(parameter: str) -> str:
        return found(parameter).sentence()

    for parameter in chosen if len(result.names) > 1 else []:
        yield partial(drawn, parameter), partial(sentence, parameter), (5.6, 3.2)


def _posterior_plots(result: Comparison) -> Iterator[Wanted]:
    wanted = list(dict.fromkeys(item for n in result.ranking for item in scalars(result.posteriors[n])))[
        :MOST_PARAMETERS
    ]
    for p, i in wanted if len(result.names) > 1 else []:
        yield partial(plots.averaged, result, p, index=i), "", (5.6, 2.5)
    for n in result.ranking[:MOST_MODELS]:
        if len(scalars(result.posteriors[n])) > 1:
            yield partial(plots.corner, result, n), "Contours hold 39% and 86%.", (5.2, 4.8)


def _record_plots(result: Comparison) -> Iterator[Wanted]:
    n = 1 if result.chain is not None else min(len(result.edges), MOST_MODELS)
    if n:
        yield (
            partial(plots.trace, result),
            "From the first draws to all: it must settle within its own band.",
            (5.6, 3.0),
        )
    for e in range(n):
        caption = "The two ends differ by ln B. Circles: by counting draws (± 2σ); line: from all draws."
        yield partial(plots.alpha, result, e), caption, (5.6, 3.0)
        yield partial(plots.crossings, result, e), "A chain of one colour has never crossed.", (5.6, 2.4)


# Figures of an edge's report: key, heading, format.
FIGURES = (
    ("value", "MBAR", ".4f"), ("second_value", "Rao-Blackwell", ".4f"), ("error", "error", ".2g"),
    ("n_draws", "draws", ".0f"), ("ess", "ESS of ln B", ".0f"), ("rhat", "R-hat of ln B", ".3f"), ("crossings", "crossings", ".0f"),
    ("start_z", "starts (σ)", ".1f"), ("drift_z", "drift (σ)", ".1f"),
)  # fmt: skip


def _edge_cells(result: Comparison) -> Cells:
    rows = []
    for edge in result.edges:
        values = [(edge.report.get(key, np.nan), spec) for key, _, spec in FIGURES]
        rows.append((edge.first, edge.second, *(format(v, spec) if np.isfinite(v) else "–" for v, spec in values)))
    return Cells(("first", "second", *(heading for _, heading, _ in FIGURES)), tuple(rows), left=frozenset({0, 1}))


def section(title: str, text: str, tables: list[Cells], wanted: Iterable[Wanted]) -> Section:
    """A section with the pictures that this result can show, and for the others why not."""
    pictures, notes = [], []
    for draw, caption, size in wanted:
        try:
            pictures.append(Picture(svg(draw, size), caption if isinstance(caption, str) else caption()))
        except SupermodelError as error:  # something that this result cannot show, and why
            notes.append(str(error))
    return Section(title, text, tuple(t for t in tables if t.rows), tuple(pictures), tuple(dict.fromkeys(notes)))


def snippet(result: Comparison) -> str:
    """What a notebook shows of a result: headline, meaning, odds, ranking, parameters, verdict and provenance."""
    head, meaning, odds = told(result)
    marginals, judged = parameters(result), result.verdict.html(verdict_words(result))
    return dressed(
        head, "", *(f"<p>{escape(line)}</p>" for line in (meaning, odds) if line),
        ranking_cells(result.table()).html(), "" if marginals is None else marginals.html(), judged,
        f'<p class="made">{escape(provenance(result))}</p>',
    )  # fmt: skip
