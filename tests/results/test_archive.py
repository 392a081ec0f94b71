"""A comparison saved and loaded, and handed to other libraries."""

import dataclasses

import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr
from scipy import stats

import supermodel as sm
from made_result import made_result, model
from supermodel.errors import PriorError, StorageError, SupermodelError
from supermodel.models.priors import as_prior
from supermodel.results.archive import Described, _prior_as_data, _prior_from_data
from supermodel.results.storage import load_arrays, save_arrays
from supermodel.verdict.verdict import Reason, Verdict

MODELS = {"line": "ab", 'curve <b>&"x /': "abc"}


@pytest.fixture(scope="module")
def result():
    return made_result(0, MODELS, verdict=Verdict("caution", (Reason("drift", "a little."),)))


@pytest.fixture(scope="module")
def path(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "run.nc"
    result.save(path)
    return path


def test_all_of_it_comes_back_to_the_bit(result, path):
    back = sm.load(path)
    assert str(back) == str(result) and back.to_json() == result.to_json()
    assert back.verdict == result.verdict and back.names == result.names
    np.testing.assert_array_equal(back.evidences.covariance, result.evidences.covariance)
    for name in MODELS:
        for field in ("log_weights", "log_likelihood", "log_prior", "chain"):
            assert getattr(back.posterior(name), field).tobytes() == getattr(result.posterior(name), field).tobytes()
        for p, values in result.posterior(name).parameters.items():
            assert back.posterior(name).parameters[p].tobytes() == values.tobytes()
    for a, b in zip(back.edges, result.edges, strict=True):
        assert a.log_joints.tobytes() == b.log_joints.tobytes() and a.report == b.report
    np.testing.assert_array_equal(back.data["y"], result.data["y"])
    assert back.fingerprints == result.fingerprints and back.versions == result.versions


def test_sensitivity_works_on_a_loaded_result(result, path):
    found, back = (r.sensitivity("c", [0.5, 2.0]) for r in (result, sm.load(path)))
    np.testing.assert_array_equal(found.values, back.values)
    np.testing.assert_array_equal(found.errors, back.errors)


def test_models_can_be_given_back(result, path):
    assert sm.load(path).models is None
    back = sm.load(path, models=result.models)
    np.testing.assert_allclose(back.predict(n=20).mean, result.predict(n=20).mean)
    with pytest.raises(StorageError, match="holds the models"):
        sm.load(path, models={"line": model("ab")})
    with pytest.raises(StorageError, match="has the parameters"):
        sm.load(path, models={**result.models, "line": model("ac")})


def test_files_of_another_kind_or_a_later_schema_are_refused(result, tmp_path):
    save_arrays(tmp_path / "checkpoint.nc", {}, {"kind": "checkpoint"})
    with pytest.raises(StorageError, match="not a finished comparison"):
        sm.load(tmp_path / "checkpoint.nc")
    dataclasses.replace(result, schema=99).save(tmp_path / "future.nc")
    with pytest.raises(StorageError, match="Upgrade"):
        sm.load(tmp_path / "future.nc")
    (tmp_path / "text.nc").write_text("no")
    with pytest.raises(StorageError):
        sm.load(tmp_path / "text.nc")


@pytest.mark.parametrize(
    "prior",
    [
        dist.Normal(0.3, 2),
        dist.StudentT(3.0, 0, 1),
        dist.Uniform(-1, 2),
        dist.LogNormal(0, 1).expand([3]),
        dist.HalfCauchy(2.0),
        dist.Normal(np.arange(2.0), 1).to_event(1),
    ],
    ids=lambda d: type(d).__name__,
)
def test_priors_come_back_as_densities(prior):
    from supermodel.results.rescaling import log_density

    old = as_prior("p", prior)
    new = _prior_from_data("p", _prior_as_data(old))
    values = np.abs(np.random.default_rng(0).standard_normal((5, *old.shape)))
    np.testing.assert_array_equal(log_density(old, values), log_density(new, values))
    assert new.description == old.description


def test_other_priors_come_back_by_name_and_nothing_is_looked_up():
    odd = _prior_from_data("p", _prior_as_data(as_prior("p", stats.skewnorm(3.0))))
    assert isinstance(odd, Described) and "skewnorm" in odd.description
    planted = _prior_from_data(
        "p", {"description": "x", "shape": [], "family": "mixtures", "arguments": {}, "wraps": []}
    )
    assert isinstance(planted, Described)
    from supermodel.results.rescaling import log_density

    with pytest.raises(PriorError, match="models="):
        log_density(odd, np.zeros(3))


def test_arviz(result, tmp_path):
    idata = result.to_arviz("line")
    assert idata.posterior.sizes["chain"] == 4 and set(idata.posterior.data_vars) == {"a", "b"}
    assert float(idata.posterior["a"].mean()) == pytest.approx(
        float(result.posterior("line").mean("a")), abs=0.2 * float(result.posterior("line").sd("a"))
    )
    assert idata.comparison["log_evidence"].shape == (2,)
    idata.to_netcdf(tmp_path / "idata.nc", engine="h5netcdf")
    again = xr.open_datatree(tmp_path / "idata.nc", engine="h5netcdf")
    assert float(again["comparison"]["log_evidence"][0]) == result.evidences.values[0]
    np.testing.assert_array_equal(again["posterior"]["a"], idata.posterior["a"])
    assert "model" in result.to_arviz().posterior.attrs


def test_dataframe(result):
    frame = result.to_dataframe(equal_weights=False)
    assert frame["weight"].sum() == pytest.approx(1.0) and set(frame["model"]) == set(MODELS)
    share = frame.loc[frame["model"] == "line", "weight"].sum()
    assert share == pytest.approx(result.probabilities["line"])
    alone = result.to_dataframe("line", equal_weights=False)
    assert (alone["a"] * alone["weight"]).sum() == pytest.approx(float(result.posterior("line").mean("a")))


def test_getdist(result):
    pytest.importorskip("getdist")
    samples = result.to_getdist("line")
    np.testing.assert_allclose(samples.getMeans(), [result.posterior("line").mean(p) for p in "ab"], rtol=1e-9)


def test_anesthetic(result):
    pytest.importorskip("anesthetic")
    samples = result.to_anesthetic("line")
    assert float(samples["a"].mean()) == pytest.approx(float(result.posterior("line").mean("a")))


@pytest.mark.parametrize("library", ["getdist", "anesthetic"])
def test_a_missing_library_is_named(result, library, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(SupermodelError, match=rf"supermodel-bayes\[{library}\]"):
        getattr(result, f"to_{library}")()


def test_a_posterior_knows_its_record_also_from_a_file_that_does_not_say(tmp_path):
    """Files of version 0.1.0.dev0 have no `records`: it is found by the weights, and other weights are those of none."""
    result = made_result(0, {"line": "ab", "curve": "abc", "level": "a"})
    result.save(tmp_path / "new.nc")
    groups, attrs = load_arrays(tmp_path / "new.nc")
    assert attrs.pop("records") == [0, 1, 2]
    save_arrays(tmp_path / "old.nc", groups, attrs)
    assert [p.record for p in sm.load(tmp_path / "old.nc").posteriors.values()] == [0, 1, 2]
    groups["posterior_1"]["log_weights"] = groups["posterior_1"]["log_weights"][::-1]
    save_arrays(tmp_path / "other.nc", groups, attrs)
    assert [p.record for p in sm.load(tmp_path / "other.nc").posteriors.values()] == [0, -1, 2]
