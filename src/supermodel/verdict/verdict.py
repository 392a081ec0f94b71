"""Whether an answer can be trusted: a level and the reasons for it, in codes and in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from markupsafe import escape

LEVELS = ("ok", "caution", "limit", "fail")
EXIT_CODES = {"ok": 0, "caution": 0, "limit": 3, "fail": 4}
WORDS = {
    "ok": "OK: no check found a sign of trouble", "caution": "CAUTION: usable, but read this",
    "limit": "LIMIT: only a bound is known", "fail": "FAIL: do not use this answer",
}  # fmt: skip
SHADES = {"ok": "#2e7d4f", "caution": "#9a6700", "limit": "#9a6700", "fail": "#b3261e"}

CODES: dict[str, str] = {
    "few_crossings": "The chains went from one model to the other too seldom.",
    "rhat": "Chains disagree on the share of a model (split R-hat).",
    "small_ess": "Too few effective draws.",
    "posterior_rhat": "Chains disagree on a parameter (rank-normalised R-hat).",
    "short_posterior": "A posterior has fewer effective draws than were asked for.",
    "heavy_tail": "The weights that carry the answer are heavy-tailed (Pareto k).",
    "estimators_disagree": "Two estimators from the same draws differ by more than their errors.",
    "long_path": "The path between two ends is long: a posterior far from anything simple.",
    "start_dependent": "Chains started in one model give another answer than chains started in the other.",
    "drift": "The first and the second half of the run differ.",
    "pilot_disagrees": "The pilot's own estimate of an evidence differs from the final one.",
    "looks_disagree": "Independent explorations of a model did not find the same posterior.",
    "vague_looks": "The explorations of a model know its evidence too roughly to vouch for the answer.",
    "single_look": "The budget had room for one exploration of a model only.",
    "thrifty": "Calls of a likelihood are slow, so that fewer than usual looked for its posterior.",
    "float32": "A model holds numbers of single precision, and their rounding shows in the answer.",
    "rough": "A log likelihood scatters between neighbouring points, or is random.",
    "rejected": "A log likelihood was NaN, or raised, at points that then counted as impossible.",
    "unused_parameter": "A log likelihood does not depend on a parameter: is its name misspelt?",
    "quadrature": "A numerical integral is known less well than an answer needs.",
    "target_not_reached": "The run ended before the error met its target.",
    "not_reached": "Larger models were not explored: a limit left no room for them.",
    "interrupted": "The run was stopped by hand or by a limit.",
    "checkpoint_lost": "The checkpoint could not be written any more; the answer is not touched.",
    "never_visited": "A model was never visited; only a limit can be given.",
}


@dataclass(frozen=True)
class Reason:
    """One reason: its code, a plain sentence with the figures, and what rests on it. Unpacks as (code, sentence)."""

    code: str
    sentence: str
    level: str = ""  # of what rests on it; "": of the verdict that it stands in
    models: tuple[str, ...] = ()  # whose ln Z or posterior rests on it; (): all
    behind: tuple[str, ...] = ()  # of an edge: the models on its one side, so that it cancels in ln B of two of them

    def __iter__(self) -> Iterator[str]:
        return iter((self.code, self.sentence))

    def concerns(self, *names: str) -> bool:
        """Whether one of the models rests on it."""
        return not self.models or any(name in self.models for name in names)

    def cancels(self, first: str, second: str) -> bool:
        """Whether it is of an edge that ln B(first : second) does not run through, though ln Z of one of them does."""
        return bool(self.behind) and (first in self.behind) == (second in self.behind)


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

    def of(self, name: str) -> Verdict:
        """On ln Z and the posterior of one model: of the findings those that it rests on."""
        return self._scope([(r.level, r) for r in self.reasons if r.concerns(name)])

    def between(self, first: str, second: str) -> Verdict:
        """On ln B of two models: of the findings those that it rests on; one that cancels in it is a caution at most."""
        found = [(r.level or self.level, r) for r in self.reasons if r.concerns(first, second)]
        eased = [
            (min(level, "caution", key=LEVELS.index) if r.cancels(first, second) else level, r) for level, r in found
        ]
        return self._scope(eased)

    def _scope(self, found: list[Finding]) -> Verdict:
        """A level that no reason tells of (of an old file, or made by hand) holds for everything."""
        return worst([(level or self.level, reason) for level, reason in found]) if self.reasons else self

    def __str__(self) -> str:
        return "\n".join([self.level] + [f"  {code}: {sentence}" for code, sentence in self.reasons])

    def _repr_html_(self) -> str:
        return self.html(WORDS[self.level])

    def html(self, words: str) -> str:
        """These words and the reasons, with a bar in the colour of the level: what a notebook shows."""
        reasons = "".join(
            f"<li><code>{escape(code)}</code>: {escape(sentence)}</li>" for code, sentence in self.reasons
        )
        bar = f"border-left:.3em solid {SHADES[self.level]};padding-left:.5em;margin:.3em 0"
        return f'<div style="{bar}"><b>Verdict {escape(words)}</b>{f"<ul>{reasons}</ul>" if reasons else ""}</div>'


Finding = tuple[str, Reason]


def worst(found: list[Finding]) -> Verdict:
    """The verdict that several findings (level, reason) add up to."""
    level = max((level for level, _ in found), key=LEVELS.index, default="ok")
    ordered = sorted(found, key=lambda item: -LEVELS.index(item[0]))
    return Verdict(level, tuple(replace(reason, level=reason.level or own) for own, reason in ordered))


def about(found: list[Finding], *models: str) -> list[Finding]:
    """The same findings; those that name no models are of these."""
    return [(level, reason if reason.models else replace(reason, models=models)) for level, reason in found]
