"""`compare` and `evidence` against exact answers, at the stated cost, with the properties that must always hold."""

import concurrent.futures
import math

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from engine_problems import LINEAR, SINE, assert_within, data, gamma_rates, linear, polynomial, sine
from supermodel.engine.run import Run
from supermodel.estimation.error import log_mean_exp


@pytest.fixture(scope="module")
def sine_result():
    return sm.compare(sine(), data("sine"), seed=1, target_error=0.05, progress=False)


def test_sine_is_right_and_cheap(sine_result):
    estimate = sine_result.log_bayes_factor("free", "fixed")
    assert_within(estimate, SINE)
    assert estimate.error <= 0.05
    assert sine_result.evaluations["likelihood"] <= 10_000
    assert sine_result.verdict.level == "ok"
    assert_within(sine_result.log_evidence("free"), 71.1066677433)


def test_everything_drawn_from_the_record_has_the_answers_own_error(sine_result, tmp_path):
    """MBAR on the kept record, the sensitivity at the prior of the run, and the same from a file."""
    final = sine_result.log_bayes_factor("free", "fixed")
    sine_result.save(tmp_path / "sine.nc")
    for result in (sine_result, sm.load(tmp_path / "sine.nc")):
        for edge in result.edges:
            value, error = edge.ends().difference(0, 1)
            assert value == pytest.approx(edge.report["value"], abs=1e-9)
            assert error == pytest.approx(edge.report["error"], rel=1e-6)
            assert float(np.subtract(*log_mean_exp(edge.log_shares))) == pytest.approx(edge.report["second_value"])
        same = result.sensitivity("phi", scales=[1.0]).estimate(0)
        assert same.value == pytest.approx(final.value) and same.error < 1.5 * final.error


def test_same_seed_gives_the_same_bits(sine_result):
    again = sm.compare(sine(), data("sine"), seed=1, target_error=0.05, progress=False)
    assert again.log_bayes_factor("free", "fixed") == sine_result.log_bayes_factor("free", "fixed")
    other = sm.compare(sine(), data("sine"), seed=2, target_error=0.05, progress=False)
    assert other.log_bayes_factor("free", "fixed") != sine_result.log_bayes_factor("free", "fixed")


@pytest.fixture(scope="module")
def linear_result():
    return sm.compare(linear(), data("linear"), seed=3, target_error=0.05, progress=False)


def test_linear_is_exact_to_rounding(linear_result):
    estimate = linear_result.log_bayes_factor("M2", "M1")
    assert abs(estimate.value - LINEAR) < 1e-8
    assert 0 < estimate.error < 1e-6
    assert linear_result.evaluations["likelihood"] <= 10_000


def test_a_bayes_factor_of_a_thousand_costs_no_more(linear_result):
    values = data("linear")
    sigma = 0.02 / 4.2  # smaller errors: the same misfit of a straight line weighs more
    values = {**values, "sigma": np.full_like(values["x"], sigma)}
    models = {"quartic": polynomial((0, 1, 2, 4)), "line": polynomial((0, 1))}
    exact = {
        name: sm.exact.LinearGaussian(sm.exact.polynomial(values["x"], powers), values["y"], sigma).log_evidence
        for name, powers in {"quartic": (0, 1, 2, 4), "line": (0, 1)}.items()
    }
    truth = exact["quartic"] - exact["line"]
    assert truth > 1000
    result = sm.compare(models, values, seed=0, target_error=0.05, progress=False)
    assert abs(result.log_bayes_factor("quartic", "line").value - truth) < 1e-6
    assert result.evaluations["likelihood"] <= 2 * linear_result.evaluations["likelihood"]


@pytest.fixture(scope="module")
def black_box():
    models, truth = gamma_rates()
    return sm.compare(models, seed=5, target_error=0.05, progress=False), truth


def test_black_boxes_take_the_gradient_free_path(black_box):
    result, truth = black_box
    assert_within(result.log_bayes_factor("separate", "pooled"), truth["separate"] - truth["pooled"])
    assert_within(result.log_evidence("separate"), truth["separate"])
    assert result.evaluations["gradient"] == 0


