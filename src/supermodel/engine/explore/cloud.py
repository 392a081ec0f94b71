r"""A cloud: all points at which one model has been evaluated, each weighed as a draw of the mixture of all proposals.

$w_i = f(x_i) / \sum_t \frac{n_t}{N} q_t(x_i)$ makes the cloud serve any target $f$ (prior, posterior, anything between), and
no evaluation is wasted: a point that an early proposal found counts as much as one of the last.
$\ln Z = \ln \frac1N \sum_i w_i$ with $f = J$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from supermodel.embedding.reference import Hills, joined, one_hill
from supermodel.embedding.warp import Warp, identity
from supermodel.engine.explore.hills import Sample, fit, lottery
from supermodel.engine.whiten import by_moments
from supermodel.models.joint import Joint


class Proposal(Protocol):
    """A normalised density that can be drawn from."""

    def log_density(self, x: np.ndarray) -> np.ndarray: ...
    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray: ...


class Prior(NamedTuple):
    """The prior as a proposal."""

    joint: Joint

    def log_density(self, x):
        return self.joint.space.log_prior_at(x)

    def draw(self, rng, n):
        return self.joint.space.sample_prior(rng, n)


class Warped(NamedTuple):
    """Hills in the coordinates of a warp."""

    warp: Any
    hills: Hills

    def log_density(self, x):
        u = self.warp.inverse(x)
        return self.hills.log_density(np, u) - self.warp.log_det_at(u)

    def draw(self, rng, n):
        return self.warp.points(self.hills.draw(rng, n))


class Cloud:
    """Points of one model with ln L and ln prior, and the density of all proposals together at every point."""

    def __init__(self, joint: Joint, evaluate: Callable[[np.ndarray], np.ndarray]):
        self.joint, self.evaluate = joint, evaluate
        self.x = np.zeros((0, joint.dimension))
        self.log_likelihood = self.log_prior = np.zeros(0)
        self.log_mixture = np.zeros(0)  # ln sum_t n_t q_t at every point
        self.proposals: list[Proposal] = []
        self.counts: list[int] = []

    def __len__(self) -> int:
        return len(self.x)

    def add(self, proposal: Proposal, x: np.ndarray, log_likelihood: np.ndarray) -> None:
        """Points drawn from a proposal, already evaluated."""
        log_likelihood = np.where(np.isfinite(log_likelihood), log_likelihood, -np.inf)
        ours, part = self._mixture_at(x), np.log(len(x)) if len(x) else -np.inf
        self.x = np.concatenate([self.x, x])
        self.log_likelihood = np.concatenate([self.log_likelihood, log_likelihood])
        self.log_prior = np.concatenate([self.log_prior, self.joint.space.log_prior_at(x)])
        before = np.concatenate([self.log_mixture, ours])
        self.log_mixture = np.logaddexp(before, part + proposal.log_density(self.x))
        self.proposals.append(proposal)
        self.counts.append(len(x))

    def grow(self, proposal: Proposal, n: int, rng: np.random.Generator) -> None:
        """Draw `n` points from a proposal and evaluate them."""
        x = proposal.draw(rng, n)
        self.add(proposal, x, self.evaluate(x))

    def merged(self, other: Cloud) -> Cloud:
        """Both clouds as one: every point is weighed by the proposals of both."""
        twin = Cloud(self.joint, self.evaluate)
        ours = np.logaddexp(self.log_mixture, other._mixture_at(self.x))
        theirs = np.logaddexp(self._mixture_at(other.x), other.log_mixture)
        twin.log_mixture = np.concatenate([ours, theirs])
        for name in ("x", "log_likelihood", "log_prior"):
            setattr(twin, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        twin.proposals, twin.counts = self.proposals + other.proposals, self.counts + other.counts
        return twin

    def _mixture_at(self, x: np.ndarray) -> np.ndarray:
        r"""$\ln \sum_t n_t q_t(x)$."""
        total = np.full(len(x), -np.inf)
        for proposal, n in zip(self.proposals, self.counts, strict=True):
            total = np.logaddexp(total, np.log(n) + proposal.log_density(x)) if n else total
        return total

    @property
    def is_prior(self) -> np.ndarray:
        """Which points are draws of the prior."""
        return np.repeat([isinstance(p, Prior) for p in self.proposals], self.counts)

    # -- weights --------------------------------------------------------------------------------------------------

    @property
    def log_volume(self) -> np.ndarray:
        """Log of the prior's share that each point stands for: sums to about 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.log_prior - self.log_mixture
        return np.where(np.isfinite(value), value, -np.inf)

    @property
    def log_joint(self) -> np.ndarray:
        """ln J at every point."""
        return self.log_likelihood + self.log_prior

    def log_weights(self, beta: float = 1.0) -> np.ndarray:
        r"""Log weights of the target $\pi L^\beta$; their sum is its evidence."""
        return self.log_volume + powered(self.log_likelihood, beta)

    def log_evidence(self) -> tuple[float, float]:
        """ln Z and its standard error, from the spread of the weights."""
        w = self.log_weights()
        return log_mean_error(w)


