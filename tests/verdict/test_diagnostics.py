import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from exact_draws import coordinates, example
from supermodel.verdict import diagnostics as d

PAIR = example()


def autoregressive(rng, rho, shape):
    x = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho**2) * x[:, t]
    return x


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.6, 0.9])
def test_autocorrelation_time_of_a_known_chain(rho, rng):
    """B12: (1 + rho)/(1 - rho). Its relative error is about sqrt(2 (2 M + 1)/N) with the window M = 5 tau (Sokal)."""
    x = autoregressive(rng, rho, (8, 20_000))
    tau = (1 + rho) / (1 - rho)
    bound = 4.9 * math.sqrt(2 * (2 * 5 * max(tau, 1) + 1) / x.size) + 0.02
    assert d.autocorrelation_time(x) == pytest.approx(tau, rel=bound)
    assert d.autocorrelation_time(x[:, ::2]) != pytest.approx(tau, rel=bound) or rho == 0
    assert d.effective_size(x) <= x.size
    assert d.effective_size(x) == pytest.approx(x.size / max(tau, 1), rel=bound)


def test_the_standard_error_is_the_spread_of_means(rng):
    x = autoregressive(rng, 0.7, (300 * 4, 400)).reshape(300, 4, 400)
    spread = x.mean(axis=(1, 2)).std()
    claimed = np.mean([d.standard_error(c) for c in x])
    assert 0.9 < claimed / spread < 1.35  # never below, and the larger of two is a little above
    assert x.std() / math.sqrt(1600) < 0.6 * spread  # the planted error: draws taken for independent


def test_chains_that_are_stuck_apart_are_seen(rng):
    x = rng.standard_normal((4, 500)) + np.array([0.0, 0.0, 0.0, 5.0])[:, None]
    assert d.split_rhat(x) > 1.5
    assert d.standard_error(x) > 1.0
    assert d.effective_size(x) < 20
    y = rng.standard_normal((4, 500))
    assert d.split_rhat(y) == pytest.approx(1.0, abs=0.02) == d.split_rhat(y, rank_normalized=True)


def test_rank_normalisation_sees_through_heavy_tails(rng):
    x = rng.standard_cauchy((4, 2000))
    x[0] += 2.0
    assert d.split_rhat(x, rank_normalized=True) > 1.05 > d.split_rhat(x)


def test_covariance_gives_each_pair_its_own_error(rng):
    x = autoregressive(rng, 0.5, (6, 300))[..., None] * [1.0, 0.3, -0.4] + 0.2 * rng.standard_normal((6, 300, 3))
    c = d.covariance_of_means(x)
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        pair = math.sqrt(c[a, a] + c[b, b] - 2 * c[a, b])
        assert pair >= d.standard_error(x[..., a] - x[..., b]) * (1 - 1e-9)
        assert pair == pytest.approx(d.standard_error(x[..., a] - x[..., b]), rel=0.1)
    assert np.linalg.eigvalsh(c).min() > -1e-15
    x[0, 0, 1] = np.nan
    assert d.covariance_of_means(x)[1, 1] == np.inf


@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 30)), elements=st.floats(-1e6, 1e6)))
def test_nothing_is_ever_worth_more_than_it_is(x):
    size, error, tau = d.effective_size(x), d.standard_error(x), d.autocorrelation_time(x)
    assert math.isnan(size) or 0 < size <= x.size
    assert error >= 0
    assert error == pytest.approx(d.standard_error(x[::-1]), rel=1e-6, abs=1e-9)
    assert math.isnan(tau) or math.isfinite(tau)


@pytest.mark.parametrize("function", [d.autocorrelation_time, d.effective_size, d.split_rhat, d.standard_error])
def test_nan_stays_nan(function, rng):
    x = rng.standard_normal((3, 50))
    x[1, 7] = np.nan
    assert math.isnan(function(x))


def test_constants_and_single_draws():
    constant = np.full((3, 40), 0.1)
    assert math.isnan(d.autocorrelation_time(constant)) and math.isnan(d.effective_size(constant))
    assert math.isnan(d.split_rhat(constant))
    assert d.standard_error(constant) == pytest.approx(0.0, abs=1e-15)
    assert d.standard_error(np.array([[2.0]])) == math.inf
    assert math.isnan(d.effective_size(np.array([[2.0]])))
    assert d.standard_error(np.array([1.0, 2.0, 4.0])) > 0  # one chain, as a plain series
    stuck = np.repeat([[0.0], [1.0]], 40, axis=1)
    assert d.split_rhat(stuck) == math.inf


