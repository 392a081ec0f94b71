"""Blocks of steps: many steps and their records in one compiled call, with Python between the calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supermodel.models.many_points import compiled


class Record(NamedTuple):
    """One recorded draw of all chains: what a block returns, with the draws first. T only where there are levels."""

    alpha: Any  # (T, C), ...
    position: Any  # (T, C, D)
    log_joints: Any  # (T, C, K)
    predictions: Any = None  # (C, K, n_data): the target's level of a blend


Block = Callable[[Any, Any, Any, int, int], tuple[Any, Record]]  # (state, tuning, key, n, thin)


def compiled_block(fresh: Callable, step: Callable, record: Callable, size: int) -> Block:
    """`block(state, tuning, key, n, thin)`: n records (at most `size`), `thin` steps before each, counters made `fresh`.

    `step(state, tuning, key)` gives the next state, `record(state)` what is kept of it. Tuning, `n` and `thin` are
    arguments of the compiled loop: it is compiled once, for warm-up and run.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    @compiled
    def block(state, tuning, key, n, thin):
        def advance(i, carry):
            state, records = carry
            state = lax.fori_loop(0, thin, lambda _, s: step(s, tuning, key), state)
            return state, jax.tree.map(lambda all_, one: all_.at[i].set(one), records, record(state))

        state = fresh(state)
        records = jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), jax.eval_shape(record, state))
        return lax.fori_loop(0, n, advance, (state, records))

    def run(state, tuning, key, n, thin):
        state, records = block(state, tuning, key, n, thin)
        return state, jax.tree.map(lambda x: np.asarray(x)[:n], records)

    return run
