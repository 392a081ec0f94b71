"""The stopwatch: processor time of what computes, all time of what waits, and no more of what others slow down."""

import time
from types import SimpleNamespace

import pytest

from supermodel.models import stopwatch
from supermodel.models.stopwatch import SHORT, WAITING, Stopwatch


@pytest.fixture
def clocks(monkeypatch):
    """Two clocks that are set by hand."""
    made = SimpleNamespace(processor=100.0, wall=5000.0)
    there = SimpleNamespace(process_time=lambda: made.processor, perf_counter=lambda: made.wall)
    monkeypatch.setattr(stopwatch, "time", there)
    return made


def measured(clocks, processor, wall):
    watch = Stopwatch()
    clocks.processor, clocks.wall = clocks.processor + processor, clocks.wall + wall
    return watch.seconds()


@pytest.mark.parametrize(
    "processor, wall, seconds",
    [
        (1.0, 1.0, 1.0),  # it computes
        (1.0, 2.0, 1.0),  # beside another on its core
        (1.0, 0.99 * WAITING, 1.0),  # or beside seven
        (1.0, 1.01 * WAITING + SHORT, 1.01 * WAITING + SHORT),  # it waits
        (0.001, 1.0, 1.0),  # sleep, a network, another program
        (3.9, 1.0, 1.0),  # on four threads: what the user waits for
        (0.0, 0.5 * SHORT, 0.0),  # so short that neither clock can tell
        (0.0, 0.0, 0.0),
    ],
)
def test_what_a_call_costs(clocks, processor, wall, seconds):
    assert measured(clocks, processor, wall) == pytest.approx(seconds, abs=1e-9)


def test_a_process_that_is_slowed_by_others_costs_what_it_would_alone(clocks):
    """The same call on a quiet and on a busy machine; by the wall alone it would be five times as dear."""
    quiet, busy = measured(clocks, 0.02, 0.0205), measured(clocks, 0.02, 0.1)
    assert quiet == pytest.approx(busy, rel=1e-9)
    assert measured(clocks, 0.0005, 0.1) == pytest.approx(0.1)  # negative control: a call that waits as long


def test_a_busy_loop_is_timed_by_the_processor():
    """Between the processor's clock read outside of the watch, and the wall's."""
    before = time.process_time()
    watch, began = Stopwatch(), time.process_time()
    while time.process_time() - began < 0.05:
        pass
    least = time.process_time() - began
    seconds = watch.seconds()
    assert least <= seconds + 1e-9 <= time.process_time() - before + 2e-9


def test_sleep_is_timed_by_the_wall():
    watch = Stopwatch()
    before = time.process_time()
    time.sleep(0.05)
    assert time.process_time() - before < 0.05 / WAITING  # the premise: it did not compute
    assert 0.05 <= watch.seconds()
