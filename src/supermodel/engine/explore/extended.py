r"""What is known of a smaller model, with further components besides, as one proposal for a larger model.

Let $r(\theta)$ be the reference that was fitted to a smaller model of prior $\pi(\theta)$, its components in order, and
$h(\phi)$ a density of one component that is new. A draw of r, draws of h for all that is new, put in order, have the density

$G(x) = \pi(x) \; \overline{ \frac{r(\theta_S)}{\pi(\theta_S)} \prod_{j \notin S} \frac{h(\phi_j)}{\pi(\phi_j)} }$

the mean being over all choices S of which components of x are those of the smaller model. If the data need nothing new, G with
$h = \pi$ is the posterior but for a smooth factor; what they do need is fitted into h.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from supermodel.embedding.reference import stretches
from supermodel.engine.explore.cloud import Cloud, Warped, flattened, log_sum
from supermodel.engine.explore.hills import Sample, fit, lottery
from supermodel.engine.explore.pilot import Pilot
from supermodel.engine.policy import BLIND, DOF, FITTED, INSIDE, MOST_CHOICES, MOST_HILLS, PER_NUMBER, WIDER
from supermodel.engine.whiten import by_moments
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Exchange, Symmetry, exchanged


@dataclass(frozen=True, eq=False)
class Extended:
    """Draws of a smaller model's reference and of new components, in the order of the larger model; a part is the prior."""

    joint: Joint
    base: Pilot  # of the smaller model
    exchange: Exchange | None  # components of the larger one that have no order, if there are several
    choices: np.ndarray  # (m, K): which components are those of the smaller model, and then those that are new
    names: tuple[tuple[str, ...], ...]  # of the parameters of each component that is new
    log_inside: float  # ln of the share of r in the part of its space that is kept
    known: Any = None  # a density of the smaller model in place of its reference
    new: tuple[Any, ...] = ()  # densities of the last component, of which h is the mean, but for its part of the prior
    _known: dict[int, np.ndarray] = field(default_factory=dict)  # ln r / pi at batches of points that were asked for before

    # -- the proposal ---------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        space = self.joint.opened.space
        x = space.sample_prior(rng, n)
        known = np.flatnonzero(rng.random(n) >= BLIND)
        x[known] = with_smaller(self.base, self.joint, x[known], drawn(self.base, rng, len(known), self.known))
        for names in self.names:
            which = rng.integers(max(len(self.new), 1), size=len(known))
            which[rng.random(len(known)) < BLIND] = -1
            for i, density in enumerate(self.new):
                rows = known[which == i]
                for name, part in self._parts(density.draw(rng, len(rows)), names):
                    x[rows, space.slices[name]] = part
        if self.joint.opened is not self.joint:
            return self.joint.space.in_order(x)
        if self.exchange is not None:
            x = exchanged(space, x, self.exchange, np.argsort(rng.random((n, self.choices.shape[1])), axis=1))
        return x

    def log_density(self, x: np.ndarray) -> np.ndarray:
        ratio = log_sum(self._ratios(x).T) - np.log(len(self.choices))
        return self.joint.space.log_prior_at(x) + np.logaddexp(np.log(BLIND), np.log1p(-BLIND) + ratio)

    def fitted(self, cloud: Cloud, rng: np.random.Generator) -> Extended:
        """The same with a fit in h to the weighted points of a cloud, of each of which one choice says what is new."""
        log_w = flattened(cloud.log_weights(), PER_NUMBER * (len(self._columns) + 1))
        rows, w = lottery(np.exp(log_w - log_w.max()), FITTED, rng)
        ratios, phi = self._ratios(cloud.x[rows]), self._components(cloud.x[rows])
        share = np.cumsum(np.exp(ratios - log_sum(ratios.T)), axis=0)
        of = np.minimum((rng.random(len(rows)) > share).sum(axis=0), len(ratios) - 1)
        left, n = cloud.log_joint[rows] - ratios[of, np.arange(len(rows))], len(self.names)
        new = np.concatenate([phi[self.choices[of, -1 - j], np.arange(len(rows))] for j in range(n)])
        weight, warp = np.tile(w, n), by_moments(new, np.tile(w, n))
        sample = Sample(warp.inverse(new), weight / weight.sum(), np.tile(left, n))
        return replace(self, new=(*self.new, Warped(warp, fit(sample, rng, MOST_HILLS, DOF).widened(WIDER))))

    # -- its parts ------------------------------------------------------------------------------------------------

    def _ratios(self, x: np.ndarray) -> np.ndarray:
        r"""$\ln r/\pi + \sum_j \ln h/\pi$ of each choice at (n, d) points: (m, n)."""
        key = hash(x.tobytes())
        if key not in self._known:  # all proposals of a cloud are asked for the same points
            self._known[key] = np.stack([self._base_ratio(self._ordered(x, choice)) for choice in self.choices])
        base = self._known[key]
        if not self.new:
            return base
        log_prior, new = self._log_prior_of_new, []
        for phi in self._components(x):
            fits = log_sum(np.stack([density.log_density(phi) for density in self.new], axis=1)) - np.log(len(self.new))
            new.append(np.logaddexp(np.log(BLIND), np.log1p(-BLIND) + fits - log_prior(phi)))
        return base + np.array(new)[self.choices[:, -len(self.names) :]].sum(axis=1)

    def _base_ratio(self, x: np.ndarray) -> np.ndarray:
        r"""$\ln r(\theta) - \ln\pi(\theta)$ of the smaller model's part of points, as far as it is kept."""
        pilot, y = self.base, of_smaller(self.base, self.joint, x)
        if not y.shape[1]:
            return np.zeros(len(x))
        if pilot.joint.origin is not None:
            y = pilot.joint.space.in_order(y)
        log_prior = pilot.joint.space.log_prior_at(y)
        if self.known is not None:
            return self.known.log_density(y) - log_prior - self.log_inside
        u = pilot.warp.inverse(y)
        log_det = pilot.warp.log_det_at(u)
        return pilot.reference.log_density(np, u, log_prior + log_det) - log_det - log_prior - self.log_inside

    def _ordered(self, x: np.ndarray, choice: np.ndarray) -> np.ndarray:
        """Points whose components stand in another order."""
        if self.exchange is None:
            return x
        return exchanged(self.joint.opened.space, x, self.exchange, np.tile(choice, (len(x), 1)))

    def _components(self, x: np.ndarray) -> np.ndarray:
        """Each component of points, in the coordinates of the last one: (K, n, size)."""
        last, found = self.choices.shape[1] - 1, []
        for i in range(last + 1):
            choice = np.arange(last + 1)
            choice[[i, last]] = last, i
            found.append(self._ordered(x, choice)[:, self._columns])
        return np.array(found)

    @property
    def _columns(self) -> np.ndarray:
        """Coordinates of the last component."""
        space = self.joint.opened.space
        return np.concatenate([np.arange(space.dimension)[space.slices[name]] for name in self.names[-1]])

    def _log_prior_of_new(self, phi: np.ndarray) -> np.ndarray:
        priors = self.joint.opened.space.priors
        return sum((priors[name].log_density_at(part) for name, part in self._parts(phi)), np.zeros(len(phi)))

    def _parts(self, phi: np.ndarray, names: Sequence[str] = ()) -> list[tuple[str, np.ndarray]]:
        """(parameter, its coordinates) of components in those of the last one, as that or as the one of these names."""
        priors, at, found = self.joint.opened.space.priors, 0, []
        for last, name in zip(self.names[-1], names or self.names[-1], strict=True):
            size = priors[last].size
            found.append((name, _moved(priors[last], priors[name], phi[:, at : at + size])))
            at += size
        return found


