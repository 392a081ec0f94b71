"""The cloud: ln Z is right whatever the proposals, and weights are those of the balance of all of them."""

import numpy as np
import pytest

from engine_problems import Box, assert_within, log_normal
from supermodel.embedding.reference import one_hill
from supermodel.embedding.warp import Warp, identity
from supermodel.engine.explore.cloud import (
    Cloud,
    Prior,
    Warped,
    effective_size,
    fitted,
    log_mean_error,
    log_sum,
    powered,
)
from supermodel.estimation.estimate import Estimate


def peak(x):
    return log_normal(x, 1.0, 0.5)


def hill(mean, sd, dof=np.inf):
    return Warped(identity(1), one_hill(np.array([mean]), np.array([[sd]]), dof))


def cloud_of(box, proposals, rng, n=2000):
    cloud = Cloud(box.joint, box.joint.log_likelihood_at)
    for proposal in proposals:
        cloud.grow(Prior(box.joint) if proposal == "prior" else proposal, n, rng)
    return cloud


PROPOSALS = {
    "prior": ["prior"],
    "prior and posterior": ["prior", hill(1.0, 0.5)],
    "prior and a hill in the wrong place": ["prior", hill(-6.0, 0.3)],
    "two hills that cover": [hill(1.3, 0.8), hill(0.5, 1.0, 3.0)],
    "in warped coordinates": [Warped(Warp(np.array([0.9]), np.array([[0.4]])), one_hill(np.zeros(1), 1.5 * np.eye(1), 5.0))],
    "the prior twice": ["prior", "prior"],
}  # fmt: skip


@pytest.mark.parametrize("kind", PROPOSALS)
def test_the_evidence_is_right_whatever_the_proposals(kind, rng):
    box = Box(peak, 1)
    cloud = cloud_of(box, PROPOSALS[kind], rng)
    assert_within(Estimate(*cloud.log_evidence()), box.log_evidence, most=0.09)
    assert box.calls == len(cloud) and cloud.log_likelihood.shape == cloud.log_prior.shape == (len(cloud),)


def test_a_proposal_that_is_not_what_it_says_is_caught(rng):
    """A density that is too high by a factor of two halves the evidence of what rests on it."""

    class Crooked(Warped):
        def log_density(self, x):
            return super().log_density(x) + np.log(2)

    box = Box(peak, 1)
    cloud = cloud_of(box, [Crooked(identity(1), one_hill(np.ones(1), 0.6 * np.eye(1)))], rng)
    with pytest.raises(AssertionError):
        assert_within(Estimate(*cloud.log_evidence()), box.log_evidence, most=0.09)


def test_weights_are_those_of_the_balance_of_all_proposals(rng):
    """By hand: w_i = pi L / sum_t n_t q_t."""
    box, other = Box(peak, 1), hill(0.8, 0.7, 4.0)
    cloud = cloud_of(box, ["prior"], rng, 50)
    cloud.grow(other, 20, rng)
    x = cloud.x
    mixed = 50 * np.exp(log_normal(x, 0.0, 4.0)) + 20 * np.exp(other.log_density(x))
    assert np.allclose(np.exp(cloud.log_weights()), np.exp(log_normal(x, 0.0, 4.0) + peak(x)) / mixed)
    assert np.allclose(np.exp(cloud.log_weights(0.0)), np.exp(log_normal(x, 0.0, 4.0)) / mixed)
    assert np.allclose(cloud.log_weights(0.0), cloud.log_volume)


def test_a_merged_cloud_is_as_if_all_had_been_drawn_at_once(rng):
    box = Box(peak, 1)
    first, second = cloud_of(box, ["prior", hill(1.0, 0.6)], rng, 40), cloud_of(box, [hill(0.5, 1.2), "prior"], rng, 30)
    merged, calls = first.merged(second), box.calls
    assert len(merged) == 140 and merged.counts == [40, 40, 30, 30] and box.calls == calls  # nothing is evaluated again
    by_hand = Cloud(box.joint, box.joint.log_likelihood_at)
    for part in (first, second):
        ends = np.cumsum([0, *part.counts])
        for proposal, a, b in zip(part.proposals, ends, ends[1:], strict=False):
            by_hand.add(proposal, part.x[a:b], part.log_likelihood[a:b])
    assert np.allclose(merged.log_weights(), by_hand.log_weights(), rtol=0, atol=1e-12)
    assert np.allclose(merged.x, by_hand.x)


def test_volumes_add_up_to_the_prior(rng):
    """Bounded weights: the sum of n pi / (n_t q_t) is 1 within 4.9 of its errors (1e-6 of false alarms)."""
    cloud = cloud_of(Box(peak, 1), ["prior", hill(1.0, 0.5)], rng)
    total, error = log_mean_error(cloud.log_volume)
    assert abs(total) < 4.9 * error < 0.15


def test_what_is_impossible_weighs_nothing(rng):
    box = Box(lambda x: np.where(x[:, 0] > 0, 0.0, -np.inf), 1)
    cloud = cloud_of(box, ["prior"], rng)
    assert np.all(cloud.log_weights()[cloud.x[:, 0] <= 0] == -np.inf)
    assert abs(cloud.log_evidence()[0] - np.log(0.5)) < 4.9 * cloud.log_evidence()[1]


def test_hills_fitted_to_a_cloud_are_a_good_proposal(rng):
    """Draws of a fitted proposal have an effective share above a half; those of the prior one of a fifth."""
    box = Box(peak, 1)
    cloud = cloud_of(box, ["prior"], rng)
    assert effective_size(cloud.log_weights()) < 0.25 * len(cloud)
    proposal = fitted(cloud, cloud.log_weights(), rng, 8, 5.0, 1.1)
    x = proposal.draw(rng, 2000)
    assert effective_size(peak(x) + log_normal(x, 0.0, 4.0) - proposal.log_density(x)) > 1000


def test_sums_errors_and_effective_sizes():
    assert log_sum(np.array([0.0, np.log(3.0)])) == pytest.approx(np.log(4.0))
    assert log_sum(np.array([[-np.inf, -np.inf], [1000.0, 1000.0]])).tolist() == [-np.inf, 1000.0 + np.log(2.0)]
    assert effective_size(np.log([2.0, 2.0, 2.0])) == pytest.approx(3.0)
    assert effective_size(np.array([0.0, -np.inf, -np.inf])) == 1.0 and effective_size(np.full(3, -np.inf)) == 0.0
    assert powered(np.array([-np.inf, 2.0]), 0.0).tolist() == [0.0, 0.0]
    assert powered(np.array([-np.inf, 2.0]), 0.5).tolist() == [-np.inf, 1.0]
    w = np.array([1.0, 2.0, 3.0, 4.0])
    total, error = log_mean_error(np.log(w))
    assert total == pytest.approx(np.log(10.0)) and error == pytest.approx(np.std(w) / w.mean() / 2.0)
    assert log_mean_error(np.full(4, -np.inf)) == (-np.inf, np.inf)
