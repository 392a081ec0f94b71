"""Common parameters shared or replicated, and priors combined as well as likelihoods (Sec. 2.1, 2.1.3)."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit

from supermodel.estimation.rao_blackwell import shares
from supermodel.jax_scope import float64
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import autocorrelation_time, crossings
from supermodel_paper.examples import linear_exact
from supermodel_paper.figures import BLUE, RED, canvas, say
from supermodel_paper.runs import PLANS, Runs, cost, ln_b21, worst_rhat
from supermodel_paper.supermodels import companion, with_companions
from supermodel_paper.table import Found, Ours, experiment, ours

NAMES = ("theta0", "theta1", "theta2", "theta4")


def exact_draws(kind: str, n: int, seed: int) -> Draws:
    """Independent draws of the tilted mixture: half of M1's posterior, half of M2's with its companion of theta2."""
    import jax

    supermodel, q, rng = with_companions(kind), companion(kind), np.random.default_rng(seed)
    first = linear_exact("M1").sample_posterior(rng, n // 2)
    second = np.insert(linear_exact("M2").sample_posterior(rng, n - n // 2), 2, 0.0, axis=1)
    second[:, 2] = q.location(dict(zip(NAMES, second.T, strict=True))) + q.sd * rng.standard_normal(len(second))
    u = np.concatenate([first, second])[rng.permutation(n)]
    u = u[:, [NAMES.index(label) for label in supermodel.labels]]
    with float64():
        logs = np.asarray(jax.jit(jax.vmap(supermodel.log_joints))(u))
    return Draws(supermodel, np.full((1, n), 0.5), logs[None], u[None], {"likelihood": 2 * n, "gradient": 0})


@experiment
def companions(runs: Runs) -> Found:
    """Combining priors as well: sigma sqrt(N) of the Rao-Blackwell estimate falls (A8)."""
    n = runs.settings.exact_draws

    @cache
    def by_exact_draws(kind: str) -> Ours:
        draws = exact_draws(kind, n, runs.settings.seed)
        return ours(ln_b21(shares(draws)), evaluations=cost(draws))

    chain = runs["linear with companions"]
    joints = np.moveaxis(chain.log_joints + chain.supermodel.tilt, -1, 0)
    tau = 10 * autocorrelation_time(np.exp(chain.log_joints[..., 0] - np.logaddexp(*joints)))
    return Found(
        {
            "exact draws": by_exact_draws,
            "sigma": lambda kind: (by_exact_draws(kind).error or math.nan) * math.sqrt(n),
            "chain": runs.ours("linear with companions"),
            "tau": 50 * runs.read("linear tilt").details["tau"][0] / tau,
        }
    )


@experiment
def layouts(runs: Runs) -> Found:
    """Shared against replicated parameters (A17, A18)."""
    shared, replicated = runs["linear tilt"], runs["linear replicated"]
    covariance = linear_exact("M1").posterior_covariance
    words = {
        "trips": int(crossings(replicated).round_trips.sum()),
        "steps": replicated.alpha.size * 50,
        "lost": -0.5
        * float(np.linalg.slogdet(covariance)[1]),  # -ln of the share of M1's prior that its posterior fills
    }
    numbers = {
        "shared": runs.ours("linear tilt"),
        "cured": runs.ours("linear replicated with companions"),
        "tau": 50 * autocorrelation_time(replicated.alpha) / (50 * autocorrelation_time(shared.alpha)),
        "rhat": Ours(worst_rhat(replicated), words=words),
        "width": replicated.parameters()["M1.theta0"].std() / math.sqrt(covariance[0, 0]),
    }
    return Found(numbers, {"layouts": _figure(shared, replicated)})


def _figure(shared: Draws, replicated: Draws) -> Any:
    figure, axes = canvas(8, 3.4, 1, 2, sharey=True)
    for ax, draws, title in zip(
        axes, (shared, replicated), ("shared: chains cross", "replicated: each stays"), strict=True
    ):
        steps = PLANS["linear tilt"].thin * np.arange(draws.n_draws)[:150]
        for chain, shade in ((0, BLUE), (1, RED)):
            ax.plot(steps, _share_of_m1(draws)[chain, :150] + 0.01 * (1 - 2 * chain), color=shade, linewidth=1.3)
        ax.set(title=title, xlabel="steps", ylim=(-0.05, 1.05))
    axes[0].set_ylabel(r"share of $M_1$")
    say(axes[1], steps[-1] / 2, 0.9, "started in $M_1$", BLUE, ha="center")
    say(axes[1], steps[-1] / 2, 0.1, "started in $M_2$", RED, ha="center")
    return figure


def _share_of_m1(draws: Draws) -> np.ndarray:
    """P(M1 | alpha, theta) at every draw."""
    with np.errstate(divide="ignore"):
        log_odds = np.log(draws.alpha) - np.log1p(-draws.alpha)
    return expit(log_odds + draws.log_joints[..., 0] - draws.log_joints[..., 1] + draws.supermodel.tilt[0])
