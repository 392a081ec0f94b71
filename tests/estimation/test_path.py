import math
from dataclasses import replace

import numpy as np
import pytest

from exact_draws import coordinates, example, is_calibrated, is_within, shifted, swapped, z_scores
from supermodel.embedding.coordinate import Ladder
from supermodel.errors import SupermodelError
from supermodel.estimation.path import intercepts, mbar, path_integral, states_of
from supermodel.estimation.shares import shares

PAIR = example()
THREE = example(3)


def rungs(n):
    """Close near the corners, where the mean of ln J is steep."""
    t = np.sin(np.linspace(0, np.pi / 2, n)) ** 2
    return Ladder(np.stack([t, 1 - t], axis=1))


@pytest.mark.parametrize("coordinate", [coordinates.ladder(7), coordinates.identity(), coordinates.tanh(4.0)])
def test_mbar_gives_the_truth(coordinate, rng):
    draws = PAIR.draws(PAIR.supermodel("product", coordinate, tilt=[0.3, -0.2]), rng, 8, 600)
    found = mbar(draws).log_bayes_factor(*PAIR.names)
    assert is_within(found, PAIR.log_bayes_factor())
    assert not is_within(mbar(shifted(draws, 1.0)).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())


def test_mbar_of_three_models(rng):
    between = [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]]
    ladder = Ladder(np.vstack([np.eye(3), between]))
    draws = THREE.draws(THREE.supermodel("product", ladder, tilt=THREE.balance()), rng, 8, 800)
    found = mbar(draws)
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        estimate = found.log_bayes_factor(THREE.names[a], THREE.names[b])
        assert is_within(estimate, THREE.log_bayes_factor(a, b)) and estimate.error < 0.2


def test_mbar_needs_only_local_equilibrium(rng):
    """Rungs visited in the wrong proportions: mbar does not mind, `shares` goes wrong."""
    draws = PAIR.draws(PAIR.supermodel("product", coordinates.ladder(6)), rng, 8, 3000)
    keep = rng.random(draws.alpha.shape) < np.array([1.0, 0.8, 0.6, 0.4, 0.3, 0.2])[draws.alpha]
    flat = np.flatnonzero(keep)[: 8 * (keep.sum() // 8)].reshape(8, -1)
    biased = PAIR.record(draws.supermodel, draws.alpha.ravel()[flat], draws.position.reshape(-1, 3)[flat])
    assert is_within(mbar(biased).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())
    assert not is_within(shares(biased).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())


def test_mbar_solves_its_equations(rng):
    states = states_of(PAIR.draws(PAIR.supermodel("product", coordinates.ladder(5)), rng, 4, 300))
    b, p, _ = intercepts(states)
    assert np.max(np.abs(p.sum(axis=0) - np.bincount(states.label))) < 1e-7
    assert np.max(np.abs(p.sum(axis=1) - 1)) < 1e-12


@pytest.mark.parametrize("case", [("product", coordinates.ladder(6)), ("index", None)])
def test_mbar_errors_are_calibrated(case, rng):
    z = z_scores(PAIR, PAIR.supermodel(*case), mbar, rng)
    assert is_calibrated(z)
    assert not is_calibrated(z * math.sqrt(1.7 / 0.3))


def test_states_that_do_not_overlap_have_an_infinite_error(rng):
    draws = PAIR.draws(PAIR.supermodel("index"), rng, 4, 200)
    apart = np.where(draws.alpha[..., None] == [0, 1], 0.0, -900.0)
    found = mbar(replace(draws, log_joints=apart))
    assert not found.details["is_connected"]
    assert found.log_bayes_factor(*PAIR.names).error == math.inf


def test_a_rung_without_draws_is_reached_by_reweighting(rng):
    draws = PAIR.draws(PAIR.supermodel("product", coordinates.ladder(9)), rng, 8, 1000)
    shape = (8, -1)
    keep = np.flatnonzero(draws.alpha.ravel() != 8)
    keep = keep[: 8 * (len(keep) // 8)].reshape(shape)
    cut = PAIR.record(draws.supermodel, draws.alpha.ravel()[keep], draws.position.reshape(-1, 3)[keep])
    found = mbar(cut).log_bayes_factor(*PAIR.names)
    assert (
        abs(found.value - PAIR.log_bayes_factor()) < 0.6
        and found.error > mbar(draws).log_bayes_factor(*PAIR.names).error
    )


@pytest.mark.parametrize("size", [1000.0, -1000.0])
def test_symmetries(size, rng):
    draws = PAIR.draws(PAIR.supermodel("product", coordinates.ladder(5)), rng, 4, 300)
    for estimator in (mbar, path_integral):
        found = estimator(draws).log_bayes_factor(*PAIR.names)
        other = swapped(PAIR)
        mirror = other.record(other.supermodel("product", coordinates.ladder(5)), 4 - draws.alpha, draws.position)
        assert estimator(mirror).log_bayes_factor(*PAIR.names).value == pytest.approx(-found.value, abs=1e-8)
        turned = replace(
            draws, alpha=draws.alpha[::-1], log_joints=draws.log_joints[::-1], position=draws.position[::-1]
        )
        assert estimator(turned).log_bayes_factor(*PAIR.names).value == pytest.approx(found.value, abs=1e-8)
        both = replace(draws, log_joints=draws.log_joints + 77.0)
        assert estimator(both).log_bayes_factor(*PAIR.names).value == pytest.approx(found.value, abs=1e-8)
        tilted = PAIR.supermodel("product", coordinates.ladder(5), tilt=[-size, 0.0])
        far = estimator(replace(shifted(draws, size), supermodel=tilted)).log_bayes_factor(*PAIR.names)
        assert far.value == pytest.approx(found.value + size, abs=1e-7)
        assert far.error == pytest.approx(found.error, rel=1e-5)


def test_the_path_integral_gives_the_truth(rng):
    draws = PAIR.draws(PAIR.supermodel("product", rungs(25), tilt=[0.4, 0.0]), rng, 8, 2000)
    found = path_integral(draws)
    assert is_within(found.log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())
    assert not is_within(path_integral(shifted(draws, 0.9)).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())
    line = PAIR.draws(PAIR.supermodel("product", coordinates.identity()), rng, 8, 800)
    assert is_within(path_integral(line).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())


def test_the_path_integral_is_calibrated(rng):
    z = z_scores(PAIR, PAIR.supermodel("product", rungs(17)), path_integral, rng)
    assert is_calibrated(z)
    assert not is_calibrated(z * math.sqrt(1.7 / 0.3))


def test_too_few_rungs_are_in_the_error(rng):
    draws = PAIR.draws(PAIR.supermodel("product", coordinates.ladder(7)), rng, 8, 4000)
    found = path_integral(draws)
    assert is_within(found.log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())
    assert found.log_bayes_factor(*PAIR.names).error > 0.3  # of the steps, not of the sampling


def test_the_path_integral_needs_its_path(rng):
    with pytest.raises(SupermodelError, match="J_1"):
        path_integral(PAIR.draws(PAIR.supermodel("mixture"), rng, 2, 20))
    draws = PAIR.draws(PAIR.supermodel("product", coordinates.exponential(-4.0)), rng, 2, 100)
    with pytest.raises(SupermodelError, match="mbar"):
        path_integral(draws)
