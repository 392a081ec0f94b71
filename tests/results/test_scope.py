"""A verdict for each pair: of three models one fails, and what does not rest on it stands, in numbers, words and files."""

import json

import numpy as np
import pytest

import supermodel as sm
from made_result import made_result
from supermodel.errors import StorageError
from supermodel.results.storage import load_arrays, save_arrays
from supermodel.verdict.verdict import LEVELS, Reason, Verdict, worst

MODELS = {"line": "ab", "curve": "abc", "flat": "a"}  # curve has the largest evidence
FAILED = ("fail", Reason("looks_disagree", "the looks at 'curve' did not meet.", models=("curve",)))
WORD = ("caution", Reason("posterior_rhat", "R-hat of 'a' under 'flat' is 1.2.", models=("flat",)))
ALL = ("caution", Reason("interrupted", "the run was stopped by hand."))


def result_with(*found, models=MODELS):
    return made_result(models=models, verdict=worst(list(found)))


@pytest.fixture(scope="module")
def result():
    return result_with(FAILED, WORD)


@pytest.fixture(scope="module")
def without():
    """The same comparison without the model that fails."""
    return made_result(models=MODELS)


def test_a_finding_is_of_the_pairs_with_its_model(result):
    assert result.verdict.level == "fail"
    assert result.verdict_between("line", "curve").level == result.verdict_between("curve", "flat").level == "fail"
    between = result.verdict_between("flat", "line")
    assert between.level == "caution" and [r.code for r in between.reasons] == ["posterior_rhat"]
    assert {name: result.verdict_of(name).level for name in MODELS} == {
        "line": "ok",
        "curve": "fail",
        "flat": "caution",
    }
    assert result.weighed == ("line", "flat") and result.excluded == ("curve",)


def test_what_names_no_model_is_of_all_pairs():
    result = result_with(ALL, FAILED)
    assert [r.code for r in result.verdict_between("line", "flat").reasons] == ["interrupted"]
    assert result.verdict_of("line").level == "caution"
    spoiled = result_with(("fail", ALL[1]), WORD)
    assert spoiled.weighed == spoiled.excluded == ()
    assert all(spoiled.verdict_between("line", other).level == "fail" for other in ("curve", "flat"))


@pytest.mark.parametrize("verdict", [Verdict("fail"), Verdict("fail", (Reason("drift", "an old file."),))])
def test_a_level_whose_finding_is_not_known_is_of_everything(verdict):
    result = made_result(models=MODELS, verdict=verdict)
    assert (
        result.weighed == ()
        and result.verdict_between("line", "flat").level == result.verdict_of("line").level == "fail"
    )
    assert "Verdict FAIL: do not use this answer" in str(result)


def test_a_finding_on_an_edge_cancels_in_the_pair_behind_it():
    """line and curve hang on one edge: their ln B does not run through it, ln B of either and flat does."""
    edge = Reason("few_crossings", "3 crossings.", models=("line", "curve"), behind=("line", "curve"))
    result = result_with(("fail", edge))
    assert result.verdict_between("line", "curve").level == "caution"
    assert result.verdict_between("line", "flat").level == result.verdict_between("flat", "curve").level == "fail"
    assert result.verdict_of("line").level == "fail" and result.verdict_of("flat").level == "ok"
    assert result.weighed == ("line", "curve") and result.excluded == ("flat",)


def test_the_rest_is_ranked_and_weighed_among_itself(result, without):
    assert without.best == "curve" and result.ranking == ("line", "flat", "curve") and result.pair() == ("line", "flat")
    p, whole, errors = result.probabilities, without.probabilities, result.probability_errors()
    assert np.isnan(p["curve"]) and np.isnan(errors["curve"])
    assert p["line"] + p["flat"] == pytest.approx(1.0)
    assert p["flat"] / p["line"] == pytest.approx(whole["flat"] / whole["line"], rel=1e-12)
    error = result.log_bayes_factor("line", "flat").error
    assert errors["flat"] == pytest.approx(p["flat"] * p["line"] * error, rel=1e-9)  # of a logistic curve
    assert result.probabilities_for({"line": 0.0, "curve": 0.5, "flat": 0.5})["flat"] == pytest.approx(1.0)


def test_an_evidence_that_is_no_number_leaves_the_others_known(result):
    import dataclasses

    from supermodel.estimation.estimate import Evidences

    covariance = np.diag([0.01, np.inf, 0.02])
    values = np.where(np.array(result.names) == "curve", np.nan, result.evidences.values)
    unknown = dataclasses.replace(result, evidences=Evidences(result.names, values, covariance, True))
    assert unknown.probabilities["line"] == pytest.approx(result.probabilities["line"])
    assert np.isfinite(unknown.probability_errors()["line"])


