r"""Averages over models: $p(\theta \mid D) = \sum_k P(M_k \mid D)\, p(\theta \mid D, M_k)$, and predictions likewise.

A model that does not have the parameter holds it fixed: it contributes a spike of its probability. A model of
probability 0 contributes nothing, whatever its draws are like, and neither does one that could not be weighed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.jax_scope import compilation_cache, in_float64
from supermodel.models.columns import as_columns
from supermodel.models.many_points import compiled

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison
    from supermodel.results.posterior import ModelPosterior

LEVELS = (0.025, 0.16, 0.5, 0.84, 0.975)
PART = 512  # draws at a time


@dataclass(frozen=True, eq=False)
class Averaged:
    """A parameter's posterior averaged over models: weighted draws, and a spike of `spike_probability`."""

    parameter: str
    values: np.ndarray  # (n, ...): the draws of all models that have the parameter
    weights: np.ndarray  # (n,): their sum is 1 minus the spike's probability
    model: np.ndarray  # (n,): names of the models that the draws come from
    probabilities: dict[str, float]  # of all models, at these prior odds
    spikes: dict[str, float | None]  # {model that does not have it: the value at which it is fixed, if known}
    mean: np.ndarray
    mean_error: np.ndarray
    sd: np.ndarray
    is_conditional: bool  # whether the moments are those given that the parameter exists
    excluded: tuple[str, ...] = ()  # models that could not be weighed: their draws have no weight here

    @property
    def spike_probability(self) -> float:
        """The posterior probability of the models that do not have the parameter."""
        return float(sum(self.probabilities[name] for name in self.spikes))

    def quantile(self, level: float | tuple[float, ...]) -> np.ndarray:
        """Quantiles of a scalar parameter over the models that have it (and the spike, where its value is known)."""
        values, weights = self.values, self.weights
        if values.ndim != 1:
            raise SupermodelError(f"quantiles are of scalars; {self.parameter!r} has the shape {values.shape[1:]}.")
        if not self.is_conditional:
            known = [(v, self.probabilities[n]) for n, v in self.spikes.items() if v is not None]
            values = np.append(values, [v for v, _ in known])
            weights = np.append(weights, [p for _, p in known])
        return band(values[:, None], weights, tuple(np.atleast_1d(level)))[:, 0]

    def __str__(self) -> str:
        moments = str(Estimate(float(self.mean), float(self.mean_error))) if np.ndim(self.mean) == 0 else str(self.mean)
        given = " given that it exists" if self.is_conditional and self.spikes else ""
        spike = f"; P({self.parameter} fixed) = {self.spike_probability:.4g}" if self.spikes else ""
        among = f"; not weighed: {', '.join(self.excluded)}" if self.excluded else ""
        return f"{self.parameter}: mean {moments}, sd {np.array2string(np.asarray(self.sd), precision=4)}{given}{spike}{among}"

    __repr__ = __str__


def averaged(
    result: Comparison,
    parameter: str,
    prior_odds: Mapping[str, float] | None = None,
    fixed: float | Mapping[str, float] | None = None,
) -> Averaged:
    """See `Comparison.averaged`."""
    p = result.probabilities_for(prior_odds or result.prior_odds)
    share = {n: 0.0 if n in result.excluded else q for n, q in p.items()}
    owners = [n for n in result.names if has(result.posteriors[n], parameter)]
    if not owners:
        known = sorted({q for post in result.posteriors.values() for q in post.parameters})
        raise SupermodelError(f"no model has a parameter {parameter!r}; parameters are {', '.join(known) or 'none'}.")
    shapes = {result.posteriors[n].draws(parameter).shape[1:] for n in owners}
    if len(shapes) > 1:
        raise SupermodelError(f"{parameter!r} has different shapes in different models, {shapes}: no average exists.")
    others = [n for n in result.names if n not in owners]
    spikes = {n: _fixed_value(n, fixed, others) for n in others if n not in result.excluded}
    conditional = any(v is None for v in spikes.values())
    sharing = {n: share[n] for n in owners} | ({} if conditional else {n: share[n] for n in spikes})
    total = sum(sharing.values())
    turns = _whole_turns(result, parameter, max(owners, key=lambda n: share[n]), owners)
    moments = {n: _moments(result.posteriors[n], parameter, turns[n]) for n in owners}
    moments |= {
        n: (np.asarray(v), np.asarray(0.0), np.asarray(0.0))
        for n, v in spikes.items()
        if v is not None and n in sharing
    }
    # Only models with weight are touched: 0 times an infinite moment must stay 0.
    used = {n: w / total for n, w in sharing.items() if w > 0} if total > 0 else {}
    shape = next(iter(shapes))
    nan = np.full(shape, np.nan)
    mean = sum((w * moments[n][0] for n, w in used.items()), np.zeros(shape)) if used else nan
    second = sum((w * (moments[n][1] ** 2 + (moments[n][0] - mean) ** 2) for n, w in used.items()), np.zeros(shape))
    error = _mean_error(result, used, moments, mean) if used else nan
    weights = [share[n] * result.posteriors[n].weights for n in owners]
    return Averaged(
        parameter,
        np.concatenate([result.posteriors[n].straight(parameter) + turns[n] for n in owners]),
        np.concatenate(weights),
        np.repeat(owners, [len(w) for w in weights]),
        p, spikes, mean, error, np.sqrt(second) if used else nan, conditional, result.excluded,
    )  # fmt: skip


