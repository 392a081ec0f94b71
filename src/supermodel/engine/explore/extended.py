r"""What is known of a smaller model, and the prior of what a larger one has besides, as one proposal.

Let $r(\theta)$ be the reference that was fitted to the smaller model, whose prior is $\pi(\theta)$, and $\phi$ what is new. Then
$G(\theta, \phi) = r(\theta)\,\pi(\phi) = \pi(\theta, \phi)\, r(\theta) / \pi(\theta)$ is normalised and can be drawn from. Where
components have no order, $G$ is summed over all orders. If the data need nothing new, G is the posterior but for a smooth factor;
if they do, its draws show where.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.reference import stretches
from supermodel.engine.explore.cloud import Cloud, Warped, flattened, log_sum
from supermodel.engine.explore.hills import Sample, fit, lottery
from supermodel.engine.explore.pilot import Pilot
from supermodel.engine.policy import BLIND, DOF, FITTED, MOST_HILLS, MOST_ORDERS, PER_NUMBER, WIDER
from supermodel.engine.whiten import by_moments
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Exchange, Symmetry, exchanged


class Extended(NamedTuple):
    """Draws of the smaller model's reference with draws of the rest, in any order of the components; a part is the prior."""

    joint: Joint
    smaller: Pilot
    exchanges: tuple[Exchange, ...]  # components that have no order, and
    orders: np.ndarray  # all orders of them, (m, k)
    new: Warped | None = None  # a fit to the rest, in place of most of its prior

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        x = self.joint.opened.space.sample_prior(rng, n)
        known = rng.random(n) >= BLIND
        x[known] = with_smaller(self.smaller, self.joint, x[known], drawn(self.smaller, rng, int(known.sum())))
        if self.new is not None:
            known &= rng.random(n) >= BLIND
            rows = np.flatnonzero(known)
            x[np.ix_(rows, self.columns)] = self.new.draw(rng, len(rows))
        if self.joint.opened is not self.joint:
            return self.joint.space.in_order(x)
        for exchange in self.exchanges:
            x = exchanged(self.joint.space, x, exchange, self.orders[rng.integers(len(self.orders), size=n)])
        return x

    def log_density(self, x: np.ndarray) -> np.ndarray:
        images = self._images(x)
        ratio = self._ratio(images)
        if self.new is not None:
            fit = self.new.log_density(images[:, self.columns]) - self._log_prior_of_new(images)
            ratio = ratio + np.logaddexp(np.log(BLIND), np.log1p(-BLIND) + fit)
        mean = log_sum(ratio.reshape(-1, len(x)).T) - np.log(max(len(self.orders), 1))
        return self.joint.space.log_prior_at(x) + np.logaddexp(np.log(BLIND), np.log1p(-BLIND) + mean)

    def fitted(self, cloud: Cloud, rng: np.random.Generator) -> Extended:
        """The same, with the rest fitted to the weighted points of a cloud, each as the new component of one of its orders."""
        columns = self.columns
        log_w = flattened(cloud.log_weights(), PER_NUMBER * (len(columns) + 1))
        rows, w = lottery(np.exp(log_w - log_w.max()), FITTED, rng)
        images = self._images(cloud.x[rows])
        ratio = self._ratio(images).reshape(-1, len(rows))
        share = np.cumsum(np.exp(ratio - log_sum(ratio.T)), axis=0)
        of = np.minimum((rng.random(len(rows)) > share).sum(axis=0), len(ratio) - 1)
        x = images.reshape(-1, len(rows), images.shape[1])[of, np.arange(len(rows))][:, columns]
        left = cloud.log_joint[rows] - ratio[of, np.arange(len(rows))]
        warp = by_moments(x, w)
        hills = fit(Sample(warp.inverse(x), w / w.sum(), left), rng, MOST_HILLS, DOF)
        return self._replace(new=Warped(warp, hills.widened(WIDER)))

    @property
    def columns(self) -> np.ndarray:
        """Coordinates of what is new."""
        space, known = self.joint.opened.space, set(self.smaller.joint.space.names)
        return np.concatenate([np.arange(d)[space.slices[n]] for n in space.names for d in [space.dimension] if n not in known])

    def _log_prior_of_new(self, x: np.ndarray) -> np.ndarray:
        space, known = self.joint.opened.space, set(self.smaller.joint.space.names)
        parts = [space.priors[n].log_density_at(x[:, space.slices[n]]) for n in space.names if n not in known]
        return np.sum(parts, axis=0)

    def _images(self, x: np.ndarray) -> np.ndarray:
        """Points with their components in every order, one order after the other: (m n, d)."""
        for exchange in self.exchanges:
            order = np.repeat(self.orders, len(x), axis=0)
            x = exchanged(self.joint.opened.space, np.tile(x, (len(self.orders), 1)), exchange, order)
        return x

    def _ratio(self, x: np.ndarray) -> np.ndarray:
        r"""$\ln r(\theta) - \ln\pi(\theta)$ of the smaller model's part of points."""
        pilot = self.smaller
        y = of_smaller(pilot, self.joint, x)
        u = pilot.warp.inverse(y)
        log_det = pilot.warp.log_det_at(u)
        log_r = pilot.reference.log_density(np, u, pilot.joint.log_defence_at(y) + log_det) - log_det
        return log_r - pilot.joint.opened.space.log_prior_at(y)


