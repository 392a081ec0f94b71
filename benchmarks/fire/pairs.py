"""Several models at once."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import gammaln, logsumexp

from benchmarks.fire.problem import Problem, Side, normal
from benchmarks.fire.quadrature import linear

COUNTS = np.array([4, 5, 3, 6, 4, 2, 1, 0, 2, 1])
YEARS = np.arange(1, 11)


def counts() -> Problem:
    """The counts of docs/tutorials/toml.md: rate, or rate exp(-year / life), whose likelihood goes flat at large life.

    Given `life` the rate integrates in closed form (Gamma and Poisson); `life` is then one integral.
    """

    def given(factor):
        n, exposure = COUNTS.sum(), np.sum(factor, axis=-1)
        closed = 2 * np.log(0.5) - gammaln(2) + gammaln(2 + n) - (2 + n) * np.log(0.5 + exposure)
        return closed + np.sum(COUNTS * np.log(factor), axis=-1) - np.sum(gammaln(COUNTS + 1))

    def fading_exact():
        u = np.linspace(0, np.log(100), 20_001)
        terms = given(np.exp(-YEARS / np.exp(u)[:, None]))
        weights = np.full(len(u), 1.0)
        weights[[0, -1]] = 0.5
        return logsumexp(terms, b=weights / (len(u) - 1))

    def poisson(mean, xp):
        return xp.sum(COUNTS * xp.log(mean) - mean, axis=-1) - np.sum(gammaln(COUNTS + 1))

    def steady_priors():
        import numpyro.distributions as dist

        return {"rate": dist.Gamma(2, 0.5)}

    def fading_priors():
        import numpyro.distributions as dist

        return {"rate": dist.Gamma(2, 0.5), "life": dist.LogUniform(1, 100)}

    def steady(p, xp):
        return poisson(p["rate"][..., None] * np.ones(10), xp)

    def fading(p, xp):
        return poisson(p["rate"][..., None] * xp.exp(-YEARS / p["life"][..., None]), xp)

    sides = {
        "fading": Side(fading_priors, fading, fading_exact),
        "steady": Side(steady_priors, steady, lambda: given(np.ones(10))),
    }
    return Problem("counts", "a shoulder", sides)


def regression(design, y, prior_sd: float, labels=None) -> Side:
    """y = X b ± 1, b ~ N(0, prior_sd); b is a vector, or scalars by their labels."""

    def priors():
        import numpyro.distributions as dist

        one = dist.Normal(0, prior_sd)
        return {"b": one.expand([design.shape[1]])} if labels is None else dict.fromkeys(labels, one)

    def log_likelihood(p, xp):
        b = p["b"] if labels is None else xp.stack([p[label] for label in labels], axis=-1)
        return xp.sum(normal(y, b @ design.T, 1.0, xp), axis=-1)

    return Side(priors, log_likelihood, lambda: linear(design, y, 1.0, prior_sd))


def twenty_models() -> Problem:
    """All choices of three among six predictors, at once."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((40, 6))
    y = x @ np.array([1.0, -0.6, 0.4, 0.3, 0.0, 0.0]) + rng.standard_normal(40)
    sides = {
        "".join(map(str, chosen)): regression(x[:, chosen], y, 1.0, [f"b{j}" for j in chosen])
        for chosen in combinations(range(6), 3)
    }
    return Problem("twenty_models", "20 models at once", sides)


def one_against_many() -> Problem:
    """One parameter against 200."""
    rng = np.random.default_rng(200)
    x = rng.standard_normal((250, 200))
    y = 0.25 + x @ (0.05 * rng.standard_normal(200)) + rng.standard_normal(250)
    sides = {"one": regression(np.ones((250, 1)), y, 1.0, ["mean"]), "many": regression(x, y, 0.05)}
    return Problem("one_v_200", "one parameter against 200", sides)


def far_apart() -> Problem:
    """A line against nothing at all, ln B of about 1000: a model without parameters, and the data leave no doubt."""
    rng = np.random.default_rng(1000)
    x = np.linspace(-1, 1, 60)
    y = 3.0 + 8.0 * x + rng.standard_normal(60)
    alone = float(np.sum(normal(y, 0.0, 1.0, np)))
    line = regression(np.stack([np.ones(60), x], axis=-1), y, 10.0, ["a", "b"])
    return Problem(
        "far_apart",
        "ln B of 1000",
        {"line": line, "nothing": Side(dict, lambda p, xp: xp.asarray(alone), lambda: alone)},
    )


PROBLEMS = [counts(), twenty_models(), one_against_many(), far_apart()]
