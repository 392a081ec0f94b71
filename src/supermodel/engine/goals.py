"""When a run ends: an error, a decision, or a budget."""

from __future__ import annotations

import time
from dataclasses import dataclass

from supermodel.estimation.estimate import Estimate
from supermodel.results.posterior import CONVERGED, ModelPosterior


@dataclass(frozen=True)
class Goals:
    """When to stop."""

    target_error: float = 0.1
    decide: tuple[float, float] | None = None
    max_evaluations: int | None = None
    max_seconds: float | None = None
    min_ess: float | None = None

    def is_decided(self, log_bayes_factor: Estimate) -> bool:
        """Whether the 2-sigma interval of ln B(first, second) lies wholly above, below or between the two bars."""
        if self.decide is None:
            return False
        low, high = self.decide
        least, most = log_bayes_factor.interval(2.0)
        return least > high or most < low or (low < least and most < high)

    def is_short(self, posterior: ModelPosterior) -> bool:
        """Whether a posterior has fewer effective draws than were asked for, or chains that do not agree to the usual standard."""
        if self.min_ess is None:
            return False
        return posterior.worst_ess < self.min_ess or posterior.worst_rhat > CONVERGED

    def over_budget(self, evaluations: int, began: float, patience: float = float("inf")) -> str:
        """Which limit has been met, or ""; `patience` is the limit on evaluations where the user sets none."""
        if evaluations >= (self.max_evaluations or patience):
            return "max_evaluations"
        if self.max_seconds is not None and time.monotonic() - began >= self.max_seconds:
            return "max_seconds"
        return ""
