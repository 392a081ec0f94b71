"""What must be so for every model: shifted, scaled, reordered, swapped and rewritten problems have the answer that follows.

Generated linear Gaussian models, whose evidence is known, as black boxes and a few traced. Two answers agree if they differ by
less than `QUANTILE` joint errors. An error weighs in the scatter of 16 chains, so (answer - truth) / error has at worst the tails
of Student's t with 15 degrees: the quantile is that of a false alarm in a million for all examples of a property together (a
normal quantile, 4.9, would be too small). Every property has a planted error of natural size, which the same rule must refuse.
"""

import functools
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

import supermodel as sm
from supermodel.exact.linear_gaussian import LinearGaussian

FEW, MANY = 3, 40
QUANTILE = stats.t.isf(0.5e-6 / MANY, 15)
ROUNDING = 1e4 * np.finfo(float).eps  # relative: the sum of some thousand values of ln L


class Problem(NamedTuple):
    """y = X theta + noise, theta_i ~ Normal(mean, scale); few numbers, so that it can be drawn, printed and shrunk."""

    d: int
    n: int
    seed: int
    sigma: float
    scale: float

    @property
    def exact(self) -> LinearGaussian:
        rng = np.random.default_rng([self.d, self.n, self.seed])
        design, mean = rng.normal(size=(self.n, self.d)), rng.normal(size=self.d)
        scales = self.scale * np.exp(0.5 * rng.normal(size=self.d))
        y = design @ (mean + scales * rng.normal(size=self.d)) + self.sigma * rng.normal(size=self.n)
        return LinearGaussian(design, y, self.sigma, scales**2, mean)


problems = st.builds(
    Problem, st.integers(1, 3), st.integers(4, 20), st.integers(0, 999), st.floats(0.3, 3), st.floats(0.3, 3)
)


def model(exact: LinearGaussian, constant=0.0, order=None, ignored=0, traced=False, to=None, priors=None) -> sm.Model:
    """As a user writes it: theta = to(p) by name, priors in any order, perhaps some that the likelihood ignores."""
    xp = jnp if traced else np
    scales = np.sqrt(np.diag(exact.prior_covariance))
    order = range(exact.n_parameters) if order is None else order
    priors = priors or {f"t{i}": dist.Normal(exact.prior_mean[i], scales[i]) for i in order}
    priors = {**{f"u{i}": dist.Normal(0.0, 1.0) for i in range(ignored)}, **priors}

    def log_likelihood(p):
        theta = to(p) if to is not None else xp.stack([p[f"t{i}"] for i in range(exact.n_parameters)], axis=-1)
        residual = (exact.y - theta @ exact.design.T) / exact.sigma
        return constant - 0.5 * (residual**2).sum(axis=-1) + exact.log_noise_norm

    return sm.Model(priors, log_likelihood, vectorized=not traced)


def evidence(of: sm.Model, seed=0):
    return sm.evidence(of, seed=seed, explore="quick", target_error=0.05, progress=False)


@functools.cache
def plain(problem: Problem, traced=False):
    """The evidence of a problem as it is, once for all that is done with it."""
    return evidence(model(problem.exact, traced=traced))


def agree(first: float, second: float, *errors: float) -> bool:
    return abs(first - second) <= QUANTILE * math.hypot(*errors) + ROUNDING * (abs(first) + abs(second))


def assert_agree(first: float, second: float, *errors: float, planted: float) -> None:
    """Two answers agree, and would not if one were off by `planted` nats to either side."""
    assert agree(first, second, *errors), (first, second, errors)
    assert not agree(first + planted, second, *errors) and not agree(first - planted, second, *errors), (
        planted,
        errors,
    )


# -- one model, written otherwise ---------------------------------------------------------------------------------


def shifted(problem, exact, traced):
    """ln L + c: ln Z + c. The planted error is a constant that is forgotten, ln 2."""
    return model(exact, constant=64.0, traced=traced), 64.0, math.log(2)


def scaled(problem, exact, traced):
    """theta = s phi: the design times s, the prior's mean and width divided by it. Planted: a Jacobian that is forgotten."""
    s = 1000.0
    other = LinearGaussian(s * exact.design, exact.y, exact.sigma, exact.prior_covariance / s**2, exact.prior_mean / s)
    return model(other, traced=traced), 0.0, exact.n_parameters * math.log(s)


