r"""The pilot of one model: where its posterior is, and the warp that makes it look like $N(0, I)$.

Cheap first, careful where cheap fails: climb from prior draws and take the curvature; if draws from that Gaussian do
not resemble the posterior, run short Hamiltonian chains and fit the warp to them; if there are several modes, or no
gradient, carry particles from the prior. What decides is the spread of $\ln J - \ln N$ that a warp leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from supermodel.embedding import warp as warps
from supermodel.embedding.supermodel import Supermodel
from supermodel.embedding.warp import Warp
from supermodel.engine.edge import REFERENCE, Edge, no_data_model
from supermodel.engine.kernels import Tuning
from supermodel.engine.laplace import Climb, find_modes
from supermodel.engine.mixture import Mixture, best_fit, defended
from supermodel.engine.rungs import independent_acceptance
from supermodel.engine.smc import Particles, temper
from supermodel.engine.whiten import by_moments, by_scores, spread, widened
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint

BATCH = 64  # points evaluated together; one shape, one compilation
RUNGS = 8  # ladders are padded to a multiple of this, so that they do not recompile


@dataclass
class Pilot:
    """What is known of one model before the supermodel is run."""

    joint: Joint
    warp: Warp
    points: np.ndarray  # (n, d) draws of the posterior, roughly
    log_joint: np.ndarray  # (n,)
    spread: float  # of ln J - ln N over the posterior
    spread_reference: float  # the same over N(0, I)
    method: str
    evaluations: int
    gradients: int
    n_modes: int = 1
    log_evidence: float = float("nan")  # a rough one of its own, from tempered particles
    log_evidence_error: float = float("nan")
    step: float = 0.0  # of the Hamiltonian pilot
    mixture: Mixture | None = None  # the reference, in warped coordinates, where one Gaussian is not enough
    is_hilly: bool = False  # that reference has hills of its own, and no single warp describes the posterior
    acceptance: float = 1.0  # of independent draws from N(0, I) by a chain in the posterior
    notes: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.joint.name


def padded(table: np.ndarray, log_prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A ladder of one of few sizes: rungs of prior probability 0 are added at the end."""
    extra = -len(table) % RUNGS
    table = np.concatenate([table, np.repeat(table[-1:], extra, axis=0)])
    return table, np.concatenate([log_prior, np.full(extra, -np.inf)])


def evaluate_in_batches(joint: Joint, points: np.ndarray, executor: Any = None) -> np.ndarray:
    """ln L at many points, in batches of one size."""
    if not joint.is_traceable:
        return joint.log_likelihood_at(points, executor)
    size = -len(points) % BATCH
    filled = np.concatenate([points, np.repeat(points[-1:], size, axis=0)]) if size else points
    parts = [joint.log_likelihood_at(filled[i : i + BATCH]) for i in range(0, len(filled), BATCH)]
    return np.concatenate(parts)[: len(points)]


Known = tuple[np.ndarray, np.ndarray]  # prior draws and ln L there


@in_float64
def pilot(joint: Joint, known: Known, seed: int, stream: int, executor: Any = None) -> Pilot:
    """Find the posterior of one model, by the cheapest way that works."""
    rng = np.random.default_rng([seed, stream])
    prior_points, prior_values = known
    if joint.dimension == 0:
        warp = warps.identity(0)
        values = prior_values + 0.0
        return Pilot(joint, warp, prior_points, values, 0.0, 0.0, "no parameters", 1, 0)
    if joint.model.pilot_points is not None:
        return _from_chains(joint, rng, BATCH, executor)
    if not joint.is_traceable:
        return _tempered(joint, rng, known, BATCH, 0, executor)
    climb, climber = find_modes(joint, _starts(joint, known), iterations=200)
    paid = BATCH + climb.evaluations
    if not climb.modes or climb.rivals:
        return _tempered(joint, rng, known, paid, climb.gradients, executor)
    found = _laplace(joint, rng, climb, paid)
    if max(found.spread, found.spread_reference) <= 1.5:
        return _with_reference(found)
    chained = _hamiltonian(joint, rng, seed, stream, found)
    if chained is not None and (chained.spread <= 3.0 or joint.dimension > 12):
        return replace(chained, warp=widened(chained.warp, chained.spread))
    spent = chained or found
    return _tempered(joint, rng, known, spent.evaluations, spent.gradients, executor)