def test_every_call_is_counted():
    calls = {"n": 0}
    models, _ = gamma_rates()
    counted = {}
    for name, model in models.items():
        inner = model._log_likelihood

        def log_likelihood(p, inner=inner):
            calls["n"] += len(next(iter(p.values())))
            return inner(p)

        counted[name] = sm.Model(model.priors, log_likelihood, vectorized=True)
    result = sm.compare(counted, seed=5, target_error=0.1, progress=False)
    assert calls["n"] == result.evaluations["likelihood"]


def test_swapping_the_models_flips_the_sign_exactly(black_box):
    models, _ = gamma_rates()
    value = black_box[0].log_bayes_factor("separate", "pooled").value
    turned = sm.compare(dict(reversed(models.items())), seed=5, target_error=0.05, progress=False)
    assert turned.log_bayes_factor("pooled", "separate").value == -value
    renamed = sm.compare(
        {"separate": models["pooled"], "pooled": models["separate"]}, seed=5, target_error=0.05, progress=False
    )
    assert renamed.log_bayes_factor("separate", "pooled").value == -value


def test_a_constant_in_both_likelihoods_changes_nothing(black_box):
    models, _ = gamma_rates(constant=64.0)  # a power of two: rounding stays small
    shifted = sm.compare(models, seed=5, target_error=0.05, progress=False)
    here, there = black_box[0].log_bayes_factor("separate", "pooled"), shifted.log_bayes_factor("separate", "pooled")
    assert abs(here.value - there.value) < 1e-9
    assert abs(shifted.log_evidence("pooled").value - black_box[0].log_evidence("pooled").value - 64.0) < 1e-9


def test_the_same_model_twice():
    model = gamma_rates()[0]["separate"]
    result = sm.compare({"one": model, "two": model}, seed=8, target_error=0.05, progress=False)
    assert_within(result.log_bayes_factor("one", "two"), 0.0)
    assert result.log_bayes_factor("one", "two").error > 0


def test_a_model_without_parameters():
    rng = np.random.default_rng(4)
    y = rng.normal(0.3, 1.0, 20)
    null = sm.Model({}, lambda p: float(np.sum(stats.norm.logpdf(y))))
    shift = sm.Model({"mu": stats.norm(0, 2)}, lambda p: float(np.sum(stats.norm.logpdf(y, p["mu"]))))
    result = sm.compare({"null": null, "shift": shift}, seed=0, target_error=0.05, progress=False)
    truth = sm.exact.LinearGaussian(np.ones((20, 1)), y, 1.0, 4.0).log_evidence - np.sum(stats.norm.logpdf(y))
    assert abs(result.log_bayes_factor("shift", "null").value - truth) < max(
        5 * result.log_bayes_factor("shift", "null").error, 1e-6
    )


def test_many_models_share_one_covariance():
    models = {f"order{k}": polynomial(tuple(range(k + 1))) for k in range(1, 5)}
    values = data("linear")
    exact = {
        f"order{k}": sm.exact.LinearGaussian(
            sm.exact.polynomial(values["x"], range(k + 1)), values["y"], 0.02
        ).log_evidence
        for k in range(1, 5)
    }
    result = sm.compare(models, values, seed=0, target_error=0.05, progress=False)
    for a in models:
        for b in models:
            assert abs(result.log_bayes_factor(a, b).value - (exact[a] - exact[b])) < 1e-6
    assert abs(sum(result.probabilities.values()) - 1) < 1e-12


def test_evidence_of_one_model(black_box):
    models, truth = gamma_rates()
    result = sm.evidence(models["pooled"], seed=1, target_error=0.05, progress=False)
    assert_within(result.log_evidence("model"), truth["pooled"])


def test_budget_is_kept_and_told():
    models, _ = gamma_rates()
    result = sm.compare(models, seed=0, target_error=1e-4, max_evaluations=12_000, progress=False)
    assert result.evaluations["likelihood"] < 13_500
    assert [reason.code for reason in result.verdict.reasons] == ["target_not_reached"]
    assert result.verdict.level == "caution"


