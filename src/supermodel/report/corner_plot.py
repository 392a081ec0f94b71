"""The corner: one- and two-dimensional marginals of a model's posterior, all panels on one Axes.

Panels are maps of the unit square onto itself, not Axes: of a report half the time went into the ticks of those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.markers import TICKDOWN, TICKLEFT
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from matplotlib.transforms import offset_copy

from supermodel.errors import SupermodelError
from supermodel.report.labels import on_axis
from supermodel.report.numbers import mean_and_sd
from supermodel.report.posterior_plots import smoothed
from supermodel.report.style import FAINT, INK, colour, plot, shortened, stamp
from supermodel.report.tables import Tex, level_of, scalars, straight_values, weighted_quantiles

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison

INSET, GAP = 0.13, 0.04  # of the picture's width: what names and numbers take at the left; between two panels, over n
REACH = 0.08  # of the span of draws, added to either side
BINS, POINTS = 36, 700  # of a cloud
HELD = (0.393, 0.865)  # what one and two sigma hold of a normal law in two dimensions
TICK, SMALL, LARGE = 2.0, 6.5, 8.0  # points: length of a tick, size of numbers and of names

Span = tuple[float, float]


@dataclass(frozen=True)
class Panel:
    r"""$[x_0, x_1] \times [y_0, y_1] \to$ a box of the unit square, by (low, high) of either side."""

    x: Span
    y: Span
    across: Span
    up: Span

    def to(self, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Where points of the panel are on the picture."""
        return _moved(x, self.x, self.across), _moved(y, self.y, self.up)


def _moved(values: Any, here: Span, there: Span) -> np.ndarray:
    return there[0] + (np.asarray(values, float) - here[0]) / (here[1] - here[0]) * (there[1] - there[0])


@plot(5.2, 5.0)
def corner(
    result: Comparison, model: str | None = None, parameters: list[str] | None = None, most: int = 6, *, ax: Axes
) -> Axes:
    """One- and two-dimensional marginals of a model's posterior, inside the given Axes; contours hold 39% and 86%."""
    name = result.best if model is None else model
    post = result.posterior(name)
    for parameter in parameters or ():
        post.draws(parameter)  # refuses a name that does not exist
    wanted = [(p, i) for p, i in scalars(result.posteriors[name]) if parameters is None or p in parameters]
    chosen, left = wanted[:most], max(len(wanted) - most, 0)
    if not chosen:
        raise SupermodelError(f"model {name!r} has no parameters to plot.")
    columns = [straight_values(post, p, i) for p, i in chosen]
    reaches = [weighted_quantiles(c, post.weights, (0.001, 0.999)) for c in columns]
    spans = [(lo - REACH * (hi - lo), hi + REACH * (hi - lo)) for lo, hi in reaches]
    n, shade = len(chosen), colour(result.names, name)
    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(0, 1), autoscale_on=False)
    heading = f"Posterior of {shortened(name)}" + (f"\nfirst {most} of {most + left} numbers" if left else "")
    if n == 1:  # no free corner to stand in
        ax.set_title(heading)
    else:
        ax.text(1.0, 0.99, heading, ha="right", va="top", fontweight="bold", fontsize=9.5)
    panels = {(row, col): _panel(row, col, n, spans) for row in range(n) for col in range(row + 1)}
    for row, (p, i) in enumerate(chosen):
        curve = smoothed(columns[row], post.weights, grid := np.linspace(*spans[row], 200), result.support(name, p))
        _hill(ax, panels[row, row], grid, curve, shade, mean_and_sd(float(post.mean(p)[i]), float(post.sd(p)[i])))
    pairs = {(row, col): panel for (row, col), panel in panels.items() if row != col}
    _clouds(ax, pairs, columns, post.weights, shade)
    _frames(ax, panels, n, [result.name_of(p, i) for p, i in chosen])
    stamp(ax, level_of(result, name))
    return ax


def _panel(row: int, col: int, n: int, spans: list[Span]) -> Panel:
    size, gap = (1.0 - INSET) / n, GAP / n
    left, bottom = INSET + col * size, 1.0 - (row + 1) * size
    y = (0.0, 1.0) if row == col else spans[row]
    return Panel(spans[col], y, (left + gap, left + size - gap), (bottom + gap, bottom + size - gap))


def _hill(ax: Axes, panel: Panel, grid: np.ndarray, curve: np.ndarray, shade: str, said: str) -> None:
    """The density of one parameter, with its mean and standard deviation above."""
    x, y = panel.to(grid, curve / max(1.15 * curve.max(), 1e-300))
    ax.fill_between(x, panel.up[0], y, color=shade, alpha=0.25, linewidth=0)
    ax.plot(x, y, color=shade, linewidth=1.2)
    _text(ax, (np.mean(panel.across), panel.up[1]), (0, 2), said, fontsize=7.5, ha="center", va="bottom")


