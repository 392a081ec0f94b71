"""LOO: the closed form of the linear model, ArviZ's numbers, and the same from a NumPyro model."""

import dataclasses

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import supermodel as sm
from made_result import POWERS, PRIOR_SD, exact, made_data, made_result
from supermodel.errors import SupermodelError
from supermodel.results.prediction import log_densities


@pytest.fixture(scope="module")
def result():
    return made_result(0, draws=300)


def in_numpyro(names, data):
    def model(x, y):
        p = {name: numpyro.sample(name, dist.Normal(0.1, PRIOR_SD[name])) for name in names}
        with numpyro.plate("row", len(y)):
            numpyro.sample("height", dist.Normal(sum(p[q] * x ** POWERS[q] for q in names), 0.6), obs=y)

    return sm.from_numpyro(model, data["x"], data["y"])


@pytest.fixture(scope="module")
def written_in_numpyro(result):
    models = {"line": in_numpyro("ab", result.data), "curve": in_numpyro("abc", result.data)}
    return dataclasses.replace(result, models=models, data=None)


def test_it_is_the_closed_form_and_not_the_fit(result):
    """Each ln p(y_i | the others) = -ln mean(1/p) has a relative error std(1/p) / mean / sqrt(n); all at once, 4.9 times."""
    data, found = made_data(), result.loo()
    for name, parameters in (("line", "ab"), ("curve", "abc")):
        whole = exact(data, parameters).log_evidence
        rest = []
        for i in range(24):
            kept = {k: np.delete(v, i) for k, v in data.items()}
            rest.append(exact(kept, parameters).log_evidence)
        truth = np.sum(whole - np.array(rest))
        terms = log_densities(result, result.posterior(name))["y"].reshape(-1, 24)
        inverse = np.exp(-terms)
        error = np.sum(inverse.std(axis=0) / inverse.mean(axis=0)) / np.sqrt(result.posterior(name).worst_ess)
        assert abs(found.elpd(name).value - truth) < 4.9 * error
        assert abs(found.total[name] - truth) > 4.9 * error  # the planted error: data that were seen already


def test_it_is_what_arviz_says_of_the_same_draws(result):
    arviz_stats = pytest.importorskip("arviz_stats")
    ours = result.loo()
    for name in result.names:
        theirs = arviz_stats.loo(result.to_arviz(name), pointwise=True)
        np.testing.assert_allclose(ours.pointwise[name], theirs.elpd_i.values, rtol=1e-9)
        np.testing.assert_allclose(ours.pareto_k[name], theirs.pareto_k.values, rtol=1e-9)
        n = len(theirs.elpd_i)  # under whose error ArviZ has n - 1 since its version 1
        assert ours.elpd(name).error in (pytest.approx(theirs.se), pytest.approx(theirs.se * np.sqrt(1 - 1 / n)))
    table = arviz_stats.compare({name: result.to_arviz(name) for name in result.names})
    assert list(table.index) == list(ours.names)
    assert ours.difference(*ours.names).value == pytest.approx(table["elpd_diff"].iloc[1], rel=1e-6)


def test_a_numpyro_model_knows_its_data_one_by_one(result, written_in_numpyro):
    np.testing.assert_allclose(written_in_numpyro.loo().pointwise["curve"], result.loo().pointwise["curve"], rtol=1e-9)
    ours, theirs = written_in_numpyro.drivers("curve", "line"), result.drivers("curve", "line")
    np.testing.assert_allclose(ours.leave_out, theirs.leave_out, rtol=1e-9)
    np.testing.assert_allclose(ours.fit, theirs.fit, rtol=1e-9)


def test_arviz_gets_all_groups_with_the_names_of_axes(result, written_in_numpyro):
    idata = written_in_numpyro.to_arviz("curve")
    wanted = {"posterior", "sample_stats", "log_likelihood", "prior", "observed_data", "comparison"}
    assert wanted <= set(idata.children) and wanted <= set(result.to_arviz().children)
    assert idata.log_likelihood["height"].dims == ("chain", "draw", "row")
    assert idata.observed_data["height"].dims == ("row",) and idata.prior["a"].shape == (1, 1000)
    assert float(idata.prior["a"].std()) == pytest.approx(1.3, abs=4.9 * 1.3 / np.sqrt(2000))
    total = idata.log_likelihood["height"].sum("row")
    np.testing.assert_allclose(total, idata.sample_stats["log_likelihood_total"], rtol=0, atol=1e-6)


def test_what_it_needs_is_said(result, tmp_path):
    plain = sm.Model({"a": dist.Normal(0, 1), "b": dist.Normal(0, 1)}, lambda p, d: 0.0)
    blind = dataclasses.replace(result, models={**result.models, "line": plain})
    with pytest.raises(
        SupermodelError, match="'line' knows no log likelihood of each datum: it is written with a log_l"
    ):
        blind.loo()
    assert "log_likelihood" not in blind.to_arviz("line").children and "prior" in blind.to_arviz("line").children
    result.save(tmp_path / "run.nc")
    with pytest.raises(SupermodelError, match="load\\(path, models="):
        sm.load(tmp_path / "run.nc").loo()


def test_it_stands_beside_the_bayes_factor(result):
    from supermodel.report.html import page

    text = str(result.loo())
    assert "elpd (LOO)" in text and "Two questions: ln B tells" in text and "<table>" in result.loo()._repr_html_()
    shown = page(result)
    assert "Prediction of new data" in shown and "predicts one datum more" in shown


def test_a_model_without_parameters_predicts_what_it_always_does():
    data = {"x": np.zeros(5), "y": np.array([0.3, -1.0, 0.2, 1.4, 0.0])}
    models = {
        "null": sm.Model({}, predict=lambda p, x: 0.0 * x, noise=sm.Gaussian(1.0)),
        "mean": sm.Model({"m": dist.Normal(0, 1)}, predict=lambda p, x: p["m"] + 0.0 * x, noise=sm.Gaussian(1.0)),
    }
    found = sm.compare(models, data, explore="quick", progress=False).loo()
    np.testing.assert_allclose(found.pointwise["null"], -0.5 * data["y"] ** 2 - 0.5 * np.log(2 * np.pi), rtol=1e-12)
