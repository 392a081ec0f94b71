"""A stand-in with the interface of an enterprise PTA: its priors, its likelihood, and what is refused."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, stats

import supermodel as sm
from supermodel.errors import SupermodelError
from supermodel.models.adapters.from_enterprise import LinearExp


class Parameter:
    """As enterprise makes them: a class for each kind, with `prior.func_kwargs`, `get_logpdf` and `size`."""

    def __init__(self, name, size=None, **arguments):
        self.name, self.size, self.type = name, size, type(self).__name__.lower()
        self.prior = SimpleNamespace(func_kwargs=arguments)

    def get_logpdf(self, value):
        with np.errstate(divide="ignore"):
            return float(np.sum(np.log(self.pdf(np.asarray(value), **self.prior.func_kwargs))))


class Uniform(Parameter):
    def pdf(self, x, pmin, pmax):
        return ((x >= pmin) & (x <= pmax)) / (np.asarray(pmax) - pmin)


class Normal(Parameter):
    def pdf(self, x, mu, sigma):
        return np.exp(-0.5 * (x - mu) ** 2 / sigma**2) / np.sqrt(2 * np.pi * sigma**2)


class LinearExpParameter(Parameter):
    def pdf(self, x, pmin, pmax):
        return ((pmin <= x) & (x <= pmax)) * np.log(10) * 10**x / (10**pmax - 10**pmin)


class UserParameter(Parameter):
    def pdf(self, x, **_):
        return np.exp(-x)


def linear_exp(name, **arguments):
    parameter = LinearExpParameter(name, **arguments)
    parameter.type = "linearexp"
    return parameter


class Array:
    """`get_lnlikelihood` of an array in the order of `param_names`, or of a dict, as enterprise has it."""

    def __init__(self, parameters, log_likelihood):
        self.params, self.log_likelihood = parameters, log_likelihood

    @property
    def param_names(self):
        each = ([f"{p.name}_{i}" for i in range(p.size)] if p.size else [p.name] for p in self.params)
        return [name for names in each for name in names]

    def get_lnlikelihood(self, xs):
        values = xs if isinstance(xs, dict) else dict(zip(self.param_names, xs, strict=True))
        return self.log_likelihood(values)


def red_noise(values):
    return -0.5 * ((values["log10_A"] + 14.3) / 0.2) ** 2 - 0.5 * ((values["gamma"] - 4.0) / 0.5) ** 2


def test_the_evidence_of_an_array_is_that_of_the_integral():
    array = Array([Uniform("gamma", pmin=0, pmax=7), linear_exp("log10_A", pmin=-16, pmax=-13)], red_noise)
    model = sm.from_enterprise(array)
    assert str(model) == "Model(gamma ~ Uniform(0, 7), log10_A ~ LinearExp(-16, -13))"
    found = sm.evidence(model, seed=0, explore="quick", progress=False)
    first = integrate.quad(lambda g: math.exp(-0.5 * ((g - 4) / 0.5) ** 2) / 7, 0, 7)[0]
    scale = 10.0**-13 - 10.0**-16
    second = integrate.quad(
        lambda a: math.exp(-0.5 * ((a + 14.3) / 0.2) ** 2) * math.log(10) * 10**a / scale, -16, -13, points=[-14.3]
    )[0]
    assert abs(found.value - math.log(first * second)) < 5 * found.error + 1e-6


def test_vectors_are_numbers_with_enterprise_s_names():
    array = Array([Normal("b", size=3, mu=np.array([0.0, 1.0, 2.0]), sigma=0.5)], lambda v: -sum(v.values()))
    model = sm.from_enterprise(array)
    assert model.space.names == ("b_0", "b_1", "b_2")
    assert model.priors["b_2"].description == "Normal(2, 0.5)"
    assert model.log_likelihood({"b_0": 1.0, "b_1": 2.0, "b_2": 3.0}) == -6.0


def test_a_prior_of_one_s_own_is_given_by_name():
    array = Array([Uniform("gamma", pmin=0, pmax=7), UserParameter("f")], lambda v: -v["f"])
    with pytest.raises(SupermodelError, match=r"'f' is of the kind 'UserParameter'.*priors=\{'f': a distribution"):
        sm.from_enterprise(array)
    assert sm.from_enterprise(array, {"f": stats.expon()}).priors["f"].description == "Exponential(1)"
    with pytest.raises(SupermodelError, match=r"names \['gama'\].*Did you mean 'gamma'"):
        sm.from_enterprise(array, {"f": stats.expon(), "gama": stats.uniform(0, 7)})


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (Normal("x", mu=UserParameter("hyper"), sigma=1.0), "mu = .*not parameters of their own"),
        (Normal("x", size=2, mu=0.0, sigma=np.eye(2)), "a covariance"),
        (Uniform("x", pmin=0), "pmax = None"),
    ],
)
def test_what_depends_on_more_than_numbers_is_refused(parameter, words):
    with pytest.raises(SupermodelError, match=words):
        sm.from_enterprise(Array([parameter], lambda v: 0.0))


def test_a_name_that_does_not_fit_the_density_is_noticed():
    liar = linear_exp("x", pmin=-2, pmax=0)
    liar.type = "uniform"
    with pytest.raises(SupermodelError, match="calls itself 'uniform', but its density"):
        sm.from_enterprise(Array([liar], lambda v: 0.0))
    with pytest.raises(SupermodelError, match="needs an enterprise PTA, with `params`; got dict"):
        sm.from_enterprise({})


def test_linear_exp_is_uniform_in_the_power():
    law = LinearExp(-18, -12)
    p = np.array([1e-9, 0.01, 0.5, 0.99, 1 - 1e-9])
    np.testing.assert_allclose(10 ** law.ppf(p), 1e-18 + p * (1e-12 - 1e-18), rtol=1e-9)
    np.testing.assert_allclose(law.isf(1 - p), law.ppf(p), rtol=1e-8)
    np.testing.assert_allclose(law.cdf(law.ppf(p)), p, rtol=1e-6)
    np.testing.assert_allclose(law.sf(law.ppf(p)), 1 - p, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(law.logpdf(law.ppf(0.5)), np.log(np.log(10) * 10 ** law.ppf(0.5) / (1e-12 - 1e-18)))
    assert law.logpdf(-11.0) == -np.inf
