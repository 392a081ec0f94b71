"""Prior sensitivity by reweighting: against closed forms, with honest errors, without a single likelihood call."""

import dataclasses

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import ndtri

import supermodel as sm
from made_result import PRIOR_SD, exact, made_data, made_result
from supermodel.errors import PriorError, SupermodelError
from supermodel.estimation.error import covariance_of_means, influence_of, log_mean_exp
from supermodel.estimation.estimate import Evidences
from supermodel.models.priors import as_prior
from supermodel.results.comparison import Comparison
from supermodel.results.posterior import ModelPosterior
from supermodel.results.record import ChainRecord
from supermodel.results.rescaling import is_cut_off, log_density, rescaled
from supermodel.verdict.verdict import Verdict

SCALES = np.geomspace(0.5, 5.0, 12)  # a factor of 10 in prior width
# One alarm in a million runs, shared among the points of a curve (Bonferroni).
SIGMAS = float(-ndtri(1e-6 / 2 / len(SCALES)))


def truth(scales, factor: float = 1.0):
    data = made_data()
    line = exact(data, "ab").log_evidence
    return np.array([exact(data, "abc", c=factor * s * PRIOR_SD["c"]).log_evidence - line for s in scales])


def test_the_curve_is_the_closed_form_and_a_wrong_width_is_seen():
    found = made_result(1).sensitivity("c", SCALES, pair=("curve", "line"))
    assert np.all(found.is_reliable)
    z = (found.values - truth(SCALES)) / found.errors
    assert np.max(np.abs(z)) < SIGMAS
    planted = (found.values - truth(SCALES, factor=1.6)) / found.errors
    assert np.max(np.abs(planted)) > SIGMAS


def test_errors_are_calibrated_and_halved_ones_are_seen():
    """(estimate - truth)/error over 24 results at three widths; chi-square with a false-alarm rate of 1e-6."""
    scales = np.array([0.5, 1.0, 4.0])
    z = np.array(
        [
            (f.values - truth(scales)) / f.errors
            for f in (made_result(s).sensitivity("c", scales, pair=("curve", "line")) for s in range(100, 124))
        ]
    )
    for column in z.T:
        total = np.sum(column**2)
        assert stats.chi2.ppf(1e-6 / 6, 24) < total < stats.chi2.ppf(1 - 1e-6 / 6, 24)
        assert not total * 4 < stats.chi2.ppf(1 - 1e-6 / 6, 24)


def test_at_the_original_prior_nothing_moves():
    result = made_result(2)
    found = result.sensitivity("c", [1.0])
    assert found.values[0] == pytest.approx(result.log_bayes_factor(found.first, found.second).value, abs=1e-9)
    shifted = result.sensitivity("c", shifts=[0.0])
    assert shifted.values[0] == pytest.approx(found.values[0], abs=1e-9)


def test_no_likelihood_is_called_and_a_fresh_run_agrees():
    data, calls = made_data(), [0]

    def model(names, **sd):
        def log_likelihood(p, d):
            calls[0] += 1
            mean = sum(np.asarray(p[q])[:, None] * d["x"] ** {"a": 0, "b": 1, "c": 2}[q] for q in names)
            return stats.norm.logpdf(d["y"], mean, d["sigma"]).sum(axis=1)

        widths = {**PRIOR_SD, **sd}
        return sm.Model({q: dist.Normal(0.1, widths[q]) for q in names}, log_likelihood, vectorized=True)

    result = sm.compare({"line": model("ab"), "curve": model("abc")}, data, seed=0, target_error=0.05, progress=False)
    assert calls[0] > 0
    before = calls[0]
    found = result.sensitivity("c", SCALES, pair=("curve", "line"))
    result.averaged("a"), str(result), result.table()
    assert calls[0] == before
    z = (found.values - truth(SCALES)) / found.errors
    assert np.max(np.abs(z[found.is_reliable])) < SIGMAS and found.is_reliable.sum() >= 9
    fresh = sm.compare(
        {"line": model("ab"), "curve": model("abc", c=5.0 * PRIOR_SD["c"])},
        data,
        seed=1,
        target_error=0.05,
        progress=False,
    )
    other = fresh.log_bayes_factor("curve", "line")
    assert abs(other.value - found.values[-1]) < SIGMAS * np.hypot(other.error, found.errors[-1])
    original = fresh.log_bayes_factor("curve", "line").value - result.log_bayes_factor("curve", "line").value
    assert abs(original) > SIGMAS * np.hypot(
        other.error, found.errors[-1]
    )  # the two runs do differ: the check can fail


