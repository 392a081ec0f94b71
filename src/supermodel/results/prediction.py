r"""How well each model predicts a datum that it has not seen: leave-one-out cross-validation by Pareto-smoothed weights.

$\mathrm{elpd} = \sum_i \ln p(y_i \mid y_{-i})$ (Vehtari, Gelman and Gabry 2017), by smoothing $1/p(y_i \mid \theta)$ as ArviZ does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.errors import DataError, ModelError
from supermodel.estimation.estimate import Estimate
from supermodel.jax_scope import in_float64
from supermodel.report.numbers import number, shown
from supermodel.report.tables import Cells, scalar_values, scalars
from supermodel.results.averaging import each_draw
from supermodel.results.reweighting import HEAVY
from supermodel.verdict.convergence import mean_ess

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison
    from supermodel.results.posterior import ModelPosterior

FEWEST = 25  # draws of which a fifth, five, is the smallest tail that has a shape
MOST = 5e7  # numbers ln p that are held at once, 400 MB: of more, fewer draws are taken
WHAT = (
    "Two questions: ln B tells how probable the data are under each model before they are seen, priors and all;\n"
    "LOO tells how well each model, once fitted, predicts one datum more. Wide priors cost ln B much, LOO little."
)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """`elpd` of every model, best first, its difference to the best, and the Pareto k that says whether to trust it."""

    names: tuple[str, ...]  # best first, of those that could be weighed if not all could
    pointwise: dict[str, np.ndarray]  # {model: (n,)}
    pareto_k: dict[str, np.ndarray]  # {model: (n,)}; above 0.7 the posterior leans too heavily on a datum
    total: dict[
        str, float
    ]  # {model: the posterior mean log density of all data}, for the effective number of parameters

    def elpd(self, name: str) -> Estimate:
        """The sum of ln p(y_i | all other data), and its standard error over data."""
        return _summed(self.pointwise[name])

    def difference(self, first: str, second: str) -> Estimate:
        """elpd of `first` minus that of `second`, datum by datum."""
        return _summed(self.pointwise[first] - self.pointwise[second])

    def cells(self) -> Cells:
        """The table as strings."""
        rows = []
        for name in self.names:
            against = "–" if name == self.names[0] else shown(self.difference(name, self.names[0]), sign=True)
            effective = self.total[name] - self.elpd(name).value
            heavy = int(np.sum(self.pareto_k[name] > HEAVY))
            rows.append((name, shown(self.elpd(name)), against, number(effective, ".1f"), str(heavy)))
        header = ("model", "elpd (LOO)", f"vs {self.names[0]}", "effective params", "data with k > 0.7")
        return Cells(header, tuple(rows), note=WHAT)

    def __str__(self) -> str:
        return str(self.cells())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.cells()._repr_html_()


def _summed(values: np.ndarray) -> Estimate:
    return Estimate(float(values.sum()), float(np.sqrt(len(values) * values.var())))


def leave_one_out(result: Comparison) -> LeaveOneOut:
    """See `Comparison.loo`."""
    pointwise, shapes, total = {}, {}, {}
    for name in result.names:
        posterior = result.posterior(name)
        parts = log_densities(result, posterior).values()
        terms = np.concatenate([part.reshape(part.shape[0] * part.shape[1], -1) for part in parts], axis=1)
        mean = np.logaddexp.reduce(terms, axis=0) - np.log(len(terms))
        pointwise[name], shapes[name], total[name] = mean, np.zeros(len(mean)), float(np.sum(mean))
        if posterior.parameters:  # without, every draw is the same
            rows = posterior.equal_rows
            sizes = [mean_ess(scalar_values(posterior, *scalar)[rows]) for scalar in scalars(posterior)]
            found = np.array([left_out(column, float(np.mean(sizes)) / rows.size) for column in terms.T])
            pointwise[name], shapes[name] = found.T
    counts = {len(values) for values in pointwise.values()}
    if len(counts) > 1:
        raise DataError(f"the models have different numbers of data, {sorted(counts)}: LOO cannot compare them.")
    names = sorted(result.weighed or result.names, key=lambda name: -pointwise[name].sum())
    return LeaveOneOut(tuple(names), pointwise, shapes, total)


def left_out(log_densities: np.ndarray, share: float) -> tuple[float, float]:
    """ln p of a datum given all others, and Pareto k, by ln p of it at draws of which a share is effective."""
    from arviz_stats.base import array_stats

    try:
        value, k, _ = array_stats.loo(log_densities[None], r_eff=share)
    except ValueError:  # of weights of which the largest are all alike; of few it has no tail to fit
        n = len(log_densities)
        k = 0.0 if n - 1 > FEWEST else np.inf
        value = np.log(n) - np.logaddexp.reduce(-log_densities)
    return float(value), float(k)


@in_float64
def log_densities(result: Comparison, posterior: ModelPosterior) -> dict[str, np.ndarray]:
    """{observed variable: (chains, draws, ...)}: ln p of each datum at the equally weighted draws, given the others."""
    name = posterior.name
    model = None if result.models is None else result.models[name]
    if model is None or not getattr(model, "knows_each_datum", False):
        raise ModelError(
            f"model {name!r} knows no log likelihood of each datum: "
            + (
                "a file holds no models, load with load(path, models={...})."
                if model is None
                else "it is written with a "
            )
            + ("" if model is None else "log_likelihood. Write it with `predict` and `noise`, in NumPyro or in PyMC.")
        )
    first = {k: np.asarray(v) for k, v in model.log_densities(_at(posterior, 0), result.data).items()}
    rows, size = posterior.equal_rows, sum(v.size for v in first.values())
    rows = rows[:, :: max(1, int(np.ceil(rows.size * size / MOST)))]
    values = {k: v[rows.ravel()] for k, v in posterior.parameters.items()}
    flat = each_draw(lambda v: model.left_out_log_likelihood(v, result.data), values, rows.size)
    ends = np.cumsum([v.size for v in first.values()])[:-1]
    parts = np.split(flat, ends, axis=1)
    return {k: part.reshape(*rows.shape, *v.shape) for (k, v), part in zip(first.items(), parts, strict=True)}


def _at(posterior: ModelPosterior, row: int) -> dict[str, Any]:
    return {name: values[row] for name, values in posterior.parameters.items()}
