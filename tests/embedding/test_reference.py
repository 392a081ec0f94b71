"""References: densities that integrate to 1, and draws that follow them."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from supermodel.embedding.reference import Hills, Reference, defended, joined, one_hill, standard_normal, stretches

FALSE_ALARM = 1e-6  # of every Kolmogorov-Smirnov test below
PRIOR_MEAN, PRIOR_SD = 0.7, 2.5  # of every coordinate, normal


def two_hills(d, dof):
    """Neither centred, nor round, nor of equal weight."""
    rng = np.random.default_rng(d)
    factors = [np.tril(0.3 * rng.standard_normal((d, d)), -1) + np.diag(s + 0.2 * np.arange(d)) for s in (0.6, 1.1)]
    first, second = (one_hill(m + 0.4 * np.arange(d), f, dof) for m, f in zip((-1.5, 1.0), factors, strict=True))
    return joined([(0.3, first), (0.9, second)])


def made(d, dof):
    """{name: hills}: as fitted, widened, seen from other coordinates, and all of these joined."""
    hills = two_hills(d, dof)
    lower = np.tril(np.full((d, d), 0.3)) + np.diag(np.full(d, 0.8))
    mapped = hills.mapped(np.linspace(-0.5, 1.0, d), lower)
    kinds = {"plain": hills, "widened": hills.widened(1.3), "mapped": mapped}
    return kinds | {"joined": joined([(2.0, hills), (1.0, mapped.widened(0.8))])}


def log_prior(u):
    return stats.norm.logpdf(u, PRIOR_MEAN, PRIOR_SD).sum(1)


def integral(reference, d):
    """By the trapezoid rule in t, u = sinh t: exponentially exact, heavy tails included."""
    t = np.linspace(-27.0, 27.0, 2701) if d == 1 else np.linspace(-15.0, 15.0, 601)
    u = np.stack(np.meshgrid(*[np.sinh(t)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    log_volume = d * np.log(t[1] - t[0]) + np.log(np.cosh(np.arcsinh(u))).sum(1)
    with np.errstate(under="ignore"):
        return np.exp(reference.log_density(np, u, log_prior(u)) + log_volume).sum()


@pytest.mark.parametrize("kind", ["plain", "widened", "mapped", "joined"])
@pytest.mark.parametrize("dof", [np.inf, 5.0, 1.5])
@pytest.mark.parametrize("d", [1, 2])
def test_the_density_integrates_to_one_with_and_without_the_prior(d, dof, kind):
    for share in (0.0, 0.2):
        reference = Reference(made(d, dof)[kind], share)
        assert abs(integral(reference, d) - 1) < 1e-6
    # A Jacobian of 1% that is forgotten, as by hills that were widened in their shape and not in their norm, is seen.
    heavy = reference.hills._replace(log_weights=reference.hills.log_weights + 0.01)
    assert abs(integral(reference._replace(hills=heavy), d) - 1) > 1e-3


@pytest.mark.parametrize("d", [1, 2])
def test_ready_made_references_integrate_to_one(d):
    assert abs(integral(standard_normal(d), d) - 1) < 1e-9
    assert abs(integral(defended(d, 0.05), d) - 1) < 1e-9
    assert standard_normal(d).is_standard_normal
    others = [defended(d, 0.0), standard_normal(d)._replace(prior_share=0.05), Reference(two_hills(d, np.inf), 0.0)]
    others += [Reference(one_hill(np.zeros(d), np.eye(d), 5.0), 0.0), Reference(one_hill(np.ones(d), np.eye(d)), 0.0)]
    assert not any(other.is_standard_normal for other in others)


def test_hills_are_what_scipy_says(rng):
    for dof in (np.inf, 4.0):
        hills, x = two_hills(3, dof), 3 * rng.standard_normal((50, 3))
        parts = []
        for weight, mean, factor in zip(np.exp(hills.log_weights), hills.means, hills.factors, strict=True):
            shape = factor @ factor.T
            law = stats.multivariate_t(mean, shape, dof) if np.isfinite(dof) else stats.multivariate_normal(mean, shape)
            parts.append(weight * law.pdf(x))
        assert np.allclose(hills.log_density(np, x), np.log(sum(parts)), rtol=0, atol=1e-10)


def test_a_map_carries_the_density_with_its_jacobian(rng):
    hills, x = two_hills(2, 5.0), rng.standard_normal((20, 2))
    mean, factor = np.array([0.3, -2.0]), np.array([[1.7, 0.0], [0.4, 0.2]])
    there = hills.mapped(mean, factor).log_density(np, mean + x @ factor.T)
    assert np.allclose(there, hills.log_density(np, x) - np.log(1.7 * 0.2), rtol=0, atol=1e-10)


def test_jax_and_numpy_agree(rng):
    reference = Reference(two_hills(2, 5.0), 0.2)
    u, prior = 4 * rng.standard_normal((40, 2)), rng.standard_normal((40, 2))
    here = reference.log_density(np, u, log_prior(u))
    assert np.allclose(reference.log_density(jnp, jnp.asarray(u), log_prior(u)), here, rtol=0, atol=1e-12)
    given = (rng.standard_normal((40, 2)), rng.random(40), stretches(rng, 5.0, (40,)), prior)
    assert np.allclose(reference.transform(jnp, *map(jnp.asarray, given)), reference.transform(np, *given), atol=1e-12)


# -- draws ------------------------------------------------------------------------------------------------------------


def marginal(reference, direction):
    """The cumulative function of direction . u, in closed form."""
    hills: Hills = reference.hills

    def cdf(y):
        total = np.zeros_like(y)
        for weight, mean, factor in zip(np.exp(hills.log_weights), hills.means, hills.factors, strict=True):
            scale = np.linalg.norm(factor.T @ direction)
            law = stats.t(hills.dof, mean @ direction, scale) if np.isfinite(hills.dof) else None
            total += weight * (law or stats.norm(mean @ direction, scale)).cdf(y)
        prior = stats.norm(PRIOR_MEAN * direction.sum(), PRIOR_SD * np.linalg.norm(direction)).cdf(y)
        return (1 - reference.prior_share) * total + reference.prior_share * prior

    return cdf


def least_p(reference, draws):
    """The least p-value of Kolmogorov and Smirnov over the axes and a diagonal."""
    d = draws.shape[1]
    directions = [*np.eye(d), np.linspace(1.0, -2.0, d)]
    return min(stats.kstest(draws @ a, marginal(reference, a)).pvalue for a in directions)


@pytest.mark.parametrize("kind", ["plain", "widened", "mapped", "joined"])
@pytest.mark.parametrize("dof", [np.inf, 3.0])
@pytest.mark.parametrize("d", [1, 2])
def test_draws_follow_the_density(d, dof, kind, rng):
    """1e-6 of false alarms per direction; a prior that is left out and tails that are forgotten are seen."""
    n, reference = 40_000, Reference(made(d, dof)[kind], 0.2)
    normal, uniform, stretch = rng.standard_normal((n, d)), rng.random(n), stretches(rng, dof, (n,))
    prior = PRIOR_MEAN + PRIOR_SD * rng.standard_normal((n, d))
    assert least_p(reference, reference.transform(np, normal, uniform, stretch, prior)) > FALSE_ALARM
    assert least_p(reference, reference.hills.transform(np, normal, uniform, stretch)) < FALSE_ALARM
    if np.isfinite(dof):
        bare = reference.transform(np, normal, uniform, np.ones(n), prior)
        assert least_p(reference, bare) < FALSE_ALARM


def test_draws_of_hills_alone_and_steps_without_a_mean(rng):
    hills = two_hills(2, 5.0)
    assert least_p(Reference(hills, 0.0), hills.draw(rng, 40_000)) > FALSE_ALARM
    steps = hills.step(np, rng.standard_normal((40_000, 2)), rng.random(40_000))
    centred = Reference(hills._replace(means=0 * hills.means, dof=np.inf), 0.0)
    assert least_p(centred, steps) > FALSE_ALARM
    assert least_p(centred, steps + 0.1) < FALSE_ALARM
