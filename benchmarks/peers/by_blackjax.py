"""Evidences by BlackJAX, which has no defaults for whole runs: what was chosen is said at each function and on the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.fire.problem import Side
from benchmarks.peers.unbounded import unbounded

PARTICLES, LEAPFROGS, MOVES = 1000, 5, 10  # moves: the default of BlackJAX
LIVE, AT_ONCE, LAST = 500, 50, -3.0
CHAINS, WARMUP, DRAWS, STARTS = 4, 1000, 1000, 100


def tempered_smc(side: Side, seed: int) -> tuple[float, float]:
    """1000 particles, effective share 0.5 at each temperature, 10 HMC moves of 5 leapfrogs with the particles' covariance.

    The step is 0.5 d^(-1/4) of a standard deviation. A run gives no error of its ln Z.
    """
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc import extend_params
    from blackjax.smc.resampling import systematic

    f = unbounded(side)
    step = 0.5 * f.dimension**-0.25
    key, first = jax.random.split(jax.random.key(seed))
    particles = f.prior_draws(first, PARTICLES)

    def chosen(_, state, info=None):
        mass = jnp.atleast_2d(jnp.cov(state.particles, rowvar=False))  # variances alone: no move in a narrow valley
        return extend_params({"step_size": step, "inverse_mass_matrix": mass, "num_integration_steps": LEAPFROGS})

    class Start:
        pass

    Start.particles = particles
    smc = blackjax.inner_kernel_tuning(
        blackjax.adaptive_tempered_smc, f.log_prior, f.log_likelihood, blackjax.hmc.build_kernel(), blackjax.hmc.init,
        systematic, chosen, chosen(None, Start), num_mcmc_steps=MOVES, target_ess=0.5,
    )  # fmt: skip
    state, advance, total = smc.init(particles), jax.jit(smc.step), 0.0
    while float(state.sampler_state.tempering_param) < 1.0:
        key, this = jax.random.split(key)
        state, info = advance(this, state)
        total += float(info.log_likelihood_increment)
    return total, float("nan")


def nested_slices(side: Side, seed: int) -> tuple[float, float]:
    """500 live points, 50 replaced at once by max(5, 2 d) slices each, until the live ones hold e^-3 of the evidence."""
    import blackjax
    import jax
    from blackjax.ns.integrator import init_integrator, update_integrator
    from blackjax.ns.utils import finalise, log_weights

    f = unbounded(side)
    key, first = jax.random.split(jax.random.key(seed))
    algorithm = blackjax.nss(f.log_prior, f.log_likelihood, num_inner_steps=max(5, 2 * f.dimension), num_delete=AT_ONCE)
    state = algorithm.init(f.prior_draws(first, LIVE))
    advance, account = jax.jit(algorithm.step), jax.jit(update_integrator)
    sums, dead = init_integrator(state.particles), []
    while not sums.logZ_live - sums.logZ < LAST:
        key, this = jax.random.split(key)
        state, info = advance(this, state)
        sums = account(sums, state.particles, info.particles)
        dead.append(info)
    weights = log_weights(key, finalise(state, dead, update_info=False), shape=100)
    each = jax.scipy.special.logsumexp(weights, axis=0)
    return float(np.mean(each)), float(np.std(each))


def nuts_draws(side: Side, seed: int) -> tuple[Any, np.ndarray]:
    """The density of z, and draws (chains, draws, d): 4 chains, each 1000 steps of window adaptation, then 1000 draws.

    Each chain starts at the best of 100 draws of the prior: a plain one leaves half of the chains in side modes of the sine.
    The chains run one after the other: side by side, those that wait for the longest would be counted as well.
    """
    import blackjax
    import jax

    f = unbounded(side)

    def density(z):
        return f.log_prior(z) + f.log_likelihood(z)

    warmup = blackjax.window_adaptation(blackjax.nuts, density)

    @jax.jit
    def chain(key, start):
        first, second = jax.random.split(key)
        (state, chosen), _ = warmup.run(first, start, num_steps=WARMUP)
        kernel = blackjax.nuts(density, **chosen)

        def one(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(one, state, jax.random.split(second, DRAWS))[1]

    keys = jax.random.split(jax.random.key(seed), CHAINS + 1)
    tried = f.prior_draws(keys[0], CHAINS * STARTS).reshape(CHAINS, STARTS, -1)
    best = np.argmax(jax.jit(jax.vmap(jax.vmap(density)))(tried), axis=1)
    draws = [np.asarray(chain(key, points[at])) for key, points, at in zip(keys[1:], tried, best, strict=True)]
    return jax.jit(density), np.stack(draws)
