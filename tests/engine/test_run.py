"""The run between its blocks: orders, paths, cycles, budgets, and Ctrl-C at any call."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from engine_problems import gamma_rates, good_report, made_run
from supermodel.engine import goals, meter
from supermodel.engine.cycles import close_cycles, open_cycle
from supermodel.engine.kernels import KERNELS
from supermodel.engine.policy import (
    CHEAP,
    CLOSED,
    CLOSING_ERROR,
    DEAR,
    EFFORTS,
    EXPLORING,
    MOST_WORTH,
    TYPICAL,
    VOUCHED,
)
from supermodel.engine.probe import canonical, probe
from supermodel.engine.run import Run
from supermodel.estimation.estimate import UNKNOWN

# -- orders -----------------------------------------------------------------------------------------------------------


def test_parameters_of_most_models_come_first():
    models = {
        "one": sm.Model({"z": stats.norm(), "a": stats.norm()}, lambda p: float(p["a"])),
        "two": sm.Model({"b": stats.norm(), "z": stats.norm()}, lambda p: float(p["b"])),
    }
    assert [joint.space.names for joint in canonical(models, None)] == [("z", "a"), ("z", "b")]


def test_models_are_taken_in_an_order_that_does_not_depend_on_their_names():
    models, _ = gamma_rates()
    orders = []
    for given in (models, dict(reversed(models.items()))):
        run = Run(given, None, 3)
        run.probes = probe(run.models, run.data, run.seed, run.meter)
        orders.append([joint.name for joint, _ in run.probes])
    assert orders[0] == orders[1] == ["pooled", "separate"]  # fewer parameters first


# -- first draws -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed, blocks",
    [
        ({}, 15),
        ({"dimension": 20}, 6),
        ({"spent": 100_000}, MOST_WORTH),
        ({"is_traced": False}, 15),
        ({"is_traced": False, "dimension": 20}, 0),
        ({"pace": 2 * DEAR}, 0),
        ({"second": 1}, 0),
        ({"kernel": "hamiltonian"}, 0),
    ],
)
def test_first_draws_are_more_where_a_posterior_was_dear_to_find(changed, blocks):
    """A half of 8 000 evaluations at 256 a block, of few parameters a fifth; none of black boxes of few parameters, of dear
    calls, of direct edges, of trajectories.
    """
    what = {
        "is_traced": True,
        "dimension": 100,
        "second": None,
        "spent": 8_000,
        "kernel": "reference_jumps",
        "pace": 0.0,
    }
    what |= changed
    edge = SimpleNamespace(
        is_traced=what["is_traced"], kernel=KERNELS[what["kernel"]], pair=SimpleNamespace(dimension=what["dimension"]),
        cost_of_a_step=lambda tuning: 16,
    )  # fmt: skip
    arm = SimpleNamespace(first=0, second=what["second"], edge=edge, tuning=None)
    run = Run({}, None, 0, pilots=[SimpleNamespace(evaluations=what["spent"], is_known=False)], pace=what["pace"])
    assert run._worth(arm) == blocks


# -- what is known ----------------------------------------------------------------------------------------------------


def test_evidences_and_their_covariance_follow_from_the_edges():
    """m0 - reference, m1 - m0, m2 - reference: ln Z_1 is a sum of two edges, and shares one with ln Z_0."""
    edges = {(0, None): good_report(2.0, 0.1), (1, 0): good_report(0.5, 0.2), (2, None): good_report(7.0, 0.3)}
    found = made_run(edges).evidences()
    assert np.allclose([found.log_evidence(f"m{k}").value for k in range(3)], [2.0, 2.5, 7.0])
    assert found.log_evidence("m1").error == pytest.approx(np.hypot(0.1, 0.2))
    assert found.log_bayes_factor("m1", "m0").error == pytest.approx(0.2)
    assert found.log_bayes_factor("m1", "m2").error == pytest.approx(np.sqrt(0.01 + 0.04 + 0.09))


def test_the_next_block_goes_where_the_variance_per_evaluation_is_largest():
    run = made_run(
        {(0, None): good_report(9.0, 0.1), (1, None): good_report(1.0, 0.3), (2, None): good_report(5.0, 0.2)}
    )
    assert run._worst_pair() == (0, 1) and run._most_useful() is run.arms[1]
    run.arms[1].edge.evaluations = 100_000
    assert run._most_useful() is run.arms[0]
    run.arms[0].report = good_report(9.0, 0.01, ess=30.0)  # not settled: its error means little
    assert run._most_useful() is run.arms[0]


def test_a_run_stops_at_its_target_and_not_before_it_is_settled():
    edges = {(0, None): good_report(2.0, 0.05), (1, None): good_report(1.0, 0.05)}
    assert made_run(edges, ended="", target_error=0.1)._stop() == "target"
    assert made_run(edges, ended="", target_error=0.05)._stop() == ""
    unsettled = edges | {(0, None): good_report(2.0, 0.05, rhat=1.07)}
    assert made_run(unsettled, ended="", target_error=0.1)._stop() == ""
    assert made_run(edges, ended="", target_error=1e-3, decide=(-2.0, 0.5))._stop() == "decided"
    assert made_run(edges, ended="", target_error=1e-3, decide=(-2.0, 1.05))._stop() == ""


# -- cycles -----------------------------------------------------------------------------------------------------------


def cycle(value, error=0.02, around=0.02, prior_share=0.05):
    """m0 - m1 joined directly with ln B `value`; through the reference it is 1."""
    first, second = good_report(3.0, around / np.sqrt(2)), good_report(2.0, around / np.sqrt(2))
    return made_run(
        {(0, 1): good_report(value, error), (0, None): first, (1, None): (second, False)},
        ended="",
        prior_share=prior_share,
    )


def test_a_direct_edge_that_agrees_with_the_way_round_is_kept():
    run = cycle(1.0 + 0.9 * CLOSED * np.hypot(0.02, 0.02))
    close_cycles(run.arms)
    assert [arm.is_used for arm in run.arms] == [True, True, False]
    assert run.evidences().log_bayes_factor("m0", "m1").error == pytest.approx(0.02)


@pytest.mark.parametrize("value", [1.0 + 1.1 * CLOSED * np.hypot(0.02, 0.02), 1.0 - 0.5, np.nan])
def test_a_direct_edge_that_disagrees_is_dropped(value):
    run = cycle(value)
    close_cycles(run.arms)
    assert [arm.is_used for arm in run.arms] == [False, True, True]
    found = run.evidences().log_bayes_factor("m0", "m1")
    assert found.value == pytest.approx(1.0) and found.error == pytest.approx(0.02)


def test_only_references_that_hold_the_prior_vouch_for_a_direct_edge():
    run = cycle(1.0 - 0.5, prior_share=0.0)
    close_cycles(run.arms)
    assert [arm.is_used for arm in run.arms] == [True, True, False] and open_cycle(run.arms) is None


def test_a_way_round_that_is_not_known_well_enough_is_sampled_first():
    run = cycle(1.5, around=2 * CLOSING_ERROR)
    close_cycles(run.arms)
    assert run.arms[0].is_used  # nothing can be said yet
    assert open_cycle(run.arms) in run.arms[1:] and run._stop() == ""
    assert run._most_useful() in run.arms[1:]
    closed = cycle(1.0)
    assert open_cycle(closed.arms) is None and closed._stop() == "target"


# -- before anything is weighed ---------------------------------------------------------------------------------------


def test_a_rough_answer_is_that_of_the_best_look():
    run = made_run({(0, None): None, (1, None): None}, {0: [(3.0, 0.5), (3.2, 0.2), (np.nan, np.nan)]}, ended="x")
    assert not run.is_weighed
    found = run.evidences()
    assert found.log_evidence("m0").value == 3.2 and found.log_evidence("m0").error == pytest.approx(0.2)
    assert found.log_evidence("m1").error >= UNKNOWN


@pytest.mark.parametrize(
    "pace, explore, name",
    [
        (0.0, "auto", "patient"),  # as yet no call has been timed
        (0.9 * CHEAP, "auto", "patient"),
        (1.1 * CHEAP, "auto", "auto"),
        (0.9 * DEAR, "auto", "auto"),
        (1.1 * DEAR, "auto", "thrifty"),
        (1.1 * DEAR, "thorough", "thorough"),  # what was asked for, whatever it costs
        (0.0, "quick", "quick"),
    ],
)
def test_how_hard_a_run_looks_follows_from_what_a_call_costs(pace, explore, name):
    run = Run(gamma_rates()[0], None, 0, explore=explore, pace=pace)
    assert run.effort_name == name and run._effort() == EFFORTS[name]
    assert run.is_dear == (name == "thrifty")


@pytest.mark.parametrize("pace", [0.0, 1e-3])
def test_an_effort_shrinks_with_the_budget(pace):
    models, _ = gamma_rates()
    whole = Run(models, None, 0, pace=pace)._effort()
    small = Run(models, None, 0, goals=goals.Goals(max_evaluations=2000), pace=pace)._effort()
    assert small == whole.scaled(EXPLORING * 2000 / (2 * TYPICAL)) and small.level < whole.level
    ample = goals.Goals(max_evaluations=int(2 * TYPICAL / EXPLORING))
    assert Run(models, None, 0, goals=ample, pace=pace)._effort() == whole


# -- replicates that vouch --------------------------------------------------------------------------------------------


def replicated(report, log_evidence, vouched=0.03, is_agreed=True):
    """One model with an edge to the reference, and what all points of its replicates give."""
    run = made_run({(0, None): report})
    pilot = run.pilots[0]
    pilot.log_evidence, pilot.vouched, pilot.is_agreed = log_evidence, vouched, is_agreed
    return run


TROUBLE = {"rhat": 1.4}


def test_where_chains_are_in_trouble_replicates_that_agree_with_them_answer():
    """Their ln Z, with half of the difference in its error."""
    report = good_report(2.0, 0.05, **TROUBLE)
    run = replicated(report, 2.1)
    assert run.is_vouched(run.arms[0])
    found = run.evidences().log_evidence("m0")
    assert found.value == 2.1 and found.error == pytest.approx(np.hypot(0.03, 0.5 * 0.1))


def test_chains_without_trouble_answer_for_themselves():
    run = replicated(good_report(2.0, 0.05), 2.1)
    assert not run.is_vouched(run.arms[0])
    found = run.evidences().log_evidence("m0")
    assert found.value == 2.0 and found.error == pytest.approx(0.05)


@pytest.mark.parametrize("errors, is_vouched", [(0.9 * VOUCHED, True), (1.1 * VOUCHED, False), (-1.1 * VOUCHED, False)])
def test_replicates_vouch_within_so_many_errors_of_both(errors, is_vouched):
    run = replicated(good_report(2.0, 0.05, **TROUBLE), 2.0 + errors * np.hypot(0.05, 0.03))
    assert run.is_vouched(run.arms[0]) == is_vouched
    assert (run.evidences().log_evidence("m0").value != 2.0) == is_vouched


@pytest.mark.parametrize("said", [{"is_agreed": False}, {"vouched": np.inf}])
def test_replicates_that_disagree_or_are_less_than_two_vouch_for_nothing(said):
    run = replicated(good_report(2.0, 0.05, **TROUBLE), 2.0, **said)
    assert not run.is_vouched(run.arms[0]) and run.evidences().log_evidence("m0").error == pytest.approx(0.05)


def test_chains_that_give_no_number_leave_the_answer_to_replicates():
    run = replicated(good_report(np.nan, np.inf), 2.0)
    assert run.is_vouched(run.arms[0])
    found = run.evidences().log_evidence("m0")
    assert found.value == 2.0 and found.error == pytest.approx(0.03)
    alone = replicated(good_report(np.nan, np.inf), 2.0, vouched=np.inf)  # negative control
    assert not alone.is_vouched(alone.arms[0]) and alone.evidences().log_evidence("m0").error >= UNKNOWN


def test_no_edge_between_two_models_is_vouched_for():
    """Replicates know ln Z of one model, which such an edge does not tell."""
    run = made_run({(0, 1): good_report(1.0, 0.05, **TROUBLE), (1, None): good_report(2.0)})
    for pilot in run.pilots:
        pilot.log_evidence, pilot.vouched = 3.0, 0.03
    assert not any(run.is_vouched(arm) for arm in run.arms)
    assert run.evidences().log_evidence("m0").value == 3.0 and run.evidences().log_bayes_factor("m0", "m1").value == 1.0


def test_what_replicates_disagree_on_is_in_the_error_of_the_answer():
    run = made_run({(0, None): good_report(2.0, 0.04), (1, None): good_report(1.0, 0.03)})
    run.pilots[0].doubt = 0.3
    found = run.evidences()
    assert found.log_evidence("m0").error == pytest.approx(np.hypot(0.04, 0.3))
    assert found.log_evidence("m1").error == pytest.approx(0.03)
    assert found.log_bayes_factor("m0", "m1").error == pytest.approx(np.sqrt(0.04**2 + 0.3**2 + 0.03**2))


# -- budgets ----------------------------------------------------------------------------------------------------------


class Counted:
    """Two black boxes that are asked one point at a time; `at_call` happens at each, with its number."""

    def __init__(self, at_call=lambda n: None):
        self.calls, self.at_call = 0, at_call
        self.models = {
            "wide": sm.Model({"mu": stats.norm(0, 3)}, self.likelihood),
            "narrow": sm.Model({"mu": stats.norm(0, 1)}, self.likelihood),
        }

    def likelihood(self, p):
        mu = float(p["mu"])  # nothing for JAX to trace
        self.calls += 1
        self.at_call(self.calls)
        return -0.5 * ((0.7 - mu) / 0.5) ** 2 - 0.23 - 0.1 * abs(mu) ** 3  # no normal posterior, which is exact at once


def assert_usable(result, codes):
    assert result.verdict.level in ("fail", "limit") and {r.code for r in result.verdict.reasons} & codes
    assert f"[{result.verdict.level.upper()}]" in str(result)
    result.posterior("wide"), result.probabilities, repr(result), result.log_bayes_factor("wide", "narrow")


@pytest.mark.parametrize("most", [1, 40, 130, 500, 2000])
def test_a_limit_on_evaluations_holds_from_the_first_call(most):
    problem = Counted()
    result = sm.compare(problem.models, max_evaluations=most, target_error=1e-6, progress=False)
    assert problem.calls == result.evaluations["likelihood"] <= max(1.05 * most, most + 64)
    if most == 2000:
        assert problem.calls <= 2100
        assert "target_not_reached" in {r.code for r in result.verdict.reasons}
    if most <= 130:
        assert_usable(result, {"target_not_reached"})


@pytest.mark.parametrize("each", [0.02, 0.4, 3.0])
def test_a_limit_on_time_holds_whatever_a_call_costs(monkeypatch, each):
    """A clock that moves with the calls alone: over by less than about two seconds of them, or by one call."""
    now = [0.0]
    for place in (goals, meter):
        monkeypatch.setattr(place, "time", type("clock", (), {"monotonic": staticmethod(lambda: now[0])}))

    def tick(n):
        now[0] += each

    result = sm.compare(Counted(tick).models, max_seconds=2.0, progress=False)
    assert now[0] <= max(3.5, 2.0 + 5 * each)
    assert_usable(result, {"target_not_reached"})


def test_a_slow_likelihood_ends_in_time():
    began = time.monotonic()
    result = sm.compare(Counted(lambda n: time.sleep(0.02)).models, max_seconds=2.0, progress=False)
    assert time.monotonic() - began < 3.5
    assert_usable(result, {"target_not_reached"})


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stages():
    """Calls after which each stage of an uninterrupted run begins, and their total."""
    problem, marks = Counted(), {}
    run = Run(problem.models, None, 0, goals=goals.Goals(target_error=0.05))

    def mark(run):
        stage = "ladder" if run.arms else "tree" if len(run.pilots) == 2 else f"pilot {len(run.pilots)}"
        marks.setdefault(stage, problem.calls)

    run.keep = mark
    run.prepare()
    run.loop()
    return marks | {"end": problem.calls}


def interrupted_at(call):
    def stop(n):
        if n == call:
            raise KeyboardInterrupt

    problem = Counted(stop)
    return sm.compare(problem.models, seed=0, target_error=0.05, progress=False)


@pytest.mark.parametrize("call", range(1, 11))
def test_before_the_first_probes_are_done_an_interrupt_is_an_interrupt(call):
    with pytest.raises(KeyboardInterrupt):
        interrupted_at(call)


@pytest.mark.parametrize("stage", ["pilot 0", "pilot 1", "tree"])
@pytest.mark.parametrize("later", [1, 2, 30])
def test_an_interrupted_exploration_leaves_a_rough_answer(stages, stage, later):
    result = interrupted_at(stages[stage] + later)
    assert_usable(result, {"interrupted"})
    assert result.settings["ended"] == "interrupted"


def test_an_interrupt_in_the_ladder_leaves_an_answer(stages):
    for call in np.linspace(stages["ladder"] + 1, stages["end"] - 1, 6).astype(int):
        result = interrupted_at(int(call))
        assert "interrupted" in {r.code for r in result.verdict.reasons}
        str(result), result.posterior("narrow")
