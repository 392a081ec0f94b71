"""From the reports of the edges to the verdict on the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from supermodel.engine.checks import EdgeReport
from supermodel.engine.run import Arm, Run
from supermodel.verdict.verdict import Reason, Verdict, worst

Finding = tuple[str, Reason]


def judge(run: Run) -> Verdict:
    """All findings on the edges that some Bayes factor rests on, and on how the run ended."""
    found: list[Finding] = []
    for arm in run.arms:
        for level, reason in _edge_findings(run, arm):
            # An edge that serves the absolute evidences only cannot spoil a Bayes factor.
            found.append((level if run.matters(arm) else "caution", reason))
    for pilot in run.pilots:
        found += [("caution", Reason(code, sentence)) for code, sentence in pilot.notes]
    found += _against_pilots(run) + _ending(run)
    return worst(found)


class Rule(NamedTuple):
    """A check of one edge: above `caution` it is one, above `fail` the answer is not to be used."""

    code: str
    measure: Callable[[EdgeReport], float]
    caution: float
    fail: float
    sentence: str  # filled with the fields of the report


NEVER = float("inf")
RULES = (
    Rule("few_crossings", lambda r: -r.crossings, -20, -4, "the chains crossed {crossings} times; at least 20 are wanted."),
    Rule("small_ess", lambda r: -r.ess, -100, -25, "only {ess:.0f} effective draws; at least 100 are wanted."),
    Rule("rhat", lambda r: r.rhat, 1.1, 1.3, "split R-hat of the share is {rhat:.2f}; below 1.1 is wanted."),
    Rule(
        "estimators_disagree", lambda r: r.disagreement, 3, 5,
        "MBAR gives {value:.4g}, Rao-Blackwell {second_value:.4g}: {disagreement:.1f} errors apart."),
    Rule(
        "heavy_tail", lambda r: r.pareto_k, 0.7, NEVER,
        "Pareto k of the weights along the path is {pareto_k:.2f}; above 0.7 a part of the posterior may be missed."),
    Rule(
        "long_path", lambda r: r.rungs, 23, NEVER,
        "{rungs} rungs were needed: the posterior is far from anything simple (a funnel? many modes?), and narrow parts "
        "of it may be missed."),
    Rule("start_dependent", lambda r: r.start_z, 4, 6, "chains from the two ends differ by {start_z:.1f} errors."),
    Rule("drift", lambda r: r.drift_z, 4, 6, "the two halves of the run differ by {drift_z:.1f} errors."),
)  # fmt: skip


def _edge_findings(run: Run, arm: Arm) -> list[Finding]:
    r = arm.report
    where = "between {!r} and {!r}: ".format(*arm.edge.pair.names)
    if not np.isfinite(r.error):
        sentence = "one end was never reached; its probability is below 3 / ESS, which gives a limit only."
        return [("limit" if np.isfinite(r.value) else "fail", Reason("never_visited", where + sentence))]
    figures = asdict(r) | {"disagreement": r.disagreement}
    return [
        (
            "fail" if rule.measure(r) > rule.fail else "caution",
            Reason(rule.code, where + rule.sentence.format(**figures)),
        )
        for rule in RULES
        if rule.measure(r) > rule.caution
    ]


def _against_pilots(run: Run) -> list[Finding]:
    """Evidences against those that the tempered particles gave on their way: two routes to one number."""
    evidences, found = run.evidences(), []
    for pilot in run.pilots:
        final = evidences.log_evidence(pilot.name)
        gap, error = abs(final.value - pilot.log_evidence), np.hypot(pilot.log_evidence_error, final.error)
        if gap > 1.0 + 6 * error:  # NaN where the pilot has none: false
            sentence = (
                f"ln Z of {pilot.name!r} is {final.value:.2f}; its pilot had {pilot.log_evidence:.2f} ± {error:.2f}."
            )
            found.append(("caution", Reason("pilot_disagrees", sentence)))
    return found


def _ending(run: Run) -> list[Finding]:
    if run.ended in ("target", "decided"):
        return []
    worst_error = max(
        (run.evidences().log_bayes_factor(a, b).error for a in run.models for b in run.models if a != b), default=0.0
    )
    reached = worst_error <= run.goals.target_error
    why = {
        "max_evaluations": "the limit on evaluations",
        "max_seconds": "the limit on time",
        "stuck": "chains that do not cross",
    }.get(run.ended, "an interruption")
    code = "interrupted" if run.ended == "interrupted" else "target_not_reached"
    if reached and code == "target_not_reached":
        return []
    sentence = f"the run ended by {why} at an error of {worst_error:.3g}; the target was {run.goals.target_error:.3g}."
    return [("caution", Reason(code, sentence))]
