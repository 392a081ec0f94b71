"""Data with what the models predict: curves over one column, one for each group, or a prediction for each datum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from supermodel.errors import DataError, SupermodelError, suggestion
from supermodel.report.posterior_plots import stated
from supermodel.report.style import FAINT, INK, PALETTE, colour, dashes, end_labels, plot, shortened, stamp

if TYPE_CHECKING:
    from supermodel.results.averaging import Predictions
    from supermodel.results.comparison import Comparison

FEW = 6  # groups that one picture can hold


@plot()
def predictions(
    result: Comparison,
    x: Any = None,
    prior_odds: Mapping[str, float] | None = None,
    by: str | None = None,
    *,
    ax: Axes,
) -> Axes:
    """Data, the model-averaged prediction with 68% and 95% bands, and each model's mean.

    `x` is the column for the axis (by default what the file says, "x", or the only one that the models read), or numbers
    to predict at. `by`: a column of groups, one curve for each, other columns at their medians there. Where predictions
    depend on further columns and `by` is not given, each datum has its own prediction, and no curve is drawn.
    """
    data = _columns(result)
    axis = _axis(result, data, x if isinstance(x, str) else None)
    position, y = np.asarray(data[axis], float), np.asarray(data["y"], float)
    others = _others(result, data, axis)
    if by is None and len(others) == 1 and len(np.unique(data[next(iter(others))])) <= FEW:
        by = next(iter(others))
    if by is not None:
        _known(data, by)
        _grouped(ax, result, data, axis, by, others | {by}, prior_odds)
    elif others:
        _each(ax, result, result.predict(None, prior_odds), position)
    else:
        pad = 0.03 * np.ptp(position)
        grid = np.linspace(position.min() - pad, position.max() + pad, 240) if x is None or isinstance(x, str) else x
        _curves(ax, result, result.predict({axis: np.asarray(grid, float)}, prior_odds), np.asarray(grid, float))
    if by is None:
        sigma = _noise(result, data)
        many = len(y) > 2000
        ax.errorbar(
            position, y, sigma, fmt="o", ms=3, color=INK, ecolor=FAINT, elinewidth=0.8, zorder=2, rasterized=many
        )
        if not others:
            low, high = np.min(y - np.nan_to_num(sigma)), np.max(y + np.nan_to_num(sigma))
            ax.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    ax.set_xlabel(axis)
    ax.set_ylabel("y")
    stamp(ax, result.verdict.level, result.excluded)
    return ax


def axis_of(result: Comparison) -> str | None:
    """The column that predictions are drawn over, if there is one."""
    try:
        return _axis(result, _columns(result), None)
    except DataError:
        return None


def _columns(result: Comparison) -> Mapping[str, Any]:
    data = result.data if isinstance(result.data, Mapping) else {}
    if np.ndim(data.get("y", 0)) != 1:
        raise DataError(
            'a plot of data with fits needs data with one-dimensional columns "x" and "y", or another in place of "x".'
        )
    return data


def _known(data: Mapping[str, Any], name: str) -> None:
    if name not in data or np.shape(data[name]) != np.shape(data["y"]):
        known = [n for n, values in data.items() if n != "y" and np.shape(values) == np.shape(data["y"])]
        raise DataError(
            f"there is no column {name!r} as long as y to draw predictions over; columns are {', '.join(known) or 'none'}. "
            f"{suggestion(name, known)}"
        )


def _axis(result: Comparison, data: Mapping[str, Any], given: str | None) -> str:
    models = (result.models or {}).values()
    said = given or next((model.written["x"] for model in models if model.written and model.written.get("x")), None)
    if said is None and "x" not in data:
        read = _read(result, data)
        said = next(iter(read)) if len(read) == 1 else None
        if said is None:
            raise DataError(
                'a plot of data with fits needs a column for its axis: there is no "x", and the models read '
                f"{', '.join(sorted(read)) or 'no column'}. Name one: plots.predictions(result, x=...)."
            )
    _known(data, said or "x")
    return said or "x"


def _read(result: Comparison, data: Mapping[str, Any]) -> set[str]:
    """The columns as long as y that some prediction reads."""
    rows = {name for name, values in data.items() if name != "y" and np.shape(values)[:1] == np.shape(data["y"])}
    found: set[str] = set()
    for model in (result.models or {}).values():
        read = model.predicts_from(data)
        # A function of the data whole may read all of them; that of the noise is left to the noise.
        found |= rows - {"sigma", *vars(model.noise or object).values()} if read is None else rows & read
    return found


def _others(result: Comparison, data: Mapping[str, Any], axis: str) -> set[str]:
    return _read(result, data) - {axis}


def _curves(ax: Axes, result: Comparison, found: Predictions, grid: np.ndarray) -> None:
    for i, strength in ((0, 0.16), (1, 0.3)):
        ax.fill_between(
            grid, found.quantiles[i], found.quantiles[4 - i], color=INK, alpha=strength, linewidth=0, zorder=3
        )
    labels = []
    for name, each in found.models.items():
        shade = colour(result.names, name)
        ax.plot(grid, each.mean, color=shade, linestyle=dashes(result.names, name), linewidth=1.5, zorder=4)
        labels.append(
            (grid[-1], float(each.mean[-1]), f"{shortened(name, 16)}  {stated(result, each.probability)}", shade)
        )
    y = np.asarray(_columns(result)["y"], float)
    ax.set_xlim(grid[0], grid[-1])
    ax.set_ylim(y.min(), y.max())
    end_labels(ax, labels)
    ax.set_title("Data, means, and the averaged 68% and 95% bands")


def _each(ax: Axes, result: Comparison, found: Predictions, position: np.ndarray) -> None:
    """A prediction for each datum: its mean in the best model, and the averaged 68% and 95% intervals."""
    ax.vlines(position, found.quantiles[0], found.quantiles[4], color=PALETTE[0], alpha=0.35, linewidth=1.2, zorder=3)
    ax.vlines(position, found.quantiles[1], found.quantiles[3], color=PALETTE[0], alpha=0.6, linewidth=3, zorder=3)
    ax.plot(position, found.mean, "_", color=PALETTE[0], ms=7, zorder=4)
    ax.set_title("Data (black), and the averaged prediction of each: 68% and 95%")


def _grouped(
    ax: Axes, result: Comparison, data: Mapping[str, Any], axis: str, by: str, others: set[str],
    prior_odds: Mapping[str, float] | None,
) -> None:  # fmt: skip
    groups = np.unique(data[by])
    if len(groups) > FEW:
        raise DataError(
            f"the column {by!r} has {len(groups)} groups, and one picture holds {FEW} curves. Choose another column for `by`, "
            "or cut the data."
        )
    labels = []
    for group, shade in zip(groups, PALETTE, strict=False):
        rows = np.asarray(data[by]) == group
        position = np.asarray(data[axis], float)[rows]
        grid = np.linspace(position.min(), position.max(), 120)
        held = {name: _middle(np.asarray(data[name])[rows], len(grid)) for name in others}
        found = result.predict({**held, axis: grid}, prior_odds)
        ax.plot(position, np.asarray(data["y"], float)[rows], "o", ms=3, color=shade, alpha=0.8)
        ax.fill_between(grid, found.quantiles[1], found.quantiles[3], color=shade, alpha=0.25, linewidth=0)
        ax.plot(grid, found.mean, color=shade, linewidth=1.5)
        labels.append((grid[-1], float(found.mean[-1]), shortened(f"{by} = {group}", 18), shade))
    end_labels(ax, labels)
    rest = others - {by}
    at = f"; {', '.join(sorted(rest))} at the median" if rest else ""
    ax.set_title(f"Averaged predictions and their 68% bands, by {shortened(by, 16)}{at}")


def _middle(values: np.ndarray, n: int) -> np.ndarray:
    """One value for n points: the median of numbers, the most common of texts."""
    if values.dtype.kind in "biuf":
        return np.repeat(np.median(values, axis=0)[None], n, axis=0)
    kinds, counts = np.unique(values, return_counts=True)
    return np.repeat(kinds[np.argmax(counts)], n)


def _noise(result: Comparison, data: Mapping[str, Any]) -> Any:
    """The size of the error bars, if a model's noise tells it."""
    for model in (result.models or {}).values():
        if hasattr(model.noise, "scale"):
            try:
                return np.broadcast_to(np.asarray(model.noise.scale(data), float), np.shape(data["y"]))
            except (SupermodelError, KeyError):  # it is fitted
                break
    return np.asarray(data["sigma"], float) if "sigma" in data else np.zeros(np.shape(data["y"]))
