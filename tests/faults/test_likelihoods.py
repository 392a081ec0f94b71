"""Likelihoods that write into what they are given: the sampler's points, and with them the answer, stay what they are."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpyro.distributions as dist
import pytest

import supermodel as sm
from supermodel.models.joint import Joint

CENTRE, WIDTH = np.array([0.3, -0.2]), 0.1
POINTS = np.random.default_rng(5).normal(0.0, 0.5, (40, 2))
EXPECTED = -0.5 * np.sum(((POINTS - CENTRE) / WIDTH) ** 2, axis=1)


def in_place(p, data=None):
    """A Gaussian, with work in place and the dict emptied afterwards."""
    x = p["x"]
    x -= CENTRE
    x /= WIDTH
    value = -0.5 * np.sum(np.asarray(x) ** 2, axis=-1)
    x[...] = 99.0
    p.clear()
    return value


def in_place_pair(p, data=None):
    """The same of two scalars that come as arrays of many values."""
    value = 0.0
    for name, centre in zip("ab", CENTRE, strict=True):
        p[name] -= centre
        p[name] /= WIDTH
        value = value - 0.5 * np.asarray(p[name]) ** 2
    p.clear()
    return value


def in_place_array(theta):
    theta -= CENTRE
    theta /= WIDTH
    value = -0.5 * np.sum(np.asarray(theta) ** 2, axis=-1)
    theta[...] = 99.0
    return value


def in_place_prior(p):
    x = np.asarray(p["x"])
    value = np.sum(-0.5 * x**2 - 0.5 * np.log(2 * np.pi), axis=-1)
    x[...] = 99.0
    p.clear()
    return value


def draws(rng, n):
    return {"x": rng.standard_normal((n, 2))}


NORMAL = dist.Normal(0, 1).expand([2])
PAIR = {"a": dist.Normal(0, 1), "b": dist.Normal(0, 1)}


def by_bilby():
    bilby = pytest.importorskip("bilby")

    class Likelihood(bilby.Likelihood):
        def log_likelihood(self, parameters):
            value = in_place_array(np.array([parameters["a"], parameters["b"]]))
            parameters.clear()
            return value

    return sm.from_bilby(Likelihood(), {name: bilby.core.prior.Gaussian(0, 1, name) for name in "ab"})


def normal_from_cube(u):
    from scipy.special import ndtri

    theta = ndtri(np.asarray(u))
    u[...] = 0.5
    return theta


PATHS = {
    "one by one": lambda: sm.Model({"x": NORMAL}, in_place),
    "vectorized": lambda: sm.Model({"x": NORMAL}, in_place, vectorized=True),
    "scalars, vectorized": lambda: sm.Model(PAIR, in_place_pair, vectorized=True),
    "a map onto a support": lambda: sm.Model({"x": dist.MultivariateNormal(np.zeros(2), np.eye(2))}, in_place),
    "from_log_density": lambda: sm.from_log_density(in_place_prior, in_place, draws),
    "from_log_density, vectorized": lambda: sm.from_log_density(in_place_prior, in_place, draws, vectorized=True),
    "from_unit_cube": lambda: sm.from_unit_cube(in_place_array, normal_from_cube, ["a", "b"]),
    "from_unit_cube, vectorized": lambda: sm.from_unit_cube(
        in_place_array, normal_from_cube, ["a", "b"], vectorized=True
    ),
    "from_bilby": by_bilby,
    "from_chains": lambda: sm.from_chains(sm.Model({"x": NORMAL}, in_place), draws(np.random.default_rng(1), 50)),
}


@pytest.mark.parametrize("path", PATHS)
def test_work_in_place_changes_no_point_and_no_value(path):
    joint = Joint("m", PATHS[path]())
    assert not joint.is_traceable
    given = POINTS.copy()
    for _ in range(2):  # the second call sees what the first has left
        np.testing.assert_allclose(joint.log_likelihood_at(given), EXPECTED, rtol=1e-9)
        prior = joint.space.log_prior_at(given)
        np.testing.assert_allclose(prior, -0.5 * np.sum(POINTS**2, axis=1) - np.log(2 * np.pi), rtol=1e-9)
        np.testing.assert_array_equal(given, POINTS)


class InLine:
    """An executor that hands over the very objects."""

    def map(self, function, items):
        return [function(item) for item in items]


def test_work_in_place_on_an_executor():
    """Processes are given copies by their nature; these are not."""
    joint, given = Joint("m", sm.Model({"x": NORMAL}, in_place)), POINTS.copy()
    with ThreadPoolExecutor(2) as threads:
        for executor in (InLine(), threads):
            np.testing.assert_allclose(joint.log_likelihood_at(given, executor), EXPECTED, rtol=1e-9)
            np.testing.assert_array_equal(given, POINTS)


def test_a_prediction_that_works_in_place_on_its_parameters():
    x, y = np.linspace(0, 1, 3), np.array([0.1, 0.5, 0.8])

    def predict(p, x):
        c = p["c"]
        c *= 2.0
        p.clear()
        return np.array([float(c[0]), float(c[0]), float(c[1])])

    model = sm.Model({"c": NORMAL}, predict=predict, noise=sm.Gaussian(lambda known: 1.0 + known["c"][0] ** 2))
    found = Joint("m", model, {"x": x, "y": y}).log_likelihood_at(POINTS)
    mean, sigma = 2 * POINTS[:, [0, 0, 1]], 1.0 + POINTS[:, :1] ** 2
    expected = np.sum(-0.5 * ((y - mean) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def clean(p, data=None):
    return -0.5 * float(np.sum(((np.asarray(p["x"]) - CENTRE) / WIDTH) ** 2))


LIMITS = {"max_evaluations": 1000, "explore": "quick", "progress": False}


def test_evidence_and_comparison_to_the_bit():
    """Twins that differ in nothing but their manners give the same bits; the parameters are shared, and x alone."""
    polite, rude = (sm.Model({"x": NORMAL}, function) for function in (clean, in_place))
    assert sm.evidence(rude, **LIMITS).value == sm.evidence(polite, **LIMITS).value
    other = sm.Model({"x": NORMAL, "s": dist.Normal(0, 1)}, lambda p: clean(p) - 0.5 * float(p["s"]) ** 2)
    answers = [
        sm.compare({"m": model, "other": other}, **LIMITS).log_bayes_factor("m", "other") for model in (polite, rude)
    ]
    assert answers[0] == answers[1] and np.isfinite(answers[0].value)


def test_data_that_change_in_the_run_are_refused():
    """Nothing can be given back to a likelihood whose data are gone: the columns are named."""

    def predict(p, x):
        x *= float(p["a"])
        return x

    data = {"x": np.linspace(0.5, 1, 5), "y": np.ones(5), "sigma": 0.3}
    model = sm.Model({"a": dist.Normal(0, 1)}, predict=predict)
    with pytest.raises(sm.SupermodelError, match=r"\['x'\].*in place.*copy"):
        sm.evidence(model, data, **LIMITS)
