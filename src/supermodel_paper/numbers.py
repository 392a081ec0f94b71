r"""One number of the paper, ours beside it, and whether they agree.

The criterion, stated on the page: ours agrees if $|ours - exact| < 3$ errors, or within the stated tolerance where ours
has no sampling error, or inside the stated bounds where only an inequality is claimed. The paper's value agrees if the
exact value lies within its own errors (of its last digit, where it gives none).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from supermodel.estimation.estimate import Estimate
from supermodel_paper.figures import svg_of

SIGMAS = 3.0


@dataclass(frozen=True)
class Quoted:
    """What the paper says: a value with its errors, or a statement that holds or does not."""

    text: str
    value: float | None = None
    plus: float = 0.0
    minus: float = 0.0
    holds: bool | None = None  # of a statement without a value

    def agrees_with(self, exact: float | None) -> bool | None:
        if self.value is None or exact is None:
            return self.holds
        return bool(self.value - self.minus <= exact <= self.value + self.plus)


def quoted(value: float, plus: float, minus: float | None = None) -> Quoted:
    """The paper's value +plus -minus.

    >>> quoted(4.83, 0.21, 0.19).text
    '4.83 +0.21 −0.19'
    """
    if minus is None or minus == plus:
        return Quoted(f"{value} ± {plus:.2g}" if plus < 0.1 else f"{value} ± {plus:.2f}", value, plus, plus)
    return Quoted(f"{value} +{plus:.2f} −{minus:.2f}", value, plus, minus)


@dataclass(frozen=True)
class Number:
    """A quantity of a checklist row: what the paper has, what is exact, what we found, and at what cost."""

    row: str
    label: str
    ours: float
    error: float | None = None  # standard error of ours; None if it has none
    exact: float | None = None
    tolerance: float = 0.0  # of |ours - exact| where there is no error
    bounds: tuple[float, float] | None = None  # where only an inequality is claimed
    paper: Quoted | None = None
    evaluations: int | None = None  # likelihood evaluations
    remark: str = ""
    decimals: int | None = None  # to show, where tolerance and error do not say
    peer: str = ""  # the program that found it, where it is none of ours

    @property
    def is_miss(self) -> bool:
        """Whether ours is wrong; what a peer misses is the peer's."""
        return self.agrees is False and not self.peer

    @property
    def agrees(self) -> bool | None:
        """Ours against the exact value; None if there is nothing to hold it against."""
        if self.bounds is not None:
            return bool(self.bounds[0] <= self.ours <= self.bounds[1])
        if self.exact is None:
            return None
        if not (math.isfinite(self.ours) and math.isfinite(self.error or 0.0)):
            return False  # a limit or no answer at all agrees with nothing
        allowed = self.tolerance if self.error is None else max(SIGMAS * self.error, self.tolerance)
        return bool(abs(self.ours - self.exact) <= allowed)

    @property
    def paper_agrees(self) -> bool | None:
        """The paper's value against the exact one."""
        if self.paper is None:
            return None
        if self.paper.value is None and self.paper.holds and self.bounds is not None:
            return self.agrees  # a statement that our own number puts to the test
        return self.paper.agrees_with(self.exact)

    def shown(self) -> str:
        """Ours with its error, or to the digits that its tolerance asks for."""
        return self._plain(self.ours) if self.error is None else format(Estimate(self.ours, self.error), "")

    def _plain(self, value: float) -> str:
        if self.decimals is not None:
            return f"{value:.{self.decimals}f}"
        if not (0 < self.tolerance < 1) or value == 0 or abs(value) < 10 * self.tolerance or not math.isfinite(value):
            return plain(value)
        decimals = math.floor(-math.log10(self.tolerance)) + (self.tolerance < 1e-8)
        text = f"{value:.{decimals}f}"
        short = text.rstrip("0")
        return text if len(text) - len(short) < 5 else short.rstrip(".")

    def shown_exact(self) -> str:
        """The exact value, to the digits that matter beside ours, or the bounds."""
        if self.bounds is not None:
            low, high = self.bounds
            return f"> {plain(low)}" if math.isinf(high) else f"{plain(low)} to {plain(high)}"
        if self.exact is None:
            return ""
        if self.error is None:
            return self._plain(self.exact)
        return f"{self.exact:.{min(Estimate(self.ours, self.error).decimals + 1, 10)}f}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for numbers.json; what is not finite becomes None."""
        own = asdict(self)
        paper = None if self.paper is None else {k: v for k, v in own["paper"].items() if k != "holds"}
        return {
            **{k: own[k] for k in ("row", "label", "tolerance", "evaluations", "remark", "peer")},
            **{k: _finite(own[k]) for k in ("exact", "ours", "error")},
            "paper": paper,
            "bounds": None if self.bounds is None else [_finite(b) for b in self.bounds],
            "agrees": self.agrees,
            "paper_agrees": self.paper_agrees,
        }


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def plain(value: float) -> str:
    """A number to four digits, whole numbers as they are, powers of ten where it is tiny or huge.

    >>> plain(11.5559), plain(3.24e-12), plain(1e8)
    ('11.56', '3.2e-12', '1e+08')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 1e7 or abs(value) < 1e-4:
        return f"{value:.2g}"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4g}"


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its name (that of the file), title and caption."""

    name: str
    title: str
    caption: str
    figure: Any  # matplotlib.figure.Figure

    @cached_property
    def svg(self) -> str:
        """Drawn once, for its own file and for the page."""
        return svg_of(self.figure, self.name)


@dataclass(frozen=True, eq=False)
class Part:
    """What one experiment gives: its numbers and its figures, with a heading and a sentence or two."""

    title: str
    text: str
    numbers: Sequence[Number]
    pictures: Sequence[Picture] = field(default_factory=tuple)


def tally(numbers: Sequence[Number]) -> dict[str, int]:
    """How many numbers there are, how many can be checked and agree, and the same for the paper's and for the peers'."""
    checked = [n for n in numbers if n.agrees is not None and not n.peer]
    of_peers = [n for n in numbers if n.agrees is not None and n.peer]
    of_paper = [n for n in numbers if n.paper_agrees is not None]
    return {
        "numbers": len(numbers),
        "checked": len(checked),
        "agree": sum(bool(n.agrees) for n in checked),
        "paper": len(of_paper),
        "paper_agree": sum(bool(n.paper_agrees) for n in of_paper),
        "peers": len(of_peers),
        "peers_agree": sum(bool(n.agrees) for n in of_peers),
    }
