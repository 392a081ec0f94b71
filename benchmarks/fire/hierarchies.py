r"""Many parameters, of which all but two or three can be integrated exactly: $Z = \int Z(\phi)\, \pi(\phi)\, d\phi$ by quadrature.

Data are simulated, with fixed seeds. Coordinates are as users write them: standard normal $z$, scaled by the hyperparameters.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, logsumexp

from benchmarks.fire.problem import Problem, normal, one, special


PROBIT, RED = -104.1295, -105.0914  # of `probit_exact` and `red_exact`


def integrate(log_integrand, centre, scale, nodes: int = 48, turns: int = 3) -> float:
    r"""$\ln \int e^{f}$ over a few dimensions: Gauss-Hermite on N(centre, covariance), which is then moved to the moments of f.

    `log_integrand` takes (n, d). The answer settles once centre and covariance are those of the integrand.
    """
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    centre, factor = np.asarray(centre, float), np.diag(np.asarray(scale, float))
    d = len(centre)
    u = np.stack(np.meshgrid(*[x] * d, indexing="ij"), axis=-1).reshape(-1, d)
    log_w = np.sum(np.stack(np.meshgrid(*[np.log(w)] * d, indexing="ij"), axis=-1).reshape(-1, d), axis=-1)
    keep = log_w > log_w.max() - 80
    u, log_w = u[keep], log_w[keep]
    for turn in range(turns):
        points = centre + u @ factor.T
        terms = log_w + 0.5 * np.sum(u**2, axis=-1) + log_integrand(points) + np.linalg.slogdet(factor)[1]
        total = logsumexp(terms)
        if turn + 1 < turns:
            share = np.exp(terms - total)[:, None]
            centre = np.sum(share * points, axis=0)
            rest = points - centre
            # A little wider than the moments: tails heavier than the normal's are then still inside the nodes.
            factor = 1.15 * np.linalg.cholesky(np.einsum("ni,nj,nk->ij", rest, rest, share))
    return float(total)


def _in_batches(function, points, size: int = 2000):
    return np.concatenate([function(points[i : i + size]) for i in range(0, len(points), size)])


# -- random-effects probit: 31 groups, intercept, slope, ln sd: 34 parameters ------------------------------------------


@lru_cache
def _probit_data():
    rng = np.random.default_rng(34)
    x = rng.standard_normal((31, 6))
    effect = 0.8 * rng.standard_normal(31)
    y = rng.random((31, 6)) < np.exp(log_ndtr(0.3 + 0.6 * x + effect[:, None]))
    return x, 2.0 * y - 1.0


def probit_exact(nodes_a_side: int = 18) -> float:
    """Gauss-Hermite over each group's effect, then over the three others; 20 s, so that PROBIT keeps the number."""
    x, sign = _probit_data()
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = np.log(weights) - 0.5 * np.log(2 * np.pi)

    def marginal(points):
        mean = points[:, 0, None, None] + points[:, 1, None, None] * x
        shift = np.exp(points[:, 2])[:, None, None, None] * nodes
        each = np.sum(log_ndtr(sign[..., None] * (mean[..., None] + shift)), axis=2)  # (n, groups, nodes)
        return np.sum(logsumexp(each + weights, axis=-1), axis=-1)

    def integrand(points):
        prior = normal(points[:, 0], 0, 2, np) + normal(points[:, 1], 0, 2, np) + normal(points[:, 2], -0.5, 1, np)
        return _in_batches(marginal, points, 200) + prior

    return integrate(integrand, [0.3, 0.6, -0.4], [0.3, 0.2, 0.5], nodes_a_side)


def probit() -> Problem:
    """y_ij = 1 with probability Phi(a + b x_ij + s z_i)."""

    def priors():
        import numpyro.distributions as dist

        return {
            "a": dist.Normal(0, 2), "b": dist.Normal(0, 2), "log_s": dist.Normal(-0.5, 1),
            "z": dist.Normal(0, 1).expand([31]),
        }  # fmt: skip

    def log_likelihood(p, xp):
        x, sign = _probit_data()
        mean = p["a"][..., None, None] + p["b"][..., None, None] * x
        eta = mean + (xp.exp(p["log_s"])[..., None] * p["z"])[..., None]
        return xp.sum(special(xp).log_ndtr(sign * eta), axis=(-2, -1))

    return one("probit_34", "random-effects probit", priors, log_likelihood, PROBIT)


# -- local level: 100 innovations, two ln sd: 102 parameters -----------------------------------------------------------


@lru_cache
def _level_data():
    rng = np.random.default_rng(102)
    return np.cumsum(0.3 * rng.standard_normal(100)) + 0.5 * rng.standard_normal(100)


def kalman(y, level_sd, noise_sd):
    """ln p(y) of a random walk from 0 seen through noise, for arrays of standard deviations."""
    mean, variance, total = np.zeros_like(level_sd), np.zeros_like(level_sd), np.zeros_like(level_sd)
    for value in y:
        variance = variance + level_sd**2
        spread = variance + noise_sd**2
        total = total + normal(value, mean, np.sqrt(spread), np)
        gain = variance / spread
        mean, variance = mean + gain * (value - mean), variance * (1 - gain)
    return total


