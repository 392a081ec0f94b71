"""Nested Laplace: who leads is found, the lattice knows the mass of long tails, and a reference from it is nearly the posterior."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from engine_problems import Conjugate, meter
from supermodel.engine.explore import nested_laplace as laplace
from supermodel.engine.explore.nested_laplace import far_apart, leaders, nested_laplace
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint

T = 24  # steps of a random walk seen through noise: 26 parameters
Y = np.cumsum(0.8 * np.random.default_rng(1).standard_normal(T)) + 0.2 * np.random.default_rng(2).standard_normal(T)


def walk() -> sm.Model:
    """The noise may be as small as it likes beside the steps: its logarithm has a long tail."""

    def log_likelihood(p):
        mu = jnp.exp(p["log_step"]) * jnp.cumsum(p["z"])
        return jnp.sum(-0.5 * ((Y - mu) / jnp.exp(p["log_noise"])) ** 2 - p["log_noise"] - 0.5 * np.log(2 * np.pi))

    scalars = dict.fromkeys(("log_step", "log_noise"), dist.Normal(-1, 1))
    return sm.Model(scalars | {"z": dist.Normal(0, 1).expand([T])}, log_likelihood)


def log_marginal(phi):
    """ln p(y, phi) of (ln step, ln noise), (n, 2): y is normal."""
    sums = np.tril(np.ones((T, T)))
    each = [
        stats.multivariate_normal(np.zeros(T), np.exp(2 * a) * sums @ sums.T + np.exp(2 * b) * np.eye(T)).logpdf(Y)
        for a, b in phi
    ]
    return np.array(each) + stats.norm(-1, 1).logpdf(phi).sum(1)


def log_evidence():
    a, b = np.linspace(-2.2, 1.2, 60), np.linspace(-6.5, 0.5, 90)
    grid = np.stack(np.meshgrid(a, b), -1).reshape(-1, 2)
    return np.logaddexp.reduce(log_marginal(grid)) + np.log((a[1] - a[0]) * (b[1] - b[0]))


def somewhere(rng, n=40):
    """Points that chains too short might leave: near the mass of the leaders, and too narrow."""
    return np.concatenate([[-0.3, -1.4] + 0.1 * rng.standard_normal((n, 2)), rng.standard_normal((n, T))], axis=1)


def joint_of(model):
    joint = Joint("m", model)
    assert joint.is_traceable
    return joint


def test_the_standard_deviations_of_a_random_walk_lead_and_nothing_else_does(rng):
    joint, x = joint_of(walk()), somewhere(rng)
    assert sorted(in_float64(leaders)(joint, meter(), rng, x, x.std(0))) == [0, 1]


def test_in_a_normal_posterior_nothing_leads(rng):
    problem = Conjugate(5, traced=True)
    x = problem.mean + problem.sd * rng.standard_normal((40, 5))
    assert in_float64(leaders)(problem.joint, meter(), rng, x, x.std(0)) == []
    assert in_float64(nested_laplace)(problem.joint, meter(), rng, x) is None


def test_the_mass_at_every_node_is_that_of_the_others_integrated(rng):
    """They are normal given the leaders, so that it is exact; and the tail to small noise belongs to the lattice."""
    joint, x = joint_of(walk()), somewhere(rng)
    scale = x.std(0)
    frame = laplace.Frame([0, 1], list(range(2, T + 2)), x[:, :2].mean(0), np.diag(2 * scale[:2]), scale)
    nodes, whole = in_float64(laplace.grown)(joint, meter(), frame, x[:2])
    phi = frame.centre + nodes.t @ frame.factor.T
    assert whole and phi[:, 1].min() < -4.0
    np.testing.assert_allclose(nodes.log_mass, log_marginal(phi), rtol=0, atol=1e-5)
    assert np.ptp(nodes.log_mass) > laplace.DEEP


def test_the_reference_is_nearly_the_posterior_and_its_draws_tell_the_evidence(rng, monkeypatch):
    """Within 5 errors (false alarms: 6e-7). Where the covariance is that of one node, hardly a draw counts."""
    joint, x, counter = joint_of(walk()), somewhere(rng), meter()
    found = in_float64(nested_laplace)(joint, counter, rng, x)
    assert found.share > 0.6 and abs(found.log_evidence - log_evidence()) < 5 * found.error < 0.15
    assert sorted(found.warp.order[:2]) == [0, 1] and counter.evaluations < 12_000
    assert np.allclose(found.log_joint, joint.log_joint_at(found.x))

    def as_at_the_top(nodes):
        top = int(np.argmax(nodes.log_mass))
        return nodes._replace(covariance=np.broadcast_to(nodes.covariance[top], nodes.covariance.shape))

    grown = laplace.grown
    monkeypatch.setattr(laplace, "grown", lambda *a: (as_at_the_top((out := grown(*a))[0]), out[1]))
    assert in_float64(nested_laplace)(joint, meter(), rng, x).share < 0.3


def test_points_far_apart_cover_a_line(rng):
    t = rng.uniform(-5, 5, (300, 1))
    few = np.sort(t[far_apart(t, 9)][:, 0])
    assert np.diff(few).max() < 3 and few[0] < -4.5 and few[-1] > 4.5
    assert len(far_apart(t[:4], 9)) == 4


@pytest.mark.slow
def test_a_random_walk_is_weighed_from_end_to_end():
    """5 errors (false alarms: 6e-7)."""
    found = sm.evidence(walk(), seed=0, progress=False)
    assert abs(found.value - log_evidence()) < 5 * found.error < 0.5 and found.verdict.is_reliable
