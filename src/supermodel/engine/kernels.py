r"""Moves of $(u, \text{rung})$ for a two-model `product` supermodel on a ladder, for all chains at once.

The target at rung m is $\prod_k J_k(u)^{w_{mk}}$. $\ln J_k$ (and the gradients) of the current point are kept, so a new rung
costs nothing: its conditional given $u$ is drawn exactly. A `Kernel` is a step with what the engine must know of it; a new
move is one function and one row of `KERNELS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.combine import rung_given, weighted
from supermodel.embedding.reference import Reference, stretches
from supermodel.engine.policy import BOLD, FIRST_BLOCKS, JITTER, JUMP_BLOCKS, LEAPFROGS, QUARTER_TURN


class State(NamedTuple):
    """All chains at one moment; `gradients` only for kernels that need them."""

    u: Any  # (n, D)
    log_joints: Any  # (n, K)
    rung: Any  # (n,), integers
    gradients: Any  # (n, K, D), or (n, 0, 0)


class Tuning(NamedTuple):
    """What warm-up learns, as arguments of the compiled block."""

    table: Any  # (M, K): weights of the rungs
    log_prior: Any  # (M,): the balance
    step: Any  # (): size of a local step
    leapfrogs: Any  # (): leapfrogs of a trajectory
    bold: Any = BOLD  # (): share of independent proposals


class Randomness(NamedTuple):
    """The random numbers of a step (or, with one axis more, of many), drawn outside so that JAX and NumPy run the same code."""

    normal: Any  # (n, D)
    accept: Any  # (n,) uniform
    rung: Any  # (n,) uniform
    kind: Any  # (n,) uniform: how bold a step is
    stretch: Any  # (n,): what makes a normal vector a Student t one
    prior: Any  # (n, D) draws of the prior, where the reference has a share of it; else (n, 0)


def at_rungs(xp, tuning: Tuning, rung, log_joints):
    r"""$\sum_k w_{mk} \ln J_k$ at each chain's own rung."""
    return weighted(xp, tuning.table[rung], log_joints)


def draw_rung(xp, uniform, tuning: Tuning, log_joints):
    """The exact conditional draw of the rung given u."""
    return rung_given(xp, uniform, weighted(xp, tuning.table, log_joints[:, None, :]) + tuning.log_prior)


def _decided(xp, state: State, random: Randomness, tuning: Tuning, log_ratio, u, log_joints, gradients=None):
    """Accept with the Metropolis ratio, then draw a new rung. NaN and -inf compare false: such proposals are refused.

    Where a model has no say a point is accepted whatever that model thinks of it: there NaN is kept as impossible.
    """
    accepted = xp.log(random.accept) < log_ratio
    moved = xp.where(accepted[:, None], u, state.u)
    kept = xp.where(accepted[:, None], xp.where(xp.isnan(log_joints), -xp.inf, log_joints), state.log_joints)
    if gradients is None:
        gradients = state.gradients
    else:
        gradients = xp.where(accepted[:, None, None], gradients, state.gradients)
    rung = draw_rung(xp, random.rung, tuning, kept)
    return State(moved, kept, rung, gradients), accepted, (u, log_joints)


def crank_nicolson(
    xp, evaluate: Callable, state: State, random: Randomness, tuning: Tuning, reference: Reference | None
):
    r"""$u' = \sqrt{1 - b^2}\,u + b\,\xi$, reversible for $N(0, I)$: accept with the ratio of $J / N$.

    $b = 1$ (an independent proposal) in a share of the steps, $b$ = `step` in the others. Exact for $J = Z N(0, I)$, at one
    evaluation a step.
    """
    b = xp.where(random.kind < tuning.bold, 1.0, tuning.step)[:, None]
    proposal = xp.sqrt(1.0 - b * b) * state.u + b * random.normal
    log_joints = evaluate(proposal)
    old = at_rungs(xp, tuning, state.rung, state.log_joints) + 0.5 * xp.sum(state.u**2, axis=1)
    new = at_rungs(xp, tuning, state.rung, log_joints) + 0.5 * xp.sum(proposal**2, axis=1)
    return _decided(xp, state, random, tuning, new - old, proposal, log_joints)


