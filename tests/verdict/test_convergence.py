"""Bulk ESS, R-hat and memory of chains: ArviZ's numbers, known chains, and chains that are stuck."""

import math

import numpy as np
import pytest
from scipy import stats

from supermodel.verdict.convergence import bulk_ess, memory, normal_scores, rank_rhat, ranks


def autoregressive(rng, rho, shape):
    x = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho**2) * x[:, t]
    return x


@pytest.mark.parametrize("shape", [(4, 5), (2, 9), (4, 33), (16, 40), (4, 1001), (2, 200)])
@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.95])
def test_they_are_what_arviz_prints(rho, shape, rng):
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    x = autoregressive(rng, rho, shape)
    repeated = np.repeat(x, 3, axis=1)  # as resampling gives them: with ties
    for draws in (x, repeated, np.exp(3 * x)):
        assert bulk_ess(draws) == pytest.approx(float(array_stats.ess(draws)), rel=1e-9)
        assert rank_rhat(draws) == pytest.approx(float(array_stats.rhat(draws)), rel=1e-9)


def test_the_size_of_a_known_chain_and_a_wrong_one_is_seen(rng):
    """AR(1): N (1 - rho) / (1 + rho). The relative error of tau is about sqrt(2 (2 M + 1) / N), M = 5 tau (Sokal)."""
    rho, x = 0.8, autoregressive(rng, 0.8, (8, 20_000))
    tau = (1 + rho) / (1 - rho)
    bound = 4.9 * math.sqrt(2 * (2 * 5 * tau + 1) / x.size) + 0.02
    assert bulk_ess(x) == pytest.approx(x.size / tau, rel=bound)
    assert bulk_ess(x) != pytest.approx(x.size, rel=bound)  # the planted error: draws taken for independent
    assert bulk_ess(np.tan(1.5 * np.tanh(x))) == pytest.approx(bulk_ess(x), rel=1e-9)  # of ranks alone


def test_ranks_and_scores():
    assert ranks(np.array([[3.0, 1.0], [1.0, 2.0]])).tolist() == [[4.0, 1.5], [1.5, 3.0]]
    x = np.array([0.1, -5.0, 2.0])
    np.testing.assert_allclose(normal_scores(x), stats.norm.ppf((stats.rankdata(x) - 0.375) / 3.25), rtol=1e-12)


def test_chains_that_are_stuck_remember_and_free_ones_do_not(rng):
    """The false alarms of `memory` are what it states: of 4000 chances of 1%, 40 ± 6.3, within 4.9 of these."""
    found = np.array([memory(autoregressive(rng, 0.5, (16, 60))) for _ in range(4000)])
    assert abs(np.sum(found < 0.01) - 40) < 4.9 * math.sqrt(40) + 1
    places = 0.5 * rng.standard_normal((16, 1))
    stuck = autoregressive(rng, 0.5, (16, 600)) + places
    assert memory(stuck) < 1e-6 and rank_rhat(stuck) > 1.05 and bulk_ess(stuck) < 300
    assert memory(np.repeat(np.arange(16.0)[:, None], 30, axis=1)) == 0.0
    assert memory(stuck[:7]) == memory(stuck[:, :8]) == 1.0  # too few to tell


def test_nothing_is_said_of_what_is_not_there():
    x = np.random.default_rng(0).standard_normal((4, 50))
    for odd in (np.full((4, 50), 0.1), np.where(x > 2, np.nan, x), x[:, :3]):
        assert math.isnan(bulk_ess(odd)) and math.isnan(rank_rhat(odd))
    assert math.isnan(rank_rhat(x[:1])) and bulk_ess(x[:1]) > 0
