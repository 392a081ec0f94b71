"""Contingency tables: against integrals, exact fractions, SciPy's distributions, and what R's BayesFactor has published."""

import json
from fractions import Fraction
from itertools import product
from math import comb, factorial, prod

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad

import supermodel as sm
from supermodel.regressions.contingency import SAMPLINGS

DOLLS = [[48, 50], [41, 21]]  # Hraba and Grant (1970), `raceDolls` of BayesFactor
SMALL = [[3, 4], [6, 9]]
WIDE = np.array([[3, 0, 5, 2], [1, 6, 2, 2], [4, 1, 1, 7]])
PLANS = [("poisson", None), ("joint multinomial", None), ("independent multinomial", "rows"),
         ("independent multinomial", "columns"), ("hypergeometric", None)]  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "sampling", "fixed", "published"),
    [
        # Printed by BayesFactor: tests/testthat/_snaps/contingencyBF.md in the fork vandenman/BayesFactor
        (SMALL, "poisson", None, 0.8373063),
        (SMALL, "jointMulti", None, 0.6530989),
        (SMALL, "indepMulti", "rows", 0.5102335),
        (SMALL, "indepMulti", "cols", 0.4664992),
        (SMALL, "hypergeom", None, 0.3549451),
        # Navarro, Learning statistics with R, chapter 17: robots and humans choose among three things
        ([[13, 15], [30, 13], [44, 65]], "jointMulti", None, 15.92684),
        ([[13, 15], [30, 13], [44, 65]], "poisson", None, 28.20757),
    ],
)
def test_bayesfactor_has_the_same(counts, sampling, fixed, published):
    found = sm.contingency(counts, sampling=sampling, fixed=fixed)
    assert np.exp(found.value) == pytest.approx(published, rel=5e-7)  # half of the seventh digit, the last printed
    assert 0 < found.error < 1e-11


def test_the_dolls_of_bayesfactors_manual():
    """papaja's tests have 1.81 for them."""
    assert f"{np.exp(sm.contingency(DOLLS, sampling='indepMulti', fixed='cols').value):.2f}" == "1.81"


# -- integrals --------------------------------------------------------------------------------------------------------

# Double exponential: x = 1 / (1 + exp(-pi sinh t)) at equal steps of t, so that roots at the edges cost no digits.
STEPS = np.linspace(-3.6, 3.6, 71)
LOGS = -np.logaddexp(0.0, -np.pi * np.sinh(STEPS)), -np.logaddexp(0.0, np.pi * np.sinh(STEPS))  # ln x, ln (1 - x)
WEIGHTS = (STEPS[1] - STEPS[0]) * np.pi * np.cosh(STEPS) * np.exp(LOGS[0] + LOGS[1])


def integral_2x2(plan, y, a):
    """ln B by integrals of the likelihood times the densities of the priors, in which no Gamma function stands.

    The prior of the independent model is that of the dependent one where the cells are products, up to a constant.
    """
    shape = (len(STEPS),) * 3
    first, second, third = np.unravel_index(np.arange(np.prod(shape)), shape)
    w = WEIGHTS[first] * WEIGHTS[second] * WEIGHTS[third]

    def log_of(powers, *logs):
        return sum(p * x for p, x in zip(np.ravel(powers), logs, strict=True))

    rows = [v[third] for v in LOGS]
    inner = [[v[first] for v in LOGS], [v[second] for v in LOGS]]
    if plan == "independent multinomial":  # rows fixed: u and v are the shares of the first column within them
        cells = [inner[0][0], inner[0][1], inner[1][0], inner[1][1]]
        product_cells = [inner[0][0], inner[0][1], inner[0][0], inner[0][1]]
        jacobian = 0.0
    else:
        cells = [rows[i] + inner[i][j] for i in range(2) for j in range(2)]
        product_cells = [rows[i] + inner[0][j] for i in range(2) for j in range(2)]
        jacobian = rows[0] + rows[1]
    means = []
    for logs, measure in ((cells, jacobian), (product_cells, 0.0)):
        prior = np.exp(log_of(np.full(4, a - 1.0), *logs) + measure) * w
        means.append(np.log(prior @ np.exp(log_of(y, *logs))) - np.log(prior.sum()))
    if plan == "poisson":  # the rate of all, whose prior in the independent model has as many parameters less as it has
        b, n = 4 * a / y.sum(), y.sum()
        for k, shape in enumerate((4 * a, 4 * a - 1)):
            means[k] += np.log(quad(lambda x, s=shape: stats.gamma(s, scale=1 / b).pdf(x) * stats.poisson(x).pmf(n), 0, 400,
                                    points=[n], epsabs=0, epsrel=1e-11, limit=200)[0])  # fmt: skip
    return means[0] - means[1]


