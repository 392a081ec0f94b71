"""Pictures of a count: the probability of each number, the data with what was found in them, and each component alone."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import mean_and_sd, probability
from supermodel.report.style import (
    ALARM,
    FAINT,
    INK,
    LETTER,
    PALETTE,
    PAPER,
    arrow,
    end_labels,
    headed,
    label,
    plot,
    shortened,
    spread,
    stamp,
    width_of,
)

if TYPE_CHECKING:
    from supermodel.counting.contributions import Contributions
    from supermodel.counting.result import Count

HALF = 0.36  # of the width of a bar
SEEN = 0.004  # of the picture's height: no shorter error is drawn
LINE, CROWDED = 10.5, 44.0  # points that a line of a label takes; that a number needs for its error to be told
MANY, RASTER = 80, 2000  # data that are folded, more than which are averaged; that are drawn as dots
BINS = 20
NAMED = 2  # parameters in a title
APART = 0.05  # of the picture's height: curves that end nearer to each other are named as one
ROW, ABOVE, BELOW, ASIDE = 1.75, 0.5, 0.5, 0.75  # inches: a panel's height; what stands over, under and left of it


@plot(5.6, 3.2)
def numbers(result: Count, *, ax: Axes) -> Axes:
    """The probability of each number of components with its error, and its prior; what more would be is an arrow."""
    p, prior, more = result.probabilities, result.prior, result.more
    beyond = [k for k in prior if k not in p]
    best = result.best if result.comparison.weighed else None
    known = {k: e for k, e in p.items() if np.isfinite(e.value)}
    marks = {k: prior[k] for k in p} | ({max(p) + 1: sum(prior[k] for k in beyond)} if beyond else {})
    tips = [e.value + np.nan_to_num(e.error) for e in known.values()]
    ax.set_ylim(0, top := 1.28 * max([*tips, *marks.values()]))
    ax.set_yticks(
        [t for t in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(0, min(top, 1.0)) if 0 <= t <= min(top, 1.0)]
    )
    ax.set_xlim(min(marks) - 0.6, max(marks) + 0.6)
    for k, e in known.items():
        ax.bar(k, e.value, 2 * HALF, color=PALETTE[0], alpha=1.0 if k == best else 0.45, linewidth=0, zorder=2)
    for k, e in known.items():
        if e.error > SEEN * ax.get_ylim()[1]:
            ax.errorbar(k, e.value, e.error, fmt="none", ecolor=INK, elinewidth=1.2, capsize=3, zorder=4)
        _over(ax, k, e.value + np.nan_to_num(e.error), _said(e, _width(ax) / len(marks) < CROWDED), marks[k])
    for k in set(p) - set(known):
        _over(ax, k, 0.0, "checks\nfailed", marks[k], ALARM)
    for k, share in marks.items():
        ax.hlines(share, k - HALF - 0.06, k + HALF + 0.06, color=FAINT, linewidth=1.4, linestyle=(0, (3, 2)), zorder=3)
    label(ax, "prior", (max(marks) + HALF + 0.06, marks[max(marks)]), (3, 0), va="center", color=FAINT, fontsize=8,
          annotation_clip=False)  # fmt: skip
    if beyond:
        _more(ax, max(marks), more, marks[max(marks)])
    ticks = [*map(str, p), *([f"{beyond[0]} to {beyond[-1]}" if len(beyond) > 1 else str(beyond[0])] if beyond else [])]
    ax.set_xticks(list(marks), ticks)
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel(f"number of {result.asked['component']}s")
    ax.set_ylabel("P(number | data)")
    headed(ax, result.headline)
    stamp(ax, result.verdict.level, result.comparison.excluded)
    return ax


def _said(e: Estimate, is_crowded: bool) -> str:
    """A probability with its error beneath; where there is no room for that, two digits."""
    if is_crowded and 0 < e.value < 0.995:
        return f"{e.value:.2g}" if e.value >= 1e-3 else f"{e.value:.0e}"
    if np.isfinite(e.error) and e.error >= 5e-5:
        return f"{e.value:.{e.decimals}f}\n± {e.error:.{e.decimals}f}"
    return probability(e.value)


def _width(ax: Axes) -> float:
    """The width of the picture in points."""
    return 72.0 * width_of(ax) * ax.get_position().width


def _height(ax: Axes) -> float:
    """The height of the picture in points."""
    figure: Any = ax.get_figure(root=True)
    return 72.0 * figure.get_figheight() * ax.get_position().height


def _over(ax: Axes, x: float, foot: float, text: str, prior: float, shade: str = INK) -> None:
    """Text above a bar; above the mark of the prior, where that would run through it."""
    unit = ax.get_ylim()[1] / _height(ax)
    tall = (LINE * len(text.splitlines()) + 5) * unit
    foot = prior if foot - 2 * unit < prior < foot + tall else foot
    label(ax, text, (x, foot), (0, 3), ha="center", va="bottom", fontsize=8, color=shade, zorder=5, linespacing=1.1)


def _more(ax: Axes, x: float, more: float, prior: float) -> None:
    """What more components would have, as an arrow to it; nothing is known of them where ln Z has not fallen yet."""
    if not more < 1:
        _over(ax, x, 0.0, "not\nreached", prior, FAINT)
        return
    top = ax.get_ylim()[1]
    tail = more + 0.11 * top
    arrow(ax, (x, more), (x, tail), FAINT, 1.6)
    _over(ax, x, tail, f"about\n{more:.1g}", prior)


# -- the data with what was found -------------------------------------------------------------------------------------


@plot(6.4, 4.6)
def found(result: Count, *, ax: Axes) -> Any:
    """The data with the mean of the most probable number and its bands, and below what is left; an array of two Axes."""
    each = result.contributions
    ax.set_axis_off()
    top = ax.inset_axes((0, 0.33, 1, 0.67))
    below = ax.inset_axes((0, 0, 1, 0.27), sharex=top)
    top.tick_params(labelbottom=False)
    grid = each.on_grid
    span = np.ptp(each.x)
    top.set_xlim(each.x.min() - 0.02 * span, each.x.max() + 0.02 * span)
    if grid is None or grid.whole is None:
        _marks(top, each)
        _limits(top, each.y, each.error)
    else:
        _bands(top, grid.x, grid.whole, PALETTE[0], (0.95, 0.68))
        _lightly(top, result, each)
    _points_of(top, each.x, each.y, each.error)
    _points_of(below, each.x, each.left, each.error)
    _limits(below, each.left, each.error)
    below.axhline(0.0, color=PALETTE[0], linewidth=1.2, zorder=3)
    top.set_ylabel("y")
    below.set_ylabel("y − mean")
    below.set_xlabel(each.axis)
    headed(top, f"{_start(result.names[result.best])} in the data, and what is left")
    stamp(top, result.verdict.level, result.comparison.excluded)
    return np.array([top, below])


def _start(text: str) -> str:
    return text[:1].upper() + text[1:]


def _points_of(ax: Axes, x: np.ndarray, y: np.ndarray, error: np.ndarray | None) -> None:
    """Data with their errors."""
    bars = None if error is None else np.nan_to_num(error)
    many = len(y) > RASTER
    looks: dict[str, Any] = {"fmt": "o", "color": INK, "ecolor": FAINT, "rasterized": many, "zorder": 2}
    ax.errorbar(
        x, y, None if many else bars, ms=1.5 if many else 3, elinewidth=0.8, alpha=0.5 if many else 1.0, **looks
    )


def _limits(ax: Axes, y: np.ndarray, error: np.ndarray | None) -> tuple[float, float]:
    """Let the picture hold these data with their errors; their ends."""
    bars = 0.0 if error is None else np.nan_to_num(error)
    low, high = float(np.min(y - bars)), float(np.max(y + bars))
    room = 0.06 * ((high - low) or 1.0)
    ax.set_ylim(low - room, high + room)
    return low, high


def _bands(ax: Axes, x: np.ndarray, draws: np.ndarray, shade: str, held: tuple[float, ...]) -> None:
    """The mean of curves, and what holds these shares of them."""
    for share in held:
        low, high = np.quantile(draws, (0.5 - 0.5 * share, 0.5 + 0.5 * share), axis=0)
        ax.fill_between(x, low, high, color=shade, alpha=0.22, linewidth=0, zorder=3)
    ax.plot(x, draws.mean(axis=0), color=shade, linewidth=1.5, zorder=5)


def _marks(ax: Axes, each: Contributions) -> None:
    """The prediction of each datum, where no curve can be drawn."""
    draws: Any = each.at_data.whole
    for share, width, strength in ((0.95, 1.2, 0.35), (0.68, 3.0, 0.6)):
        low, high = np.quantile(draws, (0.5 - 0.5 * share, 0.5 + 0.5 * share), axis=0)
        ax.vlines(each.x, low, high, color=PALETTE[0], alpha=strength, linewidth=width, zorder=3)
    ax.plot(each.x, each.mean, "_", color=PALETTE[0], ms=7, zorder=4)


def _lightly(ax: Axes, result: Count, each: Contributions) -> None:
    """The background, and each component on it: one that lives in a part of the range named above it, all others at the right."""
    grid: Any = each.on_grid
    behind = np.zeros(len(grid.x)) if grid.background is None else grid.background.mean(axis=0)
    curves = [behind + part.mean(axis=0) for part in grid.parts]
    if grid.background is not None and curves:
        ax.plot(grid.x, behind, color=FAINT, linewidth=1.2, linestyle=(0, (5, 2)), zorder=4)
    low, high = _limits(ax, each.y, each.error)
    ends, tops = [("together", grid.whole.mean(axis=0)[-1], PALETTE[0])], []
    for i, curve in enumerate(curves if len(curves) > 1 else ()):
        shade, name = _shade(i), shortened(result.components[i].label, 18)
        window = each.window(i)
        here = slice(None) if window is None else (grid.x >= window[0]) & (grid.x <= window[1])
        ax.plot(grid.x[here], curve[here], color=shade, linewidth=1.0, alpha=0.75, zorder=4)
        if window is not None:
            ax.fill_between(grid.x[here], behind[here], curve[here], color=shade, alpha=0.25, linewidth=0, zorder=1)
            tops.append((float(grid.x[np.argmax(np.abs(curve - behind))]), name, shade))
        else:
            low, high = min(low, curve.min()), max(high, curve.max())
            ends.append((name, curve[-1], shade))
    if grid.background is not None and (len(ends) > 1 or abs(behind[-1] - ends[0][1]) > APART * (high - low)):
        ends.append(("background", behind[-1], FAINT))
    # Two large components that all but undo each other would leave no room for the data.
    _limits(ax, np.clip([low, high], each.y.min() - np.ptp(each.y), each.y.max() + np.ptp(each.y)), None)
    if tops:
        spread(ax, [_above(ax, each, *top) for top in tops])
    if len(ends) > 1:
        end_labels(ax, [(grid.x[-1], float(y), name, shade) for name, y, shade in ends], gap=0.065)


def _above(ax: Axes, each: Contributions, x: float, name: str, shade: str) -> tuple[float, float, str, str, str]:
    """A name centred above a place, over all data beneath it."""
    unit = np.ptp(each.x) / _width(ax)
    half = 0.5 * 0.45 * 8.0 * len(name) * unit  # of the text, in units of x
    beneath = np.abs(each.x - x) < half + 3 * unit
    tips = each.y + (0.0 if each.error is None else np.nan_to_num(each.error))
    grid: Any = each.on_grid
    curve = grid.whole.mean(axis=0)[np.abs(grid.x - x) <= half]
    return x - half - 4 * unit, float(max([*tips[beneath], *curve])), name, shade, "left"


def _shade(i: int) -> str:
    """The colour of a component; the first of the palette is that of them all."""
    return PALETTE[1 + i % (len(PALETTE) - 1)]


# -- each component alone ---------------------------------------------------------------------------------------------


@plot(5.6, 3.0)
def component(result: Count, i: int, *, ax: Axes) -> Axes:
    """What is left where all but the i-th component (from 1) is taken away: folded by its period, or where it lives."""
    each, n = _each(result), len(result.components)
    if not 1 <= i <= n:
        raise SupermodelError(
            f"there is no {result.asked['component']} {i}: {result.names[n]}, counted from 1, are the most probable number."
        )
    _alone(ax, result, each, i - 1, _width(ax) / 72)
    stamp(ax, result.verdict.level, result.comparison.excluded)
    return ax


def components(result: Count, *, ax: Axes | None = None) -> Any:
    """A panel for each component; an array of Axes."""
    n = len(_each(result).at_data.parts)
    columns = min(n, 2)
    height = -(-n // columns) * (ABOVE + ROW + BELOW)
    return plot(4.6 * columns + 1.0, height + 0.2)(_grid)(result, columns, ax=ax)


def _grid(result: Count, columns: int, *, ax: Axes) -> Any:
    each = _each(result)
    n = len(each.at_data.parts)
    rows = -(-n // columns)
    figure: Any = ax.get_figure(root=True)
    box = ax.get_position()
    wide, tall = figure.get_figwidth() * box.width, figure.get_figheight() * box.height
    ax.set_axis_off()
    # Names stand around each panel: between panels is room for them, and what is outside of all is the layout's affair.
    width = (wide - (columns - 1) * ASIDE) / columns
    height = (tall - (rows - 1) * (ABOVE + BELOW)) / rows
    panels = []
    for i in range(n):
        row, column = divmod(i, columns)
        left, low = column * (width + ASIDE), tall - height - row * (height + ABOVE + BELOW)
        panel = ax.inset_axes((left / wide, low / tall, width / wide, height / tall))
        _alone(panel, result, each, i, width)
        panels.append(panel)
        if result.verdict.level == "fail" and not result.comparison.excluded:
            stamp(panel, "fail")
    if result.verdict.level != "fail" or result.comparison.excluded:
        stamp(panels[columns - 1], result.verdict.level, result.comparison.excluded)
    return np.array(panels)


def _each(result: Count) -> Contributions:
    """What the components contribute, if there are any and they can be told apart."""
    called = result.asked["component"]
    if result.best == 0:
        raise SupermodelError(f"the most probable number of {called}s is none: there is none to draw.")
    each: Contributions = result.contributions
    if not each.adds_up:
        raise SupermodelError(
            f"the {called}s do not add up to the data (`combine`, or a link of the noise, makes one prediction of them all): no "
            'one of them can be drawn alone. plot("data") draws them together.'
        )
    return each


def _alone(ax: Axes, result: Count, each: Contributions, i: int, width: float) -> None:
    """One component on its axes, `width` inches wide."""
    y, shade = each.alone(i), _shade(i)
    if each.is_folded(i):
        _folded(ax, each, i, y, shade)
        ax.set_xlabel("phase")
    else:
        _unfolded(ax, each, i, y, shade)
        ax.set_xlabel(each.axis)
    ax.set_ylabel("y without the rest")
    lines = [_title(result, each, i), f"there with probability {probability(result.components[i].probability.value)}"]
    most = max(int(72 * width / LETTER), 20)
    ax.set_title("\n".join(textwrap.fill(line, most) for line in lines))


def _title(result: Count, each: Contributions, i: int) -> str:
    """`planet 1: P = 12.31 ± 0.05 d`: its period, or the parameter that it is labelled by and one more."""
    one, units = result.components[i], result.comparison.units
    period = result.asked.get("period")
    if each.periods and period is None:
        return f"{one.label}: period {_joined(mean_and_sd(*each.periods[i]))}"
    scalars = [name for name, values in one.draws.items() if values.ndim == 1]
    chosen = [period] if period else [p for p in scalars if p == result.components.by or p in scalars[:NAMED]][:NAMED]
    texts = [
        _joined(f"{p} = {mean_and_sd(one.mean(p), one.sd(p))} {units.get(result.parameters(i + 1)[p], '')}".strip())
        for p in chosen
    ]
    return f"{one.label}: {', '.join(texts)}" if texts else one.label


def _joined(text: str) -> str:
    """A text that is not broken between its words."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _folded(ax: Axes, each: Contributions, i: int, y: np.ndarray, shade: str) -> None:
    phase = each.phase(i)
    if each.turns[i] is not None:
        turn: Any = each.turns[i]
        _bands(ax, np.linspace(0, 1, turn.shape[1]), turn, shade, (0.68,))
    if len(y) > MANY:
        ax.plot(phase, y, "o", ms=2, color=FAINT, alpha=0.5, mew=0, rasterized=len(y) > RASTER, zorder=1)
        places, means, errors = _binned(phase, y, each.error)
        ax.errorbar(places, means, errors, fmt="o", ms=4, color=INK, ecolor=INK, elinewidth=1.0, mec=PAPER, zorder=6)
        _limits(ax, y, None)
    else:
        _points_of(ax, phase, y, each.error)
        _limits(ax, y, each.error)
    ax.set_xlim(0, 1)


