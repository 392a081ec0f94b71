"""One look for all plots: colours that survive colour-blindness and print, direct labels, and a verdict that shows."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from supermodel.estimation.estimate import Estimate

# Okabe and Ito's colours, without black and yellow, in an order whose greys differ.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1)), (0, (8, 2)))
# The report exchanges these three for the colours of the page, light or dark.
INK, FAINT, PAPER = "#16181d", "#8b919b", "#fdfdfe"
ALARM, WARN = "#b3261e", "#9a6700"

RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 9.0,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": PAPER,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "text.parse_math": False,  # a `$` in a user's name is a dollar
    "svg.fonttype": "none",
    "svg.hashsalt": "supermodel",
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
}


def plot(width: float = 5.6, height: float = 3.4) -> Callable[[Callable[..., Axes]], Callable[..., Axes]]:
    """Let a plotting function be called without `ax`: it then makes a figure of its own, of this size in inches."""

    def dressed(function: Callable[..., Axes]) -> Callable[..., Axes]:
        @functools.wraps(function)
        def drawn(*args: Any, ax: Axes | None = None, **kwargs: Any) -> Axes:
            with matplotlib.rc_context(RC):
                if ax is None:
                    import matplotlib.pyplot as plt

                    _, ax = plt.subplots(figsize=(width, height))
                return function(*args, ax=ax, **kwargs)

        return drawn

    return dressed


def colour(names: Sequence[str], name: str) -> str:
    """The colour of a model: by its place among all of them, the same in every plot; others are grey."""
    return PALETTE[list(names).index(name) % len(PALETTE)] if name in names else FAINT


def dashes(names: Sequence[str], name: str) -> Any:
    """A line style for each model, so that a print without colour can be read."""
    return DASHES[list(names).index(name) % len(DASHES)] if name in names else "-"


def stamp(ax: Axes, level: str, excluded: Sequence[str] = ()) -> None:
    """Make a verdict that forbids or restricts use impossible to overlook; "ok" leaves no mark.

    Where it is of some of the models only (`excluded`), the picture of the others is not covered.
    """
    if excluded:
        _note(ax, f"{level.upper()} for {', '.join(shortened(name, 16) for name in excluded)}: see verdict", ALARM)
        return
    if level == "fail":
        ax.text(
            0.5, 0.5, "FAIL: do not use", transform=ax.transAxes, ha="center", va="center", rotation=18, fontsize=22,
            fontweight="bold", color=ALARM, alpha=0.55, zorder=50,
        )  # fmt: skip
    elif level in ("limit", "caution"):
        words = {"limit": "LIMIT: bound only", "caution": "caution: see verdict"}[level]
        _note(ax, words, WARN)


def _note(ax: Axes, words: str, shade: str) -> None:
    title = ax.get_title(loc="left")
    lift = 4 + 12 * len(title.splitlines())  # above a title, which may be as long as the picture is wide
    label(
        ax, words, (1.0, 1.0), (-2, lift), xycoords="axes fraction", ha="right", va="bottom", fontsize=8,
        fontweight="bold", color=shade, zorder=50, annotation_clip=False,
    )  # fmt: skip


def label(ax: Axes, text: str, at: tuple[Any, Any], shift: tuple[float, float] = (0, 0), **looks: Any) -> None:
    """Text beside a point of the plot, moved from it by `shift` points."""
    ax.annotate(text, at, xytext=shift, textcoords="offset points", **looks)


def headed(ax: Axes, text: str) -> None:
    """A title in as many lines as the picture's width asks for: a long one would run over its neighbour."""
    figure: Any = ax.get_figure(root=True)
    room = 72 * figure.get_figwidth() * ax.get_position().width
    ax.set_title(textwrap.fill(text, max(int(0.9 * room / LETTER), 20)))


LETTER = 5.7  # points that a letter of a title takes, about
SPOTS = ((0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1), (1, 0), (-1, 0))  # beside a point, the dearest first


