"""Every family of numbers: its likelihood and priors against SciPy's at chosen points, and its Bayes factor against a grid."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import gammaln

import supermodel as sm
from supermodel.regressions.blocks import RSCALES
from supermodel.regressions.design import Design
from supermodel.regressions.families import LOGISTIC, Linear, Regressor
from supermodel.regressions.formula import parse
from supermodel.regressions.response import FAMILIES, OF_CATEGORIES, as_response

OF_NUMBERS = [family for family in FAMILIES if family not in OF_CATEGORIES]  # the others: test_categories.py
N = 24
X = np.linspace(-1.0, 2.0, N) ** 2 + 0.1 * np.arange(N)


def made(family):
    rng = np.random.default_rng(7)
    eta = 0.4 + 0.5 * (X - X.mean())
    k = rng.binomial(6, 1 / (1 + np.exp(-eta)))
    columns = {
        "gaussian": eta + rng.normal(0, 0.8, N),
        "student": eta + 0.6 * rng.standard_t(3, N),
        "bernoulli": (rng.random(N) < 1 / (1 + np.exp(-1.5 * eta))).astype(int),
        "binomial": k,
        "poisson": rng.poisson(np.exp(eta)),
        "negative binomial": rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, N)),
    }
    groups = np.repeat(["a", "b", "c", "d"], N // 4)
    return pd.DataFrame({"y": columns[family], "n": 6, "x": X, "f": np.resize(["u", "v", "w"], N), "g": groups})


def formula(family, right):
    return f"{'prop(y, n)' if family == 'binomial' else 'y'} ~ {right}"


def log_density(family, y, eta, aux):
    """Of each datum, by SciPy; `aux` are (sigma,), (sigma, nu), (overdispersion,) or nothing."""
    if family == "gaussian":
        return stats.norm(eta, aux[0]).logpdf(y)
    if family == "student":
        return stats.t(aux[1], eta, aux[0]).logpdf(y)
    if family in ("bernoulli", "binomial"):
        return stats.binom(1 if family == "bernoulli" else 6, 1 / (1 + np.exp(-eta))).logpmf(y)
    if family == "poisson":
        return stats.poisson(np.exp(eta)).logpmf(y)
    return stats.nbinom(1 / aux[0], 1 / (1 + aux[0] * np.exp(eta))).logpmf(y)


def regressor(family, right, own=None):
    data, parsed, own = made(family), parse(formula(family, right)), own or {}
    blocks = Design.of(parsed, data).blocks(parsed.terms, RSCALES, own)
    response = as_response(parsed, data, family)
    return data, Regressor(family, response, tuple(Linear(b, own.get(b.name)) for b in blocks), True, own)


AUX = {"gaussian": {"sigma": 0.7}, "student": {"sigma": 0.7, "nu": 4.0}, "negative binomial": {"overdispersion": 0.4}}


@pytest.mark.parametrize("family", OF_NUMBERS)
def test_the_likelihood_is_scipys(family):
    """With a covariate, a factor of three levels and groups: eta from the effects that the parameters are said to mean."""
    data, found = regressor(family, "x + f + (1 | g)")
    aux = AUX.get(family, {})
    values = {"Intercept": 0.3, "effect x": 0.6, "w f": 1.4, "z f": np.array([0.5, -1.0]), "w (1 | g)": 0.8,
              "z (1 | g)": np.array([1.0, -0.5, 0.2, 0.9]), **aux}  # fmt: skip
    many = {name: np.asarray(v, float)[None] for name, v in values.items()}
    effects = {name: float(v[0]) for name, v in found.effects(many).items()}
    eta = effects["Intercept"] + effects["x"] * (data.x - data.x.mean())
    eta = eta + data.f.map(lambda level: effects[f"f[{level}]"]) + data.g.map(lambda level: effects[f"1 | g[{level}]"])
    wanted = log_density(family, data.y, eta, tuple(aux.values())).sum()
    model = found.model
    assert np.isclose(float(model.log_likelihood(values, {"y": found.response.y})), wanted, rtol=1e-5)
    s = aux.get("sigma", {"bernoulli": LOGISTIC, "binomial": LOGISTIC}.get(family, 1.0))
    assert np.isclose(effects["sd(1 | g)"], s * 1.0 / 0.8)
    assert np.isclose(effects["x"], s * 0.6 / np.std(data.x))
    assert set(model.priors) == set(values)


def test_priors_of_the_users_own_are_in_the_users_units():
    _, found = regressor(
        "gaussian", "x + f + (x | g)", {"x": stats.norm(0, 5), "(x | g)": stats.halfnorm(0, 2), "f": stats.norm(0, 1)}
    )
    many = {"Intercept": [0.0], "sigma": [1.0], "x": [0.7], "f.1": [0.2], "f.2": [0.1], "w (1 | g)": [1.0],
            "z (1 | g)": np.zeros((1, 4)), "sd(x | g)": [0.3], "z(x | g)": np.ones((1, 4))}  # fmt: skip
    effects = found.effects({name: np.asarray(v, float) for name, v in many.items()})
    assert effects["x"] == 0.7 and effects["sd(x | g)"] == 0.3 and np.isclose(effects["x | g[a]"], 0.3)
    assert found.model.priors["x"].description.startswith("Normal(0, 5")


def test_which_value_is_a_success():
    data = made("bernoulli")
    words = data.assign(y=data.y.map({0: "no", 1: "yes"}))
    for text, table in (
        ("y ~ x", data),
        ("y ~ x", words),
        ("y[yes] ~ x", words),
        ("y ~ x", data.assign(y=data.y == 1)),
    ):
        assert np.array_equal(as_response(parse(text), table, "bernoulli").y, data.y)
    assert np.array_equal(as_response(parse("y[no] ~ x"), words, "bernoulli").y, 1 - data.y)


# -- Bayes factors by grids -------------------------------------------------------------------------------------------


def axis(distribution, low, high, n, spaced=np.linspace):
    """Midpoints and ln of prior mass of cells between two values."""
    edges = spaced(low, high, n + 1)
    return 0.5 * (edges[1:] + edges[:-1]), np.log(np.diff(distribution.cdf(edges)) + 1e-300)


def grid_log_evidence(family, with_x):
    """ln Z by midpoints in every parameter: the intercept, the effect, and what else the family has."""
    y, fine = made(family).y.to_numpy(float), 40
    unit = (X - X.mean()) / np.std(X)
    s = {"bernoulli": LOGISTIC, "binomial": LOGISTIC}.get(family, 1.0)
    sd = np.std(y)
    if family in ("gaussian", "student"):
        intercept = axis(stats.norm(y.mean(), 10 * sd), y.mean() - 1.6, y.mean() + 1.6, fine)
    elif family in ("bernoulli", "binomial"):
        share = (y.sum() + 0.5) / (N * (6 if family == "binomial" else 1) + 1)
        centre = np.log(share / (1 - share))
        intercept = axis(stats.norm(centre, 10 * LOGISTIC), centre - 4, centre + 4, fine)
    else:
        centre = np.log(y.sum() + 0.5) - np.log(N)
        intercept = axis(stats.norm(centre, 10), centre - 2.5, centre + 2.5, fine)
    effect = axis(stats.cauchy(0, RSCALES["continuous"]), -2.5, 4.5, 70) if with_x else (np.zeros(1), np.zeros(1))
    axes = [intercept, effect]
    if family in ("gaussian", "student"):
        log_sigma = stats.uniform(np.log(1e-4 * sd), np.log(1e5))
        points, mass = axis(log_sigma, np.log(0.2 * sd), np.log(4 * sd), 26)
        axes.append((np.exp(points), mass))
    if family == "student":
        points, mass = axis(stats.gamma(2, scale=10.0), 0.3, 120.0, 24, np.geomspace)
        axes.append((points, mass))
    if family == "negative binomial":
        axes.append(axis(stats.expon(), 0.0, 8.0, 80))
    aux = (
        np.stack(np.meshgrid(*(a[0] for a in axes[2:]), indexing="ij"), -1).reshape(-1, len(axes) - 2)
        if axes[2:]
        else np.zeros((1, 0))
    )
    weight = axes[0][1][:, None] + axes[1][1]
    total = []
    for values in aux:
        mass = sum(a[1][np.argmin(np.abs(a[0] - v))] for a, v in zip(axes[2:], values, strict=True))
        size = values[0] if family in ("gaussian", "student") else s
        eta = intercept[0][:, None, None] + size * effect[0][:, None] * unit
        total.append(np.logaddexp.reduce((weight + log_density(family, y, eta, values).sum(axis=-1) + mass).ravel()))
    return np.logaddexp.reduce(total)


@pytest.mark.parametrize(
    "family", [f if f == "binomial" else pytest.param(f, marks=pytest.mark.slow) for f in OF_NUMBERS]
)
def test_the_engine_finds_the_grids_bayes_factor(family):
    """ln B within 5 errors, and 0.01 for the grid; a planted error, the Bayes factor of half the effect's prior, is not."""
    own = {"sigma": None} if family == "gaussian" else None
    data, wanted = made(family), grid_log_evidence(family, True) - grid_log_evidence(family, False)
    if own is not None:  # a prior of one's own, the same as the default: the closed form steps aside
        import numpyro.distributions as dist

        own = {"sigma": dist.LogUniform(1e-4 * np.std(data.y), 10 * np.std(data.y))}
    result = sm.regression(formula(family, "x"), data, family=family, priors=own, target_error=0.05)
    found = result.log_bayes_factor("x", "1")
    allowed = 5 * found.error + 0.01
    assert result.verdict.is_reliable and abs(found.value - wanted) < allowed
    assert abs(found.value + np.log(2) - wanted) > allowed


