"""Chunks over workers: here, in processes of our own, or on whatever has the `submit` of `concurrent.futures`.

Only a few chunks per worker are under way at once, so that memory does not grow with the survey, and answers are taken
as they come. A chunk whose worker dies is tried again by itself: if its worker dies again, the chunk is halved, until
the one data set that kills workers is found and flagged.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from supermodel.engine.interrupts import Interrupts
from supermodel.engine.workers import pool_of
from supermodel.errors import ModelError, SupermodelError
from supermodel.survey.buckets import refused
from supermodel.survey.chunk import kept, weigh, weighed
from supermodel.survey.job import Chunk, Job, Outcome

AHEAD = 2  # chunks under way for each worker: one in work, one that waits
UNKNOWN_WIDTH = 32  # workers of an executor that does not say how many it has
RECOUNT = 5.0  # seconds between two questions for the size of a cluster
POLL = 0.2  # seconds between two looks at Ctrl-C
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NPROC": "1"}  # the last is XLA's
ALONE_XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def spread(
    job: Job, chunks: Iterable[Chunk], executor: Any, interrupts: Interrupts
) -> Generator[tuple[Chunk, list[Outcome]], None, None]:
    """Chunks and what came of them, as they come."""
    if executor is None:
        for chunk in chunks:
            found = []
            for outcome in weighed(job, chunk):
                found.append(outcome)
                interrupts.check()
            yield chunk, found
        return
    source = iter(chunks)
    first = next(source, None)
    if first is None:
        return  # all is done already: no worker needs to be started
    with contextlib.closing(_Own(executor) if isinstance(executor, int) else _Given(executor)) as crew:
        _greet(job, crew, interrupts)
        yield from _Spreading(job, crew, interrupts).over(itertools.chain([first], source))


# -- crews ------------------------------------------------------------------------------------------------------------


class _Own:
    """Processes of our own, replaced when one of them dies."""

    def __init__(self, n: int):
        self.width, self.stack, self.pool = n, contextlib.ExitStack(), None
        self.renew()

    def renew(self) -> None:
        self.stack.close()
        self.pool = self.stack.enter_context(pool_of(self.width, is_deaf=True))

    def submit(self, *call: Any) -> Future:
        with _single_threaded():  # processes are started here, and inherit this
            return self.pool.submit(*call)  # type: ignore[attr-defined]

    def close(self) -> None:
        self.stack.close()


class _Given:
    """An executor of the user's."""

    def __init__(self, executor: Any):
        self.executor = executor
        self.counted, self.asked = 1, -math.inf

    @property
    def width(self) -> int:
        """Workers, as far as the executor tells; those of a cluster may come and go, and are counted now and then."""
        client = getattr(self.executor, "_client", None)  # Dask's
        if client is not None:
            if time.monotonic() - self.asked > RECOUNT:
                self.counted, self.asked = max(sum(client.nthreads().values()), 1), time.monotonic()
            return self.counted
        for name in ("num_workers", "_max_workers"):
            if isinstance(number := getattr(self.executor, name, None), int):
                return max(number, 1)
        return UNKNOWN_WIDTH

    def submit(self, *call: Any) -> Future:
        return self.executor.submit(*call)

    def renew(self) -> None:
        raise SupermodelError(
            "the executor has lost a worker and takes no more work. What was done before is kept: call again with a new executor, "
            "and the run goes on. A number (executor=4) is a pool that is rebuilt by itself."
        )

    def close(self) -> None:
        pass


