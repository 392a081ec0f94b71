"""Every sampler, on every combination and coordinate, draws from the density it should."""

import functools

import numpy as np
import pytest

from grid_truth import DATA, assert_matches, chain_mean, positive_models, supermodel, truth
from supermodel.embedding import Supermodel, coordinate
from supermodel.sampling import sample

CASES = {
    "mixture": dict(),
    "mixture, tilted, e^alpha": dict(coordinate=coordinate.exponential(-4.0), tilt=(1.0, 0.0)),
    "mixture, gaussian prior": dict(coordinate=coordinate.identity(coordinate.gaussian(0.6, 0.3))),
    "product": dict(combine="product"),
    "index": dict(combine="index", tilt=(0.7, 0.0)),
    "ladder": dict(combine="product", coordinate=coordinate.ladder(5)),
    "blend": dict(combine="blend"),
    "blend, enlarged": dict(combine="blend", coordinate=coordinate.enlarged(0.2)),
    "hats": dict(k=3, coordinate=coordinate.Hats(3)),
    "simplex": dict(k=3),
    "simplex, product": dict(k=3, combine="product"),
}


@functools.lru_cache
def metropolis(name):
    """One run of each case, for all the tests that look at it."""
    return sample(supermodel(**CASES[name]), chains=128, draws=1500, thin=3, warmup=600)


def planted(case, shift=0.2):
    """The truth if the first model's tilt were wrong by `shift` (blends: by three times that, they feel it less)."""
    k = case.get("k", 2)
    tilt = np.array(case.get("tilt", np.zeros(k)), float)
    tilt[0] += 3 * shift if case.get("combine") == "blend" else shift
    return truth(supermodel(**{**case, "tilt": tilt}))["alpha"]


@pytest.mark.parametrize("name", CASES)
def test_metropolis_draws_from_its_target(name):
    draws = metropolis(name)
    assert_matches(draws, truth(draws.supermodel), planted(CASES[name]))


@pytest.mark.parametrize(
    ("sampler", "name"),
    [
        ("hmc", "mixture"),
        ("hmc", "simplex"),
        ("hmc", "index"),
        ("nuts", "mixture, tilted, e^alpha"),
        ("tempered", "mixture"),
    ],
)
def test_other_samplers_draw_from_their_target(sampler, name):
    sm = supermodel(**CASES[name])
    draws = sample(sm, sampler=sampler, chains=64, draws=1500, thin=2 if sampler == "hmc" else 3, warmup=200)
    assert_matches(draws, truth(sm), planted(CASES[name]))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["hmc", "nuts", "tempered"])
@pytest.mark.parametrize("name", CASES)
def test_every_sampler_on_every_target(sampler, name):
    sm = supermodel(**CASES[name])
    draws = sample(sm, sampler=sampler, chains=64, draws=1500, thin=3, warmup=200)
    assert_matches(draws, truth(sm), planted(CASES[name]))


def test_products_of_predictions():
    sm = Supermodel(positive_models(), data=DATA, combine="blend_product")
    draws = sample(sm, chains=128, draws=1000, thin=3, warmup=400)
    wrong = truth(Supermodel(positive_models(), data=DATA, combine="blend_product", tilt=(0.5, 0.0)))
    assert_matches(draws, truth(sm), wrong["alpha"])


def test_simplex_moments_follow_the_evidences():
    """E alpha_i = (1 + pi_i)/(K + 1) for a flat Dirichlet, with pi_i from quadrature of each model alone."""
    from scipy.stats import multivariate_normal

    x, y = DATA["x"], DATA["y"]
    prior = [(0.2, 0.8), (0.5, 1.1), (-0.1, 1.0)]
    design = [np.ones_like(x), x, x**2]
    offset = [0.0, 0.0, -0.2]
    evidence = np.array(
        [
            multivariate_normal.pdf(y - o, m * d, 0.81 * np.eye(4) + s**2 * np.outer(d, d))
            for (m, s), d, o in zip(prior, design, offset, strict=True)
        ]
    )
    expected = (1 + evidence / evidence.sum()) / 4
    draws = metropolis("simplex")
    for i in range(3):
        mean, tolerance = chain_mean(draws.alpha[..., i])
        assert abs(mean - expected[i]) < tolerance
        assert abs(mean - (1 + (evidence / evidence.sum())[i - 1]) / 4) > tolerance  # planted: the wrong model's
    np.testing.assert_allclose(draws.alpha.sum(-1), 1.0, atol=1e-12)


def test_rung_counts_of_the_index_follow_the_evidences():
    from scipy.stats import multivariate_normal

    x, y = DATA["x"], DATA["y"]
    logs = [
        multivariate_normal.logpdf(y, m * d, 0.81 * np.eye(4) + s**2 * np.outer(d, d))
        for (m, s), d in (((0.2, 0.8), np.ones_like(x)), ((0.5, 1.1), x))
    ]
    draws, tilt = metropolis("index"), 0.7
    assert draws.alpha.dtype.kind == "i"
    mean, tolerance = chain_mean(draws.alpha)
    assert abs(mean - 1 / (1 + np.exp(tilt + logs[0] - logs[1]))) < tolerance
    assert abs(mean - 1 / (1 + np.exp(tilt + logs[0] - logs[1] + 0.1))) > tolerance
