"""PyMC models: log prior and log likelihood apart, through PyMC's own JAX graph."""

import jax
import numpy as np
import pytest

from supermodel.errors import SupermodelError
from supermodel.models.adapters.from_log_density import measure_mass
from supermodel.models.adapters.from_pymc import from_pymc

pm = pytest.importorskip("pymc")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")

Y = np.array([0.3, -1.2, 2.2, 0.7])


def hierarchy():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        tau = pm.HalfNormal("tau", 1.5)
        theta = pm.Normal("theta", mu, tau, shape=4)
        top = pm.Uniform("top", 0, tau)  # its bound depends on another variable
        pm.Dirichlet("share", np.array([1.0, 2.0, 3.0]))
        pm.Normal("y", theta + top, 0.5, observed=Y)
    return model


def test_the_parts_add_up_to_pymcs_own_density(rng):
    model = hierarchy()
    ours = from_pymc(model)
    whole = model.compile_logp()
    initial = model.initial_point()
    for point in ours.space.sample_prior(rng, 4):
        values = {
            model.rvs_to_values[v].name: point[ours.space.slices[v.name]].reshape(
                np.shape(initial[model.rvs_to_values[v].name])
            )
            for v in model.free_RVs
        }
        seen = ours.space.constrain(point)
        found = float(ours.space.log_prior(point) + ours.log_likelihood(seen))
        assert found == pytest.approx(float(whole(values)), abs=1e-8)
        np.testing.assert_allclose(
            ours.space.unconstrain({k: np.asarray(v) for k, v in seen.items()}), point, atol=1e-6
        )
    assert ours.priors["share"].shape == (3,) and ours.priors["share"].size == 2


def test_the_joint_prior_is_normalised_and_drawn_from():
    mass = measure_mass(from_pymc(hierarchy()).space, 3000)
    assert abs(mass.bridge) < 5 * mass.bridge_error and mass.bridge_error < 0.1


def change(function):
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1)
        function(a)
        pm.Normal("y", a, 1, observed=Y)
    return model


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda a: pm.Potential("penalty", -(a**2)), "potentials \\['penalty'\\]"),
        (lambda a: pm.Bernoulli("k", 0.5), "\\['k'\\] are discrete"),
        (lambda a: pm.Flat("f"), "'f' is Flat"),
        (lambda a: pm.HalfFlat("h"), "'h' is HalfFlat"),
    ],
)
def test_what_has_no_evidence_is_refused(function, part):
    with pytest.raises(SupermodelError, match=part):
        from_pymc(change(function))


def test_other_refusals():
    with pm.Model() as empty:
        pm.Normal("a", 0, 1)
    with pytest.raises(SupermodelError, match="no observed variable"):
        from_pymc(empty)
    with pytest.raises(SupermodelError, match="pymc.Model"):
        from_pymc(3)


def test_data_are_known_one_by_one_with_the_names_of_their_axes(rng):
    with pm.Model(coords={"school": ["a", "b"], "pupil": np.arange(4) + 10}) as model:
        mean = pm.Normal("mean", 0, 2, dims="school")
        pm.Normal("y", mean[np.array([0, 0, 1, 1])], 0.5, observed=Y, dims="pupil")
        pm.Poisson("n", pm.math.exp(mean[0]), observed=3)
    ours = from_pymc(model)
    values = {"mean": np.array([0.4, -0.3])}
    traced = [jax.jit(lambda v, k=k: k * ours.pointwise_log_likelihood(v, None))(values) for k in (1.0, 2.0)]
    np.testing.assert_allclose(2 * traced[0], traced[1], rtol=1e-12)  # what the first trace made, the second can use
    parts = ours.log_densities(values, None)
    assert {name: np.shape(part) for name, part in parts.items()} == {"y": (4,), "n": ()}
    whole = float(ours.log_likelihood(values))
    assert float(np.sum(ours.pointwise_log_likelihood(values, None))) == pytest.approx(whole, rel=1e-12)
    assert ours.observed.dims == {"mean": ("school",), "y": ("pupil",)}
    assert list(ours.observed.coords["school"]) == ["a", "b"]
    np.testing.assert_array_equal(ours.observed.data["y"], Y)
