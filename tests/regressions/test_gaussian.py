"""The closed form against brute force, and the laws that every default Bayes factor must obey."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate as scipy_integrate
from scipy import stats

import supermodel as sm
from supermodel.regressions.blocks import RSCALES
from supermodel.regressions.design import Design
from supermodel.regressions.formula import parse
from supermodel.regressions.gaussian import GaussianFit


def made(n=30, seed=3):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({
        "x": rng.normal(2.0, 3.0, n), "z": rng.gamma(2.0, 1.0, n),
        "f": rng.choice(["a", "b", "c"], n), "h": rng.choice(["u", "v"], n), "g": rng.choice(list("pqrstuvw"), n),
    })  # fmt: skip
    groups = dict(zip("pqrstuvw", rng.normal(0, 1, 8), strict=True))
    table["y"] = 1.0 + 0.3 * table.x + (table.f == "a") * 0.8 + table.g.map(groups) + rng.normal(0, 1.0, n)
    return table


def fit(formula, table):
    parsed = parse(formula)
    return GaussianFit(
        table[parsed.response_name].to_numpy(float), Design.of(parsed, table).blocks(parsed.terms, RSCALES)
    )


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ f", "y ~ x + z", "y ~ (1 | g)"])
def test_one_g_by_brute_force(formula):
    """ln B(g) from the evidence of y as one multivariate t, and g by SciPy's quadrature."""
    table = made()
    found = fit(formula, table)
    (block,) = found.blocks
    y, n = table.y.to_numpy(), len(table)
    # The intercept is integrated out by contrasts of y: an orthonormal basis of what is left without the mean.
    basis = np.linalg.svd(np.ones((1, n)))[2][1:]

    def log_marginal(g):
        """p(basis y) with p(sigma^2) = 1 / sigma^2, up to a constant."""
        covariance = np.eye(n - 1) + g * basis @ block.columns.values @ block.columns.values.T @ basis.T
        w = basis @ y
        return -0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * (n - 1) * np.log(w @ np.linalg.solve(covariance, w))

    prior = stats.invgamma(0.5, scale=0.5 * block.rscale**2)
    shift = log_marginal(0.0)
    value, _ = scipy_integrate.quad(
        lambda u: np.exp(log_marginal(np.exp(u)) - shift + prior.logpdf(np.exp(u)) + u),
        -12,
        25,
        limit=400,
        epsabs=0,
        epsrel=1e-9,
    )
    assert abs(found.log_bayes_factor.value - np.log(value)) < 1e-7


def test_two_gs_by_a_plain_grid():
    """Simpson's rule on 401 x 401 points of a box far beyond the mass."""
    found = fit("y ~ f + x", made())
    u = np.linspace(-9.0, 25.0, 401)
    both = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.exp(found._log_joint(both) - found.log_bayes_factor.value).reshape(401, 401)
    total = scipy_integrate.simpson(scipy_integrate.simpson(values, x=u), x=u)
    assert abs(np.log(total)) < found.log_bayes_factor.error + 1e-6


def test_three_factors_that_are_nearly_one():
    """Each of them explains the data: a posterior of g with three arms. Simpson's rule on 71^3 points, and 5 stated errors."""
    rng = np.random.default_rng(2)
    f = rng.integers(0, 3, 60)
    twins = {name: np.where(rng.random(60) < 0.02, rng.integers(0, 3, 60), f).astype(str) for name in "hk"}
    table = pd.DataFrame({"y": rng.normal(size=60) + 6.0 * f, "f": f.astype(str), **twins})
    found = fit("y ~ f + h + k", table)
    u = np.linspace(-7.0, 14.0, 71)
    points = np.stack(np.meshgrid(u, u, u, indexing="ij"), axis=-1).reshape(-1, 3)
    values = np.exp(found._log_joint(points) - found.log_bayes_factor.value).reshape(71, 71, 71)
    for _ in range(3):
        values = scipy_integrate.simpson(values, x=u)
    assert abs(np.log(values)) < 5 * found.log_bayes_factor.error
    assert found.log_bayes_factor.error < 0.05


def test_units_order_and_names_of_levels_do_not_matter():
    table = made()
    formula = "y ~ x * f + (1 | g)"
    wanted = sm.regression(formula, table).evidences
    changed = table.assign(y=32 + 1.8 * table.y, x=100 * table.x - 7, f=table.f.map({"a": "z", "b": "k", "c": "a"}))
    changed = changed.sample(frac=1.0, random_state=1)
    found = sm.regression(formula, changed).evidences
    errors = np.sqrt(np.diag(wanted.covariance) + np.diag(found.covariance))
    assert np.all(np.abs(found.values - wanted.values) < 1e-6 + 5 * errors)
    other = sm.regression(formula, table.assign(y=table.y + table.x)).evidences  # negative control
    assert np.max(np.abs(other.values - wanted.values)) > 1


