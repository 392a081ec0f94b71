"""Random pairs of models whose Bayes factor is known exactly; posteriors that are not Gaussian, 1 to 20 parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

import supermodel as sm


class Problem(NamedTuple):
    """Two models and ln Z_first - ln Z_second."""

    kind: str
    models: dict[str, sm.Model]
    log_bayes_factor: float


def regression(rng: np.random.Generator, vectorized: bool) -> Problem:
    """Linear regression of unknown variance: the posterior is a Student t, the evidence closed."""
    n, d = int(rng.integers(15, 60)), int(rng.integers(2, 12))
    x = rng.standard_normal((n, d))
    y = x @ (rng.standard_normal(d) * (rng.random(d) < 0.6)) * rng.uniform(0.2, 1.5) + rng.standard_normal(n)
    subsets = {"all": list(range(d)), "some": sorted(rng.choice(d, size=int(rng.integers(1, d)), replace=False))}
    models, truth = {}, {}
    for name, columns in subsets.items():
        design, labels = x[:, columns], [f"z{j}" for j in columns]
        models[name] = _regression_model(design, y, labels, vectorized)
        truth[name] = _regression_evidence(design, y)
    return Problem("regression", models, truth["all"] - truth["some"])


SHAPE, SCALE = 3.0, 4.0  # of the inverse gamma prior of the variance


def _regression_model(design, y, labels, vectorized):
    if vectorized:

        def log_likelihood(p):
            v = np.asarray(p["v"])[:, None]
            z = np.stack([p[n] for n in labels], axis=-1)
            r = y - np.sqrt(v) * (z @ design.T)
            return np.sum(-0.5 * np.log(2 * np.pi * v) - 0.5 * r**2 / v, axis=-1)

    else:
        import jax.numpy as jnp

        def log_likelihood(p):
            z = jnp.stack([p[n] for n in labels])
            r = y - jnp.sqrt(p["v"]) * (design @ z)
            return jnp.sum(-0.5 * jnp.log(2 * jnp.pi * p["v"]) - 0.5 * r**2 / p["v"])

    priors = {"v": stats.invgamma(SHAPE, scale=SCALE), **{n: stats.norm(0, 1) for n in labels}}
    return sm.Model(priors, log_likelihood, vectorized=vectorized)


def _regression_evidence(design, y) -> float:
    covariance = np.eye(len(y)) + design @ design.T
    marginal = stats.multivariate_t(np.zeros(len(y)), covariance * SCALE / SHAPE, df=2 * SHAPE)
    return float(marginal.logpdf(y))


def binomial_groups(rng: np.random.Generator, vectorized: bool) -> Problem:
    """d groups of successes: one rate each, against one rate for all. Beta posteriors, closed evidences."""
    d = int(rng.integers(2, 20))
    trials = rng.integers(3, 60, d)
    a, b = rng.uniform(0.8, 3.0, 2)
    rates = rng.beta(a, b, d) if rng.random() < 0.6 else np.full(d, rng.beta(a, b))
    wins = rng.binomial(trials, rates)
    coefficient = np.sum(gammaln(trials + 1) - gammaln(wins + 1) - gammaln(trials - wins + 1))
    labels = [f"q{j}" for j in range(d)]
    separate = coefficient + np.sum(betaln(a + wins, b + trials - wins) - betaln(a, b))
    pooled = coefficient + betaln(a + wins.sum(), b + (trials - wins).sum()) - betaln(a, b)
    models = {
        "separate": sm.Model(
            {n: stats.beta(a, b) for n in labels},
            _binomial(wins, trials, labels, coefficient, vectorized),
            vectorized=vectorized,
        ),
        "pooled": sm.Model(
            {"q": stats.beta(a, b)}, _binomial(wins, trials, ["q"] * d, coefficient, vectorized), vectorized=vectorized
        ),
    }
    return Problem("binomial", models, float(separate - pooled))


def _binomial(wins, trials, labels, coefficient, vectorized):
    if vectorized:

        def log_likelihood(p):
            q = np.stack([p[n] for n in labels], axis=-1)
            return coefficient + np.sum(wins * np.log(q) + (trials - wins) * np.log1p(-q), axis=-1)

    else:
        import jax.numpy as jnp

        def log_likelihood(p):
            q = jnp.stack([p[n] for n in labels])
            return coefficient + jnp.sum(wins * jnp.log(q) + (trials - wins) * jnp.log1p(-q))

    return log_likelihood


def poisson_groups(rng: np.random.Generator, vectorized: bool) -> Problem:
    """d counts: one rate each, against one rate for all. Gamma posteriors, closed evidences."""
    d = int(rng.integers(2, 16))
    shape, rate = rng.uniform(1.5, 4.0), rng.uniform(0.1, 1.0)
    exposure = rng.uniform(0.5, 3.0, d)
    rates = rng.gamma(shape, 1 / rate, d) if rng.random() < 0.6 else np.full(d, rng.gamma(shape, 1 / rate))
    counts = rng.poisson(rates * exposure)
    labels = [f"r{j}" for j in range(d)]
    constant = float(np.sum(counts * np.log(exposure) - gammaln(counts + 1)))

    def closed(n, t):
        return shape * np.log(rate) - gammaln(shape) + gammaln(shape + n) - (shape + n) * np.log(rate + t)

    separate = constant + float(np.sum(closed(counts, exposure)))
    pooled = constant + float(closed(counts.sum(), exposure.sum()))
    prior = stats.gamma(shape, scale=1 / rate)
    models = {
        "separate": sm.Model(
            dict.fromkeys(labels, prior),
            _poisson(counts, exposure, labels, constant, vectorized),
            vectorized=vectorized,
        ),
        "pooled": sm.Model(
            {"r": prior}, _poisson(counts, exposure, ["r"] * d, constant, vectorized), vectorized=vectorized
        ),
    }
    return Problem("poisson", models, separate - pooled)


def _poisson(counts, exposure, labels, constant, vectorized):
    if vectorized:

        def log_likelihood(p):
            r = np.stack([p[n] for n in labels], axis=-1)
            return constant + np.sum(counts * np.log(r) - r * exposure, axis=-1)

    else:
        import jax.numpy as jnp

        def log_likelihood(p):
            r = jnp.stack([p[n] for n in labels])
            return constant + jnp.sum(counts * jnp.log(r) - r * exposure)

    return log_likelihood


KINDS = (regression, binomial_groups, poisson_groups)


def draw(seed: int, vectorized: bool) -> Problem:
    """The problem of this seed."""
    rng = np.random.default_rng(seed)
    return KINDS[seed % len(KINDS)](rng, vectorized)
