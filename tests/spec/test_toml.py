"""TOML files: what they mean, how mistakes are shown in their place, and that no input crashes the loader."""

import sys
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from canary import ATTACKS, nothing_runs
from supermodel.errors import SupermodelError
from supermodel.jax_scope import float64
from supermodel.models.columns import received
from supermodel.models.table_file import read_table
from supermodel.spec.toml import parse_spec, read_spec

DATA = resources.files("supermodel") / "data"
SINE = (DATA / "sine.toml").read_text()
COLUMNS = "columns = { x = [1, 2, 3], y = [2, 0, 1], n = [4, 2, 3], s = [1.0, 2.0, 0.5] }"


def spec_of(noise, mean="a + b * x", priors='a = "Normal(0, 1)", b = "Normal(0, 2)"', data=COLUMNS, more=""):
    return f'[data]\n{data}\n[noise]\n{noise}\n[models.m]\nmean = "{mean}"\npriors = {{ {priors} }}\n{more}'


def log_likelihood(text, **values):
    spec = parse_spec(text)
    with float64():
        return float(spec.models["m"].log_likelihood({k: np.float64(v) for k, v in values.items()}, spec.data))


Y, X, N, S = np.array([2.0, 0, 1]), np.array([1.0, 2, 3]), np.array([4.0, 2, 3]), np.array([1.0, 2, 0.5])


@pytest.mark.parametrize(
    ("noise", "extra", "density"),
    [
        ('sigma = "s"', {}, lambda m: stats.norm.logpdf(Y, m, S)),
        ("sigma = 0.7", {}, lambda m: stats.norm.logpdf(Y, m, 0.7)),
        ('sigma = "c"\npriors = { c = "HalfNormal(1)" }', {"c": 1.3}, lambda m: stats.norm.logpdf(Y, m, 1.3)),
        (
            'sigma = "sqrt(s^2 + c^2)"\npriors.c = "HalfNormal(1)"',
            {"c": 1.3},
            lambda m: stats.norm.logpdf(Y, m, np.hypot(S, 1.3)),
        ),
        ('form = "student_t"\ndf = 4\nsigma = "s"', {}, lambda m: stats.t.logpdf((Y - m) / S, 4) - np.log(S)),
        ('form = "poisson"', {}, lambda m: stats.poisson.logpmf(Y, m)),
        ('form = "poisson"\nlink = "log"', {}, lambda m: stats.poisson.logpmf(Y, np.exp(m))),
        ('form = "binomial"\ntrials = "n"', {}, lambda m: stats.binom.logpmf(Y, N, 1 / (1 + np.exp(-m)))),
        ('form = "binomial"\ntrials = 4', {}, lambda m: stats.binom.logpmf(Y, 4, 1 / (1 + np.exp(-m)))),
        ('form = "binomial"\ntrials = 4\nlink = "identity"', {}, lambda m: stats.binom.logpmf(Y, 4, m)),
    ],
)
def test_every_noise_is_the_density_it_claims(noise, extra, density):
    found = log_likelihood(spec_of(noise), a=0.1, b=0.2, **extra)
    assert found == pytest.approx(density(0.1 + 0.2 * X).sum(), rel=1e-12)


def test_impossible_means_have_no_probability():
    assert log_likelihood(spec_of('form = "poisson"'), a=-5, b=0) == -np.inf
    assert log_likelihood(spec_of('form = "binomial"\ntrials = 4\nlink = "identity"'), a=1.5, b=0) == -np.inf


def test_a_model_may_have_its_own_noise():
    text = spec_of('sigma = "s"', more='noise = { form = "student_t", df = 3, sigma = 1 }')
    assert log_likelihood(text, a=0, b=0) == pytest.approx(stats.t.logpdf(Y, 3).sum())


def test_the_measured_column_may_have_any_name():
    data = 'columns = { x = [1, 2], y = [5, 6], z = [3, 4] }\ny = "z"'
    found = log_likelihood(spec_of("sigma = 1", mean="a + b * y", data=data), a=0.5, b=1)
    assert found == pytest.approx(stats.norm.logpdf([3, 4], [5.5, 6.5], 1).sum())


def test_a_parameter_may_be_called_y_in_the_mean_and_not_in_the_noise():
    """A noise sees columns and parameters in one table, where the measured column is "y"."""
    data = 'columns = { x = [1, 2], z = [3, 4] }\ny = "z"'
    text = spec_of("sigma = 1", mean="y * x", priors='y = "Normal(0, 1)"', data=data)
    assert log_likelihood(text, y=2) == pytest.approx(stats.norm.logpdf([3, 4], [2, 4], 1).sum())
    with pytest.raises(SupermodelError, match="cannot hold a parameter 'y'"):
        parse_spec(text.replace("sigma = 1", 'sigma = "1 + y"'))


