"""What comes out of a comparison: frozen, plain data, ready to be shown and stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate, Evidences
from supermodel.verdict import Verdict

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class ModelPosterior:
    r"""Weighted draws of one model's posterior, in the user's coordinates."""

    name: str
    parameters: dict[str, np.ndarray]  # {parameter: (n, ...)}
    log_weights: np.ndarray  # (n,), normalised: the sum of exp is 1
    log_likelihood: np.ndarray  # (n,)
    log_prior: np.ndarray  # (n,), in unconstrained coordinates
    chain: np.ndarray  # (n,): which chain a draw comes from

    @property
    def weights(self) -> np.ndarray:
        return np.exp(self.log_weights)

    @property
    def effective_size(self) -> float:
        """$1 / \\sum w^2$."""
        return float(1.0 / np.sum(self.weights**2))

    def mean(self, parameter: str) -> np.ndarray:
        return np.tensordot(self.weights, self.parameters[parameter], axes=1)

    def sd(self, parameter: str) -> np.ndarray:
        centred = self.parameters[parameter] - self.mean(parameter)
        return np.sqrt(np.tensordot(self.weights, centred**2, axes=1))

    def resample(self, n: int, seed: int = 0) -> dict[str, np.ndarray]:
        """`n` equally weighted draws."""
        rows = np.random.default_rng(seed).choice(len(self.log_weights), size=n, p=self.weights / self.weights.sum())
        return {name: values[rows] for name, values in self.parameters.items()}


@dataclass(frozen=True, eq=False)
class EdgeRecord:
    """The record of one two-model supermodel on its ladder: all that its estimators and plots need."""

    first: str
    second: str
    table: np.ndarray  # (M, 2): weights of the rungs; rung 0 is `second` alone
    log_prior: np.ndarray  # (M,): the balance
    rung: np.ndarray  # (chains, draws)
    log_joints: np.ndarray  # (chains, draws, 2)
    report: dict[str, float]  # the figures of the checks


@dataclass(frozen=True, eq=False)
class Comparison:
    """Bayes factors with errors and a verdict. Natural logarithms; models by name."""

    evidences: Evidences
    verdict: Verdict
    evaluations: dict[str, int]
    posteriors: dict[str, ModelPosterior]
    edges: tuple[EdgeRecord, ...]
    seed: int
    prior_odds: dict[str, float]
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = float("nan")
    models: Mapping[str, Any] | None = None  # the user's models, absent after loading from a file
    data: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.evidences.names

    def log_bayes_factor(self, first: str, second: str) -> Estimate:
        """ln Z_first - ln Z_second."""
        return self.evidences.log_bayes_factor(first, second)

    def log_evidence(self, name: str) -> Estimate:
        """ln Z of one model."""
        return self.evidences.log_evidence(name)

    @cached_property
    def probabilities(self) -> dict[str, float]:
        """Posterior probabilities of the models at `prior_odds`."""
        return self.probabilities_for(self.prior_odds)

    def probabilities_for(self, prior_odds: Mapping[str, float]) -> dict[str, float]:
        """Posterior probabilities of the models for other prior odds."""
        odds = checked_odds(prior_odds, self.names)
        with np.errstate(divide="ignore"):
            logs = self.evidences.values + np.log([odds[name] for name in self.names])
        logs = logs - np.logaddexp.reduce(logs)
        return {name: float(p) for name, p in zip(self.names, np.exp(logs), strict=True)}

    def posterior(self, name: str) -> ModelPosterior:
        """The posterior of one model."""
        self.evidences.index(name)
        return self.posteriors[name]


def checked_odds(prior_odds: Mapping[str, float], names: tuple[str, ...]) -> dict[str, float]:
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
