"""Planets, sinusoids, transits and chirps: needles in frequency and time, with linear amplitudes."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, logsumexp

from benchmarks.fire.problem import Problem, Side, one
from benchmarks.sky.truths import adaptive, gaussian, linear


def _dist():
    import numpyro.distributions as dist

    return dist


def _waves(phase):
    return [np.cos(phase), np.sin(phase)]


def _log_uniform(rng, low, high):
    return np.exp(rng.uniform(np.log(low), np.log(high)))


def planet_circular(seed: int) -> Problem:
    r"""$v = \gamma + A \cos 2\pi t/P + B \sin 2\pi t/P \pm s_i$, ln P uniform over 1..1000 d."""
    rng = np.random.default_rng([101, seed])
    n, span = rng.integers(40, 51), rng.uniform(700, 1100)
    t = np.sort(rng.uniform(0, span, n))
    sd = rng.uniform(0.8, 2.0) * rng.uniform(0.7, 1.4, n)
    period, k, phase = _log_uniform(rng, 2, 500), rng.uniform(1.5, 8.0), rng.uniform(0, 2 * np.pi)
    y = rng.normal(0, 5) + k * np.cos(2 * np.pi * t / period + phase) + sd * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "A": dist.Normal(0, 10), "B": dist.Normal(0, 10), "gamma": dist.Normal(0, 20), "P": dist.LogUniform(1, 1000),
        }  # fmt: skip

    def log_likelihood(p, xp):
        phase = 2 * np.pi * t / p["P"][..., None]
        model = p["gamma"][..., None] + p["A"][..., None] * xp.cos(phase) + p["B"][..., None] * xp.sin(phase)
        return gaussian(y, model, sd, xp)

    def exact(fine=1.0):
        def log_f(f):
            design = np.stack([*_waves(2 * np.pi * t * f), np.ones((len(f), n))], axis=-1)
            return linear(design, y, sd, [10, 10, 20]) - np.log(f[:, 0] * np.log(1000))

        return adaptive(log_f, 1e-3, 1, int(8 * span), fine)

    return one("planet_circular", "needles in the period", priors, log_likelihood, exact)


def planet_strong_jitter(seed: int) -> Problem:
    r"""$v = \gamma + A \cos 2\pi t/P + B \sin 2\pi t/P \pm \sqrt{s_i^2 + j^2}$, a strong planet and ln j uniform."""
    rng = np.random.default_rng([102, seed])
    n, span = rng.integers(40, 51), rng.uniform(600, 900)
    t = np.sort(rng.uniform(0, span, n))
    sd = rng.uniform(0.7, 1.5, n)
    period, k, phase = _log_uniform(rng, 2, 20), rng.uniform(25, 80), rng.uniform(0, 2 * np.pi)
    jitter = _log_uniform(rng, 0.5, 6)
    y = rng.normal(0, 10) + k * np.cos(2 * np.pi * t / period + phase) + np.hypot(sd, jitter) * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "A": dist.Normal(0, 50), "B": dist.Normal(0, 50), "gamma": dist.Normal(0, 50), "P": dist.LogUniform(1, 1000),
            "jitter": dist.LogUniform(0.1, 50),
        }  # fmt: skip

    def log_likelihood(p, xp):
        phase = 2 * np.pi * t / p["P"][..., None]
        model = p["gamma"][..., None] + p["A"][..., None] * xp.cos(phase) + p["B"][..., None] * xp.sin(phase)
        return gaussian(y, model, xp.sqrt(sd**2 + p["jitter"][..., None] ** 2), xp)

    def exact(fine=1.0):
        def log_f(x):
            f, jitter = x[:, :1], np.exp(x[:, 1:])
            design = np.stack([*_waves(2 * np.pi * t * f), np.ones((len(f), n))], axis=-1)
            return linear(design, y, np.sqrt(sd**2 + jitter**2), 50) - np.log(f[:, 0] * np.log(1000) * np.log(500))

        return adaptive(log_f, [1e-3, np.log(0.1)], [1, np.log(50)], [int(12 * span), 10], fine)

    return one("planet_strong_jitter", "a needle in the period", priors, log_likelihood, exact)


def kepler(mean_anomaly, e, xp, turns: int = 4):
    r"""cos and sin of the true anomaly: $E - e \sin E = M$ by a fixed number of Halley steps."""
    m = mean_anomaly - 2 * np.pi * xp.floor(mean_anomaly / (2 * np.pi) + 0.5)
    big = m + 0.85 * e * xp.sign(m)
    for _ in range(turns):
        s, c = e * xp.sin(big), e * xp.cos(big)
        f, slope = big - s - m, 1 - c
        big = big - f / (slope - 0.5 * f * s / slope)
    s, c = xp.sin(big), xp.cos(big)
    return (c - e) / (1 - e * c), xp.sqrt(1 - e**2) * s / (1 - e * c)


def kepler_evidence(t, y, sd, spread: float, beta, window, cells: int, fine: float) -> float:
    r"""ln Z of an eccentric orbit: A, B ~ N(0, spread) and gamma ~ N(0, 20) by algebra; frequency, e ~ Beta and M_0 in cells."""
    a, b = beta

    def log_f(x):
        f, u, m0 = x[:, :1], x[:, 1:2], x[:, 2:]
        e = u ** (1 / a)  # u = e^a takes up the prior's pole at e = 0
        cos_nu, sin_nu = kepler(2 * np.pi * t * f + m0, e, np)
        design = np.stack([cos_nu + e, -sin_nu, np.ones(cos_nu.shape)], axis=-1)
        prior = (b - 1) * np.log1p(-e[:, 0]) - np.log(a) - betaln(a, b) - np.log(2 * np.pi)
        return linear(design, y, sd, [spread, spread, 20]) + prior - np.log(f[:, 0] * np.log(window[1] / window[0]))

    return adaptive(log_f, [window[0], 0, 0], [window[1], 1, 2 * np.pi], [cells, 4, 5], fine, tol=2e-3, least=0)


def planet_eccentric(seed: int) -> Problem:
    r"""$v = \gamma + A (\cos\nu + e) - B \sin\nu$, e ~ Beta(0.867, 3.03), ln P uniform over 3..3000 d, M_0 an angle."""
    rng = np.random.default_rng([103, seed])
    n, span = rng.integers(28, 36), rng.uniform(500, 700)
    t = np.sort(rng.uniform(0, span, n))
    sd = rng.uniform(0.8, 1.3, n)
    kind = ("weak", "strong", "eccentric", "long")[seed % 4]
    k = {"weak": rng.uniform(1.5, 2.5), "strong": rng.uniform(10, 20)}.get(kind, rng.uniform(4, 8))
    e = rng.uniform(0.6, 0.8) if kind == "eccentric" else rng.uniform(0.05, 0.4)
    period = _log_uniform(rng, 800, 2000) if kind == "long" else _log_uniform(rng, 5, 200)
    start, w = rng.uniform(0, 2 * np.pi, 2)
    cos_nu, sin_nu = kepler(2 * np.pi * t / period + start, e, np)
    y = rng.normal(0, 5) + k * np.cos(w) * (cos_nu + e) - k * np.sin(w) * sin_nu + sd * rng.normal(size=n)
    a, b = 0.867, 3.03

    def priors():
        dist = _dist()
        return {
            "A": dist.Normal(0, 10), "B": dist.Normal(0, 10), "gamma": dist.Normal(0, 20), "P": dist.LogUniform(3, 3000),
            "e": dist.Beta(a, b), "M0": dist.Uniform(0, 2 * np.pi),
        }  # fmt: skip

    def log_likelihood(p, xp):
        e = p["e"][..., None]
        cos_nu, sin_nu = kepler(2 * np.pi * t / p["P"][..., None] + p["M0"][..., None], e, xp)
        model = p["gamma"][..., None] + p["A"][..., None] * (cos_nu + e) - p["B"][..., None] * sin_nu
        return gaussian(y, model, sd, xp)

    def exact(fine=1.0):
        return kepler_evidence(t, y, sd, 10, (a, b), (1 / 3000, 1 / 3), int(1.2 * span), fine)

    return one("planet_eccentric", f"a {kind} planet", priors, log_likelihood, exact)


def sinusoid_1(seed: int) -> Problem:
    r"""$y = c + a \cos 2\pi f t + b \sin 2\pi f t \pm s$, f uniform over a wide window, against y = c."""
    rng = np.random.default_rng([104, seed])
    n, f_max = 60, rng.uniform(20, 50)
    t = np.sort(rng.uniform(0, 10, n))
    sd, f, k, phase = rng.uniform(0.5, 1.5), rng.uniform(1, f_max), rng.uniform(0.8, 2.5), rng.uniform(0, 2 * np.pi)
    y = rng.normal() + k * np.cos(2 * np.pi * f * t + phase) + sd * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {"a": dist.Normal(0, 2), "b": dist.Normal(0, 2), "c": dist.Normal(0, 3), "f": dist.Uniform(0.5, f_max)}

    def log_likelihood(p, xp):
        phase = 2 * np.pi * t * p["f"][..., None]
        model = p["c"][..., None] + p["a"][..., None] * xp.cos(phase) + p["b"][..., None] * xp.sin(phase)
        return gaussian(y, model, sd, xp)

    def exact(fine=1.0):
        def log_f(f):
            design = np.stack([*_waves(2 * np.pi * t * f), np.ones((len(f), n))], axis=-1)
            return linear(design, y, np.full(n, sd), [2, 2, 3])

        return adaptive(log_f, 0.5, f_max, int(80 * f_max), fine) - np.log(f_max - 0.5)

    def flat(fine=1.0):
        return float(linear(np.ones((n, 1)), y, np.full(n, sd), 3))

    sides = {
        "sinusoid": Side(priors, log_likelihood, exact),
        "flat": Side(
            lambda: {"c": _dist().Normal(0, 3)}, lambda p, xp: gaussian(y, p["c"][..., None] + 0 * t, sd, xp), flat
        ),
    }
    return Problem("sinusoid_1", "a needle in the frequency", sides)


def sinusoids_2(seed: int) -> Problem:
    r"""$y = \sum_{k=1,2} a_k \cos 2\pi f_k t + b_k \sin 2\pi f_k t \pm s$, f_k uniform: the labels may be exchanged."""
    rng = np.random.default_rng([105, seed])
    n = 50
    t = np.sort(rng.uniform(0, 10, n))
    sd = rng.uniform(0.4, 1.0)
    y = sd * rng.normal(size=n)
    for f, k, phase in zip(rng.uniform(0.3, 5, 2), rng.uniform(0.6, 2.5, 2), rng.uniform(0, 6.28, 2), strict=True):
        y = y + k * np.cos(2 * np.pi * f * t + phase)

    def priors():
        dist = _dist()
        linear_ones = {name: dist.Normal(0, 2) for name in ("a1", "b1", "a2", "b2")}
        return {**linear_ones, "f1": dist.Uniform(0.1, 6), "f2": dist.Uniform(0.1, 6)}

    def log_likelihood(p, xp):
        model = 0.0
        for k in "12":
            phase = 2 * np.pi * t * p[f"f{k}"][..., None]
            model = model + p[f"a{k}"][..., None] * xp.cos(phase) + p[f"b{k}"][..., None] * xp.sin(phase)
        return gaussian(y, model, sd, xp)

    def exact(fine=1.0):
        def log_f(x):
            design = np.stack([*_waves(2 * np.pi * t * x[:, :1]), *_waves(2 * np.pi * t * x[:, 1:])], axis=-1)
            return linear(design, y, np.full(n, sd), 2)

        return adaptive(log_f, [0.1, 0.1], [6, 6], [110, 110], fine) - 2 * np.log(5.9)

    return one("sinusoids_2", "two needles, exchangeable", priors, log_likelihood, exact)


def transit_box(seed: int) -> Problem:
    r"""$y = c - h\,[|t - t_0| < D/2] \pm s$: a box, so that L is a step function of $t_0$ and D."""
    rng = np.random.default_rng([106, seed])
    n, span = 220, rng.uniform(20, 40)
    t = np.sort(rng.uniform(0, span, n))
    sd, depth = rng.uniform(0.5, 1.0), rng.uniform(1.5, 4.0)
    low, high = 0.2, 8.0
    t0, duration = rng.uniform(0.1, 0.9) * span, _log_uniform(rng, 0.6, 3)
    y = rng.normal(0, 0.5) - depth * (np.abs(t - t0) < duration / 2) + sd * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "depth": dist.Normal(0, 3), "c": dist.Normal(0, 1), "t0": dist.Uniform(0, span),
            "duration": dist.LogUniform(low, high),
        }  # fmt: skip

    def log_likelihood(p, xp):
        inside = xp.abs(t - p["t0"][..., None]) < p["duration"][..., None] / 2
        return gaussian(y, p["c"][..., None] - xp.where(inside, p["depth"][..., None], 0.0), sd, xp)

    def exact(fine=1.0):
        # The data inside are y[i:j]: a table over (i, j), and for every D the segments of t0 on which they are the same.
        sums = np.concatenate([[0], np.cumsum(y)])
        m = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]
        s_in = sums[None, :] - sums[:, None]
        v = sd**2
        # Columns (1, -inside) with prior sds 1 and 3: the 2 x 2 algebra in full.
        a11, a12, a22 = 1 + n / v, -3 * m / v, 1 + 9 * m / v
        b1, b2 = y.sum() / v, -3 * s_in / v
        det = a11 * a22 - a12**2
        with np.errstate(all="ignore"):
            table = 0.5 * (a22 * b1**2 - 2 * a12 * b1 * b2 + a11 * b2**2) / det - 0.5 * np.log(det)
        alone = -0.5 * y @ y / v - n * np.log(sd * np.sqrt(2 * np.pi))
        count = int(4000 * fine)
        terms = []
        for d in np.exp(np.log(low) + np.log(high / low) * (np.arange(count) + 0.5) / count):
            edges = np.sort(np.concatenate([[0, span], np.clip(t - d / 2, 0, span), np.clip(t + d / 2, 0, span)]))
            middle, length = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
            i, j = np.searchsorted(t, middle - d / 2), np.searchsorted(t, middle + d / 2)
            terms.append(logsumexp(table[i, j], b=length / span))
        return float(logsumexp(terms) - np.log(count) + alone)

    return one("transit_box", "steps, a needle in time", priors, log_likelihood, exact)


def transit_smooth(seed: int) -> Problem:
    r"""$y = c - h / (1 + e^{(|t - t_0| - D/2) / 0.1 D}) \pm s$: a dip with a smooth edge."""
    rng = np.random.default_rng([107, seed])
    n, span = 150, rng.uniform(20, 40)
    t = np.sort(rng.uniform(0, span, n))
    sd, depth, low, high = rng.uniform(0.5, 1.0), rng.uniform(1.2, 4.0), 0.3, 8.0
    t0, duration = rng.uniform(0.1, 0.9) * span, _log_uniform(rng, 0.8, 4)

    def dip(t0, duration, xp):
        return 0.5 * (1 - xp.tanh((xp.abs(t - t0) - duration / 2) / (0.2 * duration)))

    y = rng.normal(0, 0.5) - depth * dip(t0, duration, np) + sd * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "depth": dist.Normal(0, 3), "c": dist.Normal(0, 1), "t0": dist.Uniform(0, span),
            "duration": dist.LogUniform(low, high),
        }  # fmt: skip

    def log_likelihood(p, xp):
        model = p["c"][..., None] - p["depth"][..., None] * dip(p["t0"][..., None], p["duration"][..., None], xp)
        return gaussian(y, model, sd, xp)

    def exact(fine=1.0):
        def log_f(x):
            shape = dip(x[:, :1], np.exp(x[:, 1:]), np)
            return linear(np.stack([-shape, np.ones(shape.shape)], axis=-1), y, np.full(n, sd), [3, 1])

        box = [0, np.log(low)], [span, np.log(high)]
        return adaptive(log_f, *box, [100, 12], fine) - np.log(span * np.log(high / low))

    return one("transit_smooth", "a needle in time", priors, log_likelihood, exact)


def chirp(seed: int) -> Problem:
    r"""$y = a \cos \phi + b \sin \phi \pm s$, $\phi = 2\pi (f t + \dot f t^2 / 2)$, f and its drift uniform."""
    rng = np.random.default_rng([108, seed])
    n = 100
    t = np.sort(rng.uniform(0, 6, n))
    sd, k = rng.uniform(0.6, 1.2), rng.uniform(0.6, 1.8)
    f, drift, phase = rng.uniform(2.5, 11), rng.uniform(-0.45, 0.45), rng.uniform(0, 6.28)
    y = k * np.cos(2 * np.pi * (f * t + drift * t**2 / 2) + phase) + sd * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "a": dist.Normal(0, 2),
            "b": dist.Normal(0, 2),
            "f": dist.Uniform(2, 12),
            "drift": dist.Uniform(-0.5, 0.5),
        }

    def log_likelihood(p, xp):
        phase = 2 * np.pi * (p["f"][..., None] * t + 0.5 * p["drift"][..., None] * t**2)
        return gaussian(y, p["a"][..., None] * xp.cos(phase) + p["b"][..., None] * xp.sin(phase), sd, xp)

    def exact(fine=1.0):
        def log_f(x):
            design = np.stack(_waves(2 * np.pi * (x[:, :1] * t + 0.5 * x[:, 1:] * t**2)), axis=-1)
            return linear(design, y, np.full(n, sd), 2)

        return adaptive(log_f, [2, -0.5], [12, 0.5], [180, 36], fine) - np.log(10)

    return one("chirp", "a needle in two directions", priors, log_likelihood, exact)


FAMILIES = {
    f.__name__: f
    for f in (
        planet_circular, planet_strong_jitter, planet_eccentric, sinusoid_1, sinusoids_2, transit_box, transit_smooth, chirp,
    )
}  # fmt: skip
