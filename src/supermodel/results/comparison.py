"""What comes out of a comparison: frozen, plain data, ready to be asked, shown and stored."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate, Evidences
from supermodel.report.labels import named
from supermodel.report.scales import DEFAULT, Scale
from supermodel.results import export
from supermodel.results.averaging import Averaged, Predictions, averaged, predictions, with_derived
from supermodel.results.drivers import Drivers, Split, drivers, split
from supermodel.results.fingerprint import fingerprint, versions
from supermodel.results.held import fingerprint_of_data
from supermodel.results.odds import probabilities, probability_errors
from supermodel.results.paths import paths
from supermodel.results.posterior import ModelPosterior
from supermodel.results.prediction import LeaveOneOut, leave_one_out
from supermodel.results.ranking import Matrix, Ranking, matrix_of, rank
from supermodel.results.record import ChainRecord, EdgeRecord
from supermodel.results.rescaling import edges as ends_of
from supermodel.results.scope import by_evidence, weighed
from supermodel.results.sensitivity import Sensitivity, sensitivity
from supermodel.results.storage import write_atomically
from supermodel.results.unfolding import with_symmetries
from supermodel.results.words import Bound, Interpretation, bound_of, default_pair, interpret
from supermodel.verdict.verdict import Verdict

if TYPE_CHECKING:
    from supermodel.report.tables import Tex
    from supermodel.results.summary import Summary

SCHEMA = 1  # of what `asdict`, `to_json` and `save` write; raised whenever a name or a meaning changes


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Bayes factors with errors and a verdict: on the whole, on a pair, on a model. Natural logarithms; models by name."""

    evidences: Evidences
    verdict: Verdict
    evaluations: dict[str, int]
    posteriors: dict[str, ModelPosterior]
    edges: tuple[EdgeRecord, ...]
    seed: int
    prior_odds: dict[str, float]
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = float("nan")
    models: Mapping[str, Any] | None = None  # the user's models, absent after loading from a file
    data: Any = None
    priors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # {model: {parameter: prior}}
    versions: dict[str, str] = field(default_factory=versions)
    fingerprints: dict[str, str] = field(default_factory=dict)  # of "data" and "priors"
    schema: int = SCHEMA
    chain: ChainRecord | None = None  # of the methods that sample one supermodel as the paper does
    labels: dict[str, str] = field(default_factory=dict)  # of parameters, for tables and axes; they may be TeX
    units: dict[str, str] = field(default_factory=dict)
    formulas: dict[str, dict[str, Any]] = field(
        default_factory=dict
    )  # of models from a TOML file, as they were written

    def __post_init__(self):
        if not self.priors and self.models is not None:
            object.__setattr__(self, "priors", {name: _alone(model.priors) for name, model in self.models.items()})
        if not self.formulas and self.models is not None:
            written = {name: getattr(model, "written", None) for name, model in self.models.items()}
            object.__setattr__(self, "formulas", {name: text for name, text in written.items() if text})
        for what in ("labels", "units"):
            if not getattr(self, what) and self.models is not None:
                found = [getattr(model, what, {}) for model in [*self.models.values()][::-1]]
                object.__setattr__(self, what, {name: text for each in found for name, text in each.items()})
        known = with_symmetries(self.posteriors, self.settings, self.priors, self.models)
        object.__setattr__(self, "posteriors", known if self.models is None else with_derived(known, self.models))
        if not self.fingerprints:
            data = fingerprint_of_data(self.data, (self.models or {}).values())
            object.__setattr__(self, "fingerprints", {"data": data, "priors": fingerprint(self.priors)})

    # -- what can be used -----------------------------------------------------------------------------------------

    def verdict_between(self, first: str, second: str) -> Verdict:
        """The verdict on ln B of two models alone: a finding counts if this number rests on it.

        A finding on a model's exploration is of all pairs with that model, one on an edge of those whose way runs through
        it. A chain on (alpha, theta) is judged as a whole.
        """
        for name in (first, second):
            self.evidences.index(name)
        return self.verdict if self.chain is not None else self.verdict.between(first, second)

    def verdict_of(self, name: str) -> Verdict:
        """The verdict on ln Z and the posterior of one model alone; `verdict` of several models is on their ln B."""
        self.evidences.index(name)
        return self.verdict if self.chain is not None or len(self.names) == 1 else self.verdict.of(name)

    @cached_property
    def weighed(self) -> tuple[str, ...]:
        """The models that could be weighed against each other: all, unless checks failed; () where no two could."""
        return weighed(self)

    @property
    def excluded(self) -> tuple[str, ...]:
        """The models that could not be weighed against those that could; where none could, nothing is left to exclude from."""
        return tuple(name for name in self.names if name not in self.weighed) if self.weighed else ()

    # -- the numbers ----------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        return self.evidences.names

    @cached_property
    def ranking(self) -> tuple[str, ...]:
        """The names of the models, largest evidence first; those come last that are unknown or could not be weighed."""
        return tuple(
            sorted(by_evidence(self), key=lambda name: name in self.excluded)
        )  # sorted keeps the order of equals

    @property
    def best(self) -> str:
        """The model of the largest evidence."""
        return self.ranking[0]

    def log_bayes_factor(self, first: str, second: str) -> Estimate:
        """ln Z_first - ln Z_second; `.log10` has it in decimal logarithms."""
        if first == second:
            self.evidences.index(first)
            return Estimate(0.0, 0.0)  # exactly, however little is known of the evidence itself
        with np.errstate(invalid="ignore"):
            return self.evidences.log_bayes_factor(first, second)

    def log_evidence(self, name: str | None = None) -> Estimate:
        """ln Z of one model; the name may be left out where there is only one."""
        if name is None:
            if len(self.names) > 1:
                raise SupermodelError(f"log_evidence() of which model? Name one of {', '.join(map(repr, self.names))}.")
            name = self.names[0]
        return self.evidences.log_evidence(name)

    @cached_property
    def probabilities(self) -> dict[str, float]:
        """Posterior probabilities of the models at `prior_odds`, among those that could be weighed; NaN for `excluded` ones."""
        return self.probabilities_for(self.prior_odds)

    def probabilities_for(self, prior_odds: Mapping[str, float]) -> dict[str, float]:
        """Posterior probabilities of the models for other prior odds."""
        return probabilities(self.evidences, prior_odds, self.excluded)

    def probability_errors(self, prior_odds: Mapping[str, float] | None = None) -> dict[str, float]:
        """Standard errors of the probabilities."""
        return probability_errors(self.evidences, prior_odds or self.prior_odds, self.excluded)

    def matrix(self) -> Matrix:
        """ln B of every model (row) against every other (column), best first, each with its joint error."""
        return matrix_of(self)

    def table(self, reference: str | None = None, prior_odds: Mapping[str, float] | None = None) -> Ranking:
        """The models, best first, against `reference` (the best one by default), with the checks of each beside it."""
        return rank(self, reference, prior_odds)

    def pair(self, first: str | None = None, second: str | None = None) -> tuple[str, str]:
        """`first` and `second`, or in their place the best model and the best of the others."""
        return default_pair(self, first, second)

    def path(self, first: str, second: str) -> list[float] | None:
        """+1 or -1 for each edge that ln Z_first - ln Z_second runs through, 0 for the others; None if there is no way."""
        found = paths([(edge.first, edge.second) for edge in self.edges], second).get(first)
        return None if found is None else found.tolist()

    def support(self, name: str, parameter: str) -> tuple[float, float]:
        """Where the prior of a scalar parameter begins and ends under one model; infinite if unknown, or round a circle."""
        if parameter in self.posteriors[name].circles:
            return -np.inf, np.inf
        prior = self.priors.get(name, {}).get(parameter)
        return ends_of(prior) if prior is not None and prior.shape == () else (-np.inf, np.inf)

    def bound(self, first: str, second: str, level: float = 0.95) -> Bound:
        """What can be said where only a limit is known: ln B(first : second) above or below a value."""
        return bound_of(self, first, second, level)

    def interpret(
        self, first: str | None = None, second: str | None = None, scale: str | Scale | Mapping[str, float] = DEFAULT
    ) -> Interpretation:
        """ln B in words, with both names: a band of the scale only if the whole 2-sigma interval lies in it.

        By default the best model against the next.
        """
        return interpret(self, first, second, scale)

    # -- posteriors and averages ----------------------------------------------------------------------------------

    def posterior(self, name: str) -> ModelPosterior:
        """The posterior of one model."""
        self.evidences.index(name)
        return self.posteriors[name]

    @property
    def symmetries(self) -> dict[str, list[str]]:
        """{model: sentences}: which symmetries were found or declared, and in which order components are labelled."""
        return {name: list(self.posteriors[name].symmetries) for name in self.names if self.posteriors[name].symmetries}

    def averaged(
        self,
        parameter: str,
        prior_odds: Mapping[str, float] | None = None,
        fixed: float | Mapping[str, float] | None = None,
    ) -> Averaged:
        """The posterior of a parameter averaged over the models, with a spike for models that do not have it.

        `fixed` tells at which value such models hold it (one number, or one per model); without it the moments are
        those given that the parameter exists.
        """
        return averaged(self, parameter, prior_odds, fixed)

    def predict(self, x: Any = None, prior_odds: Mapping[str, float] | None = None, n: int = 400) -> Predictions:
        """Predictions averaged over the models and their posteriors, at `x` (by default where the data are)."""
        return predictions(self, x, prior_odds, n)

    # -- what the answer rests on ---------------------------------------------------------------------------------

    def sensitivity(
        self,
        parameter: str,
        scales: Sequence[float] | np.ndarray | None = None,
        *,
        shifts: Sequence[float] | np.ndarray | None = None,
        replace: Any = None,
        pair: tuple[str, str] | None = None,
        models: Sequence[str] | None = None,
    ) -> Sensitivity:
        """ln B against the width (`scales`), the place (`shifts`) or the form (`replace`) of a parameter's prior.

        Read off the record by reweighting: no likelihood is called. `pair` says whose ln B, `models` whose prior is
        changed (all that have the parameter, by default); `replace` is a distribution, or {label: distribution}.
        """
        return sensitivity(self, parameter, scales, shifts=shifts, replace=replace, pair=pair, models=models)

    def drivers(
        self, first: str | None = None, second: str | None = None, blocks: Any = None, pointwise: Any = None
    ) -> Drivers:
        """Which data drive the preference of `first` over `second`; see `supermodel.results.drivers`."""
        return drivers(self, first, second, blocks, pointwise)

    def split(self, name: str) -> Split:
        r"""$\ln Z = \langle \ln L \rangle - D_{KL}$ of one model: how well it fits, and what that costs (Occam)."""
        return split(self, name)

    def loo(self) -> LeaveOneOut:
        """How well each model, once fitted, predicts a datum more: another question than ln B; see the table's note."""
        return leave_one_out(self)

    # -- showing --------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        from supermodel.report.text import text

        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from supermodel.report.html import snippet

        return snippet(self)

    def report(self, path: str | os.PathLike[str], title: str | None = None, scale: Any = DEFAULT) -> Path:
        """Write one self-contained HTML page (headline, verdict, tables, plots, priors, methods, citation); its path."""
        from supermodel.report.html import page

        write_atomically(path, page(self, title, scale).encode())
        return Path(path)

    def name_of(self, parameter: str, index: tuple[int, ...] = ()) -> Tex:
        """A parameter, or a number in it, as tables and axes show it: with its label and unit, where it has them."""
        return named(self, parameter, index)

    def summary(self) -> Summary:
        """Every parameter of every model, best model first: mean, its error, sd, quantiles, ESS, R-hat, prior; a DataFrame."""
        from supermodel.results.summary import summary

        posteriors = {name: self.posteriors[name] for name in self.ranking}
        levels = {name: self.verdict_of(name).level for name in self.ranking}
        return summary(posteriors, self.priors, self.verdict.level, self.name_of, self.excluded and levels)

    def plot(self, scale: Any = DEFAULT) -> np.ndarray:
        """Four pictures in one figure: ln B, data with fits, ln B against a prior, posteriors; returns the (2, 2) Axes.

        What this result cannot draw is replaced by the next in line. Each is in `supermodel.report.plots`, to be drawn alone.
        """
        from supermodel.report.overview import overview

        return overview(self, scale)

    def methods(self) -> str:
        """A paragraph for the methods section of a paper, with the numbers of this run."""
        from supermodel.report.methods import methods

        return methods(self)

    def cite(self) -> str:
        """BibTeX of the method, of its estimator, and of this package in the version that made the result."""
        from supermodel.report.methods import cite

        return cite(self)

    # -- storing and handing on -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything but the models' code to a netCDF file, atomically; its path. `supermodel.load` reads it."""
        from supermodel.results.archive import save

        save(self, path)
        return Path(path)

    def asdict(self) -> dict[str, Any]:
        """The answer as plain numbers, lists and strings (without draws and records)."""
        return export.asdict(self)

    def to_json(self, indent: int | None = 2) -> str:
        """`asdict` as JSON text; what is not a finite number becomes null."""
        return json.dumps(self.asdict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def to_arviz(self, model: str | None = None) -> Any:
        """One model (the best by default) as the DataTree of ArviZ: posterior, prior, data and, where each datum has its own, ln L.

        Dimensions and coordinates are those of the NumPyro or PyMC model. `az.loo` and `az.compare` take it; the whole
        comparison is in the extra group `comparison`.
        """
        return export.to_arviz(self, model)

    def to_dataframe(self, model: str | None = None, equal_weights: bool = True) -> Any:
        """Draws as a pandas table: of one model, or of all with a column `model`; those of one model weigh the same.

        The column `weight` adds up to the probability of the model (of one alone to 1; to 0 for one that could not be
        weighed). With `equal_weights=False` there is
        every draw of the run, with the weight that it has.
        """
        return export.to_dataframe(self, model, equal_weights)

    def to_getdist(self, model: str | None = None) -> Any:
        """GetDist MCSamples of one model's posterior (the best by default)."""
        return export.to_getdist(self, model)

    def to_anesthetic(self, model: str | None = None) -> Any:
        """Weighted anesthetic Samples of one model's posterior (the best by default)."""
        return export.to_anesthetic(self, model)


def _alone(priors: Mapping[str, Any]) -> dict[str, Any]:
    """Priors as densities of their own, also within a joint prior, where they are that: such a one can be changed alone."""
    return {name: getattr(prior, "alone", None) or prior for name, prior in priors.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Evidence(Comparison):
    """ln Z of a single model: `.value`, `.error`, `.verdict`, and all that a `Comparison` has."""

    @property
    def value(self) -> float:
        return self.log_evidence().value

    @property
    def error(self) -> float:
        return self.log_evidence().error
