r"""HMC and NUTS (BlackJAX) on unconstrained $(a, u)$, where $\alpha = T(a)$ and $\ln|T'|$ joins the density.

`Line` and `Hats`: a logit map onto the interval; `Simplex`: stick breaking; `Ladder`: the rung is drawn given $u$
(Gibbs), then $u$ moves at that rung. Step size and mass matrix are learnt in warm-up only, in windows, pooled over
the chains, and are arguments of the compiled block. Gradients are counted as the integrator takes them.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.combine import rung_given
from supermodel.embedding.warp import from_covariance
from supermodel.errors import ModelError
from supermodel.sampling.blocks import Block, Record, compiled_block
from supermodel.sampling.target import Target, Terms

TRAJECTORY = 0.5 * math.pi  # of HMC, in standard deviations: a quarter of a period decorrelates a Gaussian
MAX_INTEGRATION_STEPS = 256
TARGET_ACCEPTANCE = 0.8


class GradientTuning(NamedTuple):
    """What warm-up learns."""

    step_size: Any
    inverse_mass: Any  # (A + D, A + D): the pooled covariance of (a, u)
    n_integration: Any  # leapfrog steps of HMC; NUTS finds its own


class GradientState(NamedTuple):
    """Where the chains are."""

    rung: Any  # (C,) for a ladder, else None
    hmc: Any  # blackjax HMCState, each with C in front
    step: Any
    acceptance: Any  # summed over steps, mean over chains
    n_gradients: Any  # evaluations of the supermodel's gradient since the block began, all chains
    divergent: Any


class AlphaMap:
    """alpha = T(a) for each kind of coordinate."""

    def __init__(self, target: Target):
        from numpyro.distributions import biject_to, constraints

        self.coordinate: Any = target.coordinate
        self.size = 0 if self.coordinate.is_discrete else 1
        if self.coordinate.is_simplex:
            self.size, self.transform = target.n_models - 1, biject_to(constraints.simplex)
        elif self.size:
            self.transform = biject_to(constraints.interval(self.coordinate.low, self.coordinate.high))

    def __call__(self, a):
        """alpha and ln |T'| at one point `a` (A,)."""
        inner = a if self.coordinate.is_simplex else a[0]
        alpha = self.transform(inner)
        return alpha, self.transform.log_abs_det_jacobian(inner, alpha)

    def inverse(self, alpha: np.ndarray) -> np.ndarray:
        """a of many alphas (n, ...), pulled a hundredth away from the edges, where `a` is infinite."""
        if self.coordinate.is_simplex:
            return np.asarray(self.transform.inv(0.98 * alpha + 0.02 / alpha.shape[-1]))
        low, high = self.coordinate.low, self.coordinate.high
        inside = np.clip((alpha - low) / (high - low), 0.01, 0.99)
        return np.asarray(self.transform.inv(low + (high - low) * inside))[:, None]


class GradientSampler:
    """The compiled pieces of HMC or NUTS for one target."""

    def __init__(self, target: Target, kind: str, size: int):
        if not target.is_traceable:
            names = [j.name for j in target.supermodel.joints if not j.is_traceable]
            raise ModelError(
                f"{kind} needs gradients, but the log likelihood of {names} is plain Python that JAX cannot trace. "
                "Write it with jax.numpy, or use sampler='metropolis', or `compare`, which chooses by itself."
            )
        import blackjax
        import jax

        self.target, self.kind, self.size = target, kind, size
        self.alpha_map = AlphaMap(target)
        self.kernel = (blackjax.nuts if kind == "nuts" else blackjax.hmc).build_kernel()
        self.run: Block = compiled_block(self._fresh, self._step, self._record, size)
        self.start = jax.jit(self._start)

    # -- density --------------------------------------------------------------------------------------------------

    def split(self, q, rung=None):
        """(alpha, ln |T'|, u) of the chain's vector q = (a, u)."""
        a, u = q[: self.alpha_map.size], q[self.alpha_map.size :]
        alpha, log_jacobian = (rung, 0.0) if rung is not None else self.alpha_map(a)
        return alpha, log_jacobian, u

    def log_density(self, q, rung=None):
        alpha, log_jacobian, u = self.split(q, rung)
        return self.target.log_density(alpha, self.target.terms(u)) + log_jacobian

    # -- one step -------------------------------------------------------------------------------------------------

    def _start(self, q, rung):
        import blackjax
        import jax
        import jax.numpy as jnp

        hmc = jax.vmap(lambda x, r: blackjax.hmc.init(x, functools.partial(self.log_density, rung=r)))(q, rung)
        zero = jnp.zeros((), int)  # typed: a bare 0 would have the block compiled again for its own output
        return GradientState(rung, hmc, zero, jnp.zeros(()), zero + len(q), zero)

    def _step(self, state: GradientState, tuning: GradientTuning, key) -> GradientState:
        import jax

        n = state.hmc.position.shape[0]
        keys = jax.random.split(jax.random.fold_in(key, state.step), n)
        rung, hmc, info = jax.vmap(self._step_one, in_axes=(0, 0, 0, None))(keys, state.rung, state.hmc, tuning)
        # A new rung has another density: its value and gradient at the old point are one evaluation more.
        extra = n if state.rung is not None else 0
        return GradientState(
            rung,
            hmc,
            state.step + 1,
            state.acceptance + info.acceptance_rate.mean(),
            state.n_gradients + info.num_integration_steps.sum() + extra,
            state.divergent + info.is_divergent.sum(),
        )

    def _step_one(self, key, rung, hmc, tuning: GradientTuning):
        import blackjax
        import jax
        import jax.numpy as jnp

        key_rung, key_jitter, key_move = jax.random.split(key, 3)
        if rung is not None:
            densities = self.target.rung_log_densities(self.target.terms(hmc.position))
            rung = rung_given(jnp, jax.random.uniform(key_rung), densities)
        density = functools.partial(self.log_density, rung=rung)
        if rung is not None:
            hmc = blackjax.hmc.init(hmc.position, density)
        if self.kind == "nuts":
            hmc, info = self.kernel(key_move, hmc, density, tuning.step_size, tuning.inverse_mass)
        else:
            # Steps of random length: a fixed one may bring a chain back to where it was, period after period.
            step_size = tuning.step_size * jax.random.uniform(key_jitter, (), minval=0.8, maxval=1.2)
            hmc, info = self.kernel(key_move, hmc, density, step_size, tuning.inverse_mass, tuning.n_integration)
        return rung, hmc, info

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _fresh(self, state: GradientState) -> GradientState:
        import jax.numpy as jnp

        zero = jnp.zeros((), int)
        return state._replace(acceptance=jnp.zeros(()), n_gradients=zero, divergent=zero)

    def _record(self, state: GradientState) -> Record:
        """The draw as Metropolis keeps it; the models run once more here, and are counted."""
        import jax

        alpha, _, u = jax.vmap(self.split)(state.hmc.position, state.rung)
        terms: Terms = self.target.terms(u)
        return Record(alpha, u, self.target.log_joints(terms), terms.predictions)


