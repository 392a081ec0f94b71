r"""Truths of sinusoids and circular planets: a dictionary of frequencies, dense where some component may be."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from benchmarks.counts.walks import Linear, Proposals, gibbs, pooled, some_sets, tilts, until, walks


class Wave:
    r"""Data and priors of $y = c + \sum a_i \cos 2\pi f_i t + b_i \sin 2\pi f_i t$; the prior of f is uniform, or of ln f."""

    def __init__(self, t, y, sd, spread, base_sd, window, in_log: bool, most: int):
        self.t, self.y, self.sd, self.spread, self.base_sd = t, y, sd, spread, base_sd
        self.low, self.high = window
        self.in_log, self.most, self.span = in_log, most, np.ptp(t)

    def log_prior(self, f):
        per_f = np.log(self.high / self.low) * f if self.in_log else self.high - self.low + 0 * f
        return -np.log(per_f)

    def prior_cdf(self, f):
        if self.in_log:
            return np.log(f / self.low) / np.log(self.high / self.low)
        return (f - self.low) / (self.high - self.low)

    def scorer(self, f) -> Linear:
        phase = 2 * np.pi * self.t * f[:, None]
        design = np.stack([np.cos(phase), np.sin(phase)], axis=-1)
        return Linear(self.y, self.sd, np.ones((len(self.t), 1)), self.base_sd, design, self.spread)

    def search(self, rng, count: int = 100):
        """For each number of components from 1 frequencies of sets as its posterior has them: on a coarse grid, then on a fine."""
        f = np.arange(self.low + 0.04 / self.span, self.high, 0.08 / self.span)
        scorer, log_u = self.scorer(f), self.log_prior(f)
        sets, logs = walks(scorer, Proposals(log_u, self.most), rng, self.most, count)
        starts = [some_sets(sets, logs, k, 8, rng) for k in range(1, self.most + 1)]
        found = [f[gibbs(scorer, log_u, start, rng, 20)] for start in starts]
        fine, log_u = self.dictionary(self.peaks(found), rng, 3000)
        starts = [np.searchsorted(fine, rng.choice(at, 12)).clip(0, len(fine) - 1) for at in found]
        scorer = self.scorer(fine)
        return [fine[gibbs(scorer, log_u, start, rng, 30)] for start in starts]

    def peaks(self, found) -> np.ndarray:
        """The centres of bins of half a resolution that a component may be in, for some number of them."""
        centres: set[float] = set()
        for at in found:
            where, count = np.unique(np.round(at * 2 * self.span), return_counts=True)
            centres |= set(where[count > 0.02 * len(at)])
        return np.array(sorted(centres)) / (2 * self.span)

    def dictionary(self, peaks, rng, points: int):
        """Frequencies, half of them about the peaks, and ln of their weights."""
        edges = np.linspace(self.low, self.high, 200_001)
        width = 0.5 / self.span
        plain = 1 / (self.high - self.low)
        share = 0.5 if len(peaks) else 0.0
        mass = [np.diff(norm.cdf([self.low, self.high], c, width))[0] for c in peaks]

        def mixed(of_bump, of_plain, f):
            bumps = sum((of_bump(f, c, width) / m for c, m in zip(peaks, mass, strict=True)), 0.0) / max(1, len(peaks))
            return (1 - share) * of_plain + share * bumps

        total = mixed(norm.cdf, 0.5 * (self.prior_cdf(edges) + (edges - self.low) * plain), edges)
        total = (total - total[0]) / (total[-1] - total[0])
        f = np.interp((np.arange(points) + rng.random()) / points, total, edges)
        base = 0.5 * (np.exp(self.log_prior(f)) + plain)
        log_u = self.log_prior(f) - np.log(mixed(norm.pdf, base, f) * points)
        return f, log_u

    def run(self, found, rng, count: int, points: int):
        """ln Z and errors, with a dictionary of its own whose points are shifted at random."""
        f, log_u = self.dictionary(self.peaks(found), rng, points)
        fine, wide = (tilts(f, found[1:], width / self.span) for width in (0.03, 0.15))
        by = Proposals(log_u, self.most, [np.logaddexp(a, b) for a, b in zip(fine, wide, strict=True)])
        return pooled(walks(self.scorer(f), by, rng, self.most, count)[1])

    def log_evidences(self, seed: int = 0, count: int = 250, points: int = 3000):
        """{k: (ln Z, its error)}."""
        rng = np.random.default_rng([901, seed])

        def search():
            found = self.search(rng)
            return lambda: self.run(found, rng, count, points)

        return until(search)
