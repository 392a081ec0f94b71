"""A word while a run is on: one live line on a terminal or in a notebook, one plain line a minute in a log, or nothing.

`progress=None` shows the live line on a terminal and in Jupyter, and otherwise tells the logger "supermodel" (level INFO) once a
minute, which is silent unless the program listens; `True` writes plain lines to stderr where there is no terminal;
`False` means silence everywhere.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TextIO

from markupsafe import escape

from supermodel.engine.policy import CHAINS, DEAR, EFFORTS, FIRST_BLOCKS, STEPS, TYPICAL
from supermodel.estimation.estimate import Estimate, Evidences

logger = logging.getLogger("supermodel")
EVERY_LIVE, EVERY_LOG = 0.1, 60.0  # seconds
SLOW = 0.02  # seconds a call, from which the first line says what the whole run will take


class Watched(Protocol):
    """What is asked of a run; one that explores first also has `meter`, `models`, `probes`, `pilots`, `arms`, `is_weighed`."""

    began: float
    ended: str
    goals: Any

    @property
    def evaluations(self) -> int: ...

    def evidences(self) -> Evidences: ...


class Pace:
    """Seconds per likelihood call: the least over batches, since the first one of a traced model compiles it too."""

    def __init__(self):
        self.each, self.batches = math.inf, 0
        self.evaluations = self.before = 0  # `before`: what an earlier process did, from a checkpoint
        self.calling: float | None = None

    def note(self, run: Any) -> None:
        """Look at the meter again; it tells before each batch."""
        meter = getattr(run, "meter", None)
        if meter is None:
            return
        if self.calling is None:
            self.before = self.evaluations = meter.evaluations
            self.calling = meter.seconds_calling
        calls, seconds = meter.evaluations - self.evaluations, meter.seconds_calling - self.calling
        if calls > 0 and seconds > 0:  # gradients are counted but not timed
            self.each, self.batches = min(self.each, seconds / calls), self.batches + 1
        self.evaluations, self.calling = meter.evaluations, meter.seconds_calling

    def is_slow(self, run: Any) -> bool:
        """Whether a call is known to take long: compilation spoils one batch of each model at most."""
        return SLOW < self.each < math.inf and self.batches > len(run.models)


class Reporter:
    """Called before batches and between blocks; `close` leaves the terminal tidy, whatever has happened."""

    def __init__(self, live: bool, write: Callable[[str], Any], clock: Callable[[], float] = time.monotonic):
        self.live, self.write, self.clock = live, write, clock
        self.width, self.pace, self.is_foretold = 0, Pace(), False
        self.last = clock() if not live else -math.inf
        if live:
            self._show("preparing: the first calls of each model, and its compilation")

    def __call__(self, run: Watched) -> None:
        now, done = self.clock(), bool(run.ended)
        self.pace.note(run)
        first = not self.is_foretold and self.pace.is_slow(run)  # a long run says so at once, in a log as well
        if not (done or first) and now - self.last < (EVERY_LIVE if self.live else EVERY_LOG):
            return
        if done and not self.live and now - run.began < EVERY_LOG:
            return  # a short run needs no word in a log
        self.last, self.is_foretold = now, self.is_foretold or first
        line = run.status(now) if hasattr(run, "status") else status(run, now, self.pace)
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


class NotebookReporter(Reporter):
    """The live line as HTML below the cell, changed in place by its display id: no widget is needed."""

    def __init__(self, display: Callable[..., Any], clock: Callable[[], float] = time.monotonic):
        self.display = display
        self.handle: Any = None
        super().__init__(True, lambda text: None, clock)

    def _show(self, line: str) -> None:
        shown = {"text/html": f'<code style="opacity:.8">{escape(line)}</code>' if line else "", "text/plain": line}
        if self.handle is None:
            self.handle = self.display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)
        self.width = len(line)

    def close(self) -> None:
        """Wipe the line: what it told is in the result."""
        if self.width:
            self._show("")


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this, without importing anything that is not there already."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def reporter(progress: bool | None, stream: TextIO | None = None) -> Reporter | None:
    """What a run calls between blocks, or None for silence."""
    if progress is False:
        return None
    if stream is None and in_notebook():
        return NotebookReporter(sys.modules["IPython.display"].display)  # a kernel has imported it
    stream = sys.stderr if stream is None else stream
    if getattr(stream, "isatty", lambda: False)():
        return Reporter(True, lambda text: (stream.write(text), stream.flush()))
    if progress:
        return Reporter(False, lambda line: (stream.write(f"supermodel: {line}\n"), stream.flush()))
    return Reporter(False, logger.info)


def status(run: Watched, now: float, pace: Pace | None = None) -> str:
    """`exploring 'free' (2 of 2) · 812 evals · 95/s · 40 s left`, then `ln B 4.91 ± 0.12 → 0.10 · 8.2k evals · 37 s left`."""
    exploring = not run.ended and not getattr(run, "is_weighed", True)
    parts = [_phase(run) if exploring else _answer(run), f"{count(run.evaluations)} evals"]
    left = seconds_left(run, now, pace)
    if run.ended:
        parts.append(f"done in {short(now - run.began)}")
    elif exploring and pace is not None and pace.is_slow(run):
        calls = run.evaluations + left / pace.each
        parts.append(f"{pace.each:.2g} s a call, about {count(calls)} calls: {short(left)} left")
    else:
        parts += [f"{count(run.evaluations / (now - run.began))}/s"] if exploring and now > run.began else []
        parts += [f"{short(left)} left"] if math.isfinite(left) else []
    return " · ".join(parts)


def _phase(run: Any) -> str:
    """What is being done before there is an answer to show."""
    if not run.probes:
        return "first calls of each model"
    if len(run.pilots) < len(run.probes):
        return f"exploring {run.probes[len(run.pilots)][0].name!r} ({len(run.pilots) + 1} of {len(run.probes)})"
    return "first draws" if run.arms else "warm-up"


class Usual(NamedTuple):
    """Calls that a model of d parameters usually takes: to be explored, and for its part of the ladder."""

    explored: float
    ladder: float


# Of smooth posteriors of 1 to 12 parameters, measured: (calls, calls a parameter) of a thrifty look at a black box, at a
# likelihood with gradients, and then on the ladder. Posteriors with several modes take more, which shows as they are explored.
THRIFTY = {False: (150.0, 30.0, 350.0, 20.0), True: (400.0, 50.0, 800.0, 0.0)}
LONGER = (
    1.5  # times what an exploration has taken already: one that takes more than usual goes on for half as long again
)


def usual(run: Any, joint: Any) -> Usual:
    """What a model takes at the run's effort, before anything is known of it."""
    if run.effort_name != "thrifty" and not _will_spare(run):
        effort = EFFORTS[run.effort_name].level / EFFORTS["auto"].level
        return Usual(TYPICAL * effort, 2 * FIRST_BLOCKS * STEPS * CHAINS)
    d = getattr(joint, "dimension", 1)
    look, more_look, ladder, more_ladder = THRIFTY[bool(getattr(joint, "is_traceable", False))]
    return Usual(look + more_look * d, ladder + more_ladder * d)


