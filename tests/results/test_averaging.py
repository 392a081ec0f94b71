"""Averages over models: evidence-weighted, with errors, safe where a model has no weight, spikes where it is fixed."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from made_result import exact, made_data, made_result, model
from supermodel.errors import SupermodelError
from supermodel.models.model import Model
from supermodel.results.averaging import PART, band, each_draw

SIGMAS = float(-ndtri(1e-6 / 2))
MODELS = {"line": "ab", "curve": "abc"}


def truth(parameter: str):
    """Mean and sd of a parameter averaged over the two models, from closed forms."""
    data, p, moments = made_data(), [], []
    for parameters in MODELS.values():
        closed = exact(data, parameters)
        i = parameters.index(parameter)
        p.append(closed.log_evidence)
        moments.append((closed.posterior_mean[i], closed.posterior_covariance[i, i]))
    p = np.exp(np.array(p) - np.logaddexp.reduce(p))
    means, variances = np.array(moments).T
    mean = p @ means
    return mean, np.sqrt(p @ (variances + (means - mean) ** 2)), p


def test_averaged_moments_are_evidence_weighted_moments():
    result = made_result(0)
    found = result.averaged("b")
    expected = sum(result.probabilities[n] * result.posterior(n).mean("b") for n in MODELS)
    assert found.mean == pytest.approx(expected, abs=1e-12)
    assert found.weights.sum() == pytest.approx(1.0)
    assert np.sum(found.weights * found.values) == pytest.approx(expected, abs=1e-12)
    spread = np.sqrt(np.sum(found.weights * (found.values - expected) ** 2))
    assert found.sd == pytest.approx(spread, abs=1e-12)


def test_averaged_mean_is_the_closed_form_and_unweighted_models_are_seen():
    mean, sd, p = truth("b")
    found = made_result(0, draws=600).averaged("b")
    assert abs(found.mean - mean) < SIGMAS * found.mean_error
    wrong = made_result(0, draws=600).averaged("b", {"line": p[1], "curve": p[0]})  # undoes the evidences
    assert abs(wrong.mean - mean) > SIGMAS * wrong.mean_error
    assert found.sd == pytest.approx(sd, rel=0.05)


def test_the_error_of_the_mean_is_calibrated_and_halved_ones_are_seen():
    mean, _, _ = truth("b")
    z = np.array([(a.mean - mean) / a.mean_error for a in (made_result(s).averaged("b") for s in range(300, 340))])
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 40)
    assert low < np.sum(z**2) < high < 4 * np.sum(z**2)


def test_a_spike_where_a_model_does_not_have_the_parameter():
    result = made_result(1)
    found = result.averaged("c")
    assert found.spikes == {"line": None} and found.is_conditional
    assert found.mean == pytest.approx(result.posterior("curve").mean("c"))
    assert found.spike_probability == pytest.approx(result.probabilities["line"])
    fixed = result.averaged("c", fixed=0.0)
    assert fixed.mean == pytest.approx(result.probabilities["curve"] * result.posterior("curve").mean("c"))
    assert not fixed.is_conditional and "P(c fixed)" in str(fixed)
    odds = {"line": 1e9, "curve": 1.0}
    assert result.averaged("c", odds, fixed=0.25).quantile(0.5) == pytest.approx([0.25])
    with pytest.raises(SupermodelError, match="only"):
        result.averaged("c", fixed={"curve": 0.0})
    with pytest.raises(SupermodelError, match="no model has a parameter"):
        result.averaged("zeta")


def test_a_model_without_weight_does_no_harm():
    result = made_result(2)
    broken = dataclasses.replace(
        result.posteriors["curve"],
        parameters={p: np.full(len(v), np.inf) for p, v in result.posteriors["curve"].parameters.items()},
    )
    faked = dataclasses.replace(result, posteriors={**result.posteriors, "curve": broken})
    with np.errstate(invalid="ignore"):
        found = faked.averaged("b", {"line": 1.0, "curve": 0.0})
    assert found.mean == pytest.approx(result.posterior("line").mean("b")) and np.isfinite(found.mean_error)
    nothing = result.averaged("c", {"line": 1.0, "curve": 0.0})
    assert np.isnan(nothing.mean) and nothing.spike_probability == 1.0
    far = dataclasses.replace(
        result,
        evidences=dataclasses.replace(result.evidences, values=result.evidences.values + np.array([0.0, -2000.0])),
    )
    assert far.averaged("b").mean == pytest.approx(result.posterior("line").mean("b"))


def test_predictions_average_the_models():
    result = made_result(3)
    x = np.array([-0.5, 0.2, 1.1])
    found = result.predict(x, n=1200)
    each = {
        n: sum(result.posterior(n).mean(q) * x ** {"a": 0, "b": 1, "c": 2}[q] for q in ps) for n, ps in MODELS.items()
    }
    expected = sum(result.probabilities[n] * each[n] for n in MODELS)
    np.testing.assert_allclose(found.mean, expected, atol=0.01)  # systematic resampling: 1200 of 1200 draws
    assert found.quantiles.shape == (5, 3) and np.all(np.diff(found.quantiles, axis=0) >= 0)
    assert found.models["line"].probability == result.probabilities["line"]
    only = result.predict(x, {"line": 1.0, "curve": 0.0})
    np.testing.assert_allclose(only.mean, only.models["line"].mean, atol=1e-12)
    assert result.predict().mean.shape == result.data["y"].shape


def test_predictions_of_plain_python_and_of_no_parameters():
    result = made_result(4)
    plain = Model(model("ab").priors, predict=lambda p, x: np.array([float(p["a"]) + float(p["b"]) * v for v in x]))
    swapped = dataclasses.replace(result, models={**result.models, "line": plain})
    np.testing.assert_allclose(swapped.predict(n=50).mean, result.predict(n=50).mean, atol=1e-12)
    loaded = dataclasses.replace(result, models=None)
    with pytest.raises(SupermodelError, match="models="):
        loaded.predict()


def test_weighted_quantiles_of_a_band():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4000, 2))
    weights = np.exp(
        -0.5 * ((draws[:, 0] - 1.0) ** 2 - draws[:, 0] ** 2)
    )  # turns N(0, 1) into N(1, 1) in the first column
    found = band(draws, weights / weights.sum(), (0.5,))
    assert abs(found[0, 0] - 1.0) < 0.2 and abs(found[0, 1]) < 0.2


@pytest.mark.parametrize("n", [3, PART, PART + 1, 3 * PART - 7])
def test_a_function_of_each_draw_is_the_same_in_parts(n):
    draws = {"a": np.arange(n, dtype=float), "b": np.ones((n, 2))}
    found = each_draw(lambda v: v["a"] * np.array([1.0, 2.0]) + v["b"], draws, n)
    np.testing.assert_array_equal(found, np.arange(n)[:, None] * [1.0, 2.0] + 1.0)
