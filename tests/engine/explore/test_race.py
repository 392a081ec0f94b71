"""A race: coordinates that no climb gets along are told and searched; what stands out, and what is concave, is told."""

from types import SimpleNamespace

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from engine_problems import meter
from supermodel.engine.explore.climb import NEAR, Climber, distinct
from supermodel.engine.explore.race import STRATUM, race, rough, seems_concave, standing_out, stratified
from supermodel.engine.policy import RACE_STEPS
from supermodel.models.joint import Joint

# -- what is rough ----------------------------------------------------------------------------------------------------

T = np.sort(np.random.default_rng(8).uniform(0, 10, 40))
PLACES = np.linspace(0.1, 0.9, 5)
NAMES = ("a", "b", "frequency", "place", "jump")


def signal(p, t, places):
    """A wave of unknown frequency, and a jump at an unknown place that five points surround."""
    a, b, frequency, place, jump = (np.asarray(p[name])[..., None] for name in NAMES)
    wave = a * np.sin(2 * np.pi * frequency * t) + b * np.cos(2 * np.pi * frequency * t)
    return np.concatenate([wave, np.where(places > place, jump, 0.0)], axis=-1)


def wave_and_jump():
    truth = {"a": 1.0, "b": -0.5, "frequency": 3.21, "place": 0.42, "jump": 1.5}
    y = signal(truth, T, PLACES)

    def log_likelihood(p):
        return -0.5 * np.sum(((y - signal(p, T, PLACES)) / 0.2) ** 2, axis=-1)

    priors = {
        "a": dist.Normal(0, 2), "b": dist.Normal(0, 2), "frequency": dist.Uniform(0, 10), "place": dist.Uniform(0, 1),
        "jump": dist.Normal(0, 2),
    }  # fmt: skip
    return Joint("m", sm.Model(priors, log_likelihood, vectorized=True))


def test_a_frequency_and_a_place_are_rough_and_amplitudes_are_not(rng):
    joint, counter = wave_and_jump(), meter()
    x = joint.space.sample_prior(rng, 64)
    held = rough(joint, counter, x, x.std(axis=0))
    assert dict(zip(joint.space.names, held, strict=True)) == {
        "a": False, "b": False, "frequency": True, "place": True, "jump": False,
    }  # fmt: skip
    assert counter.evaluations == 64 * 5 * 4


def test_what_is_rough_depends_on_the_step(rng):
    """Waves of the likelihood along the frequency are 1/10 apart: steps of a thousandth of that climb."""
    joint = wave_and_jump()
    x = joint.space.sample_prior(rng, 64)
    fine = dict(zip(joint.space.names, rough(joint, meter(), x, x.std(axis=0), 1e-5), strict=True))
    assert not fine["frequency"] and fine["place"]  # a plateau is one on every scale


def test_where_ln_l_is_no_number_there_is_no_turn(rng):
    joint = Joint("m", sm.Model({"x": dist.Normal(0, 1)}, lambda p: np.full(len(p["x"]), -np.inf), vectorized=True))
    with np.errstate(invalid="ignore"):  # as within an explorer
        assert not rough(joint, meter(), joint.space.sample_prior(rng, 64), np.ones(1)).any()


# -- what is concave --------------------------------------------------------------------------------------------------


def of_normal(log_likelihood, d=3):
    model = sm.Model(
        {"x": dist.Normal(0, 1).expand([d])}, lambda p: log_likelihood(np.asarray(p["x"])), vectorized=True
    )
    return Joint("m", model)


def concave(x):
    return -np.sum(np.logaddexp(0.0, 3 * x - 1), axis=-1)


def convex(x):
    """Over the prior: a valley between two modes."""
    return np.logaddexp(-2 * np.sum((x - 1.5) ** 2, axis=-1), -2 * np.sum((x + 1.5) ** 2, axis=-1))


def drawn(joint, rng, n=400):
    x = joint.space.sample_prior(rng, n)
    return x, joint.log_joint_at(x)


@pytest.mark.parametrize("function, is_concave", [(concave, True), (convex, False)])
def test_pairs_tell_whether_ln_j_is_concave(function, is_concave, rng):
    joint = of_normal(function)
    assert seems_concave(joint, meter(), *drawn(joint, rng), rng) == is_concave


def test_one_planted_point_contradicts_and_impossible_ones_are_left_out(rng):
    joint = of_normal(concave)
    x, log_joint = drawn(joint, rng)
    low, high = log_joint.copy(), log_joint.copy()
    low[7], high[7] = -np.inf, log_joint[7] + 1e4
    assert seems_concave(joint, meter(), x, low, rng)
    assert not seems_concave(joint, meter(), x, high, rng)


