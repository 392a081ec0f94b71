import math
from dataclasses import replace

import numpy as np
import pytest

from exact_draws import coordinates, example, is_calibrated, is_within, z_scores
from supermodel.errors import SupermodelError
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.by_alpha.simplex_fit import maximum_shares, piecewise_linear, simplex

THREE = example(3)
CASES = [(coordinates.Hats(3), piecewise_linear), (coordinates.Simplex(3), simplex)]


@pytest.mark.parametrize(("coordinate", "fit"), CASES)
def test_the_fits_give_the_truth(coordinate, fit, rng):
    tilt = THREE.balance() + [0.2, -0.3, 0.0]
    draws = THREE.draws(THREE.supermodel("mixture", coordinate, tilt=tilt), rng, 8, 2000)
    found = fit(draws)
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        assert is_within(found.log_bayes_factor(THREE.names[a], THREE.names[b]), THREE.log_bayes_factor(a, b))
    wrong = replace(draws, supermodel=THREE.supermodel("mixture", coordinate, tilt=tilt + [0.8, 0.0, 0.0]))
    assert not is_within(fit(wrong).log_bayes_factor(*THREE.names[:2]), THREE.log_bayes_factor())


@pytest.mark.parametrize(("coordinate", "fit"), CASES)
def test_errors_are_calibrated(coordinate, fit, rng):
    supermodel = THREE.supermodel("mixture", coordinate, tilt=THREE.balance())
    z = z_scores(THREE, supermodel, fit, rng, n_draws=400)
    assert is_calibrated(z)
    assert not is_calibrated(z * math.sqrt(1.7 / 0.3))


def test_the_mean_of_a_simplex(rng):
    """Errata 3.5: E[alpha_k] = (1 + pi_k)/(K + 1)."""
    draws = THREE.draws(THREE.supermodel("mixture", coordinates.Simplex(3)), rng, 8, 2500)
    share = np.exp(THREE.log_evidences - np.logaddexp.reduce(THREE.log_evidences))
    assert np.max(np.abs(draws.alpha.mean(axis=(0, 1)) - (1 + share) / 4)) < 5 * 0.25 / math.sqrt(20_000)


def test_two_models_agree_with_the_line_fit(rng):
    pair = example()
    draws = pair.draws(pair.supermodel("mixture", coordinates.Simplex(2), tilt=[0.3, 0.0]), rng, 4, 800)
    a, b = (fit(draws).log_bayes_factor(*pair.names) for fit in (simplex, line_fit))
    assert a.value == pytest.approx(b.value, abs=1e-7)
    assert a.error == pytest.approx(b.error, rel=1e-5)


def test_the_maximum_is_one(rng):
    """Its score vanishes: the mean responsibility is the share."""
    ratio = rng.dirichlet([1.0, 2.0, 1.5], 3000) * 3
    share = maximum_shares(ratio)
    r = share * ratio / (ratio @ share)[:, None]
    assert np.max(np.abs(r.mean(axis=0) - share)) < 1e-10


def test_a_model_without_a_share_has_an_infinite_error(rng):
    alpha = rng.dirichlet([4.0, 4.0, 0.05], (2, 400))
    draws = THREE.record(THREE.supermodel("mixture", coordinates.Simplex(3)), alpha, np.zeros((2, 400, 3)))
    found = simplex(draws)
    assert found.log_bayes_factor(THREE.names[2], THREE.names[0]).error == math.inf
    assert math.isfinite(found.log_bayes_factor(*THREE.names[:2]).error)


def test_each_fit_wants_its_coordinate(rng):
    pair = example()
    draws = pair.draws(pair.supermodel("mixture"), rng, 2, 20)
    for fit in (simplex, piecewise_linear):
        with pytest.raises(SupermodelError, match="line_fit"):
            fit(draws)
