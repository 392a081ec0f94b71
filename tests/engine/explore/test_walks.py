"""Walks uphill end at the hill that is known, or tell of another."""

import numpy as np

from supermodel.embedding.warp import from_covariance
from supermodel.engine.explore.walks import at_home, elsewhere, follow, starts, walk


class Prior:
    def log_prior_at(self, x):
        return np.zeros(len(x))


class Cloud:
    """Points in a box with a given ln L, and the hill that is known."""

    def __init__(self, log_likelihood, d, n=160, half=10.0, seed=0):
        self.x = np.random.default_rng(seed).uniform(-half, half, (n, d))
        self.evaluate, self.calls, self.grown = self._counted(log_likelihood), 0, 0
        self.log_joint = log_likelihood(self.x)
        self.joint = type("Joint", (), {"space": Prior()})()

    def _counted(self, log_likelihood):
        def evaluate(x):
            self.calls += len(x)
            return log_likelihood(x)

        return evaluate

    def grow(self, proposal, n, rng):
        self.grown += n
        self.at = proposal.draw(rng, n)


def hill(x, centre, sd=1.0):
    return -0.5 * np.sum((x - centre) ** 2, axis=1) / sd**2 - x.shape[1] * np.log(sd)


def known(d, centre):
    return from_covariance(np.full(d, float(centre)), np.eye(d))


def test_of_one_hill_all_walks_lead_home():
    for d in (1, 2, 10):
        cloud = Cloud(lambda x: hill(x, 1.0), d)
        assert len(elsewhere(cloud, known(d, 1.0))) == 0
        assert cloud.calls <= 12 * d + 6 * (2 * (d + 3) + 5) + 1  # lines, two steps of each walker, and some ways


def test_another_hill_is_found_also_where_the_straight_way_rises():
    """Far from both, the way to either rises: in ten dimensions no straight line tells two hills apart, a walk does."""
    for d in (2, 10):
        cloud = Cloud(lambda x: np.logaddexp(hill(x, 3.0), hill(x, -3.0)), d)
        ends = elsewhere(cloud, known(d, 3.0))
        assert len(ends) > 0 and np.all(np.linalg.norm(ends + 6.0, axis=1) < 0.5)  # from the known one at 3


def test_draws_are_made_about_another_hill_on_many_scales():
    cloud = Cloud(lambda x: np.logaddexp(hill(x, 3.0), hill(x, -3.0)), 2)
    assert follow(cloud, known(2, 3.0), np.random.default_rng(0), 5.0) > 0 and cloud.grown > 0
    distance = np.linalg.norm(cloud.at + 3.0, axis=1)
    assert distance.min() < 0.1 and distance.max() > 2.0


def test_a_side_lobe_that_weighs_nothing_is_not_followed():
    cloud = Cloud(lambda x: np.logaddexp(hill(x, 3.0), hill(x, -3.0) - 60), 2)
    assert follow(cloud, known(2, 3.0), np.random.default_rng(0), 5.0) == 0 and cloud.grown == 0


def test_a_linear_tail_and_a_cliff_are_walked():
    """Tails of a logistic regression bend the Newton step; beyond a cliff ln L is -inf."""
    centre = np.zeros((1, 3))
    for height in (lambda x: -np.linalg.norm(x, axis=1), lambda x: np.where(x[:, 0] > 8, -np.inf, hill(x, centre))):
        ends, value = walk(
            np.array([[7.5, 5.0, -6.0], [-9.0, 0.0, 3.0]]), height(np.array([[7.5, 5, -6], [-9, 0, 3.0]])), height
        )
        assert np.all(at_home(ends)) and np.all(np.isfinite(value))


def test_walkers_start_at_what_stands_out():
    rng = np.random.default_rng(0)
    distance = np.sort(rng.uniform(0, 20, 200))
    log_joint = -0.5 * distance**2
    log_joint[150] += 40.0
    assert 150 in starts(distance, log_joint) and len(starts(distance, log_joint)) <= 6
    assert len(starts(distance[:5], log_joint[:5])) == 0
    assert 150 not in starts(distance, np.where(np.arange(200) == 150, -np.inf, log_joint))


def test_a_shoulder_is_seen_along_the_parameter_that_has_it():
    """A third of the mass beyond three standard deviations, one way, in one of six parameters."""

    def shouldered(x):
        wide = -0.5 * ((x[:, 0] - 5.0) / 1.5) ** 2 - np.log(1.5) + np.log(0.5)
        return np.logaddexp(-0.5 * x[:, 0] ** 2, wide) - 0.5 * np.sum(x[:, 1:] ** 2, axis=1)

    cloud, plain = Cloud(shouldered, 6), Cloud(lambda x: hill(x, 0.0), 6)
    ends = elsewhere(cloud, known(6, 0.0))
    assert len(ends) > 0 and np.all(ends[:, 0] > 2.9) and np.all(ends[:, 1:] == 0)
    assert len(elsewhere(plain, known(6, 0.0))) == 0


def test_a_mode_at_five_standard_deviations_is_not_taken_for_home():
    """In five dimensions the draws of the known hill reach to 2.2 on average, and another may stand at 5."""

    def two(x):
        return np.logaddexp(-0.5 * x[:, 0] ** 2, -0.5 * (x[:, 0] - 5) ** 2) - 0.5 * np.sum(x[:, 1:] ** 2, axis=1)

    found = [elsewhere(Cloud(two, 5, seed=seed), known(5, 0.0)) for seed in range(4)]
    assert all(len(ends) and np.all(np.abs(ends[:, 0] - 5) < 2.6) for ends in found)
