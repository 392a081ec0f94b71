r"""Climbing: local maxima of ln J from many starts, their curvature, and the hills that these make.

Starts are the prior draws that stand above all their neighbours (multi-level single linkage): a narrow mode that attracts
one draw in a hundred is then found from a thousand draws at the cost of one climb. $J(x) \approx J(\hat x) \exp[-\frac12
(x-\hat x)^T H (x-\hat x)]$ makes each maximum a hill of mass $J(\hat x) (2\pi)^{d/2} |H|^{-1/2}$.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
SHORTENED = 12  # times, by 0.3, that a step is before a climb is taken to be at its top
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

    def __init__(self, joint: Joint, meter: Meter, centre: np.ndarray, scale: np.ndarray, held: Any = None):
        self.joint, self.meter, self.centre, self.scale = joint, meter, centre, scale
        self.free = None if held is None or not np.any(held) else ~held  # coordinates that move; None: all

    def holding(self, held: np.ndarray) -> Climber:
        """The same, with some coordinates held where they are."""
        return Climber(self.joint, self.meter, self.centre, self.scale, held)

    def evaluate(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln J and its gradient in scaled coordinates; a wall (-inf value, zero gradient) where they are not finite, and far
        outside of the prior, where nobody asks: likelihoods overflow there.
        """
        x, value, gradient = self.centre + self.scale * y, np.full(len(y), -np.inf), np.zeros_like(y)
        near = np.flatnonzero(~self.joint.is_far(x))
        if len(near):
            value[near], gradient[near] = self.meter.value_and_gradient(self.joint, x[near], self.free)
        gradient = gradient * self.scale
        ok = np.isfinite(value) & np.all(np.isfinite(gradient), axis=1)
        return np.where(ok, value, -np.inf), np.where(ok[:, None], gradient, 0.0)

    def climb(self, starts: np.ndarray) -> list[tuple[np.ndarray, float]]:
        """Climbs to the end from every start; (point, ln J) of the tops."""
        climbs = Climbs.begun(self, starts)
        climbs.go(ITERATIONS)
        return climbs.tops()

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


@dataclass
class Climbs:
    """L-BFGS of many climbs at once, each with its own memory and its own step, in the coordinates of a climber."""

    climber: Climber
    y: np.ndarray  # (n, d)
    value: np.ndarray  # (n,)
    gradient: np.ndarray  # (n, d)
    going: np.ndarray  # (n,)
    steps: np.ndarray  # (MEMORY, n, d), the latest first, and
    changes: np.ndarray  # what they did to the slope: (MEMORY, n, d)

    @classmethod
    def begun(cls, climber: Climber, starts: np.ndarray) -> Climbs:
        """A tiny step tells how the slope bends: a first step of the right length does not leave a narrow hill."""
        y = (starts - climber.centre) / climber.scale
        value, gradient = climber.evaluate(y)
        climbs = cls(climber, y, value, gradient, np.isfinite(value), *np.zeros((2, MEMORY, *y.shape)))
        rows = np.flatnonzero(climbs.going)
        if len(rows):
            size = np.linalg.norm(gradient[rows], axis=1, keepdims=True)
            step = TINY * gradient[rows] / np.maximum(size, 1e-300)
            climbs._remember(rows, step, gradient[rows] - climber.evaluate(y[rows] + step)[1])
        return climbs

    @property
    def x(self) -> np.ndarray:
        return self.climber.centre + self.climber.scale * self.y

    def kept(self, rows: np.ndarray) -> Climbs:
        """Some of them."""
        parts = (part[rows] for part in self._parts)
        return Climbs(self.climber, *parts, self.steps[:, rows], self.changes[:, rows])

    def higher(self, other: Climbs) -> Climbs:
        """Of each two the higher one."""
        better = other.value > self.value
        parts = [
            np.where(better.reshape(-1, *[1] * (a.ndim - 1)), b, a)
            for a, b in zip(self._parts, other._parts, strict=True)
        ]
        memory = [
            np.where(better[:, None], b, a) for a, b in ((self.steps, other.steps), (self.changes, other.changes))
        ]
        return Climbs(self.climber, *parts, *memory)

    def tops(self) -> list[tuple[np.ndarray, float]]:
        """(point, ln J) of each."""
        return [(x, float(value)) for x, value in zip(self.x, self.value, strict=True)]

    @property
    def _parts(self) -> tuple[np.ndarray, ...]:
        return self.y, self.value, self.gradient, self.going

    def go(self, iterations: int) -> None:
        """Up to so many steps of each that has not arrived."""
        for _ in range(iterations):
            rows = np.flatnonzero(self.going)
            if len(rows) == 0:
                return
            direction = self._direction(rows)
            direction *= np.minimum(1.0, LONGEST / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300))
            rise = np.sum(direction * self.gradient[rows], axis=1)
            done = ~(rise >= ARRIVED)
            self.going[rows[done]] = False
            self._line_search(rows[~done], direction[~done], rise[~done])

    def _line_search(self, rows: np.ndarray, direction: np.ndarray, rise: np.ndarray) -> None:
        """Shorten each step until it rises enough; a climb that cannot rise any more is done."""
        length = np.ones(len(rows))
        waiting = np.arange(len(rows))
        for _ in range(SHORTENED):
            if len(waiting) == 0:
                return
            step = length[waiting, None] * direction[waiting]
            value, gradient = self.climber.evaluate(self.y[rows[waiting]] + step)
            good = value >= self.value[rows[waiting]] + 1e-4 * length[waiting] * rise[waiting]
            risen = rows[waiting[good]]
            self._remember(risen, step[good], self.gradient[risen] - gradient[good])
            self.y[risen] += step[good]
            self.value[risen], self.gradient[risen] = value[good], gradient[good]
            waiting = waiting[~good]
            length[waiting] *= 0.3
        self.going[rows[waiting]] = False

    def _remember(self, rows: np.ndarray, step: np.ndarray, change: np.ndarray) -> None:
        """Keep a step and what it did to the slope, where ln J is concave along it."""
        sizes = np.sum(step**2, axis=1) * np.sum(change**2, axis=1)
        bent = np.sum(step * change, axis=1) > 1e-10 * np.sqrt(sizes)
        rows, step, change = rows[bent], step[bent], change[bent]
        for memory, new in ((self.steps, step), (self.changes, change)):
            memory[1:, rows] = memory[:-1, rows]
            memory[0, rows] = new

    def _direction(self, rows: np.ndarray) -> np.ndarray:
        """The two-loop recursion: gradient times an inverse curvature built from the last steps."""
        q, s, g = self.gradient[rows].copy(), self.steps[:, rows], self.changes[:, rows]
        product = np.sum(s * g, axis=2)  # 0 where nothing is remembered
        known = product > 0
        inverse = np.where(known, 1 / np.where(known, product, 1.0), 0.0)
        kept = []
        for k in range(MEMORY):
            kept.append(inverse[k] * np.sum(s[k] * q, axis=1))
            q -= kept[k][:, None] * g[k]
        # Without memory, a first step of at most one prior width.
        plain = 1 / np.maximum(np.linalg.norm(self.gradient[rows], axis=1), 1.0)
        newest = np.sum(g[0] ** 2, axis=1)
        q *= np.where(known[0], product[0] / np.where(known[0], newest, 1.0), plain)[:, None]
        for k in reversed(range(MEMORY)):
            q += s[k] * (kept[k] - inverse[k] * np.sum(g[k] * q, axis=1))[:, None]
        return q


