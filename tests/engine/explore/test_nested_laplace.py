"""Nested Laplace: who leads is found, the lattice knows the mass of long tails, and a reference from it is nearly the posterior."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from engine_problems import Conjugate, meter
from supermodel.embedding.warp import skewed
from supermodel.engine.explore import nested_laplace as laplace
from supermodel.engine.explore.nested_laplace import far_apart, leaders, nested_laplace
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint

T = 24  # steps of a random walk seen through noise: 26 parameters
Y = np.cumsum(0.8 * np.random.default_rng(1).standard_normal(T)) + 0.2 * np.random.default_rng(2).standard_normal(T)


def walk(black=False) -> sm.Model:
    """The noise may be as small as it likes beside the steps: its logarithm has a long tail."""

    def log_likelihood(p):
        xp = np if black else jnp
        step, log_noise = p["log_step"][..., None], p["log_noise"][..., None]
        mu = xp.exp(step) * xp.cumsum(p["z"], axis=-1)
        return xp.sum(-0.5 * ((Y - mu) / xp.exp(log_noise)) ** 2 - log_noise - 0.5 * np.log(2 * np.pi), axis=-1)

    def black_box(p):  # np.asarray of a tracer raises
        return log_likelihood({name: np.asarray(value, float) for name, value in p.items()})

    scalars = dict.fromkeys(("log_step", "log_noise"), dist.Normal(-1, 1))
    priors = scalars | {"z": dist.Normal(0, 1).expand([T])}
    return sm.Model(priors, black_box if black else log_likelihood, vectorized=black)


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
    chosen, coupled = in_float64(leaders)(joint, meter(), rng, x, x.std(0))
    assert sorted(chosen) == [0, 1] and coupled[:2].all()


def test_in_a_normal_posterior_nothing_leads(rng):
    problem = Conjugate(5, traced=True)
    x = problem.mean + problem.sd * rng.standard_normal((40, 5))
    chosen, coupled = in_float64(leaders)(problem.joint, meter(), rng, x, x.std(0))
    assert chosen == [] and np.array_equal(coupled, np.eye(5, dtype=bool))
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


def test_curvature_by_values_is_that_by_slopes(rng):
    """A quartic's differences are off by h^2 / 12 of its fourth derivatives: of a width h = 0.3, by a hundredth of the diagonal."""
    traced, black = joint_of(walk()), Joint("m", walk(black=True))
    point, scale = np.concatenate([[-0.3, -1.0], rng.standard_normal(T)]), np.ones(T + 2)
    _, slope, exact = in_float64(laplace._curvature)(traced, meter(), point, scale, range(2, T + 2))
    _, gradient, found = in_float64(laplace._curvature)(black, meter(), point, scale, range(2, T + 2))
    # In z, given the leaders, ln J is quadratic: exact but for rounding.
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-6 * np.abs(slope).max())
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5 * np.abs(exact).max())
    whole = in_float64(laplace._curvature)(black, meter(), point, scale, range(T + 2))[2]
    theirs = in_float64(laplace._curvature)(traced, meter(), point, scale, range(T + 2))[2]
    assert np.abs(whole - theirs)[2:, 2:].max() < 1e-5 * np.abs(exact).max()
    assert np.abs(np.diagonal(whole - theirs)[:2] / np.diagonal(theirs)[:2]).max() < 0.1


def test_pairs_that_are_not_coupled_cost_nothing(rng):
    """A black box of independent coordinates: 2 d + 1 values for its curvature, where all pairs would be d^2 / 2 more."""
    problem, counter = Conjugate(21), meter()
    scale = np.full(21, problem.sd)
    _, _, curvature = laplace._curvature(
        problem.joint, counter, problem.mean, scale, range(21), coupled=np.eye(21, dtype=bool)
    )
    assert counter.evaluations == 2 * 21 + 1
    np.testing.assert_allclose(curvature, np.eye(21) / problem.sd**2, rtol=1e-6, atol=0)
    laplace._curvature(problem.joint, counter, problem.mean, scale, range(21))
    assert counter.evaluations == 2 * (2 * 21 + 1) + 21 * 20 // 2


def test_a_black_box_is_weighed_as_well_as_by_slopes(rng):
    """Also where nothing leads, for want of chains about the mode: one coordinate is taken all the same."""
    joint, x = Joint("m", walk(black=True)), somewhere(rng)
    assert not joint.is_traceable
    found = in_float64(nested_laplace)(joint, meter(), rng, x)
    assert found.share > 0.6 and abs(found.log_evidence - log_evidence()) < 5 * found.error < 0.15
    u = found.warp.inverse(found.x)
    expected = joint.log_joint_at(found.x) + found.warp.log_det_at(u) - found.gap
    log_prior = joint.space.log_prior_at(found.x) + found.warp.log_det_at(u)
    assert np.allclose(expected, found.reference.hills.log_density(np, u))
    there = found.log_density(joint, found.x) + found.warp.log_det_at(u)
    assert np.allclose(there, found.reference.log_density(np, u, log_prior))
    problem = Conjugate(21)
    x = problem.posterior(rng, 40)
    assert in_float64(nested_laplace)(problem.joint, meter(), rng, x).share > 0.8
    assert in_float64(nested_laplace)(problem.joint, meter(5000), rng, x) is None  # not even probes: 2 x 8 x 21^2


