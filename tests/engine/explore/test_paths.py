"""Paths from the prior to the posterior, without gradients: what is wide and what is narrow is found."""

import numpy as np
import pytest

from engine_problems import Box, assert_within, log_normal, two_modes
from supermodel.engine.explore.cloud import Cloud, Prior, effective_size, fitted, flattened
from supermodel.engine.explore.paths import by_level, off_the_floor, polish
from supermodel.estimation.estimate import Estimate


def walked(box, rng, n=300):
    """The cloud at the end of its levels, polished."""
    cloud = Cloud(box.joint, box.joint.log_likelihood_at)
    with np.errstate(all="ignore"):  # as within an explorer: weights may underflow
        cloud.grow(Prior(box.joint), 2 * n, rng)
        by_level(cloud, rng, n)
        polish(cloud, rng, n)
    return cloud


def right(x):
    return x[:, 0] > 1


@pytest.mark.parametrize("d", [1, 2])
def test_a_wide_and_a_narrow_mode_are_both_found(d, rng):
    """The evidence within five errors, and the narrow mode's share of it: 0.3 is not lost."""
    box = Box(two_modes, d)
    cloud = walked(box, rng)
    assert_within(Estimate(*cloud.log_evidence()), box.log_evidence, most=0.09)
    w = np.exp(cloud.log_weights() - cloud.log_evidence()[0])
    share, truth = w[right(cloud.x)].sum(), box.share(right)
    error = np.sqrt(np.sum((w * (right(cloud.x) - share)) ** 2))
    assert abs(share - truth) < 5 * error < 0.2


def test_a_posterior_far_narrower_than_the_prior(rng):
    """A part in 10^8 of the plane: no prior draw is near it."""
    box = Box(lambda x: log_normal(x, 3.0, 4e-4), 2)
    cloud = walked(box, rng)
    truth = log_normal(np.full((1, 2), 3.0), 0.0, 4.0)[0]  # the prior is flat over so small a peak
    assert_within(Estimate(*cloud.log_evidence()), truth, most=0.09)


def test_a_likelihood_that_is_flat_ends_at_once(rng):
    box = Box(lambda x: np.zeros(len(x)), 2)
    cloud = walked(box, rng)
    assert len(cloud) < 10 * 300
    value, error = cloud.log_evidence()
    assert abs(value) < 5 * error < 0.3


def test_levels_pass_a_plateau(rng):
    """L = 1 on a disk and 0.01 elsewhere: no level divides either, and the evidence is known."""
    box = Box(lambda x: np.where(np.sum(x**2, axis=1) < 1, 0.0, np.log(0.01)), 2)
    inside = 1 - np.exp(-0.5 / 4.0**2)
    cloud = walked(box, rng)
    assert_within(Estimate(*cloud.log_evidence()), np.log(inside + 0.01 * (1 - inside)), most=0.09)


def test_polishing_makes_the_draws_nearly_equal_in_weight(rng):
    box = Box(lambda x: log_normal(x, 1.0, 0.3), 2)
    cloud = Cloud(box.joint, box.joint.log_likelihood_at)
    cloud.grow(Prior(box.joint), 3000, rng)
    before = effective_size(cloud.log_weights())
    polish(cloud, rng, 300)
    assert before < 120 < effective_size(cloud.log_weights()[-300:])
    calls = box.calls
    polish(cloud, rng, 300)
    assert box.calls == calls  # nothing is left to mend


def test_a_hat_on_a_floor_is_found_and_weighed(rng):
    """One prior draw in 3 000 stands on it, and no level leads there."""
    box = Box(lambda x: np.where(np.sum((x - 1.0) ** 2, axis=1) < 0.1**2, 0.0, -50.0), 2)
    cloud = Cloud(box.joint, box.joint.log_likelihood_at)
    with np.errstate(all="ignore"):
        cloud.grow(Prior(box.joint), 500, rng)
        off_the_floor(cloud, rng, 20_000)
        by_level(cloud, rng, 500)
        polish(cloud, rng, 500)
    share = 0.1**2 / (2 * 4.0**2) * np.exp(-1 / 4.0**2)  # the prior is flat over the hat
    assert_within(Estimate(*cloud.log_evidence()), np.log(share), most=0.1)


def test_where_draws_differ_there_is_no_floor_to_leave(rng):
    box = Box(two_modes, 2)
    cloud = Cloud(box.joint, box.joint.log_likelihood_at)
    cloud.grow(Prior(box.joint), 500, rng)
    off_the_floor(cloud, rng, 20_000)
    assert len(cloud) == 500


def test_levels_come_down_from_a_vague_prior(rng):
    """ln L reaches -1e18, and a part in 10^9 of the prior is likely: about 17 cuts of 0.3, and the path arrives."""
    box = Box(lambda x: log_normal(x, 1.0, 1.0), 1, wide=1e9)
    cloud = walked(box, rng)
    truth = log_normal(np.zeros((1, 1)), 0.0, 1e9)[0]
    assert_within(Estimate(*cloud.log_evidence()), truth, most=0.09)


def test_weights_on_one_point_are_flattened_until_they_have_a_shape(rng):
    log_w = np.append(-1e4 * rng.random(499), 0.0)
    assert effective_size(log_w) < 2 and effective_size(flattened(log_w, 30)) > 29
    few = np.array([0.0, -1e3, -2e3, -3e3, -4e3, -np.inf])  # fewer than are asked for: nearly all of them
    assert effective_size(flattened(few, 30)) > 4.4 and flattened(few, 30)[-1] == -np.inf
    even = np.zeros(100)
    assert flattened(even, 30) is even
    box = Box(lambda x: np.where(np.arange(len(x)) == 7, 0.0, -np.inf), 2)
    cloud = Cloud(box.joint, box.joint.log_likelihood_at)
    cloud.grow(Prior(box.joint), 50, rng)
    hill = fitted(cloud, cloud.log_weights(), rng, 16, 5.0, 1.2)  # about the one point that is possible
    assert np.all(np.abs(np.median(hill.draw(rng, 400), axis=0) - cloud.x[7]) < 0.4)
