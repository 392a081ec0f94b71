"""One protocol for all explorers: a reference that is normalised, draws that cover, calls that are counted, budgets that hold."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from engine_problems import Box, Conjugate, meter, two_modes
from supermodel.embedding.reference import stretches
from supermodel.engine.explore import EXPLORERS, explore
from supermodel.engine.meter import Spent
from supermodel.engine.policy import BATCH, EFFORTS, FEW
from supermodel.models.joint import Joint

MODES = Box(two_modes, 2)


def traced_modes(p):
    """The same two modes for JAX."""
    x = jnp.stack([p["x0"], p["x1"]])

    def log_normal(mean, sd):
        return jnp.sum(-0.5 * ((x - mean) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi)))

    return jnp.logaddexp(np.log(0.7) + log_normal(-2.5, 0.8), np.log(0.3) + log_normal(2.5, 0.15))


class Case(NamedTuple):
    explorer: str
    problem: object  # whose .calls are counted; None for a traced one
    joint: Joint
    draw: object  # exact draws of the posterior, from (rng, n)
    log_evidence: float


def of_conjugate(explorer, d, traced=False):
    problem = Conjugate(d, traced=traced)
    return Case(explorer, None if traced else problem, problem.joint, problem.posterior, problem.log_evidence)


def exact_modes(rng, n):
    x, mass = MODES.grid()
    spacing = x[1, 1] - x[0, 1]
    return x[rng.choice(len(x), n, p=mass / mass.sum())] + spacing * (rng.random((n, 2)) - 0.5)


def of_modes(traced):
    box, priors = Box(two_modes, 2), {"x0": dist.Normal(0, 4), "x1": dist.Normal(0, 4)}
    joint = Joint("modes", sm.Model(priors, traced_modes)) if traced else box.joint
    return Case("few", None if traced else box, joint, exact_modes, MODES.log_evidence)


def of_brought():
    problem = Conjugate(2)
    draws = problem.posterior(np.random.default_rng(5), 400)
    model = problem.model.with_pilot(dict(zip(problem.names, draws.T, strict=True)))
    return Case("brought", problem, Joint("m", model), problem.posterior, problem.log_evidence)


def of_nothing():
    problem = Conjugate(0)
    problem.model = sm.Model({}, lambda p: 1.3)
    return Case("nothing", None, Joint("m", problem.model), problem.posterior, 1.3)


CASES = {
    "nothing": of_nothing,
    "brought": of_brought,
    "few, black box": lambda: of_modes(False),
    "few, traced": lambda: of_modes(True),
    "few, normal": lambda: of_conjugate("few", 2, True),
    "many, black box": lambda: of_conjugate("many", FEW + 1),
    "many, traced": lambda: of_conjugate("many", FEW + 1, True),
}


@pytest.fixture(scope="module", params=CASES)
def explored(request):
    case, counter = CASES[request.param](), meter()
    known = case.joint.probe(np.random.default_rng(0), BATCH, lambda x: counter.likelihood(case.joint, x))
    pilot = explore(case.joint, known, 3, 0, counter, EFFORTS["auto"])
    # Here, before a test asks for more.
    assert 0 < pilot.evaluations <= counter.evaluations
    assert case.problem is None or case.problem.calls == counter.evaluations
    return case, pilot


def test_every_explorer_is_tried():
    assert {make().explorer for name, make in CASES.items()} == {explorer.name for explorer in EXPLORERS}


def test_the_first_explorer_that_applies_serves(explored):
    case, _ = explored
    assert next(e.name for e in EXPLORERS if e.applies(case.joint)) == case.explorer


def reference_draws(case, pilot, rng, n):
    d, hills = case.joint.dimension, pilot.reference.hills
    prior = pilot.warp.inverse(case.joint.space.sample_prior(rng, n))
    stretch = stretches(rng, float(hills.dof), (n,))
    return pilot.reference.transform(np, rng.standard_normal((n, d)), rng.random(n), stretch, prior)


def log_reference(case, pilot, u):
    prior = case.joint.space.log_prior_at(pilot.warp.points(u)) + pilot.warp.log_det_at(u)
    return pilot.reference.log_density(np, u, prior)


def test_the_reference_is_normalised_and_its_draws_are_its_own(explored, rng):
    """E_r[q / r] = 1 for the hills q made narrower by 5%, whose weights are bounded. 1e-6; off by a tenth is seen."""
    case, pilot = explored
    if case.joint.dimension == 0:
        return
    u = reference_draws(case, pilot, rng, 20_000)
    w = np.exp(pilot.reference.hills.widened(0.95).log_density(np, u) - log_reference(case, pilot, u))
    error = w.std() / np.sqrt(len(w))
    assert abs(w.mean() - 1) < 4.9 * error < 0.05
    assert abs(np.exp(0.1) * w.mean() - 1) > 4.9 * error < abs(np.exp(-0.1) * w.mean() - 1)


def test_draws_cover_the_posterior(explored, rng):
    """Kolmogorov and Smirnov on 64 draws, 1e-6 a coordinate; draws that are 1.5 widths off, or of one mode, are seen."""
    case, pilot = explored
    assert len(pilot.points) == len(pilot.log_joint) == BATCH
    exact = case.draw(rng, 50_000)
    for i in range(case.joint.dimension):
        points = pilot.points[:, i]
        assert stats.ks_2samp(points, exact[:, i]).pvalue > 1e-6
        assert stats.ks_2samp(points + 1.5 * exact[:, i].std(), exact[:, i]).pvalue < 1e-6


def test_no_draw_of_the_posterior_is_left_uncovered(explored, rng):
    """ln p - ln r at exact draws: below 3 nats anywhere, so that no draw of a chain weighs more than twenty others."""
    case, pilot = explored
    x = case.draw(rng, 5000)
    u = pilot.warp.inverse(x)
    with np.errstate(all="ignore"):
        log_posterior = case.joint.log_joint_at(x) - case.log_evidence + pilot.warp.log_det_at(u)
    assert np.max(log_posterior - log_reference(case, pilot, u)) < 3.0


def test_densities_at_the_draws_are_true_and_looks_tell_the_evidence(explored):
    case, pilot = explored
    assert np.allclose(pilot.log_joint, case.joint.log_joint_at(pilot.points), rtol=1e-9, atol=1e-9)
    assert pilot.is_agreed and pilot.looks and pilot.name == case.joint.name
    for look in pilot.looks:
        if np.isfinite(look.log_evidence):
            assert abs(look.log_evidence - case.log_evidence) <= 5 * look.error + 1e-9


@pytest.mark.parametrize("room", [0, 10, 100])
@pytest.mark.parametrize("name", [name for name in CASES if name != "nothing"])
def test_a_budget_that_is_nearly_spent_is_obeyed(name, room):
    case = CASES[name]()
    counter = meter(BATCH + room)
    known = case.joint.probe(np.random.default_rng(0), BATCH, lambda x: counter.likelihood(case.joint, x))
    with pytest.raises(Spent):
        explore(case.joint, known, 3, 0, counter, EFFORTS["auto"])
    assert counter.evaluations <= BATCH + room
    if case.problem is not None:
        assert case.problem.calls <= BATCH + room
