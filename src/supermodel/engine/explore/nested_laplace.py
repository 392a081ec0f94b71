r"""Nested Laplace: $\hat p(\phi) = J(\phi, m)\, |2\pi C|^{1/2}$, $m = z + C g$, $C = H^{-1}$, on a lattice of leading $\phi$.

Where a few coordinates lead (the standard deviations of a hierarchy, the amplitude and the index of a spectrum) and the others are
nearly normal given them, the gradient $g$ and the negative second derivatives $H$ of $\ln J$ in $z$ at one point tell mean $m$,
covariance $C$ and mass of the others there. From where chains were, the lattice grows in all directions until hardly any mass is
left: a long tail of $\phi$, in which chains get stuck, is walked along as quickly as any. What is found makes a warp,
`NormalGiven`, whose own draws are then weighed, and correct it by their moments. Of a black box all derivatives are differences of
values, of those pairs of coordinates that have any. (Rue, Martino and Chopin 2009; here it is a proposal and need not be exact.)
"""

from __future__ import annotations

import heapq
import itertools
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from supermodel.embedding.reference import LOG_2PI, Hills, Reference, joined, one_hill
from supermodel.embedding.warp import SKEWED, NormalGiven, bells, lifted_cholesky, skewed
from supermodel.engine.explore.cloud import effective_size, flattened, log_mean_error
from supermodel.engine.explore.hills import Sample, fit
from supermodel.engine.meter import Meter
from supermodel.engine.policy import APART, ENOUGH, FITTED, LATTICE_SHARE, LOCAL, PRIOR_SHARE
from supermodel.models.joint import Joint

STEP = 1e-4  # standard deviations, of the differences of gradients
MOVE = 0.2  # standard deviations, of the differences of curvatures
PROBES = 8  # points at which these are taken
MOST_LEADERS = 3
LEADS = 1.0  # |T|^2 of a coordinate that leads: a quarter of a nat
UPWARD = 0.05  # of the mean curvature: the least that is believed
NEWTON = 6  # steps at most to the top of J given the leaders: one where it is normal
ARRIVED = 0.1  # nats by which a step may miss what the curvature promised
SPACING = {1: 0.5, 2: 1.0, 3: 1.5}  # of the lattice, in standard deviations of the chains' draws, for so many leaders
STARTS = 8  # draws of the chains from which it grows
DEEP, SHALLOW = 8.0, 5.0  # nats below the top at which the lattice ends, and at which it may where nodes are scarce
MOST_NODES, ON_A_LINE = 160, 32  # on a line 8 nats are four standard deviations to either side, of half a one each
COARSER, TRIES = 2.0, 3  # the lattice where they were not enough; times
LEAST_NODES = 5  # on fewer nothing rests
MOST_BELLS = 64  # each has a matrix of its own
WIDTH = 1.5  # of a bell, in units of the spacing
RIDGE = 1e-8
DRAWN, MOST_DRAWN = 1024, 8192  # draws of the reference, by which it is judged; and where few of them count
GOOD, FITS = 0.7, 4  # effective share of them from which on it need not be fitted again; times that it is
FAR, FAR_SHARE = 2.0, 0.15  # width, in units of the leaders' law, and share of the hill that covers what others do not
MOST_HILLS = 8  # of the leaders' law
WIDER = 1.1  # times their fitted width, for the tails


class Nodes(NamedTuple):
    """Of every node of the lattice: where, and mean, covariance and ln of the mass of the other coordinates there."""

    t: np.ndarray  # (n, k)
    mean: np.ndarray  # (n, r)
    covariance: np.ndarray  # (n, r, r)
    log_mass: np.ndarray  # (n,)


