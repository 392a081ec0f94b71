"""Series in time: change points, Gaussian processes, red noise of a pulsar, growth."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from benchmarks.fire.problem import Problem, one
from benchmarks.sky.truths import LOG_2PI, adaptive, gaussian


def _dist():
    import numpyro.distributions as dist

    return dist


def _closed(n, exposure, a, b):
    r"""$\ln \int \mathrm{Gamma}(\lambda; a, b) \lambda^n e^{-\lambda T} d\lambda$."""
    return a * np.log(b) - gammaln(a) + gammaln(a + n) - (a + n) * np.log(b + exposure)


def change_point(seed: int) -> Problem:
    r"""$n_k \sim P(\lambda_1)$ before the time T and $P(\lambda_2)$ after, gamma rates, T uniform: exact sums."""
    rng = np.random.default_rng([301, seed])
    n, a, b = int(rng.integers(40, 80)), 2.0, 0.4
    k = np.arange(n)
    rates = np.exp(rng.uniform(np.log(1), np.log(10), 2))
    counts = rng.poisson(np.where(k < rng.uniform(0.1, 0.9) * n, *rates))

    def priors():
        dist = _dist()
        return {"before": dist.Gamma(a, b), "after": dist.Gamma(a, b), "time": dist.Uniform(0, n)}

    def log_likelihood(p, xp):
        rate = xp.where(k < p["time"][..., None], p["before"][..., None], p["after"][..., None])
        return xp.sum(counts * xp.log(rate) - rate, axis=-1) - np.sum(gammaln(counts + 1.0))

    def exact(fine=1.0):
        rest = np.sum(gammaln(counts + 1.0))
        if fine > 1:  # the same with the rates by quadrature

            def one_part(total, exposure):
                def log_f(q):
                    return a * np.log(b) - gammaln(a) + (a + total) * q[:, 0] - (b + exposure) * np.exp(q[:, 0])

                return adaptive(log_f, -9, 6, 40, fine)

            parts = [one_part(counts[:i].sum(), i) + one_part(counts[i:].sum(), n - i) for i in range(1, n + 1)]
            return float(logsumexp(parts) - np.log(n) - rest)
        first, split = np.cumsum(counts), np.arange(1, n + 1)
        terms = _closed(first, split, a, b) + _closed(counts.sum() - first, n - split, a, b)
        return float(logsumexp(terms) - np.log(n) - rest)

    return one("change_point", "steps", priors, log_likelihood, exact)


def change_points_2(seed: int) -> Problem:
    r"""$n_k \sim P(\lambda_j)$ in three parts cut at two uniform times, in whatever order they come: exact sums."""
    rng = np.random.default_rng([302, seed])
    n, a, b = int(rng.integers(50, 80)), 2.0, 0.4
    k = np.arange(n)
    rates = np.exp(rng.uniform(np.log(1), np.log(12), 3))
    cuts = np.sort(rng.uniform(0.1, 0.9, 2)) * n
    counts = rng.poisson(np.where(k < cuts[0], rates[0], np.where(k < cuts[1], rates[1], rates[2])))

    def priors():
        dist = _dist()
        names = {name: dist.Gamma(a, b) for name in ("first", "second", "third")}
        return {**names, "t1": dist.Uniform(0, n), "t2": dist.Uniform(0, n)}

    def log_likelihood(p, xp):
        early, late = xp.minimum(p["t1"], p["t2"])[..., None], xp.maximum(p["t1"], p["t2"])[..., None]
        first, second, third = (p[name][..., None] for name in ("first", "second", "third"))
        rate = xp.where(k < early, first, xp.where(k < late, second, third))
        return xp.sum(counts * xp.log(rate) - rate, axis=-1) - np.sum(gammaln(counts + 1.0))

    def exact(fine=1.0):
        sums = np.concatenate([[0], np.cumsum(counts)])
        if fine > 1:  # the same with the times on a grid of midpoints, unsorted
            times = (np.arange(3 * n) + 0.5) / 3
            i, j = np.meshgrid(np.ceil(times).astype(int), np.ceil(times).astype(int))
            i, j = np.minimum(i, j), np.maximum(i, j)
        else:
            i, j = np.meshgrid(np.arange(1, n + 1), np.arange(1, n + 1))
            i, j = np.minimum(i, j), np.maximum(i, j)
        parts = ((sums[i], i), (sums[j] - sums[i], j - i), (sums[n] - sums[j], n - j))
        terms = sum(_closed(c, e, a, b) for c, e in parts)
        return float(logsumexp(terms) - np.log(terms.size) - np.sum(gammaln(counts + 1.0)))

    return one("change_points_2", "steps, exchangeable", priors, log_likelihood, exact)


def kernel_matern(seed: int) -> Problem:
    r"""$y \sim N(0, a^2 (1 + r) e^{-r} + s^2 1), r = \sqrt{3} |t - t'| / l$: ln a, ln l and ln s uniform."""
    rng = np.random.default_rng([303, seed])
    n = 40
    t = np.sort(rng.uniform(0, 20, n))
    far = np.abs(t[:, None] - t[None, :]) * np.sqrt(3)
    a, length, s = (np.exp(rng.uniform(np.log(lo), np.log(hi))) for lo, hi in ((0.6, 3), (0.4, 6), (0.15, 1.0)))
    r = far / length
    y = np.linalg.cholesky(a**2 * (1 + r) * np.exp(-r) + s**2 * np.eye(n)) @ rng.normal(size=n)
    bounds = {"a": (0.1, 10.0), "length": (0.1, 40.0), "s": (0.05, 5.0)}

    def priors():
        dist = _dist()
        return {name: dist.LogUniform(*limits) for name, limits in bounds.items()}

    def log_likelihood(p, xp):
        a, length, s = (p[name][..., None, None] for name in bounds)
        r = far / length
        factor = xp.linalg.cholesky(a**2 * (1 + r) * xp.exp(-r) + s**2 * np.eye(n))
        white = xp.linalg.solve(factor, xp.broadcast_to(y[:, None], (*factor.shape[:-1], 1)))[..., 0]
        log_det = xp.sum(xp.log(xp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
        return -0.5 * xp.sum(white**2, axis=-1) - log_det - 0.5 * n * LOG_2PI

    def exact(fine=1.0):
        # Given the length the kernel is turned to its axes once, and a and s are a plane of sums.
        na, ns, nl = (int(m * fine) for m in (160, 160, 120))
        cells = [np.linspace(*np.log(limits), m + 1) for limits, m in zip(bounds.values(), (na, nl, ns), strict=True)]
        x, w = np.polynomial.legendre.leggauss(2)
        axes = [(c[:-1, None] + (x + 1) / 2 * np.diff(c)[:, None]).ravel() for c in cells]
        log_w = [np.log(np.outer(np.diff(c) / 2, w).ravel()) for c in cells]
        aa, ss = np.exp(2 * axes[0])[:, None], np.exp(2 * axes[2])[None, :]
        terms = []
        for length in np.exp(axes[1]):
            r = far / length
            values, vectors = np.linalg.eigh((1 + r) * np.exp(-r))
            power, total = (vectors.T @ y) ** 2, 0.0
            for lam, q in zip(np.maximum(values, 0), power, strict=True):
                v = aa * lam + ss
                total = total - 0.5 * q / v - 0.5 * np.log(v)
            terms.append(logsumexp(total + log_w[0][:, None] + log_w[2][None, :]))
        volume = sum(np.log(np.log(high / low)) for low, high in bounds.values())
        return float(logsumexp(np.array(terms) + log_w[1]) - volume - 0.5 * n * LOG_2PI)

    return one("kernel_matern", "a kernel's ridge", priors, log_likelihood, exact)


def pulsar_red_noise(seed: int) -> Problem:
    r"""$y = F c + M b \pm q s_i$, $\mathrm{var}\,c_k = A^2 k^{-\gamma}$: red noise in 12 harmonics, an offset and a slope."""
    rng = np.random.default_rng([304, seed])
    n, harmonics = 70, 12
    t = np.sort(rng.uniform(0, 1, n))
    sd = rng.uniform(0.5, 1.5, n)
    k = np.arange(1, harmonics + 1)
    waves = 2 * np.pi * t[:, None] * k
    design = np.concatenate([np.cos(waves), np.sin(waves), np.ones((n, 1)), 2 * t[:, None] - 1], axis=1)
    log_a, slope, white = rng.uniform(-1, 1), rng.uniform(1, 6), rng.uniform(0.7, 1.5)
    log_k = np.log(np.concatenate([k, k, [1, 1]]))
    red = np.concatenate([np.ones(2 * harmonics), np.zeros(2)])  # the offset and the slope have the fixed sd 5
    scale = np.exp(red * (log_a * np.log(10) - 0.5 * slope * log_k) + (1 - red) * np.log(5))
    y = design @ (scale * rng.normal(size=len(scale))) + white * sd * rng.normal(size=n)
    gram, image, power = design.T @ (design / sd[:, None] ** 2), design.T @ (y / sd**2), np.sum((y / sd) ** 2)
    rest = -np.sum(np.log(sd)) - 0.5 * n * LOG_2PI

    def priors():
        dist = _dist()
        return {"log_a": dist.Uniform(-3, 2), "slope": dist.Uniform(0, 7), "white": dist.LogUniform(0.2, 5)}

    def log_likelihood(p, xp):
        log_a, slope, q = p["log_a"][..., None], p["slope"][..., None], p["white"][..., None]
        scale = xp.exp(red * (log_a * np.log(10) - 0.5 * slope * log_k) + (1 - red) * np.log(5)) / q
        inner = scale[..., :, None] * gram * scale[..., None, :] + np.eye(len(red))
        factor = xp.linalg.cholesky(inner)
        b = xp.linalg.solve(factor, (scale * image / q)[..., None])[..., 0]
        log_det = xp.sum(xp.log(xp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
        q = q[..., 0]
        return 0.5 * xp.sum(b**2, axis=-1) - log_det - 0.5 * power / q**2 - n * xp.log(q) + rest

    def exact(fine=1.0):
        def log_f(x):
            return log_likelihood({"log_a": x[:, 0], "slope": x[:, 1], "white": np.exp(x[:, 2])}, np)

        box = [-3, 0, np.log(0.2)], [2, 7, np.log(5)]
        return adaptive(log_f, *box, [6, 5, 10], fine, tol=1e-3) - np.log(35 * np.log(25))

    return one("pulsar_red_noise", "a ridge of amplitude and slope", priors, log_likelihood, exact)


def logistic_growth(seed: int) -> Problem:
    r"""$y = K / (1 + (K / y_0 - 1) e^{-r t}) \pm s$, the solution of $y' = r y (1 - y / K)$, lognormal priors."""
    rng = np.random.default_rng([305, seed])
    n = 25
    t = np.linspace(0, rng.uniform(6, 14), n)
    sd = rng.uniform(0.2, 0.8)
    middle, width = np.log([8.0, 0.6, 0.5]), np.array([0.7, 0.8, 1.0])

    def curve(capacity, rate, start, xp):
        return capacity / (1 + (capacity / start - 1) * xp.exp(-rate * t))

    y = curve(*np.exp(middle + 0.6 * width * rng.normal(size=3)), np) + sd * rng.normal(size=n)

    def priors():
        dist = _dist()
        names = ("capacity", "rate", "start")
        return {name: dist.LogNormal(m, w) for name, m, w in zip(names, middle.tolist(), width.tolist(), strict=True)}

    def log_likelihood(p, xp):
        model = curve(*(p[name][..., None] for name in ("capacity", "rate", "start")), xp)
        return gaussian(y, model, sd, xp)

    def exact(fine=1.0):
        def log_f(u):
            capacity, rate, start = np.exp(middle + width * u).T[..., None]
            return gaussian(y, curve(capacity, rate, start, np), sd, np) - 0.5 * np.sum(u**2, axis=1) - 1.5 * LOG_2PI

        return adaptive(log_f, [-7] * 3, [7] * 3, [28] * 3, fine)

    return one("logistic_growth", "a bent ridge", priors, log_likelihood, exact)


FAMILIES = {
    f.__name__: f for f in (change_point, change_points_2, kernel_matern, pulsar_red_noise, logistic_growth)
}  # fmt: skip
