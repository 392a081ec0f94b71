"""Hills fitted to weighted draws: judged by draws that were not fitted, against the density that they come from."""

import numpy as np
import pytest

from engine_problems import log_normal
from supermodel.engine.explore.hills import Sample, fit


class Mixture:
    """Round Gaussian hills on the plane, of known shares."""

    def __init__(self, shares, means, sds):
        self.shares, self.means, self.sds = np.array(shares), np.array(means, float), np.array(sds, float)

    def draw(self, rng, n):
        k = rng.choice(len(self.shares), n, p=self.shares)
        return self.means[k] + self.sds[k][:, None] * rng.standard_normal((n, 2))

    def log_density(self, x):
        parts = [np.log(s) + log_normal(x, m, w) for s, m, w in zip(self.shares, self.means, self.sds, strict=True)]
        return np.logaddexp.reduce(parts)

    def fitted(self, rng, n, most, dof=np.inf):
        x = self.draw(rng, n)
        return fit(Sample(x, np.full(n, 1 / n), self.log_density(x)), rng, most, dof)

    def loss(self, hills, rng, n=4000):
        """Kullback-Leibler divergence in nats, on fresh draws."""
        x = self.draw(rng, n)
        return np.mean(self.log_density(x) - hills.log_density(np, x))

    def median_weight(self, hills, k, rng):
        """ln p - ln q in the middle of the k-th cluster's own draws: what a draw there weighs."""
        x = self.means[k] + self.sds[k] * rng.standard_normal((4000, 2))
        return np.median(self.log_density(x) - hills.log_density(np, x))


SEPARATE = Mixture([0.6, 0.39, 0.01], [(-2, 0), (2, -1), (2, 3)], [0.5, 0.3, 0.03])
ANGLES = 2 * np.pi * np.arange(16) / 16
RING = Mixture(np.full(16, 1 / 16), 4 * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1), np.full(16, 0.15))


@pytest.mark.parametrize("dof", [np.inf, 5.0])
def test_separate_clusters_are_found_and_a_narrow_one_of_a_hundredth_gets_a_hill(dof, rng):
    """Twenty of 2000 draws. A draw of it then weighs about as much as any other; under a single hill, e^12 and more."""
    hills = SEPARATE.fitted(rng, 2000, 16, dof)
    distance = np.linalg.norm(hills.means - SEPARATE.means[2], axis=1)
    nearest = int(np.argmin(distance))
    # The mean of 20 draws: 4.9 errors. Their number: Poisson, between 4 and 46 in all but 1e-6 of cases.
    assert distance[nearest] < 4.9 * 0.03 / np.sqrt(20) and 4 / 2000 < np.exp(hills.log_weights[nearest]) < 46 / 2000
    assert SEPARATE.loss(hills, rng) < 0.1 and SEPARATE.median_weight(hills, 2, rng) < np.log(3)
    single = SEPARATE.fitted(rng, 2000, 1, dof)
    assert SEPARATE.loss(single, rng) > 1 and SEPARATE.median_weight(single, 2, rng) > 10


def test_sixteen_modes_about_an_empty_middle(rng):
    """One hill at a time sees nothing to gain here; a single one loses about two nats a draw."""
    assert RING.loss(RING.fitted(rng, 2000, 32), rng) < 0.2 and RING.loss(RING.fitted(rng, 2000, 1), rng) > 1.5


def test_a_single_gaussian_gets_a_single_hill(rng):
    one = Mixture([1.0], [(1, -2)], [0.7])
    hills = one.fitted(rng, 1000, 16)
    assert len(hills.log_weights) == 1
    assert np.allclose(hills.means[0], [1, -2], atol=4.9 * 0.7 / np.sqrt(1000))  # 1e-6 of false alarms
    assert one.loss(hills, rng) < 0.02


def test_weights_make_the_fit_that_of_the_target(rng):
    """Draws of a wide proposal, weighed: the hills follow the target, and not what was drawn."""
    target, proposal = Mixture([1.0], [(1, 1)], [0.5]), Mixture([1.0], [(0, 0)], [2.0])
    x = proposal.draw(rng, 4000)
    log_w = target.log_density(x) - proposal.log_density(x)
    weight = np.exp(log_w - log_w.max())
    hills = fit(Sample(x, weight / weight.sum(), target.log_density(x)), rng, 8, np.inf)
    assert target.loss(hills, rng) < 0.05 < proposal.loss(hills, rng)
