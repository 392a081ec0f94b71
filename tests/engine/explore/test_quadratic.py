"""A quadratic through all points: exact where ln J is one, on its way from far off, and honest where it does not fit."""

import numpy as np
import pytest

import supermodel as sm
from engine_problems import Box, Conjugate, meter, two_modes
from supermodel.engine.explore.cloud import Cloud, Prior
from supermodel.engine.explore.quadratic import WIDTH, best_share, by_quadratic, coefficients, fitted_quadratic
from supermodel.models.joint import Joint


def cloud_of(joint, n, seed=0):
    counter = meter()
    cloud = Cloud(joint, lambda x: counter.likelihood(joint, x))
    cloud.grow(Prior(joint), n, np.random.default_rng(seed))
    return cloud, counter


def test_a_quadratic_is_found_to_rounding():
    rng = np.random.default_rng(1)
    d, x = 4, rng.standard_normal((60, 4))
    mean, factor = rng.standard_normal(d), np.tril(rng.standard_normal((d, d))) + 3 * np.eye(d)
    u = np.linalg.solve(factor, (x - mean).T).T
    log_joint = 7.5 - 0.5 * np.sum(u**2, axis=1)
    # Points far from a normal law's own need the whole reach: their weights are made equal.
    found = fitted_quadratic(x, log_joint, np.ones(len(x)), np.inf, np.inf)
    assert np.allclose(found.mean, mean, rtol=1e-6)
    assert np.allclose(found.factor, factor, rtol=1e-6)
    wrong = fitted_quadratic(x, log_joint + 0.3 * x[:, 0] ** 3, np.ones(len(x)), np.inf, np.inf)
    assert not np.allclose(wrong.factor, factor, rtol=1e-2)


def test_too_few_points_shape_nothing():
    assert fitted_quadratic(np.zeros((3, 2)), np.zeros(3), np.ones(3), 1.0) is None


@pytest.mark.parametrize("d", [1, 3, 6])
def test_a_normal_posterior_is_reached_and_weighed_exactly(d):
    problem = Conjugate(d, traced=False)
    cloud, counter = cloud_of(problem.joint, max(64, coefficients(d)))
    warp = by_quadratic(cloud, np.random.default_rng(1), 40)
    assert (
        np.allclose(warp.mean, problem.mean, atol=0.1 * problem.sd)
        and counter.evaluations < 64 + 20 * coefficients(d) + 200
    )
    value, error = cloud.log_evidence()
    assert abs(value - problem.log_evidence) < 5 * error < 1.0


def test_what_a_normal_posterior_gives_is_what_its_draws_give():
    """The share that arrival is measured by: draws of the fit's narrow part alone count."""
    rng, d, n = np.random.default_rng(0), 5, 100_000
    u = 1.15 * rng.standard_normal((n, d))
    w = np.exp(-0.5 * np.sum(u**2, axis=1) * (1 - 1.15**-2))
    assert best_share(d) == pytest.approx(0.8 * w.mean() ** 2 / (w**2).mean(), rel=0.02)


def logistic(d=8):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((200, d))
    y = (rng.random(200) < 1 / (1 + np.exp(-x @ rng.standard_normal(d)))).astype(float)
    import numpyro.distributions as dist

    def log_likelihood(p):
        eta = x @ np.asarray(p["b"])
        return float(np.sum(y * eta - np.logaddexp(0, eta)))

    return Joint("logistic", sm.Model({"b": dist.Normal(0, 3).expand([d])}, log_likelihood), None)


def test_a_smooth_posterior_takes_few_calls():
    joint = logistic()
    cloud, counter = cloud_of(joint, 64)
    warp = by_quadratic(cloud, np.random.default_rng(2), 40)
    assert warp is not None and counter.evaluations < 600  # tempered particles take 4 000 and more
    assert cloud.log_evidence()[1] < 0.25


def test_two_modes_are_no_quadratic_or_only_one_of_them_is_found():
    """It may settle on one of two modes: that is what the second look is for. It must not claim both."""
    box = Box(two_modes, 2)
    cloud, _ = cloud_of(box.joint, 64)
    warp = by_quadratic(cloud, np.random.default_rng(3), 40)
    width = np.inf if warp is None else np.max(np.diagonal(warp.factor))
    assert warp is None or width < 2.0


def test_a_plateau_and_an_impossible_model_end():
    import numpyro.distributions as dist

    flat = Joint("flat", sm.Model({"a": dist.Uniform(0, 1)}, lambda p: 0.0), None)
    cloud, counter = cloud_of(flat, 64)
    by_quadratic(cloud, np.random.default_rng(0), 40)
    assert counter.evaluations < 1000
    nowhere = Joint("nowhere", sm.Model({"a": dist.Normal(0, 1)}, lambda p: -np.inf), None)
    cloud, _ = cloud_of(nowhere, 64)
    assert by_quadratic(cloud, np.random.default_rng(0), 40) is None
    assert WIDTH[0] < WIDTH[1]
