"""calibrate(): rates with intervals, probabilities that mean what they say, and one bad data set that ends nothing."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from made_result import made_data, model
from supermodel.errors import ModelError
from supermodel.models.noise import Gaussian
from supermodel.trust.calibrate import Calibration, _prior_draw, _simulator, rate


def log_likelihood(p, y):
    level = np.reshape(p.get("level", 0.0), (-1, 1))
    return stats.norm.logpdf(y[None, :], level, 1.0).sum(axis=1)


MODELS = {
    "signal": sm.Model({"level": stats.norm(0, 1)}, log_likelihood, vectorized=True),
    "nothing": sm.Model({}, lambda p, y: float(log_likelihood({}, y)[0])),
}
SIMULATE = {name: lambda p, data, rng: p.get("level", 0.0) + rng.standard_normal(8) for name in MODELS}


def log_bayes_factor(y):
    """Closed form: the level's prior is N(0, 1), the noise 1."""
    n = len(y)
    return -0.5 * np.log(n + 1) + 0.5 * (n * np.mean(y)) ** 2 / (n + 1)


def made(n: int, seed: int, shift: float = 0.0) -> Calibration:
    """Exact ln B of simulated data, as a calibration would hold them; `shift` plants an error in ln B."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(["signal", "nothing"], n)
    values = [
        log_bayes_factor((rng.standard_normal() if t == "signal" else 0.0) + rng.standard_normal(8)) + shift
        for t in truth
    ]
    evidences = np.stack([values, np.zeros(2 * n)], axis=1)
    p = np.exp(evidences - np.logaddexp.reduce(evidences, axis=1, keepdims=True))
    return Calibration(("signal", "nothing"), truth, evidences, np.full(2 * n, 0.1), p, ("ok",) * 2 * n, 0.0, ())


def test_exact_probabilities_are_calibrated_and_shifted_ones_are_seen():
    limit = stats.norm.isf(5e-7)
    assert abs(made(2000, 0).calibration_z["signal"]) < limit
    assert abs(made(2000, 0, shift=0.7).calibration_z["signal"]) > limit
    assert sum(r.trials for _, r in made(2000, 0).reliability()) == 4000  # every data set once
    for p, r in made(2000, 0).reliability():
        assert abs(p - r.value) < limit * np.sqrt(p * (1 - p) / r.trials) + 1e-12


def test_rates_are_those_of_the_normal_law():
    found = made(2000, 1)
    # ln B > 0 when |mean| exceeds sqrt((n+1) ln(n+1)) / n with n = 8.
    edge = np.sqrt(9 * np.log(9)) / 8
    false = 2 * stats.norm.sf(edge * np.sqrt(8))
    missed = 1 - 2 * stats.norm.sf(edge / np.sqrt(1 + 1 / 8))
    for expected, r in ((false, found.false_alarm()), (missed, found.missed_detection())):
        assert abs(r.value - expected) < stats.norm.isf(5e-7) * np.sqrt(expected * (1 - expected) / 2000)
        assert abs(r.value - (expected + 0.1)) > stats.norm.isf(5e-7) * np.sqrt(expected * (1 - expected) / 2000)
    assert found.false_alarm(3.0).value <= found.false_alarm(0.0).value


def test_intervals_stay_inside_and_cover():
    assert (rate(0, 20).low, rate(20, 20).high) == (0.0, 1.0)
    assert 0 < rate(0, 20).high < 0.2 and np.isnan(rate(0, 0).value)
    rng = np.random.default_rng(0)
    covered = np.mean([rate(int(k), 40).low <= 0.15 <= rate(int(k), 40).high for k in rng.binomial(40, 0.15, 4000)])
    assert 0.93 < covered < 0.98  # 95% nominal; the law is discrete


def test_a_small_study_end_to_end_with_an_executor():
    with ThreadPoolExecutor(2) as executor:
        found = sm.calibrate(MODELS, n=2, simulate=SIMULATE, executor=executor, target_error=0.2, progress=False)
    assert found.truth.tolist() == ["signal"] * 2 + ["nothing"] * 2 and found.failures == ()
    assert "false alarms" in str(found)
    # The same data sets, in closed form.
    for i, (name, seeded) in enumerate([(n, k) for k, n in enumerate(MODELS) for _ in range(2)]):
        rng = np.random.default_rng([0, seeded, i % 2])
        y = SIMULATE[name](_prior_draw(MODELS[name], rng), None, rng)
        assert abs(found.log_bayes_factors[i] - log_bayes_factor(y)) < 5.5 * max(found.errors[i], 1e-6)


def test_a_bad_data_set_is_told_and_does_not_end_the_study():
    bad = {**SIMULATE, "nothing": lambda p, data, rng: np.full(8, np.nan)}
    found = sm.calibrate(MODELS, n=1, simulate=bad, target_error=0.3, progress=False)
    assert len(found.failures) == 1 and found.failures[0].startswith("data from nothing: DataError")
    assert found.truth.tolist() == ["signal"]


def test_models_with_gaussian_noise_simulate_themselves():
    data, rng = made_data(), np.random.default_rng(0)
    line = model("ab")
    simulated = _simulator("line", line, None)({"a": 2.0, "b": -1.0}, data, rng)
    residual = (simulated["y"] - (2.0 - data["x"])) / 0.6
    assert isinstance(line.noise, Gaussian) and abs(residual.mean()) < 1.2 and 0.4 < residual.std() < 1.8
    np.testing.assert_array_equal(simulated["x"], data["x"])
    with pytest.raises(ModelError, match="simulate="):
        _simulator("signal", MODELS["signal"], None)
    with pytest.raises(ModelError, match="at least two"):
        sm.calibrate({"signal": MODELS["signal"]})
