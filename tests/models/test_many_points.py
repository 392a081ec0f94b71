"""Many points of a likelihood of many data: the same numbers, a bounded part at a time, and one copy of the data."""

import gc
import secrets
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import supermodel as sm
from supermodel.jax_scope import in_float64
from supermodel.models import many_points
from supermodel.models.joint import Joint
from supermodel.models.many_points import compiled, in_parts, over_points

N = 500
rng = np.random.default_rng(0)
DESIGN, Y = rng.normal(size=(N, 3)), rng.normal(size=N)
POINTS = rng.normal(size=(64, 3))


def log_likelihood(p):
    return -0.5 * jnp.sum((Y - jnp.dot(DESIGN, p["b"])) ** 2)


def model():
    return sm.Model({"b": dist.Normal(np.zeros(3), 1.0)}, log_likelihood)


@pytest.fixture
def tight(monkeypatch):
    """Bounds so small that the problem above is a large one: 7 points at a time, which do not divide 64 or 16."""
    monkeypatch.setattr(many_points, "NUMBERS", 7 * N)


def test_the_width_of_a_likelihood_is_what_each_point_needs_for_itself():
    assert Joint("m", model()).width == N  # and not 3 N: the design is the same for all
    assert Joint("m", sm.Model({}, lambda p: 0.0)).width == 1


def test_parts_and_data_outside_give_the_same_numbers(tight):
    small, large = Joint("m", model()), Joint("m", model())
    assert large.width == N
    exact = -0.5 * np.sum((Y - POINTS @ DESIGN.T) ** 2, axis=1)
    slope = (Y - POINTS @ DESIGN.T) @ DESIGN - POINTS
    with pytest.MonkeyPatch.context() as usual:
        usual.setattr(many_points, "NUMBERS", 2**22)
        found = small.log_likelihood_at(POINTS)
    rounding = 8 * N * np.finfo(float).eps * np.abs(exact).max()  # a sum of N terms in another order
    for values in (found, large.log_likelihood_at(POINTS)):
        np.testing.assert_allclose(values, exact, rtol=0, atol=rounding)
    value, gradient = large.value_and_gradient_at(POINTS[:16])
    np.testing.assert_allclose(value, exact[:16] + large.space.log_prior_at(POINTS[:16]), rtol=0, atol=rounding)
    np.testing.assert_allclose(gradient, slope[:16], rtol=0, atol=rounding)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 64])
def test_a_program_is_given_one_shape_whatever_is_asked(n):
    shapes = []

    def program(points):
        shapes.append(points.shape)
        return points.sum(axis=1), points

    total, same = in_parts(program, POINTS[:n], 16)
    assert set(shapes) == {(16, 3)} and len(shapes) == -(-n // 16)
    np.testing.assert_array_equal(same, POINTS[:n])
    np.testing.assert_array_equal(total, POINTS[:n].sum(axis=1))


def test_the_evidence_of_a_large_model_is_that_of_a_small_one(tight):
    found = sm.evidence(model(), explore="quick", max_evaluations=3000, progress=False)
    precision = DESIGN.T @ DESIGN + np.eye(3)
    fit = 0.5 * (Y @ DESIGN) @ np.linalg.solve(precision, DESIGN.T @ Y)
    truth = fit - 0.5 * Y @ Y - 0.5 * np.linalg.slogdet(precision)[1]
    assert abs(found.value - truth) < max(5 * found.error, 1e-6)  # a Gaussian posterior: known to rounding
    assert abs(found.value - truth - 0.1) > max(5 * found.error, 1e-6)  # a planted error is noticed


@in_float64
def test_a_million_data_take_tens_of_megabytes_and_no_program_holds_them():
    n = 10**6
    x, y, ones = np.linspace(0, 1, n), np.zeros(n), np.ones(n)
    points = np.zeros((64, 2))

    def line(p):
        return -0.5 * jnp.dot((y - p[0] - p[1] * x) ** 2, ones)  # a dot is not fused with what goes in

    def temporary(function):
        return jax.jit(function).lower(points).compile().memory_analysis().temp_size_in_bytes

    most = 4 * 8 * many_points.NUMBERS  # a few arrays of a part
    assert temporary(over_points(line, n)) < most < 64 * n * 8 / 3 < temporary(jax.vmap(line))

    gc.collect()
    alive = len(many_points._outside)
    first, second = (compiled(over_points(f, n)) for f in (line, jax.value_and_grad(line)))
    assert float(first(points[:4])[0]) == float(second(points[:4])[0][0])
    assert len(many_points._outside) == alive + 3  # x, y and ones: one copy for both programs
    del first, second
    gc.collect()
    assert len(many_points._outside) == alive  # and gone with them


@in_float64
def test_data_changed_in_place_are_seen():
    y = np.zeros(5)
    first, second = (compiled(lambda p: jnp.sum(p * y)) for _ in range(2))
    assert float(first(np.ones(5))) == 0.0
    y += 2.0
    assert float(second(np.ones(5))) == 10.0  # though `first`, with its copy, is alive


def test_other_data_of_the_same_shape_compile_nothing():
    """Counted by JAX's own events; the likelihoods are made anew, and close over their data."""
    counts = Counter()
    jax.monitoring.register_event_listener(lambda event, **_: counts.update([event.rsplit("/", 1)[-1]]))
    scale = 1.0 + secrets.randbelow(2**30) * 2.0**-50  # a number of the program: one that no earlier run has compiled

    def compared(seed):
        y = np.random.default_rng(seed).normal(0.4, 1.0, 30)
        models = {
            name: sm.Model({"m": dist.Normal(0.0, s)}, lambda p: -jnp.sum(jnp.log(scale + (y - p["m"]) ** 2)))
            for name, s in (("narrow", 1.0), ("wide", 3.0))
        }
        counts.clear()
        sm.compare(models, seed=1, explore="quick", progress=False)
        return counts["cache_misses"], counts["cache_hits"]

    assert compared(1)[0] > 0
    misses, hits = compared(2)
    assert misses == 0 and hits > 0
