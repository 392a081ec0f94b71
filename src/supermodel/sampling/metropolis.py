r"""Random-walk Metropolis on $(\alpha, u)$: accept $u' = u + s\,C z$ with probability $\min(1, J(u'; w)/J(u; w))$.

One step runs every model once: a move of $u$ at fixed alpha, then a move of alpha at fixed $u$, which the kept `Terms`
make free. The factor $C$ is that of each model in turn: the turn does not depend on where a chain is, so proposals
stay symmetric, and each model meets steps of its own widths.

All arrays lead with (T, C): T temperatures (one, unless `tempered` asks for more; the first is the target), C chains.
`Tuning` is an argument of the compiled block, never a constant in it: one compilation serves warm-up and run.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.combine import rung_given
from supermodel.models.many_points import compiled
from supermodel.sampling.blocks import Block, Record, compiled_block
from supermodel.sampling.target import Target, Terms


class Tuning(NamedTuple):
    """What warm-up learns, and nothing that the answer depends on."""

    factors: Any  # (T, K, D, D): Cholesky factors of the proposals' covariances, one per model
    scales: Any  # (T, K): the factor's multiple
    alpha_scales: Any  # (T,): standard deviation of alpha's steps
    betas: Any = None  # (T,): powers of the likelihood; None is the plain target, T = 1


class Tally(NamedTuple):
    """Counts since the block began."""

    tried: Any  # (K,): steps with each model's factor
    accepted: Any  # (T, K): mean over chains, summed over steps
    alpha_accepted: Any  # (T,)
    swapped: Any  # (T,): swaps of level t with level t + 1
    invalid: Any  # proposals whose density was NaN or +inf; they are refused, and told


class State(NamedTuple):
    """Where the chains are; `step` numbers the randomness, so that blocks of any length give the same chain."""

    alpha: Any  # (T, C), or (T, C, K) on a simplex
    position: Any  # (T, C, D)
    terms: Terms
    log_density: Any  # (T, C)
    step: Any
    tally: Tally


def initial_state(target: Target, alpha, position, tuning: Tuning, terms: Terms | None = None) -> State:
    """The state at given points; `terms` are those of `position`, if the models cannot be traced."""
    return _compiled_start(target)(alpha, position, tuning, terms)


@functools.lru_cache(maxsize=8)
def _compiled_start(target: Target):
    """One compilation instead of one for every small operation."""
    import jax.numpy as jnp

    def build(alpha, position, tuning, terms):
        terms = target.terms(position) if terms is None else terms
        density = target.log_density(alpha, terms, _column(tuning.betas))
        # Typed zeros: a bare 0 has a weak type, and the block would be compiled again for its own output.
        return State(alpha, position, terms, density, jnp.zeros((), int), _no_tally(len(position), target.n_models))

    return compiled(build)


def _no_tally(levels: int, k: int) -> Tally:
    import jax.numpy as jnp

    return Tally(jnp.zeros(k), jnp.zeros((levels, k)), jnp.zeros(levels), jnp.zeros(levels), jnp.zeros((), int))


def _column(betas):
    return None if betas is None else betas[:, None]


# -- one step -----------------------------------------------------------------------------------------------------


class Chance(NamedTuple):
    """All random numbers of one step, from one call: a generator is most of what a step costs to compile."""

    which: Any  # the model whose factor is used
    z: Any  # (T, C, D), normal
    alpha: Any  # (T, C), normal
    uniforms: Any  # (2 to 5, T, C): accept u, accept alpha (or draw a rung), two corners of a simplex, swap


def chance(target: Target, state: State, tuning: Tuning, key) -> Chance:
    """The random numbers of step `state.step`."""
    import jax
    import jax.numpy as jnp

    levels, chains, dimension = state.position.shape
    rows = dimension + 3 + 2 * target.coordinate.is_simplex + (tuning.betas is not None)
    each = jax.random.uniform(jax.random.fold_in(key, state.step), (rows, levels, chains))
    normal = math.sqrt(2.0) * jax.lax.erf_inv(2.0 * each[: dimension + 1] - 1.0)
    z, alpha, uniforms = normal[:dimension], normal[dimension], each[dimension + 1 :]
    return Chance(state.step % target.n_models, jnp.moveaxis(z, 0, -1), alpha, uniforms)


def propose(target: Target, state: State, tuning: Tuning, key) -> tuple[Chance, Any]:
    """u' = u + s C z, with the factor of each model in turn."""
    import jax.numpy as jnp

    luck = chance(target, state, tuning, key)
    move = jnp.einsum("tij,tcj->tci", tuning.factors[:, luck.which], luck.z)
    return luck, state.position + tuning.scales[:, luck.which][:, None, None] * move