class Frame(NamedTuple):
    """The coordinates of the lattice: x[chosen] = centre + factor t."""

    chosen: list[int]
    rest: list[int]
    centre: np.ndarray
    factor: np.ndarray
    scale: np.ndarray  # (d,) standard deviations of the chains' draws

    def places(self, x: np.ndarray) -> np.ndarray:
        return solve_triangular(self.factor, (x[:, self.chosen] - self.centre).T, lower=True).T

    def points(self, t: np.ndarray, z: np.ndarray) -> np.ndarray:
        x = np.empty((len(t), len(self.scale)))
        x[:, self.chosen], x[:, self.rest] = self.centre + t @ self.factor.T, z
        return x


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

    def log_density(self, joint: Joint, x: np.ndarray) -> np.ndarray:
        """ln r of the reference at many points, in the coordinates of the model."""
        u = self.warp.inverse(x)
        log_det = self.warp.log_det_at(u)
        return self.reference.log_density(np, u, joint.space.log_prior_at(x) + log_det) - log_det


# -- which coordinates lead --------------------------------------------------------------------------------------------


def leaders(
    joint: Joint, meter: Meter, rng: np.random.Generator, x: np.ndarray, scale: np.ndarray
) -> tuple[list[int], np.ndarray]:
    r"""Coordinates that the curvature of the others depends on: those without which third derivatives vanish, one after the other;
    and which pairs of coordinates have second derivatives (d, d).

    $T_{iab} = \partial H_{ab} / \partial x_i$, in units of the standard deviation of $x_i$ and of the mean diagonal of $H$. The
    next leader is the coordinate without which the least of $T$ is left, until no $|T_i|^2$ is above `LEADS`: to forget that the
    curvature changes with $x_i$ costs $|T_i|^2 / 4$ nats. Derivatives, not draws: what the leaders decide goes along with the
    curvature as they do. And what is left, not what there is: a follower has large derivatives too, with its leaders.
    """
    points = x[rng.choice(len(x), PROBES, replace=False)]
    here = [_curvature(joint, meter, point, scale, range(len(scale)), MOVE)[2] for point in points]
    diagonals = np.abs([np.diagonal(h) for h in here])
    unit = 1 / np.sqrt(np.maximum(np.nanmean(diagonals, axis=0), 1e-300))
    coupled = np.any(
        [np.abs(h) > APART * np.sqrt(np.outer(s, s)) for h, s in zip(here, diagonals, strict=True)], axis=0
    )
    chosen: list[int] = []
    while len(chosen) < min(MOST_LEADERS, len(scale) - 1):
        rows, without = _third(joint, meter, rng, (points, here, coupled), scale, unit, chosen)
        # A black box has no chains about its mode, which serve where nothing leads: one is taken all the same.
        if not rows.max() > LEADS and (chosen or joint.is_traceable):
            break
        chosen.append(int(np.argmin(without)))
    return chosen, coupled


def _third(joint, meter: Meter, rng, probes, scale, unit, but: list[int]) -> tuple[np.ndarray, np.ndarray]:
    r"""(d,): $|T_i|^2$ without the coordinates `but`; (d,): the share of their sum that is left without one coordinate more.

    $|T_i|^2 = \mathrm{E}\,|T_i v|^2$, $v$ standard normal, by differences of the curvature from those at `probes`; one half of
    $v$ is nought and then the other, so that half of the products tell what there is without a coordinate.
    """
    d = len(scale)
    rows, without, half = np.zeros(d), np.zeros(d), np.zeros(d, bool)
    points, here, coupled = probes
    for n, (point, before) in enumerate(zip(points, here, strict=True)):
        half = ~half if n % 2 else rng.permutation(d) < d // 2
        v = np.where(half, MOVE * unit * rng.standard_normal(d), 0.0)
        v[but] = 0.0
        there = _curvature(joint, meter, point + v, scale, range(d), MOVE, coupled)[2]
        change = np.where(coupled, scale[:, None] * unit * (there - before), 0.0)
        square = np.nan_to_num(change / MOVE, posinf=0.0, neginf=0.0) ** 2
        square[but] = square[:, but] = 0.0
        rows += 2 * square.sum(1)
        left = square.sum() - square.sum(0) - square.sum(1) + np.diagonal(square)
        # As a share, since points differ in size, and each coordinate has its own half of the products.
        without += np.where(half, 0.0, 2 * left / max(square.sum(), 1e-300))
    without[but] = np.inf
    return rows / len(points), without / len(points)


