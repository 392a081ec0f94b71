"""What two data sets say of the parameters that they share: the posterior given either, and given both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from supermodel.errors import SupermodelError
from supermodel.report.labels import set_labels
from supermodel.report.posterior_plots import smoothed
from supermodel.report.style import INK, PALETTE, RC, shortened, spread, stamp
from supermodel.report.tables import scalars, straight_values, weighted_quantiles

if TYPE_CHECKING:
    from supermodel.agreement.result import Tension

COLUMNS, WIDTH, HEIGHT = 3, 3.4, 2.5  # inches of a panel
SHADES = (PALETTE[0], PALETTE[1], INK)  # first, second, both
REACH = 0.06  # of the span of draws, added to either side


def tension(result: Tension, parameters: list[str] | None = None, most: int = 6) -> np.ndarray:
    """Densities of each shared number given the first data set, the second, and both; an array of Axes."""
    for name in parameters or ():
        if name not in result.shared:
            raise SupermodelError(
                f"{name!r} is no parameter that both data sets speak of; those are {', '.join(result.shared)}."
            )
    wanted = result.shared if parameters is None else parameters
    all_of_them = [(p, i) for p, i in scalars(result.posterior(result.names[2])) if p in wanted]
    chosen = all_of_them[:most]
    with matplotlib.rc_context(RC):
        import matplotlib.pyplot as plt

        columns = min(COLUMNS, len(chosen))
        rows = -(-len(chosen) // columns)
        size = (WIDTH * max(columns, 1.6), HEIGHT * rows + 0.5)
        figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False)
        axes = grid.ravel()
        left = f" (first {most} of {len(all_of_them)} numbers)" if len(all_of_them) > most else ""
        figure.suptitle(result.headline + left, x=0.01, ha="left", fontsize=9.5, fontweight="bold")
        figure.canvas.draw()  # labels are placed in panels whose size is known
        for ax, (parameter, index) in zip(axes, chosen, strict=False):
            _panel(ax, result, parameter, index)
        for ax in axes[len(chosen) :]:
            ax.set_visible(False)
        stamp(axes[columns - 1], result.verdict.level)
    return axes[: len(chosen)]


def _panel(ax: Axes, result: Tension, parameter: str, index: tuple[int, ...]) -> None:
    posteriors = [result.posterior(name) for name in result.names]
    columns = [straight_values(post, parameter, index) for post in posteriors]
    spans: list[Any] = [
        weighted_quantiles(values, post.weights, (0.001, 0.999))
        for values, post in zip(columns, posteriors, strict=True)
    ]
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    grid = np.linspace(low - REACH * (high - low), high + REACH * (high - low), 400)
    labels = []
    for name, post, values, shade, dash in zip(
        result.names, posteriors, columns, SHADES, ("-", (0, (5, 1.5)), "-"), strict=True
    ):
        curve = smoothed(values, post.weights, grid, result.comparison.support(name, parameter))
        if shade == INK:
            ax.fill_between(grid, curve, color=INK, alpha=0.13, linewidth=0)
        ax.plot(grid, curve, color=shade, linestyle=dash, linewidth=1.5)
        peak = int(np.argmax(curve))
        labels.append((grid[peak], curve[peak], shortened(name, 18), shade))
    ax.set(xlim=(grid[0], grid[-1]), ylim=(0, 1.1 * max(y for _, y, _, _ in labels)))
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    set_labels(ax, x=result.comparison.name_of(parameter, index))
    middle = labels[2][0]
    sides = ["left" if x >= middle else "right" for x, *_ in labels]
    spread(ax, [(x, y, said, shade, side) for (x, y, said, shade), side in zip(labels, sides, strict=True)])
