"""Six families of data with a known number of components, weak ones among them, as the arguments of `sm.count`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from benchmarks.sky.signals import kepler
from benchmarks.sky.truths import LOG_2PI, gaussian

MOST = 4
Truth = dict[int, tuple[float, float]]  # {k: (ln Z, its error)}


def _dist():
    import numpyro.distributions as dist

    return dist


@dataclass(frozen=True)
class Counted:
    """Data, and the models of `least` to MOST components, once as predictions and once as one likelihood.

    `log_likelihood(v, xp)` takes each component's parameters along the last axis, for JAX and for NumPy.
    """

    family: str
    seed: int
    true: int
    component: Callable[[], dict[str, Any]]
    background: Callable[[], dict[str, Any]] | None
    predict: Callable[..., Any] | None
    predict_background: Callable[..., Any] | None
    columns: dict[str, Any]
    log_likelihood: Callable[..., Any]
    log_evidences: Callable[[], Truth]
    noise: str = "gaussian"
    name: str = "component"
    least: int = 0
    most: int = MOST

    def arguments(self, kind: str = "traced") -> dict[str, Any]:
        """Those of `sm.count`; `kind` is "traced", or "black" for a likelihood in NumPy of many points."""
        import supermodel as sm
        from supermodel.counting.component import Component

        black = kind == "black" or self.predict is None
        part = Component(self.component(), None if black else self.predict, name=self.name)
        asked: dict[str, Any] = {"component": part, "least": self.least, "most": self.most}
        if self.background is not None:
            asked["background"] = Component(self.background(), None if black else self.predict_background)
        if kind == "black":
            return asked | {"log_likelihood": self._black, "vectorized": True}
        if black:
            return asked | {"log_likelihood": self._traced}
        noise = sm.Gaussian("error") if self.noise == "gaussian" else sm.Poisson()
        return asked | {"data": self.columns, "noise": noise}

    def _traced(self, values):
        import jax.numpy as jnp

        return self.log_likelihood(values, jnp)

    def _black(self, values):
        # np.asarray of a tracer raises, so that this is not traced.
        with np.errstate(all="ignore"):
            values = {name: np.asarray(value, float) for name, value in values.items()}
            return np.asarray(self.log_likelihood(values, np), float)


def _strengths(rng, low: float, high: float, k: int):
    """Signal over noise, from weak to strong."""
    return np.exp(rng.uniform(np.log(low), np.log(high), k))


def _gaussian(t, y, sd, columns, base):
    """ln L of a sum of `columns(v, xp)` (..., k, n) over a constant."""

    def log_likelihood(v, xp):
        return gaussian(y, v[base][..., None] + xp.sum(columns(v, xp), axis=-2), sd, xp)

    return log_likelihood


def sinusoids(seed: int) -> Counted:
    r"""$y = c + \sum a_i \cos 2\pi f_i t + b_i \sin 2\pi f_i t \pm s$, f uniform over 0.5..6, 60 irregular times in 10."""
    rng = np.random.default_rng([601, seed])
    k, n, window, spread = seed % 5, 60, (0.5, 6.0), 1.5
    t, sd = np.sort(rng.uniform(0, 10, n)), np.full(n, rng.uniform(0.6, 1.2))
    y = rng.normal(0, 2) + sd * rng.normal(size=n)
    for size, f, turn in zip(_strengths(rng, 0.5, 3, k), rng.uniform(*window, k), rng.uniform(0, 1, k), strict=True):
        y += size * sd * np.cos(2 * np.pi * (f * t + turn))

    def wave(p, t, xp):
        phase = 2 * np.pi * p["f"] * t
        return p["a"] * xp.cos(phase) + p["b"] * xp.sin(phase)

    def exact():
        from benchmarks.counts.waves import Wave

        return Wave(t, y, sd, spread, 3.0, window, False, MOST).log_evidences(seed, points=1500)

    return _additive(
        "sinusoids", seed, k, {"t": t, "y": y, "error": sd}, wave, ("c", 3.0),
        lambda: {"f": _dist().Uniform(*window), "a": _dist().Normal(0, spread), "b": _dist().Normal(0, spread)}, exact,
    )  # fmt: skip


def _additive(family, seed, k, columns, shape, base, component, exact, name="component") -> Counted:
    """A sum of `shape(p, t, xp)` over a constant with a normal prior, about which data are normal."""
    t, y, sd = columns["t"], columns["y"], columns["error"]
    label, base_sd = base

    def predict(p, t):
        import jax.numpy as jnp

        return shape(p, t, jnp)

    def parts(v, xp):
        return shape({name: v[name][..., None] for name in component()}, t, xp)

    return Counted(
        family, seed, k, component, lambda: {label: _dist().Normal(0, base_sd)}, predict, lambda p: p[label], columns,
        _gaussian(t, y, sd, parts, label), exact, name=name,
    )  # fmt: skip


def planets(seed: int) -> Counted:
    r"""$v = \gamma + \sum A_i \cos 2\pi t / P_i + B_i \sin 2\pi t / P_i \pm s$, ln P uniform over 2..500 d."""
    rng = np.random.default_rng([602, seed])
    k, n, span = seed % 5, 45, rng.uniform(550, 650)
    t = np.sort(rng.uniform(0, span, n))
    sd = rng.uniform(0.8, 2.0) * rng.uniform(0.8, 1.25, n)
    y = rng.normal(0, 5) + sd * rng.normal(size=n)
    periods = _strengths(rng, 3, 400, k)
    for size, period, turn in zip(_strengths(rng, 0.6, 5, k), periods, rng.uniform(0, 1, k), strict=True):
        y += size * np.median(sd) * np.cos(2 * np.pi * (t / period + turn))

    def orbit(p, t, xp):
        phase = 2 * np.pi * t / p["P"]
        return p["A"] * xp.cos(phase) + p["B"] * xp.sin(phase)

    def exact():
        from benchmarks.counts.waves import Wave

        return Wave(t, y, sd, 10.0, 20.0, (1 / 500, 1 / 2), True, MOST).log_evidences(seed)

    return _additive(
        "planets", seed, k, {"t": t, "y": y, "error": sd}, orbit, ("gamma", 20.0),
        lambda: {"P": _dist().LogUniform(2, 500), "A": _dist().Normal(0, 10), "B": _dist().Normal(0, 10)},
        exact, "planet",
    )  # fmt: skip


BETA = (0.867, 3.03)  # of the eccentricity


def orbits(seed: int) -> Counted:
    r"""$v = \gamma + \sum A_i (\cos\nu_i + e_i) - B_i \sin\nu_i \pm s$, e ~ Beta(0.867, 3.03), ln P uniform over 5..500 d."""
    rng = np.random.default_rng([603, seed])
    k, n, span = seed % 5, 45, rng.uniform(450, 550)
    t = np.sort(rng.uniform(0, span, n))
    sd = rng.uniform(0.8, 2.0) * rng.uniform(0.8, 1.25, n)
    y = rng.normal(0, 5) + sd * rng.normal(size=n)
    for size, period in zip(_strengths(rng, 0.7, 5, k), _strengths(rng, 6, 400, k), strict=True):
        e, start, w = np.minimum(0.75, rng.beta(*BETA)), rng.uniform(0, 2 * np.pi), rng.uniform(0, 2 * np.pi)
        cos_nu, sin_nu = kepler(2 * np.pi * t / period + start, e, np)
        y += size * np.median(sd) * (np.cos(w) * (cos_nu + e) - np.sin(w) * sin_nu)

    def orbit(p, t, xp):
        cos_nu, sin_nu = kepler(2 * np.pi * t / p["P"] + p["M0"], p["e"], xp)
        return p["A"] * (cos_nu + p["e"]) - p["B"] * sin_nu

    def component():
        dist = _dist()
        return {
            "P": dist.LogUniform(5, 500), "A": dist.Normal(0, 10), "B": dist.Normal(0, 10), "e": dist.Beta(*BETA),
            "M0": dist.Uniform(0, 2 * np.pi),
        }  # fmt: skip

    def exact():
        from benchmarks.counts.orbits import Orbit

        return Orbit(t, y, sd, 10.0, 20.0, (1 / 500, 1 / 5), BETA, MOST).log_evidences(seed)

    return _additive(
        "orbits", seed, k, {"t": t, "y": y, "error": sd}, orbit, ("gamma", 20.0), component, exact, "planet"
    )


def lines(seed: int) -> Counted:
    r"""$n_x \sim P(e^b (1.3 - 0.6 x / 80) + \sum A_i N(x; c_i, 1.5))$ in 80 bins, ln A uniform over 10..300 counts."""
    rng = np.random.default_rng([604, seed])
    k, n, width = seed % 5, 80, 1.5
    x = np.arange(n) + 0.5
    shape, level = 1.3 - 0.6 * x / n, np.log(rng.uniform(5, 15))
    rate = np.exp(level) * shape
    for size, centre in zip(_strengths(rng, 8, 150, k), rng.uniform(2, 78, k), strict=True):
        rate = rate + size * np.exp(-0.5 * ((x - centre) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    y = rng.poisson(rate)

    def line(p, x, xp):
        return p["A"] * xp.exp(-0.5 * ((x - p["c"]) / width) ** 2) / (width * np.sqrt(2 * np.pi))

    def predict(p, x):
        import jax.numpy as jnp

        return line(p, x, jnp)

    def predict_background(p, x):
        import jax.numpy as jnp

        return jnp.exp(p["b"]) * (1.3 - 0.6 * x / n)

    def log_likelihood(v, xp):
        parts = line({name: v[name][..., None] for name in ("c", "A")}, x, xp)
        rate = xp.exp(v["b"])[..., None] * shape + xp.sum(parts, axis=-2)
        return xp.sum(y * xp.log(rate) - rate, axis=-1) - np.sum(gammaln(y + 1.0))

    def exact():
        from benchmarks.counts.spectra import Spectrum

        return Spectrum(y.astype(float), x, shape, width, (np.log(10), 0.5), (10, 300), MOST).log_evidences(seed)

    return Counted(
        "lines", seed, k, lambda: {"c": _dist().Uniform(0, n), "A": _dist().LogUniform(10, 300)},
        lambda: {"b": _dist().Normal(np.log(10), 0.5)}, predict, predict_background, {"x": x, "y": y},
        log_likelihood, exact, "poisson", "line",
    )  # fmt: skip


def steps(seed: int) -> Counted:
    r"""$y = c + \sum d_i [x > t_i] \pm s$, t uniform over 0..1, 70 irregular x: exact sums over the gaps."""
    rng = np.random.default_rng([605, seed])
    k, n = seed % 5, 70
    x, sd = np.sort(rng.uniform(0, 1, n)), np.full(n, rng.uniform(0.6, 1.2))
    y = rng.normal(0, 2) + sd * rng.normal(size=n)
    for size, t in zip(_strengths(rng, 0.7, 4, k), rng.uniform(0.05, 0.95, k), strict=True):
        y += rng.choice([-1, 1]) * size * sd * (x > t)

    def step(p, x, xp):
        return xp.where(x > p["t"], p["d"], 0.0)

    def exact():
        from benchmarks.counts.stairs import log_evidences

        return log_evidences(x, y, sd[0], 4.0, 3.0, MOST)

    def predict(p, x):
        import jax.numpy as jnp

        return step(p, x, jnp)

    def parts(v, xp):
        return step({name: v[name][..., None] for name in ("t", "d")}, x, xp)

    return Counted(
        "steps", seed, k, lambda: {"t": _dist().Uniform(0, 1), "d": _dist().Normal(0, 4)},
        lambda: {"c": _dist().Normal(0, 3)}, predict, lambda p: p["c"], {"x": x, "y": y, "error": sd},
        _gaussian(x, y, sd, parts, "c"), exact, name="step",
    )  # fmt: skip


def mixtures(seed: int) -> Counted:
    r"""$y_j \sim \sum w_i N(m_i, s_i)$, w = g / sum g with g ~ Gamma(1), m ~ N(0, 4), ln s ~ N(-0.3, 0.5), 80 data."""
    rng = np.random.default_rng([606, seed])
    k, n = 1 + seed % 4, 80
    w, m, s = rng.dirichlet(np.full(k, 3.0)), rng.normal(0, 4, k), np.exp(rng.normal(-0.3, 0.4, k))
    which = rng.choice(k, n, p=w)
    y = m[which] + s[which] * rng.normal(size=n)

    def component():
        dist = _dist()
        return {"m": dist.Normal(0, 4), "s": dist.LogNormal(-0.3, 0.5), "g": dist.Gamma(1.0, 1.0)}

    def log_likelihood(v, xp):
        m, s, g = (v[name][..., None, :] for name in ("m", "s", "g"))
        terms = xp.log(g) - xp.log(s) - 0.5 * ((y[:, None] - m) / s) ** 2
        top = xp.max(terms, axis=-1, keepdims=True)
        summed = xp.log(xp.sum(xp.exp(terms - top), axis=-1)) + top[..., 0]
        return xp.sum(summed - xp.log(xp.sum(v["g"], axis=-1))[..., None] - 0.5 * LOG_2PI, axis=-1)

    def exact():
        from benchmarks.counts.clusters import log_evidences

        return log_evidences(y, (0.0, 4.0), (-0.3, 0.5), MOST, seed)

    return Counted("mixtures", seed, k, component, None, None, None, {}, log_likelihood, exact, name="cluster", least=1)


FAMILIES = {f.__name__: f for f in (sinusoids, planets, orbits, lines, steps, mixtures)}
