r"""One edge of the tree: a two-model `product` supermodel on a ladder, its chains and its record."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.embedding.coordinate import Ladder
from supermodel.embedding.reference import REFERENCE, Reference
from supermodel.embedding.supermodel import Supermodel
from supermodel.embedding.warp import identity
from supermodel.engine.kernels import Kernel, Randomness, State, Tuning, randomness
from supermodel.engine.meter import Meter
from supermodel.engine.policy import BATCH, PADDING, TOGETHER, WORTH_COMPILING
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint
from supermodel.models.many_points import compiled, over_points
from supermodel.models.model import Model
from supermodel.sampling.draws import Draws


def with_reference(joint: Joint, warp: Any, reference: Reference) -> Supermodel:
    """The supermodel of one model and a reference, in the coordinates of the model's warp."""
    nothing = Model({}, lambda p, data=None: 0.0)
    pair = Supermodel(
        {joint.name: joint.model, REFERENCE: nothing},
        combine="product", data=joint.data, warps=(warp, identity(0)), reference=reference,
    )  # fmt: skip
    pair.joints = (joint, pair.joints[1])  # compiled already
    return pair


def padded(table: np.ndarray, log_prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A ladder of one of few sizes, so that another one compiles nothing: rungs of prior probability 0 are added."""
    extra = -len(table) % PADDING
    table = np.concatenate([table, np.repeat(table[-1:], extra, axis=0)])
    return table, np.concatenate([log_prior, np.full(extra, -np.inf)])


@dataclass(frozen=True, eq=False)
class Block:
    """What one call of the kernel left: arrays (chains, steps, ...)."""

    u: np.ndarray
    log_joints: np.ndarray
    rung: np.ndarray
    acceptance: float
    gradients: np.ndarray | None = None  # of the first model's ln J in u, where the kernel needs them


class Edge:
    """The chains between models `first` (last rung) and `second` (rung 0).

    The compiled block takes warps, rungs, balance and step as arguments: one compilation serves exploration and run.
    """

    def __init__(self, pair: Supermodel, kernel: Kernel, chains: int, stream: int, meter: Meter):
        self.pair, self.kernel, self.chains, self.stream, self.meter = pair, kernel, chains, stream, meter
        self.is_traced = all(joint.is_traceable for joint in pair.joints)
        self.cost = sum(not pair.is_reference(k) for k in range(len(pair.names)))  # evaluations per chain and point
        self.evaluations = 0
        self.blocks: list[Block] = []
        self.calls = 0
        self.state: Any = None

    @property
    def is_compiled(self) -> bool:
        """Whether a block is one compiled program. That takes a second or two to make: in short runs of cheap likelihoods the
        moves are NumPy around the compiled likelihoods that exploration has left. By counts, not by clocks: a run keeps its bits.
        """
        return self.is_traced and (self.kernel.needs_gradients or self.calls >= WORTH_COMPILING)

    def snapshot(self) -> Edge:
        """As it stands now; blocks and states are never changed."""
        held = copy.copy(self)
        held.blocks = list(self.blocks)
        return held

    # -- evaluation -----------------------------------------------------------------------------------------------

    def log_joints_at(self, u: np.ndarray) -> np.ndarray:
        """ln J_k at many points of the pair, in NumPy."""
        self.evaluations += self.cost * len(u)
        return np.stack(
            [self.pair.log_joint_at(k, u, self.meter.likelihood) for k in range(len(self.pair.names))], axis=1
        )

    @cached_property
    def _compiled(self):
        import jax
        import jax.numpy as jnp

        pair, kernel, n, size = self.pair, self.kernel, self.chains, len(self.pair.names)
        reference, widest = pair.reference, max(joint.width for joint in pair.joints)
        if reference is not None:
            hills = jax.tree.map(jnp.asarray, reference.hills)._replace(dof=float(reference.hills.dof))
            reference = reference._replace(hills=hills)

        def values(u, warps):
            return over_points(lambda v: pair.log_joints(v, warps), widest)(u)

        def with_gradients(u, warps):
            def one(v):
                parts = [jax.value_and_grad(lambda z, k=k: pair.log_joint(k, z, warps))(v) for k in range(size)]
                return jnp.stack([p[0] for p in parts]), jnp.stack([p[1] for p in parts])

            return over_points(one, widest)(u)

        evaluate = with_gradients if kernel.needs_gradients else values

        def start(u, rung, warps):
            found = evaluate(u, warps)
            log_joints, gradients = found if kernel.needs_gradients else (found, jnp.zeros((n, 0, 0)))
            return State(u, log_joints, rung, gradients)

        def block(state, random, tuning, warps):
            def step(state, random):
                state, accepted, (u, log_joints) = kernel.step(
                    jnp, lambda u: evaluate(u, warps), state, random, tuning, reference
                )
                # What is no number is counted, with an example for each model: it is looked at outside, see `_look_at`.
                odd = ~(log_joints < jnp.inf) & jnp.isfinite(u).all(axis=1, keepdims=True)
                noted = odd.sum(axis=0), u[jnp.argmax(odd, axis=0)]
                return state, ((state.u, state.log_joints, state.rung, accepted, state.gradients[:, :1]), noted)

            return jax.lax.scan(step, state, random)

        return compiled(start), compiled(block)

    # -- running --------------------------------------------------------------------------------------------------

    @in_float64
    def begin(self, u: np.ndarray, rung: np.ndarray) -> None:
        """Put the chains at `u` (n, D) on the rungs `rung`."""
        if not self.is_compiled:
            self.state = State(u, self.log_joints_at(u), rung, np.zeros((len(u), 0, 0)))
            return
        self.meter.check(self.cost * len(u))
        self.state = self._compiled[0](u, rung, self.pair.warps)
        self._paid(self.cost * len(u))
        found = np.asarray(self.state.log_joints)
        if not np.all(found < np.inf):
            self._look_at((~(found < np.inf)).astype(int), np.repeat(u[:, None], found.shape[1], axis=1))
            self.state = self.state._replace(log_joints=np.where(np.isnan(found), -np.inf, found))

    def _look_at(self, counts: np.ndarray, examples: np.ndarray) -> None:
        """Points at which a compiled ln J was no number: `counts` (m, K), with an example each (m, K, D), which is asked again
        outside of compiled code; there it is refused with its parameters, or counted.
        """
        for k, joint in enumerate(self.pair.joints):
            rows = np.flatnonzero(counts[:, k])[:BATCH]
            if len(rows) and not self.pair.is_reference(k):
                x, before = self.pair.warps[k].points(examples[rows, k][:, self.pair.places[k]]), joint.rejected
                joint.log_likelihood_at(x, size=TOGETHER)
                if joint.rejected > before:
                    joint.rejected = before + int(counts[:, k].sum())

    def cost_of_a_step(self, tuning: Tuning) -> int:
        """Evaluations that one step of all chains takes."""
        return self.cost * self.chains * self.kernel.evaluations(tuning)

    def _paid(self, n: int) -> None:
        self.evaluations += n
        self.meter.count(n, n if self.kernel.needs_gradients else 0)

    @in_float64
    def advance(self, seed: int, steps: int, tuning: Tuning) -> Block:
        """Move all chains by `steps` steps, or by as many as the budget holds (at least one); all of it or nothing."""
        each = self.cost_of_a_step(tuning)
        self.meter.check(each)
        steps = min(steps, self.meter.room // each)
        random = self._random(np.random.default_rng([seed, self.stream, self.calls + 1]), steps)
        if not self.is_compiled:
            return self._advance_numpy(random, tuning)
        state, ((u, log_joints, rung, accepted, gradients), noted) = self._compiled[1](
            self.state, random, tuning, self.pair.warps
        )
        self._look_at(*map(np.asarray, noted))
        self.state, self.calls = state, self.calls + 1
        self._paid(each * steps)
        swap = [np.moveaxis(np.asarray(x), 0, 1) for x in (u, log_joints, rung)]
        first = np.moveaxis(np.asarray(gradients), 0, 1)[:, :, 0] if self.kernel.needs_gradients else None
        return Block(swap[0], swap[1], swap[2], float(np.mean(np.asarray(accepted))), first)

    def _random(self, rng: np.random.Generator, steps: int) -> Randomness:
        reference, d = self.pair.reference, self.pair.dimension
        if reference is None:
            return randomness(rng, steps, self.chains, d)
        prior = None
        if reference.prior_share > 0:
            x = self.pair.joints[0].space.sample_prior(rng, steps * self.chains)
            prior = self.pair.warps[0].inverse(x).reshape(steps, self.chains, d)
        return randomness(rng, steps, self.chains, d, float(reference.hills.dof), prior)

    def _advance_numpy(self, random: Randomness, tuning: Tuning) -> Block:
        record, accepted, state = [], [], self.state
        for i in range(len(random.kind)):
            step = Randomness(*(numbers[i] for numbers in random))
            state, ok, _ = self.kernel.step(np, self.log_joints_at, state, step, tuning, self.pair.reference)
            record.append(state)
            accepted.append(ok.mean())
            if self.meter.over():  # a slow likelihood: the rest of the block would break the limit
                break
        self.state, self.calls = state, self.calls + 1
        stack = [np.stack([getattr(s, f) for s in record], axis=1) for f in ("u", "log_joints", "rung")]
        return Block(stack[0], stack[1], stack[2], float(np.mean(accepted)))

    # -- record ---------------------------------------------------------------------------------------------------

    def record(self, blocks: list[Block] | None = None) -> Block:
        """All kept blocks as one."""
        blocks = self.blocks if blocks is None else blocks
        join = [np.concatenate([getattr(b, f) for b in blocks], axis=1) for f in ("u", "log_joints", "rung")]
        return Block(join[0], join[1], join[2], float(np.mean([b.acceptance for b in blocks])))

    def draws(self, tuning: Tuning, blocks: list[Block] | None = None) -> Draws:
        """All kept blocks (or these) as draws of the pair on its ladder, without the rungs that only pad it."""
        used = np.isfinite(np.asarray(tuning.log_prior))
        ladder = Ladder(np.asarray(tuning.table)[used], np.asarray(tuning.log_prior)[used])
        record = self.record(blocks)
        spent = {"likelihood": self.evaluations, "gradient": self.evaluations if self.kernel.needs_gradients else 0}
        pair = self.pair.with_coordinate(ladder)
        return Draws(pair, record.rung, record.log_joints, record.u, spent, info={"acceptance": record.acceptance})
