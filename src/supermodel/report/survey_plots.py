"""Pictures of a survey: ln B of all objects, the fractions of models, discoveries, and deviations from known answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import mean_and_sd, thousands
from supermodel.report.style import FAINT, INK, PALETTE, PAPER, colour, interval, label, plot, shortened

if TYPE_CHECKING:
    from supermodel.survey.population import Population
    from supermodel.survey.ranking import Discoveries

BINS = 40
WIDE, LINEAR = 60.0, 5.0  # a range of ln B beyond which the axis is logarithmic, outside ± LINEAR


@plot(height=3.0)
def log_bayes_factors(values: np.ndarray, names: tuple[str, ...], first: str, second: str, *, ax: Axes) -> Axes:
    """How many objects have which ln B(first : second); to the right of 0 the first model is preferred."""
    low, high = min(float(values.min()), -1.0), max(float(values.max()), 1.0)
    bent = high - low > WIDE
    squeeze, stretch = (np.arcsinh, np.sinh) if bent else (np.positive, np.positive)
    unit = LINEAR if bent else 1.0
    ends = squeeze(np.array([low, high]) / unit)
    n_below = max(round(BINS * -ends[0] / (ends[1] - ends[0])), 1)  # an edge at 0: no bar is of both colours
    edges = np.concatenate(
        [np.linspace(ends[0], 0, n_below + 1), np.linspace(0, ends[1], max(BINS - n_below, 1) + 1)[1:]]
    )
    edges = unit * stretch(edges)
    counts, _ = np.histogram(values, edges)
    shades = [colour(names, first if left >= 0 else second) for left in edges[:-1]]
    ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=shades, edgecolor=PAPER, linewidth=0.6)
    if bent:
        ax.set_xscale("function", functions=(lambda x: np.arcsinh(x / LINEAR), lambda x: LINEAR * np.sinh(x)))
        ticks = [
            sign * t for sign in (-1, 1) for t in (5, 20, 100, 500, 2000, 10_000, 100_000) if low <= sign * t <= high
        ]
        ax.set_xticks(sorted({0, *ticks}), [f"{t:g}".replace("-", "−") for t in sorted({0, *ticks})])
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_ylim(0, max(counts.max(), 1) * 1.22)
    for name, side, share in ((second, 0.02, np.mean(values < 0)), (first, 0.98, np.mean(values > 0))):
        label(
            ax, f"{shortened(name, 20)} {100 * share:.3g}%", (side, 0.99), xycoords="axes fraction", va="top", fontsize=8.5,
            ha="left" if side < 0.5 else "right", color=colour(names, name), fontweight="bold",
        )  # fmt: skip
    ax.set_xlabel(f"ln B({shortened(first, 20)} : {shortened(second, 20)})")
    ax.set_ylabel("objects")
    return ax


@plot(height=2.4)
def fractions(found: Population, *, ax: Axes) -> Axes:
    """The fraction of objects that are of each model: mean, ± 1 and ± 2 standard deviations."""
    for row, f in enumerate(found.fractions.itertuples()):
        interval(ax, Estimate(f.fraction, f.sd), row, colour(found.models, f.model))
        label(ax, mean_and_sd(f.fraction, f.sd), (f.fraction, row), (0, 8), ha="center", fontsize=8, color=INK)
    ax.set_yticks(range(len(found.models)), [shortened(name) for name in found.models])
    ax.set_ylim(len(found.models) - 0.5, -0.8)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("fraction of the population")
    return ax


@plot(height=3.0)
def discoveries(found: Discoveries, *, ax: Axes) -> Axes:
    """The expected share of false ones among the best n objects, and where it reaches the level."""
    rates, n = found.table["false_discovery_rate"].to_numpy(), len(found)
    ranks = np.arange(1, len(rates) + 1)
    ax.plot(ranks, rates, color=PALETTE[0])
    ax.axhline(found.false_discovery, color=FAINT, linewidth=1, linestyle=(0, (4, 2)))
    label(
        ax,
        f"level {found.false_discovery:g}",
        (ranks[-1], found.false_discovery),
        (0, 3),
        ha="right",
        fontsize=8,
        color=FAINT,
    )
    if n:
        ax.fill_between(ranks[:n], 0, rates[:n], color=PALETTE[0], alpha=0.2, linewidth=0)
        ax.plot(n, rates[n - 1], "o", color=PALETTE[0], mec=PAPER, ms=7)
        is_left = n < 0.6 * len(rates)
        text = f"{thousands(n)} discoveries"
        label(
            ax,
            text,
            (n, rates[n - 1]),
            (8 if is_left else -8, -12 if is_left else 8),
            ha="left" if is_left else "right",
            fontsize=8.5,
        )
    ax.set_xlim(0, len(rates) + 1)
    ax.set_ylim(0, max(1.05 * float(rates[-1]), 1.6 * found.false_discovery))
    ax.set_xlabel(f"objects, most surely {shortened(found.first, 20)} first")
    ax.set_ylabel("expected share of false ones")
    return ax


@plot(height=3.0)
def deviations(z: np.ndarray, *, ax: Axes) -> Axes:
    """(ln B - exact) / error of the objects whose exact ln B is known, beside the standard normal that it should be."""
    edge = max(4.0, min(float(np.abs(z).max()), 8.0))
    edges = np.linspace(-edge, edge, 33)
    ax.hist(np.clip(z, -edge, edge), edges.tolist(), color=PALETTE[0], alpha=0.75, edgecolor=PAPER, linewidth=0.6)
    grid = np.linspace(-edge, edge, 201)
    normal = np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi)
    ax.plot(grid, len(z) * (edges[1] - edges[0]) * normal, color=INK, linewidth=1.4)
    ax.set_xlabel("(ln B − exact) / error; beyond the ends in the last bars")
    ax.set_ylabel("objects")
    return ax