def test_a_prior_far_from_the_draws_is_flagged():
    found = made_result(3).sensitivity("a", shifts=[-40.0, 0.0, 40.0], models=["curve"], pair=("curve", "line"))
    assert found.is_reliable.tolist() == [False, True, False]
    narrow = made_result(3).sensitivity("c", np.geomspace(0.003, 1.0, 8))
    assert not narrow.is_reliable[0] and narrow.is_reliable[-1]
    assert narrow.holds().low_end in ("weights", "conclusion")


def test_the_range_over_which_the_conclusion_holds():
    result = made_result(4)
    found = result.sensitivity("c", np.geomspace(0.5, 200, 30), pair=("curve", "line"))
    span = found.holds()
    # Where the closed form changes sign the range must have ended, within a step of the grid.
    crossing = found.grid[np.argmax(truth(found.grid) < 0)] if np.any(truth(found.grid) < 0) else np.inf
    assert found.original.value > 0 and span.high_end == "conclusion"
    assert span.high < crossing <= span.high * (200 / 0.5) ** (4 / 29)
    banded = found.holds("trotta")
    assert banded.high <= span.high and banded.low >= span.low
    assert "curve" in found.sentence() and "c" in str(found)
    unsettled = dataclasses.replace(found, errors=found.errors + 100.0)
    assert unsettled.holds().low == unsettled.holds().high


def test_a_failed_run_has_no_reliable_point():
    failed = made_result(0, verdict=Verdict("fail"))
    assert not failed.sensitivity("c", [1.0, 2.0]).is_reliable.any()


def test_replacing_a_prior():
    result = made_result(5)
    same = result.sensitivity("c", replace=dist.Normal(0.1, PRIOR_SD["c"] * 2), pair=("curve", "line"))
    scaled = result.sensitivity("c", [2.0], pair=("curve", "line"))
    assert same.values[0] == pytest.approx(scaled.values[0], abs=1e-9)
    assert same.errors[0] == pytest.approx(scaled.errors[0], rel=1e-6)
    assert same.labels == ("Normal(0.1, 1.2)",)
    assert "another prior" in same.sentence()
    with pytest.raises(SupermodelError, match="no order"):
        same.holds()


def test_a_posterior_that_leans_on_an_edge_is_flagged():
    """A flat prior that cuts the posterior: widened, mass appears where there are no draws."""
    result = made_result(6)
    posterior = result.posteriors["curve"]
    cut = as_prior("c", dist.Uniform(-2.0, float(np.quantile(posterior.parameters["c"], 0.7))))
    far = as_prior("c", dist.Uniform(-8.0, 8.0))
    for prior, reliable in ((cut, False), (far, True)):
        priors = {**result.priors, "curve": {**result.priors["curve"], "c": prior}}
        inside = np.isfinite(log_density(prior, posterior.parameters["c"]))
        logs = np.where(inside, posterior.log_weights, -np.inf)
        changed = dataclasses.replace(posterior, log_weights=logs - np.logaddexp.reduce(logs))
        faked = dataclasses.replace(result, priors=priors, posteriors={**result.posteriors, "curve": changed})
        assert faked.sensitivity("c", [1.0, 1.5]).is_reliable.tolist() == [True, reliable]


