r"""$Z_0 \ldots Z_K$ of sums of like components by sequential importance sampling over a dictionary of components.

The dictionary holds components $\theta_j$ with weights $u_j$, so that $\int \pi(\theta) f(\theta) d\theta \approx \sum_j u_j f_j$.
A walk adds one component after another, $q(j | S) = u_j m_j L(S + j)^\tau / N(S)$; m is a tilt to where components were found
before. A set can be reached in every order, and its weight takes all of them:
$Z_k = \langle k! \prod u L(S) / Q(S) \rangle$, $Q(S) = \sum_{j \in S} Q(S - j) q(j | S - j)$, averaged over the ways $(\tau, m)$,
which may depend on the number of components that there are. So nothing is lost where a walk finds the weaker component first.
"""

from __future__ import annotations

from math import lgamma
from typing import Protocol

import numpy as np
from scipy.special import logsumexp

from benchmarks.sky.truths import LOG_2PI

PLAIN = ((1.0, 0.25), (0.5, 0.1), (0.2, 0.1))  # (tau, its share of the walks)
# tau while tilted, by the number of components that there are
EARLY = ((0.0, 0.0, 0.0), (0.0, 0.05, 0.1), (0.1, 0.3, 0.5))


class Scorer(Protocol):
    """What a walk asks of a likelihood."""

    def begin(self) -> float: ...  # ln L without components

    def add(self, j: int, place: int | None = None) -> None: ...  # entry j of the dictionary joins, or takes a place

    def scores(self, members: list[int]) -> np.ndarray: ...  # ln L of these (by their places) and any one


class Linear:
    r"""ln L with all linear parameters integrated: $y \sim N(0, s^2 + X S^2 X^T)$, two columns of X per component."""

    def __init__(self, y, sd, base, base_sd, design, spread):
        n = len(y)
        self.y, self.base = y / sd, base * base_sd / sd[:, None]
        self.columns = design * spread / sd[:, None]  # (dictionary, n, 2)
        # All first columns, then all second.
        self.flat = np.ascontiguousarray(self.columns.transpose(1, 2, 0).reshape(n, -1))
        a, b = np.split(self.flat, 2, axis=1)
        self.own = np.stack([1 + np.sum(a * a, 0), np.sum(a * b, 0), 1 + np.sum(b * b, 0)])
        self.image = self.y @ self.flat
        self.rows0 = self.base.T @ self.flat
        self.alone = -0.5 * self.y @ self.y - np.sum(np.log(sd)) - 0.5 * n * LOG_2PI

    def begin(self) -> float:
        self.parts, self.rows = [self.base], [self.rows0]
        return self._given([])[2]

    def add(self, j: int, place: int | None = None) -> None:
        if place is None:
            place = len(self.parts) - 1
            self.parts.append(self.base)
            self.rows.append(self.rows0)
        self.parts[place + 1], self.rows[place + 1] = self.columns[j], self.columns[j].T @ self.flat

    def _given(self, members):
        x = np.concatenate([self.parts[0], *(self.parts[i + 1] for i in members)], axis=1)
        factor = np.linalg.inv(np.linalg.cholesky(np.eye(x.shape[1]) + x.T @ x))
        b = factor @ (x.T @ self.y)
        return factor, b, self.alone + 0.5 * b @ b + np.sum(np.log(np.diag(factor)))

    def scores(self, members: list[int]) -> np.ndarray:
        factor, b, value = self._given(members)
        g = factor @ np.concatenate([self.rows[0], *(self.rows[i + 1] for i in members)])
        (a1, a2), (b1, b2) = np.split(g, 2, axis=1), np.split(self.image - b @ g, 2)
        k11 = self.own[0] - np.einsum("ij,ij->j", a1, a1)
        k12 = self.own[1] - np.einsum("ij,ij->j", a1, a2)
        k22 = self.own[2] - np.einsum("ij,ij->j", a2, a2)
        det = k11 * k22 - k12**2
        return value + 0.5 * (k22 * b1**2 - 2 * k12 * b1 * b2 + k11 * b2**2) / det - 0.5 * np.log(det)


