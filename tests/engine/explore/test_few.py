"""Looks at few parameters: two that share nothing, a third where they disagree, and none that is believed alone."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import supermodel as sm
from engine_problems import Box, Conjugate, meter, two_modes
from supermodel.embedding.warp import Warp, identity
from supermodel.engine.explore import few, plain
from supermodel.engine.explore.few import SLACK
from supermodel.engine.explore.growing import look_at_few
from supermodel.engine.explore.paths import by_level
from supermodel.engine.policy import BATCH, EFFORTS, MISSED
from supermodel.engine.probe import canonical
from supermodel.models.joint import Joint

AUTO = EFFORTS["auto"]


def looked(problem, effort=AUTO, counter=None):
    counter = counter or meter()
    known = problem.joint.probe(np.random.default_rng(0), BATCH, lambda x: counter.likelihood(problem.joint, x))
    return look_at_few(problem.joint, known, 1, 0, counter, effort)


def test_a_normal_posterior_is_recognised_to_rounding_and_costs_little():
    problem = Conjugate(3, traced=True)
    counter = meter()
    pilot = looked(problem, counter=counter)
    assert pilot.reference.is_standard_normal and pilot.spread == 0.0
    assert np.allclose(pilot.warp.mean, problem.mean, atol=1e-6) and np.allclose(
        pilot.warp.factor, problem.sd * np.eye(3), atol=1e-6
    )
    assert (
        counter.evaluations < 512 + 960 + 800 + 300
    )  # draws of the prior, twice; probes; climbs, curvature and the hill's own


def test_a_far_centre_does_not_make_a_posterior_normal(rng):
    """Distances from a centre 1e22 away have no digits left, and a point at -1e16 needs none: neither excuses the others."""
    x = np.concatenate([rng.standard_normal((50, 2)), [[1e8, 0.0]]])
    cloud = SimpleNamespace(x=x, log_joint=-0.5 * np.sum(x**2, axis=1))
    assert plain.is_exact(cloud, identity(2))
    assert not plain.is_exact(cloud, Warp(np.array([1e22, 0.0]), np.eye(2)))
    bumpy = SimpleNamespace(x=x, log_joint=cloud.log_joint + 1e-3 * np.sin(x[:, 0]))
    assert not plain.is_exact(bumpy, identity(2))


def unknown_noise(d=6, n=18):
    """A linear regression with free noise: far from a quadratic in ln sigma, near to a bent one. Exact by the trapezoidal rule."""
    rng = np.random.default_rng(3)
    design = rng.standard_normal((n, d - 1))
    y = design @ rng.standard_normal(d - 1) + rng.standard_normal(n)

    def log_likelihood(p):
        left = (y - np.asarray(p["b"]) @ design.T) / np.asarray(p["sigma"])[..., None]
        return -0.5 * np.sum(left**2, axis=-1) - n * np.log(np.asarray(p["sigma"]))

    def given(sigma):
        values, vectors = np.linalg.eigh(design @ design.T)
        variance, along = sigma[:, None] ** 2 + values, vectors.T @ y
        return -0.5 * np.sum(along**2 / variance + np.log(variance), axis=1)

    t = np.linspace(np.log(0.05), np.log(20.0), 4001)
    prior = np.log(np.sqrt(2 / np.pi)) - 0.5 * np.exp(2 * t) + t
    priors = {"b": dist.Normal(0, 1).expand([d - 1]), "sigma": dist.HalfNormal(1.0)}
    model = sm.Model(priors, log_likelihood, vectorized=True)
    return model, np.logaddexp.reduce(given(np.exp(t)) + prior) + np.log(t[1] - t[0])


def test_a_dear_black_box_that_is_a_bent_quadratic_needs_no_levels():
    model, truth = unknown_noise()
    found = sm.evidence(model, seed=0, explore="thrifty", progress=False)
    assert abs(found.value - truth) < 5 * found.error < 0.5 and found.verdict.level == "ok"
    assert "levels" not in found.settings["pilots"]["model"]["method"]
    assert found.evaluations["likelihood"] < 2500


@pytest.fixture(scope="module")
def black_box():
    box = Box(two_modes, 2)
    return box, looked(box)


def test_a_black_box_is_looked_at_by_sealed_replicates(black_box):
    box, pilot = black_box
    assert [look.name for look in pilot.looks[:2]] == ["replicate", "replicate"] and pilot.is_agreed
    for look in pilot.looks:
        assert abs(look.log_evidence - box.log_evidence) < 5 * look.error < 1.0


def test_a_quick_look_is_one():
    pilot = looked(Box(two_modes, 2), EFFORTS["quick"])
    assert len(pilot.looks) == 1


class Noted:
    """A cloud whose ln Z is off by so much, as a replicate notes it."""

    def __init__(self, cloud, off):
        self.cloud, self.off = cloud, off

    def log_evidence(self):
        value, error = self.cloud.log_evidence()
        return value + self.off, error

    def log_weights(self):
        return self.cloud.log_weights()


def off_by(monkeypatch, *offs):
    """Replicates claim other evidences, the first ones by so many nats."""
    note, noted = few.Explorer._note, []

    def wrong(self, name, cloud, since):
        if name.startswith("replicate"):
            noted.append(name)
            cloud = Noted(cloud, offs[len(noted) - 1] if len(noted) <= len(offs) else 0.0)
        note(self, name, cloud, since)

    monkeypatch.setattr(few.Explorer, "_note", wrong)


def test_replicates_that_disagree_are_not_agreed(monkeypatch):
    off_by(monkeypatch, 3.0)
    assert not looked(Box(two_modes, 2), AUTO._replace(replicates=2)).is_agreed


def test_further_replicates_of_twice_the_size_settle_what_two_disagree_on(monkeypatch):
    off_by(monkeypatch, 3.0)
    levels = []
    monkeypatch.setattr(few, "by_level", lambda cloud, rng, n: levels.append(n) or by_level(cloud, rng, n))
    box = Box(two_modes, 2)
    pilot = looked(box, AUTO)
    assert [look.name for look in pilot.looks] == ["replicate", "replicate", "replicate × 2"] and pilot.is_agreed
    assert levels == [AUTO.level, AUTO.level, 2 * AUTO.level]
    for value, error in ((pilot.looks[2].log_evidence, pilot.looks[2].error), (pilot.log_evidence, SLACK)):
        assert abs(value - box.log_evidence) < 5 * error < 0.5


@pytest.mark.parametrize("patience, most", [(15_000, 4), (60_000, 4), (500_000, 4), (500_000, 3)])
def test_replicates_that_never_agree_end_with_patience_or_their_number(patience, most, monkeypatch):
    """After each but the first, twice what it cost must be left for the next, which is of twice the size."""
    off_by(monkeypatch, 3.0, -3.0, 9.0, -9.0)
    pilot = looked(Box(two_modes, 2), AUTO._replace(patience=patience, replicates=most, race=0))
    spent = np.array([look.evaluations for look in pilot.looks])
    left = patience - (np.cumsum(spent) - BATCH)  # the first draws are known before
    assert not pilot.is_agreed and 2 <= len(spent) <= most
    assert np.all(2 * spent[1:-1] <= left[1:-1])
    assert len(spent) == most or 2 * spent[-1] > left[-1]
    assert len(spent) == most if patience > 100_000 else spent.sum() <= patience + BATCH


def test_replicates_share_no_points_and_their_union_is_the_answer(black_box):
    """Their own random numbers: no point of one is a point of another."""
    box, pilot = black_box
    first, second = pilot.looks[:2]
    assert first.log_evidence != second.log_evidence
    assert pilot.capture.replicates == len(pilot.looks) and 0 < pilot.capture.missed < MISSED
    assert abs(pilot.log_evidence - box.log_evidence) < 5 * SLACK
    assert 0.0 < pilot.vouched < 0.2 and pilot.doubt == 0.0


def narrow_modes(d, sd, traced):
    """Half of the mass in N(-4, 1), half in N(5, sd^2), in a box of side 20."""
    xp = jnp if traced else np

    def log_likelihood(p):
        def ball(centre, width):
            return -0.5 * xp.sum(((p["x"] - centre) / width) ** 2, axis=-1) - d * np.log(width * np.sqrt(2 * np.pi))

        return xp.logaddexp(ball(-4.0, 1.0), ball(5.0, sd)) - np.log(2)

    prior = dist.Uniform(-10, 10).expand([d])
    return SimpleNamespace(
        joint=canonical({"m": sm.Model({"x": prior}, log_likelihood, vectorized=not traced)}, None)[0]
    )


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("d, sd", [(5, 0.2), pytest.param(10, 0.3, marks=pytest.mark.slow)])
def test_a_narrow_mode_is_found_by_what_leads_to_it(traced, d, sd):
    """Above the rest it is 5e-7 and 1e-11 of the prior."""
    pilot = looked(narrow_modes(d, sd, traced))
    held = np.mean(np.sum(pilot.points > 0, axis=1) > d / 2)
    assert pilot.is_agreed and 0.2 < held < 0.8  # 64 draws: five standard deviations about a half
    for look in pilot.looks:
        assert abs(look.log_evidence + d * np.log(20)) < 5 * look.error + 0.25


def test_a_concave_posterior_needs_no_levels():
    design = np.random.default_rng(1).standard_normal((60, 4))
    answers = (np.arange(60) % 3 == 0).astype(float)

    def log_likelihood(p):
        eta = design @ p["b"]
        return jnp.sum(answers * eta - jnp.logaddexp(0.0, eta))

    counter = meter()
    joint = Joint("m", sm.Model({"b": dist.Normal(0, 1).expand([4])}, log_likelihood))
    pilot = looked(SimpleNamespace(joint=joint), counter=counter)
    assert [look.name for look in pilot.looks] == ["climbs", "slopes"] and pilot.is_agreed
    assert counter.evaluations < 2600
    first, second = pilot.looks
    assert first.agrees(second, 4.0, 0.0)


def test_same_seed_same_bits(black_box):
    _, pilot = black_box
    again = looked(Box(two_modes, 2))
    assert np.array_equal(again.points, pilot.points) and again.looks == pilot.looks