def settle(target: Target, state: State, tuning: Tuning, luck: Chance, proposal, terms: Terms) -> State:
    """Accept or refuse the proposals, move alpha, and at several temperatures swap neighbours."""
    state = _accept(target, state, tuning, luck, proposal, terms)
    state = (_draw_rung if target.coordinate.is_discrete else _walk_alpha)(target, state, tuning, luck)
    if tuning.betas is not None:
        state = _swap(target, state, tuning, luck)
    return state._replace(step=state.step + 1)


def _accept(target: Target, state: State, tuning: Tuning, luck: Chance, proposal, terms: Terms) -> State:
    import jax.numpy as jnp

    density = target.log_density(state.alpha, terms, _column(tuning.betas))
    invalid = jnp.isnan(density) | (density == jnp.inf)
    accept = _metropolis(luck.uniforms[0], jnp.where(invalid, -jnp.inf, density), state.log_density)
    tally = state.tally._replace(
        tried=state.tally.tried.at[luck.which].add(1.0),
        accepted=state.tally.accepted.at[:, luck.which].add(accept.mean(1)),
        invalid=state.tally.invalid + invalid.sum(),
    )
    new = state._replace(position=proposal, terms=terms, log_density=density)
    return _choose(accept, new, state, tally)


def _walk_alpha(target: Target, state: State, tuning: Tuning, luck: Chance) -> State:
    """A Gaussian step of alpha; outside its interval the prior is zero and the step is refused."""
    alpha = state.alpha + _alpha_step(target, tuning.alpha_scales[:, None] * luck.alpha, luck)
    density = target.log_density(alpha, state.terms, _column(tuning.betas))
    accept = _metropolis(luck.uniforms[1], density, state.log_density)
    tally = state.tally._replace(alpha_accepted=state.tally.alpha_accepted + accept.mean(1))
    return _choose(accept, state._replace(alpha=alpha, log_density=density), state, tally)


def _alpha_step(target: Target, step, luck: Chance):
    """On a simplex the step is barycentric: mass moves from one corner to another, so the sum stays 1."""
    import jax

    if not target.coordinate.is_simplex:
        return step
    k = target.n_models
    source = (luck.uniforms[2] * k).astype(int)
    goal = (source + 1 + (luck.uniforms[3] * (k - 1)).astype(int)) % k
    return step[..., None] * (jax.nn.one_hot(goal, k) - jax.nn.one_hot(source, k))


def _draw_rung(target: Target, state: State, tuning: Tuning, luck: Chance) -> State:
    """A Gibbs draw of the rung: its probabilities follow from the kept terms."""
    import jax.numpy as jnp

    densities = target.rung_log_densities(state.terms, _column(tuning.betas))
    rung = rung_given(jnp, luck.uniforms[1], densities).astype(state.alpha.dtype)
    density = jnp.take_along_axis(densities, rung[..., None], -1)[..., 0]
    tally = state.tally._replace(alpha_accepted=state.tally.alpha_accepted + 1.0)
    return state._replace(alpha=rung, log_density=density, tally=tally)