def test_decide_stops_as_soon_as_the_answer_is_on_one_side():
    models, truth = gamma_rates()
    low, high = 3.0, 5.0  # the truth lies below both
    assert truth["separate"] - truth["pooled"] < low - 1
    quick = sm.compare(models, seed=0, target_error=1e-3, decide=(low, high), progress=False)
    assert quick.settings["ended"] == "decided"
    assert quick.log_bayes_factor("separate", "pooled").interval(2.0)[1] < low


def plain_likelihood(p):
    """At module level, so that worker processes can receive it."""
    return float(stats.norm.logpdf(0.7, p["mu"], 0.5))


def test_worker_processes_give_the_same_bits():
    models = {
        "wide": sm.Model({"mu": stats.norm(0, 3)}, plain_likelihood),
        "narrow": sm.Model({"mu": stats.norm(0, 1)}, plain_likelihood),
    }
    alone = sm.compare(models, seed=0, target_error=0.1, progress=False)
    context = __import__("multiprocessing").get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        spread = sm.compare(models, seed=0, target_error=0.1, executor=pool, progress=False)
    assert spread.log_bayes_factor("wide", "narrow") == alone.log_bayes_factor("wide", "narrow")
    truth = stats.norm.logpdf(0.7, 0, math.hypot(3, 0.5)) - stats.norm.logpdf(0.7, 0, math.hypot(1, 0.5))
    assert (
        abs(alone.log_bayes_factor("wide", "narrow").value - truth)
        < 5 * alone.log_bayes_factor("wide", "narrow").error + 1e-6
    )


def test_interrupting_returns_the_best_answer_so_far(monkeypatch):
    models, truth = gamma_rates()
    asked, choose = [], Run._most_useful

    def choose_or_interrupt(run):
        asked.append(run)
        if len(asked) == 5:
            raise KeyboardInterrupt  # what Ctrl-C does, at a moment that does not depend on the machine
        return choose(run)

    monkeypatch.setattr(Run, "_most_useful", choose_or_interrupt)
    result = sm.compare(models, seed=0, target_error=1e-9, progress=False)
    assert "interrupted" in [reason.code for reason in result.verdict.reasons]
    assert_within(result.log_bayes_factor("separate", "pooled"), truth["separate"] - truth["pooled"])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"target_error": 0.0}, "target_error"),
        ({"target_error": float("nan")}, "target_error"),
        ({"max_seconds": -1}, "max_seconds"),
        ({"decide": (3, 1)}, "decide"),
        ({"prior_odds": {"separate": 1.0}}, "missing"),
        ({"prior_odds": {"separate": 1.0, "pooled": -1.0}}, "prior_odds.*from 0 up.*-1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(sm.SupermodelError, match=message):
        sm.compare(gamma_rates()[0], **arguments)


def test_a_likelihood_that_is_impossible_everywhere_is_refused():
    models = gamma_rates()[0] | {"never": sm.Model({"r": stats.norm(0, 1)}, lambda p: -math.inf)}
    with pytest.raises(sm.SupermodelError, match="never.*-inf"):
        sm.compare(models, progress=False)


# -- more draws than ln B needs ---------------------------------------------------------------------------------------


def test_as_many_effective_draws_as_were_asked_for(tmp_path):
    models = {name: model for name, model in gamma_rates((3, 9))[0].items()}
    options = {"seed": 3, "explore": "quick", "progress": False}
    deep = sm.compare(models, min_ess=600, **options)
    for posterior in deep.posteriors.values():
        assert posterior.worst_ess >= 600 and posterior.worst_rhat <= 1.01
    assert deep.verdict.level == "ok"
    # A run that did not ask goes on from its checkpoint to the same bits, once it does.
    options["checkpoint"] = tmp_path / "run.nc"
    plain = sm.compare(models, **options)
    assert min(p.worst_ess for p in plain.posteriors.values()) < 600
    assert plain.evaluations["likelihood"] < deep.evaluations["likelihood"]
    again = sm.compare(models, min_ess=600, **options)
    np.testing.assert_array_equal(again.evidences.values, deep.evidences.values)
    # One that cannot pay for them says so.
    short = sm.compare(models, min_ess=5e4, max_evaluations=deep.evaluations["likelihood"], **options)
    assert "short_posterior" in [reason.code for reason in short.verdict.reasons]