# -- groups -----------------------------------------------------------------------------------------------------------


def grouped_log_evidence(with_x):
    """ln Z of poisson counts in four groups: their effects by Gauss-Hermite's rule in each group, the rest by a grid."""
    data = made("poisson")
    y, unit, codes = data.y.to_numpy(float), (X - X.mean()) / np.std(X), np.repeat(np.arange(4), N // 4)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    centre = np.log(y.sum() + 0.5) - np.log(N)
    intercept = axis(stats.norm(centre, 10), centre - 6, centre + 6, 90)
    effect = axis(stats.cauchy(0, RSCALES["continuous"]), -1.5, 2.5, 60) if with_x else (np.zeros(1), np.zeros(1))
    total = []
    for w, mass in zip(*axis(stats.halfnorm(), 0.0, 5.0, 60), strict=True):
        eta = intercept[0][:, None, None, None] + effect[0][:, None, None] * unit[:, None] + nodes / w
        log_density = y[:, None] * eta - np.exp(np.minimum(eta, 50.0)) - gammaln(y + 1)[:, None]
        inner = np.stack(
            [log_density[:, :, codes == g].sum(axis=2) for g in range(4)]
        )  # (group, intercept, effect, node)
        each = np.logaddexp.reduce(inner + np.log(weights / weights.sum()), axis=-1).sum(axis=0)
        total.append(np.logaddexp.reduce((each + intercept[1][:, None] + effect[1] + mass).ravel()))
    return np.logaddexp.reduce(total)


@pytest.mark.slow
def test_the_engine_finds_the_bayes_factor_with_groups():
    wanted = grouped_log_evidence(True) - grouped_log_evidence(False)
    result = sm.regression("y ~ x + (1 | g)", made("poisson"), family="poisson", target_error=0.05)
    found = result.log_bayes_factor("x", "1")
    assert result.verdict.is_reliable and abs(found.value - wanted) < 5 * found.error + 0.01
    absolute = result.comparison.log_evidence("1")  # not the ratio alone
    assert abs(absolute.value - grouped_log_evidence(False)) < 5 * absolute.error + 0.05


def test_the_verdict_of_the_engine_travels_along():
    result = sm.regression("y ~ x", made("bernoulli"), family="bernoulli", max_evaluations=60)
    assert result.verdict.level == "fail" and result.verdict.reasons == result.comparison.verdict.reasons
    assert "[FAIL]" in str(result) and "do not use" in str(result) and "nothing can be concluded" in result.sentence()