def test_averages_are_over_the_models_that_stand(result):
    mix = result.averaged("b")
    assert mix.excluded == ("curve",) and mix.spikes == {"flat": None}
    assert mix.mean == pytest.approx(result.posterior("line").mean("b"))  # the only other one that has b
    assert np.sum(mix.weights[mix.model == "curve"]) == 0.0
    assert mix.spike_probability == result.probabilities["flat"] and "not weighed: curve" in str(mix)
    x = np.linspace(-1, 1, 5)
    found = result.predict(x, n=50)
    p = result.probabilities
    assert found.mean == pytest.approx(p["line"] * found.models["line"].mean + p["flat"] * found.models["flat"].mean)
    frame = result.to_dataframe()
    assert frame.groupby("model")["weight"].sum().to_dict() == pytest.approx(
        {"line": p["line"], "flat": p["flat"], "curve": 0.0}
    )
    assert result.loo().names == ("line", "flat")


def test_sensitivity_and_drivers_are_refused_for_the_failed_one_only(result):
    stands, rests = result.sensitivity("b"), result.sensitivity("b", pair=("line", "curve"))
    assert (stands.first, stands.second, stands.level) == ("line", "flat", "caution") and stands.is_reliable.any()
    assert rests.level == "fail" and not rests.is_reliable.any()
    assert "ln B(line : curve) is 'fail'" in rests.sentence() and "holds" in stands.sentence()
    assert result.sensitivity("c").level == "fail"  # only curve has it
    assert (result.drivers().level, result.drivers("curve", "line").level) == ("caution", "fail")
    assert result.interpret().band == "strong" and result.interpret("curve", "flat").band is None


def test_all_of_it_comes_back_from_a_file(result, tmp_path):
    edge = ("fail", Reason("small_ess", "20 draws.", models=("line", "curve"), behind=("line", "curve")))
    for made in (result, result_with(edge, WORD, ALL)):
        path = made.save(tmp_path / "run.nc")
        back = sm.load(path)
        assert back.verdict == made.verdict and str(back) == str(made) and back.to_json() == made.to_json()
        assert back.weighed == made.weighed and back.excluded == made.excluded


def test_a_file_of_an_earlier_version_is_read_as_it_was_meant(result, tmp_path):
    groups, attrs = load_arrays(result.save(tmp_path / "run.nc"))
    attrs = {key: value for key, value in attrs.items() if key not in ("scopes", "format")}
    save_arrays(tmp_path / "old.nc", groups, attrs)
    back = sm.load(tmp_path / "old.nc")
    assert back.verdict.level == "fail" and back.weighed == () and back.verdict_of("line").level == "fail"


@pytest.mark.parametrize(
    "scopes",
    [
        [],  # one for each reason
        [["fail", ["nobody"], []], ["caution", [], []]],
        [["dire", [], []], ["caution", [], []]],
        [["fail", "curve", []], ["caution", [], []]],
    ],
)
def test_a_forged_scope_is_refused(result, scopes, tmp_path):
    groups, attrs = load_arrays(result.save(tmp_path / "run.nc"))
    save_arrays(tmp_path / "forged.nc", groups, {k: v for k, v in attrs.items() if k != "format"} | {"scopes": scopes})
    with pytest.raises(StorageError, match="not what supermodel writes"):
        sm.load(tmp_path / "forged.nc")


def test_json_says_what_stands(result):
    content = json.loads(result.to_json())
    verdict = content["verdict"]
    assert verdict["level"] == "fail" and verdict["weighed"] == ["line", "flat"]
    assert verdict["models"] == {"line": "ok", "curve": "fail", "flat": "caution"}
    assert verdict["reasons"][0] == {
        "code": "looks_disagree", "sentence": FAILED[1].sentence, "level": "fail", "models": ["curve"],
    }  # fmt: skip
    levels = {frozenset((p["first"], p["second"])): p["verdict"] for p in content["log_bayes_factors"]}
    assert levels[frozenset(("line", "flat"))] == "caution" and levels[frozenset(("line", "curve"))] == "fail"
    assert content["probabilities"]["curve"]["value"] is None


def test_an_unknown_name_is_an_error(result):
    with pytest.raises(sm.SupermodelError, match="lime"):
        result.verdict_between("line", "lime")
    with pytest.raises(sm.SupermodelError, match="lime"):
        result.verdict_of("lime")


def test_of_two_models_the_verdict_on_the_pair_is_that_on_the_whole():
    two = {"line": "ab", "curve": "abc"}
    edge = Reason("few_crossings", "3 crossings.", "fail", ("line", "curve"), ("line", "curve"))  # eased by the engine
    for found in (FAILED, ALL, ("caution", edge)):
        result = made_result(models=two, verdict=worst([found]))
        assert result.verdict_between("line", "curve").level == result.verdict.level
        assert result.excluded == () and result.weighed == (("line", "curve") if result.verdict.is_reliable else ())
    assert result.verdict.level == "caution" and result.verdict_of("line").level == "fail"  # ln Z rests on that edge


def test_a_reason_unpacks_and_a_verdict_takes_its_levels():
    reason = Reason("drift", "a little.", models=("a",))
    code, sentence = reason
    assert dict([reason]) == {code: sentence}
    made = worst([("ok", Reason("thrifty", "t")), ("limit", reason)])
    assert made.level == "limit" and [r.level for r in made.reasons] == ["limit", "ok"]
    assert made.of("b").level == "ok" and made.between("a", "b").level == "limit"
    assert all(made.of(name).level in LEVELS for name in "ab")
