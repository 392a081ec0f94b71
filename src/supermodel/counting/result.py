r"""What `count` gives back: $P(k \mid D)$ of each number, the components that were found, and all that a comparison has."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.counting.component import Component, numbered
from supermodel.counting.contributions import Contributions, contributions
from supermodel.counting.found import Components, found_in
from supermodel.counting.stopping import beyond
from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.report.scales import DEFAULT
from supermodel.results.comparison import Comparison
from supermodel.results.export import finite, plain
from supermodel.results.posterior import ModelPosterior
from supermodel.results.storage import write_atomically
from supermodel.verdict.verdict import Verdict

MOST_NATS = 50.0  # beyond which a factor is as good as any


def swings(share: np.ndarray, off: np.ndarray) -> np.ndarray:
    r"""How far each of some probabilities moves, $p_k \to p_k e^{\pm \sigma_j \delta_{jk}} / \sum$, the larger way; in squares over
    j, and never by more than 1.
    """
    wide = np.zeros(len(share))
    for j, nats in enumerate(np.minimum(np.nan_to_num(off, nan=MOST_NATS), MOST_NATS)):
        moved = [share * np.exp(np.where(np.arange(len(share)) == j, sign * nats, 0.0)) for sign in (-1, 1)]
        wide += np.max([np.square(each / each.sum() - share) for each in moved], axis=0)
    return np.minimum(np.sqrt(wide), 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Count:
    """How many components there are: the probability of each number, and what they are. Natural logarithms.

    `comparison` is the comparison of the models of so many components, by their names ("no planet", "1 planet", …).
    """

    comparison: Comparison
    component: Component | None = None  # as it was given; absent after loading from a file
    background: Component | None = None

    # -- the numbers ----------------------------------------------------------------------------------------------

    @property
    def asked(self) -> Mapping[str, Any]:
        """What was counted and how, as plain data: the component's name and parameters, `least`, `most`, `prior`, `stop`."""
        return self.comparison.settings["count"]

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numbers that were weighed, the least first."""
        least = int(self.asked["least"])
        return tuple(range(least, least + len(self.comparison.names)))

    @cached_property
    def names(self) -> dict[int, str]:
        """What the model of each number is called."""
        return dict(zip(self.numbers, self.comparison.names, strict=True))

    @property
    def prior(self) -> dict[int, float]:
        """The prior probability of each number, those that were not tried among them."""
        return {int(self.asked["least"]) + i: p for i, p in enumerate(self.asked["prior"])}

    @cached_property
    def probabilities(self) -> dict[int, Estimate]:
        """The probability of each number that was weighed, with its error; `more` bounds that of all others.

        The error is how far it moves, up or down, if ln B against the most probable number is off by its own: of what is known to
        a nat only, a probability can be wrong by a factor.
        """
        inner = self.comparison
        p, errors, prior = inner.probabilities, inner.probability_errors(), inner.prior_odds
        known = [name for name in inner.names if np.isfinite(p[name]) and prior[name] > 0]
        share = np.array([p[name] for name in known])
        best = known[int(np.argmax(share))] if known else ""
        off = np.array([inner.log_bayes_factor(name, best).error for name in known])
        most = dict(zip(known, swings(share, off), strict=True))
        return {k: Estimate(p[name], max(errors[name], most.get(name, 0.0))) for k, name in self.names.items()}

    @cached_property
    def more(self) -> float:
        """The probability of more components than were tried, as far as those that were tell; NaN where `most` were tried, or a
        limit left no room for more.
        """
        if self.numbers[-1] == int(self.asked["most"]) or self.limited:
            return float("nan")
        prior = {str(k): p for k, p in self.prior.items()}
        return beyond(prior, {str(k): self.log_evidence(k).value for k in self.numbers})

    @property
    def best(self) -> int:
        """The most probable number."""
        known = {k: e.value for k, e in self.probabilities.items() if np.isfinite(e.value)}
        if not known:
            raise SupermodelError("no number is known to be more probable than another: the checks failed. See `.verdict`.")
        return max(known, key=lambda k: known[k])

    def at_least(self, k: int) -> Estimate:
        """The probability that there are k components or more."""
        names, p = self.comparison.evidences.names, self.comparison.probabilities
        some = np.array([self.numbers[i] >= k for i in range(len(names))])
        share = np.array([p[name] for name in names])
        total = float(share[some].sum())
        slope = share * (some - total)
        variance = float(slope @ self.comparison.evidences.covariance @ slope)
        return Estimate(total, float(np.sqrt(max(variance, 0.0))))

    def log_bayes_factor(self, first: int, second: int) -> Estimate:
        """ln Z of `first` components minus that of `second`."""
        return self.comparison.log_bayes_factor(self._name(first), self._name(second))

    def log_evidence(self, k: int) -> Estimate:
        """ln Z of the model of k components."""
        return self.comparison.log_evidence(self._name(k))

    def posterior(self, k: int | None = None) -> ModelPosterior:
        """The posterior of the model of k components (of the most probable number, by default)."""
        return self.comparison.posterior(self._name(self.best if k is None else k))

    @property
    def verdict(self) -> Verdict:
        return self.comparison.verdict

    @property
    def evaluations(self) -> dict[str, int]:
        return self.comparison.evaluations

    @property
    def seed(self) -> int:
        return self.comparison.seed

    @property
    def limited(self) -> str:
        """The limit that left no room for a larger number, "max_evaluations" or "max_seconds"; "" if none did."""
        return self.comparison.settings.get("cut_short", "")

    @property
    def stopped(self) -> str:
        """Why no larger number was tried."""
        last, name = self.numbers[-1], self.asked["component"]
        many = f"{last} {name}" + ("" if last == 1 else "s")
        if last == int(self.asked["most"]):
            p, said = self.probabilities[last].value, f"{many} are as many as were asked for."
            more = f" They have the probability {p:.2g}: more may be there, ask with most={last + 2}."
            return said + (more if p > self.asked["stop"] else "")
        if self.limited:
            return f"More than {many} were not reached: the run was limited by {self.limited}."
        return (
            f"More than {many} were not tried: ln Z has fallen twice, and if it falls on so their probability is "
            f"{self.more:.1g}, below the {self.asked['stop']:g} that was asked for."
        )

    def _name(self, k: int) -> str:
        if k not in self.names:
            tried = f"{self.numbers[0]} to {self.numbers[-1]}"
            raise SupermodelError(f"there is no model of {k!r} components: {tried} were weighed. {self.stopped}")
        return self.names[k]

    # -- the components -------------------------------------------------------------------------------------------

    @cached_property
    def components(self) -> Components:
        """The components of the most probable number: their parameters, and the probability that each is there."""
        return self.components_of(self.best)

    def components_of(self, k: int, by: str | None = None) -> Components:
        """The components of the model of k of them, in increasing order of the parameter `by`."""
        return found_in(self, k, by)

    @cached_property
    def contributions(self) -> Contributions:
        """What each component of the most probable number adds to the prediction, over draws: what pictures show."""
        return contributions(self)

    def parameters(self, i: int) -> dict[str, str]:
        """{parameter of the component: its name in the model} of the i-th component, counted from 1."""
        return {name: numbered(name, i) for name in self.asked["parameters"]}

    # -- showing --------------------------------------------------------------------------------------------------

    @property
    def headline(self) -> str:
        """`2 planets: probability 0.981 ± 0.002`."""
        from supermodel.counting.words import headline

        return headline(self)

    def __str__(self) -> str:
        from supermodel.counting.words import text

        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from supermodel.counting.words import html

        return html(self)

    def plot(self, what: str = "numbers", ax: Any = None) -> Any:
        """A picture: "numbers" (their probabilities), "data" with what was found and what is left, "components" or one of them.

        "component 1" is one alone. An Axes comes back, of "data" and "components" an array of them.
        """
        from supermodel.counting.pictures import plot

        return plot(self, what, ax)

    def report(self, path: str | os.PathLike[str], title: str | None = None, scale: Any = DEFAULT) -> Path:
        """Write one self-contained HTML page; its path."""
        from supermodel.counting.page import page

        write_atomically(path, page(self, title, scale).encode())
        return Path(path)

    def methods(self) -> str:
        """A paragraph for the methods section of a paper, with the numbers of this run."""
        from supermodel.counting.words import methods

        return methods(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything but the models' code to a netCDF file, atomically; its path. `supermodel.load` reads it."""
        return self.comparison.save(path)

    def asdict(self) -> dict[str, Any]:
        """The answer as plain numbers, lists and strings."""
        from supermodel.counting.words import asdict

        return asdict(self)

    def to_json(self, indent: int | None = 2) -> str:
        """`asdict` as JSON text; what is not a finite number becomes null."""
        return json.dumps(finite(plain(self.asdict())), indent=indent, allow_nan=False, ensure_ascii=False)
