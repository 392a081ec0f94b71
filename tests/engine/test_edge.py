"""One edge: its chains, its record, and what it costs; against a model whose evidence is known."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from engine_problems import Conjugate, assert_within, meter
from supermodel.embedding.reference import Reference, joined, one_hill, standard_normal
from supermodel.embedding.supermodel import Supermodel
from supermodel.embedding.warp import Warp, identity
from supermodel.engine.edge import Edge, padded, with_reference
from supermodel.engine.kernels import KERNELS, Tuning
from supermodel.engine.meter import Spent
from supermodel.engine.policy import PADDING
from supermodel.errors import ModelError
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.mbar import fit_models
from supermodel.models.joint import Joint
from supermodel.models.model import Model
from supermodel.verdict.examine import examine

CHAINS = 32
HILLS = joined([(0.5, one_hill(np.array([-0.3, 0.0]), np.eye(2), 5.0)),
                (0.5, one_hill(np.array([0.4, 0.2]), 1.2 * np.eye(2), 5.0))])  # fmt: skip


def made(traced, kernel="reference_jumps", most=None):
    """An edge between a model and a reference with hills and prior, on four rungs."""
    problem = Conjugate(2, traced=traced)
    warp = Warp(problem.mean + 0.1, problem.sd * np.eye(2))
    edge = Edge(with_reference(problem.joint, warp, Reference(HILLS, 0.1)), KERNELS[kernel], CHAINS, 7, meter(most))
    w = np.linspace(0, 1, 4)
    table, prior = padded(np.stack([w, 1 - w], axis=1), -w * problem.log_evidence)
    tuning = Tuning(table, prior - np.logaddexp.reduce(prior), edge.kernel.first_step(2), 3)
    return problem, edge, tuning


def begin(edge, top=3):
    edge.begin(np.random.default_rng(1).standard_normal((CHAINS, 2)), np.repeat([0, top], CHAINS // 2))


@pytest.fixture(scope="module")
def black_box():
    problem, edge, tuning = made(traced=False)
    begin(edge)
    edge.advance(0, 20, tuning)
    edge.blocks = [edge.advance(0, 50, tuning) for _ in range(2)]
    return problem, edge, tuning


def test_an_edge_gives_the_evidence(black_box):
    problem, edge, tuning = black_box
    value, error = fit_models(edge.draws(tuning))[0].difference(0, 1)
    assert_within(Estimate(value, error), problem.log_evidence, most=0.05)


def test_draws_in_the_prior_share_of_a_reference_are_no_noise(black_box):
    """Without its few draws there, the evidence against the whole reference is off by -ln 0.9; against the hills it is not."""
    problem, edge, tuning = black_box
    draws = edge.draws(tuning)
    log_hills = HILLS.log_density(np, draws.position.reshape(-1, 2)).reshape(draws.alpha.shape)
    of_prior = 1 - 0.9 * np.exp(log_hills - draws.log_joints[..., 1])
    assert np.mean(of_prior[draws.alpha == 0] > 0.5) > 0.02  # there are such draws
    # Move each of them to a place among the hills: a run that happened to see none.
    usual = np.argwhere((of_prior < 0.2) & (draws.alpha == 0))
    u, log_joints = draws.position.copy(), draws.log_joints.copy()
    for i, (chain, step) in enumerate(np.argwhere((of_prior > 0.2) & (draws.alpha == 0))):
        other = tuple(usual[(7 * i) % len(usual)])
        u[chain, step], log_joints[chain, step] = u[other], log_joints[other]
    unlucky = replace(draws, position=u, log_joints=log_joints)
    whole = fit_models(unlucky)[0].difference(0, 1)
    report = examine(unlucky)
    assert whole[0] - problem.log_evidence > 4 * whole[1]  # silently wrong by about 0.1
    assert_within(Estimate(report.value, report.error), problem.log_evidence, most=0.03, planted=0.2)
    assert examine(draws).error < fit_models(draws)[0].difference(0, 1)[1]  # and the draws there are noise


def test_a_likelihood_gives_the_same_chains_whether_jax_can_trace_it_or_not(black_box):
    _, edge, tuning = black_box
    _, traced, _ = made(traced=True)
    begin(traced)
    traced.advance(0, 20, tuning)
    block = traced.advance(0, 50, tuning)
    assert np.array_equal(block.rung, edge.blocks[0].rung)
    assert np.allclose(block.u, edge.blocks[0].u, rtol=0, atol=1e-9)
    assert np.allclose(block.log_joints, edge.blocks[0].log_joints, rtol=0, atol=1e-9)
    assert block.acceptance == pytest.approx(edge.blocks[0].acceptance)
    assert traced.evaluations == traced.meter.evaluations == CHAINS * 71


def test_every_call_is_counted_once(black_box):
    problem, edge, _ = black_box
    assert problem.calls == edge.evaluations == edge.meter.evaluations == CHAINS * 121
    assert edge.cost == 1 and edge.meter.gradients == 0  # the reference has no likelihood to pay for


def test_two_models_cost_two_evaluations():
    one, two = Conjugate(2, name="one"), Conjugate(2, sigma=0.8, name="two")
    warps = tuple(Warp(p.mean, p.sd * np.eye(2)) for p in (one, two))
    pair = Supermodel({"one": one.model, "two": two.model}, combine="product", warps=warps)
    edge = Edge(pair, KERNELS["crank_nicolson"], CHAINS, 1, meter())
    begin(edge, top=1)
    edge.advance(0, 3, Tuning(np.array([[0.0, 1.0], [1.0, 0.0]]), np.log([0.5, 0.5]), 0.3, 1))
    assert edge.cost == 2 and one.calls == two.calls == CHAINS * 4 and edge.evaluations == CHAINS * 8


def test_gradients_are_those_of_the_first_model_and_are_paid_for():
    problem, edge, tuning = made(traced=True, kernel="hamiltonian")
    begin(edge)
    block = edge.advance(0, 4, tuning)
    x = problem.mean + 0.1 + problem.sd * block.u
    exact = -(x - problem.mean) / problem.sd**2 * problem.sd  # of ln J in u
    assert np.allclose(block.gradients, exact, rtol=0, atol=1e-9)
    assert edge.evaluations == edge.meter.gradients == CHAINS * (1 + 4 * 3)


def test_a_block_ends_with_the_budget():
    problem, edge, tuning = made(traced=False, most=CHAINS * 6 + 5)
    begin(edge)
    assert edge.advance(0, 50, tuning).rung.shape == (CHAINS, 5)
    with pytest.raises(Spent, match="max_evaluations"):
        edge.advance(0, 50, tuning)
    assert problem.calls == CHAINS * 6


def test_a_slow_likelihood_ends_a_block_early(monkeypatch):
    """What has been done until then is kept: a second a step, and a limit after five."""
    problem, edge, tuning = made(traced=False)
    begin(edge)
    limit = problem.calls + 5 * CHAINS
    monkeypatch.setattr(edge.meter, "over", lambda: "max_seconds" if problem.calls >= limit else "")
    assert edge.advance(0, 50, tuning).rung.shape == (CHAINS, 5)


def test_the_record_has_no_rungs_that_only_pad(black_box):
    _, edge, tuning = black_box
    draws = edge.draws(tuning)
    assert len(np.asarray(tuning.table)) == PADDING and draws.supermodel.coordinate.n_rungs == 4
    assert draws.alpha.shape == (CHAINS, 100) and draws.alpha.max() == 3
    assert draws.evaluations == {"likelihood": edge.evaluations, "gradient": 0}
    assert np.array_equal(draws.position, np.concatenate([b.u for b in edge.blocks], axis=1))


def test_padding_adds_rungs_without_prior():
    table, prior = padded(np.array([[0.0, 1.0], [1.0, 0.0]]), np.log([0.5, 0.5]))
    assert len(table) == len(prior) == PADDING and np.all(prior[2:] == -np.inf) and np.all(table[2:] == [1.0, 0.0])
    full = np.zeros((PADDING, 2))
    assert len(padded(full, np.zeros(PADDING))[0]) == PADDING


def test_the_reference_is_the_last_model_and_has_evidence_one():
    problem = Conjugate(1)
    pair = with_reference(
        problem.joint, Warp(problem.mean, problem.sd * np.eye(1)), Reference(one_hill(np.zeros(1), np.eye(1)), 0.2)
    )
    u = np.linspace(-40, 40, 20_001)[:, None]
    values = pair.log_joint_at(1, u, None)
    assert abs(np.exp(values).sum() * (u[1, 0] - u[0, 0]) - 1) < 1e-9
    first = pair.log_joint_at(0, u, lambda joint, x: joint.log_likelihood_at(x))
    assert abs(np.log(np.exp(first).sum() * (u[1, 0] - u[0, 0])) - problem.log_evidence) < 1e-9
    assert pair.is_reference(1) and not pair.is_reference(0)


@pytest.mark.parametrize("kernel", ["crank_nicolson", "hamiltonian"])
def test_no_number_inside_compiled_code_is_told_outside_of_it(kernel):
    """The prior itself, with a hole of 2.3%: proposals there are refused and counted, or the first of them is an error."""

    def likelihood(p):
        return jnp.where(p["x"] > 2.0, jnp.nan, 0.0)

    model = Model({"x": dist.Normal(0, 1), "y": dist.Normal(0, 1)}, likelihood).with_on_error("reject")
    joint, u = Joint("m", model), np.random.default_rng(1).standard_normal((CHAINS, 2))
    edge = Edge(with_reference(joint, identity(2), standard_normal(2)), KERNELS[kernel], CHAINS, 7, meter())
    table, prior = padded(np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]), np.full(3, -np.log(3)))
    u[:, 0] = np.minimum(u[:, 0], 1.0)
    u[0, 0] = 2.5  # a start in the hole, on the rung of the reference
    edge.begin(u, np.zeros(CHAINS, int))
    assert joint.rejected == 1 and not np.isnan(edge.state.log_joints).any()
    tuning = Tuning(table, prior, 0.9, 3)
    block = edge.advance(0, 50, tuning)
    # Half of 1600 steps or more are independent draws, of which 2.3% fall into the hole: 18 are expected, and one or none
    # comes by chance once in 10^6.
    assert joint.rejected > 2
    assert not np.isnan(block.log_joints).any() and np.isneginf(block.log_joints[..., 0]).any()
    assert np.all(block.u[block.rung > 0][:, 0] <= 2.0)
    model.on_error = "raise"
    with pytest.raises(ModelError, match=r"model 'm' is NaN at x = [2-9]\.\d*, y = "):
        edge.advance(0, 50, tuning)
