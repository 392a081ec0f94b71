"""From the reports of the edges to the verdict on the whole."""

from __future__ import annotations

import numpy as np

from supermodel.engine.edge import REFERENCE
from supermodel.engine.run import Arm, Run
from supermodel.verdict import Reason, Verdict, worst

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


def _edge_findings(run: Run, arm: Arm) -> list[Finding]:
    r = arm.report
    first = run.pilots[arm.first].name
    second = REFERENCE if arm.second is None else run.pilots[arm.second].name
    where = f"between {first!r} and {second!r}"
    found: list[Finding] = []

    def add(level: str, code: str, sentence: str) -> None:
        found.append((level, Reason(code, f"{where}: {sentence}")))

    if not np.isfinite(r.error):
        level = "limit" if np.isfinite(r.value) else "fail"
        add(
            level,
            "never_visited",
            "one end was never reached; its probability is below 3 / ESS, which gives a limit only.",
        )
        return found
    rungs = int(np.isfinite(np.asarray(arm.tuning.log_prior)).sum())
    if rungs >= 24:
        add("caution", "long_path",
            f"{rungs} rungs were needed: the posterior is far from anything simple (a funnel? many modes?), and narrow "
            "parts of it may be missed.")  # fmt: skip
    if r.crossings < 20:
        add("fail" if r.crossings < 4 else "caution", "few_crossings",
            f"the chains crossed only {r.crossings} times; at least 20 are wanted.")  # fmt: skip
    if r.ess < 100:
        add(
            "fail" if r.ess < 25 else "caution",
            "small_ess",
            f"only {r.ess:.0f} effective draws; at least 100 are wanted.",
        )
    if r.rhat > 1.1:
        add(
            "fail" if r.rhat > 1.3 else "caution",
            "rhat",
            f"split R-hat of the share is {r.rhat:.2f}; below 1.1 is wanted.",
        )
    if r.disagreement > 3:
        add("fail" if r.disagreement > 5 else "caution", "estimators_disagree",
            f"MBAR gives {r.value:.4g}, Rao-Blackwell {r.second_value:.4g}: {r.disagreement:.1f} errors apart.")  # fmt: skip
    if r.pareto_k > 0.7:
        add("caution", "heavy_tail",
            f"Pareto k of the weights along the path is {r.pareto_k:.2f}; above 0.7, a part of the posterior may be missed.")  # fmt: skip
    if r.start_z > 4:
        add("fail" if r.start_z > 6 else "caution", "start_dependent",
            f"chains from the two ends differ by {r.start_z:.1f} errors.")  # fmt: skip
    if r.drift_z > 4:
        add(
            "fail" if r.drift_z > 6 else "caution",
            "drift",
            f"the two halves of the run differ by {r.drift_z:.1f} errors.",
        )
    return found


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