def test_the_example_file_and_its_options():
    spec = read_spec(DATA / "sine.toml")
    assert spec.run == {"target_error": 0.05, "seed": 0}
    assert {name: list(model.priors) for name, model in spec.models.items()} == {
        "fixed": ["omega"],
        "free": ["omega", "phi"],
    }
    assert len(spec.data["y"]) == 50


WRONG = [
    ("omega * x + phi", "omga * x + phi", "line 16 (models.free.mean)", "Did you mean 'omega'?"),
    ("Normal(0, 0.05)", "Norml(0, 0.05)", "line 17 (models.free.priors.phi)", "Did you mean 'Normal'?"),
    ("Normal(0, 0.05)", "Normal(0, -0.05)", "line 17", "must be positive"),
    ('"Normal(0, 0.05)"', "0.05", "line 17", "write it into the formula"),
    ("sine.csv", "sin.csv", "line 5 (data.file)", "there is no file"),
    ("[run]", "[rum]", "line 19 (rum)", "Did you mean 'run'?"),
    ('mean = "sin(omega * x)"', "meen = 3", "line 12 (models.fixed.meen)", "Did you mean 'mean'?"),
    ("target_error = 0.05", "target_error = -1", "line 20 (run.target_error)", "positive"),
    ("seed = 0", "seed = 1.5", "line 21 (run.seed)", "whole number"),
    ('sigma = "sigma"', 'sigma = "sgma^2"', "line 9 (noise.sigma)", "Did you mean 'sigma'?"),
    ('sigma = "sigma"', "sigma = 0", "line 9 (noise.sigma)", "positive"),
    ('form = "gaussian"', 'form = "gausian"', "line 8 (noise.form)", "one of binomial, gaussian"),
    ("[models.free]", "[models.free", "line 15", "not TOML"),
    ("omega * x + phi", "omega * x", "line 17", "appears in no formula"),
    ('phi = "Normal', 'x = "Normal', "line 17 (models.free.priors.x)", "column of the data as well"),
    ("[data]", "[dat]", "line 4 (dat)", "Did you mean 'data'?"),
]


@pytest.mark.parametrize(("old", "new", "where", "part"), WRONG)
def test_a_mistake_is_shown_in_its_place(old, new, where, part):
    assert old in SINE
    with pytest.raises(SupermodelError) as caught:
        parse_spec(SINE.replace(old, new), DATA, "sine.toml")
    message = str(caught.value)
    assert message.startswith("sine.toml") and where in message and part in message
    line, carets = message.splitlines()[-2:]
    assert set(carets.strip()) == {"^"} and line.strip()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "'data' is missing"),
        ("[data]\nfile = 3\n[models]", "a text in quotes"),
        ("[data]\n" + COLUMNS + "\n[models]", "no models"),
        ("data = 3\nmodels = 4", "a table is needed"),
        (spec_of(""), "needs `sigma`"),
        (spec_of('form = "student_t"\nsigma = 1'), "needs `df`"),
        (spec_of('form = "poisson"').replace("[2, 0, 1]", "[2, 0.5, 1]"), "whole numbers"),
        (spec_of('form = "binomial"'), "successes"),
        (spec_of('form = "binomial"\ntrials = "q"'), "no column 'q'"),
        (spec_of('sigma = 1\npriors = { a = "Normal(0, 1)" }'), "two priors"),
        (spec_of("sigma = 1").replace("[1, 2, 3]", "[1, 2]"), "equally long"),
        (spec_of("sigma = 1", more="[run]\nprior_odds = { m = 0 }"), "not all be zero"),
        (spec_of("sigma = 1", more="[run]\nprior_odds = { q = 1 }"), "unknown key 'q'"),
        ("x = " + "[" * 5000, "not a TOML file"),
        ("x = " + "9" * 5000, "not a TOML file"),
    ],
)
def test_what_makes_no_sense_is_refused(text, part):
    with pytest.raises(SupermodelError) as caught:
        parse_spec(text)
    assert part in str(caught.value)


