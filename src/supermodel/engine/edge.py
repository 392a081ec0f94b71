r"""One edge of the tree: a two-model `product` supermodel on a ladder, its chains, its record and its estimate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.embedding.coordinate import Ladder
from supermodel.embedding.supermodel import Supermodel
from supermodel.embedding.warp import Warp
from supermodel.engine.kernels import Randomness, State, Tuning, crank_nicolson, hamiltonian, hill_jumping, randomness
from supermodel.engine.mixture import Mixture
from supermodel.jax_scope import in_float64
from supermodel.models.model import Model
from supermodel.sampling.draws import Draws

REFERENCE = "reference N(0, I)"


def no_data_model() -> Model:
    """The reference: no parameter of its own, likelihood 1. With standard normal companions, J = N(u; 0, I) and Z = 1."""
    return Model({}, lambda p, data=None: 0.0)


@dataclass(frozen=True, eq=False)
class Block:
    """What one call of the kernel left: arrays (chains, steps, ...)."""

    u: np.ndarray
    log_joints: np.ndarray
    rung: np.ndarray
    acceptance: float
    gradients: np.ndarray | None = None  # of the first model's ln J in u, if asked for


class Edge:
    """The chains between models `first` (rung M-1) and `second` (rung 0).

    The compiled block takes warps, rungs, balance and step as arguments: one compilation serves pilot and run.
    """

    def __init__(
        self,
        pair: Supermodel,
        kernel: str,
        chains: int,
        stream: int,
        executor: Any = None,
        mixture: Mixture | None = None,
    ):
        self.pair = pair
        self.kernel = kernel  # "crank_nicolson", "hamiltonian", or "hill_jumping" with a mixture as the reference
        self.mixture: Any = mixture
        self.chains = chains
        self.stream = stream
        self.executor = executor
        self.is_compiled = all(joint.is_traceable for joint in pair.joints)
        self.paid = tuple(name != REFERENCE for name in pair.names)  # ends whose likelihood costs an evaluation
        self.evaluations = self.gradients = 0
        self.blocks: list[Block] = []
        self.calls = 0

    # -- evaluation -----------------------------------------------------------------------------------------------

    @property
    def cost(self) -> int:
        """Evaluations per chain and point."""
        return sum(self.paid)

    def log_joints_at(self, u: np.ndarray) -> np.ndarray:
        """ln J_k at many points of the pair, in NumPy (for likelihoods that JAX cannot trace)."""
        columns = []
        for k, joint in enumerate(self.pair.joints):
            warp: Warp = self.pair.warps[k]
            mine = warp.points(u[:, self.pair.places[k]])
            rest = u[:, self.pair.rest[k]]
            companion = -0.5 * np.sum(rest**2 + np.log(2 * np.pi), axis=1)
            if self.paid[k]:
                columns.append(joint.log_joint_at(mine, self.executor) + warp.log_det_value() + companion)
            else:
                columns.append(companion if self.mixture is None else self.mixture.log_density(np, u))
        self.evaluations += self.cost * len(u)
        return np.stack(columns, axis=1)

    @cached_property
    def _compiled(self):
        import jax
        import jax.numpy as jnp

        pair, n, size = self.pair, self.chains, len(self.pair.names)

        def values(u, warps):
            if self.mixture is None:
                return jax.vmap(lambda v: pair.log_joints(v, warps))(u)
            first = jax.vmap(lambda v: pair.log_joint(0, v, warps))(u)
            return jnp.stack([first, self.mixture.log_density(jnp, u)], axis=1)

        def with_gradients(u, warps):
            def one(v):
                parts = [jax.value_and_grad(lambda z, k=k: pair.log_joint(k, z, warps))(v) for k in range(size)]
                return jnp.stack([p[0] for p in parts]), jnp.stack([p[1] for p in parts])

            return jax.vmap(one)(u)

        def start(u, rung, warps):
            if self.kernel == "hamiltonian":
                log_joints, gradients = with_gradients(u, warps)
            else:
                log_joints, gradients = values(u, warps), jnp.zeros((n, 0, 0))
            return State(u, log_joints, rung, gradients)

        def block(state, random, tuning, warps):
            def step(state, random):
                if self.kernel == "hamiltonian":
                    state, accepted = hamiltonian(lambda u: with_gradients(u, warps), state, random, tuning)
                elif self.kernel == "hill_jumping":
                    hills = jax.tree.map(jnp.asarray, self.mixture)
                    state, accepted = hill_jumping(jnp, lambda u: values(u, warps), state, random, tuning, hills)
                else:
                    state, accepted = crank_nicolson(jnp, lambda u: values(u, warps), state, random, tuning)
                return state, (state.u, state.log_joints, state.rung, accepted, state.gradients[:, :1])

            return jax.lax.scan(step, state, random)

        return jax.jit(start), jax.jit(block)

    # -- running --------------------------------------------------------------------------------------------------

    @in_float64
    def begin(self, u: np.ndarray, rung: np.ndarray) -> None:
        """Put the chains at `u` (n, D) on the rungs `rung`."""
        if self.is_compiled:
            self.state = self._compiled[0](u, rung, self.pair.warps)
            self.evaluations += self.cost * len(u)
            self.gradients += self.cost * len(u) if self.kernel == "hamiltonian" else 0
        else:
            self.state = State(u, self.log_joints_at(u), rung, np.zeros((len(u), 0, 0)))

    @in_float64
    def advance(self, seed: int, steps: int, tuning: Tuning, with_gradients: bool = False) -> Block:
        """Move all chains by `steps` steps."""
        self.calls += 1
        rng = np.random.default_rng([seed, self.stream, self.calls])
        random = randomness(rng, steps, self.chains, self.pair.dimension)
        if not self.is_compiled:
            return self._advance_numpy(random, tuning)
        self.state, (u, log_joints, rung, accepted, gradients) = self._compiled[1](
            self.state, random, tuning, self.pair.warps
        )
        per_step = int(tuning.leapfrogs) if self.kernel == "hamiltonian" else 1
        paid = self.cost * self.chains * steps * per_step
        self.evaluations += paid
        self.gradients += paid if self.kernel == "hamiltonian" else 0
        swap = [np.moveaxis(np.asarray(x), 0, 1) for x in (u, log_joints, rung)]
        first = np.moveaxis(np.asarray(gradients), 0, 1)[:, :, 0] if with_gradients else None
        return Block(swap[0], swap[1], swap[2], float(np.mean(np.asarray(accepted))), first)

    def _advance_numpy(self, random: Randomness, tuning: Tuning) -> Block:
        record, accepted = [], []
        for i in range(len(random.kind)):
            step = Randomness(*(numbers[i] for numbers in random))
            if self.kernel == "hill_jumping":
                self.state, ok = hill_jumping(np, self.log_joints_at, self.state, step, tuning, self.mixture)
            else:
                self.state, ok = crank_nicolson(np, self.log_joints_at, self.state, step, tuning)
            record.append(self.state)
            accepted.append(ok.mean())
        stack = [np.stack([getattr(s, f) for s in record], axis=1) for f in ("u", "log_joints", "rung")]
        return Block(stack[0], stack[1], stack[2], float(np.mean(accepted)))

    # -- record ---------------------------------------------------------------------------------------------------

    def record(self, blocks: list[Block] | None = None) -> Block:
        """All kept blocks as one."""
        blocks = self.blocks if blocks is None else blocks
        join = [np.concatenate([getattr(b, f) for b in blocks], axis=1) for f in ("u", "log_joints", "rung")]
        return Block(join[0], join[1], join[2], float(np.mean([b.acceptance for b in blocks])))

    def draws(self, tuning: Tuning) -> Draws:
        """All kept blocks as draws of the pair on its ladder, without the rungs that only pad it."""
        used = np.isfinite(np.asarray(tuning.log_prior))
        ladder = Ladder(np.asarray(tuning.table)[used], np.asarray(tuning.log_prior)[used])
        record = self.record()
        spent = {"likelihood": self.evaluations, "gradient": self.gradients}
        pair = self.pair.with_coordinate(ladder)
        return Draws(pair, record.rung, record.log_joints, record.u, spent, info={"acceptance": record.acceptance})