@pytest.mark.parametrize("plan", SAMPLINGS[:3])
@pytest.mark.parametrize("a", [1.0, 1.7, 0.8])
def test_integrals_over_the_priors(plan, a):
    y = np.array([[7, 2], [3, 8]])
    found = sm.contingency(y, sampling=plan, fixed="rows" if plan[0] == "i" else None, prior_concentration=a)
    wanted = integral_2x2(plan, y, a)
    assert abs(found.value - wanted) < 1e-8
    assert abs(integral_2x2(plan, y, a + 0.05) - wanted) > 1e-2  # another prior would be found out


# -- exact fractions --------------------------------------------------------------------------------------------------


def urn(counts, a):
    """The probability of a sequence with these counts, one after the other: (so many of it + a) / (all + K a)."""
    value, seen = Fraction(1), 0
    for count in counts:
        for i in range(int(count)):
            value *= Fraction(i + a, seen + len(counts) * a)
            seen += 1
    return value


def exact_log_bayes_factor(y, plan, a):
    n_rows, n_columns = y.shape
    row, column = n_columns * a - n_columns + 1, n_rows * a - n_rows + 1
    if plan == "joint multinomial":
        return log(urn(y.ravel(), a) / urn(y.sum(axis=1), row) / urn(y.sum(axis=0), column))
    return log(prod((urn(r, a) for r in y), start=Fraction(1)) / urn(y.sum(axis=0), column))


def log(fraction):
    """ln of a fraction whose parts are no doubles."""
    from math import log as ln

    return ln(fraction.numerator) - ln(fraction.denominator)


@pytest.mark.parametrize("a", [1, 2, 5])
@pytest.mark.parametrize("plan", SAMPLINGS[1:3])
def test_a_wide_table_by_an_urn(plan, a):
    fixed = "rows" if plan[0] == "i" else None
    found = sm.contingency(WIDE, sampling=plan, fixed=fixed, prior_concentration=a)
    assert abs(found.value - exact_log_bayes_factor(WIDE, plan, a)) < found.error < 1e-11
    if fixed:
        turned = sm.contingency(WIDE, sampling=plan, fixed="columns", prior_concentration=a)
        assert abs(turned.value - exact_log_bayes_factor(WIDE.T, plan, a)) < turned.error
        assert abs(turned.value - found.value) > 0.01


@pytest.mark.parametrize("a", [1.0, 3.5])
def test_a_wide_table_of_poisson_counts_by_scipy(a):
    """The dependent model: a negative binomial for each cell. The independent one: for N, then how N splits both ways."""
    n, (n_rows, n_columns) = WIDE.sum(), WIDE.shape
    b = WIDE.size * a / n
    dependent = stats.nbinom(a, b / (1 + b)).logpmf(WIDE).sum()
    shape = WIDE.size * a - (n_rows - 1) * (n_columns - 1)
    ways = log(Fraction(factorial(n), prod(factorial(int(k)) for k in WIDE.ravel())))
    independent = stats.nbinom(shape, b / (1 + b)).logpmf(n) + ways
    for sums, alpha in ((WIDE.sum(axis=1), n_columns * a - n_columns + 1), (WIDE.sum(axis=0), n_rows * a - n_rows + 1)):
        split = log(Fraction(factorial(n), prod(factorial(int(k)) for k in sums)))
        independent += stats.dirichlet_multinomial(np.full(len(sums), alpha), n).logpmf(sums) - split
    found = sm.contingency(WIDE, sampling="poisson", prior_concentration=a)
    assert abs(found.value - (dependent - independent)) < 1e-10


@pytest.mark.parametrize("a", [1, 4])
@pytest.mark.parametrize("y", [SMALL, [[9, 1], [2, 3]], [[0, 5], [4, 2]]])
def test_hypergeometric_by_enumeration(y, a):
    """All tables of so many counts, of which those with these margins are kept; nothing is known of margins beforehand."""
    y, n = np.array(y), int(np.sum(y))
    dependent = independent = Fraction(0)
    for p, q, r in product(range(n + 1), repeat=3):
        table = np.array([[p, q], [r, n - p - q - r]])
        if p + q + r > n or np.any(table.sum(axis=0) != y.sum(axis=0)) or np.any(table.sum(axis=1) != y.sum(axis=1)):
            continue
        ways = Fraction(factorial(n), prod(factorial(int(k)) for k in table.ravel()))
        dependent, independent = dependent + ways * urn(table.ravel(), a), independent + ways
    ways = Fraction(factorial(n), prod(factorial(int(k)) for k in y.ravel()))
    assert ways / independent == Fraction(comb(y[0].sum(), y[0, 0]) * comb(y[1].sum(), y[1, 0]), comb(n, y[:, 0].sum()))
    wanted = log(ways * urn(y.ravel(), a) / dependent) - log(ways / independent)
    found = sm.contingency(y, sampling="hypergeometric", prior_concentration=a)
    assert abs(found.value - wanted) < 1e-12


