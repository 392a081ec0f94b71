r"""The posterior of each model as weighted draws, from any record by reweighting: no likelihood is called again.

Every draw, wherever its alpha was, serves model k with the weight $J_k(u) / q(u)$, where q is what the pooled draws follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.error import standard_error
from supermodel.estimation.mbar import log_pooled
from supermodel.jax_scope import in_float64
from supermodel.report.numbers import mean_and_sd, number
from supermodel.report.tables import (
    Cells,
    all_scalars,
    dressed,
    scalar_label,
    scalar_values,
    scalars,
    weighted_quantiles,
)
from supermodel.sampling.draws import Draws
from supermodel.verdict.convergence import bulk_ess, memory, rank_rhat

if TYPE_CHECKING:
    from supermodel.results.summary import Summary

CHAINS = 4  # that draws are handed out in: R-hat below 1.01 and 400 effective draws are a standard for four chains
MOST = 65_536  # equally weighted draws
ENOUGH, CONVERGED = 400.0, 1.01
STANDARD = (
    f"An ESS below {ENOUGH:.0f} or an R-hat above {CONVERGED} is below the usual standard for quantiles: min_ess={ENOUGH:.0f} "
    "asks for more draws."
)


class Convergence(NamedTuple):
    """Of one number: its effective draws, R-hat, and how probable it is that its chains only look as if they remembered."""

    ess: float
    rhat: float
    memory: float


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
    deriver: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = None  # of all draws at once
    circles: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # {periodic parameter: (lower end, turn)}
    symmetries: tuple[str, ...] = ()  # that were found, in words
    unfolder: Callable[[dict[str, np.ndarray], int], dict[str, np.ndarray]] | None = None  # draws, seed -> images

    @cached_property
    def derived(self) -> dict[str, np.ndarray]:
        """{deterministic site of a NumPyro or PyMC model: (n, ...)}, computed where it is first asked for."""
        return {} if self.deriver is None else self.deriver(self.parameters)

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
        r"""$1 / \sum w^2$: what the weights alone leave. Draws along a chain are correlated as well: see `ess`."""
        return float(1.0 / np.sum(self.weights**2))

    # -- what it rests on -----------------------------------------------------------------------------------------

    @cached_property
    def equal_rows(self) -> np.ndarray:
        """(chains, draws): indices of equally weighted draws, in four chains of which each holds several walkers.

        Within each chain by systematic resampling, in the order of the draws; all in one where a chain has hardly any weight.
        Of more than 65 536 draws every so many-th is taken: more say nothing new, and ranking them takes seconds.
        """
        walkers = self.n_chains
        chains = CHAINS if walkers % CHAINS == 0 else walkers
        weights = self.weights.reshape(chains, -1)
        totals, n = weights.sum(axis=1), weights.shape[1]
        if chains == 1 or not np.all(totals >= 0.1 / chains):
            return self.rows(min(len(self.weights), MOST))[None, :]
        below = np.cumsum(weights, axis=1) / totals[:, None]
        kept = min(n, MOST // chains)
        points = (np.arange(kept) + 0.5) / kept
        return np.stack([c * n + np.minimum(np.searchsorted(below[c], points), n - 1) for c in range(chains)])

    @cached_property
    def convergence(self) -> dict[tuple[str, tuple[int, ...]], Convergence]:
        """{(parameter, index): what it rests on}, by the usual definitions on equally weighted draws."""
        if not np.all(np.isfinite(self.weights)):
            return {scalar: Convergence(np.nan, np.nan, 1.0) for scalar in scalars(self)}
        return {(p, index): self._rests_on(self.straight(p)[:, *index]) for p, index in scalars(self)}

    def _rests_on(self, values: np.ndarray) -> Convergence:
        equal = values[self.equal_rows]
        walked = self.weights * (values - self.weights @ values)
        return Convergence(bulk_ess(equal), rank_rhat(equal), memory(walked.reshape(self.n_chains, -1)))

    def _by_index(self, parameter: str, measure: str) -> np.ndarray:
        values = self.straight(parameter)
        known = self.convergence if parameter in self.parameters else {}
        each = [
            known.get((parameter, index)) or self._rests_on(values[:, *index])
            for index in np.ndindex(*values.shape[1:])
        ]
        return np.array([getattr(one, measure) for one in each]).reshape(values.shape[1:])

    def ess(self, parameter: str) -> np.ndarray:
        """Effective draws of a parameter: the bulk ESS of rank-normalised half chains, as ArviZ has it of `to_arviz()`."""
        return self._by_index(parameter, "ess")

    def rhat(self, parameter: str) -> np.ndarray:
        """R-hat of a parameter, rank-normalised, of bulk or tails, whichever is worse; NaN where there is one chain."""
        return self._by_index(parameter, "rhat")

    @property
    def worst_ess(self) -> float:
        """The least ESS of all parameters; NaN if there are none."""
        return min((c.ess for c in self.convergence.values() if c.ess == c.ess), default=np.nan)

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat of all parameters; NaN if there are none."""
        return max((c.rhat for c in self.convergence.values() if c.rhat == c.rhat), default=np.nan)

    @property
    def short(self) -> bool:
        """Whether some parameter is below the usual standard."""
        return self.worst_ess < ENOUGH or self.worst_rhat > CONVERGED

    # -- what it says ---------------------------------------------------------------------------------------------

    def draws(self, parameter: str) -> np.ndarray:
        """(n, ...): the weighted draws of a parameter, or of a deterministic site."""
        if parameter not in self.parameters:
            if self.deriver is not None and parameter in self.derived:
                return self.derived[parameter]
            known = ", ".join(map(repr, self.parameters)) or "none"
            raise SupermodelError(f"model {self.name!r} has no parameter {parameter!r}; its parameters are {known}.")
        return self.parameters[parameter]

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

    def straight(self, parameter: str) -> np.ndarray:
        r"""(n, ...): the draws of a parameter; of one that goes round, within half a turn of its circular mean.

        The mean has the direction of $\langle e^{2 \pi i v / t} \rangle$ and lies within the prior; draws beyond the prior's ends
        are the same angles.
        """
        values = self.draws(parameter)
        if parameter not in self.circles:
            return values
        low, turn = self.circles[parameter]
        middle = (
            low + np.mod(np.angle(self.average(np.exp(2j * np.pi * (values - low) / turn))) / (2 * np.pi), 1) * turn
        )
        return middle + np.mod(values - middle + 0.5 * turn, turn) - 0.5 * turn

    def unfolded(self, seed: int = 0) -> ModelPosterior:
        """The symmetric posterior of a model that was sampled in one labelling: each draw as one of its images, any of them with
        one probability. Weights and evidence are the same.
        """
        if self.unfolder is None:
            return self
        return replace(self, parameters=self.unfolder(self.parameters, seed), symmetries=(), unfolder=None)

    def mean(self, parameter: str) -> np.ndarray:
        """Posterior mean; on a circle that of the draws as `straight` has them."""
        return self.average(self.straight(parameter))

    def sd(self, parameter: str) -> np.ndarray:
        centred = self.straight(parameter) - self.mean(parameter)
        return np.sqrt(self.average(centred**2))

    def mean_error(self, parameter: str) -> np.ndarray:
        return self.average_error(self.straight(parameter))

    def quantile(self, parameter: str, level: float | Sequence[float]) -> np.ndarray:
        """Quantiles of a parameter: of its shape for one level, (levels, ...) for several; on a circle about its mean."""
        levels = tuple(float(q) for q in np.atleast_1d(level))
        if not all(0 <= q <= 1 for q in levels):
            raise SupermodelError(f"a quantile's level is between 0 and 1; got {level!r}.")
        values = self.straight(parameter)
        flat = [weighted_quantiles(column, self.weights, levels) for column in values.reshape(len(values), -1).T]
        found = np.stack(flat, axis=-1).reshape(len(levels), *values.shape[1:])
        return found[0] if np.ndim(level) == 0 else found

    def summary(self) -> Summary:
        """Every number in the parameters: mean, its error, sd, quantiles, ESS and R-hat; a DataFrame."""
        from supermodel.results.summary import summary

        return summary({self.name: self}, {})

    def to_dataframe(self, equal_weights: bool = True) -> Any:
        """Draws as a pandas table, one column per number: equally weighted, or all with their `weight`."""
        import pandas as pd

        chains = self.equal_rows.shape
        rows = self.equal_rows.ravel() if equal_weights else np.arange(len(self.weights))
        columns = {scalar_label(*scalar): scalar_values(self, *scalar)[rows] for scalar in all_scalars(self)}
        extra = {
            "log_likelihood": self.log_likelihood[rows],
            "chain": np.repeat(np.arange(chains[0]), chains[1]) if equal_weights else self.chain,
            "weight": np.full(len(rows), 1.0 / len(rows)) if equal_weights else self.weights,
        }
        return pd.DataFrame({**columns, **extra})

    def cells(self) -> Cells:
        """Mean ± sd, ESS and R-hat of every number, as strings."""
        rows = [
            (
                scalar_label(p, i),
                mean_and_sd(float(self.mean(p)[i]), float(self.sd(p)[i])),
                number(c.ess, ".0f"),
                number(c.rhat, ".3f"),
            )
            for (p, i), c in self.convergence.items()
        ]
        return Cells(("parameter", "mean ± sd", "ESS", "R-hat"), tuple(rows))

    def __repr__(self) -> str:
        return f"Posterior of {self.name}, {len(self.weights)} weighted draws\n{self.cells()}"

    def _repr_html_(self) -> str:
        return dressed(f"Posterior of {self.name}", f"{len(self.weights)} weighted draws", self.cells().html())

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
