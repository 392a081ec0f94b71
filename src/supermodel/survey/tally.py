"""How far a survey is: data sets done, how many a second, how many were flagged, and the time left."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from supermodel.engine.progress import count, short
from supermodel.survey.job import Outcome
from supermodel.verdict.verdict import Verdict


def is_flagged(outcome: Outcome) -> bool:
    """Whether there is no answer that can be used."""
    return not Verdict(outcome.level).is_reliable


@dataclass(eq=False)
class Tally:
    """What the progress line of a survey is made of."""

    total: int | None = None
    began: float = field(default_factory=time.monotonic)
    done: int = 0
    earlier: int = 0  # of them by an earlier process
    flagged: int = 0
    ended: str = ""

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            self.done += 1
            self.flagged += is_flagged(outcome)

    def skip(self, n: int, flagged: int) -> None:
        """`n` data sets that are there already, of which so many are flagged."""
        self.done += n
        self.earlier += n
        self.flagged += flagged

    def status(self, now: float) -> str:
        """`1.5k of 10.0k data sets · 210/s · 40 s left · 3 flagged`."""
        spent = max(now - self.began, 1e-9)
        pace = (self.done - self.earlier) / spent
        of = "" if self.total is None else f" of {count(self.total)}"
        parts = [f"{count(self.done)}{of} data sets", f"{pace:.3g}/s"]
        if self.ended:
            parts.append(f"done in {short(spent)}")
        elif self.total is not None and pace > 0:
            parts.append(f"{short((self.total - self.done) / pace)} left")
        return " · ".join([*parts, f"{self.flagged} flagged"])
