r"""Inclusion Bayes factors: what the data say about a term, whatever else is in the model.

$\ln B_{incl} = \ln \frac{\sum_{with} P(M \mid D)}{\sum_{without} P(M \mid D)} - \ln \frac{\sum_{with} P(M)}{\sum_{without} P(M)}$,
over all models; or over matched ones only: models that hold the term but no interaction with it, each against the same
model without the term (Mathôt 2017; JASP).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from supermodel.estimation.estimate import Estimate, Evidences
from supermodel.regressions.formula import Term
from supermodel.regressions.integral import log_sum


@dataclass(frozen=True)
class Inclusion:
    """One term: its prior and posterior probability, and ln B of including it; None where no models are matched."""

    term: str
    prior: float
    posterior: float
    log_bayes_factor: Estimate | None
    matched: Estimate | None


def inclusions(
    models: Mapping[str, Sequence[Term]], evidences: Evidences, odds: Mapping[str, float]
) -> list[Inclusion]:
    """The inclusion Bayes factors of every term."""
    names, sets = list(models), [frozenset(terms) for terms in models.values()]
    prior = np.array([odds[name] for name in names])
    log_posterior = evidences.values + np.log(np.maximum(prior, 1e-300))
    posterior = np.exp(log_posterior - log_sum(log_posterior))
    found = []
    for term in dict.fromkeys(t for terms in models.values() for t in terms):
        has = np.array([term in s for s in sets])
        wider = {t for s in sets for t in s if term.columns < t.columns}
        places = {s: i for i, s in enumerate(sets)}
        pairs = [
            (i, places[s - {term}]) for i, s in enumerate(sets) if term in s and not s & wider and s - {term} in places
        ]
        found.append(Inclusion(
            term.name, float(prior[has].sum()), float(posterior[has].sum()),
            _ratio(evidences, prior, np.flatnonzero(has), np.flatnonzero(~has)),
            _ratio(evidences, prior, *(np.array(side, int) for side in zip(*pairs, strict=True))) if pairs else None,
        ))  # fmt: skip
    return found


def _ratio(evidences: Evidences, prior: np.ndarray, first: np.ndarray, second: np.ndarray) -> Estimate | None:
    r"""ln of posterior over prior odds of two sets; its slope along $\ln Z_k$ is the share of k in its set."""
    if not (prior[first].sum() > 0 and prior[second].sum() > 0):
        return None
    value, slope = 0.0, np.zeros(len(prior))
    for sign, members in ((1, first), (-1, second)):
        logs = evidences.values[members] + np.log(np.maximum(prior[members], 1e-300))
        value += sign * (log_sum(logs) - np.log(prior[members].sum()))
        np.add.at(slope, members, sign * np.exp(logs - log_sum(logs)))
    return Estimate(float(value), float(np.sqrt(max(slope @ evidences.covariance @ slope, 0.0))))
