"""Deterministic sites of NumPyro and PyMC stand in posteriors, tables and exports, under their coordinates' names."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import supermodel as sm

Y = np.array([0.3, 1.1, 0.8, 1.9])
OPTIONS = {"seed": 0, "explore": "quick", "progress": False}


def by_numpyro(free):
    def model(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        b = numpyro.sample("b", dist.Normal(0, 1)) if free else 0.0
        numpyro.deterministic("twice", 2.0 * a)
        mean = numpyro.deterministic("mean", a + b * np.arange(4.0))
        numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)

    return sm.from_numpyro(model, Y)


def by_pymc(free):
    pm = pytest.importorskip("pymc")
    with pm.Model(coords={"school": ["north", "south"]}) as model:
        a = pm.Normal("a", 0, 1, dims="school")
        pm.Deterministic("twice", 2.0 * a, dims="school")
        pm.Normal("y", a[np.array([0, 0, 1, 1])] + (pm.Normal("b", 0, 1) if free else 0.0), 0.5, observed=Y)
    return sm.from_pymc(model)


@pytest.fixture(scope="module", params=[by_numpyro, by_pymc], ids=["numpyro", "pymc"])
def result(request):
    return sm.compare({"free": request.param(True), "fixed": request.param(False)}, **OPTIONS)


def test_their_draws_are_functions_of_those_of_the_parameters(result):
    for name in result.names:
        post = result.posterior(name)
        np.testing.assert_allclose(post.draws("twice"), 2.0 * post.draws("a"), rtol=1e-12)
        assert post.mean("twice") == pytest.approx(2.0 * post.mean("a")) and np.all(post.ess("twice") == post.ess("a"))
        assert "twice" not in post.parameters  # no parameter: it has no prior, and the run does not wait for it


def test_they_stand_in_every_table(result):
    table = result.summary()
    label = "twice[0]" if np.ndim(result.posterior("free").mean("twice")) else "twice"
    row = table.loc[("free", label)]
    assert row["prior"] == "deterministic" and row["mean"] == pytest.approx(
        2 * table.loc[("free", label.replace("twice", "a"))]["mean"]
    )
    frame = result.to_dataframe("free")
    np.testing.assert_allclose(frame[label], 2.0 * frame[label.replace("twice", "a")])
    assert "deterministic" in str(result) and "twice" in str(result)
    found = result.averaged("twice")
    assert np.allclose(found.mean, 2 * np.asarray(result.averaged("a").mean)) and not found.spikes


def test_arviz_has_them():
    pytest.importorskip("arviz")
    found = sm.compare({"free": by_numpyro(True), "fixed": by_numpyro(False)}, **OPTIONS).to_arviz("free")
    assert found.posterior["mean"].shape[2:] == (4,)
    np.testing.assert_allclose(found.posterior["twice"], 2 * found.posterior["a"])


def test_axes_are_called_by_their_coordinates():
    found = sm.compare({"free": by_pymc(True), "fixed": by_pymc(False)}, **OPTIONS)
    assert found.name_of("twice", (1,)) == "twice[south]" and found.name_of("a", (0,)) == "a[north]"
    assert "twice[north]" in str(found) and "a[south]" in repr(found.summary())
    frame = found.to_dataframe("free")
    assert found.posterior("free").mean("twice")[1] == pytest.approx(2 * frame["a[1]"].mean(), abs=0.1)


def test_after_a_file_they_are_there_as_soon_as_the_models_are(tmp_path):
    models = {"free": by_numpyro(True), "fixed": by_numpyro(False)}
    first = sm.compare(models, **OPTIONS)
    path = first.save(tmp_path / "run.nc")
    assert sm.load(path).posterior("free").derived == {}
    back = sm.load(path, models=models)
    np.testing.assert_allclose(back.posterior("free").draws("mean"), first.posterior("free").draws("mean"))


def test_a_curve_at_many_data_is_in_no_table():
    def model(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        numpyro.deterministic("curve", a * np.ones(100))
        numpyro.sample("y", dist.Normal(a, 0.5), obs=y)

    found = sm.evidence(sm.from_numpyro(model, Y), **OPTIONS)
    assert "curve" not in str(found) and found.posterior("model").draws("curve").shape[1:] == (100,)
