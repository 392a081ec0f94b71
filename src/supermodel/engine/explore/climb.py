r"""Climbing: local maxima of ln J from many starts, their curvature, and the hills that these make.

Starts are the prior draws that stand above all their neighbours (multi-level single linkage): a narrow mode that attracts
one draw in a hundred is then found from a thousand draws at the cost of one climb. $J(x) \approx J(\hat x) \exp[-\frac12
(x-\hat x)^T H (x-\hat x)]$ makes each maximum a hill of mass $J(\hat x) (2\pi)^{d/2} |H|^{-1/2}$.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from supermodel.embedding.reference import LOG_2PI, Hills, joined, one_hill
from supermodel.embedding.warp import Warp, from_covariance, identity
from supermodel.engine.explore.cloud import Warped
from supermodel.engine.meter import Meter
from supermodel.models.joint import Joint

NEIGHBOURS = 8  # a start stands above as many of its nearest draws
ITERATIONS = 60  # of a climb; most end after ten to twenty
TINY = 1e-4  # widths of the prior: a first step, by which the slope is felt
LONGEST = 2.0  # widths of the prior: on flat ground the next step would lead out of it, to where likelihoods overflow
MEMORY = 8  # pairs that L-BFGS remembers
ARRIVED = 1e-3  # nats: the rise that a Newton step still promises at the end of a climb
NEWTONS, NEAR = 5, 0.1  # steps from there to the top; nats of rise from which on one more is taken on trust
NEGLIGIBLE = 25.0  # nats below the best maximum at which a hill is not worth its curvature (unless it is very wide)
RIVAL = 12.0  # nats of mass below the best at which a hill is left out: e^-12 of the posterior


@dataclass(frozen=True, eq=False)
class Mode:
    """A local maximum of J and its warp from the curvature."""

    point: np.ndarray
    log_joint: float
    warp: Warp

    @property
    def log_mass(self) -> float:
        return self.log_joint + self.warp.log_det_value() + 0.5 * len(self.point) * LOG_2PI


def summits(points: np.ndarray, values: np.ndarray, most: int) -> np.ndarray:
    """Rows of the points that are higher than their nearest neighbours, highest first."""
    from scipy.spatial import cKDTree

    finite = np.flatnonzero(np.isfinite(values))
    if len(finite) == 0:
        return finite
    x = points[finite]
    spread = np.maximum(x.std(0), 1e-300)
    k = min(NEIGHBOURS, len(finite) - 1)
    if k < 1:
        return finite
    near = cKDTree(x / spread).query(x / spread, k=k + 1)[1][:, 1:]
    high = np.all(values[finite][:, None] >= values[finite][near], axis=1)
    rows = finite[high]
    return rows[np.argsort(-values[rows])][:most]


class Climber:
    """Climbs of one traced model, all starts at once, in coordinates scaled by the prior."""

    def __init__(self, joint: Joint, meter: Meter, centre: np.ndarray, scale: np.ndarray):
        self.joint, self.meter, self.centre, self.scale = joint, meter, centre, scale

    def evaluate(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln J and its gradient in scaled coordinates; a wall (-inf value, zero gradient) where they are not finite, and far
        outside of the prior, where nobody asks: likelihoods overflow there.
        """
        x, value, gradient = self.centre + self.scale * y, np.full(len(y), -np.inf), np.zeros_like(y)
        near = np.flatnonzero(~self.joint.is_far(x))
        if len(near):
            value[near], gradient[near] = self.meter.value_and_gradient(self.joint, x[near])
        gradient = gradient * self.scale
        ok = np.isfinite(value) & np.all(np.isfinite(gradient), axis=1)
        return np.where(ok, value, -np.inf), np.where(ok[:, None], gradient, 0.0)

    def climb(self, starts: np.ndarray, is_home: Callable | None = None) -> list[tuple[np.ndarray, float]]:
        """L-BFGS from every start at once, each with its own memory and its own step; (point, ln J) of the tops.

        A climb that comes home, `is_home(x, ln J, gradient)`, is given up: its top is known, and -inf stands for it.
        """
        y = (starts - self.centre) / self.scale
        value, gradient = self.evaluate(y)
        memory: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in y]
        active = np.isfinite(value)
        self._feel(y, gradient, memory, np.flatnonzero(active))
        for _ in range(ITERATIONS):
            rows = np.flatnonzero(active)
            if is_home is not None and len(rows):
                home = rows[is_home(self.centre + self.scale * y[rows], value[rows], gradient[rows] / self.scale)]
                active[home], value[home] = False, -np.inf
                rows = np.flatnonzero(active)
            if len(rows) == 0:
                break
            direction = np.stack([_direction(gradient[i], memory[i]) for i in rows])
            direction *= np.minimum(1.0, LONGEST / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300))
            rise = np.sum(direction * gradient[rows], axis=1)
            done = rise < ARRIVED
            active[rows[done]] = False
            rows, direction, rise = rows[~done], direction[~done], rise[~done]
            self._line_search(y, value, gradient, memory, active, rows, direction, rise)
        return [(self.centre + self.scale * y[i], float(value[i])) for i in range(len(y))]

    def _feel(self, y, gradient, memory, rows) -> None:
        """A tiny step tells how the slope bends: a first step of the right length does not leave a narrow hill."""
        if not len(rows):
            return
        size = np.linalg.norm(gradient[rows], axis=1, keepdims=True)
        s = TINY * gradient[rows] / np.maximum(size, 1e-300)
        _, there = self.evaluate(y[rows] + s)
        for i, step, g in zip(rows, s, gradient[rows] - there, strict=True):
            _remember(memory[i], step, g)

    def _line_search(self, y, value, gradient, memory, active, rows, direction, rise) -> None:
        """Halve each step until it rises enough; a climb that cannot rise any more is done."""
        step = np.ones(len(rows))
        waiting = np.ones(len(rows), bool)
        for _ in range(12):
            now = np.flatnonzero(waiting)
            if len(now) == 0:
                return
            trial = y[rows[now]] + step[now, None] * direction[now]
            new_value, new_gradient = self.evaluate(trial)
            good = new_value >= value[rows[now]] + 1e-4 * step[now] * rise[now]
            for j in np.flatnonzero(good):
                i = rows[now[j]]
                _remember(memory[i], trial[j] - y[i], gradient[i] - new_gradient[j])
                y[i], value[i], gradient[i] = trial[j], new_value[j], new_gradient[j]
            waiting[now[good]] = False
            step[now[~good]] *= 0.3
        active[rows[waiting]] = False

    def mode_at(self, point: np.ndarray, value: float) -> Mode | None:
        """Curvature by central differences of the gradient, and Newton steps to finish; None where J has none.

        A climb along a ridge may end where the little that it knows of the curvature promises no rise; the whole of it tells more.
        """
        y, d = (point - self.centre) / self.scale, len(point)
        _, gradient = self.evaluate(y[None])
        width = np.full(d, 1e-2)
        for newton in range(NEWTONS):
            for _ in range(1 if newton else 2):  # the first pass finds the scale on which to take differences
                curvature = self._curvature(y, 1e-2 * width)
                if curvature is None:
                    return None
                width = np.clip(1 / np.sqrt(np.maximum(np.diagonal(curvature), 1e-12)), 1e-14, 1.0)
            scaled = curvature * np.outer(width, width)
            values, vectors = np.linalg.eigh(scaled)
            if values[-1] <= 0:
                return None
            # Flat or upward directions get the width of the prior at most: a ridge is not infinitely wide.
            floor = np.sum((vectors * width[:, None]) ** 2, axis=0)
            values = np.maximum(values, np.maximum(floor, 1e-10 * values[-1]))
            covariance = width[:, None] * ((vectors / values) @ vectors.T) * width
            step = covariance @ gradient[0]
            rise = float(gradient[0] @ step)
            if not (rise >= 0 and np.all(np.isfinite(step))):
                break
            if rise < NEAR:  # within a few tenths of a standard deviation of the top
                y, value = y + step, value + 0.5 * rise
                break
            there, slope = self.evaluate(y[None] + step)
            if not there[0] > value:
                break
            y, value, gradient = y + step, float(there[0]), slope
        warp = from_covariance(y, covariance)
        return Mode(
            self.centre + self.scale * y, value, Warp(self.centre + self.scale * y, self.scale[:, None] * warp.factor)
        )

    def _curvature(self, y: np.ndarray, h: np.ndarray) -> np.ndarray | None:
        steps = np.diag(h)
        _, gradient = self.evaluate(np.concatenate([y + steps, y - steps]))
        d = len(y)
        curvature = -(gradient[:d] - gradient[d:]) / (2 * h[:, None])
        return 0.5 * (curvature + curvature.T) if np.all(np.isfinite(curvature)) else None


