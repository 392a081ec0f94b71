r"""The coordinate $\alpha$: where it lives, its prior $p(\alpha)$, and the weights $w = f(\alpha)$ it gives the models.

| class | $\alpha$ | weights |
|---|---|---|
| `Line` | a number in [low, high] | $(f, 1-f)$: $f = 1$ is wholly the first model |
| `Hats` | a number in [0, K-1] | hat functions: model k alone at $\alpha = k$ |
| `Simplex` | a point of the simplex | $w = \alpha$, Dirichlet prior |
| `Ladder` | the number of a rung | any table of weights; the rungs at the corners make the discrete index |

All functions can be traced by JAX; `weights_of` and `log_prior_of` are the same for NumPy arrays of any shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.errors import CoordinateError
from supermodel.jax_scope import in_float64


class Coordinate:
    """What the four kinds have in common."""

    n_models: int
    is_discrete = False
    is_simplex = False

    def weights(self, alpha: Any) -> Any:
        raise NotImplementedError

    def log_prior(self, alpha: Any) -> Any:
        raise NotImplementedError

    def corner(self, k: int) -> Any:
        """The alpha at which model `k` stands alone, or None if it is not reached."""
        raise NotImplementedError

    def sample_prior(self, rng: np.random.Generator, n: int) -> np.ndarray:
        raise NotImplementedError

    @in_float64
    def weights_of(self, alpha: np.ndarray) -> np.ndarray:
        return np.asarray(self.weights(np.asarray(alpha)))

    @in_float64
    def log_prior_of(self, alpha: np.ndarray) -> np.ndarray:
        return np.asarray(self.log_prior(np.asarray(alpha)))


def flat(alpha):
    """An unnormalised flat prior."""
    return 0.0 * alpha


def gaussian(centre: float = 0.5, sd: float = 1.0) -> Callable[[Any], Any]:
    """An unnormalised log Gaussian prior of alpha; `Line` truncates and normalises it."""
    return lambda alpha: -0.5 * ((alpha - centre) / sd) ** 2


@dataclass(frozen=True, eq=False)
class Line(Coordinate):
    r"""$w = (f(\alpha), 1 - f(\alpha))$ with $\alpha \in$ [low, high] and a prior that is normalised here, by quadrature.

    `f` must reach 1 at one end and (nearly) 0 at the other: $e^\alpha$ on [-4, 0] stops at 0.018, which the exact
    estimators allow for. An interval that goes beyond `ends` is for `blend` only.
    """

    f: Callable[[Any], Any]
    low: float = 0.0
    high: float = 1.0
    prior: Callable[[Any], Any] = flat
    label: str = "alpha"
    ends: tuple[float, float] = (1.0, 0.0)  # alpha of the first and of the second model
    n_models: int = 2

    def __post_init__(self):
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise CoordinateError(f"alpha needs a finite interval with low < high; got [{self.low}, {self.high}].")
        first, second = (float(self.f_of(np.array(e))) for e in self.ends)
        if not (abs(first - 1) < 1e-9 and abs(second) < 0.05):
            raise CoordinateError(
                f"f({self.label}) gives {first:.6g} at alpha = {self.ends[0]:g} and {second:.6g} at alpha = {self.ends[1]:g}; "
                "it must give 1 at the first model's end and (nearly) 0 at the second's: the Bayes factor is read there. "
                "Change f, or give `ends=(alpha of the first model, alpha of the second)`."
            )
        grid = self.f_of(np.linspace(min(self.ends), max(self.ends), 257))
        if not (np.all(np.isfinite(grid)) and grid.min() > -1e-9 and grid.max() < 1 + 1e-9):
            raise CoordinateError(
                f"f({self.label}) leaves [0, 1] between its ends (from {grid.min():.4g} to {grid.max():.4g}); "
                "weights outside the simplex make likelihoods negative."
            )
        if not np.isfinite(self.log_norm):
            raise CoordinateError(f"the prior of {self.label} cannot be normalised on [{self.low:g}, {self.high:g}].")

    @in_float64
    def f_of(self, alpha: np.ndarray) -> np.ndarray:
        return np.asarray(self.f(np.asarray(alpha, float)), float)

    @cached_property
    @in_float64
    def log_norm(self) -> float:
        r"""$\ln \int p$, by 4 x 200-point Gauss-Legendre panels: smooth priors are exact to rounding."""
        nodes, weights = np.polynomial.legendre.leggauss(200)
        edges = np.linspace(self.low, self.high, 5)
        half = (edges[1:] - edges[:-1])[:, None] / 2
        x = edges[:-1, None] + half * (nodes + 1)
        values = np.asarray(self.prior(x), float)
        top = values.max()
        if not np.isfinite(top):
            return float(top)  # refused by the caller: no density anywhere, or an infinite one
        return float(top + np.log(np.sum(half * weights * np.exp(values - top))))

    @property
    def is_enlarged(self) -> bool:
        return self.low < min(self.ends) or self.high > max(self.ends)

    def weights(self, alpha):
        import jax.numpy as jnp

        f = self.f(alpha)
        return jnp.stack([f, 1.0 - f], axis=-1)

    def log_prior(self, alpha):
        import jax.numpy as jnp

        inside = (alpha >= self.low) & (alpha <= self.high)
        return jnp.where(inside, self.prior(alpha) - self.log_norm, -jnp.inf)

    def corner(self, k):
        return self.ends[k] if abs(float(self.f_of(np.array(self.ends[k]))) - (1 - k)) < 1e-9 else None

    def sample_prior(self, rng, n):
        """By inverting the cumulative prior on a fine grid (chains only need dispersed starts)."""
        grid = np.linspace(self.low, self.high, 2001)
        cumulative = np.cumsum(np.exp(self.log_prior_of(grid)))
        return np.interp(rng.random(n), (cumulative - cumulative[0]) / (cumulative[-1] - cumulative[0]), grid)


def identity(prior=flat) -> Line:
    r"""$f = \alpha$ on [0, 1]: the paper's first choice."""
    return Line(lambda a: a, 0.0, 1.0, prior, "alpha")


