"""What the runs of one program on one problem amount to: cost, claimed error, true error, and the two figures of merit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.problems import Question, questions
from benchmarks.peers.programs import PROGRAMS

WANTED = 0.1  # the error to which seconds refer


@dataclass(frozen=True)
class Cell:
    """One program on one problem. `error` is the larger of what it claims and the root mean square of its true errors."""

    problem: str
    program: str
    status: str  # "done", "cut", "failed", "not available", "not tried", "not asked"
    runs: int = 0
    claimed: float = math.nan
    miss: float = math.nan  # root mean square of estimate - truth over ln B and seeds
    evaluations: float = math.nan
    gradients: float = math.nan
    seconds: float = math.nan
    limit: float = math.nan
    flagged: int = 0  # runs that told that they are not to be trusted
    note: str = ""

    @property
    def error(self) -> float:
        return self.miss if math.isnan(self.claimed) else max(self.claimed, self.miss)

    @property
    def merit(self) -> float:
        """Evaluations x error^2: what an answer of unit error would cost. Does not depend on how long a run was."""
        return self.evaluations * self.error**2

    @property
    def is_scaled(self) -> bool:
        return self.error > WANTED

    @property
    def seconds_to_wanted(self) -> float:
        """As measured where the answer is that good; otherwise longer by (error / 0.1)^2. Never shorter: nobody stopped earlier."""
        return self.seconds * max(self.error / WANTED, 1.0) ** 2

    @property
    def is_wrong(self) -> bool:
        """Off by more than four of its own errors, and by 0.05 at least."""
        return self.miss > max(4 * self.claimed, 0.05) if not math.isnan(self.claimed) else False


def miss_of(question: Question, values: dict[str, float]) -> float:
    exact = question.problem.log_evidences
    first = next(iter(exact))
    return float(np.sqrt(np.mean([(value - exact[first] + exact[name]) ** 2 for name, value in values.items()])))


def mean_square(numbers) -> float:
    return float(np.sqrt(np.mean(np.square(list(numbers)))))


def cell(question: Question, program: str, records: list[dict]) -> Cell:
    name = question.problem.name
    if question.programs and program not in question.programs:
        return Cell(name, program, "not asked")
    if not records:
        return Cell(name, program, "not tried")
    done = [record for record in records if record["status"] == "done"]
    if not done:
        last = records[-1]
        cost = {key: float(last.get(key) or math.nan) for key in ("evaluations", "seconds", "limit")}
        return Cell(name, program, last["status"], note=last.get("note", ""), **cost)
    claims = [record["claimed"] for record in done]
    medians = {
        key: float(np.median([r[key] for r in done])) for key in ("evaluations", "gradients", "seconds", "limit")
    }
    return Cell(
        name, program, "done", len(done), math.nan if None in claims else mean_square(claims),
        mean_square(miss_of(question, record["values"]) for record in done),
        flagged=sum(record["level"] in ("fail", "limit") for record in done), **medians,
    )  # fmt: skip


def cells(records: dict[tuple[str, str, int], dict]) -> dict[str, dict[str, Cell]]:
    """{problem: {program: cell}} of the problems that anyone was asked."""
    asked = {problem for problem, _, _ in records}
    return {
        name: {
            program: cell(
                question, program, [r for (p, who, _), r in sorted(records.items()) if (p, who) == (name, program)]
            )
            for program in PROGRAMS
        }
        for name, question in questions().items()
        if name in asked
    }


OURS = ("supermodel", "supermodel_fine", "supermodel_black")


def rivals(ours: str) -> list[str]:
    """With gradients ours is held against everyone; without, against those that need none either."""
    return [
        n for n, program in PROGRAMS.items() if n not in OURS and (PROGRAMS[ours].gradients or not program.gradients)
    ]


def lead(row: dict[str, Cell], ours: str) -> tuple[float, str]:
    """How many times better ours is than the best rival that answered, and who that is; NaN where there is none."""
    mine = row[ours]
    ready = [row[name] for name in rivals(ours) if row[name].status == "done" and not row[name].is_wrong]
    if mine.status != "done" or not ready:
        return math.nan, ""
    best = min(ready, key=lambda c: c.merit)
    return best.merit / mine.merit, best.program
