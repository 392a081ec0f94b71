import math
from dataclasses import replace

import numpy as np
import pytest

from exact_draws import coordinates, example, is_calibrated, is_within, shifted, swapped, z_scores
from supermodel.embedding.coordinate import Ladder
from supermodel.estimation.mbar import mbar, multistate, states_of
from supermodel.estimation.path_integral import path_integral
from supermodel.estimation.rao_blackwell import shares

PAIR = example()
THREE = example(3)


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
    _, p, _ = states.regression
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


# -- impossible somewhere: ln J of minus infinity ---------------------------------------------------------------------


def ladder(*weights):
    return np.stack([np.array(weights), 1 - np.array(weights)], axis=1)


def half_normal(rng, table, chains=16, draws=2000):
    """J_1 = N(u) where u > 0 and 0 elsewhere, J_2 = N(u): ln Z_1 - ln Z_2 = -ln 2. Exact draws of every rung."""
    rung = rng.integers(len(table), size=(chains, draws))
    u = rng.standard_normal(rung.shape)
    u = np.where(table[rung, 0] > 0, np.abs(u), u)
    second = -0.5 * u**2
    return np.stack([np.where(u > 0, second, -np.inf), second], axis=-1), rung


@pytest.mark.parametrize("table", [ladder(0, 1), ladder(0, 0.5, 1), ladder(0, 0.1, 0.4, 0.8, 1)])
def test_a_half_normal_against_a_normal(table, rng):
    log_joints, rung = half_normal(rng, table)
    value, error = multistate(log_joints, rung, table).difference(len(table) - 1, 0)
    assert 0 < error < 0.02
    assert abs(value + math.log(2)) < 4.9 * error  # 1e-6 of false alarms, two-sided
    assert abs(value + math.log(2) + 10 * 0.02) > 4.9 * error  # and an error of 0.2 nats is seen


def test_hard_edges_on_either_side(rng):
    """Two boxes of widths 3 and 2 that overlap in [1, 2]: each is impossible for some draws of the other."""
    rung = rng.integers(2, size=(16, 2000))
    u = np.where(rung == 1, 3 * rng.random(rung.shape) - 1, 2 * rng.random(rung.shape) + 1)
    inside = [(-1 <= u) & (u <= 2), (1 <= u) & (u <= 3)]
    log_joints = np.stack([np.where(i, 0.0, -np.inf) for i in inside], axis=-1)
    value, error = multistate(log_joints, rung, ladder(0, 1)).difference(1, 0)
    assert abs(value - math.log(1.5)) < 4.9 * error < 0.2
    assert abs(value - math.log(1.5) - 0.4) > 4.9 * error


def test_a_rung_that_no_draw_can_reach_is_impossible_and_not_a_number_of_its_own(rng):
    log_joints, rung = half_normal(rng, ladder(0, 1))
    log_joints[..., 0] = -np.inf
    fit = multistate(log_joints, np.zeros_like(rung), ladder(0, 0.5, 1))
    assert fit.log_z[1] == fit.log_z[2] == -np.inf
    assert fit.difference(2, 0)[1] == math.inf


def test_rungs_that_share_no_draw_have_an_infinite_error(rng):
    rung = rng.integers(2, size=(8, 100))
    log_joints = np.where(rung[..., None] == [1, 0], 0.0, -np.inf)
    assert multistate(log_joints, rung, ladder(0, 1)).difference(1, 0)[1] == math.inf


def test_two_ends_that_are_alike_to_rounding_leave_no_error(rng):
    """ln J_1 - ln J_2 is the same at every draw but for its last bits, whatever the labels and how large the logarithms are."""
    table = np.array([[0.0, 1.0], [1.0, 0.0]])
    for size in (1.0, 900.0, 1e6):
        for _ in range(40):
            second = -size * rng.random((16, 32))
            log_joints = np.stack([second - 0.9 * size + 1e-16 * size * rng.standard_normal((16, 32)), second], axis=-1)
            fit = multistate(log_joints, rng.integers(0, 2, (16, 32)), table)
            value, error = fit.difference(1, 0)
            assert abs(value + 0.9 * size) < 1e-9 * size and error < 1e-9 * size
