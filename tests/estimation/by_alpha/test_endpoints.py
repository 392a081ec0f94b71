import math

import numpy as np
import pytest

from exact_draws import coordinates, example, is_calibrated, is_within, linear_csv, z_scores
from supermodel.errors import SupermodelError
from supermodel.estimation.by_alpha.endpoints import histogram, kde, tanh_fit

PAIR = example()


@pytest.mark.parametrize("estimator", [lambda d: histogram(d, 40), kde], ids=["histogram", "kde"])
@pytest.mark.parametrize(
    "line",
    [coordinates.identity(), coordinates.identity(coordinates.gaussian(0.4, 0.4)), coordinates.enlarged(0.5)],
    ids=["alpha", "Gaussian prior", "enlarged"],
)
def test_end_densities_give_the_truth_where_the_density_is_smooth(estimator, line, rng):
    supermodel = PAIR.supermodel("blend" if line.is_enlarged else "mixture", line, tilt=[0.2, -0.1])
    draws = PAIR.draws(supermodel, rng, 8, 1500)
    found = estimator(draws).log_bayes_factor(*PAIR.names)
    assert is_within(found, PAIR.log_bayes_factor())
    assert not is_within(found, PAIR.log_bayes_factor() + 1.5)


def test_histogram_errors_are_calibrated(rng):
    z = z_scores(PAIR, PAIR.supermodel("mixture"), lambda d: histogram(d, 20, sensitivity=()), rng)
    assert is_calibrated(z)
    assert not is_calibrated(z * math.sqrt(1.7 / 0.3))


def test_wide_bins_are_biased_and_the_sensitivity_shows_it(rng):
    """C2: on the spike of the linear blend (half-width 0.006) bins of 0.1 lose ln B; narrow ones do not."""
    problem = linear_csv()
    draws = problem.draws(problem.supermodel("blend"), rng, 8, 1500)
    drift = histogram(draws, sensitivity=(10, 300)).details["sensitivity"]
    (wide, wide_error), (narrow, narrow_error) = drift[10], drift[300]
    assert abs(wide - problem.log_bayes_factor()) > 5 * wide_error
    assert abs(narrow - problem.log_bayes_factor()) < 5 * narrow_error + 0.05


def test_an_empty_end_bin_has_an_infinite_error(rng):
    draws = PAIR.record(PAIR.supermodel("mixture"), rng.uniform(0.2, 0.9, (2, 100)), np.zeros((2, 100, 3)))
    assert histogram(draws).log_bayes_factor(*PAIR.names).error == math.inf


@pytest.mark.parametrize(("cutoff", "expected"), [(-4.0, 3.90), (-6.0, 4.09), (-8.0, 3.77), (-10.0, 3.71)])
def test_the_tanh_fit_fails_on_the_exact_density(cutoff, expected):
    """Errata 1.3: perfect sampling would not give 4.88 either."""
    problem = linear_csv()
    grid = np.linspace(cutoff, 0.0, 2000)
    log_z = np.array([problem.posterior(np.array([f, 1 - f]), "blend")[0] for f in np.exp(grid)])
    density = np.exp(log_z - log_z.max())
    found = tanh_fit((grid, density / np.trapezoid(density, grid)), names=("M1", "M2"))
    assert -found.values[0] == pytest.approx(expected, abs=0.006)
    assert expected < 4.1 < 4.8792


def test_the_tanh_fit_of_a_line_is_fair(rng):
    draws = PAIR.draws(PAIR.supermodel("mixture"), rng, 8, 2000)
    found = tanh_fit(draws, bins=20).log_bayes_factor(*PAIR.names)
    assert abs(found.value - PAIR.log_bayes_factor()) < 0.3 and 0.01 < found.error < 0.3


def test_ends_need_a_line(rng):
    with pytest.raises(SupermodelError, match="counts"):
        histogram(PAIR.draws(PAIR.supermodel("index"), rng, 2, 20))
