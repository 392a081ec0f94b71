r"""What parameters are called: their names in text, and the labels and units of the user, which may be TeX, in print.

A label such as `$\omega$` is for axes and LaTeX; tables of plain text keep the name that code asks for, with its unit.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import TYPE_CHECKING, Any

from supermodel.report.tables import Tex, latex_escape, scalar_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from supermodel.results.comparison import Comparison


def named(result: Comparison, parameter: str, index: tuple[int, ...] = ()) -> Tex:
    r"""`omega [rad/s]`, which in LaTeX is `$\omega$ [rad/s]`."""
    label, unit = result.labels.get(parameter, parameter), result.units.get(parameter, "")
    index = _ticks(result, parameter, index)
    plain = scalar_label(parameter if is_tex(label) else label, index) + (f" [{without_tex(unit)}]" if unit else "")
    place = latex_escape(scalar_label("", index))
    return Tex(plain, f"{_tex(label)}{place}" + (f" [{_tex(unit)}]" if unit else ""))


def _ticks(result: Comparison, parameter: str, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """The names of the coordinates that a PyMC model gives its axes, in place of numbers."""
    for model in (result.models or {}).values():
        known = getattr(model, "observed", None)
        axes = () if known is None else known.dims.get(parameter, ())
        if len(axes) == len(index):
            return tuple(
                known.coords[axis][i] if axis in known.coords else i for axis, i in zip(axes, index, strict=True)
            )
    return index


def is_tex(text: str) -> bool:
    """Whether a text holds formulas: an even number of dollars, or a command."""
    return "\\" in text or (text.count("$") > 0 and text.count("$") % 2 == 0)


def _tex(text: str) -> str:
    if not is_tex(text):
        return latex_escape(text)
    return text if "$" in text else f"${text}$"


def without_tex(text: str) -> str:
    r"""A unit for plain text: `$M_{\odot}$` is `M☉`.

    >>> without_tex(r"$\mathrm{km}\,\mathrm{s}^{-1}$"), without_tex(r"$M_{\odot}$"), without_tex(r"$\mu$Jy")
    ('km s^-1', 'M☉', 'μJy')
    """
    if not is_tex(text):
        return text
    text = re.sub(r"_?\{?\\odot\}?", "☉", text.replace(r"\,", " ").replace("~", " "))
    text = re.sub(r"\\(?:mathrm|mathcal|rm|text|mathit|bf)\b\s*", "", text)
    return re.sub(r"\\([A-Za-z]+)\s*", _letter, text).translate(str.maketrans("", "", "${}\\"))


def _letter(found: re.Match[str]) -> str:
    name = found.group(1)
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}")
    except KeyError:
        return name


def on_axis(label: Tex, most: int = 40) -> dict[str, Any]:
    """`set_xlabel(**...)`: the label as a formula where matplotlib can set it, as plain text where not."""
    if re.search(r"(?<!\\)\$", label.tex) and _can_be_set(label.tex):
        return {"text": label.tex, "parse_math": True}
    return {"text": label if len(label) <= most else label[: most - 1] + "…", "parse_math": False}


@functools.cache
def _can_be_set(text: str) -> bool:
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text)
    except ValueError:
        return False
    return True


def set_labels(ax: Axes, x: Tex | None = None, y: Tex | None = None, most: int = 40, **looks: Any) -> None:
    """Names of parameters at the axes."""
    for label, axis in ((x, ax.xaxis), (y, ax.yaxis)):
        if label is not None:
            given = on_axis(label, most)
            axis.set_label_text(given.pop("text"), **given, **looks)
