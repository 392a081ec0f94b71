"""The fingerprint of the data changes with the data, wherever models hold them, and with nothing else."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from made_result import made_result
from supermodel.results.held import NONE, fingerprint_of_data, held_by

Y = np.array([0.1, 0.4, -0.3])
PRIORS = {"level": dist.Normal(0, 1)}
HERE = Y  # what the likelihood of `by_global` reads


def ln(y, level):
    return -0.5 * jnp.sum((y - level) ** 2)


class Survey:
    def __init__(self, y):
        self.y, self.calls = y, 0

    def log_likelihood(self, p):
        self.calls += 1
        return ln(self.y, p["level"])

    def __call__(self, p):
        return self.log_likelihood(p)


def by_closure(y):
    return sm.Model(PRIORS, lambda p: ln(y, p["level"]))


def by_inner_function(y):
    def model(level):
        return ln(y, level)

    return sm.Model(PRIORS, lambda p: model(p["level"]))


def by_global(y):
    globals()["HERE"] = y
    return sm.Model(PRIORS, lambda p: sum([ln(HERE, p["level"]) for _ in range(1)]))


def by_default(y):
    def log_likelihood(p, y=y):
        return ln(y, p["level"])

    return sm.Model(PRIORS, lambda p: log_likelihood(p))


def by_list(y):
    each = y.tolist()
    return sm.Model(PRIORS, lambda p: ln(jnp.asarray(each), p["level"]))


def by_noise(y):
    return sm.Model(PRIORS, predict=lambda p: p["level"], noise=sm.Gaussian(np.exp(y)))


def by_distribution(y):
    held = dist.Normal(y, 1.0)
    return sm.Model(PRIORS, lambda p: held.log_prob(p["level"]).sum())


def by_numpyro(y):
    def model(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("level", dist.Normal(0, 1)), 1.0), obs=y)

    return sm.from_numpyro(model, y)


def by_covariate_of_numpyro(x):
    def model(x, y):
        numpyro.sample("y", dist.Normal(x * numpyro.sample("level", dist.Normal(0, 1)), 1.0), obs=y)

    return sm.from_numpyro(model, x, y=Y)


def by_unit_cube(y):
    return sm.from_unit_cube(lambda u: stats.norm.logpdf(y, u[0]).sum(), lambda u: u, ["level"])


def by_pymc(y):
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("level"), observed=y)
    return sm.from_pymc(model)


def by_covariate_of_pymc(x):
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        pm.Normal("y", x * pm.Normal("level"), observed=Y)
    return sm.from_pymc(model)


def by_bilby(y):
    bilby = pytest.importorskip("bilby")
    likelihood = bilby.likelihood.GaussianLikelihood(np.arange(3.0), y, lambda x, level: level + 0 * x, 1.0)
    return sm.from_bilby(likelihood, {"level": bilby.prior.Normal(0, 1, "level")})


WAYS = [
    *(by_closure, by_inner_function, by_global, by_default, by_list, by_noise, by_distribution, by_numpyro),
    *(by_covariate_of_numpyro, by_unit_cube, by_pymc, by_covariate_of_pymc, by_bilby),
    lambda y: sm.Model(PRIORS, Survey(y).log_likelihood),
    lambda y: sm.Model(PRIORS, Survey(y)),
    lambda y: sm.Model(PRIORS, functools.partial(lambda y, p: ln(y, p["level"]), y)),
    lambda y: sm.Model(PRIORS, jax.jit(lambda p: ln(y, p["level"]))),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_other_data_have_another_fingerprint(way):
    here, same, other = (fingerprint_of_data(None, [way(y)]) for y in (Y, Y.copy(), Y + 1e-9))
    assert here == same != other and NONE not in (here, other)


def test_names_and_numbers_of_models_do_not_matter():
    assert fingerprint_of_data(None, [by_closure(Y), by_default(Y)]) == fingerprint_of_data(None, [by_closure(Y)])


def test_data_that_are_given_count_as_before_and_together_with_those_that_are_held():
    given = sm.Model(PRIORS, lambda p, data: ln(data["y"], p["level"]))
    assert fingerprint_of_data({"y": Y}, [given]) == sm.results.fingerprint.fingerprint({"y": Y})
    both = [fingerprint_of_data({"y": a}, [by_closure(b)]) for a, b in ((Y, Y), (Y + 1, Y), (Y, Y + 1))]
    assert len(set(both)) == 3


def test_where_no_data_are_seen_it_says_so():
    assert list(held_by(sm.Model(PRIORS, lambda p: -0.5 * (p["level"] - 0.3) ** 2))) == []
    result = dataclasses.replace(
        made_result(), models={"a": sm.Model(PRIORS, lambda p: 0.0)}, data=None, fingerprints={}
    )
    assert result.fingerprints["data"] == NONE and "data none" in str(result)


def test_what_changes_from_call_to_call_is_no_data():
    survey = Survey(Y)
    model = sm.Model(PRIORS, survey)
    before = fingerprint_of_data(None, [model])
    model.log_likelihood({"level": 0.1})
    assert survey.calls == 1 and fingerprint_of_data(None, [model]) == before
