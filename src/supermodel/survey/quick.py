"""The quick road of a chunk: all its data sets together, and what they cannot settle is left to the engine."""

from __future__ import annotations

import itertools
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from supermodel.errors import DataError
from supermodel.jax_scope import in_float64
from supermodel.models.model import Model
from supermodel.survey.block import Block
from supermodel.survey.evidences import Evidences, evidences
from supermodel.survey.job import Chunk, Job, Outcome
from supermodel.survey.masked import LENGTH, masked

MOST_PARAMETERS = 12  # beyond, independent draws of hills no longer do: the engine's chains do
KEPT = 8  # models, of a job and of a kind of data, whose programs a worker keeps

_blocks: OrderedDict[Any, Block | None] = OrderedDict()


def quick(job: Job, chunk: Chunk) -> list[Outcome | None]:
    """What came of each data set; None where the engine must decide."""
    began, n = time.monotonic(), len(chunk)
    blocks = _blocks_of(job, chunk)
    if blocks is None:
        return [None] * n
    columns = _columns(chunk)
    target = job.target_error / np.sqrt(2.0)
    found = {
        name: evidences(block, columns, (job.seed, k), chunk.rows, target)
        for k, (name, block) in enumerate(blocks.items())
    }
    evaluations = sum(one.evaluations for one in found.values())
    seconds = (time.monotonic() - began) * evaluations / evaluations.sum()
    settled = np.all([one.settled for one in found.values()], axis=0)
    return [
        _outcome(chunk, i, found, int(evaluations[i]), float(seconds[i]))
        if settled[i] and _is_admitted(job, chunk, i)
        else None
        for i in range(n)
    ]


def is_quick(job: Job, chunk: Chunk) -> bool:
    """Whether data sets like these can take the quick road at all."""
    return _blocks_of(job, chunk) is not None


def _outcome(chunk: Chunk, i: int, found: Mapping[str, Evidences], evaluations: int, seconds: float) -> Outcome:
    known = {name: (float(one.log_z[i]), float(one.error[i])) for name, one in found.items()}
    pairs = {
        (a, b): (known[a][0] - known[b][0], float(np.hypot(known[a][1], known[b][1])))
        for a, b in itertools.combinations(known, 2)
    }
    return Outcome(int(chunk.rows[i]), chunk.names[i], known, pairs, evaluations=evaluations, seconds=seconds)


def _columns(chunk: Chunk) -> dict[str, np.ndarray]:
    return dict(chunk.columns) if chunk.lengths is None else {**chunk.columns, LENGTH: chunk.lengths}


def _is_admitted(job: Job, chunk: Chunk, i: int) -> bool:
    """Whether the noise takes such data: in a compiled program nothing can be refused."""
    data = {name: column[i] for name, column in chunk.columns.items()}
    try:
        for model in job.models.values():
            check = getattr(model.noise, "check", None)
            if check is not None:
                check(data)
    except DataError:
        return False
    return True


@in_float64
def _blocks_of(job: Job, chunk: Chunk) -> dict[str, Block] | None:
    """The programs of each model, or None where one of them has none."""
    if job.settings.get("explore", "auto") == "thorough" or job.settings.get("max_evaluations") is not None:
        return None  # what was asked for is the engine's
    data = {name: column[0] for name, column in _columns(chunk).items()}
    kind = tuple((name, column.shape, str(column.dtype)) for name, column in sorted(data.items()))
    found = {}
    for name, model in job.models.items():
        key = job.token, name, kind
        if key not in _blocks:
            _blocks[key] = _block(model if chunk.lengths is None else masked(model), job.seed, data)
        _blocks.move_to_end(key)
        found[name] = _blocks[key]
    while len(_blocks) > max(KEPT, len(found)):
        _blocks.popitem(last=False)
    return None if None in found.values() else found  # type: ignore[return-value]


def _block(model: Model | None, seed: int, data: Mapping[str, np.ndarray]) -> Block | None:
    """The programs of a model that JAX can trace with its data, and that has few parameters."""
    if model is None or model.space.dimension > MOST_PARAMETERS or not getattr(model.space, "traceable", True):
        return None
    if any(column.dtype.kind not in "biuf" for column in data.values()):
        return None
    try:
        shape = jax.eval_shape(
            lambda x, data: model.log_likelihood(model.space.constrain(x), data),
            jax.ShapeDtypeStruct((model.space.dimension,), float),
            {name: jax.ShapeDtypeStruct(column.shape, column.dtype) for name, column in data.items()},
        )
    except Exception:  # whatever a plain-Python likelihood does with a tracer; the engine tells what is wrong
        return None
    return Block(model, seed) if shape.shape == () else None
