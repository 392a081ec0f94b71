r"""Truths of eccentric planets: a random dictionary of orbits, drawn from a density fitted to chains of our own.

An orbit is $(f, \sqrt e \cos M, \sqrt e \sin M)$ with the mean anomaly M in the middle of the data; A, B and gamma by algebra.
Each run has a dictionary of its own, so that what runs differ by is the error.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import beta, chi2, multivariate_t, norm, qmc

from benchmarks.counts.walks import Linear, Proposals, gibbs, pooled, some_sets, tilts, until, walks
from benchmarks.sky.signals import kepler
from benchmarks.sky.truths import linear, student_mixture

NU = 5


class Orbit:
    """Data and priors: A, B ~ N(0, spread), gamma ~ N(0, base_sd), ln f uniform in the window, e ~ Beta, M uniform."""

    def __init__(self, t, y, sd, spread, base_sd, window, eccentric, most: int):
        self.t, self.y, self.sd, self.spread, self.base_sd = t - t.mean(), y, sd, spread, base_sd
        self.low, self.high = window
        self.eccentric, self.most, self.span = eccentric, most, np.ptp(t)

    def columns(self, orbits):
        """Of orbits (..., 3) the two columns (..., n, 2)."""
        f, x, y = np.moveaxis(orbits[..., None], -2, 0)
        e = np.minimum(x**2 + y**2, 1 - 1e-9)
        cos_nu, sin_nu = kepler(2 * np.pi * f * self.t + np.arctan2(y, x), e, np)
        return np.stack([cos_nu + e, -sin_nu], axis=-1)

    def log_shape(self, orbits):
        r"""ln of the prior of the last two: $de\,dM = 2\,dx\,dy$."""
        e = np.sum(orbits[..., 1:] ** 2, axis=-1)
        return np.where(e < 1, beta.logpdf(np.minimum(e, 1 - 1e-9), *self.eccentric) - np.log(np.pi), -np.inf)

    def log_prior(self, orbits):
        f = orbits[..., 0]
        inside = (f > self.low) & (f < self.high)
        of_f = -np.log(np.where(inside, f, 1.0) * np.log(self.high / self.low))
        return np.where(inside, of_f, -np.inf) + self.log_shape(orbits)

    def scorer(self, orbits) -> Linear:
        base = np.ones((len(self.t), 1))
        return Linear(self.y, self.sd, base, self.base_sd, self.columns(orbits), self.spread)

    def shapes(self, u):
        r = np.sqrt(beta.ppf(u[:, 0], *self.eccentric))
        return r * np.cos(2 * np.pi * u[:, 1]), r * np.sin(2 * np.pi * u[:, 1])

    def polish(self, orbits, rng, turns: int):
        """Metropolis chains from sets of orbits (chains, k, 3), their likelihood with A, B and gamma integrated."""
        chains, k, n = *orbits.shape[:2], len(self.t)
        columns, kept, orbits = self.columns(orbits), [], orbits.copy()

        def value(columns):
            parts = np.moveaxis(columns, 1, 2).reshape(chains, n, 2 * k)
            design = np.concatenate([parts, np.ones((chains, n, 1))], axis=-1)
            return linear(design, self.y, self.sd, [self.spread] * (2 * k) + [self.base_sd])

        like = value(columns)
        for turn in range(turns * k):
            i, kind = rng.integers(k), rng.integers(4)
            new, at = orbits.copy(), columns.copy()
            step = rng.normal(size=(chains, 3)) * 10 ** rng.uniform(-2.5, 0, (chains, 1)) * [0.5 / self.span, 0.7, 0.7]
            if kind < 3:
                new[:, i] += step * ([1, 1, 1], [1, 0, 0], [0, 1, 1])[kind]
            else:
                new[:, i, 1:] = np.transpose(self.shapes(rng.random((chains, 2))))
            at[:, i] = self.columns(new[:, i])
            change = self.log_prior(new[:, i]) - self.log_prior(orbits[:, i])
            new_like = value(at)
            go = np.log(rng.random(chains)) < new_like - like + (change if kind < 3 else 0.0)
            orbits[go], columns[go], like[go] = new[go], at[go], new_like[go]
            if turn > turns * k // 3 and turn % (2 * k) == 0:
                kept.append(orbits.copy())
        return np.concatenate(kept)

    def density(self, found, rng):
        """Parts of a mixture for one orbit, fitted to sets of orbits: (share, frequency, its sd), (share, mean, factor)."""
        pool = np.concatenate([s.reshape(-1, 3)[rng.choice(s.shape[0] * s.shape[1], 1500)] for s in found])
        pool = pool[np.argsort(pool[:, 0])]
        groups = np.split(pool, 1 + np.flatnonzero(np.diff(pool[:, 0]) > 0.25 / self.span))
        bumps, students = [], []
        for group in groups:
            if len(group) > 0.01 * len(pool):
                share = np.sqrt(len(group))
                bumps.append((share, group[:, 0].mean(), max(group[:, 0].std(), 0.2 / self.span)))
                weights, means, factors = student_mixture(group, rng, int(np.clip(len(group) // 100, 1, 6)))
                students += [(share * w, m, f) for w, m, f in zip(weights, means, factors, strict=True)]
        return bumps, students

    def dictionary(self, parts, rng, points: int):
        """Orbits from a quarter prior and, of the rest, the fitted parts; ln of their weights."""
        bumps, students = parts
        total = sum(share for share, *_ in bumps) or 1.0
        made, log_g = [], []

        def some(share, d):
            return qmc.Halton(d, rng=rng).random(max(1, round(share * points)))

        u = some(0.2, 3)
        made.append(np.stack([self.low * (self.high / self.low) ** u[:, 0], *self.shapes(u[:, 1:])], axis=1))
        u = some(0.15, 3)
        made.append(np.stack([self.low + (self.high - self.low) * u[:, 0], *self.shapes(u[:, 1:])], axis=1))
        for share, at, width in bumps:
            u = some(0.2 * share / total, 3)
            made.append(np.stack([at + width * norm.ppf(u[:, 0]), *self.shapes(u[:, 1:])], axis=1))
        for share, mean, factor in students:
            u = some(0.45 * share / total, 4)
            spread = np.sqrt(NU / chi2.ppf(u[:, 3], NU))[:, None]
            made.append(mean + spread * (norm.ppf(u[:, :3]) @ factor.T))
        counts = np.log([len(part) for part in made])
        orbits = np.concatenate(made)
        orbits = orbits[np.isfinite(self.log_prior(orbits))]
        shape, f = self.log_shape(orbits), orbits[:, 0]
        log_g = [self.log_prior(orbits), shape - np.log(self.high - self.low)]
        log_g += [shape + norm.logpdf(f, at, width) for _, at, width in bumps]
        log_g += [multivariate_t.logpdf(orbits, mean, factor @ factor.T, NU) for _, mean, factor in students]
        log_u = self.log_prior(orbits) - logsumexp(np.array(log_g) + counts[:, None], axis=0)
        return orbits, log_u

    def proposals(self, orbits, log_u, found) -> Proposals:
        where = [s[..., 0] for s in found[1:]]
        fine, wide = (tilts(orbits[:, 0], where, width / self.span) for width in (0.04, 0.15))
        return Proposals(log_u, self.most, [np.logaddexp(a, b) for a, b in zip(fine, wide, strict=True)])

    def search(self, rng, rounds: int = 3):
        """Sets of orbits for each number from 1: walks over a dictionary, draws given the others, chains; and again."""
        centres = np.arange(self.low + 0.04 / self.span, self.high, 0.1 / self.span)
        f = np.repeat(centres, 3)
        orbits = np.stack([f, *self.shapes(rng.random((len(f), 2)))], axis=1)
        log_u = -np.log(f * np.log(self.high / self.low)) + np.log(0.1 / self.span / 3)
        by, found = Proposals(log_u, self.most), []
        for turn in range(rounds):
            if turn:
                orbits, log_u = self.dictionary(self.density(found, rng), rng, 4000)
                by = self.proposals(orbits, log_u, found)
            scorer = self.scorer(orbits)
            sets, logs = walks(scorer, by, rng, self.most, 80)
            found = []
            for k in range(1, self.most + 1):
                start = some_sets(sets, logs, k, 6, rng)
                ready = orbits[gibbs(scorer, log_u, start, rng, 15)]
                found.append(self.polish(ready[rng.choice(len(ready), 60)], rng, 60))
        return found

    def log_evidences(self, seed: int = 0, count: int = 100, points: int = 6000) -> dict[int, tuple[float, float]]:
        """{k: (ln Z, its error)}."""
        rng = np.random.default_rng([903, seed])

        def search():
            found = self.search(rng)
            parts = self.density(found, rng)

            def run():
                orbits, log_u = self.dictionary(parts, rng, points)
                by = self.proposals(orbits, log_u, found)
                return pooled(walks(self.scorer(orbits), by, rng, self.most, count)[1])

            return run

        return until(search, enough=0.06, most=72)
