r"""Two components in the place of one: close pairs, which hold most of the evidence of a number larger than needed.

Two waves that beat too slowly to be seen share the amplitude of one in any way they like, the wider the closer they are. Let
$s \mp \delta/2$ be the places of the pair along the one coordinate in which ln J turns, and t all else. About the place of a
component that is known, cells c of $(s, \delta)$, even in s and nearly even in $\ln \delta$, are parted into quarters where they
hold mass. In each of them all else climbs to $\hat t_c$, and the curvature there tells a covariance $C_c$, and how t goes with the
places, by slopes $G_c$. The density is

$h(s, \delta, t) = \sum_c w_c\, U_c(s, \delta)\, t_\nu(t; \hat t_c + G_c (s - s_c, \delta - \delta_c), C_c), \quad
w_c \propto J_c\, |C_c|^{1/2}\, |c|$
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from supermodel.embedding.reference import log_bell, stretches
from supermodel.engine.explore.climb import Climber, Climbs
from supermodel.engine.explore.profile import curved
from supermodel.engine.policy import (
    DOF,
    PAIR_CELLS,
    PAIR_DEPTH,
    PAIR_HALVINGS,
    PAIR_OCTAVES,
    PAIR_REACH,
    PROFILE_EVEN,
    PROFILE_STEPS,
    WIDER,
)  # fmt: skip


class Pairs(NamedTuple):
    """Cells of the middle and the distance of two places, each with a hill in all else that leans with the places."""

    axes: np.ndarray  # (2,): the coordinates of the places, the lower one first
    corner: np.ndarray  # (): the least middle
    reach: np.ndarray  # (): the greatest distance, and the range of middles
    cell: np.ndarray  # (M, M): which cell holds each of the smallest, by middle and distance; -1: none
    low: np.ndarray  # (N, 2): middle, and distance
    high: np.ndarray  # (N, 2)
    log_weights: np.ndarray  # (N,)
    tops: np.ndarray  # (N, q)
    slopes: np.ndarray  # (N, q, 2), in the places
    factors: np.ndarray  # (N, q, q), lower triangular
    log_mass: np.ndarray  # (): of all, roughly

    @property
    def _others(self) -> np.ndarray:
        return np.delete(np.arange(self.tops.shape[1] + 2), self.axes)

    def _centres(self, cells: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Where all else is expected, of places in these cells."""
        middle = places_of(0.5 * (self.low[cells] + self.high[cells]))
        return self.tops[cells] + np.einsum("nij,nj->ni", self.slopes[cells], places - middle)

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        cells, q = rng.choice(len(self.log_weights), n, p=np.exp(self.log_weights)), self.tops.shape[1]
        x = np.empty((n, q + 2))
        x[:, self.axes] = places = places_of(rng.uniform(self.low[cells], self.high[cells]))
        step = np.einsum("nij,nj->ni", self.factors[cells], rng.standard_normal((n, q)))
        x[:, self._others] = self._centres(cells, places) + stretches(rng, DOF, (n,))[:, None] * step
        return x

    def log_density(self, x: np.ndarray) -> np.ndarray:
        places, size, result = x[:, self.axes], len(self.cell), np.full(len(x), -np.inf)
        part = np.stack([(places.mean(axis=1) - self.corner) / self.reach, octave(np.diff(places)[:, 0] / self.reach)], axis=1)
        near = np.flatnonzero(np.all((part >= 0) & (part < 1), axis=1))
        cells = self.cell[tuple((part[near] * size).astype(int).T)]
        near, cells = near[cells >= 0], cells[cells >= 0]
        inverses = np.linalg.inv(self.factors)
        z = np.einsum("nij,nj->ni", inverses[cells], x[near][:, self._others] - self._centres(cells, places[near]))
        log_det = np.log(np.abs(np.diagonal(inverses, axis1=1, axis2=2))).sum(-1)
        area = np.log(np.prod(self.high - self.low, axis=1))
        bell = log_bell(np, np.sum(z * z, axis=1), z.shape[1], DOF)
        result[near] = (self.log_weights - area + log_det)[cells] + bell
        return result


def shares_of(pairs: Sequence[Pairs]) -> np.ndarray:
    """Of draws: half of them evenly, half by what each is thought to hold."""
    mass = np.array([float(pair.log_mass) for pair in pairs])
    share = np.exp(mass - mass.max(initial=-np.inf))
    return 0.5 / max(len(pairs), 1) + 0.5 * share / share.sum()