def _log_joint(joint, meter: Meter, x: np.ndarray) -> np.ndarray:
    return meter.likelihood(joint, x) + joint.space.log_prior_at(x)


def _curvature(
    joint, meter: Meter, point: np.ndarray, scale: np.ndarray, of, step: float = STEP, coupled: np.ndarray | None = None
) -> tuple[float, np.ndarray, np.ndarray]:
    """ln J, its gradient and its negative second derivatives in some coordinates, by differences of gradients, or of values."""
    of = list(of)
    if not joint.is_traceable:
        return _by_values(joint, meter, point, scale, of, coupled)
    steps = np.zeros((len(of), len(point)))
    steps[range(len(of)), of] = step * scale[of]
    value, gradient = meter.value_and_gradient(joint, np.concatenate([point[None], point + steps]))
    curvature = (gradient[0] - gradient[1:])[:, of] / (step * scale[of])[:, None]
    return float(value[0]), gradient[0, of], 0.5 * (curvature + curvature.T)


def _by_values(joint, meter: Meter, point, scale, of, coupled) -> tuple[float, np.ndarray, np.ndarray]:
    """The same of a black box; of the pairs that are coupled only, if these are known: in a hierarchy d of them, not d^2 / 2."""
    n = len(of)
    axes = np.zeros((n, len(point)))
    axes[range(n), of] = 1.0
    value, step, finer = _log_joint(joint, meter, point[None])[0], np.full(n, np.inf), LOCAL * scale[of]
    while np.any(finer < 0.5 * step):
        step = finer
        up, down = (_log_joint(joint, meter, point + sign * step[:, None] * axes) for sign in (1.0, -1.0))
        square = (2 * value - up - down) / step**2
        if not np.all(np.isfinite(square)):
            break
        # In units of the width that there is here, which in a funnel is far below that of all draws.
        finer = np.minimum(step, LOCAL / np.sqrt(np.maximum(np.abs(square), 1e-300)))
    curvature = np.diag(square)
    i, j = np.triu_indices(n, 1)
    if coupled is not None:
        kept = coupled[np.ix_(of, of)][i, j]
        i, j = i[kept], j[kept]
    both = _log_joint(joint, meter, point + step[i, None] * axes[i] + step[j, None] * axes[j])
    curvature[i, j] = curvature[j, i] = (up[i] + up[j] - both - value) / (step[i] * step[j])
    return float(value), (up - down) / (2 * step), curvature


# -- the lattice -------------------------------------------------------------------------------------------------------


def grown(
    joint: Joint, meter: Meter, frame: Frame, starts: np.ndarray, coupled: np.ndarray | None = None
) -> tuple[Nodes, bool]:
    """Nodes from those nearest to the points `starts` (m, d) outwards, the heaviest first, to `DEEP` below the top; and whether
    `MOST_NODES` were enough for what is within `SHALLOW` of it.
    """
    k = len(frame.chosen)
    spacing = SPACING[k]
    places = np.rint(frame.places(starts) / spacing).astype(int).tolist()
    until = meter.evaluations + LATTICE_SHARE * meter.left
    # Minus ln mass of the neighbour that a place was seen from, the place, and where to start there.
    waiting = [(-np.inf, tuple(p), tuple(z)) for p, z in zip(places, starts[:, frame.rest].tolist(), strict=True)]
    heapq.heapify(waiting)
    seen: set[tuple] = set()
    found: list[tuple] = []
    top = -np.inf
    while waiting and len(found) < MOST_NODES and meter.evaluations < until and -waiting[0][0] >= top - DEEP:
        _, place, z = heapq.heappop(waiting)
        if place in seen:
            continue
        seen.add(place)
        t = spacing * np.array(place, float)
        node = _laplace(joint, meter, frame, t, np.array(z), coupled)
        if node is None:
            continue
        mean, _, log_mass = node
        found.append((t, *node))
        top = max(top, log_mass)
        for axis, step in itertools.product(range(k), (-1, 1)):
            near = tuple(p + step * (i == axis) for i, p in enumerate(place))
            if near not in seen:
                heapq.heappush(waiting, (-log_mass, near, tuple(mean)))
    whole = not (waiting and -waiting[0][0] > top - SHALLOW)
    return Nodes(*(np.array([node[i] for node in found]) for i in range(4))), whole


