"""The verdict on a run: every finding on looks, edges and endings fires where it is planted, and nowhere else."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine_problems import good_report, made_run
from supermodel.engine.explore import Look
from supermodel.engine.explore.capture import Capture
from supermodel.engine.goals import Goals
from supermodel.engine.judge import ENDINGS, _joint_error, agreement, judge
from supermodel.engine.policy import AGREE_ERRORS, AGREE_NATS, DISAGREE_ERRORS, VOUCHED
from supermodel.engine.recipe import Recipe
from supermodel.engine.roughness import Roughness
from supermodel.estimation.estimate import Estimate
from supermodel.models.rounding import REPEATS
from supermodel.results.posterior import ModelPosterior
from supermodel.verdict.next_steps import next_steps
from supermodel.verdict.verdict import LEVELS

TRUTH, ERROR = 3.0, 0.1  # what every look gives, with its error


def off(errors):
    """An answer that is so many joint errors away from a look."""
    return TRUTH + errors * math.hypot(ERROR + AGREE_NATS / AGREE_ERRORS, 0.02)


def levels(run):
    verdict = judge(run)
    return verdict.level, [reason.code for reason in verdict.reasons]


def two(first=TRUTH, looks=((TRUTH, ERROR), (TRUTH + 0.1, ERROR)), **report):
    return made_run({(0, None): good_report(first, **report), (1, None): good_report(1.0)}, {0: looks})


def test_a_good_run_has_no_findings():
    assert levels(two()) == ("ok", [])
    assert levels(two(looks=())) == ("ok", [])  # chains leave no ln Z of their own
    assert levels(two(looks=[(math.nan, math.nan)])) == ("ok", [])


def test_looks_that_disagree_fail():
    run = two(looks=((TRUTH, 0.02), (TRUTH - 4.0, 0.02)))
    run.pilots[0].is_agreed = False
    assert levels(run) == ("fail", ["looks_disagree"])
    sentence = judge(run).reasons[0].sentence
    assert "'m0'" in sentence and "-1.00 ± 0.02 (look)" in sentence


def test_chains_that_did_not_meet_are_told_without_numbers():
    run = two(looks=[(math.nan, math.nan)])
    run.pilots[0].is_agreed = False
    assert levels(run) == ("fail", ["looks_disagree"])
    assert "nan" not in judge(run).reasons[0].sentence and "did not meet" in judge(run).reasons[0].sentence


def test_a_single_look_is_told_unless_it_was_asked_for():
    run = two(looks=[(TRUTH, ERROR)])
    assert levels(run) == ("ok", [])  # a posterior that is normal to rounding: nothing was left to find
    run.pilots[0].spread = 0.3
    assert levels(run) == ("caution", ["single_look"])
    assert "'m0'" in judge(run).reasons[0].sentence
    run.explore = "quick"
    assert levels(run) == ("ok", [])
    run.explore, run.pilots[0].looks = "auto", 2 * run.pilots[0].looks
    assert levels(run) == ("ok", [])


def test_an_answer_that_no_look_stands_by():
    alone = [(TRUTH, ERROR)]
    assert levels(two(off(0.95 * AGREE_ERRORS), alone)) == ("ok", [])
    assert levels(two(off(1.05 * AGREE_ERRORS), alone)) == ("caution", ["pilot_disagrees"])
    assert levels(two(off(-1.05 * AGREE_ERRORS), alone)) == ("caution", ["pilot_disagrees"])
    assert levels(two(off(1.05 * DISAGREE_ERRORS), alone)) == ("fail", ["pilot_disagrees"])


def test_looks_that_are_too_vague_to_vouch():
    assert levels(two(looks=[(TRUTH + 1.5, 1.4), (TRUTH - 2.0, 3.0)])) == ("caution", ["vague_looks"])
    assert levels(two(looks=[(TRUTH + 1.5, 0.9), (TRUTH - 2.0, 3.0)])) == ("ok", [])
    assert levels(two(looks=[(TRUTH + 10.0, 1.4)])) == ("fail", ["pilot_disagrees"])
    alone = two(looks=[(TRUTH + 1.5, 1.4)])
    alone.pilots[0].spread = 0.3
    assert levels(alone)[0] == "fail"


def test_one_look_that_stands_by_the_answer_is_enough():
    answer = off(2 * DISAGREE_ERRORS)
    assert levels(two(answer, [(TRUTH, ERROR), (answer, ERROR)])) == ("ok", [])


def test_a_failure_on_an_edge_that_a_bayes_factor_rests_on():
    assert levels(two(ess=20.0)) == ("fail", ["small_ess"])
    assert levels(two(rhat=1.4)) == ("fail", ["rhat"])


def direct(spoiled):
    """m0 - m1 joined directly; only the absolute evidences rest on m0 - reference."""
    return made_run({(0, 1): good_report(1.0), (0, None): spoiled, (1, None): (good_report(0.0), False)})


@pytest.mark.parametrize(
    "planted, level",
    [
        ({}, "ok"),
        ({"ess": 20.0}, "caution"),  # a poor edge that no ln B rests on
        ({"crossings": 3}, "caution"),
        ({"rhat": 1.4}, "fail"),  # tells of a posterior that was not found: the direct edge stands on it as well
        ({"drift_z": 7.0}, "fail"),
    ],
)
def test_what_another_edge_says_of_a_model_spoils_its_bayes_factors(planted, level):
    run = direct(good_report(1.0, **planted))
    assert not run.matters(run.arms[1]) and run.matters(run.arms[0])
    assert judge(run).level == level


def test_an_end_that_was_never_reached_is_a_limit_from_any_edge():
    assert judge(direct(replace(good_report(1.0), error=math.inf))).level == "limit"
    unused = made_run(
        {(0, None): good_report(1.0), (1, None): good_report(1.0), (0, 1): (good_report(0.0, rhat=1.4), False)}
    )
    assert judge(unused).level == "fail"


@pytest.mark.parametrize("ended", [*ENDINGS, "interrupted"])
def test_a_run_that_ended_before_its_goal(ended):
    code = "interrupted" if ended == "interrupted" else "target_not_reached"
    edges = {(0, None): good_report(1.0, 0.3), (1, None): good_report(2.0)}
    assert levels(made_run(edges, ended=ended)) == ("caution", [code])
    met = {(0, None): good_report(1.0), (1, None): good_report(2.0)}
    expected = ("caution", [code]) if ended == "interrupted" else ("ok", [])
    assert levels(made_run(met, ended=ended)) == expected
    assert levels(made_run(edges, ended="target", target_error=0.1)) == ("ok", [])
    lone = made_run({(0, None): good_report(1.0, 0.3)}, ended=ended)
    assert levels(lone) == ("caution", [code])


@pytest.mark.parametrize("ended, code", [("interrupted", "interrupted"), ("max_seconds", "target_not_reached")])
def test_a_run_that_ended_before_anything_was_weighed_fails(ended, code):
    run = made_run({(0, None): None, (1, None): good_report(1.0)}, {0: [(TRUTH, ERROR)]}, ended=ended)
    assert levels(run) == ("fail", [code])
    assert run.evidences().log_evidence("m0").value == TRUTH


def rough(error=0.02, **planted):
    """Two good edges; the first model as rough as planted."""
    run = made_run({(0, None): good_report(3.0, error), (1, None): good_report(1.0, error)})
    run.pilots[0].roughness = Roughness(**planted)
    return run


SHIFTED = tuple(0.3 * (-1) ** i for i in range(REPEATS))


@pytest.mark.parametrize(
    "planted, expected",
    [
        ({"noise": 0.001}, ("ok", [])),  # adds nothing to an error of 0.02
        ({"noise": 0.01}, ("ok", ["rough"])),
        ({"noise": 0.01, "scale": 1e7}, ("ok", [])),  # the rounding of doubles
        ({"noise": 0.2}, ("caution", ["rough"])),  # above the target
        ({"noise": 1.1}, ("fail", ["rough"])),
        ({"noise": 0.001, "is_stochastic": True}, ("caution", ["rough"])),
        ({"noise": 1.1, "is_stochastic": True}, ("fail", ["rough"])),
        ({"shifts": (0.01,) * REPEATS}, ("ok", ["float32"])),
        ({"shifts": (1e-4,) * REPEATS}, ("ok", [])),
        ({"shifts": SHIFTED}, ("caution", ["float32"])),
        ({"shifts": SHIFTED, "noise": 0.5}, ("caution", ["float32"])),  # which single precision explains
        ({"shifts": (0.01,) * REPEATS, "noise": 0.5}, ("caution", ["rough"])),  # which it does not
    ],
)
def test_roughness_is_told_where_it_shows(planted, expected):
    assert levels(rough(**planted)) == expected
    lone = made_run({(0, None): good_report(3.0)})
    lone.pilots[0].roughness = Roughness(**planted)
    assert levels(lone) == expected


def test_what_two_models_have_in_common_is_no_fault_of_their_bayes_factor():
    run = rough(shifts=SHIFTED)
    run.pilots[1].roughness = Roughness(shifts=SHIFTED)
    assert levels(run) == ("ok", [])
    assert run.evidences().log_evidence("m0").error > 0.3 > 10 * run.evidences().log_bayes_factor("m0", "m1").error


def test_roughness_is_in_the_error_and_not_in_the_stopping():
    run = rough(noise=0.3)
    assert run.evidences().log_bayes_factor("m0", "m1").error == pytest.approx(math.hypot(0.3, 0.02 * math.sqrt(2)))
    assert run._difference(0, 1).error == pytest.approx(0.02 * math.sqrt(2))


@pytest.mark.parametrize("report, level", [(good_report(1.0), "caution"), (None, "fail")])
def test_a_checkpoint_that_was_lost_is_told_and_spoils_nothing(report, level):
    run = made_run({(0, None): report, (1, None): report})
    assert "checkpoint_lost" not in [reason.code for reason in judge(run).reasons]
    run.keep = SimpleNamespace(trouble="the disk is full.")
    verdict = judge(run)
    assert verdict.level == level and verdict.reasons[-1].code == "checkpoint_lost"
    assert verdict.reasons[-1].sentence.endswith("the disk is full.")


# -- posteriors -------------------------------------------------------------------------------------------------------


def posterior(rng, shift=0.0, draws=600):
    """A posterior of one number from 16 chains, each `shift` of a random place away from the others."""
    values = rng.standard_normal((16, draws)) + shift * rng.standard_normal((16, 1))
    n = values.size
    nothing, chain = np.zeros(n), np.repeat(np.arange(16), draws)
    return ModelPosterior("m0", {"x": values.ravel()}, np.full(n, -np.log(n)), nothing, nothing, chain)


def test_chains_that_stand_apart_in_a_parameter_are_told(rng):
    codes = lambda *given: [reason.code for reason in judge(two(), {"m0": posterior(rng, *given)}).reasons]  # noqa: E731
    assert codes(0.5) == ["posterior_rhat"]
    assert codes() == codes(0.0, 24) == []  # few draws have an R-hat above 1.01, and nothing is wrong with them
    assert codes(3.0, 8) == [
        "posterior_rhat"
    ]  # 8 draws tell nothing of what chains remember: R-hat above 1.1 is enough
    sentence = judge(two(), {"m0": posterior(rng, 0.5)}).reasons[0].sentence
    assert "'x' under 'm0'" in sentence and "have not forgotten" in sentence and "min_ess=400" in sentence


def test_looks_at_many_parameters_may_be_lower_than_the_answer_but_not_higher():
    """Adaptive weights are biased low; a look that is higher has seen what the answer misses."""

    def off(look, dimension):
        return abs(-46.5 - look) / _joint_error(Look("levels", look, 0.06, 100), Estimate(-46.5, 0.01), dimension)

    assert off(-47.1, 20) < AGREE_ERRORS < off(-47.1, 5) == off(-47.1, 10)
    assert off(-45.9, 20) > AGREE_ERRORS


@pytest.mark.parametrize("planted", [{"pareto_k": 1.4, "largest": 0.3}, {"pareto_k": 0.9, "rungs": 40}])
def test_where_ln_j_is_concave_nothing_can_hide_in_a_heavy_tail(rng, planted):
    """Far from normal it costs draws; one mode and no funnel leave nothing to miss. Everything else counts as ever."""
    run = made_run({(0, None): good_report(-3.0, **planted), (1, None): good_report(-5.0)})
    apart = {"m0": posterior(rng, 0.5)}
    assert judge(run).level == judge(run, apart).level == "fail"
    run.pilots[1].is_concave = True
    assert judge(run).level == "fail"  # of the other model
    run.pilots[0].is_concave = True
    assert judge(run).level == judge(run, apart).level == "caution"
    run.arms[0].report = good_report(-3.0, rhat=1.5, **planted)
    assert judge(run).level == "fail"


def test_chains_that_stand_apart_on_a_path_with_a_heavy_tail_have_missed_a_part(rng):
    apart = {"m0": posterior(rng, 0.5)}
    assert [level for level, _ in agreement(apart, Goals())] == ["caution"]
    assert [level for level, _ in agreement(apart, Goals(), {"other"})] == ["caution"]
    ((level, reason),) = agreement(apart, Goals(), {"m0"})
    assert level == "fail" and "a part of it is missed" in reason.sentence
    ((level, _),) = agreement({"m0": posterior(rng, 3.0, 8)}, Goals(), {"m0"})  # too short to tell what they remember
    assert level == "fail" and agreement({"m0": posterior(rng)}, Goals(), {"m0"}) == []


def test_fewer_draws_than_were_asked_for_are_told(rng):
    asked, made = Goals(min_ess=5000), {"m0": posterior(rng, 0.0, 200)}
    (level, reason), *others = agreement(made, asked)
    assert (level, reason.code, others) == (
        "caution",
        "short_posterior",
        [],
    ) and "asked for were 5000" in reason.sentence
    assert agreement(made, Goals(min_ess=400)) == agreement(made, Goals()) == []
    for goals, more in (
        (asked, True),
        (Goals(min_ess=400), False),
        (Goals(), False),
    ):  # the paper's chain goes on as well
        assert Recipe._is_short(SimpleNamespace(goals=goals, posteriors=lambda: made)) is more


# -- what rests on a finding --------------------------------------------------------------------------------------------


def three(spoiled=None, edges=None, looks=None):
    """m0, m1 and m2, each on the reference, with figures planted in some edges."""
    reports = {(k, None): good_report(float(k), **(spoiled or {}).get(k, {})) for k in range(3)}
    return made_run(edges or reports, looks)


def pairs(run):
    verdict = judge(run)
    return {(a, b): verdict.between(f"m{a}", f"m{b}").level for a, b in ((0, 1), (0, 2), (1, 2))}


@pytest.mark.parametrize("planted", [{"ess": 20.0}, {"rhat": 1.4}, {"crossings": 3}, {"drift_z": 7.0}])
def test_a_fault_on_the_edge_of_one_model_is_of_the_pairs_with_it(planted):
    run = three({2: planted})
    assert judge(run).level == "fail"
    assert pairs(run) == {(0, 1): "ok", (0, 2): "fail", (1, 2): "fail"}
    assert [judge(run).of(f"m{k}").level for k in range(3)] == ["ok", "ok", "fail"]


def test_looks_that_disagree_are_of_the_pairs_with_that_model():
    run = three(looks={2: ((2.0, 0.02), (-2.0, 0.02))})
    run.pilots[2].is_agreed = False
    assert judge(run).level == "fail" and pairs(run) == {(0, 1): "ok", (0, 2): "fail", (1, 2): "fail"}


def chained(**planted):
    """m1 hangs on m0, whose edge to the reference has the fault; m2 is on the reference itself."""
    spoiled = good_report(0.0, **planted)
    return three(edges={(0, None): spoiled, (1, 0): good_report(1.0), (2, None): good_report(2.0)})


def test_an_edge_on_which_two_models_hang_cancels_between_them():
    run = chained(ess=20.0)
    assert judge(run).level == "fail" and pairs(run) == {(0, 1): "caution", (0, 2): "fail", (1, 2): "fail"}
    assert [judge(run).of(f"m{k}").level for k in range(3)] == ["fail", "fail", "ok"]


def test_a_posterior_that_was_not_found_spoils_what_stands_on_it():
    run = chained(rhat=1.4)  # tells of m0's posterior: m1 is weighed against it
    assert pairs(run) == {(0, 1): "fail", (0, 2): "fail", (1, 2): "fail"}
    assert [judge(run).of(f"m{k}").level for k in range(3)] == ["fail", "fail", "ok"]
    run = chained()
    run.pilots[0].is_agreed = False
    assert pairs(run) == {(0, 1): "fail", (0, 2): "fail", (1, 2): "fail"}
    leaf = chained()
    leaf.pilots[1].is_agreed = False
    assert pairs(leaf) == {(0, 1): "fail", (0, 2): "ok", (1, 2): "fail"}


def test_a_rough_likelihood_is_of_its_own_pairs():
    run = three()
    run.pilots[2].roughness = Roughness(noise=1.6)
    assert pairs(run) == {(0, 1): "ok", (0, 2): "fail", (1, 2): "fail"}


def test_chains_that_disagree_on_a_heavy_path_are_of_their_model(rng):
    run = three({2: {"pareto_k": 0.9}})
    verdict = judge(run, {"m2": posterior(rng, 3.0)})
    assert verdict.level == "fail" and verdict.between("m0", "m1").level == "ok"
    assert verdict.between("m0", "m2").level == verdict.of("m2").level == "fail"


def test_a_target_that_one_model_alone_does_not_meet_is_told_of_its_pairs():
    edges = {(0, None): good_report(1.0), (1, None): good_report(2.0), (2, None): good_report(3.0, 0.3)}
    run = made_run(edges, ended="max_evaluations")
    assert pairs(run) == {(0, 1): "ok", (0, 2): "caution", (1, 2): "caution"}
    edges[0, None] = good_report(1.0, 0.3)
    assert pairs(made_run(edges, ended="max_evaluations"))[0, 1] == "caution"


def test_the_whole_is_as_bad_as_the_worst_pair():
    for planted in ({}, {"ess": 60.0}, {"ess": 20.0}, {"rhat": 1.4}, {"pareto_k": 1.7, "largest": 0.2}):
        for run in (three({1: planted}), chained(**planted)):
            assert judge(run).level == max(pairs(run).values(), key=LEVELS.index)


def test_the_sentence_of_a_tail_means_its_level():
    heavy = {"pareto_k": 1.7, "pareto_error": 0.2, "largest": 0.23}
    failed, unsure = two(**heavy), two(**heavy | {"pareto_k": 1.06})  # at 95% above 1.37, and above 0.73
    assert levels(failed) == ("fail", ["heavy_tail"]) and levels(unsure) == ("caution", ["heavy_tail"])
    said, heard = (judge(run).reasons[0].sentence for run in (failed, unsure))
    assert (
        "is missed" in said and "is missed" not in heard and "may be missed" in heard and "at 95% above 0.73" in heard
    )
    concave = two(**heavy)
    for pilot in concave.pilots:
        pilot.is_concave = True
    assert levels(concave) == ("caution", ["heavy_tail"]) and "nothing to miss" in judge(concave).reasons[0].sentence


# -- what replicates say, and what carries a model's name ----------------------------------------------------------------


def vouched(apart=0.0, **planted):
    """As `three`, m2's edge with the fault, and replicates of m2 whose ln Z is so many of their errors off the edge's."""
    run, knows = three({2: planted}), 0.05
    pilot, report = run.pilots[2], run.arms[2].report
    error = math.hypot(report.error if math.isfinite(report.error) else 0.0, knows)
    pilot.capture, pilot.vouched, pilot.log_evidence = Capture(3, 0.01, 0.02), knows, report.value + apart * error
    return run


@pytest.mark.parametrize("planted", [{"rhat": 1.4}, {"ess": 20.0}, {"pareto_k": 1.7, "largest": 0.2}])
def test_what_replicates_vouch_for_is_a_caution_at_most_of_whatever_rests_on_it(planted):
    run = vouched(0.9 * VOUCHED, **planted)
    verdict, faults = judge(run), judge(run).reasons
    assert verdict.level == "caution" and pairs(run) == {(0, 1): "ok", (0, 2): "caution", (1, 2): "caution"}
    assert verdict.of("m2").level == "caution" and verdict.of("m0").level == "ok"
    assert [r.level for r in faults] == ["caution"] and "vouch" in faults[0].sentence
    off_by_more = vouched(1.1 * VOUCHED, **planted)
    assert judge(off_by_more).level == "fail" and pairs(off_by_more) == {(0, 1): "ok", (0, 2): "fail", (1, 2): "fail"}
    at_odds = vouched(0.0, **planted)
    at_odds.pilots[2].is_agreed = False  # replicates that disagree vouch for nothing
    assert judge(at_odds).level == "fail" and pairs(at_odds)[0, 1] == "ok"


def test_a_caution_that_replicates_vouch_for_keeps_its_sentence():
    run = vouched(rhat=1.2)
    assert levels(run) == ("caution", ["rhat"])
    assert "vouch" not in judge(run).reasons[0].sentence


def test_replicates_that_disagree_doubt_the_pairs_of_their_model_alone():
    run = three(looks={2: ((2.0, 0.02), (2.4, 0.02))})
    run.pilots[2].capture = Capture(4, 0.02, 0.2)
    assert levels(run) == ("ok", [])
    run.pilots[2].is_agreed, run.pilots[2].doubt = False, 0.21
    assert judge(run).level == "caution" and pairs(run) == {(0, 1): "ok", (0, 2): "caution", (1, 2): "caution"}
    assert "0.21 nats" in judge(run).reasons[0].sentence and "mode is 2%" in judge(run).reasons[0].sentence


def test_parameters_that_are_not_read_and_rejected_points_are_of_their_model():
    run = three()
    run.unread = {"m0": (), "m1": ("lewel",), "m2": ()}
    run.probes = [(SimpleNamespace(name=f"m{k}", rejected=9 if k == 2 else 0), None) for k in range(3)]
    verdict = judge(run)
    assert {(r.code, r.level, r.models) for r in verdict.reasons} == {
        ("unused_parameter", "caution", ("m1",)), ("rejected", "caution", ("m2",)),
    }  # fmt: skip
    assert verdict.of("m0").reasons == () and verdict.of("m1").reasons[0].code == "unused_parameter"


def test_what_to_do_next_is_of_the_model_that_failed_and_not_of_those_that_stand_on_it():
    run = chained()
    run.pilots[0].is_agreed = False
    assert judge(run).reasons[0].models == ("m0", "m1")
    steps = next_steps(judge(run), tuple(run.models))
    assert "at 'm0' with" in steps[0] and not any("'m1'" in step or "'m2'" in step for step in steps)
