"""A Bayes factor in words: who is favoured over whom, by how much, on which scale, and whether to believe it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import ndtri

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import shown
from supermodel.report.scales import DEFAULT, SIGMAS, Scale
from supermodel.report.scales import scale as chosen_scale

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison


@dataclass(frozen=True)
class Bound:
    """ln B(first : second) above (`side` ">") or below ("<") `value`, with probability `level`.

    The value is NaN where not even a limit is known.
    """

    first: str
    second: str
    side: str
    value: float
    level: float

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.value)

    def __str__(self) -> str:
        if not self.is_known:
            return f"ln B({self.first} : {self.second}) is unknown, without even a limit"
        return f"ln B({self.first} : {self.second}) {self.side} {self.value:.1f} at {100 * self.level:.3g}%"


def bound_of(result: Comparison, first: str, second: str, level: float = 0.95) -> Bound:
    """The one-sided limit on the far side of nothing: towards 0 from the value.

    Where the error is infinite the value itself is the limit (that is how the estimators say so), at the probability
    that they state; where it is finite the limit is value ∓ z(level) errors.
    """
    estimate = result.log_bayes_factor(first, second)
    side = ">" if estimate.value >= 0 else "<"
    if math.isinf(estimate.error):
        value, level = estimate.value, _stated_probability(result)
    else:
        reach = float(ndtri(level)) * estimate.error
        value = estimate.value - reach if side == ">" else estimate.value + reach
    # An infinite value comes from a model that no draw gave any share: how small it is nobody has seen.
    return Bound(first, second, side, value if math.isfinite(value) else math.nan, level)


def _stated_probability(result: Comparison) -> float:
    details = result.evidences.details
    limit = details.get("limit")
    if isinstance(limit, Mapping) and "probability" in limit:
        return float(limit["probability"])
    return float(details.get("limit_probability", 0.95))


@dataclass(frozen=True)
class Interpretation:
    """One Bayes factor in words. `band` is None where the interval touches several bands, or nothing may be claimed."""

    first: str
    second: str
    estimate: Estimate
    scale: Scale
    band: str | None
    headline: str  # the number: who, over whom, how much
    meaning: str  # the words: band or bands, and odds
    level: str  # of the verdict on this pair

    def __str__(self) -> str:
        return f"{self.headline}: {self.meaning}"


def default_pair(result: Comparison, first: str | None, second: str | None) -> tuple[str, str]:
    """`first` and `second`, or the best model and the best of the others."""
    for name in (first, second):
        if name is not None:
            result.evidences.index(name)
    if len(result.names) < 2:
        raise SupermodelError("a Bayes factor needs two models; this result holds one. Use log_evidence(name).")
    if first is None:
        first = next(name for name in result.ranking if name != second)
    if second is None:
        second = next(name for name in result.ranking if name != first)
    return first, second


def interpret(
    result: Comparison,
    first: str | None = None,
    second: str | None = None,
    scale: str | Scale | Mapping[str, float] = DEFAULT,
    sigmas: float = SIGMAS,
) -> Interpretation:
    """See `Comparison.interpret`."""
    first, second = default_pair(result, first, second)
    estimate, chosen, level = (
        result.log_bayes_factor(first, second),
        chosen_scale(scale),
        result.verdict_between(first, second).level,
    )
    label = f"ln B({first} : {second})"
    if level == "fail" or math.isnan(estimate.value):
        headline = f"{label} = {shown(estimate)}, not to be used"
        return Interpretation(
            first, second, estimate, chosen, None, headline, "the checks failed; nothing can be concluded", "fail"
        )
    winner, loser = (first, second) if estimate.value >= 0 else (second, first)
    if level == "limit":
        bound = bound_of(result, first, second)
        band, meaning = _limit_in_words(bound, chosen, winner, loser)
        return Interpretation(first, second, estimate, chosen, band, str(bound), meaning, level)
    touched = chosen.touched(estimate, sigmas)
    low, high = estimate.interval(sigmas)
    headline = f"{label} = {shown(estimate)}"
    if low < 0 < high:
        span = touched[0] if len(touched) == 1 else f"{touched[0]} to {touched[-1]}"
        meaning = f"the sign is not settled; {span} ({chosen.name}, {sigmas:g}σ)"
    elif len(touched) == 1:
        limits = chosen.limits(chosen.words.index(touched[0]))
        claim = f"{touched[0]} evidence for {winner} over {loser}"
        if touched[0] == "inconclusive":
            claim = f"inconclusive between {winner} and {loser}"
        meaning = f"{claim} ({chosen.name}: {limits})"
    else:
        meaning = (
            f"between {touched[0]} and {touched[-1]} evidence for {winner} over {loser} "
            f"({chosen.name}; the {sigmas:g}σ interval {low:.2f} to {high:.2f} touches {len(touched)} bands)"
        )
    band = touched[0] if len(touched) == 1 else None
    return Interpretation(first, second, estimate, chosen, band, headline, meaning, level)


def _limit_in_words(bound: Bound, scale: Scale, winner: str, loser: str) -> tuple[str | None, str]:
    """(band, meaning) of a limit; the band only where no stronger one is left."""
    if not bound.is_known:
        return None, f"the draws say nothing of how far {winner} and {loser} are apart"
    if (bound.value >= 0) != (bound.side == ">"):
        return None, f"the sign is not settled between {winner} and {loser}"
    weakest = scale.index(bound.value)
    word, last = scale.words[weakest], weakest == len(scale.words) - 1
    claim = f"{'' if last else 'at least '}{word} evidence for {winner} over {loser}"
    return (word if last else None), f"{claim} ({scale.name}: {scale.limits(weakest)})"
