"""The four pictures that one wants first, in one figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.report import plots
from supermodel.report.scales import DEFAULT, SCALES
from supermodel.report.style import RC
from supermodel.report.tables import UNUSABLE
from supermodel.report.text import told

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison


def overview(result: Comparison, scale: Any = DEFAULT) -> np.ndarray:
    """The first four of `wanted` that this result can draw; (2, 2) Axes."""
    import matplotlib.pyplot as plt

    if isinstance(scale, str) and scale not in SCALES and hasattr(plots, scale):
        raise SupermodelError(
            f"plot() draws four pictures together, and what it takes is a scale of words ({', '.join(SCALES)}). {scale!r} "
            f"alone: `from supermodel.report import plots`, then `plots.{scale}(result)`."
        )
    with plt.rc_context(RC):
        figure, axes = plt.subplots(2, 2, figsize=(11.5, 7.4))
        number, meaning, _ = told(result, scale)
        figure.suptitle(f"{number}   {meaning}".strip(), fontsize=10, x=0.01, ha="left")
        left = wanted(result, scale)
        for ax in axes.flat:
            if not any(_drawn(draw, ax) for draw in left):
                ax.set_axis_off()
    return axes


def wanted(result: Comparison, scale: Any) -> Iterator[Callable[..., Any]]:
    """ln B, data with fits, ln B against a prior, posteriors; then what drives it, and the run itself."""
    several = len(result.names) > 1
    parameter = next(iter(telling_parameters(result)), None) if several else None
    yield partial(plots.answer, result, scale)
    yield partial(plots.predictions, result)
    if parameter is not None:
        yield partial(_usable_sensitivity, result, parameter, scale)
    if parameter is not None:
        index = next(iter(np.ndindex(*_shape(result, parameter))), ())
        yield partial(plots.averaged, result, parameter, index=index)
    yield partial(plots.corner, result, most=4)
    if several:
        yield lambda ax: plots.drivers(result.drivers(), ax=ax)
    yield partial(plots.trace, result)
    yield partial(plots.crossings, result)


def _usable_sensitivity(result: Comparison, parameter: str, scale: Any, ax: Any) -> Any:
    found = result.sensitivity(parameter)
    if found.level in UNUSABLE:
        raise SupermodelError(found.sentence())
    return plots.sensitivity(found, scale, ax=ax)


def telling_parameters(result: Comparison) -> list[str]:
    """All parameters, first those in which the two best models differ, last those that all have: their prior hardly matters."""
    parameters = list(dict.fromkeys(p for n in result.ranking for p in result.priors.get(n, {})))

    def differ(parameter: str, names: tuple[str, ...]) -> bool:
        return len({parameter in result.priors.get(name, {}) for name in names}) > 1

    return sorted(parameters, key=lambda p: (not differ(p, result.ranking[:2]), not differ(p, result.names)))


def _shape(result: Comparison, parameter: str) -> tuple[int, ...]:
    found = (p.parameters[parameter] for p in result.posteriors.values() if parameter in p.parameters)
    return next(found).shape[1:]


def _drawn(draw: Callable[..., Any], ax: Any) -> bool:
    """Whether a picture could be drawn; what it began is wiped if not."""
    try:
        draw(ax=ax)
    except SupermodelError:
        ax.clear()
        return False
    return True
