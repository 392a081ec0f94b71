"""What drives the preference: exact decompositions of the linear model."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ndtri

from made_result import POWERS, PRIOR_SD, exact, made_data, made_result
from supermodel.errors import ModelError, SupermodelError
from supermodel.exact import LinearGaussian, polynomial

SIGMAS = float(-ndtri(1e-6 / 2 / 24))  # shared among the 24 data


def without(data, i, names):
    """ln Z of the data without datum (or block) i."""
    keep = np.ones(len(data["x"]), bool)
    keep[i] = False
    design = polynomial(data["x"][keep], [POWERS[p] for p in names])
    return LinearGaussian(
        design, data["y"][keep], data["sigma"][keep], np.array([PRIOR_SD[p] ** 2 for p in names]), 0.1
    ).log_evidence


@pytest.fixture(scope="module")
def result():
    return made_result(0, draws=250)


def test_fit_and_occam_sum_to_the_evidence(result):
    for name, parameters in (("line", "ab"), ("curve", "abc")):
        part = result.split(name)
        assert part.fit.value + part.occam.value == pytest.approx(result.log_evidence(name).value, abs=1e-12)
        closed = exact(made_data(), parameters)
        scaled = closed.scaled_design
        fit = float(closed.log_likelihood(closed.posterior_mean)) - 0.5 * np.trace(
            scaled @ closed.posterior_covariance @ scaled.T
        )
        assert abs(part.fit.value - fit) < SIGMAS * part.fit.error
        assert abs(part.fit.value - (fit + 0.5)) > SIGMAS * part.fit.error
        assert part.occam.value < 0


def test_contributions_sum_to_the_bayes_factor(result):
    found = result.drivers("curve", "line")
    assert found.total_fit + found.occam == pytest.approx(result.log_bayes_factor("curve", "line").value, abs=1e-9)
    assert found.total_fit == pytest.approx(result.split("curve").fit.value - result.split("line").fit.value, abs=1e-9)
    np.testing.assert_array_equal(found.position, result.data["x"])


def test_leaving_out_is_the_closed_form_and_a_shifted_datum_is_seen(result):
    data = made_data()
    full = exact(data, "abc").log_evidence - exact(data, "ab").log_evidence
    truth = np.array([full - (without(data, i, "abc") - without(data, i, "ab")) for i in range(24)])
    found = result.drivers("curve", "line")
    good = found.pareto_k < 0.7
    assert good.sum() > 18
    z = (found.leave_out - truth) / found.leave_out_error
    assert np.max(np.abs(z[good])) < SIGMAS
    planted = (found.leave_out - np.roll(truth, 1)) / found.leave_out_error  # the wrong datum
    assert np.max(np.abs(planted[good])) > SIGMAS


def test_blocks_are_left_out_whole(result):
    data = made_data()
    blocks = np.where(data["x"] < 1.0, "low", "high")
    found = result.drivers("curve", "line", blocks=blocks)
    assert found.labels == ("low", "high") and found.position is None
    high = blocks == "high"
    full = exact(data, "abc").log_evidence - exact(data, "ab").log_evidence
    truth = full - (without(data, high, "abc") - without(data, high, "ab"))
    assert abs(found.leave_out[1] - truth) < SIGMAS * found.leave_out_error[1]
    assert found.fit.sum() == pytest.approx(result.drivers("curve", "line").total_fit, abs=1e-9)
    with pytest.raises(SupermodelError, match="one label for each"):
        result.drivers(blocks=[1, 2])


def test_models_without_pointwise_likelihoods_are_refused_or_helped(result):
    bare = dataclasses.replace(result, models=None)
    with pytest.raises(ModelError, match="models="):
        bare.drivers()
    given = {n: m.pointwise_log_likelihood for n, m in result.models.items()}
    np.testing.assert_allclose(bare.drivers(pointwise=given).fit, result.drivers().fit, atol=1e-12)
    assert "fit" in str(result.drivers()) and "Occam" in str(result.drivers())
