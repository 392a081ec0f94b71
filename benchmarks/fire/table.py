"""The table of the trial from its files: right, flagged, silently wrong, evaluations and seconds, for each program."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import fields
from pathlib import Path

import numpy as np

from benchmarks.fire import CATALOGUE
from benchmarks.fire.programs import Answer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- fire:begin -->", "<!-- fire:end -->"
COLUMNS = (("supermodel", "traced"), ("supermodel", "black"), ("dynesty", "traced"), ("nautilus", "traced"))
TITLES = {("supermodel", "traced"): "traced", ("supermodel", "black"): "black box", ("dynesty", "traced"): "dynesty",
          ("nautilus", "traced"): "nautilus"}  # fmt: skip
MARKS = {"right": "✓", "flagged": "⚑", "wrong": "✗", "none": "–"}


def answer_of(record: dict) -> Answer:
    values = {field.name: record[field.name] for field in fields(Answer)}
    return Answer(**{name: math.nan if value is None else value for name, value in values.items()})


def load(results: Path) -> dict[tuple[str, str, str], list[Answer]]:
    """{(problem, program, kind): answers by seed}."""
    found = defaultdict(list)
    for path in sorted(results.glob("*/*.json")):
        record = json.loads(path.read_text())
        if record["problem"] in CATALOGUE:
            found[record["problem"], record["program"], record["kind"]].append(answer_of(record))
    return found


def thousands(n: float) -> str:
    return f"{n / 1e6:.1f} M" if n >= 1e6 else f"{n / 1e3:.1f} k"


def cell(answers: list[Answer]) -> str:
    """E.g. "✓✓⚑ 12.3 k": one mark for each seed, and the median of the evaluations."""
    if not answers:
        return ""
    calls = [a.evaluations for a in answers if a.evaluations]
    return "".join(MARKS[a.outcome] for a in answers) + (f" {thousands(np.median(calls))}" if calls else "")


def summary(found: dict) -> str:
    lines = [
        "| program | runs | right | flagged | silently wrong | no answer | evaluations | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for column in COLUMNS:
        answers = [a for (_, *rest), group in found.items() if tuple(rest) == column for a in group]
        if answers:
            count = Counter(a.outcome for a in answers)
            shares = " | ".join(f"{count[o]} ({count[o] / len(answers):.0%})" for o in MARKS)
            calls = thousands(np.median([a.evaluations for a in answers]))
            seconds = f"{np.median([a.seconds for a in answers]):.0f}"
            title = f"supermodel, {TITLES[column]}" if column[0] == "supermodel" else TITLES[column]
            lines.append(f"| {title} | {len(answers)} | {shares} | {calls} | {seconds} |")
    return "\n".join(lines)


def beaten(found: dict) -> str:
    """Problems on which a peer is right in every run and we are silently wrong in one; of how many that both have run."""
    both = [
        name
        for name in CATALOGUE
        if any((name, *column) in found for column in COLUMNS[:2])
        and any((name, *column) in found for column in COLUMNS[2:])
    ]
    names = [
        name
        for name in both
        if any(a.outcome == "wrong" for column in COLUMNS[:2] for a in found.get((name, *column), []))
        and any(
            (group := found.get((name, *column), [])) and all(a.outcome == "right" for a in group)
            for column in COLUMNS[2:]
        )
    ]
    return f"Silently wrong where a peer is right, of {len(both)} problems run by both: {', '.join(names) or 'none'}."


def page(results: Path) -> str:
    """The summary, where a peer is right and we are not, and a row for each problem."""
    found = load(results)
    lines = [
        summary(found),
        "",
        beaten(found),
        "",
        "| problem | trouble | exact | " + " | ".join(TITLES.values()) + " |",
    ]
    lines.append("|---" * (3 + len(COLUMNS)) + "|")
    for name, problem in CATALOGUE.items():
        cells = [cell(found.get((name, *column), [])) for column in COLUMNS]
        if any(cells):
            lines.append(f"| {name} | {problem.trouble} | {problem.truth:.3f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(results: Path) -> None:
    """Into the page of the documentation, between its two marks."""
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + page(results) + "\n" + END + rest.split(END)[1])
