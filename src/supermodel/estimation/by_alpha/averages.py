r"""Model averages from the same record: any parameter, any prior odds, no new run (paper 2.3; errata 3.5).

Positions follow $\bar J(u)$, so the weights $\frac{q_k J_k(u)}{\bar J(u)}$ turn them into draws of model k with its
posterior probability at prior odds q; summed over k they are the model-averaged posterior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from supermodel.errors import SupermodelError
from supermodel.estimation.error import standard_error
from supermodel.estimation.mbar import log_pooled
from supermodel.sampling.draws import Draws

Odds = Mapping[str, float] | Sequence[float] | np.ndarray | None


@dataclass(frozen=True, eq=False)
class Average:
    """A model-averaged quantity: its moments with errors, and the weights that made them."""

    mean: np.ndarray  # (...), the shape of one value
    mean_error: np.ndarray
    sd: np.ndarray
    sd_error: np.ndarray
    weights: np.ndarray  # (chains, draws), sum 1
    probabilities: dict[str, float]  # of the models, at these prior odds
    effective_size: float  # 1/sum w^2: what the weighting leaves, correlation apart


def log_model_weights(draws: Draws, prior_odds: Odds = None) -> np.ndarray:
    r"""$\ln(q_k J_k/\bar J)$, normalised: (chains, draws, K). On a `product` path $\bar J$ is that of `mbar`.

    Trust them while `diagnostics.pareto_k` of them is below 0.7: odds that favour a model which the run hardly visited
    put all weight on a few draws.
    """
    with np.errstate(divide="ignore"):
        log_odds = np.log(_odds(draws, prior_odds))
    logs = draws.log_joints + log_odds - log_pooled(draws)[..., None]
    return logs - logsumexp(logs)


def _odds(draws: Draws, prior_odds: Odds) -> np.ndarray:
    if prior_odds is None:
        return np.ones(len(draws.names))
    given = prior_odds
    if isinstance(given, Mapping):
        if set(given) != set(draws.names):
            raise SupermodelError(f"`prior_odds` names {sorted(given)}, but the models are {sorted(draws.names)}.")
        given = [given[name] for name in draws.names]
    odds = np.asarray(given, float)
    if odds.shape != (len(draws.names),) or not np.all(np.isfinite(odds)) or np.any(odds < 0) or not odds.sum() > 0:
        raise SupermodelError(
            f"`prior_odds` must be one number >= 0 for each of {', '.join(draws.names)}, not all 0; got {prior_odds!r}."
        )
    return odds


def averaged(draws: Draws, values: str | np.ndarray, prior_odds: Odds = None) -> Average:
    r"""$E[v] = \sum_k P(M_k|D)\,E_k[v]$ and the spread about it, of a parameter or an array (chains, draws, ...).

    A parameter is averaged over the models that have it (their probabilities alone, made to sum to 1), each with its
    own value at the draw, as warped models see the same point differently. An array counts for all models.
    """
    owners = _owners(draws, values)
    odds = _odds(draws, prior_odds)
    probabilities = np.exp(logsumexp(log_model_weights(draws, odds), axis=(0, 1)))
    logs = log_model_weights(draws, odds * np.isin(draws.names, list(owners)))
    weights = np.exp(logs)
    columns = [np.asarray(_value(draws, values, name), float) for name in owners]
    shares = [weights[..., draws.names.index(name)] for name in owners]
    mean, mean_error = _moment(shares, columns)
    variance, variance_error = _moment(shares, [(c - mean) ** 2 for c in columns])
    sd = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        sd_error = np.where(sd > 0, variance_error / (2 * sd), 0.0)
    total = weights.sum(axis=-1)
    named = dict(zip(draws.names, probabilities.tolist(), strict=True))
    return Average(mean, mean_error, sd, sd_error, total, named, float(1.0 / np.sum(total**2)))


def _owners(draws: Draws, values: str | np.ndarray) -> tuple[str, ...]:
    if not isinstance(values, str):
        if np.shape(values)[:2] != draws.log_joints.shape[:2]:
            raise SupermodelError(
                f"`values` has the shape {np.shape(values)}; it must begin with {draws.log_joints.shape[:2]}."
            )
        return draws.names
    labels = draws.supermodel.owners
    if values not in labels:
        raise SupermodelError(f"there is no parameter {values!r}; there are {', '.join(labels)}.")
    return tuple(labels[values])


def _value(draws: Draws, values: str | np.ndarray, name: str) -> np.ndarray:
    if not isinstance(values, str):
        return np.asarray(values)
    supermodel = draws.supermodel
    points = np.asarray(draws.position).reshape(-1, supermodel.dimension)
    own = supermodel.values_of(supermodel.names.index(name), points)[supermodel.owners[values][name]]
    return np.reshape(own, (*draws.log_joints.shape[:2], *np.shape(own)[1:]))


def _moment(shares: list[np.ndarray], columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    r"""$\sum w v$ over draws and models, with the error of a ratio: influence $N w (v - \bar v)$."""
    tail = (1,) * (columns[0].ndim - 2)
    w = np.stack([share.reshape(*share.shape, *tail) for share in shares])
    # A weight of zero silences even a value that is not finite.
    v = np.where(w > 0, np.stack(columns), 0.0)
    mean = (w * v).sum(axis=(0, 1, 2))
    terms = (w * (v - mean)).sum(axis=0) * (w.shape[1] * w.shape[2])
    flat = terms.reshape(*terms.shape[:2], -1)
    error = np.array([standard_error(flat[..., i]) for i in range(flat.shape[-1])]).reshape(np.shape(mean))
    return np.asarray(mean), error