# -- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n1,2\n3,4\n",
        "x;y\n1;2\n3;4",
        "x\ty\n1\t2\n3\t4",
        "  x   y\n  1 2\n\n 3   4\n",
        "# x y\n1 2\n3 4\n",
        "\ufeffx,y\r\n1,2\r\n3,4\r\n",
    ],
)
def test_tables_of_many_kinds(text, tmp_path):
    (tmp_path / "t.csv").write_bytes(text.encode())
    found = read_table(tmp_path / "t.csv").columns
    assert {name: values.tolist() for name, values in found.items()} == {"x": [1, 3], "y": [2, 4]}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1,2\n3,4\n", "no header"),
        ("x,y\n", "no data"),
        ("", "no data"),
        ("x,x\n1,2\n", "two columns"),
        ("x,y\n1\n", "line 2: 1 values"),
    ],
)
def test_tables_that_are_refused(text, part, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SupermodelError, match=part):
        read_table(tmp_path / "t.csv")


def test_a_column_of_words_only_matters_where_it_is_used(tmp_path):
    (tmp_path / "t.csv").write_text("name,x,y\nA,1,2\nB,2,nan\n")
    text = (
        '[data]\nfile = "t.csv"\ny = "x"\n[noise]\nsigma = 1\n[models.m]\nmean = "a"\npriors = { a = "Normal(0, 1)" }\n'
    )
    assert parse_spec(text, tmp_path).data["y"].tolist() == [1, 2]
    with pytest.raises(SupermodelError, match="line 3 of t.csv has 'nan'"):
        parse_spec(text.replace('mean = "a"', 'mean = "a * y"'), tmp_path)


HOLES = """[data]
file = "t.csv"
y = "count"
[noise]
form = "poisson"
link = "log"
[models.m]
mean = "a + 0 * x"
priors = { a = "Normal(0, 1)" }
[models.n]
mean = "0"
[run]
missing = "drop"
"""


def test_rows_that_miss_a_value_are_dropped_if_a_formula_names_it(tmp_path):
    (tmp_path / "t.csv").write_text("x,count,other\n1,2,\n,3,4\n5,NA,6\n7,8,9\n")
    spec = parse_spec(HOLES, tmp_path)
    found = received(spec.data, spec.models.values(), spec.run["missing"])
    assert found.data["count"].tolist() == [2, 8] and (found.dropped, found.rows) == (2, 4)
    assert received(spec.data, [spec.models["n"]], "drop").data["count"].tolist() == [2, 3, 8]
    with pytest.raises(SupermodelError, match="line 4 of t.csv has 'nan'"):
        parse_spec(HOLES.replace("drop", "raise"), tmp_path)
    (tmp_path / "t.csv").write_text("x,count\n1,2\n3,-1\n")
    with pytest.raises(SupermodelError, match="datum 1 is -1"):
        parse_spec(HOLES, tmp_path)
    (tmp_path / "t.csv").write_text("x,count\n1,2\n3,inf\n")
    with pytest.raises(SupermodelError, match="line 3 of t.csv has 'inf'"):
        parse_spec(HOLES, tmp_path)


def test_parquet_in_a_toml(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"x": [1, 2], "count": [3, 4]}), tmp_path / "t.parquet")
    assert parse_spec(HOLES.replace("t.csv", "t.parquet"), tmp_path).data["y"].tolist() == [3, 4]


# -- fuzz -----------------------------------------------------------------------------------------------------------

