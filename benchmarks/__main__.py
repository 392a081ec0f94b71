"""`python -m benchmarks [name ...]`: run the claims, print them, and write them into docs/benchmarks.md.

Results are kept per name in results.json, so that one claim can be measured anew without the others.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.calibration import run, summary
from benchmarks.counts.trial import main as counts
from benchmarks.dimension import main as dimension
from benchmarks.fire.trial import main as fire
from benchmarks.mixtures import main as mixtures
from benchmarks.nonnormal import main as nonnormal
from benchmarks.peers.run import main as peers
from benchmarks.published import main as published
from benchmarks.scheduler import main as scheduler
from benchmarks.several_modes import several_modes
from benchmarks.sky.hierarchies import main as hierarchies
from benchmarks.survey import main as survey
from benchmarks.symmetries import main as symmetries
from benchmarks.targets import ALL, Row, logistic_1000

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
HEADER = "| problem | exact ln B | ours | evaluations | seconds | verdict | claim | holds |\n|---|---|---|---|---|---|---|---|"
JOBS = {**ALL, "several_modes": several_modes, "logistic_1000": logistic_1000}
BY_NAME_ONLY = {"logistic_1000"}


def number(x: float, digits: int = 4) -> str:
    return "" if math.isnan(x) else f"{x:.{digits}g}"


def line(row: Row) -> str:
    estimate = "" if math.isnan(row.estimate) else f"{number(row.estimate, 7)} ± {number(row.error, 2)}"
    holds = {True: "yes", False: "**no**", None: ""}[row.holds]
    evaluations = f"{row.evaluations:,}".replace(",", " ") if row.evaluations else ""
    cells = (row.what, number(row.exact, 8), estimate, evaluations, f"{row.seconds:.1f}", row.verdict, row.claim, holds)
    return "| " + " | ".join(cells) + " |"


def main(names: list[str]) -> int:
    apart = {
        "fire": fire, "sky": partial(fire, trial="sky"), "mixtures": mixtures,
        "nonnormal": nonnormal, "published": published, "survey": survey,
        "scheduler": scheduler, "dimension": dimension, "hierarchies": hierarchies, "symmetries": symmetries,
        "counts": counts,
    }  # fmt: skip
    if names and names[0] in apart:
        return apart[names[0]](names[1:])
    if names[:1] == ["peers"]:
        return peers(names[1:])
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    good = True
    for name in names or [*(job for job in JOBS if job not in BY_NAME_ONLY), "calibration"]:
        if name == "calibration":
            kept[name] = summary(run(0, 200, vectorized=True) + run(200, 220, vectorized=False))
            print(kept[name], flush=True)
        else:
            rows = JOBS[name]()
            print("\n".join(map(line, rows)), flush=True)
            good &= all(row.holds is not False for row in rows)
            kept[name] = [asdict(row) for row in rows]
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
        write(kept)
    return 0 if good else 1


def write(kept: dict) -> None:
    """Into the page of the documentation, in the order of the jobs."""
    rows = [line(Row(**row)) for name in JOBS for row in kept.get(name, [])]
    text = "\n".join([HEADER, *rows])
    if "calibration" in kept:
        text += "\n\nCalibration:\n\n```text\n" + kept["calibration"] + "\n```"
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
