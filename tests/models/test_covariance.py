"""Noise with a covariance against closed forms: the evidence, what each datum drives, prediction, and what is refused."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from supermodel.errors import DataError, ModelError

N = 12
X = np.linspace(-1.0, 1.0, N)
GAP = X[:, None] - X
C = 0.3**2 * np.exp(-0.5 * (GAP / 0.5) ** 2) + 0.2**2 * np.eye(N)
Y = 0.4 + 0.5 * X + np.linalg.cholesky(C) @ np.random.default_rng(4).standard_normal(N)
DATA = {"x": X, "y": Y}
PRIOR = dist.Normal(0.0, 1.0)


def level(p):
    return p["a"]


def line(p, x):
    return p["a"] + p["b"] * x


def models(noise):
    return {
        "line": sm.Model({"a": PRIOR, "b": PRIOR}, predict=line, noise=noise),
        "level": sm.Model({"a": PRIOR}, predict=level, noise=noise),
    }


COLUMNS = {"line": np.column_stack([np.ones(N), X]), "level": np.ones((N, 1))}


def marginal(name, rows=slice(None)):
    """ln Z of the data in `rows`: y ~ N(0, A A^T + C)."""
    rows = np.arange(N)[rows]
    whole = COLUMNS[name] @ COLUMNS[name].T + C
    return stats.multivariate_normal(np.zeros(len(rows)), whole[np.ix_(rows, rows)]).logpdf(Y[rows])


def left_out(rows):
    """What of ln B(line : level) goes with some of the data."""
    rest = np.setdiff1d(np.arange(N), rows)
    return (marginal("line") - marginal("line", rest)) - (marginal("level") - marginal("level", rest))


@pytest.fixture(scope="module")
def result():
    return sm.compare(models(sm.Gaussian(covariance=C)), DATA, seed=0, target_error=0.02, progress=False)


def kernel(k):
    return k["amp"] ** 2 * jnp.exp(-0.5 * ((k["x"][:, None] - k["x"]) / 0.5) ** 2) + 0.2**2 * jnp.eye(N)


WAYS = {
    "dense": (sm.Gaussian(covariance=C), {}),
    "factor": (sm.Gaussian(cholesky=np.linalg.cholesky(C)), {}),
    "column": (sm.Gaussian(covariance="C"), {}),
    "kernel": (sm.Gaussian(covariance=kernel), {"amp": 0.3}),
    "with a scatter": (sm.Gaussian("scatter", covariance=C - 0.1**2 * np.eye(N)), {"scatter": 0.1}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_give_it_is_the_multivariate_normal(way):
    noise, more = WAYS[way]
    model = sm.Model({"a": PRIOR, "b": PRIOR} | {name: PRIOR for name in more}, predict=line, noise=noise)
    values, data = {"a": 0.3, "b": -0.2, **more}, {**DATA, "C": C}
    truth = stats.multivariate_normal(0.3 - 0.2 * X, C).logpdf(Y)
    assert float(model.log_likelihood(values, data)) == pytest.approx(truth, abs=1e-9)
    assert np.sum(model.pointwise_log_likelihood(values, data)) == pytest.approx(truth, abs=1e-9)
    np.testing.assert_allclose(noise.scale({**data, **more}), np.sqrt(np.diag(C)), rtol=1e-9)
    others = np.asarray(model.left_out_log_likelihood(values, data))
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        without = stats.multivariate_normal((0.3 - 0.2 * X)[rest], C[np.ix_(rest, rest)]).logpdf(Y[rest])
        assert others[i] == pytest.approx(truth - without, abs=1e-8)


def test_the_evidence_is_that_of_the_closed_form(result):
    for name in ("line", "level"):
        found = result.log_evidence(name)
        assert abs(found.value - marginal(name)) < 5 * found.error
    # Negative control: without the covariance between data the answer is another one.
    alone = sm.compare(models(sm.Gaussian(np.sqrt(np.diag(C)))), DATA, seed=0, target_error=0.02, progress=False)
    truth, found = marginal("line") - marginal("level"), result.log_bayes_factor("line", "level")
    assert abs(alone.log_bayes_factor("line", "level").value - truth) > 20 * found.error


def test_what_a_datum_drives_is_what_goes_with_it(result):
    found = result.drivers("line", "level")
    truth = np.array([left_out([i]) for i in range(N)])
    assert np.all(np.abs(found.leave_out - truth) < 5 * found.leave_out_error + 1e-3) and not found.is_heavy.any()
    assert np.max(np.abs(truth)) > 20 * np.max(found.leave_out_error)  # so that the comparison says something
    total = result.split("line").fit.value - result.split("level").fit.value
    assert found.total_fit == pytest.approx(total, abs=1e-6)
    halves = result.drivers("line", "level", blocks=["left"] * 3 + ["right"] * 9)
    assert abs(halves.leave_out[0] - left_out(np.arange(3))) < 5 * halves.leave_out_error[0] + 1e-3


def test_leave_one_out_is_the_prediction_of_a_datum_from_all_others(result):
    found = result.loo()
    for name in ("line", "level"):
        truth = [marginal(name) - marginal(name, np.delete(np.arange(N), i)) for i in range(N)]
        # PSIS of some thousand draws and k below 0.5: a percent of a nat or so each.
        assert found.pareto_k[name].max() < 0.5
        np.testing.assert_allclose(found.pointwise[name], truth, atol=0.05)
    assert result.predict().mean.shape == (N,)


def test_the_kernel_s_parameters_are_found():
    model = sm.Model({"amp": dist.HalfNormal(1.0), "a": PRIOR}, predict=level, noise=sm.Gaussian(covariance=kernel))
    found = sm.evidence(model, DATA, seed=0, target_error=0.05, progress=False)
    grid = np.linspace(1e-3, 5.0, 2001)
    logs = [
        stats.multivariate_normal(np.zeros(N), np.ones((N, N)) + np.asarray(kernel({"amp": a, "x": X}))).logpdf(Y)
        for a in grid
    ]
    truth = np.log(np.trapezoid(np.exp(logs) * 2 * stats.norm.pdf(grid), grid))
    assert abs(found.value - truth) < 5 * found.error + 1e-4 and found.verdict.is_reliable


def test_simulated_data_have_it_and_models_of_one_noise_are_known():
    noise = sm.Gaussian(covariance=C)
    rng = np.random.default_rng(0)
    drawn = np.array([noise.draw(rng, DATA) for _ in range(4000)])
    # The error of a covariance of n draws is sqrt((C_ij^2 + C_ii C_jj) / n); 6 of it for 78 elements.
    error = np.sqrt((C**2 + np.outer(np.diag(C), np.diag(C))) / 4000)
    assert np.all(np.abs(np.cov(drawn.T) - C) < 6 * error)
    assert noise.same_as(sm.Gaussian(covariance=C)) and not noise.same_as(sm.Gaussian(covariance=2 * C))
    assert not noise.same_as(sm.Gaussian()) and sm.Gaussian().sigma == "sigma"


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"covariance": C, "cholesky": C}, ModelError, "and not both"),
        ({"covariance": np.ones(3)}, DataError, r"must be a square array; got the shape \(3,\)"),
        ({"covariance": np.ones((3, 3))}, DataError, "not positive definite: its least eigenvalue is"),
        ({"covariance": np.tri(3)}, DataError, "not symmetric: 0 in row 0, column 1"),
        ({"covariance": np.full((2, 2), np.nan)}, DataError, "holds nan in row 0, column 0"),
        ({"cholesky": C}, DataError, "must be lower triangular"),
    ],
)
def test_what_is_no_covariance_is_refused_with_the_reason(options, error, told):
    with pytest.raises(error, match=told):
        sm.Gaussian(**options)


def test_a_covariance_of_other_data_is_refused():
    with pytest.raises(DataError, match=r'covariance is 12 × 12, but data\["y"\] has the shape \(11,\)'):
        sm.evidence(models(sm.Gaussian(covariance=C))["line"], {"x": X[1:], "y": Y[1:]}, progress=False)
