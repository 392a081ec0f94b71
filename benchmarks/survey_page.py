"""What was measured of surveys, as the page docs/theory/surveys.md tells it, and what a billion data sets would take."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.survey import RESULTS
from supermodel.report.numbers import thousands

HERE = Path(__file__).resolve().parent
SCHEDULER, PAGE = HERE / "results" / "scheduler.json", HERE.parent / "docs" / "theory" / "surveys.md"
BEGIN, END = "<!-- survey:begin -->", "<!-- survey:end -->"
SHAPES_BEGIN, SHAPES_END = "<!-- shapes:begin -->", "<!-- shapes:end -->"
BILLION, CORES = 1_000_000_000, 10_000
BUSY = 0.1  # the share of its time that a scheduler may work

MEASURED = """`python -m benchmarks survey` simulates {rows} light curves of 50 points, a third of them flat, a third sines and a
third sines with a phase, and weighs the three models (1, 3 and 4 parameters) against each other. In one run:

| | |
|---|---|
| data sets a second, {workers} workers (a core) | {all_rate:.1f} ({rate:.1f}) |
| first use: {first_rows} data sets, most of it compiling, which the cache keeps | {first:.0f} s |
| likelihood evaluations for a data set, all models | {evaluations} |
| by the quick road; by the engine | {quick}; {engine} |
| verdicts | {verdicts} |
| bytes of the table for a data set (three pairs) | {size:.0f} |
{loops}

In the time of a first use a loop over `compare` does {few} data sets: for fewer it is as quick. The quick road does not ask
how many there are, so that a data set has the same answer in whatever company.

Against the exact ln B (linear algebra and quadrature), (estimate − truth) / error:

| pair | data sets | spread | mean | largest | off by 4 errors and 0.1 |
|---|---|---|---|---|---|
{calibration}
"""

SHAPES = """`python -m benchmarks survey --shapes`: posteriors with an exact ln Z, target 0.2, one model. Wrong are
those that are settled and off by more than 4 errors and 0.1; the spread of (estimate − truth) / error, and how many are
within 1.96 errors, are those of the rest.

| posterior | data sets | to the engine | wrong | spread | within 1.96 errors | median error |
|---|---|---|---|---|---|---|
"""

FOLLOWS = """## A billion data sets

If all data sets are like these, and cores like the one that was measured: {hours} core hours, which are {days:.1f}
days on {cores} cores, and {gigabytes:.0f} GB of table. Each worker compiles its programs, or loads them from the
cache, once, about {first:.0f} s at most: let workers live for an hour or more. Memory does not grow with the survey,
since two chunks a worker are under way at once.

A Dask scheduler handed out {tasks} tasks a second one by one to two workers on the machine of the tests, and
{at_once} a second when {n_tasks} were given at once. For it to be idle nine tenths of the time with {cores} cores, a
chunk needs {least} data sets or more: a task then lasts {lasts:.0f} s. The default of 500 is enough up to
{most_cores} cores. With `out="results/"` there is one file for each chunk; beyond a million files split the survey
into several runs.

Assumed: that the driver can read the data and send each chunk once, some kilobytes a data set; and that the network
carries it. Several drivers, each with its part of the data, have neither limit, since no data set knows of another.
"""


def page(told: dict, handed: dict) -> str:
    """The text between the marks."""
    rate, tasks = told["rows a second"] / told["workers"], handed["a second, window of 4"]
    hours, least = BILLION / rate / 3600, CORES * rate / (BUSY * tasks)
    first = told["seconds of a first use, 100 rows a worker"]
    loops = [
        f"| a loop over `{name}` on the same rows: {loop['seconds a row']:.1f} s a row for ± {loop['error']:.2f}, ours ± "
        f"{told['error on the same rows']:.3f}; times as fast, as it is and at equal error | "
        f"{thousands(round(loop['times as fast']))}, {thousands(round(loop['times as fast at equal error']))} |"
        for name, loop in told["loops"].items()
    ]
    calibration = [
        f"| {pair} | {c['rows']} | {c['spread']:.2f} | {c['mean']:+.2f} | {c['worst z']:.1f} | {c['beyond 4 errors and 0.1']} |"
        for pair, c in told["calibration"].items()
    ]
    measured = MEASURED.format(
        rows=thousands(told["rows"]), workers=told["workers"], all_rate=told["rows a second"], rate=rate, first=first,
        first_rows=100 * told["workers"], evaluations=thousands(round(told["evaluations a row"])), size=told["bytes a row"],
        quick=thousands(told["routes"].get("quick", 0)), engine=thousands(told["routes"].get("engine", 0)),
        verdicts=", ".join(f"{thousands(n)} {level}" for level, n in told["verdicts"].items()),
        few=round(first / told["loops"]["compare"]["seconds a row"]), loops="\n".join(loops), calibration="\n".join(calibration),
    )  # fmt: skip
    follows = FOLLOWS.format(
        hours=thousands(round(hours)), days=hours / CORES / 24, cores=thousands(CORES), first=first,
        gigabytes=BILLION * told["bytes a row"] / 1e9, tasks=thousands(round(tasks)),
        at_once=thousands(round(handed["a second, all at once"])), n_tasks=thousands(handed["tasks"]),
        least=thousands(round(least)), lasts=least / rate, most_cores=thousands(round(500 * BUSY * tasks / rate)),
    )  # fmt: skip
    return measured + "\n" + follows


def shapes_table(shapes: dict) -> str:
    """What the quick road makes of posteriors that are not normal."""
    rows = [
        f"| {name} | {s['rows']} | {s['to the engine']} | {s['wrong']} | {s['spread of the rest']:.2f} | "
        f"{100 * s['within 1.96 errors']:.0f}% | {s['median error']:.3f} |"
        for name, s in shapes.items()
    ]
    return SHAPES + "\n".join(rows) + "\n"


def write_page() -> None:
    """Into the documentation, from what is stored."""
    told, handed = json.loads(RESULTS.read_text()), json.loads(SCHEDULER.read_text())
    text = PAGE.read_text()
    for begin, end, new in (
        (SHAPES_BEGIN, SHAPES_END, shapes_table(told["shapes"])),
        (BEGIN, END, page(told, handed)),
    ):
        before, rest = text.split(begin)
        text = before + begin + "\n" + new + end + rest.split(end)[1]
    PAGE.write_text(text)
