"""The page of a survey: what came of all objects, of the population, of the best of them and of the worst."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from supermodel.comparing import compare
from supermodel.errors import SupermodelError
from supermodel.models.model import Model
from supermodel.report import plots
from supermodel.report import survey_plots as pictures
from supermodel.report.html import Section, Wanted, rendered, section
from supermodel.report.methods import citation
from supermodel.report.numbers import duration, mean_and_sd, number, thousands
from supermodel.report.style import shortened
from supermodel.report.tables import Cells
from supermodel.results.fingerprint import versions
from supermodel.survey import table
from supermodel.survey.buckets import Bucketing
from supermodel.survey.chunk import seed_of, unpadded
from supermodel.survey.datasets import collected
from supermodel.survey.job import Chunk
from supermodel.survey.population import Population
from supermodel.survey.ranking import Discoveries, ranked
from supermodel.survey.truths import Truths, checked_truths
from supermodel.verdict.verdict import LEVELS, Reason, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from supermodel.survey.result import ManyResult

MOST_PAIRS = 6  # histograms
LONG = 70  # letters of a reason in the table of the worst
LEVEL = 0.1  # of false discoveries
SURE = 5.0  # |ln B| that is counted as decided
METHODS = (
    "Each data set was compared by itself: Bayes factors between all models, with an error and a verdict. The population is a "
    "hierarchical mixture, p(data | f) = ∏ Σ f_k Z_k over all objects, with a Dirichlet prior of the fractions f; their errors "
    "include those of the evidences. An object is of a model with the probability that follows from its own data and, through f, "
    "from all the others. Discoveries are as many of the most probable objects as keep the expected share of false ones at or "
    "below the level."
)
RATES = """
@article{Mueller2004,
  author  = {M{\\"u}ller, Peter and Parmigiani, Giovanni and Robert, Christian and Rousseau, Judith},
  title   = {{Optimal sample size for multiple testing: the case of gene expression microarrays}},
  journal = {Journal of the American Statistical Association},
  volume  = {99},
  year    = {2004},
}
"""


def page(result: ManyResult, first: str, truths: Any, links: Mapping[int, str], notes: list[str], worst: int) -> str:
    """The whole page as one HTML text; `links` are reports of rows, relative to the page."""
    try:
        population: Population | None = result.population()
    except SupermodelError as error:
        population, unknown = None, str(error)
    built = [_factors(result)]
    if population is None:
        headline, meaning = f"{thousands(len(result))} data sets, none with a usable answer", unknown
    else:
        told = population.fractions.sort_values("fraction", ascending=False)
        headline = " · ".join(f"{f.model} {mean_and_sd(f.fraction, f.sd)}" for f in told.itertuples())
        found = ranked(population, first, None, LEVEL)
        meaning = f"{found.sentence()}."
        built = [_population(population, found), *built, _surest(found)]
        if truths is not None:
            built.append(_against(checked_truths(truths, result.table, population)))
    built.append(_worst(result, links, notes, worst))
    if result.notes:
        built.append(Section("Notes", notes=tuple(result.notes)))
    return rendered(
        title=f"Survey of {thousands(len(result))} data sets: {', '.join(result.models)}", headline=headline, meaning=meaning,
        odds="Fractions of the population ± their standard deviation." if population is not None else "",
        level=_level(result), verdict=" · ".join(f"{thousands(n)} {level}" for level, n in result.counts.items()),
        reasons=_reasons(result), sections=[s for s in built if s.tables or s.pictures or s.notes],
        methods=METHODS, bibtex=citation(versions()["supermodel"]) + RATES, facts=_facts(result),
    )  # fmt: skip


def _level(result: ManyResult) -> str:
    """The colour of the verdict: alarm only where most objects have no answer."""
    counts = result.counts
    flagged = sum(n for level, n in counts.items() if not Verdict(level).is_reliable)
    return "fail" if 2 * flagged > len(result) else "caution" if flagged else "ok"


def _reasons(result: ManyResult) -> list[Reason]:
    """Each code with the number of data sets that have it, and what it said of the first of them."""
    rows = result.table[result.table["codes"] != ""]
    rows = rows.assign(code=rows["codes"].str.split(",")).explode("code").drop_duplicates(["row", "code"])
    told = []
    for code, n in rows["code"].value_counts().items():
        example = rows[rows["code"] == code].iloc[0]
        said = shortened(str(example["reason"]), 3 * LONG)
        told.append(
            Reason(str(code), f"{thousands(n)} data set{'s' if n > 1 else ''}, e.g. {example['dataset']}: {said}")
        )
    return told


def _factors(result: ManyResult) -> Section:
    rows: list[tuple[str, ...]] = []
    wanted: list[Wanted] = []
    for first, second in table.pairs_of(result.models):
        known = result.rows(first, second)
        known = known[known["verdict"].map(lambda level: Verdict(level).is_reliable)]
        values = known["log_bayes_factor"].to_numpy(float)
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
        sure = [
            f"{thousands(n)} ({100 * n / len(values):.3g}%)" for n in (np.sum(values > SURE), np.sum(values < -SURE))
        ]
        error = f"{known['error'].median():.2g}"
        rows.append((f"{first} : {second}", number(middle), f"{low:.2f} to {high:.2f}", error, *sure))
        if len(wanted) < MOST_PAIRS:
            drawn = partial(pictures.log_bayes_factors, values, result.models, first, second)
            wanted.append((drawn, "", (6.4, 3.0)))
    heads = ("pair", "median ln B", "90% of objects", "median error", f"ln B > {SURE:g}", f"ln B < −{SURE:g}")
    text = "ln B = ln Z of the first model minus ln Z of the second, for objects with a usable answer."
    return section("Bayes factors", text, [Cells(heads, tuple(rows))], wanted)


def _population(population: Population, found: Discoveries) -> Section:
    left = ""
    if population.n_left_out:
        n = thousands(population.n_left_out)
        left = f" Left out, as if they were like the others: {n} without a usable answer."
    alpha = ", ".join(f"{name} {value:g}" for name, value in population.alpha.items())
    text = f"What fraction of the objects are of each model. Dirichlet prior: {alpha}.{left}"
    shown = [
        (partial(pictures.fractions, population), "Thick ± 1σ, thin ± 2σ, errors of ln B included.", (5.6, 3.0)),
        (partial(pictures.discoveries, found), f"Shaded: the discoveries of {found.first}.", (5.6, 3.0)),
    ]
    return section("The population", text, [population.cells()], shown)


def _surest(found: Discoveries) -> Section:
    text = f"The objects that are most surely {found.first}, and the expected share of false ones down to each."
    return Section("The surest", text, (found.cells(),))


def _against(truths: Truths) -> Section:
    n = thousands(len(truths.at))
    if truths.are_models:
        calibration = truths.calibration()
        name, off = max(truths.off().items(), key=lambda item: abs(item[1]))
        text = (
            f"{n} objects whose model is known. The number that {name} made, minus what its probabilities add up to, is "
            f"{number(off, '+.1f')} errors (the worst of {len(truths.population.models)} models); within ± 3 is as it should be."
        )
        caption = "On the diagonal the probabilities mean what they say. Bars: 95%; numbers: objects."
        return section(
            "Against the truth",
            text,
            [truths.confusion()],
            [(partial(plots.calibration, calibration), caption, (5.6, 3.8))],
        )
    z = truths.deviations()
    if not len(z):
        return Section("Against the truth", notes=("No object with a known ln B has an error above 0.",))
    text = (
        f"{n} objects whose ln B is known. Deviations in errors have mean {z.mean():+.2f} ± {1 / np.sqrt(len(z)):.2f} and spread "
        f"{z.std():.2f} ± {1 / np.sqrt(2 * len(z)):.2f}, where 0 and 1 are as they should be; {int(np.sum(np.abs(z) > 5))} are "
        "off by more than 5."
    )
    return section(
        "Against the truth", text, [], [(partial(pictures.deviations, z), "Line: the standard normal.", (5.6, 3.0))]
    )


def worst_rows(result: ManyResult, worst: int) -> pd.DataFrame:
    """One row for each of the worst data sets: flagged ones, the gravest first, then those with the largest errors."""
    found = result.table.sort_values("error", ascending=False, kind="stable")
    grave = found["verdict"].map(lambda level: max(LEVELS.index(level), LEVELS.index("caution")))
    found = found.assign(_grave=grave).sort_values("_grave", ascending=False, kind="stable").drop(columns="_grave")
    return found.drop_duplicates("row").head(worst)


def _worst(result: ManyResult, links: Mapping[int, str], notes: list[str], worst: int) -> Section:
    rows = []
    for row in worst_rows(result, worst).to_dict("records"):
        name = str(row["dataset"])
        link = links.get(int(row["row"]))
        cell = name if link is None else Markup('<a href="{}">{}</a>').format(link, name)
        value, error = row["log_bayes_factor"], row["error"]
        factor = "–" if np.isnan(value) else f"{number(value)} ± {number(error, '.2g')}"
        said = shortened(row["reason"], LONG)
        rows.append((cell, row["verdict"], row["codes"], f"{row['first']} : {row['second']}", factor, said))
    heads = ("data set", "verdict", "codes", "pair", "ln B", "reason")
    text = "Flagged data sets first, then those with the largest errors." + (
        " Links: their full reports." if links else ""
    )
    return Section(
        "The worst", text, (Cells(heads, tuple(rows), frozenset({0, 1, 2, 3, 5})),) if rows else (), (), tuple(notes)
    )


def _facts(result: ManyResult) -> list[tuple[str, str]]:
    rows = result.table.drop_duplicates("row")
    routes = ", ".join(f"{route} {thousands(n)}" for route, n in rows["route"].value_counts().items())
    settings = {k: v for k, v in result.settings.items() if isinstance(v, str | int | float)}
    odds = result.settings.get("prior_odds") or {}
    return [
        ("data sets", thousands(len(result)) + ("" if result.is_complete else " so far: the run was interrupted")),
        ("routes", routes),
        ("likelihood calls", thousands(float(rows["evaluations"].sum()))),
        ("time, over all data sets", duration(float(np.nan_to_num(rows["seconds"]).sum()))),
        *(
            (name.replace("_", " "), f"{value:g}" if isinstance(value, float) else str(value))
            for name, value in settings.items()
        ),
        *([("prior odds", ", ".join(f"{name} {value:g}" for name, value in odds.items()))] if odds else []),
        *([("table", str(result.path))] if result.path is not None else []),
        ("versions", ", ".join(f"{library} {version}" for library, version in versions().items())),
    ]


# -- full reports of the worst ----------------------------------------------------------------------------------------


def full_reports(
    result: ManyResult, models: Mapping[str, Model], datasets: Any, by: str | None, id: str | None, to: Path, worst: int
) -> tuple[dict[int, str], list[str]]:
    """Compare the worst data sets again, each by itself, and write their reports beside the page: {row: link}, and notes."""
    wanted = worst_rows(result, worst)
    bucketing = Bucketing(models, 1, result.settings.get("missing", "raise"), False, set(wanted["dataset"].map(str)))
    folder, links, notes = to.with_name(f"{to.stem}_reports"), {}, []
    options = dict(result.settings.get("settings", {}), target_error=result.settings.get("target_error", 0.2))
    options["prior_odds"] = result.settings.get("prior_odds")
    rows = set(wanted["row"])
    for piece in bucketing.pieces(collected(datasets, by, id)):
        if not isinstance(piece, Chunk) or int(piece.rows[0]) not in rows:
            continue  # what cannot be read is told in the table; another may have the same name
        row, name = int(piece.rows[0]), piece.names[0]
        try:
            seed = seed_of(result.settings.get("seed", 0), row)
            again = compare(models, unpadded(piece, 0), seed=seed, progress=False, **options)
            folder.mkdir(exist_ok=True)
            again.report(folder / f"{row}.html", title=str(name))
        except Exception as error:  # whatever made the row one of the worst
            notes.append(f"There is no full report of {name}: {type(error).__name__}: {error}")
        else:
            links[row] = f"{folder.name}/{row}.html"
    if bucketing.only and not bucketing.met:
        notes.append(
            "There are no full reports: `datasets` has none of these data sets. A generator can be used only once."
        )
    return links, notes
