"""The combined model with e^alpha: Figure 11, and why the tanh fit cannot work (Sec. 5.2)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha.endpoints import tanh_fit
from supermodel.estimation.estimate import Evidences
from supermodel.sampling.draws import Draws
from supermodel_paper.examples import CUTOFF, LINEAR, THETA2, linear_exact
from supermodel_paper.figures import BLUE, DASHES, DOTS, GREEN, INK, MUTED, RED, bars, canvas, say
from supermodel_paper.runs import Runs, cost, largest_gap, ln_b21
from supermodel_paper.table import Found, Ours, experiment


@cache
def exponential_exact(cutoff: float = CUTOFF) -> exact.Density:
    """p(alpha | D) for f = e^alpha on [cutoff, 0]."""
    return exact.combined_model_alpha(linear_exact("M1"), THETA2, np.exp, None, cutoff, 0.0)


@experiment
def figure_11(runs: Runs) -> Found:
    """The combined model with e^alpha and the tanh fit, which fails even on the exact density (F10, F11)."""
    draws, truth = runs["linear blend exp"], exponential_exact()
    # Eight groups of chains for the error, not one fit for each chain left out.
    fitted = tanh_fit(replace(draws, alpha=draws.alpha.reshape(8, -1)))
    value, perfect = ln_b21(fitted), _tanh_on_bins(CUTOFF, 100)

    def ends(cutoff: float) -> float:
        end = exponential_exact(cutoff).logpdf(np.array([cutoff, 0.0]))
        return float(end[0] - end[1]) - LINEAR

    numbers = {
        "tanh": lambda cutoff: _ln_b21(_tanh_on_exact(cutoff)),
        "ends": ends,
        "histogram": Ours(
            value.value, max(value.error, 0.03), perfect, evaluations=cost(draws), words={"perfect": perfect}
        ),
        "CDF": Ours(largest_gap(draws, truth, CUTOFF, 0), evaluations=cost(draws)),
    }
    return Found(numbers, {"figure_11": _figure_11(draws, truth, fitted), "tanh_on_exact": _figure_tanh()})


@cache
def _tanh_on_exact(cutoff: float) -> Evidences:
    """The tanh fit to the exact density on a fine grid."""
    grid = np.linspace(cutoff, 0, 2001)
    return tanh_fit((grid, exponential_exact(cutoff).pdf(grid)))


def _tanh_on_bins(cutoff: float, bins: int) -> float:
    """ln B21 by the tanh fit to exact bin masses."""
    edges = np.linspace(cutoff, 0, bins + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    fitted = tanh_fit((middle, np.diff(exponential_exact(cutoff).cdf(edges)) * bins))
    ends = _tanh(fitted, np.array([cutoff, 0.0]))
    return float(np.log(ends[0] / ends[1]))


def _ln_b21(fitted: Evidences) -> float:
    return -fitted.log_bayes_factor("first", "second").value


def _tanh(fitted: Evidences, alpha: np.ndarray) -> np.ndarray:
    a, b, c, d = fitted.details["parameters"]
    return a * np.tanh(b * alpha + c) + d


def _figure_11(draws: Draws, truth: exact.Density, fitted: Evidences) -> Any:
    figure, ax = canvas()
    edges, grid = np.linspace(CUTOFF, 0, 61), np.linspace(CUTOFF, 0, 300)
    bars(ax, edges, np.histogram(draws.alpha, edges, density=True)[0], GREEN)
    ax.plot(grid, truth.pdf(grid), color=BLUE)
    ax.plot(grid, _tanh(fitted, grid) * 0.25, color=RED, linestyle=DASHES)
    say(ax, -3.3, 0.72, "analytic", BLUE)
    say(ax, -3.35, 0.2, "Metropolis", GREEN)
    say(ax, -2.1, 0.42, f"fit $a\\,\\tanh(b\\alpha + c) + d$: {ln_b21(fitted).value:.2f}", RED)
    say(ax, -2.1, 0.34, f"true $\\ln B_{{21}}$: {LINEAR:.2f}", INK)
    ax.set(xlabel=r"$\alpha$   ($f = e^\alpha$; $M_1$ at 0)", ylabel=r"$p(\alpha \mid D)$")
    ax.set(xlim=(CUTOFF, 0), ylim=(0, None))
    return figure


def _figure_tanh() -> Any:
    figure, axes = canvas(9, 3.6, 1, 2)
    for ax, cutoff in zip(axes, (-4, -8), strict=True):
        truth, grid, found = exponential_exact(cutoff), np.linspace(cutoff, 0, 1001), _tanh_on_exact(cutoff)
        ax.plot(grid, truth.pdf(grid), color=BLUE)
        ax.plot(grid, np.maximum(_tanh(found, grid), 1e-9), color=RED, linestyle=DASHES)
        ax.set(yscale="log", title=f"Λ = {cutoff}: fit {_ln_b21(found):.2f}, true {LINEAR:.2f}")
        ax.set(xlabel=r"$\alpha$", ylim=(1e-3, 6))
        ax.axhline(truth.pdf(0.0) * np.exp(LINEAR), color=MUTED, linewidth=1, linestyle=DOTS)
    axes[0].set_ylabel(r"$p(\alpha \mid D)$")
    say(axes[0], -3.9, 0.12, "exact density", BLUE)
    say(axes[0], -3.9, 0.06, "its best tanh", RED)
    say(axes[0], -0.05, 3.4, "level of $M_2$: not reached at the cut-off", MUTED, ha="right", fontsize=9)
    say(axes[1], -0.1, 0.42, "level of $M_2$", MUTED, ha="right", fontsize=9)
    return figure
