"""Model-averaged posteriors from the same draws, and how few samples they need (Sec. 2.1.1 and 6)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from supermodel.estimation.by_alpha.averages import averaged
from supermodel.estimation.by_alpha.counts import counts
from supermodel.estimation.rao_blackwell import shares
from supermodel_paper.examples import LINEAR, linear_exact
from supermodel_paper.figures import BLUE, RED, canvas, say
from supermodel_paper.runs import Runs, cost, first_part, ln_b21
from supermodel_paper.table import Found, Ours, experiment


def exact_moments(odds: float = 1.0) -> tuple[float, float]:
    """The evidence-weighted mean and sd of theta0, at prior odds M1 : M2."""
    p1 = 1 / (1 + math.exp(LINEAR) / odds)
    models = [linear_exact(n) for n in ("M1", "M2")]
    m = [model.posterior_mean[0] for model in models]
    s = [math.sqrt(model.posterior_covariance[0, 0]) for model in models]
    mean = p1 * m[0] + (1 - p1) * m[1]
    second = p1 * (s[0] ** 2 + m[0] ** 2) + (1 - p1) * (s[1] ** 2 + m[1] ** 2)
    return mean, math.sqrt(second - mean**2)


@experiment
def averages(runs: Runs) -> Found:
    """Weights and moments of model averages (A13, A14, A11, G5)."""
    balanced = runs["linear tilt"]

    def probability(name: str) -> Ours:
        p = averaged(runs[name], "theta0" if name == "linear" else "omega").probabilities["M1"]
        return Ours(p, ln_b21(runs.read(name)).error * p * (1 - p))

    def mean(odds: float) -> Ours:
        found = averaged(balanced, "theta0", (odds, 1.0))
        return Ours(float(found.mean), float(found.mean_error), exact_moments(odds)[0], evaluations=cost(balanced))

    def sd(odds: float) -> Ours:
        found = averaged(balanced, "theta0", (odds, 1.0))
        return Ours(float(found.sd), float(found.sd_error), exact_moments(odds)[1], evaluations=cost(balanced))

    curve = _errors(runs)
    few = min(int(curve["n"].searchsorted(1000)), len(curve["n"]) - 1)
    words = {"n": curve["n"][few], "bayes": curve["bayes"][few]}
    numbers = {
        "counts": runs.ours("linear index", counts),
        "shares": runs.ours("linear index"),
        "probability": probability,
        "mean": mean,
        "sd": sd,
        "few": Ours(float(curve["mean"][few]), words=words),
    }
    return Found(numbers, {"averages": _figure(curve)})


def _errors(runs: Runs) -> dict[str, np.ndarray]:
    """Errors of the averaged mean (in sd) and of ln B21 against the number of samples, index chain."""
    draws, sd = runs["linear index"], exact_moments()[1]
    parts = [first_part(draws, fraction) for fraction in np.geomspace(8 / draws.n_draws, 1.0, 9)]
    return {
        "n": np.array([part.alpha.size for part in parts]),
        "mean": np.array([float(averaged(part, "theta0").mean_error) / sd for part in parts]),
        "bayes": np.array([ln_b21(shares(part)).error for part in parts]),
    }


def _figure(curve: dict[str, np.ndarray]) -> Any:
    figure, ax = canvas()
    middle = len(curve["n"]) // 2
    for what, colour, lift, text in (
        ("bayes", RED, 0.72, r"of $\ln B_{21}$"),
        ("mean", BLUE, 1.6, r"of the averaged mean of $\theta_0$, in its sd"),
    ):
        ax.plot(curve["n"], curve[what], color=colour, marker="o", markersize=4)
        say(ax, curve["n"][middle] * 1.3, curve[what][middle] * lift, text, colour)
    ax.set(xscale="log", yscale="log", xlabel="samples", ylabel="error")
    ax.grid(axis="y")
    return figure
