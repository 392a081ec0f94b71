r"""`python -m benchmarks hierarchies [--seeds 10] [--kinds black]`: hierarchies of 25 to 100 parameters, ten data sets of each of four kinds.

$\theta_j = \mu + \tau z_j$, $y_j \sim N(\theta_j, s_j)$, with and without the cut $y_j > 0$, in centred coordinates $(\mu, \tau, \theta)$ and in
$(\mu, \tau, z)$. With a cut, $L_j = N(y_j; \theta_j, s_j) / \Phi(\theta_j / s_j)$: large negative $\mu$ with large $\tau$ are a long tail. The
groups are integrated out one by one, $(\mu, \tau)$ on adaptive cells.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
from scipy.special import log_ndtr, logsumexp

import supermodel as sm
from benchmarks.fire.problem import Problem, Side, normal, special
from benchmarks.sky.truths import adaptive, gaussian

WIDTHS = {"mu": 3.0, "tau": 2.0}  # of the prior: mu ~ N(0, 3), tau ~ |N(0, 2)|
KINDS = {f"{a}_{b}": (b == "selected", a == "centred") for a in ("centred", "noncentred") for b in ("all", "selected")}


def hierarchy(seed: int, selected: bool, centred: bool) -> Problem:
    """New data for every seed: 23 to 98 groups, from hardly any scatter between them to much."""
    rng = np.random.default_rng([407, seed, selected])
    groups = int(rng.integers(23, 99))
    mu, tau = rng.uniform(-0.5, 2.0), (0.15, 0.6, 1.8)[seed % 3] * rng.uniform(0.7, 1.4)
    s = rng.uniform(0.5, 1.5, groups)
    least = 0.0 if selected else -np.inf
    theta = mu + tau * rng.normal(size=(4000, groups))
    drawn = theta + s * rng.normal(size=theta.shape)
    y = drawn[np.argmax(drawn > least, axis=0), np.arange(groups)]  # the first that is seen

    def of_groups(theta, xp):
        seen = xp.sum(special(xp).log_ndtr(theta / s), axis=-1) if selected else 0.0
        return gaussian(y, theta, s, xp) - seen

    def top(mu, tau, xp):
        return normal(mu, 0, WIDTHS["mu"], xp) + normal(tau, 0, WIDTHS["tau"], xp) + np.log(2)

    def priors():
        import numpyro.distributions as dist

        return {
            "mu": dist.Normal(0, WIDTHS["mu"]), "tau": dist.HalfNormal(WIDTHS["tau"]),
            "z": dist.Normal(0, 1).expand([groups]),
        }  # fmt: skip

    def log_likelihood(p, xp):
        return of_groups(p["mu"][..., None] + p["tau"][..., None] * p["z"], xp)

    def made(kind: str) -> sm.Model:
        import jax.numpy as jnp

        xp = jnp if kind == "traced" else np

        def log_prior(p):
            each = normal(p["theta"], p["mu"][..., None], p["tau"][..., None], xp)
            return top(p["mu"], p["tau"], xp) + xp.sum(each, axis=-1)

        def sample_prior(rng, n):
            mu, tau = WIDTHS["mu"] * rng.normal(size=n), np.abs(WIDTHS["tau"] * rng.normal(size=n))
            return {"mu": mu, "tau": tau, "theta": mu[:, None] + tau[:, None] * rng.normal(size=(n, groups))}

        def of_theta(p):
            # np.asarray of a tracer raises, so that the black box is not traced.
            return of_groups(p["theta"] if kind == "traced" else np.asarray(p["theta"], float), xp)

        # A product of named densities; the check of normalisation cannot settle on a funnel of so many parameters.
        return sm.from_log_density(
            log_prior, of_theta, sample_prior, bounds={"tau": (0.0, None)}, vectorized=kind == "black", check=False
        )

    def exact(fine: float = 1.0) -> float:
        # Far down the tail the mass of a group is many of its own widths from y_j: z is spread over its prior.
        z = np.linspace(-9.0, 9.0, int(300 * fine))
        log_w = normal(z, 0, 1.0, np) + np.log(z[1] - z[0])

        def log_f(q):
            mu, tau = q[:, 0], q[:, 1]
            if not selected:
                return gaussian(y, mu[:, None], np.hypot(tau[:, None], s), np) + top(mu, tau, np)
            theta, total = mu[:, None] + tau[:, None] * z, top(mu, tau, np)
            for yj, sj in zip(y, s, strict=True):
                total = total + logsumexp(normal(yj, theta, sj, np) - log_ndtr(theta / sj) + log_w, axis=1)
            return total

        return adaptive(log_f, [-25, 0], [17, 11], [21, 11], fine, chunk=2000, least=0)

    name = f"{'centred' if centred else 'noncentred'}_{'selected' if selected else 'all'}"
    side = Side(None, None, exact, made) if centred else Side(priors, log_likelihood, exact)
    return Problem(name, "a hierarchy of many groups", {"model": side})
