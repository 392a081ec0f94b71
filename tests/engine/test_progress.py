"""A word while a run is on: live on a terminal, a line a minute in a log, or silence."""

import io
import logging
import sys
import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from supermodel.engine.policy import CHAINS, FIRST_BLOCKS, PATIENCE, STEPS, TYPICAL
from supermodel.engine.progress import (
    NotebookReporter,
    Pace,
    Reporter,
    count,
    expected,
    in_notebook,
    reporter,
    seconds_left,
    short,
    status,
)  # fmt: skip
from supermodel.estimation.estimate import Evidences


@dataclass
class Goals:
    target_error: float = 0.1
    max_seconds: float | None = None
    max_evaluations: int | None = None
    min_ess: float | None = None


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


@dataclass
class Exploring(Run):
    """A run of two models before its first estimate."""

    evaluations: int = 812
    explore: str = "auto"
    probes: list = field(default_factory=lambda: [(SimpleNamespace(name=name), None) for name in ("a", "b")])
    pilots: list = field(default_factory=list)
    arms: list = field(default_factory=list)
    is_weighed: bool = False
    seconds_calling: float = 0.0
    limit: int = PATIENCE

    @property
    def effort_name(self):
        return self.explore

    @property
    def models(self):
        return dict.fromkeys(self.names)

    @property
    def meter(self):
        return self

    def evidences(self):
        raise AssertionError("nothing is known yet")


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


def test_a_run_that_explores_says_what_it_does_and_how_fast():
    calls = expected(Exploring())
    assert calls == 2 * (TYPICAL + 2 * FIRST_BLOCKS * STEPS * CHAINS)
    left = short((calls - 812) / 406)
    assert status(Exploring(), 2.0) == f"exploring 'a' (1 of 2) · 812 evals · 406/s · {left} left"
    assert status(Exploring(pilots=[0]), 2.0).startswith("exploring 'b' (2 of 2)")
    assert status(Exploring(pilots=[0, 0]), 2.0).startswith("warm-up · ")
    assert status(Exploring(pilots=[0, 0], arms=[0]), 2.0).startswith("first draws · ")
    assert status(Exploring(evaluations=0, probes=[]), 0.0) == "first calls of each model · 0 evals"
    assert expected(Exploring(explore="quick")) < calls < expected(Exploring(explore="thorough"))


def test_slow_first_calls_foretell_a_thrifty_run():
    # A run knows its pace when the first calls of all models are made; until then the meter's clock is asked.
    calls = {"explore": "patient", "evaluations": 12}
    slow, quick = Exploring(**calls, seconds_calling=12 * 0.05), Exploring(**calls, seconds_calling=12 * 1e-4)
    slow.pace = quick.pace = 0.0
    slow.probes = quick.probes = []
    known = Exploring(explore="thrifty", evaluations=12, probes=[])
    assert expected(slow) == expected(known) < 0.1 * expected(quick)