class Counts:
    r"""ln L of Poisson counts about a background and lines, each of which is felt in the bins near it only."""

    def __init__(self, y, lines, first):
        """`lines` are the rates (dictionary, bins near) from the bin `first` on."""
        self.y, self.lines, self.first, width = y, lines, first, lines.shape[1]
        self.near = first[:, None] + np.arange(width)
        self.total, self.y_near = lines.sum(axis=1), y[self.near]
        self.rest = -np.sum([lgamma(c + 1) for c in y])

    def begin(self, background=None) -> float:
        self.background, self.added = self.background if background is None else background, []
        return self._value(self.background)

    def add(self, j: int, place: int | None = None) -> None:
        if place is None:
            place = len(self.added)
            self.added.append(self.background)
        self.added[place] = np.zeros(len(self.y))
        self.added[place][self.near[j]] = self.lines[j]

    def _value(self, rate):
        return self.y @ np.log(rate) - rate.sum() + self.rest

    def scores(self, members: list[int]) -> np.ndarray:
        rate = sum((self.added[i] for i in members), self.background)
        logs = np.log(self.lines + rate[self.near])
        before = np.concatenate([[0.0], np.cumsum(self.y * np.log(rate))])
        gain = np.einsum("ij,ij->i", self.y_near, logs) - (
            before[self.first + self.lines.shape[1]] - before[self.first]
        )
        return self._value(rate) + gain - self.total


class Proposals:
    """Ways to draw the next component: tempered, and tilted to where the components of k are, until the last of these k."""

    def __init__(self, log_u, most: int, tilts=()):
        kinds = [(share, np.full(most, tau), [log_u] * most) for tau, share in PLAIN]
        for k, tilt in enumerate(tilts, start=most + 1 - len(tilts)):
            for early in EARLY:
                taus = np.array([early[s] if s < k - 1 else 1.0 for s in range(most)])
                kinds.append((0.2 / len(tilts), taus, [log_u + tilt if s < k - 1 else log_u for s in range(most)]))
        shares, taus, fields = (np.array(part) for part in zip(*kinds, strict=True))
        self.log_u, self.shares = log_u, shares / shares.sum()
        self.taus, self.fields = taus.T, np.ascontiguousarray(fields.swapaxes(0, 1))  # by the number that there are


