"""Pictures of a regression: its models, what each term is worth, its effects, and how the answer moves with the prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import probability, shown
from supermodel.report.style import FAINT, INK, PALETTE, end_labels, interval, label, plot, shortened, stamp

if TYPE_CHECKING:
    from supermodel.regressions.result import Regression, Robustness

MOST = 12  # rows


def _rows(ax: Axes, rows: list[tuple[str, Estimate, str]], x_label: str, said: bool = True) -> None:
    """Estimates under each other, each with its name to the left and its number beside it."""
    for row, (_, e, shade) in enumerate(rows):
        interval(ax, e, row, shade)
        if said:
            label(ax, shown(e, sign=True), (e.value, row), (0, 7), ha="center", fontsize=7, color=INK)
    ax.set_yticks(range(len(rows)), [shortened(name, 34) for name, _, _ in rows])
    ax.set_ylim(len(rows) - 0.4, -0.7)
    ax.axvline(0.0, color=FAINT, linewidth=0.8, zorder=0)
    ax.margins(x=0.12)
    ax.set_xlabel(x_label)


@plot(height=3.0)
def models(result: Regression, *, ax: Axes) -> Axes:
    """ln B of the best models against the null."""
    kept = [name for name in result.ranking if name != result.null][:MOST]
    _rows(ax, [(n, result.log_bayes_factor(n, result.null), PALETTE[0]) for n in kept], f"ln B against {result.null}")
    stamp(ax, result.verdict.level)
    return ax


@plot(height=3.0)
def inclusion(result: Regression, *, ax: Axes) -> Axes:
    """ln B of including each term: over all models, and over matched ones."""
    rows = []
    for found in result.inclusion()[:MOST]:
        for e, words, shade in ((found.log_bayes_factor, "all", PALETTE[0]), (found.matched, "matched", PALETTE[1])):
            if e is not None:
                rows.append((f"{found.term}, {words}", e, shade))
    _rows(ax, rows, "ln B of including the term")
    stamp(ax, result.verdict.level)
    return ax


@plot(height=3.0)
def effects(result: Regression, *, ax: Axes) -> Axes:
    """Effects averaged over the models: mean, ± 1 and ± 2 standard deviations."""
    others = {"Intercept", "sigma", "nu", "overdispersion"}
    found = [e for e in result.effects() if e.label not in others and not e.label.startswith("sd(")][:MOST]
    rows = [(f"{e.label} ({probability(e.probability)})", Estimate(e.mean, e.sd), PALETTE[2]) for e in found]
    _rows(ax, rows, "effect, averaged over models (probability that there is one)", said=False)
    stamp(ax, result.verdict.level)
    return ax


@plot()
def robustness(found: Robustness, *, ax: Axes) -> Axes:
    """ln B against the null for other scales of the default priors."""
    ends = []
    for i, (name, row) in enumerate(zip(found.models, found.estimates, strict=True)):
        shade = PALETTE[i % len(PALETTE)]
        values, errors = (np.array([getattr(e, part) for e in row]) for part in ("value", "error"))
        ax.fill_between(found.rscales, values - 2 * errors, values + 2 * errors, color=shade, alpha=0.2, linewidth=0)
        ax.plot(found.rscales, values, "o-", color=shade, markersize=4)
        ends.append((found.rscales[-1], float(values[-1]), shortened(name), shade))
    ax.set_xscale("log")
    ax.set_xticks(found.rscales, [f"{scale:g}" for scale in found.rscales])
    ax.minorticks_off()
    ax.axhline(0.0, color=INK, linewidth=0.8)
    ax.axvline(1.0, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)))
    ax.set_xlabel("scale of the default priors, 1 is what was used")
    ax.set_ylabel(f"ln B against {found.null}")
    end_labels(ax, ends)
    return ax
