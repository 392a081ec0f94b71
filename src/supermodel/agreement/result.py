r"""What `tension` gives back: $\ln R$, $\ln I$, $\ln S$, d, p and sigma, with a verdict, words and a picture."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from supermodel.agreement.quantities import Quantities
from supermodel.results.export import finite, plain
from supermodel.results.posterior import ModelPosterior
from supermodel.verdict.verdict import Reason, Verdict, worst

FAR = 1.2  # times the target: an error that is known to a tenth or so only


@dataclass(frozen=True, eq=False, repr=False)
class Tension(Quantities):
    """Whether two data sets agree: each number is an `Estimate`, with an error. Natural logarithms.

    `log_r`: ln of the Bayes factor of one universe for both data sets against one for each; it depends on the priors' widths.
    `log_i`: the part of it that is information, $D_a + D_b - D_{ab}$. `log_s`: the rest, the suspiciousness, which does not.
    `dimensionality`: d, how many parameters both constrain. `p`, `sigma`: how improbable it is that data of one universe
    disagree as much, where posteriors are about normal; NaN where d is not positive. `comparison`: the three models, by their
    names (`names`: first, second, both).
    """

    shared: tuple[str, ...] = ()  # the parameters that both models have
    target_error: float = 0.1  # of ln R
    dropped: dict[str, tuple[int, int]] = field(default_factory=dict)  # {data set: rows dropped, of how many}

    @cached_property
    def verdict(self) -> Verdict:
        """On ln R, ln S and what is made of them: they rest on all three evidences and posteriors."""
        found: dict[Reason, str] = {}
        for name in self.names:
            one = self.comparison.verdict_of(name)
            found |= {reason: reason.level or one.level for reason in one.reasons}
        reached = self.log_r.error <= FAR * self.target_error
        if not reached and "target_not_reached" not in {reason.code for reason in found}:
            sentence = f"the error of ln R is {self.log_r.error:.2g}; asked for was {self.target_error:g}."
            found[Reason("target_not_reached", sentence)] = "caution"
        return worst([(level, reason) for reason, level in found.items()])

    @property
    def evaluations(self) -> dict[str, int]:
        return self.comparison.evaluations

    @property
    def seed(self) -> int:
        return self.comparison.seed

    def posterior(self, name: str) -> ModelPosterior:
        """The posterior given one data set, or both: one of `names`."""
        return self.comparison.posterior(name)

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """What p and sigma, or the draws, are not good for, in sentences; empty where there is nothing to say."""
        from supermodel.agreement.words import cautions

        return cautions(self)

    # -- showing --------------------------------------------------------------------------------------------------

    @property
    def headline(self) -> str:
        """`cmb and sne: 1.23 ± 0.06 sigma apart (p = 0.22)`."""
        from supermodel.agreement.words import headline

        return headline(self)

    def sentence(self) -> str:
        """The answer in plain language."""
        from supermodel.agreement.words import sentence

        return sentence(self)

    def methods(self) -> str:
        """A paragraph for the methods section of a paper, with the numbers of this run."""
        from supermodel.agreement.words import methods

        return methods(self)

    def __str__(self) -> str:
        from supermodel.agreement.words import text

        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from supermodel.agreement.words import html

        return html(self)

    def plot(self, parameters: list[str] | None = None, most: int = 6) -> Any:
        """The posterior of each shared parameter given either data set, and both; an array of Axes."""
        from supermodel.report.tension_plots import tension

        return tension(self, parameters, most)

    # -- handing on -----------------------------------------------------------------------------------------------

    def asdict(self) -> dict[str, Any]:
        """The answer as plain numbers, lists and strings."""
        numbers = ("log_r", "log_i", "log_s", "dimensionality", "p", "sigma")
        return {
            "kind": "tension", "names": dict(zip(("first", "second", "both"), self.names, strict=True)),
            "shared": list(self.shared),
            **{name: {"value": getattr(self, name).value, "error": getattr(self, name).error} for name in numbers},
            "data_sets": {
                name: {
                    what: {"value": each.value, "error": each.error}
                    for what, each in (
                        ("log_evidence", self.comparison.log_evidence(name)), ("fit", self.fit(name)),
                        ("information", self.information(name)), ("dimensionality", self.dimensionality_of(name)),
                    )
                }
                for name in self.names
            },
            "verdict": {"level": self.verdict.level, "reasons": [list(reason) for reason in self.verdict.reasons]},
            "cautions": list(self.cautions), "evaluations": self.evaluations, "seed": self.seed,
            "versions": self.comparison.versions, "fingerprints": self.comparison.fingerprints,
        }  # fmt: skip

    def to_json(self, indent: int | None = 2) -> str:
        """`asdict` as JSON text; what is not a finite number becomes null."""
        return json.dumps(finite(plain(self.asdict())), indent=indent, allow_nan=False, ensure_ascii=False)
