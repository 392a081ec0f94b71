"""A word while a run is on: live on a terminal, a line a minute in a log, or silence."""

import io
import logging
from dataclasses import dataclass, field

import numpy as np
import pytest

from supermodel.engine.progress import Reporter, count, reporter, seconds_left, short, status
from supermodel.estimation.estimate import Evidences


@dataclass
class Goals:
    target_error: float = 0.1
    max_seconds: float | None = None
    max_evaluations: int | None = None


@dataclass
class Run:
    value: float = 4.91
    error: float = 0.12
    evaluations: int = 8_200
    began: float = 0.0
    ended: str = ""
    goals: Goals = field(default_factory=Goals)
    names: tuple = ("a", "b")

    def evidences(self):
        k = len(self.names)
        return Evidences(self.names, np.array([self.value, 0.0])[:k], np.diag([self.error**2, 0.0])[:k, :k], True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_line_says_answer_target_cost_and_time_left():
    # (0.12 / 0.1)^2 - 1 = 0.44 of what has been spent is still to come.
    assert status(Run(), now=84.0) == "ln B 4.91 ± 0.12 → 0.10 · 8.2k evals · 37 s left"
    assert status(Run(ended="target"), now=84.0).endswith("done in 84 s")
    assert status(Run(error=np.inf), 84.0) == "ln B not known yet → 0.10 · 8.2k evals"
    assert status(Run(names=("a",)), 84.0).startswith("ln Z 4.91 ± 0.12")


def test_time_left_respects_the_limits():
    assert seconds_left(Run(error=1.0), 10.0) == pytest.approx(990.0)
    assert seconds_left(Run(error=1.0, goals=Goals(max_seconds=30.0)), 10.0) == pytest.approx(20.0)
    assert seconds_left(Run(error=1.0, goals=Goals(max_evaluations=16_400)), 10.0) == pytest.approx(10.0)
    assert seconds_left(Run(error=0.05), 10.0) == 0.0


def test_a_terminal_shows_one_line_that_is_wiped_at_the_end():
    stream = Terminal()
    report = reporter(None, stream)
    assert "preparing" in stream.getvalue()
    report(Run())
    report(Run(ended="target"))
    shown = stream.getvalue()
    assert "\n" not in shown and "ln B 4.91 ± 0.12" in shown
    assert shown.rsplit("\r", 2)[1].strip() == "" and shown.endswith("\r")
    before = shown
    report.close()
    assert stream.getvalue() == before


def test_a_log_gets_one_plain_line_a_minute():
    lines, now = [], [0.0]
    report = Reporter(False, lines.append, clock=lambda: now[0])
    for now[0] in np.arange(0.0, 200.0, 1.0):
        report(Run())
    assert len(lines) == 3 and all("\r" not in line for line in lines)
    now[0] = 201.0
    report(Run(ended="target"))
    assert lines[-1].endswith("done in 3 min")


def test_a_short_run_leaves_no_line_in_a_log():
    stream = io.StringIO()
    report = reporter(True, stream)
    report(Run(began=report.clock()))
    report(Run(began=report.clock(), ended="target"))
    assert stream.getvalue() == ""


def test_without_a_terminal_the_logger_is_told(caplog):
    report = reporter(None, io.StringIO())
    report.last = -1e9
    with caplog.at_level(logging.INFO, logger="supermodel"):
        report(Run())
    assert "ln B 4.91" in caplog.text and caplog.records[0].name == "supermodel"


def test_silence_is_silence(capfd, caplog):
    assert reporter(False, Terminal()) is None
    assert capfd.readouterr() == ("", "") and caplog.text == ""


def test_numbers_are_short():
    assert [count(n) for n in (812, 8_234, 3_100_000, 2e9)] == ["812", "8.2k", "3.1M", "2.0G"]
    assert [short(s) for s in (37, 240, 9000)] == ["37 s", "4 min", "2.5 h"]
