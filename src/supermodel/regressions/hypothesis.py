r"""One-sided and order-restricted hypotheses by the encompassing prior (Klugkist, Kato & Hoijtink 2005).

A hypothesis H that restricts the effects of a model M has $B_{HM} = P(H \mid D, M) / P(H \mid M)$. A single inequality is
known exactly where the model is Gaussian (1/2 under the prior); more of them are counted in independent draws.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import as_ratio, probability, shown

DRAWS = 200_000
Contrast = dict[str, float]  # {effect: coefficient}, positive where the hypothesis holds


@dataclass(frozen=True)
class Restricted:
    """A hypothesis within a model: its probabilities, and ln B against the unrestricted model and the null."""

    hypothesis: str
    model: str
    prior: Estimate
    posterior: Estimate
    log_bayes_factor: Estimate  # against the model without the restriction
    against_null: Estimate

    def __str__(self) -> str:
        over, null = self.log_bayes_factor, self.against_null
        return (
            f"{self.hypothesis}: ln B = {shown(over)} within {self.model} (B = {as_ratio(over.value)}), "
            f"{shown(null)} against the null; its probability is {probability(self.posterior.value)} given the data, and was "
            f"{probability(self.prior.value)}"
        )

    __repr__ = __str__


def read(hypothesis: str, labels: Sequence[str]) -> list[Contrast]:
    """The inequalities of `a > b > c`, `x < 0 & a > b`; a level may stand for its effect where one factor has it.

    >>> read("b > a", ["f[a]", "f[b]"])
    [{'f[b]': 1.0, 'f[a]': -1.0}]
    """
    found = []
    for part in re.split(r"[&,]", hypothesis):
        words = re.split(r"([<>])", part)
        if len(words) < 3:
            raise SupermodelError(
                f"the hypothesis {hypothesis!r} holds no inequality. Write e.g. 'a > b > c', 'x < 0', 'a > b & a > c'."
            )
        names = [_effect(word.strip(), labels) for word in words[::2]]
        for left, sign, right in zip(names, words[1::2], names[1:], strict=False):
            sign_ = 1.0 if sign == ">" else -1.0
            found.append({n: c for n, c in ((left, sign_), (right, -sign_)) if n})
    return found


def _effect(word: str, labels: Sequence[str]) -> str:
    if word in ("0", "0.0"):
        return ""
    matches = [label for label in labels if label == word] or [label for label in labels if label.endswith(f"[{word}]")
                                                             and ":" not in label]  # fmt: skip
    if len(matches) == 1:
        return matches[0]
    why = f"stands for several: {', '.join(matches)}" if matches else "is none of them (only 0 is a number here)"
    raise SupermodelError(f"a hypothesis compares effects: {', '.join(labels)}; {word!r} {why}.")


def holds(contrasts: Sequence[Contrast], draws: dict[str, np.ndarray]) -> np.ndarray:
    """Which draws satisfy every inequality."""
    sums = [sum(c * draws[name] for name, c in contrast.items()) for contrast in contrasts]
    return np.all(np.array(sums) > 0, axis=0)


def restrict(hypothesis: str, name: str, fit: Any, unrestricted: Estimate, seed: int) -> Restricted:
    """A hypothesis within the model `name`, whose ln B against the null is `unrestricted`."""
    contrasts = read(hypothesis, fit.labels)
    if len(contrasts) == 1 and hasattr(fit, "probability_positive"):
        posterior, prior = Estimate(fit.probability_positive(contrasts[0]), 0.0), Estimate(0.5, 0.0)
    else:
        rng = np.random.default_rng(seed)
        posterior = _share(holds(contrasts, fit.draws(DRAWS, rng)), min(getattr(fit, "effective_size", DRAWS), DRAWS))
        prior = _share(holds(contrasts, fit.prior_draws(DRAWS, rng)), DRAWS)
    with np.errstate(divide="ignore"):
        value = float(np.log(posterior.value) - np.log(prior.value))
        error = float(np.hypot(*(np.divide(p.error, p.value) for p in (posterior, prior))))
    over = Estimate(value, error)
    null = Estimate(value + unrestricted.value, float(np.hypot(error, unrestricted.error)))
    return Restricted(hypothesis, name, prior, posterior, over, null)


def _share(hits: np.ndarray, size: float) -> Estimate:
    """A share and its error from as many independent draws as these are worth; never 0 or 1 (Laplace's rule)."""
    share = (hits.mean() * size + 0.5) / (size + 1.0)
    return Estimate(float(share), float(np.sqrt(share * (1 - share) / size)))
