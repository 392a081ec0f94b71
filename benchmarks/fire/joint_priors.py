"""Priors whose numbers hang together: points of a simplex, positive definite matrices. Conjugate, so closed."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, multigammaln

from benchmarks.fire.problem import Problem, one


def simplex(name: str, shape: float, counts: list[int]) -> Problem:
    """Shares ~ Dirichlet(shape), a sequence of draws with these counts."""
    n = np.array(counts)
    k, seen = len(n), n > 0

    def priors():
        import numpyro.distributions as dist

        return {"w": dist.Dirichlet(np.full(k, shape))}

    def log_likelihood(p, xp):
        return xp.sum(n[seen] * xp.log(p["w"][..., seen]), axis=-1)

    exact = gammaln(k * shape) - gammaln(k * shape + n.sum()) + np.sum(gammaln(shape + n) - gammaln(shape))
    return one(name, "simplex prior", priors, log_likelihood, exact)


def precision_matrix(d: int = 3, n: int = 12, freedom: float = 5.0) -> Problem:
    """A precision matrix ~ Wishart(5, I/5) and n data of N(0, its inverse)."""
    rng = np.random.default_rng(33)
    y = rng.standard_normal((n, d)) @ np.linalg.cholesky(np.eye(d) + 0.6 * (1 - np.eye(d))).T
    scatter, scale = y.T @ y, np.eye(d) / freedom

    def priors():
        import numpyro.distributions as dist

        return {"precision": dist.Wishart(freedom, scale_matrix=scale)}

    def log_likelihood(p, xp):
        trace = xp.sum(p["precision"] * scatter, axis=(-2, -1))
        return 0.5 * n * xp.linalg.slogdet(p["precision"])[1] - 0.5 * trace - 0.5 * n * d * np.log(2 * np.pi)

    exact = (
        multigammaln(0.5 * (freedom + n), d) - multigammaln(0.5 * freedom, d) - 0.5 * n * d * np.log(np.pi)
        - 0.5 * freedom * np.linalg.slogdet(scale)[1]
        - 0.5 * (freedom + n) * np.linalg.slogdet(np.linalg.inv(scale) + scatter)[1]
    )  # fmt: skip
    return one("precision_3x3", "positive-definite prior", priors, log_likelihood, exact)


PROBLEMS = [
    simplex("simplex_4", 1.0, [11, 5, 3, 1]),
    simplex("simplex_sparse", 0.2, [12, 0, 3, 0, 0]),
    precision_matrix(),
]