def test_the_limits_count_while_exploring():
    assert seconds_left(Exploring(goals=Goals(max_seconds=30.0)), 10.0) == pytest.approx(20.0)
    assert seconds_left(Exploring(limit=1624), 10.0) == pytest.approx(10.0)
    # More than usual: half as much again of what the first model has taken, then the second and the ladder.
    assert 75_000 < expected(Exploring(evaluations=50_000)) < 100_000
    assert expected(Exploring(evaluations=50_000, limit=60_000)) == 60_000
    # The limit where the user sets none: 2 000 000 calls, of which half are done after 10 s.
    weighed = Exploring(evaluations=PATIENCE // 2, is_weighed=True)
    weighed.evidences = Run(error=100.0).evidences
    assert seconds_left(weighed, 10.0) == pytest.approx(10.0)


def slow(seconds: float, batches: int) -> Pace:
    """A pace of so many batches of four calls, after a first one that compiles."""
    pace, run = Pace(), Exploring(evaluations=0)
    pace.note(run)
    for k in range(batches):
        run.evaluations += 4
        run.seconds_calling += 4 * seconds + (9.0 if k == 0 else 0.0)
        pace.note(run)
    return pace


def test_with_a_slow_likelihood_the_line_says_what_the_run_will_take():
    line = status(Exploring(), 9e3, slow(0.1, 3))
    calls = expected(Exploring())
    left = short(0.1 * (calls - 812))
    assert line == f"exploring 'a' (1 of 2) · 812 evals · 0.1 s a call, about {count(calls)} calls: {left} left"
    limited = Exploring(goals=Goals(max_seconds=9060.0))
    assert status(limited, 9e3, slow(0.1, 3)).endswith("0.1 s a call, about 1.4k calls: 60 s left")
    for pace in (slow(0.1, 2), slow(0.01, 3)):  # one batch of each model may be compilation; a call of 0.01 s is quick
        assert "a call" not in status(Exploring(), 9e3, pace)


def test_a_pace_leaves_out_what_an_earlier_process_did():
    pace, resumed = Pace(), Exploring(evaluations=8000)
    pace.note(resumed)
    resumed.evaluations += 100
    assert seconds_left(resumed, 10.0, pace) == pytest.approx(0.1 * (expected(resumed) - 8100))


def test_a_log_is_told_at_once_that_a_run_will_be_long(capsys):
    """Not after a minute; and no word of it where calls are quick."""
    for pause, told in ((0.03, 1), (0.0, 0)):

        def log_likelihood(p, pause=pause):
            time.sleep(pause)
            return -0.5 * float(p["x"]) ** 2

        sm.evidence(sm.Model({"x": stats.norm(0, 1)}, log_likelihood), max_seconds=5.0, progress=True)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == told
        assert all("first calls" in line and "s a call, about" in line and line.endswith("s left") for line in lines)


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


# -- in a notebook ----------------------------------------------------------------------------------------------------


def test_a_run_that_only_wants_more_draws_says_so_and_promises_no_time():
    run = Run(error=0.05, goals=Goals(min_ess=400))
    assert status(run, 60.0) == "ln B 4.91 ± 0.05 → 0.10 · posteriors → ESS 400 · 8.2k evals"
    assert "left" in status(Run(error=0.2, goals=Goals(min_ess=400)), 60.0)
    assert "ESS" not in status(Run(error=0.05, ended="target", goals=Goals(min_ess=400)), 60.0)


class Cell:
    """What is below a cell: `display` of IPython, as far as it is used."""

    def __init__(self):
        self.shown = []

    def display(self, data, raw, display_id):
        assert raw and display_id
        return self.update(data, raw)

    def update(self, data, raw):
        self.shown.append(data)
        return self


def test_a_notebook_has_one_line_that_changes_in_place_and_goes():
    cell, now = Cell(), [0.0]
    told = NotebookReporter(cell.display, lambda: now[0])
    assert "preparing" in cell.shown[-1]["text/html"]
    run = Exploring()
    run.probes = [(SimpleNamespace(name="<b>"), None)] * 2
    now[0] = 5.0
    told(run)
    assert "exploring" in cell.shown[-1]["text/plain"] and "&lt;b&gt;" in cell.shown[-1]["text/html"]
    now[0] = 5.01
    told(run)  # too soon after the last
    assert len(cell.shown) == 2
    told(Run(ended="target"))
    assert "done in" in cell.shown[-2]["text/plain"] and cell.shown[-1]["text/html"] == ""
    told.close()
    assert len(cell.shown) == 4


def test_a_kernel_is_known_by_its_shell(monkeypatch):
    for shell, known in ((None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert in_notebook() is known
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=Cell().display))
    assert isinstance(reporter(None), NotebookReporter) and reporter(False) is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert in_notebook() is False


def test_a_real_kernel_shows_the_line_and_the_result():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = (
        "import supermodel as sm\nfrom scipy import stats\n"
        "m = {n: sm.Model({'x': stats.norm(0, s)}, lambda p: stats.norm.logpdf(p['x'], 1), vectorized=True)\n"
        "     for n, s in (('a', 1), ('b', 2))}\n"
        "sm.compare(m, explore='quick')"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [
        output for output in notebook.cells[0].outputs if "TqdmWarning" not in output.get("text", "")
    ]  # NumPyro's
    assert [output["output_type"] for output in outputs] == [
        "display_data",
        "execute_result",
    ]  # one line, whatever was told
    assert "Verdict OK" in outputs[1]["data"]["text/html"]


# -- a made clock -----------------------------------------------------------------------------------------------------


class Clock:
    """Seconds that pass where a likelihood says so, and nowhere else."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Crew:
    """An executor of n workers, of which each does its part of a batch while the clock runs."""

    def __init__(self, n, clock, each):
        self.n, self.clock, self.each = n, clock, each

    def map(self, call, points):
        points = list(points)
        answers = [call(point) for point in points]
        self.clock.now += self.each * -(-len(points) // self.n)
        return answers


def forecasts(d, kind, monkeypatch, workers=0, each=0.3):
    """(when, total seconds foretold) at every word of a run of two slow regressions, and how long it took."""
    clock, told = Clock(), []
    monkeypatch.setattr(time, "monotonic", clock)
    rng = np.random.default_rng(d)
    x = rng.standard_normal((40, d + 1))
    y = x[:, 0] + rng.standard_normal(40)

    def log_likelihood(p):
        if not workers:
            clock.now += each
        r = y - x[:, : len(p["b"])] @ np.asarray(p["b"])
        return float(-0.5 * np.sum(r**2) if kind == "normal" else -2.5 * np.sum(np.log1p(r**2 / 4)))

    def model(k):
        return sm.Model({"b": dist.Normal(0, 2).expand([k]).to_event(1)}, log_likelihood)

    class Listening(Reporter):
        def __call__(self, run):
            self.pace.note(run)
            if run.probes and not run.ended:
                told.append((clock.now, clock.now + seconds_left(run, clock.now, self.pace)))

    monkeypatch.setattr("supermodel.comparing.reporter", lambda progress: Listening(False, lambda line: None, clock))
    crew = Crew(workers, clock, each) if workers else None
    result = sm.compare({"a": model(d), "b": model(d + 1)}, seed=0, explore="thrifty", executor=crew)
    assert result.verdict.is_reliable
    return np.array(told), clock.now


@pytest.mark.parametrize(("d", "kind"), [(1, "normal"), (4, "normal"), (7, "normal"), (2, "student"), (4, "student")])
def test_from_a_tenth_on_a_slow_run_is_foretold_within_a_factor_of_two(d, kind, monkeypatch):
    told, took = forecasts(d, kind, monkeypatch)
    late = told[told[:, 0] > 0.1 * took]
    assert len(late) > 10 and np.all(late[:, 1] < 2 * took) and np.all(late[:, 1] > took / 2)


def test_more_workers_shorten_the_forecast_as_they_shorten_the_run(monkeypatch):
    totals, lasted = [], []
    for workers in (1, 2, 4):
        told, took = forecasts(4, "normal", monkeypatch, workers)
        late = told[told[:, 0] > 0.1 * took]
        assert np.all(late[:, 1] < 2 * took) and np.all(late[:, 1] > took / 2)
        totals.append(late[0, 1])
        lasted.append(took)
    assert totals[0] > 1.6 * totals[1] > 1.6**2 * totals[2] and lasted[0] > 1.8 * lasted[1]
