"""Coordinates: weights on the simplex, normalised priors, corners that are reached, and refusals."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from supermodel.embedding import coordinate
from supermodel.embedding.coordinate import Hats, Ladder, Line, Simplex
from supermodel.errors import CoordinateError

LINES = {
    "identity": coordinate.identity(),
    "gaussian": coordinate.identity(coordinate.gaussian(0.6, 0.3)),
    "own prior": coordinate.identity(lambda a: 3.0 * a),
    "exponential": coordinate.exponential(-4.0),
    "short exponential": coordinate.exponential(-0.02),
    "tanh": coordinate.tanh(10.0),
    "power": coordinate.power(2.5),
    "tilted": coordinate.tilted(3.0),
    "far tilted": coordinate.tilted(-500.0),
    "own f": Line(lambda a: (1 - a) ** 2, 0.0, 1.0, ends=(0.0, 1.0)),
}


@pytest.mark.parametrize("name", LINES)
def test_priors_are_normalised_and_zero_outside(name):
    line = LINES[name]
    total = quad(lambda a: np.exp(float(line.log_prior_of(a))), line.low, line.high)[0]
    assert abs(total - 1) < 1e-9
    assert np.isneginf(line.log_prior_of(np.array([line.low - 1e-6, line.high + 1e-6]))).all()


@pytest.mark.parametrize("name", LINES)
def test_weights_are_on_the_simplex(name):
    line = LINES[name]
    weights = line.weights_of(np.linspace(line.low, line.high, 33).reshape(3, 11))
    assert weights.shape == (3, 11, 2) and weights.min() >= -1e-12
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in LINES if "exponential" not in n])
def test_corners_are_the_models_alone(name):
    for k in range(2):
        np.testing.assert_allclose(LINES[name].weights_of(LINES[name].corner(k)), np.eye(2)[k], atol=1e-9)


def test_the_cut_off_does_not_reach_the_second_model():
    line = coordinate.exponential(-4.0)
    assert line.corner(0) == 0.0 and line.corner(1) is None
    np.testing.assert_allclose(line.weights_of(-4.0), [np.exp(-4), 1 - np.exp(-4)])


def test_tanh_tends_to_a_step_and_to_a_line():
    a = np.array([0.1, 0.4, 0.7])
    np.testing.assert_allclose(coordinate.tanh(1e-3).f_of(a), a, atol=1e-6)
    np.testing.assert_allclose(coordinate.tanh(1e3).f_of(a), [0, 0, 1], atol=1e-9)


def test_an_enlarged_interval_says_so():
    wide = coordinate.enlarged(0.2)
    assert wide.is_enlarged and not coordinate.identity().is_enlarged
    assert (wide.low, wide.high) == (-0.2, 1.2)
    np.testing.assert_allclose(wide.weights_of(1.1), [1.1, -0.1])


def test_draws_of_the_prior_follow_it(rng):
    for line in LINES.values():
        draws = line.sample_prior(rng, 4000)
        grid = np.linspace(line.low, line.high, 20_001)
        p = np.exp(line.log_prior_of(grid))
        expected = (p * (grid - line.low)).sum() / p.sum() / (line.high - line.low)
        found = np.mean(draws - line.low) / (line.high - line.low)
        assert abs(found - expected) < np.sqrt(np.log(2e6) / 8000)  # Hoeffding, false alarm 1e-6


def test_hats():
    hats = Hats(4)
    expected = [[1, 0, 0, 0], [0, 0.75, 0.25, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(hats.weights_of(np.array([0.0, 1.25, 3.0])), expected)
    assert [hats.corner(k) for k in range(4)] == [0.0, 1.0, 2.0, 3.0]
    assert float(hats.log_prior_of(1.7)) == pytest.approx(-np.log(3)) and np.isneginf(hats.log_prior_of(3.1))


@pytest.mark.parametrize("concentration", [1.0, 2.5])
def test_simplex_prior_is_normalised(concentration, rng):
    simplex = Simplex(3, concentration)
    n = 400
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    total = 0.0
    for s in (1 / 3, 2 / 3):
        a, b = (i + s) / n, (j + s) / n
        points = np.stack([a, b, 1 - a - b], -1).reshape(-1, 3)
        points = points[points[:, 2] > 0]
        total += np.exp(simplex.log_prior_of(points)).sum() * 0.5 / n**2
    assert abs(total - 1) < 0.01
    assert simplex.sample_prior(rng, 5).shape == (5, 3)
    assert np.isneginf(simplex.log_prior_of(np.array([1.2, -0.1, -0.1])))
    np.testing.assert_array_equal(simplex.corner(1), [0, 1, 0])


def test_ladders():
    ladder = coordinate.ladder(5, power=2.0)
    assert ladder.n_rungs == 5 and ladder.n_models == 2
    np.testing.assert_allclose(ladder.weights_of(np.array([0, 2, 4])), [[0, 1], [0.25, 0.75], [1, 0]])
    assert (ladder.corner(0), ladder.corner(1)) == (4, 0)
    index = coordinate.index(3, log_prior=[0.0, 1.0, 2.0])
    assert np.exp(index.log_prior_of(np.arange(3))).sum() == pytest.approx(1)
    assert Ladder(np.array([[0.5, 0.5], [1.0, 0.0]])).corner(1) is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Line(lambda a: 0.9 * a), "gives 0.9 at alpha = 1"),
        (lambda: Line(lambda a: 0.3 + 0.7 * a), "0.3 at alpha = 0"),
        (lambda: Line(lambda a: 1 - a), "must give 1 at the first"),
        (lambda: Line(lambda a: a + 2 * jnp.sin(jnp.pi * a)), r"leaves \[0, 1\]"),
        (lambda: Line(lambda a: a, 1.0, 0.0), "low < high"),
        (lambda: Line(lambda a: a, 0.0, np.inf), "finite interval"),
        (lambda: coordinate.identity(lambda a: a * np.nan), "cannot be normalised"),
        (lambda: coordinate.identity(lambda a: 0 * a - np.inf), "cannot be normalised"),
        (lambda: coordinate.exponential(4.0), "must be negative"),
        (lambda: coordinate.tanh(0.0), "must be positive"),
        (lambda: coordinate.power(-1.0), "must be positive"),
        (lambda: Hats(1), "at least two"),
        (lambda: Ladder(np.array([[0.5, 0.6]])), "sum to 1"),
        (lambda: Ladder(np.array([[1.5, -0.5]])), ">= 0"),
    ],
)
def test_coordinates_that_are_refused(build, message):
    with pytest.raises(CoordinateError, match=message):
        build()