def reference_jumps(xp, evaluate: Callable, state: State, random: Randomness, tuning: Tuning, reference: Any):
    r"""A share of the proposals are drawn from the reference $r$ and accepted with the ratio of $J / r$; the others are steps
    of a random walk shaped by one of its hills. The last column of $\ln J_k$ is $\ln r$.
    """
    bold = random.kind < tuning.bold
    pick = xp.where(bold, random.kind / tuning.bold, (random.kind - tuning.bold) / (1.0 - tuning.bold))
    jump = reference.transform(xp, random.normal, pick, random.stretch, random.prior)
    walk = state.u + tuning.step * reference.hills.step(xp, random.normal, pick)
    proposal = xp.where(bold[:, None], jump, walk)
    log_joints = evaluate(proposal)
    old = at_rungs(xp, tuning, state.rung, state.log_joints) - xp.where(bold, state.log_joints[:, -1], 0.0)
    new = at_rungs(xp, tuning, state.rung, log_joints) - xp.where(bold, log_joints[:, -1], 0.0)
    return _decided(xp, state, random, tuning, new - old, proposal, log_joints)


def hamiltonian(xp, evaluate: Callable, state: State, random: Randomness, tuning: Tuning, reference: Reference | None):
    r"""A leapfrog trajectory of $-\sum_k w_{mk} \ln J_k$ from a fresh momentum.

    The step varies from trajectory to trajectory, so that no orbit returns to its start.
    """
    import jax

    w = tuning.table[state.rung]  # (n, K)
    step = (tuning.step * (1 - JITTER + 2 * JITTER * random.kind))[:, None]

    def force(gradients):
        return xp.sum(xp.where(w[..., None] > 0, w[..., None] * gradients, 0.0), axis=1)

    def leapfrog(_, carry):
        u, p, _, gradients = carry
        p = p + 0.5 * step * force(gradients)
        u = u + step * p
        log_joints, gradients = evaluate(u)
        return u, p + 0.5 * step * force(gradients), log_joints, gradients

    start = (state.u, random.normal, state.log_joints, state.gradients)
    u, p, log_joints, gradients = jax.lax.fori_loop(0, tuning.leapfrogs, leapfrog, start)
    old = at_rungs(xp, tuning, state.rung, state.log_joints) - 0.5 * xp.sum(random.normal**2, axis=1)
    new = at_rungs(xp, tuning, state.rung, log_joints) - 0.5 * xp.sum(p**2, axis=1)
    return _decided(xp, state, random, tuning, new - old, u, log_joints, gradients)


class Kernel(NamedTuple):
    """A move and what the engine must know of it."""

    name: str
    step: Callable  # (xp, evaluate, state, random, tuning, reference) -> (state, accepted, (proposed u, its ln J_k))
    first_step: Callable[[int], float]  # of the dimension
    needs_gradients: bool = False
    aim: float | None = None  # the acceptance that warm-up steers the step towards; None: the step stays
    first_blocks: int = FIRST_BLOCKS  # before the first estimate

    def evaluations(self, tuning: Tuning) -> int:
        """Evaluations of a model per chain and step."""
        return int(tuning.leapfrogs) if self.needs_gradients else 1

    def steered(self, step: float, acceptance: float) -> float:
        """A better step after a block of this acceptance."""
        return step if self.aim is None else float(np.clip(step * np.exp(acceptance - self.aim), 0.01, 1.2))


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("crank_nicolson", crank_nicolson, lambda d: 0.3),
        Kernel("reference_jumps", reference_jumps, lambda d: 1.2 * max(d, 1) ** -0.5, first_blocks=JUMP_BLOCKS),
        Kernel("hamiltonian", hamiltonian, lambda d: 0.9 * max(d, 1) ** -0.25, needs_gradients=True, aim=0.8),
    )
}


def leapfrogs(step: float) -> int:
    """Enough leapfrogs for a quarter turn, which takes a standard normal to an independent draw."""
    return int(np.clip(np.ceil(QUARTER_TURN / step), *LEAPFROGS))


def randomness(
    rng: np.random.Generator, steps: int, n: int, dimension: int, dof: float = np.inf, prior: np.ndarray | None = None
) -> Randomness:
    """The random numbers of `steps` steps. From NumPy for both kinds of likelihood: compiled code then holds no generator,
    which halves its compile time, and a likelihood gives the same chains whether JAX can trace it or not.
    """
    uniform = rng.random((3, steps, n))
    normal = rng.standard_normal((steps, n, dimension))
    prior = np.zeros((steps, n, 0)) if prior is None else prior
    return Randomness(normal, 1.0 - uniform[0], uniform[1], uniform[2], stretches(rng, dof, (steps, n)), prior)
