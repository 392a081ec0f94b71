r"""ln Z of one model for all data sets of a chunk, for as long as each needs.

Every data set is looked at `BEFORE` its weights count: climbs from prior draws, then from what the hills do not explain. Then
it is weighed in rounds, and looked at again, also from the draws of largest weight. Those that have met their target and
showed nothing new leave, and others take their place. What is left after all of `ROUNDS` is for the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.survey.block import FROM_DRAWN, HILL, LOOKS, PRIOR, Block, fit
from supermodel.survey.climb import Found

BEFORE = 2  # looks before weights count: with one, a whole mode is missed too often
FITS = 2  # rounds to which hills are fitted before each weighing
# Rounds of each weighing: the first are as many as a narrow spike on a hill needs to be hit, the last for weights that vary most.
ROUNDS = (16, 16, 32, 64, 64)
ROUND = PRIOR + HILL
LEAST_ESS = 300.0  # effective draws, below which an error cannot be trusted
SURE = 12.0  # effective draws that the error itself rests on, at least
NOVEL = 0.02  # share of Z, or the error if that is more, in hills that the last look has added: there may be more


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
    for cycle in range(len(ROUNDS)):
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

    def without_parameters(self) -> None:
        """Z = L."""
        self.log_z = np.asarray(self.block.at_once({name: jnp.asarray(v) for name, v in self.columns.items()}))
        self.error[:], self.evaluations[:] = 0.0, 1
        self.settled = np.isfinite(self.log_z)

    def cycle(self, some: list[int], cycle: int) -> list[int]:
        """Fit, weigh in rounds, then look whether there is more; those of `some` that are not settled by then."""
        block, rounds = self.block, ROUNDS[cycle]
        data = {name: jnp.asarray(values[self._filled(some)]) for name, values in self.columns.items()}
        found, known = self._begun(data, some) if cycle == 0 else self._resumed(some)
        for _ in range(FITS):
            found, _ = self._fitted(data, found, some)
        sums, best = np.full((4, self.size), -np.inf), Best.none(self.size, block.d)
        for _ in range(rounds):
            last = block.round(data, found, self._chance(block.drawing, some))
            with np.errstate(invalid="ignore"):  # NaN stays NaN, and is not settled
                sums = np.logaddexp(sums, np.stack(last[:4]))
            best = best.joined(last)
        log_z, error, ess, sure = weighed(sums, rounds * ROUND)
        found, novel, _ = self._looked(data, found, some, BEFORE + cycle, best.points, log_z, rounds * ROUND)
        self.evaluations[some] += block.cost_of_look + (rounds + FITS) * ROUND
        is_complete = novel <= np.maximum(NOVEL, error)
        error = np.hypot(error, novel)  # what the look has added is missing from Z
        is_weighty = (error <= self.target) & (ess >= LEAST_ESS) & (sure >= SURE) & known
        self.log_z[some], self.error[some] = log_z[: len(some)], error[: len(some)]
        self.settled[some] = (is_weighty & is_complete)[: len(some)]
        again = []
        for j, i in enumerate(some):
            self.states.pop(i, None)
            if not self.settled[i] and known[j] and np.isfinite(log_z[j]):
                self.states[i] = jax.tree.map(lambda part, j=j: np.asarray(part[j]), (found, known))
                again.append(i)
        return again

    def _begun(self, data: Any, some: list[int]) -> tuple[Any, np.ndarray]:
        """Hills of the first looks, each fitted to a round; and whether the likelihood was a number everywhere."""
        block = self.block
        found = jax.tree.map(lambda a: jnp.broadcast_to(a, (self.size, *a.shape)), Found.none(block.hills, block.d))
        best, log_z, known = np.zeros((self.size, FROM_DRAWN, block.d)), np.zeros(self.size), np.ones(self.size, bool)
        for k in range(BEFORE):
            found, _, numbers = self._looked(data, found, some, k, best, log_z, ROUND)
            found, drawn = self._fitted(data, found, some)
            best, log_z, known = np.asarray(drawn.best), np.asarray(drawn.weights) - np.log(ROUND), known & numbers
        self.evaluations[some] += BEFORE * (block.cost_of_look + ROUND)
        return found, known

    def _looked(
        self, data: Any, found: Any, some: list[int], k: int, best: np.ndarray, log_z: np.ndarray, draws: int
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """The hills and those that look k adds, from `best` too; their share of Z, if hardly seen; and whether all were numbers."""
        block = self.block
        starts, known = block.look(data, found, self._chance(block.crossing, some), block.sets[k % LOOKS])
        found, novel = block.seek(data, np.concatenate([starts, best], axis=1), found, log_z, float(draws))
        return found, np.asarray(novel), np.asarray(known)

    def _resumed(self, some: list[int]) -> tuple[Any, np.ndarray]:
        states = [self.states[i] for i in self._filled(some)]
        return jax.tree.map(lambda *parts: np.stack(parts), *states)

    def _fitted(self, data: Any, found: Any, some: list[int]) -> tuple[Any, Any]:
        """Hills fitted to a round, and the round."""
        drawn = self.block.round(data, found, self._chance(self.block.drawing, some))
        return fit(found, drawn.points, drawn.log_weights), drawn

    def _chance(self, of: Any, some: list[int]) -> Any:
        """What is random for each: of a generator of its own, so that its answer is the same in whatever company."""
        each = {i: of(self.rngs[i]) for i in some}
        return jax.tree.map(lambda *parts: np.stack(parts), *(each[i] for i in self._filled(some)))

    def _filled(self, some: list[int]) -> list[int]:
        """As many as a block has places: one shape, one compilation."""
        return some + some[-1:] * (self.size - len(some))


class Best(NamedTuple):
    """The heaviest draws of all rounds so far."""

    points: np.ndarray
    log_weights: np.ndarray

    @classmethod
    def none(cls, n: int, d: int) -> Best:
        return cls(np.zeros((n, FROM_DRAWN, d)), np.full((n, FROM_DRAWN), -np.inf))

    def joined(self, last: Any) -> Best:
        points = np.concatenate([self.points, last.best], axis=1)
        weights = np.concatenate([self.log_weights, last.best_weights], axis=1)
        order = np.argsort(-weights, axis=1)[:, :FROM_DRAWN]
        return Best(np.take_along_axis(points, order[:, :, None], axis=1), np.take_along_axis(weights, order, axis=1))


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
