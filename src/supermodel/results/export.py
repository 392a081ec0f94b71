"""A comparison handed to others: plain data, tables, ArviZ, GetDist, anesthetic."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.report.tables import all_scalars, level_of, scalar_label, scalar_values
from supermodel.results.prediction import log_densities

PRIOR_DRAWS = 1000  # in the group `prior` of ArviZ

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison
    from supermodel.results.posterior import ModelPosterior


def plain(value: Any) -> Any:
    """Nested data as dicts, lists, strings and numbers; what is none of these as its text."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Estimate):
        return {"value": plain(value.value), "error": plain(value.error)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    if hasattr(value, "__array__") and np.asarray(value).dtype.kind in "biufU":
        return np.asarray(value).tolist()
    return str(value)


def finite(value: Any) -> Any:
    """NaN and infinities as None: JSON has no word for them."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def asdict(result: Comparison) -> dict[str, Any]:
    """See `Comparison.asdict`. The names are part of the schema: they change only with its number."""
    pairs = [(a, b) for i, a in enumerate(result.ranking) for b in result.ranking[i + 1 :]]
    errors = result.probability_errors()
    content = {
        "schema": result.schema,
        "models": list(result.names),
        "ranking": list(result.ranking),
        "verdict": {
            "level": result.verdict.level,
            "reasons": [
                {
                    "code": r.code,
                    "sentence": r.sentence,
                    "level": r.level or result.verdict.level,
                    "models": list(r.models),
                }
                for r in result.verdict.reasons
            ],
            "models": {name: result.verdict_of(name).level for name in result.names},
            "weighed": list(result.weighed),
        },
        "log_bayes_factors": [
            {"first": a, "second": b, "base": "e", **plain(result.log_bayes_factor(a, b))}
            | {"verdict": result.verdict_between(a, b).level}
            for a, b in pairs
        ],
        "log_evidences": {n: plain(result.log_evidence(n)) for n in result.names}
        if result.evidences.absolute
        else None,
        "covariance": plain(result.evidences.covariance),
        "prior_odds": plain(result.prior_odds),
        "probabilities": {n: {"value": p, "error": errors[n]} for n, p in result.probabilities.items()},
        "parameters": {
            n: {p: {"mean": plain(post.mean(p)), "sd": plain(post.sd(p))} for p in post.parameters}
            for n, post in result.posteriors.items()
        },
        "priors": {n: {p: prior.description for p, prior in priors.items()} for n, priors in result.priors.items()},
        "edges": [{"first": e.first, "second": e.second, **plain(e.report)} for e in result.edges],
        "evaluations": plain(result.evaluations),
        "seconds": float(result.seconds),
        "seed": int(result.seed),
        "settings": plain(result.settings),
        "versions": plain(result.versions),
        "fingerprints": plain(result.fingerprints),
    }
    return finite(content)


def _chosen(result: Comparison, model: str | None) -> ModelPosterior:
    return result.posterior(result.best if model is None else model)


def columns_of(posterior: ModelPosterior) -> dict[str, np.ndarray]:
    """One column per number: `beta[0]`, `beta[1]`, ..."""
    return {scalar_label(*scalar): scalar_values(posterior, *scalar) for scalar in all_scalars(posterior)}


def to_dataframe(result: Comparison, model: str | None = None, equal_weights: bool = True) -> Any:
    """See `Comparison.to_dataframe`."""
    import pandas as pd

    if model is not None:
        return result.posterior(model).to_dataframe(equal_weights)
    frames = {name: result.posterior(name).to_dataframe(equal_weights) for name in result.names}
    for name, frame in frames.items():
        frame["weight"] *= 0.0 if name in result.excluded else result.probabilities[name]
    return pd.concat(frames, names=["model", "draw"]).reset_index("model")


def to_arviz(result: Comparison, model: str | None = None) -> Any:
    """See `Comparison.to_arviz`.

    ArviZ knows no weights, so draws are resampled to equal ones, in four chains. Where the model is there, `prior` has draws of
    it, and where it knows ln p of each datum, `log_likelihood` has that. The group `comparison` holds ln Z, its covariance and
    the probabilities of all models.
    """
    from arviz_base import from_dict

    posterior = _chosen(result, model)
    rows = posterior.equal_rows
    stack = {name: values[rows] for name, values in (posterior.parameters | posterior.derived).items()}
    if not stack:
        raise SupermodelError(f"model {posterior.name!r} has no parameters, so there is nothing for ArviZ to hold.")
    own = None if result.models is None else result.models[posterior.name]
    observed = getattr(own, "observed", None)
    pointwise = log_densities(result, posterior) if getattr(own, "knows_each_datum", False) else None
    data = _observed(result.data) if observed is None else observed.data
    groups = {
        "posterior": stack,
        "sample_stats": {
            "lp": (posterior.log_likelihood + posterior.log_prior)[rows],
            "log_likelihood_total": posterior.log_likelihood[rows],
        },
        "log_likelihood": pointwise,
        "prior": None if own is None else _prior_draws(own, result.seed),
        "observed_data": data,
    }
    attrs = {
        "model": posterior.name,
        "verdict": level_of(result, posterior.name),
        "seed": result.seed,
        "schema": result.schema,
    }
    tree = from_dict(
        {name: group for name, group in groups.items() if group},
        dims=None if observed is None else {name: list(axes) for name, axes in observed.dims.items()},
        coords=None if observed is None else observed.coords,
        attrs={"posterior": attrs},
    )
    tree["comparison"] = comparison_tree(result)
    return tree


def _prior_draws(model: Any, seed: int) -> dict[str, np.ndarray]:
    """{parameter: (1, draws, ...)}."""
    points = model.space.sample_prior(np.random.default_rng(seed), PRIOR_DRAWS)
    values = model.space.values_at(points)
    return {name: np.asarray(values[name])[None] for name in model.space.names}


def comparison_tree(result: Comparison) -> Any:
    """ln Z, covariance, probabilities and ln B of all models as a group of a DataTree."""
    import xarray as xr

    names, matrix = list(result.names), result.matrix()
    order = [matrix.names.index(n) for n in names]
    found = xr.Dataset(
        {
            "log_evidence": ("model", result.evidences.values),
            "covariance": (("model", "other"), result.evidences.covariance),
            "probability": ("model", np.array([result.probabilities[n] for n in names])),
            "log_bayes_factor": (("model", "other"), matrix.values[np.ix_(order, order)]),
            "log_bayes_factor_error": (("model", "other"), matrix.errors[np.ix_(order, order)]),
        },
        coords={"model": names, "other": names},
        attrs={"absolute": int(result.evidences.absolute), "verdict": result.verdict.level},
    )
    return xr.DataTree(found)


def _observed(data: Any) -> dict[str, np.ndarray] | None:
    if not isinstance(data, Mapping):
        return None
    found = {str(k): np.asarray(v) for k, v in data.items() if np.asarray(v).dtype.kind in "biuf"}
    return found or None


def to_getdist(result: Comparison, model: str | None = None) -> Any:
    """See `Comparison.to_getdist`."""
    try:
        from getdist import MCSamples
    except ImportError:
        raise SupermodelError("GetDist is not installed. Install it with: pip install 'supermodel-bayes[getdist]'.") from None
    posterior = _chosen(result, model)
    columns = columns_of(posterior)
    used = posterior.weights > 0
    return MCSamples(
        samples=np.stack(list(columns.values()), axis=1)[used],
        weights=posterior.weights[used],
        loglikes=-(posterior.log_likelihood + posterior.log_prior)[used],
        names=[_bare(name) for name in columns],
        labels=[name.replace("_", r"\_") for name in columns],
        label=posterior.name,
        settings={"ignore_rows": 0},
    )


def _bare(name: str) -> str:
    """GetDist reads * and ? in names as wildcards, and blanks as ends."""
    return "".join("_" if c in " *?" else c for c in name)


def to_anesthetic(result: Comparison, model: str | None = None) -> Any:
    """See `Comparison.to_anesthetic`."""
    try:
        from anesthetic import MCMCSamples
    except ImportError:
        raise SupermodelError(
            "anesthetic is not installed. Install it with: pip install 'supermodel-bayes[anesthetic]'."
        ) from None
    posterior = _chosen(result, model)
    columns = columns_of(posterior)
    used = posterior.weights > 0
    return MCMCSamples(
        data=np.stack(list(columns.values()), axis=1)[used],
        columns=list(columns),
        weights=posterior.weights[used],
        logL=posterior.log_likelihood[used],
        label=posterior.name,
    )