def test_large_counts_are_known_to_their_stated_error():
    y = np.array([[52_341, 49_872], [51_003, 50_112]])
    found = sm.contingency(y)
    wanted = exact_log_bayes_factor(y // 10, "joint multinomial", 1)
    tenth = sm.contingency(y // 10)
    assert abs(tenth.value - wanted) < tenth.error < 1e-8 and tenth.error < found.error < 1e-7


# -- what must hold ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sampling", "fixed"), PLANS)
def test_order_does_not_matter_and_turning_the_table_turns_the_margin(sampling, fixed):
    y = np.array([[7, 2], [3, 8]]) if sampling == "hypergeometric" else WIDE
    one = sm.contingency(y, sampling=sampling, fixed=fixed)
    other = {"rows": "columns", "columns": "rows"}.get(fixed)
    assert abs(sm.contingency(y[::-1, ::-1], sampling=sampling, fixed=fixed).value - one.value) < 1e-11
    assert abs(sm.contingency(y.T, sampling=sampling, fixed=other).value - one.value) < 1e-11
    assert one.log_bayes_factor("independent", "dependent").value == -one.value
    assert np.isclose(one.probabilities["dependent"], 1 / (1 + np.exp(-one.value)), rtol=1e-12)
    assert np.isclose(sum(one.probabilities.values()), 1, rtol=1e-12)
    assert one.verdict.level == "ok"


def test_posteriors_have_the_means_of_their_dirichlets():
    """Means of n draws within 5 of their standard errors; the other model's means are not."""
    n, y, a = 40_000, np.array([[12, 5], [4, 9]]), 1.5
    for sampling, fixed in PLANS[:4]:
        found = sm.contingency(y, sampling=sampling, fixed=fixed, prior_concentration=a)
        axis = {"rows": 1, "columns": 0}.get(fixed)
        dependent = (y + a) / (y + a).sum(axis=axis, keepdims=True)
        rows, columns = (y.sum(axis=k) + 2 * a - 1 for k in (1, 0))
        rows, columns = rows / rows.sum(), columns / columns.sum()
        outer = {"rows": np.tile(columns, (2, 1)), "columns": np.tile(rows[:, None], 2)}.get(
            fixed, np.outer(rows, columns)
        )
        for model, wanted, wrong in (("dependent", dependent, outer), ("independent", outer, dependent)):
            draws = found.posterior(n, model)
            allowed = 5 * draws.std(axis=0) / np.sqrt(n) + 1e-12
            assert np.all(np.abs(draws.mean(axis=0) - wanted) < allowed), (sampling, fixed, model)
            assert np.any(np.abs(draws.mean(axis=0) - wrong) > allowed)
            assert np.allclose(draws.sum(axis=(1, 2) if axis is None else axis + 1), 1)
    with pytest.raises(sm.SupermodelError, match="no probability free"):
        sm.contingency(y, sampling="hypergeometric").posterior(10, "independent")


def test_the_log_odds_ratio_has_the_mean_of_digammas():
    from scipy.special import digamma, polygamma

    y = np.array([[12, 5], [4, 9]])
    draws = sm.contingency(y).log_odds_ratio(40_000)
    sign = np.array([[1, -1], [-1, 1]])
    assert abs(draws.mean() - (sign * digamma(y + 1)).sum()) < 5 * np.sqrt(polygamma(1, y + 1).sum() / 40_000)
    with pytest.raises(sm.SupermodelError, match="several odds ratios"):
        sm.contingency(WIDE).log_odds_ratio()


def test_every_form_of_a_table_is_the_same_table(tmp_path):
    y = pd.DataFrame(
        DOLLS, index=pd.Index(["same", "other"], name="doll"), columns=pd.Index(["black", "white"], name="child")
    )
    people = [(d, c) for d in y.index for c in y.columns for _ in range(y.loc[d, c])]
    data = pd.DataFrame(people, columns=["doll", "child"]).sample(frac=1, random_state=1)
    data.to_csv(tmp_path / "dolls.csv", index=False)
    wanted = sm.contingency(DOLLS)
    assert wanted.crosstab.rows == ("1", "2")
    for found in (sm.contingency(y), sm.contingency(np.array(DOLLS)), sm.contingency(pd.crosstab(data.doll, data.child)),
                  sm.contingency(data, "doll", "child"), sm.contingency(tmp_path / "dolls.csv", "doll", "child"),
                  sm.contingency(data.to_dict("list"), "doll", "child")):  # fmt: skip
        assert abs(found.value - wanted.value) < 1e-12
    assert sm.contingency(data, "doll", "child").to_dataframe().loc["same", "white"] == 50
    ordered = data.assign(doll=pd.Categorical(data.doll, ["same", "never", "other"]))
    assert sm.contingency(ordered, "doll", "child").crosstab.rows == ("same", "other")
    holes = pd.concat([data, pd.DataFrame({"doll": [None, "same"], "child": ["black", None]})])
    dropped = sm.contingency(holes, "doll", "child", missing="drop")
    assert dropped.crosstab.n_dropped == 2 and dropped.value == sm.contingency(data, "doll", "child").value
    assert "2 incomplete ones dropped" in str(dropped)


def test_words_tables_and_json():
    found = sm.contingency(DOLLS, sampling="independent", fixed="columns")
    text = str(found)
    assert "1.81 times as probable under dependent as under independent: inconclusive" in text
    assert "48 (54.5)" in text and "columns fixed" in text and "Verdict OK" in text
    assert "BF_10 = 1.81 (error < 0.01%)" in found.apa() and "95% CI [-1.3" in found.apa()
    assert "Gunel and Dickey (1974)" in found.methods() and "totals of the columns were fixed" in found.methods()
    plain = json.loads(found.to_json())
    assert plain["counts"] == DOLLS and plain["log_bayes_factor"]["value"] == found.value
    assert np.allclose(plain["expected"], np.outer([98, 62], [89, 71]) / 160)
    assert np.allclose(found.residuals, (np.array(DOLLS) - found.expected) / found.expected**0.5)
    assert "<table" in found._repr_html_() and "log odds" not in str(sm.contingency(WIDE))
    rows = found.sensitivity([1, 4]).rows
    assert rows[1][1].startswith(
        f"{sm.contingency(DOLLS, sampling='independent', fixed='columns', prior_concentration=4).value:+.4f}"
    )


BAD = {
    "shares": (([[0.2, 0.3], [0.1, 0.4]],), {}, "row 0, column 0.*is 0.2.*whole numbers"),
    "negative": (([[2, 3], [1, -4]],), {}, "row 1, column 1.*is -4"),
    "nan": (([[2, 3], [np.nan, 4]],), {}, "row 1, column 0.*is nan"),
    "one row": (([[2, 3]],), {}, "at least two rows"),
    "texts": (([["a", "b"], ["c", "d"]],), {}, "must be numbers"),
    "empty row": (([[2, 3], [0, 0]],), {}, "the row '2' has no counts"),
    "empty column": (([[2, 0], [3, 0]],), {}, "the column '2' has no counts"),
    "sampling": ((SMALL,), {"sampling": "bernoulli"}, "poisson, joint multinomial"),
    "margin": ((SMALL,), {"sampling": "independent"}, 'fixed="rows" or fixed="columns"'),
    "no margin": ((SMALL,), {"fixed": "rows"}, "leaves no choice"),
    "large": ((WIDE,), {"sampling": "hypergeometric"}, "is for 2 x 2 tables; this one is 3 x 4"),
    "concentration": ((SMALL,), {"prior_concentration": 0}, "positive number"),
    "no null": ((WIDE,), {"prior_concentration": 0.7}, "exists above 0.75"),
    "one name": (({"a": [1, 2], "b": [1, 2]}, "a"), {}, "columns=None"),
    "twice": (({"a": [1, 2], "b": [1, 2]}, "a", "a"), {}, "both are 'a'"),
    "unknown": (({"a": [1, 2], "b": [1, 2]}, "a", "c"), {}, "no column 'c'"),
    "one level": (({"a": [1, 2], "b": [1, 1]}, "a", "b"), {}, "'b' has 1 different values"),
    "file": (("dolls.csv",), {}, "name the two columns"),
    "sums": ((pd.crosstab(pd.Series(list("aab")), pd.Series(list("xyx")), margins=True),), {}, "last row is 'All'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_sentence(case):
    args, options, words = BAD[case]
    with pytest.raises(sm.SupermodelError, match=words):
        sm.contingency(*args, **options)


def test_the_margins_bound_of_the_prior_is_that_of_the_fixed_one():
    """Of three rows a > 2/3 is needed where rows are fixed, of four columns 3/4."""
    assert np.isfinite(sm.contingency(WIDE, sampling="independent", fixed="rows", prior_concentration=0.7).value)
    with pytest.raises(sm.SupermodelError, match="above 0.75"):
        sm.contingency(WIDE, sampling="independent", fixed="columns", prior_concentration=0.7)
    with pytest.raises(sm.SupermodelError, match="above 0.667"):
        sm.contingency(WIDE, sampling="independent", fixed="rows").sensitivity([0.5])