@pytest.mark.parametrize(("low", "high", "reliable"), [(5.0, 96.0, False), (1.05, 20.0, False), (4.0, 60.0, True)])
def test_near_an_edge_of_a_log_uniform_prior_is_near_in_the_logarithm(low, high, reliable):
    """Flat in ln x from `low` to `high` under a prior on [1, 100]: 2% of its width are 9% of x, at either end."""
    values, weights = np.geomspace(low, high, 2000), np.full(2000, 1 / 2000)
    old = as_prior("x", dist.LogUniform(1.0, 100.0))
    assert is_cut_off(old, rescaled("x", old, 2.0), values, weights) != reliable
    assert not is_cut_off(old, rescaled("x", old, 0.5), values, weights)
    assert is_cut_off(old, as_prior("x", dist.Uniform(0.0, 200.0)), values, weights) != reliable


FAMILIES = [
    (dist.Normal(0.3, 1.2), dist.Normal(0.3, 2.4)),
    (dist.Cauchy(0.3, 1.2), dist.Cauchy(0.3, 2.4)),
    (dist.StudentT(4.0, 0.3, 1.2), dist.StudentT(4.0, 0.3, 2.4)),
    (dist.Laplace(0.3, 1.2), dist.Laplace(0.3, 2.4)),
    (dist.Uniform(-1.0, 2.0), dist.Uniform(-2.5, 3.5)),
    (dist.HalfNormal(0.7), dist.HalfNormal(1.4)),
    (dist.HalfCauchy(0.7), dist.HalfCauchy(1.4)),
    (dist.Exponential(0.5), dist.Exponential(0.25)),
    (dist.Gamma(2.0, 0.5), dist.Gamma(2.0, 0.25)),
    (dist.InverseGamma(2.0, 0.5), dist.InverseGamma(2.0, 1.0)),
    (dist.LogNormal(0.3, 1.2), dist.LogNormal(0.3, 2.4)),
    (dist.LogUniform(0.1, 10.0), dist.LogUniform(0.01, 100.0)),
    (dist.Normal(0.3, 1.2).expand([2]), dist.Normal(0.3, 2.4).expand([2])),
    (dist.Normal(np.zeros(2), 1.2).to_event(1), dist.Normal(np.zeros(2), 2.4).to_event(1)),
]


@pytest.mark.parametrize(("old", "new"), FAMILIES, ids=lambda d: type(d).__name__)
def test_every_family_widens_about_its_centre(old, new):
    values = np.asarray(new.sample(__import__("jax").random.key(0), (7,)))
    np.testing.assert_allclose(
        log_density(rescaled("p", as_prior("p", old), 2.0), values), log_density(as_prior("p", new), values), atol=1e-12
    )


def test_densities_end_where_the_support_ends():
    prior = as_prior("p", dist.Uniform(0.0, 1.0))  # numpyro's own log_prob is 0 everywhere
    assert log_density(prior, np.array([-0.1, 0.5, 1.1])).tolist() == [-np.inf, 0.0, -np.inf]
    skewed = as_prior("p", stats.skewnorm(3.0, 0.5, 2.0))  # no twin in numpyro: known by its quantiles
    values = np.array([-0.5, 0.7, 3.0])
    np.testing.assert_allclose(log_density(skewed, values), stats.skewnorm(3.0, 0.5, 2.0).logpdf(values), atol=2e-3)


def test_what_cannot_be_done_is_refused_with_the_way_out():
    result = made_result(7)
    with pytest.raises(SupermodelError, match="no model has a parameter 'zeta'"):
        result.sensitivity("zeta")
    with pytest.raises(SupermodelError, match="has no parameter 'c'"):
        result.sensitivity("c", models=["line"])
    with pytest.raises(SupermodelError, match="one of `scales`"):
        result.sensitivity("c", [1.0], shifts=[0.0])
    with pytest.raises(SupermodelError, match="positive"):
        result.sensitivity("c", [0.0, 1.0])
    with pytest.raises(PriorError, match="replace="):
        rescaled("p", as_prior("p", dist.Beta(2.0, 3.0)), 2.0)
    with pytest.raises(PriorError, match="begins at 0"):
        rescaled("p", as_prior("p", dist.HalfNormal(1.0)), 1.0, 0.5)
    with pytest.raises(PriorError, match="replace="):
        rescaled("p", as_prior("p", stats.skewnorm(3.0)), 2.0)


