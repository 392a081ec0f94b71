r"""Moves of $(u, \text{rung})$ for a two-model `product` supermodel on a ladder, for all chains at once.

The target at rung m is $\prod_k J_k(u)^{w_{mk}}$. Warped coordinates make every $J_k$ look like $Z_k N(u; 0, I)$, which
the moves exploit: `crank_nicolson` is exact for that Gaussian at one evaluation a step; `hamiltonian` needs a few
gradients and pays where the Gaussian is only a rough likeness; `hill_jumping` serves where the reference is a mixture.
$\ln J_k$ (and the gradients) of the current point are kept, so a new rung costs nothing: its conditional given $u$ is
drawn exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from supermodel.engine.mixture import Mixture


class State(NamedTuple):
    """All chains at one moment; `gradients` only under `hamiltonian`."""

    u: Any  # (n, D)
    log_joints: Any  # (n, K)
    rung: Any  # (n,), integers
    gradients: Any  # (n, K, D), or (n, 0, 0)


class Tuning(NamedTuple):
    """What warm-up learns, as arguments of the compiled block."""

    table: Any  # (M, K): weights of the rungs
    log_prior: Any  # (M,): the balance
    step: Any  # (): local step of crank_nicolson, or leapfrog step
    leapfrogs: Any  # (): leapfrogs of a trajectory


def weighted(xp, table, rung, log_joints):
    r"""$\sum_k w_{mk} \ln J_k$; a model of weight 0 has no say even where its density is 0."""
    w = table[rung]
    return xp.sum(xp.where(w > 0, w * xp.where(w > 0, log_joints, 0.0), 0.0), axis=-1)


def log_rungs(xp, table, log_prior, log_joints):
    """ln p(rung | u) up to a constant: (n, M)."""
    w = table[None, :, :]
    terms = xp.where(w > 0, w * xp.where(w > 0, log_joints[:, None, :], 0.0), 0.0)
    return xp.sum(terms, axis=-1) + log_prior


def draw_rung(xp, uniform, table, log_prior, log_joints):
    """The exact conditional draw of the rung, by inverting its cumulative probability."""
    logits = log_rungs(xp, table, log_prior, log_joints)
    p = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    cumulative = xp.cumsum(p, axis=1) / xp.sum(p, axis=1, keepdims=True)
    return xp.minimum(xp.sum(uniform[:, None] > cumulative, axis=1), table.shape[0] - 1)


class Randomness(NamedTuple):
    """The random numbers of a step (or, with one axis more, of many), drawn outside so that JAX and NumPy run the same code."""

    normal: Any  # (n, D)
    accept: Any  # (n,) uniform
    rung: Any  # (n,) uniform
    kind: Any  # (n,) uniform: how bold a step is


BOLD = 0.5  # share of independent proposals among the Crank-Nicolson steps: the rest are local and free stuck chains


def crank_nicolson(xp, evaluate: Callable, state: State, random: Randomness, tuning: Tuning) -> tuple[State, Any]:
    r"""$u' = \sqrt{1 - b^2}\,u + b\,\xi$, reversible for $N(0, I)$: accept with the ratio of $J / N$; then a new rung.

    $b = 1$ (an independent proposal) in most steps, $b$ = `step` in the others.
    """
    b = xp.where(random.kind < BOLD, 1.0, tuning.step)[:, None]
    proposal = xp.sqrt(1.0 - b * b) * state.u + b * random.normal
    log_joints = evaluate(proposal)
    old = weighted(xp, tuning.table, state.rung, state.log_joints) + 0.5 * xp.sum(state.u**2, axis=1)
    new = weighted(xp, tuning.table, state.rung, log_joints) + 0.5 * xp.sum(proposal**2, axis=1)
    accepted = xp.log(random.accept) < new - old  # NaN and -inf compare false: such proposals are refused
    u = xp.where(accepted[:, None], proposal, state.u)
    kept = xp.where(accepted[:, None], log_joints, state.log_joints)
    rung = draw_rung(xp, random.rung, tuning.table, tuning.log_prior, kept)
    return State(u, kept, rung, state.gradients), accepted


def hill_jumping(
    xp, evaluate: Callable, state: State, random: Randomness, tuning: Tuning, mixture: Mixture
) -> tuple[State, Any]:
    r"""Half of the proposals are drawn from the mixture $r$ and accepted with the ratio of $J / r$; the others are steps of a
    random walk shaped by one of its hills. The last column of $\ln J_k$ is $\ln r$.
    """
    bold = random.kind < BOLD
    pick = xp.where(bold, random.kind / BOLD, (random.kind - BOLD) / (1.0 - BOLD))
    jump = mixture.transform(xp, random.normal, pick)
    walk = state.u + tuning.step * mixture.step(xp, random.normal, pick)
    proposal = xp.where(bold[:, None], jump, walk)
    log_joints = evaluate(proposal)
    old = weighted(xp, tuning.table, state.rung, state.log_joints) - xp.where(bold, state.log_joints[:, -1], 0.0)
    new = weighted(xp, tuning.table, state.rung, log_joints) - xp.where(bold, log_joints[:, -1], 0.0)
    accepted = xp.log(random.accept) < new - old
    u = xp.where(accepted[:, None], proposal, state.u)
    kept = xp.where(accepted[:, None], log_joints, state.log_joints)
    rung = draw_rung(xp, random.rung, tuning.table, tuning.log_prior, kept)
    return State(u, kept, rung, state.gradients), accepted


def hamiltonian(evaluate: Callable, state: State, random: Randomness, tuning: Tuning) -> tuple[State, Any]:
    r"""A leapfrog trajectory of $-\sum_k w_{mk} \ln J_k$ from a fresh momentum, then a new rung.

    The step varies by 20% from trajectory to trajectory, so that no orbit returns to its start.
    """
    import jax
    import jax.numpy as jnp

    w = tuning.table[state.rung]  # (n, K)
    step = (tuning.step * (0.8 + 0.4 * random.kind))[:, None]

    def force(gradients):
        return jnp.sum(jnp.where(w[..., None] > 0, w[..., None] * gradients, 0.0), axis=1)

    def leapfrog(_, carry):
        u, p, _, gradients = carry
        p = p + 0.5 * step * force(gradients)
        u = u + step * p
        log_joints, gradients = evaluate(u)
        return u, p + 0.5 * step * force(gradients), log_joints, gradients

    start = (state.u, random.normal, state.log_joints, state.gradients)
    u, p, log_joints, gradients = jax.lax.fori_loop(0, tuning.leapfrogs, leapfrog, start)
    old = weighted(jnp, tuning.table, state.rung, state.log_joints) - 0.5 * jnp.sum(random.normal**2, axis=1)
    new = weighted(jnp, tuning.table, state.rung, log_joints) - 0.5 * jnp.sum(p**2, axis=1)
    accepted = jnp.log(random.accept) < new - old
    u = jnp.where(accepted[:, None], u, state.u)
    kept = jnp.where(accepted[:, None], log_joints, state.log_joints)
    gradients = jnp.where(accepted[:, None, None], gradients, state.gradients)
    rung = draw_rung(jnp, random.rung, tuning.table, tuning.log_prior, kept)
    return State(u, kept, rung, gradients), accepted


def randomness(rng: np.random.Generator, steps: int, n: int, dimension: int) -> Randomness:
    """The random numbers of `steps` steps. From NumPy for both kinds of likelihood: compiled code then holds no generator,
    which halves its compile time, and a likelihood gives the same chains whether JAX can trace it or not.
    """
    uniform = rng.random((3, steps, n))
    return Randomness(rng.standard_normal((steps, n, dimension)), 1.0 - uniform[0], uniform[1], uniform[2])
