"""`supermodel reproduce`: run every experiment of the paper and write the folder of results."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from supermodel.jax_scope import compilation_cache
from supermodel_paper import (  # noqa: F401  (each brings its experiments)
    chain_checks,
    closed_forms,
    combined_model,
    costs,
    linear,
    many_models,
    model_averages,
    nested_sampling,
    outlook,
    precision,
    prior_sensitivity,
    reparametrisation,
    scaling,
    sharing,
    sine,
    tanh_failure,
    transformations,
)
from supermodel_paper.figures import png_of, write_atomically
from supermodel_paper.numbers import Number, Part, tally
from supermodel_paper.page import page
from supermodel_paper.runs import PLANS, Runs
from supermodel_paper.settings import FAST, FULL, Settings
from supermodel_paper.table import EXPERIMENTS as BY_NAME
from supermodel_paper.table import FIGURES as FIGURES
from supermodel_paper.table import TABLE

SCHEMA = 1

Experiment = Callable[[Runs], Part]
EXPERIMENTS: tuple[Experiment, ...] = tuple(BY_NAME[name] for name in TABLE)  # in the paper's order

# In the order in which they are needed, for the thread that works ahead.
JOBS: dict[str, Callable[[Runs], Any]] = {
    **{name: partial(Runs.planned, name=name) for name in PLANS},
    **costs.JOBS,
    "scaling": scaling.measure,
}


def main(fast: bool, out: Path, log: Callable[[str], Any] | None = None) -> int:
    """Run all and write `out`; 0 if every number of ours agrees with its exact value, 1 otherwise."""
    with compilation_cache():
        return run(FAST if fast else FULL, Path(out), EXPERIMENTS, log or _progress, JOBS)


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run(
    settings: Settings,
    out: Path,
    experiments: Sequence[Experiment],
    log: Callable[[str], Any],
    jobs: Mapping[str, Callable[[Runs], Any]] | None = None,
) -> int:
    """Run the experiments, write numbers.json, the figures and index.html, print the table.

    `jobs` are what a second thread may do ahead.
    """
    began = time.monotonic()
    runs, parts = Runs(settings, lambda line: log(f"  {line}")), []
    with runs.start(jobs or {}):
        for i, experiment in enumerate(experiments, 1):
            start = time.monotonic()
            parts.append(experiment(runs))
            log(f"[{i}/{len(experiments)}] {parts[-1].title}: {time.monotonic() - start:.1f} s")
    log("writing the page")
    facts = _facts(settings, parts, runs, time.monotonic() - began)
    write(parts, facts, out)
    numbers = [n for part in parts for n in part.numbers]
    print(table(numbers))
    print(f"\nThe page: {out / 'index.html'}")
    return 1 if any(n.is_miss for n in numbers) else 0


def _facts(settings: Settings, parts: Sequence[Part], runs: Runs, seconds: float) -> dict[str, Any]:
    lengths = ", ".join(
        f"{name} {d.alpha.size * d.info['thin']:.1e} (every {d.info['thin']} recorded)"
        for name, d in runs.finished.items()
    )
    notes = [] if nested_sampling.is_available(runs) else [nested_sampling.ABSENT]
    names = ("supermodel", "jax", "numpyro", "blackjax", "numpy", "scipy", *(("dynesty",) if not notes else ()))
    return {
        "settings": settings.name,
        "seed": settings.seed,
        "seconds": seconds,
        "steps": lengths,
        "figures": sum(len(p.pictures) for p in parts),
        "notes": notes,
        "versions": {name: _version(name) for name in names},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # run from a source tree
        return "not installed"


def write(parts: Sequence[Part], facts: dict[str, Any], out: Path) -> None:
    """The folder: figures/*.png, figures/*.svg, numbers.json, index.html; each file whole or not at all."""
    pictures = out / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    for picture in (p for part in parts for p in part.pictures):
        write_atomically(pictures / f"{picture.name}.png", png_of(picture.figure))
        write_atomically(pictures / f"{picture.name}.svg", picture.svg)
    write_atomically(
        out / "numbers.json", json.dumps(document(parts, facts), indent=1, ensure_ascii=False, allow_nan=False)
    )
    write_atomically(out / "index.html", page(parts, facts))


def document(parts: Sequence[Part], facts: dict[str, Any]) -> dict[str, Any]:
    """What numbers.json holds."""
    numbers = [n for part in parts for n in part.numbers]
    return {
        "schema": SCHEMA,
        "criterion": "agrees: |ours - exact| < 3 errors, or within tolerance, or within bounds; paper_agrees: exact "
        "within the paper's errors",
        **{k: v for k, v in facts.items() if not (isinstance(v, float) and not math.isfinite(v))},
        "summary": tally(numbers),
        "parts": [
            {"title": p.title, "numbers": [n.as_dict() for n in p.numbers], "figures": [q.name for q in p.pictures]}
            for p in parts
        ],
    }


def table(numbers: Sequence[Number]) -> str:
    """All numbers as plain text, and the counts."""
    sign = {True: "yes", False: "NO", None: ""}
    rows = [("row", "quantity", "paper", "exact", "ours", "evaluations", "ours agrees", "paper holds")]
    for n in numbers:
        paper = "" if n.paper is None else _cut(n.paper.text, 24)
        cost = f"{n.evaluations:,}" if n.evaluations else ""
        verdicts = " ".join(filter(None, (sign[n.agrees], n.peer and f"({n.peer})"))), sign[n.paper_agrees]
        rows.append((n.row, _cut(n.label, 74), paper, n.shown_exact(), n.shown(), cost, *verdicts))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.rjust if i in (3, 4, 5) else str.ljust for i in range(8)]
    lines = ["  ".join(side(c, w) for side, c, w in zip(sides, r, widths, strict=True)).rstrip() for r in rows]
    count = tally(numbers)
    lines.append(
        f"\n{count['numbers']} numbers; {count['agree']} of {count['checked']} that can be checked agree with the exact "
        f"value; {count['paper_agree']} of {count['paper']} values and statements of the paper hold."
        + (f" Of the peers' numbers {count['peers_agree']} of {count['peers']} agree." if count["peers"] else "")
    )
    return "\n".join(lines)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
