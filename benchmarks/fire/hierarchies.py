r"""Many parameters, of which all but two or three can be integrated exactly: $Z = \int Z(\phi)\, \pi(\phi)\, d\phi$ by quadrature.

Data are simulated, with fixed seeds. Coordinates are as users write them: standard normal $z$, scaled by the hyperparameters.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, logsumexp

import supermodel as sm
from benchmarks.fire.problem import Problem, Side, normal, one, special
from benchmarks.fire.quadrature import linear, moving_hermite, on_grid

PROBIT, RED = -104.12949, -105.09136  # of `probit_exact` and `red_exact`


# -- random-effects probit: 31 groups, intercept, slope, ln sd: 34 parameters ------------------------------------------


@lru_cache
def _probit_data():
    rng = np.random.default_rng(34)
    x = rng.standard_normal((31, 6))
    effect = 0.8 * rng.standard_normal(31)
    y = rng.random((31, 6)) < np.exp(log_ndtr(0.3 + 0.6 * x + effect[:, None]))
    return x, 2.0 * y - 1.0


def probit_given(points):
    """ln p(y) given (a, b, ln s), (n, 3): Gauss-Hermite over each group's effect."""
    x, sign = _probit_data()
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    mean = points[:, 0, None, None] + points[:, 1, None, None] * x
    shift = np.exp(points[:, 2])[:, None, None, None] * nodes
    each = np.sum(log_ndtr(sign[..., None] * (mean[..., None] + shift)), axis=2)  # (n, groups, nodes)
    return np.sum(logsumexp(each, b=weights / np.sqrt(2 * np.pi), axis=-1), axis=-1)


def probit_exact(nodes: int = 18) -> float:
    """Twenty seconds: PROBIT keeps the number."""

    def integrand(points):
        prior = normal(points[:, 0], 0, 2, np) + normal(points[:, 1], 0, 2, np) + normal(points[:, 2], -0.5, 1, np)
        return np.concatenate([probit_given(part) for part in np.array_split(points, 40)]) + prior

    return moving_hermite(integrand, [0.3, 0.6, -0.4], [0.3, 0.2, 0.5], nodes)


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


def level_given(points):
    """ln p(y) given (ln level sd, ln noise sd), (n, 2)."""
    return kalman(_level_data(), np.exp(points[:, 0]), np.exp(points[:, 1]))


def _level_exact() -> float:
    def integrand(h):
        return level_given(h) + normal(h[:, 0], -1, 1, np) + normal(h[:, 1], -1, 1, np)

    return moving_hermite(integrand, [-1.2, -0.7], [0.3, 0.2], 64)


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


def red_given(points):
    """ln p(y) given (ln A, g), (n, 2): the coefficients are linear."""
    basis, f, noise, y = _red_data()
    return np.array([linear(basis, y, noise, np.exp(log_a) * f**-g) for log_a, g in points])


def red_exact(nodes: int = 24) -> float:
    """Twenty seconds: RED keeps the number."""

    def integrand(h):
        return red_given(h) + normal(h[:, 0], 0, 1.5, np) + normal(h[:, 1], 1.5, 0.7, np)

    return moving_hermite(integrand, [0.4, 1.6], [0.2, 0.15], nodes)


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


def groups_given(points):
    """ln p(y) given (m, ln s), (n, 2)."""
    y, sd = _group_data()
    return np.sum(normal(y, points[:, :1], np.sqrt(sd**2 + np.exp(2 * points[:, 1:])), np), axis=-1)


def _groups_exact() -> float:
    def integrand(h):
        return groups_given(h) + normal(h[:, 0], 0, 2, np) + normal(h[:, 1], -1, 1, np)

    return moving_hermite(integrand, [1.3, -1.0], [0.06, 0.2], 64)


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


# -- eight groups in centred coordinates, as a joint prior: 10 parameters ----------------------------------------------