def scale_of(cloud: Cloud) -> tuple[np.ndarray, np.ndarray]:
    """Centre and width of the prior, from its draws in the cloud."""
    x = cloud.x[cloud.is_prior]
    low, middle, high = np.quantile(x, [0.16, 0.5, 0.84], axis=0)
    return middle, np.maximum(0.5 * (high - low), 1e-300)


def powered(log_likelihood: np.ndarray, beta: float) -> np.ndarray:
    r"""$\beta \ln L$, which is 0 at $\beta = 0$ even where the likelihood vanishes."""
    return np.zeros_like(log_likelihood) if beta == 0 else beta * log_likelihood


def log_sum(x: np.ndarray) -> np.ndarray:
    """ln of the sum of exp along the last axis; -inf where nothing is finite."""
    top = np.max(x, axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return (top + np.log(np.exp(x - top).sum(-1, keepdims=True)))[..., 0]


def log_mean_error(log_w: np.ndarray) -> tuple[float, float]:
    """ln of the sum of weights and the relative error of that sum."""
    total = float(log_sum(log_w))
    if not np.isfinite(total):
        return total, float("inf")
    share = np.exp(log_w - total)
    return total, float(np.sqrt(max(np.sum(share**2) - 1 / len(share), 1e-12)))


def effective_size(log_w: np.ndarray) -> float:
    r"""$(\sum w)^2 / \sum w^2$."""
    top = log_w.max() if len(log_w) else -np.inf
    if not np.isfinite(top):
        return 0.0
    w = np.exp(log_w - top)
    return float(w.sum() ** 2 / np.sum(w**2))


def flattened(log_w: np.ndarray, least: float) -> np.ndarray:
    """The weights to the largest power, up to 1, that leaves `least` effective points: a hill needs so many to have a shape."""
    low, high = 0.0, 1.0
    seen = np.where(np.isfinite(log_w), log_w, -np.inf)
    least = min(least, 0.9 * np.sum(np.isfinite(log_w)))  # of so many as there are
    if effective_size(seen) >= least:
        return log_w
    for _ in range(200):
        middle = 0.5 * (low + high)
        enough = effective_size(middle * seen) >= least
        low, high = (middle, high) if enough else (low, middle)
        if low > 0 and high - low < 0.01 * high:
            break
    return low * seen


FITTED_TO = 600  # draws that the hills of one round are fitted to: EM takes a tenth of a second
DRAWS_PER_HILL = 30  # that shape a hill which a climb has found


def inside(warp: Warp, hills: Hills) -> Hills:
    """Hills of x in the coordinates of an affine warp with a lower-triangular factor."""
    inverse = np.linalg.inv(np.asarray(warp.factor))
    return hills.mapped(-inverse @ np.asarray(warp.mean), inverse)


def fitted(
    cloud: Cloud,
    log_w: np.ndarray,
    rng: np.random.Generator,
    most: int,
    dof: float,
    wider: float,
    start: Hills | None = None,
) -> Warped:
    """Hills fitted to the cloud under the weights `log_w` of some target, in coordinates whitened by its moments.

    `start`: hills that are known otherwise. The more there are, the more draws it takes to shape them.
    """
    size = FITTED_TO if start is None else max(FITTED_TO, DRAWS_PER_HILL * len(start.log_weights))
    possible = np.flatnonzero(np.isfinite(log_w))
    if len(possible) < cloud.joint.dimension + 2:
        # No shape to be had: about each of them, as wide as a tenth of the prior.
        width = np.diag(0.1 * scale_of(cloud)[1])
        return Warped(identity(len(width)), joined([(1.0, one_hill(x, width, dof)) for x in cloud.x[possible]]))
    log_w = flattened(log_w, 2 * cloud.joint.dimension + 4)
    used, w = lottery(np.exp(log_w - log_w.max()), size, rng)
    points = cloud.x[used]
    warp = by_moments(points, w)
    target = log_w[used] - cloud.log_volume[used] + cloud.log_prior[used]
    sample = Sample(warp.inverse(points), w / w.sum(), target)
    hills = fit(sample, rng, most, dof, None if start is None else inside(warp, start))
    return Warped(warp, hills.widened(wider))
