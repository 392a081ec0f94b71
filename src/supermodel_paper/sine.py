"""The sine example by the combined likelihood: Figures 5 and 6 (Sec. 4)."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.by_alpha.precision import sigma_line
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.rao_blackwell import shares
from supermodel_paper import examples, nested_sampling
from supermodel_paper.examples import SINE
from supermodel_paper.figures import BLUE, GREEN, INK, RED, canvas, likelihood_curve, mark, say
from supermodel_paper.numbers import Number, Part, Picture, Quoted, measured, quoted
from supermodel_paper.runs import Runs, cost

MEANS = {"M1": [1.02069494], "M2": [0.99789455, 0.05587449]}  # of the posteriors, by quadrature


def best_fit(name: str) -> np.ndarray:
    """Maximum a posteriori, from the known posterior mean."""
    return minimize(lambda v: -float(examples.sine_log_joint(v[None])[0]), MEANS[name], tol=1e-10).x


def figure_5(runs: Runs) -> Part:
    """The data and both fits (S1, S2)."""
    d, x = examples.data("sine"), np.linspace(0, math.pi, 301)
    fits = {n: best_fit(n) for n in ("M1", "M2")}
    figure, ax = canvas()
    ax.errorbar(d["x"], d["y"], d["sigma"], fmt="o", color=INK, markersize=3, linewidth=0.8)
    ax.plot(x, np.sin(fits["M1"][0] * x), color=BLUE)
    ax.plot(x, np.sin(fits["M2"][0] * x + fits["M2"][1]), color=RED, linestyle=(0, (5, 2)))
    say(ax, 1.57, 0.42, f"$M_1$: $\\sin(\\omega x)$, ω = {fits['M1'][0]:.3f}", BLUE, ha="center")
    say(
        ax,
        1.57,
        0.3,
        f"$M_2$: $\\sin(\\omega x + \\phi)$, ω = {fits['M2'][0]:.3f}, φ = {fits['M2'][1]:.3f}",
        RED,
        ha="center",
    )
    ax.set(xlabel="x", ylabel="y")
    prior = examples.sine_log_joint(np.array([[1.0, 0.0]])) - examples.sine_log_likelihood(np.array([[1.0, 0.0]]))
    numbers = [
        Number("S1", "best ω of M₂ (true value 1)", float(fits["M2"][0]), bounds=(1 - 3 * 0.0082, 1 + 3 * 0.0082)),
        Number(
            "S1", "best φ of M₂ (true value 0.06)", float(fits["M2"][1]), bounds=(0.06 - 3 * 0.016, 0.06 + 3 * 0.016)
        ),
        Number(
            "S2",
            "ln prior density at ω = 1, φ = 0",
            float(prior[0]),
            exact=-math.log(2 * math.pi * 2 * 0.05),
            tolerance=1e-9,
            paper=Quoted("N(1, 2²), N(0, 0.05²)", holds=True),
        ),
    ]
    caption = "50 points of sin(ωx + φ), ω = 1, φ = 0.06, σ = 0.05, and the best fit of each model."
    return Part(
        "Data of the sine example", "", numbers, [Picture("figure_05", "Figure 5: the sine data", caption, figure)]
    )


def figure_6(runs: Runs) -> Part:
    """The likelihood of ln B21 from the chain, beside nested sampling (S3, S4, S5)."""
    draws = runs["sine"]
    fit = line_fit(draws)
    value = fit.log_bayes_factor("M2", "M1")
    nested = nested_sampling.sine(runs)
    numbers = [
        measured(
            "S4",
            f"ln B₂₁, f = α, {draws.alpha.size:,} samples",
            value,
            SINE,
            paper=quoted(5.21, 0.30),
            evaluations=cost(draws),
        ),
        Number(
            "S4",
            "error of 50 000 independent samples, exact law",
            float(sigma_line(SINE, 5e4)),
            exact=0.273,
            tolerance=6e-4,
            paper=Quoted("0.30", 0.30, 0.03, 0.03),
        ),
        measured(
            "G6",
            "Rao-Blackwell on the same chain",
            shares(draws).log_bayes_factor("M2", "M1"),
            SINE,
            evaluations=cost(draws),
        ),
    ]
    reference = None
    if nested is not None:
        z1, z2 = nested["M1"].log_evidence, nested["M2"].log_evidence
        reference = Estimate(z2.value - z1.value, math.hypot(z1.error, z2.error))
        calls = nested["M1"].evaluations + nested["M2"].evaluations
        numbers.append(
            measured(
                "S3",
                "ln B₂₁ by nested sampling (dynesty)",
                reference,
                SINE,
                paper=quoted(5.023, 0.078),
                evaluations=calls,
            )
        )
        gain = cost(draws) * value.error**2 / (calls * reference.error**2)
        numbers.append(
            Number(
                "S5",
                "cost at equal error: combined likelihood over nested sampling",
                gain,
                bounds=(1.0, math.inf),
                paper=Quoted("nested sampling far superior here", holds=True),
            )
        )
    figure, ax = canvas()
    likelihood_curve(ax, fit.details, RED)
    lines = [(SINE, f"quadrature {SINE:.3f}", BLUE), (value.value, f"recovered {value}", RED)]
    if reference is not None:
        lines.append((None, f"nested sampling {reference}", GREEN))
        y = 0.05 * ax.get_ylim()[1]
        ax.errorbar([reference.value], [y], xerr=[reference.error], color=GREEN, fmt="o", capsize=3)
    mark(ax, *lines)
    ax.set(xlabel=r"$\ell = \ln B_{21}$", ylabel="likelihood (normalised)")
    caption = (
        "Likelihood of ln B₂₁ for the sine models from the combined likelihood (the paper labels it “of α”). "
        "Shaded: 68%."
    )
    text = "" if nested is not None else nested_sampling.ABSENT
    return Part(
        "Combined likelihood on the sine data",
        text,
        numbers,
        [Picture("figure_06", "Figure 6: likelihood of ln B₂₁, sine data", caption, figure)],
    )
