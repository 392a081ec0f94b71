r"""Planets as observers write them: semi-amplitude, angle and period, weak and strong, short and long, round and eccentric.

K ~ Rayleigh(s) and w ~ U(0, 2 pi) are A, B ~ N(0, s): so ln Z is that of two linear parameters, and exact.
"""

from __future__ import annotations

import numpy as np

from benchmarks.fire.problem import Problem, one
from benchmarks.sky.signals import kepler, kepler_evidence
from benchmarks.sky.truths import adaptive, gaussian, linear

SPREAD = 20.0  # of A and B
KINDS = ("weak", "strong", "short", "long", "eccentric")


def _dist():
    import numpyro.distributions as dist

    return dist


def _data(seed: int, stream: int):
    """Times, errors and the truth of a planet whose kind goes round with the seed."""
    rng = np.random.default_rng([stream, seed])
    kind = KINDS[seed % len(KINDS)]
    n, span = int(rng.integers(40, 56)), rng.uniform(500, 900)
    t = np.sort(rng.uniform(0, span, n))
    sd = rng.uniform(2.0, 4.0) * rng.uniform(0.8, 1.2, n)
    k = {"weak": rng.uniform(2, 5), "strong": rng.uniform(15, 40)}.get(kind, rng.uniform(6, 15))
    low, high = {"short": (1.5, 5), "long": (300, 900)}.get(kind, (3, 200))
    period = np.exp(rng.uniform(np.log(low), np.log(high)))
    e = rng.uniform(0.5, 0.8) if kind == "eccentric" else rng.uniform(0.0, 0.3)
    return rng, kind, t, sd, span, k, period, e


def _priors(**more):
    dist = _dist()
    turn = dist.Uniform(0, 2 * np.pi)
    return {
        "P": dist.LogUniform(1, 1000), "K": dist.Weibull(np.sqrt(2) * SPREAD, 2.0), "w": turn, "gamma": dist.Normal(0, 20), **more,
    }  # fmt: skip


def planet_round(seed: int) -> Problem:
    r"""$v = \gamma + K \cos(2 \pi t / P + w) \pm \sqrt{s_i^2 + j^2}$, ln P uniform over 1..1000 d, ln j over 0.1..30."""
    rng, kind, t, sd, span, k, period, _ = _data(seed, 501)
    n, jitter, phase = len(t), np.exp(rng.uniform(np.log(0.3), np.log(3))), rng.uniform(0, 2 * np.pi)
    noise = np.hypot(sd, jitter) * rng.normal(size=n)
    y = rng.normal(0, 10) + k * np.cos(2 * np.pi * t / period + phase) + noise

    def log_likelihood(p, xp):
        model = p["gamma"][..., None] + p["K"][..., None] * xp.cos(
            2 * np.pi * t / p["P"][..., None] + p["w"][..., None]
        )
        return gaussian(y, model, xp.sqrt(sd**2 + p["jitter"][..., None] ** 2), xp)

    def exact(fine=1.0):
        def log_f(x):
            f, jitter = x[:, :1], np.exp(x[:, 1:])
            phase = 2 * np.pi * t * f
            design = np.stack([np.cos(phase), np.sin(phase), np.ones((len(f), n))], axis=-1)
            like = linear(design, y, np.sqrt(sd**2 + jitter**2), [SPREAD, SPREAD, 20])
            return like - np.log(f[:, 0] * np.log(1000) * np.log(300))

        return adaptive(log_f, [1e-3, np.log(0.1)], [1, np.log(30)], [int(12 * span), 10], fine)

    return one(
        "planet_round", f"a {kind} planet", lambda: _priors(jitter=_dist().LogUniform(0.1, 30)), log_likelihood, exact
    )


def planet_kepler(seed: int) -> Problem:
    r"""$v = \gamma + K [\cos(\nu + w) + e \cos w] \pm s_i$, e ~ Beta(0.867, 3.03), M_0 and w angles: six parameters."""
    rng, kind, t, sd, span, k, period, e = _data(seed, 502)
    n, a, b = len(t), 0.867, 3.03
    start, w = rng.uniform(0, 2 * np.pi, 2)
    cos_nu, sin_nu = kepler(2 * np.pi * t / period + start, e, np)
    y = rng.normal(0, 10) + k * np.cos(w) * (cos_nu + e) - k * np.sin(w) * sin_nu + sd * rng.normal(size=n)

    def log_likelihood(p, xp):
        e, k, w = (p[name][..., None] for name in ("e", "K", "w"))
        cos_nu, sin_nu = kepler(2 * np.pi * t / p["P"][..., None] + p["M0"][..., None], e, xp)
        return gaussian(y, p["gamma"][..., None] + k * (xp.cos(w) * (cos_nu + e) - xp.sin(w) * sin_nu), sd, xp)

    def exact(fine=1.0):
        return kepler_evidence(t, y, sd, SPREAD, (a, b), (1e-3, 1), int(1.2 * span), fine)

    def priors():
        return _priors(e=_dist().Beta(a, b), M0=_dist().Uniform(0, 2 * np.pi))

    return one("planet_kepler", f"a {kind} planet", priors, log_likelihood, exact)


FAMILIES = {f.__name__: f for f in (planet_round, planet_kepler)}