def _clouds(ax: Axes, panels: dict[Any, Panel], columns: list[np.ndarray], weights: np.ndarray, shade: str) -> None:
    """Draws as faint points, of all panels in one image, under contours of the smoothed density."""
    w = weights / weights.sum()
    rows, points = np.random.default_rng(0).choice(len(w), min(len(w), POINTS), p=w), []
    for (row, col), panel in panels.items():
        x, y = columns[col], columns[row]
        seen = (x >= panel.x[0]) & (x <= panel.x[1]) & (y >= panel.y[0]) & (y <= panel.y[1])
        points.append(panel.to(x[rows][seen[rows]], y[rows][seen[rows]]))
        density, levels = _density(x, y, w, panel)
        if len(levels) == 2:
            centres = [np.linspace(lo, hi, 2 * BINS + 1)[1::2] for lo, hi in (panel.across, panel.up)]
            ax.contour(*centres, density.T, levels=levels, colors=[shade], linewidths=(0.9, 1.3))
    if points:
        x, y = np.concatenate(points, axis=1)
        ax.plot(x, y, ".", ms=1.6, color=shade, alpha=0.25, mew=0, rasterized=True)


def _density(x: np.ndarray, y: np.ndarray, weights: np.ndarray, panel: Panel) -> tuple[np.ndarray, list[float]]:
    """The smoothed density of a pair on a grid, and the two levels within which `HELD` of it lies."""
    counts, _, _ = np.histogram2d(x, y, bins=BINS, range=(panel.x, panel.y), weights=weights)
    width = max(1.0, BINS / 6.0 * np.sum(weights**2) ** (1 / 6))
    steps = np.arange(BINS)
    reach = np.exp(-0.5 * ((steps[:, None] - steps) / width) ** 2) / (np.sqrt(2 * np.pi) * width)
    smooth = reach @ counts @ reach
    order = np.sort(smooth.ravel())[::-1]
    held = np.cumsum(order) / max(order.sum(), 1e-300)
    return smooth, sorted({float(order[np.argmax(held >= h)]) for h in HELD})


def _frames(ax: Axes, panels: dict[Any, Panel], n: int, names: list[Tex]) -> None:
    """Sides and ticks of all panels; numbers and names at the left and at the bottom."""
    sides, below, beside = [], [], []
    for (row, col), panel in panels.items():
        (left, right), (bottom, top) = panel.across, panel.up
        sides += [((left, bottom), (right, bottom)), ((left, bottom), (left, top))]
        places, said, power = ticks(*panel.x)
        x, _ = panel.to(places, 0.0)
        below += [(at, bottom) for at in x]
        if row == n - 1:
            looks: dict[str, Any] = {"ha": "center", "va": "top"}
            for at, number in zip(x, said, strict=True):
                _text(ax, (at, bottom), (0, -TICK - 3.5), number, fontsize=SMALL, **looks)
            _text(
                ax, (np.mean(panel.across), bottom), (0, -TICK - 15), fontsize=LARGE, **on_axis(names[col], 12), **looks
            )
            _text(ax, (right, bottom), (0, -TICK - 15), power, fontsize=SMALL, ha="right", va="top")
        if row == col:
            continue
        places, said, power = ticks(*panel.y)
        _, y = panel.to(0.0, places)
        beside += [(left, at) for at in y]
        if col == 0:
            for at, number in zip(y, said, strict=True):
                _text(ax, (left, at), (-TICK - 3.5, 0), number, fontsize=SMALL, ha="right", va="center")
            _text(ax, (0.0, np.mean(panel.up)), (0, 0), fontsize=LARGE, rotation=90, ha="left", va="center",
                  **on_axis(names[row], 12))  # fmt: skip
            _text(ax, (left, top), (0, 1), power, fontsize=SMALL, ha="right", va="bottom")
    ax.add_collection(LineCollection(sides, colors=FAINT, linewidths=0.8, capstyle="projecting"), autolim=False)
    for feet, marker in ((below, TICKDOWN), (beside, TICKLEFT)):
        if feet:
            x, y = np.transpose(feet)
            ax.plot(x, y, linestyle="none", marker=marker, ms=TICK, mew=0.8, color=INK, clip_on=False)


def ticks(low: float, high: float, n: int = 3) -> tuple[np.ndarray, list[str], str]:
    """At most n + 1 round numbers from `low` to `high`, as text, and the power of ten or offset that all of them lack.

    >>> ticks(-0.3, 4.2)[1:]
    (['0', '2', '4'], '')
    """
    found = np.asarray(MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    places = found[(found >= low) & (found <= high)]
    formatter: Any = ScalarFormatter()
    formatter.create_dummy_axis()
    formatter.axis.set_view_interval(low, high)
    said = formatter.format_ticks(places)
    return places, said, formatter.get_offset()


def _text(ax: Axes, at: tuple[Any, Any], shift: tuple[float, float], text: str, **looks: Any) -> None:
    """Text at a place of the picture, moved from it by `shift` points."""
    if text:
        moved = offset_copy(ax.transData, ax.get_figure(root=True), *shift, units="points")
        ax.text(*at, text, transform=moved, **looks)
