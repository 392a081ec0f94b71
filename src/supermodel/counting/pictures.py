"""The pictures of a count, by their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from supermodel.errors import SupermodelError, suggestion

if TYPE_CHECKING:
    from supermodel.counting.result import Count


def plot(result: Count, what: str = "numbers", ax: Any = None) -> Any:
    """See `Count.plot`."""
    from supermodel.report import count_plots as plots

    called = result.asked["component"]
    drawn = {"numbers": plots.numbers, "data": plots.found, "components": plots.components}
    alone = re.fullmatch(rf"(?:component|{re.escape(called)}) (\d+)", str(what))
    if alone:
        return plots.component(result, int(alone[1]), ax=ax)
    name = "components" if what in ("component", called, f"{called}s") else what
    if name not in drawn:
        known = [*drawn, "component 1"]
        raise SupermodelError(
            f"there is no picture {what!r} of a count; there are {', '.join(map(repr, known))} and so on. "
            f"{suggestion(str(what), known)}"
        )
    return drawn[name](result, ax=ax)
