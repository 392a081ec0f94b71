"""The keeper writes the last border, and little of a run's time goes into it."""

import pytest

from supermodel.engine import keeper
from supermodel.engine.keeper import COST, Keeper
from supermodel.errors import StorageError


class Clock:
    """Time that passes only where the test says so."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(keeper, "time", self)

    def monotonic(self):
        return self.now


class Counter:
    """A run whose state is a number."""

    def __init__(self):
        self.n = 0

    def snapshot(self):
        return self.n


def test_writing_takes_no_more_than_its_share_of_the_time(monkeypatch):
    clock, run, written, spent = Clock(monkeypatch), Counter(), [], []

    def write(held, path):
        written.append(held)
        spent.append(0.01 * (1 + held / 100))  # files grow
        clock.now += spent[-1]

    with Keeper("path", write) as keep:
        began = clock.now
        for run.n in range(1000):
            clock.now += 0.05
            keep(run)
        share = sum(spent) / (clock.now - began)
        assert written[0] == 0 and len(written) > 5 and COST / 4 < share <= COST + spent[-1] / (clock.now - began)
    assert written[-1] == 999  # the last border, at the end


def test_what_happens_after_a_border_is_in_no_file(monkeypatch):
    clock, run, written = Clock(monkeypatch), Counter(), []

    def write(held, path):
        written.append(held)
        clock.now += 1

    with pytest.raises(ZeroDivisionError), Keeper("path", write) as keep:
        for run.n in (1, 2, 3):
            keep(run)
        run.n = 4  # inside a block
        raise ZeroDivisionError
    assert written == [1, 3]


def test_the_first_failure_is_told_and_later_ones_are_remembered():
    run, fails = Counter(), [True]

    def write(held, path):
        if fails[0]:
            raise StorageError("full")

    keep = Keeper("path", write)
    with pytest.raises(StorageError, match="full"):
        keep(run)
    fails[0] = False
    keep.flush()
    assert keep.held is None and keep.trouble == ""
    fails[0] = True
    keep.held = 7
    keep.flush()
    assert keep.held == 7 and keep.trouble == "full"
    fails[0] = False
    keep.flush()
    assert keep.held is None and keep.trouble == ""
