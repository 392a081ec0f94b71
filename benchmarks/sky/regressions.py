"""Regressions: outliers, mixtures, ordinal data, overdispersed counts, a horseshoe.

Those without algebra have their truth from long importance sampling; its error is kept in `ERRORS`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, gammaln, log_expit, logsumexp

from benchmarks.fire.problem import Problem, normal, one, special
from benchmarks.sky.truths import LOG_2PI, importance

ERRORS: dict[tuple[str, int, float], float] = {}  # (family, seed, fine): standard error of ln Z, once it is worked out


def _dist():
    import numpyro.distributions as dist

    return dist


def _sampled(name, seed, draw, log_prior, log_like, **options):
    """A truth by `importance` in unbounded coordinates; its standard error goes to ERRORS."""

    def exact(fine=1.0):
        with np.errstate(all="ignore"):
            value, ERRORS[name, seed, fine] = importance(draw, log_prior, log_like, fine, **options)
        return value

    return exact


def _logistic(u):
    """ln of the density of the logit of a uniform number."""
    return log_expit(u) + log_expit(-u)


def outlier_line(seed: int) -> Problem:
    r"""$L = \prod (1 - f) N(y; a + b x, s) + f N(y; a + b x, \sqrt{s^2 + V})$: a line among outliers."""
    rng = np.random.default_rng([501, seed])
    n = 30
    x = np.sort(rng.uniform(-3, 3, n))
    sd = rng.uniform(0.3, 0.7, n)
    bad = rng.random(n) < rng.uniform(0.1, 0.35)
    y = rng.normal(0, 2) + rng.normal(0, 1.5) * x + np.where(bad, rng.uniform(3, 8), sd) * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "a": dist.Normal(0, 5), "b": dist.Normal(0, 3), "f": dist.Uniform(0, 1), "log_v": dist.Normal(2, 2),
        }  # fmt: skip

    def log_likelihood(p, xp):
        a, b, f, v = (p[name][..., None] for name in ("a", "b", "f", "log_v"))
        rest = y - a - b * x
        wide = xp.sqrt(sd**2 + xp.exp(v))
        return xp.sum(
            xp.logaddexp(xp.log1p(-f) + normal(rest, 0, sd, xp), xp.log(f) + normal(rest, 0, wide, xp)), axis=-1
        )

    def draw(rng, m):
        f = rng.logistic(size=m)
        return np.stack([rng.normal(0, 5, m), rng.normal(0, 3, m), f, rng.normal(2, 2, m)], axis=1)

    def log_prior(u):
        return (
            normal(u[:, 0], 0, 5.0, np) + normal(u[:, 1], 0, 3.0, np) + _logistic(u[:, 2]) + normal(u[:, 3], 2, 2.0, np)
        )

    def log_like(u):
        f = np.clip(1 / (1 + np.exp(-u[:, 2])), 1e-300, 1 - 1e-16)
        return log_likelihood({"a": u[:, 0], "b": u[:, 1], "f": f, "log_v": u[:, 3]}, np)

    exact = _sampled("outlier_line", seed, draw, log_prior, log_like)
    return one("outlier_line", "outliers", priors, log_likelihood, exact)


def normal_mixture_2(seed: int) -> Problem:
    r"""$L = \prod w N(y; m_1, s_1) + (1 - w) N(y; m_2, s_2)$, the same in both labels."""
    rng = np.random.default_rng([502, seed])
    n = 50
    gap, share = rng.uniform(1.5, 6), rng.uniform(0.25, 0.75)
    first = rng.random(n) < share
    y = np.where(first, -gap / 2, gap / 2) + np.where(first, *rng.uniform(0.5, 1.3, 2)) * rng.normal(size=n)

    def priors():
        dist = _dist()
        return {
            "m1": dist.Normal(0, 4), "m2": dist.Normal(0, 4), "s1": dist.LogNormal(0, 0.6), "s2": dist.LogNormal(0, 0.6),
            "w": dist.Beta(2, 2),
        }  # fmt: skip

    def log_likelihood(p, xp):
        m1, m2, s1, s2, w = (p[name][..., None] for name in ("m1", "m2", "s1", "s2", "w"))
        both = xp.log(w) + normal(y, m1, s1, xp), xp.log1p(-w) + normal(y, m2, s2, xp)
        return xp.sum(xp.logaddexp(*both), axis=-1)

    def draw(rng, m):
        w = rng.beta(2, 2, m)
        columns = rng.normal(0, 4, (m, 2)), rng.normal(0, 0.6, (m, 2)), np.log(w / (1 - w))[:, None]
        return np.concatenate(columns, axis=1)

    def log_prior(u):
        middle = np.sum(normal(u[:, :2], 0, 4.0, np) + normal(u[:, 2:4], 0, 0.6, np), axis=1)
        return middle + 2 * _logistic(u[:, 4]) - betaln(2, 2)

    def log_like(u):
        w = np.clip(1 / (1 + np.exp(-u[:, 4])), 1e-300, 1 - 1e-16)
        s = np.exp(u[:, 2:4])
        return log_likelihood({"m1": u[:, 0], "m2": u[:, 1], "s1": s[:, 0], "s2": s[:, 1], "w": w}, np)

    exact = _sampled("normal_mixture_2", seed, draw, log_prior, log_like, k=10, points=4000)
    return one("normal_mixture_2", "exchangeable components", priors, log_likelihood, exact)


def ordinal(seed: int) -> Problem:
    r"""$P(y \le k) = 1 / (1 + e^{x b - c_k})$, c_1 ~ N(-1, 2) and lognormal steps to c_2, c_3."""
    rng = np.random.default_rng([503, seed])
    n = 80
    x = rng.normal(size=(n, 2))
    cuts = rng.normal(-1, 0.5) + np.concatenate([[0], np.cumsum(rng.uniform(0.6, 1.6, 2))])
    y = np.sum((x @ rng.normal(0, 1, 2) + rng.logistic(size=n))[:, None] > cuts, axis=1)

    def priors():
        dist = _dist()
        return {
            "b1": dist.Normal(0, 2), "b2": dist.Normal(0, 2), "c1": dist.Normal(-1, 2), "step2": dist.LogNormal(0, 1),
            "step3": dist.LogNormal(0, 1),
        }  # fmt: skip

    def log_likelihood(p, xp):
        eta = p["b1"][..., None] * x[:, 0] + p["b2"][..., None] * x[:, 1]
        cuts = xp.stack([p["c1"], p["c1"] + p["step2"], p["c1"] + p["step2"] + p["step3"]], axis=-1)
        below = 1 / (1 + xp.exp(eta[..., None] - cuts[..., None, :]))  # (..., data, 3)
        ends = xp.zeros_like(below[..., :1])
        chance = xp.concatenate([below, ends + 1], axis=-1) - xp.concatenate([ends, below], axis=-1)
        return xp.sum(xp.log(xp.sum(chance * (np.arange(4) == y[:, None]), axis=-1) + 1e-300), axis=-1)

    sds = np.array([2.0, 2, 2, 1, 1])
    middle = np.array([0.0, 0, -1, 0, 0])

    def draw(rng, m):
        return middle + sds * rng.normal(size=(m, 5))

    def log_prior(u):
        return np.sum(normal(u, middle, sds, np), axis=1)

    def log_like(u):
        names = ("b1", "b2", "c1", "step2", "step3")
        return log_likelihood(dict(zip(names, [*u[:, :3].T, *np.exp(u[:, 3:]).T], strict=True)), np)

    exact = _sampled("ordinal", seed, draw, log_prior, log_like, n=800_000, k=3, points=1500)
    return one("ordinal", "ordered cut points", priors, log_likelihood, exact)


def negative_binomial(seed: int) -> Problem:
    r"""$y \sim NB(e^{a + x b}, r)$, variance $m + m^2 / r$: overdispersed counts, four parameters."""
    rng = np.random.default_rng([504, seed])
    n = 60
    x = rng.normal(size=(n, 2))
    r = rng.uniform(0.8, 5)
    y = rng.poisson(rng.gamma(r, np.exp(rng.normal(1.2, 0.5) + x @ rng.normal(0, 0.5, 2)) / r))

    def priors():
        dist = _dist()
        return {"a": dist.Normal(0, 2), "b1": dist.Normal(0, 1), "b2": dist.Normal(0, 1), "r": dist.LogNormal(1, 1)}

    def log_likelihood(p, xp):
        lgamma = special(xp).gammaln
        eta = p["a"][..., None] + p["b1"][..., None] * x[:, 0] + p["b2"][..., None] * x[:, 1]
        r = p["r"][..., None]
        log_sum = xp.logaddexp(xp.log(r), eta)
        each = lgamma(y + r) - lgamma(r) - gammaln(y + 1.0) + r * (xp.log(r) - log_sum) + y * (eta - log_sum)
        return xp.sum(each, axis=-1)

    sds, middle = np.array([2.0, 1, 1, 1]), np.array([0.0, 0, 0, 1])

    def draw(rng, m):
        return middle + sds * rng.normal(size=(m, 4))

    def log_prior(u):
        return np.sum(normal(u, middle, sds, np), axis=1)

    def log_like(u):
        return log_likelihood({"a": u[:, 0], "b1": u[:, 1], "b2": u[:, 2], "r": np.exp(u[:, 3])}, np)

    exact = _sampled("negative_binomial", seed, draw, log_prior, log_like, n=800_000, k=3, points=1500)
    return one("negative_binomial", "counts", priors, log_likelihood, exact)


def horseshoe(seed: int) -> Problem:
    r"""$y = \sum_k x_k \tau \lambda_k z_k \pm s$, half-Cauchy $\tau, \lambda_k$: five slopes on an orthogonal design."""
    rng = np.random.default_rng([505, seed])
    n, k, sd = 30, 5, 1.0
    x = np.linalg.qr(rng.normal(size=(n, k)))[0] * np.sqrt(n)
    slopes = np.where(rng.random(k) < 0.4, rng.uniform(0.5, 3, k), 0.0)
    y = x @ slopes + sd * rng.normal(size=n)
    best = x.T @ y / n
    alone = -0.5 * (y @ y - n * best @ best) / sd**2 - 0.5 * n * LOG_2PI - n * np.log(sd)
    alone += k * (0.5 * LOG_2PI + np.log(sd / np.sqrt(n)))  # ln L = alone + sum of ln N(best; slope, sd / sqrt n)

    def priors():
        dist = _dist()
        return {
            "tau": dist.HalfCauchy(0.5), "scales": dist.HalfCauchy(1.0).expand([k]), "z": dist.Normal(0, 1).expand([k]),
        }  # fmt: skip

    def log_likelihood(p, xp):
        slopes = p["tau"][..., None] * p["scales"] * p["z"]
        return alone + xp.sum(normal(best, slopes, sd / np.sqrt(n), xp), axis=-1)

    def exact(fine=1.0):
        # ln lambda and ln tau by the trapezoidal rule; in those both half-Cauchies fall off as e^-|u|.
        u = np.linspace(-25, 25, int(1000 * fine))
        step = u[1] - u[0]

        def cauchy(v, scale):
            return np.log(2 / np.pi) + v - np.log(scale) - np.log1p(np.exp(2 * (v - np.log(scale))))

        total = cauchy(u, 0.5) + np.log(step)
        for b in best:
            wide = np.sqrt(sd**2 / n + np.exp(2 * (u[:, None] + u)))
            total = total + logsumexp(normal(b, 0, wide, np) + cauchy(u, 1.0) + np.log(step), axis=1)
        return float(alone + logsumexp(total))

    return one("horseshoe", "heavy tails and funnels", priors, log_likelihood, exact)


FAMILIES = {f.__name__: f for f in (outlier_line, normal_mixture_2, ordinal, negative_binomial, horseshoe)}
