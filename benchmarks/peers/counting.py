"""One wrapper that counts for every program: each point at which a likelihood is computed, with its gradient or without."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.fire.problem import Side


class OutOfTime(RuntimeError):
    """Raised inside a program at its next likelihood call, once its time is over."""


def cpu_seconds() -> float:
    """Of this process, all its threads and the processes that it has waited for."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


@dataclass
class Tally:
    """Evaluations so far. A gradient comes with its value and counts as one evaluation; `gradients` says how many did.

    Seconds are those of the processor, so that a busy machine favours nobody. `latency` is what a call of a slow likelihood
    takes, and is added; where `sleeps` it is also waited for, since a program may look at what a call costs.
    """

    limit: float = float("inf")  # seconds, without the counting and the waiting
    latency: float = 0.0
    sleeps: bool = False
    evaluations: int = 0
    gradients: int = 0
    per_callback: float = 0.0  # in compiled programs the counting costs time, which is taken off again
    callbacks: int = 0
    began: float = field(default_factory=lambda: cpu_seconds())

    def add(self, n: int, with_gradient: bool = False) -> None:
        self.evaluations += n
        self.gradients += n if with_gradient else 0
        if self.latency and self.sleeps:
            time.sleep(self.latency * n)
        if self.is_late:
            raise OutOfTime

    @property
    def busy(self) -> float:
        """Seconds so far, without the counting."""
        return max(cpu_seconds() - self.began - self.callbacks * self.per_callback, 0.0)

    @property
    def is_late(self) -> bool:
        return self.busy > self.limit

    @property
    def seconds(self) -> float:
        """What the run takes, with the waiting."""
        return self.busy + self.latency * self.evaluations


def counted(side: Side, tally: Tally) -> Side:
    """The same model, whose likelihood adds to `tally`: in NumPy directly, in compiled code by a call back to Python."""
    traced = None

    def log_likelihood(p, xp):
        nonlocal traced
        if xp is np:
            found = side.log_likelihood(p, np)
            tally.add(np.size(found))
            return found
        traced = traced or _traced(lambda q: side.log_likelihood(q, xp), tally)
        return traced(p)

    return replace(side, log_likelihood=log_likelihood)


def _traced(f, tally: Tally):
    """JAX calls the first form for a value and the rule for a value with its gradient, so that each is counted once.

    The sum that goes to Python is of one number of each parameter: it tells how many points a batch has, and is small (large
    arguments of callbacks can deadlock).
    """
    import jax
    import jax.numpy as jnp

    def mark(p) -> Any:
        return sum(jnp.ravel(leaf)[0] for leaf in jax.tree.leaves(p))

    value_only, with_gradient = _tick(tally, False), _tick(tally, True)

    @jax.custom_jvp
    def form(p):
        return f(p) + value_only(mark(p))

    @form.defjvp
    def rule(primals, tangents):
        value, slope = jax.jvp(f, primals, tangents)
        zero = with_gradient(jax.lax.stop_gradient(mark(*primals)))
        return value + zero, slope * (1.0 + zero)  # so that a gradient whose value nobody reads is counted too

    return form


def _tick(tally: Tally, with_gradient: bool):
    """A zero that is counted whenever it is computed."""
    import jax
    import jax.numpy as jnp

    def count(x):
        tally.callbacks += 1
        tally.add(int(np.size(x)), with_gradient)
        return np.zeros(np.shape(x), x.dtype)

    @jax.custom_jvp
    def tick(x):
        return jax.pure_callback(count, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="expand_dims")

    @tick.defjvp
    def rule(primals, tangents):
        return tick(*primals), jnp.zeros_like(tangents[0])

    return tick


def seconds_of_a_callback(n: int = 2000) -> float:
    """What one counted call from compiled code costs on this machine, now."""
    import jax
    import jax.numpy as jnp

    tick = _tick(Tally(), False)
    loop = jax.jit(lambda x: jax.lax.scan(lambda c, _: (c + tick(c), None), x, None, length=n)[0])
    jax.block_until_ready(loop(jnp.asarray(1.0)))
    began = cpu_seconds()
    jax.block_until_ready(loop(jnp.asarray(2.0)))
    return (cpu_seconds() - began) / n
