"""Looks at many parameters: curvature where it is exact, hills at rival modes, particles for black boxes."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import supermodel as sm
from engine_problems import Conjugate, meter
from supermodel.embedding.reference import standard_normal
from supermodel.embedding.warp import Bent, Warp
from supermodel.engine.explore import many
from supermodel.engine.explore.chains import NUTS_CHAINS, Chains
from supermodel.engine.explore.many import _is_concave, _is_covered, look_at_many
from supermodel.engine.explore.particles import Particles
from supermodel.engine.policy import BATCH, EFFORTS, STABLE
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint

D = 21
AUTO = EFFORTS["auto"]


def looked(joint, counter, effort=AUTO):
    known = joint.probe(np.random.default_rng(0), BATCH, lambda x: counter.likelihood(joint, x))
    return look_at_many(joint, known, 1, 0, counter, effort)


def test_the_curvature_of_a_normal_posterior_is_all_there_is_to_know():
    problem, counter = Conjugate(D, traced=True), meter()
    pilot = looked(problem.joint, counter)
    assert [look.name for look in pilot.looks] == ["climbs", "curvature"]
    assert pilot.looks[1].log_evidence == pytest.approx(problem.log_evidence, abs=1e-4)
    assert pilot.reference.is_standard_normal and pilot.spread < 1e-4
    assert np.allclose(pilot.warp.mean, problem.mean, atol=1e-4)
    assert counter.gradients < 1000


def test_slopes_bend_the_warp_of_a_skewed_posterior(monkeypatch):
    """A logistic regression of 24 parameters on 72 data."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((72, 24))
    y = (rng.random(72) < 1 / (1 + np.exp(-x @ rng.standard_normal(24)))).astype(float)
    model = sm.Model(
        {"b": dist.Normal(0, 1).expand([24])}, lambda p: jnp.sum(y * (x @ p["b"]) - jnp.logaddexp(0.0, x @ p["b"]))
    )
    joint = Joint("model", model)
    pilot = looked(joint, meter())
    monkeypatch.setattr(many, "BENT_UP_TO", 0)
    affine = looked(joint, meter())
    assert isinstance(pilot.warp, Bent) and isinstance(affine.warp, Warp) and pilot.spread < 0.75 * affine.spread


def test_a_black_box_is_looked_at_by_particles_and_by_nested_laplace(monkeypatch):
    problem, counter = Conjugate(D), meter()
    pilot = looked(problem.joint, counter)
    assert [look.name for look in pilot.looks] == ["tempered particles", "nested Laplace"] and pilot.is_agreed
    for look in pilot.looks:
        assert abs(look.log_evidence - problem.log_evidence) < 5 * look.error < 3.0  # the particles lag by 0.4
    assert sum(look.evaluations for look in pilot.looks) == counter.evaluations - BATCH
    assert len(looked(problem.joint, meter(), EFFORTS["quick"]).looks) == 1
    monkeypatch.setattr(many, "nested_laplace", lambda *_: None)
    pilot = looked(problem.joint, meter())
    assert [look.name for look in pilot.looks] == ["tempered particles"] * 2
    for look in pilot.looks:
        assert abs(look.log_evidence - problem.log_evidence) < 5 * look.error < 2.0


def test_a_reference_that_lacks_a_mode_in_which_particles_are_does_not_serve(rng, monkeypatch):
    """Two modes of equal mass, eight widths apart. With particles in one of them the reference knows no other."""
    sigma, y = 0.1, 0.4

    def log_likelihood(p):
        x = np.asarray(p["x"], float)
        return -0.5 * np.sum((np.concatenate([np.abs(x[:, :1]) - y, x[:, 1:]], axis=1) / sigma) ** 2, axis=1)

    joint = Joint("m", sm.Model({"x": dist.Normal(0, 1).expand([D])}, log_likelihood, vectorized=True))
    here = sigma * rng.standard_normal((512, D)) + np.where(np.arange(D) == 0, y, 0.0)
    there = here * np.where(np.arange(D) == 0, -1.0, 1.0)
    found = in_float64(many.nested_laplace)(joint, meter(), rng, here)
    monkeypatch.setattr(many, "nested_laplace", lambda *_: found)

    def followed(x):
        first = Particles(x, joint.log_likelihood_at(x), joint.space.log_prior_at(x), 0.0, 0.1)
        return in_float64(many._followed)(joint, meter(), np.random.default_rng(0), first, 100)

    one = followed(here)
    assert one is not None and np.all(one.points[:, 0] > 0)
    assert one.looks[0].error > 1.0  # as far from the other look as it is
    assert followed(np.concatenate([here[:384], there[384:]])) is None


def test_particles_that_lag_behind_are_moved_until_they_stand_still(rng):
    """Three times too narrow at first; then within STABLE of the mean and the width of the posterior, and noise of 5 errors."""
    problem = Conjugate(D)
    n = 512
    x = problem.mean + problem.sd / 3 * rng.standard_normal((4 * n, D))
    state = x, problem.joint.log_likelihood_at(x), problem.joint.space.log_prior_at(x)
    after = many._settled(problem.joint, meter(), rng, state, n)
    z = (after[0] - problem.mean) / problem.sd
    assert np.all(np.abs(z.mean(0)) < 5 / n**0.5) and np.all(np.abs(z.std(0) - 1) < STABLE)
    assert np.allclose(after[1] + after[2], problem.joint.log_joint_at(after[0]))
    assert many._settled(problem.joint, meter(20_000), rng, state, n) is state  # no room for it


