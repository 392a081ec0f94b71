r"""The combined model, $M_S = f M_1 + (1-f) M_2$: Figure 4, what repairs it, and an enlarged interval (Sec. 2.3, 3.3)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha.endpoints import histogram, kde
from supermodel.estimation.rao_blackwell import density
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import end_bin_counts
from supermodel_paper.examples import THETA2, linear_exact
from supermodel_paper.figures import BLUE, GREEN, RED, bars, canvas, say
from supermodel_paper.nested_sampling import Nested, blend_alpha
from supermodel_paper.runs import Runs, cost, few, largest_gap, ln_b21, shares_of_few
from supermodel_paper.table import Found, Ours, experiment, ours


@cache
def alpha_exact(low: float = 0.0, high: float = 1.0) -> exact.Density:
    """p(alpha | D) for f = alpha, Appendix B."""
    return exact.combined_model_alpha(linear_exact("M1"), THETA2, low=low, high=high)


@experiment
def figure_4(runs: Runs) -> Found:
    """Posterior and cumulative distribution of alpha: analytic, Metropolis, nested sampling (C1, C2, C4, D15, D16)."""
    draws, truth, nested = runs["linear blend"], alpha_exact(), blend_alpha(runs)
    n, gap = draws.alpha.size, largest_gap(draws, truth, 0, 1)
    above, below = float(1 - truth.cdf(0.99)), float(truth.cdf(0.001))
    words = {"n": n, "above": n * above, "below": n * below, "narrow": int(np.sum(draws.alpha < 0.001))}
    by_bins = histogram(draws, 50).details["sensitivity"]
    numbers = {
        "above 0.99": above,
        "below 0.001": below,
        "counted": Ours(float(end_bin_counts(draws, 0.01)["M1"]), words=words),
        "bins": [_binned(draws, truth, bins, value) for bins, value in by_bins.items() if bins <= 100],
        "kernel": runs.ours("linear blend", kde),
        "shares": runs.ours("linear blend", shares_of_few),
        "CDF": Ours(gap, evaluations=cost(draws)),
    }
    if nested is not None:
        grid = np.linspace(0, 1, 400)
        theirs = float(np.abs(nested.cdf(grid) - truth.cdf(grid)).max())
        numbers["CDF, nested"] = Ours(theirs, evaluations=nested.evaluations, holds=theirs < gap)
    figures = {"figure_04": _figure_4(draws, nested, truth), "blend_rao_blackwell": _figure_ends(few(draws), truth)}
    return Found(numbers, figures)


def _binned(draws: Draws, truth: exact.Density, bins: int, value: tuple[float, float]) -> Ours:
    ends = truth.cdf(np.array([1 / bins, 1 - 1 / bins]))
    perfect = float(np.log(ends[0]) - np.log1p(-ends[1]))
    return Ours(-value[0], value[1], perfect, evaluations=cost(draws), words={"bins": bins, "perfect": perfect})


def _figure_4(draws: Draws, nested: Nested | None, truth: exact.Density) -> Any:
    edges = np.linspace(0, 1, 51)
    middle = 0.5 * (edges[1:] + edges[:-1])
    figure, (top, low) = canvas(7, 6.6, 2, 1, sharex=True)
    chain = np.histogram(draws.alpha, edges, density=True)[0]
    grid = np.concatenate([np.geomspace(1e-4, 0.02, 60), np.linspace(0.02, 1, 200)])
    with np.errstate(divide="ignore"):
        bars(top, edges, np.log(chain), GREEN, outline=True)
        if nested is not None:
            bars(top, edges, np.log(nested.histogram(edges)), RED, outline=True)
            say(top, 0.32, 0.9, "nested sampling", RED)
            low.plot(grid, nested.cdf(grid), color=RED, linewidth=1.4, zorder=2.5)
    top.plot(grid, truth.logpdf(grid), color=BLUE)
    say(top, 0.08, 3.0, "analytic", BLUE)
    say(top, 0.2, 1.9, "Metropolis", GREEN)
    top.set(ylabel=r"$\ln p(\alpha \mid D)$", ylim=(-3.4, 4.2))
    low.plot(grid, truth.cdf(grid), color=BLUE)
    low.plot(middle, np.cumsum(chain) * 0.02 - 0.01 * chain, color=GREEN, linewidth=1.6)
    low.set(xlabel=r"$\alpha$   ($M_2$ at 0, $M_1$ at 1)", ylabel=r"$\Phi(\alpha)$", xlim=(0, 1), ylim=(0, 1.02))
    return figure


def _figure_ends(sample: Draws, truth: exact.Density) -> Any:
    grid = np.concatenate([[0.0], np.geomspace(1e-5, 1, 120)])
    figure, ax = canvas()
    ax.plot(grid, truth.pdf(grid), color=BLUE, linewidth=6, alpha=0.3, solid_capstyle="round")
    ax.plot(grid, density(sample, grid), color=RED, linewidth=1.8)
    edges = np.geomspace(1e-4, 1, 25)
    heights = np.histogram(sample.alpha, edges)[0] / sample.alpha.size / np.diff(edges)
    bars(ax, edges, heights, GREEN, outline=True)
    ax.set(xscale="symlog", yscale="log", xlabel=r"$\alpha$", ylabel=r"$p(\alpha \mid D)$", xlim=(0, 1.02))
    ax.set_xscale("symlog", linthresh=1e-4)
    ax.set_xticks([0, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["0", "10⁻⁴", "10⁻³", "0.01", "0.1", "1"])
    say(ax, 2e-3, 3.2, "Rao-Blackwell", RED)
    say(ax, 2e-3, 1.9, "analytic (broad)", "#6aa9cf")
    say(ax, 2e-3, 1.15, "histogram", GREEN)
    return figure


@experiment
def enlarged_interval(runs: Runs) -> Found:
    """alpha on [-0.1, 1.1], so that both ends are interior (C3)."""
    draws, truth = runs["linear blend enlarged"], alpha_exact(-0.1, 1.1)
    mass = np.diff(truth.cdf(np.array([[-0.01, 0.01], [0.99, 1.01]])))
    perfect = float(np.log(mass[0, 0] / mass[1, 0]))
    return Found(
        {
            "shares": runs.ours("linear blend enlarged", shares_of_few),
            "bins": ours(ln_b21(histogram(draws, 50)), perfect, cost(draws), perfect=perfect),
            "even": np.subtract(*truth.logpdf(np.array([-0.05, 0.05]))),
        }
    )