def find_modes(climber: Climber, starts: np.ndarray, most: int, known: Sequence[Mode] = ()) -> tuple[list[Mode], float]:
    """Climb from each start and keep the distinct maxima, heaviest first; and the share of climbs that ended alone.

    That share estimates the chance that a further climb ends at a mode not seen so far (Good and Turing).
    """
    if len(starts) == 0:
        return list(known), 0.0
    modes, visits = distinct(climber, climber.climb(starts), most, known)
    alone = sum(v == 1 for v in visits) / max(sum(visits), 1) if len(modes) > 1 else 0.0
    return modes, alone


def distinct(
    climber: Climber, tops: Sequence[tuple[np.ndarray, float]], most: int, known: Sequence[Mode] = ()
) -> tuple[list[Mode], list[int]]:
    """The modes among the tops of climbs and those `known`, heaviest first, and how often each was met (known: twice more)."""
    modes = list(known)
    visits = [2 for _ in known]

    def is_known(point: np.ndarray, value: float) -> bool:
        near = [np.sum(m.warp.inverse(point[None]) ** 2) < 1.0 and value <= m.log_joint + 0.5 for m in modes]
        if any(near):
            visits[near.index(True)] += 1
        return any(near)

    highest = max((m.log_joint for m in modes), default=-np.inf)
    for point, value in sorted(tops, key=lambda top: -top[1]):
        if not np.isfinite(value) or value < highest - NEGLIGIBLE or is_known(point, value):
            continue
        mode = climber.mode_at(point, value)
        if mode is not None and len(modes) < most and not is_known(mode.point, mode.log_joint):
            modes.append(mode)
            visits.append(1)
            highest = max(highest, mode.log_joint)
    order = sorted(range(len(modes)), key=lambda i: -modes[i].log_mass)
    return [modes[i] for i in order], [visits[i] for i in order]


def hills_of(modes: list[Mode], dof: float) -> Warped:
    """A hill at every mode that holds a part of the mass, by their masses."""
    top = modes[0].log_mass
    parts: list[tuple[float, Hills]] = [
        (float(np.exp(max(m.log_mass - top, -6.0))), one_hill(m.point, np.asarray(m.warp.factor), dof))
        for m in modes
        if m.log_mass > top - RIVAL
    ]
    return Warped(identity(len(modes[0].point)), joined(parts))
