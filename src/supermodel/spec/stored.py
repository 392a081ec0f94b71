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
from supermodel.spec.toml import rewritten


def load(path: str | os.PathLike[str], models: Mapping[str, Any] | None = None) -> Comparison | Count:
    """The comparison that `save` wrote. With `models` (the same as then) predictions and the like work again.

    The models of a TOML file need not be given: their formulas are stored, and parsed again. Nothing is run as code. Of what
    `count` made it is a `Count` again.
    """
    found = _comparison(path, models)
    return Count(found) if "count" in found.settings else found


def _comparison(path: str | os.PathLike[str], models: Mapping[str, Any] | None) -> Comparison:
    found = archive.load(path, models)
    if models is not None or found.data is None or not all(found.formulas.get(name) for name in found.names):
        return found
    with reading(path):
        again = {name: rewritten(name, found.formulas[name], found.data) for name in found.names}
        parameters = [list(found.posteriors[name].parameters) for name in found.names]
        checked = archive.checked_models(again, found.names, parameters)
    return dataclasses.replace(found, models=checked)
