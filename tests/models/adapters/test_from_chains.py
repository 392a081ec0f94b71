"""Posterior draws that exist already, read from every form that users keep them in."""

import emcee
import numpy as np
import numpyro.distributions as dist
import pytest

from supermodel.errors import SupermodelError
from supermodel.models.adapters.from_chains import from_chains
from supermodel.models.model import Model

MODEL = Model({"a": dist.Normal(0, 1), "b": dist.HalfNormal(1)}, lambda p: 0.0)


def draws(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(0.5, 0.1, n), "b": np.abs(rng.normal(1, 0.2, n))}


def test_a_dict_of_draws_and_derived_parameters():
    given = draws() | {"derived": np.ones(400)}
    pilot = from_chains(MODEL, given).pilot_points
    assert set(pilot) == {"a", "b"}
    assert sorted(pilot["a"]) == sorted(given["a"])
    assert MODEL.pilot_points is None  # the model itself is as it was
    rows = {tuple(row) for row in zip(given["a"], given["b"], strict=True)}
    assert {tuple(row) for row in zip(pilot["a"], pilot["b"], strict=True)} == rows  # rows stay together


def test_emcee():
    sampler = emcee.EnsembleSampler(8, 2, lambda v: -0.5 * np.sum((v - [0.5, 1.0]) ** 2 / 0.01))
    sampler.random_state = np.random.RandomState(1).get_state()
    sampler.run_mcmc(np.array([0.5, 1.0]) + 0.05 * np.random.default_rng(0).standard_normal((8, 2)), 200)
    pilot = from_chains(MODEL, sampler, burn_in=0.5).pilot_points
    assert len(pilot["a"]) == 800 and abs(pilot["a"].mean() - 0.5) < 0.05
    swapped = from_chains(MODEL, sampler, names=["b", "a"]).pilot_points
    assert abs(swapped["a"].mean() - 1.0) < 0.05
    with pytest.raises(SupermodelError, match="2 columns, but 3 names"):
        from_chains(MODEL, sampler, names=["a", "b", "c"])


def test_arviz():
    from arviz_base import from_dict

    given = {name: values.reshape(4, 100) for name, values in draws().items()}
    pilot = from_chains(MODEL, from_dict({"posterior": given})).pilot_points
    assert sorted(pilot["b"]) == sorted(given["b"].ravel())
    vector = Model({"v": dist.Normal(0, 1).expand([3])}, lambda p: 0.0)
    pilot = from_chains(vector, from_dict({"posterior": {"v": np.zeros((2, 50, 3))}})).pilot_points
    assert pilot["v"].shape == (100, 3)


def write_getdist(folder, weights):
    given = draws()
    table = np.column_stack([weights, np.zeros(400), given["a"], given["b"], np.ones(400)])
    np.savetxt(folder / "run_1.txt", table[:200])
    np.savetxt(folder / "run_2.txt", table[200:])
    (folder / "run.paramnames").write_text("a  a\nb  b\nderived*  d\n")
    return given


def test_getdist_text_chains_and_their_weights(tmp_path):
    weights = np.where(draws()["a"] > 0.5, 3.0, 0.0)
    write_getdist(tmp_path, weights)
    pilot = from_chains(MODEL, tmp_path / "run", burn_in=0).pilot_points
    assert np.all(pilot["a"] > 0.499999)
    with pytest.raises(SupermodelError, match="no text chains"):
        from_chains(MODEL, tmp_path / "other")


def test_the_same_as_getdist_itself(tmp_path):
    getdist = pytest.importorskip("getdist")
    write_getdist(tmp_path, np.random.default_rng(3).integers(1, 5, 400))
    theirs = getdist.loadMCSamples(str(tmp_path / "run"), settings={"ignore_rows": 0.3}, no_cache=True)
    ours = from_chains(MODEL, str(tmp_path / "run"), burn_in=0.3, draws=100_000).pilot_points
    assert ours["a"].mean() == pytest.approx(theirs.mean("a"), abs=0.01)
    assert ours["b"].std() == pytest.approx(theirs.std("b"), abs=0.02)


def test_cobaya_text_chains(tmp_path):
    given = draws(100)
    header = " weight  minuslogpost  a  b  minuslogprior  chi2"
    np.savetxt(
        tmp_path / "c.1.txt",
        np.column_stack([np.ones(100), np.zeros(100), given["a"], given["b"], np.zeros((100, 2))]),
        header=header,
    )
    pilot = from_chains(MODEL, tmp_path / "c", burn_in=0).pilot_points
    assert sorted(pilot["b"]) == pytest.approx(sorted(given["b"]))


@pytest.mark.parametrize(
    ("chains", "options", "part"),
    [
        ({"a": np.zeros(5)}, {}, "no parameter 'b'"),
        ({"a": np.zeros(5), "B": np.ones(5)}, {"names": {"q": "b"}}, "renames \\['q'\\]"),
        ({"a": np.zeros(5), "b": np.full(5, np.nan)}, {}, "not finite"),
        ({"a": np.zeros((5, 2)), "b": np.ones(5)}, {}, "shape"),
        ({"a": np.zeros(1), "b": np.ones(1)}, {}, "at least 2"),
        (3, {}, "type int"),
        ({}, {"burn_in": 1.0}, "burn_in"),
    ],
)
def test_wrong_chains_are_refused(chains, options, part):
    with pytest.raises(SupermodelError, match=part):
        from_chains(MODEL, chains, **options)


def test_renaming():
    given = draws()
    pilot = from_chains(MODEL, {"a": given["a"], "B": given["b"]}, names={"B": "b"}).pilot_points
    assert sorted(pilot["b"]) == sorted(given["b"])
