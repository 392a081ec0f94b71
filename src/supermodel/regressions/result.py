"""What a regression gives back: models with their Bayes factors, inclusion, effects, hypotheses, and words for them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate, Evidences
from supermodel.regressions import words
from supermodel.regressions.formula import Term, parse
from supermodel.regressions.hypothesis import Restricted, read, restrict
from supermodel.regressions.inclusion import Inclusion, inclusions
from supermodel.regressions.space import spelled
from supermodel.report.scales import DEFAULT
from supermodel.report.tables import Cells, weighted_quantiles
from supermodel.results.comparison import Comparison
from supermodel.results.export import finite, plain
from supermodel.results.odds import probabilities, probability_errors
from supermodel.results.storage import write_atomically
from supermodel.verdict.verdict import Reason, Verdict, worst

DRAWS = 20_000  # of the posterior averaged over models
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)  # factors on rscale
CAUTION, FAIL = 0.1, 0.5  # errors of a quadrature, in nats


class Fit(Protocol):
    """One model: ln B against the simplest one, and draws of its effects by label."""

    @property
    def log_bayes_factor(self) -> Estimate: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]: ...
    def prior_draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True)
class Effect:
    """An effect averaged over models: how probable it is that there is one, and its posterior (0 where there is none)."""

    label: str
    probability: float
    mean: float
    sd: float
    low: float  # 2.5%
    high: float  # 97.5%


@dataclass(frozen=True)
class Robustness:
    """ln B against the null for other scales of the default priors."""

    rscales: tuple[float, ...]  # factors on the scales that were used
    models: tuple[str, ...]
    estimates: tuple[tuple[Estimate, ...], ...]  # [model][scale]
    null: str

    def cells(self) -> Cells:
        return words.robustness_cells(self)

    def __str__(self) -> str:
        return self.cells().text()

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """The robustness plot; returns the Axes."""
        from supermodel.report.regression_plots import robustness

        return robustness(self, ax=ax)


@dataclass(frozen=True, eq=False, repr=False)
class Regression:
    """Bayes factors between regressions of one response. Natural logarithms.

    Models are called by the right-hand side of their formula ("wt + hp"), or by any formula of the same terms.
    """

    formula: str
    kind: str  # "regression", "anova", "t test", "correlation", "proportion"
    family: str
    n_rows: int
    n_dropped: int
    models: dict[str, tuple[Term, ...]]  # the null first
    fits: dict[str, Fit]
    verdict: Verdict
    prior_odds: dict[str, float]
    method: str  # how evidences were found
    priors: str  # in words
    always: tuple[str, ...] = ()  # terms that every model has
    refit: Callable[[float], Regression] | None = None  # the same with all scales of the default priors times a factor
    comparison: Comparison | None = None  # of the engine, with its posteriors and record
    hypotheses: tuple[Restricted, ...] = ()
    seed: int = 0
    tested: str = ""  # of a test of one number: its name

    # -- the numbers ------------------------------------------------------------------------------------------------

    @cached_property
    def evidences(self) -> Evidences:
        """ln Z of every model, up to a constant, and the covariance of the errors."""
        if self.comparison is not None:
            return self.comparison.evidences
        found = [self.fits[name].log_bayes_factor for name in self.models]
        return Evidences(
            tuple(self.models), np.array([e.value for e in found]), np.diag([e.error**2 for e in found]), False
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.models)

    @property
    def null(self) -> str:
        """The simplest model."""
        return self.names[0]

    @property
    def ranking(self) -> tuple[str, ...]:
        """The models, largest evidence first."""
        values = np.where(np.isnan(self.evidences.values), -np.inf, self.evidences.values)
        return tuple(self.evidences.names[k] for k in np.argsort(-values, kind="stable"))

    @property
    def best(self) -> str:
        return self.ranking[0]

    def log_bayes_factor(self, first: str | None = None, second: str | None = None) -> Estimate:
        """ln Z_first - ln Z_second; by default of the best model (or the only other one) against the null."""
        if first is None:
            first = self.best if len(self.names) > 2 else self.names[-1]
        second = self.null if second is None else second
        first, second = self._known(first), self._known(second)
        if first == second:
            return Estimate(0.0, 0.0)
        return self.evidences.log_bayes_factor(first, second)

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior probabilities of the models at `prior_odds`."""
        return probabilities(self.evidences, {name: self.prior_odds[name] for name in self.evidences.names})

    def probability_errors(self) -> dict[str, float]:
        """Standard errors of the probabilities."""
        return probability_errors(self.evidences, {name: self.prior_odds[name] for name in self.evidences.names})

    def inclusion(self) -> list[Inclusion]:
        """The inclusion Bayes factor of every term, over all models and over matched ones."""
        odds = {name: self.prior_odds[name] for name in self.evidences.names}
        return inclusions({name: self.models[name] for name in self.evidences.names}, self.evidences, odds)

    def _known(self, model: str) -> str:
        """The name of a model, which may be given as a formula too."""
        name = spelled(model, self.models, parse(self.formula)) if "~" in self.formula else model
        self.evidences.index(name)  # or the sentence with the names that there are
        return name

    # -- effects ----------------------------------------------------------------------------------------------------

    def draws(self, model: str | None = None, n: int = DRAWS) -> dict[str, np.ndarray]:
        """Posterior draws of the effects of one model (the best by default)."""
        name = self.best if model is None else self._known(model)
        return self.fits[name].draws(n, np.random.default_rng(self.seed))

    def effects(self, groups: bool = False) -> list[Effect]:
        """Every effect averaged over the models (of a t test and its like: under the alternative); `groups` adds each group's."""
        rng, share = np.random.default_rng(self.seed), self.probabilities
        if self.tested:  # under the null it is no zero but a value of its own
            share = {self.names[-1]: 1.0}
        counts = {name: int(round(DRAWS * p)) for name, p in share.items() if np.isfinite(p) and p * DRAWS >= 1}
        parts = {name: self.fits[name].draws(n, rng) for name, n in counts.items()}
        total, found = sum(counts.values()), []
        if not total:  # not even the probabilities are known
            return []
        of_models = [label for name in self.names for label in self.fits[name].labels]  # then sigma and its like
        for label in dict.fromkeys([*of_models, *(label for part in parts.values() for label in part)]):
            if not groups and " | " in label and not label.startswith("sd("):
                continue
            some = [part[label] for part in parts.values() if label in part]
            values = np.concatenate([*some, np.zeros(total - sum(map(len, some)))])
            low, high = weighted_quantiles(values, np.full(total, 1 / total), (0.025, 0.975))
            has = [name for name in share if label in self.fits[name].labels]
            probability = min(sum(share[name] for name in has), 1.0) if has else sum(map(len, some)) / total
            found.append(Effect(label, probability, values.mean(), values.std(), float(low), float(high)))
        return found

    def hypothesis(self, text: str, model: str | None = None) -> Restricted:
        """An order, as `"a > b > c"` or `"x < 0"`, against the same model without it; in the best model that has the names."""
        names = self.ranking if model is None else (self._known(model),)
        fullest = max(names, key=lambda name: len(self.fits[name].labels))
        needed = {label for contrast in read(text, self.fits[fullest].labels) for label in contrast}
        name = next(name for name in names if needed <= set(self.fits[name].labels))
        return restrict(text, name, self.fits[name], self.log_bayes_factor(name, self.null), self.seed)

    def sensitivity(self, parameter: str = "rscale", scales: Sequence[float] = SCALES) -> Robustness:
        """ln B against the null if all scales of the default priors were `scales` times what they are."""
        if parameter != "rscale" or self.refit is None:
            raise SupermodelError(
                f'sensitivity of what? Of a regression "rscale" can be changed, the scale of its default priors; got '
                f"{parameter!r}. For one parameter of a model in the engine ask `.comparison.sensitivity(name)`."
            )
        runs = [self.refit(float(scale)) for scale in scales]
        kept = [name for name in self.ranking if name != self.null][:6]
        estimates = tuple(tuple(run.log_bayes_factor(name, run.null) for run in runs) for name in kept)
        return Robustness(tuple(map(float, scales)), tuple(kept), estimates, self.null)

    # -- showing ----------------------------------------------------------------------------------------------------

    def table(self, most: int | None = 12) -> Cells:
        """The models, best first: ln B against the null and the best, and their probabilities."""
        return words.model_cells(self, most)

    def summary(self) -> Cells:
        """Effects averaged over models."""
        return words.effect_cells(self)

    def sentence(self, scale: Any = DEFAULT) -> str:
        """The answer in plain language, in the words of a scale: "trotta", "jeffreys", "kass_raftery", or your own."""
        return words.sentence(self, scale)

    def apa(self) -> str:
        """The answer as journals of psychology want it."""
        return words.apa(self)

    def __str__(self) -> str:
        return words.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return words.html(self)

    def plot(self, what: str = "models", ax: Any = None) -> Any:
        """A picture of the "models", the "inclusion" Bayes factors, the "effects", or the "robustness"; returns the Axes."""
        from supermodel.report import regression_plots

        if what == "robustness":
            return self.sensitivity().plot(ax=ax)
        pictures = {"models": regression_plots.models, "inclusion": regression_plots.inclusion,
                    "effects": regression_plots.effects}  # fmt: skip
        if what not in pictures:
            raise SupermodelError(f"there is no plot {what!r}; there are {', '.join((*pictures, 'robustness'))}.")
        return pictures[what](self, ax=ax)

    def report(self, path: str | os.PathLike[str], scale: Any = DEFAULT) -> Path:
        """Write one self-contained HTML page; its path."""
        from supermodel.regressions.page import page

        write_atomically(path, page(self, scale).encode())
        return Path(path)

    def asdict(self) -> dict[str, Any]:
        """The answer as plain numbers, lists and strings."""
        return words.asdict(self)

    def to_json(self, indent: int | None = 2) -> str:
        """`asdict` as JSON text; what is not a finite number becomes null."""
        return json.dumps(finite(plain(self.asdict())), indent=indent, allow_nan=False, ensure_ascii=False)

    def to_dataframe(self, model: str | None = None) -> Any:
        """Posterior draws of the effects of one model (the best by default) as a pandas table."""
        import pandas as pd

        return pd.DataFrame(self.draws(model))


def judged(fits: Mapping[str, Fit]) -> Verdict:
    """The verdict on quadratures, from the error that each finds in itself."""
    found = []
    for name, fit in fits.items():
        error = fit.log_bayes_factor.error
        if not error <= CAUTION or not np.isfinite(fit.log_bayes_factor.value):
            level = "caution" if error <= FAIL and np.isfinite(fit.log_bayes_factor.value) else "fail"
            found.append((level, Reason("quadrature", f"the integral of {name!r} over g is known to {error:.2g} only; "
                                                      f"below {CAUTION:g} is wanted.")))  # fmt: skip
    return worst(found)