def _level_exact() -> float:
    def integrand(h):
        prior = normal(h[:, 0], -1, 1, np) + normal(h[:, 1], -1, 1, np)
        return kalman(_level_data(), np.exp(h[:, 0]), np.exp(h[:, 1])) + prior

    return integrate(integrand, [-1.2, -0.7], [0.3, 0.2], 64)


def local_level() -> Problem:
    """y_t = mu_t + noise, mu_t = mu_(t-1) + s z_t; the Kalman filter integrates the walk."""

    def priors():
        import numpyro.distributions as dist

        return {
            "log_level": dist.Normal(-1, 1), "log_noise": dist.Normal(-1, 1), "z": dist.Normal(0, 1).expand([100])
        }  # fmt: skip

    def log_likelihood(p, xp):
        mu = xp.exp(p["log_level"])[..., None] * xp.cumsum(p["z"], axis=-1)
        return xp.sum(normal(_level_data(), mu, xp.exp(p["log_noise"])[..., None], xp), axis=-1)

    return one("local_level_102", "state space", priors, log_likelihood, _level_exact)


# -- red noise: 49 frequencies, sine and cosine, amplitude and index: 100 parameters -----------------------------------


@lru_cache
def _red_data():
    rng = np.random.default_rng(100)
    t = np.sort(rng.random(150))
    f = np.arange(1, 50)
    basis = np.concatenate([np.sin(2 * np.pi * t[:, None] * f), np.cos(2 * np.pi * t[:, None] * f)], axis=1)
    f = np.concatenate([f, f])
    noise = 0.4
    y = basis @ (1.5 * f**-1.6 * rng.standard_normal(98)) + noise * rng.standard_normal(150)
    return basis, f, noise, y


def red_exact(nodes_a_side: int = 24) -> float:
    """The Gaussian part by a Cholesky factor, amplitude and index by quadrature; 20 s, so that RED keeps the number."""
    basis, f, noise, y = _red_data()

    def one_point(h):
        power = np.exp(2 * h[0]) * f ** (-2 * h[1])
        covariance = noise**2 * np.eye(len(y)) + (basis * power) @ basis.T
        factor = np.linalg.cholesky(covariance)
        r = np.linalg.solve(factor, y)
        prior = normal(h[0], 0, 1.5, np) + normal(h[1], 1.5, 0.7, np)
        return -0.5 * r @ r - np.log(np.diag(factor)).sum() - 0.5 * len(y) * np.log(2 * np.pi) + prior

    return integrate(lambda points: np.array([one_point(h) for h in points]), [0.4, 1.6], [0.2, 0.15], nodes_a_side)


def red_noise() -> Problem:
    """y = F a + noise, a_k = A f_k^-g z_k: ln A ~ N(0, 1.5), g ~ N(1.5, 0.7)."""

    def priors():
        import numpyro.distributions as dist

        return {"log_a": dist.Normal(0, 1.5), "g": dist.Normal(1.5, 0.7), "z": dist.Normal(0, 1).expand([98])}

    def log_likelihood(p, xp):
        basis, f, noise, y = _red_data()
        a = xp.exp(p["log_a"][..., None] - p["g"][..., None] * np.log(f)) * p["z"]
        return xp.sum(normal(y, a @ basis.T, noise, xp), axis=-1)

    return one("red_noise_100", "red noise", priors, log_likelihood, RED)


# -- a hierarchy: 85 groups, mean and ln sd: 87 parameters -------------------------------------------------------------


@lru_cache
def _group_data():
    rng = np.random.default_rng(87)
    sd = 0.8 / np.sqrt(rng.integers(1, 20, 85))
    return 1.3 + 0.35 * rng.standard_normal(85) + sd * rng.standard_normal(85), sd


def _groups_exact() -> float:
    y, sd = _group_data()

    def integrand(h):
        each = normal(y, h[:, :1], np.sqrt(sd**2 + np.exp(2 * h[:, 1:])), np)
        return np.sum(each, axis=-1) + normal(h[:, 0], 0, 2, np) + normal(h[:, 1], -1, 1, np)

    return integrate(integrand, [1.3, -1.0], [0.06, 0.2], 64)


def groups() -> Problem:
    """Group means y_j = m + s z_j ± sd_j."""

    def priors():
        import numpyro.distributions as dist

        return {"m": dist.Normal(0, 2), "log_s": dist.Normal(-1, 1), "z": dist.Normal(0, 1).expand([85])}

    def log_likelihood(p, xp):
        y, sd = _group_data()
        mean = p["m"][..., None] + xp.exp(p["log_s"])[..., None] * p["z"]
        return xp.sum(normal(y, mean, sd, xp), axis=-1)

    return one("hierarchy_87", "hierarchy", priors, log_likelihood, _groups_exact)


PROBLEMS = [probit(), local_level(), red_noise(), groups()]
