r"""Words for Bayes factors: a band is named only if the whole interval lies in it.

The thresholds are in $|\ln B|$ and are always shown with the word, since the word alone says less than the number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate

SIGMAS = 2.0  # half the width of the interval that must lie in a band


@dataclass(frozen=True)
class Scale:
    """Bands of |ln B|: `words[i]` from `thresholds[i]` (in nats; the first is 0) up to the next."""

    name: str
    thresholds: tuple[float, ...]
    words: tuple[str, ...]
    source: str = ""

    def __post_init__(self):
        ordered = all(a < b for a, b in zip(self.thresholds, self.thresholds[1:], strict=False))
        if len(self.thresholds) != len(self.words) or not self.words or self.thresholds[0] != 0.0 or not ordered:
            raise SupermodelError(
                f"a scale needs one word for each lower threshold in |ln B|, rising from 0; got {self.thresholds} and "
                f"{self.words}. Write e.g. {{'weak': 0, 'clear': 3, 'overwhelming': 8}}."
            )

    def index(self, log_bayes_factor: float) -> int:
        """The band in which |ln B| lies."""
        return max(i for i, low in enumerate(self.thresholds) if abs(log_bayes_factor) >= low or i == 0)

    def limits(self, index: int) -> str:
        """The band in numbers: `2.5 ≤ |ln B| < 5`."""
        low = self.thresholds[index]
        high = self.thresholds[index + 1] if index + 1 < len(self.thresholds) else math.inf
        if index == 0:
            return f"|ln B| < {high:.3g}" if math.isfinite(high) else "any ln B"
        return f"|ln B| ≥ {low:.3g}" if math.isinf(high) else f"{low:.3g} ≤ |ln B| < {high:.3g}"

    def band(self, estimate: Estimate, sigmas: float = SIGMAS) -> str | None:
        """The word for an estimate, or None if its interval of ± `sigmas` errors touches more than one band.

        >>> TROTTA.band(Estimate(6.0, 0.2)), TROTTA.band(Estimate(5.1, 0.2))
        ('strong', None)
        """
        touched = self.touched(estimate, sigmas)
        return touched[0] if len(touched) == 1 else None

    def touched(self, estimate: Estimate, sigmas: float = SIGMAS) -> tuple[str, ...]:
        """All bands that the interval touches, weakest first; an unknown error touches all of them."""
        low, high = estimate.interval(sigmas)
        if not (math.isfinite(low) and math.isfinite(high)):
            return self.words
        # The sign belongs to the conclusion: an interval that spans 0 touches the first band.
        least = 0 if low < 0 < high else self.index(min(abs(low), abs(high)))
        return self.words[least : self.index(max(abs(low), abs(high))) + 1]


HALF_DECADE = 0.5 * math.log(10.0)

JEFFREYS = Scale(
    "Jeffreys",
    (0.0, HALF_DECADE, 2 * HALF_DECADE, 3 * HALF_DECADE, 4 * HALF_DECADE),
    ("barely worth mentioning", "substantial", "strong", "very strong", "decisive"),
    "H. Jeffreys, Theory of Probability (1961), appendix B: B = 10^(1/2), 10, 10^(3/2), 100",
)
KASS_RAFTERY = Scale(
    "Kass-Raftery",
    (0.0, 1.0, 3.0, 5.0),
    ("barely worth mentioning", "positive", "strong", "very strong"),
    "R. E. Kass, A. E. Raftery, J. Am. Stat. Assoc. 90, 773 (1995): 2 ln B = 2, 6, 10",
)
TROTTA = Scale(
    "Trotta",
    (0.0, 1.0, 2.5, 5.0),
    ("inconclusive", "weak", "moderate", "strong"),
    "R. Trotta, Contemp. Phys. 49, 71 (2008): |ln B| = 1, 2.5, 5",
)
DEFAULT = (
    "trotta"  # the one scale of all results, unless another is asked for; it is named wherever a word of it stands
)
SCALES = {"jeffreys": JEFFREYS, "kass_raftery": KASS_RAFTERY, "trotta": TROTTA}


def scale(choice: str | Scale | Mapping[str, float]) -> Scale:
    """A scale by name ("jeffreys", "kass_raftery", "trotta"), or your own: {word: lower threshold in |ln B|}."""
    if isinstance(choice, Scale):
        return choice
    if isinstance(choice, Mapping):
        pairs = sorted(((float(low), word) for word, low in choice.items()), key=lambda pair: pair[0])
        return Scale("own", tuple(low for low, _ in pairs), tuple(word for _, word in pairs))
    if choice not in SCALES:
        raise SupermodelError(
            f"there is no scale {choice!r}; choose one of {', '.join(SCALES)}, "
            "or give {word: lower threshold in |ln B|}."
        )
    return SCALES[choice]
