r"""ln Z of one model for all data sets of a chunk, for as long as each needs.

Every data set is looked at twice (climbs from prior draws, then from draws that the hills do not explain) before its weights
count. Then it is weighed in 1, 2, 4, ... rounds, after each of which those that have met their target leave and others take
their place; before each the hills are refitted and there is another look. What is left after `CYCLES` is for the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.survey.block import CROSSED, ENDS, FROM_CROSSED, FROM_LOOK, HILL, LINES, LOOK, LOOKS, PRIOR, Block
from supermodel.survey.climb import MORE, STEPS, Found

CYCLES = 7  # the last has 64 rounds
ROUND = PRIOR + HILL
LEAST_ESS = 300.0  # effective draws, below which an error cannot be trusted
SURE = 6.0  # effective draws that the error itself rests on, at least
NOVEL = 0.1  # share of Z in hills that the last look has added and that had hardly been seen: there may be more


@in_float64
def evidences(
    block: Block, columns: Mapping[str, np.ndarray], seed: tuple[int, ...], rows: np.ndarray, target: float
) -> Evidences:
    """Weigh the model against every data set, (n, ...) in each column, until its error is `target` at most.

    What is random for a data set follows from `seed` and its own of `rows`, whatever the others are.
    """
    found = Evidences(block, columns, [np.random.default_rng((*seed, int(row))) for row in rows], target)
    if block.d == 0:
        found.without_parameters()
        return found
    waiting = list(range(len(rows)))
    for cycle in range(CYCLES):
        parts = [waiting[i : i + found.size] for i in range(0, len(waiting), found.size)]
        waiting = [i for part in parts for i in found.cycle(part, cycle)]
    return found


class Evidences:
    """ln Z, its error, whether it can be trusted, and what it cost: one of each for every data set."""

    def __init__(self, block: Block, columns: Mapping[str, np.ndarray], rngs: list[np.random.Generator], target: float):
        self.block, self.columns, self.rngs, self.target = block, columns, rngs, target
        n = len(rngs)
        self.log_z, self.error = np.full(n, np.nan), np.full(n, np.inf)
        self.settled, self.evaluations = np.zeros(n, bool), np.zeros(n, int)
        self.size = block.rows_at_once(max((int(np.prod(v.shape[1:])) for v in columns.values()), default=1))
        self.states: dict[int, Any] = {}  # what is known of a data set between its cycles
        self.waiting: set[int] = set()  # data sets with an answer that rests on enough draws

    def without_parameters(self) -> None:
        """Z = L."""
        self.log_z = np.asarray(self.block.at_once({name: jnp.asarray(v) for name, v in self.columns.items()}))
        self.error[:], self.evaluations[:] = 0.0, 1
        self.settled = np.isfinite(self.log_z)

    def cycle(self, some: list[int], cycle: int) -> list[int]:
        """Look, fit, then weigh in 2^cycle rounds; those of `some` that are not settled by then."""
        block, rounds = self.block, 2**cycle
        data = {name: jnp.asarray(values[self._filled(some)]) for name, values in self.columns.items()}
        found, log_z, known = self._begun(data, some) if cycle == 0 else self._resumed(some)
        starts, _ = block.look(data, found, self._chance(block.crossing, some), block.sets[(cycle + 1) % LOOKS])
        found, novel = block.seek(data, starts, found, log_z, float(rounds * ROUND))
        found, _ = self._fitted(data, found, some)
        sums = np.full((4, self.size), -np.inf)
        for _ in range(rounds):
            last = block.round(data, found, self._chance(block.drawing, some))
            with np.errstate(invalid="ignore"):  # NaN stays NaN, and is not settled
                sums = np.logaddexp(sums, np.stack(last[:4]))
        self.evaluations[some] += self._of_look + (rounds + 1) * ROUND
        log_z, error, ess, sure = weighed(sums, rounds * ROUND)
        weighty = (error <= self.target) & (ess >= LEAST_ESS) & (sure >= SURE) & known
        complete = np.asarray(novel) <= NOVEL
        better = block.fit(found, last.points, last.log_weights)
        again = []
        for j, i in enumerate(some):
            self.states.pop(i, None)
            if weighty[j] or i not in self.waiting:
                self.log_z[i], self.error[i] = log_z[j], error[j]
            # Weights that were good enough wait for a look that finds nothing more: this one, or the next.
            self.settled[i] = complete[j] and (weighty[j] or i in self.waiting)
            if weighty[j]:
                self.waiting.add(i)
            if not self.settled[i] and known[j] and np.isfinite(log_z[j]):
                self.states[i] = jax.tree.map(lambda part, j=j: np.asarray(part[j]), (better, log_z, known))
                again.append(i)
        return again

    def _begun(self, data: Any, some: list[int]) -> tuple[Any, Any, np.ndarray]:
        """Hills of a first look, fitted to a first round; ln Z so far; and whether the likelihood was a number everywhere."""
        block = self.block
        found = jax.tree.map(lambda a: jnp.broadcast_to(a, (self.size, *a.shape)), Found.none(block.hills, block.d))
        starts, known = block.look(data, found, self._chance(block.crossing, some), block.sets[0])
        found, _ = block.seek(data, starts, found, np.zeros(self.size), 1.0)
        self.evaluations[some] += self._of_look + ROUND
        return *self._fitted(data, found, some), np.asarray(known)

    def _resumed(self, some: list[int]) -> tuple[Any, Any, np.ndarray]:
        states = [self.states[i] for i in self._filled(some)]
        return jax.tree.map(lambda *parts: np.stack(parts), *states)

    def _fitted(self, data: Any, found: Any, some: list[int]) -> tuple[Any, Any]:
        """Hills fitted to a round, and its ln Z."""
        first = self.block.round(data, found, self._chance(self.block.drawing, some))
        return self.block.fit(found, first.points, first.log_weights), np.asarray(first.weights) - np.log(ROUND)

    def _chance(self, of: Any, some: list[int]) -> Any:
        """What is random for each: of a generator of its own, so that its answer is the same in whatever company."""
        each = {i: of(self.rngs[i]) for i in some}
        return jax.tree.map(lambda *parts: np.stack(parts), *(each[i] for i in self._filled(some)))

    def _filled(self, some: list[int]) -> list[int]:
        """As many as a block has places: one shape, one compilation."""
        return some + some[-1:] * (self.size - len(some))

    @property
    def _of_look(self) -> int:
        """Evaluations, with gradient those of the climbs, curvatures included."""
        return LOOK + LINES + CROSSED + (FROM_LOOK + FROM_CROSSED) * (STEPS + 1) + ENDS * (MORE + 2 + self.block.d)


def weighed(sums: np.ndarray, draws: int) -> tuple[np.ndarray, ...]:
    r"""ln Z, its error, and the effective draws that the two rest on, of the four sums of `block.Round`.

    Draws are stratified: as many from the prior and from the hills as their shares say, so that only the variance within
    each counts. $E[\ln \hat Z] = \ln Z - \frac12 \mathrm{var}$.
    """
    weights, squares, variance, variance_squares = sums
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        relative = np.exp(variance - 2 * weights)
        sure = np.where(variance > -np.inf, np.exp(2 * variance - variance_squares), np.inf)  # none varies: exact
        # An error that rests on few draws is itself uncertain: Student's law, of which this is the variance.
        error = np.sqrt(np.where(sure < np.inf, relative / np.maximum(1.0 - 2.0 / sure, 1e-9), 0.0))
        return weights - np.log(draws) + 0.5 * relative, error, np.exp(2 * weights - squares), sure
