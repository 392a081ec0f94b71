"""What exploration hands over: where one model's posterior is, a reference that resembles it, and what each look saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.reference import Hills, Reference, defended, standard_normal
from supermodel.embedding.warp import Bent, Warp
from supermodel.engine.explore.bent import fit_bent
from supermodel.engine.explore.capture import Capture
from supermodel.engine.explore.cloud import inside
from supermodel.engine.explore.conditional import fit_conditional
from supermodel.engine.explore.hills import Sample, fit, lottery
from supermodel.engine.policy import (
    BEYOND,
    DOF,
    FEW,
    FITTED,
    GOOD,
    MOST_HILLS,
    NEARLY_EXACT,
    PRIOR_SHARE,
    SURELY_NORMAL,
    SURPRISED,
)
from supermodel.engine.roughness import Roughness
from supermodel.engine.whiten import by_moments, widened
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Symmetry


class Look(NamedTuple):
    """One way in which a model was explored: its rough ln Z with an honest error, and what it cost."""

    name: str
    log_evidence: float
    error: float
    evaluations: int

    def agrees(self, other: Look, errors: float, nats: float) -> bool:
        return abs(self.log_evidence - other.log_evidence) <= errors * np.hypot(self.error, other.error) + nats


@dataclass
class Pilot:
    """What is known of one model before the supermodel is run."""

    joint: Joint
    warp: Any
    reference: Reference  # in warped coordinates
    points: np.ndarray  # (n, d) draws of the posterior, roughly
    log_joint: np.ndarray  # (n,)
    spread: float  # of ln J - ln r over the posterior
    looks: list[Look] = field(default_factory=list)
    is_agreed: bool = True  # whether at least two looks agree with what was found in all
    step: float = 0.0  # of Hamiltonian chains, where there were any
    acceptance: float = 1.0  # of independent draws from the reference by a chain in the posterior
    is_concave: bool = False  # whether no slopes contradict a concave ln J: one mode, and no funnel to go down
    capture: Capture = Capture()  # what replicates have found in common
    log_evidence: float = np.nan  # of all points that its replicates have evaluated
    vouched: float = np.inf  # nats to which its replicates know ln Z by themselves; infinite where there are not two
    doubt: float = 0.0  # nats: the part of its error that replicates which do not agree leave
    symmetries: tuple[Symmetry, ...] = ()  # that were found, and how they are used
    log_weights: np.ndarray | None = None  # of the points, where they are many and answer for the posterior
    base: Pilot | None = None  # where its reference is poor: that of the smaller model, which is extended in place of it, by
    highest: float = -np.inf  # rough ln Z of the models that it extends
    new: tuple[Any, ...] = ()  # what is known of one component that the base lacks, as densities
    pairs: tuple[Any, ...] = ()  # and of two of its components in the place of one
    roughness: Roughness = Roughness()  # below which no error of its evidence can be believed
    cut_short: str = ""  # the limit that ended its exploration before there was a single look

    @property
    def is_known(self) -> bool:
        """Whether its replicates answer: they know ln Z, and no chain would do better on the way to such a reference."""
        return self.log_weights is not None

    @property
    def name(self) -> str:
        return self.joint.name

    @property
    def method(self) -> str:
        return ", ".join(look.name for look in self.looks)

    @property
    def rough_log_evidence(self) -> float:
        r"""ln Z to a nat or so: of all points, or by the reference as if $\ln J - \ln r$ were normal over the draws."""
        if np.isfinite(self.log_evidence):
            return self.log_evidence
        if self.joint.dimension == 0:
            return float(self.log_joint[0])
        sd, mean = misfit(
            self.joint, self.warp, self.reference, self.points, np.full(len(self.points), 1.0), self.log_joint
        )
        return mean - 0.5 * sd**2

    @property
    def evaluations(self) -> int:
        return sum(look.evaluations for look in self.looks)

    @property
    def is_seen_once(self) -> bool:
        """Whether a single look is all there is, and it had something to find."""
        return len(self.looks) == 1 and self.spread > 0 and bool(np.isfinite(self.looks[0].log_evidence))

    @property
    def is_normal(self) -> bool:
        """Whether one Gaussian, in coordinates of an affine warp, serves as the reference."""
        return isinstance(self.warp, Warp) and len(self.reference.hills.log_weights) <= 2


class Fit(NamedTuple):
    """A warp, a reference in its coordinates, and the spread of ln J - ln r on draws that were not fitted."""

    warp: Any
    reference: Reference
    spread: float


def fitted_reference(
    joint: Joint,
    x: np.ndarray,
    weight: np.ndarray,
    log_joint: np.ndarray,
    rng: np.random.Generator,
    warps: tuple = (),
    log_evidence: float = np.nan,
    bent: Bent | None = None,
    start: Hills | None = None,
) -> Fit:
    """The reference that leaves the least spread on held-out draws: one Gaussian, hills, or a conditional warp.

    `x`: draws with weights. Each candidate is fitted to one half and judged on the other; the winner is fitted to all.
    The order is from simple to rich, and a richer one must be better by a tenth; by a half where an affine one is good, unless it
    is a bend of it: two models whose warps come from their scores have aligned axes, which a direct edge lives on.
    """
    rows, weight = lottery(weight, FITTED, rng)
    x, weight, log_joint = x[rows], weight / weight.sum(), log_joint[rows]
    train = rng.random(len(x)) < 0.5
    if not (train.any() and (~train).any()):
        train = np.ones(len(x), bool)
    test = ~train if (~train).any() else train
    best, best_surprise, best_fit, best_build = np.inf, np.inf, None, None
    for candidate in _candidates(x.shape[1], warps, bent, start):
        found = candidate.build(x[train], weight[train], log_joint[train], rng)
        if found is None:
            continue
        left, surprise = misfit(joint, found[0], found[1], x[test], weight[test], log_joint[test])
        is_aligned = best_fit is not None and isinstance(best_fit[0], Warp) and not candidate.is_bent
        closer, nearer = left < (0.5 if best < GOOD and is_aligned else 0.9) * best, surprise - best_surprise
        # A wide reference around many narrow modes leaves as little spread as one that stands on each of them, and so does a bent
        # one that continues a posterior beyond a hard edge.
        if nearer < -SURPRISED or (closer and nearer < (BEYOND if candidate.is_bent else SURPRISED)):
            best, best_surprise, best_fit, best_build = left, surprise, found, candidate.build
        if best < candidate.enough and not best_surprise > log_evidence + SURPRISED:  # as ln Z is known, if it is
            break
    found = best_build(x, weight, log_joint, rng) if best_build else None
    warp, reference = found or best_fit  # type: ignore[misc]
    if isinstance(warp, Warp) and x.shape[1] > FEW and len(reference.hills.log_weights) == 1:
        warp = widened(warp, best)
    return Fit(warp, reference, best)


def misfit(joint: Joint, warp: Any, reference: Reference, x, weight, log_joint) -> tuple[float, float]:
    r"""Standard deviation and mean of $\ln J - \ln r$ over weighted draws, wild values clipped.

    The mean is ln Z + KL(posterior | r): of two references the one with the smaller mean is nearer.
    """
    u = warp.inverse(x)
    log_det = warp.log_det_at(u)
    gap = log_joint + log_det - reference.log_density(np, u, joint.space.log_prior_at(x) + log_det)
    w = weight / weight.sum()
    middle = weighted_quantile(gap, w, 0.5)
    clipped = np.clip(gap - middle, -20, 20)
    mean = float(np.sum(w * clipped))
    return float(np.sqrt(np.sum(w * (clipped - mean) ** 2))), middle + mean


def weighted_quantile(x: np.ndarray, weight: np.ndarray, q: float) -> float:
    """The value below which a share q of the weight lies."""
    order = np.argsort(x)
    cumulative = np.cumsum(weight[order])
    return float(x[order][min(np.searchsorted(cumulative, q * cumulative[-1]), len(x) - 1)])


class Candidate(NamedTuple):
    """A way to a (warp, reference), and the spread below which none after it is tried."""

    build: Callable[..., tuple[Any, Reference] | None]
    enough: float
    is_bent: bool = False


def _candidates(d: int, warps: tuple, slopes: Bent | None, start: Hills | None = None) -> list[Candidate]:
    """Simple ones first."""

    def bare(warp):
        # Trajectories, which many parameters ask for, cannot jump to the prior's share of a reference and back.
        return warp, standard_normal(d)._replace(prior_share=PRIOR_SHARE if d <= FEW else 0.0)

    def plain(warp):
        return warp, defended(d, PRIOR_SHARE)

    def given(warp):
        return lambda x, w, j, rng: bare(warp)

    def moments(x, w, j, rng):
        return bare(by_moments(x, w))

    def covered(x, w, j, rng):
        return plain(by_moments(x, w)) if d <= FEW else None

    def hills(x, w, j, rng, dof=DOF):
        if d > FEW or len(x) < 4 * (d + 2):
            return None
        warp = by_moments(x, w)
        known = None if start is None or dof != start.dof else inside(warp, start)
        found = fit(Sample(warp.inverse(x), w / w.sum(), j), rng, MOST_HILLS, dof, known)
        return warp, Reference(found.widened(1.1), PRIOR_SHARE)

    def heavy(x, w, j, rng):
        return hills(x, w, j, rng, dof=1.5)

    def bent(start):
        """From the slopes about a mode, and from the moments: a mode may lie far from the mass."""

        def build(x, w, j, rng):
            return bare(fit_bent(x, w, j, start or by_moments(x, w))) if d <= FEW else None

        return build

    def conditional(x, w, j, rng):
        warp = fit_conditional(x, w, rng) if len(x) >= 100 else None
        return None if warp is None else plain(warp)

    affine, rich = [*map(given, warps), moments], [covered, hills, heavy, conditional]
    starts = [None] if slopes is None else [slopes, None]
    return [
        *(Candidate(build, SURELY_NORMAL) for build in affine),
        *(Candidate(bent(start), NEARLY_EXACT, True) for start in starts),
        *(Candidate(build, NEARLY_EXACT) for build in rich),
    ]
