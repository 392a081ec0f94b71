"""Spectra, counts and decays: lines of unknown place, a source over its background, sums of exponentials."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from benchmarks.fire.problem import Problem, Side, one
from benchmarks.sky.truths import adaptive, gaussian, linear


def _dist():
    import numpyro.distributions as dist

    return dist


def spectral_line(seed: int) -> Problem:
    r"""$y = c_0 + c_1 u + a\, e^{-(x - x_0)^2 / 2 w^2} \pm s$, x_0 uniform over 100 channels, ln w uniform."""
    rng = np.random.default_rng([201, seed])
    x = np.arange(100) + 0.5
    u, n, low, high = (x - 50) / 50, 100, 0.4, 12.0
    sd, width, a = rng.uniform(0.6, 1.2), np.exp(rng.uniform(np.log(0.8), np.log(6))), rng.uniform(2, 6)
    y = rng.normal(0, 2) + rng.normal(0, 1) * u + a * np.exp(-0.5 * ((x - rng.uniform(5, 95)) / width) ** 2)
    y = y + sd * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "centre": dist.Uniform(0, 100), "width": dist.LogUniform(low, high), "a": dist.Normal(0, 5),
            "c0": dist.Normal(0, 5), "c1": dist.Normal(0, 3),
        }  # fmt: skip

    def log_likelihood(p, xp):
        line = xp.exp(-0.5 * ((x - p["centre"][..., None]) / p["width"][..., None]) ** 2)
        return gaussian(y, p["c0"][..., None] + p["c1"][..., None] * u + p["a"][..., None] * line, sd, xp)

    def exact(fine=1.0):
        def log_f(q):
            line = np.exp(-0.5 * ((x - q[:, :1]) / np.exp(q[:, 1:])) ** 2)
            one_ = np.ones(line.shape)
            return linear(np.stack([line, one_, u * one_], axis=-1), y, np.full(n, sd), [5, 5, 3])

        box = [0, np.log(low)], [100, np.log(high)]
        return adaptive(log_f, *box, [140, 8], fine) - np.log(100 * np.log(high / low))

    return one("spectral_line", "a needle in the centre", priors, log_likelihood, exact)


def spectral_lines_2(seed: int) -> Problem:
    r"""$y = c + \sum_{k=1,2} a_k e^{-(x - x_k)^2 / 2} \pm s$, the same in both labels."""
    rng = np.random.default_rng([202, seed])
    x, n = np.arange(80) + 0.5, 80
    sd = rng.uniform(0.6, 1.2)
    y = rng.normal(0, 2) + sd * rng.normal(size=n)
    for a, centre in zip(rng.uniform(2, 6, 2), rng.uniform(4, 76, 2), strict=True):
        y = y + a * np.exp(-0.5 * (x - centre) ** 2)

    def priors():
        dist = _dist()
        return {
            "x1": dist.Uniform(0, 80), "x2": dist.Uniform(0, 80), "a1": dist.Normal(0, 5), "a2": dist.Normal(0, 5),
            "c": dist.Normal(0, 5),
        }  # fmt: skip

    def log_likelihood(p, xp):
        model = p["c"][..., None]
        for k in "12":
            model = model + p[f"a{k}"][..., None] * xp.exp(-0.5 * (x - p[f"x{k}"][..., None]) ** 2)
        return gaussian(y, model, sd, xp)

    def exact(fine=1.0):
        def log_f(q):
            lines = [np.exp(-0.5 * (x - q[:, k : k + 1]) ** 2) for k in (0, 1)]
            return linear(np.stack([*lines, np.ones(lines[0].shape)], axis=-1), y, np.full(n, sd), 5)

        return adaptive(log_f, [0, 0], [80, 80], [80, 80], fine) - 2 * np.log(80)

    return one("spectral_lines_2", "two needles, exchangeable", priors, log_likelihood, exact)


def counts_background(seed: int) -> Problem:
    r"""$n_i \sim P(T_i (\epsilon s + b)), m_i \sim P(T_i' b)$, gamma priors and a lognormal efficiency, against s = 0."""
    rng = np.random.default_rng([203, seed])
    on, off = rng.uniform(0.5, 2, 4), rng.uniform(2, 6, 4)
    b_true, s_true = rng.uniform(1, 5), rng.uniform(0, 4)
    n, m = rng.poisson(on * (s_true + b_true)), rng.poisson(off * b_true)
    eff = 0.25  # sd of ln efficiency

    def priors():
        dist = _dist()
        return {"s": dist.Gamma(1.5, 0.3), "b": dist.Gamma(2, 0.5), "eff": dist.LogNormal(0, eff)}

    def poisson(counts, rate, xp):
        return xp.sum(counts * xp.log(rate) - rate, axis=-1) - np.sum(gammaln(counts + 1.0))

    def log_likelihood(p, xp):
        b = p["b"][..., None]
        return poisson(n, on * ((p["eff"] * p["s"])[..., None] + b), xp) + poisson(m, off * b, xp)

    def closed(fine=1.0):
        if fine == 1:
            total, time = n.sum() + m.sum(), on.sum() + off.sum()
            rest = (
                np.sum(n * np.log(on)) + np.sum(m * np.log(off)) - np.sum(gammaln(n + 1.0)) - np.sum(gammaln(m + 1.0))
            )
            return float(rest + 2 * np.log(0.5) + gammaln(2 + total) - (2 + total) * np.log(0.5 + time))

        def log_f(q):
            b = np.exp(q)
            return poisson(n, on * b, np) + poisson(m, off * b, np) + 2 * np.log(0.5) + 2 * q[:, 0] - 0.5 * b[:, 0]

        return adaptive(log_f, -6, 4, 20, fine)

    def exact(fine=1.0):
        def log_f(q):
            s, b, e = np.exp(q[:, 0]), np.exp(q[:, 1]), np.exp(eff * q[:, 2])
            like = log_likelihood({"s": s, "b": b, "eff": e}, np)
            prior_s = 1.5 * np.log(0.3) - gammaln(1.5) + 1.5 * q[:, 0] - 0.3 * s
            prior_b = 2 * np.log(0.5) + 2 * q[:, 1] - 0.5 * b
            return like + prior_s + prior_b - 0.5 * q[:, 2] ** 2 - 0.5 * np.log(2 * np.pi)

        return adaptive(log_f, [-14, -5, -7], [5, 4, 7], [10, 8, 6], fine)

    def background(p, xp):
        b = p["b"][..., None]
        return poisson(n, on * b, xp) + poisson(m, off * b, xp)

    sides = {
        "source": Side(priors, log_likelihood, exact),
        "background": Side(lambda: {"b": _dist().Gamma(2, 0.5)}, background, closed),
    }
    return Problem("counts_background", "a source at the edge of zero", sides)


def decays(seed: int) -> Problem:
    r"""$y = a_1 e^{-k_1 t} + a_2 e^{-k_2 t} \pm s$, ln k uniform, against one exponential."""
    rng = np.random.default_rng([204, seed])
    n = 40
    t = np.linspace(0.05, 10, n)
    sd = rng.uniform(0.05, 0.3)
    slow, ratio = rng.uniform(0.1, 0.4), rng.uniform(2.5, 15)
    y = (
        rng.uniform(1, 4) * np.exp(-slow * t)
        + rng.uniform(0.5, 4) * np.exp(-slow * ratio * t)
        + sd * rng.normal(size=n)
    )

    def priors(labels="12"):
        dist = _dist()
        rates = {f"k{k}": dist.LogUniform(0.02, 20) for k in labels}
        return {**rates, **{f"a{k}": dist.Normal(0, 4) for k in labels}}

    def log_likelihood(p, xp, labels="12"):
        model = 0.0
        for k in labels:
            model = model + p[f"a{k}"][..., None] * xp.exp(-p[f"k{k}"][..., None] * t)
        return gaussian(y, model, sd, xp)

    def exact(fine=1.0, d=2):
        def log_f(q):
            design = np.stack([np.exp(-np.exp(q[:, k : k + 1]) * t) for k in range(d)], axis=-1)
            return linear(design, y, np.full(n, sd), 4)

        box = [np.log(0.02)] * d, [np.log(20)] * d
        return adaptive(log_f, *box, [40] * d, fine) - d * np.log(np.log(1000))

    sides = {
        "two": Side(priors, log_likelihood, exact),
        "one": Side(lambda: priors("1"), lambda p, xp: log_likelihood(p, xp, "1"), lambda fine=1.0: exact(fine, 1)),
    }
    return Problem("decays", "near-degenerate, exchangeable", sides)


def ring(seed: int) -> Problem:
    r"""$y = c + F e^{-(\rho - r)^2 / 2 w^2} \pm s$ in 20 x 20 pixels: a ring of unknown place, radius and flux."""
    rng = np.random.default_rng([205, seed])
    side = 20
    px, py = (grid.ravel() + 0.5 for grid in np.meshgrid(np.arange(side), np.arange(side)))
    n, w = side**2, 0.8
    sd, flux, radius = 1.0, rng.uniform(0.8, 2.0), np.exp(rng.uniform(np.log(1.5), np.log(5)))
    x0, y0 = rng.uniform(3, side - 3, 2)

    def shape(x, y, r, xp):
        rho = xp.sqrt((px - x) ** 2 + (py - y) ** 2 + 1e-12)
        return xp.exp(-0.5 * ((rho - r) / w) ** 2)

    data = rng.normal(0, 0.5) + flux * shape(x0, y0, radius, np) + sd * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "x": dist.Uniform(0, side), "y": dist.Uniform(0, side), "r": dist.LogUniform(0.8, 8), "flux": dist.Normal(0, 2),
            "c": dist.Normal(0, 1),
        }  # fmt: skip

    def log_likelihood(p, xp):
        image = shape(*(p[name][..., None] for name in ("x", "y", "r")), xp)
        return gaussian(data, p["c"][..., None] + p["flux"][..., None] * image, sd, xp)

    def exact(fine=1.0):
        def log_f(q):  # the algebra of two columns in full: the pixels are many
            image = shape(q[:, :1], q[:, 1:2], np.exp(q[:, 2:]), np)
            a11, a12, a22 = 1 + n / sd**2, 2 * image.sum(axis=1) / sd**2, 1 + 4 * np.sum(image**2, axis=1) / sd**2
            b1, b2 = data.sum() / sd**2, 2 * image @ data / sd**2
            det = a11 * a22 - a12**2
            alone = -0.5 * data @ data / sd**2 - n * np.log(sd * np.sqrt(2 * np.pi))
            return alone + 0.5 * (a22 * b1**2 - 2 * a12 * b1 * b2 + a11 * b2**2) / det - 0.5 * np.log(det)

        box = [0, 0, np.log(0.8)], [side, side, np.log(8)]
        inside = adaptive(log_f, *box, [10, 10, 5], fine, tol=1e-3, chunk=5000)
        return inside - np.log(side**2 * np.log(10))

    return one("ring", "an image of a ring", priors, log_likelihood, exact)


FAMILIES = {f.__name__: f for f in (spectral_line, spectral_lines_2, counts_background, decays, ring)}
