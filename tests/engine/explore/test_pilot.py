"""What exploration hands over: the reference that fits best, and looks that agree or not."""

import numpy as np
import pytest

from engine_problems import Box, Conjugate, log_normal, two_modes
from supermodel.embedding.reference import standard_normal
from supermodel.embedding.warp import Bent, Conditional, Warp
from supermodel.engine.explore.pilot import Look, fitted_reference, misfit, weighted_quantile
from supermodel.engine.policy import PRIOR_SHARE

N = 1500


def fit_to(box, x, weight=None):
    log_joint = box.joint.log_joint_at(x)
    weight = np.ones(len(x)) if weight is None else weight
    with np.errstate(all="ignore"):
        return fitted_reference(box.joint, x, weight, log_joint, np.random.default_rng(2))


def test_a_gaussian_gets_a_gaussian(rng):
    problem = Conjugate(2)
    found = fit_to(problem, problem.posterior(rng, N))
    assert isinstance(found.warp, Bent) and len(found.reference.hills.log_weights) == 1
    assert max(np.abs(part).max() for part in (found.warp.bend, found.warp.flare, found.warp.skew)) < 1e-3
    assert found.reference.prior_share == PRIOR_SHARE
    assert np.allclose(found.warp.mean, problem.mean, atol=4.9 * problem.sd / np.sqrt(N))  # 1e-6 of false alarms
    assert found.spread < 0.2


def test_two_modes_get_hills(rng):
    box = Box(two_modes, 2)
    narrow = rng.random(N) < box.share(lambda x: x[:, 0] > 0)
    x = np.where(narrow[:, None], 2.5 + 0.15 * rng.standard_normal((N, 2)), -2.5 + 0.8 * rng.standard_normal((N, 2)))
    found = fit_to(box, x)
    assert len(found.reference.hills.log_weights) >= 2 and found.spread < 0.7


def funnel(x):
    """ln J is that of v ~ N(0, 1.5^2) and ten others ~ N(0, e^v); the prior of a `Box` is divided out."""
    v, rest = x[:, :1], x[:, 1:]
    inner = log_normal(rest * np.exp(-0.5 * v), 0.0, 1.0) - 0.5 * rest.shape[1] * v[:, 0]
    return log_normal(v, 0.0, 1.5) + inner - log_normal(x, 0.0, 4.0)


def test_a_funnel_gets_a_conditional_warp(rng):
    v = 1.5 * rng.standard_normal(N)
    x = np.concatenate([v[:, None], np.exp(0.5 * v)[:, None] * rng.standard_normal((N, 10))], axis=1)
    found = fit_to(Box(funnel, 11), x)
    assert isinstance(found.warp, Conditional) and found.warp.order[0] == 0 and found.spread < 1.0


def test_draws_without_weight_have_no_say(rng):
    problem = Conjugate(2)
    x = np.concatenate([problem.posterior(rng, N), 5 + rng.standard_normal((N, 2))])
    found = fit_to(problem, x, np.repeat([1.0, 0.0], N))
    assert np.allclose(found.warp.mean, problem.mean, atol=4.9 * problem.sd / np.sqrt(N))


def test_the_spread_is_that_of_the_log_ratio(rng):
    """A Gaussian seen by a warp that is delta off: ln J - ln r has the standard deviation delta."""
    problem, delta = Conjugate(1), 0.3
    x = problem.posterior(rng, 20_000)
    warp = Warp(problem.mean + delta * problem.sd, problem.sd * np.eye(1))
    left, _ = misfit(problem.joint, warp, standard_normal(1), x, np.ones(len(x)), problem.joint.log_joint_at(x))
    assert abs(left / delta - 1) < 4.9 / np.sqrt(2 * len(x))  # the error of a standard deviation; 1e-6
    exact = problem.pilot(rng)
    left, _ = misfit(problem.joint, exact.warp, exact.reference, x, np.ones(len(x)), problem.joint.log_joint_at(x))
    assert left < 1e-9


def test_looks_agree_within_their_errors_and_a_little():
    look = Look("one", 3.0, 0.3, 10)
    assert look.agrees(Look("two", 3.0 + 4 * 0.5 + 0.2, 0.4, 10), 4.0, 0.25)
    assert not look.agrees(Look("two", 3.0 + 4 * 0.5 + 0.3, 0.4, 10), 4.0, 0.25)
    assert not look.agrees(Look("two", np.nan, 0.4, 10), 4.0, 0.25)


def test_quantiles_by_weight():
    x, w = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert [weighted_quantile(x, w, q) for q in (0.1, 0.5, 0.9, 1.0)] == [1.0, 2.0, 3.0, 3.0]


def test_a_pilot_knows_what_it_is(rng):
    pilot = Conjugate(2).pilot(rng)
    pilot.looks = [Look("climbs", 1.0, 0.1, 100), Look("levels", 1.0, 0.1, 50)]
    assert pilot.method == "climbs, levels" and pilot.evaluations == 150 and pilot.is_normal
    hills = pilot.reference.hills
    pilot.reference = pilot.reference._replace(hills=hills._replace(log_weights=np.zeros(3)))
    assert not pilot.is_normal


@pytest.mark.parametrize("n", [1, 2, 5])
def test_very_few_draws_do_not_break_it(n, rng):
    problem = Conjugate(2)
    found = fit_to(problem, problem.posterior(rng, n))
    assert np.all(np.isfinite(found.warp.factor)) and np.all(np.diagonal(found.warp.factor) > 0)


def test_a_posterior_that_ends_at_an_edge_is_not_continued_beyond_it(rng):
    """Half of a normal law: a bent Gaussian fits every point where it is possible, with half of its mass where it is not."""

    def half(x):
        return np.where(x[:, 0] > 0, log_normal(x, 0.0, 1.0), -np.inf) - log_normal(x, 0.0, 4.0)

    x = rng.standard_normal((N, 2))
    x[:, 0] = np.abs(x[:, 0])
    found = fit_to(Box(half, 2), x)
    drawn = found.warp.points(found.reference.hills.draw(rng, N))
    assert np.mean(drawn[:, 0] > 0) > 0.75  # is possible
