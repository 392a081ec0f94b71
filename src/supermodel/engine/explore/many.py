r"""Looks at a model of many parameters: chains with gradients, or particles without.

With gradients: climbs from several prior draws (do they reach the same mode?), then Hamiltonian chains about it; where these
do not hold together, or the posterior is far from normal there, NUTS from dispersed starts and nested Laplace about its draws.
Without: tempered particles, and nested Laplace from where they are, by differences of values; where it does not serve, more
populations with more and more moves, until two agree, and moves in the coordinates of their reference, until they stand still.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from supermodel.embedding.reference import Reference, standard_normal
from supermodel.embedding.warp import Bent, Warp
from supermodel.engine.explore.bent import bent_by_slopes
from supermodel.engine.explore.chains import MIXED, NUTS_CHAINS, SHORT, Chains, about_a_mode, nuts
from supermodel.engine.explore.climb import Climber, Mode, find_modes, hills_of
from supermodel.engine.explore.cloud import log_mean_error
from supermodel.engine.explore.nested_laplace import Weighed, nested_laplace
from supermodel.engine.explore.particles import SNAPSHOTS, Particles, State, moved, temper
from supermodel.engine.explore.pilot import Look, Pilot, fitted_reference, misfit
from supermodel.engine.explore.quadratic import coefficients
from supermodel.engine.explore.slopes import Slopes
from supermodel.engine.meter import Enough, Meter
from supermodel.engine.policy import (
    BATCH,
    EXACT,
    FEW_OUTSIDE,
    FOLLOWED,
    FOLLOWERS,
    NEARLY_NORMAL,
    OUTSIDE,
    PRIOR_SHARE,
    STABLE,
    STILL,
    VAGUE,
    Effort,
)
from supermodel.engine.whiten import spread, widened
from supermodel.models.joint import Joint

UNKNOWN = float("nan")  # chains leave no ln Z of their own
RIVAL = 7.0  # nats of mass within which another mode counts
HILLS_UP_TO = 60  # parameters up to which Gaussian hills at several modes serve as the reference
SMOOTH = 0.3  # spread per root dimension up to which chains about a mode are believed; beyond, where ln J is concave
ROUGH = 0.5  # beyond which hills at several modes are not
MOVES, MORE_MOVES, MOST_POPULATIONS = 3, 4, 4  # of each particle at a temperature; times as many in the next population
SHARE = 0.4  # of the evaluations left that another population may take
NUTS_ROOM = 400_000  # evaluations that NUTS may take
BENT_UP_TO = 40  # parameters up to which third derivatives are asked for: d^2 slopes, and d^6 operations
SLOPES = 2  # times the coefficients of a quadratic, that tell them
CURVED_UP_TO = 256  # parameters up to which all of a covariance is fitted: d^2 / 2 functions of the leaders
SERVES = 0.5  # effective share of a reference's own draws with which it will do: where others are not normal it is less
MISSED = 3.0  # nats of ln J - ln r beyond ln Z on a chain's draws, on average: with more it is somewhere else


def look_at_many(
    joint: Joint, known: Any, seed: int, stream: int, meter: Meter, effort: Effort, smaller: Pilot | None = None
) -> Pilot:
    """Explore a model of many parameters."""
    rng = np.random.default_rng([seed, stream, 1])
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        if joint.is_traceable:
            return _with_gradients(joint, known, rng, seed, stream, meter, effort)
        return _with_particles(joint, seed, stream, meter, effort)


# -- with gradients ---------------------------------------------------------------------------------------------------


def _with_gradients(joint, known, rng, seed, stream, meter: Meter, effort: Effort) -> Pilot:
    since = meter.evaluations - len(known[0])
    x, values = known
    middle, scale = np.median(x, axis=0), np.maximum(x.std(0), 1e-300)
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf))
    chosen = [i for i in order[: 4 if effort.second else 1] if np.isfinite(values[i])]
    modes, _ = find_modes(Climber(joint, meter, middle, scale), x[chosen], 8)
    climbs = Look("climbs", UNKNOWN, UNKNOWN, meter.evaluations - since)
    if modes:
        rivals = [m for m in modes if m.log_mass > modes[0].log_mass - RIVAL]
        if len(rivals) > 1 and joint.dimension <= HILLS_UP_TO:
            hilly = _hilly(joint, rng, meter, rivals, climbs)
            # Tops of J where hardly any mass is, as hierarchies have them, are no modes.
            if hilly.spread <= ROUGH * np.sqrt(joint.dimension):
                return hilly
            return _dispersed(joint, rng, seed, meter, effort, hilly.looks[:1])
        found = _at_the_mode(joint, rng, meter, modes[0], climbs)
        if found is not None and found.spread <= min(NEARLY_NORMAL, 0.1 * np.sqrt(joint.dimension)):
            return found
        since = meter.evaluations
        chains = about_a_mode(joint, meter, rng, seed, stream, modes[0].warp)
        looks = [climbs, Look("Hamiltonian chains", UNKNOWN, UNKNOWN, meter.evaluations - since)]
        if chains is not None and chains.rhat < MIXED:
            # The further from normal a posterior, the more has to be shown before chains about its mode are believed.
            is_normal = spread(chains.log_joint, chains.x, chains.warp) <= SMOOTH * np.sqrt(joint.dimension)
            is_concave = not is_normal and _is_concave(joint, chains, meter, rng)
            if is_normal or is_concave:
                warp, left = _bent(joint, chains, meter, rng)
                looks[-1] = looks[-1]._replace(evaluations=meter.evaluations - since)
                return replace(_of_chains(joint, chains, widened(warp, left), left, looks, rng), is_concave=is_concave)
    else:
        looks = [climbs]
    return _dispersed(joint, rng, seed, meter, effort, looks)


def _is_concave(joint: Joint, chains: Chains, meter: Meter, rng: np.random.Generator) -> bool:
    """Whether ln J is concave, as far as slopes tell: one mode, and no funnel is left to go down, however far from normal."""
    x = np.concatenate([chains.x[rng.choice(len(chains.x), BATCH)], joint.space.sample_prior(rng, BATCH)])
    return Slopes(x, *meter.value_and_gradient(joint, x)).is_concave(chains.warp)


def _bent(joint: Joint, chains: Chains, meter: Meter, rng: np.random.Generator) -> tuple[Warp | Bent, float]:
    """The chains' warp, or one bent by the slopes at its own draws if the chains' draws look more normal to it; and the spread."""
    left = spread(chains.log_joint, chains.x, chains.warp)
    n = SLOPES * coefficients(joint.dimension)
    if joint.dimension > BENT_UP_TO or meter.left < n:
        return chains.warp, left
    x = chains.warp.points(rng.standard_normal((n, joint.dimension)))
    gradient = meter.value_and_gradient(joint, x)[1]
    if not np.all(np.isfinite(gradient)):
        return chains.warp, left
    bent = bent_by_slopes(x, gradient, chains.warp)
    less = spread(chains.log_joint, chains.x, bent)
    return (bent, less) if less < left else (chains.warp, left)


def _of_chains(joint, chains: Chains, warp, left: float, looks, rng) -> Pilot:
    rows = rng.choice(len(chains.x), BATCH, replace=len(chains.x) < BATCH)
    return Pilot(
        joint,
        warp,
        standard_normal(joint.dimension),
        chains.x[rows],
        chains.log_joint[rows],
        left,
        looks,
        step=chains.step,
    )


def _at_the_mode(joint: Joint, rng, meter: Meter, mode: Mode, look: Look) -> Pilot | None:
    """The Gaussian at the mode, if its own draws are nearly equally weighted."""
    d = joint.dimension
    since = meter.evaluations
    u = rng.standard_normal((BATCH, d))
    points = mode.warp.points(u)
    log_joint = meter.likelihood(joint, points) + joint.space.log_prior_at(points)
    left = spread(log_joint, points, mode.warp)
    if not np.isfinite(left):
        return None
    gap = log_joint + 0.5 * np.sum(u**2, axis=1)
    w = np.exp(gap - gap.max())
    rows = rng.choice(BATCH, BATCH, p=w / w.sum())
    value, error = log_mean_error(gap + mode.warp.log_det_value() + 0.5 * d * np.log(2 * np.pi) - np.log(BATCH))
    exact = left < EXACT
    warp = mode.warp if exact else widened(mode.warp, left)
    looks = [look, Look("curvature", value, float(error) + left**2, meter.evaluations - since)]
    return Pilot(joint, warp, standard_normal(d), points[rows], log_joint[rows], left, looks)


def _hilly(joint: Joint, rng, meter: Meter, modes: list[Mode], look: Look) -> Pilot:
    """A Gaussian hill at each of several modes."""
    since = meter.evaluations
    hills = hills_of(modes, np.inf).hills
    points = hills.draw(rng, 2 * BATCH)
    log_joint = meter.likelihood(joint, points) + joint.space.log_prior_at(points)
    gap = log_joint - hills.log_density(np, points)
    value, error = log_mean_error(gap - np.log(len(gap)))
    w = np.exp(gap - gap.max())
    rows = rng.choice(len(points), BATCH, p=w / w.sum())
    left = float(np.std(np.clip(gap - np.median(gap), -20, 20)))
    looks = [look, Look("curvature", value, error + 0.1, meter.evaluations - since)]
    # In coordinates whitened by the first hill: random walks and rungs then have unit scale.
    warp = Warp(modes[0].point, np.asarray(modes[0].warp.factor))
    inner = hills.mapped(*_inverse(warp))
    return Pilot(joint, warp, Reference(inner.widened(1.05), PRIOR_SHARE), points[rows], log_joint[rows], left, looks)


def _inverse(warp: Warp) -> tuple[np.ndarray, np.ndarray]:
    """The affine map back: u = -C^-1 m + C^-1 x."""
    d = len(warp.mean)
    factor = warp.inverse(np.eye(d) + warp.mean).T
    return -factor @ warp.mean, factor


def _dispersed(joint, rng, seed, meter: Meter, effort: Effort, looks) -> Pilot:
    """NUTS from dispersed starts: short chains where nested Laplace from their draws makes a reference that serves; else long ones,
    and the warp, affine or conditional, that leaves the least spread.
    """
    if not effort.second or meter.room < NUTS_ROOM:
        return _with_particles(joint, seed, 0, meter, effort, looks)
    chains: Chains | None = None
    warps: tuple = ()
    if joint.dimension <= CURVED_UP_TO:
        since = meter.evaluations
        chains = nuts(joint, meter, rng, seed, *SHORT)
        looks = [*looks, Look("NUTS", UNKNOWN, UNKNOWN, meter.evaluations - since)]
        since = meter.evaluations
        try:
            found = nested_laplace(joint, meter, rng, chains.x)
        except Enough:
            found = None
        if found is not None and found.share > SERVES and _is_covered(joint, chains, found):
            look = Look("nested Laplace", found.log_evidence, found.error + 0.1, meter.evaluations - since)
            return _of_laplace(joint, chains, found, [*looks, look], rng)
        looks = [*looks, Look("nested Laplace", UNKNOWN, UNKNOWN, meter.evaluations - since)]
        warps = () if found is None else (found.warp,)
    if chains is None or meter.left > NUTS_ROOM:
        since = meter.evaluations
        chains = nuts(joint, meter, rng, seed)
        looks = [*looks, Look("NUTS", UNKNOWN, UNKNOWN, meter.evaluations - since)]
    weight = np.full(len(chains.x), 1 / len(chains.x))
    fit = fitted_reference(joint, chains.x, weight, chains.log_joint, rng, warps)
    rows = rng.choice(len(chains.x), BATCH, replace=False)
    agreed = bool(chains.rhat < 1.3)
    return Pilot(joint, fit.warp, fit.reference, chains.x[rows], chains.log_joint[rows], fit.spread, looks, agreed)


def _is_covered(joint: Joint, chains: Chains, found: Weighed) -> bool:
    """Whether every chain, wherever it came from, has its draws where the reference has its own."""
    parts = np.array_split(np.arange(len(chains.x)), NUTS_CHAINS)
    weight = np.ones(len(parts[0]))
    means = [misfit(joint, found.warp, found.reference, chains.x[p], weight, chains.log_joint[p])[1] for p in parts]
    return bool(max(means) - found.log_evidence < MISSED)


def _of_laplace(joint: Joint, chains: Chains, found: Weighed, looks, rng) -> Pilot:
    """Points from the chains and, by weight, from the reference: two ways to the posterior, one half from each."""
    w = np.exp(found.gap - found.gap.max())
    drawn = rng.choice(len(w), BATCH // 2, p=w / w.sum())
    seen = rng.choice(len(chains.x), BATCH // 2, replace=False)
    points = np.concatenate([chains.x[seen], found.x[drawn]])
    log_joint = np.concatenate([chains.log_joint[seen], found.log_joint[drawn]])
    left, _ = misfit(joint, found.warp, found.reference, points, np.ones(len(points)), log_joint)
    shuffled = rng.permutation(len(points))
    return Pilot(joint, found.warp, found.reference, points[shuffled], log_joint[shuffled], left, looks)


# -- without ----------------------------------------------------------------------------------------------------------


def _followed(joint: Joint, meter: Meter, rng, first: Particles, spent: int) -> Pilot | None:
    """Nested Laplace from tempered particles, however far from settled, and some of these moved on in its coordinates.

    They came down from the prior by themselves: where they are in more of J than the reference has, it does not serve.
    """
    since = meter.evaluations
    try:
        found = nested_laplace(joint, meter, rng, first.x)
        if found is None or not found.share > SERVES:
            return None
        rows = rng.choice(len(first.x), FOLLOWERS, replace=False)
        state = (first.x[rows], first.log_likelihood[rows], first.log_prior[rows])
        gap, moves = np.array([-np.inf]), FOLLOWED
        for _ in range(MOST_POPULATIONS):
            before, state = gap, moved(joint, meter, rng, state, found.warp, moves)
            gap, moves = state[1] + state[2] - found.log_density(joint, state[0]) - found.log_evidence, 2 * moves
            if abs(gap.mean() - before.mean()) < STILL:
                break
    except Enough:
        return None
    if np.mean(gap > OUTSIDE) > FEW_OUTSIDE:
        return None
    lag = abs(first.log_evidence - found.log_evidence)
    looks = [
        Look("tempered particles", first.log_evidence, float(np.hypot(first.error, lag)), spent),
        Look("nested Laplace", found.log_evidence, found.error + 0.1, meter.evaluations - since),
    ]
    chains = Chains(state[0], state[1] + state[2], found.warp, 0.0, 1.0)
    return _of_laplace(joint, chains, found, looks, rng)


def _with_particles(joint, seed, stream, meter: Meter, effort: Effort, looks=()) -> Pilot:
    """Tempered particles and nested Laplace from there; where it does not serve, more populations, each with `MORE_MOVES` times
    the moves of the one before, until two agree, and moves until they stand still.

    Particles that are moved too little lag behind their temperature, and what they say of ln Z is off by nats, the same way
    in every population. It falls with the moves, so how far two populations differ is the error that either is given: about
    what is left in the second (measured on four problems of 34 to 100 parameters; at first it may fall slower than 1 / moves).
    """
    found: list[Particles] = []
    told: list[Look] = []
    moves: list[int] = []
    n = BATCH * int(np.ceil((96 + 12 * min(joint.dimension, 60)) / BATCH))
    n = max(min(n, int(meter.left // 200)), 32)
    for k in range(MOST_POPULATIONS if effort.second else 1):
        cost = told[-1].evaluations if told else 0
        if k >= 2 and (told[-1].error < VAGUE or MORE_MOVES * cost > SHARE * meter.left):
            break
        # A budget too small for more moves holds a second population like the first, or none.
        more = MORE_MOVES if MORE_MOVES * cost < meter.left else 1
        each = more * moves[-1] if k else MOVES
        since = meter.evaluations
        try:
            new = temper(joint, meter, np.random.default_rng([seed, stream, 2 + k]), n, each)
        except Enough:
            if not found:
                raise
            break
        found.append(new)
        moves.append(each)
        if k == 0 and not joint.is_traceable and effort.second and joint.dimension <= CURVED_UP_TO:
            pilot = _followed(joint, meter, np.random.default_rng([seed, stream, 8]), new, meter.evaluations - since)
            if pilot is not None:
                return pilot
        lag = abs(new.log_evidence - found[-2].log_evidence) if k else 0.0
        told.append(
            Look("tempered particles", new.log_evidence, float(np.hypot(new.error, lag)), meter.evaluations - since)
        )
    if len(told) > 1:
        told[0] = told[0]._replace(error=told[1].error)
    rng = np.random.default_rng([seed, stream, 9])
    # All are moved on, and chains start in all: a mode that one of them alone has found cannot be lost without a word.
    weight = np.concatenate([np.full(len(f.x), float(m)) for f, m in zip(found, moves, strict=True)])
    rows = rng.choice(len(weight), min(SNAPSHOTS * n, len(weight)), replace=False, p=weight / weight.sum())
    state = tuple(np.concatenate([getattr(f, a) for f in found])[rows] for a in ("x", "log_likelihood", "log_prior"))
    since = meter.evaluations
    settled = state if effort.is_thrifty else _settled(joint, meter, rng, state, n)
    # Those that are still too wide cover the tails of the others.
    x, log_likelihood, log_prior = map(np.concatenate, zip(state, settled, strict=True))
    fit = fitted_reference(joint, x, np.ones(len(x)), log_likelihood + log_prior, rng)
    told[-1] = told[-1]._replace(evaluations=told[-1].evaluations + meter.evaluations - since)
    rows = rng.choice(len(settled[0]), BATCH)
    x, log_likelihood, log_prior = (part[rows] for part in settled)
    return Pilot(joint, fit.warp, fit.reference, x, log_likelihood + log_prior, fit.spread, [*looks, *told])


def _settled(joint: Joint, meter: Meter, rng, state: State, n: int) -> State:
    """Snapshots of `n` particles, moved in the coordinates of a reference that is fitted to them, and again with twice the moves
    in those of another one, until neither mean nor standard deviation of any parameter moves.
    """
    now, moves = tuple(part[:n] for part in state), FOLLOWED
    while 8 * SNAPSHOTS * moves * n < SHARE * meter.left:
        x, log_joint, parts = state[0], state[1] + state[2], []
        warp = fitted_reference(joint, x, np.ones(len(x)), log_joint, rng).warp
        for _ in range(SNAPSHOTS):
            now = moved(joint, meter, rng, now, warp, moves)
            parts.append(now)
        state = tuple(map(np.concatenate, zip(*parts, strict=True)))
        shift, ratio = (state[0].mean(0) - x.mean(0)) / x.std(0), state[0].std(0) / x.std(0)
        if max(np.abs(shift).max(), np.abs(np.log(ratio)).max()) < STABLE:
            break
        moves *= 2
    return state
