"""The parts of the engine on their own: kernels, ladder estimators, warps, tempered particles, rungs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import supermodel as sm
from engine_problems import assert_within
from supermodel.embedding.warp import Warp, from_covariance
from supermodel.engine import rungs
from supermodel.engine.explore.particles import temper
from supermodel.engine.goals import Goals
from supermodel.engine.kernels import State, Tuning, crank_nicolson, draw_rung, randomness
from supermodel.engine.meter import Meter
from supermodel.engine.whiten import by_moments, by_scores, spread
from supermodel.estimation.error import influence_of, log_mean_exp, standard_error
from supermodel.estimation.mbar import multistate
from supermodel.models.joint import Joint
from supermodel.results.record import EdgeRecord

# A ladder between J_1 = Z_1 N(u; m, s²) and J_2 = N(u; 0, 1) in one dimension, all known.
LOG_Z, MEAN, SD = 1.7, 0.4, 0.8


def log_joints(u):
    first = LOG_Z + stats.norm.logpdf(u[:, 0], MEAN, SD)
    return np.stack([first, stats.norm.logpdf(u[:, 0])], axis=1)


def ladder(n=4):
    w = np.linspace(0, 1, n)
    return np.stack([w, 1 - w], axis=1)


def run(kernel, chains=64, steps=1500, table=None, seed=3):
    table = ladder() if table is None else table
    log_prior = np.full(len(table), -np.log(len(table)))
    tuning = Tuning(table, log_prior, 0.5, 1)
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((chains, 1))
    state = State(u, log_joints(u), np.zeros(chains, int), np.zeros((chains, 0, 0)))
    random = randomness(rng, steps, chains, 1)
    record = []
    for i in range(steps):
        step = type(random)(*(x[i] for x in random))
        state, _ = kernel(np, log_joints, state, step, tuning, None)
        record.append(state)
    stack = {f: np.stack([getattr(s, f) for s in record[100:]], axis=1) for f in ("u", "log_joints", "rung")}
    return stack, table, log_prior


@pytest.fixture(scope="module")
def record():
    return run(crank_nicolson)


def test_crank_nicolson_leaves_the_target_as_it_is(record):
    stack, table, _ = record
    top = stack["rung"] == len(table) - 1
    inside = np.where(top, stack["u"][..., 0], np.nan)
    means = np.nanmean(inside, axis=1)  # one per chain: independent
    z = (means.mean() - MEAN) / (means.std(ddof=1) / np.sqrt(len(means)))
    assert abs(z) < 5.6  # t of 63 degrees of freedom: 1e-6 of false alarms, two-sided
    planted = (means.mean() - MEAN - 0.1) / (means.std(ddof=1) / np.sqrt(len(means)))
    assert abs(planted) > 5.6


def rao_blackwell(stack, table, log_prior):
    """ln Z_first - ln Z_second from the shares of each draw, and its error."""
    record = EdgeRecord("first", "second", table, log_prior, stack["rung"], stack["log_joints"], {})
    means = log_mean_exp(record.log_shares)
    influence = influence_of(record.log_shares, means)
    return means[0] - means[1], standard_error(influence[..., 0] - influence[..., 1])


def test_a_wrong_acceptance_is_caught():
    def careless(xp, evaluate, state, random, tuning, reference):
        # Forgets the ratio of the reference densities.
        proposal = 0.5 * state.u + np.sqrt(0.75) * random.normal + 0.1
        new = evaluate(proposal)
        rung = draw_rung(xp, random.rung, tuning.table, tuning.log_prior, new)
        return State(proposal, new, rung, state.gradients), np.ones(len(proposal), bool)

    stack, table, log_prior = run(careless)
    value, error = rao_blackwell(stack, table, log_prior)
    assert error < 0.02 and abs(value - LOG_Z) > 5 * error


def test_both_estimators_recover_the_evidence(record):
    stack, table, log_prior = record
    for value, error in (
        multistate(stack["log_joints"], stack["rung"], table).difference(len(table) - 1, 0),
        rao_blackwell(stack, table, log_prior),
    ):
        assert_within(sm.estimate.Estimate(value, error), LOG_Z, most=0.02)


def test_error_bars_of_mbar_are_true():
    """400 independent records of exact draws: the spread of z is 1 within 5 of its own standard errors (1/sqrt(800))."""
    rng = np.random.default_rng(11)
    table, z = ladder(3), []
    for _ in range(400):
        rung = rng.integers(0, 3, (8, 40))
        w = table[rung, 0]
        precision = w / SD**2 + (1 - w)
        u = (w * MEAN / SD**2) / precision + rng.standard_normal(rung.shape) / np.sqrt(precision)
        joints = log_joints(u.reshape(-1, 1)).reshape(8, 40, 2)
        value, error = multistate(joints, rung, table).difference(2, 0)
        z.append((value - LOG_Z) / error)
    assert abs(np.std(z) - 1) < 5 / np.sqrt(800)
    assert abs(np.std(np.array(z) * 1.3) - 1) > 5 / np.sqrt(800)  # errors 30% too small would be seen


@given(st.floats(-800, 800), st.floats(-800, 800))
def test_constants_move_the_estimate_by_just_their_difference(a, b):
    stack, table, log_prior = SMALL
    before = multistate(stack["log_joints"], stack["rung"], table).difference(3, 0)[0]
    after = multistate(stack["log_joints"] + np.array([a, b]), stack["rung"], table).difference(3, 0)[0]
    assert abs(after - before - (a - b)) < 1e-6


SMALL = run(crank_nicolson, chains=8, steps=160)


def test_swapping_the_ends_flips_the_sign():
    stack, table, _ = SMALL
    forward = multistate(stack["log_joints"], stack["rung"], table).difference(3, 0)[0]
    backward = multistate(stack["log_joints"][..., ::-1], 3 - stack["rung"], table[::-1, ::-1]).difference(3, 0)[0]
    assert abs(forward + backward) < 1e-9


def test_standard_error_of_an_autoregression():
    """AR(1) with rho = 0.8: tau = 9, so the error of the mean is sqrt(9 / N) sd."""
    rng = np.random.default_rng(5)
    claims = []
    for _ in range(50):
        x = np.zeros((16, 2000))
        for t in range(1, 2000):
            x[:, t] = 0.8 * x[:, t - 1] + np.sqrt(1 - 0.64) * rng.standard_normal(16)
        claims.append(standard_error(x))
    assert abs(np.mean(claims) / np.sqrt(9 / 32_000) - 1) < 0.1


def test_scores_give_the_exact_warp_of_a_gaussian(rng):
    d = 4
    factor = np.tril(rng.standard_normal((d, d))) + 2 * np.eye(d)
    covariance, mean = factor @ factor.T, rng.standard_normal(d)
    start = Warp(mean + 0.7, 1.3 * np.eye(d))  # a poor first guess
    points = start.points(rng.standard_normal((64, d)))
    gradients = -(points - mean) @ np.linalg.inv(covariance)
    warp = by_scores(points, gradients, start)
    log_joint = stats.multivariate_normal(mean, covariance).logpdf(points)
    assert np.allclose(warp.factor @ warp.factor.T, covariance, rtol=1e-4)
    assert spread(log_joint, points, warp) < 1e-3 < spread(log_joint, points, start)


def test_moments_whiten(rng):
    factor = np.array([[2.0, 0.0], [1.5, 0.3]])
    points = rng.standard_normal((4000, 2)) @ factor.T + [5.0, -1.0]
    u = by_moments(points).inverse(points)
    assert np.allclose(u.mean(0), 0, atol=1e-9)  # the draws' own moments: exact, not statistical
    assert np.allclose(np.cov(u.T), np.eye(2), atol=1e-3)


def test_a_covariance_that_is_not_positive_is_lifted():
    warp = from_covariance(np.zeros(2), np.array([[1.0, 1.0], [1.0, 1.0]]))
    assert np.all(np.isfinite(warp.factor)) and np.all(np.diagonal(warp.factor) > 0)


def test_tempered_particles_estimate_the_evidence():
    """20 runs on a conjugate pair: their mean is right within 5 standard errors of the mean."""
    y, s = 2.1, 0.4
    model = sm.Model({"mu": stats.norm(0, 1)}, lambda p: stats.norm.logpdf(y, p["mu"], s), vectorized=True)
    truth = stats.norm.logpdf(y, 0, np.hypot(1, s))
    values = [temper(Joint("m", model), Meter(Goals()), np.random.default_rng(i), 128).log_evidence for i in range(20)]
    error = np.std(values, ddof=1) / np.sqrt(20)
    assert abs(np.mean(values) - truth) < 5 * error + 0.02  # the logarithm of a mean is biased by half its variance
    assert abs(np.mean(values) - truth - 0.5) > 5 * error + 0.02


def test_rungs_are_placed_by_length_and_balanced():
    table, log_prior = rungs.place(rungs.Gap(4.0, -2.0, 3.0, 3.0))
    assert table[0].tolist() == [0.0, 1.0] and table[-1].tolist() == [1.0, 0.0]
    assert len(table) == 1 + int(np.ceil(3.0 / rungs.SPACING))
    assert abs(np.logaddexp.reduce(log_prior)) < 1e-12
    # d ln Z / dw runs from -2 to 4: ln Z_first - ln Z_second = 1, so the first end is less likely a priori by e.
    assert abs(log_prior[0] - log_prior[-1] - 1.0) < 1e-9
