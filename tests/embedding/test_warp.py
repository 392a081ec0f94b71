"""Warps: bijections whose Jacobians are what automatic differentiation says."""

import jax
import numpy as np
import pytest

from supermodel.embedding.warp import (
    FEW,
    KNOTS,
    SOFT,
    Bent,
    Conditional,
    NormalGiven,
    Warp,
    bells,
    from_covariance,
    hinges,
    identity,
    lifted_cholesky,
    pairs,
    solved,
    straight,
)


def lower(rng, d):
    return np.tril(0.4 * rng.standard_normal((d, d)), -1) + np.diag(rng.uniform(0.3, 2.0, d))


def conditional(rng, d, k):
    """Random coefficients of location and log scale on the hinges of k leading coordinates."""
    m = 1 + (1 + len(KNOTS)) * k
    coefficients = [0.3 * rng.standard_normal((n, m)) for n in (k, k, d - k, d - k)]
    return Conditional(
        rng.permutation(d), rng.standard_normal(d), rng.uniform(0.2, 3.0, d), *coefficients, lower(rng, d - k)
    )


def normal_given(rng, d, k, m=4):
    """Random coefficients of mean, log scale and shear on m bells of k leading coordinates."""
    size = 1 + k + m
    shear = np.tril(0.2 * rng.standard_normal((size, d - k, d - k)), -1)
    moments = (0.3 * rng.standard_normal((size, d - k)) for _ in range(2))
    bell = rng.standard_normal((m, k)), np.array(1.2)
    return NormalGiven(
        rng.permutation(d), rng.standard_normal(d), lower(rng, k), *bell, *moments, shear, lower(rng, d - k),
        rng.uniform(-0.7, 0.7, d - k),
    )  # fmt: skip


def bent(rng, d):
    """Random bends, flares and skews."""
    inner = [np.tril(0.2 * rng.standard_normal((d, d)), -1) for _ in range(2)]
    before = pairs(d)[1] < np.arange(d)[:, None]
    bend = np.where(before, 0.1 * rng.standard_normal(before.shape), 0.0)
    return Bent(rng.standard_normal(d), lower(rng, d), inner[0], bend, inner[1], rng.uniform(-0.7, 0.7, d))


def made():
    rng = np.random.default_rng(5)
    return {
        "affine 1": Warp(rng.standard_normal(1), lower(rng, 1)),
        "affine 4": Warp(rng.standard_normal(4), lower(rng, 4)),
        "one leader of two": conditional(rng, 2, 1),
        "one leader of five": conditional(rng, 5, 1),
        "three leaders of five": conditional(rng, 5, 3),
        "normal given one of five": normal_given(rng, 5, 1),
        "normal given two of six": normal_given(rng, 6, 2),
        "bent 1": bent(rng, 1),
        "bent 5": bent(rng, 5),
        "identity": identity(3),
    }


@pytest.fixture(params=made())
def warp(request):
    return made()[request.param]


@pytest.fixture
def u(warp, rng):
    return 2.0 * rng.standard_normal((12, len(warp.mean)))


def test_there_and_back_again(warp, u):
    x = warp.points(u)
    assert np.allclose(warp.inverse(x), u, rtol=0, atol=1e-9)
    assert np.allclose(warp.points(warp.inverse(x)), x, rtol=1e-12, atol=1e-9)
    assert len(np.unique(x[:, 0])) == len(x)


@pytest.mark.parametrize("d", [0, 1, FEW, FEW + 1])
def test_triangular_systems_are_solved_whatever_their_size(d, rng):
    factor = lower(rng, d) * np.logspace(-6, 6, d)[:, None]  # coordinates of very different units
    u = rng.standard_normal((7, d))
    found = solved(factor, u @ factor.T)
    np.testing.assert_allclose(found, u, rtol=0, atol=1e-9)
    assert np.abs(found[:, ::-1] - u).max(initial=0.0) > 1e-3 or d < 2  # the order matters