def test_a_contradiction_ends_the_asking(rng):
    """Where nearly all pairs contradict, one batch is enough."""
    joint, counter = of_normal(convex), meter()
    x, log_joint = drawn(joint, rng, 640)
    assert not seems_concave(joint, counter, x, log_joint, rng)
    assert counter.evaluations == 64
    joint, counter = of_normal(concave), meter()
    seems_concave(joint, counter, *drawn(joint, rng, 640), rng)
    assert counter.evaluations == 640


# -- stratified draws -------------------------------------------------------------------------------------------------


def three():
    priors = {"a": dist.Normal(3, 2), "b": dist.Uniform(-1, 5), "c": dist.Exponential(0.5)}
    return Joint("m", sm.Model(priors, lambda p: 0.0 * np.asarray(p["a"]), vectorized=True))


LAWS = {"a": stats.norm(3, 2), "b": stats.uniform(-1, 6), "c": stats.expon(scale=2.0)}


@pytest.mark.parametrize("axes", [[0], [1, 2], [0, 1, 2]])
def test_marginals_are_those_of_the_prior(axes, rng):
    """Kolmogorov and Smirnov at 1e-6 each; laws that are half a width off are refused."""
    joint = three()
    values = joint.space.values_at(stratified(joint, 1024, np.array(axes), rng))
    for name, law in LAWS.items():
        y = np.ravel(values[name])
        assert len(y) == 1024 and stats.kstest(y, law.cdf).pvalue > 1e-6
        assert stats.kstest(y + 0.5 * law.std(), law.cdf).pvalue < 1e-6


def test_each_cell_has_one(rng):
    """Of a pool of 8 n draws, sorted along one axis, each run of 8 gives one; n independent draws of the pool do not."""
    joint, n = three(), 64
    pool = np.sort(joint.space.sample_prior(np.random.default_rng(4), STRATUM * n)[:, 1])
    x = stratified(joint, n, np.array([1]), np.random.default_rng(4))
    cells = np.searchsorted(pool, x[:, 1]) // STRATUM
    assert sorted(cells) == list(range(n))
    assert len(np.unique(rng.integers(n, size=n))) < n  # n! / n^n: once in 10^27