def _binned(x: np.ndarray, y: np.ndarray, error: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of data in bins of phase, weighted by their errors, each with its own."""
    weight = np.ones(len(y)) if error is None else 1.0 / np.maximum(error, 1e-300) ** 2
    place = np.minimum((x * BINS).astype(int), BINS - 1)
    total = np.bincount(place, weight, BINS)
    there = total > 0
    middle, mean = (np.bincount(place, weight * v, BINS)[there] / total[there] for v in (x, y))
    if error is not None:
        return middle, mean, 1.0 / np.sqrt(total[there])
    count = np.bincount(place, minlength=BINS)[there]
    return middle, mean, np.std(y) / np.sqrt(count)


def _unfolded(ax: Axes, each: Contributions, i: int, y: np.ndarray, shade: str) -> None:
    curves = each.at_data if each.on_grid is None else each.on_grid
    order = np.argsort(curves.x)
    _bands(ax, curves.x[order], curves.parts[i][:, order], shade, (0.68,))
    span = np.ptp(each.x)
    low, high = each.window(i) or (each.x.min() - 0.02 * span, each.x.max() + 0.02 * span)
    near = (each.x >= low) & (each.x <= high)
    error = None if each.error is None else each.error[near]
    _points_of(ax, each.x[near], y[near], error)
    _limits(ax, y[near], error)
    ax.set_xlim(low, high)
