"""The front door for surveys: the same models, thousands of data sets, one table."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from supermodel.embedding.supermodel import check_models
from supermodel.engine.interrupts import Interrupts
from supermodel.engine.progress import reporter
from supermodel.errors import SupermodelError
from supermodel.jax_scope import compilation_cache, float64
from supermodel.models.model import Model
from supermodel.options import checked
from supermodel.results.fingerprint import fingerprint
from supermodel.results.odds import checked_odds
from supermodel.survey.buckets import FACTOR, SHORTEST, Bucketing, Refused, digest
from supermodel.survey.chunk import can_pad, unpadded
from supermodel.survey.datasets import collected
from supermodel.survey.job import Chunk, Job
from supermodel.survey.parts import Memory, Parts
from supermodel.survey.quick import is_quick
from supermodel.survey.result import ManyResult
from supermodel.survey.spread import spread
from supermodel.survey.tally import Tally

TRIED = 2  # prior draws at which likelihoods are tried on the first data set: a run is resumed with the same ones only

SLOW = (
    "Every data set went by the engine, one by one: a likelihood cannot be traced by JAX with its data as arguments (data are "
    "used as NumPy arrays, or it is plain Python), or the models have many parameters, or the options ask for it. Written with "
    "jax.numpy throughout, data sets are compared many at a time."
)


def compare_many(
    models: Mapping[str, Model],
    datasets: Any,
    *,
    target_error: float = 0.2,
    seed: int = 0,
    executor: Any = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    by: str | None = None,
    id: str | None = None,
    only: Collection[Any] | None = None,
    chunk: int = 500,
    missing: str = "raise",
    on_error: str = "raise",
    prior_odds: Mapping[str, float] | None = None,
    explore: str = "auto",
    max_seconds: float | None = None,
    max_evaluations: int | None = None,
    progress: bool | None = None,
) -> ManyResult:
    """Bayes factors between the same models for each of many data sets: a table, one row for each data set and pair.

    `datasets`: an iterable of dicts of arrays; a dict of stacked arrays {name: (n, length)}; a structured array, or an array
    (n, length) of `y`; a frame or an Arrow table, or the path of a Parquet or Arrow file or of a folder of them, with one
    row per data set and lists in it, or one row per point and `by` the column that tells data sets apart. `id`: the column
    that names data sets, which are else called by their number. Lengths may differ. `only`: the names of those to do.

    A data set that cannot be read, holds NaN (see `missing` of `compare`), or whose likelihood raises, is tried again and
    then flagged in the table, with the reason; it never stops the others, and none is left out.

    `executor`: where the work is done, in chunks of `chunk` data sets. None: here. A number: so many processes; if one dies
    it is replaced. Or whatever has `concurrent.futures`' `submit`: Dask's `client.get_executor()`, mpi4py's
    `MPIPoolExecutor()`. The table is the same for all.
    `out`: the table is kept in memory, or written to a Parquet file, which needs pyarrow; a name that ends in "/" is a folder
    of parts, for millions of data sets. In a file each chunk is on disk as soon as it is done. `resume`: go on from what an
    earlier call with the same models, data and options has done; what belongs to another run is refused. False begins anew.
    Ctrl-C returns what is done; the same call goes on from there.

    `seed`, `target_error`, `explore`, `on_error`, `max_seconds` and `max_evaluations` hold for each data set, as in
    `compare`. Each has a seed of its own, from `seed` and its place.
    """
    check_models(models)
    settings = {
        name: checked(name, value)
        for name, value in (
            ("explore", explore), ("on_error", on_error), ("max_seconds", max_seconds), ("max_evaluations", max_evaluations),
        )
    }  # fmt: skip
    settings["missing"] = (
        "keep" if checked("missing", missing) == "keep" else "raise"
    )  # what is to drop is dropped before
    target_error, seed, progress = (
        checked("target_error", target_error), checked("seed", seed), checked("progress", progress),
    )  # fmt: skip
    odds = checked_odds(checked("prior_odds", prior_odds) or dict.fromkeys(models, 1.0), tuple(models))
    size, executor = _checked_size(chunk), _checked_executor(executor)
    given = collected(datasets, by, id)
    chosen = None if only is None else set(map(str, only))
    bucketing = Bucketing(models, size, missing, can_pad(models), chosen)
    job = Job(models, secrets.token_hex(8), seed, target_error, settings)
    store = Memory(list(models)) if out is None else Parts(out, list(models))
    pieces, first = _peeked(bucketing.pieces(given))
    identity = {
        "models": {name: {p: q.description for p, q in model.priors.items()} for name, model in models.items()},
        "likelihoods": {} if first is None else _tried(models, unpadded(first, 0)),
        "target_error": target_error,
        "seed": seed,
        "chunk": size,
        "missing": missing,
        "only": None if chosen is None else fingerprint(sorted(chosen)),
        "buckets": [SHORTEST, FACTOR] if bucketing.is_padded else "exact",
        "settings": settings,
        "prior_odds": odds,
    }
    store.begin(identity, _checked_resume(resume))
    total = given.total if chosen is None else len(chosen)
    is_complete = _run(job, pieces, store, executor, Tally(total), progress)
    notes = list(bucketing.notes)
    if first is not None and not is_quick(job, first):
        notes.append(SLOW)
    if is_complete:
        store.finish()
    else:
        notes.append("The run was interrupted: data sets that are not in the table are still to be done. Call again.")
    where = store.path if is_complete or store.path is None else store.folder  # type: ignore[union-attr]
    frame = store.frame() if isinstance(store, Memory) else None
    return ManyResult(tuple(models), identity, where, frame, is_complete, tuple(notes))


def _run(job: Job, pieces: Iterator[Chunk | Refused], store: Any, executor: Any, tally: Tally, progress: Any) -> bool:
    """Do what is not done yet; whether all of it was."""
    shown, digests = reporter(progress), {}

    def missing_chunks() -> Iterator[Chunk]:
        for piece in pieces:
            mark = digest(piece)
            if store.has(piece.number, mark):
                tally.skip(len(piece), store.flagged)
            elif isinstance(piece, Refused):
                store.add(piece.number, mark, piece.outcomes)
                tally.add(piece.outcomes)
            else:
                digests[piece.number] = mark
                yield piece

    try:
        with (
            Interrupts() as interrupts,
            compilation_cache(),
            contextlib.closing(spread(job, missing_chunks(), executor, interrupts)) as done,
        ):
            for chunk, outcomes in done:
                store.add(chunk.number, digests.pop(chunk.number), outcomes)
                tally.add(outcomes)
                if shown is not None:
                    shown(tally)  # type: ignore[arg-type]
        tally.ended = "target"
        if shown is not None:
            shown(tally)  # type: ignore[arg-type]
        return True
    except KeyboardInterrupt:
        return False
    finally:
        if shown is not None:
            shown.close()


def _peeked(pieces: Iterator[Chunk | Refused]) -> tuple[Iterator[Chunk | Refused], Chunk | None]:
    """All pieces, and the first chunk among them."""
    seen: list[Chunk | Refused] = []
    for piece in pieces:
        seen.append(piece)
        if isinstance(piece, Chunk):
            return itertools.chain(seen, pieces), piece
    return iter(seen), None


def _tried(models: Mapping[str, Model], data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Log likelihoods at a few prior draws, by which a model is known again: its code cannot be compared."""
    found: dict[str, list[Any]] = {}
    for name, model in models.items():
        points = model.space.sample_prior(np.random.default_rng(0), TRIED)
        values = model.space.values_at(points)
        found[name] = []
        for i in range(TRIED):
            try:
                with float64():
                    answer = float(model.log_likelihood({p: v[i] for p, v in values.items()}, dict(data)))
                found[name].append(answer if np.isfinite(answer) else str(answer))
            except Exception as error:
                found[name].append(type(error).__name__)
    return found


def _checked_size(chunk: Any) -> int:
    if isinstance(chunk, bool) or not isinstance(chunk, int | np.integer) or chunk < 1:
        raise SupermodelError(
            f"`chunk` must be a whole number from 1 up, of data sets that a worker gets at once; got {chunk!r}."
        )
    return int(chunk)


def _checked_executor(executor: Any) -> Any:
    if not (executor is None or isinstance(executor, int) or callable(getattr(executor, "submit", None))):
        raise SupermodelError(
            "`executor` must be a number of worker processes from 1 up, or have the `submit` of concurrent.futures, e.g. Dask's "
            f"client.get_executor() or mpi4py.futures.MPIPoolExecutor(); got {executor!r}."
        )
    return checked("executor", executor)


def _checked_resume(resume: Any) -> bool:
    if not isinstance(resume, bool):
        raise SupermodelError(f"`resume` must be true or false; got {resume!r}.")
    return resume
