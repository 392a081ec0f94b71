r"""Truths of sinusoids and circular planets: a dictionary of frequencies, dense where some component may be."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from benchmarks.counts.walks import Linear, Proposals, pooled, some_sets, tilts, until, walks


class Wave:
    """Data and priors of $y = c + \\sum a_i \\cos 2\\pi f_i t + b_i \\sin 2\\pi f_i t$; the prior of f is uniform, or of ln f."""

    def __init__(self, t, y, sd, spread, base_sd, window, in_log: bool, most: int):
        self.t, self.y, self.sd, self.spread, self.base_sd = t, y, sd, spread, base_sd
        self.low, self.high = window
        self.in_log, self.most, self.span = in_log, most, np.ptp(t)

    def log_prior(self, f):
        return -np.log(f * np.log(self.high / self.low)) if self.in_log else np.full(len(f), -np.log(self.high - self.low))

    def scorer(self, f) -> Linear:
        phase = 2 * np.pi * self.t * f[:, None]
        design = np.stack([np.cos(phase), np.sin(phase)], axis=-1)
        return Linear(self.y, self.sd, np.ones((len(self.t), 1)), self.base_sd, design, self.spread)

    def search(self, rng, count: int = 80):
        """Frequencies where a component may be, and those of sets with their weights."""
        f = np.arange(self.low + 0.04 / self.span, self.high, 0.08 / self.span)
        sets, logs = walks(self.scorer(f), Proposals(self.log_prior(f)), rng, self.most, count)
        return self.peaks(f[sets], logs, rng), f[sets], logs

    def peaks(self, at, logs, rng) -> np.ndarray:
        """The centres of bins of half a resolution that a component may be in, for some number of them."""
        centres: set[float] = set()
        for k in range(1, self.most + 1):
            bins = np.round(some_sets(at, logs, k, 200, rng).ravel() * 2 * self.span)
            where, count = np.unique(bins, return_counts=True)
            centres |= set(where[count > 0.02 * 200])
        return np.array(sorted(centres)) / (2 * self.span)

    def run(self, peaks, at, logs, rng, count: int, points: int):
        """Frequencies of sets and ln weights, with a dictionary of its own whose points are shifted at random."""
        edges = np.linspace(self.low, self.high, 200_001)
        width = 0.5 / self.span
        plain = 1 / (self.high - self.low)
        share = 0.5 if len(peaks) else 0.0
        mass = [np.diff(norm.cdf([self.low, self.high], c, width))[0] for c in peaks]

        def mixed(of_bump, of_plain, f):
            bumps = sum((of_bump(f, c, width) / m for c, m in zip(peaks, mass, strict=True)), 0.0) / max(1, len(peaks))
            return (1 - share) * of_plain + share * bumps

        total = mixed(norm.cdf, (edges - self.low) * plain, edges)
        total = (total - total[0]) / (total[-1] - total[0])
        f = np.interp((np.arange(points) + rng.random()) / points, total, edges)
        log_u = self.log_prior(f) - np.log(mixed(norm.pdf, plain, f) * points)
        by = Proposals(log_u, tilts(f, at, logs, 0.15 / self.span))
        sets, logs = walks(self.scorer(f), by, rng, self.most, count)
        return f[sets], logs

    def log_evidences(self, seed: int = 0, count: int = 200, points: int = 3000):
        """{k: (ln Z, its error)}."""
        rng = np.random.default_rng([901, seed])
        peaks, at, logs = self.search(rng)
        at, logs = self.run(peaks, at, logs, rng, count, points)
        peaks = np.union1d(peaks, self.peaks(at, logs, rng))
        return until(lambda: pooled(self.run(peaks, at, logs, rng, count, points)[1]))
