"""One labelling: its prior integrates to one, in NumPy as traced, and every point has one image in it."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from supermodel.jax_scope import float64
from supermodel.models.circle import turned
from supermodel.models.folded import Folded
from supermodel.models.space import Space
from supermodel.models.symmetry import Canonical, Circle, Exchange, Reflection

FREE = 5  # standard deviations: false alarms of 1e-6

SCALARS = Space(
    {"a": dist.Normal(0, 1), "b": dist.Normal(0, 1), "h": dist.Uniform(0, 2 * np.pi), "c": dist.Normal(2, 1)}
)
SIMPLEX = Space({"m": dist.Normal(0, 2).expand([3]), "w": dist.Dirichlet(np.full(3, 2.0))})
PAIR = Exchange(((("a", ()),), (("b", ()),)), 0)
TURN = Circle("h", (1.0,), 3, 0.0, 2 * np.pi)
FOLDS = {
    "two": (SCALARS, [PAIR], 2),
    "mirror": (SCALARS, [Reflection((("c", ()), ("a", ())), (2.0, 0.0), 0)], 2),
    "turn": (SCALARS, [TURN], 3),
    "two and a turn": (SCALARS, [PAIR, TURN], 6),
    "each mirrored": (SCALARS, [PAIR, Reflection((("a", ()),), (0.0,), 0), Reflection((("b", ()),), (0.0,), 0)], 8),
    "simplex": (SIMPLEX, [Exchange(tuple((("m", (i,)), ("w", (i,))) for i in range(3)), 1)], 6),
    "canonical": (SCALARS, [Canonical(lambda p: {**p, "a": jnp.minimum(p["a"], p["b"]), "b": jnp.maximum(p["a"], p["b"])}, 2)], 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDS)
def test_the_prior_of_one_labelling_is_normalised_and_its_copies_fill_the_space(name, rng):
    space, symmetries, copies = FOLDS[name]
    folded, n = Folded(space, symmetries), 4000
    assert folded.copies == pytest.approx(copies)
    with float64():
        x = folded.sample_prior(rng, n)
        assert np.all(np.isfinite(folded.log_prior_at(x)))  # each draw has its image
        np.testing.assert_allclose(folded.in_order(x[:50]), x[:50], rtol=1e-6)
        # Uniform in a box about most of the prior of the whole space, as importance draws: the integral is 1.
        wide = 1.6 * rng.standard_normal((n, space.dimension)) + np.median(x, axis=0)
        proposal = -0.5 * np.sum(((wide - np.median(x, axis=0)) / 1.6) ** 2 + np.log(2 * np.pi * 1.6**2), axis=1)
        weight = np.exp(folded.log_prior_at(wide) - proposal)
        assert abs(weight.mean() - 1) < FREE * weight.std() / np.sqrt(n)
        assert not abs(weight.mean() / copies - 1) < FREE * weight.std() / np.sqrt(n)  # the control: without its copies
        traced = np.asarray(jax.vmap(folded.log_prior)(wide[:200]))
        np.testing.assert_allclose(traced, folded.log_prior_at(wide[:200]), rtol=1e-5)


@pytest.mark.parametrize("name", FOLDS)
def test_draws_are_those_of_the_prior_they_came_from(name, rng):
    """The mean of a symmetric function is that of the whole prior."""
    space, symmetries, _ = FOLDS[name]
    with float64():
        n = 4000
        one, whole = (each.values_at(each.sample_prior(rng, n)) for each in (Folded(space, symmetries), space))
        for values in (one, whole):
            values["f"] = np.sum(
                [np.sum(v.reshape(n, -1) ** 2, axis=1) for k, v in values.items() if k not in ("h", "c")], axis=0
            )
        off = one["f"].mean() - whole["f"].mean()
        assert abs(off) < FREE * np.hypot(one["f"].std(), whole["f"].std()) / np.sqrt(n)


def test_points_of_the_whole_space_come_and_go(rng):
    space = SCALARS
    folded = Folded(space, [PAIR, TURN._replace(parts=1)])
    with float64():
        x = space.sample_prior(rng, 30)
        there = folded.points_from(space, x)
        before, after = space.values_at(x), folded.values_at(there)
        np.testing.assert_allclose(np.minimum(before["a"], before["b"]), after["a"], rtol=1e-9)
        np.testing.assert_allclose(before["h"], after["h"], rtol=1e-6)
        back = space.values_at(folded.points_in(space, there))
        np.testing.assert_allclose(back["h"], before["h"], rtol=1e-6)


def test_any_image_is_any_of_them(rng):
    folded = Folded(SCALARS, [PAIR])
    with float64():
        x = folded.anywhere(rng, folded.sample_prior(rng, 4000))
    assert abs(np.mean(x[:, 0] > x[:, 1]) - 0.5) < FREE * 0.5 / np.sqrt(4000)


@pytest.mark.parametrize("family", [dist.Uniform(-np.pi, np.pi), dist.VonMises(0.5, 2.0)])
def test_a_circle_cut_elsewhere_has_the_same_prior(family, rng):
    base = Space({"h": family}).priors["h"]
    cut = turned(base, 2.0)
    with float64():
        u = np.linspace(-30, 30, 20_001)[:, None]
        total = np.sum(np.exp(cut.log_density_at(u))) * (u[1, 0] - u[0, 0])
        assert total == pytest.approx(1.0, abs=1e-4)
        draws = cut.values_at(cut.sample(rng, 4000))
        again = base.values_at(base.sample(rng, 4000))
        for f in (np.cos, np.sin):
            off = f(draws).mean() - f(again).mean()
            assert abs(off) < FREE * np.hypot(f(draws).std(), f(again).std()) / np.sqrt(4000)
        np.testing.assert_allclose(cut.values_at(cut.points_at(draws[:20])), draws[:20], rtol=1e-6)
        np.testing.assert_allclose(
            np.asarray(jax.vmap(cut.constrain)(u[::500])).ravel(), cut.values_at(u[::500]).ravel(), rtol=1e-9
        )
