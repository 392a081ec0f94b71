"""The linear example by the combined likelihood: Figures 1 to 3 and what was said of the sampling (Sec. 2.2, 3.1, 3.2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha.endpoints import histogram
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.by_alpha.precision import sigma_line
from supermodel.estimation.estimate import Evidences
from supermodel.verdict.diagnostics import autocorrelation_time
from supermodel_paper import alpha_laws, examples, figures
from supermodel_paper.examples import LINEAR, linear_exact
from supermodel_paper.figures import BLUE, GREEN, INK, MUTED, RED, bars, canvas, mark, say
from supermodel_paper.runs import FIGURE_2, Runs, alpha_draws, cost, first_part, ln_b21
from supermodel_paper.supermodels import supermodel
from supermodel_paper.table import Found, Ours, experiment, ours

SOFT = "#a8d0e8"


@experiment
def figure_1(runs: Runs) -> Found:
    """The data and the two MAP fits (D1)."""
    d, x = examples.data("linear"), np.linspace(-2, 2, 401)
    curves = {n: exact.polynomial(x, examples.POWERS[n]) @ linear_exact(n).map for n in ("M1", "M2")}
    gap = (curves["M1"] - curves["M2"]) / 0.02
    figure, (top, low) = canvas(7, 5, 2, 1, sharex=True, height_ratios=(3, 1))
    top.plot(x, 1.0 + 0.2 * x + 0.1 * x**4, color=SOFT, linewidth=7, solid_capstyle="round")
    top.errorbar(d["x"], d["y"], d["sigma"], fmt="o", color=INK, markersize=2.2, linewidth=0.8)
    top.plot(x, curves["M2"], color=RED)
    top.plot(x, curves["M1"], color=BLUE, linestyle=(0, (4, 3)))
    say(top, -0.05, 2.3, "truth: quartic without quadratic term", "#5a9bc4", ha="center")
    say(top, -0.05, 2.05, r"MAP of $M_2$, $\theta_0+\theta_1x+\theta_4x^4$", RED, ha="center")
    say(top, -0.05, 1.8, r"MAP of $M_1$, with $\theta_2x^2$ as well", BLUE, ha="center")
    top.set(ylabel="y")
    low.axhline(0, color=MUTED, linewidth=0.8)
    low.plot(x, gap, color=INK, linewidth=1.6)
    low.set(xlabel="x", ylabel="(M₁ − M₂)/σ", ylim=(-0.3, 0.3))
    return Found({"gap": np.abs(gap).max(), "noise": d["sigma"][0]}, {"figure_01": figure})


@experiment
def figures_2_and_3(runs: Runs) -> Found:
    """The likelihood of ln B21 from the chain, at two lengths (D6, D8, D9, B3, B7)."""
    longer = runs["linear"]
    shorter = first_part(longer, FIGURE_2)
    fits = [line_fit(shorter), runs.read("linear", line_fit)]
    values, sizes = [ln_b21(f) for f in fits], [d.alpha.size for d in (shorter, longer)]
    numbers = {
        "shorter": ours(values[0], evaluations=cost(shorter), n=sizes[0]),
        "longer": ours(values[1], evaluations=cost(longer), n=sizes[1]),
        "law": lambda n: sigma_line(LINEAR, n),
        "ratio": math.sqrt(2.5e5 / 6.7e4),
        "width": fits[1].details.get("nominal", math.nan) / sigma_line(values[1].value, sizes[1]),
        "end bin": _end_bin_penalty(6.7e4),
        "histogram": ours(
            ln_b21(histogram(longer, 50)), _end_bin_value(0.02), cost(longer), perfect=_end_bin_value(0.02)
        ),
        "shares": runs.ours("linear"),
    }
    figure, _ = figures.likelihood_of(fits[0], ln_b21(fits[0]), (LINEAR, f"analytic {LINEAR:.2f}", BLUE))
    return Found(numbers, {"figure_02": figure, "figure_03": _figure_3(fits, sizes)}, {"n": sizes[0]})


def _end_bin_value(width: float) -> float:
    """ln of the exact mass in the first bin over that in the last: what perfect sampling would give."""
    masses = alpha_laws.LineAlpha(-LINEAR).cdf(np.array([width, 1 - width]))
    return float(np.log(masses[0]) - np.log1p(-masses[1]))


def _end_bin_penalty(n: float) -> float:
    """The least root-mean-square error of an end-bin estimate, over all widths, against the exact law of the fit."""
    widths = np.geomspace(1e-4, 0.2, 200)
    counts = n * (1 - alpha_laws.LineAlpha(-LINEAR).cdf(1 - widths))
    bias = np.array([_end_bin_value(w) for w in widths]) - LINEAR
    return float(np.sqrt(bias**2 + 1 / counts).min() / sigma_line(LINEAR, n))


def _figure_3(fits: list[Evidences], sizes: list[int]) -> Any:
    figure, ax = canvas()
    figures.likelihood_curve(ax, fits[1].details, BLUE, fill=False)
    figures.likelihood_curve(ax, fits[0].details, RED, fill=False)  # the wider one, and its limits, last
    labels = [f"{size:,} samples: {ln_b21(fit)}" for size, fit in zip(sizes, fits, strict=True)]
    mark(ax, (LINEAR, f"analytic {LINEAR:.2f}", INK), (None, labels[0], RED), (None, labels[1], BLUE))
    ax.set_ylim(0, 1.08 * max(fit.details["curve"].max() if "curve" in fit.details else 0.1 for fit in fits))
    ax.set(**figures.LIKELIHOOD)
    return figure


@experiment
def lahiri(runs: Runs) -> Found:
    """Draws from the known density by Lahiri's rejection method (D7)."""
    line = exact.MixtureAlpha(-LINEAR)
    found = alpha_laws.lahiri(line, np.random.default_rng(runs.settings.seed), runs.settings.exact_draws)
    fit, n = ln_b21(line_fit(alpha_draws(supermodel("linear"), found.alpha))), len(found.alpha)
    acceptance = 1 / (1 + math.tanh(LINEAR / 2))
    spread = math.sqrt(acceptance * (1 - acceptance) / (n / acceptance))
    return Found({"acceptance": Ours(found.acceptance, spread, acceptance), "fit": ours(fit, n=n)})


@experiment
def linear_p_of_alpha(runs: Runs) -> Found:
    """The line itself, recovered and exact."""
    alpha, line, edges = runs["linear"].alpha, alpha_laws.LineAlpha(-LINEAR), np.linspace(0, 1, 41)
    figure, ax = canvas()
    bars(ax, edges, np.histogram(alpha, edges, density=True)[0], GREEN)
    ax.plot([0, 1], [line.c, line.pdf(1.0)], color=BLUE)
    say(ax, 0.03, 0.25, "Metropolis", GREEN)
    say(ax, 0.52, 1.1, r"exact line $m\alpha + c$", BLUE)
    say(ax, 0.015, 2.1, r"$M_2$", INK)
    say(ax, 0.985, 0.13, r"$M_1$", INK, ha="right")
    ax.set(xlabel=r"$\alpha$", ylabel=r"$p(\alpha \mid D)$", xlim=(0, 1), ylim=(0, 2.15))
    expected = np.diff(line.cdf(edges)) * alpha.size
    chi2 = float(np.sum((np.histogram(alpha, edges)[0] - expected) ** 2 / expected)) / 39
    allowed = max(autocorrelation_time(alpha), 1.0) * (1 + 4 * math.sqrt(2 / 39))
    return Found({"chi2": Ours(chi2, bounds=(0.0, allowed))}, {"alpha_line": figure})
