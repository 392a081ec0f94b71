r"""The posterior of each model as weighted draws, from any record by reweighting: no likelihood is called again.

Every draw, wherever its alpha was, serves model k with the weight $J_k(u) / q(u)$, where q is what the pooled draws follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.estimation.error import standard_error
from supermodel.estimation.mbar import log_pooled
from supermodel.jax_scope import in_float64
from supermodel.sampling.draws import Draws


@dataclass(frozen=True, eq=False)
class ModelPosterior:
    r"""Weighted draws of one model's posterior, in the user's coordinates."""

    name: str
    parameters: dict[str, np.ndarray]  # {parameter: (n, ...)}
    log_weights: np.ndarray  # (n,), normalised: the sum of exp is 1
    log_likelihood: np.ndarray  # (n,)
    log_prior: np.ndarray  # (n,), in unconstrained coordinates
    chain: np.ndarray  # (n,): which chain a draw comes from
    record: int = -1  # which edge (or 0, the chain) the draws are those of; -1: of no record

    @property
    def weights(self) -> np.ndarray:
        return np.exp(self.log_weights)

    @property
    def n_chains(self) -> int:
        """The number of chains, if all are of one length and in order; otherwise 1."""
        n = int(self.chain.max(initial=0)) + 1
        even = len(self.chain) % n == 0 and np.array_equal(self.chain, np.repeat(np.arange(n), len(self.chain) // n))
        return n if even else 1

    @property
    def effective_size(self) -> float:
        r"""$1 / \sum w^2$."""
        return float(1.0 / np.sum(self.weights**2))

    def average(self, values: np.ndarray) -> np.ndarray:
        """Posterior mean of any quantity, given its value at each draw (n, ...)."""
        # A draw without weight counts for nothing, even where the quantity is infinite there.
        used = self.weights > 0
        return np.tensordot(self.weights[used], np.asarray(values)[used], axes=1)

    def average_error(self, values: np.ndarray) -> np.ndarray:
        """Standard error of `average`, allowing for the weights and for the correlation along chains."""
        w = self.weights
        with np.errstate(invalid="ignore"):
            centred = np.asarray(values) - self.average(values)
        shape = (self.n_chains, -1)
        flat = np.where(w[:, None] > 0, len(w) * w[:, None] * centred.reshape(len(w), -1), 0.0)
        errors = [standard_error(column.reshape(shape)) for column in flat.T]
        return np.array(errors).reshape(centred.shape[1:])

    def mean(self, parameter: str) -> np.ndarray:
        return self.average(self.parameters[parameter])

    def sd(self, parameter: str) -> np.ndarray:
        centred = self.parameters[parameter] - self.mean(parameter)
        return np.sqrt(self.average(centred**2))

    def mean_error(self, parameter: str) -> np.ndarray:
        return self.average_error(self.parameters[parameter])

    def resample(self, n: int, seed: int = 0) -> dict[str, np.ndarray]:
        """`n` equally weighted draws."""
        rows = self.rows(n, seed)
        return {name: values[rows] for name, values in self.parameters.items()}

    def rows(self, n: int, seed: int = 0) -> np.ndarray:
        """Indices of `n` equally weighted draws, by systematic resampling: equal weights give every draw once."""
        steps = np.cumsum(self.weights / self.weights.sum())
        points = (np.random.default_rng(seed).random() + np.arange(n)) / n
        return np.minimum(np.searchsorted(steps, points), len(steps) - 1)


def posteriors(models: Mapping[str, Any], records: Sequence[Draws]) -> dict[str, ModelPosterior]:
    """The posterior of every model, each from the record that tells most about it."""
    found: dict[str, ModelPosterior] = {}
    for i, draws in enumerate(records):
        pooled = log_pooled(draws).ravel()
        for k, name in enumerate(draws.names):
            if name in models:
                here = _from_record(draws, k, pooled, list(models[name].space.names), i)
                if name not in found or here.effective_size > found[name].effective_size:
                    found[name] = here
    return {name: found[name] for name in models}


def _from_record(draws: Draws, k: int, pooled: np.ndarray, parameters: list[str], record: int) -> ModelPosterior:
    supermodel = draws.supermodel
    log_joint = draws.log_joints[..., k].ravel()
    u = draws.position.reshape(len(log_joint), supermodel.dimension)
    joint = supermodel.joints[k]
    x = (
        u[:, supermodel.places[k]]
        if supermodel.warps is None
        else supermodel.warps[k].points(u[:, supermodel.places[k]])
    )
    log_weights = log_joint - pooled
    log_prior, values = joint.space.log_prior_at(x), joint.space.values_at(x)
    with np.errstate(invalid="ignore"):  # a model that is impossible at all draws has no posterior: its weights are NaN
        log_weights = log_weights - np.logaddexp.reduce(log_weights)
        log_likelihood = log_joint - log_prior - _log_rest(draws, k, u)
    log_likelihood = np.where(np.isneginf(log_joint), -np.inf, log_likelihood)
    chain = np.repeat(np.arange(draws.n_chains), draws.n_draws)
    # In the user's order of parameters, not in that of the packing.
    return ModelPosterior(
        joint.name, {name: values[name] for name in parameters}, log_weights, log_likelihood, log_prior, chain, record
    )


@in_float64
def _log_rest(draws: Draws, k: int, u: np.ndarray) -> np.ndarray:
    r"""$\ln q_k$ of what model k does not own, with the Jacobian of its warp."""
    import jax

    supermodel = draws.supermodel
    if supermodel.warps is None:
        return np.asarray(jax.jit(jax.vmap(lambda point: supermodel.log_companion(k, point)))(u))
    return supermodel.warps[k].log_det_at(u[:, supermodel.places[k]]) + supermodel.log_companion_at(k, u)
