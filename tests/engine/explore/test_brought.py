"""Posterior draws that the user brought: good ones spare the search, bad ones cannot bias the answer."""

import numpy as np

import supermodel as sm
from engine_problems import Conjugate, assert_within, meter
from supermodel.engine.explore.brought import KEPT, look_at_brought
from supermodel.engine.policy import BATCH, EFFORTS
from supermodel.models.joint import Joint


def brought(problem, draws):
    return problem.model.with_pilot(dict(zip(problem.names, draws.T, strict=True)))


def looked(problem, draws):
    joint, counter = Joint("m", brought(problem, draws)), meter()
    known = joint.probe(np.random.default_rng(0), BATCH, lambda x: counter.likelihood(joint, x))
    return look_at_brought(joint, known, 0, 0, counter, EFFORTS["auto"])


def test_draws_of_the_posterior_give_its_warp(rng):
    problem = Conjugate(2)
    pilot = looked(problem, problem.posterior(rng, 2000))
    # KEPT draws: means within 4.9 errors, 1e-6 of false alarms.
    assert np.allclose(pilot.warp.mean, problem.mean, atol=4.9 * problem.sd / np.sqrt(KEPT))
    assert pilot.spread < 0.3 and pilot.is_agreed and problem.calls == BATCH + KEPT
    assert not np.isfinite(pilot.looks[0].log_evidence)  # draws from elsewhere have no ln Z


def test_draws_that_are_impossible_are_left_out(rng):
    problem = Conjugate(1)
    inner = problem.model._log_likelihood
    problem.model._log_likelihood = lambda p: np.where(p["x00"] > -3.0, inner(p), -np.inf)
    draws = np.concatenate([problem.posterior(rng, 100), np.full((20, 1), -4.0)])
    pilot = looked(problem, draws)
    assert np.all(pilot.points > -3.0) and np.all(np.isfinite(pilot.log_joint))


def test_draws_that_are_off_cannot_bias_the_answer(rng):
    """Two widths off and half as wide: the evidence is right all the same, for the reference holds the prior."""
    problem = Conjugate(1)
    draws = problem.mean + 2 * problem.sd + 0.5 * problem.sd * rng.standard_normal((500, 1))
    found = sm.evidence(brought(problem, draws), seed=1, target_error=0.05, progress=False)
    assert_within(found.log_evidence("model"), problem.log_evidence)
