"""Pictures of the record: the posterior of alpha, ln B as draws come in, and the walk between the models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from supermodel.errors import SupermodelError
from supermodel.estimation.error import influence_of, log_mean_exp, standard_error
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.mbar import multistate
from supermodel.report.numbers import counted, shown, thousands
from supermodel.report.style import FAINT, INK, PAPER, colour, end_labels, label, plot, shortened, stamp
from supermodel.report.tables import level_of

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison
    from supermodel.results.record import ChainRecord, EdgeRecord

CURVE = 41  # points of the curve along alpha
WIDEST = 1_500  # columns of the picture of crossings, one for each draw of a chain if these are fewer
MOST = 6_000  # draws beyond which a curve is made of a thinned record: it is a picture, not the estimate


def thinned(edge: EdgeRecord, most: int = MOST) -> tuple[np.ndarray, np.ndarray]:
    """(log_joints, rung) of an edge with at most about `most` draws."""
    step = max(1, edge.rung.size // most)
    return edge.log_joints[:, ::step], edge.rung[:, ::step]


@plot()
def alpha(result: Comparison, edge: int = 0, *, ax: Axes) -> Axes:
    r"""$\ln p(\alpha \mid D) / p(\alpha)$ along the ladder of one edge, or of the paper's chain: its ends differ by ln B.

    Points: the share of draws on each rung (in each bin) over its prior, Savage-Dickey by counting. Curve: what all draws
    together imply (MBAR; of a chain, Rao-Blackwell). Bars: where the draws were.
    """
    if result.chain is not None:
        return _alpha_of_chain(result, result.chain, ax)
    record = result.edges[edge]
    log_joints, rung = thinned(record)
    weight = record.table[:, 0]
    grid = np.linspace(0.0, 1.0, CURVE)
    line = multistate(log_joints, rung, np.concatenate([record.table, np.stack([grid, 1 - grid], axis=1)])).log_z
    m = len(weight)
    curve = line[m:] - line[0]
    ends = Estimate(record.report["value"], record.report["error"])
    shade = colour(result.names, record.first)
    counts = np.bincount(record.rung.ravel(), minlength=m)
    share = counts / counts.sum()
    top, bottom = max(curve.max(), 0.0), min(curve.min(), 0.0)
    room = max(top - bottom, 1e-6)
    ax.plot(grid, curve, color=shade, zorder=3)
    seen = counts > 0
    read = np.log(share[seen]) - record.log_prior[seen]
    spread = np.sqrt((1 - share[seen]) / counts[seen])
    # Counting knows the ladder up to one constant: the mean offset from the curve.
    read = read - np.average(read - (line[:m][seen] - line[0]), weights=1 / np.maximum(spread, 1e-9) ** 2)
    ax.errorbar(weight[seen], read, 2 * spread, fmt="o", ms=4, mfc=PAPER, mec=INK, ecolor=INK, elinewidth=1, zorder=4)
    ax.set_ylim(bottom - 0.42 * room, top + 0.14 * room)
    floor, height = bottom - 0.42 * room, 0.2 * room / max(share.max(), 1e-9)
    width = 0.5 * min(np.diff(np.sort(weight)).min(initial=0.12), 0.12)
    ax.bar(weight, share * height, width=width, bottom=floor, color=shade, alpha=0.35, linewidth=0, zorder=2)
    if m <= 12:
        for w, s in zip(weight, share, strict=True):
            label(ax, f"{100 * s:.0f}%", (w, floor + s * height), (0, 1.5), ha="center", fontsize=7, color=INK)
    gap = (_widest_gap(weight), floor)
    label(ax, "share of the draws", gap, (0, 3), ha="center", fontsize=7.5, color=FAINT)
    for x, y, side in ((0.0, 0.0, "left"), (1.0, ends.value, "right")):
        text = "0" if x == 0 else f"{ends.value:.{min(ends.decimals, 2)}f}"
        shift = (7 if side == "left" else -7, -11 if (ends.value > 0) == (x == 0) else 6)
        label(ax, text, (x, y), shift, ha=side, color=INK, fontweight="bold")
    ax.set_xlim(-0.09, 1.09)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_xlabel(f"α:  0 is {shortened(record.second)},  1 is {shortened(record.first)}")
    ax.set_ylabel("ln [ p(α | data) / p(α) ]")
    what = (
        f"ln B({shortened(record.first, 18)} : {shortened(record.second, 18)})"
        if record.second in result.names
        else f"ln Z({shortened(record.first)})"
    )
    ax.set_title(f"{what} = {shown(ends)}")
    stamp(ax, _level(result, record))
    return ax


def _level(result: Comparison, record: EdgeRecord) -> str:
    """Of the verdict on what an edge gives: ln B of its two models, or of one model what its posterior is shown with."""
    if record.second in result.names:
        return result.verdict_between(record.first, record.second).level
    return level_of(result, record.first)


def _widest_gap(weight: np.ndarray) -> float:
    """The middle of the widest stretch of alpha without a rung: room for a label."""
    places = np.sort(weight)
    i = int(np.argmax(np.diff(places))) if len(places) > 1 else 0
    return float(0.5 * (places[i] + places[min(i + 1, len(places) - 1)]))


def _alpha_of_chain(result: Comparison, record: ChainRecord, ax: Axes) -> Axes:
    if len(record.grid) == 0:
        raise SupermodelError("α of more than two models on a simplex is a point of it: there is no curve to draw.")
    first, last = record.names[0], record.names[-1]
    turned = len(record.names) == 2 and not record.is_discrete  # α = 1 is the first model, as on a ladder
    corners = np.array([1.0, 0.0]) if turned else np.arange(len(record.names), dtype=float)
    place = (record.weights @ corners).ravel()
    n_bins = len(corners) if record.is_discrete else 20
    cuts = (
        np.linspace(-0.5, len(corners) - 0.5, n_bins + 1) if record.is_discrete else np.linspace(0, corners.max(), 21)
    )
    counts, middle = np.histogram(place, cuts)[0], 0.5 * (cuts[1:] + cuts[:-1])
    seen = counts > 0
    with np.errstate(divide="ignore"):
        curve = np.log(record.density)
        read = np.log(counts / counts.sum() * n_bins)
    ax.plot(record.grid, curve, color=colour(result.names, first), marker="D" if record.is_discrete else None, zorder=3)
    # Neighbouring draws are alike: a count is worth as many as its chain has effective draws.
    spread = 2 * np.sqrt(counts.sum() / max(record.report["ess"], 1.0) / counts[seen])
    spread = np.minimum(spread, max(np.ptp(np.append(0.0, curve[np.isfinite(curve)])), 1.0))
    ax.errorbar(middle[seen], read[seen], spread, fmt="o", ms=4, mfc=PAPER, mec=INK, ecolor=INK, elinewidth=1, zorder=4)
    ends = (
        f"0 is {shortened(last if turned else first)},  {corners.max():.0f} is {shortened(first if turned else last)}"
    )
    ax.set_xlabel(f"α:  {ends}")
    ax.set_ylabel("ln [ p(α | data) / p(α) ]")
    pair = f"ln B({shortened(first, 18)} : {shortened(last, 18)})"
    ax.set_title(f"{pair} = {shown(result.log_bayes_factor(first, last))}")
    stamp(ax, result.verdict.level)
    return ax


LEAST_SPAN = 5e-4  # nats about the answer that an axis shows: errors are printed down to 0.0001


@plot()
def trace(result: Comparison, first: str | None = None, second: str | None = None, *, ax: Axes) -> Axes:
    """ln B from the first n draws, with bands of one and two errors; the second estimator dashed, the target dotted."""
    if len(result.names) > 1:
        first, second = result.pair(first, second)
        what = f"ln B({shortened(first)} : {shortened(second)})"
        signs, final = result.path(first, second), result.log_bayes_factor(first, second)
    else:
        (first,) = result.names
        what, final = f"ln Z({shortened(first)})", result.log_evidence(first)
        signs = [1.0 if edge.first == first else -1.0 for edge in result.edges]
    used = [(edge, sign) for edge, sign in zip(result.edges, signs or [], strict=False) if sign]
    fractions = np.geomspace(0.12, 1.0, 14)
    chain = result.chain
    if chain is None and not used:
        raise SupermodelError(f"{what} does not rest on chains, but on weighted points of replicates: there is no trace.")
    both = (result.names.index(first), result.names.index(second or first))
    rows = np.array([_after(used, f) if chain is None else _after_chain(chain, both, f) for f in fractions])
    shade = colour(result.names, first if final.value >= 0 else second or first)
    draws, value, error, other = rows.T
    for reach, strength in ((2, 0.15), (1, 0.3)):
        ax.fill_between(draws, value - reach * error, value + reach * error, color=shade, alpha=strength, linewidth=0)
    ax.plot(draws, value, color=shade)
    ax.plot(draws, other, color=INK, linestyle=(0, (4, 2)), linewidth=1)
    target = result.settings.get("target_error")
    span = np.nanmax(np.abs(rows[:, 1:2] - final.value) + 2.5 * rows[:, 2:3])
    if target is not None and target < 3 * span:
        for side in (-1, 1):
            ax.axhline(final.value + side * target, color=FAINT, linestyle=":", linewidth=1)
    ax.set_xscale("log")
    low, high = draws[0], draws[-1]
    ax.set_xlim(low * 0.95, high)
    ticks = np.unique(np.round(np.geomspace(low, high, 5), -max(int(np.floor(np.log10(low))) - 1, 0)).astype(int))
    ax.set_xticks(ticks, [thousands(t) for t in ticks])
    ax.minorticks_off()
    labels = [(high, value[-1], "Rao-Blackwell ± 1σ, 2σ", shade)]
    if chain is None:
        labels = [(high, value[-1], "MBAR ± 1σ, 2σ", shade), (high, other[-1], "Rao-Blackwell", INK)]
    if target is not None and target < 3 * span:
        labels.append((high, final.value + target, f"target ± {target:g}", FAINT))
    end_labels(ax, labels)
    ax.set_xlabel("draws used")
    ax.set_ylabel(what)
    if span < LEAST_SPAN:  # labels of fourteen digits would tell of rounding, and run over the label of the axis
        ax.set_ylim(final.value - LEAST_SPAN, final.value + LEAST_SPAN)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_title(f"{what} = {shown(final)}")
    stamp(ax, (result.verdict_between(first, second) if second else result.verdict).level)
    return ax


def _after(used: list[tuple[EdgeRecord, float]], fraction: float) -> tuple[float, float, float, float]:
    """(draws, ln B, its error, the second estimate) after a fraction of every edge's record."""
    draws, value, variance, other = 0, 0.0, 0.0, 0.0
    for edge, sign in used:
        n = max(4, int(round(fraction * edge.rung.shape[1])))
        step = max(1, edge.rung[:, :n].size // (2 * MOST))
        part = slice(None, n, step)
        found, error = edge.ends(part).difference(0, 1)
        second = float(np.subtract(*log_mean_exp(edge.log_shares[:, part])))
        draws += edge.rung.shape[0] * n
        value, variance, other = value + sign * found, variance + error**2, other + sign * second
    return draws, value, float(np.sqrt(variance)), other


def _after_chain(chain: ChainRecord, pair: tuple[int, int], fraction: float) -> tuple[float, float, float, float]:
    """The same of the paper's chain, by Rao-Blackwell; it has no second estimate."""
    n = max(4, int(round(fraction * chain.log_shares.shape[1])))
    terms = chain.log_shares[:, :n][..., list(pair)]
    log_means = log_mean_exp(terms)
    influence = influence_of(terms, log_means)
    error = standard_error(influence[..., 0] - influence[..., 1])
    return len(terms) * n, float(log_means[0] - log_means[1]), error, float("nan")


@plot(height=2.6)
def crossings(result: Comparison, edge: int = 0, *, ax: Axes) -> Axes:
    """Where each chain was at each step: a chain of one colour never crossed and knows only its own side."""
    if result.chain is not None:
        report, weight = result.chain.report, result.chain.weights[..., 0]
        first, second = result.names[0], result.names[1] if len(result.names) == 2 else "any other"
        is_sharp = result.chain.is_discrete
    else:
        record = result.edges[edge]
        report, weight = record.report, record.table[record.rung, 0]
        first, second, is_sharp = record.first, record.second, len(record.table) == 2
    right = weight.shape[1]
    weight = weight[:, :: max(1, right // WIDEST)]
    ends = [colour(result.names, name) for name in (second, first)]
    shades = LinearSegmentedColormap.from_list("ends", ends if is_sharp else [ends[0], "#f2f2f2", ends[1]])
    chains = len(weight)
    image = ax.imshow(
        weight, aspect="auto", interpolation="none", cmap=shades, vmin=0, vmax=1, alpha=0.85,
        extent=(0, right, chains + 0.5, 0.5),
    )  # fmt: skip
    image.set_zorder(1)
    ax.set_xlabel("step of the chain")
    ax.set_ylabel("chain")
    ax.set_yticks(sorted({1, chains // 2, chains} - {0}))
    for y, name, shade in ((0.25, first, ends[1]), (0.75, second, ends[0])):
        looks = {"color": shade, "va": "center", "fontsize": 8, "annotation_clip": False}
        label(ax, f"■ {shortened(name, 18)}", (right, 0.5 + y * chains), (5, 0), **looks)
    ax.set_title(f"{counted(report.get('crossings', float('nan')), 'crossing')} in {counted(chains, 'chain')}")
    stamp(ax, result.verdict.level if result.chain is not None else _level(result, result.edges[edge]))
    return ax