def _laplace(joint, meter: Meter, frame: Frame, t: np.ndarray, z: np.ndarray, coupled: np.ndarray | None = None):
    """(m, C, ln mass) of the other coordinates given the leaders; None where Newton's method does not arrive."""
    for _ in range(NEWTON):
        point = frame.points(t[None], z[None])[0]
        value, gradient, curvature = _curvature(joint, meter, point, frame.scale, frame.rest, STEP, coupled)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient)) and np.all(np.isfinite(curvature))):
            return None
        covariance = _covariance(curvature)
        step = covariance @ gradient
        sizes = np.array([1.0, 0.5, 0.2, 0.05])
        trials = z + sizes[:, None] * step
        values = _log_joint(joint, meter, frame.points(np.repeat(t[None], 4, axis=0), trials))
        promised = value + 0.5 * gradient @ step
        if abs(values[0] - promised) < ARRIVED:
            log_det = 2 * np.log(np.diagonal(lifted_cholesky(covariance))).sum()
            return trials[0], covariance, float(values[0] + 0.5 * log_det + 0.5 * len(z) * LOG_2PI)
        best = int(np.nanargmax(np.where(np.isfinite(values), values, -np.inf)))
        if not values[best] > value:
            return None
        z = trials[best]
    return None


def _covariance(curvature: np.ndarray) -> np.ndarray:
    """Its inverse; where the curvature is not positive, no direction is flatter than `UPWARD` of the mean."""
    try:
        root = np.linalg.cholesky(curvature)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(curvature)
        return (vectors / np.maximum(values, UPWARD * np.abs(values).mean())) @ vectors.T
    inverse = solve_triangular(root, np.eye(len(root)), lower=True)
    return inverse.T @ inverse


# -- warp and reference ------------------------------------------------------------------------------------------------


def far_apart(t: np.ndarray, n: int) -> np.ndarray:
    """Rows of `n` points (m, k) that cover all of them: each the farthest from those before it."""
    if len(t) <= n:
        return np.arange(len(t))
    rows, distance = [], np.sum(t**2, axis=1)
    for _ in range(n):
        rows.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.sum((t - t[rows[-1]]) ** 2, axis=1))
    return np.array(rows)


class Smooth(NamedTuple):
    """Functions of the leaders, of which the values at nodes are known."""

    centres: np.ndarray
    width: float
    solve: np.ndarray  # (1 + k + m, n): from values at nodes to coefficients

    @classmethod
    def at(cls, t: np.ndarray) -> Smooth:
        centres, width = t[far_apart(t, MOST_BELLS)], WIDTH * SPACING[t.shape[1]]
        phi = bells(np, t, centres, width)
        return cls(centres, width, np.linalg.solve(phi.T @ phi + RIDGE * len(t) * np.eye(phi.shape[1]), phi.T))

    def coefficients(self, values) -> np.ndarray:
        return np.tensordot(self.solve, np.asarray(values), 1)


# Of g = sqrt(1 + u^2) - 1, u standard normal: E g, var g, cov(u^2, g) and its third central moment; and the skewness of u + c g.
_U, _W = np.polynomial.hermite_e.hermegauss(64)
_W = _W / _W.sum()
_G = np.sqrt(1 + _U**2) - 1
MEAN = float(_W @ _G)
VARIANCE, WITH_SQUARE, THIRD = (float(_W @ f) for f in ((_G - MEAN) ** 2, (_G - MEAN) * _U**2, (_G - MEAN) ** 3))
SKEWS = np.linspace(-SKEWED, SKEWED, 161)
SKEWNESS = (3 * SKEWS * WITH_SQUARE + SKEWS**3 * THIRD) / (1 + SKEWS**2 * VARIANCE) ** 1.5


