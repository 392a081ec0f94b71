r"""`python -m benchmarks hierarchies [--seeds 10] [--first 0] [--kind black]`: 40 hierarchies of 25 to 100 parameters.

$\theta_j = \mu + \tau z_j$, $y_j \sim N(\theta_j, s_j)$: ten data sets with and without the cut $y_j > 0$, each in centred
coordinates $(\mu, \tau, \theta)$ and in $(\mu, \tau, z)$. With a cut, $L_j = N(y_j; \theta_j, s_j) / \Phi(\theta_j / s_j)$, so that
large negative $\mu$ with large $\tau$ are a long tail. The groups are integrated out one by one, $(\mu, \tau)$ on adaptive cells.
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
CLAIM = "rms z at most 1.2, mean z within 0.3"


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


def run(problem: Problem, kind: str, seed: int) -> dict:
    """One answer beside the truth."""
    since = time.perf_counter()
    found = sm.evidence(problem.models(kind)["model"], seed=seed, progress=False)
    off = found.value - problem.truth
    codes = ", ".join(reason.code for reason in found.verdict.reasons)
    row = {
        "off": off, "error": found.error, "z": off / found.error, "level": found.verdict.level, "codes": codes,
        "calls": found.evaluations["likelihood"],
    }  # fmt: skip
    print(
        f"{problem.name} {seed}: {off:+.3f} ± {found.error:.3f}, z {row['z']:+.1f}, {row['level']} {codes}, "
        f"{row['calls']} calls, {time.perf_counter() - since:.1f} s",
        flush=True,
    )
    return row


def summary(name: str, rows: list[dict]) -> str:
    """A row of the table."""
    z, off = (np.array([row[key] for row in rows]) for key in ("z", "off"))
    levels = ", ".join(f"{n} {level}" for level, n in Counter(row["level"] for row in rows).items())
    calls = np.median([row["calls"] for row in rows])
    return (
        f"| {name} | {len(rows)} | {np.sqrt(np.mean(z**2)):.2f} | {z.mean():+.2f} | {np.mean(np.abs(z) < 1.96):.1%} | "
        f"{np.sqrt(np.mean(off**2)):.3f} | {np.abs(off).max():.3f} | {levels} | {calls:.0f} |"
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks hierarchies", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", default="black", choices=("black", "traced"))
    args = parser.parse_args(argv)
    found: dict[str, list[dict]] = {}
    for seed in range(args.first, args.first + args.seeds):
        for selected in (False, True):
            for centred in (False, True):
                problem = hierarchy(seed, selected, centred)
                found.setdefault(problem.name, []).append(run(problem, args.kind, seed))
    rows = [row for each in found.values() for row in each]
    print(
        "| | runs | rms z | mean z | within 1.96 | rms off | most | verdicts | calls |\n|---|---|---|---|---|---|---|---|---|"
    )
    print("\n".join(summary(name, each) for name, each in [*found.items(), ("all", rows)]))
    z = np.array([row["z"] for row in rows])
    good = bool(np.sqrt(np.mean(z**2)) <= 1.2 and abs(z.mean()) <= 0.3)
    print(f"{CLAIM}: {'holds' if good else 'does not hold'}")
    return 0 if good else 1
