r"""Where chains start: in each model's own posterior, reached by annealing $\pi_k L_k^\beta$ from $\beta = 0$ to 1.

Narrow posteriors in wide priors, and many-peaked ones, are missed by a chain started anywhere: a population of prior
draws is resampled and moved at falling temperatures instead. Half of the chains (1/K of them) start in each model, so
that chains which cannot cross between models show it in their R-hat. No answer depends on this population.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.supermodel import Supermodel
from supermodel.embedding.warp import from_covariance
from supermodel.errors import ModelError
from supermodel.models.joint import Joint

PARTICLES = 1024
MOVES = 6  # Metropolis steps at each temperature
TARGET_ACCEPTANCE = 0.3


class Annealed(NamedTuple):
    """Populations of every model at a common list of temperatures, from the prior (beta = 0) to the posterior."""

    betas: np.ndarray  # (T,)
    populations: list[list[np.ndarray]]  # [T][K]: (n, d_k) unconstrained points of model k
    evaluations: int


class Population:
    """Particles of one model on their way from prior to posterior."""

    def __init__(self, joint: Joint, rng: np.random.Generator, n: int, executor: Any = None):
        self.joint, self.rng, self.executor = joint, rng, executor
        self.points, self.log_likelihoods = joint.probe(rng, n, lambda x: joint.log_likelihood_at(x, executor))
        if not np.any(np.isfinite(self.log_likelihoods)):
            raise ModelError(
                f"the log likelihood of model {joint.name!r} is -inf at all of {n} prior draws, so no chain can start. "
                "Tighten its priors to where the data are possible, or make the likelihood finite there."
            )
        self.evaluations = n
        self.scale = 2.4 / max(joint.dimension, 1) ** 0.5

    def next_beta(self, beta: float) -> float:
        """The largest temperature step that leaves half of the population effective."""
        low, high = beta, 1.0
        if self._effective_share(1.0 - beta) >= 0.5:
            return 1.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._effective_share(middle - beta) >= 0.5 else (low, middle)
        return high  # not `low`: -inf likelihoods may leave fewer than half at any beta > 0, and we must move on

    def _effective_share(self, step: float) -> float:
        weights = self._weights(step)
        return 1.0 / float(np.sum(weights**2)) / len(weights)

    def _weights(self, step: float) -> np.ndarray:
        finite = np.isfinite(self.log_likelihoods)
        top = self.log_likelihoods[finite].max()
        weights = np.where(finite, np.exp(step * (np.where(finite, self.log_likelihoods, top) - top)), 0.0)
        return weights / weights.sum()

    def cool(self, beta: float, new_beta: float) -> None:
        """Resample to the new temperature, then move."""
        n = len(self.points)
        places = (self.rng.random() + np.arange(n)) / n  # systematic: least noise
        chosen = np.minimum(np.searchsorted(np.cumsum(self._weights(new_beta - beta)), places), n - 1)
        self.points, self.log_likelihoods = self.points[chosen], self.log_likelihoods[chosen]
        if self.joint.dimension:
            self._move(new_beta)

    def _move(self, beta: float) -> None:
        factor = from_covariance(np.zeros(self.points.shape[1]), covariance(self.points)).factor
        log_priors = self.joint.space.log_prior_at(self.points)
        for _ in range(MOVES):
            proposal = self.points + self.scale * self.rng.standard_normal(self.points.shape) @ factor.T
            likelihoods = self.joint.log_likelihood_at(proposal, self.executor)
            priors = self.joint.space.log_prior_at(proposal)
            with np.errstate(invalid="ignore"):
                gain = priors - log_priors + beta * (likelihoods - self.log_likelihoods)
            accept = np.log(self.rng.random(len(gain))) < gain  # NaN: no
            self.points = np.where(accept[:, None], proposal, self.points)
            self.log_likelihoods = np.where(accept, likelihoods, self.log_likelihoods)
            log_priors = np.where(accept, priors, log_priors)
            self.scale *= np.exp(accept.mean() - TARGET_ACCEPTANCE)
            self.evaluations += len(gain)


def anneal(supermodel: Supermodel, rng: np.random.Generator, n: int | None = None, executor: Any = None) -> Annealed:
    """Bring a population of every model from its prior to its posterior, at temperatures common to all."""
    if n is None:
        n = PARTICLES if all(joint.is_traceable for joint in supermodel.joints) else PARTICLES // 4
    populations = [Population(joint, rng, n, executor) for joint in supermodel.joints]
    betas, history = [0.0], [[p.points for p in populations]]
    while betas[-1] < 1.0:
        beta = min(p.next_beta(betas[-1]) for p in populations)
        for p in populations:
            p.cool(betas[-1], beta)
        betas.append(beta)
        history.append([p.points for p in populations])
    return Annealed(np.array(betas), history, sum(p.evaluations for p in populations))


def starting_points(
    supermodel: Supermodel, annealed: Annealed, level: int, rng: np.random.Generator, chains: int
) -> np.ndarray:
    """(chains, D): chain c starts at a draw of model c mod K; what that model does not own follows the prior."""
    points = _rest(supermodel, rng, chains)
    k = len(supermodel.names)
    for m in range(k):
        mine = np.arange(chains)[m::k]
        population = annealed.populations[level][m]
        chosen = population[rng.choice(len(population), len(mine), replace=len(mine) > len(population))]
        points[np.ix_(mine, supermodel.places[m])] = _warped(supermodel, m, chosen)
    return points


def starting_alpha(supermodel: Supermodel, chains: int) -> np.ndarray:
    """Each chain at the corner of its model (for a cut-off, at that end of the interval)."""
    coordinate: Any = supermodel.coordinate
    k = len(supermodel.names)
    ends = getattr(coordinate, "ends", None)
    corners = [ends[m] if ends is not None else coordinate.corner(m) for m in range(k)]
    if coordinate.is_discrete:
        corners = [int(np.argmax(coordinate.table[:, m])) for m in range(k)]
    return np.stack([np.asarray(corners[c % k]) for c in range(chains)])


def factors(supermodel: Supermodel, annealed: Annealed, level: int, rng: np.random.Generator) -> np.ndarray:
    """(K, D, D): for each model a Cholesky factor of the widths expected while the chain is in it."""
    result = []
    for m, population in enumerate(annealed.populations[level]):
        points = _rest(supermodel, rng, len(population))
        points[:, supermodel.places[m]] = _warped(supermodel, m, population)
        result.append(from_covariance(np.zeros(supermodel.dimension), covariance(points)).factor)
    return np.stack(result)


def covariance(points: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Weighted covariance of points (n, d), also for d = 0 and d = 1."""
    weights = np.full(len(points), 1.0 / len(points)) if weights is None else weights / weights.sum()
    centred = points - weights @ points
    return (centred * weights[:, None]).T @ centred


def _rest(supermodel: Supermodel, rng: np.random.Generator, n: int) -> np.ndarray:
    """Points whose coordinates follow the companions, as nearly as a start needs."""
    if supermodel.warps is not None:
        return rng.standard_normal((n, supermodel.dimension))
    # As many as the population has: a number of its own would be compiled anew.
    return supermodel.sample_prior(rng, max(n, PARTICLES))[:n]


def _warped(supermodel: Supermodel, k: int, points: np.ndarray) -> np.ndarray:
    return points if supermodel.warps is None else supermodel.warps[k].inverse(points)
