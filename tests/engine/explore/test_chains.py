"""Chains with gradients, for a posterior that is known."""

import numpy as np
import pytest
from scipy import stats

from engine_problems import Conjugate, meter
from supermodel.embedding.warp import Warp
from supermodel.engine.explore.chains import NUTS_CHAINS, NUTS_DRAWS, about_a_mode, nuts
from supermodel.engine.whiten import spread
from supermodel.jax_scope import in_float64

D = 4


def test_short_chains_mend_a_poor_warp():
    """The widths are wrong by factors of three either way; scores make them exact for a Gaussian."""
    problem, counter = Conjugate(D, traced=True), meter()
    poor = Warp(problem.mean + 0.5 * problem.sd, problem.sd * np.diag([3.0, 0.4, 1.0, 2.0]))
    found = in_float64(about_a_mode)(problem.joint, counter, np.random.default_rng(0), 0, 0, poor)
    assert np.allclose(found.warp.mean, problem.mean, atol=1e-2 * problem.sd)
    assert np.allclose(found.warp.factor, problem.sd * np.eye(D), atol=1e-2 * problem.sd)
    assert spread(found.log_joint, found.x, found.warp) < 0.05 < spread(found.log_joint, found.x, poor)
    assert np.allclose(found.log_joint, problem.joint.log_joint_at(found.x)) and found.rhat < 1.2
    assert counter.evaluations == counter.gradients > 0


def test_chains_that_leave_the_world_are_given_up():
    problem = Conjugate(D, traced=True)
    nowhere = Warp(np.full(D, np.nan), np.eye(D))
    assert in_float64(about_a_mode)(problem.joint, meter(), np.random.default_rng(0), 0, 0, nowhere) is None


@pytest.mark.slow
def test_nuts_finds_the_posterior():
    """Means within 5 errors at an effective size of a quarter of the draws; widths likewise. Off by a third is seen."""
    problem, counter = Conjugate(D, traced=True), meter()
    found = in_float64(nuts)(problem.joint, counter, np.random.default_rng(0), 0)
    size = NUTS_CHAINS * NUTS_DRAWS
    assert found.x.shape == (size, D) and found.rhat < 1.1
    z = (found.x - problem.mean) / problem.sd
    bar = stats.norm.isf(5e-7) / np.sqrt(size / 4)
    assert np.all(np.abs(z.mean(0)) < bar) and np.all(np.abs(np.log(z.std(0))) < bar) and bar < 0.3
    assert np.allclose(found.log_joint, problem.joint.log_joint_at(found.x))
    assert counter.evaluations > 3 * size and counter.gradients > 3 * size
