"""The answer as an object: numbers, tables, words, limits."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from scipy.special import ndtri

from made_result import exact, made_data, made_result
from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import LN10, Estimate, Evidences
from supermodel.report.scales import JEFFREYS, KASS_RAFTERY, TROTTA, scale
from supermodel.verdict.verdict import Reason, Verdict

FALSE_ALARM = 1e-6
SIGMAS = float(-ndtri(FALSE_ALARM / 2))  # 4.9


@pytest.fixture(scope="module")
def result():
    return made_result(0, {"line": "ab", "curve": "abc", "level": "a"})


def with_evidences(result, values, errors, **changes):
    evidences = Evidences(result.names, np.array(values, float), np.diag(np.square(errors)), True)
    return dataclasses.replace(result, evidences=evidences, **changes)


def test_the_made_result_is_right_and_a_wrong_truth_is_seen(result):
    for name, parameters in (("line", "ab"), ("curve", "abc"), ("level", "a")):
        found, truth = result.log_evidence(name), exact(made_data(), parameters).log_evidence
        assert abs(found.value - truth) < SIGMAS * found.error
        assert abs(found.value - (truth + 0.3)) > SIGMAS * found.error  # a constant dropped from a prior


def test_matrix_is_antisymmetric_with_joint_errors(result):
    m = result.matrix()
    np.testing.assert_allclose(m.values, -m.values.T, rtol=0, atol=1e-12)
    assert m.names == result.ranking
    assert np.all(np.diag(m.values) == 0) and np.all(np.diag(m.errors) == 0)
    a, b = m.names[0], m.names[2]
    assert m.errors[0, 2] == pytest.approx(result.log_bayes_factor(a, b).error)


def test_covariance_enters_the_errors_of_pairs_and_probabilities(result):
    shared = np.full((3, 3), 0.25) + np.diag([0.01, 0.01, 0.01])
    joint = dataclasses.replace(result, evidences=Evidences(result.names, np.array([1.0, 0.4, 0.0]), shared, True))
    assert joint.log_bayes_factor("line", "curve").error == pytest.approx(math.sqrt(0.02))
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_normal([1.0, 0.4, 0.0], shared, 200_000)
    p = np.exp(drawn - np.logaddexp.reduce(drawn, axis=1, keepdims=True))
    errors = list(joint.probability_errors().values())
    np.testing.assert_allclose(errors, p.std(axis=0), rtol=0.02)  # the delta method, at small errors
    without = dataclasses.replace(
        joint, evidences=Evidences(result.names, joint.evidences.values, np.diag(np.diag(shared)), True)
    )
    assert list(without.probability_errors().values())[0] > 3 * errors[0]


def test_table_is_best_first_and_carries_the_checks(result):
    table = result.table()
    assert [row.model for row in table] == list(result.ranking)
    assert table.rows[0].log_bayes_factor.value == 0
    assert all(row.log_bayes_factor.value < 0 for row in table.rows[1:])
    assert sum(row.probability for row in table) == pytest.approx(1.0)
    assert {row.crossings for row in table} == {321.0}
    for row in table:
        assert row.fit + row.occam == pytest.approx(row.log_evidence.value)
    assert [row.model for row in result.table(reference="level")] == list(result.ranking)
    assert result.table("level").rows[0].log_bayes_factor.value > 0
    frame = table.to_dataframe()
    assert frame.loc[result.best, "log_bayes_factor"] == 0 and "log_evidence_error" in frame.columns
    with pytest.raises(SupermodelError, match="no model 'nobody'"):
        result.table("nobody")


def test_prior_odds_move_probabilities_and_not_evidences(result):
    odds = {"line": 1.0, "curve": 1.0, "level": 0.0}
    assert result.probabilities_for(odds)["level"] == 0.0
    assert [r.log_bayes_factor for r in result.table(prior_odds=odds)] == [r.log_bayes_factor for r in result.table()]
    with pytest.raises(SupermodelError, match="missing"):
        result.probabilities_for({"line": 1.0})


@pytest.mark.parametrize(
    ("words", "value", "error", "band"),
    [
        (TROTTA, 6.0, 0.2, "strong"),
        (TROTTA, -6.0, 0.2, "strong"),
        (TROTTA, 5.2, 0.2, None),  # the interval 4.8 to 5.6 touches two bands
        (TROTTA, 0.1, 0.2, "inconclusive"),
        (TROTTA, 0.9, 0.2, None),
        (TROTTA, 0.0, 0.6, None),  # spans both sides of zero and reaches into "weak"
        (KASS_RAFTERY, 4.0, 0.4, "strong"),
        (JEFFREYS, 4.8, 0.05, "decisive"),
        (JEFFREYS, 4.6, 0.05, None),
        (TROTTA, 6.0, math.inf, None),
        (TROTTA, math.nan, 0.1, None),
    ],
)
def test_a_band_is_named_only_if_the_whole_interval_lies_in_it(words, value, error, band):
    assert words.band(Estimate(value, error)) == band


def test_scales_by_name_and_own():
    own = scale({"clear": 3.0, "weak": 0.0, "overwhelming": 8.0})
    assert own.words == ("weak", "clear", "overwhelming") and own.band(Estimate(4.0, 0.1)) == "clear"
    assert own.limits(1) == "3 ≤ |ln B| < 8"
    assert JEFFREYS.thresholds[1] == pytest.approx(LN10 / 2)
    for bad in ("nobody", {"weak": 1.0}, {}):
        with pytest.raises(SupermodelError):
            scale(bad)


def test_words_name_both_models_and_follow_the_direction(result):
    strong = with_evidences(result, [0.0, 8.0, 1.0], [0.1, 0.1, 0.1])
    said = strong.interpret()
    assert (said.first, said.second) == ("curve", "level")
    assert "for curve over level" in said.meaning and "ln B(curve : level) = 7.00" in said.headline
    turned = strong.interpret("level", "curve")
    assert "-7.00" in turned.headline and "for curve over level" in turned.meaning
    assert said.band == turned.band == "strong"
    near = with_evidences(result, [0.0, 0.1, -9.0], [0.1, 0.1, 0.1]).interpret()
    assert "sign is not settled" in near.meaning
    assert strong.log_bayes_factor("curve", "level").log10.value == pytest.approx(7.0 / LN10)


def test_a_failed_run_claims_nothing(result):
    failed = with_evidences(
        result, [0.0, 8.0, 1.0], [0.1, 0.1, 0.1], verdict=Verdict("fail", (Reason("rhat", "bad."),))
    )
    said = failed.interpret()
    assert said.band is None and "not to be used" in said.headline
    for shown in (str(failed), failed._repr_html_(), failed.table().markdown(), failed.table().latex()):
        assert "fail" in shown.lower()
    assert "P(curve" not in str(failed)


def test_a_limit_is_printed_as_a_bound(result):
    limit = with_evidences(
        result, [0.0, 8.3, -1.0], [0.0, math.inf, 0.0], verdict=Verdict("limit", (Reason("never_visited", "x."),))
    )
    assert "ln B(curve : line) > 8.3 at 95%" in str(limit)
    assert str(limit.bound("line", "curve")) == "ln B(line : curve) < -8.3 at 95%"
    finite = with_evidences(result, [0.0, 8.3, -1.0], [0.0, 1.0, 0.0], verdict=Verdict("limit"))
    assert finite.bound("curve", "line").value == pytest.approx(8.3 - 1.6448536)
    assert finite.bound("curve", "line", 0.975).value == pytest.approx(8.3 - 1.9599640)


def test_everything_is_in_the_dictionary_and_json_is_strict(result):
    broken = with_evidences(result, [0.0, math.nan, 1.0], [0.1, math.inf, 0.1])
    content = json.loads(broken.to_json())
    assert content["schema"] == 1 and content["models"] == list(result.names)
    assert content["log_evidences"]["curve"] == {"value": None, "error": None}
    pair = next(
        p for p in json.loads(result.to_json())["log_bayes_factors"] if {p["first"], p["second"]} == {"line", "curve"}
    )
    assert pair["value"] == pytest.approx(result.log_bayes_factor(pair["first"], pair["second"]).value)
    assert set(content) == {
        "schema", "models", "ranking", "verdict", "log_bayes_factors", "log_evidences", "covariance", "prior_odds",
        "probabilities", "parameters", "priors", "edges", "evaluations", "seconds", "seed", "settings",
        "versions", "fingerprints",
    }  # fmt: skip  # a change here is a change of the schema: raise its number


def test_fingerprints_see_data_and_priors(result):
    other = dataclasses.replace(result, data={**result.data, "y": result.data["y"] + 1e-12}, fingerprints={})
    assert other.fingerprints["data"] != result.fingerprints["data"]
    assert other.fingerprints["priors"] == result.fingerprints["priors"]
    again = made_result(3, {"line": "ab", "curve": "abc", "level": "a"})
    assert again.fingerprints == result.fingerprints
    assert (
        made_result(0, {"line": "ac", "curve": "abc", "level": "a"}).fingerprints["priors"]
        != result.fingerprints["priors"]
    )


def test_it_is_frozen(result):
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.seed = 1


def test_resampled_draws_have_the_posterior_moments(result):
    posterior, truth = result.posterior("curve"), exact(made_data(), "abc")
    for i, p in enumerate("abc"):
        error = posterior.mean_error(p)
        assert abs(posterior.mean(p) - truth.posterior_mean[i]) < SIGMAS * error
        assert (
            abs(posterior.mean(p) - (truth.posterior_mean[i] + 0.5 * np.sqrt(truth.posterior_covariance[i, i])))
            > SIGMAS * error
        )
        assert abs(posterior.resample(4000)[p].mean() - posterior.mean(p)) < 0.05 * posterior.sd(
            p
        )  # systematic: far below 1/sqrt(n)
    with pytest.raises(SupermodelError, match="no model"):
        result.posterior("nobody")


def test_one_model_alone_is_shown_as_its_evidence():
    alone = made_result(0, {"line": "ab"})
    assert str(alone).startswith("ln Z(line) = ") and "P(model" not in str(alone)
    assert "ln Z(line)" in alone._repr_html_()
    with pytest.raises(SupermodelError, match="two models"):
        alone.interpret()


# -- in a user's hands ------------------------------------------------------------------------------------------------


def test_the_summary_has_every_parameter_of_every_model_best_first(result):
    table = result.summary()
    assert list(table.index) == [(n, p) for n in result.ranking for p in result.posteriors[n].parameters]
    row, posterior = table.loc["curve", "c"], result.posterior("curve")
    for column, wanted in (("mean", posterior.mean), ("mean_error", posterior.mean_error), ("sd", posterior.sd)):
        assert row[column] == float(wanted("c"))
    assert (row["ess"], row["rhat"]) == (float(posterior.ess("c")), float(posterior.rhat("c")))
    assert row["5%"] < row["50%"] < row["95%"] and row["prior"] == "Normal(0.1, 0.6)"
    ranked = {r.model: r for r in result.table()}
    for name in result.names:  # one definition everywhere: the table has the worst of what the summary has
        assert ranked[name].effective_size == table.loc[name]["ess"].min()
        assert ranked[name].rhat == table.loc[name]["rhat"].max()
    assert str(table).splitlines()[0].split()[:2] == ["model", "parameter"] and "<table>" in table._repr_html_()
    assert type(table[table["sd"] > 0.2]).__name__ == "DataFrame" and "...  " not in repr(table)
    unusable = dataclasses.replace(result, verdict=Verdict("fail", (Reason("drift", "planted."),)))
    assert "do not use" in str(unusable.summary()) and "do not use" not in str(table)


def titles(axes):
    return [ax.get_title(loc="left") or ax.get_xlabel() for ax in axes.flat]


def test_the_plot_has_the_four_pictures_that_one_wants_first(result):
    axes = result.plot("jeffreys")
    assert "Jeffreys" in axes[0, 0].get_xlabel() and axes.shape == (2, 2)
    assert [title.split(",")[0].split(" (")[0] for title in titles(axes)[1:]] == [
        "Data", "Prior sensitivity", "Averaged over models"
    ]  # fmt: skip
    assert all(ax.has_data() for ax in axes.flat)


def test_the_plot_puts_the_next_in_line_where_a_picture_cannot_be_drawn(result):
    blind = dataclasses.replace(result, models=None, data=None)
    shown = titles(blind.plot())
    assert shown[1].startswith("Prior sensitivity") and shown[2].startswith("Averaged")
    failed = dataclasses.replace(result, verdict=Verdict("fail", (Reason("drift", "planted."),)))
    assert not any("sensitivity" in title for title in titles(failed.plot()))
    alone = made_result(0, {"line": "ab"}).plot()
    assert titles(alone)[0].startswith("ln Z(line)")
    assert all(ax.get_title(loc="left") or "Posterior of line" in ax.texts[0].get_text() for ax in alone.flat)


def test_methods_and_citation_are_text_for_a_paper(result):
    assert "seed 0" in result.methods() and result.interpret().headline in result.methods()
    cited = result.cite()
    entries = re.findall(r"^@\w+\{(\w+),$", cited, re.MULTILINE)
    assert entries == ["Mootoovaloo2016", "ShirtsChodera2008", "supermodel"]
    assert f"version = {{{result.versions['supermodel']}}}" in cited and cited.count("{") == cited.count("}")


@pytest.mark.parametrize(
    ("looks", "explore", "said", "unsaid"),
    [
        (("climbs, levels", "climbs, levels, nested slices"), "auto", "at least two looks", "a look at it"),
        (("climbs", "climbs, levels"), "auto", "a look at it", "two looks"),
        (("climbs, levels", "no parameters"), "auto", "at least two looks", "no parameters"),
        (("tempered particles, 5 hills", "curvature"), None, "5 hills", "prior mixed in"),  # as version 0.1.0 wrote it
    ],
)
def test_the_methods_say_how_the_posteriors_were_found(result, looks, explore, said, unsaid):
    pilots = {str(i): {"method": look, "spread": 0.1, "evaluations": 1500} for i, look in enumerate(looks)}
    settings = {"pilots": pilots} | ({} if explore is None else {"explore": explore})
    told = dataclasses.replace(result, settings=settings).methods()
    assert said in told and unsaid not in told
    assert ("prior mixed in" in told) == (explore is not None)
    rough = dataclasses.replace(result, settings=settings, edges=()).methods()
    assert "before any supermodel was sampled" in rough and "rungs" not in rough


NEVER = Verdict("limit", (Reason("never_visited", "planted: no draw gives model 'line' any share."),))


@pytest.mark.parametrize("spread", [0.0, math.nan, math.inf])
def test_where_not_even_a_limit_is_known_the_words_say_so(spread):
    made = made_result()
    evidences = Evidences(made.names, np.array([-math.inf, -30.0]), np.full((2, 2), spread))
    unknown = dataclasses.replace(made, evidences=evidences, verdict=NEVER)
    bound = unknown.bound("curve", "line")
    assert not bound.is_known and "unknown" in str(bound)
    said = unknown.interpret()
    assert said.band is None and "unknown" in said.headline and "nothing" in said.meaning
    everything = f"{unknown}{unknown.table().markdown()}{unknown.methods()}{said}"
    assert not re.search(r"\b(inf|nan)\b", everything), everything


def test_a_known_limit_is_a_number_in_words_and_table():
    made = made_result()
    evidences = Evidences.of_pair(made.names, -7.25, math.inf, limit={"probability": 0.9})
    limit = dataclasses.replace(made, evidences=evidences, verdict=NEVER)
    assert str(limit.bound("curve", "line")) == "ln B(curve : line) > 7.2 at 90%"
    assert limit.interpret().band == "strong" and "< -7.2" in str(limit.table())
    weak = dataclasses.replace(made, evidences=Evidences.of_pair(made.names, -1.2, math.inf), verdict=NEVER)
    assert weak.interpret().band is None and "at least weak evidence for curve over line" in weak.interpret().meaning
    loose = dataclasses.replace(made, evidences=Evidences.of_pair(made.names, -1.2, 3.0), verdict=NEVER)
    assert "the sign is not settled" in loose.interpret().meaning
