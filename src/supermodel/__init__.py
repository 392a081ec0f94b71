"""Which of my models do the data prefer, by how much, and how sure is that number?

The whole public surface. Names are imported when they are first used, so `import supermodel` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Model": "supermodel.models.model",
    "Gaussian": "supermodel.models.noise",
    "Supermodel": "supermodel.embedding.supermodel",
    "coordinate": "supermodel.embedding.coordinate",
    "sample": "supermodel.sampling.sample",
    "Draws": "supermodel.sampling.draws",
    "estimate": "supermodel.estimation",
    "Estimate": "supermodel.estimation.estimate",
    "Evidences": "supermodel.estimation.estimate",
    "exact": "supermodel.exact",
    "compare": "supermodel.compare",
    "evidence": "supermodel.compare",
    "calibrate": "supermodel.calibration",
    "Comparison": "supermodel.result",
    "load": "supermodel.archive",
    "Verdict": "supermodel.verdict",
    "SupermodelError": "supermodel.errors",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from supermodel import exact as exact
    from supermodel.archive import load as load
    from supermodel.calibration import calibrate as calibrate
    from supermodel.compare import compare as compare
    from supermodel.compare import evidence as evidence
    from supermodel.embedding import coordinate as coordinate
    from supermodel.embedding.supermodel import Supermodel as Supermodel
    from supermodel.errors import SupermodelError as SupermodelError
    from supermodel.estimation.estimate import Estimate as Estimate
    from supermodel.estimation.estimate import Evidences as Evidences
    from supermodel.models.model import Model as Model
    from supermodel.models.noise import Gaussian as Gaussian
    from supermodel.result import Comparison as Comparison
    from supermodel.sampling.draws import Draws as Draws
    from supermodel.sampling.sample import sample as sample
    from supermodel.verdict import Verdict as Verdict


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'supermodel' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    is_module = _HOMES[name].rsplit(".", 1)[-1] == name and name in ("exact", "coordinate") or name == "estimate"
    value = home if is_module else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