def test_thinning_until_tau_is_below_ten_and_what_it_hides(rng):
    """B11, B13: at tau about 10 the claimed error is too small by a factor of three."""
    x = autoregressive(rng, 0.98, (8, 20_000))  # tau = 99
    found = d.thinning(x)
    assert found.is_reached and 4.0 < found.tau < 10.0
    assert 8 <= found.step <= 20
    assert found.kept == x[:, :: found.step].size
    claimed = x[:, :: found.step].std() / math.sqrt(found.kept)
    true = math.sqrt(99 / x.size)
    assert true / claimed == pytest.approx(math.sqrt(found.tau), rel=0.3) and true / claimed > 2
    assert not d.thinning(x[:, :30]).is_reached
    assert d.thinning(rng.standard_normal((2, 500))).step == 1


def test_end_bins(rng):
    draws = PAIR.record(PAIR.supermodel("mixture"), np.array([[0.001, 0.5, 0.995, 0.9999, 0.02]]), np.zeros((1, 5, 3)))
    assert d.end_bin_counts(draws) == {"model a": 2, "model b": 1}
    index = PAIR.record(PAIR.supermodel("index"), np.array([[0, 0, 1, 0]]), np.zeros((1, 4, 3)))
    assert d.end_bin_counts(index) == {"model a": 3, "model b": 1}


def test_crossings():
    halves = PAIR.record(
        PAIR.supermodel("mixture"),
        np.array([[0.1, 0.9, 0.8, 0.2, 0.9], [0.1, 0.2, 0.3, 0.4, 0.3]]),
        np.zeros((2, 5, 3)),
    )
    found = d.crossings(halves)
    assert found.passages.tolist() == [3, 0] and found.round_trips.tolist() == [1, 0]
    ladder = PAIR.supermodel("product", coordinates.ladder(3))
    rungs = PAIR.record(
        ladder, np.array([[0, 1, 0, 1, 2, 1, 0, 1, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1]]), np.zeros((2, 9, 3))
    )
    found = d.crossings(rungs)
    assert found.passages.tolist() == [3, 0] and found.round_trips.tolist() == [1, 0]
    three = example(3)
    index = three.record(three.supermodel("index"), np.array([[0, 1, 0, 1, 2, 0, 1]]), np.zeros((1, 7, 3)))
    assert d.crossings(index).round_trips.tolist() == [1]


@pytest.mark.parametrize("k", [0.1, 0.5, 0.9])
def test_pareto_shape(k, rng):
    weights = stats.genpareto(k).rvs((4, 25_000), random_state=rng)
    assert d.pareto_k(np.log(weights)) == pytest.approx(k, abs=4.9 * (1 + k) / math.sqrt(3 * math.sqrt(1e5)) * 0.9)
    assert d.pareto_k(np.log(weights) + 1000) == pytest.approx(d.pareto_k(np.log(weights)), abs=1e-6)


def test_pareto_agrees_with_arviz(rng):
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    logs = 1.5 * rng.standard_t(5, 4000)
    assert d.pareto_k(logs) == pytest.approx(float(array_stats.psislw(-logs)[1]), abs=0.02)


def test_a_bounded_tail_has_no_shape_worth_a_word(rng):
    """Weights at most 1.6 times their mean, the top of which looks like a law without a mean; 40 times is another matter."""
    top = 1.0 + 0.6 * (1 - np.linspace(0, 1, 60)) ** 6
    weights = np.concatenate([np.full(5000, 1.0), top]) * rng.uniform(0.999, 1.001, 5060)
    assert d.pareto_k(np.log(weights)) == 0.0
    assert d.pareto_k(np.log(weights + 39 * (weights > 1.3) * (weights - 1))) > 0.7


def test_pareto_of_odd_input():
    assert d.pareto_k(np.zeros(500)) == 0.0
    assert math.isnan(d.pareto_k(np.array([0.0, np.nan] * 100)))
    assert math.isnan(d.pareto_k(np.full(100, -np.inf)))
    assert math.isnan(d.pareto_k(np.zeros(10)))


def test_information_criteria():
    """A3, with the maxima of data/README.md: all prefer M2."""
    assert d.aic(246.162428, 3) == pytest.approx(6 - 492.324856)
    assert d.bic(246.162428, 3, 100) < d.bic(246.438075, 4, 100) < d.bic(247.604006, 5, 100)