@functools.lru_cache(maxsize=4)
def sampler_of(target: Target, kind: str, size: int) -> GradientSampler:
    """The sampler of a target; the same object for the same target, so that its compiled code is found again."""
    return GradientSampler(target, kind, size)


# -- warm-up ----------------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What a stretch of the chain cost, in evaluations of the supermodel."""

    gradients: int = 0
    plain: int = 0  # without a gradient: at each record, and at each drawing of a rung

    def plus(self, state: GradientState, n: int, thin: int) -> Cost:
        """With a block of `n` records, `thin` steps each."""
        chains = state.hmc.position.shape[0]
        plain = chains * n * (1 if state.rung is None else 1 + thin)
        return Cost(self.gradients + int(state.n_gradients), self.plain + plain)


def warm_up(
    sampler: GradientSampler, state: GradientState, covariance: np.ndarray, key, steps: int
) -> tuple[GradientState, GradientTuning, Cost]:
    """Four windows: in each the step size is averaged anew (dual averaging), after each the mass matrix is learnt."""
    tuning, cost = GradientTuning(_first_step_size(len(covariance)), covariance, 8), Cost()
    pause = 5  # steps between two looks at the acceptance rate
    for window in range(4 if steps > 0 else 0):
        rounds = max(steps // (4 * pause), 1)
        state, tuning, cost, draws = _window(sampler, state, tuning, cost, key, rounds, pause)
        if window < 3:  # the last window only settles the step size, for the mass matrix that stays
            tuning = tuning._replace(inverse_mass=_learnt(draws, np.asarray(tuning.inverse_mass)))
    return state, tuning, cost


def _window(sampler: GradientSampler, state, tuning, cost: Cost, key, rounds: int, pause: int):
    averaging, draws = DualAveraging(tuning.step_size), []
    for _ in range(rounds):
        n = min(pause, sampler.size)
        state, _ = sampler.run(state, tuning, key, n, 1)
        cost = cost.plus(state, n, 1)
        tuning = _with_step_size(tuning, averaging.update(float(state.acceptance) / n))
        draws.append(np.asarray(state.hmc.position))
    return state, _with_step_size(tuning, averaging.final()), cost, np.concatenate(draws)


class DualAveraging:
    r"""Dual averaging of $\ln \epsilon$ towards the target acceptance (Hoffman & Gelman 2014, eq. 6), pooled."""

    def __init__(self, step_size: float):
        self.centre = math.log(10.0 * step_size)
        self.error = self.average = 0.0
        self.n = 0

    def update(self, acceptance: float) -> float:
        """The step size to try next."""
        self.n += 1
        self.error += (TARGET_ACCEPTANCE - acceptance - self.error) / (self.n + 10)
        log_step = self.centre - math.sqrt(self.n) / 0.05 * self.error
        self.average += self.n**-0.75 * (log_step - self.average)
        return math.exp(log_step)

    def final(self) -> float:
        return math.exp(self.average)


def _with_step_size(tuning: GradientTuning, step_size: float) -> GradientTuning:
    step_size = min(max(step_size, 1e-6), 2.0)
    return tuning._replace(
        step_size=step_size, n_integration=min(math.ceil(TRAJECTORY / step_size), MAX_INTEGRATION_STEPS)
    )


def _first_step_size(dimension: int) -> float:
    return 0.8 / max(dimension, 1) ** 0.25


def _learnt(draws: np.ndarray, old: np.ndarray) -> np.ndarray:
    """The covariance of the draws, leaning on the old one as if that were 5 D draws more."""
    n, d = draws.shape
    covariance = (n * np.cov(draws.T).reshape(d, d) + 5 * d * old) / (n + 5 * d)
    factor = from_covariance(np.zeros(d), covariance).factor  # positive definite even where chains stood still
    return factor @ factor.T
