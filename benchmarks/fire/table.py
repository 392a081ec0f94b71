"""The table of the trial from its files: right, flagged, silently wrong, evaluations and seconds, for each program."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from benchmarks.fire.catalogues import Trial
from benchmarks.fire.programs import Answer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
COLUMNS = (("supermodel", "traced"), ("supermodel", "black"), ("dynesty", "traced"), ("nautilus", "traced"))
TITLES = {("supermodel", "traced"): "traced", ("supermodel", "black"): "black box", ("dynesty", "traced"): "dynesty",
          ("nautilus", "traced"): "nautilus"}  # fmt: skip
MARKS = {"right": "✓", "flagged": "⚑", "wrong": "✗", "none": "–"}


def answer_of(record: dict) -> Answer:
    values = {field.name: record[field.name] for field in fields(Answer)}
    return Answer(**{name: math.nan if value is None else value for name, value in values.items()})


def recorded(results: Path) -> dict[tuple[str, str, str, int], dict]:
    """{(program, problem, kind, seed): the record of that run}."""
    lines = results.read_text().splitlines() if results.exists() else []
    records = [json.loads(line) for line in lines]
    return {(r["program"], r["problem"], r["kind"], r["seed"]): r for r in records}


def load(trial: Trial, results: Path) -> dict[tuple[str, str, str], list[Answer]]:
    """{(problem, program, kind): answers by seed}."""
    found = defaultdict(list)
    for (program, problem, kind, _), record in sorted(recorded(results).items()):
        if problem in trial.names:
            found[problem, program, kind].append(answer_of(record))
    return found


def thousands(n: float) -> str:
    return f"{n / 1e6:.1f} M" if n >= 1e6 else f"{n / 1e3:.1f} k"


def cell(answers: list[Answer]) -> str:
    """E.g. "✓✓⚑ 12.3 k": one mark for each seed, and the median of the evaluations."""
    if not answers:
        return ""
    calls = [a.evaluations for a in answers if a.evaluations]
    return "".join(MARKS[a.outcome] for a in answers) + (f" {thousands(np.median(calls))}" if calls else "")


def is_close(answer: Answer) -> bool:
    """Within 4 errors or 0.05 of the truth, whatever the verdict says."""
    return replace(answer, level="ok").outcome == "right"


def words(answers: list[Answer]) -> str:
    """What the verdicts are worth: the cover of `caution`, and how many refusals held the right value."""
    cautious = [a for a in answers if a.level == "caution"]
    refused = [a for a in answers if a.level in ("fail", "refused")]
    covered = sum(abs(a.value - a.truth) <= 2 * a.error for a in cautious)
    return (
        f"`caution`: {len(cautious)} answers, of which {covered} lie within 2 errors. "
        f"`fail`: {len(refused)}, of which {sum(map(is_close, refused))} held the right value."
    )


def summary(found: dict) -> str:
    lines = [
        "| program | runs | right | flagged | silently wrong | no answer | evaluations | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ours = []
    for column in COLUMNS:
        answers = [a for (_, *rest), group in found.items() if tuple(rest) == column for a in group]
        ours += answers if column[0] == "supermodel" else []
        if answers:
            count = Counter(a.outcome for a in answers)
            shares = " | ".join(f"{count[o]} ({count[o] / len(answers):.0%})" for o in MARKS)
            calls = thousands(np.median([a.evaluations for a in answers]))
            seconds = f"{np.median([a.seconds for a in answers]):.0f}"
            title = f"supermodel, {TITLES[column]}" if column[0] == "supermodel" else TITLES[column]
            lines.append(f"| {title} | {len(answers)} | {shares} | {calls} | {seconds} |")
    lines += ["", words(ours)] if ours else []
    return "\n".join(lines)


def beaten(trial: Trial, found: dict) -> str:
    """Problems on which a peer is right in every run and we are silently wrong in one; of how many that both have run."""
    both = [
        name
        for name in trial.names
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


def page(trial: Trial, results: Path) -> str:
    """The summary, of the families that were held out by themselves; where a peer is right and we are not; every problem."""
    found = load(trial, results)
    lines = []
    if trial.tuned:
        parts = {"Held out": lambda name: name not in trial.tuned, "Tuned on": lambda name: name in trial.tuned}
        for title, belongs in parts.items():
            lines += [f"{title}:", "", summary({key: group for key, group in found.items() if belongs(key[0])}), ""]
    else:
        lines += [summary(found), ""]
    lines += [beaten(trial, found), "", "| problem | trouble | exact | " + " | ".join(TITLES.values()) + " |"]
    lines.append("|---" * (3 + len(COLUMNS)) + "|")
    for name in trial.names:
        groups = [found.get((name, *column), []) for column in COLUMNS]
        if any(groups):
            truths = {f"{a.truth:.3f}" for group in groups for a in group}
            exact = truths.pop() if len(truths) == 1 else "by seed"
            cells = " | ".join(cell(group) for group in groups)
            lines.append(f"| {name} | {trial.problem(name, 0).trouble} | {exact} | {cells} |")
    return "\n".join(lines)


def write(trial: Trial) -> None:
    """Into the page of the documentation, between its two marks."""
    begin, end = f"<!-- {trial.name}:begin -->", f"<!-- {trial.name}:end -->"
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(before + begin + "\n" + page(trial, trial.results) + "\n" + end + rest.split(end)[1])
