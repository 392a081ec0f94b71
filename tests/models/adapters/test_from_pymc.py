"""PyMC models: log prior and log likelihood apart, through PyMC's own JAX graph."""

import jax
import numpy as np
import pytest

import supermodel as sm
from supermodel.errors import SupermodelError
from supermodel.models.adapters import pymc_priors
from supermodel.models.adapters.from_log_density import measure_mass
from supermodel.models.adapters.from_pymc import from_pymc
from supermodel.models.adapters.pymc_priors import alone, described
from supermodel.models.families import member_of
from supermodel.models.space import Space

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


FAMILIES = {
    "Normal(1, 2)": lambda: pm.Normal("v", 1, 2), "HalfNormal(2)": lambda: pm.HalfNormal("v", 2),
    "Gamma(2, 3)": lambda: pm.Gamma("v", 2, 3), "Exponential(3)": lambda: pm.Exponential("v", 3),
    "Exponential(0.7)": lambda: pm.Exponential("v", 0.7), "Beta(2, 3)": lambda: pm.Beta("v", 2, 3),
    "Uniform(-1, 2)": lambda: pm.Uniform("v", -1, 2), "LogNormal(0.1, 0.5)": lambda: pm.LogNormal("v", 0.1, 0.5),
    "StudentT(4, 1, 2)": lambda: pm.StudentT("v", nu=4, mu=1, sigma=2), "Cauchy(1, 2)": lambda: pm.Cauchy("v", 1, 2),
    "HalfCauchy(2)": lambda: pm.HalfCauchy("v", 2), "InverseGamma(3, 2)": lambda: pm.InverseGamma("v", 3, 2),
    "TruncatedNormal(0, 1, -1, 2)": lambda: pm.TruncatedNormal("v", 0, 1, lower=-1, upper=2),
    "Laplace(1, 2)": lambda: pm.Laplace("v", 1, 2), "Weibull(3, 2)": lambda: pm.Weibull("v", 2, 3),
    "Logistic(1, 2)": lambda: pm.Logistic("v", 1, 2), "Gumbel(1, 2)": lambda: pm.Gumbel("v", 1, 2),
    "Pareto(1, 2)": lambda: pm.Pareto("v", 2, 1), "HalfNormal(1.5) × (2, 3)": lambda: pm.HalfNormal("v", 1.5, shape=(2, 3)),
    "Normal([1], [2]) × 2": lambda: pm.Normal("v", 0, [1.0, 2.0]),
}  # fmt: skip


@pytest.mark.parametrize("text", FAMILIES)
def test_priors_of_known_families_are_our_own_with_their_arguments(text):
    with pm.Model() as model:
        variable = FAMILIES[text]()
    prior = alone(model, variable)
    assert prior.description == text
    if prior.shape == ():
        rescaled = member_of(prior.distribution).family.widen
        assert callable(rescaled) or text.startswith(("Beta", "TruncatedNormal"))


def test_a_twin_of_another_density_is_not_taken(monkeypatch):
    """The arguments of Weibull in their own order, which would be another density."""
    with pm.Model() as model:
        variable = pm.Weibull("v", 2, 3)
    monkeypatch.setitem(pymc_priors.TWINS, "Weibull", ("Weibull", lambda shape, scale: (shape, scale)))
    assert alone(model, variable) is None


def test_what_has_no_prior_of_its_own_is_described():
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 2)
        bound = {
            "Normal(mu, tau)": pm.Normal("a", mu, tau, shape=3), "Normal(…, 1.5)": pm.Normal("b", 2 * mu, 1.5),
            "HalfNormal(tau)": pm.HalfNormal("c", tau), "Dirichlet([3])": pm.Dirichlet("d", np.ones(3)),
        }  # fmt: skip
        pm.Normal("y", mu, 1, observed=Y)
    for text, variable in bound.items():
        assert alone(model, variable) is None and described(model, variable) == text
    with pm.Model() as cut:
        ordered = pm.distributions.transforms.ordered
        variable = pm.Normal("e", 0, 1, shape=3, transform=ordered, initval=[0, 1, 2])
        pm.Normal("y", variable[0], 1, observed=Y)
    assert alone(cut, variable) is None
    with pytest.raises(SupermodelError, match=r"\['e'\] have initial values.*Leave `initval` out"):
        from_pymc(cut)
    space = from_pymc(model).space
    assert space.priors["mu"].alone.description == "Normal(0, 1)" and space.priors["a"].alone is None
    assert space.priors["a"].description == "Normal(mu, tau)"


def test_sensitivity_to_widths_and_advice_that_works():
    """One mean under N(0, s): ln B against mean 0 has a closed form at every width, also where other priors are joint."""

    def level(width, extra):
        with pm.Model() as model:
            a = pm.Normal("a", 0, width)
            if extra:
                pm.Normal("nested", pm.Normal("top", 0, 1), 1)
            pm.Normal("y", a, 1, observed=Y)
        return from_pymc(model)

    with pm.Model() as nothing:
        pm.Normal("nested", pm.Normal("top", 0, 1), 1)
        pm.Normal("y", 0, 1, observed=Y)
    n, scales = len(Y), [0.5, 1.0, 2.0]

    def exact(s):
        return 0.5 * (Y.sum() ** 2 * s**2 / (1 + n * s**2) - np.log1p(n * s**2))

    result = sm.compare(
        {"level": level(1.0, True), "nothing": from_pymc(nothing)}, target_error=0.05, explore="quick", progress=False
    )
    found = result.sensitivity("a", scales, pair=("level", "nothing"))
    assert np.all(np.abs(found.values - [exact(s) for s in scales]) < 5 * found.errors) and np.all(found.errors < 0.2)
    assert abs(exact(0.5) - exact(2.0)) > 10 * found.errors.max()  # a prior that was not changed would be noticed
    with pytest.raises(SupermodelError, match="'nested', Normal.top, 1., belongs to a joint prior.*compare again"):
        result.sensitivity("nested", scales)
    assert isinstance(level(1.0, False).space, Space)