def _with_reference(found: Pilot) -> Pilot:
    """A reference that covers the tails of a posterior that is nearly normal; a normal one is left as it is."""
    d = found.joint.dimension
    if found.spread < 0.05 or d > 20:
        return replace(found, warp=widened(found.warp, found.spread))
    return replace(found, mixture=defended(d))


def _starts(joint: Joint, known: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Prior draws to climb from: the best, and one of the worst for the sake of other basins."""
    points, values = known
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf))
    n = 5 if joint.dimension <= 20 else 1
    chosen = list(order[:n]) + ([order[len(order) // 2]] if joint.dimension <= 20 else [])
    return points[[i for i in chosen if np.isfinite(values[i])]]


def _laplace(joint: Joint, rng: np.random.Generator, climb: Climb, paid: int) -> Pilot:
    """Draw from the Gaussian at the mode, weigh the draws, and mend the warp with what their scores say."""
    import jax

    d, mode = joint.dimension, climb.modes[0]
    n = BATCH * (2 if d <= 20 else 1)
    u = rng.standard_normal((n, d))
    points = mode.warp.points(u)
    value_and_gradient = jax.jit(jax.vmap(jax.value_and_grad(joint.__call__)))
    parts = [value_and_gradient(points[i : i + BATCH]) for i in range(0, n, BATCH)]
    log_joint = np.concatenate([np.asarray(p[0]) for p in parts])
    gradients = np.concatenate([np.asarray(p[1]) for p in parts])
    weights, share = importance(log_joint, points, mode.warp)
    warp = mode.warp
    if share > 0.5 and np.all(np.isfinite(gradients)) and n >= 4 * d:
        mended = by_scores(points, gradients, mode.warp)
        if spread(log_joint, points, mended, weights) < spread(log_joint, points, warp, weights):
            warp = mended
    keep = np.flatnonzero(weights > 0)
    rows = rng.choice(keep, size=BATCH, p=weights[keep] / weights[keep].sum())
    over_posterior = spread(log_joint, points, warp, weights)
    over_reference = spread(log_joint, points, warp)
    if share < 0.1:  # the weights rest on a few draws: the spread that they show is too small
        over_posterior = over_reference = max(over_reference, 10.0)
    return Pilot(
        joint, warp, points[rows], log_joint[rows], over_posterior, over_reference, "curvature", paid + n,
        climb.gradients + n,
    )  # fmt: skip


def importance(log_joint: np.ndarray, points: np.ndarray, warp: Warp) -> tuple[np.ndarray, float]:
    """Weights J/N of draws from a warp's Gaussian, and their effective share."""
    gap = log_joint + 0.5 * np.sum(warp.inverse(points) ** 2, axis=1)
    gap = np.where(np.isfinite(gap), gap, -np.inf)
    if not np.any(np.isfinite(gap)):
        return np.full(len(gap), 1 / len(gap)), 0.0
    w = np.exp(gap - gap.max())
    return w / w.sum(), float(w.sum() ** 2 / np.sum(w**2) / len(w))


def _hamiltonian(joint: Joint, rng: np.random.Generator, seed: int, stream: int, found: Pilot) -> Pilot | None:
    """Short chains in warped coordinates, the warp refitted after each round; None if they do not hold together.

    The fit takes the draws of the last three rounds and the gradients that the trajectories computed anyway.
    """
    d, chains, steps, rounds = joint.dimension, 16, 12, 5
    warp, u, step = found.warp, 0.5 * rng.standard_normal((chains, d)), d**-0.25
    table, prior = padded(np.array([[1.0, 0.0]]), np.zeros(1))
    pair = Supermodel(
        {joint.name: joint.model, REFERENCE: no_data_model()},
        combine="product", data=joint.data, warps=(warp, warps.identity(0)),
    )  # fmt: skip
    edge = Edge(pair, "hamiltonian", chains, stream)
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # points, ln J, gradients, of each round
    for _ in range(rounds):
        edge.pair.warps = (warp, warps.identity(0))
        edge.begin(u, np.zeros(chains, int))
        block = edge.advance(seed, steps, Tuning(table, prior, step, leapfrogs(step)), with_gradients=True)
        step = float(np.clip(step * np.exp(block.acceptance - 0.85), 0.02, 1.2))
        late = np.s_[:, steps // 3 :]
        gradients = np.linalg.solve(np.asarray(warp.factor).T, block.gradients[late].reshape(-1, d).T).T  # in x
        log_joint = block.log_joints[late][..., 0].reshape(-1) - warp.log_det_value()
        seen.append((warp.points(block.u[late].reshape(-1, d)), log_joint, gradients))
        points, log_joint, gradients = (np.concatenate(parts) for parts in zip(*seen[-3:], strict=True))
        if not (np.all(np.isfinite(points)) and np.all(np.isfinite(gradients))):
            return None
        last, old = warp.points(np.asarray(block.u[:, -1])), warp
        candidates = [old, by_scores(points, gradients, old)]
        if len(points) > 2 * d:
            candidates.append(by_moments(points, shrink_to=old))
        warp = min(candidates, key=lambda w: spread(log_joint, points, w))
        u = warp.inverse(last)
    left = spread(log_joint, points, warp)
    rows = rng.choice(len(points), BATCH, replace=len(points) < BATCH)
    return Pilot(
        joint, warp, points[rows], log_joint[rows], left, left, "Hamiltonian chains",
        found.evaluations + edge.evaluations, found.gradients + edge.gradients, step=step,
    )  # fmt: skip


def _from_chains(joint: Joint, rng: np.random.Generator, evaluations: int, executor: Any) -> Pilot:
    """Posterior draws that the user brought: only their densities at a few of them are asked for."""
    given: Any = joint.model.pilot_points
    n = len(next(iter(given.values())))
    rows = rng.permutation(n)[:512]
    points = joint.space.points_of({name: np.asarray(given[name])[rows] for name in joint.space.names})
    points = points[np.all(np.isfinite(points), axis=1)]
    few = points[np.arange(BATCH) % len(points)]
    log_joint = evaluate_in_batches(joint, few, executor) + joint.space.log_prior_at(few)
    warp = by_moments(points)
    left = spread(log_joint, few, warp)
    return Pilot(
        joint, widened(warp, left), few, log_joint, left, 1.3 * left, "chains brought along", evaluations + BATCH, 0
    )


def leapfrogs(step: float) -> int:
    """Enough leapfrogs for a quarter turn, which takes a standard normal to an independent draw."""
    return int(np.clip(np.ceil(1.4 / step), 2, 64))


CROWD = 1024  # particles, where a few and one Gaussian are not enough


def _tempered(joint, rng, known, evaluations, gradients, executor) -> Pilot:
    """Particles from the prior and the warp of their moments; many particles and a mixture where that is too rough."""
    d = joint.dimension
    n = BATCH * int(np.ceil((96 + 12 * min(d, 60)) / BATCH))
    particles = temper(joint, rng, n, executor, start=known)
    warp, mixture, method = by_moments(particles.points), None, "tempered particles"
    left = spread(particles.log_joint, particles.points, warp)
    evaluations += particles.evaluations + BATCH
    if d <= 20 and (left > 1.5 or _acceptance(joint, warp, particles, rng, executor) < 0.3):
        particles = temper(joint, rng, CROWD, executor)
        evaluations += particles.evaluations
        warp = by_moments(particles.points)
        mixture = best_fit(warp.inverse(particles.points), rng)
        gap = particles.log_joint - mixture.log_density(np, warp.inverse(particles.points))
        left = float(np.std(np.clip(gap - np.median(gap), -20, 20)))
        method += f", {len(mixture.means)} hills"
    elif d <= 20:
        mixture = defended(d)
    rows = rng.choice(len(particles.points), BATCH, replace=False)
    return Pilot(
        joint, warp if mixture else widened(warp, left), particles.points[rows], particles.log_joint[rows], left,
        1.3 * left, method, evaluations, gradients, log_evidence=particles.log_evidence,
        log_evidence_error=particles.log_evidence_error, mixture=mixture, is_hilly="hills" in method,
    )  # fmt: skip


def _acceptance(joint, warp: Warp, particles: Particles, rng: np.random.Generator, executor) -> float:
    """How often the posterior would accept an independent draw of the Gaussian."""
    u = rng.standard_normal((BATCH, joint.dimension))
    points = warp.points(u)
    outside = (
        evaluate_in_batches(joint, points, executor) + joint.space.log_prior_at(points) + 0.5 * np.sum(u**2, axis=1)
    )
    inside = particles.log_joint + 0.5 * np.sum(warp.inverse(particles.points) ** 2, axis=1)
    return independent_acceptance(inside, outside)
