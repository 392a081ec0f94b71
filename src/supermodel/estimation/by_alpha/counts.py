r"""Counting visits: the discrete index, and the corners of any ladder."""

from __future__ import annotations

import math

import numpy as np

from supermodel.embedding.coordinate import Ladder
from supermodel.errors import SupermodelError
from supermodel.estimation.conditional import weights_of
from supermodel.estimation.error import autocorrelation_time, covariance_of_means
from supermodel.estimation.estimate import Evidences
from supermodel.sampling.draws import Draws

PROBABILITY = 0.95  # of the one-sided limit for a model that was never visited


def counts(draws: Draws) -> Evidences:
    r"""$\ln Z_k = \ln n_k - \ln p_k - \eta_k$ + const: visits to the corner of model k over its prior probability.

    Never better than `shares`, and it needs the chains to jump between the models; its error allows for
    autocorrelation of the visits. A model that was never visited has an infinite error, its value is the one-sided
    limit $n_k = -\tau\ln 0.05$, and `details["limit"]` says so for each: {name: ln Z_k below that of the model
    most visited by at least this much}. The limit supposes that jumps were tried throughout with the correlation of
    the record; a sampler that cannot jump proves nothing.
    """
    coordinate = draws.supermodel.coordinate
    if not isinstance(coordinate, Ladder):
        raise SupermodelError(
            "visits can be counted only on rungs; a continuous alpha is at a corner with probability zero. "
            "Use `shares` or `line_fit`, or combine='index'."
        )
    at_corner = weights_of(draws) == 1.0
    log_prior = np.array(
        [np.logaddexp.reduce(np.asarray(coordinate.log_prior_table)[w == 1.0]) for w in coordinate.table.T]
    )
    if not np.all(np.isfinite(log_prior)):
        raise SupermodelError("this ladder has no rung at some of its models, so there is nothing to count there.")
    offset = log_prior + draws.supermodel.tilt
    visits = at_corner.sum(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(visits) - offset
        covariance = covariance_of_means(at_corner / np.where(visits > 0, visits / at_corner[..., 0].size, np.nan))
    details: dict = {"estimator": "counts", "visits": dict(zip(draws.names, visits.tolist(), strict=True))}
    if np.any(visits == 0):
        _set_limits(draws, visits, values, offset, details)
    return Evidences(draws.names, values, covariance, False, details)


def _set_limits(draws: Draws, visits: np.ndarray, values: np.ndarray, offset: np.ndarray, details: dict) -> None:
    r"""Fill in, for models never visited, the value that fewer than $-\ln 0.05$ expected effective visits allow."""
    best = int(np.argmax(visits))
    limits = {}
    for k in np.flatnonzero(visits == 0):
        # The visits are constant and tell no correlation; the odds between the two models, which drive the jumps, do.
        tau = autocorrelation_time(draws.log_joints[..., k] - draws.log_joints[..., best])
        tau = max(tau, 1.0) if math.isfinite(tau) else float(draws.n_draws)
        values[k] = math.log(-math.log(1 - PROBABILITY) * tau) - offset[k]
        limits[draws.names[k]] = float(values[k] - values[best])
    details["limit"] = limits
    details["limit_relative_to"] = draws.names[best]
    details["limit_probability"] = PROBABILITY
