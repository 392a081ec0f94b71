"""Every rule of the verdict in one table: what is measured, where caution begins and where the answer is not to be used.

Two columns. `LADDER`: the engine's chains on the rungs between two ends, judged edge by edge. `CHAIN`: the paper's
chain on (alpha, theta), judged as a whole. A rule fires above its bar; a measure that is not a number counts as beyond
every bar. A new rule is one row here, its code in `verdict.CODES` and a heading in docs/verdict.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import NamedTuple

from supermodel.verdict.examine import CHAIN, HEAVY, LADDER, LONG, Report
from supermodel.verdict.verdict import Finding, Reason

NEVER = math.inf


class Bar(NamedTuple):
    """A check in one column: the run goes on above `settled`; above `caution` and `fail` the verdict says so."""

    measure: Callable[[Report], float]
    caution: float
    fail: float
    settled: float
    sentence: str  # filled with the fields of the report
    failed: str = ""  # what is said above `fail`, where that is more than the figures


class Rule(NamedTuple):
    """One row: the bars of both columns (None: not asked there) and why they stand where they do."""

    code: str
    ladder: Bar | None
    chain: Bar | None
    why: str


TAIL = (
    "Pareto k of the weights along the path is {pareto_k:.2f} ± {pareto_error:.2f}, at 95% above {surely:.2f}, and the largest "
    "is {largest:.1%} of them all. "
)
PATH = "{rungs} rungs were needed: the posterior is far from anything simple (a funnel? many modes?), "

RULES = (
    Rule(
        "few_crossings",
        Bar(lambda r: -r.crossings, -20, -4, -20, "the chains crossed {crossings} times; at least 20 are wanted."),
        Bar(
            lambda r: -r.crossings / r.n_chains, -5, -1, -1,
            "{n_chains} chains passed between models {crossings} times in all; five times each are wanted.",
        ),
        "passages: an error from n of them is itself uncertain by 1/sqrt(2 n). An edge pools its chains; the chain of "
        "the paper starts in every model, and one that never passed knows only its own side.",
    ),
    Rule(
        "small_ess",
        Bar(lambda r: -r.ess, -100, -25, -100, "only {ess:.0f} effective draws; at least 100 are wanted."),
        Bar(
            lambda r: -r.ess, -200, -50, -50,
            "the share of {weakest!r} rests on {ess:.0f} effective draws; 200 are wanted.",
        ),
        "effective draws: an error bar from 100 is right to 7%. The paper's shares are skewed, so twice as many.",
    ),
    Rule(
        "rhat",
        Bar(lambda r: r.rhat, 1.1, 1.3, 1.05, "split R-hat of the share is {rhat:.2f}; below 1.1 is wanted."),
        Bar(lambda r: r.rhat, 1.05, 1.2, 1.2, "split R-hat of a model's share is {rhat:.2f}; below 1.05 is wanted."),
        "a ratio of spreads: 1.05 is the paper's own bar. Short edges of 16 chains scatter up to 1.1 by chance; they run "
        "until they are below 1.05.",
    ),
    Rule(
        "estimators_disagree",
        Bar(
            lambda r: r.disagreement, 3, 5, 3,
            "MBAR gives {value:.4g}, Rao-Blackwell {second_value:.4g}: {disagreement:.1f} errors apart.",
        ),
        Bar(
            lambda r: r.disagreement, 3, 5, 5,
            "Rao-Blackwell gives {value:.4g}, MBAR {second_value:.4g}: {disagreement:.1f} errors apart.",
        ),
        "errors: the two estimators share their draws, so even 3 are rare. (Of a chain: on a `product` only.)",
    ),
    Rule(
        "estimators_disagree",
        None,
        Bar(
            lambda r: r.occupancy_z, 4, 6, 6,
            "the mean weight of the first model differs from what its draws imply by {occupancy_z:.1f} errors.",
        ),
        "errors: where alpha was and where it should have been are compared with the error of their difference alone, and "
        "4 come by chance once in 16 000. On a ladder the rung is drawn exactly, so there is nothing to compare.",
    ),
    Rule(
        "heavy_tail",
        Bar(
            lambda r: r.surely_heavy, HEAVY, 1, NEVER,
            TAIL + "Above 0.7 a part of the posterior may be missed.",
            TAIL + "Above 1, with a weight above 10%, a part of the posterior is missed, or the evidence is infinite.",
        ),
        Bar(
            lambda r: r.largest, 0.01, 0.1, 0.1,
            "a single draw holds {largest:.0%} of a model's share (Pareto k {pareto_k:.2f}); below 1% is wanted.",
        ),
        "Pareto k at 95%: above 0.7 a mean of weights does not converge at any affordable size, which more rungs bridge; above "
        "1 there is no mean, if one draw also holds a tenth of the weight. Share of one draw: at 10% the next draw may change "
        "ln B by a tenth.",
    ),
    Rule(
        "long_path",
        Bar(
            lambda r: r.path, LONG, 1e3, NEVER,
            PATH + "and narrow parts of it may be missed.",
            PATH + "and narrow parts of it are missed: the weights on the way have a heavy tail too.",
        ),
        None,
        "rungs: 23 are a path of 18 nats of spread; whitened posteriors that are nearly normal need fewer than ten. With a heavy "
        "tail as well there is no end to it: a banana in ten dimensions was 16 errors off so, and nothing else told.",
    ),
    Rule(
        "start_dependent",
        Bar(lambda r: r.start_z, 4, 6, 4, "chains from the two ends differ by {start_z:.1f} errors."),
        None,
        "errors: 4 come by chance once in 16 000; half of the chains start at either end of an edge.",
    ),
    Rule(
        "drift",
        Bar(lambda r: r.drift_z, 4, 6, 4, "the two halves of the run differ by {drift_z:.1f} errors."),
        None,
        "errors: as for the starts. The chain of the paper has R-hat of half chains for this.",
    ),
)  # fmt: skip


def bars(report: Report) -> list[tuple[str, Bar]]:
    """The column that judges a report: (code, bar) of every rule that is asked there."""
    column = [(rule.code, rule.ladder if report.method == LADDER else rule.chain) for rule in RULES]
    return [(code, bar) for code, bar in column if bar is not None]


def is_settled(report: Report) -> bool:
    """Enough has been seen for the error to mean something: the run may end."""
    return math.isfinite(report.error) and all(bar.measure(report) <= bar.settled for _, bar in bars(report))


def findings(report: Report, where: str = "") -> list[Finding]:
    """All that the table finds in a report, each with its level; `where` begins the sentences."""
    if not math.isfinite(report.error):
        return [_unknown(report, where)]
    figures = asdict(report) | {"disagreement": report.disagreement, "surely": report.least_k}
    told = [(code, bar, bar.measure(report)) for code, bar in bars(report)]
    return [
        ("caution", Reason(code, where + bar.sentence.format(**figures)))
        if measured <= bar.fail
        else ("fail", Reason(code, where + (bar.failed or bar.sentence).format(**figures)))
        for code, bar, measured in told
        if not measured <= bar.caution
    ]


def _unknown(report: Report, where: str) -> Finding:
    if not math.isfinite(report.value):
        sentence = "the ends were not reached, or no rung leads from one to the other: nothing is known of the ratio."
        return "fail", Reason("never_visited", where + sentence)
    who = f"model {report.weakest!r}" if report.method == CHAIN else "one end"
    sentence = f"{who} was never reached; its probability is below 3 / ESS, which gives a limit only."
    return "limit", Reason("never_visited", where + sentence)
