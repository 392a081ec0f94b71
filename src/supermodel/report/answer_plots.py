"""Pictures of the answer: ln B on its scale, the matrix, prior sensitivity, which data drive it, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from supermodel.estimation.estimate import Estimate
from supermodel.report.labels import set_labels
from supermodel.report.numbers import shown
from supermodel.report.record_plots import alpha
from supermodel.report.scales import DEFAULT
from supermodel.report.scales import scale as chosen_scale
from supermodel.report.style import (
    ALARM,
    FAINT,
    INK,
    PALETTE,
    PAPER,
    arrow,
    beside,
    colour,
    headed,
    interval,
    label,
    plot,
    shortened,
    stamp,
    width_of,
)
from supermodel.report.tables import UNUSABLE, Tex, mark

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison
    from supermodel.results.drivers import Drivers
    from supermodel.results.sensitivity import Sensitivity
    from supermodel.trust.calibrate import Calibration


def answer(result: Comparison, scale: Any = DEFAULT, ax: Axes | None = None) -> Axes:
    """The first picture to look at: ln B on the bands of a scale, or of a single model the curve that ends in its ln Z."""
    return bayes_factors(result, scale, ax=ax) if len(result.names) > 1 else alpha(result, ax=ax)


@plot(height=1.9)
def bayes_factors(result: Comparison, scale: Any = DEFAULT, *, ax: Axes) -> Axes:
    """ln B of the best model over each other one, on the bands of a scale; thick ± 1σ, thin ± 2σ."""
    words = chosen_scale(scale)
    best, others = result.best, [name for name in result.ranking if name != result.best]
    values = [result.log_bayes_factor(best, name) for name in others]
    counted = [e for name, e in zip(others, values, strict=True) if not _is_refused(result, best, name)]
    last = words.thresholds[-1] if len(words.thresholds) > 1 else 5.0
    far = max([last * 1.6] + [e.interval(2)[1] * 1.08 for e in counted if e.value < 4 * last and np.isfinite(e.error)])
    ax.set_xlim(-0.5 * last if any(e.interval(2)[0] < 0 for e in counted) else 0.0, far)
    edges = [*words.thresholds, far]
    room = width_of(ax) * 72 * 0.62 / far  # points per unit of ln B, about
    crowded = any((edges[i + 1] - edges[i]) * room < 4.3 * len(word) + 4 for i, word in enumerate(words.words))
    for i, word in enumerate(words.words):
        ax.axvspan(edges[i], edges[i + 1], color=FAINT, alpha=0.06 + 0.09 * i, linewidth=0, zorder=0)
        lift = 11 if crowded and i % 2 == 0 else 3
        at = (0.5 * (edges[i] + edges[i + 1]), 1.0)
        label(ax, word, at, (0, lift), xycoords=("data", "axes fraction"), ha="center", fontsize=7.5, color=INK)
    for row, (name, e) in enumerate(zip(others, values, strict=True)):
        _row(ax, result, best, name, e, row, far)
    ax.set_yticks(range(len(others)), [f"{shortened(best)} over {shortened(n)}" for n in others])
    ax.set_ylim(len(others) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xticks([round(t, 2) for t in words.thresholds])
    level = result.verdict.level
    of = f" for {_named(result.excluded)}" if result.excluded else ""
    ax.set_xlabel(f"ln B   (bands: {words.name})" + ("" if level == "ok" else f"   verdict: {level.upper()}{of}"))
    stamp(ax, level if level == "fail" and not of else "ok")
    return ax


def _named(names: Sequence[str]) -> str:
    return ", ".join(shortened(name, 16) for name in names)


def _is_refused(result: Comparison, first: str, second: str) -> bool:
    """Whether this ln B failed while others stand: it is then not drawn."""
    return bool(result.excluded) and result.verdict_between(first, second).level == "fail"


def _row(ax: Axes, result: Comparison, best: str, name: str, e: Estimate, row: int, far: float) -> None:
    shade = colour(result.names, best)
    bound = result.bound(best, name)
    is_limit = result.verdict_between(best, name).level == "limit"
    if _is_refused(result, best, name):
        looks: dict[str, Any] = {"ha": "center", "va": "center", "color": ALARM, "fontweight": "bold"}
        ax.annotate("FAIL: not to be used", (0.5, row), xycoords=("axes fraction", "data"), **looks)
        return
    if not np.isfinite(e.value) or (is_limit and not bound.is_known):
        ax.annotate("unknown", (0.5, row), xycoords=("axes fraction", "data"), ha="center", va="center", color=ALARM)
        return
    if is_limit:
        x = min(bound.value, 0.9 * far)
        arrow(ax, (far, row), (x, row), shade)
        ax.plot([x], [row], "|", ms=14, mew=2, color=shade)
        label(ax, f"> {bound.value:.1f} at {100 * bound.level:.0f}%", (x, row), (4, 8), color=INK)
        return
    looks = {"va": "center", "color": INK, "fontweight": "bold"}
    if e.value > far:
        arrow(ax, (far, row), (0.86 * far, row), shade)
        ax.annotate(shown(e), (0.85 * far, row), ha="right", **looks)
        return
    interval(ax, e, row, shade)
    low, high = e.interval(2)
    if e.value > 0.6 * far:
        label(ax, shown(e), (low, row), (-9, 0), ha="right", **looks)
    else:
        label(ax, shown(e), (high, row), (9, 0), ha="left", **looks)


@plot()
def matrix(result: Comparison, *, ax: Axes) -> Axes:
    """ln B of the row's model over the column's, with its error; blue favours the row, orange the column."""
    m = result.matrix()
    k = len(m.names)
    # |ln B| beyond 5 is as strong as a colour needs to say; asinh keeps small ones apart.
    refused = np.isin(m.levels, list(UNUSABLE)) & bool(result.excluded)  # others stand: these are not drawn
    known = np.where(np.isfinite(m.values) & ~refused, m.values, 0.0)
    tone = np.arcsinh(known) / np.arcsinh(15.0)
    diverging = LinearSegmentedColormap.from_list("favour", [PALETTE[1], "#e9e9ec", PALETTE[0]])
    ax.imshow(
        np.where(np.eye(k, dtype=bool), np.nan, tone),
        cmap=diverging,
        vmin=-1,
        vmax=1,
        aspect="auto",
        interpolation="none",
    )
    for i, j in zip(*np.nonzero(~np.eye(k, dtype=bool)), strict=True):
        value, _, error = shown(Estimate(m.values[i, j], m.errors[i, j]), sign=True).partition(" ± ")
        if refused[i, j]:
            value, error = mark(m.levels[i, j]), ""
        ink = "white" if abs(tone[i, j]) > 0.62 else "#111111"
        looks: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
        ax.text(j, i - 0.1, value, fontweight="bold", fontsize=9 if k < 6 else 7, **looks)
        ax.text(j, i + 0.2, f"± {error}" if error else "", fontsize=7.5 if k < 6 else 6, **looks)
    names = [shortened(name, 18) for name in m.names]
    ax.set_xticks(range(k), [f"over {n}" for n in names])
    ax.set_yticks(range(k), names)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    of = f"   verdict: {result.verdict.level.upper()} for {_named(result.excluded)}" if result.excluded else ""
    ax.set_xlabel(f"ln B(row : column); blue favours the row{of}")
    stamp(ax, "ok" if of else result.verdict.level)
    return ax


NEAR = 0.045  # of the picture's height: names of bands that are nearer would cover each other


@plot()
def sensitivity(found: Sensitivity, scale: Any = DEFAULT, *, ax: Axes) -> Axes:
    """ln B against the prior, bands of one and two errors; hatched where the weights cannot carry it."""
    if found.kind == "replace":
        return _replaced(found, ax)
    x, ok = found.grid, found.is_reliable
    low, high = found.values - 2 * found.errors, found.values + 2 * found.errors
    shade = PALETTE[0]
    at = 1.0 if found.kind == "scale" else 0.0
    shown_low = np.nanmin(np.append(low[ok], [0.0, found.original.value])) if ok.any() else -1.0
    shown_high = np.nanmax(np.append(high[ok], [0.0, found.original.value])) if ok.any() else 1.0
    room = max(shown_high - shown_low, 0.5)
    ax.set_ylim(shown_low - 0.16 * room, shown_high + 0.1 * room)
    if found.kind == "scale":
        ax.set_xscale("log")
    ax.set_xlim(x[0], x[-1])
    _hatch(ax, x, ok, found)
    carried = np.where(ok, found.values, np.nan)
    ax.fill_between(x, low, high, where=ok, color=shade, alpha=0.18, linewidth=0)
    ax.fill_between(
        x, found.values - found.errors, found.values + found.errors, where=ok, color=shade, alpha=0.3, linewidth=0
    )
    ax.plot(x, found.values, color=FAINT, linewidth=1, linestyle=":")
    ax.plot(x, carried, color=shade)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    words = chosen_scale(scale)
    bottom, top = ax.get_ylim()
    named: list[float] = []  # the strongest first: where bands lie close, they have room
    for threshold, word in [*zip(words.thresholds[1:], words.words[1:], strict=True)][::-1]:
        for side in (-1, 1):
            if bottom < side * threshold < top:
                ax.axhline(side * threshold, color=FAINT, linewidth=0.6, linestyle=(0, (2, 3)))
                if any(abs(side * threshold - other) < NEAR * (top - bottom) for other in named):
                    continue
                named.append(side * threshold)
                label(
                    ax, f"{word} ≥ {threshold:.3g}", (1.0, side * threshold), (4, 0), va="center", fontsize=7,
                    xycoords=("axes fraction", "data"), color=FAINT, annotation_clip=False,
                )  # fmt: skip
    ax.plot([at], [found.original.value], "o", color=shade, mec=PAPER, ms=7, zorder=6)
    lines = [0.0, *(side * threshold for threshold in words.thresholds[1:] for side in (-1, 1))]
    beside(ax, "the prior\nof the run", (at, found.original.value), (x, found.values), lines)
    span = found.holds()
    if span.high > span.low:
        y = bottom + 0.05 * (top - bottom)
        ax.plot([span.low, span.high], [y, y], color=INK, linewidth=3, solid_capstyle="butt")
        winner = shortened(found.first if found.original.value >= 0 else found.second, 18)
        middle = np.sqrt(span.low * span.high) if found.kind == "scale" else 0.5 * (span.low + span.high)
        said = f"{winner} preferred, {span.low:.2g} to {span.high:.2g}"
        label(ax, said, (middle, y), (0, 4), ha="center", fontsize=7.5, color=INK)
    if found.kind == "scale":
        nice = [t for e in (-2, -1, 0, 1, 2) for t in (1 * 10.0**e, 2 * 10.0**e, 5 * 10.0**e)]
        nice = [t for t in nice if x[0] * 0.999 <= t <= min(x[-1] * 1.001, 100.0)]
        ax.set_xticks(nice, [f"×{t:g}" for t in nice])
        ax.minorticks_off()
    who = "" if len(found.models) == 1 else f" (in {len(found.models)} models)"
    what = f"{'width' if found.kind == 'scale' else 'shift'} of the prior of "
    name = found.label or Tex(found.parameter, found.parameter)
    set_labels(ax, x=Tex(f"{what}{name}{who}", f"{what}{name.tex}{who}"), most=80)
    ax.set_ylabel(f"ln B({shortened(found.first, 16)} : {shortened(found.second, 16)})")
    ax.set_title("Prior sensitivity, no new likelihood calls")
    stamp(ax, found.level)
    return ax


def _hatch(ax: Axes, x: np.ndarray, ok: np.ndarray, found: Sensitivity) -> None:
    """Mark stretches of the grid where the weights fail, and say how to know more there."""
    told: set[bool] = set()
    middle = 1.0 if found.kind == "scale" else 0.0
    for i in np.flatnonzero(~ok):
        left = x[0] if i == 0 else (np.sqrt(x[i - 1] * x[i]) if x[0] > 0 else 0.5 * (x[i - 1] + x[i]))
        right = x[-1] if i == len(x) - 1 else (np.sqrt(x[i] * x[i + 1]) if x[0] > 0 else 0.5 * (x[i] + x[i + 1]))
        ax.axvspan(left, right, facecolor=FAINT, alpha=0.16, linewidth=0, zorder=0)
        above = bool(x[i] > middle)
        if above in told:
            continue
        told.add(above)
        remedy = {("scale", True): "a wider prior", ("scale", False): "a narrower prior"}.get(
            (found.kind, above), "this prior"
        )
        why = f"the weights fail: run with {remedy}" if found.level in ("ok", "caution") else "not to be used"
        looks: dict[str, Any] = {"fontsize": 7, "color": ALARM, "va": "center", "rotation": 90}
        label(ax, why, (left, 0.5), (4, 0), xycoords=("data", "axes fraction"), **looks)


def _replaced(found: Sensitivity, ax: Axes) -> Axes:
    rows = range(len(found.labels) + 1)
    estimates = [found.original, *(found.estimate(i) for i in range(len(found.labels)))]
    good = [True, *found.is_reliable]
    for row, e, ok in zip(rows, estimates, good, strict=True):
        interval(ax, e, row, PALETTE[0] if ok else FAINT, is_filled=ok)
        label(
            ax,
            shown(e) + ("" if ok else "  the weights fail: run with it"),
            (e.value, row),
            (0, 8),
            ha="center",
            fontsize=8,
        )
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_yticks(rows, ["the prior of the run", *(shortened(label) for label in found.labels)])
    ax.set_ylim(len(rows) - 0.5, -0.7)
    ax.set_xlabel(f"ln B({found.first} : {found.second})")
    headed(ax, f"Other priors of {found.parameter}, no new likelihood calls")
    stamp(ax, found.level)
    return ax


@plot()
def drivers(found: Drivers, *, ax: Axes) -> Axes:
    """What of ln B would go with each datum: above the line it speaks for the first model, below for the second."""
    x = np.arange(len(found.labels)) if found.position is None else found.position
    sign = found.leave_out >= 0
    heavy = found.is_heavy
    ax.axhline(0.0, color=INK, linewidth=0.8)
    for side, shade in ((sign, PALETTE[0]), (~sign, PALETTE[1])):
        ax.vlines(x[side], 0.0, found.leave_out[side], color=shade, linewidth=1.6, alpha=0.7)
        ax.errorbar(
            x[side], found.leave_out[side], found.leave_out_error[side], fmt="none", ecolor=shade, elinewidth=0.8
        )
        for marked in (False, True):
            some = side & (heavy == marked)
            ax.plot(x[some], found.leave_out[some], "o", ms=4.5, color=PAPER if marked else shade, mec=shade)
    top, bottom = max(found.leave_out.max(initial=0.0), 1e-3), min(found.leave_out.min(initial=0.0), -1e-3)
    room = top - bottom
    ax.set_ylim(bottom - 0.14 * room, top + 0.14 * room)
    looks: dict[str, Any] = {"xycoords": "axes fraction", "fontsize": 8}
    ax.annotate(f"speaks for {shortened(found.first)}", (0.01, 0.99), color=PALETTE[0], va="top", **looks)
    ax.annotate(f"speaks for {shortened(found.second)}", (0.01, 0.02), color=PALETTE[1], **looks)
    split = f"fit {found.total_fit:+.2f}" + (f"   Occam {found.occam:+.2f}" if np.isfinite(found.occam) else "")
    ax.annotate(split, (0.99, 0.99), ha="right", va="top", **looks)
    if found.position is None:
        if len(found.labels) <= 24:
            ax.set_xticks(x, [shortened(label, 10) for label in found.labels])
        ax.set_xlabel("datum" if found.labels == tuple(map(str, range(len(x)))) else "block of data")
    else:
        ax.set_xlabel("x of the datum")
    ax.set_ylabel("ln B lost without it")
    pair = f"{shortened(found.first, 16)} : {shortened(found.second, 16)}"
    headed(ax, f"What drives ln B({pair}) = {shown(found.log_bayes_factor)}")
    stamp(ax, found.level)
    return ax


@plot()
def calibration(found: Calibration, bins: int = 5, *, ax: Axes) -> Axes:
    """Stated probability against the share that is true: on the diagonal the probabilities mean what they say."""
    rows = found.reliability(bins)
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    for p, r in rows:
        ax.vlines(p, r.low, r.high, color=PALETTE[0], linewidth=1.4)
        ax.plot(p, r.value, "o", color=PALETTE[0], mec=PAPER, ms=7)
        label(ax, f"{r.trials}", (p, r.high), (0, 3), ha="center", fontsize=7, color=FAINT)
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.1)
    first, second = (shortened(name, 14) for name in found.names[:2])
    ax.set_xlabel(f"probability given to {first if len(found.names) == 2 else 'a model'}")
    ax.set_ylabel("share of data sets that it made")
    false, missed = found.false_alarm(), found.missed_detection()
    ax.annotate(
        f"ln B({first} : {second}) > {found.threshold:g}\nfalse alarms {false.value:.2f} "
        f"({false.low:.2f}–{false.high:.2f})\nmissed {missed.value:.2f} ({missed.low:.2f}–{missed.high:.2f})",
        (0.98, 0.03), xycoords="axes fraction", ha="right", va="bottom", fontsize=8,
    )  # fmt: skip
    ax.set_title(f"Calibration on {len(found.truth)} simulated data sets")
    return ax