scalars = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.text(max_size=12), st.sampled_from(ATTACKS),
    st.sampled_from(["x", "y", "a", "a + b * x", "Normal(0, 1)", "HalfNormal(1)", "gaussian", "poisson", "sine.csv", "sigma"]),
)  # fmt: skip
keys = st.one_of(
    st.sampled_from(
        [
            "data",
            "models",
            "noise",
            "run",
            "file",
            "y",
            "columns",
            "mean",
            "priors",
            "form",
            "sigma",
            "a",
            "b",
            "x",
            "seed",
        ]
    ),
    st.text(max_size=6),
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


def as_toml(value):
    """A value as TOML, inline."""
    import json

    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {as_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


@st.composite
def files(draw):
    kind = draw(st.integers(0, 2))
    if kind == 0:  # a right file with some of its text changed
        text = SINE
        for _ in range(draw(st.integers(1, 4))):
            at, size = draw(st.integers(0, len(text))), draw(st.integers(0, 12))
            text = text[:at] + draw(st.one_of(st.text(max_size=6), st.sampled_from(ATTACKS))) + text[at + size :]
        return text
    if kind == 1:  # the right skeleton with anything in it
        tree = {
            "data": draw(trees),
            "models": {"m": {"mean": draw(trees), "priors": draw(trees)}},
            "noise": draw(trees),
        }
        tree["data"] = draw(
            st.sampled_from([{"file": "sine.csv"}, {"columns": {"x": [1, 2], "y": [0, 1]}}, tree["data"]])
        )
        tree["noise"] = draw(st.sampled_from([{"sigma": 1}, {"form": "poisson"}, {"form": "binomial"}, tree["noise"]]))
        return "\n".join(f"{key} = {as_toml(value)}" for key, value in tree.items())
    tree = draw(st.dictionaries(keys, trees, max_size=5))
    return "\n".join(f"{as_toml(key)} = {as_toml(value)}" for key, value in tree.items())


@pytest.mark.parametrize("n", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_file_crashes_the_loader_or_runs(n, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sine.csv").write_text((DATA / "sine.csv").read_text())
    for noise in (
        'form = "poisson"',
        "sigma = 1",
        'form = "binomial"\ntrials = 4',
        'form = "student_t"\ndf = 1\nsigma = 1',
    ):
        parse_spec(spec_of(noise))  # what is imported on first use is imported now
    parse_spec(SINE, tmp_path)
    loaded = []

    @settings(max_examples=n)
    @given(files())
    def check(text):
        with nothing_runs():
            try:
                loaded.append(parse_spec(text, tmp_path))
            except SupermodelError as error:
                assert str(error)

    check()
    assert loaded  # some changes leave a file right: the fuzz reaches the end of the loader
    assert [path.name for path in tmp_path.iterdir()] == ["sine.csv"]


# -- a folder that data must lie in -------------------------------------------------------------------------------


@pytest.fixture
def uploads(tmp_path):
    """A folder for data, a table in it, and a table beside it that nobody may ask for."""
    root = tmp_path / "uploads"
    (root / "deeper").mkdir(parents=True)
    for path in (root / "mine.csv", root / "deeper" / "mine.csv", tmp_path / "secret.csv"):
        path.write_text("x,y\n1,2\n2,4\n")
    (tmp_path / "uploads_of_others").mkdir()
    (tmp_path / "uploads_of_others" / "secret.csv").write_text("x,y\n1,2\n2,4\n")
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    (root / "inner.csv").symlink_to(root / "deeper" / "mine.csv")
    (root / "folder").symlink_to(tmp_path)
    (root / "circle.csv").symlink_to(root / "circle.csv")
    return root


def confined_spec(file, root, data_root):
    return parse_spec(spec_of("sigma = 1", data=f"file = {file!r}"), root, data_root=data_root)


@pytest.mark.parametrize("file", ["mine.csv", "deeper/mine.csv", "deeper/../mine.csv", "inner.csv"])
def test_a_data_root_lets_through_what_lies_in_it(file, uploads):
    assert confined_spec(file, uploads, str(uploads)).data["y"].tolist() == [2, 4]


@pytest.mark.parametrize(
    "file",
    ["../secret.csv", "deeper/../../secret.csv", "link.csv", "folder/secret.csv", "../uploads_of_others/secret.csv",
     "/etc/passwd", "../nothing_there.csv"],
)  # fmt: skip
def test_a_data_root_refuses_what_lies_elsewhere(file, uploads):
    """In the same words whether there is such a file or not: a stranger learns nothing of the disk."""
    with pytest.raises(SupermodelError, match=r"data\.file.*is not inside the data root.*from nowhere else"):
        confined_spec(file, uploads, uploads)
    if "nothing" not in file and "etc" not in file:  # the same file is read where nobody set a root
        assert confined_spec(file, uploads, None).data["y"].tolist() == [2, 4]


def test_a_data_root_that_cannot_be_looked_in_is_an_error_and_not_a_hole(uploads):
    for file, root in (("mine.csv", uploads / "no such folder"), ("circle.csv", uploads), ("a\\u0000b", uploads)):
        text = spec_of("sigma = 1", data=f'file = "{file}"')
        told = "cannot be looked for in the data root|cannot be read"
        told += (
            "|there is no file '.*circle.csv'" if sys.version_info >= (3, 13) else ""
        )  # there, no error of `resolve`
        with pytest.raises(SupermodelError, match=told):
            parse_spec(text, uploads, data_root=root)


def test_a_data_root_holds_for_files(uploads):
    (uploads.parent / "theirs.toml").write_text(spec_of("sigma = 1", data="file = 'secret.csv'"))
    assert read_spec(uploads.parent / "theirs.toml").data["y"].tolist() == [2, 4]
    with pytest.raises(SupermodelError, match="is not inside the data root"):
        read_spec(uploads.parent / "theirs.toml", data_root=uploads)
