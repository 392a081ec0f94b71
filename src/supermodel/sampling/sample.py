r"""Draws from a supermodel: $(\alpha, u) \sim p(\alpha)\, J(u; f(\alpha))$, by any of the samplers.

A run is: annealed starts in every model, warm-up, then blocks of steps, one compiled call each, with Python between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from supermodel.embedding.supermodel import Supermodel
from supermodel.errors import SupermodelError
from supermodel.jax_scope import in_float64
from supermodel.sampling import gradient, starts
from supermodel.sampling.chain import Chain, stacked
from supermodel.sampling.draws import Draws
from supermodel.sampling.target import Target, target_of

SAMPLERS = ("metropolis", "hmc", "nuts", "tempered")
BLOCK = 200  # records per compiled call, whatever `draws` is: another number would be compiled anew
Progress = Callable[[int, int], Any]


@in_float64
def sample(
    supermodel: Supermodel,
    *,
    sampler: str = "metropolis",
    seed: int = 0,
    chains: int = 64,
    draws: int = 1000,
    thin: int = 1,
    warmup: int | None = None,
    block: int | None = None,
    betas: Any = None,
    progress: Progress | None = None,
) -> Draws:
    """Run `chains` chains and record `draws` draws of each, one every `thin` steps.

    `warmup` counts steps of each chain before the first record (default: 2000 or 20 `thin` for Metropolis, 300 for
    HMC and NUTS). `block` is the most draws that one compiled call
    records (default 200). `progress(done, draws)` is called after
    each block. `betas`: the temperatures of "tempered", else taken from the annealed start.

    `evaluations["likelihood"]` counts runs of one model at one point, `evaluations["gradient"]` those among them
    that gave a gradient too. Same seed, same bits.
    """
    _check(sampler, chains, draws, thin)
    target, rng = target_of(supermodel), np.random.default_rng(seed)
    supermodel.check_positive_predictions(rng)
    size = block or BLOCK
    if sampler in ("hmc", "nuts"):
        return _with_gradients(target, sampler, rng, seed, chains, draws, thin, warmup, size, progress)
    return _with_metropolis(target, sampler, rng, seed, chains, draws, thin, warmup, size, betas, progress)


def _check(sampler: str, chains: int, draws: int, thin: int) -> None:
    if sampler not in SAMPLERS:
        raise SupermodelError(f"`sampler` must be one of {', '.join(SAMPLERS)}; got {sampler!r}.")
    for name, value in (("chains", chains), ("draws", draws), ("thin", thin)):
        if not (isinstance(value, (int, np.integer)) and value >= 1):
            raise SupermodelError(f"`{name}` must be a whole number of at least 1; got {value!r}.")


# -- Metropolis, plain and tempered ---------------------------------------------------------------------------------


def _with_metropolis(target: Target, sampler, rng, seed, chains, draws, thin, warm, size, betas, progress) -> Draws:
    chain = Chain(target, sampler, seed, chains, thin, size)
    chain.begin(rng, warm, betas)
    begin = _now()
    for n in _sizes(draws, size, progress):
        chain.advance(n)
    return chain.draws(**_speed(chains * draws * thin, _now() - begin, first_block_compiles=chain.warmed == 0))


def _sizes(draws: int, size: int, progress: Progress | None):
    """The lengths of the blocks that make up `draws`, each told when it is done."""
    for done in range(0, draws, size):
        n = min(size, draws - done)
        yield n
        if progress is not None:
            progress(done + n, draws)


def _now() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def _speed(steps: int, seconds: np.ndarray, first_block_compiles: bool) -> dict:
    """`steps` are those of the recorded run, over all chains; compilation falls into warm-up, if there is one."""
    wall, cpu = (max(float(t), 1e-9) for t in seconds)
    found = {"steps": steps, "seconds": wall, "steps_per_second": steps / wall, "steps_per_cpu_second": steps / cpu}
    return found | ({"compiled_in_run": True} if first_block_compiles else {})


# -- HMC and NUTS ---------------------------------------------------------------------------------------------------


def _with_gradients(target: Target, sampler, rng, seed, chains, draws, thin, warm, size, progress) -> Draws:
    import jax

    annealed = starts.anneal(target.supermodel, rng)
    made, key = gradient.sampler_of(target, sampler, size), jax.random.key(seed)
    q, rung, covariance = _gradient_start(made, annealed, rng, chains)
    state = made.start(q, rung)
    cost = gradient.Cost(int(state.n_gradients))
    steps = 300 if warm is None else warm
    state, tuning, spent = gradient.warm_up(made, state, covariance, key, steps)
    cost = gradient.Cost(cost.gradients + spent.gradients, spent.plain)

    records, sums, begin = [], np.zeros(2), _now()
    for n in _sizes(draws, size, progress):
        state, record = made.run(state, tuning, key, n, thin)
        records.append(record)
        cost = cost.plus(state, n, thin)
        sums += float(state.acceptance), float(state.divergent)
    seconds = _now() - begin

    gradients = target.n_models * cost.gradients
    likelihoods = annealed.evaluations + gradients + target.n_models * cost.plain
    info = {"sampler": sampler, "thin": thin, "warmup": steps, "start_evaluations": annealed.evaluations}
    info |= {"acceptance": float(sums[0]) / (draws * thin), "divergences": int(sums[1]), "step_size": tuning.step_size}
    info |= _speed(chains * draws * thin, seconds, first_block_compiles=steps == 0)
    record = stacked(records)
    paid = {"likelihood": likelihoods, "gradient": gradients}
    return Draws(target.supermodel, record.alpha, record.log_joints, record.position, paid, record.predictions, info)


def _gradient_start(made: gradient.GradientSampler, annealed, rng, chains: int):
    """q = (a, u), rungs of a ladder, and a first covariance: the models' own, averaged."""
    sm, a = made.target.supermodel, made.alpha_map
    u, alpha = starts.starting_points(sm, annealed, -1, rng, chains), starts.starting_alpha(sm, chains)
    factors = starts.factors(sm, annealed, -1, rng)
    covariance = np.eye(a.size + sm.dimension)
    covariance[a.size :, a.size :] = (factors @ factors.swapaxes(1, 2)).mean(0)
    if a.size == 0:
        return u, alpha, covariance
    return np.concatenate([a.inverse(alpha), u], axis=1), None, covariance
