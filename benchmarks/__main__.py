"""`python -m benchmarks [name ...]`: run the claims, print them, and write them into docs/benchmarks.md."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.calibration import run, summary
from benchmarks.several_modes import several_modes
from benchmarks.targets import ALL, Row

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
JOBS = {**ALL, "several_modes": several_modes}


def number(x: float, digits: int = 4) -> str:
    return "" if math.isnan(x) else f"{x:.{digits}g}"


def line(row: Row) -> str:
    estimate = "" if math.isnan(row.estimate) else f"{number(row.estimate, 6)} ± {number(row.error, 2)}"
    holds = {True: "yes", False: "**no**", None: ""}[row.holds]
    evaluations = f"{row.evaluations:,}".replace(",", " ") if row.evaluations else ""
    cells = (row.what, number(row.exact, 8), estimate, evaluations, f"{row.seconds:.1f}", row.verdict, row.claim, holds)
    return "| " + " | ".join(cells) + " |"


def main(names: list[str]) -> int:
    rows: list[Row] = []
    for name in names or list(JOBS):
        if name == "calibration":
            continue
        for found in JOBS[name]():
            rows.append(found)
            print(line(found), flush=True)
    text = ""
    if not names or "calibration" in names:
        text = summary(run(0, 200, vectorized=True) + run(200, 230, vectorized=False))
        print(text)
    if not names:
        write(rows, text)
    return 0 if all(row.holds is not False for row in rows) else 1


def write(rows: list[Row], calibration: str) -> None:
    """Into the page of the documentation, and as data beside this file."""
    (HERE / "results.json").write_text(
        json.dumps({"rows": [asdict(r) for r in rows], "calibration": calibration}, indent=1)
    )
    header = "| problem | exact ln B | ours | evaluations | seconds | verdict | claim | holds |\n|---|---|---|---|---|---|---|---|"
    table = "\n".join([header, *map(line, rows), "", "Calibration:", "", "```text", calibration, "```"])
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