def normal_given(frame: Frame, nodes: Nodes, smooth: Smooth, skew: np.ndarray) -> NormalGiven:
    """The warp in which every node has a standard normal law of the other coordinates."""
    top = int(np.argmax(nodes.log_mass))
    factor = lifted_cholesky(nodes.covariance[top])
    location, log_scale, shear = [], [], []
    for mean, covariance in zip(nodes.mean - nodes.mean[top], nodes.covariance, strict=True):
        half = solve_triangular(factor, covariance, lower=True)
        lower = lifted_cholesky(solve_triangular(factor, half.T, lower=True)) / np.sqrt(1 + skew**2 * VARIANCE)
        location.append(solve_triangular(factor, mean, lower=True) - lower @ (skew * MEAN))
        log_scale.append(np.log(np.diagonal(lower)))
        shear.append(np.tril(lower / np.diagonal(lower), -1))
    mean = np.empty(len(frame.scale))
    mean[frame.chosen], mean[frame.rest] = frame.centre, nodes.mean[top]
    m, b, n = (smooth.coefficients(values) for values in (location, log_scale, shear))
    order = np.array([*frame.chosen, *frame.rest])
    return NormalGiven(order, mean, frame.factor, smooth.centres, np.array(smooth.width), m, b, n, factor, skew)


def corrected(nodes: Nodes, found: Weighed) -> tuple[Nodes, np.ndarray]:
    """The nodes with means and standard deviations of weighted draws in place of the top and its curvature; and the skews.

    What the draws add is the same at all nodes, in units of their widths; it is shrunk as far as it may be noise (James and Stein).
    """
    k, c = nodes.t.shape[1], found.warp.skew
    w = np.exp(flattened(found.gap - found.gap.max(), ENOUGH))
    w /= w.sum()
    noise = np.sum(w**2)
    r = (skewed(np, found.warp.inverse(found.x)[:, k:], c) - c * MEAN) / np.sqrt(1 + c**2 * VARIANCE)
    mean = w @ r
    sd = np.sqrt(w @ (r - mean) ** 2)
    skewness = w @ ((r - mean) / sd) ** 3
    mean, log_sd, skewness = (
        f * max(0.0, 1 - len(f) * noise * n / np.sum(f**2))
        for f, n in ((mean, 1.0), (np.log(sd), 0.5), (skewness, 6.0))
    )
    lower = np.stack([lifted_cholesky(covariance) for covariance in nodes.covariance])
    wide = lower * np.exp(log_sd)
    better = nodes._replace(mean=nodes.mean + lower @ mean, covariance=wide @ np.swapaxes(wide, 1, 2))
    return better, np.interp(skewness, SKEWNESS, SKEWS)


def law_of(nodes: Nodes, smooth: Smooth, rng: np.random.Generator) -> Hills:
    """Hills of the leaders, fitted to ln mass between the nodes."""
    spacing, k = SPACING[nodes.t.shape[1]], nodes.t.shape[1]
    t = nodes.t[rng.integers(len(nodes.t), size=FITTED)] + spacing * (rng.random((FITTED, k)) - 0.5)
    log_mass = bells(np, t, smooth.centres, smooth.width) @ smooth.coefficients(nodes.log_mass - nodes.log_mass.max())
    log_mass = np.minimum(log_mass, 1.0)
    weight = np.exp(log_mass)
    return fit(Sample(t, weight / weight.sum(), log_mass), rng, MOST_HILLS, np.inf).widened(WIDER)


def law_from(found: Weighed, k: int, rng: np.random.Generator) -> Hills:
    """Hills of the leaders, fitted to weighted draws: ln mass is not exact where the others are not quite normal."""
    weight = np.exp(flattened(found.gap - found.gap.max(), ENOUGH))
    u = found.warp.inverse(found.x)
    log_target = found.log_joint + found.warp.log_det_at(u) + 0.5 * np.sum(u[:, k:] ** 2, axis=1)
    return fit(Sample(u[:, :k], weight / weight.sum(), log_target), rng, MOST_HILLS, np.inf).widened(WIDER)


