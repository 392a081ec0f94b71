"""One protocol for all kernels: each leaves a known density on two rungs as it is, and costs what it says.

Every chain starts from an exact draw of (u, rung), so that after any number of steps the chains still are independent exact
draws, if the kernel is right: Kolmogorov and Smirnov then need no allowance for correlation.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from supermodel.embedding.reference import Reference, joined, one_hill, standard_normal
from supermodel.engine.kernels import (
    KERNELS,
    State,
    Tuning,
    at_rungs,
    draw_rung,
    leapfrogs,
    randomness,
)

FALSE_ALARM = 1e-6  # of every one of the five tests on a record
CHAINS, STEPS, D = 8000, 12, 2

# Rung 1 is J_1 = Z_1 N(m, S), rung 0 a reference of evidence 1. The balance is a little off, so that the rungs differ.
LOG_Z, MEAN, FACTOR = 1.7, np.array([0.5, -0.3]), np.array([[0.8, 0.0], [0.3, 0.9]])
TABLE, LOG_PRIOR = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([-0.4, -0.4 - LOG_Z + 0.5])
SHARE_FIRST = 1 / (1 + np.exp(-0.5))  # p(rung 1) is prior times evidence
PRIOR_MEAN, PRIOR_SD = 0.4, 1.6

HILLS = joined([(0.6, one_hill(np.array([-0.8, 0.1]), 0.9 * np.eye(2), 5.0)),
                (0.4, one_hill(np.array([1.1, 0.3]), np.array([[0.7, 0.0], [0.2, 1.1]]), 5.0))])  # fmt: skip
REFERENCES = {"N(0, I)": standard_normal(D), "hills and prior": Reference(HILLS, 0.25)}


def log_joints(xp, reference, u):
    z = (u - MEAN) @ np.linalg.inv(FACTOR).T
    norm = D * np.log(2 * np.pi) / 2 + np.log(np.diagonal(FACTOR)).sum()
    first = LOG_Z - 0.5 * (z**2).sum(-1) - norm
    prior = (-0.5 * ((u - PRIOR_MEAN) / PRIOR_SD) ** 2 - np.log(PRIOR_SD * np.sqrt(2 * np.pi))).sum(-1)
    return xp.stack([first, reference.log_density(xp, u, prior)], axis=-1)


def evaluate(xp, kernel, reference):
    """ln J_k at (n, D) points, with gradients (n, K, D) for a kernel that needs them."""

    def one(v):
        return log_joints(jnp, reference, v[None])[0]

    if kernel.needs_gradients:
        return jax.jit(lambda u: (jax.vmap(one)(u), jax.vmap(jax.jacrev(one))(u)))
    return lambda u: log_joints(xp, reference, u)


def exact_start(kernel, reference, rng, n):
    """Exact draws, made without any code of the package."""
    rung = (rng.random(n) < SHARE_FIRST).astype(int)
    first = MEAN + rng.standard_normal((n, D)) @ FACTOR.T
    hills = reference.hills
    k = rng.choice(len(hills.log_weights), n, p=np.exp(hills.log_weights))
    stretch = np.sqrt(5.0 / rng.chisquare(5.0, n)) if np.isfinite(hills.dof) else np.ones(n)
    hill = hills.means[k] + stretch[:, None] * np.einsum("nij,nj->ni", hills.factors[k], rng.standard_normal((n, D)))
    from_prior = rng.random(n) < reference.prior_share
    second = np.where(from_prior[:, None], PRIOR_MEAN + PRIOR_SD * rng.standard_normal((n, D)), hill)
    u = np.where(rung[:, None] == 1, first, second)
    found = jax.tree.map(np.asarray, evaluate(np, kernel, reference)(u))
    values, gradients = found if kernel.needs_gradients else (found, np.zeros((n, 0, 0)))
    return State(u, values, rung, gradients)


def numbers(reference, rng, steps, n):
    prior = PRIOR_MEAN + PRIOR_SD * rng.standard_normal((steps, n, D)) if reference.prior_share else None
    return randomness(rng, steps, n, D, float(reference.hills.dof), prior)


class Moved(NamedTuple):
    start: State
    end: State
    accepted: float  # share of proposals
    calls: int  # of the densities of all chains


def moved(xp, kernel, step, reference, rng):
    """The chains before and after some steps."""
    start = exact_start(kernel, reference, rng, CHAINS)
    random, inner, calls = numbers(reference, rng, STEPS, CHAINS), evaluate(xp, kernel, reference), []
    size = 1.2 if kernel.needs_gradients else kernel.first_step(D)  # so long a leapfrog is refused now and then
    tuning = Tuning(xp.asarray(TABLE), xp.asarray(LOG_PRIOR), size, 2)

    def counted(u):
        jax.debug.callback(calls.append, 1) if xp is jnp else calls.append(1)
        return inner(u)

    def one(state, random):
        state, accepted, _ = step(xp, counted, state, random, tuning, traced(reference) if xp is jnp else reference)
        return state, accepted.mean()

    if xp is jnp:
        end, accepted = jax.jit(lambda state, random: jax.lax.scan(one, state, random))(start, random)
        jax.effects_barrier()
    else:
        end, accepted = start, []
        for i in range(STEPS):
            end, share = one(end, type(random)(*(part[i] for part in random)))
            accepted.append(share)
    return Moved(start, State(*map(np.asarray, end)), float(np.mean(accepted)), len(calls))


def traced(reference):
    """As the engine hands it to compiled code: arrays of JAX, the degrees of freedom a number."""
    hills = reference.hills
    return reference._replace(hills=hills._replace(**{f: jnp.asarray(getattr(hills, f)) for f in hills._fields[:-1]}))


def marginal(reference, rung, axis):
    """The cumulative function of one coordinate on one rung."""
    if rung == 1:
        return stats.norm(MEAN[axis], np.linalg.norm(FACTOR[axis])).cdf
    hills = reference.hills
    law = (lambda m, s: stats.t(5.0, m, s)) if np.isfinite(hills.dof) else stats.norm
    parts = [law(m[axis], np.linalg.norm(f[axis])) for m, f in zip(hills.means, hills.factors, strict=True)]
    weights, prior = np.exp(hills.log_weights) * (1 - reference.prior_share), stats.norm(PRIOR_MEAN, PRIOR_SD)
    return lambda x: (
        sum(w * p.cdf(x) for w, p in zip(weights, parts, strict=True)) + reference.prior_share * prior.cdf(x)
    )


def p_values(state, reference):
    """Five tests of independent draws: both coordinates on both rungs, and the share of a rung."""
    found = [stats.binomtest(int(state.rung.sum()), CHAINS, SHARE_FIRST).pvalue]
    for rung in (0, 1):
        here = state.u[state.rung == rung]
        found += [stats.kstest(here[:, axis], marginal(reference, rung, axis)).pvalue for axis in range(D)]
    return found


CASES = [
    (name, xp, reference)
    for name, kernel in KERNELS.items()
    for xp in (np, jnp)
    for reference in REFERENCES
    if not (kernel.needs_gradients and xp is np)  # there are no gradients without JAX
]


@pytest.mark.parametrize("name, xp, kind", CASES, ids=[f"{n}-{x.__name__}-{r}" for n, x, r in CASES])
def test_a_kernel_leaves_the_target_as_it_is_and_moves(name, xp, kind):
    kernel, reference = KERNELS[name], REFERENCES[kind]
    start, end, accepted, calls = moved(xp, kernel, kernel.step, reference, np.random.default_rng(3))
    assert min(p_values(start, reference)) > FALSE_ALARM
    assert min(p_values(end, reference)) > FALSE_ALARM
    assert 0.1 < accepted < 0.999
    assert np.mean(np.any(end.u != start.u, axis=1)) > 0.9 and 0.3 < np.mean(end.rung != start.rung) < 0.7
    assert calls == STEPS * kernel.evaluations(Tuning(TABLE, LOG_PRIOR, 1.0, 2))
    # What is kept beside a point belongs to it.
    fresh = evaluate(np, kernel, reference)(end.u)
    assert np.allclose(fresh[0] if kernel.needs_gradients else fresh, end.log_joints, rtol=0, atol=1e-9)
    if kernel.needs_gradients:
        assert np.allclose(fresh[1], end.gradients, rtol=0, atol=1e-9)


def accepts_all(step):
    return lambda xp, call, state, random, *rest: step(
        xp, call, state, random._replace(accept=0 * random.accept + 1e-300), *rest
    )


def forgets_a_rung(step):
    """Draws the rung without looking at the point."""

    def careless(xp, call, state, random, tuning, reference):
        state, accepted, proposed = step(xp, call, state, random, tuning, reference)
        return state._replace(rung=(random.rung < SHARE_FIRST).astype(int)), accepted, proposed

    return careless


@pytest.mark.parametrize("fault", [accepts_all, forgets_a_rung])
@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_kernel_is_caught(name, fault):
    kernel, reference = KERNELS[name], REFERENCES["hills and prior"]
    xp = jnp if kernel.needs_gradients else np
    _, end, _, _ = moved(xp, kernel, fault(kernel.step), reference, np.random.default_rng(3))
    assert min(p_values(end, reference)) < FALSE_ALARM


# -- the parts --------------------------------------------------------------------------------------------------------


def test_a_model_of_weight_nothing_has_no_say_even_where_it_is_impossible():
    table, values = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]), np.array([[-np.inf, -2.0]])
    tuning = Tuning(table, np.log([0.2, 0.3, 0.5]), 0.3, 1)
    each = [at_rungs(np, tuning, np.array([m]), values)[0] for m in range(3)]
    assert each == [-2.0, -np.inf, -np.inf]
    assert draw_rung(np, np.array([0.999]), tuning, values).tolist() == [0]


def test_the_rung_is_drawn_by_its_conditional_probability():
    """By inverting the cumulative probability: the share of a fine grid of uniforms is exact to its spacing."""
    table, n = np.array([[0.0, 1.0], [0.4, 0.6], [1.0, 0.0], [1.0, 0.0]]), 10_000
    log_prior = np.array([np.log(0.2), np.log(0.5), np.log(0.3), -np.inf])  # the last rung only pads
    values = np.array([1.3, -0.7])
    p = np.exp(table @ values + log_prior)
    uniform = (np.arange(n) + 0.5) / n
    rung = draw_rung(np, uniform, Tuning(table, log_prior, 0.3, 1), np.repeat(values[None], n, axis=0))
    assert np.allclose(np.bincount(rung, minlength=4) / n, p / p.sum(), rtol=0, atol=1.01 / n)


def test_what_is_not_a_number_is_refused():
    kernel, reference, rng = KERNELS["crank_nicolson"], REFERENCES["N(0, I)"], np.random.default_rng(1)
    start, random = exact_start(kernel, reference, rng, 6), numbers(reference, rng, 1, 6)
    random = type(random)(*(part[0] for part in random))
    for value in (np.nan, -np.inf):
        state, accepted, _ = kernel.step(
            np, lambda u, v=value: np.full((6, 2), v), start, random, Tuning(TABLE, LOG_PRIOR, 0.3, 1), None
        )
        assert not accepted.any() and np.array_equal(state.u, start.u)


def test_steps_are_steered_towards_their_acceptance():
    trajectory, walk = KERNELS["hamiltonian"], KERNELS["crank_nicolson"]
    assert trajectory.steered(0.5, 0.95) > 0.5 > trajectory.steered(0.5, 0.4)
    assert trajectory.steered(0.5, trajectory.aim) == pytest.approx(0.5)
    assert walk.steered(0.3, 0.01) == 0.3
    assert trajectory.steered(1.2, 1.0) <= 1.2 and trajectory.steered(0.01, 0.0) >= 0.01


def test_a_trajectory_is_a_quarter_turn_within_bounds():
    assert leapfrogs(0.35) == 4 and leapfrogs(5.0) == 2 and leapfrogs(1e-4) == 64


def test_random_numbers_are_those_of_the_generator():
    first, again = (numbers(REFERENCES["hills and prior"], np.random.default_rng(7), 3, 5) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert first.normal.shape == (3, 5, D) and first.prior.shape == (3, 5, D) and np.all(first.accept > 0)
    assert numbers(REFERENCES["N(0, I)"], np.random.default_rng(7), 3, 5).prior.shape == (3, 5, 0)
