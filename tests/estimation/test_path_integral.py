import math

import numpy as np
import pytest

from exact_draws import coordinates, example, is_calibrated, is_within, shifted, z_scores
from supermodel.embedding.coordinate import Ladder
from supermodel.errors import SupermodelError
from supermodel.estimation.path_integral import path_integral

PAIR = example()


def rungs(n):
    """Close near the corners, where the mean of ln J is steep."""
    t = np.sin(np.linspace(0, np.pi / 2, n)) ** 2
    return Ladder(np.stack([t, 1 - t], axis=1))


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