def test_draws_have_the_moments_of_the_posterior():
    """P(effect > 0) by the closed form against 40 000 draws: 5 binomial errors, one false alarm in 1.7 million."""
    found = fit("y ~ x + f", made())
    draws = found.draws(40_000, np.random.default_rng(0))
    for contrast in ({"x": 1.0}, {"f[a]": 1.0, "f[b]": -1.0}, {"f[c]": 1.0}):
        exact = found.probability_positive(contrast)
        share = np.mean(sum(c * draws[name] for name, c in contrast.items()) > 0)
        assert abs(share - exact) < 5 * np.sqrt(exact * (1 - exact) / 40_000) + 1e-3  # nodes are worth 1e-3
    assert np.allclose(draws["f[a]"] + draws["f[b]"] + draws["f[c]"], 0)


def test_any_part_of_the_draws_is_as_good_as_the_whole():
    """The first and the second half have one mean, within 5 errors; and half the effects are those of the two-sided test."""
    x = fit("y ~ x", made()).draws(20_000, np.random.default_rng(0))["x"]
    first, second = x[:10_000], x[10_000:]
    assert abs(first.mean() - second.mean()) < 5 * np.hypot(first.std(), second.std()) / 100
    sample = made().y - 0.2
    both, up = (sm.ttest(sample, alternative=side).draws("alternative")["delta"] for side in ("two-sided", "greater"))
    assert abs(np.mean(both[both > 0]) - np.mean(up)) < 5 * np.hypot(np.std(both), np.std(up)) / np.sqrt(15_000)


def test_shrunk_effects_lie_between_nothing_and_least_squares():
    table = made(200)
    draws = fit("y ~ x", table).draws(20_000, np.random.default_rng(0))
    slope = np.polyfit(table.x, table.y, 1)[0]
    assert 0.9 * slope < draws["x"].mean() < slope
    assert abs(draws["sigma"].mean() - np.std(table.y - np.polyval(np.polyfit(table.x, table.y, 1), table.x))) < 0.05


def test_many_groups_and_an_empty_cell():
    table = made(60)
    table = table[~((table.f == "a") & (table.h == "u"))]
    result = sm.anova("y ~ f * h + (f | g)", table)
    assert result.verdict.level == "ok" and len(result.names) == 5
    assert np.all(np.isfinite(result.evidences.values))


def test_more_columns_than_rows_is_no_trouble_for_groups():
    """Every row its own cell of f x g, nearly: the effects of groups are shrunk, and the answer is a number."""
    table = made(20)
    result = sm.anova("y ~ f + (f | g)", table)
    assert sum(b.size for b in result.fits["f"].blocks) > len(table)
    assert result.verdict.level == "ok" and abs(result.log_bayes_factor().value) < 5


def test_a_response_of_nothing_but_groups_is_an_answer_or_a_verdict():
    table = made(40)
    table["y"] = table.g.map({g: float(i) for i, g in enumerate("pqrstuvw")}) + 1e-5 * table.z
    result = sm.regression("y ~ x + (1 | g)", table)
    assert result.verdict.level in ("caution", "fail") or result.log_bayes_factor().value > 50


@pytest.mark.parametrize(
    "formula", ["y ~ x + (1 | g)", "y ~ x * f + (f | g)", "y ~ f + (x | g) + (1 | h:f)", "y ~ 0 + x + (x | g)"]
)
def test_groups_taken_out_one_by_one_leave_the_same(formula):
    parsed, table = parse(formula), made(60)
    blocks = Design.of(parsed, table).blocks(parsed.terms, RSCALES)
    found = GaussianFit(table.y.to_numpy(), blocks, parsed.intercept)
    log_g = np.random.default_rng(0).normal(0, 2, (50, len(blocks)))
    wanted = found._log_bayes_factor_in_full(log_g)
    assert np.allclose(found._eliminated.log_bayes_factor_at(log_g), wanted, atol=1e-9)
    assert np.std(wanted) > 0.1


@pytest.mark.slow
def test_the_engine_finds_the_closed_form():
    """Proper stand-ins for the Jeffreys priors change nothing: the same ln B from the engine, within 5 errors."""
    import numpyro.distributions as dist

    table = made(24)
    formula, name = "y ~ x + f", "x + f"
    exact = sm.regression(formula, table, models=[name]).log_bayes_factor(name, "1")
    own = {"Intercept": dist.Normal(table.y.mean(), 40.0)}
    engine = sm.regression(formula, table, models=[name], priors=own)
    found = engine.log_bayes_factor(name, "1")
    assert engine.verdict.is_reliable and engine.comparison is not None
    assert abs(found.value - exact.value) < 5 * np.hypot(found.error, exact.error)
