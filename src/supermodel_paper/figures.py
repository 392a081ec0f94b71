"""How the figures look: one palette, direct labels, no clutter; and how they are written."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

# Okabe and Ito's palette, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7"
# Neutral colours that the page exchanges for those of a dark theme: no other ink may use them.
INK, MUTED, RULE, PAPER = "#1b1b1d", "#6b6b70", "#e3e3e6", "#fffffe"

DOTS, DASHES = (0, (2, 2)), (0, (4, 2))
LIKELIHOOD = {
    "xlabel": r"$\ell = \ln B_{21}$",
    "ylabel": "likelihood (normalised)",
}  # the axes of Figures 2, 3, 6, 8, 9

STYLE: Any = {  # matplotlib types the names of its settings one by one
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), PAPER),
    **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.grid", "legend.frameon"), False),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 9.5),
    **dict.fromkeys(("axes.linewidth", "grid.linewidth"), 0.8),
    "grid.color": RULE,
    "axes.axisbelow": True,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.labelsize": 10.5,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "lines.linewidth": 2.0,
    "svg.fonttype": "path",
    "axes.unicode_minus": True,
}


def canvas(width: float = 7.0, height: float = 4.2, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    """A figure in the house style with its axes; never shown, so no window system is touched."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, **options)


def say(ax: Any, x: float, y: float, text: str, colour: str = INK, **options: Any) -> None:
    """A direct label: text in the colour of what it names."""
    options = {"fontsize": 9.5, "va": "center", "ha": "left"} | options
    # Not part of the layout: a label that falls outside must not squeeze the axes.
    ax.text(x, y, text, color=colour, **options).set_in_layout(False)


def mark(ax: Any, *lines: tuple[float | None, str, str]) -> None:
    """Dotted vertical lines (x, text, colour), named in the upper right corner, where a likelihood of ln B is low."""
    for i, (x, text, colour) in enumerate(lines):
        if x is not None:
            ax.axvline(x, color=colour, linestyle=DOTS, linewidth=1.6, zorder=1)
        say(ax, 0.985, 0.95 - 0.075 * i, text, colour, transform=ax.transAxes, ha="right")


def likelihood_curve(ax: Any, details: dict, colour: str, fill: bool = True) -> None:
    """The normalised likelihood of ln B21 from the details of a line fit (which are of ln B12)."""
    if "grid" not in details:  # all samples at one end: there is no maximum, only a limit
        say(ax, 0.5, 0.5, "too few samples: no maximum, only a limit", MUTED, transform=ax.transAxes, ha="center")
        return
    grid, curve = -details["grid"][::-1], details["curve"][::-1]
    ax.plot(grid, curve, color=colour)
    if fill:
        low, high = sorted(-x for x in details["interval"])
        inside = (grid >= low) & (grid <= high)
        ax.fill_between(grid[inside], curve[inside], color=colour, alpha=0.18, linewidth=0)
    ax.set_ylim(bottom=0)
    # By the error, not by the grid: with few samples the likelihood never falls to zero on the right.
    peak, reach = grid[np.argmax(curve)], details["nominal"]
    ax.set_xlim(peak - 3.8 * reach, peak + 5.5 * reach)


def likelihood_of(fit: Any, value: Any, *lines: tuple[float | None, str, str]) -> tuple[Any, Any]:
    """A figure of the likelihood of ln B21 from a line fit, with the recovered value after the first of the lines."""
    figure, ax = canvas()
    likelihood_curve(ax, fit.details, RED)
    mark(ax, lines[0], (value.value, f"recovered {value}", RED), *lines[1:])
    ax.set(**LIKELIHOOD)
    return figure, ax


def bars(ax: Any, edges: np.ndarray, heights: np.ndarray, colour: str, outline: bool = False) -> None:
    """A histogram from edges and heights: filled, or as an outline that leaves room for another."""
    if outline:
        ax.stairs(heights, edges, color=colour, linewidth=1.4, baseline=None)
    else:
        ax.stairs(heights, edges, color=colour, alpha=0.28, fill=True, linewidth=0)


def write_atomically(path: Path, content: bytes | str) -> None:
    """The whole file or none of it: written beside its place, then renamed into it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _settle(figure: Any) -> None:
    """Find the layout once: every file would find it anew, and be drawn twice for it."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def svg_of(figure: Any, name: str) -> str:
    """The figure as SVG text; `name` keeps the ids of several in one page apart. Same figure, same text."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context(STYLE | {"svg.hashsalt": name}):
        _settle(figure)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def png_of(figure: Any, dpi: int = 150) -> bytes:
    """The figure as a PNG."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        _settle(figure)
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()
