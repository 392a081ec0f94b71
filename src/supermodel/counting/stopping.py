r"""When no more components are tried: $\sum_{k > K} \pi(k) Z_k$, as far as ln Z of the numbers up to K tells, is too small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from supermodel.engine.policy import COUNT_FALLS


@dataclass(frozen=True)
class Enough:
    r"""Whether more components are too improbable to be tried, from a rough ln Z of each number so far.

    Where $\ln Z$ has fallen twice in a row, by f nats at least, it is taken to fall on so: with K components tried
    $\ln Z_{K+j} = \ln Z_K - j f$. The first fall alone tells little: one of two change points is worth nothing without the other.
    """

    prior: Mapping[str, float]  # of each number, in order
    stop: float

    def __call__(self, rough: Mapping[str, float]) -> bool:
        return beyond(self.prior, rough) < self.stop


def beyond(prior: Mapping[str, float], log_evidences: Mapping[str, float]) -> float:
    """The probability of all larger numbers than those whose ln Z is known; 1 where it has not fallen twice."""
    names, known = list(prior), np.array(list(log_evidences.values()))
    steps = np.diff(known)[-COUNT_FALLS:]
    if len(known) == len(names):
        return 0.0
    if len(steps) < COUNT_FALLS or not np.all(steps < 0):
        return 1.0
    further = known[-1] + np.max(steps) * np.arange(1, len(names) - len(known) + 1)
    with np.errstate(divide="ignore"):
        logs = np.log([prior[name] for name in names]) + np.concatenate([known, further])
    return float(np.exp(np.logaddexp.reduce(logs[len(known) :]) - np.logaddexp.reduce(logs)))
