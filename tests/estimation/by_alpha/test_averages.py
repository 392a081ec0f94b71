import math
from dataclasses import replace

import numpy as np
import pytest

from exact_draws import coordinates, example, is_calibrated, shifted
from supermodel.errors import SupermodelError
from supermodel.estimation.by_alpha.averages import averaged, log_model_weights

PAIR = example()
CASES = {
    "mixture": ("mixture", coordinates.identity()),
    "mixture, e^alpha": ("mixture", coordinates.exponential(-4.0)),
    "index": ("index", None),
    "product, ladder": ("product", coordinates.ladder(7)),
    "blend": ("blend", coordinates.identity()),
}
ODDS = [0.7, 2.1]


def truth(problem, odds, i, owners=None):
    """Probabilities of the models, and mean and sd of coordinate i averaged over its owners."""
    p = np.asarray(odds) * np.exp(problem.log_evidences - problem.log_evidences.max())
    means, variances = [], []
    for w in np.eye(len(p)):
        _, m, c = problem.posterior(w, "product")
        means.append(m[i])
        variances.append(c[i, i])
    q = p * (1 if owners is None else np.asarray(owners))
    q = q / q.sum()
    mean = q @ means
    return p / p.sum(), mean, math.sqrt(q @ (np.array(variances) + np.array(means) ** 2) - mean**2)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_averages_at_any_prior_odds(case, rng):
    draws = PAIR.draws(PAIR.supermodel(*case, tilt=[0.2, 0.0]), rng, 8, 1500)
    probabilities, mean, sd = truth(PAIR, ODDS, 0)
    found = averaged(draws, "u0", dict(zip(PAIR.names, ODDS, strict=True)))
    assert abs(found.mean - mean) < 5 * found.mean_error
    assert abs(found.sd - sd) < 5 * found.sd_error
    assert found.probabilities[PAIR.names[0]] == pytest.approx(probabilities[0], abs=0.05)
    assert found.weights.shape == (8, 1500) and found.weights.sum() == pytest.approx(1.0)
    assert found.effective_size <= 12_000 * (1 + 1e-9)
    _, other, _ = truth(PAIR, [1.0, 0.0], 0)  # the first model alone: what forgetting the odds would come near
    assert abs(found.mean - other) > 5 * found.mean_error


def test_a_parameter_is_averaged_over_the_models_that_have_it(rng):
    draws = PAIR.draws(PAIR.supermodel("mixture"), rng, 8, 1500)
    _, mean, sd = truth(PAIR, ODDS, 1, owners=[1, 0])
    found = averaged(draws, "u1", ODDS)
    assert abs(found.mean - mean) < 5 * found.mean_error and abs(found.sd - sd) < 5 * found.sd_error
    both = averaged(draws, draws.position[..., 1], ODDS)  # an array counts for all models, companion included
    assert abs(both.mean - truth(PAIR, ODDS, 1)[1]) < 5 * both.mean_error
    assert abs(both.mean - mean) > 5 * both.mean_error


def test_errors_are_calibrated(rng):
    _, mean, _ = truth(PAIR, ODDS, 0)
    supermodel, z = PAIR.supermodel("mixture"), []
    for _ in range(60):
        found = averaged(PAIR.draws(supermodel, rng, 8, 250, stay=0.7), "u0", ODDS)
        z.append((found.mean - mean) / found.mean_error)
    assert is_calibrated(z)
    assert not is_calibrated(np.array(z) * math.sqrt(1.7 / 0.3))


@pytest.mark.parametrize("size", [900.0, -900.0])
def test_a_model_of_no_weight_does_no_harm(size, rng):
    draws = shifted(PAIR.draws(PAIR.supermodel("mixture"), rng, 4, 300), size)
    found = averaged(draws, "u0", [0.0, 1.0])
    assert np.isfinite(found.mean) and np.isfinite(found.mean_error)
    assert list(found.probabilities.values()) == pytest.approx([0.0, 1.0])
    logs = draws.log_joints.copy()
    logs[..., 0] = -np.inf
    assert np.isfinite(averaged(replace(draws, log_joints=logs), "u0").mean)


def test_equal_weights_where_the_run_had_the_odds(rng):
    draws = PAIR.draws(PAIR.supermodel("index", coordinates.index(2, np.log([0.25, 0.75]))), rng, 2, 100)
    assert np.allclose(np.exp(log_model_weights(draws, [1.0, 3.0])).sum(axis=-1), 1 / 200)
    assert not np.allclose(np.exp(log_model_weights(draws, [3.0, 1.0])).sum(axis=-1), 1 / 200)


def test_vectors_and_refusals(rng):
    draws = PAIR.draws(PAIR.supermodel("mixture"), rng, 4, 200)
    found = averaged(draws, draws.position)
    assert found.mean.shape == (3,) and found.mean[0] == pytest.approx(averaged(draws, draws.position[..., 0]).mean)
    for odds in ([1.0], [1.0, -1.0], [0.0, 0.0], {"model a": 1.0}, [math.nan, 1.0]):
        with pytest.raises(SupermodelError, match="prior_odds"):
            averaged(draws, "u0", odds)
    with pytest.raises(SupermodelError, match="no parameter"):
        averaged(draws, "nothing")
    with pytest.raises(SupermodelError, match="begin with"):
        averaged(draws, np.zeros(3))