def _swap(target: Target, state: State, tuning: Tuning, luck: Chance) -> State:
    r"""Exchange levels t and t + 1 with probability $\min(1, e^{(\beta_t - \beta_{t+1})(E_{t+1} - E_t)})$.

    $E = \ln J - \ln P_0$ is what the temperature divides.
    """
    import jax
    import jax.numpy as jnp

    levels = state.position.shape[0]
    energy = target.parts(state.alpha, state.terms)[1]
    # Even pairs at even steps, odd pairs at odd ones: each level has one partner, and none at the ends.
    t = jnp.arange(levels)
    partner = jnp.where((t + state.step) % 2 == 0, t + 1, t - 1)
    partner = jnp.where((partner < 0) | (partner >= levels), t, partner)
    gain = (tuning.betas - tuning.betas[partner])[:, None] * (energy[partner] - energy)
    # Both of a pair must read the same random number: that of the lower level.
    noise = jnp.log(luck.uniforms[-1])[jnp.minimum(t, partner)]
    swap = (noise < gain) & (partner != t)[:, None]
    tally = state.tally._replace(swapped=state.tally.swapped + jnp.where(partner > t, swap.mean(1), 0.0))
    other = jax.tree.map(lambda x: x[partner], (state.alpha, state.position, state.terms))
    new = state._replace(alpha=other[0], position=other[1], terms=other[2])
    state = _choose(swap, new, state, tally)
    return state._replace(log_density=target.log_density(state.alpha, state.terms, _column(tuning.betas)))


def _metropolis(uniform, new, old):
    """Whether to accept; where the ratio is NaN (outside alpha's interval, say), no."""
    import jax.numpy as jnp

    return jnp.log(uniform) < new - old


def _choose(accept, new: State, old: State, tally: Tally) -> State:
    """Chain by chain the new state or the old one."""
    import jax
    import jax.numpy as jnp

    def pick(a, b):
        return a if a is b else jnp.where(accept.reshape(accept.shape + (1,) * (a.ndim - 2)), a, b)

    alpha, position, terms, density = jax.tree.map(pick, tuple(new[:4]), tuple(old[:4]))
    return State(alpha, position, terms, density, old.step, tally)


# -- blocks of steps ------------------------------------------------------------------------------------------------


def make_block(target: Target, size: int) -> Block:
    """`block(state, tuning, key, n, thin)`: n records (at most `size`), `thin` steps before each."""
    return _compiled_block(target, size) if target.is_traceable else functools.partial(_python_block, target)


@functools.lru_cache(maxsize=8)
def _compiled_block(target: Target, size: int) -> Block:
    def step(state, tuning, key):
        luck, proposal = propose(target, state, tuning, key)
        return settle(target, state, tuning, luck, proposal, target.terms(proposal))

    return compiled_block(functools.partial(_fresh, target), step, functools.partial(record, target), size)


def _fresh(target: Target, state: State) -> State:
    return state._replace(tally=_no_tally(state.position.shape[0], target.n_models))


def record(target: Target, state: State) -> Record:
    """What is kept of a state."""
    predictions = None if state.terms.predictions is None else state.terms.predictions[0]
    return Record(state.alpha, state.position, target.log_joints(state.terms), predictions)


@functools.lru_cache(maxsize=8)
def _compiled_steps(target: Target):
    import jax

    return jax.jit(functools.partial(propose, target)), jax.jit(functools.partial(settle, target))


def _python_block(target: Target, state: State, tuning: Tuning, key, n: int, thin: int) -> tuple[State, Record]:
    """The same chain for models in plain Python: only the models run outside the compiled code."""
    import jax

    propose_, settle_ = _compiled_steps(target)
    state = _fresh(target, state)
    records = []
    for _ in range(n):
        for _ in range(thin):
            luck, proposal = propose_(state, tuning, key)
            state = settle_(state, tuning, luck, proposal, target.terms_in_numpy(np.asarray(proposal)))
        records.append(jax.tree.map(np.asarray, record(target, state)))
    return state, jax.tree.map(lambda *each: np.stack(each), *records)