def reordered(problem, exact, traced):
    """Priors listed in another order. Planted: half a nat, since for some problems a mix-up of names changes little."""
    return model(exact, order=range(exact.n_parameters)[::-1], traced=traced), 0.0, 0.5


def ignoring(problem, exact, traced):
    """Two parameters that the likelihood ignores. Planted: an Occam factor of ln 2 for them."""
    return model(exact, ignored=2, traced=traced), 0.0, math.log(2)


def rotated(problem, exact, traced):
    """theta = m + L v, v ~ Normal(0, 1): the prior's own coordinates, all in one array. Planted: |L| forgotten, or ln 2."""
    xp, root = jnp if traced else np, np.linalg.cholesky(exact.prior_covariance)
    turn = np.linalg.qr(np.random.default_rng(problem.seed).normal(size=root.shape))[0]
    found = model(
        exact, traced=traced, priors={"v": dist.Normal(np.zeros(len(root)), 1.0)},
        to=lambda p: exact.prior_mean + xp.asarray(p["v"]) @ (root @ turn).T,
    )  # fmt: skip
    return found, 0.0, max(abs(np.log(np.diag(root)).sum()), math.log(2))


REWRITTEN = (shifted, scaled, reordered, ignoring, rotated)


def rewritten_alike(problem, rewrite, traced=False):
    exact = problem.exact
    other, by, planted = rewrite(problem, exact, traced)
    before, after = plain(problem, traced), evidence(other)
    assert_agree(after.value - by, before.value, after.error, before.error, planted=planted)
    assert_agree(after.value - by, exact.log_evidence, after.error, planted=planted)


@pytest.mark.parametrize("rewrite", REWRITTEN)
@settings(max_examples=FEW)
@given(problem=problems)
def test_a_rewritten_model_has_the_same_evidence(rewrite, problem):
    rewritten_alike(problem, rewrite)


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", REWRITTEN)
@settings(max_examples=MANY)
@given(problem=problems)
def test_many_rewritten_models_have_the_same_evidence(rewrite, problem):
    rewritten_alike(problem, rewrite)


def test_a_rewritten_traced_model_has_the_same_evidence():
    rewritten_alike(Problem(2, 9, 5, 0.7, 1.3), scaled, traced=True)


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", REWRITTEN)
def test_all_rewritten_traced_models_have_the_same_evidence(rewrite):
    rewritten_alike(Problem(2, 9, 5, 0.7, 1.3), rewrite, traced=True)


# -- curved coordinates -------------------------------------------------------------------------------------------


class Curved(NamedTuple):
    """y_i = x + noise with x = f(z), z ~ Normal(0, 1), or x under the prior that this is."""

    name: str
    prior: object
    of_normal: object  # f


CURVED = (
    Curved("log", dist.LogNormal(0.3, 0.8), lambda z: np.exp(0.3 + 0.8 * z)),
    Curved("cube", dist.Uniform(-1.0, 2.5), lambda z: -1.0 + 3.5 * ndtr(z)),
    Curved("tail", dist.Exponential(0.7), lambda z: -np.log(ndtr(-z)) / 0.7),
)


@pytest.mark.parametrize("curved", CURVED, ids=lambda c: c.name)
@settings(max_examples=2)
@given(st.integers(0, 999), st.floats(0.2, 1.5))
def test_a_parameter_in_other_coordinates_leaves_the_evidence(curved, seed, sigma):
    """By quadrature as well. Planted: the Jacobian of the middle, |ln f'(0)|, at least ln 2."""
    rng = np.random.default_rng(seed)
    y = curved.of_normal(rng.normal()) + sigma * rng.normal(size=6)

    def log_likelihood(x):
        return stats.norm.logpdf(y, np.asarray(x)[..., None], sigma).sum(axis=-1)

    straight = evidence(sm.Model({"x": curved.prior}, lambda p: log_likelihood(p["x"]), vectorized=True))
    normal = dist.Normal(0.0, 1.0)
    bent = evidence(sm.Model({"z": normal}, lambda p: log_likelihood(curved.of_normal(p["z"])), vectorized=True))
    z, step = np.linspace(-9, 9, 20001, retstep=True)
    log_joint = log_likelihood(curved.of_normal(z)) + stats.norm.logpdf(z)
    truth = np.logaddexp.reduce(log_joint) + math.log(step)
    slope = (curved.of_normal(1e-4) - curved.of_normal(-1e-4)) / 2e-4
    planted = max(abs(math.log(slope)), math.log(2))
    assert_agree(straight.value, bent.value, straight.error, bent.error, planted=planted)
    for found in (straight, bent):
        assert_agree(found.value, truth, found.error, planted=planted)


