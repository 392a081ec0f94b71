"""Tempered particles: their evidence, their draws, and the parts that carry them."""

import numpy as np
import pytest

from engine_problems import Box, Conjugate, meter, two_modes
from supermodel.embedding.warp import NormalGiven
from supermodel.engine.explore.cloud import effective_size
from supermodel.engine.explore.particles import moved, next_temperature, systematic, temper


@pytest.fixture(scope="module")
def runs():
    problem = Conjugate(2, sigma=0.2)
    return problem, [temper(problem.joint, meter(), np.random.default_rng(i), 256) for i in range(30)]


def test_the_evidence_of_many_runs_is_right(runs):
    """30 runs: their mean is right within 5.9 standard errors (t of 29, 1e-6 two-sided... of 5.9: 2e-6)."""
    problem, found = runs
    values = np.array([f.log_evidence for f in found])
    error = values.std(ddof=1) / np.sqrt(30)
    bias = 0.5 * values.var(ddof=1)  # the logarithm of an unbiased mean is low by half its variance
    assert abs(values.mean() + bias - problem.log_evidence) < 5.9 * error
    assert abs(values.mean() + bias - problem.log_evidence - 0.5) > 5.9 * error


def test_the_error_that_is_claimed_is_no_smaller_than_the_scatter(runs):
    """chi-square of 29 degrees of freedom below 80 in all but 1e-6 of cases."""
    _, found = runs
    values = np.array([f.log_evidence for f in found])
    assert np.sum((values - values.mean()) ** 2 / found[0].error ** 2) < 80


def test_the_particles_are_draws_of_the_posterior(runs):
    """Means over runs are independent: t of 29 degrees of freedom, 1e-6 of false alarms at 5.9."""
    problem, found = runs
    means = np.array([f.x.mean(0) for f in found])
    z = (means.mean(0) - problem.mean) / (means.std(0, ddof=1) / np.sqrt(30))
    assert np.all(np.abs(z) < 5.9)
    spreads = np.array([np.log(f.x.std(0) / problem.sd) for f in found])
    assert np.all(np.abs(spreads.mean(0)) < 5.9 * spreads.std(0, ddof=1) / np.sqrt(30) + 1 / (4 * 256) + 0.02)
    one = found[0]
    assert np.allclose(one.log_prior, problem.joint.space.log_prior_at(one.x))
    assert np.allclose(one.log_likelihood, problem.joint.log_likelihood_at(one.x))


def test_two_modes_keep_their_shares(rng):
    """512 particles through nine halvings: a share is known to a few hundredths, and neither mode is lost."""
    box = Box(two_modes, 2)
    found = temper(box.joint, meter(), rng, 512)
    share, truth = np.mean(found.x[:, 0] > 1), box.share(lambda x: x[:, 0] > 1)
    assert abs(share - truth) < 5 * found.error * truth and 0.05 < share < 0.95


def test_prior_draws_that_are_impossible_leave(rng):
    box = Box(lambda x: np.where(x[:, 0] > 0, 0.0, -np.inf), 1)
    found = temper(box.joint, meter(), rng, 512)
    assert np.all(found.x > 0)
    assert abs(found.log_evidence - np.log(0.5)) < 5 * found.error


def test_a_temperature_halves_the_effective_size(rng):
    values = -0.5 * 50.0 * rng.standard_normal(1000) ** 2
    beta = next_temperature(values, 0.0)
    assert 0 < beta < 1 and effective_size(beta * values) == pytest.approx(500, rel=0.01)
    assert next_temperature(1e-3 * values, 0.2) == 1.0
    assert next_temperature(values * 1e18, 0.0) > 0


def test_systematic_resampling_gives_counts_within_one(rng):
    weights = rng.dirichlet(np.ones(40))
    counts = np.bincount(systematic(rng, weights), minlength=40)
    assert counts.sum() == 40 and np.all(np.abs(counts - 40 * weights) < 1)


def funnel():
    """A warp of three coordinates in which the first decides the width of the others."""
    none, log_scale = np.zeros((3, 2)), np.array([[0.0, 0.0], [0.6, 0.6], [0.0, 0.0]])
    eye = np.eye(2)
    return NormalGiven(
        np.arange(3), np.zeros(3), np.eye(1), np.zeros((1, 1)), np.array(1.0), none, log_scale, np.zeros((3, 2, 2)), eye
    )


def test_particles_that_are_moved_in_bent_coordinates_stay_draws_of_the_posterior(rng, monkeypatch):
    """Means and variances of 4 000 draws within 5 errors; where the Jacobian is forgotten the first mean is elsewhere."""
    problem, n = Conjugate(3), 4000
    x = problem.posterior(rng, n)
    state = x, problem.joint.log_likelihood_at(x), problem.joint.space.log_prior_at(x)

    def z():
        after = moved(problem.joint, meter(), rng, state, funnel(), 16)
        assert np.allclose(after[1], problem.joint.log_likelihood_at(after[0]))
        assert np.allclose(after[2], problem.joint.space.log_prior_at(after[0]))
        assert np.mean(np.all(after[0] != x, axis=1)) > 0.9
        u = (after[0] - problem.mean) / problem.sd
        return np.sqrt(n) * np.concatenate([u.mean(0), (u.var(0) - 1) / np.sqrt(2)])

    assert np.all(np.abs(z()) < 5)
    monkeypatch.setattr(NormalGiven, "log_det_at", lambda self, u: np.zeros(len(u)))
    assert np.abs(z()[0]) > 10
