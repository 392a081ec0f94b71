import math
from dataclasses import replace

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from exact_draws import coordinates, example, is_calibrated, is_within, linear_csv, shifted, swapped, z_scores
from supermodel.embedding.supermodel import Supermodel
from supermodel.errors import SupermodelError
from supermodel.estimation.conditional import log_marginal, prior_mean_weights
from supermodel.estimation.rao_blackwell import density, log_shares, shares
from supermodel.models.model import Model
from supermodel.sampling.draws import Draws

PAIR = example()
CASES = {
    "mixture, alpha": ("mixture", coordinates.identity()),
    "mixture, e^alpha": ("mixture", coordinates.exponential(-4.0)),
    "mixture, Gaussian prior": ("mixture", coordinates.identity(coordinates.gaussian(0.6, 0.3))),
    "mixture, ladder": ("mixture", coordinates.Ladder(np.array([[0.1, 0.9], [0.7, 0.3]]), np.log([0.3, 0.7]))),
    "product, alpha": ("product", coordinates.identity()),
    "product, ladder": ("product", coordinates.ladder(6, 2.0)),
    "index": ("index", None),
    "blend, alpha": ("blend", coordinates.identity()),
    "blend, enlarged": ("blend", coordinates.enlarged(0.3)),
    "blend, e^alpha": ("blend", coordinates.exponential(-3.0)),
    "blend, ladder": ("blend", coordinates.ladder(5)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_truth_lies_within_the_error_for_every_combination(case, rng):
    supermodel = PAIR.supermodel(case[0], case[1], tilt=[0.4, -0.3])
    draws = PAIR.draws(supermodel, rng, 8, 1000)
    assert is_within(shares(draws).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())
    wrong = replace(
        draws, supermodel=PAIR.supermodel(case[0], case[1], tilt=[1.4, -0.3])
    )  # a tilt that was not sampled
    assert not is_within(shares(wrong).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())


@pytest.mark.parametrize("coordinate", [coordinates.Hats(3), coordinates.Simplex(3), coordinates.index(3)])
def test_three_models(coordinate, rng):
    problem = example(3)
    supermodel = problem.supermodel("mixture", coordinate, tilt=problem.balance() + [0.3, 0.0, -0.2])
    draws = problem.draws(supermodel, rng, 8, 1000)
    found, wrong = shares(draws), shares(shifted(draws, 0.4, 2))
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        names = problem.names[a], problem.names[b]
        assert is_within(found.log_bayes_factor(*names), problem.log_bayes_factor(a, b))
    assert not is_within(wrong.log_bayes_factor(*problem.names[1:]), problem.log_bayes_factor(1, 2))
    assert np.linalg.eigvalsh(found.covariance).min() > -1e-12


@pytest.mark.parametrize("combine", ["mixture", "product", "index"])
def test_errors_are_calibrated_for_correlated_chains(combine, rng):
    supermodel = PAIR.supermodel(combine, coordinates.ladder(5) if combine == "product" else None)
    z = z_scores(PAIR, supermodel, shares, rng)
    assert is_calibrated(z)
    assert not is_calibrated(z * math.sqrt((1 + 0.7) / (1 - 0.7)))  # errors that take draws for independent
    assert not is_calibrated(z + 1)  # a bias of one error


def test_tilt_on_the_linear_example_has_the_exact_error(rng):
    """Errata 3.4: sigma sqrt(N) = 1.994 at eta = ln B, against 10.86 without a tilt."""
    problem = linear_csv()
    assert problem.log_bayes_factor() == pytest.approx(-4.8792471984, abs=2e-8)

    def scaled_error(tilt, n):
        draws = problem.draws(problem.supermodel("mixture", tilt=[tilt, 0.0]), rng, 8, n // 8)
        found = shares(draws).log_bayes_factor(*problem.names)
        assert is_within(found, problem.log_bayes_factor())
        terms = np.exp(log_shares(draws))
        influence = (terms / terms.mean(axis=(0, 1))) @ [1.0, -1.0]
        return influence.std()

    assert scaled_error(-problem.log_bayes_factor(), 40_000) == pytest.approx(1.994, rel=0.03)
    assert scaled_error(0.0, 200_000) == pytest.approx(10.856, rel=0.15)


def test_blend_recovers_what_the_tanh_fit_cannot(rng):
    from supermodel.estimation.by_alpha.endpoints import tanh_fit

    problem, exact = linear_csv(), 4.8792471984
    draws = problem.draws(problem.supermodel("blend", coordinates.identity()), rng, 8, 1500)
    found = shares(draws).log_bayes_factor(*problem.names[::-1])
    assert is_within(found, exact)
    assert found.error < 0.1
    stretched = problem.draws(problem.supermodel("blend", coordinates.exponential(-8.0)), rng, 20, 3000)
    assert not is_within(tanh_fit(stretched).log_bayes_factor(*problem.names[::-1]), exact)


def test_a_blend_that_stops_short_of_a_model_says_so(rng):
    """On [-4, 0] the reweighting from f = 0.018 to f = 0 has no variance: an error of 0.2 would be a lie."""
    problem = linear_csv()
    draws = problem.draws(problem.supermodel("blend", coordinates.exponential(-4.0)), rng, 8, 1500)
    found = shares(draws)
    assert found.details["unreached"] == [problem.names[1]]
    assert found.log_bayes_factor(*problem.names).error == math.inf
    near = PAIR.draws(PAIR.supermodel("blend", coordinates.exponential(-3.0)), rng, 8, 500)
    assert math.isfinite(shares(near).log_bayes_factor(*PAIR.names).error)


@pytest.mark.parametrize("combine", ["mixture", "product", "index", "blend"])
def test_the_same_model_twice_is_even(combine, rng):
    twice = replace(PAIR, designs=(PAIR.designs[0], PAIR.designs[0]))
    draws = twice.draws(twice.supermodel(combine), rng, 4, 500)
    found = shares(draws).log_bayes_factor(*twice.names)
    assert abs(found.value) < 5 * found.error + 1e-12
    assert abs(shares(shifted(draws, 0.1)).log_bayes_factor(*twice.names).value) > 0.04


# -- the conditional of alpha, against independent quadrature ---------------------------------------------------------


def record(supermodel, log_joints, predictions=None):
    log_joints = np.asarray(log_joints, float)[None]
    alpha = np.full(log_joints.shape[:2], 0.5)
    position = np.zeros((*alpha.shape, supermodel.dimension))
    return Draws(supermodel, alpha, log_joints, position, {}, predictions)


@pytest.mark.parametrize("d", [-3e5, -700.0, -31.0, -1e-9, 2.7, 45.0, 1e4])
def test_marginal_of_a_product_in_closed_form(d):
    """On f = alpha with a flat prior the integral is (e^d - 1)/d."""
    found = log_marginal(record(PAIR.supermodel("product"), [[d - 4.0, -4.0]]))[0]
    expected = -4.0 + max(d, 0.0) + math.log(-math.expm1(-abs(d)) / abs(d))
    assert found == pytest.approx(expected, abs=1e-9 * max(1, math.log(abs(d) + 2)))


@pytest.mark.parametrize(
    ("coordinate", "expected"),
    [
        (coordinates.identity(), 0.5),
        (coordinates.exponential(-4.0), -math.expm1(-4.0) / 4),
        (coordinates.power(3.0), 0.25),
        (coordinates.tanh(30.0), 0.5),
        (coordinates.index(2, np.log([0.2, 0.8])), 0.2),
    ],
)
def test_prior_mean_weights(coordinate, expected):
    assert prior_mean_weights(coordinate)[0] == pytest.approx(expected, abs=1e-12)


class Heavy:
    """Student noise: no parabola in f."""

    def pointwise(self, prediction, data):
        import jax.numpy as jnp

        return -2.0 * jnp.log1p(((data["y"] - prediction) / 0.3) ** 2 / 3.0)

    def same_as(self, other):
        return isinstance(other, Heavy)


@pytest.mark.parametrize("combine", ["blend", "blend_product"])
@pytest.mark.parametrize("noise", ["gaussian", "heavy"])
@pytest.mark.parametrize(
    "coordinate", [coordinates.identity(coordinates.gaussian(0.4, 0.5)), coordinates.exponential(-5.0)]
)
def test_marginal_of_a_blend_against_quadrature(combine, noise, coordinate, rng):
    from supermodel.models.noise import Gaussian

    x, priors = np.linspace(0.1, 1.0, 7), {"a": dist.Normal(1.0, 0.4)}
    data = {"x": x, "y": 1.5 + x}
    law = Gaussian(0.01) if noise == "gaussian" else Heavy()  # a spike of width 0.01 in f
    models = {
        "first": Model(priors, predict=lambda p, x: p["a"] + 2 * x, noise=law),
        "second": Model(
            {"a": dist.Normal(0.5, 0.6), "b": dist.Normal(0.8, 0.1)}, predict=lambda p, x: 2 + p["b"] * x, noise=law
        ),
    }
    supermodel = Supermodel(models, combine=combine, coordinate=coordinate, data=data, tilt=[1.3, -0.4])
    u = np.array([1.2, 0.4])
    predictions = np.asarray(supermodel.predictions(u))
    draws = record(supermodel, [np.asarray(supermodel.log_joints(u))], predictions[None, None])
    found = log_marginal(draws)[0]

    grid = np.linspace(coordinate.low, coordinate.high, 200_001)
    values = np.asarray(jax.jit(jax.vmap(lambda a: supermodel.log_density(a, u)[0]))(grid))
    expected = values.max() + math.log(np.trapezoid(np.exp(values - values.max()), grid))
    assert found == pytest.approx(expected, abs=1e-6)


def test_density_of_alpha_is_the_exact_one(rng):
    supermodel = PAIR.supermodel("blend", coordinates.identity())
    draws = PAIR.draws(supermodel, rng, 8, 1000)
    grid = np.linspace(0, 1, 41)
    exact = np.array([PAIR.posterior(np.array([f, 1 - f]), "blend")[0] for f in grid])
    exact = np.exp(exact - exact.max())
    exact /= np.trapezoid(exact, grid)
    assert np.max(np.abs(density(draws, grid) / exact - 1)) < 0.12
    assert np.trapezoid(density(draws, grid), grid) == pytest.approx(1.0, abs=2e-3)


def test_a_simplex_is_for_mixtures(rng):
    supermodel = example(3).supermodel("product", coordinates.Simplex(3))
    with pytest.raises(SupermodelError, match="Hats"):
        log_marginal(record(supermodel, [[0.0, 1.0, 2.0]]))


def test_a_blend_needs_its_predictions():
    with pytest.raises(SupermodelError, match="predictions"):
        log_marginal(record(PAIR.supermodel("blend"), [[0.0, 1.0]]))


# -- properties ---------------------------------------------------------------------------------------------------

LOGS = arrays(float, (3, 8, 2), elements=st.floats(-300, 300))
SUPERMODELS = [
    (PAIR.supermodel(c, k, tilt=[0.7, -0.1]), swapped(PAIR).supermodel(c, j, tilt=[-0.1, 0.7]))
    for c, k, j in [
        ("mixture", coordinates.identity(), coordinates.identity()),
        ("product", coordinates.identity(), coordinates.identity()),
        ("product", coordinates.ladder(4), coordinates.ladder(4)),
        ("index", coordinates.index(2, [-0.3, -0.9]), coordinates.index(2, [-0.9, -0.3])),
    ]
]


def value(supermodel, logs):
    alpha = np.zeros(logs.shape[:2], int if supermodel.coordinate.is_discrete else float)
    draws = Draws(supermodel, alpha, logs, np.zeros((*logs.shape[:2], supermodel.dimension)), {})
    return shares(draws).log_bayes_factor(*supermodel.names)


@pytest.mark.parametrize(("forward", "backward"), SUPERMODELS)
@settings(max_examples=15)
@given(logs=LOGS, constant=st.floats(-1e3, 1e3))
def test_swapping_shifting_and_permuting(forward, backward, logs, constant):
    found = value(forward, logs)
    assert value(backward, logs[..., ::-1]).value == pytest.approx(-found.value, abs=1e-9)
    moved = value(forward, logs + constant)
    assert moved.value == pytest.approx(found.value, abs=1e-9)
    permuted = value(forward, logs[[2, 0, 1]])
    assert permuted.value == pytest.approx(found.value, abs=1e-10)
    assert permuted.error == pytest.approx(found.error, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("size", [1000.0, -1000.0])
@pytest.mark.parametrize("combine", ["mixture", "product", "index"])
def test_enormous_bayes_factors(size, combine, rng):
    draws = PAIR.draws(PAIR.supermodel(combine), rng, 4, 300)
    plain = shares(draws).log_bayes_factor(*PAIR.names)
    balanced = replace(shifted(draws, size), supermodel=PAIR.supermodel(combine, tilt=[-size, 0.0]))
    found = shares(balanced).log_bayes_factor(*PAIR.names)
    assert found.value == pytest.approx(plain.value + size, abs=1e-9)
    assert found.error == pytest.approx(plain.error, rel=1e-9)
    untilted = shares(shifted(draws, size)).log_bayes_factor(*PAIR.names)
    assert np.isfinite(untilted.value) and np.sign(untilted.value) == np.sign(size)


def test_a_model_that_is_impossible_everywhere_has_an_infinite_error(rng):
    draws = PAIR.draws(PAIR.supermodel("mixture"), rng, 2, 50)
    logs = draws.log_joints.copy()
    logs[..., 0] = -np.inf
    found = shares(replace(draws, log_joints=logs)).log_bayes_factor(*PAIR.names)
    assert found.value == -np.inf and found.error == np.inf
    logs[0, 0, 1] = np.nan
    assert math.isnan(shares(replace(draws, log_joints=logs)).log_bayes_factor(*PAIR.names).value)


def test_log_means_are_two_and_not_a_logit(rng):
    """A share that rounds to 1 keeps its digits: ln B = 60 from draws that are all the first model's."""
    logs = np.stack([np.full((2, 50), 60.0), np.zeros((2, 50))], axis=-1)
    draws = record(PAIR.supermodel("mixture"), logs.reshape(-1, 2))
    assert shares(draws).log_bayes_factor(*PAIR.names).value == pytest.approx(60.0, abs=1e-9)
    assert logsumexp(log_shares(draws)[0, 0] + math.log(0.5)) == pytest.approx(0.0, abs=1e-12)
