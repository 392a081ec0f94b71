"""How ln B depends on the width of a prior (Sec. 1)."""

from __future__ import annotations

import math

import numpy as np

from supermodel import exact
from supermodel_paper import examples
from supermodel_paper.examples import LINEAR, SINE, linear_exact, sine_evidence
from supermodel_paper.figures import BLUE, MUTED, RED, canvas, say
from supermodel_paper.runs import Runs
from supermodel_paper.table import Found, experiment


@experiment
def prior_width(runs: Runs) -> Found:
    """ln B against the width of the prior that only one model has (A2)."""
    widths, m1 = np.geomspace(1e-3, 100, 61), linear_exact("M1")
    wide = [exact.LinearGaussian(m1.design, m1.y, m1.sigma, np.diag([1.0, 1.0, s**2, 1.0])) for s in widths]
    values = [linear_exact("M2").log_evidence - m.log_evidence for m in wide]
    phi_widths = np.geomspace(2e-3, 100, 49)
    figure, ax = canvas()
    ax.axhline(0, color=MUTED, linewidth=0.8)
    ax.plot(widths, values, color=BLUE)
    ax.plot(phi_widths, _sine_at_widths(phi_widths), color=RED)
    ax.plot(1.0, LINEAR, "o", color=BLUE)
    ax.plot(0.05, SINE, "o", color=RED)
    say(ax, 1.3, LINEAR - 0.4, "linear: the paper's unit prior", BLUE, va="top")
    say(ax, 0.06, SINE + 0.7, "sine: the paper's σ = 0.05", RED, ha="center")
    say(ax, widths[0] * 1.2, -0.25, "no preference", MUTED, va="top")
    ax.set(xscale="log", xlabel="prior width of the parameter that only one model has (θ₂ or φ)")
    ax.set(ylabel=r"$\ln B_{21}$", ylim=(-1.3, 10.4))
    step = np.interp(math.log(10), np.log(widths), values) - np.interp(0, np.log(widths), values)
    return Found({"ten times": step}, {"prior_width": figure})


def _sine_at_widths(widths: np.ndarray) -> list[float]:
    """ln B21 by the trapezoid rule on one grid: smooth and zero at its edges, so good to far more digits than a plot shows."""
    omega, phi = np.linspace(0.9, 1.1, 161), np.linspace(-0.15, 0.25, 801)
    points = np.stack(np.meshgrid(omega, phi, indexing="ij"), axis=-1).reshape(-1, 2)
    log_l = examples.sine_log_likelihood(points) + examples.normal(points[:, :1], 1.0, 2.0)
    log_l = np.logaddexp.reduce(log_l.reshape(len(omega), -1), axis=0) + math.log(omega[1] - omega[0])
    priors = (examples.normal(phi[:, None], 0.0, s) + math.log(phi[1] - phi[0]) for s in widths)
    return [float(np.logaddexp.reduce(log_l + prior)) - sine_evidence("M1").log_evidence for prior in priors]
