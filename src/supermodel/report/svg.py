"""A picture as inline SVG whose ink and paper are the page's: measured once, drawn once."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure

from supermodel.report.style import ALARM, FAINT, INK, PALETTE, PAPER, RC, WARN

POINTS = 72  # an inch
PAD = 3.0  # points between what is drawn and the figure's edge, as in matplotlib's constrained layout

# Matplotlib writes colours in lower case; the page gives each of these variables a light and a dark value.
_VARIABLES = {INK: "--ink", FAINT: "--faint", PAPER: "--paper", ALARM: "--fail", WARN: "--caution"}
_VARIABLES |= {colour: f"--c{i}" for i, colour in enumerate(PALETTE)}


def svg(draw: Callable[..., Any], size: tuple[float, float]) -> Markup:
    """What `draw(ax=...)` draws on a figure of `size` inches."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=size, dpi=POINTS)
        figure.set_layout_engine("none")
        figure.patch.set_alpha(0.0)
        ax = figure.add_subplot()
        draw(ax=ax)
        text = _written(figure, ax)
    return Markup(_of_the_page(text))


def _written(figure: Figure, ax: Axes) -> str:
    """The figure as SVG. `savefig` draws twice where there is a layout to be found, and measures every text three times."""
    buffer = io.StringIO()
    width, height = figure.get_size_inches()
    dots = matplotlib.rcParams["savefig.dpi"]
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    vectors = RendererSVG(POINTS * width, POINTS * height, buffer, image_dpi=dots, metadata=nothing)
    renderer: Any = MixedModeRenderer(figure, width, height, dots, vectors)
    _fill(figure, ax, renderer)
    figure.draw(renderer)
    renderer.finalize()
    return buffer.getvalue()


def _fill(figure: Figure, ax: Axes, renderer: Any) -> None:
    """Let the axes, with what stands around them, fill the figure."""
    inner, outer = ax.get_window_extent(), ax.get_tightbbox(renderer, for_layout_only=True)
    if outer is None:  # nothing is drawn
        return
    width, height = figure.bbox.size
    left, bottom = inner.x0 - outer.x0 + PAD, inner.y0 - outer.y0 + PAD
    right, top = outer.x1 - inner.x1 + PAD, outer.y1 - inner.y1 + PAD
    ax.set_position((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))


def _of_the_page(text: str) -> str:
    """The picture in the page's font, colours and width, with ids that no other picture has."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for side in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {side}="[^"]*pt"', r"\1", text)
    text = re.sub(r"font: ([^;\"]*?px) [^;\"]*", r"font: \1 var(--sans)", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour.lower(), f"var({variable})")
    prefix = f"f{_number(text)}-"
    text = re.sub(r'(\bid=")', rf"\1{prefix}", text)
    return re.sub(r'(url\(#|href="#)', rf"\1{prefix}", text)


def _number(text: str) -> str:
    """A short mark of a text, so that ids of two figures on one page never meet."""
    return base64.b32encode(hashlib.sha256(text.encode()).digest())[:6].decode().lower()
