"""ArviZ, of today and of before, reads what `to_arviz` gives, or the file of it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from made_result import made_result

pytestmark = pytest.mark.filterwarnings("ignore")  # what ArviZ asks of others is not ours to mend
az = pytest.importorskip("arviz")
IS_OLD = az.__version__.startswith("0.")


@pytest.fixture(scope="module")
def result():
    return made_result(0, draws=300)


@pytest.fixture(scope="module", params=["in memory", "from a file"])
def trees(request, result, tmp_path_factory):
    found = {name: result.to_arviz(name) for name in result.names}
    if request.param == "in memory":
        return {name: az.InferenceData.from_datatree(tree) for name, tree in found.items()} if IS_OLD else found
    folder = tmp_path_factory.mktemp("arviz")
    for name, tree in found.items():
        tree.to_netcdf(folder / f"{name}.nc", engine="h5netcdf")
    read = az.from_netcdf if IS_OLD else xr.open_datatree
    return {name: read(folder / f"{name}.nc", engine="h5netcdf") for name in found}


def test_summary(result, trees):
    table = az.summary(trees["curve"], round_to="none")
    posterior = result.posterior("curve")
    for name in "abc":
        rows = posterior.parameters[name][posterior.equal_rows]
        assert float(table.loc[name, "mean"]) == pytest.approx(rows.mean(), rel=0.01, abs=0.01)
        assert float(table.loc[name, "r_hat"]) == pytest.approx(posterior.rhat(name), abs=0.01)
        assert float(table.loc[name, "ess_bulk"]) == pytest.approx(float(posterior.ess(name)), rel=0.01)


def test_loo_and_compare(result, trees):
    ours = result.loo()
    for name in result.names:
        found = az.loo(trees[name])
        value, error = (found.elpd_loo, found.se) if IS_OLD else (found.elpd, found.se)
        # Versions differ a little in where the tail begins, and in n or n - 1 under the error.
        assert value == pytest.approx(ours.elpd(name).value, abs=1e-3)
        assert error == pytest.approx(ours.elpd(name).error, rel=0.03)
    assert list(az.compare(trees).index) == list(ours.names)


def test_the_comparison_is_a_group_of_its_own(result, trees):
    group = trees["line"]["comparison"]
    np.testing.assert_array_equal(np.asarray(group["log_evidence"]), result.evidences.values)
    np.testing.assert_array_equal(np.asarray(group["covariance"]), result.evidences.covariance)
    assert list(np.asarray(group["model"])) == list(result.names)


@pytest.mark.parametrize("name", ["plot_trace", "plot_forest", "plot_pair", "plot_posterior" if IS_OLD else "plot_dist"])
def test_pictures(trees, name):
    import matplotlib

    matplotlib.use("Agg")
    if not IS_OLD:
        pytest.importorskip("arviz_plots")
    drawn = getattr(az, name)(trees["curve"])
    assert drawn is not None
