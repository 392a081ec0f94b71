r"""Curvatures at draws: given the coordinates that lead, those that follow look like $N(z + H^{-1} g,\, H^{-1})$ at each of them.

$g$ and $H$ are the gradient and the negative second derivatives of $\ln J$ in $z$ there. Where a few coordinates lead (the
standard deviations of a hierarchy, the amplitude and the index of a spectrum) and the others are nearly normal given them, some
fifty such draws tell mean and covariance as smooth functions of the leaders, almost without noise, where draws alone would have
to be thousands. It is what nested Laplace approximations rest on; here it makes a warp, `NormalGiven`, whose draws are weighed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from supermodel.embedding.reference import Hills, Reference, joined, one_hill
from supermodel.embedding.warp import NormalGiven, lifted_cholesky, powers
from supermodel.engine.explore.cloud import effective_size, flattened, log_mean_error
from supermodel.engine.explore.hills import Sample, fit
from supermodel.engine.meter import Meter
from supermodel.engine.policy import ENOUGH, GOOD_SHARE, PRIOR_SHARE
from supermodel.models.joint import Joint

NODES = 48  # draws whose curvature is taken for a fit: twice the coefficients of a polynomial of the leaders
STEP = 1e-4  # standard deviations, of the differences of gradients
MOVE = 0.05  # standard deviations, of the differences of curvatures
PROBES = 8  # points at which these are taken
MOST_LEADERS = 3
LEADS = 1.0  # |T|^2 of a coordinate that leads: a quarter of a nat
FOLLOWS = 0.05  # share of the strongest one's |T|^2 below which a coordinate does not
UPWARD = 0.05  # of the mean curvature: the least that is believed
DRAWN = 1024  # draws of a reference by which it is judged, and the next one fitted
FITS = 4  # at most; three where the last one is good: the second is the first to know of the tails
ALIKE = 0.9  # share of the effective draws of the fit before with which the next one is preferred
WIDE = 1.5  # times the width of the leaders' law in the first fit: short chains have not seen all of it
WIDER = 1.1  # and in the next ones, for the tails
FAR, FAR_SHARE = 2.0, 0.15  # width and share of the hill that covers what others do not
MOST_HILLS = 6  # of the leaders' law


class Curved(NamedTuple):
    """Points with the gradient and the negative second derivatives of ln J."""

    x: np.ndarray  # (n, d)
    gradient: np.ndarray  # (n, d)
    curvature: np.ndarray  # (n, d, d)

    def joined(self, other: Curved) -> Curved:
        return Curved(*map(np.concatenate, zip(self, other, strict=True)))


class Weighed(NamedTuple):
    """A warp with a reference in its coordinates, draws of that reference, and what they say of ln Z."""

    warp: NormalGiven
    reference: Reference
    x: np.ndarray
    log_joint: np.ndarray
    gap: np.ndarray  # ln J - ln r
    log_evidence: float
    error: float
    share: float  # effective, of the draws


def curved(joint: Joint, meter: Meter, x: np.ndarray, scale: np.ndarray) -> Curved:
    """Curvatures at points (n, d) by differences of gradients, d + 1 of them each; without points where they are not finite."""
    found = []
    for point in x:
        steps = np.concatenate([point[None], point + np.diag(STEP * scale)])
        _, gradient = meter.value_and_gradient(joint, steps)
        curvature = (gradient[0] - gradient[1:]) / (STEP * scale)[:, None]
        found.append((point, gradient[0], 0.5 * (curvature + curvature.T)))
    points, gradients, curvatures = map(np.stack, zip(*found, strict=True))
    finite = np.isfinite(gradients).all(1) & np.isfinite(curvatures).all((1, 2))
    return Curved(points[finite], gradients[finite], curvatures[finite])


def leaders(joint: Joint, meter: Meter, rng: np.random.Generator, seen: Curved, scale: np.ndarray) -> list[int]:
    r"""Coordinates that the curvature of the others depends on, the strongest first.

    With $T_j = \partial H / \partial x_j$ in units of the standard deviation of $x_j$ and of the mean diagonal of $H$, greedily
    those of the largest $|T_j|^2$, without the rows and columns of the leaders so far. To forget that the curvature changes with
    $x_j$ costs $|T_j|^2 / 4$ nats. Derivatives, not draws: what the leaders decide goes along with the curvature as they do.
    """
    unit = 1 / np.sqrt(np.maximum(np.abs(np.diagonal(seen.curvature.mean(0))), 1e-300))
    chosen: list[int] = []
    strongest = 0.0
    while len(chosen) < min(MOST_LEADERS, joint.dimension - 1):
        change = _changes(joint, meter, rng, seen.x, scale, unit, chosen)
        j = int(np.argmax(change))
        strongest = max(strongest, change[j])
        if not change[j] > max(LEADS, FOLLOWS * strongest):
            break
        chosen.append(j)
    return chosen


def _changes(
    joint, meter: Meter, rng, x: np.ndarray, scale: np.ndarray, unit: np.ndarray, but: list[int]
) -> np.ndarray:
    r"""$|T_j|^2 = \mathrm{E}\,|T_j v|^2$ of every coordinate, $v$ standard normal: by differences, at some of the points."""
    total = np.zeros(len(scale))
    for point in x[rng.choice(len(x), PROBES, replace=False)]:
        v = MOVE * unit * rng.standard_normal(len(unit))
        v[but] = 0.0
        points = np.concatenate([point[None], point + np.diag(MOVE * scale)])
        (_, here), (_, there) = (meter.value_and_gradient(joint, p) for p in (points, points + v))
        change = unit * (there - here)
        turned = (change[1:] - change[0]) / MOVE**2
        turned[:, but] = 0.0
        total += np.sum(np.nan_to_num(turned, posinf=0.0, neginf=0.0) ** 2, axis=1)
    total[but] = 0.0
    return total / PROBES


def normal_given(seen: Curved, chosen: list[int], x: np.ndarray, weight: np.ndarray) -> NormalGiven:
    """The warp that the curvatures suggest; in it the leaders have the moments of draws (n, d) with weights."""
    d, k = x.shape[1], len(chosen)
    order = np.array([*chosen, *(i for i in range(d) if i not in chosen)])
    mean = weight @ x / weight.sum()
    apart = (x - mean)[:, chosen]
    lead = lifted_cholesky((apart * weight[:, None]).T @ apart / weight.sum())
    z, gradient = (seen.x - mean)[:, order], seen.gradient[:, order[k:]]
    curvature = seen.curvature[:, order[k:]][:, :, order[k:]]
    factor = lifted_cholesky(_covariance(curvature.mean(0)))
    location, log_scale, shear = [], [], []
    for point, slope, h in zip(z[:, k:], gradient, curvature, strict=True):
        covariance = _covariance(factor.T @ h @ factor)
        location.append(solve_triangular(factor, point, lower=True) + covariance @ (factor.T @ slope))
        lower = lifted_cholesky(covariance)
        log_scale.append(np.log(np.diagonal(lower)))
        shear.append(np.tril(lower / np.diagonal(lower), -1))
    solve = np.linalg.pinv(powers(np, solve_triangular(lead, z[:, :k].T, lower=True).T))  # (powers, n)
    fitted = [np.tensordot(solve, np.stack(values), 1) for values in (location, log_scale, shear)]
    return NormalGiven(order, mean, lead, *fitted, factor)


def _covariance(curvature: np.ndarray) -> np.ndarray:
    """Its inverse; where the curvature is not positive, no direction is flatter than `UPWARD` of the mean."""
    try:
        root = np.linalg.cholesky(curvature)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(curvature)
        return (vectors / np.maximum(values, UPWARD * np.abs(values).mean())) @ vectors.T
    inverse = solve_triangular(root, np.eye(len(root)), lower=True)
    return inverse.T @ inverse


def of_all(law: Hills, d: int) -> Hills:
    """Hills of the leaders (k) beside a standard normal of the others, and a wide one about them all for the tails."""
    k = law.means.shape[1]
    wide = np.diag(np.repeat([FAR, 1 + 1.5 / np.sqrt(d)], [k, d - k]))

    def beside(mean, factor):
        whole = np.eye(d)
        whole[:k, :k] = factor
        return one_hill(np.concatenate([mean, np.zeros(d - k)]), whole)

    shares = (1 - FAR_SHARE) * np.exp(law.log_weights)
    hills = [beside(mean, factor) for mean, factor in zip(law.means, law.factors, strict=True)]
    return joined([*zip(shares.tolist(), hills, strict=True), (FAR_SHARE, one_hill(np.zeros(d), wide))])


def weighed(joint: Joint, meter: Meter, rng: np.random.Generator, warp: NormalGiven, law: Hills) -> Weighed:
    """Draws of the reference, and ln Z by their weights J / r; `law`: of the leaders, in warped coordinates."""
    hills = of_all(law, joint.dimension)
    u = hills.draw(rng, DRAWN)
    x = warp.points(u)
    log_joint = meter.likelihood(joint, x) + joint.space.log_prior_at(x)
    # Weighed against the hills alone: hardly a draw of the prior would count in so many dimensions.
    gap = log_joint + warp.log_det_at(u) - hills.log_density(np, u)
    gap = np.where(np.isfinite(gap), gap, -np.inf)
    value, error = log_mean_error(gap - np.log(len(gap)))
    share = effective_size(gap) / len(gap)
    return Weighed(warp, Reference(hills, PRIOR_SHARE), x, log_joint, gap, value, float(error), share)


def by_curvatures(joint: Joint, meter: Meter, rng: np.random.Generator, x: np.ndarray) -> Weighed | None:
    """The best of some fits, each with more curvatures than the one before; None where nothing leads.

    `x`: draws of chains (n, d), roughly of the posterior. They may be few and short: the first reference is wide in the
    leaders, and the next ones stand on its own draws.
    """
    scale = np.maximum(x.std(0), 1e-300)
    seen = curved(joint, meter, x[np.linspace(0, len(x) - 1, NODES).astype(int)], scale)
    chosen = leaders(joint, meter, rng, seen, scale) if len(seen.x) >= NODES // 2 else []
    if not chosen:
        return None
    k = len(chosen)
    law = one_hill(np.zeros(k), WIDE * np.eye(k))
    best = weighed(joint, meter, rng, normal_given(seen, chosen, x, np.ones(len(x))), law)
    for n in range(1, FITS if best.share > 0 else 0):
        rows = far_apart(best.warp.inverse(best.x)[:, :k], NODES)
        seen = seen.joined(curved(joint, meter, best.x[rows], scale))
        weight = np.exp(flattened(best.gap - best.gap.max(), ENOUGH))
        warp = normal_given(seen, chosen, best.x, weight)
        found = weighed(joint, meter, rng, warp, _law(warp, best, weight, rng))
        if found.share > ALIKE * best.share:
            best = found
        if n >= 2 and found.share > GOOD_SHARE:
            break
    return best


def far_apart(u: np.ndarray, n: int) -> np.ndarray:
    """Rows of `n` points (m, k) that cover all of them, tails and all: each the farthest from those before it."""
    rows, distance = [], np.sum(u**2, axis=1)
    for _ in range(n):
        rows.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.sum((u - u[rows[-1]]) ** 2, axis=1))
    return np.array(rows)


def _law(warp: NormalGiven, found: Weighed, weight: np.ndarray, rng: np.random.Generator) -> Hills:
    """Hills of the leaders, in the coordinates of the warp, fitted to weighted draws."""
    k, u = len(warp.lead), warp.inverse(found.x)
    log_target = found.log_joint + warp.log_det_at(u) + 0.5 * np.sum(u[:, k:] ** 2, axis=1)
    return fit(Sample(u[:, :k], weight / weight.sum(), log_target), rng, MOST_HILLS, np.inf).widened(WIDER)
