"""What the paper leaves to future work: products, tempering, HMC, and Rao-Blackwell with a tilt (Sec. 3.2, 6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.estimation.mbar import mbar
from supermodel.estimation.path_integral import path_integral
from supermodel.estimation.rao_blackwell import shares
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import autocorrelation_time
from supermodel_paper import examples
from supermodel_paper.examples import LINEAR, THETA2, linear_exact
from supermodel_paper.figures import BLUE, INK, MUTED, RED, canvas, say
from supermodel_paper.printed_laws import overlap_by_quadrature
from supermodel_paper.runs import Runs, cost, first_part, ln_b21, shares_of_few
from supermodel_paper.supermodels import on_path, product_of_predictions, supermodel
from supermodel_paper.table import Found, Ours, experiment, ours


@experiment
def products(runs: Runs) -> Found:
    """Products of likelihoods and of predictions (G1, G2)."""

    def by(estimator: Callable[..., Any]) -> Callable[[str], Ours]:
        thinned = lambda draws: estimator(draws.thin(max(1, draws.alpha.size // 20_000)))  # noqa: E731
        return lambda example: runs.ours(f"product, {example}", thinned)

    numbers = {
        "closed form": -_path(),
        "path integral": by(path_integral),
        "MBAR": by(mbar),
        "convexity": np.diff([on_path(w)[0] for w in np.linspace(0, 1, 41)], 2).min(),
        "predictions": runs.ours("product of predictions", shares_of_few, product_of_predictions()[1]),
    }
    return Found(numbers, {"path": _figure_path(runs["product, linear"])})


def _path() -> float:
    """The integral of E_w, with nodes dense where the integrand is steep: w = (e^s - 1)/S."""
    z, g = np.polynomial.legendre.leggauss(120)
    S = float(exact.combined_model_spike(linear_exact("M1"), THETA2).S[0, 0])
    top = math.log1p(S)
    s = 0.5 * top * (1 + z)
    e = np.array([on_path(w)[1] for w in np.expm1(s) / S])
    return float(np.sum(0.5 * top * g * np.exp(s) / S * e))


def _figure_path(draws: Draws) -> Any:
    figure, ax = canvas()
    logit = np.linspace(-14, 7, 200)
    w = 1 / (1 + np.exp(-logit))
    integrand = -w * (1 - w) * [on_path(x)[1] for x in w]
    ax.axhline(0, color=MUTED, linewidth=0.8)
    ax.fill_between(logit, integrand, color=BLUE, alpha=0.15, linewidth=0)
    ax.plot(logit, integrand, color=BLUE)
    rungs: Any = draws.supermodel.coordinate
    f = rungs.table[:, 0]
    gap = draws.log_joints[..., 0] - draws.log_joints[..., 1]
    inner = [m for m in range(len(f)) if 0 < f[m] < 1 and np.any(draws.alpha == m)]
    means = [-f[m] * (1 - f[m]) * gap[draws.alpha == m].mean() for m in inner]
    ax.plot(np.log(f[inner] / (1 - f[inner])), means, "o", color=RED, markersize=4.5)
    ax.set(
        xlabel=r"$\ln[\alpha/(1-\alpha)]$", ylabel=r"$-\alpha(1-\alpha)\,E_\alpha[\ln L_1 - \ln L_2]$", xlim=(-14, 7)
    )
    say(ax, 0.4, 0.44, "closed form", BLUE)
    say(ax, 0.4, 0.38, "Metropolis, rung by rung", RED)
    say(ax, -9.2, 0.12, f"area: ln B₂₁ = {LINEAR:.2f}", INK, fontsize=9.5)
    return figure


@experiment
def tempering_and_gradients(runs: Runs) -> Found:
    """A tempered sampler, and HMC beside Metropolis (G3, D11)."""
    hmc = runs["HMC"]
    walk_tau, hmc_tau = (autocorrelation_time(runs[name].alpha) for name in ("Metropolis, every step", "HMC"))
    return Found(
        {
            "tempered": runs.ours("tempered"),
            "HMC": runs.ours("HMC"),
            "per sample": Ours(walk_tau / hmc_tau, words={"walk": walk_tau, "hmc": hmc_tau}),
            "per call": walk_tau / (hmc_tau * cost(hmc) / hmc.alpha.size / 2),
        }
    )


@experiment
def rao_blackwell(runs: Runs) -> Found:
    """The mean share with a tilt (G6)."""
    first = lambda t: examples.sine_log_joint(t[:, :1]) + examples.normal(t[:, 1:], 0.0, 0.05)  # noqa: E731
    box = np.array([[0.9, 1.1], [-0.3, 0.3]])

    def quadrature(tilt: float) -> float:
        return overlap_by_quadrature(first, examples.sine_log_joint, box, tilt=tilt, tolerance=1e-7).sigma_sqrt_n

    return Found(
        {
            "linear": runs.ours("linear tilt"),
            "sine": runs.ours("sine tilt"),
            "sigma": lambda name: _sigma_sqrt_n(runs[name]),
            "quadrature": quadrature,
            "adaptive": _adaptive_tilt(runs),
        }
    )


def _sigma_sqrt_n(draws: Draws) -> float:
    """Of independent draws: the spread of the share of M1 over P(1 - P)."""
    raised = draws.log_joints[..., 0] + draws.supermodel.tilt[0]
    w = np.exp(raised - np.logaddexp(raised, draws.log_joints[..., 1]))
    p = w.mean()
    return float(w.std() / (p * (1 - p)))


def _adaptive_tilt(runs: Runs) -> Ours:
    """The untilted chain gives a first answer, which is the tilt of a second, short one."""
    pilot = first_part(runs["linear"], 0.1)
    tilt = round(ln_b21(shares(pilot)).value, 1)
    draws = runs.sample(supermodel("linear", tilt=tilt), f"tilt of {tilt}")
    return ours(ln_b21(shares(draws)), evaluations=cost(pilot) + cost(draws))
