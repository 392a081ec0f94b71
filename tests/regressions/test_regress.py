"""The front door: what can be asked, what is said, and what is refused with which words."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import supermodel as sm

DATA = Path(__file__).resolve().parent.parent / "data" / "regression"
CARS = pd.read_csv(DATA / "mtcars.csv")
TOOTH = pd.read_csv(DATA / "tooth.csv")


@pytest.fixture(scope="module")
def cars():
    return sm.regression("mpg ~ wt * hp", data=CARS)


def test_models_respect_marginality(cars):
    assert cars.names == ("1", "wt", "hp", "wt + hp", "wt + hp + wt:hp")
    assert cars.best == "wt + hp + wt:hp" and cars.verdict.level == "ok"
    assert np.isclose(sum(cars.probabilities.values()), 1)


def test_named_models_and_prior_odds():
    some = sm.regression("mpg ~ wt * hp", CARS, models=["wt", "hp + wt"], prior_odds={"1": 2, "wt": 1, "wt + hp": 1})
    assert some.names == ("1", "wt", "wt + hp") and some.prior_odds["1"] == 0.5
    with pytest.raises(sm.SupermodelError, match="'qsec'.*wt, hp, wt:hp"):
        sm.regression("mpg ~ wt * hp", CARS, models=["qsec"])


def test_models_can_be_called_by_the_formula_that_was_given(cars):
    wanted = cars.log_bayes_factor("wt + hp", "wt")
    assert cars.log_bayes_factor("mpg ~ hp + wt", "mpg ~ wt") == wanted == cars.log_bayes_factor("hp + wt", "wt")
    assert cars.log_bayes_factor("mpg ~ wt * hp") == cars.log_bayes_factor("wt + hp + wt:hp")
    assert cars.log_bayes_factor("mpg ~ hp + wt", "wt + hp").error == 0
    for text in ("qsec ~ wt", "mpg ~ qsec", "~~"):
        with pytest.raises(sm.SupermodelError, match="no model .* its models are '1', 'wt'"):
            cars.log_bayes_factor(text)
    grouped = sm.regression("len ~ dose + (1 | supp)", TOOTH, explore="quick", progress=False, family="student",
                            models=["len ~ dose + (1 | supp)"],
                            prior_odds={"len ~ dose + (1 | supp)": 3, "len ~ 1 + (1 | supp)": 1})  # fmt: skip
    assert grouped.names == ("1", "dose") and grouped.prior_odds["dose"] == 0.75
    assert grouped.log_bayes_factor("len ~ dose + (1 | supp)") == grouped.log_bayes_factor("dose", "1")


def test_every_form_of_a_table_is_the_same_table(cars, tmp_path):
    polars = pytest.importorskip("polars")
    wanted = cars.evidences.values
    for data in (DATA / "mtcars.csv", str(DATA / "mtcars.csv"), CARS.to_dict("list"), CARS.to_records(index=False),
                 polars.DataFrame(CARS.to_dict("list"))):  # fmt: skip
        assert np.array_equal(sm.regression("mpg ~ wt * hp", data).evidences.values, wanted)


def test_numbers_become_factors_in_an_anova_and_in_c():
    numbers = TOOTH.assign(dose=TOOTH.dose.str[1:].astype(float))
    as_labels, as_numbers = sm.anova("len ~ dose", TOOTH), sm.anova("len ~ dose", numbers)
    in_c = sm.regression("len ~ C(dose)", numbers)
    assert np.isclose(as_labels.evidences.values[1], as_numbers.evidences.values[1])
    assert np.isclose(as_labels.evidences.values[1], in_c.evidences.values[1])
    assert sm.regression("len ~ dose", numbers).evidences.values[1] != as_numbers.evidences.values[1]
    assert "dose[0.5]" in as_numbers.fits["dose"].labels


def test_functions_offsets_and_no_intercept():
    logged = sm.regression("mpg ~ log(wt)", CARS)
    by_hand = sm.regression("mpg ~ w", CARS.assign(w=np.log(CARS.wt)))
    assert np.isclose(logged.evidences.values[1], by_hand.evidences.values[1])
    shifted = sm.regression("mpg ~ offset(hp) + wt", CARS)
    by_hand = sm.regression("y ~ wt", CARS.assign(y=CARS.mpg - CARS.hp))
    assert np.isclose(shifted.evidences.values[1], by_hand.evidences.values[1])
    # A regression on a constant without an intercept is the one-sample t test of the same scale.
    through_zero = sm.regression("mpg ~ 0 + x", CARS.assign(x=1 + 1e-9 * CARS.wt), rscale=1.0)
    assert abs(through_zero.log_bayes_factor().value - sm.ttest(CARS.mpg, rscale=1.0).log_bayes_factor().value) < 1e-4
    assert len(sm.regression("mpg ~ poly(wt, 3)", CARS).fits["poly(wt, 3)"].labels) == 3


def test_text_sentence_apa_summary_and_json(cars):
    text = str(cars)
    for words in ("5 models", "P(model|data)", "ln B incl, matched", "Verdict OK", "r = 0.354 continuous"):
        assert words in text
    assert "2.4 × 10^10 times as probable under wt + hp + wt:hp as under 1" in cars.sentence()
    assert "BF_10 = 2.4 × 10^10 (error < 0.01%)" in cars.apa() and "wt:hp: BF_incl = 115" in cars.apa()
    effects = {e.label: e for e in cars.effects()}
    fit = np.polyfit(CARS.wt, CARS.mpg, 1)
    assert effects["wt"].low < effects["wt"].mean < effects["wt"].high < 0 and fit[0] < 0
    assert "wt:hp" in cars.summary().text() and "<table" in cars._repr_html_()
    found = json.loads(cars.to_json())
    assert found["best"] == cars.best and len(found["models"]) == 5 and len(found["inclusion"]) == 3
    assert list(cars.to_dataframe().columns[:3]) == ["wt", "hp", "wt:hp"]


def test_bayes_factors_below_one_are_told_as_evidence_for_the_null():
    rng = np.random.default_rng(0)
    result = sm.regression("y ~ a", {"y": rng.normal(size=80), "a": rng.normal(size=80)})
    assert "as probable under 1 as under a" in result.sentence() and "BF_01" in result.apa()


def test_sensitivity_is_a_run_at_other_scales(cars):
    curve = cars.sensitivity("rscale", [0.5, 1.0, 2.0])
    wide = sm.regression("mpg ~ wt * hp", CARS, rscale=2 * np.sqrt(2) / 4)
    row = curve.models.index("wt")
    assert np.isclose(curve.estimates[row][2].value, wide.log_bayes_factor("wt", "1").value)
    assert curve.estimates[row][1] == cars.log_bayes_factor("wt", "1")
    with pytest.raises(sm.SupermodelError, match="rscale"):
        cars.sensitivity("wt")


def test_scales_by_kind_and_term():
    wide = sm.anova("len ~ supp + dose", TOOTH, rscale={"supp": "wide"})
    all_wide = sm.anova("len ~ supp + dose", TOOTH, rscale="wide")
    assert np.isclose(wide.log_bayes_factor("supp", "1").value, all_wide.log_bayes_factor("supp", "1").value)
    assert wide.log_bayes_factor("dose", "1") != all_wide.log_bayes_factor("dose", "1")
    with pytest.raises(sm.SupermodelError, match="no kind and no term"):
        sm.anova("len ~ supp", TOOTH, rscale={"sup": 1})


def test_plots_and_report(cars, tmp_path):
    ax = cars.plot("inclusion")
    assert ax.has_data() and len(ax.get_yticks()) == 6
    with pytest.raises(sm.SupermodelError, match="models, inclusion, effects, robustness"):
        cars.plot("all")
    assert cars.report(tmp_path / "report.html") == tmp_path / "report.html"
    page = (tmp_path / "report.html").read_text()
    assert (
        page.count("<svg") >= 4
        and "wt + hp + wt:hp" in page
        and '="http' not in page.replace('="http:' + "//www.w3.org", "")
    )


def test_effects_of_groups_are_told_when_asked_and_are_no_hypotheses():
    """A factor may be a group too, and levels of both may have one name: nothing is hidden or mixed up."""
    puzzles = pd.read_csv(DATA / "puzzles.csv").assign(
        ID=lambda t: t.ID.str[1:], shape=lambda t: t["shape"].map({"round": "1", "square": "2"})
    )
    result = sm.regression("RT ~ shape + (1 | ID)", puzzles, hypothesis="1 > 2", test_groups=True)
    few, many = ([e.label for e in result.effects(groups)] for groups in (False, True))
    assert few == ["shape[1]", "shape[2]", "sd(1 | ID)", "Intercept", "sigma"]
    assert len(many) == len(few) + 12 and "1 | ID[12]" in many
    assert result.effects()[2].probability > 0.99 and result.hypotheses[0].posterior.value > 0.9


def test_missing_rows_are_told_or_dropped():
    holes = CARS.assign(wt=CARS.wt.where(CARS.index != 6))
    with pytest.raises(sm.SupermodelError, match=r"'wt', row 6 \(counted from 0\), is nan: 1 of 32 rows"):
        sm.regression("mpg ~ wt", holes)
    dropped = sm.regression("mpg ~ wt", holes, missing="drop")
    assert dropped.n_dropped == 1 and "1 incomplete ones dropped" in str(dropped)
    whole = sm.regression("mpg ~ wt", CARS.drop(index=6))
    assert np.isclose(dropped.evidences.values[1], whole.evidences.values[1])
    assert sm.regression("mpg ~ hp", holes).n_dropped == 0  # a column that is not used may have holes


def small(**columns):
    return {"y": [1.0, 2.5, 3.0, 4.2, 4.9, 6.1], "x": [0.3, 1.0, 2.2, 2.9, 4.1, 5.0], **columns}


BAD = {
    "unknown column": ("y ~ z", small(), {}, "no column 'z'.*y, x"),
    "close name": ("y ~ xx", small(), {}, "mean"),
    "syntax": ("y ~ x +", small(), {}, "cannot be read"),
    "caret": ("y ~ x^2", small(), {}, r"\*\*"),
    "no tilde": ("y + x", small(), {}, "no '~'"),
    "no response": ("~ x", small(), {}, "cannot be read"),
    "null only": ("y ~ 1", small(), {}, "no model but the null"),
    "code": ("y ~ __import__(x)", small(), {}, "cannot be read"),
    "nested call": ("y ~ log(eval(x))", small(), {}, "calls 'eval'"),
    "module": ("y ~ os.system(x)", small(), {}, "calls 'os.system'"),
    "text response": ("y ~ x", small(y=list("abcabc")), {}, "must be numbers"),
    "constant response": ("y ~ x", small(y=[2.0] * 6), {}, "nothing to explain"),
    "constant column": ("y ~ x", small(x=[2.0] * 6), {}, "constant explains nothing"),
    "one level": ("y ~ f", small(f=["a"] * 6), {}, "one level only"),
    "collinear": ("y ~ x + z", small(z=[2 * v + 1 for v in small()["x"]]), {}, "x, z are perfectly collinear"),
    "perfect": ("y ~ x", small(y=[3 * v + 1 for v in small()["x"]]), {}, "fits the response perfectly"),
    "few rows": ("y ~ x + I(x**2) + I(x**3) + I(x**4) + I(x**5)", small(), {}, "need more than 6 rows"),
    "infinite": ("y ~ log(x)", small(x=[0.0, 1, 2, 3, 4, 5]), {}, "is -inf in row 0"),
    "unequal": ("y ~ x", {"y": [1.0, 2, 3], "x": [1.0, 2]}, {}, "equally long"),
    "no table": ("y ~ x", 3, {}, "must be a table"),
    "no file": ("y ~ x", "nowhere.csv", {}, "no file 'nowhere.csv'"),
    "family": ("y ~ x", small(), {"family": "gamma"}, "no family 'gamma'"),
    "three values": ("y ~ x", small(y=[0, 1, 2, 0, 1, 2]), {"family": "bernoulli"}, "exactly two values.*has 3: 0, 1, 2"),
    "no trials": ("y ~ x", small(), {"family": "binomial"}, r"prop\(k, n\)"),
    "no counts": ("y ~ x", small(), {"family": "poisson"}, r"counts.*row 1 \(counted from 0\) is 2.5"),
    "groups are rows": ("y ~ x + (1 | g)", small(g=list("abcdef")), {}, "as many groups as rows"),
    "factor without mean": ("y ~ 0 + f", small(f=list("ababab")), {}, "without an intercept"),
    "engine's options": ("y ~ x", small(), {"target_error": 0.1}, "closed forms"),
    "prior of nothing": ("y ~ x", small(), {"priors": {"z": stats.norm(0, 1)}}, "'z', which no model has"),
    "odds": ("y ~ x", small(), {"prior_odds": {"1": 1}}, "exactly the models 1, x"),
    "rscale": ("y ~ x", small(), {"rscale": -1}, "positive number"),
    "missing": ("y ~ x", small(), {"missing": "keep"}, "raise"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_sentence(case):
    formula, data, options, words = BAD[case]
    with pytest.raises(sm.SupermodelError, match=words):
        sm.regression(formula, data, **options)


def test_too_many_models_are_refused_before_they_are_made():
    data = {f"x{i}": np.arange(40.0) ** (1 + i / 10) for i in range(18)} | {"y": np.arange(40.0)}
    with pytest.raises(sm.SupermodelError, match="more than 8192 models"):
        sm.regression("y ~ .", data)
    with pytest.raises(sm.SupermodelError, match="128 models would go to the engine"):
        sm.regression("y ~ " + " + ".join(f"x{i}" for i in range(7)), data, family="student")


def test_a_quadrature_that_knows_little_says_so(monkeypatch):
    """Negative control of the verdict: a rule with an error of 0.3 is a caution, one of 3 a failure that no text hides."""
    from supermodel.regressions import gaussian
    from supermodel.regressions.integral import Integral

    for error, level in ((0.3, "caution"), (3.0, "fail")):
        rough = Integral(2.0, error, np.zeros((4, 1)), np.full(4, 0.25))
        monkeypatch.setattr(gaussian, "integrate", lambda *args, rough=rough: rough)
        result = sm.regression("mpg ~ wt", CARS)
        assert result.verdict.level == level and result.verdict.reasons[0].code == "quadrature"
        assert level.upper() in str(result)
    assert "nothing can be concluded" in result.sentence() and "no Bayes factor" in result.apa()
    assert "do not use" in str(result.table()) and result.verdict.exit_code == 4


def test_t_tests_take_samples_groups_and_formulas():
    sleep = pd.read_csv(DATA / "sleep.csv")
    by_group = sm.ttest(sleep.extra, sleep.group, paired=True)
    samples = [sleep.extra[sleep.group == g].to_numpy() for g in ("g1", "g2")]
    for other in (sm.ttest(*samples, paired=True), sm.ttest("extra ~ group", data=sleep, paired=True),
                  sm.ttest(sleep.extra, group=sleep.group.str[1].astype(int), paired=True),
                  sm.ttest(samples[0] - samples[1])):  # fmt: skip
        assert np.isclose(other.log_bayes_factor().value, by_group.log_bayes_factor().value)
    assert "median delta = -1.0" in by_group.apa() or "median delta = -1.1" in by_group.apa()
    assert {e.label for e in by_group.effects()} == {"delta", "difference", "sigma"}


def test_the_sides_of_every_test_average_to_both():
    """B = (B_greater + B_less) / 2, for each of the three."""
    a = pd.read_csv(DATA / "attitude.csv")
    for test, args in (
        (sm.ttest, (a.rating, a.critical)),
        (sm.correlation, (a.rating, a.critical)),
        (sm.proportion, (15, 25)),
    ):
        both, up, down = (test(*args, alternative=s).log_bayes_factor().value for s in ("two-sided", "greater", "less"))
        assert np.isclose(both, np.logaddexp(up, down) - np.log(2), atol=1e-7)


def test_the_unlikely_side_keeps_its_digits():
    """A shift of the sample mirrors the test: B_less(x) = B_greater(-x), also where P(less) is 1e-9."""
    x = np.linspace(0.5, 3.5, 14)
    less, more = (
        sm.ttest(x, alternative="less").log_bayes_factor(),
        sm.ttest(-x, alternative="greater").log_bayes_factor(),
    )
    assert np.isclose(less.value, more.value, atol=1e-6) and less.value < -2
    down, up = sm.proportion(60, 64, alternative="less"), sm.proportion(4, 64, alternative="greater")
    assert np.isclose(down.log_bayes_factor().value, up.log_bayes_factor().value, atol=1e-6)


BAD_TESTS = {
    "three groups": (lambda: sm.ttest([1.0, 2, 3, 4], group=list("abca")), "two groups; there are 3"),
    "pairs": (lambda: sm.ttest([1.0, 2, 3], [1.0, 2], paired=True), "two samples of one size"),
    "texts": (lambda: sm.ttest(["a", "b"]), "must be numbers"),
    "nan": (lambda: sm.ttest([1.0, np.nan, 3]), "incomplete"),
    "constant": (lambda: sm.ttest([2.0, 2.0, 2.0]), "values that differ"),
    "side": (lambda: sm.ttest([1.0, 2, 3], alternative="up"), "two-sided, greater, less"),
    "one formula": (lambda: sm.ttest("a ~ b + c", data={"a": [1.0], "b": [1.0], "c": [1.0]}), "value ~ group"),
    "short": (lambda: sm.correlation([1.0, 2.0], [2.0, 1.0]), "three pairs"),
    "perfect": (lambda: sm.correlation([1.0, 2, 3, 4], [2.0, 4, 6, 8]), "perfectly correlated"),
    "more than all": (lambda: sm.proportion(5, 3), "0 <= k <= n"),
    "certain null": (lambda: sm.proportion(2, 3, p=1.0), "between 0 and 1"),
    "word": (lambda: sm.ttest([1.0, 2, 3], rscale="huge"), "medium, wide, ultrawide"),
}


@pytest.mark.parametrize("case", BAD_TESTS)
def test_bad_tests_are_a_sentence(case):
    call, words = BAD_TESTS[case]
    with pytest.raises(sm.SupermodelError, match=words):
        call()


def test_the_words_are_those_of_the_scale_of_every_result_which_is_named():
    from supermodel.report.scales import DEFAULT, SCALES

    result = sm.ttest(np.array([0.4, 1.3, -0.2, 2.1, 0.9, 1.6, 0.3, 1.1, 0.8, 1.9]))
    found = result.log_bayes_factor()
    ours, jeffreys = SCALES[DEFAULT], SCALES["jeffreys"]
    assert result.sentence().endswith(f"{ours.band(found)} evidence ({ours.name}).")
    assert result.sentence("jeffreys").endswith(f"{jeffreys.band(found)} evidence (Jeffreys).")
    assert ours.band(found) != jeffreys.band(found) and ours.name in str(result)
    small = sm.ttest(np.array([0.4, -0.3, -0.2, 0.1]))
    assert small.sentence().endswith(": inconclusive (Trotta).")


def test_a_t_test_from_t_and_n_is_that_of_the_data():
    rng = np.random.default_rng(8)
    x, y = rng.normal(0.5, 2.0, 14), rng.normal(0.0, 2.0, 9)
    one = stats.ttest_1samp(x, 0.0).statistic
    two = stats.ttest_ind(x, y).statistic
    for told, data in ((sm.ttest(t=one, n=14), sm.ttest(x)), (sm.ttest(t=two, n=(14, 9)), sm.ttest(x, y)),
                       (sm.ttest(t=two, n=(14, 9), alternative="less", rscale="wide"),
                        sm.ttest(x, y, alternative="less", rscale="wide"))):  # fmt: skip
        a, b = told.log_bayes_factor(), data.log_bayes_factor()
        assert abs(a.value - b.value) < 1e-6 + 5 * np.hypot(a.error, b.error)
        assert told.effects()[0].mean == pytest.approx(data.effects()[0].mean, abs=1e-9)
        assert [effect.label for effect in told.effects()] == ["delta"]
    assert "t = 2.5, n = (14, 9)" in str(sm.ttest(t=2.5, n=(14, 9)))
    assert sm.ttest(t=2.03, n=80).log_bayes_factor().value == pytest.approx(_rouder(2.03, 80, np.sqrt(0.5)), abs=1e-5)


def _rouder(t, n, r):
    """Equation 1 of Rouder et al. (2009): ln B10 of one sample, with a Cauchy of scale r."""
    from scipy.integrate import quad

    v = n - 1

    def term(g):
        a = 1 + n * g * r**2
        return a**-0.5 * (1 + t**2 / (a * v)) ** (-(v + 1) / 2) * (2 * np.pi) ** -0.5 * g**-1.5 * np.exp(-1 / (2 * g))

    total = quad(term, 0, 1)[0] + quad(term, 1, np.inf)[0]
    return np.log(total) + (v + 1) / 2 * np.log1p(t**2 / v)


@pytest.mark.parametrize(
    "wrong",
    [
        {"t": 2.0},
        {"n": 10},
        {"t": np.inf, "n": 10},
        {"t": 2.0, "n": 1},
        {"t": 2.0, "n": (3, 4, 5)},
        {"t": 1.0, "n": 4.5},
        {},
    ],
)
def test_a_t_test_without_data_needs_t_and_n(wrong):
    with pytest.raises(sm.SupermodelError, match="t statistic|a finite t"):
        sm.ttest(**wrong)
