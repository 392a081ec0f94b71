"""How the rows of numbers.toml are filled: an experiment computes, its rows say what of."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from supermodel.estimation.estimate import Estimate
from supermodel_paper.examples import LINEAR, SINE
from supermodel_paper.numbers import Number, Part, Picture, Quoted, quoted

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    (resources.files("supermodel_paper") / "numbers.toml").read_text("utf-8")
)
FIGURES = tuple(name for section in TABLE.values() for name in section.get("figures", ()))
ANSWERS = {"linear": LINEAR, "sine": SINE}
_KEYS = {
    *("ours", "at", "cases", "row", "label", "exact", "tolerance", "bounds"),
    *("quoted", "paper", "holds", "remark", "otherwise", "decimals", "optional"),
}


@dataclass(frozen=True)
class Ours:
    """What was found for a row, and what only the run knows of it."""

    value: float
    error: float | None = None
    exact: float | None = None
    bounds: tuple[float, float] | None = None
    evaluations: int | None = None
    holds: bool | None = None
    words: Mapping[str, Any] = field(default_factory=dict)  # for the braces of label, paper and remark
    peer: str = ""  # the program that found it, where it is none of ours


def ours(estimate: Estimate, exact: float | None = None, evaluations: int | None = None, **words: Any) -> Ours:
    """An estimate, as what was found."""
    return Ours(estimate.value, estimate.error, exact, evaluations=evaluations, words=words)


@dataclass(frozen=True, eq=False)
class Found:
    """What an experiment computes: {ours: a float, an `Ours`, a list of them, or a function of `at`}, its figures and words."""

    numbers: Mapping[str, Any]
    figures: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Any] = field(default_factory=dict)


EXPERIMENTS: dict[str, Callable[[Any], Part]] = {}


def experiment(compute: Callable[[Any], Found]) -> Callable[[Any], Part]:
    """The experiment of the section of the table that has the function's name."""

    @functools.wraps(compute)
    def run(runs: Any) -> Part:
        return part(TABLE[compute.__name__], compute(runs))

    EXPERIMENTS[compute.__name__] = run
    return run


def part(section: Mapping[str, Any], found: Found) -> Part:
    """A section filled: every row that is not optional has its number, every number its row."""
    rows = section["numbers"]
    if stray := set(found.numbers) - {row["ours"] for row in rows}:
        raise KeyError(f"{section['title']}: no row for {sorted(stray)}")
    numbers = [
        number(row, one, exact, {**found.words, "at": at})
        for row in rows
        if row["ours"] in found.numbers or not row.get("optional")
        for one, at, exact in _each(row, found.numbers[row["ours"]])
    ]
    pictures = [
        Picture(name, title, caption.format(**found.words), found.figures[name])
        for name, (title, caption) in section.get("figures", {}).items()
    ]
    return Part(section["title"], section.get("text", "").format(**found.words), numbers, pictures)


def _each(row: Mapping[str, Any], value: Any) -> Iterator[tuple[Ours, Any, Any]]:
    """What was found, where, and the exact value there, for every number of a row."""
    for at, exact in row.get("cases", [(row.get("at"), row.get("exact"))]):
        found = value(at) if callable(value) else value
        for one in found if isinstance(found, list) else [found]:
            yield one if isinstance(one, Ours) else Ours(float(one)), at, exact


def number(row: Mapping[str, Any], found: Ours, exact: float | str | None, words: Mapping[str, Any]) -> Number:
    """One row with what was found."""
    if unknown := set(row) - _KEYS:
        raise KeyError(f"{row['label']}: unknown {sorted(unknown)}")
    words = {**words, **found.words}
    says = _paper(row, found, words)
    denied = says is not None and says.holds is False and "otherwise" in row
    return Number(
        row["row"],
        row["label"].format(**words),
        float(found.value),
        found.error,
        found.exact if exact is None else ANSWERS[exact] if isinstance(exact, str) else float(exact),
        tolerance=row.get("tolerance", 0.0),
        bounds=found.bounds or (tuple(row["bounds"]) if "bounds" in row else None),
        paper=says,
        evaluations=found.evaluations,
        remark=row["otherwise"] if denied else row.get("remark", "").format(**words),
        decimals=row.get("decimals"),
        peer=found.peer,
    )


def _paper(row: Mapping[str, Any], found: Ours, words: Mapping[str, Any]) -> Quoted | None:
    holds = row.get("holds", found.holds)
    if "quoted" not in row:
        return Quoted(row["paper"].format(**words), holds=holds) if "paper" in row else None
    value, plus, minus = row["quoted"]
    return Quoted(row["paper"], value, plus, minus) if "paper" in row else quoted(value, plus, minus)
