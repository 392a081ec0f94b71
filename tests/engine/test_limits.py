"""What is claimed where little is known: infinite evidences, targets that were not met, priors that are next to flat."""

import math

import numpy as np
import numpyro.distributions as dist
from scipy import stats

import supermodel as sm
from engine_problems import assert_within

SIGMA, WIDE = 1e-3, 1e6


def vague(d=1, seed=3):
    """`m`: y = X w with w ~ N(0, 1e6) and noise of 1e-3; `null`: w = 0. Returned with the exact ln B(null : m)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((20, d))
    y = SIGMA * rng.standard_normal(20)

    def log_likelihood(p):
        return np.sum(stats.norm.logpdf(y - np.asarray(p["w"]).reshape(-1, d) @ x.T, 0, SIGMA), axis=-1)

    def nothing(p):
        return np.sum(stats.norm.logpdf(y, 0, SIGMA))

    precision = x.T @ x / SIGMA**2 + np.eye(d) / WIDE**2
    score = x.T @ y / SIGMA**2
    truth = 0.5 * np.linalg.slogdet(precision)[1] + d * math.log(WIDE) - 0.5 * score @ np.linalg.solve(precision, score)
    prior = dist.Normal(0, WIDE).expand([d])
    models = {"null": sm.Model({}, nothing), "m": sm.Model({"w": prior}, log_likelihood, vectorized=True)}
    return models, truth


def test_a_prior_next_to_flat_gives_the_answer_and_no_limit():
    """ln L is -1e18 at most prior draws: no step of a temperature may be too coarse for it."""
    models, truth = vague()
    result = sm.compare(models, seed=0, progress=False)
    assert result.verdict.level == "ok"
    assert_within(result.log_bayes_factor("null", "m"), truth)


def test_an_evidence_that_is_infinite_fails():
    """L = |x|^-4 in the plane: the integral diverges, and any number is that of the closest draw."""
    model = sm.Model(
        {"x": dist.Normal(0, 1).expand([2])},
        lambda p: -2 * np.log(np.sum(np.asarray(p["x"]) ** 2, axis=-1)),
        vectorized=True,
    )
    result = sm.evidence(model, seed=1, progress=False, max_evaluations=40_000)
    assert result.verdict.level == "fail" and "heavy_tail" in [reason.code for reason in result.verdict.reasons]


def test_an_evidence_that_missed_its_target_says_so():
    model = sm.Model(
        {"x": dist.Normal(0, 1).expand([3])},
        lambda p: -3 * np.sum(np.abs(np.asarray(p["x"]) - 0.3) ** 1.3, axis=-1),
        vectorized=True,
    )
    result = sm.evidence(model, seed=0, target_error=1e-4, max_evaluations=6000, progress=False)
    assert result.log_evidence().error > 1e-4
    assert "target_not_reached" in [reason.code for reason in result.verdict.reasons]
    assert "0.0001" in str(result.verdict)
