"""Pictures of posteriors: one parameter averaged over models, data with fits and bands, corners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from supermodel.errors import DataError, SupermodelError
from supermodel.report.numbers import mean_and_sd, probability
from supermodel.report.style import FAINT, INK, arrow, colour, dashes, end_labels, label, plot, shortened, stamp
from supermodel.report.tables import scalar_label, scalar_values, scalars, weighted_quantiles

if TYPE_CHECKING:
    from supermodel.results.averaging import Averaged, Predictions
    from supermodel.results.comparison import Comparison


def smoothed(
    values: np.ndarray, weights: np.ndarray, grid: np.ndarray, ends: tuple[float, float] = (-np.inf, np.inf)
) -> np.ndarray:
    """A smooth density of weighted draws: Gaussian kernels of Silverman's width, mirrored where the support ends."""
    w = weights / weights.sum()
    mean = w @ values
    sd = np.sqrt(w @ (values - mean) ** 2)
    if not sd > 0:
        return np.zeros_like(grid)
    size = 1.0 / np.sum(w**2)
    q1, q3 = weighted_quantiles(values, w, (0.25, 0.75))
    width = 1.06 * (min(sd, (q3 - q1) / 1.349) or sd) * size**-0.2
    # Counts on a fine grid first, so that the cost does not grow with the draws.
    low, high = values.min() - 4 * width, values.max() + 4 * width
    counts, edges = np.histogram(values, bins=2048, range=(low, high), weights=w)
    centres = 0.5 * (edges[1:] + edges[:-1])
    mirrored = [centres] + [2 * end - centres for end in ends if np.isfinite(end)]
    kernels = sum(np.exp(-0.5 * ((grid[:, None] - c[None, :]) / width) ** 2) for c in mirrored)
    inside = (grid >= ends[0]) & (grid <= ends[1])
    return np.where(inside, (kernels @ counts) / (width * np.sqrt(2 * np.pi)), 0.0)


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
    owners = [n for n in result.names if parameter in result.posteriors[n].parameters]
    spans: list[Any] = []
    for name in owners:
        post = result.posteriors[name]
        spans.append(weighted_quantiles(scalar_values(post, parameter, index), post.weights, (0.001, 0.999)))
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    known = [v for v in mix.spikes.values() if v is not None]
    low, high = min([low, *known]), max([high, *known])
    grid = np.linspace(low - 0.06 * (high - low), high + 0.06 * (high - low), 400)
    labels = []
    total = np.zeros_like(grid)
    for name in owners:
        post = result.posteriors[name]
        curve = smoothed(scalar_values(post, parameter, index), post.weights, grid, result.support(name, parameter))
        share = mix.probabilities[name]
        total += share * curve if share > 0 else 0.0
        shade = colour(result.names, name)
        ax.plot(grid, curve, color=shade, linestyle=dashes(result.names, name), linewidth=1.3)
        peak = int(np.argmax(curve))
        labels.append((name, grid[peak], curve[peak], shade, share))
    ax.fill_between(grid, total, color=INK, alpha=0.13, linewidth=0)
    ax.plot(grid, total, color=INK, linewidth=1.8)
    top = max(c for *_, c, _, _ in labels)
    ax.set_ylim(0, 1.3 * top)
    ax.set_xlim(grid[0], grid[-1])
    for i, (name, x, y, shade, share) in enumerate(sorted(labels, key=lambda item: item[1])):
        left = len(labels) > 1 and i == 0
        side = {"ha": "right" if left else "left", "color": shade, "fontsize": 8}
        label(ax, f"{shortened(name, 18)}\nP = {_stated(result, share)}", (x, y), (-6 if left else 6, 2), **side)
    highest = max(labels, key=lambda item: item[2])[1]
    _spikes(ax, mix, result, top, on_right=highest < 0.5 * (grid[0] + grid[-1]))
    what = scalar_label(parameter, index)
    ax.set_xlabel(what)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    mean, sd = np.asarray(mix.mean)[index], np.asarray(mix.sd)[index]
    given = f" given that {what} exists" if mix.spikes and mix.is_conditional else ""
    ax.set_title(f"Averaged over models (filled): {mean_and_sd(float(mean), float(sd))}{given}")
    stamp(ax, result.verdict.level)
    return ax


