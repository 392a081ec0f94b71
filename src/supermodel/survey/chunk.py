"""A chunk of data sets in a worker: together on the quick road, and one by one where that does not settle them."""

from __future__ import annotations

import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from supermodel.comparing import compare
from supermodel.errors import DataError
from supermodel.jax_scope import compilation_cache
from supermodel.models.model import Model
from supermodel.results.comparison import Comparison
from supermodel.survey.buckets import refused
from supermodel.survey.job import Chunk, Job, Outcome
from supermodel.survey.masked import LENGTH, masked
from supermodel.survey.quick import quick
from supermodel.verdict.verdict import Verdict

logger = logging.getLogger("supermodel")
TRIES = 2
KEPT = 4  # jobs whose models a worker keeps
_jobs: OrderedDict[str, tuple[Job, Mapping[str, Model] | None]] = OrderedDict()


def weigh(job: Job, chunk: Chunk) -> list[Outcome]:
    """What comes of each data set of a chunk, in their order; nothing that one of them does stops the others."""
    return list(weighed(job, chunk))


def weighed(job: Job, chunk: Chunk) -> Iterator[Outcome]:
    """The same, one after the other."""
    job, on_padded = kept(job)
    with compilation_cache():
        try:
            settled = quick(job, chunk)
        except Exception as error:
            logger.warning(
                "the quick road failed (%s: %s); the engine takes its data sets", type(error).__name__, error
            )
            settled = [None] * len(chunk)
        for i, found in enumerate(settled):
            yield by_engine(job, on_padded, chunk, i) if found is None else found


def kept(job: Job) -> tuple[Job, Mapping[str, Model] | None]:
    """The job as this process met it first, since what is compiled belongs to its models, and its models for padded data."""
    if job.token not in _jobs:
        found = {name: masked(model) for name, model in job.models.items()}
        whole = {name: model for name, model in found.items() if model is not None}
        _jobs[job.token] = job, whole if len(whole) == len(found) else None
        while len(_jobs) > KEPT:
            _jobs.popitem(last=False)
    return _jobs[job.token]


def can_pad(models: Mapping[str, Model]) -> bool:
    """Whether all likelihoods can leave padding out."""
    return all(masked(model) is not None for model in models.values())


def by_engine(job: Job, on_padded: Mapping[str, Model] | None, chunk: Chunk, i: int) -> Outcome:
    """One data set by `compare`; what raises is tried again, and then told."""
    row, began = int(chunk.rows[i]), time.monotonic()
    models, data = (job.models, unpadded(chunk, i)) if on_padded is None or chunk.lengths is None else (
        on_padded, {name: column[i] for name, column in chunk.columns.items()} | {LENGTH: int(chunk.lengths[i])},
    )  # fmt: skip
    for _ in range(TRIES):
        try:
            result = compare(
                models, data, seed=seed_of(job.seed, row), target_error=job.target_error, progress=False, **job.settings
            )
        except Exception as error:
            trouble = error
            continue
        if result.settings.get("ended") == "interrupted":
            raise KeyboardInterrupt  # half an answer is none: this data set is still to be done
        return outcome(row, chunk.names[i], tuple(job.models), result, time.monotonic() - began)
    told = f"{type(trouble).__name__}: {trouble}"
    return refused(row, chunk.names[i], _code(trouble), told, time.monotonic() - began)


def unpadded(chunk: Chunk, i: int) -> dict[str, Any]:
    """The columns of one data set, as long as they were."""
    n = None if chunk.lengths is None else int(chunk.lengths[i])
    return {name: column[i][:n] if column.ndim > 1 else column[i] for name, column in chunk.columns.items()}


def seed_of(seed: int, row: int) -> int:
    """A seed of its own for each data set, whatever chunk and worker it is in."""
    return int(np.random.SeedSequence((seed, row)).generate_state(1)[0])


def _code(error: Exception) -> str:
    return "data" if isinstance(error, DataError) else "worker" if isinstance(error, MemoryError | OSError) else "model"


def outcome(row: int, name: Any, models: tuple[str, ...], result: Comparison, seconds: float) -> Outcome:
    """A comparison as an outcome."""
    evidences = {m: result.log_evidence(m) for m in models} if result.evidences.absolute else {}
    pairs = {pair: result.log_bayes_factor(*pair) for pair in itertools.combinations(models, 2)}
    judged = {pair: result.verdict_between(*pair) for pair in pairs}
    scopes = {pair: (v.level, *_said(v)) for pair, v in judged.items() if v != result.verdict}
    return Outcome(
        row,
        name,
        {m: (float(e.value), float(e.error)) for m, e in evidences.items()},
        {pair: (float(e.value), float(e.error)) for pair, e in pairs.items()},
        result.verdict.level,
        *_said(result.verdict),
        "engine",
        int(result.evaluations["likelihood"]),
        seconds,
        scopes,
    )


def _said(verdict: Verdict) -> tuple[tuple[str, ...], str]:
    """The codes of a verdict, and its sentences."""
    return tuple(reason.code for reason in verdict.reasons), " ".join(reason.sentence for reason in verdict.reasons)