def extended(joint: Joint, base: Pilot, found: Sequence[Symmetry], new: tuple = (), density: Any = None) -> Extended | None:
    """The proposal, if labels are all that has been folded, and not too many of them. `found`: the symmetries of the model;
    `density`: of the smaller one, in place of its reference.
    """
    known, exchanges = set(base.joint.space.names), [s for s in found if isinstance(s, Exchange)]
    folds = [fold for j in (joint, base.joint) for fold in getattr(j.space, "symmetries", ())]
    others = [s for s in folds if s.is_used and not isinstance(s, Exchange) and getattr(s, "parts", 2) > 1]
    if others or len(exchanges) > 1:
        return None
    blocks = [tuple(name for name, _ in block) for block in exchanges[0].blocks] if exchanges else []
    blocks = blocks or [tuple(name for name in joint.space.names if name not in known)]
    old = [i for i, block in enumerate(blocks) if set(block) <= known]
    fresh = [i for i, block in enumerate(blocks) if not set(block) & known]
    places = joint.opened.space.slices
    in_place = sorted(range(len(blocks[-1])), key=lambda i: places[blocks[-1][i]].start)
    blocks = [tuple(block[i] for i in in_place) for block in blocks]
    rest = [name for name in joint.space.names if name not in known and not any(name in block for block in blocks)]
    is_ordered = len(old) < 2 or base.joint.origin is not None
    if rest or len(old) + len(fresh) < len(blocks) or old + fresh != list(range(len(blocks))) or not is_ordered:
        return None
    choices = [(*some, *(i for i in old + fresh if i not in some)) for some in itertools.combinations(old + fresh, len(old))]
    inside = _share_inside(base, density)
    if len(choices) > MOST_CHOICES or inside < INSIDE:
        return None
    return Extended(
        joint, base, exchanges[0] if exchanges else None, np.array(choices), tuple(blocks[i] for i in fresh), np.log(inside),
        density, new,
    )  # fmt: skip


SOUNDINGS = 100_000  # draws of a reference that tell which part of it is in order: its logarithm is then known to 0.003


def _share_inside(base: Pilot, density: Any) -> float:
    """The share of a reference in the part of its space that is kept, of which alone it is drawn."""
    if base.joint.origin is None:
        return 1.0
    y = _any(base, np.random.default_rng(0), SOUNDINGS, density)
    return float(np.mean(np.isfinite(base.joint.space.log_prior_at(y))))


def drawn(base: Pilot, rng: np.random.Generator, n: int, density: Any = None) -> np.ndarray:
    """Draws of a model's reference, or of a density in place of it, in the part of its space that is kept, in its coordinates."""
    y = _any(base, rng, n, density)
    while base.joint.origin is not None and len(outside := np.flatnonzero(~np.isfinite(base.joint.space.log_prior_at(y)))):
        y[outside] = _any(base, rng, len(outside), density)
    return y


def _any(base: Pilot, rng: np.random.Generator, n: int, density: Any) -> np.ndarray:
    if density is not None:
        return density.draw(rng, n)
    d, reference = base.joint.dimension, base.reference
    if d == 0:
        return np.zeros((n, 0))
    normal, uniform = rng.standard_normal((n, d)), rng.random(n)
    stretch = stretches(rng, float(reference.hills.dof), (n,))
    beside = base.warp.inverse(base.joint.space.sample_prior(rng, n))
    return base.warp.points(reference.transform(np, normal, uniform, stretch, beside))


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