def _stated(result: Comparison, share: float) -> str:
    """The probability of a model, or a dash where the verdict forbids to state one."""
    return probability(share) if result.verdict.is_reliable else "–"


def _spikes(ax: Axes, mix: Averaged, result: Comparison, top: float, on_right: bool) -> None:
    """Arrows where the fixed value is known, a line of text where it is not."""
    absent = [name for name, value in mix.spikes.items() if value is None]
    if absent:
        who = ", ".join(shortened(name, 16) for name in absent) if len(absent) <= 2 else f"{len(absent)} models"
        share = _stated(result, sum(mix.probabilities[name] for name in absent))
        ax.annotate(
            f"no {mix.parameter} in {who}:  P = {share}", (0.99 if on_right else 0.01, 0.98), xycoords="axes fraction",
            color=colour(result.names, absent[0]) if len(absent) == 1 else INK, fontsize=8, va="top",
            ha="right" if on_right else "left",
        )  # fmt: skip
    for name, value in mix.spikes.items():
        if value is None:
            continue
        shade = colour(result.names, name)
        arrow(ax, (value, 1.06 * top), (value, 0), shade, 1.8)
        said = f"{shortened(name, 18)}: {mix.parameter} = {value:g}\nP = {_stated(result, mix.probabilities[name])}"
        label(ax, said, (value, 1.07 * top), (4, 0), color=shade, fontsize=8, va="bottom")


@plot()
def predictions(result: Comparison, x: Any = None, prior_odds: Mapping[str, float] | None = None, *, ax: Axes) -> Axes:
    """Data, the model-averaged prediction with 68% and 95% bands, and each model's mean."""
    data = result.data if isinstance(result.data, Mapping) else {}
    if "x" not in data or np.ndim(data["x"]) != 1:
        raise DataError('a plot of data with fits needs data with one-dimensional columns "x" and "y".')
    position = np.asarray(data["x"], float)
    pad = 0.03 * np.ptp(position)
    grid = np.linspace(position.min() - pad, position.max() + pad, 240) if x is None else np.asarray(x, float)
    found: Predictions = result.predict(grid, prior_odds)
    y, sigma = np.asarray(data["y"], float), _noise(result, data)
    ax.errorbar(
        position, y, sigma, fmt="o", ms=3, color=INK, ecolor=FAINT, elinewidth=0.8, zorder=2, rasterized=len(y) > 2000
    )
    for i, strength in ((0, 0.16), (1, 0.3)):
        ax.fill_between(
            grid, found.quantiles[i], found.quantiles[4 - i], color=INK, alpha=strength, linewidth=0, zorder=3
        )
    labels = []
    for name, each in found.models.items():
        shade = colour(result.names, name)
        ax.plot(grid, each.mean, color=shade, linestyle=dashes(result.names, name), linewidth=1.5, zorder=4)
        labels.append(
            (grid[-1], float(each.mean[-1]), f"{shortened(name, 16)}  P {_stated(result, each.probability)}", shade)
        )
    low, high = np.min(y - np.nan_to_num(sigma)), np.max(y + np.nan_to_num(sigma))
    ax.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    ax.set_xlim(grid[0], grid[-1])
    end_labels(ax, labels)
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    ax.set_title("Data, means, and the averaged 68% and 95% bands")
    stamp(ax, result.verdict.level)
    return ax


def _noise(result: Comparison, data: Mapping[str, Any]) -> Any:
    """The size of the error bars, if a model's noise tells it."""
    if result.models is not None:
        for model in result.models.values():
            if hasattr(model.noise, "scale"):
                sigma = np.asarray(model.noise.scale(data), float)
                return np.broadcast_to(sigma, np.shape(data["y"]))
    return np.asarray(data["sigma"], float) if "sigma" in data else np.zeros(np.shape(data["y"]))