# -- several models -----------------------------------------------------------------------------------------------


def nested(problem: Problem, d: int) -> LinearGaussian:
    """The problem with its first d parameters alone."""
    e = problem.exact
    return LinearGaussian(e.design[:, :d], e.y, e.sigma, np.diag(e.prior_covariance)[:d], e.prior_mean[:d])


def weighed(models, a, b, seed=0):
    found = sm.compare(models, seed=seed, explore="quick", target_error=0.05, progress=False)
    return found.log_bayes_factor(a, b)


def swapped_alike(problem):
    """To the last bit, with the same seed; within joint errors, with another one. Planted: a sign that is forgotten."""
    models = {"large": model(nested(problem, 2)), "small": model(nested(problem, 1))}
    swapped = {name: models[name] for name in ("small", "large")}
    forward, backward = weighed(models, "large", "small"), weighed(swapped, "small", "large")
    assert forward.value == -backward.value and forward.error == backward.error
    other = weighed(swapped, "small", "large", seed=1)
    assert agree(forward.value, -other.value, forward.error, other.error)
    truth = nested(problem, 2).log_evidence - nested(problem, 1).log_evidence
    assert_agree(forward.value, truth, forward.error, planted=0.5)
    if abs(truth) > 0.5:
        assert not agree(forward.value, other.value, forward.error, other.error)


def triangle_closed(problem):
    """ln B(a : c) = ln B(a : b) + ln B(b : c) from three runs, and from one of all three. Planted: a ln 2 on one side."""
    models = {f"m{d}": model(nested(problem, d)) for d in (1, 2, 3)}
    sides = [("m1", "m2"), ("m2", "m3"), ("m1", "m3")]
    # Seeds of their own: what the runs share must not hide what they disagree on.
    ab, bc, ac = (weighed({a: models[a], b: models[b]}, a, b, seed) for seed, (a, b) in enumerate(sides))
    assert_agree(ab.value + bc.value, ac.value, ab.error, bc.error, ac.error, planted=math.log(2))
    together = sm.compare(models, seed=3, explore="quick", target_error=0.05, progress=False)
    for (a, b), side in zip(sides, (ab, bc, ac), strict=True):
        found = together.log_bayes_factor(a, b)
        assert_agree(found.value, side.value, found.error, side.error, planted=math.log(2))


def constant_cancelled(problem, constant=2.0**20):
    """To rounding, with the same seed: as many units in the last place of the constant as there were calls."""
    before, after = (
        sm.compare(
            {name: model(nested(problem, d), constant=c) for name, d in (("large", 2), ("small", 1))},
            explore="quick", target_error=0.05, progress=False,
        )
        for c in (0.0, constant)
    )  # fmt: skip
    calls = max(result.evaluations["likelihood"] for result in (before, after))
    rounding = calls * np.finfo(float).eps * (abs(constant) + abs(before.log_evidence("small").value))
    first, second = (result.log_bayes_factor("large", "small").value for result in (before, after))
    assert abs(first - second) < rounding < math.log(2) / 100  # a lost constant would be seen
    for name in ("large", "small"):
        moved = after.log_evidence(name).value - before.log_evidence(name).value
        assert abs(moved - constant) < rounding


SEVERAL = (swapped_alike, triangle_closed, constant_cancelled)


@pytest.mark.parametrize("holds", SEVERAL)
def test_several_models(holds):
    holds(Problem(3, 11, 7, 0.8, 1.4))


@pytest.mark.slow
@pytest.mark.parametrize("holds", SEVERAL)
@settings(max_examples=MANY // 2)
@given(problem=problems.map(lambda problem: problem._replace(d=3)))
def test_many_sets_of_several_models(holds, problem):
    holds(problem)