def extended(joint: Joint, smaller: Pilot, found: Sequence[Symmetry]) -> Extended | None:
    """The proposal, if labels are all that has been folded, and not too many of them. `found`: the symmetries of the model."""
    if smaller.joint.dimension == 0:
        return None  # the prior is that
    exchanges = tuple(s for s in found if isinstance(s, Exchange))
    folds = [fold for j in (joint, smaller.joint) for fold in getattr(j.space, "symmetries", ())]
    others = [s for s in folds if s.is_used and not isinstance(s, Exchange) and getattr(s, "parts", 2) > 1]
    if others or len(exchanges) > 1:
        return None
    orders = np.array(list(itertools.permutations(range(len(exchanges[0].blocks) if exchanges else 0))))
    return Extended(joint, smaller, exchanges, orders) if len(orders) <= MOST_ORDERS else None


def drawn(pilot: Pilot, rng: np.random.Generator, n: int) -> np.ndarray:
    """Draws of a model's reference, in its coordinates."""
    d, reference = pilot.joint.dimension, pilot.reference
    normal, uniform = rng.standard_normal((n, d)), rng.random(n)
    stretch = stretches(rng, float(reference.hills.dof), (n,))
    beside = pilot.warp.inverse(pilot.joint.sample_defence(rng, n))
    return pilot.warp.points(reference.transform(np, normal, uniform, stretch, beside))


def shared_names(smaller: Joint, joint: Joint) -> list[str]:
    """Parameters of the smaller model, all of which the larger one has."""
    return [name for name in smaller.space.names if name in joint.space.names]


def with_smaller(smaller: Pilot, joint: Joint, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Points of a larger model with the parameters of the smaller one replaced by those at its points `y`."""
    result, space, own = x.copy(), joint.opened.space, smaller.joint.space
    for name in shared_names(smaller.joint, joint):
        result[:, space.slices[name]] = _moved(own.priors[name], space.priors[name], y[:, own.slices[name]])
    return result


def of_smaller(smaller: Pilot, joint: Joint, x: np.ndarray) -> np.ndarray:
    """The part of points of a larger model that the smaller one has, in its coordinates."""
    space, own = joint.opened.space, smaller.joint.space
    result = np.zeros((len(x), smaller.joint.dimension))
    for name in shared_names(smaller.joint, joint):
        result[:, own.slices[name]] = _moved(space.priors[name], own.priors[name], x[:, space.slices[name]])
    return result


def _moved(before: Any, after: Any, points: np.ndarray) -> np.ndarray:
    """Coordinates of one parameter under another cut of its circle; else they are what they were."""
    circles = [hasattr(prior, "points_at") for prior in (before, after)]
    if not any(circles):
        return points
    values = before.values_at(points)
    if circles[1]:
        return after.points_at(values)
    return np.array([np.ravel(after.unconstrain(value)) for value in values])
