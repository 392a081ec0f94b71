"""Every rule fires on a record with its fault planted, and none fires on a good one."""

import math
from dataclasses import replace

import numpy as np
import pytest

from exact_draws import coordinates, example, is_within
from supermodel.estimation.estimate import Estimate
from supermodel.verdict.examine import CHAIN, LADDER, Report, _limit, evidences_of, examine, least_certain
from supermodel.verdict.rules import RULES, bars, findings, is_settled
from supermodel.verdict.verdict import CODES

PAIR = example()
NEAR = replace(PAIR, sigma=2.0)  # noisier data: posteriors that overlap, so that no tail is heavy
GOOD = {
    LADDER: Report(
        LADDER, 1.0, 0.01, 16, 4000, ess=900.0, rhat=1.01, crossings=400, pareto_k=0.2, second_value=1.005,
        second_error=0.012, rungs=5, start_z=1.1, drift_z=0.7,
    ),
    CHAIN: Report(
        CHAIN, 1.0, 0.05, 64, 32_000, ess=2000.0, rhat=1.01, crossings=4000, pareto_k=0.9, largest=0.002,
        occupancy_z=1.2, weakest="model b",
    ),
}  # fmt: skip
# {(column, code): (a planted caution, a planted failure or None where the rule never fails)}
PLANTED = {
    (LADDER, "few_crossings"): ({"crossings": 12}, {"crossings": 3}),
    (LADDER, "small_ess"): ({"ess": 60.0}, {"ess": 20.0}),
    (LADDER, "rhat"): ({"rhat": 1.15}, {"rhat": 1.4}),
    (LADDER, "estimators_disagree"): ({"second_value": 1.048}, {"second_value": 1.08}),
    (LADDER, "heavy_tail"): ({"pareto_k": 0.8}, {"pareto_k": 1.7, "pareto_error": 0.4, "largest": 0.2}),
    (LADDER, "long_path"): ({"rungs": 24}, None),
    (LADDER, "start_dependent"): ({"start_z": 4.5}, {"start_z": 7.0}),
    (LADDER, "drift"): ({"drift_z": 4.5}, {"drift_z": 7.0}),
    (CHAIN, "few_crossings"): ({"crossings": 200}, {"crossings": 60}),
    (CHAIN, "small_ess"): ({"ess": 150.0}, {"ess": 40.0}),
    (CHAIN, "rhat"): ({"rhat": 1.1}, {"rhat": 1.3}),
    (CHAIN, "estimators_disagree"): ({"occupancy_z": 5.0}, {"occupancy_z": 7.0}),
    (CHAIN, "heavy_tail"): ({"largest": 0.05}, {"largest": 0.3}),
}


def levels(report):
    return {reason.code: level for level, reason in findings(report)}


def test_every_rule_of_both_columns_is_planted():
    asked = {(method, code) for method, report in GOOD.items() for code, _ in bars(report)}
    assert asked == set(PLANTED)
    assert {rule.code for rule in RULES} <= set(CODES)
    assert all(rule.why for rule in RULES)


@pytest.mark.parametrize("method", GOOD)
def test_a_good_record_has_no_findings_and_is_settled(method):
    assert findings(GOOD[method]) == []
    assert is_settled(GOOD[method])


@pytest.mark.parametrize(("method", "code"), PLANTED)
def test_a_planted_fault_fires_its_rule_and_no_other(method, code):
    caution, failure = PLANTED[method, code]
    assert levels(replace(GOOD[method], **caution)) == {code: "caution"}
    if failure is not None:
        assert levels(replace(GOOD[method], **failure)) == {code: "fail"}
        # More draws do not lighten a tail: no run is made longer for it.
        assert is_settled(replace(GOOD[method], **failure)) == ((method, code) == (LADDER, "heavy_tail"))


def test_two_estimators_of_a_chain_that_disagree():
    assert levels(replace(GOOD[CHAIN], second_value=1.2, second_error=0.03)) == {"estimators_disagree": "caution"}
    apart = replace(GOOD[CHAIN], second_value=1.3, second_error=0.03)
    assert levels(apart) == {"estimators_disagree": "fail"}
    assert findings(replace(GOOD[CHAIN], second_value=1.1, second_error=0.03)) == []