def test_cells_are_halved_along_each_axis_in_turn():
    joint, n = three(), 64
    pool = joint.space.sample_prior(np.random.default_rng(4), STRATUM * n)
    x = stratified(joint, n, np.array([2, 0]), np.random.default_rng(4))
    low = pool[:, 2] <= np.sort(pool[:, 2])[STRATUM * n // 2 - 1]
    for half, those in ((pool[low], x[:, 2] <= pool[low, 2].max()), (pool[~low], x[:, 2] > pool[low, 2].max())):
        assert those.sum() == n // 2
        middle = np.sort(half[:, 0])[len(half) // 2 - 1]
        assert np.sum(x[those, 0] <= middle) == n // 4


def test_so_many_as_a_power_of_two_holds(rng):
    assert [len(stratified(three(), n, np.array([0]), rng)) for n in (1, 2, 100, 128)] == [1, 2, 64, 128]


# -- what stands out --------------------------------------------------------------------------------------------------


def wide(y):
    return -0.5 * np.sum((y + 4.0) ** 2, axis=-1)


def narrow(y):
    return -0.5 * np.sum(((y - 5.0) / 0.2) ** 2, axis=-1)


def boxed():
    """Three parameters in a box of side 20."""
    return Joint("m", sm.Model({"y": dist.Uniform(-10, 10).expand([3])}, lambda p: wide(np.asarray(p["y"])),
                               vectorized=True))  # fmt: skip


def test_draws_in_the_basin_of_a_narrow_mode_come_first(rng):
    """In a part in a hundred of the prior ln L is that of the narrow mode; of the wide one alone these draws are as any."""
    joint = boxed()
    x = joint.space.sample_prior(rng, 4000)
    y = joint.space.values_at(x)["y"]
    is_in = narrow(y) > wide(y)
    assert 20 < is_in.sum() < 100
    first = standing_out(joint, x, np.maximum(narrow(y), wide(y)), 10)
    assert len(first) == 10 and is_in[first].all()
    bumpy = wide(y) + 0.1 * np.cos(5.0 * y).sum(axis=1)
    control = standing_out(joint, x, bumpy, 10)
    # By chance more than 3 of 10 in a part in fifty: once in 10^5.
    assert is_in[control].sum() <= 3


def test_impossible_draws_do_not_stand_out_and_few_tell_nothing(rng):
    joint = boxed()
    x = joint.space.sample_prior(rng, 500)
    height = wide(joint.space.values_at(x)["y"])
    height[::3] = -np.inf
    assert np.all(standing_out(joint, x, height, 50) % 3 != 0)
    assert len(standing_out(joint, x[:23], height[:23], 5)) == 0


# -- the race ---------------------------------------------------------------------------------------------------------

WIDTHS = np.array([1.0, 1.0, 0.3, 0.3, 24.0])  # of normal priors: two amplitudes, an offset, a trend, the frequency
NEEDLE = np.array([0.8, -0.6, 0.2, -0.1, 9.37])


def basis(frequency):
    angle = 2 * np.pi * frequency[:, None] * T
    return np.sin(angle), np.cos(angle), np.ones_like(angle), np.broadcast_to(T / 10, angle.shape), 2 * np.pi * T


def wave(x):
    """ln J and its gradient of amplitudes, offset, trend and frequency: noise of 0.1."""
    truth = basis(NEEDLE[None, 4])
    y = sum(value * part for value, part in zip(NEEDLE, truth[:4], strict=False))
    sine, cosine, one, trend, turn = basis(x[:, 4])
    a, b, c, d = (x[:, [k]] for k in range(4))
    left = (y - a * sine - b * cosine - c * one - d * trend) / 0.1
    slopes = (sine, cosine, one, trend, turn * (a * cosine - b * sine))
    gradient = np.stack([np.sum(left * slope, axis=1) for slope in slopes], axis=1) / 0.1
    z = x / WIDTHS
    return -0.5 * np.sum(left**2, axis=1) - 0.5 * np.sum(z**2, axis=1), gradient - z / WIDTHS


def climber():
    def value_and_gradient(joint, points, free):
        counted[0] += len(points)
        value, gradient = wave(points)
        return value, gradient if free is None else np.where(free, gradient, 0.0)

    counted = [0]
    joint = SimpleNamespace(is_far=lambda x: np.zeros(len(x), bool))
    made = Climber(joint, SimpleNamespace(value_and_gradient=value_and_gradient), np.zeros(5), WIDTHS)
    made.counted = counted
    return made


def found(tops):
    return sum(np.linalg.norm(point - NEEDLE) < 0.1 for point, _ in tops)


HELD = np.array([False, False, False, False, True])


def test_the_gradient_of_the_wave_is_its_gradient(rng):
    x, h = WIDTHS * rng.standard_normal((20, 5)), 1e-6
    for k in range(5):
        up, down = (wave(x + sign * h * np.eye(5)[k])[0] for sign in (1, -1))
        gradient = wave(x)[1][:, k]
        assert np.allclose((up - down) / (2 * h), gradient, rtol=1e-4, atol=1e-4 * np.abs(gradient).max())


@pytest.mark.parametrize("key", range(4))
def test_a_needle_is_found_that_plain_climbs_of_as_many_calls_do_not_find(key):
    """It is felt within 1/20 of the frequency at 9.37: of 2 048 draws of the prior, N(0, 24^2), about three stand there."""
    starts = WIDTHS * np.random.default_rng([11, key]).standard_normal((2048, 5))
    plain, raced = climber(), climber()
    tops = race(raced, starts, HELD, np.random.default_rng([12, key]))
    assert found(tops) > 0
    calls, best = raced.counted[0], distinct(raced, tops, 16)[0][0]
    # A Newton step from within NEAR of the top leaves a tenth of that, if its curvature is right to 30%.
    assert wave(best.point[None])[0][0] > wave(NEEDLE[None])[0][0] - 0.1 * NEAR
    mirrored = NEEDLE * np.array([-1.0, 1.0, 1.0, 1.0, -1.0])  # the same wave, of the frequency -f
    truths = np.stack([NEEDLE, mirrored])
    assert np.min(np.linalg.norm(best.warp.inverse(truths), axis=1)) < 1.0  # the truth is under that hill
    first = 0
    while plain.counted[0] < calls:
        assert found(plain.climb(starts[first : first + 64])) == 0
        first += 64
    assert first < 1024 and calls < 1.5 * RACE_STEPS * len(starts)  # what a race is budgeted by


def test_with_nothing_held_the_better_half_climbs_on():
    """On one hill all that are left end at its top; of 256 there are 64 left."""

    def hill(x):
        return -0.5 * np.sum(x**2, axis=1), -x

    def value_and_gradient(joint, points, free):
        assert free is None
        return hill(points)

    joint = SimpleNamespace(is_far=lambda x: np.zeros(len(x), bool))
    made = Climber(joint, SimpleNamespace(value_and_gradient=value_and_gradient), np.zeros(5), np.ones(5))
    rng = np.random.default_rng(13)
    tops = race(made, 3 * rng.standard_normal((256, 5)), np.zeros(5, bool), rng)
    assert len(tops) == 64 and all(value > -1e-3 for _, value in tops)
