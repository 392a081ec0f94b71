"""Roughness: noise is found by its size, smooth likelihoods are not, and errors know it."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from engine_problems import LINEAR, data, linear, meter
from supermodel.embedding.warp import from_covariance, identity
from supermodel.engine import recipe
from supermodel.engine.policy import LINES, ON_LINE, SMALL_SHARE
from supermodel.engine.roughness import DOUBLES, Roughness, covariance, roughness
from supermodel.models.joint import Joint
from supermodel.models.rounding import REPEATS

CALLS = LINES * (ON_LINE + 2) + 1


def look(law, seed, cov=None, name="m", counter=None):
    """What is found of ln L(x), x a vector with this posterior covariance about 0."""
    cov = np.eye(2) if cov is None else np.asarray(cov)
    d = len(cov)
    priors = {f"x{i}": stats.norm(0, 100 * np.sqrt(cov[i, i])) for i in range(d)}
    joint = Joint(name, sm.Model(priors, lambda p: float(law(np.array([p[f"x{i}"] for i in range(d)])))))
    rng = np.random.default_rng([seed, 5])
    warp = from_covariance(np.zeros(d), cov) if d else identity(0)
    x = warp.points(rng.standard_normal((50, d)))
    return roughness(joint, x, warp, rng, counter or meter())


def normal(x):
    return -0.5 * np.sum(x**2) - 3.0


dice = np.random.default_rng(3)
NOISE = {  # and its standard deviation
    "periodic": (lambda x: normal(x) + 0.01 * np.sin(1e9 * x[0]), 0.01 / np.sqrt(2)),
    "rounded": (lambda x: np.round(normal(x), 2), 0.01 / np.sqrt(12)),
    "float32": (lambda x: np.float32(normal(x) - 97), float(np.spacing(np.float32(100))) / np.sqrt(12)),
    "random": (lambda x: normal(x) + 0.05 * dice.standard_normal(), 0.05),
}


@pytest.mark.parametrize("kind", NOISE)
def test_noise_is_found_by_its_size(kind, seed):
    """The median of 20 looks within a factor of 3; a look is outside in less than 5%, ten of 20 in less than 2e-8."""
    law, truth = NOISE[kind]
    found = [look(law, seed + i) for i in range(20)]
    middle = np.median([r.noise for r in found])
    assert truth / 3 < middle < 3 * truth
    assert not truth / 3 < 10 * middle < 3 * truth and not truth / 3 < middle / 10 < 3 * truth  # planted
    assert all(r.is_stochastic == (kind == "random") for r in found)
    assert np.mean([r.is_rough for r in found]) > 0.9


RHO = 0.9999999
STIFF = np.array([[1e-24, RHO], [RHO, 1e24]])


def stiff(x):
    a, b = 1e12 * x[0], 1e-12 * x[1]
    return -0.5 * (a * a - 2 * RHO * a * b + b * b) / (1 - RHO**2)


def spike(x):
    """0.01 wide, in a slab of width 1, by whose moments the lines are drawn."""
    return np.logaddexp(np.log(0.1) + normal(x), np.log(0.9e4) - 0.5e4 * np.sum(x**2))


SMOOTH = {
    "normal": (normal, None),
    "stiff": (stiff, STIFF),
    "spike": (spike, None),
    "skewed": (lambda x: 5 * x[0] - 5 * np.exp(x[0]) - 0.5 * x[1] ** 2 * np.exp(x[0]), None),
    "a step": (lambda x: normal(x) + 3.0 * (x[0] > 0), None),
    "an edge": (lambda x: normal(x) if x[0] < x[1] else -np.inf, None),
    "far from 0": (lambda x: normal(x) - 1e6, None),
    "nothing to move": (lambda x: -3.1, np.zeros((0, 0))),
}


@pytest.mark.parametrize("kind", SMOOTH)
def test_a_smooth_likelihood_is_not_rough(kind, seed):
    law, cov = SMOOTH[kind]
    for i in range(10):
        found = look(law, seed + i, cov)
        assert not found.is_rough and not found.is_stochastic and found.single == 0
        assert found.noise <= DOUBLES * found.scale


def test_the_price_is_known_and_nothing_is_asked_of_a_small_budget():
    counter = meter()
    look(normal, 0, counter=counter)
    assert counter.evaluations == CALLS
    for small in (meter(most=int(CALLS / SMALL_SHARE) - 1), meter(seconds=1.0)):
        small.evaluations, small.seconds_calling = 1, 0.1  # a tenth of a second each
        assert look(lambda x: np.round(normal(x), 1), 0, counter=small) == Roughness()
        assert small.evaluations == 1


def test_programs_that_cannot_be_walked_through_have_the_rounding_of_their_value(monkeypatch):
    monkeypatch.setattr(Joint, "shifts", lambda *_: np.full(REPEATS, np.nan))
    found = look(lambda x: normal(x) - 1000, 0)
    assert np.isclose(found.single, np.finfo(np.float32).eps * found.scale) and found.scale > 1000


def test_errors_that_models_share_cancel():
    draws = np.resize([1e-3, -1e-3], REPEATS)
    one, two = Roughness(3e-6, False, 1.0, tuple(draws)), Roughness(4e-6, False, 1.0, tuple(draws))
    found = covariance([one, two])
    assert np.isclose(found[0, 0] + found[1, 1] - 2 * found[0, 1], 25e-12, rtol=1e-6)
    assert np.isclose(np.sqrt(found[0, 0]), one.floor) and np.isclose(one.between(two), 3e-6)
    assert Roughness.of(list(one)) == one and Roughness.of(()) == Roughness() and not np.any(covariance([Roughness()]))


# -- whole runs ---------------------------------------------------------------------------------------------------


def as_everybody_writes_it(powers, x64):
    """A polynomial on linear.csv that closes over JAX arrays, made with or without double precision."""
    with jax.enable_x64(x64):
        x, y, sigma = (jnp.asarray(data("linear")[name]) for name in ("x", "y", "sigma"))

    def log_likelihood(p):
        residual = (y - sum(p[f"t{i}"] * x**i for i in powers)) / sigma
        return jnp.sum(-0.5 * residual**2 - jnp.log(sigma) - 0.5 * jnp.log(2 * jnp.pi))

    return sm.Model({f"t{i}": dist.Normal(0, 1) for i in powers}, log_likelihood)


def polynomials(x64):
    return {"M2": as_everybody_writes_it((0, 1, 4), x64), "M1": as_everybody_writes_it((0, 1, 2, 4), x64)}


def test_arrays_of_single_precision_widen_the_error_and_are_told():
    double = sm.compare(linear(), data("linear"), progress=False).log_bayes_factor("M2", "M1")
    result = sm.compare(polynomials(False), progress=False)
    estimate = result.log_bayes_factor("M2", "M1")
    off = abs(estimate.value - double.value)
    assert double.error < 1e-9 < off < estimate.error < 1e-4
    assert {r.code for r in result.verdict.reasons} == {"float32"} and result.verdict.level == "ok"
    assert "jax_enable_x64" in result.verdict.reasons[0].sentence
    assert 1e-6 < result.log_evidence("M1").error < 1e-3


def test_arrays_of_double_precision_are_passed_over_in_silence():
    result = sm.compare(polynomials(True), progress=False)
    estimate = result.log_bayes_factor("M2", "M1")
    assert result.verdict.level == "ok" and not result.verdict.reasons
    assert estimate.error < 1e-9 and abs(estimate.value - LINEAR) < 1e-9


def noisy_pair(noise):
    """One datum with two errors; `noise(x)` is added to ln L of the first."""
    law = {
        "noisy": lambda p: stats.norm.logpdf(0.5, p["x"], 0.1) + noise(p["x"]),
        "plain": lambda p: stats.norm.logpdf(0.5, p["x"], 0.2),
    }
    return {name: sm.Model({"x": stats.norm(0, 1)}, log_l, vectorized=True) for name, log_l in law.items()}


def test_a_random_likelihood_is_told_and_its_noise_is_in_the_error():
    rng = np.random.default_rng(1)
    result = sm.compare(noisy_pair(lambda x: 0.05 * rng.standard_normal(np.shape(x))), progress=False)
    assert result.verdict.level == "caution" and {r.code for r in result.verdict.reasons} == {"rough"}
    assert "'noisy'" in result.verdict.reasons[0].sentence and "two values" in result.verdict.reasons[0].sentence
    assert 0.05 / 3 < result.log_bayes_factor("noisy", "plain").error < 3 * 0.07


def test_a_chain_of_the_paper_knows_roughness_too(monkeypatch):
    for name, value in {"CHAINS": 16, "FIRST": 100, "THIN": 2, "BLOCK": 50}.items():
        monkeypatch.setattr(recipe, name, value)
    options = {"method": "index", "target_error": 0.2, "progress": False}
    plain, rough = (
        sm.compare(noisy_pair(noise), **options) for noise in (np.zeros_like, lambda x: 0.1 * np.sin(1e9 * x))
    )
    assert not plain.verdict.reasons
    assert {r.code for r in rough.verdict.reasons} == {"rough"} and rough.verdict.level == "ok"
    assert rough.log_bayes_factor("noisy", "plain").error > 0.1 / np.sqrt(2) / 3
