"""How ln B depends on the width of a prior (Sec. 1)."""

from __future__ import annotations

import math

import numpy as np

from supermodel import exact
from supermodel_paper import examples
from supermodel_paper.examples import LINEAR, SINE, linear_exact, sine_evidence
from supermodel_paper.figures import BLUE, MUTED, RED, canvas, say
from supermodel_paper.numbers import Number, Part, Picture
from supermodel_paper.runs import Runs


def prior_width(runs: Runs) -> Part:
    """ln B against the width of the prior that only one model has (A2)."""
    widths = np.geomspace(1e-3, 100, 61)
    m1 = linear_exact("M1")
    values = []
    for s in widths:
        covariance = np.eye(4)
        covariance[2, 2] = s**2
        wide = exact.LinearGaussian(m1.design, m1.y, m1.sigma, covariance)
        values.append(linear_exact("M2").log_evidence - wide.log_evidence)
    phi_widths = np.geomspace(2e-3, 100, 49)
    sine = _sine_at_widths(phi_widths)
    figure, ax = canvas()
    ax.axhline(0, color=MUTED, linewidth=0.8)
    ax.plot(widths, values, color=BLUE)
    ax.plot(phi_widths, sine, color=RED)
    ax.plot(1.0, LINEAR, "o", color=BLUE)
    ax.plot(0.05, SINE, "o", color=RED)
    say(ax, 1.3, LINEAR - 0.4, "linear: the paper's unit prior", BLUE, va="top")
    say(ax, 0.06, SINE + 0.7, "sine: the paper's σ = 0.05", RED, ha="center")
    say(ax, widths[0] * 1.2, -0.25, "no preference", MUTED, va="top")
    ax.set(
        xscale="log",
        xlabel="prior width of the parameter that only one model has (θ₂ or φ)",
        ylabel=r"$\ln B_{21}$",
        ylim=(-1.3, 10.4),
    )
    step = np.interp(math.log(10), np.log(widths), values) - np.interp(0, np.log(widths), values)
    numbers = [
        Number(
            "A2",
            "ln B₂₁(linear) gained by a prior of θ₂ ten times as wide",
            float(step),
            exact=math.log(10),
            tolerance=1e-2,
            remark="Far wider than the posterior, each factor in the prior's width is the same factor in B.",
        )
    ]
    caption = (
        "ln B₂₁ against the prior width of the one parameter in which the models differ: θ₂ belongs to the losing "
        "model of the "
        "linear data, φ to the winning one of the sine data."
    )
    picture = Picture("prior_width", "The evidence is sensitive to priors", caption, figure)
    return Part("Sensitivity to priors", "The paper names it; here is the curve.", numbers, [picture])


def _sine_at_widths(widths: np.ndarray) -> list[float]:
    """ln B21 by the trapezoid rule on one grid: smooth and zero at its edges, so good to far more digits than a plot shows."""
    omega, phi = np.linspace(0.9, 1.1, 161), np.linspace(-0.15, 0.25, 801)
    points = np.stack(np.meshgrid(omega, phi, indexing="ij"), axis=-1).reshape(-1, 2)
    log_l = examples.sine_log_likelihood(points) + examples.normal(points[:, :1], 1.0, 2.0)
    log_l = np.logaddexp.reduce(log_l.reshape(len(omega), -1), axis=0) + math.log(omega[1] - omega[0])
    priors = (examples.normal(phi[:, None], 0.0, s) + math.log(phi[1] - phi[0]) for s in widths)
    return [float(np.logaddexp.reduce(log_l + prior)) - sine_evidence("M1").log_evidence for prior in priors]