def has(posterior: ModelPosterior, parameter: str) -> bool:
    """Whether there are draws of that name: of a parameter, or of a deterministic site."""
    return parameter in posterior.parameters or parameter in posterior.derived


def _fixed_value(name: str, fixed: Any, others: list[str]) -> float | None:
    if fixed is None:
        return None
    if isinstance(fixed, Mapping):
        wrong = sorted(set(fixed) - set(others))
        if wrong:
            raise SupermodelError(f"`fixed` names {wrong}, but only {others} lack the parameter.")
        return float(fixed[name]) if name in fixed else None
    return float(fixed)


def _whole_turns(result: Comparison, parameter: str, first: str, owners: list[str]) -> dict[str, Any]:
    """What moves each model's draws of a parameter that goes round beside those of the `first`; 0 of one that does not."""
    middle = result.posteriors[first].mean(parameter)
    found: dict[str, Any] = {}
    for name in owners:
        _, turn = result.posteriors[name].circles.get(parameter, (0.0, np.inf))
        off = middle - result.posteriors[name].mean(parameter)
        found[name] = turn * np.round(off / turn) if np.isfinite(turn) else 0.0
    return found


def _moments(posterior: ModelPosterior, parameter: str, turns: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return posterior.mean(parameter) + turns, posterior.sd(parameter), posterior.mean_error(parameter)


def _mean_error(result: Comparison, used: dict[str, float], moments: dict, mean: np.ndarray) -> np.ndarray:
    r"""$\sigma^2 = \sum_k p_k^2 \sigma_k^2 + g^T C g$, $g_k = p_k(\theta_k - \bar\theta)$ the slopes in $\ln Z_k$."""
    names = list(used)
    rows = [result.evidences.index(n) for n in names]
    covariance = result.evidences.covariance[np.ix_(rows, rows)]
    slopes = np.stack([used[n] * (moments[n][0] - mean) for n in names])
    own = sum((used[n] * moments[n][2]) ** 2 for n in names)
    return np.sqrt(np.maximum(own + np.einsum("k...,kj,j...->...", slopes, covariance, slopes), 0.0))


# -- predictions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ModelPrediction:
    """One model's predictions: the mean and the quantiles at `LEVELS`."""

    probability: float  # NaN where the model could not be weighed
    mean: np.ndarray  # (m,)
    quantiles: np.ndarray  # (5, m)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions averaged over models: `mean`, and a band from the quantiles at `levels` (without the noise)."""

    x: Any
    mean: np.ndarray  # (m,)
    quantiles: np.ndarray  # (5, m)
    models: dict[str, ModelPrediction]
    levels: tuple[float, ...] = LEVELS


def predictions(
    result: Comparison, x: Any = None, prior_odds: Mapping[str, float] | None = None, n: int = 400
) -> Predictions:
    """See `Comparison.predict`."""
    if result.models is None:
        raise SupermodelError("predictions need the models, and a file holds none. Load with load(path, models={...}).")
    data = _data_at(result.data, x)
    p = result.probabilities_for(prior_odds or result.prior_odds)
    drawn: dict[str, np.ndarray] = {}
    for name in result.names:
        values = result.posteriors[name].resample(n)
        drawn[name] = predictions_at(result.models[name], values, data, n)
    size = max(values.shape[1] for values in drawn.values())
    drawn = {name: np.broadcast_to(values, (n, size)) for name, values in drawn.items()}  # one number for all data
    share = {name: 0.0 if name in result.excluded else q for name, q in p.items()}
    weights = np.concatenate([np.full(n, share[name] / n) for name in result.names])
    stacked = np.concatenate([drawn[name] for name in result.names])
    seen = weights > 0  # a model without weight may predict NaN for all we care
    models = {k: ModelPrediction(p[k], v.mean(axis=0), np.quantile(v, LEVELS, axis=0)) for k, v in drawn.items()}
    position = x if x is not None else (data.get("x") if isinstance(data, Mapping) else None)
    return Predictions(
        position, np.tensordot(weights[seen], stacked[seen], axes=1), band(stacked[seen], weights[seen]), models
    )


def _data_at(data: Any, x: Any) -> Any:
    if x is None:
        return data
    x = as_columns(x)  # a frame, or a dict with lists in it
    new = dict(x) if isinstance(x, Mapping) else {"x": np.asarray(x, float)}
    return {**data, **new} if isinstance(data, Mapping) else new


@in_float64
def predictions_at(model: Any, values: Mapping[str, np.ndarray], data: Any, n: int) -> np.ndarray:
    """(n, m): one model's prediction at each of n draws, compiled if it can be."""
    return each_draw(lambda v: model.prediction(v, data), values, n)


def with_derived(posteriors: Mapping[str, ModelPosterior], models: Mapping[str, Any]) -> dict[str, ModelPosterior]:
    """The same posteriors, which know the deterministic sites of their models."""
    found = dict(posteriors)
    for name, posterior in posteriors.items():
        function = getattr(getattr(models.get(name), "observed", None), "derived", None)
        if function is not None and posterior.deriver is None:
            found[name] = replace(posterior, deriver=partial(_derived, function))
    return found


@in_float64
def _derived(function: Any, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """{site: (n, ...)} at n draws."""
    n = len(next(iter(values.values())))
    first = function({name: each[0] for name, each in values.items()})
    shapes = {name: np.shape(value) for name, value in first.items()}

    def flat(at: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        return jnp.concatenate([jnp.ravel(jnp.asarray(value, float)) for value in function(at).values()])

    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1]
    parts = np.split(each_draw(flat, values, n), ends, axis=1)
    return {name: part.reshape(n, *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def each_draw(function: Any, values: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """`function` of each of n draws, flattened to (n, m); by JAX if it can trace it, one by one if not."""
    import jax
    import jax.numpy as jnp

    if not values:
        return np.repeat(np.ravel(np.asarray(function({}), float))[None], n, axis=0)
    program = compiled(jax.vmap(lambda v: jnp.ravel(jnp.asarray(function(v)))))
    # Parts of one shape, so that another number of draws is the same program: JAX's cache of compiled ones has it.
    size = min(n, PART)
    rows = np.arange(-(-n // size) * size).reshape(-1, size) % n
    try:
        with compilation_cache():
            parts = [np.asarray(program({k: v[part] for k, v in values.items()})) for part in rows]
        found = np.concatenate(parts)[:n]
    except SupermodelError:
        raise
    except Exception:  # plain Python: whatever it does with a tracer
        found = np.array(
            [np.ravel(np.asarray(function({k: v[i] for k, v in values.items()}), float)) for i in range(n)]
        )
    return found


def band(draws: np.ndarray, weights: np.ndarray, levels: tuple[float, ...] = LEVELS) -> np.ndarray:
    """Weighted quantiles of (n, m) draws, (levels, m)."""
    order = np.argsort(draws, axis=0)
    below = np.cumsum(weights[order], axis=0) / weights.sum()
    rows = np.minimum((below[None] < np.asarray(levels)[:, None, None]).sum(axis=1), len(draws) - 1)
    return np.take_along_axis(draws, np.take_along_axis(order, rows, axis=0), axis=0)