def _remember(memory: list[tuple[np.ndarray, np.ndarray]], s: np.ndarray, g: np.ndarray) -> None:
    """Keep a step and what it did to the slope, where ln J is concave along it."""
    if s @ g > 1e-10 * np.sqrt((s @ s) * (g @ g)):
        memory.append((s, g))
        del memory[:-MEMORY]


def _direction(gradient: np.ndarray, memory: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The two-loop recursion: gradient times an inverse curvature built from the last steps."""
    q, kept = gradient.copy(), []
    for s, g in reversed(memory):
        a = (s @ q) / (s @ g)
        kept.append(a)
        q -= a * g
    if memory:
        s, g = memory[-1]
        q *= (s @ g) / (g @ g)
    else:
        q /= max(np.linalg.norm(gradient), 1.0)  # a first step of at most one prior width
    for (s, g), a in zip(memory, reversed(kept), strict=True):
        q += s * (a - (g @ q) / (s @ g))
    return q


def find_modes(
    climber: Climber, starts: np.ndarray, most: int, known: Sequence[Mode] = (), is_home: Callable | None = None
) -> tuple[list[Mode], float]:
    """Climb from each start and keep the distinct maxima, heaviest first; and the share of climbs that ended alone.

    That share estimates the chance that a further climb ends at a mode not seen so far (Good and Turing).
    """
    if len(starts) == 0:
        return list(known), 0.0
    tops = sorted(climber.climb(starts, is_home), key=lambda top: -top[1])
    modes = list(known)
    visits = [2 for _ in known]

    def is_known(point: np.ndarray, value: float) -> bool:
        near = [np.sqrt(np.sum(m.warp.inverse(point[None]) ** 2)) < 1.0 and value <= m.log_joint + 0.5 for m in modes]
        if any(near):
            visits[near.index(True)] += 1
        return any(near)

    for point, value in tops:
        highest = max((m.log_joint for m in modes), default=-np.inf)
        if not np.isfinite(value) or value < highest - NEGLIGIBLE or is_known(point, value):
            continue
        mode = climber.mode_at(point, value)
        if mode is not None and len(modes) < most and not is_known(mode.point, mode.log_joint):
            modes.append(mode)
            visits.append(1)
    alone = sum(v == 1 for v in visits) / max(sum(visits), 1) if len(modes) > 1 else 0.0
    return sorted(modes, key=lambda m: -m.log_mass), alone


def hills_of(modes: list[Mode], dof: float) -> Warped:
    """A hill at every mode that holds a part of the mass, by their masses."""
    top = modes[0].log_mass
    parts: list[tuple[float, Hills]] = [
        (float(np.exp(max(m.log_mass - top, -6.0))), one_hill(m.point, np.asarray(m.warp.factor), dof))
        for m in modes
        if m.log_mass > top - RIVAL
    ]
    return Warped(identity(len(modes[0].point)), joined(parts))
