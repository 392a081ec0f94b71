r"""Truths of lines in counts: walks over a grid of places and strengths, each walk with a background of its own."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import t as student

from benchmarks.counts.walks import Counts, Proposals, gibbs, pooled, some_sets, tilts, until, walks
from benchmarks.sky.truths import LOG_2PI


class Spectrum:
    r"""Counts in bins x, $\mu = e^b h(x) + \sum A_i N(x; c_i, w)$, b normal, c uniform over the bins, ln A uniform."""

    def __init__(self, y, x, shape, width: float, background, strengths, most: int):
        self.y, self.x, self.shape, self.width, self.most = y, x, shape, width, most
        self.centre, self.spread = background
        self.limits = np.log(strengths)

    def dictionary(self, rng, fine: float = 1.0):
        """Places, and the scorer, of a grid that is shifted at random in place; ln of the weight of each entry."""
        n, (low, high) = len(self.x), self.limits
        places, sizes = int(420 * fine), int(32 * fine) + int(rng.integers(-3, 4))
        c = (np.arange(places) + rng.random()) * n / places
        # Midpoints, since the weakest may be the likeliest.
        log_a = low + (np.arange(sizes) + 0.5) * (high - low) / sizes
        near = int(np.ceil(11 * self.width)) + 1
        first = np.clip(np.round(c - near / 2).astype(int), 0, n - near)
        bins = self.x[first[:, None] + np.arange(near)]
        unit = np.exp(-0.5 * ((bins - c[:, None]) / self.width) ** 2) / (self.width * np.sqrt(2 * np.pi))
        lines = (np.exp(log_a)[None, :, None] * unit[:, None, :]).reshape(-1, near)
        return (
            np.repeat(c, sizes),
            Counts(self.y, lines, np.repeat(first, sizes)),
            np.full(len(lines), -np.log(len(lines))),
        )

    def prior(self, b):
        return -0.5 * ((b - self.centre) / self.spread) ** 2 - np.log(self.spread) - 0.5 * LOG_2PI

    def search(self, rng, each: int = 3):
        """For each number the mean and sd of b, and places of lines as their posterior has them."""
        total = np.log(self.y.sum() / self.shape.sum())
        levels = np.arange(total - 0.8, total + 0.25, 0.04)
        places, scorer, log_u = self.dictionary(rng, 0.6)
        by = Proposals(log_u, self.most)
        logs, sets = [], []
        for b in levels:
            scorer.begin(np.exp(b) * self.shape)
            s, w = walks(scorer, by, rng, self.most, each)
            sets.append(s)
            logs.append(w)
        values = np.array([logsumexp(w, axis=0) for w in logs]) + self.prior(levels)[:, None]
        p = np.exp(values - logsumexp(values, axis=0))
        mean = levels @ p
        sd = np.sqrt(((levels[:, None] - mean) ** 2 * p).sum(axis=0) + 0.02**2)
        found = []
        for k in range(2, self.most + 1):
            at = []
            for i in rng.choice(len(levels), 6, p=p[:, k]):
                scorer.begin(np.exp(levels[i]) * self.shape)
                at.append(places[gibbs(scorer, log_u, some_sets(sets[i], logs[i], k, 1, rng), rng, 15)])
            found.append(np.concatenate(at))
        return mean, sd, found

    def run(self, mean, sd, found, rng, count: int):
        """ln Z and errors: b is drawn from a mixture of Student's t, one for each number, in strata."""
        places, scorer, log_u = self.dictionary(rng)
        by = Proposals(log_u, self.most, tilts(places, found, 0.4))
        which = rng.permutation(np.arange(count) % len(mean))
        b = mean[which] + 1.3 * sd[which] * student.ppf((rng.permutation(count) + rng.random(count)) / count, 5)
        q = logsumexp(student.logpdf(b[:, None], 5, mean, 1.3 * sd), axis=1) - np.log(len(mean))
        logs = []
        for value, back in zip(b, self.prior(b) - q, strict=True):
            scorer.begin(np.exp(value) * self.shape)
            logs.append(walks(scorer, by, rng, self.most, 1)[1][0] + back)
        values, errors = pooled(np.array(logs))
        for k in (0, 1):  # sums over b
            grid = mean[k] + sd[k] * np.linspace(-7, 7, 71)
            terms = []
            for value in grid:
                alone = scorer.begin(np.exp(value) * self.shape)
                terms.append(logsumexp(scorer.scores([]) + log_u) if k else alone)
            values[k] = logsumexp(np.array(terms) + self.prior(grid)) + np.log(grid[1] - grid[0])
            errors[k] = 0.0
        return values, errors

    def log_evidences(self, seed: int = 0, count: int = 100) -> dict[int, tuple[float, float]]:
        """{k: (ln Z, its error)}."""
        rng = np.random.default_rng([904, seed])

        def search():
            known = self.search(rng)
            return lambda: self.run(*known, rng, count)

        return until(search, enough=0.06)
