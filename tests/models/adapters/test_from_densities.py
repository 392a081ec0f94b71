"""Unit cubes and densities given as functions: exactly normalised, or checked to be."""

import numpy as np
import pytest
from scipy import stats

from supermodel.errors import SupermodelError
from supermodel.models.adapters.from_log_density import from_log_density, measure_mass
from supermodel.models.adapters.from_unit_cube import from_unit_cube
from supermodel.models.joint import Joint


def zero(p, data=None):
    return 0.0


# -- the unit cube --------------------------------------------------------------------------------------------------


def in_place(u):
    """As many dynesty users write it: it changes what it is given."""
    u[0] = 10 * u[0] - 5
    u[1] = stats.expon.ppf(u[1])
    return u


def test_the_prior_is_the_transform_of_the_cube(rng):
    model = from_unit_cube(lambda t: -(t[0] ** 2) - t[1], in_place, ["a", "b"])
    points = model.space.sample_prior(rng, 4000)
    values = model.space.values_at(points)
    assert stats.kstest(values["a"], stats.uniform(-5, 10).cdf).pvalue > 1e-6
    assert stats.kstest(values["b"], stats.expon.cdf).pvalue > 1e-6
    np.testing.assert_allclose(model.space.log_prior_at(points), stats.norm.logpdf(points).sum(1))
    found = Joint("m", model).log_likelihood_at(points[:3])
    np.testing.assert_allclose(found, -(values["a"][:3] ** 2) - values["b"][:3])


def test_vectorised_functions_and_lists(rng):
    vector = from_unit_cube(lambda t: -np.sum(t**2, axis=1), lambda u: 2 * u - 1, ["a", "b"], vectorized=True)
    plain = from_unit_cube(lambda t: -(t[0] ** 2) - t[1] ** 2, lambda u: [2 * u[0] - 1, 2 * u[1] - 1], ["a", "b"])
    points = vector.space.sample_prior(rng, 6)
    np.testing.assert_allclose(
        Joint("v", vector).log_likelihood_at(points), Joint("p", plain).log_likelihood_at(points), rtol=1e-12
    )


def test_far_out_in_the_cube_nothing_is_infinite():
    model = from_unit_cube(lambda t: 0.0, lambda u: stats.norm.ppf(u), ["a"])
    assert np.all(np.isfinite(model.space.values_at(np.array([[-40.0], [40.0]]))["a"]))


@pytest.mark.parametrize(
    ("transform", "names", "part"),
    [
        (lambda u: u[:1], ["a", "b"], "one for each of a, b"),
        (lambda u: u / 0.0 if False else u * np.inf, ["a"], "finite"),
        (lambda u: u.no_such_thing, ["a"], "fails at the centre"),
        (lambda u: u, "ab", "list of parameter names"),
        (lambda u: u, [], "list of parameter names"),
        (lambda u: u, ["a", "a"], "twice"),
    ],
)
def test_wrong_cubes_are_refused(transform, names, part):
    with pytest.raises(SupermodelError, match=part):
        from_unit_cube(lambda t: 0.0, transform, names)


# -- densities ------------------------------------------------------------------------------------------------------


# Written out: SciPy's own take fifty times as long for one point, and are asked here for thousands.


def exponential(a):
    return -a if a >= 0 else -np.inf


def normal(a):
    return -0.5 * (a**2 + np.log(2 * np.pi))


def correlated(d=8):
    covariance = 0.8 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    law = stats.multivariate_normal(cov=covariance)
    inverse, constant = np.linalg.inv(covariance), law.logpdf(np.zeros(d))
    return lambda p: constant - 0.5 * p["v"] @ inverse @ p["v"], lambda rng, n: {"v": law.rvs(n, random_state=rng)}


