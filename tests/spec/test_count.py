"""Counts in TOML: what a file means, how mistakes are shown in their place, and that what is stored comes back whole."""

import dataclasses
import inspect
import json

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from canary import ATTACKS, nothing_runs
from supermodel import options
from supermodel.counting.numbers import shares_of
from supermodel.errors import SupermodelError
from supermodel.jax_scope import float64
from supermodel.models.columns import received
from supermodel.spec.count import LARGEST, count_of, parse_count, read_count
from supermodel.spec.toml import parse_spec

X = np.linspace(0, 10, 21)
Y = np.array([2.02, -0.28, 1.22, 0.89, 1.77, 3.72, 3.99, 3.71, 1.57, 2.85, 1.26, 1.57, 2.98, 3.67, 2.59, 1.55, 1.37, 0.89,
              1.48, 0.9, 1.01])  # fmt: skip
LINES = f"""[data]
columns = {{ place = {X.tolist()}, flux = {Y.tolist()} }}
y = "flux"
[component]
name = "line"
mean = "A * exp(-0.5 * ((place - c) / 0.6)^2)"
priors = {{ c = "Uniform(0, 10)", A = "HalfNormal(4)" }}
[background]
mean = "b"
priors = {{ b = "Normal(0, 2)" }}
[noise]
sigma = "s"
priors = {{ s = "HalfNormal(1)" }}
[count]
most = 2
prior = "Poisson(1.5)"
[run]
explore = "quick"
seed = 0
"""
LABELLED = LINES.replace("[background]", '[component.labels]\nc = "$c$"\n[component.units]\nc = "nm"\n[background]')


def log_likelihood(model, values, data):
    with float64():
        return float(model.log_likelihood({name: np.float64(v) for name, v in values.items()}, data))


def by_hand(p, k):
    mean = p["b"] + sum(p[f"A{i}"] * np.exp(-0.5 * ((X - p[f"c{i}"]) / 0.6) ** 2) for i in range(1, k + 1))
    return stats.norm.logpdf(Y, mean, p["s"]).sum()


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_models_are_those_that_the_formulas_say(k):
    spec = parse_count(LINES)
    model = spec.models[["no line", "1 line", "2 lines"][k]]
    assert list(model.priors) == ["b", "s", "c1", "A1", "c2", "A2"][: 2 + 2 * k]
    rng = np.random.default_rng(1)
    for _ in range(3):
        values = dict(zip(model.priors, rng.uniform(0.5, 9, len(model.priors)), strict=True))
        assert log_likelihood(model, values, spec.data) == pytest.approx(by_hand(values, k), rel=1e-12)
    assert model.reads(spec.data) == {"place", "y"}


def test_what_is_asked_and_how_it_is_run():
    spec = parse_count(LABELLED)
    assert spec.run == {"explore": "quick", "seed": 0}
    assert (spec.asked["most"], spec.asked["least"]) == (2, 0)
    assert (
        spec.component.name == "line" and spec.component.labels == {"c": "$c$"} and spec.component.units == {"c": "nm"}
    )
    assert spec.models["2 lines"].labels == {"c1": "$c_{1}$", "c2": "$c_{2}$"}
    assert spec.models["2 lines"].units == {"c1": "nm", "c2": "nm"}
    assert parse_count(LINES.replace("[component]", "[component]\nperiod = 'c'")).component.period == "c"


def test_defaults_are_those_of_count():
    spec = parse_count(LINES[: LINES.index("[count]")])
    known = inspect.signature(sm.count).parameters
    assert spec.asked == {name: known[name].default for name in ("most", "least")} and spec.run == {}


def test_it_takes_the_options_that_count_takes():
    assert set(options.OF_COUNT) == set(options.BY_NAME) & set(inspect.signature(sm.count).parameters)
    assert set(options.BY_NAME) - set(options.OF_COUNT) == set(options.NOT_OF_COUNT)


def test_a_period_may_be_a_formula():
    period = parse_count(LINES.replace("[component]", '[component]\nperiod = "2 * c / A"')).component.period
    found = period({"c": np.array([1.0, 3.0]), "A": np.array([4.0, 3.0])})
    assert isinstance(found, np.ndarray) and found.dtype == float and found.tolist() == [0.5, 2.0]


