"""Which of my models do the data prefer, by how much, and how sure is that number?

The whole public surface. Names are imported when they are first used, so `import supermodel` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"  # the only place: pyproject.toml reads it here

_HOMES = {
    "Model": "supermodel.models.model",
    "Canonical": "supermodel.models.symmetry",
    "Gaussian": "supermodel.models.noise",
    "StudentT": "supermodel.models.noise",
    "Poisson": "supermodel.models.noise",
    "Binomial": "supermodel.models.noise",
    "from_numpyro": "supermodel.models.adapters.from_numpyro",
    "from_pymc": "supermodel.models.adapters.from_pymc",
    "from_bilby": "supermodel.models.adapters.from_bilby",
    "from_cobaya": "supermodel.models.adapters.from_cobaya",
    "from_enterprise": "supermodel.models.adapters.from_enterprise",
    "from_unit_cube": "supermodel.models.adapters.from_unit_cube",
    "from_log_density": "supermodel.models.adapters.from_log_density",
    "from_chains": "supermodel.models.adapters.from_chains",
    "to_dynesty": "supermodel.models.adapters.to_nested",
    "crosscheck": "supermodel.trust.crosscheck",
    "read_spec": "supermodel.spec.toml",
    "Supermodel": "supermodel.embedding.supermodel",
    "coordinate": "supermodel.embedding.coordinate",
    "sample": "supermodel.sampling.sample",
    "Draws": "supermodel.sampling.draws",
    "estimate": "supermodel.estimation",
    "Estimate": "supermodel.estimation.estimate",
    "Evidences": "supermodel.estimation.estimate",
    "exact": "supermodel.exact",
    "compare": "supermodel.comparing",
    "evidence": "supermodel.comparing",
    "compare_bilby": "supermodel.doors.bilby_models",
    "count": "supermodel.counting.count",
    "Component": "supermodel.counting.component",
    "Count": "supermodel.counting.result",
    "tension": "supermodel.agreement.tension",
    "Tension": "supermodel.agreement.result",
    "compare_many": "supermodel.survey.many",
    "ManyResult": "supermodel.survey.result",
    "regression": "supermodel.regressions.regress",
    "anova": "supermodel.regressions.regress",
    "ttest": "supermodel.regressions.one_parameter",
    "correlation": "supermodel.regressions.one_parameter",
    "proportion": "supermodel.regressions.one_parameter",
    "contingency": "supermodel.regressions.contingency",
    "Dependence": "supermodel.regressions.dependence",
    "Regression": "supermodel.regressions.result",
    "calibrate": "supermodel.trust.calibrate",
    "check": "supermodel.trust.check",
    "Comparison": "supermodel.results.comparison",
    "load": "supermodel.spec.stored",
    "Verdict": "supermodel.verdict.verdict",
    "SupermodelError": "supermodel.errors",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from supermodel import exact as exact
    from supermodel.agreement.result import Tension as Tension
    from supermodel.agreement.tension import tension as tension
    from supermodel.comparing import compare as compare
    from supermodel.comparing import evidence as evidence
    from supermodel.counting.component import Component as Component
    from supermodel.counting.count import count as count
    from supermodel.counting.result import Count as Count
    from supermodel.doors.bilby_models import compare_bilby as compare_bilby
    from supermodel.embedding import coordinate as coordinate
    from supermodel.embedding.supermodel import Supermodel as Supermodel
    from supermodel.errors import SupermodelError as SupermodelError
    from supermodel.estimation.estimate import Estimate as Estimate
    from supermodel.estimation.estimate import Evidences as Evidences
    from supermodel.models.adapters.from_bilby import from_bilby as from_bilby
    from supermodel.models.adapters.from_chains import from_chains as from_chains
    from supermodel.models.adapters.from_cobaya import from_cobaya as from_cobaya
    from supermodel.models.adapters.from_enterprise import from_enterprise as from_enterprise
    from supermodel.models.adapters.from_log_density import from_log_density as from_log_density
    from supermodel.models.adapters.from_numpyro import from_numpyro as from_numpyro
    from supermodel.models.adapters.from_pymc import from_pymc as from_pymc
    from supermodel.models.adapters.from_unit_cube import from_unit_cube as from_unit_cube
    from supermodel.models.adapters.to_nested import to_dynesty as to_dynesty
    from supermodel.models.model import Model as Model
    from supermodel.models.noise import Binomial as Binomial
    from supermodel.models.noise import Gaussian as Gaussian
    from supermodel.models.noise import Poisson as Poisson
    from supermodel.models.noise import StudentT as StudentT
    from supermodel.models.symmetry import Canonical as Canonical
    from supermodel.regressions.contingency import contingency as contingency
    from supermodel.regressions.dependence import Dependence as Dependence
    from supermodel.regressions.one_parameter import correlation as correlation
    from supermodel.regressions.one_parameter import proportion as proportion
    from supermodel.regressions.one_parameter import ttest as ttest
    from supermodel.regressions.regress import anova as anova
    from supermodel.regressions.regress import regression as regression
    from supermodel.regressions.result import Regression as Regression
    from supermodel.results.comparison import Comparison as Comparison
    from supermodel.sampling.draws import Draws as Draws
    from supermodel.sampling.sample import sample as sample
    from supermodel.spec.stored import load as load
    from supermodel.spec.toml import read_spec as read_spec
    from supermodel.survey.many import compare_many as compare_many
    from supermodel.survey.result import ManyResult as ManyResult
    from supermodel.trust.calibrate import calibrate as calibrate
    from supermodel.trust.check import check as check
    from supermodel.trust.crosscheck import crosscheck as crosscheck
    from supermodel.verdict.verdict import Verdict as Verdict


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