def places_of(pair: np.ndarray) -> np.ndarray:
    """Both places by their middle and their distance."""
    return pair[:, :1] + pair[:, 1:] * np.array([-0.5, 0.5])


def octave(distance: np.ndarray) -> np.ndarray:
    r"""$\log_2 (1 + (2^m - 1) \delta) / m$, from 0 to 1: even in the logarithm, but for the last of m octaves."""
    with np.errstate(invalid="ignore"):
        return np.log2(1 + (2**PAIR_OCTAVES - 1) * distance) / PAIR_OCTAVES


def pairs_at(climber: Climber, starts: np.ndarray, axes: Sequence[int], place: float, width: float) -> Pairs | None:
    """The density of pairs about one place, known to `width`; None where no cell holds mass.

    `starts`: (tries, d), points from which all else may climb, of which the one that comes highest counts.
    """
    axes, d, reach = np.asarray(axes), starts.shape[1], 2 * PAIR_REACH * width
    held = np.zeros(d, bool)
    held[axes] = True
    climber, others, corner = climber.holding(held), np.flatnonzero(~held), place - 0.5 * reach
    rows = np.stack(np.meshgrid(*2 * [np.arange(PAIR_CELLS)], indexing="ij"), axis=-1).reshape(-1, 2)
    starts, done = np.repeat(starts[:, None], len(rows), axis=1), []
    for size in PAIR_CELLS * 2 ** np.arange(PAIR_HALVINGS + 1):
        low, high = (bounds(rows + k, size, corner, reach) for k in (0, 1))
        starts[..., axes] = places_of(0.5 * (low + high))
        climbs = Climbs.begun(climber, starts.reshape(-1, d))
        climbs.go(PROFILE_STEPS)
        climbs = climbs.kept(np.argmax(climbs.value.reshape(len(starts), -1), axis=0) * len(rows) + np.arange(len(rows)))
        tops, factors, slopes, rise = curved(climbs, others, axes)
        area = np.log(np.prod(high - low, axis=1))
        log_mass = climbs.value + rise + area + np.log(np.abs(np.diagonal(factors, axis1=1, axis2=2))).sum(-1)
        log_mass = np.where(np.isfinite(log_mass), log_mass, -np.inf)
        parted = np.zeros(len(rows), bool)
        if size < PAIR_CELLS * 2**PAIR_HALVINGS:
            parted = log_mass > max(log_mass.max(), *(part[3].max(initial=-np.inf) for part in done), -np.inf) - PAIR_DEPTH
        whole = ~parted
        done.append(tuple(part[whole] for part in (rows, low, high, log_mass, tops, slopes, factors)) + (size,))
        if not parted.any():
            break
        rows = (2 * rows[parted][:, None] + np.array([[0, 0], [0, 1], [1, 0], [1, 1]])).reshape(-1, 2)
        starts = np.repeat(climbs.x[parted], 4, axis=0)[None]
    return _joined(done, axes, corner, reach)


def bounds(rows: np.ndarray, size: int, corner: float, reach: float) -> np.ndarray:
    """The lower ends, in middle and distance, of cells in a table of this size."""
    part = rows / size
    distance = (2 ** (PAIR_OCTAVES * part[:, 1]) - 1) / (2**PAIR_OCTAVES - 1)
    return np.stack([corner + reach * part[:, 0], reach * distance], axis=1)


def _joined(done: list, axes: np.ndarray, corner: float, reach: float) -> Pairs | None:
    """All cells as one density."""
    low, high, log_mass, tops, slopes, factors = (np.concatenate([part[k] for part in done]) for k in range(1, 7))
    if not len(log_mass) or not np.isfinite(log_mass.max()):
        return None
    finest = done[-1][-1]
    cell, number = np.full((finest, finest), -1), 0
    for part in done:
        by = finest // part[-1]
        for a, b in by * part[0]:
            cell[a : a + by, b : b + by] = number
            number += 1
    share, area = np.exp(log_mass - log_mass.max()), np.prod(high - low, axis=1)
    share = (1 - PROFILE_EVEN) * share / share.sum() + PROFILE_EVEN * area / area.sum()
    with np.errstate(divide="ignore"):
        rough = np.logaddexp.reduce(log_mass)
        return Pairs(axes, np.array(corner), np.array(reach), cell, low, high, np.log(share), tops, slopes, WIDER * factors, rough)
