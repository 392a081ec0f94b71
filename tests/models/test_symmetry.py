"""What a symmetry does: images have the prior of their point, and files tell all of it."""

import numpy as np
import numpyro.distributions as dist
import pytest

from supermodel.jax_scope import float64
from supermodel.models.circle import turned
from supermodel.models.space import Space
from supermodel.models.symmetry import (
    Canonical,
    Circle,
    Exchange,
    Reflection,
    Refuted,
    as_data,
    exchanged,
    exchanges_prior,
    from_data,
    keeps_prior,
    moved,
    same,
)


@pytest.fixture
def space():
    return Space(
        {
            "m": dist.Normal(0, 2).expand([3]), "w": dist.Dirichlet(np.full(3, 2.0)), "h": dist.Uniform(0, 2 * np.pi),
            "a": dist.Normal(1.0, 1.0), "b": dist.LogNormal(0.0, 1.0),
        }
    )  # fmt: skip


BLOCKS = Exchange(tuple((("m", (i,)), ("w", (i,))) for i in range(3)))
ALL = [
    BLOCKS, BLOCKS._replace(by=0), Exchange(((("a", ()),), (("b", ()),)), 0, (("m", (0,)),), (0.5,)),
    Reflection((("a", ()), ("m", (2,))), (1.0, 0.0), 1), Circle("h", (0.5,), 2, 0.0, 6.28), Refuted("two are one"),
]  # fmt: skip


def test_exchanged_blocks_take_their_values_along_also_of_a_simplex(space, rng):
    with float64():
        x = space.sample_prior(rng, 20)
        order = np.argsort(rng.random((20, 3)), axis=1)
        before, after = space.values_at(x), space.values_at(exchanged(space, x, BLOCKS, order))
        for name in ("m", "w"):
            np.testing.assert_allclose(after[name], np.take_along_axis(before[name], order, axis=1), rtol=1e-9)
        np.testing.assert_allclose(after["w"].sum(axis=1), 1.0)
        assert np.array_equal(before["h"], after["h"])


def test_two_circles_with_other_cuts_exchange_values_and_not_coordinates(rng):
    one = Space({"h1": dist.Uniform(0, 1), "h2": dist.Uniform(0, 1)})
    space = Space({name: turned(prior, cut) for (name, prior), cut in zip(one.priors.items(), (0.2, 0.7), strict=True)})
    with float64():
        x = one.sample_prior(rng, 10)
        pair = Exchange(((("h1", ()),), (("h2", ()),)))
        before, after = space.values_at(x), space.values_at(exchanged(space, x, pair, np.tile([1, 0], (10, 1))))
    np.testing.assert_allclose([after["h1"], after["h2"]], [before["h2"], before["h1"]], rtol=1e-9)


@pytest.mark.parametrize(
    "symmetry", [BLOCKS, Reflection((("a", ()), ("m", (2,))), (1.0, 0.0)), Circle("h", (0.0,), 3, 0.0, 2 * np.pi)]
)
def test_images_have_the_prior_of_their_point_and_are_others(space, rng, symmetry):
    with float64():
        x = space.sample_prior(rng, 20)
        assert (
            keeps_prior(space, x, lambda x: moved(space, x, symmetry, np.random.default_rng(0)))
            or symmetry.__class__ is Circle
        )
        assert np.all(np.any(moved(space, x, symmetry, rng) != x, axis=1))


def test_priors_of_another_centre_or_another_scale_do_not_keep_their_density(rng):
    """Of priors through their quantiles all coordinates are N(0, 1), whatever values they stand for."""
    from scipy import stats

    with float64():
        near = Space({"a": dist.Normal(0, 1), "b": dist.Normal(0, 1.001)})
        pair = Exchange(((("a", ()),), (("b", ()),)))
        assert not exchanges_prior(near, near.sample_prior(rng, 4), pair)
        far = Space({"a": stats.uniform(0, 1), "b": stats.uniform(0, 2)})
        turn = Space({name: prior.with_gaussian_tails() for name, prior in far.priors.items()})
        assert not exchanges_prior(turn, turn.sample_prior(rng, 4), pair)
        alike = Space({"a": dist.Normal(0, 1), "b": dist.Normal(0, 1)})
        assert exchanges_prior(alike, alike.sample_prior(rng, 4), pair)


def test_equal_to_rounding_is_no_more_than_that():
    assert np.array_equal(
        same(np.array([-1e3 - 1e-9, -1e3 - 1e-4, -np.inf]), np.array([-1e3, -1e3, -np.inf])), [True, False, True]
    )


@pytest.mark.parametrize("symmetry", ALL, ids=lambda s: type(s).__name__)
def test_files_tell_all_of_a_symmetry(symmetry):
    import json

    row = json.loads(json.dumps(as_data(symmetry)))
    assert from_data(row) == symmetry and str(from_data(row)) == str(symmetry)


def test_a_canonical_form_comes_back_from_the_model():
    form = Canonical(dict, 6)
    assert from_data(as_data(form), form) is form
    assert isinstance(from_data(as_data(form), None), Refuted)


@pytest.mark.parametrize(("form", "images"), [(None, 2), (dict, 1), (dict, True), (dict, 2.0)])
def test_a_canonical_form_is_a_function_and_a_number(form, images):
    with pytest.raises(ValueError, match="number of images"):
        Canonical(form, images)


def test_words():
    assert str(BLOCKS._replace(by=0)) == (
        "(m[0], w[0]) and (m[1], w[1]) and (m[2], w[2]) are exchangeable: labelled by increasing (m[0], m[1], m[2])"
    )
    assert "w being reflected" in str(Exchange(((("a", ()),), (("b", ()),)), -1, (("w", ()),), (0.0,)))