def _will_spare(run: Any) -> bool:
    """Whether the clock is about to ask for thrift: while the first calls are made a run has no pace of its own yet."""
    meter = getattr(run, "meter", None)
    timed = getattr(meter, "seconds_calling", 0.0)
    return run.effort_name == "patient" and not run.pace and timed > DEAR * run.evaluations > 0.0


def expected(run: Any) -> float:
    """Likelihood calls that a run takes in all, about: what is usual, put right by what it has taken so far."""
    joints = [joint for joint, _ in run.probes] or [None] * len(run.models)
    each = [usual(run, joint) for joint in joints]
    done = [getattr(pilot, "evaluations", 0) for pilot in run.pilots]
    ladder = sum(one.ladder for one in each)
    # One model that was hard to explore tells of the next ones, which mostly hold it.
    harder = max((took / one.explored for took, one in zip(done, each, strict=False) if took), default=1.0)
    later = [max(harder, 0.5) * one.explored for one in each[len(done) :]]
    if later:
        known = sum(len(draws[0]) for _, draws in run.probes[len(done) + 1 :] if draws is not None)
        later[0] = max(later[0], LONGER * (run.evaluations - sum(done) - known))
        total = sum(done) + sum(later) + ladder
    else:
        total = sum(done) + max(ladder, LONGER * (run.evaluations - sum(done)))
    return max(min(total, run.meter.limit), run.evaluations)


def _answer(run: Watched) -> str:
    estimate, label = _least_certain(run.evidences())
    target = run.goals.target_error
    decimals = max(2, min(4, 1 - math.floor(math.log10(target)))) if target > 0 else 2
    if not math.isfinite(estimate.error):
        return f"{label} not known yet → {target:.{decimals}f}"
    told = f"{label} {estimate.value:.{decimals}f} ± {estimate.error:.{decimals}f} → {target:.{decimals}f}"
    return f"{told} · posteriors → ESS {run.goals.min_ess:.0f}" if _deepens(run, estimate) else told


def _deepens(run: Watched, estimate: Estimate) -> bool:
    """Whether ln B is known, and more draws are made for the posteriors: nobody knows how many it takes."""
    return not run.ended and run.goals.min_ess is not None and estimate.error <= run.goals.target_error


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


def seconds_left(run: Any, now: float, pace: Pace | None = None) -> float:
    r"""The error falls as $1/\sqrt{n}$: what the draws took, times $(\sigma/\sigma_{target})^2 - 1$; at most the limits.

    Before there are draws: the calls that are still expected, at the pace so far.
    """
    spent, meter = now - run.began, getattr(run, "meter", None)
    pace = Pace() if pace is None else pace
    done = max(run.evaluations - pace.before, 1)  # by this process
    if not getattr(run, "is_weighed", True):
        left = min(spent / done, pace.each) * (expected(run) - run.evaluations) if run.evaluations else math.inf
    else:
        worst = _least_certain(run.evidences())[0]
        error = worst.error
        drawn = sum(arm.edge.evaluations for arm in getattr(run, "arms", ())) or run.evaluations
        more = max((error / run.goals.target_error) ** 2 - 1.0, 0.0)
        left = spent / done * drawn * more if math.isfinite(error) and not _deepens(run, worst) else math.inf
    if run.goals.max_seconds is not None:
        left = min(left, max(run.goals.max_seconds - spent, 0.0))
    most = run.goals.max_evaluations if meter is None else meter.limit
    if most is not None and run.evaluations > 0:
        left = min(left, spent / done * max(most - run.evaluations, 0.0))
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