def test_one_point_and_many_agree_and_the_log_determinant_is_that_of_the_jacobian(warp, u):
    def everything(warp, point):
        return warp(point), warp.log_det(point), jax.jacfwd(warp)(point)

    point, log_det, jacobian = jax.jit(jax.vmap(everything, (None, 0)))(warp, u)
    sign, exact = np.linalg.slogdet(jacobian)
    assert np.all(sign != 0)
    assert np.allclose(point, warp.points(u), rtol=1e-12, atol=1e-12)
    assert np.allclose(log_det, exact, rtol=0, atol=1e-10)
    assert np.allclose(warp.log_det_at(u), exact, rtol=0, atol=1e-10)


def test_a_warp_is_an_argument_of_compiled_code(warp, u):
    """Another warp of the same shape compiles nothing."""
    traced = []

    @jax.jit
    def value(warp, point):
        traced.append(1)
        return warp(point).sum() + warp.log_det(point)

    first = value(warp, u[0])
    second = value(warp._replace(mean=np.asarray(warp.mean) + 1.0), u[0])
    assert len(traced) == 1 and abs(second - first - len(warp.mean)) < 1e-9


def test_hinges_are_soft_ramps():
    z = np.array([[-50.0], [0.0], [50.0]])
    features = hinges(np, z)
    assert features.shape == (3, 2 + len(KNOTS))
    assert np.allclose(features[2, 2:], 50.0 - KNOTS) and np.allclose(features[0, 2:], 0.0)
    assert np.allclose(features[1, 2:], np.log1p(np.exp(-SOFT * KNOTS)) / SOFT)


def test_bells_are_one_at_their_centre_and_a_straight_line_far_from_it():
    phi = bells(np, np.array([[1.0, 2.0], [90.0, 0.0]]), np.array([[1.0, 2.0]]), 0.5)
    assert np.allclose(phi, [[1, 1, 2, 1], [1, 90, 0, 0]])


def test_a_scale_is_never_steeper_than_e12():
    """Far out a fitted log scale is an extrapolation; unclipped it would overflow, and the map would not be one to one."""
    warp = conditional(np.random.default_rng(2), 2, 1)
    warp = warp._replace(rest_log_scale=warp.rest_log_scale + 5.0)
    u = np.array([[9.0, 0.3], [-9.0, 0.3]])
    assert np.all(np.isfinite(warp.points(u))) and np.allclose(warp.inverse(warp.points(u)), u, atol=1e-6)


def test_an_affine_warp_is_a_bent_one_without_bends(rng):
    affine = Warp(rng.standard_normal(4), lower(rng, 4))
    u = rng.standard_normal((6, 4))
    assert np.array_equal(straight(affine).points(u), affine.points(u))


def test_a_gradient_is_pulled_back_through_a_bent_warp(rng):
    warp, u = bent(rng, 5), 1.5 * rng.standard_normal((9, 5))

    def log_joint(x):
        return -((x - 1.0) ** 4).sum() / 10

    exact = jax.vmap(jax.grad(lambda v: log_joint(warp(v)) + warp.log_det(v)))(u)
    by_x = jax.vmap(jax.grad(log_joint))(warp.points(u))
    found = warp.pulled_back(u, np.asarray(by_x))
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)
    assert np.abs(found - by_x @ warp.factor).max() > 0.1  # the affine part alone is something else


def test_a_warp_from_a_covariance_whitens_it(rng):
    factor = lower(rng, 3)
    warp = from_covariance(np.arange(3), factor @ factor.T)
    assert np.allclose(warp.factor, factor) and abs(warp.log_det_value() - np.log(np.diagonal(factor)).sum()) < 1e-12


def test_a_covariance_that_is_not_positive_is_lifted_a_little():
    for covariance in (np.ones((2, 2)), np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]]), np.diag([1e12, 1e-12])):
        factor = lifted_cholesky(covariance)
        assert np.all(np.isfinite(factor)) and np.all(np.diagonal(factor) > 0)
        assert np.allclose(factor @ factor.T, covariance, rtol=1e-6)
