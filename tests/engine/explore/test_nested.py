"""Nested slices: ln Z where it is known, shapes that no thermal path passes, and plateaus."""

import numpy as np
import pytest
from scipy import stats

from engine_problems import Box, Conjugate, assert_within, meter
from supermodel.engine.explore.nested import nested_slices
from supermodel.estimation.estimate import Estimate


def evidence(found):
    return Estimate(found.log_evidence, found.error)


@pytest.fixture(scope="module")
def gaussian():
    problem, counter = Conjugate(3), meter()
    return problem, counter, nested_slices(problem.joint, counter, np.random.default_rng(1), 200)


def test_a_gaussian(gaussian):
    problem, counter, found = gaussian
    assert_within(evidence(found), problem.log_evidence, most=0.2, planted=1.0)
    assert problem.calls == counter.evaluations


def test_its_draws_are_those_of_the_posterior(gaussian):
    """Means and variances within five errors of the weighted draws."""
    problem, _, found = gaussian
    w = np.exp(found.log_weights - found.log_evidence)
    assert abs(w.sum() - 1) < 1e-9
    error = np.sqrt(np.sum(w**2))  # one over the root of the effective size
    assert np.all(np.abs(w @ found.x - problem.mean) < 5 * error * problem.sd)
    assert (
        np.all(np.abs(w @ (found.x - problem.mean) ** 2 / problem.sd**2 - 1) < 5 * error * np.sqrt(2)) and error < 0.1
    )


def test_a_shell_and_a_ball():
    """A ring beside a higher ball: curved, disconnected, and a phase transition for any temperature.

    The ball holds a quarter of the live points when the islands part. (Of a few points only, their number would drift by
    chance from one replacement to the next, which the error does not know of.)
    """

    def log_likelihood(x):
        radius = np.sqrt(np.sum((x + 3.0) ** 2, axis=1))
        return np.logaddexp(-0.5 * ((radius - 2.0) / 0.1) ** 2, 2.0 - 0.5 * np.sum(((x - 3.0) / 0.3) ** 2, axis=1))

    def ball(x):
        return np.linalg.norm(x - 3.0, axis=1) < 2

    box = Box(log_likelihood)
    found = nested_slices(box.joint, meter(), np.random.default_rng(2), 300)
    assert_within(evidence(found), box.log_evidence, most=0.19, planted=1.0)
    w = np.exp(found.log_weights - found.log_evidence)
    assert 0.2 < box.share(ball) < 0.8 and abs(w[ball(found.x)].sum() - box.share(ball)) < 5 * found.error / 2


def test_a_flat_likelihood_is_exact(rng):
    flat = Box(lambda x: np.full(len(x), 1.5), 1)
    assert nested_slices(flat.joint, meter(), rng, 100).log_evidence == pytest.approx(1.5) and flat.calls == 100


@pytest.mark.parametrize("floor", [np.log(0.01), -np.inf])
def test_plateaus(floor):
    """L = 1 on an interval and a constant elsewhere: 30 runs, chi-square at 1e-6; an evidence off by half a nat is seen.

    Points that replace a part of a plateau all lie above it: unless the plateau goes as a whole, volumes are too large.
    """
    step = Box(lambda x: np.where(np.abs(x[:, 0]) < 1, 0.0, floor), 1)
    inside = np.diff(stats.norm.cdf([-0.25, 0.25]))[0]
    truth = np.log(inside + (1 - inside) * np.exp(floor))
    runs = [nested_slices(step.joint, meter(), np.random.default_rng(i), 100) for i in range(30)]
    off, errors = np.array([(f.log_evidence - truth, f.error) for f in runs]).T
    assert np.sum((off / errors) ** 2) < stats.chi2.isf(1e-6, 30)
    assert np.sum(((off + 0.5) / errors) ** 2) > stats.chi2.isf(1e-6, 30) < np.sum(((off - 0.5) / errors) ** 2)
