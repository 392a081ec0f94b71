"""A word while a run is on: one live line on a terminal, one plain line a minute in a log, or nothing.

`progress=None` shows the live line on a terminal and otherwise tells the logger "supermodel" (level INFO) once a
minute, which is silent unless the program listens; `True` writes plain lines to stderr where there is no terminal;
`False` means silence everywhere.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, TextIO

from supermodel.estimation.estimate import Estimate, Evidences

logger = logging.getLogger("supermodel")
EVERY_LIVE, EVERY_LOG = 0.1, 60.0  # seconds


class Watched(Protocol):
    """What is asked of a run."""

    began: float
    ended: str
    goals: Any

    @property
    def evaluations(self) -> int: ...

    def evidences(self) -> Evidences: ...


class Reporter:
    """Called between blocks with the run; `close` leaves the terminal tidy, whatever has happened."""

    def __init__(self, live: bool, write: Callable[[str], Any], clock: Callable[[], float] = time.monotonic):
        self.live, self.write, self.clock = live, write, clock
        self.width = 0
        self.last = clock() if not live else -math.inf
        if live:
            self._show("preparing: a short run of each model, and its compilation")

    def __call__(self, run: Watched) -> None:
        now, done = self.clock(), bool(run.ended)
        if now - self.last < (EVERY_LIVE if self.live else EVERY_LOG) and not done:
            return
        if done and not self.live and now - run.began < EVERY_LOG:
            return  # a short run needs no word in a log
        self.last = now
        line = status(run, now)
        if self.live:
            self._show(line)
        else:
            self.write(line)
        if done:
            self.close()

    def _show(self, line: str) -> None:
        self.write("\r" + line + " " * max(self.width - len(line), 0))
        self.width = len(line)

    def close(self) -> None:
        """Wipe the live line: what it told is in the result."""
        if self.live and self.width:
            self.write("\r" + " " * self.width + "\r")
            self.width = 0


def reporter(progress: bool | None, stream: TextIO | None = None) -> Reporter | None:
    """What a run calls between blocks, or None for silence."""
    if progress is False:
        return None
    stream = sys.stderr if stream is None else stream
    if getattr(stream, "isatty", lambda: False)():
        return Reporter(True, lambda text: (stream.write(text), stream.flush()))
    if progress:
        return Reporter(False, lambda line: (stream.write(f"supermodel: {line}\n"), stream.flush()))
    return Reporter(False, logger.info)


def status(run: Watched, now: float) -> str:
    """`ln B 4.91 ± 0.12 → 0.10 · 8.2k evals · 37 s left`."""
    parts = [_answer(run), f"{count(run.evaluations)} evals"]
    left = seconds_left(run, now)
    if run.ended:
        parts.append(f"done in {short(now - run.began)}")
    elif math.isfinite(left):
        parts.append(f"{short(left)} left")
    return " · ".join(parts)


def _answer(run: Watched) -> str:
    estimate, label = _least_certain(run.evidences())
    target = run.goals.target_error
    decimals = max(2, min(4, 1 - math.floor(math.log10(target)))) if target > 0 else 2
    if not math.isfinite(estimate.error):
        return f"{label} not known yet → {target:.{decimals}f}"
    return f"{label} {estimate.value:.{decimals}f} ± {estimate.error:.{decimals}f} → {target:.{decimals}f}"


def _least_certain(evidences: Evidences) -> tuple[Estimate, str]:
    """ln B of the best model against the one whose ln B is least certain; for a single model ln Z."""
    names = evidences.names
    if len(names) == 1:
        return evidences.log_evidence(names[0]), "ln Z"
    best = max(names, key=lambda n: _finite_or_least(evidences.values[evidences.index(n)]))
    others = [evidences.log_bayes_factor(best, n) for n in names if n != best]
    return max(others, key=lambda e: e.error), "ln B"


def _finite_or_least(value: float) -> float:
    return float(value) if math.isfinite(value) else -math.inf


def seconds_left(run: Watched, now: float) -> float:
    r"""The error falls as $1/\sqrt{n}$: time spent, times $(\sigma/\sigma_{target})^2 - 1$; at most the limits."""
    estimate, _ = _least_certain(run.evidences())
    spent = now - run.began
    left = (
        spent * max((estimate.error / run.goals.target_error) ** 2 - 1.0, 0.0)
        if math.isfinite(estimate.error)
        else math.inf
    )
    if getattr(run.goals, "max_seconds", None) is not None:
        left = min(left, max(run.goals.max_seconds - spent, 0.0))
    most = getattr(run.goals, "max_evaluations", None)
    if most is not None and run.evaluations > 0:
        left = min(left, spent * max(most / run.evaluations - 1.0, 0.0))
    return left


def count(n: float) -> str:
    """`812`, `8.2k`, `3.1M`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.1f}{letter}"
    return f"{n:.0f}"


def short(seconds: float) -> str:
    """`37 s`, `4 min`, `2.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
