"""A stored comparison with its models, where those were formulas of a TOML file and stand in the file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from supermodel.counting.result import Count
from supermodel.results import archive
from supermodel.results.comparison import Comparison
from supermodel.results.storage import reading
from supermodel.spec import count
from supermodel.spec.toml import rewritten


def load(path: str | os.PathLike[str], models: Mapping[str, Any] | None = None) -> Comparison | Count:
    """The comparison that `save` wrote. With `models` (the same as then) predictions and the like work again.

    The models of a TOML file need not be given: their formulas are stored, and parsed again. Nothing is run as code. Of what
    `count` made it is a `Count` again, with its component and its background.
    """
    found = archive.load(path, models)
    is_count = "count" in found.settings
    if models is not None or found.data is None or not all(found.formulas.get(name) for name in found.names):
        return Count(found) if is_count else found
    with reading(path):
        if not is_count:
            return _with(found, {name: rewritten(name, found.formulas[name], found.data) for name in found.names})
        component, background, again = count.rewritten(found.formulas[found.names[0]], found.data, Count(found).numbers)
        return Count(_with(found, again), component, background)


def _with(found: Comparison, models: Mapping[str, Any]) -> Comparison:
    parameters = [list(found.posteriors[name].parameters) for name in found.names]
    return dataclasses.replace(found, models=archive.checked_models(models, found.names, parameters))
