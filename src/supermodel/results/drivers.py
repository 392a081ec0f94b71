r"""What drives a preference: datum by datum, and as fit against Occam penalty.

For each model $\ln Z = \langle \ln L \rangle - D_{KL}$: the posterior mean of the log likelihood minus the information
that the data gave about the parameters. Two questions about a datum (or a block of data) have two answers:

* `fit`: its share of the fit, $\langle \ln p(y_i \mid \theta) \rangle_a - \langle \ln p(y_i \mid \theta) \rangle_b$.
  These sum to the difference in fit; with the difference in Occam penalties they sum to ln B exactly.
* `leave_out`: how much of ln B would go with it, $\ln B(D) - \ln B(D \setminus y_i)$, which is
  $\ln p_a(y_i \mid D \setminus y_i) - \ln p_b(y_i \mid D \setminus y_i)$, by reweighting the posterior with
  $1/p(y_i \mid y_{-i}, \theta)$. These do not sum to ln B: what two data tell is not told twice. A Pareto k above 0.7 flags a
  datum on which the posterior leans too heavily for that.

Both suppose that the data are independent given the parameters, and then neither depends on their order; or that the noise is
`Gaussian(covariance=...)`: then a share of the fit is that of a datum given those before it, and `leave_out` is as it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.errors import DataError, ModelError, SupermodelError
from supermodel.estimation.error import standard_error
from supermodel.estimation.estimate import Estimate
from supermodel.jax_scope import in_float64
from supermodel.report.numbers import shown
from supermodel.results.averaging import each_draw
from supermodel.results.reweighting import HEAVY, reweighted
from supermodel.results.words import default_pair

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison
    from supermodel.results.posterior import ModelPosterior

MOST_DRAWS = 2048  # more add nothing to a posterior mean that a plot could show


@dataclass(frozen=True)
class Split:
    """ln Z = fit + occam, where fit is the posterior mean of ln L and -occam the information gained."""

    name: str
    fit: Estimate
    occam: Estimate | None  # None where only ratios of evidences are known


def split(result: Comparison, name: str) -> Split:
    """See `Comparison.split`."""
    posterior = result.posterior(name)
    fit = Estimate(
        float(posterior.average(posterior.log_likelihood)), float(posterior.average_error(posterior.log_likelihood))
    )
    if not result.evidences.absolute:
        return Split(name, fit, None)
    evidence = result.log_evidence(name)
    return Split(name, fit, Estimate(evidence.value - fit.value, float(np.hypot(evidence.error, fit.error))))


@dataclass(frozen=True, eq=False)
class Drivers:
    """Contributions of each datum or block to ln B(first : second); see the module for the two definitions."""

    first: str
    second: str
    labels: tuple[str, ...]  # (n,)
    position: np.ndarray | None  # (n,): x of the data, where they have one
    fit: np.ndarray  # (n,)
    fit_error: np.ndarray
    leave_out: np.ndarray  # (n,)
    leave_out_error: np.ndarray
    pareto_k: np.ndarray  # (n,): the worse of the two models
    log_bayes_factor: Estimate
    level: str  # of the verdict on this pair

    @property
    def is_heavy(self) -> np.ndarray:
        """(n,): where the posterior leans too heavily on a datum for `leave_out`."""
        return self.pareto_k > HEAVY

    @property
    def total_fit(self) -> float:
        """The difference in fit: the sum of `fit`."""
        return float(self.fit.sum())

    @property
    def occam(self) -> float:
        """The difference in Occam penalties: what ln B has beside the fit."""
        return self.log_bayes_factor.value - self.total_fit

    def __str__(self) -> str:
        head = (
            f"ln B({self.first} : {self.second}) = {shown(self.log_bayes_factor)} = fit {self.total_fit:+.2f} "
            f"+ Occam {self.occam:+.2f}"
        )
        order = np.argsort(-np.abs(self.leave_out))[:8]
        lines = [
            f"  {self.labels[i]:>10}  would take away {self.leave_out[i]:+.3f} ± {self.leave_out_error[i]:.3f}"
            f"   (share of the fit {self.fit[i]:+.3f})" + ("  heavy tail" if self.is_heavy[i] else "")
            for i in order
        ]
        return "\n".join([head, "Left out of the data:", *lines])

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Contributions against position; returns the Axes."""
        from supermodel.report.plots import drivers

        return drivers(self, ax=ax)


