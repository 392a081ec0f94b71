r"""Prior odds, and what the evidences make of them: $p_k = q_k Z_k / \sum_j q_j Z_j$."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Evidences


def probabilities(
    evidences: Evidences, prior_odds: Mapping[str, float], excluded: Collection[str] = ()
) -> dict[str, float]:
    """Posterior probabilities of the models, among those that are not excluded; of the excluded ones NaN."""
    odds = checked_odds(prior_odds, evidences.names)
    left = np.array([name not in excluded for name in evidences.names])
    with np.errstate(divide="ignore", invalid="ignore"):  # odds of 0; an unknown evidence leaves all unknown
        logs = np.where(left, evidences.values, -np.inf) + np.log(list(odds.values()))
        logs = np.where(left, logs - np.logaddexp.reduce(logs), np.nan)
    return dict(zip(evidences.names, np.exp(logs).tolist(), strict=True))


def probability_errors(
    evidences: Evidences, prior_odds: Mapping[str, float], excluded: Collection[str] = ()
) -> dict[str, float]:
    r"""Their standard errors: $\partial p_k / \partial \ln Z_j = p_k (\delta_{kj} - p_j)$."""
    found = probabilities(evidences, prior_odds, excluded)
    left = [k for k, name in enumerate(evidences.names) if name not in excluded]
    p = np.array([found[evidences.names[k]] for k in left])
    slope = np.diag(p) - np.outer(p, p)
    with np.errstate(invalid="ignore"):
        variance = np.einsum("kj,ji,ki->k", slope, evidences.covariance[np.ix_(left, left)], slope)
    errors = dict(zip((evidences.names[k] for k in left), np.sqrt(np.maximum(variance, 0.0)).tolist(), strict=True))
    return {name: errors.get(name, float("nan")) for name in evidences.names}


def checked_odds(prior_odds: Mapping[str, float], names: tuple[str, ...]) -> dict[str, float]:
    """Prior odds as probabilities, after checks."""
    unknown, missing = set(prior_odds) - set(names), set(names) - set(prior_odds)
    if unknown or missing:
        raise SupermodelError(
            f"prior odds are needed for exactly the models {', '.join(names)}; "
            f"unknown {sorted(unknown)}, missing {sorted(missing)}."
        )
    values = np.array([float(prior_odds[name]) for name in names])
    if not (np.all(np.isfinite(values)) and np.all(values >= 0) and values.sum() > 0):
        raise SupermodelError(f"prior odds must be finite, not negative, and not all zero; got {dict(prior_odds)}.")
    return dict(zip(names, values / values.sum(), strict=True))
