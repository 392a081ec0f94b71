"""Whether an answer can be trusted: a level and the reasons for it, in codes and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from supermodel.estimation.correlation import effective_size, mcse
from supermodel.estimation.shares import influence_of, log_mean_exp, log_shares
from supermodel.estimation.tail import pareto_k
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import crossings, split_rhat

LEVELS = ("ok", "caution", "limit", "fail")
EXIT_CODES = {"ok": 0, "caution": 0, "limit": 3, "fail": 4}

CODES: dict[str, str] = {
    "few_crossings": "The chains went from one model to the other too seldom.",
    "rhat": "Chains disagree on the share of a model (split R-hat).",
    "small_ess": "Too few effective draws.",
    "heavy_tail": "The weights that carry the answer are heavy-tailed (Pareto k).",
    "estimators_disagree": "Two estimators from the same draws differ by more than their errors.",
    "long_path": "The path between two ends is long: a posterior far from anything simple.",
    "start_dependent": "Chains started in one model give another answer than chains started in the other.",
    "drift": "The first and the second half of the run differ.",
    "pilot_disagrees": "The pilot's own estimate of an evidence differs from the final one.",
    "target_not_reached": "The run ended before the error met its target.",
    "interrupted": "The run was stopped by hand or by a limit.",
    "never_visited": "A model was never visited; only a limit can be given.",
}


class Reason(NamedTuple):
    """One reason: its code and a plain sentence with the figures."""

    code: str
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """`level`: ok (trust it), caution (trust it, but read), limit (a bound only), fail (do not use)."""

    level: str = "ok"
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self):
        if self.level not in LEVELS:
            raise ValueError(f"a verdict's level is one of {LEVELS}, not {self.level!r}.")

    @property
    def is_reliable(self) -> bool:
        return self.level in ("ok", "caution")

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.level]

    def __str__(self) -> str:
        return "\n".join([self.level] + [f"  {code}: {sentence}" for code, sentence in self.reasons])


def worst(found: list[tuple[str, Reason]]) -> Verdict:
    """The verdict that several findings (level, reason) add up to."""
    level = max((level for level, _ in found), key=LEVELS.index, default="ok")
    ordered = sorted(found, key=lambda item: -LEVELS.index(item[0]))
    return Verdict(level, tuple(reason for _, reason in ordered))


def verdict_of(draws: Draws) -> Verdict:
    """The verdict on a record of any supermodel: whether its Rao-Blackwell (or counted) Bayes factors can be trusted.

    Four things are asked of the chains: that they pass between the models, that they agree on each model's share, that
    the share rests on many draws, and that what alpha itself did agrees with what the draws say of it.
    """
    terms = log_shares(draws)
    influence = influence_of(terms, log_mean_exp(terms))
    found: list[tuple[str, Reason]] = []
    passages = int(crossings(draws).passages.sum())
    if passages < 5 * draws.n_chains:
        level = "fail" if passages < draws.n_chains else "caution"
        sentence = f"{draws.n_chains} chains passed between models {passages} times in all; five times each are wanted."
        found.append((level, Reason("few_crossings", sentence)))
    for k, name in enumerate(draws.names):
        found += _on_share(name, influence[..., k], terms[..., k])
    found += _on_occupancy(draws, terms)
    return worst(found)


def _on_share(name: str, influence: np.ndarray, terms: np.ndarray) -> list[tuple[str, Reason]]:
    found = []
    if not np.all(np.isfinite(influence)):
        return [
            ("limit", Reason("never_visited", f"no draw gives model {name!r} any share; only a limit can be given."))
        ]
    rhat = split_rhat(influence)
    if rhat > 1.05:
        level = "fail" if rhat > 1.2 else "caution"
        found.append(
            (level, Reason("rhat", f"split R-hat of the share of {name!r} is {rhat:.2f}; below 1.05 is wanted."))
        )
    ess = effective_size(influence)
    if ess < 200:
        level = "fail" if ess < 50 else "caution"
        found.append(
            (level, Reason("small_ess", f"the share of {name!r} rests on {ess:.0f} effective draws; 200 are wanted."))
        )
    k = pareto_k(terms)
    largest = float(np.exp(terms.max() - np.logaddexp.reduce(terms, axis=None)))
    if largest > 0.01:
        level = "fail" if largest > 0.1 else "caution"
        sentence = f"a single draw holds {largest:.0%} of the share of {name!r} (Pareto k {k:.2f}); below 1% is wanted."
        found.append((level, Reason("heavy_tail", sentence)))
    return found


def _on_occupancy(draws: Draws, terms: np.ndarray) -> list[tuple[str, Reason]]:
    """Where alpha was against where the draws say it should have been: the two differ if alpha is stuck."""
    weight = draws.weights[..., 0]
    expected = _expected_weight(draws)
    if expected is None:
        return []
    gap = weight - expected
    error = mcse(gap)
    z = abs(gap.mean()) / error if error > 0 else 0.0
    if not z > 4:
        return []
    told = f"is {weight.mean():.4f}; its draws imply {expected.mean():.4f} ({z:.1f} errors)."
    sentence = f"the mean weight of {draws.names[0]!r} {told}"
    return [("fail" if z > 6 else "caution", Reason("estimators_disagree", sentence))]


def _expected_weight(draws: Draws) -> np.ndarray | None:
    """E[w_first | u] of a mixture on a line with a flat prior, in closed form; None for other supermodels."""
    supermodel = draws.supermodel
    if supermodel.combine != "mixture" or supermodel.coordinate.is_discrete or supermodel.coordinate.is_simplex:
        return None
    nodes, quadrature = np.polynomial.legendre.leggauss(64)
    coordinate: Any = supermodel.coordinate
    low, high = coordinate.low, coordinate.high
    alpha = low + 0.5 * (high - low) * (nodes + 1)
    density = quadrature * np.exp(supermodel.coordinate.log_prior_of(alpha))
    w = supermodel.coordinate.weights_of(alpha)  # (64, K)
    scaled = draws.log_joints + supermodel.tilt
    scaled = np.exp(scaled - scaled.max(axis=-1, keepdims=True))  # (chains, draws, K)
    mixed = scaled @ (w * density[:, None]).T
    return (mixed @ w[:, 0]) / mixed.sum(-1)