def drivers(
    result: Comparison, first: str | None = None, second: str | None = None, blocks: Any = None, pointwise: Any = None
) -> Drivers:
    """See `Comparison.drivers`.

    `blocks`: one label per datum; contributions are then those of whole blocks. `pointwise`: {model: function of
    (parameters, data) that returns ln p of each datum}, for models written with a `log_likelihood`.
    """
    first, second = default_pair(result, first, second)
    parts = [_contributions(result, name, blocks, pointwise) for name in (first, second)]
    (labels, *a), (_, *b) = parts
    if len(a[0]) != len(b[0]):
        raise DataError(f"{first!r} has {len(a[0])} data and {second!r} {len(b[0])}: contributions cannot be compared.")
    position = None
    if blocks is None and isinstance(result.data, Mapping) and np.shape(result.data.get("x", ())) == a[0].shape:
        position = np.asarray(result.data["x"], float)
    return Drivers(
        first, second, labels, position, a[0] - b[0], np.hypot(a[1], b[1]), a[2] - b[2], np.hypot(a[3], b[3]),
        np.maximum(a[4], b[4]), result.log_bayes_factor(first, second),
        result.verdict_between(first, second).level,
    )  # fmt: skip


@in_float64
def _contributions(result: Comparison, name: str, blocks: Any, pointwise: Any):
    """(labels, mean ln p, its error, ln p left out, its error, Pareto k) of each datum under one model."""
    posterior = result.posterior(name)
    function = _pointwise_function(result, name, pointwise)
    rows, shape = _thinned(posterior)
    values = {k: v[rows] for k, v in posterior.parameters.items()}
    terms = each_draw(lambda v: function(v, result.data), values, len(rows))
    labels, places, terms = _in_blocks(terms, blocks)
    others = terms  # ln p of a datum given all others: the same, where data are independent
    model = None if result.models is None else result.models[name]
    if getattr(getattr(model, "noise", None), "is_correlated", False) and not (pointwise and name in pointwise):
        others = each_draw(lambda v: model.left_out_log_likelihood(v, result.data, places), values, len(rows))
    log_w = posterior.log_weights[rows]  # in logarithms: a draw far out in the prior has a weight below all doubles
    log_w = log_w - np.logaddexp.reduce(log_w)
    w = np.exp(log_w)
    mean = w @ terms
    n = len(rows)
    error = [standard_error(column.reshape(shape)) for column in (n * w[:, None] * (terms - mean)).T]
    without = [reweighted(log_w, -column) for column in others.T]
    out = np.array([-found.log_mean for found in without])
    out_error = np.array([standard_error((n * (found.weights - w)).reshape(shape)) for found in without])
    return labels, mean, np.array(error), out, out_error, np.array([found.pareto_k for found in without])


def _pointwise_function(result: Comparison, name: str, pointwise: Any):
    if pointwise is not None and name in pointwise:
        return pointwise[name]
    model = None if result.models is None else result.models[name]
    if model is None or not getattr(model, "knows_each_datum", False):
        why = (
            "a file holds no models: load with load(path, models={...})"
            if model is None
            else "it is written with a log_likelihood"
        )
        raise ModelError(
            f"the contributions of single data need ln p of each under model {name!r}, but {why}. Write the model with "
            "`predict` and `noise`, in NumPyro or in PyMC, or give pointwise={name: function of (parameters, data)}."
        )
    return model.pointwise_log_likelihood


def _thinned(posterior: ModelPosterior) -> tuple[np.ndarray, tuple[int, int]]:
    """Rows of at most MOST_DRAWS draws with weight, the same number from each chain, and their (chains, draws)."""
    chains = posterior.n_chains
    grid = np.arange(len(posterior.log_weights)).reshape(chains, -1)
    if not np.all(np.isfinite(posterior.log_weights)):
        rows = np.flatnonzero(np.isfinite(posterior.log_weights))
        return rows, (1, len(rows))
    step = max(1, int(np.ceil(grid.size / MOST_DRAWS)))
    kept = grid[:, ::step]
    return kept.ravel(), kept.shape


def _in_blocks(terms: np.ndarray, blocks: Any) -> tuple[tuple[str, ...], list[np.ndarray] | None, np.ndarray]:
    """Labels, the rows of each block, and its terms."""
    if blocks is None:
        return tuple(str(i) for i in range(terms.shape[1])), None, terms
    blocks = np.ravel(np.asarray(blocks))
    if len(blocks) != terms.shape[1]:
        raise SupermodelError(f"`blocks` needs one label for each of the {terms.shape[1]} data; got {len(blocks)}.")
    labels = list(dict.fromkeys(blocks.tolist()))
    places = [np.flatnonzero(blocks == label) for label in labels]
    return tuple(map(str, labels)), places, np.stack([terms[:, rows].sum(axis=1) for rows in places], axis=1)
