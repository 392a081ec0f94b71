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
from supermodel.sampling import gradient, metropolis, starts, tempered, warmup
from supermodel.sampling.draws import Draws
from supermodel.sampling.metropolis import Record, Tuning
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


def _blocks(run, state, tuning, key, draws: int, thin: int, size: int, progress: Progress | None):
    """Call `run` until `draws` are recorded; yields (state, record) block by block."""
    done = 0
    while done < draws:
        n = min(size, draws - done)
        state, record = run(state, tuning, key, n, thin)
        done += n
        if progress is not None:
            progress(done, draws)
        yield state, record


def _stacked(records: list[Record]) -> Record:
    """Blocks joined, and chains first: (draws, C, ...) becomes (C, draws, ...)."""
    joined = [None if parts[0] is None else np.concatenate(parts) for parts in zip(*records, strict=True)]
    return Record(*(None if x is None else np.ascontiguousarray(np.swapaxes(x, 0, 1)) for x in joined))


# -- Metropolis, plain and tempered ---------------------------------------------------------------------------------


def _with_metropolis(target: Target, sampler, rng, seed, chains, draws, thin, warm, size, betas, progress) -> Draws:
    import jax

    annealed = starts.anneal(target.supermodel, rng)
    powers, stages = (None, [-1]) if sampler == "metropolis" else tempered.levels(annealed, betas)
    state, tuning = _start(target, annealed, stages, powers, rng, chains)
    run, key = metropolis.make_block(target, size), jax.random.key(seed)
    steps = max(2000, 20 * thin) if warm is None else warm
    state, tuning, warmed = warmup.warm_up(target, run, size, state, tuning, key, steps)

    records, tally, begin = [], [], _now()
    for block_end, record in _blocks(run, state, tuning, key, draws, thin, size, progress):
        records.append(record._replace(**{f: getattr(record, f)[:, 0] for f in ("alpha", "position", "log_joints")}))
        tally.append(jax.tree.map(np.asarray, block_end.tally))
    seconds = _now() - begin

    n_points = len(stages) * chains
    likelihoods = annealed.evaluations + target.n_models * n_points * (1 + warmed + draws * thin)
    info = {"sampler": sampler, "thin": thin, "warmup": warmed, "start_evaluations": annealed.evaluations}
    info |= _acceptance(tally, tuning) | _speed(chains * draws * thin, seconds, first_block_compiles=warmed == 0)
    if powers is not None:
        info |= _tempering(powers, tally, draws * thin)
    return _as_draws(target, _stacked(records), {"likelihood": likelihoods, "gradient": 0}, info)


def _start(target: Target, annealed, stages: list[int], powers, rng, chains: int):
    """Chains at their models' corners, at each temperature in that temperature's own population."""
    sm, levels = target.supermodel, len(stages)
    position = np.stack([starts.starting_points(sm, annealed, s, rng, chains) for s in stages])
    alpha = np.stack([starts.starting_alpha(sm, chains)] * levels)
    tuning = Tuning(
        np.stack([starts.factors(sm, annealed, s, rng) for s in stages]),
        np.full((levels, target.n_models), 2.4 / max(target.dimension, 1) ** 0.5),
        np.full(levels, 0.3 * warmup.alpha_width(target)),
        powers,
    )
    terms = None if target.is_traceable else target.terms_in_numpy(position)
    return metropolis.initial_state(target, alpha, position, tuning, terms), tuning


def _acceptance(tally: list, tuning: Tuning) -> dict:
    """Rates of the target's level over the whole run."""
    tried = sum(t.tried for t in tally)
    accepted, alpha = sum(t.accepted[0] for t in tally), sum(t.alpha_accepted[0] for t in tally)
    return {
        "acceptance": float(accepted.sum() / tried.sum()),
        "acceptance_by_model": (accepted / np.maximum(tried, 1)).tolist(),
        "alpha_acceptance": float(alpha / tried.sum()),
        "scale": np.asarray(tuning.scales)[0].tolist(),
        "alpha_scale": float(np.asarray(tuning.alpha_scales)[0]),
        "invalid_proposals": int(sum(t.invalid for t in tally)),
    }


def _tempering(powers: np.ndarray, tally: list, steps: int) -> dict:
    # Each pair of neighbours is tried at every second step.
    rates = sum(t.swapped for t in tally)[:-1] / max(steps / 2, 1)
    found = {"betas": powers.tolist(), "swap_rates": rates.tolist()}
    warning = tempered.check_overlap(rates)
    return found if warning is None else found | {"warning": warning}


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
    for block_end, record in _blocks(made.run, state, tuning, key, draws, thin, size, progress):
        records.append(record)
        cost = cost.plus(block_end, len(record.alpha), thin)
        sums += float(block_end.acceptance), float(block_end.divergent)
    seconds = _now() - begin

    gradients = target.n_models * cost.gradients
    likelihoods = annealed.evaluations + gradients + target.n_models * cost.plain
    info = {"sampler": sampler, "thin": thin, "warmup": steps, "start_evaluations": annealed.evaluations}
    info |= {"acceptance": float(sums[0]) / (draws * thin), "divergences": int(sums[1]), "step_size": tuning.step_size}
    info |= _speed(chains * draws * thin, seconds, first_block_compiles=steps == 0)
    return _as_draws(target, _stacked(records), {"likelihood": likelihoods, "gradient": gradients}, info)


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


def _as_draws(target: Target, record: Record, evaluations: dict[str, int], info: dict) -> Draws:
    return Draws(
        target.supermodel, record.alpha, record.log_joints, record.position, evaluations, record.predictions, info
    )