def disc():
    """Uniform on a disc: a joint prior that no product of priors can say."""

    def log_prior(p):
        return -np.log(np.pi) if p["a"] ** 2 + p["b"] ** 2 < 1 else -np.inf

    def sample_prior(rng, n):
        radius, angle = np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
        return {"a": radius * np.cos(angle), "b": radius * np.sin(angle)}

    return log_prior, sample_prior


GOOD = {
    "correlated": (*correlated(), None),
    "disc": (*disc(), None),
    "bounded": (lambda p: exponential(p["a"]), lambda rng, n: {"a": rng.exponential(size=n)}, {"a": (0, None)}),
    "interval": (
        lambda p: np.log(12 * p["a"] * (1 - p["a"]) ** 2), lambda rng, n: {"a": rng.beta(2, 3, size=n)}, {"a": (0, 1)}
    ),
    "from above": (lambda p: exponential(-p["a"]), lambda rng, n: {"a": -rng.exponential(size=n)}, {"a": (None, 0)}),
    "heavy": (lambda p: -np.log(np.pi * (1 + p["a"] ** 2)), lambda rng, n: {"a": rng.standard_cauchy(n)}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_normalised_priors_pass(case):
    log_prior, sample_prior, bounds = GOOD[case]
    model = from_log_density(log_prior, zero, sample_prior, bounds=bounds)
    mass = measure_mass(model.space, 2000, seed=9)
    assert abs(mass.bridge) < 5 * mass.bridge_error + 1e-3


@pytest.mark.parametrize("case", GOOD)
def test_a_lost_factor_of_two_is_refused(case):
    log_prior, sample_prior, bounds = GOOD[case]
    with pytest.raises(SupermodelError, match="not normalised: the log of its integral is 0.(6|70|71)"):
        from_log_density(lambda p: log_prior(p) + np.log(2), zero, sample_prior, bounds=bounds)
    assert from_log_density(lambda p: log_prior(p) + np.log(2), zero, sample_prior, bounds=bounds, check=False)


def test_a_sampler_of_another_density_is_refused():
    with pytest.raises(SupermodelError, match="do not belong together"):
        from_log_density(lambda p: normal(p["a"]), zero, lambda rng, n: {"a": 2 * rng.standard_normal(n)})


@pytest.mark.parametrize(
    ("sample_prior", "bounds", "part"),
    [
        (lambda rng, n: rng.random(n), None, "must return a dict"),
        (lambda rng, n: {"a": 1.0}, None, "3 draws of 'a'"),
        (lambda rng, n: {"a": rng.random(3)}, None, "draws of every parameter"),
        (lambda rng, n: {"a": rng.standard_normal(n)}, {"a": (0, 1)}, "outside its bounds"),
        (lambda rng, n: {"a": rng.random(n)}, {"b": (0, 1)}, "names \\['b'\\]"),
        (lambda rng, n: {"a": rng.random(n)}, {"a": (1, 0)}, "must ascend"),
        (lambda rng, n: {"a": 5 + rng.random(n)}, None, "own draw"),
    ],
)
def test_wrong_parts_are_refused(sample_prior, bounds, part):
    def log_prior(p):
        return stats.uniform.logpdf(p["a"])

    with pytest.raises(SupermodelError, match=part):
        from_log_density(log_prior, zero, sample_prior, bounds=bounds)


def test_vectorised_densities(rng):
    model = from_log_density(
        lambda p: stats.norm.logpdf(p["a"]), lambda p: -(p["a"] ** 2), lambda rng, n: {"a": rng.standard_normal(n)},
        vectorized=True,
    )  # fmt: skip
    points = model.space.sample_prior(rng, 5)
    np.testing.assert_allclose(
        Joint("m", model).log_joint_at(points), stats.norm.logpdf(points[:, 0]) - points[:, 0] ** 2
    )


def test_a_sampler_of_other_arguments_is_told_how_it_is_called():
    with pytest.raises(SupermodelError, match=r"sample_prior\(rng, n\).*lambda rng, n"):
        from_log_density(lambda p: 0.0, zero, lambda rng: {"a": rng.normal()})