@plot(5.2, 5.0)
def corner(
    result: Comparison, model: str | None = None, parameters: list[str] | None = None, most: int = 6, *, ax: Axes
) -> Axes:
    """One- and two-dimensional marginals of a model's posterior, inside the given Axes; contours hold 39% and 86%."""
    name = result.best if model is None else model
    post = result.posterior(name)
    wanted = [(p, i) for p, i in scalars(result.posteriors[name]) if parameters is None or p in parameters]
    chosen, left = wanted[:most], max(len(wanted) - most, 0)
    if not chosen:
        raise SupermodelError(f"model {name!r} has no parameters to plot.")
    columns = [scalar_values(post, p, i) for p, i in chosen]
    reaches = [weighted_quantiles(c, post.weights, (0.001, 0.999)) for c in columns]
    spans = [(lo - 0.08 * (hi - lo), hi + 0.08 * (hi - lo)) for lo, hi in reaches]
    n, shade = len(chosen), colour(result.names, name)
    ax.set_axis_off()
    heading = f"Posterior of {shortened(name)}" + (f"\nfirst {most} of {most + left} numbers" if left else "")
    ax.annotate(heading, (1.0, 0.99), xycoords="axes fraction", ha="right", va="top", fontweight="bold", fontsize=9.5)
    gap, inset = 0.04 / n, 0.13
    size = (1.0 - inset) / n
    for row in range(n):
        for col in range(row + 1):
            box = ax.inset_axes(
                (inset + col * size + gap, 1.0 - (row + 1) * size + gap, size - 2 * gap, size - 2 * gap)
            )
            box.set_xlim(*spans[col])
            if row == col:
                grid = np.linspace(*spans[row], 200)
                curve = smoothed(columns[row], post.weights, grid, result.support(name, chosen[row][0]))
                box.fill_between(grid, curve, color=shade, alpha=0.25, linewidth=0)
                box.plot(grid, curve, color=shade, linewidth=1.2)
                box.set_ylim(0, 1.15 * curve.max())
                box.set_yticks([])
                p, i = chosen[row]
                title = mean_and_sd(float(post.mean(p)[i]), float(post.sd(p)[i]))
                box.set_title(title, fontsize=7.5, fontweight="normal", loc="center", pad=2)
            else:
                box.set_ylim(*spans[row])
                _cloud(box, columns[col], columns[row], post.weights, shade)
            box.tick_params(labelsize=6.5, length=2)
            box.locator_params(axis="x", nbins=3)
            if row < n - 1:
                box.set_xticklabels([])
            else:
                box.set_xlabel(shortened(scalar_label(*chosen[col]), 12), fontsize=8)
            if row != col:
                box.locator_params(axis="y", nbins=3)
                if col > 0:
                    box.set_yticklabels([])
                else:
                    box.set_ylabel(shortened(scalar_label(*chosen[row]), 12), fontsize=8)
    stamp(ax, result.verdict.level)
    return ax


def _cloud(box: Axes, x: np.ndarray, y: np.ndarray, weights: np.ndarray, shade: str) -> None:
    """Draws as faint points under contours of the smoothed density."""
    rows = np.random.default_rng(0).choice(len(x), min(len(x), 700), p=weights / weights.sum())
    box.plot(x[rows], y[rows], ".", ms=1.6, color=shade, alpha=0.25, mew=0, rasterized=True)
    bins = 36
    (xl, xh), (yl, yh) = box.get_xlim(), box.get_ylim()
    counts, _, _ = np.histogram2d(x, y, bins=bins, range=((xl, xh), (yl, yh)), weights=weights)
    size = 1.0 / np.sum((weights / weights.sum()) ** 2)
    width = max(1.0, bins / 6.0 * size ** (-1 / 6))
    offsets = np.arange(-int(3 * width) - 1, int(3 * width) + 2)
    kernel = np.exp(-0.5 * (offsets / width) ** 2)
    smooth = np.apply_along_axis(lambda r: np.convolve(r, kernel / kernel.sum(), "same"), 0, counts)
    smooth = np.apply_along_axis(lambda r: np.convolve(r, kernel / kernel.sum(), "same"), 1, smooth)
    order = np.sort(smooth.ravel())[::-1]
    held = np.cumsum(order) / order.sum()
    levels = sorted({float(order[np.searchsorted(held, h)]) for h in (0.393, 0.865)})
    if len(levels) == 2:
        centres = [np.linspace(lo, hi, 2 * bins + 1)[1::2] for lo, hi in ((xl, xh), (yl, yh))]
        box.contour(*centres, smooth.T, levels=levels, colors=[shade], linewidths=(0.9, 1.3))