def walk(scorer: Scorer, by: Proposals, rng, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The components of one walk, and ln of the weights by which the first 0, 1, ... most of them estimate Z."""
    mine = int(rng.choice(len(by.shares), p=by.shares))
    value = {0: scorer.begin()}  # ln L of each set, a number whose bits are its members
    reached = {0: np.zeros(len(by.shares))}  # ln Q of each set, by each way
    norms: dict[int, np.ndarray] = {}
    scores: dict[int, np.ndarray] = {}
    found: list[int] = []
    prior = 0.0

    def ask(mask: int) -> None:
        scores[mask] = scorer.scores([i for i in range(most) if mask >> i & 1])
        there = mask.bit_count()
        parts = by.taus[there][:, None] * scores[mask] + by.fields[there]
        top = parts.max(axis=1)
        np.exp(parts - top[:, None], out=parts)
        norms[mask] = np.log(parts.sum(axis=1)) + top
        if len(found) < most and mask == 2 ** len(found) - 1:
            total = np.cumsum(parts[mine])
            found.append(int(np.searchsorted(total, rng.random() * total[-1])))
            scorer.add(found[-1])

    logs = []
    for mask in range(2**most):
        if mask:
            ones = [i for i in range(most) if mask >> i & 1]
            value[mask] = scores[mask ^ (1 << ones[-1])][found[ones[-1]]]
            k = len(ones)
            ways = [reached[mask ^ (1 << i)] - norms[mask ^ (1 << i)] + by.fields[k - 1][:, found[i]] for i in ones]
            reached[mask] = by.taus[k - 1] * value[mask] + logsumexp(ways, axis=0)
        if mask & (mask + 1) == 0:  # the first k of them
            k = mask.bit_length()
            prior += by.log_u[found[k - 1]] if k else 0.0
            logs.append(lgamma(k + 1) + prior + value[mask] - logsumexp(reached[mask] + np.log(by.shares)))
        if mask < 2**most - 1:
            ask(mask)
    return np.array(found), np.array(logs)


def walks(scorer: Scorer, by: Proposals, rng, most: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Sets (count, most) and ln weights (count, most + 1)."""
    found = [walk(scorer, by, rng, most) for _ in range(count)]
    logs = np.array([w for _, w in found])
    scorer.begin()
    logs[:, 1] = logsumexp(scorer.scores([]) + by.log_u)  # of one, the sum itself
    return np.array([s for s, _ in found]), logs


def gibbs(scorer: Scorer, log_u, starts, rng, turns: int) -> np.ndarray:
    """Sets as the posterior of len(starts[0]) components has them: from each start, members are drawn anew given the others."""
    kept = []
    for start in starts:
        members = list(map(int, start))
        scorer.begin()
        for j in members:
            scorer.add(j)
        for turn in range(turns * len(members)):
            i = int(rng.integers(len(members)))
            scores = scorer.scores([m for m in range(len(members)) if m != i]) + log_u
            total = np.cumsum(np.exp(scores - scores.max()))
            members[i] = int(np.searchsorted(total, rng.random() * total[-1]))
            scorer.add(members[i], i)
            if turn >= turns * len(members) // 4:
                kept.append(members.copy())
    return np.array(kept)


def tilts(places, found: list[np.ndarray], width: float, floor: float = 0.01) -> list[np.ndarray]:
    """ln of a factor where components were `found`: their places in sets (many, k), for each k."""
    made = []
    for at in found:
        bins, heights = np.unique(np.round(at / (width / 2)), return_counts=True)
        near = np.exp(-0.5 * ((places[:, None] - bins * width / 2) / width) ** 2)
        made.append(np.log(floor + near @ (heights / len(at))))
    return made


def pooled(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln of the mean of each column of ln weights, and its relative error."""
    top = logs.max(axis=0)
    w = np.exp(logs - top)
    return np.log(w.mean(axis=0)) + top, w.std(axis=0) / w.mean(axis=0) / np.sqrt(len(w))


def repeated(runs: list[tuple[np.ndarray, np.ndarray]]) -> dict[int, tuple[float, float]]:
    """{k: (ln Z, error)} of runs apart: the larger of the errors that they state and the one that they show."""
    values, errors = (np.array(part) for part in zip(*runs, strict=True))
    n = len(values)
    mean = logsumexp(values, axis=0) - np.log(n)
    shown = values.std(axis=0, ddof=1) / np.sqrt(n)
    stated = np.sqrt(np.sum(errors**2, axis=0)) / n
    return {k: (float(mean[k]), float(max(shown[k], stated[k]))) for k in range(len(mean))}


def some_sets(sets, logs, k: int, count: int, rng) -> np.ndarray:
    """Sets of k components (count, k), as their posterior has them."""
    p = np.exp(logs[:, k] - logs[:, k].max())
    return sets[rng.choice(len(sets), count, p=p / p.sum()), :k]


def until(search, enough: float = 0.05, least: int = 4, most: int = 24) -> dict[int, tuple[float, float]]:
    """Runs apart, until they agree; `search()` returns a way to run, and half of the runs follow a second search."""
    ways = [search(), search()]
    runs = [ways[i % 2]() for i in range(least)]
    while max(error for _, error in repeated(runs).values()) > enough and len(runs) < most:
        runs.append(ways[len(runs) % 2]())
    return repeated(runs)
