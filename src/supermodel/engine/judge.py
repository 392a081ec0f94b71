"""The verdict on a run: what the table of rules finds in its records, and how the run ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from supermodel.embedding.reference import REFERENCE
from supermodel.engine.arm import Arm
from supermodel.engine.explore import Look
from supermodel.engine.goals import Goals
from supermodel.engine.policy import AGREE_ERRORS, AGREE_NATS, DISAGREE_ERRORS, VAGUE
from supermodel.engine.roughness import Roughness
from supermodel.engine.run import Run
from supermodel.estimation.estimate import UNKNOWN, Estimate, Evidences
from supermodel.report.tables import scalar_label
from supermodel.results.posterior import CONVERGED, ENOUGH, ModelPosterior
from supermodel.verdict.examine import HEAVY
from supermodel.verdict.rules import findings
from supermodel.verdict.verdict import Finding, Reason, Verdict, about, worst

ENDINGS = {
    "max_evaluations": "the limit on evaluations",
    "max_seconds": "the limit on time",
    "stuck": "chains that do not cross",
    "length": "the longest chain that this method runs",
}


SPOILS = {
    "rhat",
    "drift",
    "heavy_tail",
    "never_visited",
}  # on any edge of a model: what it says of the pilot holds for all its edges
FAR = {"heavy_tail", "long_path"}  # what tells of parts that are missed, unless there can be none


def judge(run: Run, posteriors: Mapping[str, ModelPosterior] | None = None) -> Verdict:
    """All findings on the edges, the looks at every model, its posterior, and on how the run ended."""
    if not run.is_weighed:
        why = ENDINGS.get(run.ended, "an interruption")
        listed = ", ".join(map(repr, run.models))
        sentence = (
            f"the run ended by {why} before the models ({listed}) could be weighed: what it shows is a rough look."
        )
        code = "interrupted" if run.ended == "interrupted" else "target_not_reached"
        sentence += goes_on(run)
        return worst([("fail", Reason(code, sentence)), *unused(run.unread, run.models), *unkept(run)])
    found: list[Finding] = []
    for arm in run.arms:
        if arm.report is None:
            continue
        for finding in findings(arm.report, between(*arm.edge.pair.names)):
            found.append(_on_edge(run, arm, finding, posteriors or {}))
    rough = {pilot.name: pilot.roughness for pilot in run.pilots}
    found += _looks(run) + neighbours(rough, run.evidences(), run.goals)
    heavy = {
        name
        for arm in run.arms
        if arm.report is not None
        and arm.report.surely_heavy > HEAVY
        and not run.is_concave(arm)
        and not run.is_vouched(arm)
        for name in arm.edge.pair.names
    }
    found += agreement(posteriors or {}, run.goals, heavy)
    for joint, _ in run.probes:
        found += about(rejections({joint.name: joint.rejected}, run.evaluations), joint.name)
    found += unused(run.unread, run.models) + unreached(run)
    return worst(_spread(run, found) + ending(run.ended, run.evidences(), run.goals, goes_on(run)) + unkept(run))


def between(first: str, second: str) -> str:
    """Where a finding comes from, in words of which a user knows each."""
    other = "the reference (a density of known integral, fitted to it)" if second == REFERENCE else repr(second)
    return f"between {first!r} and {other}: "


def _is_eased(run: Run, arm: Arm, code: str) -> bool:
    """Whether a finding on an edge is a caution at most in every Bayes factor.

    An edge that serves the absolute evidences only cannot spoil a Bayes factor, unless it tells of a model whose posterior was not
    found: every edge of that model stands on the same exploration. Where ln J is concave there is nothing else to find.
    """
    if run.is_concave(arm):
        return code in FAR or not run.matters(arm)
    return not run.matters(arm) and code not in SPOILS


ALIKE = " (Replicates, each with random numbers of its own, agree among themselves and vouch for the answer.)"
CONCAVE = " (ln J is concave, as far as slopes tell: there is one mode, and nothing to miss.)"


def _on_edge(run: Run, arm: Arm, finding: Finding, posteriors: Mapping[str, ModelPosterior]) -> Finding:
    """A finding on an edge, with what rests on it: ln B across the edge, and the posteriors made of its draws.

    One that tells of a posterior that was not found is of the models at its ends, whatever the way. Where replicates vouch for the
    answer it is a caution at most.
    """
    (level, reason), names, e = finding, [pilot.name for pilot in run.chained], run.arms.index(arm)
    behind = {name for name, used in zip(names, run.paths()[:, e], strict=True) if used}
    ends = [name for name in arm.edge.pair.names if name in names]
    record = sum(other.report is not None for other in run.arms[:e])  # its number among those that have draws
    drawn = {name for name in ends if name in posteriors and posteriors[name].record == record}
    if run.is_vouched(arm):
        said = reason.sentence + (ALIKE if level != "caution" else "")
        level, reason = "caution", replace(reason, sentence=said)
    elif level == "fail" and reason.code in FAR and run.is_concave(arm):
        level, reason = "caution", replace(reason, sentence=reason.sentence + CONCAVE)
    eased = "caution" if _is_eased(run, arm, reason.code) else level
    own = level if arm.is_used else eased  # an edge that is not used only checks
    if reason.code in SPOILS and not run.is_concave(arm):
        resting, behind = behind.union(*(standing_on(run, end) for end in ends)), set()
    else:
        resting = behind | drawn or set(ends)
    models, side = (tuple(name for name in names if name in some) for some in (resting, behind))
    return eased, replace(reason, level=own, models=models, behind=side)


def _spread(run: Run, found: list[Finding]) -> list[Finding]:
    """The same; where one model failed, so has what stands on it."""
    return [
        (level, replace(reason, models=standing_on(run, *reason.models)))
        if level == "fail" and len(reason.models) == 1 and not reason.behind
        else (level, reason)
        for level, reason in found
    ]


def standing_on(run: Run, name: str) -> tuple[str, ...]:
    """The models whose way to the reference leads through this one, itself among them: they rest on its exploration."""
    names = [pilot.name for pilot in run.chained]
    if name not in names:
        return (name,)
    used = run.paths() != 0
    return tuple(other for other, way in zip(names, used, strict=True) if np.all(way >= used[names.index(name)]))


APART = 1e-3  # probability, over all parameters, that chains which forget look as if they remembered
LOOSE = 1.1  # R-hat from which on so few draws are left that nobody could tell
DISAGREE = (
    "R-hat of {!r} under {!r} is {:.3f}, with {:.0f} effective draws; below {} is wanted. {} Means and quantiles of this "
    "posterior are doubtful; min_ess={:.0f} asks for more draws."
)
MISSED = " The weights on its way have a heavy tail too, so that a part of it is missed, from ln Z as well."
SHORT = "the posterior of {!r} has {:.0f} effective draws and R-hat {:.3f}; asked for were {:.0f} and {} (min_ess)."


def agreement(posteriors: Mapping[str, ModelPosterior], goals: Goals, heavy: Collection[str] = ()) -> list[Finding]:
    """What is to be said of chains that do not agree on a parameter; of a model in `heavy`, whose weights have a heavy tail as
    well, that is a failure: chains that do not meet, on a path that ends in one, have not seen all.

    R-hat of few draws is above 1.01 by chance (it is about 1 + 4 / ESS): it counts where chains keep the order in which they
    stood, which by chance they do not, or where it is beyond all chance.
    """
    found: list[Finding] = []
    n = sum(len(posterior.convergence) for posterior in posteriors.values())
    for name, posterior in posteriors.items():
        apart = {
            scalar: each
            for scalar, each in posterior.convergence.items()
            if each.rhat > LOOSE or (each.rhat > CONVERGED and n * each.memory < APART)
        }
        if apart:
            scalar, worst_of = max(apart.items(), key=lambda item: item[1].rhat)
            why = (
                "The chains have not forgotten where they were."
                if n * worst_of.memory < APART
                else "The chains are too short."
            )
            sentence = DISAGREE.format(scalar_label(*scalar), name, worst_of.rhat, worst_of.ess, CONVERGED, why, ENOUGH)
            level, more = ("fail", MISSED) if name in heavy else ("caution", "")
            found.append((level, Reason("posterior_rhat", sentence + more, models=(name,))))
        elif goals.is_short(posterior):
            sentence = SHORT.format(name, posterior.worst_ess, posterior.worst_rhat, goals.min_ess, CONVERGED)
            found.append(("caution", Reason("short_posterior", sentence, models=(name,))))
    return found


def unkept(run: Any) -> list[Finding]:
    """What is to be said of a checkpoint that could not be written any more: the answer is sound, the file is old."""
    trouble = getattr(run.keep, "trouble", "")
    return [("caution", Reason("checkpoint_lost", LOST.format(trouble)))] if trouble else []


def _looks(run: Run) -> list[Finding]:
    """The evidences against those that the looks gave on their way: independent routes to one number."""
    evidences, found = run.evidences(), []
    for pilot in run.pilots:
        final = evidences.log_evidence(pilot.name)
        rough = [look for look in pilot.looks if np.isfinite(look.log_evidence)]
        told = ", ".join(f"{look.log_evidence:.2f} ± {look.error:.2f} ({look.name})" for look in rough)
        sentence = f"ln Z of {pilot.name!r} is {final.value:.2f} ± {final.error:.2f}; the looks at it (explorations) gave {told}."
        if not pilot.is_agreed and pilot.capture.replicates > 1:
            found.append(
                ("caution", Reason("looks_disagree", sentence + DOUBT.format(pilot.doubt, pilot.capture.missed)))
            )
        elif not pilot.is_agreed:
            found.append(("fail", Reason("looks_disagree", sentence if rough else NO_LOOK.format(pilot.name))))
        elif rough:
            # At least one look must stand by the answer; how far off the nearest is, in errors.
            off = min(
                abs(final.value - look.log_evidence) / _joint_error(look, final, pilot.joint.dimension)
                for look in rough
            )
            if off > AGREE_ERRORS:
                found.append(("fail" if off > DISAGREE_ERRORS else "caution", Reason("pilot_disagrees", sentence)))
            elif min(look.error for look in rough) > VAGUE:
                found.append(("fail" if pilot.is_seen_once else "caution", Reason("vague_looks", sentence + VOUCH)))
        if run.is_dear and pilot.evaluations:
            found.append(("ok", Reason("thrifty", THRIFTY.format(run.pace, pilot.evaluations, pilot.name))))
        if pilot.is_seen_once and run.explore != "quick":
            found.append(("caution", Reason("single_look", ONE_LOOK.format(pilot.name))))
        found = about(found, pilot.name)
    return found


def _joint_error(look: Look, final: Estimate, dimension: int) -> float:
    """Adaptive weights are biased low, the more the more parameters there are: a look that is too low is no rival."""
    nats = AGREE_NATS * (max(1.0, dimension / TEN) if look.log_evidence < final.value else 1.0)
    return float(np.hypot(look.error + nats / AGREE_ERRORS, min(final.error, UNKNOWN)))


TEN = 10.0  # parameters up to which AGREE_NATS holds
LOST = "the answer is complete, but the checkpoint is that of an earlier moment of this run: {}"
VOUCH = " They are too vague to vouch for it: the answer rests on its own chains."
THRIFTY = (
    "calls take {:.2g} s, so that {} of them looked for the posterior of {!r}, a tenth of the usual number. A narrow mode, which "
    "fills less than a hundredth of the prior, may be missed; explore='thorough' looks for it."
)
DOUBT = (
    " They do not agree: the error holds {:.2f} nats for that, and the chance that all have missed a mode is {:.0%}."
)
ONE_LOOK = "the budget had room for one look (exploration) at {!r} only: what it missed, no other could tell."
NO_LOOK = "the chains that explored {!r} from different starts did not meet: a part of its posterior may be missed."


TOLD = 0.1  # share of an error that roughness has, from which on it is worth a word: below, it adds half a percent
NOISY = 1.0  # nats of noise: chains then walk on the noise, not on the likelihood
SINGLE = (
    "model {!r} holds numbers of single precision (float32), which leave its ln Z unsure by {:.1g} nats. Call "
    "jax.config.update('jax_enable_x64', True) before the arrays are made, or pass NumPy arrays as data=."
)
ROUGH = (
    "ln L of {!r} scatters by {:.2g} nats between neighbouring points, and no error can be smaller. Compute it in "
    "double precision, or tighten the tolerance of its solver."
)
STOCHASTIC = (
    "ln L of {!r} has two values at one point, and scatters by {:.2g} nats: on average it is too high by half the "
    "square of that. Fix its random numbers."
)


NOTICEABLE = 1e-3  # share of all evaluations
REJECTED = (
    "ln L of {!r} was NaN, or raised, at {} of {} evaluations, which count as impossible. Where the model is possible "
    "after all, its ln Z is too low."
)


def neighbours(found: Mapping[str, Roughness], evidences: Evidences, goals: Goals) -> list[Finding]:
    """What is to be said of likelihoods that are rough, where a Bayes factor (or a lone evidence) can tell."""
    told: list[Finding] = []
    for name, rough in found.items():
        errors = [(rough.between(found[b]), evidences.log_bayes_factor(name, b).error) for b in found if b != name]
        errors = errors or [(rough.floor, evidences.log_evidence(name).error)]
        matters = any(part > TOLD * whole for part, whole in errors)
        level = "caution" if max(part for part, _ in errors) > goals.target_error else "ok"
        if rough.is_rough and (matters or rough.is_stochastic):
            level = "fail" if rough.noise > NOISY else "caution" if rough.is_stochastic else level
            sentence = STOCHASTIC if rough.is_stochastic else ROUGH
            told.append((level, Reason("rough", sentence.format(name, rough.noise), models=(name,))))
        elif rough.single > 0 and matters:
            told.append((level, Reason("float32", SINGLE.format(name, rough.floor), models=(name,))))
    return told


def rejections(counts: Mapping[str, int], evaluations: int) -> list[Finding]:
    """What is to be said of points that counted as impossible because a likelihood gave no number."""
    return [
        ("caution" if n > NOTICEABLE * evaluations else "ok", Reason("rejected", REJECTED.format(name, n, evaluations)))
        for name, n in counts.items()
        if n
    ]


UNUSED = (
    "ln L of {!r} does not depend on {}: the data say nothing of it, and it cannot move ln B. If that is not meant, a name is "
    "misspelt, in the prior or in the likelihood."
)


def unused(found: Mapping[str, Collection[str]], models: Mapping[str, Any]) -> list[Finding]:
    """What is to be said of parameters that a likelihood does not read: most of all where they are what sets two models apart."""
    told: list[Finding] = []
    for name, parameters in found.items():
        sets_apart = any(p not in other.priors for p in parameters for other in models.values())
        listed = " and ".join(repr(p) for p in parameters)
        if parameters:
            sentence = UNUSED.format(name, listed)
            told.append(("caution" if sets_apart else "ok", Reason("unused_parameter", sentence, models=(name,))))
    return told


UNREACHED = (
    "{} was not explored: it would have taken more than its part of {}. Probabilities are among the models that were"
    "{}. Without the limit, or with a larger one, the others are explored too."
)
RISING = ", of which the largest is the most probable: there may be more"


def unreached(run: Run) -> list[Finding]:
    """What is to be said where a limit left out models that grow: while ln Z has not fallen, only a bound is known."""
    if not run.cut_short:
        return []
    rough = [pilot.rough_log_evidence for pilot in run.pilots]
    is_rising = rough[-1] == max(rough)
    sentence = UNREACHED.format(repr(run.left_out[0]), ENDINGS[run.cut_short], RISING if is_rising else "")
    return [("limit" if is_rising else "caution", Reason("not_reached", sentence, level="caution"))]


def goes_on(run: Any) -> str:
    """How a run that was stopped goes on, if it can."""
    if run.ended != "interrupted":
        return ""
    return RESUMED if run.keep is not None else " With `checkpoint` the same call would go on from here."


RESUMED = " The same call, with the same checkpoint, goes on from here."


def ending(ended: str, evidences: Evidences, goals: Goals, then: str = "") -> list[Finding]:
    """What is to be said of a run that ended before its goal."""
    if ended in ("target", "decided"):
        return []
    names = evidences.names
    errors = {(a, b): evidences.log_bayes_factor(a, b).error for a in names for b in names if a != b}
    errors = errors or {names: evidences.log_evidence(names[0]).error}
    error, far = max(errors.values()), [set(pair) for pair, each in errors.items() if not each <= goals.target_error]
    code = "interrupted" if ended == "interrupted" else "target_not_reached"
    if not far and code == "target_not_reached":
        return []
    why = ENDINGS.get(ended, "an interruption")
    sentence = f"the run ended by {why} at an error of {error:.3g}; the target was {goals.target_error:.3g}."
    common = set.intersection(*far) if far else set()  # in every pair that is not known well enough
    return [("caution", Reason(code, sentence + then, models=tuple(name for name in names if name in common)))]
