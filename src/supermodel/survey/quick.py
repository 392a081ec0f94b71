r"""The quick road: evidences of all data sets of a chunk together, for as long as each needs.

Every data set is looked at twice (climbs from prior draws, then from draws that the hills do not explain) before its weights
count. Then rounds are added, 1, 2, 4, ..., after each of which those that have met their target leave and others take their
place; before each the hills are refitted to the round before, and climbs start where weights were largest. What is left after
`CYCLES`, and what shows a sign of trouble, goes on to the engine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.survey.block import CROSSED, ENDS, FROM_CROSSED, FROM_LOOK, HILL, LOOK, LOOKS, PRIOR, Block
from supermodel.survey.climb import MORE, STEPS, Found
from supermodel.survey.job import Chunk, Job, Outcome

CYCLES = 6  # the last has 32 rounds
LEAST_ESS = 150.0  # effective draws, below which an error cannot be trusted
SURE = 6.0  # effective draws that the error itself rests on, at least
NOVEL = 0.1  # share of Z in hills that the last look has added and that had hardly been seen: there may be more


class Evidences:
    """ln Z of one model for the data sets of a chunk."""

    def __init__(self, n: int):
        self.log_z, self.error = np.full(n, np.nan), np.full(n, np.inf)
        self.settled, self.evaluations = np.zeros(n, bool), np.zeros(n, int)


@in_float64
def evidences(block: Block, columns: Mapping[str, np.ndarray], seed: int, rows: np.ndarray, target: float) -> Evidences:
    """Weigh the model against every data set until its error is `target` at most."""
    n, width = len(rows), max((int(np.prod(v.shape[1:])) for v in columns.values()), default=1)
    answer, size = Evidences(n), block.rows_at_once(width)
    keys = jax.vmap(lambda row: jax.random.fold_in(jax.random.key(seed), row))(jnp.asarray(rows))
    kept: dict[int, Any] = {}  # what is known of a data set between its cycles
    waiting = list(range(n))
    for cycle in range(CYCLES):
        again = []
        for i in range(0, len(waiting), size):
            some = waiting[i : i + size]
            filled = np.array(some + some[-1:] * (size - len(some)))
            data = {name: jnp.asarray(values[filled]) for name, values in columns.items()}
            state = _begun(block, data, keys[filled], answer, some) if cycle == 0 else _stacked(kept, filled)
            again += _cycle(block, data, keys[filled], state, cycle, target, answer, some, kept)
        waiting = again
    return answer


def _begun(block: Block, data: Any, keys: Any, answer: Evidences, some: list[int]) -> tuple:
    """A first look and a first round, from which the second look begins."""
    found = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(keys), *a.shape)), Found.none(block.hills, block.d))
    starts, known = block.look(data, found, _key(keys, 0, 1), block.sets[0], block.pool)
    found, _ = block.seek(data, starts, found, jnp.zeros(len(keys)), 1.0)
    first = block.round(data, found, _key(keys, 0, 0), block.pool)
    answer.evaluations[some] += _of_look(block) + PRIOR + HILL
    return block.fit(found, first.points, first.log_weights), first.weights - np.log(PRIOR + HILL), known


def _cycle(block: Block, data, keys, state, cycle: int, target: float, answer: Evidences, some, kept) -> list[int]:
    """Look, fit, then weigh in 2^cycle rounds; the data sets that are not settled by then, with what is known of them."""
    found, log_z, known = state
    starts, _ = block.look(data, found, _key(keys, cycle + 1, 63), block.sets[(cycle + 1) % LOOKS], block.pool)
    found, novel = block.seek(data, starts, found, log_z, 1.0 * 2**cycle * (PRIOR + HILL))
    last = block.round(data, found, _key(keys, cycle + 1, 62), block.pool)
    found = block.fit(found, last.points, last.log_weights)
    sums: Any = None
    for k in range(2**cycle):
        last = block.round(data, found, _key(keys, cycle + 1, k), block.pool)
        new = np.stack(last[:4])
        sums = new if sums is None else np.logaddexp(sums, new)
    answer.evaluations[some] += _of_look(block) + (2**cycle + 1) * (PRIOR + HILL)
    log_z, error, ess, sure = _weighed(sums, 2**cycle)
    fine = (error <= target) & (ess >= LEAST_ESS) & (sure >= SURE) & (np.asarray(novel) <= NOVEL) & np.asarray(known)
    again, better = [], block.fit(found, last.points, last.log_weights)
    for j, row in enumerate(some):
        answer.log_z[row], answer.error[row], answer.settled[row] = log_z[j], error[j], fine[j]
        kept.pop(row, None)
        if not fine[j] and known[j] and np.isfinite(log_z[j]):
            kept[row] = jax.tree.map(lambda a, j=j: np.asarray(a[j]), (better, log_z, known))
            again.append(row)
    return again


def _weighed(sums: np.ndarray, rounds: int) -> tuple[np.ndarray, ...]:
    r"""ln Z, its error, and the effective draws that the two rest on.

    Draws are stratified: as many from the prior and from the hills as their shares say, so that only the variance within
    each counts. $E[\ln \hat Z] = \ln Z - \frac12 \mathrm{var}$.
    """
    weights, squares, variance, variance_squares = sums
    with np.errstate(invalid="ignore", over="ignore"):
        relative, sure = np.exp(variance - 2 * weights), np.exp(2 * variance - variance_squares)
        log_z = weights - np.log((PRIOR + HILL) * rounds) + 0.5 * relative
        # An error that rests on few draws is itself uncertain: Student's law, of which this is the variance.
        error = np.sqrt(relative * sure / np.maximum(sure - 2.0, 1e-9))
        return log_z, error, np.exp(2 * weights - squares), sure


def _key(keys: Any, cycle: int, k: int) -> Any:
    return jax.vmap(lambda key: jax.random.fold_in(key, 64 * cycle + k))(keys)


def _stacked(kept: dict[int, Any], rows: np.ndarray) -> Any:
    return jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *(kept[row] for row in rows.tolist()))


def _of_look(block: Block) -> int:
    """Evaluations of a look, with gradient those of its climbs, curvatures included."""
    return LOOK + CROSSED + (FROM_LOOK + FROM_CROSSED) * (STEPS + 1) + ENDS * (MORE + 2 + block.d)
