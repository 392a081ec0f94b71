"""An executor as a run uses it: workers that die are told as that, and none that hangs outlives the limit on time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, wait
from typing import Any

from supermodel.engine.interrupts import Interrupts
from supermodel.errors import SupermodelError

PATIENT = 2.0  # times the longest batch so far, beyond the limit on time: calls that are merely slow come back by then
GRACE = 1.0  # seconds beyond the limit at least
POLL = 0.1  # seconds between two looks at Ctrl-C and the clock


class Hanging(Exception):
    """A batch did not come back long after the limit on time."""


class Workers:
    """`executor.map` for the calls of one batch; `left` tells the seconds before the limit on time."""

    def __init__(self, executor: Any, left: Callable[[], float], interrupts: Interrupts):
        self.executor, self.left, self.interrupts = executor, left, interrupts
        self.longest = 0.0

    def map(self, call: Callable[[Any], Any], points: Iterable[Any]) -> list[Any]:
        """What `call` gives at each point, in their order."""
        if not hasattr(self.executor, "submit"):  # a pool of another make: only its own `map` is known
            return list(self.executor.map(call, points))
        since, futures = time.monotonic(), []
        try:
            futures = [self.executor.submit(call, point) for point in points]
            self._await(futures)
            answers = [future.result() for future in futures]
        except BrokenExecutor as error:
            self.interrupts.check()  # Ctrl-C on a terminal reaches the workers as well
            raise SupermodelError(
                f"a worker of the executor died ({type(error).__name__}: {error}) while likelihoods were called: it was killed, "
                "ran out of memory, or the likelihood ended its process. Its calls are lost and the pool takes no more. Run one "
                "call by itself to see why; with `checkpoint` a run goes on from its last block, given a new executor."
            ) from error
        finally:
            for future in futures:
                future.cancel()
        self.longest = max(self.longest, time.monotonic() - since)
        return answers

    def _await(self, futures: list[Any]) -> None:
        allowed = GRACE + PATIENT * self.longest
        while wait(futures, timeout=POLL if math.isfinite(self.left()) else 10 * POLL).not_done:
            self.interrupts.check()
            if self.left() < -allowed:
                raise Hanging
