r"""What can be said of a record: correlation, convergence, occupancy, and the weight of tails.

Plain arrays have chains first: `x` is (chains, draws). NaN stays NaN; a series that never moves has no
autocorrelation time (NaN: nothing is known of it), and no effective size ever exceeds the number of draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from supermodel.estimation.conditional import weights_of
from supermodel.estimation.error import as_chains, autocorrelation_time, is_constant
from supermodel.estimation.error import autocorrelation as autocorrelation
from supermodel.estimation.error import covariance_of_means as covariance_of_means
from supermodel.estimation.error import effective_size as effective_size
from supermodel.estimation.error import standard_error as standard_error
from supermodel.estimation.tail import pareto_k as pareto_k
from supermodel.verdict.convergence import halves, normal_scores, potential_scale_reduction

if TYPE_CHECKING:
    from supermodel.sampling.draws import Draws


def split_rhat(x: np.ndarray, rank_normalized: bool = False) -> float:
    r"""$\hat R = \sqrt{\frac{n-1}{n} + \frac{B}{nW}}$ of the half chains: 1 when they agree; the paper asks for < 1.05.

    `rank_normalized` replaces x by normal scores of its ranks first, which sees through heavy tails (Vehtari et al.
    2021). NaN for constants and for fewer than four draws.
    """
    x = as_chains(x)
    if x.shape[1] < 4 or not np.all(np.isfinite(x)) or is_constant(x):
        return math.nan
    return potential_scale_reduction(halves(normal_scores(x) if rank_normalized else x))


@dataclass(frozen=True)
class Thinning:
    r"""What the paper's rule (raise the step until $\tau < 10$) keeps, and what it hides.

    Treating the kept draws as independent claims an error too small by $\sqrt\tau$.
    """

    step: int
    tau: float  # of the draws that are kept, in units of kept draws
    kept: int  # the number of draws that are claimed to be independent
    effective: float  # the number of independent draws that they are worth
    is_reached: bool


def thinning(x: Draws | np.ndarray, limit: float = 10.0) -> Thinning:
    r"""Raise the step until the autocorrelation time of what is kept is below `limit`; of alpha when given draws."""
    x = as_chains(x if isinstance(x, np.ndarray) else _first_weight(x))
    step, tau = 1, autocorrelation_time(x)
    while tau >= limit and x[:, :: step + 1].shape[1] >= 8:
        step = max(step + 1, int(step * tau / limit))
        tau = autocorrelation_time(x[:, ::step])
    kept = x[:, ::step]
    # A chain of 30 draws cannot show a tau of 100: believe a tau only if the chain holds ten of them.
    is_reached = bool(tau < limit and kept.shape[1] >= 10 * tau)
    return Thinning(step, tau, kept.size, kept.size / max(tau, 1.0), is_reached)


def _first_weight(draws: Draws) -> np.ndarray:
    coordinate = draws.supermodel.coordinate
    return weights_of(draws)[..., 0] if coordinate.is_simplex or coordinate.is_discrete else draws.alpha


def end_bin_counts(draws: Draws, width: float = 0.01) -> dict[str, int]:
    """Draws within `width` (a fraction of the interval) of each model's end: all that an end-point density rests on."""
    coordinate = draws.supermodel.coordinate
    if hasattr(coordinate, "ends"):
        reach = width * abs(coordinate.ends[0] - coordinate.ends[1])
        return {
            n: int(np.sum(np.abs(draws.alpha - e) <= reach)) for n, e in zip(draws.names, coordinate.ends, strict=True)
        }
    near = weights_of(draws) >= 1.0 - width
    return {name: int(near[..., k].sum()) for k, name in enumerate(draws.names)}


@dataclass(frozen=True, eq=False)
class Crossings:
    """Passages from one model to another, and round trips through all of them, chain by chain."""

    passages: np.ndarray  # (chains,)
    round_trips: np.ndarray  # (chains,)


def crossings(draws: Draws) -> Crossings:
    """How often each chain passes between models; a chain without a round trip knows only its own side.

    A draw is on a model's side when that model has more than half of the weight (on a ladder that has the corners:
    all of it); between, it belongs to the side it came from.
    """
    coordinate = draws.supermodel.coordinate
    has_corners = coordinate.is_discrete and all(coordinate.corner(k) is not None for k in range(coordinate.n_models))
    w = weights_of(draws)
    side = np.where(w.max(axis=-1) >= (1.0 if has_corners else 0.5), w.argmax(axis=-1), -1)
    walks = [s[s >= 0] for s in side]
    passages = np.array([int(np.count_nonzero(np.diff(s))) for s in walks])
    return Crossings(passages, np.array([_tours(s, coordinate.n_models) // 2 for s in walks]))


def _tours(walk: np.ndarray, n_models: int) -> int:
    """How often all models have been seen, counted afresh after each time."""
    moves = walk[np.concatenate([[True], np.diff(walk) != 0])] if len(walk) else walk
    tours, seen = 0, set()
    for model in moves.tolist():
        seen.add(model)
        if len(seen) == n_models:
            tours, seen = tours + 1, {model}
    return tours


def aic(max_log_likelihood: float, n_parameters: int) -> float:
    r"""Akaike: $2k - 2 \ln L_{max}$; lower is better."""
    return 2.0 * n_parameters - 2.0 * max_log_likelihood


def bic(max_log_likelihood: float, n_parameters: int, n_data: int) -> float:
    r"""Schwarz: $k \ln n - 2 \ln L_{max}$; half of a difference is a crude $-\ln B$."""
    return n_parameters * math.log(n_data) - 2.0 * max_log_likelihood
