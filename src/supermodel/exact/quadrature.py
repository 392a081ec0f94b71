r"""$\ln Z = \ln \int e^{g(\theta)} d\theta$ by adaptive Gauss-Legendre quadrature, for one to three parameters.

The box is scanned for peaks, graded into cells that are small near every peak, and the cells are halved until
halving changes nothing. Everything is done relative to the highest peak, so that nothing overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy import ndimage, optimize

from supermodel.errors import ModelError, SupermodelError

Values = np.ndarray | Sequence[float] | float
Box = np.ndarray | Sequence[Sequence[float]]  # a row (low, high) for each parameter
LogJoint = Callable[[np.ndarray], np.ndarray]  # (n, d) -> (n,): ln prior + ln likelihood, both normalised

# Per dimension: points a side of the scans (incommensurate, so that a peak missed by one is seen by the next), and
# Gauss-Legendre nodes a side of a cell. A side of 512 sees every peak whose sd is 1/1000 of the box; in three
# dimensions, where that is not affordable, a peak as narrow is seen only if its logarithm rises above the rest.
SCANS = {1: (4096, 2731, 6007), 2: (512, 341, 701), 3: (64, 43, 81)}
NODES = {1: 20, 2: 12, 3: 8}
STARTS = 40  # local maxima of a scan that are climbed, the highest first
NEGLIGIBLE = 45.0  # a peak e^-45 below the highest cannot be seen in double precision
CHUNK = 1 << 16  # points handed to log_joint at once: small enough for the cache, large enough for numpy


class LogEvidence(NamedTuple):
    """ln Z and a bound on its numerical error; the error is infinite if the scans kept finding new peaks.

    What no error can know: a peak narrower (in sd) than `resolution` times the box, whose flanks are hidden under
    another peak, may have been missed.
    """

    log_evidence: float
    error: float
    resolution: float


class Moments(NamedTuple):
    """Evidence, mean, standard deviation and covariance of a posterior."""

    log_evidence: float
    error: float
    mean: np.ndarray  # (d,)
    sd: np.ndarray  # (d,)
    covariance: np.ndarray  # (d, d)


class Expectation(NamedTuple):
    """Posterior expectations, their numerical errors, and ln Z."""

    value: np.ndarray  # (k,)
    error: np.ndarray  # (k,)
    log_evidence: float


class Peaks(NamedTuple):
    """Places and widths (drop of 1/2 in the log, allowing for correlation) of all peaks that matter."""

    place: np.ndarray  # (p, d)
    width: np.ndarray  # (p, d)
    height: np.ndarray  # (p,)
    is_exhaustive: bool  # false if the last scan still found something new


class Cells(NamedTuple):
    """Boxes that tile the domain, with the integrals of (1, g) over each, in units of exp(log_scale)."""

    low: np.ndarray  # (c, d)
    high: np.ndarray  # (c, d)
    integral: np.ndarray  # (c, 1+k)
    error: np.ndarray  # (1+k,), summed over cells
    log_scale: float
    highest: float  # the largest value of log_joint met at any node


def prior_box(mean: Values, sd: Values, width: float = 10.0) -> np.ndarray:
    r"""$[\mu - w s, \mu + w s]$: the box of a normal prior; at w = 10 it leaves out 2e-23 of the prior mass."""
    mean, sd = np.broadcast_arrays(np.atleast_1d(np.asarray(mean, float)), np.asarray(sd, float))
    return np.stack([mean - width * sd, mean + width * sd], axis=-1)


def log_evidence_by_quadrature(
    log_joint: LogJoint, box: Box, *, tolerance: float = 1e-10, max_evaluations: int = 30_000_000
) -> LogEvidence:
    r"""$\ln \int_\text{box} e^{g(\theta)} d\theta$, with `log_joint` = g vectorised from (n, d) to (n,).

    `box` has a row (low, high) for each of one to three parameters: see `prior_box`. Peaks may be many, and as
    narrow as 1/1000 of the box (in three dimensions: if their logarithm stands out on a grid of 64 a side).
    """
    box = _checked_box(box)
    cells, exhaustive = _integrate(log_joint, box, None, tolerance, max_evaluations)
    return LogEvidence(*_log_total(cells, exhaustive), 0.5 / SCANS[len(box)][0])


def expectation_by_quadrature(
    log_joint: LogJoint,
    box: Box,
    g: Callable[[np.ndarray], np.ndarray],
    *,
    tolerance: float = 1e-10,
    max_evaluations: int = 30_000_000,
) -> Expectation:
    r"""$E[g] = \int g\, e^{\text{log joint}} / Z$ for g vectorised from (n, d) to (n, k)."""
    cells, _ = _integrate(log_joint, _checked_box(box), g, tolerance, max_evaluations)
    total = cells.integral.sum(axis=0)
    value = total[1:] / total[0]
    error = (cells.error[1:] + np.abs(value) * cells.error[0]) / total[0]
    return Expectation(value, error, float(cells.log_scale) + math.log(total[0]))


def moments_by_quadrature(
    log_joint: LogJoint, box: Box, *, tolerance: float = 1e-10, max_evaluations: int = 30_000_000
) -> Moments:
    r"""$\ln Z$, $E[\theta]$ and $\mathrm{Cov}[\theta]$ of the posterior $e^{g}/Z$."""
    box = _checked_box(box)
    peaks = find_peaks(log_joint, box)
    centre, scale = peaks.place[0], peaks.width[0]
    d = len(box)

    def powers(theta: np.ndarray) -> np.ndarray:
        # in units of the highest peak, or the second moments would be lost in the square of the mean
        z = (theta - centre) / scale
        return np.concatenate([z, (z[:, :, None] * z[:, None, :]).reshape(-1, d * d)], axis=1)

    cells, exhaustive = _integrate(log_joint, box, powers, tolerance, max_evaluations, peaks)
    total = cells.integral.sum(axis=0)
    z, zz = total[1 : d + 1] / total[0], total[d + 1 :].reshape(d, d) / total[0]
    covariance = (zz - np.outer(z, z)) * np.outer(scale, scale)
    return Moments(*_log_total(cells, exhaustive), centre + scale * z, np.sqrt(np.diag(covariance)), covariance)


def find_peaks(log_joint: LogJoint, box: Box) -> Peaks:
    """All local maxima that matter for the integral, the highest first."""
    box = _checked_box(box)
    log_joint = _checked(log_joint)
    first, *others = SCANS[len(box)]
    found = _scan(log_joint, box, first, None)
    for n_side in others:
        peaks = _scan(log_joint, box, n_side, found)
        if len(peaks.place) == len(found.place):
            return peaks._replace(is_exhaustive=True)
        found = peaks
    return found


@dataclass(frozen=True, eq=False)
class Density:
    r"""$p(x) = e^{g(x)} / \int_{low}^{high} e^{g}$: a density on an interval, from its unnormalised logarithm g."""

    log_density: Callable[[np.ndarray], np.ndarray]
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self):
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SupermodelError(
                f"the interval [{self.low}, {self.high}] of a density is empty or unbounded, so that it has no norm. "
                "Give finite low < high."
            )

    @cached_property
    def _cells(self) -> Cells:
        box = np.array([[self.low, self.high]], float)
        cells, _ = _integrate(lambda x: self.log_density(x[:, 0]), box, None, 1e-12, 3_000_000)
        order = np.argsort(cells.low[:, 0])
        return cells._replace(low=cells.low[order], high=cells.high[order], integral=cells.integral[order])

    @cached_property
    def log_norm(self) -> float:
        r"""$\ln \int_{low}^{high} e^g dx$."""
        return float(self._cells.log_scale) + math.log(self._cells.integral[:, 0].sum())

    def logpdf(self, x: Values) -> np.ndarray:
        x = np.asarray(x, float)
        inside = (x >= self.low) & (x <= self.high)
        value = self.log_density(np.where(inside, x, 0.5 * (self.low + self.high))) - self.log_norm
        return np.where(inside, value, -np.inf)

    def pdf(self, x: Values) -> np.ndarray:
        return np.exp(self.logpdf(x))

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Cell edges, and the distribution function at them."""
        mass = self._cells.integral[:, 0]
        edges = np.append(self._cells.low[:, 0], self.high)
        return edges, np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])

    def _mass_between(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        z, w = np.polynomial.legendre.leggauss(20)
        half = 0.5 * (high - low)[:, None]
        return (self.pdf(low[:, None] + half * (1 + z)) * w * half).sum(axis=1)

    def cdf(self, x: Values) -> np.ndarray:
        edges, below = self._edges
        flat = np.clip(np.ravel(np.asarray(x, float)), self.low, self.high)
        cell = np.clip(np.searchsorted(edges, flat, side="right") - 1, 0, len(edges) - 2)
        return np.clip(below[cell] + self._mass_between(edges[cell], flat), 0, 1).reshape(np.shape(x))

    def ppf(self, q: Values) -> np.ndarray:
        """The x below which lies the mass q."""
        edges, below = self._edges
        flat = np.ravel(np.asarray(q, float))
        cell = np.clip(np.searchsorted(below, flat, side="right") - 1, 0, len(edges) - 2)
        start, low, high = edges[cell], edges[cell], edges[cell + 1]
        wanted = flat - below[cell]
        x = 0.5 * (low + high)
        for _ in range(60):  # Newton where it stays inside the bracket, else bisection
            excess = self._mass_between(start, x) - wanted
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = x - excess / self.pdf(x)
            previous, x = x, np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
            if np.all(np.abs(x - previous) <= 1e-14 * (self.high - self.low)):
                break
        return np.where((flat >= 0) & (flat <= 1), x, np.nan).reshape(np.shape(q))

    def expectation(self, g: Callable[[np.ndarray], np.ndarray]) -> float:
        r"""$E[g(x)]$ for a function g that is smooth wherever the density is."""
        old = self._cells  # fine enough for p; g may ask for more, so refine them again with g beside p
        log_density = lambda x: self.log_density(x[:, 0])  # noqa: E731
        values = lambda x: np.asarray(g(x[:, 0]), float)[:, None]  # noqa: E731
        cells = _refine(log_density, values, old.low, old.high, old.log_scale, 1e-12, 3_000_000)
        return float(cells.integral[:, 1].sum() / cells.integral[:, 0].sum())

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n independent draws, by inversion."""
        return self.ppf(rng.random(n))


def _checked_box(box: Box) -> np.ndarray:
    box = np.asarray(box, float)
    if box.ndim != 2 or box.shape[1:] != (2,) or not 1 <= len(box) <= 3:
        raise SupermodelError(
            f"box has the shape {box.shape}; quadrature needs one row (low, high) for each of one to three parameters, "
            "as the number of points grows as a power of their number. Use a sampler for more."
        )
    if not (np.all(np.isfinite(box)) and np.all(box[:, 0] < box[:, 1])):
        raise SupermodelError(
            f"box is {box.tolist()}; every row must be finite with low < high, or there is nothing to scan. "
            "For a normal prior use prior_box(mean, sd)."
        )
    return box


def _checked(log_joint: LogJoint) -> LogJoint:
    def checked(theta: np.ndarray) -> np.ndarray:
        value = np.asarray(log_joint(theta), float)
        if value.shape == () and len(theta) == 1:
            value = value[None]  # scipy.stats and others drop an axis of length one
        if value.shape != (len(theta),):
            raise ModelError(
                f"log_joint returned the shape {value.shape} for parameters of the shape {theta.shape}; quadrature "
                f"calls it with many points at once and needs ({len(theta)},). Vectorise it over the first axis."
            )
        bad = np.isnan(value) | (value == np.inf)
        if bad.any():
            raise ModelError(
                f"log_joint is {value[bad][0]} at {theta[bad][0]}: the integral does not exist there. "
                "Return -inf where the joint density is zero, and finite values elsewhere."
            )
        return value

    return checked


def _in_chunks(log_joint: LogJoint, theta: np.ndarray) -> np.ndarray:
    return np.concatenate([log_joint(theta[i : i + CHUNK]) for i in range(0, len(theta), CHUNK)])


def _scan(log_joint: LogJoint, box: np.ndarray, n_side: int, known: Peaks | None) -> Peaks:
    """Climb from every local maximum of a grid of n_side points a side; join what is `known`."""
    d, size = len(box), np.ptp(box, axis=1)
    axes = [np.linspace(low, high, n_side, endpoint=False) + 0.5 * (high - low) / n_side for low, high in box]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    value = _in_chunks(log_joint, grid).reshape((n_side,) * d)
    # up to rounding, or the noise of a flat function would be a forest of peaks
    is_top = (value >= ndimage.maximum_filter(value, size=3) - 1e-9) & np.isfinite(value)
    if not is_top.any():
        raise ModelError(
            f"log_joint is -inf at all {value.size} points of a grid over the box {box.tolist()}: there is no mass to "
            "integrate. Choose a box that holds the posterior."
        )
    # one start for each plateau, or a flat function would have as many peaks as points
    plateau = ndimage.label(is_top, structure=np.ones((3,) * d))[0].ravel()
    tops = np.unique(plateau, return_index=True)[1][int(not is_top.all()) :]
    starts = grid[tops[np.argsort(-value.ravel()[tops])][:STARTS]]
    places = [_climb(log_joint, start, box, size / n_side) for start in starts]
    places += [] if known is None else list(known.place)
    return _distinct(log_joint, np.array(places), box)


def _climb(log_joint: LogJoint, start: np.ndarray, box: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The local maximum above `start`."""
    size = np.ptp(box, axis=1)
    inwards = np.where(start + step > box[:, 1], -step, step)
    simplex = np.vstack([start, start + np.diag(inwards)])

    def descent(unit: np.ndarray) -> float:
        theta = box[:, 0] + unit * size
        outside = np.any((theta <= box[:, 0]) | (theta >= box[:, 1]))  # a density may be infinite at its ends
        return np.inf if outside else -log_joint(theta[None])[0]

    options = {"initial_simplex": (simplex - box[:, 0]) / size, "xatol": 1e-10, "fatol": 1e-3, "maxfev": 400 * len(box)}
    with np.errstate(invalid="ignore"):  # inf - inf inside scipy's stopping rule
        found = optimize.minimize(descent, options["initial_simplex"][0], method="Nelder-Mead", options=options)
    return box[:, 0] + found.x * size


def _distinct(log_joint: LogJoint, places: np.ndarray, box: np.ndarray) -> Peaks:
    """Peaks within NEGLIGIBLE of the highest, each once."""
    height = log_joint(places)
    order = [i for i in np.argsort(-height) if height[i] > height.max() - NEGLIGIBLE]
    kept: list[int] = []
    widths: list[np.ndarray] = []
    for i in order:
        if any(np.all(np.abs(places[i] - places[j]) < 1.5 * w) for j, w in zip(kept, widths, strict=True)):
            continue
        kept.append(i)
        widths.append(_width(log_joint, places[i], box))
    return Peaks(places[kept], np.array(widths), height[kept], False)


def _width(log_joint: LogJoint, mode: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Half-widths of a peak: of the section along each axis, widened by the correlation."""
    d, size = len(mode), np.ptp(box, axis=1)

    def value(theta: np.ndarray) -> np.ndarray:
        inside = np.all((theta > box[:, 0]) & (theta < box[:, 1]), axis=-1)
        return np.where(inside, log_joint(np.where(inside[:, None], theta, mode)), -np.inf)

    height = log_joint(mode[None])[0]
    section = size.copy()
    for i, axis in enumerate(np.eye(d)):
        step = size[i] * 0.5 ** np.arange(50)[::-1, None] * axis
        fallen = np.maximum(value(mode + step), value(mode - step)) < height - 0.5
        section[i] = size[i] * 0.5 ** (49 - np.argmax(fallen)) if fallen.any() else size[i]
    return np.minimum(_widened(value, mode, height, section), size)


def _widened(value: LogJoint, mode: np.ndarray, height: float, section: np.ndarray) -> np.ndarray:
    r"""$\sqrt{(-H^{-1})_{ii}}$ with the Hessian H by differences over `section`; `section` itself if H is useless."""
    d = len(mode)
    if d == 1:
        return section
    step = np.diag(section)
    plus, minus = value(mode + step), value(mode - step)
    hessian = np.diag(plus + minus - 2 * height)
    for i in range(d):
        for j in range(i):
            pairs = np.array([step[i] + step[j], -step[i] - step[j], step[i] - step[j], step[j] - step[i]])
            hessian[i, j] = hessian[j, i] = value(mode + pairs) @ [0.25, 0.25, -0.25, -0.25]
    if not np.all(np.isfinite(hessian)) or np.any(np.linalg.eigvalsh(-hessian) < 1e-8):
        return section
    return section * np.maximum(np.sqrt(np.diag(np.linalg.inv(-hessian))), 1.0)


def graded_cells(box: np.ndarray, peaks: Peaks) -> tuple[np.ndarray, np.ndarray]:
    """Halve the box until every cell is small against each peak's width, or against its distance from the peak."""
    low, high = box[None, :, 0], box[None, :, 1]
    lows, highs = [], []
    for _ in range(60):
        gap = np.maximum(low[:, None] - peaks.place, peaks.place - high[:, None]) / peaks.width
        allowed = np.maximum(2.5, gap.max(axis=-1, keepdims=True).clip(0))  # (c, p, 1), in widths
        too_long = np.any((high - low)[:, None] / peaks.width > allowed, axis=1)
        good = ~too_long.any(axis=1) | _is_smallest(low, high)
        lows.append(low[good])
        highs.append(high[good])
        low, high, too_long = low[~good], high[~good], too_long[~good]
        if not len(low):
            break
        low, high = _halved(low, high, too_long)
    return np.concatenate(lows), np.concatenate(highs)


def _is_smallest(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Whether a cell is so small that its nodes would soon fall on one another, or on the end of the box."""
    return np.any(high - low < 2000 * np.spacing(np.maximum(np.abs(low), np.abs(high))), axis=1)


def _halved(low: np.ndarray, high: np.ndarray, along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Halve each cell along every axis where `along` is true."""
    for i in range(low.shape[1]):
        cut = along[:, i]
        middle = 0.5 * (low[:, i] + high[:, i])
        lower, upper = high.copy(), low.copy()
        lower[cut, i], upper[cut, i] = middle[cut], middle[cut]
        low, high = np.concatenate([low, upper[cut]]), np.concatenate([lower, high[cut]])
        along = np.concatenate([along, along[cut]])
    return low, high


@lru_cache
def _rule(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (m, d) in [-1, 1]^d and weights (m,) of mean 2^-d, so that they average over a cell."""
    z, w = np.polynomial.legendre.leggauss(NODES[d])
    nodes = np.stack(np.meshgrid(*[z] * d, indexing="ij"), axis=-1).reshape(-1, d)
    weights = np.prod(np.stack(np.meshgrid(*[w / 2] * d, indexing="ij"), axis=-1), axis=-1).ravel()
    return nodes, weights


def _over_cells(log_joint, g, low, high, log_scale) -> tuple[np.ndarray, float]:
    """Integrals of (1, g) over each cell, and the highest log_joint met."""
    nodes, weights = _rule(low.shape[1])
    integrals, highest = [], -np.inf
    for i in range(0, len(low), max(1, CHUNK // len(nodes))):
        cut = slice(i, i + max(1, CHUNK // len(nodes)))
        half = 0.5 * (high[cut] - low[cut])
        theta = ((low[cut] + half)[:, None] + half[:, None] * nodes).reshape(-1, low.shape[1])
        value = log_joint(theta)
        highest = max(highest, value.max())
        # a node far above the known peaks is no overflow but a restart: see _integrate
        mass = np.exp(np.minimum(value - log_scale, 100.0)).reshape(-1, len(nodes)) * weights
        mass *= np.prod(high[cut] - low[cut], axis=1)[:, None]
        terms = np.ones((len(theta), 1)) if g is None else np.column_stack([np.ones(len(theta)), g(theta)])
        integrals.append(np.einsum("cm,cmk->ck", mass, terms.reshape(*mass.shape, -1)))
    return np.concatenate(integrals), highest


def _integrate(log_joint, box, g, tolerance, max_evaluations, peaks=None) -> tuple[Cells, bool]:
    """Integrate from graded cells, and begin again if a node lies above every known peak."""
    checked = _checked(log_joint)
    peaks = find_peaks(checked, box) if peaks is None else peaks
    cells = _refine(checked, g, *graded_cells(box, peaks), peaks.height[0], tolerance, max_evaluations)
    for _ in range(3):
        if cells.highest <= peaks.height[0] + 1e-2:
            return cells, peaks.is_exhaustive
        again = _scan(checked, box, SCANS[len(box)][-1] + 2, peaks)
        peaks = again._replace(height=np.maximum(again.height, cells.highest))
        cells = _refine(checked, g, *graded_cells(box, peaks), peaks.height[0], tolerance, max_evaluations)
    return cells, False


def _refine(log_joint, g, low, high, log_scale, tolerance, max_evaluations) -> Cells:
    """Halve cells until the sum over the parts equals the whole, or `max_evaluations` are spent."""
    d = low.shape[1]
    parents, highest = _over_cells(log_joint, g, low, high, log_scale)
    spent = len(low) * NODES[d] ** d
    done = []
    error = np.zeros(parents.shape[1])
    finished = np.abs(parents).sum(axis=0)[None] * 0.0  # of accepted cells, to set the scale
    while len(low):
        scale = finished.sum(axis=0) + np.abs(parents).sum(axis=0)
        small = np.all(np.abs(parents) <= 1e-5 * tolerance * scale, axis=1) | _is_smallest(low, high)
        exhausted = spent + (~small).sum() * 2**d * NODES[d] ** d > max_evaluations
        if exhausted:
            # the unrefined cells are counted as wholly unknown: an honest error, if a large one
            error += np.abs(parents).sum(axis=0)
            small[:] = True
        else:
            error += np.abs(parents[small]).sum(axis=0)
        done.append((low[small], high[small], parents[small]))
        finished = np.vstack([finished, np.abs(parents[small]).sum(axis=0)])
        low, high, parents = low[~small], high[~small], parents[~small]
        if not len(low):
            break
        n = len(low)
        low, high = _halved(low, high, np.ones((n, d), bool))
        parts, top = _over_cells(log_joint, g, low, high, log_scale)
        highest, spent = max(highest, top), spent + len(low) * NODES[d] ** d
        # _halved keeps the order within each of its 2^d blocks, so part j of parent i is at j * n + i
        change = np.abs(parts.reshape(2**d, n, -1).sum(axis=0) - parents)
        good = np.all(change <= tolerance / 64 * scale, axis=1)
        error += change[good].sum(axis=0)
        good = np.tile(good, 2**d)
        done.append((low[good], high[good], parts[good]))
        finished = np.vstack([finished, np.abs(parts[good]).sum(axis=0)])
        low, high, parents = low[~good], high[~good], parts[~good]
    low, high, integral = (np.concatenate(parts) for parts in zip(*done, strict=True))
    return Cells(low, high, integral, error, log_scale, highest)


def _log_total(cells: Cells, exhaustive: bool) -> tuple[float, float]:
    total = cells.integral[:, 0].sum()
    rounding = 4e-16 * (abs(cells.log_scale) + 10)
    error = float(cells.error[0] / total + rounding) if exhaustive else math.inf
    return float(cells.log_scale) + math.log(total), error