def chain_result(seed: int, chains: int = 8, draws: int = 100):
    """Two models of one datum y = 0.8 ± 0.5, of prior sd 1 and 0.4, and independent draws of their even mixture."""
    rng, y, noise, sds = np.random.default_rng(seed), 0.8, 0.5, {"wide": 1.0, "narrow": 0.4}
    log_z = np.array([stats.norm.logpdf(y, 0, np.hypot(noise, sd)) for sd in sds.values()])
    chosen = rng.random((chains, draws)) < 1 / (1 + np.exp(log_z[0] - log_z[1]))
    width = np.array([(noise**-2 + sd**-2) ** -0.5 for sd in sds.values()])[chosen.astype(int)]
    theta = (y * width**2 / noise**2 + width * rng.standard_normal((chains, draws))).ravel()
    log_likelihood = stats.norm.logpdf(y, theta, noise)
    log_prior = np.stack([stats.norm.logpdf(theta, 0, sd) for sd in sds.values()], axis=-1)
    shares = (
        log_likelihood[:, None] + log_prior - np.logaddexp.reduce(log_likelihood[:, None] + log_prior, axis=1)[:, None]
    )
    terms = shares.reshape(chains, draws, 2)
    influence = influence_of(terms, log_mean_exp(terms))
    posteriors = {
        name: ModelPosterior(
            name, {"t": theta}, shares[:, k] - np.logaddexp.reduce(shares[:, k]), log_likelihood, log_prior[:, k],
            np.repeat(np.arange(chains), draws), 0,
        )
        for k, name in enumerate(sds)
    }  # fmt: skip
    record = ChainRecord(tuple(sds), np.exp(terms), terms, np.zeros(0), np.zeros(0), False, {})
    found = Comparison(
        Evidences(tuple(sds), log_mean_exp(terms), covariance_of_means(influence)), Verdict(), {}, posteriors, (), seed,
        dict.fromkeys(sds, 0.5), priors={n: {"t": as_prior("t", dist.Normal(0, sd))} for n, sd in sds.items()}, chain=record,
    )  # fmt: skip
    return found, lambda scale: stats.norm.logpdf(y, 0, np.hypot(noise, scale)) - log_z[1]


def test_the_papers_chain_has_joint_errors_too_and_smaller_or_separate_ones_are_seen():
    """As above, for a record of alpha: the move of ln Z and ln B itself come from the same draws and do not add up.

    Wider priors only: narrower ones bring the models together, and the error is then held up by the run's own.
    """
    scales, z = np.array([1.3, 2.0]), []
    for seed in range(24):
        result, truth = chain_result(seed)
        found = result.sensitivity("t", scales, pair=("wide", "narrow"), models=["wide"])
        z.append((found.values - truth(scales)) / found.errors)
    for column in np.array(z).T:
        total = np.sum(column**2)
        assert stats.chi2.ppf(1e-6 / 4, 24) < total < stats.chi2.ppf(1 - 1e-6 / 4, 24)
        assert not total * 9 < stats.chi2.ppf(1 - 1e-6 / 4, 24)  # errors a third as large
    loose = {n: dataclasses.replace(p, record=-1) for n, p in result.posteriors.items()}
    apart = dataclasses.replace(result, posteriors=loose).sensitivity(
        "t", scales, pair=("wide", "narrow"), models=["wide"]
    )
    assert np.all(np.abs(apart.errors / found.errors - 1) > 0.02)  # two errors in quadrature are another number
