"""One parameter averaged over models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from supermodel.report.labels import set_labels
from supermodel.report.numbers import equals, mean_and_sd
from supermodel.report.style import INK, arrow, colour, dashes, headed, plot, shortened, spread, stamp
from supermodel.report.tables import scalar_label, straight_values, weighted_quantiles

if TYPE_CHECKING:
    from supermodel.results.averaging import Averaged
    from supermodel.results.comparison import Comparison


SHORTEST = 0.04  # of the picture's height: an arrow below would be all head, and look higher than it is
ROOM = 0.2  # of its width: what a label takes
FINE = 1024  # places at which a density is counted
NARROW = 0.2  # of the mass: the shortest stretch that holds so much lies within one of a few modes
SEVERAL = 0.5  # of the width of all: below it the stretch tells of modes that stand apart, and not of chance
NORMAL_STRETCH = 0.5067  # standard deviations that hold NARROW about the middle of a normal density: 2 z(0.6)


def smoothed(
    values: np.ndarray, weights: np.ndarray, grid: np.ndarray, ends: tuple[float, float] = (-np.inf, np.inf)
) -> np.ndarray:
    """A smooth density of weighted draws: Gaussian kernels of Silverman's width, mirrored where the support ends.

    Where modes stand apart the width is that of one of them: that of all would draw narrow peaks as broad hills.
    """
    w = weights / weights.sum()
    mean = w @ values
    sd = np.sqrt(w @ (values - mean) ** 2)
    if not sd > 0:
        return np.zeros_like(grid)
    size = 1.0 / np.sum(w**2)
    q1, q3 = weighted_quantiles(values, w, (0.25, 0.75))
    scale = min(sd, (q3 - q1) / 1.349) or sd
    one = _shortest(values, w, NARROW) / NORMAL_STRETCH
    width = 1.06 * (one if 0 < one < SEVERAL * scale else scale) * size**-0.2
    # Counts on a fine grid first, so that the cost does not grow with the draws; what is far from the picture adds nothing.
    low, high = max(values.min(), grid[0]) - 4 * width, min(values.max(), grid[-1]) + 4 * width
    if not high > low:
        return np.zeros_like(grid)
    counts, edges = np.histogram(values, bins=FINE, range=(low, high), weights=w)
    step = (high - low) / FINE
    reach = int(5 * width / step) + 1
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2) / (width * np.sqrt(2 * np.pi))
    density = np.convolve(counts, kernel)[reach : reach + FINE]
    mirrored = [grid] + [2 * end - grid for end in ends if np.isfinite(end)]
    total = sum(np.interp(x, edges[:-1] + 0.5 * step, density, left=0.0, right=0.0) for x in mirrored)
    return np.where((grid >= ends[0]) & (grid <= ends[1]), total, 0.0)


def _shortest(values: np.ndarray, weights: np.ndarray, mass: float) -> float:
    """The length of the shortest stretch that holds a share of the draws."""
    order = np.argsort(values)
    ordered, before = values[order], np.cumsum(weights[order])
    ends = np.searchsorted(before, before - weights[order] + mass)  # of the stretch that begins at each draw
    inside = ends < len(ordered)
    return float(np.min(ordered[ends[inside]] - ordered[inside])) if np.any(inside) else 0.0


@plot()
def averaged(
    result: Comparison,
    parameter: str,
    prior_odds: Mapping[str, float] | None = None,
    fixed: Any = None,
    index: tuple[int, ...] = (),
    *,
    ax: Axes,
) -> Axes:
    """A parameter's posterior averaged over models (filled) beside each model's own; an arrow where it is fixed."""
    mix: Averaged = result.averaged(parameter, prior_odds, fixed)
    owners = [n for n in result.names if n not in mix.spikes]
    spans: list[Any] = []
    for name in owners:
        post = result.posteriors[name]
        spans.append(weighted_quantiles(straight_values(post, parameter, index), post.weights, (0.001, 0.999)))
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    known = [v for v in mix.spikes.values() if v is not None]
    low, high = min([low, *known]), max([high, *known])
    grid = np.linspace(low - 0.06 * (high - low), high + 0.06 * (high - low), 400)
    labels = []
    total = np.zeros_like(grid)
    for name in owners:
        post = result.posteriors[name]
        curve = smoothed(straight_values(post, parameter, index), post.weights, grid, result.support(name, parameter))
        share = mix.probabilities[name]
        total += share * curve if share > 0 else 0.0
        shade = colour(result.names, name)
        ax.plot(grid, curve, color=shade, linestyle=dashes(result.names, name), linewidth=1.3)
        peak = int(np.argmax(curve))
        labels.append((name, grid[peak], curve[peak], shade, share))
    ax.fill_between(grid, total, color=INK, alpha=0.13, linewidth=0)
    ax.plot(grid, total, color=INK, linewidth=1.8)
    top = max(c for *_, c, _, _ in labels)
    ax.set_ylim(0, 1.15 * top)
    ax.set_xlim(grid[0], grid[-1])
    order = sorted(labels, key=lambda item: item[1])
    placed = [
        (
            x,
            y,
            f"{shortened(name, 18)}\n{stated(result, share)}",
            shade,
            "right" if len(order) > 1 and i == 0 else "left",
        )
        for i, (name, x, y, shade, share) in enumerate(order)
    ]
    highest = max(labels, key=lambda item: item[2])[1]
    spread(ax, [*placed, *_spikes(ax, mix, result, top, highest)])
    _absent(ax, mix, result, on_right=highest < 0.5 * (grid[0] + grid[-1]))
    what = scalar_label(parameter, index)
    set_labels(ax, x=result.name_of(parameter, index))
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    mean, sd = np.asarray(mix.mean)[index], np.asarray(mix.sd)[index]
    given = f" given that {what} exists" if mix.spikes and mix.is_conditional else ""
    headed(ax, f"Averaged over models (filled): {mean_and_sd(float(mean), float(sd))}{given}")
    stamp(ax, result.verdict.level, result.excluded)
    return ax


def stated(result: Comparison, share: float) -> str:
    """`P = 0.99`, `P > 0.9999`, or a dash where the verdict forbids to state a probability."""
    return f"P {equals(share)}" if result.weighed else "P = –"


def _absent(ax: Axes, mix: Averaged, result: Comparison, on_right: bool) -> None:
    """A line of text for models that do not have the parameter, where the value that they fix it at is not known."""
    absent = [name for name, value in mix.spikes.items() if value is None]
    if absent:
        who = ", ".join(shortened(name, 16) for name in absent) if len(absent) <= 2 else f"{len(absent)} models"
        share = stated(result, sum(mix.probabilities[name] for name in absent))
        ax.annotate(
            f"no {mix.parameter} in {who}:  {share}", (0.99 if on_right else 0.01, 0.98), xycoords="axes fraction",
            color=colour(result.names, absent[0]) if len(absent) == 1 else INK, fontsize=8, va="top",
            ha="right" if on_right else "left",
        )  # fmt: skip


def _spikes(
    ax: Axes, mix: Averaged, result: Comparison, top: float, highest: float
) -> list[tuple[float, float, str, str, str]]:
    """Arrows where the fixed value is known, a probability of 1 as high as the highest curve; those at one place stand
    on each other. What is to be written beside them is returned.
    """
    heights: dict[float, float] = {}
    labels = []
    left, right = ax.get_xlim()
    for name, value in mix.spikes.items():
        if value is None:
            continue
        shade, foot = colour(result.names, name), heights.get(value, 0.0)
        heights[value] = tip = foot + (top * mix.probabilities[name] if mix.probabilities[name] > 0 else 0.0)
        if tip - foot > SHORTEST * top:
            arrow(ax, (value, tip), (value, foot), shade, 1.8)
        ax.plot(value, 0, "o", color=shade, ms=4, clip_on=False)  # the place is seen, however small the probability
        said = f"{shortened(name, 18)}: {mix.parameter} = {value:g}\n{stated(result, mix.probabilities[name])}"
        # On the side that is away from the curves, if there is room for it.
        room = (value - left if value < highest else right - value) / (right - left)
        labels.append((value, tip, said, shade, "right" if (value < highest) == (room > ROOM) else "left"))
    return labels