def enlarged(margin: float, prior=flat) -> Line:
    r"""$f = \alpha$ on [-margin, 1 + margin]: the ends become interior points. For `blend` only."""
    return Line(lambda a: a, -margin, 1.0 + margin, prior, "alpha, enlarged")


def exponential(cutoff: float = -4.0, prior=flat) -> Line:
    r"""$f = e^\alpha$ on [$\Lambda$, 0] (paper, section 5); `cutoff` is $\Lambda < 0$."""
    import jax.numpy as jnp

    if not cutoff < 0:
        raise CoordinateError(f"the cut-off Lambda of e^alpha must be negative (f falls towards 0); got {cutoff}.")
    return _Exponential(jnp.exp, cutoff, 0.0, prior, "e^alpha", (0.0, cutoff))


class _Exponential(Line):
    def __post_init__(self):
        # The second model is approached, not reached, however short the interval: the exact estimators allow for it.
        if not np.isfinite(self.log_norm):
            raise CoordinateError(f"the prior of alpha cannot be normalised on [{self.low:g}, 0].")


def tanh(sharpness: float, prior=flat) -> Line:
    r"""$f = \frac12 [1 + \tanh(k(\alpha - \frac12)) / \tanh(k/2)]$: a step as $k \to \infty$."""
    import jax.numpy as jnp

    if not sharpness > 0:
        raise CoordinateError(f"the sharpness k of tanh must be positive; got {sharpness}.")
    return Line(
        lambda a: 0.5 * (1 + jnp.tanh(sharpness * (a - 0.5)) / math.tanh(sharpness / 2)), 0.0, 1.0, prior, "tanh"
    )


def power(exponent: float, prior=flat) -> Line:
    r"""$f = \alpha^p$ on [0, 1]."""
    if not exponent > 0:
        raise CoordinateError(f"the exponent of alpha^p must be positive; got {exponent}.")
    return Line(lambda a: a**exponent, 0.0, 1.0, prior, "alpha^p")


def tilted(eta: float, prior=flat) -> Line:
    r"""$f = \alpha e^\eta / (\alpha e^\eta + 1 - \alpha)$: the first model favoured by $e^\eta$ in advance."""
    # Scaled so that the larger factor is 1: |eta| = 500 overflows nowhere.
    up, down = math.exp(min(eta, 0.0)), math.exp(min(-eta, 0.0))
    return Line(lambda a: a * up / (a * up + (1 - a) * down), 0.0, 1.0, prior, "tilt")


