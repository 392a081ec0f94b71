r"""Truths of normal mixtures: importance sampling from Student mixtures fitted to climbs from the prior; for one a sum.

Clusters stand in the order of their means: $Z = k! \int_{m_1 < \ldots < m_k} \pi L$, draws out of order count as 0.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_t

from benchmarks.counts.walks import repeated
from benchmarks.sky.truths import LOG_2PI, adaptive, student_mixture

NU, SAFE = 5, 0.05


class Clusters:
    r"""k clusters, each (m, ln s, ln g) with $m, \ln s$ normal and $g \sim \mathrm{Gamma}(1)$; points are (many, k, 3)."""

    def __init__(self, y, means, log_widths, k: int):
        self.y, self.k = y, k
        self.centre = np.array([means[0], log_widths[0]])
        self.spread = np.array([means[1], log_widths[1]])

    def draw(self, rng, shape):
        of_two = self.centre + self.spread * rng.normal(size=(*shape, 2))
        return np.concatenate([of_two, np.log(rng.exponential(size=shape))[..., None]], axis=-1)

    def log_prior(self, x):
        z = (x[..., :2] - self.centre) / self.spread
        normals = -0.5 * z**2 - np.log(self.spread) - 0.5 * LOG_2PI
        return np.sum(normals, axis=(-1, -2)) + np.sum(x[..., 2] - np.exp(x[..., 2]), axis=-1)

    def log_like(self, x):
        m, log_s, log_g = np.moveaxis(x, -1, 0)
        front = log_g - logsumexp(log_g, axis=1, keepdims=True) - log_s - 0.5 * LOG_2PI
        turned = np.exp(-log_s)
        scale = np.sqrt(0.5) * turned
        z = self.y * scale[..., None] - (m * scale)[..., None]
        # In floats: the largest term of each datum is not below the smallest number unless ln L is hopeless.
        density = np.einsum("ak,akn->an", np.exp(front), np.exp(-(z**2)))
        return np.sum(np.log(np.maximum(density, 1e-300)), axis=1)

    def climb(self, rng, n: int, moves: int, share: float = 0.75):
        """Points of the posterior in order of their means, and an estimate of ln Z: sequential Monte Carlo from the prior."""
        k = self.k
        x = self.draw(rng, (n, k))
        prior, like = self.log_prior(x), self.log_like(x)
        done, total = 0.0, 0.0
        while done < 1:
            low, high = 0.0, 1 - done

            def kept(step, like=like):
                w = np.exp(step * (like - like.max()))
                return w.sum() ** 2 / np.sum(w**2) / n

            for _ in range(40 if kept(high) < share else 0):
                middle = (low + high) / 2
                low, high = (middle, high) if kept(middle) > share else (low, middle)
            done = min(1.0, done + high)
            total += logsumexp(high * like) - np.log(n)
            w = np.cumsum(np.exp(high * (like - like.max())))
            at = np.searchsorted(w / w[-1], (rng.random() + np.arange(n)) / n).clip(0, n - 1)
            x, prior, like = x[at], prior[at], like[at]
            for move in range(moves * k):
                if move % (2 * k) == 0:  # which label is which is told by one coordinate, now this and now that
                    key = int(rng.integers(3))
                    x = np.take_along_axis(x, np.argsort(x[..., key], axis=1)[..., None], axis=1)
                new, fresh = x.copy(), False
                c, kind = int(rng.integers(k)), rng.random()
                if kind < 0.6:  # by the difference of two others
                    a, b = x[rng.integers(n, size=(2, n))]
                    scale = 10 ** rng.uniform(-1.5, 0.1, (n, 1, 1))
                    some = slice(c, c + 1) if kind < 0.4 else slice(None)
                    new[:, some] += (scale * (a - b))[:, some]
                elif kind < 0.8:
                    new[:, c] += 10 ** rng.uniform(-2, 0, (n, 1)) * rng.normal(size=(n, 3)) * [*self.spread, 1.0]
                else:
                    new[:, c], fresh = self.draw(rng, (n,)), True
                if kind < 0.6:  # the label stays
                    ordered = np.all(np.diff(new[..., key], axis=1) >= 0, axis=1)
                else:  # a move that knows no labels
                    ordered = np.ones(n, bool)
                    new = np.take_along_axis(new, np.argsort(new[..., key], axis=1)[..., None], axis=1)
                new_prior, new_like = self.log_prior(new), self.log_like(new)
                change = done * (new_like - like) + (0.0 if fresh else new_prior - prior)
                go = ordered & (np.log(rng.random(n)) < change)
                x[go], prior[go], like[go] = new[go], new_prior[go], new_like[go]
        return np.take_along_axis(x, np.argsort(x[..., :1], axis=1), axis=1), float(total)

    def importance(self, rng, climbs: int, n: int, moves: int, draws: int) -> tuple[float, float]:
        """(ln Z, its relative error), by a mixture fitted to the points of some climbs, and a little of the prior."""
        k, d = self.k, 3 * self.k
        points, values = zip(*[self.climb(rng, n, moves) for _ in range(climbs)], strict=True)
        w = np.exp(np.array(values) - max(values))
        which = rng.choice(climbs, climbs * n, p=w / w.sum())
        pool = np.array(points)[which, rng.integers(n, size=len(which))].reshape(-1, d)
        weights, means, factors = student_mixture(pool + 1e-6 * rng.normal(size=pool.shape), rng, 6 * k)
        part = rng.choice(len(weights), draws, p=weights)
        spread = np.sqrt(NU / rng.chisquare(NU, draws))[:, None]
        x = means[part] + spread * np.einsum("nij,nj->ni", factors[part], rng.normal(size=(draws, d)))
        x = np.where(rng.random(draws)[:, None] < SAFE, self.draw(rng, (draws, k)).reshape(draws, d), x)
        parts = zip(weights, means, factors, strict=True)
        q = logsumexp([np.log(w) + multivariate_t.logpdf(x, m, f @ f.T, NU) for w, m, f in parts], axis=0)
        x = x.reshape(draws, k, 3)
        ordered = np.all(np.diff(x[..., 0], axis=1) > 0, axis=1)
        prior = self.log_prior(x)
        logs = np.full(draws, -np.inf)
        logs[ordered] = (prior - np.logaddexp(np.log1p(-SAFE) + q, np.log(SAFE) + prior))[ordered]
        for some in np.array_split(np.flatnonzero(ordered), 40):
            logs[some] += self.log_like(x[some])
        w = np.exp(logs - logs.max())
        value = np.log(w.mean()) + logs.max() + gammaln(k + 1)
        return float(value), float(w.std() / w.mean() / np.sqrt(draws))


def log_evidences(y, means, log_widths, most: int, seed: int = 0, runs: int = 3):
    """{k: (ln Z, its error)}: one cluster by adaptive cells, more by importance sampling from climbs apart."""
    one = Clusters(y, means, log_widths, 1)

    def log_f(x):
        point = np.concatenate([x, np.zeros((len(x), 1))], axis=1)[:, None, :]
        return one.log_like(point) + one.log_prior(point) + 1  # without the prior of g

    found = {1: (adaptive(log_f, one.centre - 7 * one.spread, one.centre + 7 * one.spread, [120, 60]), 3e-4)}
    for k in range(2, most + 1):
        rng, clusters = np.random.default_rng([906, seed, k]), Clusters(y, means, log_widths, k)
        made: list[tuple[np.ndarray, np.ndarray]] = []
        while len(made) < runs or (found[k][1] > 0.05 and len(made) < 4 * runs):
            value, error = clusters.importance(rng, 3, 500, 10, 25_000 * k)
            made.append((np.array([value]), np.array([error])))
            if len(made) >= runs:
                found[k] = repeated(made)[0]
    return found
