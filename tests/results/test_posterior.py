"""A posterior in a user's hands: what it rests on, quantiles, tables."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from made_result import exact, made_data, made_result
from supermodel.errors import SupermodelError
from supermodel.results.posterior import ModelPosterior


def made(values, weights=None, chains=16):
    """A posterior of one parameter from (chains, draws) values."""
    n = values.size
    logs = np.full(n, -np.log(n)) if weights is None else np.log(weights.ravel() / weights.sum())
    nothing = np.zeros(n)
    return ModelPosterior("m", {"x": values.ravel()}, logs, nothing, nothing, np.repeat(np.arange(chains), n // chains))


@pytest.fixture(scope="module")
def result():
    return made_result(0, draws=300)


def test_its_numbers_are_those_of_arviz(result):
    arviz_stats = pytest.importorskip("arviz_stats")
    posterior, idata = result.posterior("curve"), result.to_arviz("curve")
    assert idata.posterior.sizes["chain"] == 4  # the standard of 1.01 and 400 is made for four
    for name in "abc":
        assert float(posterior.ess(name)) == pytest.approx(float(arviz_stats.ess(idata)[name]), rel=1e-9)
        assert float(posterior.rhat(name)) == pytest.approx(float(arviz_stats.rhat(idata)[name]), rel=1e-9)


def test_weights_and_repeats_both_cost_draws(rng):
    free = rng.standard_normal((16, 100))
    assert made(free).worst_ess > 0.8 * free.size
    slow = np.repeat(free[:, :10], 10, axis=1)
    assert made(slow).worst_ess < 0.2 * slow.size == 0.2 * made(slow).effective_size  # 1/sum w^2 sees nothing
    uneven = np.exp(2 * rng.standard_normal(free.shape))
    assert made(free, uneven).worst_ess < 0.3 * free.size
    assert made(free).short is False and made(slow).short


def test_a_long_run_is_thinned_and_nothing_is_said_of_what_never_moves(rng):
    long = made(rng.standard_normal((16, 8192)))
    assert long.equal_rows.shape == (4, 16_384) and np.all(np.diff(long.equal_rows, axis=1) > 0)
    assert 0.9 < long.worst_ess / 65_536 < 1.1
    fixed = dataclasses.replace(
        made(rng.standard_normal((16, 50))), parameters={"c": np.ones(800), "x": rng.standard_normal(800)}
    )
    assert (
        np.isnan(fixed.ess("c"))
        and fixed.worst_ess == float(fixed.ess("x"))
        and fixed.worst_rhat == float(fixed.rhat("x"))
    )


def test_vectors_have_a_size_for_each_number(rng):
    posterior = dataclasses.replace(
        made(rng.standard_normal((16, 50))), parameters={"v": rng.standard_normal((800, 2, 3))}
    )
    assert posterior.ess("v").shape == posterior.rhat("v").shape == (2, 3)
    assert posterior.quantile("v", 0.5).shape == (2, 3) and posterior.quantile("v", (0.1, 0.9)).shape == (2, 2, 3)
    assert list(posterior.to_dataframe())[:2] == ["v[0,0]", "v[0,1]"]
    assert len(posterior.summary()) == 6


def test_quantiles_are_those_of_the_closed_form(result):
    """The error of a quantile is sqrt(q (1 - q) / ESS) / density, of which 4.9."""
    truth, posterior = exact(made_data(), "abc"), result.posterior("curve")
    law = stats.norm(truth.posterior_mean[0], np.sqrt(truth.posterior_covariance[0, 0]))
    for q in (0.1, 0.5, 0.9):
        error = np.sqrt(q * (1 - q) / float(posterior.ess("a"))) / law.pdf(law.ppf(q))
        assert abs(float(posterior.quantile("a", q)) - law.ppf(q)) < 4.9 * error
        assert abs(float(posterior.quantile("a", q)) - law.ppf(q) - law.std()) > 4.9 * error  # planted


def test_a_table_of_draws_weighs_them_equally(result):
    posterior = result.posterior("curve")
    frame, weighted = posterior.to_dataframe(), posterior.to_dataframe(equal_weights=False)
    assert frame["weight"].nunique() == 1 and weighted["weight"].nunique() > 1 and len(frame) == len(weighted)
    assert (weighted["a"] * weighted["weight"]).sum() == pytest.approx(float(posterior.mean("a")))
    # Each chain is resampled on its own: the mean moves by less than its error.
    assert abs(frame["a"].mean() - float(posterior.mean("a"))) < 2 * float(posterior.mean_error("a"))
    whole = result.to_dataframe()
    for name in result.names:
        assert whole.loc[whole["model"] == name, "weight"].sum() == pytest.approx(result.probabilities[name])


@pytest.mark.parametrize("ask", ["mean", "sd", "mean_error", "ess", "rhat", "draws"])
def test_a_name_that_does_not_exist_lists_those_that_do(result, ask):
    with pytest.raises(SupermodelError, match="'line' has no parameter 'c'; its parameters are 'a', 'b'"):
        getattr(result.posterior("line"), ask)("c")
    with pytest.raises(SupermodelError, match="between 0 and 1"):
        result.posterior("line").quantile("a", 5)


def test_it_shows_itself(result):
    posterior = result.posterior("curve")
    assert "Posterior of curve" in repr(posterior) and "R-hat" in repr(posterior)
    assert "<table>" in posterior._repr_html_() and "Posterior of curve" in posterior._repr_html_()