@dataclass(frozen=True, eq=False)
class Hats(Coordinate):
    r"""$w_k = \max(0, 1 - |\alpha - k|)$ on [0, K-1], flat prior: model k alone at $\alpha = k$."""

    n_models: int

    def __post_init__(self):
        if self.n_models < 2:
            raise CoordinateError(f"hat functions need at least two models; got {self.n_models}.")

    low = 0.0

    @property
    def high(self) -> float:
        return float(self.n_models - 1)

    def weights(self, alpha):
        import jax.numpy as jnp

        return jnp.maximum(0.0, 1.0 - jnp.abs(alpha[..., None] - jnp.arange(self.n_models)))

    def log_prior(self, alpha):
        import jax.numpy as jnp

        return jnp.where((alpha >= 0) & (alpha <= self.high), -math.log(self.high), -jnp.inf)

    def corner(self, k):
        return float(k)

    def sample_prior(self, rng, n):
        return rng.uniform(0.0, self.high, n)


@dataclass(frozen=True, eq=False)
class Simplex(Coordinate):
    r"""$w = \alpha$ with $\alpha \sim$ Dirichlet(concentration); $\alpha$ is kept as all K barycentric coordinates."""

    n_models: int
    concentration: float = 1.0
    is_simplex = True

    def weights(self, alpha):
        return alpha

    def log_prior(self, alpha):
        import jax.numpy as jnp

        k, c = self.n_models, self.concentration
        norm = math.lgamma(k * c) - k * math.lgamma(c)
        inside = jnp.all(alpha >= 0, axis=-1)
        density = norm if c == 1.0 else norm + (c - 1) * jnp.log(jnp.maximum(alpha, 1e-300)).sum(-1)
        return jnp.where(inside, density, -jnp.inf)

    def corner(self, k):
        return np.eye(self.n_models)[k]

    def sample_prior(self, rng, n):
        return rng.dirichlet(np.full(self.n_models, self.concentration), n)


@dataclass(frozen=True, eq=False)
class Ladder(Coordinate):
    r"""$\alpha \in \{0, \dots, M-1\}$: rung m has the weights `table[m]` and the log prior `log_prior_table[m]`."""

    table: np.ndarray  # (M, K)
    log_prior_table: Any = None  # (M,), normalised on construction
    is_discrete = True

    def __post_init__(self):
        table = np.asarray(self.table, float)
        if table.ndim != 2 or np.any(table < 0) or not np.allclose(table.sum(1), 1.0):
            raise CoordinateError(
                f"each rung of a ladder needs weights that are >= 0 and sum to 1; got {self.table!r}."
            )
        raw = np.zeros(len(table)) if self.log_prior_table is None else np.asarray(self.log_prior_table, float)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "log_prior_table", raw - np.logaddexp.reduce(raw))

    @property
    def n_models(self) -> int:  # type: ignore[override]
        return self.table.shape[1]

    @property
    def n_rungs(self) -> int:
        return len(self.table)

    def weights(self, alpha):
        import jax.numpy as jnp

        return jnp.asarray(self.table)[alpha]

    def log_prior(self, alpha):
        import jax.numpy as jnp

        return jnp.asarray(self.log_prior_table)[alpha]

    def corner(self, k):
        found = np.flatnonzero(self.table[:, k] == 1.0)
        return int(found[0]) if len(found) else None

    def sample_prior(self, rng, n):
        return rng.choice(self.n_rungs, size=n, p=np.exp(self.log_prior_table))


def index(n_models: int, log_prior=None) -> Ladder:
    """The discrete index: one rung per model, none between."""
    return Ladder(np.eye(n_models), log_prior)


def ladder(n_rungs: int, power: float = 1.0) -> Ladder:
    """`n_rungs` rungs between two models, both ends among them; rung 0 is the second model."""
    t = np.linspace(0.0, 1.0, n_rungs) ** power
    return Ladder(np.stack([t, 1.0 - t], axis=1))