def test_without_a_background_or_with_noise_alone():
    alone = LINES.replace('[background]\nmean = "b"\npriors = { b = "Normal(0, 2)" }\n', "")
    spec = parse_count(alone)
    assert list(spec.background.priors) == ["s"] and spec.background.predict is None
    values = {"s": 0.7, "c1": 3.0, "A1": 2.0}
    assert log_likelihood(spec.models["1 line"], values, spec.data) == pytest.approx(by_hand(values | {"b": 0.0}, 1))
    spec = parse_count(alone.replace('"s"\npriors = { s = "HalfNormal(1)" }', "0.7"))
    assert spec.background is None
    assert log_likelihood(spec.models["no line"], {}, spec.data) == pytest.approx(by_hand({"b": 0.0, "s": 0.7}, 0))


@pytest.mark.parametrize(
    ("text", "numbers", "shares"),
    [
        ('"uniform"', range(3), [1 / 3] * 3),
        ('"Poisson(1.5)"', range(3), stats.poisson(1.5).pmf(range(3))),
        ('"Poisson(rate=3/2)"', range(3), stats.poisson(1.5).pmf(range(3))),
        ('"Geometric(0.25)"', range(3), [0.25, 0.25 * 0.75, 0.25 * 0.75**2]),
        ("{ 0 = 0.5, 1 = 0.3, 2 = 0.2 }", range(3), [0.5, 0.3, 0.2]),
        ("{ 0 = 3, 2 = 1 }", range(3), [0.75, 0, 0.25]),
    ],
)
def test_a_prior_on_the_number(text, numbers, shares):
    prior = parse_count(LINES.replace('"Poisson(1.5)"', text)).asked.get("prior")
    assert shares_of(prior, numbers) == pytest.approx(np.array(shares) / np.sum(shares), rel=1e-12)


WRONG = [
    ("(place - c)", "(plase - c)", "line 6 (component.mean)", "Did you mean 'place'?"),
    ("(place - c)", "(place - b)", "line 6 (component.mean)", "'b' belongs to the background"),
    ('mean = "b"', 'mean = "b + A"', "line 9 (background.mean)", "'A' is a parameter of each line"),
    ('sigma = "s"', 'sigma = "s * A"', "line 12 (noise.sigma)", "'A' is a parameter of each line"),
    ("- c)", "- 3)", "line 7 (component.priors.c)", "appears in no formula of component"),
    ('sigma = "s"', "sigma = 1", "line 13 (noise.priors.s)", "appears in no formula of background"),
    ("{ b =", '{ d = "Normal(0, 1)", b =', "line 10 (background.priors.d)", "appears in no formula of background"),
    ("c = ", "place = ", "line 7 (component.priors.place)", "column of the data as well"),
    ("{ s =", '{ b = "Normal(0, 1)", s =', "line 13 (noise.priors.b)", "two priors"),
    ("HalfNormal(4)", "HalfNorml(4)", "line 7 (component.priors.A)", "Did you mean 'HalfNormal'?"),
    ('"line"', '" "', "line 5 (component.name)", "what one component is called"),
    ('"line"', "3", "line 5 (component.name)", "a text in quotes"),
    ('name = "line"', 'nam = "line"', "line 5 (component.nam)", "Did you mean 'name'?"),
    ('name = "line"', 'period = "c + place"', "line 5 (component.period)", "'place' is a column"),
    ('name = "line"', 'period = "d"', "line 5 (component.period)", "unknown name 'd'"),
    ('name = "line"', 'labels = { d = "x" }', "line 5 (component.labels.d)", "unknown key 'd'"),
    ('name = "line"', 'units = { c = "" }', "line 5 (component.units.c)", "a text is needed"),
    ("{ b =", '{ c1 = "Normal(0, 1)", b =', "line 10 (background.priors.c1)", "appears in no formula"),
    ("[background]", "[backgroud]", "line 8 (backgroud)", "Did you mean 'background'?"),
    ("most = 2", "most = 2.5", "line 15 (count.most)", "whole number"),
    ("most = 2", "most = true", "line 15 (count.most)", "whole number"),
    ("most = 2", f"most = {LARGEST + 1}", "line 15 (count.most)", "whole number"),
    ("most = 2", "least = -1", "line 15 (count.least)", "whole number"),
    ("most = 2", "least = 4", "line 15 (count.least)", "nothing to count"),
    ("most = 2", "most = 0", "line 15 (count.most)", "nothing to count"),
    ("most = 2", "most = 2\nstop = 1", "line 16 (count.stop)", "a probability"),
    ("most = 2", 'most = 2\nstop = "never"', "line 16 (count.stop)", "a probability"),
    ("most = 2", "most = 2\nstop = [0.1]", "line 16 (count.stop)", "a probability"),
    ("Poisson(1.5)", "Poison(1.5)", "line 16 (count.prior)", "Did you mean 'Poisson'?"),
    ("Poisson(1.5)", "Normal(1, 2)", "line 16 (count.prior)", "Write uniform, Poisson(1.5)"),
    ("Poisson(1.5)", "Poisson(1, 2)", "line 16 (count.prior)", "one argument"),
    ("Poisson(1.5)", "Poisson(probs=1)", "line 16 (count.prior)", "one argument"),
    ("Poisson(1.5)", "Poisson(-1)", "line 16 (count.prior)", "rate must be above 0"),
    ("Poisson(1.5)", "Geometric(1)", "line 16 (count.prior)", "below 1"),
    ("Poisson(1.5)", "-Poisson(1)", "line 16 (count.prior)", "no prior on a number"),
    ('"Poisson(1.5)"', "{ 0 = 0.5, 7 = 0.5 }", "line 16 (count.prior)", "the numbers are 0 to 2"),
    ('"Poisson(1.5)"', "{ 0 = 0, 1 = 1 }", "line 16 (count.prior)", "above 0 for the least"),
    ('"Poisson(1.5)"', "{ 0 = 0.5, two = 0.5 }", "line 16 (count.prior.two)", "{ 0 = 0.5, 1 = 0.3"),
    ('"Poisson(1.5)"', '{ 0 = "half" }', "line 16 (count.prior.0)", "{ 0 = 0.5, 1 = 0.3"),
    ('"Poisson(1.5)"', "1.5", "line 16 (count.prior)", "a text in quotes"),
    ("seed = 0", "decide = [0, 1]", "line 19 (run.decide)", "unknown key 'decide'"),
    ("seed = 0", "seed = -1", "line 19 (run.seed)", "whole number"),
    ('y = "flux"', 'y = "flix"', "line 3 (data.y)", "no column 'flix'"),
]