SCHOOLS = np.array([2.1, 0.7, -0.4, 1.2, 0.2, 0.6, 2.4, 1.0])
SCHOOLS_SD = np.array([1.2, 0.9, 1.3, 0.8, 0.7, 0.9, 0.8, 1.4])


def _half_normal(x, sd, xp):
    return np.log(2) + normal(x, 0.0, sd, xp)


def _centred_model(kind: str) -> sm.Model:
    if kind == "traced":
        import jax.numpy as xp
    else:
        xp = np

    def log_prior(p):
        top = normal(p["m"], 0.0, 5.0, xp) + _half_normal(p["tau"], 2.0, xp)
        return top + xp.sum(normal(p["theta"], p["m"][..., None], p["tau"][..., None], xp), axis=-1)

    def log_likelihood(p):
        # np.asarray of a tracer raises, so that the black box is not traced.
        theta = p["theta"] if kind == "traced" else np.asarray(p["theta"], float)
        return xp.sum(normal(SCHOOLS, theta, SCHOOLS_SD, xp), axis=-1)

    def sample_prior(rng, n):
        m, tau = rng.normal(0, 5, n), np.abs(rng.normal(0, 2, n))
        return {"m": m, "tau": tau, "theta": m[:, None] + tau[:, None] * rng.standard_normal((n, 8))}

    bounds = {"tau": (0.0, None)}
    # The check of normalisation cannot settle on a funnel of ten parameters; this prior is a product of named densities.
    return sm.from_log_density(
        log_prior, log_likelihood, sample_prior, bounds=bounds, vectorized=kind == "black", check=False
    )


def _centred_exact() -> float:
    def integrand(m, u):
        spread = np.sqrt(SCHOOLS_SD**2 + np.exp(2 * u)[..., None])
        each = np.sum(normal(SCHOOLS, m[..., None], spread, np), axis=-1)
        return each + normal(m, 0, 5, np) + _half_normal(np.exp(u), 2, np) + u

    return on_grid(integrand, (-12, 14, 521), (-30, 4, 1361))


def centred() -> Problem:
    """theta_j ~ N(m, tau), tau down to 0: a funnel, weakly held by the data."""
    side = Side(None, None, _centred_exact, _centred_model)
    return Problem("centred_10", "centred hierarchy", {"model": side})


# -- horseshoe: five signals, each with its own half-Cauchy scale, and a common one: 11 parameters ---------------------

SIGNALS = np.array([0.1, -0.5, 0.3, 6.0, 1.2])


def _horseshoe_exact() -> float:
    def log_half_cauchy(u, scale):  # density of u = ln x
        return np.log(2 / np.pi) + u - np.log(scale) - np.log1p(np.exp(2 * u) / scale**2)

    def given(u):
        def one_signal(y):
            return on_grid(
                lambda v: log_half_cauchy(v, 1.0) + normal(y, 0, np.sqrt(1 + np.exp(2 * (u + v))), np), (-40, 40, 1601)
            )

        return sum(one_signal(y) for y in SIGNALS)

    return on_grid(lambda grid: np.array([given(u) + log_half_cauchy(u, 0.5) for u in grid]), (-40, 40, 801))


def horseshoe() -> Problem:
    """y_i = tau lambda_i z_i ± 1."""

    def priors():
        import numpyro.distributions as dist

        return {
            "tau": dist.HalfCauchy(0.5), "scale": dist.HalfCauchy(1.0).expand([5]), "z": dist.Normal(0, 1).expand([5])
        }  # fmt: skip

    def log_likelihood(p, xp):
        return xp.sum(normal(SIGNALS, p["tau"][..., None] * p["scale"] * p["z"], 1.0, xp), axis=-1)

    return one("horseshoe_11", "horseshoe", priors, log_likelihood, _horseshoe_exact)


PROBLEMS = [probit(), local_level(), red_noise(), groups(), centred(), horseshoe()]
