r"""Chains with gradients, for models of many parameters: short Hamiltonian chains about a mode, or NUTS from afar.

`about_a_mode` refits the warp to the draws and the scores after each round: it is cheap, and enough where the mode is near
the mass. `nuts` (BlackJAX, adapted metric) starts from dispersed prior draws: it finds the mass of hierarchies whose mode
is nowhere near it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.embedding.reference import standard_normal
from supermodel.embedding.warp import Warp, identity
from supermodel.engine.edge import Edge, padded, with_reference
from supermodel.engine.kernels import KERNELS, Tuning, leapfrogs
from supermodel.engine.meter import Meter
from supermodel.engine.whiten import by_moments, by_scores, spread
from supermodel.models.joint import Joint
from supermodel.verdict.diagnostics import split_rhat

WALKERS, ROUND, ROUNDS, MOST_ROUNDS = 16, 12, 5, 10
MIXED = 1.2  # R-hat of ln J above which they have not settled
NUTS_CHAINS, NUTS_WARMUP, NUTS_DRAWS, NUTS_DOUBLINGS = 4, 700, 400, 10
SHORT = (
    30,
    20,
    7,
)  # warm-up, draws, doublings: to be in the mass and roughly know its scales, where nested Laplace does the rest


class Chains(NamedTuple):
    """Draws of the posterior, roughly, with ln J there, and the warp that they suggest."""

    x: np.ndarray  # (n, d)
    log_joint: np.ndarray  # (n,)
    warp: Warp
    step: float
    rhat: float


def about_a_mode(
    joint: Joint, meter: Meter, rng: np.random.Generator, seed: int, stream: int, warp: Warp
) -> Chains | None:
    """Short chains in warped coordinates, the warp refitted after each round; None if they do not hold together.

    The fit takes the draws of the last three rounds, or as many as there are parameters (the noise of the centre is what two models
    with common parameters then differ by), and the gradients that the trajectories computed anyway.
    """
    d = joint.dimension
    window = max(3, -(-d // (WALKERS * (ROUND - ROUND // 3))))
    rounds = max(ROUNDS, window + 2)
    u, step = 0.5 * rng.standard_normal((WALKERS, d)), d**-0.25
    table, prior = padded(np.array([[1.0, 0.0]]), np.zeros(1))
    edge = Edge(with_reference(joint, warp, standard_normal(d)), KERNELS["hamiltonian"], WALKERS, stream, meter)
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # points, ln J, gradients, of each round
    for n in range(1, max(MOST_ROUNDS, rounds) + 1):
        edge.pair.warps = (warp, identity(0))
        edge.begin(u, np.zeros(WALKERS, int))
        block = edge.advance(seed, ROUND, Tuning(table, prior, step, leapfrogs(step)))
        step = float(np.clip(step * np.exp(block.acceptance - 0.85), 0.02, 1.2))
        late = np.s_[:, ROUND // 3 :]
        gradients: np.ndarray = np.asarray(block.gradients)[late].reshape(-1, d)
        gradients = np.linalg.solve(np.asarray(warp.factor).T, gradients.T).T  # in x
        log_joint = block.log_joints[late][..., 0].reshape(-1) - warp.log_det_value()
        seen.append((warp.points(block.u[late].reshape(-1, d)), log_joint, gradients))
        points, log_joint, gradients = (np.concatenate(parts) for parts in zip(*seen[-window:], strict=True))
        if not (np.all(np.isfinite(points)) and np.all(np.isfinite(gradients))):
            return None
        last, old = warp.points(np.asarray(block.u[:, -1])), warp
        candidates = [old, by_scores(points, gradients, old)]
        if len(points) > 2 * d:
            candidates.append(by_moments(points, shrink_to=old))
        warp = min(candidates, key=lambda w: spread(log_joint, points, w))
        u = warp.inverse(last)
        by_chain = log_joint.reshape(-1, WALKERS, ROUND - ROUND // 3).swapaxes(0, 1).reshape(WALKERS, -1)
        rhat = split_rhat(by_chain)
        if n >= rounds and rhat < MIXED:
            break
    return Chains(points, log_joint, warp, step, rhat)


def nuts(
    joint: Joint,
    meter: Meter,
    rng: np.random.Generator,
    seed: int,
    warmup: int = NUTS_WARMUP,
    draws: int = NUTS_DRAWS,
    doublings: int = NUTS_DOUBLINGS,
) -> Chains:
    """NUTS with window adaptation from the best of some prior draws; a diagonal metric for many parameters."""
    import blackjax
    import jax
    import jax.numpy as jnp

    d = joint.dimension
    starts = _starts(joint, meter, rng)
    adapt = blackjax.window_adaptation(
        blackjax.nuts, joint.__call__, is_mass_matrix_diagonal=d > 50, target_acceptance_rate=0.85, max_num_doublings=doublings,
        adaptation_info_fn=blackjax.adaptation.base.get_filter_adapt_info_fn(info_keys={"num_integration_steps"}),
    )  # fmt: skip

    def run(key, start):
        (state, parameters), info = adapt.run(key, start, warmup)
        kernel = blackjax.nuts(joint.__call__, **parameters)

        def step(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, state.logdensity, info.num_integration_steps)

        out = jax.lax.scan(step, state, jax.random.split(key, draws))[1]
        return (*out, info.info.num_integration_steps.sum())

    meter.check(NUTS_CHAINS)
    keys = jax.random.split(jax.random.key(seed), NUTS_CHAINS)
    x, log_joint, steps, before = (np.asarray(a) for a in jax.jit(jax.vmap(run))(keys, jnp.asarray(starts)))
    meter.count(int(steps.sum() + before.sum()), int(steps.sum() + before.sum()))
    flat = x.reshape(-1, d)
    return Chains(flat, log_joint.reshape(-1), by_moments(flat), 0.0, split_rhat(log_joint))


def _starts(joint: Joint, meter: Meter, rng: np.random.Generator) -> np.ndarray:
    """Dispersed: each chain from the best of its own sixteen prior draws, pulled halfway to their middle."""
    x = joint.space.sample_prior(rng, 16 * NUTS_CHAINS)
    value = meter.likelihood(joint, x)
    value = np.where(np.isfinite(value), value, -np.inf).reshape(NUTS_CHAINS, 16)
    best = x.reshape(NUTS_CHAINS, 16, -1)[np.arange(NUTS_CHAINS), np.argmax(value, axis=1)]
    return best
