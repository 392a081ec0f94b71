"""The grammar of formulas: what it means, how it points at mistakes, and that nothing is ever run."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from canary import ATTACKS, nothing_runs
from supermodel.errors import SupermodelError
from supermodel.spec.formula import CONSTANTS, _functions, compile_formula
from supermodel.spec.grammar import FormulaError
from supermodel.spec.prior import FAMILIES, build_prior

KNOWN = ("x", "omega", "phi", "a", "b")
AT = {"x": 0.7, "omega": 1.3, "phi": -0.2, "a": 2.0, "b": -3.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("2 - 3 - 4", -5),
        ("16 / 4 / 2", 2),
        ("2 ^ 3 ^ 2", 512),
        ("2 ** 3", 8),
        ("-2 ^ 2", -4),
        ("2 ^ -1", 0.5),
        ("-a * -b", -6),
        ("+a", 2),
        ("a ^ 0.5", math.sqrt(2)),
        ("sin(omega * x + phi)", math.sin(1.3 * 0.7 - 0.2)),
        ("where(x < a, 1, 2)", 1),
        ("(x > 1) + 10 * (x <= 0.7)", 10),
        ("max(a, b, 5) - min(a, b)", 8),
        ("arctan2(a, b)", math.atan2(2, -3)),
        ("2 * pi + e", 2 * math.pi + math.e),
        (".5e1 + 1.", 6),
        ("log(exp(a)) + ln(e)", 3),
        ("abs(b) × 2 − 1", 5),
        ("b ^ 2", 9),
    ],
)
def test_means_what_it_says(text, value):
    assert float(compile_formula(text, KNOWN)(AT)) == pytest.approx(value, rel=1e-12)


def test_traces_differentiates_and_takes_columns():
    formula = compile_formula("a * x ^ 2 + where(x > 1, b, 0)", KNOWN)
    x = np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(jax.jit(lambda a: formula({**AT, "x": x, "a": a}))(2.0), [0, 2, 5])
    gradient = jax.grad(lambda v: formula({**AT, "x": v}))
    assert float(gradient(0.0)) == 0.0  # an integer power has a derivative at zero
    assert formula.names == ("a", "x", "b")


def test_a_parameter_may_have_the_name_of_a_constant():
    assert float(compile_formula("e * 2", ["e"])({"e": 5.0})) == 10


MISTAKES = [
    ("sin(omga * x)", 4, 8, "Did you mean 'omega'?"),
    ("sn(x)", 0, 2, "Did you mean 'sin'?"),
    ("2x", 1, 2, "A product needs '*'"),
    ("a = 3", 2, 3, "right-hand side"),
    ("(a + b", 6, 7, "closing parenthesis"),
    ("a + b)", 5, 6, "too many"),
    ("a +", 3, 4, "ends where"),
    ("a < x < b", 6, 7, "(a < x) * (x < b)"),
    ("min(a)", 0, 6, "at least 2"),
    ("x(2)", 0, 1, "a number here, not a function"),
    ("sin", 0, 3, "parentheses"),
    ("a[0]", 1, 2, "indices"),
    ("", 0, 1, "empty"),
    ("1e999", 0, 5, "too large"),
    ("sin(x=1)", 6, 7, "no argument by name"),
]


@pytest.mark.parametrize(("text", "start", "end", "part"), MISTAKES)
def test_a_mistake_is_pointed_at(text, start, end, part):
    with pytest.raises(FormulaError) as caught:
        compile_formula(text, KNOWN)
    assert part in str(caught.value)
    assert (caught.value.start, caught.value.end) == (start, end)
    *_, shown, carets = str(caught.value).splitlines()
    assert carets.index("^") - 2 == start and shown[2:].rstrip() == text.rstrip()


def test_long_and_deep_formulas_neither_crash_nor_hang():
    assert float(compile_formula("+".join("x" * 1500), KNOWN)({"x": 1.0})) == 1500
    for text in ("(" * 500 + "x" + ")" * 500, "-" * 500 + "x", "^".join("x" * 500), "sin(" * 300, "x" * 10_000):
        with pytest.raises(FormulaError):
            compile_formula(text, KNOWN)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_run(attack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _functions()
    with nothing_runs():
        for known in (KNOWN, (*KNOWN, "y", "z", "canary")):
            with pytest.raises(SupermodelError):
                compile_formula(attack, known)
    assert not list(tmp_path.iterdir())


def test_the_canary_sings():
    with pytest.raises(AssertionError, match="code was run"), nothing_runs():
        eval("1 + 1")


# -- priors ---------------------------------------------------------------------------------------------------------

ARGUMENTS = {"Uniform": "-1, 2", "LogUniform": "0.5, 2", "TruncatedNormal": "0, 1, -1, 2", "StudentT": "4, 0, 1"}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_a_normalised_density(family):
    from supermodel.models.model import Model
    from supermodel.models.priors import _check_normalised

    text = f"{family}({ARGUMENTS.get(family, '1.5' if len(FAMILIES[family].arguments) == 1 else '1.5, 2')})"
    model = Model({"p": build_prior(text)}, lambda p: 0.0)
    if family not in ("Cauchy", "StudentT"):  # their tails lie beyond the grid of this check
        _check_normalised("p", model.priors["p"])


def test_priors_take_names_defaults_and_arithmetic():
    assert build_prior("Uniform(high = 2 * pi, low = 0)").high == pytest.approx(2 * math.pi)
    assert build_prior("Normal()").scale == 1.0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Norml(0, 1)", "Did you mean 'Normal'?"),
        ("Normal(0, -1)", "must be positive"),
        ("Uniform(2, 1)", "below high"),
        ("Uniform(1)", "high is missing"),
        ("Normal(0, 1, 2)", "too many"),
        ("Normal(0, x)", "a number is needed"),
        ("Normal(0, 1/0)", "not a finite number"),
        ("Normal(scale=1, scale=2)", "twice"),
        ("Normal(0, sd=1)", "no argument 'sd'"),
        ("3", "one distribution"),
        ("Normal(0, 1) + 1", "one distribution"),
        ("-Normal(0, 1)", "one distribution"),
        ("Normal", "one distribution"),
    ],
)
def test_a_wrong_prior_is_refused(text, part):
    with pytest.raises(FormulaError) as caught:
        build_prior(text)
    assert part in str(caught.value)


# -- fuzz -----------------------------------------------------------------------------------------------------------

WORDS = [
    *KNOWN,
    *CONSTANTS,
    "sin",
    "where",
    "max",
    "Normal",
    "Uniform",
    "1",
    "2.5",
    ".5",
    "1e3",
    "+",
    "-",
    "*",
    "/",
    "^",
    "**",
]
WORDS += [
    "(",
    ")",
    ",",
    "<",
    "<=",
    "==",
    "=",
    " ",
    "\t",
    "\n",
    "$",
    "[",
    "]",
    ".",
    ";",
    "'",
    '"',
    "\\",
    "é",
    "∞",
    "０",
    "\x00",
]
right = st.recursive(
    st.sampled_from([*KNOWN, *CONSTANTS, "1", "2.5", ".5", "1e3"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/^<"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from(["sin", "exp", "log", "-", "+", "sqrt"]), inner).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"where({', '.join(t)})"),
    ),
    max_leaves=12,
)
formulas = st.one_of(
    right,
    st.tuples(right, st.integers(0, 40), st.sampled_from(WORDS)).map(lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]),
    st.lists(st.sampled_from(WORDS), max_size=30).map("".join),
    st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join),
    st.text(max_size=40),
    st.sampled_from(ATTACKS),
    st.tuples(st.sampled_from(ATTACKS), st.lists(st.sampled_from(WORDS), max_size=5)).map(
        lambda t: t[0] + "".join(t[1])
    ),
)


@pytest.mark.parametrize("n", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_text_crashes_the_parser_or_runs(n, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _functions()
    build_prior("Normal(0, 1)")
    parsed = []

    @settings(max_examples=n)
    @given(formulas)
    def check(text):
        with nothing_runs():
            try:
                formula = compile_formula(text, KNOWN)
            except SupermodelError as error:
                assert str(error)
            else:
                parsed.append(text)
                computable.append(formula)
            try:
                build_prior(text)
            except SupermodelError:
                pass

    computable = []
    check()
    for formula in computable[:: max(1, len(computable) // 50)]:
        formula(AT)  # whatever parses can be computed; JAX compiles then, so this is not watched
    assert len(parsed) > n / 20  # it is not all refused at the first letter
    assert not list(tmp_path.iterdir())