def beside(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    curve: tuple[Any, Any],
    levels: Sequence[float] = (),
    size: float = 7.5,
) -> None:
    """Text beside a point of a curve, at the first spot where it covers neither the curve nor one of some level lines."""
    lines = text.splitlines()
    wide, tall, off = 0.6 * size * max(map(len, lines)), 1.25 * size * len(lines), 9.0
    figure: Any = ax.get_figure(root=True)
    points = 72.0 / figure.dpi
    ax.autoscale_view()  # the limits must be known
    x, y = (np.asarray(each, float) for each in curve)
    fine = np.linspace(0, len(x) - 1, 40 * len(x))
    places = np.array([np.interp(fine, np.arange(len(x)), each) for each in (x, y)]).T
    there = points * (ax.transData.transform(places) - ax.transData.transform(at))
    heights = points * (
        ax.transData.transform([(at[0], level) for level in levels] or np.zeros((0, 2))) - ax.transData.transform(at)
    )
    (left, low), (right, high) = points * (ax.get_window_extent().get_points() - ax.transData.transform(at))

    def covered(spot: tuple[int, int]) -> float:
        a, b = (off * s + (0.5 * s - 0.5) * w for s, w in zip(spot, (wide, tall), strict=True))
        if a < left or b < low or a + wide > right or b + tall > high:
            return np.inf
        inside = (
            (there[:, 0] > a - 2) & (there[:, 0] < a + wide + 2) & (there[:, 1] > b - 2) & (there[:, 1] < b + tall + 2)
        )
        crossed = (heights[:, 1] > b) & (heights[:, 1] < b + tall)
        return float(inside.sum()) + 0.5 * float(crossed.sum())

    best = min(SPOTS, key=covered)
    ha, va = {-1: "right", 0: "center", 1: "left"}[best[0]], {-1: "top", 0: "center", 1: "bottom"}[best[1]]
    label(ax, text, at, (off * best[0], off * best[1]), ha=ha, va=va, fontsize=size, color=INK, zorder=7)


def arrow(ax: Axes, tip: tuple[float, float], tail: tuple[float, float], shade: str, width: float = 2) -> None:
    """A filled arrow."""
    ax.annotate("", tip, tail, arrowprops={"arrowstyle": "-|>", "color": shade, "lw": width})


def interval(ax: Axes, e: Estimate, row: float, shade: str, is_filled: bool = True) -> None:
    """A number on a line of its own: thick ± 1σ, thin ± 2σ, and a circle that is open where it is not to be trusted."""
    ax.hlines(row, *e.interval(2), color=shade, linewidth=1.2)
    ax.hlines(row, *e.interval(1), color=shade, linewidth=4)
    ax.plot(e.value, row, "o", color=shade if is_filled else PAPER, mec=PAPER if is_filled else shade, ms=7)


def end_labels(ax: Axes, labels: Sequence[tuple[float, float, str, str]], gap: float = 0.075) -> None:
    """Direct labels (x, y, text, colour) to the right of lines, pushed apart until none covers another."""
    low, high = ax.get_ylim()
    placed = sorted((label for label in labels if math.isfinite(label[1])), key=lambda item: item[1])
    if not placed:
        return
    heights = [(y - low) / (high - low) for _, y, _, _ in placed]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    over = max(heights[-1] - 1.0, 0.0)
    heights = [h - over for h in heights]
    for i in range(len(heights) - 2, -1, -1):
        heights[i] = min(heights[i], heights[i + 1] - gap)
    for (x, _, text, shade), height in zip(placed, heights, strict=True):
        at = (x, low + height * (high - low))
        label(ax, text, at, (4, 0), va="center", ha="left", color=shade, fontsize=8, annotation_clip=False)


def spread(ax: Axes, labels: Sequence[tuple[float, float, str, str, str]], size: float = 8.0) -> None:
    """Labels (x, y, text, colour, which side of it is at x) above their points, lifted until none covers another.

    Room is made above by raising the upper end of the axis.
    """
    figure: Any = ax.get_figure(root=True)
    box = ax.get_position()
    width, height = (72 * inches * part for inches, part in zip(figure.get_size_inches(), box.size, strict=True))
    (left, right), (low, _) = ax.get_xlim(), ax.get_ylim()
    for _ in range(20):
        high, placed = ax.get_ylim()[1], list[Any]()
        for x, y, text, shade, side in sorted(labels, key=lambda item: item[1]):
            wide = max(map(len, text.splitlines())) * 0.62 * size + 6
            tall = 1.3 * size * len(text.splitlines()) + 2
            at = (x - left) / (right - left) * width + (4 if side == "left" else -4 - wide)
            up = (y - low) / (high - low) * height + 2
            for near, above, its_width, its_height in sorted((p[:4] for p in placed), key=lambda p: p[1]):
                if at < near + its_width and near < at + wide and up < above + its_height and above < up + tall:
                    up = above + its_height
            placed.append((at, up, wide, tall, x, y, text, shade, side))
        if max((up + tall for _, up, _, tall, *_ in placed), default=0.0) <= height:
            break
        ax.set_ylim(low, low + 1.08 * (high - low))
    for _, up, _, _, x, y, text, shade, side in placed:
        lift = up - (y - low) / (ax.get_ylim()[1] - low) * height
        shift = (4 if side == "left" else -4, lift)
        label(ax, text, (x, y), shift, ha=side, va="bottom", color=shade, fontsize=size)


def shortened(name: str, most: int = 26) -> str:
    """A name that fits beside an axis."""
    return name if len(name) <= most else name[: most - 1] + "…"


def width_of(ax: Axes) -> float:
    """The width of the figure that holds the axes, in inches."""
    figure: Any = ax.get_figure(root=True)
    return float(figure.get_figwidth())
