"""Two plots: a row for each problem, a mark for each program, ours in full colour; how far ahead it is stands at the right."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt

from benchmarks.peers.figures import OURS, Cell, rivals
from benchmarks.peers.problems import questions
from benchmarks.peers.programs import PROGRAMS
from supermodel.report.style import FAINT, INK, PALETTE, PAPER, RC

# Ours are large and filled; peers are small, and those with gradients are filled too.
MARKS = {
    "supermodel": ("o", PALETTE[0]), "supermodel_fine": ("o", PALETTE[4]),
    "supermodel_black": ("s", PALETTE[1]), "paper": ("P", FAINT), "dynesty": ("D", PALETTE[2]),
    "nautilus": ("v", PALETTE[3]), "ultranest": ("^", PALETTE[5]), "pocomc": ("<", "#4d8a2e"), "smc": (">", "#6a51a3"),
    "nss": ("p", "#7f5539"), "bridge": ("X", INK),
}  # fmt: skip


NEVER, RATIOS = 0.2, (0.57, 0.86)  # places in the panel at the right


def by_problem(
    found: dict[str, dict[str, Cell]], figure: Callable[[Cell], float], title: str, label: str, low: float, scaled: bool
) -> plt.Figure:
    """`figure` of every cell on a logarithmic axis that begins at `low`: what is smaller stands at the edge."""
    titles, n = questions(), len(found)
    high = 2 * max(figure(c) for row in found.values() for c in row.values() if c.status == "done")
    with plt.rc_context({**RC, "figure.constrained_layout.use": False}):
        tall = 1.75 + 0.36 * n
        fig, (ax, side) = plt.subplots(1, 2, figsize=(10.2, tall), sharey=True, width_ratios=(2.1, 1))
        fig.subplots_adjust(left=0.225, right=0.99, top=1 - 1.2 / tall, bottom=0.55 / tall, wspace=0)
        for y, row in enumerate(found.values()):
            if y % 2 == 0:
                for panel in (ax, side):
                    panel.axhspan(y - 0.5, y + 0.5, color=FAINT, alpha=0.09, lw=0)
            unfinished = [c for c in row.values() if c.status in ("cut", "failed")]
            for i, c in enumerate(unfinished):
                _mark(side, NEVER + 0.06 * (i - 0.5 * (len(unfinished) - 1)), y, c.program, size=0.7)
            for c in row.values():
                if c.status == "done":
                    lift = {OURS[0]: -0.13, OURS[2]: 0.13}.get(c.program, 0.0)
                    _mark(
                        ax, max(figure(c), low), y + lift, c.program, hollow=scaled and c.is_scaled, crossed=c.is_wrong
                    )
            for x, ours in zip(RATIOS, OURS[::2], strict=True):
                _ratio(side, x, y, row, ours, figure)
        for x, words, who in zip(RATIOS, ("ahead, with\ngradients", "ahead,\nwithout"), OURS[::2], strict=True):
            side.text(x, -0.65, words, ha="center", va="bottom", fontsize=8, color=MARKS[who][1], fontweight="bold")
        side.text(NEVER, -0.65, "did not end", ha="center", va="bottom", fontsize=8, color=INK)
        side.set(xlim=(0, 1), xticks=[])
        ax.set(xscale="log", xlim=(low / 1.8, high), ylim=(n - 0.5, -0.5))
        ax.set_xlabel(label, labelpad=2)
        ax.set_yticks(range(n), [titles[name].title for name in found])
        ticks = [10.0**k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
        ax.set_xticks(ticks, [_power(t, low) for t in ticks])
        ax.minorticks_off()
        for panel in (ax, side):
            panel.tick_params(axis="y", length=0)
            for edge in ("left", "bottom"):
                panel.spines[edge].set_visible(False)
        for t in ticks:
            ax.axvline(t, color=FAINT, lw=0.5, alpha=0.35, zorder=0)
        fig.text(0.012, 1 - 0.1 / tall, title, va="top", fontsize=12.5, fontweight="bold")
        handles = [_mark(ax, math.nan, 0, program) for program in PROGRAMS]
        fig.legend(
            handles, [p.title for p in PROGRAMS.values()], ncols=6, loc="upper left", fontsize=8,
            bbox_to_anchor=(0.0, 1 - 0.32 / tall), handletextpad=0.2, columnspacing=1.4,
        )  # fmt: skip
    return fig


def _power(x: float, low: float) -> str:
    exponent = round(math.log10(x))
    words = {0: "1", 1: "10", 2: "100", 3: "1000", -1: "0.1", -2: "0.01"}
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ("≤ " if x <= low * 1.01 else "") + words.get(exponent, f"10{digits}")


def _mark(ax, x, y, program, size=1.0, hollow=False, crossed=False):
    marker, shade = MARKS[program]
    ours = program in OURS
    face = PAPER if hollow or not (ours or PROGRAMS[program].gradients) else shade
    (line,) = ax.plot(
        [x], [y], marker, ms=(9.5 if ours else 6.5) * size, mfc=face, mec=shade, mew=1.3, ls="",
        zorder=5 if ours else 4,
    )  # fmt: skip
    if crossed:
        ax.plot([x], [y], "x", ms=11, mec="#b3261e", mew=1.4, zorder=6)
    return line


def _ratio(ax, x, y, row: dict[str, Cell], ours: str, figure: Callable[[Cell], float]) -> None:
    """The best of the others over ours."""
    ready = [figure(row[name]) for name in rivals(ours) if row[name].status == "done" and not row[name].is_wrong]
    if row[ours].status != "done":
        words = "no answer" if row[ours].status in ("cut", "failed") else ""
    elif not ready:
        words = ""  # nobody to compare with
    else:
        value = min(ready) / figure(row[ours])
        words = "> 1000 ×" if value > 1e3 else f"{value:.0f} ×" if value >= 10 else f"{value:.1f} ×"
    strong = words.endswith("×") and (words.startswith(">") or float(words[:-2]) >= 10)
    ax.text(x, y, words, ha="center", va="center", fontsize=9, fontweight="bold" if strong else "normal", color=INK)


def draw(found: dict[str, dict[str, Cell]], folder: Path) -> None:
    merit = by_problem(
        found,
        lambda c: c.merit,
        "What an answer costs: likelihood evaluations × error²",
        "evaluations × error²",
        1e-4,
        False,
    )
    seconds = by_problem(
        found, lambda c: c.seconds_to_wanted, "Seconds to ln B ± 0.1, compilation included",
        "seconds, one core (hollow: ended less precise, scaled by (error / 0.1)²)", 0.1, True,
    )  # fmt: skip
    for name, figure in (("peers_merit", merit), ("peers_seconds", seconds)):
        figure.savefig(folder / f"{name}.png", dpi=160)
        plt.close(figure)
