"""An executor as a run uses it: workers that die are told as that, and none that hangs outlives the limit on time."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, wait
from typing import Any

from supermodel.engine.guard import check_guarded
from supermodel.engine.interrupts import Interrupts
from supermodel.errors import ModelError, SupermodelError

PATIENT = 2.0  # times the longest batch so far, beyond the limit on time: calls that are merely slow come back by then
GRACE = 1.0  # seconds beyond the limit at least
POLL = 0.1  # seconds between two looks at Ctrl-C and the clock


@contextlib.contextmanager
def pool_of(executor: Any, is_deaf: bool = False) -> Iterator[Any]:
    """The executor as it is; of a number as many worker processes, which end with the run; deaf ones do not hear Ctrl-C."""
    if not isinstance(executor, int):
        yield executor
        return
    check_guarded(executor)
    # Never forked: a child of a process in which JAX has threads may wait for them for ever.
    spawned = multiprocessing.get_context("spawn")
    with contextlib.closing(_Pool(executor, mp_context=spawned, initializer=_begin, initargs=(is_deaf,))) as pool:
        yield pool


def _begin(is_deaf: bool) -> None:
    """In a worker: end when the process that it works for is killed, which would else leave it waiting for ever."""
    if is_deaf:  # Ctrl-C on a terminal reaches the workers as well
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Pool(ProcessPoolExecutor):
    """Worker processes, none of which outlives the run, not even one that hangs in a likelihood."""

    def submit(self, *call: Any, **named: Any) -> Any:
        try:
            return super().submit(*call, **named)
        except OSError as error:  # the pool died in this very moment, and its pipes were closed under us
            raise BrokenExecutor(f"the workers died while work was handed to them ({error})") from error

    def close(self) -> None:
        processes = list((getattr(self, "_processes", None) or {}).values())
        self.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(GRACE)


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
                "call by itself to see why; with `checkpoint` a run goes on from its last block, given a new executor. Worker "
                "processes that die at the start could not import the likelihood: it must be defined in a file, not at a prompt or "
                'in a notebook, and compare() must stand below `if __name__ == "__main__":`, since they import that file anew.'
            ) from error
        except SupermodelError:
            raise
        except Exception as error:
            if "pickle" not in f"{type(error).__name__} {error}".lower():
                raise
            raise ModelError(
                f"the likelihood of model {getattr(call, 'name', '?')!r} cannot be sent to worker processes "
                f"({type(error).__name__}: {error}). They receive it by its name in a module, so that no lambda, no function "
                "defined within another and no object that holds a lock or an open file can go. Define it with `def` at the top of "
                "a file and give it its data by `data`; or use threads, executor=concurrent.futures.ThreadPoolExecutor(4), which "
                "help where a likelihood spends its time outside Python."
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