@contextlib.contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes started within have one thread each: two of them are then twice as fast, and do not wait for each other."""
    before = dict(os.environ)
    for name, value in ALONE.items():
        os.environ.setdefault(name, value)
    os.environ["XLA_FLAGS"] = f"{before.get('XLA_FLAGS', '')} {ALONE_XLA}".strip()
    try:
        yield
    finally:
        for name in (*ALONE, "XLA_FLAGS"):
            if name in before:
                os.environ[name] = before[name]
            else:
                os.environ.pop(name, None)


def _hello(job: Job) -> str:
    return kept(job)[0].token


def _greet(job: Job, crew: Any, interrupts: Interrupts) -> None:
    """See that a worker can be given the models at all, before one is blamed on the data."""
    try:
        future = crew.submit(_hello, job)
        while not wait([future], timeout=POLL).done:
            interrupts.check()
        future.result()
    except SupermodelError:
        raise
    except BrokenExecutor as error:
        raise SupermodelError(
            f"no worker could be started ({type(error).__name__}: {error}). Worker processes import your script anew: the models "
            "must be defined in a file, not at a prompt or in a notebook, and compare_many() must stand below "
            '`if __name__ == "__main__":`.'
        ) from error
    except Exception as error:
        raise ModelError(
            f"the models cannot be sent to workers ({type(error).__name__}: {error}). They go by the names of their functions, so "
            "that neither lambdas nor functions within functions can go to processes or over MPI, and workers elsewhere must be "
            "able to import them. Define likelihoods with `def` at the top of a module."
        ) from error


# -- who is to blame --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Try:
    chunk: Chunk
    is_alone: bool = False  # nothing else was under way: if the worker dies, this was it
    deaths: int = 0  # by itself


class _Spreading:
    def __init__(self, job: Job, crew: Any, interrupts: Interrupts):
        self.job, self.crew, self.interrupts = job, crew, interrupts
        self.running: dict[Future, _Try] = {}
        self.waiting: deque[_Try] = deque()
        self.suspects: deque[_Try] = deque()
        self.wholes: dict[int, Chunk] = {}  # chunks under way, and what is known of each
        self.found: dict[int, list[Outcome]] = {}

    def over(self, chunks: Iterator[Chunk]) -> Iterator[tuple[Chunk, list[Outcome]]]:
        try:
            while self._start(chunks):
                ended = wait(self.running, timeout=POLL, return_when=FIRST_COMPLETED).done
                self.interrupts.check()
                yield from self._taken(ended)
        finally:
            for future in self.running:
                future.cancel()

    def _start(self, chunks: Iterator[Chunk]) -> bool:
        """Give the workers something to do; whether there is anything to wait for."""
        if self.suspects:
            if not self.running:
                self._submit(self.suspects.popleft())
            return True
        for _ in range(AHEAD * self.crew.width - len(self.running)):
            if self.waiting:
                one = self.waiting.popleft()
            elif (chunk := next(chunks, None)) is not None:
                self.wholes[chunk.number], self.found[chunk.number] = chunk, []
                one = _Try(chunk)
            else:
                break
            if not self._submit(one):
                break
        return bool(self.running or self.waiting)

    def _submit(self, one: _Try) -> bool:
        """Whether it is under way; a pool that is found broken is told by what was under way, and this one waits."""
        try:
            future = self.crew.submit(weigh, self.job, one.chunk)
        except RuntimeError:  # BrokenExecutor among them, and an executor that was shut down
            (self.suspects if one.is_alone else self.waiting).appendleft(one)
            if not self.running:
                self.crew.renew()
            return False
        self.running[future] = one
        return True

    def _taken(self, ended: Iterable[Future]) -> Iterator[tuple[Chunk, list[Outcome]]]:
        lost: list[tuple[_Try, BaseException]] = []
        for future in ended:
            one = self.running.pop(future)
            error = BrokenExecutor("its work was cancelled") if future.cancelled() else future.exception()
            if error is None:
                yield from self._known(one.chunk, future.result())
            else:
                lost.append((one, error))
        broken = next((error for _, error in lost if isinstance(error, BrokenExecutor)), None)
        if broken is not None:  # with all that was under way: none of it comes back
            lost += [(one, broken) for one in self.running.values()]
            self.running.clear()
            self.crew.renew()
        for one, error in lost:
            yield from self._blamed(one, error)

    def _blamed(self, one: _Try, error: BaseException) -> Iterator[tuple[Chunk, list[Outcome]]]:
        if not one.is_alone:
            self.suspects.append(_Try(one.chunk, True))
        elif len(one.chunk) > 1:
            self.suspects.extendleft(_Try(half, True) for half in reversed(halves(one.chunk)))
        elif not one.deaths:
            self.suspects.appendleft(replace(one, deaths=1))
        else:
            told = (
                f"its worker died whenever it was asked for this data set ({type(error).__name__}: {error}): it was killed, ran "
                "out of memory, or a likelihood ended its process"
            )
            yield from self._known(one.chunk, [refused(one.chunk.rows[0], one.chunk.names[0], "worker", told)])

    def _known(self, part: Chunk, outcomes: list[Outcome]) -> Iterator[tuple[Chunk, list[Outcome]]]:
        self.found[part.number] += outcomes
        if len(self.found[part.number]) == len(self.wholes[part.number]):
            yield self.wholes.pop(part.number), sorted(self.found.pop(part.number), key=lambda o: o.row)


def halves(chunk: Chunk) -> list[Chunk]:
    """The first and the second half of a chunk."""
    middle = len(chunk) // 2
    return [
        replace(
            chunk,
            rows=chunk.rows[half],
            names=chunk.names[half],
            columns={name: column[half] for name, column in chunk.columns.items()},
            lengths=None if chunk.lengths is None else chunk.lengths[half],
        )
        for half in (slice(None, middle), slice(middle, None))
    ]