@pytest.mark.parametrize("field", ["rhat", "ess", "start_z"])
def test_what_is_not_a_number_fails(field):
    broken = replace(GOOD[LADDER], **{field: math.nan})
    assert set(levels(broken).values()) == {"fail"} and not is_settled(broken)


def test_an_edge_runs_until_rhat_is_below_the_papers_bar():
    assert is_settled(replace(GOOD[LADDER], rhat=1.04))
    between = replace(GOOD[LADDER], rhat=1.07)
    assert not is_settled(between) and findings(between) == []


@pytest.mark.parametrize("method", GOOD)
def test_an_end_that_was_never_reached_is_a_limit_and_without_a_number_a_failure(method):
    assert levels(replace(GOOD[method], error=math.inf)) == {"never_visited": "limit"}
    assert levels(replace(GOOD[method], error=math.inf, value=math.nan)) == {"never_visited": "fail"}


# -- the same on draws --------------------------------------------------------------------------------------------


def ladder_draws(rng, n=300):
    return PAIR.draws(PAIR.supermodel("product", coordinates.ladder(6), tilt=PAIR.balance()), rng, 16, n)


def chain_draws(rng, combine="mixture", n=400):
    return PAIR.draws(PAIR.supermodel(combine, tilt=PAIR.balance()), rng, 16, n)


def test_good_draws_of_an_edge(rng):
    report = examine(NEAR.draws(NEAR.supermodel("product", coordinates.ladder(6)), rng, 16, 300))
    assert report.method == LADDER and findings(report) == [] and is_settled(report)
    assert is_within(Estimate(report.value, report.error), NEAR.log_bayes_factor())
    assert not is_within(Estimate(report.value, report.error), NEAR.log_bayes_factor() + 0.5)


@pytest.mark.parametrize("combine", ["mixture", "index", "product"])
def test_good_draws_of_a_chain(combine, rng):
    report = examine(chain_draws(rng, combine))
    assert report.method == CHAIN and findings(report) == [] and is_settled(report)


def test_chains_that_never_cross(rng):
    draws = ladder_draws(rng)
    order = np.argsort(draws.alpha, axis=None, kind="stable").reshape(
        draws.alpha.shape
    )  # each chain on a rung of its own
    stuck = PAIR.record(draws.supermodel, draws.alpha.ravel()[order], draws.position.reshape(-1, 3)[order])
    found = levels(examine(stuck))
    assert found["few_crossings"] == "fail" and found["rhat"] == "fail"


