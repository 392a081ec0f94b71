"""The verdict on a run: what the table of rules finds in its records, and how the run ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from supermodel.engine.goals import Goals
from supermodel.engine.run import Run
from supermodel.estimation.estimate import Evidences
from supermodel.verdict.rules import Finding, findings
from supermodel.verdict.verdict import Reason, Verdict, worst

ENDINGS = {
    "max_evaluations": "the limit on evaluations",
    "max_seconds": "the limit on time",
    "stuck": "chains that do not cross",
    "length": "the longest chain that this method runs",
}


def judge(run: Run) -> Verdict:
    """All findings on the edges that some Bayes factor rests on, and on how the run ended."""
    found: list[Finding] = []
    for arm in run.arms:
        for level, reason in findings(arm.report, "between {!r} and {!r}: ".format(*arm.edge.pair.names)):
            # An edge that serves the absolute evidences only cannot spoil a Bayes factor.
            found.append((level if run.matters(arm) else "caution", reason))
    for pilot in run.pilots:
        found += [("caution", Reason(code, sentence)) for code, sentence in pilot.notes]
    return worst(found + _against_pilots(run) + ending(run.ended, run.evidences(), run.goals))


def _against_pilots(run: Any) -> list[Finding]:
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


def ending(ended: str, evidences: Evidences, goals: Goals) -> list[Finding]:
    """What is to be said of a run that ended before its goal."""
    if ended in ("target", "decided"):
        return []
    pairs = [(a, b) for a in evidences.names for b in evidences.names if a != b]
    error = max((evidences.log_bayes_factor(a, b).error for a, b in pairs), default=0.0)
    code = "interrupted" if ended == "interrupted" else "target_not_reached"
    if error <= goals.target_error and code == "target_not_reached":
        return []
    why = ENDINGS.get(ended, "an interruption")
    sentence = f"the run ended by {why} at an error of {error:.3g}; the target was {goals.target_error:.3g}."
    return [("caution", Reason(code, sentence))]
