"""The sine example by the combined likelihood: Figures 5 and 6 (Sec. 4)."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.by_alpha.precision import sigma_line
from supermodel_paper import examples, nested_sampling
from supermodel_paper.examples import SINE
from supermodel_paper.figures import BLUE, GREEN, INK, RED, canvas, likelihood_of, say
from supermodel_paper.runs import Runs, cost, ln_b21
from supermodel_paper.table import Found, experiment

MEANS = {"M1": [1.02069494], "M2": [0.99789455, 0.05587449]}  # of the posteriors, by quadrature


def best_fit(name: str) -> np.ndarray:
    """Maximum a posteriori, from the known posterior mean."""
    return minimize(lambda v: -float(examples.sine_log_joint(v[None])[0]), MEANS[name], tol=1e-10).x


@experiment
def figure_5(runs: Runs) -> Found:
    """The data and both fits (S1, S2)."""
    d, x = examples.data("sine"), np.linspace(0, math.pi, 301)
    (only,), (omega, phi) = best_fit("M1"), best_fit("M2")
    figure, ax = canvas()
    ax.errorbar(d["x"], d["y"], d["sigma"], fmt="o", color=INK, markersize=3, linewidth=0.8)
    ax.plot(x, np.sin(only * x), color=BLUE)
    ax.plot(x, np.sin(omega * x + phi), color=RED, linestyle=(0, (5, 2)))
    say(ax, 1.57, 0.42, f"$M_1$: $\\sin(\\omega x)$, ω = {only:.3f}", BLUE, ha="center")
    say(ax, 1.57, 0.3, f"$M_2$: $\\sin(\\omega x + \\phi)$, ω = {omega:.3f}, φ = {phi:.3f}", RED, ha="center")
    ax.set(xlabel="x", ylabel="y")
    origin = np.array([[1.0, 0.0]])
    prior = examples.sine_log_joint(origin) - examples.sine_log_likelihood(origin)
    return Found({"omega": omega, "phi": phi, "prior": prior[0]}, {"figure_05": figure})


@experiment
def figure_6(runs: Runs) -> Found:
    """The likelihood of ln B21 from the chain, beside nested sampling (S3, S4, S5)."""
    draws, fit = runs["sine"], runs.read("sine", line_fit)
    value, nested = ln_b21(fit), nested_sampling.pair(runs, "sine")
    numbers = {
        "fit": runs.ours("sine", line_fit, n=draws.alpha.size),
        "law": sigma_line(SINE, 5e4),
        "shares": runs.ours("sine"),
    }
    lines: list[tuple[float | None, str, str]] = [(SINE, f"quadrature {SINE:.3f}", BLUE)]
    if nested is not None:
        theirs, calls = nested
        numbers["nested"] = nested_sampling.theirs(theirs, calls)
        numbers["gain"] = cost(draws) * value.error**2 / (calls * theirs.error**2)
        lines.append((None, f"nested sampling {theirs}", GREEN))
    figure, ax = likelihood_of(fit, value, *lines)
    if nested is not None:
        ax.errorbar([theirs.value], [0.05 * ax.get_ylim()[1]], xerr=[theirs.error], color=GREEN, fmt="o", capsize=3)
    return Found(numbers, {"figure_06": figure}, {"absent": "" if nested is not None else nested_sampling.ABSENT})