def test_an_edge_whose_rungs_are_visited_in_the_wrong_proportions(rng):
    """MBAR does not mind, Rao-Blackwell does: the two disagree."""
    draws = ladder_draws(rng, 3000)
    keep = rng.random(draws.alpha.shape) < np.array([1.0, 0.8, 0.6, 0.4, 0.3, 0.2])[draws.alpha]
    flat = np.flatnonzero(keep)[: 16 * (keep.sum() // 16)].reshape(16, -1)
    biased = PAIR.record(draws.supermodel, draws.alpha.ravel()[flat], draws.position.reshape(-1, 3)[flat])
    assert levels(examine(biased))["estimators_disagree"] == "fail"


def test_a_run_that_drifts_and_remembers_its_start(rng):
    draws = ladder_draws(rng)
    first = np.zeros_like(draws.log_joints)
    first[..., 0] = 1.0
    half = draws.n_draws // 2
    late = replace(draws, log_joints=draws.log_joints + first * (np.arange(draws.n_draws) < half)[:, None])
    assert levels(examine(late))["drift"] == "fail"
    apart = replace(draws, log_joints=draws.log_joints + first * (np.arange(16) < 8)[:, None, None])
    assert levels(examine(apart))["start_dependent"] == "fail"


@pytest.mark.parametrize("combine", ["mixture", "product"])
def test_an_alpha_that_is_not_where_its_draws_say(combine, rng):
    draws = chain_draws(rng, combine)
    moved = replace(draws, alpha=draws.alpha**2)
    assert levels(examine(moved))["estimators_disagree"] == "fail"


def test_a_tail_that_may_be_noise_is_no_reason():
    """Pareto k of 1.2 ± 0.34, from forty weights in the tail, is 0.7 or less once in fourteen."""
    assert levels(replace(GOOD[LADDER], pareto_k=1.2, pareto_error=0.34)) == {}
    assert levels(replace(GOOD[LADDER], pareto_k=1.2, pareto_error=0.1)) == {"heavy_tail": "caution"}
    assert levels(replace(GOOD[LADDER], pareto_k=1.2, pareto_error=0.1, largest=0.3)) == {"heavy_tail": "fail"}


def test_a_long_path_with_a_heavy_tail_is_no_answer():
    found = levels(replace(GOOD[LADDER], pareto_k=0.9, rungs=30))
    assert found == {"heavy_tail": "caution", "long_path": "fail"}
    assert levels(replace(GOOD[LADDER], pareto_k=0.9, pareto_error=0.3, rungs=30)) == {"long_path": "caution"}


def test_one_draw_that_holds_the_share(rng):
    draws = chain_draws(rng)
    logs = draws.log_joints.copy()
    logs[..., 0] = logs[..., 1] - 12.0
    logs[3, 7, 0] = logs[3, 7, 1] + 3.0
    found = levels(examine(replace(draws, log_joints=logs)))
    assert found["heavy_tail"] == "fail"


@pytest.mark.parametrize("combine", ["mixture", "index"])
def test_a_model_without_any_share_has_a_limit_with_a_number(combine, rng):
    """P(first) < 3 / ESS at 95%: ln B below ln(3 / ESS) and a little, whatever the tilt."""
    draws = chain_draws(rng, combine)
    alpha = np.ones_like(draws.alpha) if combine == "index" else draws.alpha
    logs = draws.log_joints.copy()
    logs[..., 0] = -np.inf
    none = replace(draws, log_joints=logs, alpha=alpha)
    report, found = examine(none), evidences_of(none)
    assert levels(report) == {"never_visited": "limit"}
    estimate = found.log_bayes_factor(*PAIR.names)
    assert estimate.error == math.inf and math.isfinite(estimate.value)
    size = draws.alpha.size
    lowest, highest = math.log(3 / size), math.log(3 / size * 20)  # an autocorrelation time between 1 and 20
    tilt = draws.supermodel.tilt
    assert lowest - 0.01 < estimate.value + tilt[0] - tilt[1] < highest
    assert least_certain(found) == PAIR.names[::-1]


def test_an_end_of_an_edge_that_was_never_visited_gives_a_limit(rng):
    draws = ladder_draws(rng)
    report = examine(replace(draws, alpha=np.minimum(draws.alpha, 4)))  # as if the first model had never been reached
    assert report.error == math.inf and levels(report) == {"never_visited": "limit"}
    # P(first) < 3 / ESS against P(second) about a sixth: an upper limit.
    assert report.value == pytest.approx(math.log(3 / report.ess) - math.log(np.mean(draws.alpha == 0)), abs=1e-9)


def test_a_limit_along_a_path_of_thousands_of_nats_is_a_number():
    """e^-2000 is none."""
    seen, log_prior = np.array([0.0, 0.2]), np.array([-2000.0, -1.0])
    assert _limit(seen, log_prior, 100.0) == pytest.approx(math.log(0.03) - math.log(0.2) + 1999.0)
    assert _limit(seen[::-1], log_prior, 100.0) == pytest.approx(math.log(0.2) - math.log(0.03) + 1999.0)
    assert math.isnan(_limit(np.zeros(2), log_prior, 100.0))


@pytest.mark.parametrize("rare", [0, 1])
def test_a_limit_is_true_on_either_side(rare, rng):
    """Exact draws on two rungs, tilted so that one model has a visit in half of the runs: the limit lies beyond the truth."""
    n, truth = 16 * 100, PAIR.log_bayes_factor()
    balance = np.array(PAIR.balance())
    claims = 0
    for visits in (0.5, 30.0):
        tilt = balance + np.where(np.arange(2) == rare, math.log(visits / n), 0.0)
        for _ in range(12):
            report = examine(PAIR.draws(PAIR.supermodel("product", coordinates.ladder(2), tilt=tilt), rng, 16, n // 16))
            if math.isinf(report.error):
                # What was seen is at least as probable as claimed: the rare model's ln Z is below its limit, the tilt apart.
                gap = truth + tilt[0] - tilt[1]
                assert report.value > gap if rare == 0 else report.value < gap
                claims += 1
        if visits == 0.5:
            assert claims >= 1  # none in 12 runs: (1 - e^-0.5)^12 = 1e-5
            few = claims
    assert claims == few  # 30 visits expected: none seen once in e^30