def of_all(law: Hills, d: int) -> Hills:
    """Hills of the leaders (k) beside a standard normal of the others, and a wide one about them all for the tails."""
    k = law.means.shape[1]
    share = np.exp(law.log_weights)
    mean = share @ law.means
    apart = law.means - mean
    covariance = np.einsum("m,mij->ij", share, law.factors @ np.swapaxes(law.factors, 1, 2)) + (share * apart.T) @ apart

    def beside(mean, factor, scale=1.0):
        whole = scale * np.eye(d)
        whole[:k, :k] = factor
        return one_hill(np.concatenate([mean, np.zeros(d - k)]), whole)

    hills = [(float(s), beside(m, f)) for s, m, f in zip((1 - FAR_SHARE) * share, law.means, law.factors, strict=True)]
    return joined([*hills, (FAR_SHARE, beside(mean, FAR * lifted_cholesky(covariance), 1 + 1.5 / np.sqrt(d)))])


def weighed(
    joint: Joint, meter: Meter, rng: np.random.Generator, warp: NormalGiven, law: Hills, n: int = DRAWN
) -> Weighed:
    """Draws of the reference, and ln Z by their weights J / r; `law`: of the leaders, in warped coordinates."""
    hills = of_all(law, joint.dimension)
    u = hills.draw(rng, n)
    # A part at a time: the shear of one point has as many numbers as there are bells times coordinates.
    x = np.concatenate([warp.points(part) for part in np.array_split(u, -(-n // DRAWN))])
    log_joint = _log_joint(joint, meter, x)
    # Weighed against the hills alone: hardly a draw of the prior would count in so many dimensions.
    gap = log_joint + warp.log_det_at(u) - hills.log_density(np, u)
    gap = np.where(np.isfinite(gap), gap, -np.inf)
    value, error = log_mean_error(gap - np.log(len(gap)))
    share = effective_size(gap) / len(gap)
    return Weighed(warp, Reference(hills, PRIOR_SHARE), x, log_joint, gap, value, float(error), share)


def nested_laplace(joint: Joint, meter: Meter, rng: np.random.Generator, x: np.ndarray) -> Weighed | None:
    """A warp and a reference from draws of chains (n, d) that are roughly where the posterior is; None where nothing leads."""
    d, scale = joint.dimension, np.maximum(x.std(0), 1e-300)
    if not joint.is_traceable and 2 * PROBES * d**2 > LATTICE_SHARE * meter.left:
        return None
    chosen, coupled = leaders(joint, meter, rng, x, scale)
    if not chosen:
        return None
    rest = [i for i in range(d) if i not in chosen]
    factor = lifted_cholesky(np.cov(x[:, chosen].T))
    frame = Frame(chosen, rest, x[:, chosen].mean(0), factor, scale)
    starts = x[np.linspace(0, len(x) - 1, STARTS).astype(int)]
    for _ in range(TRIES):
        nodes_at_most = MOST_NODES if len(chosen) > 1 else ON_A_LINE
        if not joint.is_traceable and nodes_at_most * (d + np.sum(coupled) // 2) > LATTICE_SHARE * meter.left:
            return None
        nodes, whole = grown(joint, meter, frame, starts, coupled)
        if len(nodes.t) < LEAST_NODES:
            return None
        if whole:
            break
        frame = frame._replace(factor=COARSER * frame.factor)
    smooth, skew = Smooth.at(nodes.t), np.zeros(len(rest))
    found = best = weighed(joint, meter, rng, normal_given(frame, nodes, smooth, skew), law_of(nodes, smooth, rng))
    for _ in range(FITS):
        if not 0 < found.share < GOOD:
            break
        nodes, skew = corrected(nodes, found)
        law, n = law_from(found, len(chosen), rng), int(min(DRAWN / found.share, MOST_DRAWN))
        found = weighed(joint, meter, rng, normal_given(frame, nodes, smooth, skew), law, n)
        best = max(best, found, key=lambda w: w.share)
    return best