def test_weighted_draws_correct_means_widths_and_skews(rng):
    """Draws that are weighed towards another law of the others: its moments come out, within 5 errors of 40 000 draws."""
    n, c = 40_000, np.array([0.6, 0.0, -0.4])
    u = rng.standard_normal((n, 4))
    r = 0.3 + 1.2 * skewed(np, u[:, 1:], c)
    nodes = laplace.Nodes(np.arange(5.0)[:, None], np.zeros((5, 3)), np.array([4.0 * np.eye(3)] * 5), np.zeros(5))
    warp = SimpleNamespace(inverse=lambda x: x, skew=np.zeros(3))
    x = np.concatenate([u[:, :1], r], axis=1)
    better, skew = laplace.corrected(nodes, SimpleNamespace(warp=warp, x=x, gap=np.zeros(n)))
    mean = 0.3 + 1.2 * c * laplace.MEAN
    sd = 1.2 * np.sqrt(1 + c**2 * laplace.VARIANCE)
    np.testing.assert_allclose(better.mean, np.broadcast_to(2 * mean, (5, 3)), rtol=0, atol=5 * 2 * 1.5 / n**0.5)
    np.testing.assert_allclose(better.covariance[3], np.diag(4 * sd**2), rtol=0, atol=5 * 2 * 4 * 2 / n**0.5)
    # An error of sqrt(6 / n) of the skewness, twice as large where it is skewed, is one of c by a third of it.
    np.testing.assert_allclose(skew, c, rtol=0, atol=5 * 2 * np.sqrt(6 / n))
    same, none = laplace.corrected(nodes, SimpleNamespace(warp=warp, x=u[:500], gap=np.zeros(500)))
    assert np.abs(same.mean).max() < 5 * 2 / 500**0.5 and np.abs(none).max() < 5 * np.sqrt(6 / 500)


def counts() -> tuple[sm.Model, float]:
    """24 Poisson counts, most of them 0 or 1, of rates exp(m + s z_j): given (m, s) each z_j is skewed. ln Z by quadrature."""
    n = np.array([0, 0, 1, 0, 2, 0, 0, 1, 0, 0, 5, 0, 0, 1, 0, 0, 3, 0, 0, 0, 1, 0, 0, 2])

    def log_likelihood(p):
        log_rate = np.asarray(p["m"])[..., None] + np.exp(np.asarray(p["log_s"]))[..., None] * p["z"]
        return np.sum(stats.poisson.logpmf(n, np.exp(log_rate)), axis=-1)

    priors = {"m": dist.Normal(0, 1), "log_s": dist.Normal(0, 0.5), "z": dist.Normal(0, 1).expand([len(n)])}
    z, m, b = np.linspace(-8, 8, 161), np.linspace(-5, 4, 91), np.linspace(-2.5, 2.5, 51)
    log_rate = m[:, None, None] + np.exp(b)[:, None] * z
    total = stats.norm.logpdf(m)[:, None] + stats.norm.logpdf(b, 0, 0.5)
    for value, times in zip(*np.unique(n, return_counts=True), strict=True):
        each = np.exp(stats.poisson.logpmf(value, np.exp(log_rate)) + stats.norm.logpdf(z)).sum(-1) * 0.1
        total = total + times * np.log(each)
    return sm.Model(priors, log_likelihood, vectorized=True), float(np.log(np.sum(np.exp(total)) * 0.1 * 0.1))


def test_skewed_groups_are_weighed_from_their_own_draws(rng, monkeypatch):
    """Tops and curvatures alone leave a fifth of the draws, and moments more than half of them."""
    model, truth = counts()
    joint = Joint("m", model)
    x = np.concatenate([[-1.0, 0.0] + 0.3 * rng.standard_normal((60, 2)), 0.7 * rng.standard_normal((60, 24))], axis=1)
    found = in_float64(nested_laplace)(joint, meter(), rng, x)
    assert found.share > 0.5 and abs(found.log_evidence - truth) < 5 * found.error < 0.2
    assert np.all(np.abs(found.warp.skew) > 0)
    monkeypatch.setattr(laplace, "FITS", 0)
    assert in_float64(nested_laplace)(joint, meter(), rng, x).share < 0.6 * found.share


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


@pytest.mark.slow
def test_a_black_box_of_skewed_groups_is_weighed_from_end_to_end():
    """Three seeds, each within 5 errors (false alarms: 6e-7), of which none is wider than 0.1."""
    model, truth = counts()
    for seed in range(3):
        found = sm.evidence(model, seed=seed, progress=False)
        assert abs(found.value - truth) < 5 * found.error < 0.5 and found.error < 0.1 and found.verdict.level == "ok"