@pytest.mark.parametrize(("old", "new", "where", "part"), WRONG)
def test_a_mistake_is_shown_in_its_place(old, new, where, part):
    assert LINES.count(old) >= 1
    with pytest.raises(SupermodelError) as caught:
        parse_count(LINES.replace(old, new, 1), name="lines.toml")
    message = str(caught.value)
    assert message.startswith("lines.toml") and where in message and part in message
    line, carets = message.splitlines()[-2:]
    assert set(carets.strip()) == {"^"} and line.strip()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "'data' is missing"),
        (LINES.replace('mean = "A', 'men = "A'), "Did you mean 'mean'?"),
        (LINES.replace('priors = { c = "Uniform(0, 10)", A = "HalfNormal(4)" }', ""), "'priors' is missing in [component]"),
        (LINES.replace('mean = "b"', 'mean = "b + c1"').replace("{ b =", '{ c1 = "Normal(0, 1)", b ='), "rename one"),
        ("component = 3\n[data]\ncolumns = { y = [1] }", "a table is needed"),
        ('[data]\ncolumns = { y = [1] }\n[noise]\nsigma = 1\n[component]\nmean = "1"\npriors = {}', "give it priors"),
        (LINES + "[models]", "unknown key 'models'"),
        ("[models.a]\nmean = 1", "line 1 (models.a): models are compared, not counted. Run: supermodel compare spec"),
        ("[regression]\nformula = 'y ~ x'", "line 1 (regression): a regression is compared"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(text, part):
    with pytest.raises(SupermodelError) as caught:
        parse_count(text)
    assert part in str(caught.value)


def test_a_comparison_says_that_a_component_is_to_be_counted():
    with pytest.raises(
        SupermodelError, match=r"line 4 \(component\): components are counted, not compared.*count l.toml"
    ):
        parse_spec(LINES, name="l.toml")


def test_files_of_other_kinds(tmp_path):
    for name, text in (("a.toml", LINES), ("b.toml", "[models.a]\nmean = 1"), ("c.py", "")):
        (tmp_path / name).write_text(text)
    assert count_of(tmp_path / "a.toml").component.name == "line" == read_count(tmp_path / "a.toml").component.name
    assert count_of(tmp_path / "b.toml") is None and count_of(tmp_path / "c.py") is None
    assert count_of(tmp_path / "none.toml") is None
    with pytest.raises(SupermodelError, match="there is no file"):
        read_count(tmp_path / "none.toml")
    with pytest.raises(SupermodelError, match=r"calls supermodel\.count"):
        read_count(tmp_path / "c.py")
    (tmp_path / "d.toml").write_text(LINES.replace("columns = {", "file = '../d.csv' #"))
    with pytest.raises(SupermodelError, match="is not inside the data root"):
        read_count(tmp_path / "d.toml", tmp_path)


def test_only_rows_that_miss_what_a_formula_names_are_dropped(tmp_path):
    rows = ["place,flux,other", *(f"{x},{y}," for x, y in zip(X, Y, strict=True)), ",1,2"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    (tmp_path / "t.toml").write_text(
        LINES.replace(LINES.splitlines()[1], 'file = "t.csv"').replace("[run]", '[run]\nmissing = "drop"')
    )
    spec = read_count(tmp_path / "t.toml")
    found = received(spec.data, spec.models.values(), spec.run["missing"])
    assert (found.dropped, found.rows) == (1, 22) and found.data["y"].tolist() == Y.tolist()


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_run(attack):
    with nothing_runs():
        for old in ('"Poisson(1.5)"', '"b"', '"line"', '"s"'):
            try:
                parse_count(LINES.replace(old, json.dumps(attack)))
            except SupermodelError as error:
                assert str(error)
        with pytest.raises(SupermodelError):
            parse_count(LINES.replace("[component]", f"[component]\nperiod = {json.dumps(attack)}"))


# -- stored ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    result = parse_count(LABELLED.replace("[component]", "[component]\nperiod = 'c'")).count(most=1, progress=False)
    return result, result.save(tmp_path_factory.mktemp("count") / "run.nc")


def test_options_go_before_the_file_and_the_answer_is_that_of_count(stored):
    result, _ = stored
    spec = parse_count(LINES)
    same = sm.count(
        spec.component, spec.data, background=spec.background, noise=spec.noise, most=1, prior=stats.poisson(1.5),
        explore="quick", progress=False,
    )  # fmt: skip
    assert result.numbers == (0, 1) and result.prior == pytest.approx({0: 0.4, 1: 0.6})
    assert result.log_evidence(1) == same.log_evidence(1) and same.comparison.formulas == {}


def test_a_stored_count_comes_back_with_its_parts(stored):
    result, path = stored
    again = sm.load(path)
    assert isinstance(again, sm.Count) and again.comparison.formulas == result.comparison.formulas
    assert (again.component.name, again.component.period, again.component.labels) == ("line", "c", {"c": "$c$"})
    assert list(again.background.priors) == ["b", "s"] and str(again) == str(result)
    values = {"b": 1.0, "s": 0.8, "c1": 3.0, "A1": 2.0}
    assert log_likelihood(again.comparison.models["1 line"], values, again.comparison.data) == by_hand(values, 1)
    grid = np.linspace(0, 10, 50)
    there, here = (each.comparison.predict({"place": grid}).mean for each in (again, result))
    np.testing.assert_array_equal(there, here)


def test_a_count_without_formulas_comes_back_without_models(stored, tmp_path):
    result, _ = stored
    bare = dataclasses.replace(result.comparison, models=None, formulas={})
    again = sm.load(bare.save(tmp_path / "bare.nc"))
    assert isinstance(again, sm.Count) and again.comparison.models is None and again.component is None


@pytest.mark.parametrize("formula", [*ATTACKS[:3], "nosuch(A)", "A * other", 3.5, ["A"]])
def test_a_forged_formula_is_refused_and_nothing_runs(formula, stored, tmp_path):
    result, _ = stored
    forged = {**result.comparison.formulas["no line"]}
    forged["component"] = {**forged["component"], "mean": formula}
    formulas = dict.fromkeys(result.comparison.names, forged)
    path = dataclasses.replace(result.comparison, formulas=formulas).save(tmp_path / "forged.nc")
    with nothing_runs(), pytest.raises(SupermodelError, match="forged.nc"):
        sm.load(path)


@pytest.mark.parametrize("told", [{}, {"component": 3}, 7, {"least": "0"}, {"prior": [None]}])
def test_a_forged_count_is_told(told, stored, tmp_path):
    result, _ = stored
    asked = {**result.asked, **told} if isinstance(told, dict) and told else told
    settings = {**result.comparison.settings, "count": asked}
    path = dataclasses.replace(result.comparison, settings=settings).save(tmp_path / "forged.nc")
    with pytest.raises(SupermodelError, match="forged.nc"):
        sm.load(path)