@pytest.mark.parametrize("most", [10_000, 60_000])
def test_a_small_budget_leaves_room_for_the_answer(most):
    """30 parameters: what exploration may spend holds one or two small populations, and the answer stands on them."""
    wide = np.hypot(1.0, 0.2)
    truth = 30 * (-0.5 * (0.5 / wide) ** 2 - np.log(wide / 0.2))
    model = sm.Model(
        {"x": dist.Normal(0, 1).expand([30])},
        lambda p: -0.5 * np.sum(((np.asarray(p["x"]) - 0.5) / 0.2) ** 2, axis=-1),
        vectorized=True,
    )
    found = sm.evidence(model, seed=0, max_evaluations=most, progress=False)
    assert found.evaluations["likelihood"] <= most and found.verdict.level != "fail"
    assert abs(found.value - truth) < 5 * found.error < 0.5


def test_rival_modes_get_a_hill_each():
    """A parameter whose sign the data do not know: two modes of equal mass, and twice the evidence of either."""
    sigma, y = 0.1, 0.8
    names = [f"x{i:02d}" for i in range(D)]

    def log_likelihood(p):
        x = jnp.stack([p[n] for n in names])
        rest = jnp.sum(-0.5 * (x[1:] / sigma) ** 2)
        return rest - 0.5 * ((jnp.abs(x[0]) - y) / sigma) ** 2 - D * np.log(sigma * np.sqrt(2 * np.pi))

    joint = Joint("m", sm.Model(dict.fromkeys(names, dist.Normal(0, 1)), log_likelihood))
    pilot = looked(joint, meter())
    assert len(pilot.reference.hills.log_weights) == 2
    assert 10 < np.sum(pilot.points[:, 0] > 0) < 54  # binomial of 64: 1e-8 at either end
    wide = np.hypot(1, sigma)
    each = -0.5 * (y / wide) ** 2 - D * np.log(wide * np.sqrt(2 * np.pi))
    assert abs(pilot.looks[1].log_evidence - each - np.log(2)) < 5 * pilot.looks[1].error < 1.0


def test_a_chain_that_sits_where_the_reference_has_no_draws_is_seen(rng):
    problem = Conjugate(D, traced=True)
    warp = Warp(problem.mean, problem.sd * np.eye(D))
    found = SimpleNamespace(warp=warp, reference=standard_normal(D), log_evidence=problem.log_evidence)
    x = problem.mean + problem.sd * rng.standard_normal((20 * NUTS_CHAINS, D))
    chains = Chains(x, problem.joint.log_joint_at(x), warp, 0.1, 1.0)
    assert _is_covered(problem.joint, chains, found)
    x = x.copy()
    x[-20:, 0] += 6 * problem.sd  # as if there were as much of J there
    assert not _is_covered(problem.joint, chains._replace(x=x), found)


def test_whether_ln_j_is_concave_is_told_by_slopes(rng):
    """Logistic regression without noise is concave and skewed. With a sine in it it is not."""
    a = rng.standard_normal((60, D))

    def chains_of(bend):
        def log_likelihood(p):
            return -jnp.sum(jnp.logaddexp(0.0, a @ p["x"])) + bend * jnp.sum(jnp.sin(9 * p["x"]))

        joint = Joint("m", sm.Model({"x": dist.Normal(0, 1).expand([D])}, log_likelihood))
        x = rng.standard_normal((128, D))
        return joint, Chains(x, 3 * np.arange(128.0), Warp(np.zeros(D), np.eye(D)), 0.1, 1.0)

    assert _is_concave(*chains_of(0.0), meter(), rng) and not _is_concave(*chains_of(1.0), meter(), rng)


@pytest.mark.parametrize("rhat, is_concave, believed", [(1.0, True, True), (1.0, False, False), (1.3, True, False)])
def test_chains_far_from_normal_are_believed_where_ln_j_is_concave(monkeypatch, rhat, is_concave, believed):
    """Chains that have not settled are never believed; those that are not go on to NUTS."""
    problem = Conjugate(D, traced=True)
    warp = Warp(problem.mean, problem.sd * np.eye(D))
    x = warp.points(np.random.default_rng(1).standard_normal((128, D)))
    chains = Chains(x, problem.joint.log_joint_at(x) + np.arange(128.0), warp, 0.1, rhat)
    monkeypatch.setattr(many, "_at_the_mode", lambda *_: None)
    monkeypatch.setattr(many, "about_a_mode", lambda *_: chains)
    monkeypatch.setattr(many, "_is_concave", lambda *_: is_concave)
    monkeypatch.setattr(many, "_dispersed", lambda *_: None)
    pilot = looked(problem.joint, meter())
    assert (pilot is not None) == believed and (pilot is None or pilot.is_concave)
