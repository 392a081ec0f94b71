"""What a user may say of symmetries, and what is refused with a reason."""

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from supermodel.errors import ModelError
from supermodel.models.symmetry import Exchange


def model(exchangeable=None, periodic=None):
    priors = {
        "P1": dist.LogUniform(1, 10), "P2": dist.LogUniform(1, 10), "K1": dist.Normal(0, 1), "K2": dist.Normal(0, 1),
        "f": dist.Normal(0, 1).expand([3]), "g": dist.Normal(0, 1).expand([3, 2]), "w": dist.Dirichlet(np.ones(3)),
        "h": dist.Uniform(0, 360), "v": dist.VonMises(0, 1),
    }  # fmt: skip
    return sm.Model(priors, lambda p: 0.0, exchangeable=exchangeable, periodic=periodic)


P, K = [[(name + k, ()) for k in "12"] for name in "PK"]


def test_blocks_arrays_and_several_lists():
    assert model([("P1", "K1"), ("P2", "K2")]).exchangeable == (Exchange(tuple(zip(P, K, strict=True))),)
    assert model(["P1", "P2"]).exchangeable == (Exchange(((P[0],), (P[1],))),)
    (found,) = model(["f", "w", "g"]).exchangeable
    assert found.blocks[1] == (("f", (1,)), ("w", (1,)), ("g", (1, 0)), ("g", (1, 1)))
    (found,) = model([("f[0]", "g[0]"), ("f[2]", "g[2]")]).exchangeable
    assert found.blocks[1] == (("f", (2,)), ("g", (2, 0)), ("g", (2, 1)))
    assert len(model([[("P1",), ("P2",)], ["f", "g"]]).exchangeable) == 2
    form = sm.Canonical(dict, 2)
    assert model(form).exchangeable == (form,)
    assert model(False).exchangeable is False and model().exchangeable is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([("P1", "K1"), ("P2", "Q2")], "'Q2', which is no parameter"),
        ([("P1", "K1"), ("P2",)], "one length"),
        ([("P1", "K1"), ("K1", "P1")], "nothing in common"),
        ([("P1",)], "at least two blocks"),
        (["P1", "K1"], "unequal priors"),
        ([("f[0]",), ("f[3]",)], r"of the shape \(3,\)"),
        (["f", "P1"], "first axes"),
        (True, "Write blocks"),
        ("P1", "Write blocks"),
        ([], "Write blocks"),
    ],
)
def test_what_is_no_exchange_is_refused_with_the_reason(given, words):
    with pytest.raises(ModelError, match=words):
        model(given)


def test_nearly_equal_priors_are_unequal():
    priors = {"a": dist.Normal(0, 1), "b": dist.Normal(0, 1.001)}
    with pytest.raises(ModelError, match=r"unequal priors \(a ~ Normal\(0, 1\), b ~ Normal\(0, 1.001\)\)"):
        sm.Model(priors, lambda p: 0.0, exchangeable=["a", "b"])


def test_numbers_that_are_tied_to_each_other_cannot_be_exchanged_one_by_one():
    with pytest.raises(ModelError, match="Canonical"):
        sm.Model({"L": dist.LKJCholesky(3)}, lambda p: 0.0, exchangeable=["L"])


def test_names_that_go_round():
    assert model(periodic=["h"]).periodic == ("h",) == model(periodic="h").periodic
    assert model(periodic=True).periodic == ("h", "v")
    assert model(periodic=False).periodic is False and model().periodic is None
    black = sm.Model({"h": stats.uniform(0, 360)}, lambda p: 0.0, periodic="h")
    assert black.periodic == ("h",)


@pytest.mark.parametrize(
    ("given", "words"), [(["x"], "no parameter"), (["K1"], "same at both ends"), (["P1"], "same at both ends")]
)
def test_what_cannot_go_round_is_refused(given, words):
    with pytest.raises(ModelError, match=words):
        model(periodic=given)
