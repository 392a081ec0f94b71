"""Several models at once."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from benchmarks.fire.problem import Problem, Side

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


PROBLEMS = [counts()]
