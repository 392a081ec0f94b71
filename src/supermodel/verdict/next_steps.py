"""What to do after a `fail`: the calls that most likely settle it, cheapest and likeliest first, each with its models.

One table: a step, and the codes that ask for it. A code that can lead to `fail` stands in at least one row.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from supermodel.verdict.verdict import Reason, Verdict


class Step(NamedTuple):
    """`call` is what to write, `why` what it does about the codes in `after`."""

    call: str
    why: str
    after: frozenset[str]


def _step(call: str, why: str, *after: str) -> Step:
    return Step(call, why, frozenset(after))


FOUND_APART = ("looks_disagree", "pilot_disagrees", "vague_looks", "posterior_rhat")
STUCK = ("few_crossings", "rhat", "start_dependent", "drift", "small_ess", "estimators_disagree")
LONG_WAY = ("heavy_tail", "long_path")
STEPS = (
    _step(
        "max_seconds=, max_evaluations=", "more of both, or none: the run had not weighed {models} when it ended",
        "target_not_reached",
    ),
    _step("checkpoint=", "the same call goes on from where it was stopped", "interrupted"),
    _step(
        "mend the likelihood", "fix the random numbers of {models}, or tighten its solver: no sampler can see below its noise",
        "rough",
    ),
    _step(
        'compare(..., explore="thorough")', "looks at {models} with five times the draws, levels and climbs",
        *FOUND_APART, *STUCK, *LONG_WAY,
    ),
    _step(
        "an ordering", "where parameters of {models} can change places (planets, lines, classes) let each be the one before plus "
        "something positive: one mode is left of many", *FOUND_APART, "rhat", "drift", "few_crossings",
    ),
    _step(
        "another form", "write a hierarchy of {models} with standard normal effects times their scale, and scales as logarithms: "
        "a funnel becomes round", *LONG_WAY, "posterior_rhat",
    ),
    _step(
        "a narrower prior", "of {models}, where you can defend one: what the data exclude is then not searched, nor is the way to "
        "it so long", *FOUND_APART, *LONG_WAY, "never_visited",
    ),
    _step(
        "compare(..., target_error=)", "half of what it was: the run goes on until its checks are passed", *STUCK, "never_visited",
    ),
    _step(
        'sm.crosscheck(result, "dynesty")', "another program on the same models, to see which of them it is",
        *FOUND_APART, *STUCK, *LONG_WAY,
    ),
    _step("another rscale=", "or fewer predictors that are nearly the same: the integral over g is hard there", "quadrature"),
)  # fmt: skip
MOST = 4  # steps that are shown: who has tried four asks for help


def next_steps(verdict: Verdict, names: Collection[str] = ()) -> list[str]:
    """Of a `fail` of these models, what to try in this order, and on which of them; of any other level nothing."""
    if verdict.level != "fail":
        return []
    failed = [reason for reason in verdict.reasons if (reason.level or verdict.level) == "fail"]
    found = []
    for step in STEPS:
        blamed = {name for reason in failed if reason.code in step.after for name in _to_blame(reason, names)}
        if any(reason.code in step.after for reason in failed):
            models = " and ".join(repr(name) for name in names if name in blamed) or "the models"
            found.append(f"{step.call}: {step.why.format(models=models)}.")
    return found[:MOST]


def _to_blame(reason: Reason, names: Collection[str]) -> list[str]:
    """The models whose finding it is: what rests on it may be more, where one model stands on another."""
    resting = [name for name in names if reason.concerns(name)]
    return [name for name in resting if repr(name) in reason.sentence] or (resting if reason.models else [])
