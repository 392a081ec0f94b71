"""bilby likelihoods and priors: every kind of prior, constants, constraints."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from supermodel.comparing import compare
from supermodel.errors import SupermodelError
from supermodel.models.adapters.from_bilby import from_bilby
from supermodel.models.joint import Joint
from supermodel.models.joint_space import JointSpace
from supermodel.models.model import Model

bilby = pytest.importorskip("bilby")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
prior = bilby.core.prior


class Quadratic(bilby.Likelihood):
    def log_likelihood(self, parameters):
        return -0.5 * parameters["a"] ** 2 - parameters["b"]


def old():
    """The form before 2.7: the parameters are an attribute."""

    class Old(bilby.Likelihood):
        def __init__(self):
            super().__init__(parameters={"a": None, "b": None})

        def log_likelihood(self):
            return -0.5 * self.parameters["a"] ** 2 - self.parameters["b"]

    return Old()


@pytest.mark.parametrize("likelihood", [Quadratic, old])
def test_values_and_constants_reach_the_likelihood(likelihood, rng):
    model = from_bilby(likelihood(), {"a": prior.Uniform(-1, 1), "b": 0.25})
    assert model.space.names == ("a",)
    points = model.space.sample_prior(rng, 4)
    values = model.space.values_at(points)["a"]
    np.testing.assert_allclose(Joint("m", model).log_likelihood_at(points), -0.5 * values**2 - 0.25)
    assert model.priors["a"].description == "Uniform(-1, 1)"


@pytest.mark.parametrize(
    ("given", "law"),
    [
        (prior.Sine(0, np.pi), lambda v: (1 - np.cos(v)) / 2),
        (prior.PowerLaw(2, 1, 3), lambda v: (v**3 - 1) / 26),
        (prior.LogUniform(0.1, 10), lambda v: np.log(v / 0.1) / np.log(100)),
        (prior.HalfNormal(2), stats.halfnorm(scale=2).cdf),
    ],
    ids=lambda g: type(g).__name__,
)
def test_priors_are_those_of_bilby(given, law, rng):
    model = from_bilby(Quadratic(), {"a": given, "b": 0.0})
    values = model.space.values_at(model.space.sample_prior(rng, 3000))["a"]
    assert stats.kstest(values, law).pvalue > 1e-6
    assert float(model.space.unconstrain({"a": values[0]})[0]) == pytest.approx(
        stats.norm.ppf(law(values[0])), abs=1e-6
    )


def test_priors_that_depend_on_each_other(rng):
    def bound(reference, a):
        return {"minimum": 0.0, "maximum": a}

    priors = prior.ConditionalPriorDict(
        {"a": prior.Uniform(1, 2), "b": prior.ConditionalUniform(bound, minimum=0, maximum=1)}
    )
    model = from_bilby(Quadratic(), priors)
    assert isinstance(model.space, JointSpace)
    values = model.space.values_at(model.space.sample_prior(rng, 2000))
    assert stats.kstest(values["b"] / values["a"], "uniform").pvalue > 1e-6


def test_constraints_are_normalised():
    """a, b uniform on the unit square with a + b < 1: the mass 1/2 is divided out, so a flat likelihood has Z = 1."""

    class Flat(bilby.Likelihood):
        def log_likelihood(self, parameters):
            return 0.0

    def convert(parameters):
        return {**parameters, "total": parameters["a"] + parameters["b"]}

    priors = prior.PriorDict(
        {"a": prior.Uniform(0, 1), "b": prior.Uniform(0, 1), "total": prior.Constraint(0, 1)},
        conversion_function=convert,
    )
    model = from_bilby(Flat(), priors)
    assert float(model.log_likelihood({"a": 0.2, "b": 0.3})) == pytest.approx(math.log(2), abs=0.02)
    assert model.log_likelihood({"a": 0.9, "b": 0.3}) == -math.inf
    priors["total"] = prior.Constraint(0, 0.001)
    with pytest.raises(SupermodelError, match="constraint_draws"):
        from_bilby(Flat(), priors)


def test_bilbys_own_likelihood_and_an_exact_evidence():
    """y ~ N(m, 1) with m ~ N(0, 2): ln Z in closed form."""
    y = np.array([0.3, 1.2, -0.4, 0.9])
    likelihood = bilby.core.likelihood.GaussianLikelihood(np.zeros(4), y, lambda x, m: m + 0 * x, sigma=1.0)
    model = from_bilby(likelihood, {"m": prior.Normal(0, 2)})
    zero = Model({}, lambda p: stats.norm.logpdf(y).sum())
    result = compare({"mean": model, "zero": zero}, seed=0)
    exact = stats.multivariate_normal.logpdf(y, cov=np.eye(4) + 4.0) - stats.norm.logpdf(y).sum()
    found = result.log_bayes_factor("mean", "zero")
    assert abs(found.value - exact) < 5 * found.error + 1e-6


def test_refusals():
    with pytest.raises(SupermodelError, match="bilby Likelihood"):
        from_bilby(3, {})
    with pytest.raises(SupermodelError, match="fails at the centre of its prior"):
        from_bilby(Quadratic(), {"a": prior.Uniform(0, 1)})


@pytest.mark.skipif(not hasattr(bilby.core.likelihood, "PARAMETERS_AS_STATE"), reason="bilby does not warn yet")
def test_likelihoods_of_bilby_are_called_without_a_warning_each(rng):
    home = bilby.core.likelihood
    gaussian = home.GaussianLikelihood(np.arange(3.0), np.ones(3), lambda x, a: a + 0 * x)
    values = {"a": 0.3, "sigma": 1.2}
    with pytest.warns(FutureWarning):  # what bilby does by itself
        gaussian.log_likelihood(values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = from_bilby(gaussian, {"a": prior.Normal(0, 1), "sigma": prior.HalfGaussian(1)})
        assert model.log_likelihood(values) == pytest.approx(stats.norm.logpdf(1.0, 0.3, 1.2) * 3)
    assert home.PARAMETERS_AS_STATE == "WARN"
