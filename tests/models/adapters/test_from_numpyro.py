"""NumPyro models: priors and likelihood told apart, whatever the model does; what cannot be told apart is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
from numpyro.infer.util import potential_energy

from supermodel.errors import SupermodelError
from supermodel.models.adapters.from_log_density import measure_mass
from supermodel.models.adapters.from_numpyro import from_numpyro
from supermodel.models.joint_space import JointSpace
from supermodel.results.rescaling import log_density, rescaled

Y = np.array([0.3, -1.2, 2.2, 0.7])


def hierarchy(y):
    mu = numpyro.sample("mu", dist.Normal(0, 2))
    tau = numpyro.sample("tau", dist.HalfNormal(1.5))
    with numpyro.plate("groups", len(y)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(theta, 0.5), obs=y)


def moving_bounds(y):
    """The support of one site depends on another: a bijection taken once would be wrong."""
    low = numpyro.sample("low", dist.Normal(0, 1))
    width = numpyro.sample("width", dist.Gamma(2, 1))
    inside = numpyro.sample("inside", dist.Uniform(low, low + width))
    share = numpyro.sample("share", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))
    numpyro.deterministic("twice", 2 * inside)
    with numpyro.handlers.mask(mask=np.array([True, True, False, True])):
        numpyro.sample("y", dist.Normal(inside + share[0], 1 + width), obs=y)


@pytest.mark.parametrize("model", [hierarchy, moving_bounds])
def test_the_parts_add_up_to_numpyros_own_density(model, rng):
    ours = from_numpyro(model, Y)
    assert isinstance(ours.space, JointSpace)
    shapes = {name: (site.size,) if site.shape else () for name, site in ours.priors.items()}

    @jax.jit  # once, and not each small step by itself
    def both(point):
        params = {name: jnp.reshape(point[s], shapes[name]) for name, s in ours.space.slices.items()}
        values = ours.space.constrain(point)
        parts = ours.space.log_prior(point) + ours.log_likelihood(values)
        return parts, -potential_energy(model, (Y,), {}, params), values

    for point in ours.space.sample_prior(rng, 5):
        parts, whole, values = both(point)
        assert float(parts) == pytest.approx(float(whole), abs=1e-9)
        np.testing.assert_allclose(ours.space.unconstrain(values), point, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("model", [hierarchy, moving_bounds])
def test_joint_priors_are_normalised_and_drawn_from(model):
    """Bridge sampling finds the mass 1, and the same with and without the sampler's draws."""
    mass = measure_mass(from_numpyro(model, Y).space, 4000)
    assert abs(mass.bridge) < 5 * mass.bridge_error and mass.bridge_error < 0.1
    assert abs(mass.alone - mass.bridge) < 5 * np.hypot(mass.alone_error, mass.bridge_error)


def test_packing_in_another_order_changes_no_density(rng):
    space = from_numpyro(moving_bounds, Y).space
    other = space.reordered(["share", "inside", "low", "width"]).reordered(["inside", "share", "width", "low"])
    point = space.sample_prior(rng, 2)[0]
    moved = np.concatenate([point[space.slices[name]] for name in other.names])
    assert float(other.log_prior(moved)) == pytest.approx(float(space.log_prior(point)), abs=1e-12)
    for name, value in space.constrain(point).items():
        np.testing.assert_allclose(other.constrain(moved)[name], value)
    np.testing.assert_allclose(other.unconstrain(space.constrain(point)), moved, atol=1e-8)
    seeded = [s.sample_prior(np.random.default_rng(3), 2) for s in (space, other)]
    np.testing.assert_allclose(seeded[1][:, other.slices["share"]], seeded[0][:, space.slices["share"]])
    np.testing.assert_allclose(other.values_at(moved[None])["low"], space.values_at(point[None])["low"])
    assert other.log_prior_at(moved[None])[0] == pytest.approx(float(space.log_prior(point)))


def test_independent_sites_keep_priors_of_their_own():
    def model(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        with numpyro.plate("n", 3):
            b = numpyro.sample("b", dist.HalfNormal(2))
        numpyro.sample("y", dist.Normal(a, b.sum()), obs=y)

    ours = from_numpyro(model, Y)
    assert not isinstance(ours.space, JointSpace)
    assert {name: prior.description for name, prior in ours.priors.items()} == {
        "a": "Normal(0, 1)",
        "b": "HalfNormal(2) × 3",
    }


def test_sites_that_depend_on_no_other_can_be_changed_alone():
    """Their priors are known by themselves also where others are nested in them; the others say why not."""
    priors = from_numpyro(hierarchy, Y).priors
    assert (priors["mu"].description, priors["tau"].description) == ("Normal(0, 2)", "HalfNormal(1.5)")
    values = np.array([0.3, -1.0])
    np.testing.assert_allclose(log_density(priors["mu"].alone, values), scipy.stats.norm.logpdf(values, 0, 2))
    assert rescaled("mu", priors["mu"].alone, 3.0).description == "Normal(0, 6)"
    assert priors["theta"].alone is None
    for ask in (lambda p: rescaled("theta", p, 2.0), lambda p: log_density(p, values)):
        with pytest.raises(SupermodelError, match="belongs to a joint prior.*compare again"):
            ask(priors["theta"])


def test_gradients_exist_and_compile():
    ours = from_numpyro(hierarchy, Y)
    point = ours.space.sample_prior(np.random.default_rng(0), 1)[0]
    gradient = jax.jit(jax.grad(lambda x: ours.space.log_prior(x) + ours.log_likelihood(ours.space.constrain(x))))(
        point
    )
    assert np.all(np.isfinite(gradient))


def refused(change):
    def model(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        change(a, y)
        numpyro.sample("y", dist.Normal(a, 1), obs=y)

    return model


REFUSED = {
    "factor": (lambda a, y: numpyro.factor("penalty", -(a**2)), "factor 'penalty'"),
    "param": (lambda a, y: numpyro.param("p", 1.0), "`numpyro.param` 'p'"),
    "discrete": (lambda a, y: numpyro.sample("k", dist.Bernoulli(0.5)), "'k' is discrete"),
    "improper": (
        lambda a, y: numpyro.sample("f", dist.ImproperUniform(dist.constraints.real, (), ())),
        "improper prior",
    ),
    "masked prior": (lambda a, y: numpyro.sample("m", dist.Normal(0, 1).mask(False)), "not a normalised"),
    "point mass": (lambda a, y: numpyro.sample("d", dist.Delta(1.0)), "point mass"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_neither_prior_nor_likelihood_is_refused(case):
    change, part = REFUSED[case]
    with pytest.raises(SupermodelError, match=part):
        from_numpyro(refused(change), Y)


def test_other_refusals():
    with pytest.raises(SupermodelError, match="no observed site"):
        from_numpyro(lambda: numpyro.sample("a", dist.Normal(0, 1)))
    with pytest.raises(SupermodelError, match="NumPyro model"):
        from_numpyro(3)

    def scaled(y):
        with numpyro.handlers.scale(scale=0.5):
            a = numpyro.sample("a", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(a, 1), obs=y)

    def subsampled(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        with numpyro.plate("n", len(y), subsample_size=2) as rows:
            numpyro.sample("y", dist.Normal(a, 1), obs=y[rows])

    with pytest.raises(SupermodelError, match="scaled"):
        from_numpyro(scaled, Y)
    with pytest.raises(SupermodelError, match="takes 2 of 4 data at random"):
        from_numpyro(subsampled, jnp.asarray(Y))
