r"""A model given as functions: a log prior, a sampler of it, and a log likelihood.

The prior must be normalised, so that is checked: with draws of $\pi$ from the sampler and draws of a Student t density
$q$ fitted to half of them, bridge sampling gives $\int \pi$; draws of $q$ alone give it a second time. The first
differs from 1 where the density is not normalised, the two differ where sampler and density do not belong together.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from supermodel.errors import ModelError, PriorError
from supermodel.jax_scope import in_float64
from supermodel.models.joint_space import JointSpace, Site
from supermodel.models.model import Model

Bounds = Mapping[str, tuple[float | None, float | None]]


@in_float64
def from_log_density(
    log_prior: Callable[[Any], Any],
    log_likelihood: Callable[..., Any],
    sample_prior: Callable[[np.random.Generator, int], Mapping[str, Any]],
    *,
    bounds: Bounds | None = None,
    vectorized: bool = False,
    check: bool = True,
) -> Model:
    """The model of `log_prior(p)` and `log_likelihood(p)`, where `sample_prior(rng, n)` gives {name: n draws}.

    `p` is a dict of scalars and arrays, as in `Model`. `bounds` = {name: (low, high)}, None for no bound, says where a
    parameter lives; the sampler then never leaves it. `vectorized`: both densities take n values of every parameter.
    `check=False` skips the check that the prior is normalised and belongs to its sampler: then that is on you.
    """
    draws = _first_draws(sample_prior)
    layout = _Layout(draws, bounds or {})
    traceable = not vectorized and _is_traceable(log_prior, layout)
    space = _space(log_prior, sample_prior, layout, traceable, vectorized)
    if check:
        check_normalised(space)
    return Model.from_space(space, log_likelihood, vectorized=vectorized)


def _first_draws(sample_prior: Any) -> dict[str, np.ndarray]:
    try:
        inspect.signature(sample_prior).bind(None, 3)
    except TypeError as error:
        raise ModelError(
            f"`sample_prior` is called as sample_prior(rng, n), with a generator of numpy.random and how many draws are "
            f"wanted, and does not take that: {error}. "
            'Write e.g. lambda rng, n: {"a": rng.normal(0, 1, n)}.'
        ) from error
    except ValueError:  # a function of compiled code that tells nothing of its arguments
        pass
    draws = sample_prior(np.random.default_rng(0), 3)
    if not isinstance(draws, Mapping) or not draws:
        raise ModelError(
            f"`sample_prior(rng, n)` must return a dict {{name: n draws}}; got {type(draws).__name__}. "
            'E.g. lambda rng, n: {"a": rng.normal(0, 1, n)}.'
        )
    arrays = {name: np.asarray(values, float) for name, values in draws.items()}
    for name, values in arrays.items():
        if values.ndim == 0 or len(values) != 3:
            raise ModelError(
                f"`sample_prior(rng, 3)` must return 3 draws of {name!r}; got an array of shape {values.shape}."
            )
    return arrays


class _Layout:
    """Parameters side by side in one vector; bounded ones through log or logit."""

    def __init__(self, draws: Mapping[str, np.ndarray], bounds: Bounds):
        unknown = sorted(set(bounds) - set(draws))
        if unknown:
            raise ModelError(f"`bounds` names {unknown}, but the sampler gives only {sorted(draws)}.")
        self.shapes = {name: values.shape[1:] for name, values in draws.items()}
        self.bounds = {name: tuple(_bound(b) for b in bounds.get(name, (None, None))) for name in draws}
        for name, (low, high) in self.bounds.items():
            if low is not None and high is not None and not low < high:
                raise ModelError(f"the bounds of {name!r} must ascend; got ({low:g}, {high:g}).")
        ends = np.cumsum([0] + [math.prod(shape) for shape in self.shapes.values()])
        self.slices = {name: slice(int(a), int(b)) for name, a, b in zip(draws, ends, ends[1:], strict=False)}
        self.dimension = int(ends[-1])

    def values(self, x: Any, xp: Any = None) -> dict[str, Any]:
        """{name: value} of one point or of many; `xp` is jax.numpy, or numpy where nothing is traced."""
        xp = _jax_numpy() if xp is None else xp
        lead, result = x.shape[:-1], {}
        for name, where in self.slices.items():
            (low, high), inner = self.bounds[name], x[..., where].reshape(lead + self.shapes[name])
            if low is not None and high is not None:
                inner = low + (high - low) * 0.5 * (1 + xp.tanh(0.5 * inner))
            elif low is not None or high is not None:
                inner = low + xp.exp(inner) if low is not None else high - xp.exp(inner)
            result[name] = inner
        return result

    def log_jacobian(self, x: Any, xp: Any = None) -> Any:
        xp = _jax_numpy() if xp is None else xp
        total = xp.zeros(x.shape[:-1])
        for name, where in self.slices.items():
            (low, high), inner = self.bounds[name], x[..., where]
            if low is not None and high is not None:
                each = math.log(high - low) - xp.logaddexp(0.0, inner) - xp.logaddexp(0.0, -inner)
                total = total + each.sum(-1)
            elif low is not None or high is not None:
                total = total + inner.sum(-1)
        return total

    def points(self, values: Mapping[str, Any]) -> np.ndarray:
        """Of one set of values or of n; what lies on or beyond a bound is refused."""
        parts = []
        for name, shape in self.shapes.items():
            value = np.asarray(values[name], float)
            lead = value.shape[: value.ndim - len(shape)]
            low, high = self.bounds[name]
            if np.any(value < (-np.inf if low is None else low)) or np.any(value > (np.inf if high is None else high)):
                raise PriorError(
                    f"there are values of {name!r} outside its bounds ({low}, {high}), e.g. "
                    f"{float(np.min(value)):g} or {float(np.max(value)):g}. Widen the bounds or mend the sampler."
                )
            with np.errstate(divide="ignore"):
                if low is not None and high is not None:
                    inner = np.log(value - low) - np.log(high - value)
                elif low is not None or high is not None:
                    inner = np.log(value - low if low is not None else high - value)
                else:
                    inner = value
            # What lies on a bound has no unconstrained image: pull it just inside.
            inner = np.clip(np.nan_to_num(inner, nan=0.0, posinf=36.0, neginf=-700.0), -700.0, 1e300)
            parts.append(inner.reshape((*lead, -1)))
        return np.concatenate(parts, axis=-1)


def _jax_numpy() -> Any:
    import jax.numpy as jnp

    return jnp


def _bound(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _is_traceable(log_prior: Callable[[Any], Any], layout: _Layout) -> bool:
    import jax

    try:
        traced = jax.eval_shape(lambda x: log_prior(layout.values(x)), jax.ShapeDtypeStruct((layout.dimension,), float))
    except Exception:  # plain Python; its own mistakes show when it is called
        return False
    if traced.shape != ():
        raise ModelError(f"`log_prior` returns an array of shape {traced.shape}; it must return one number. Sum it.")
    return True


def _space(log_prior, sample_prior, layout: _Layout, traceable: bool, vectorized: bool) -> JointSpace:
    def density(x):
        return log_prior(layout.values(x)) + layout.log_jacobian(x)

    def densities(points):
        values = layout.values(points.copy(), np)  # `log_prior` may write into what it is given
        if vectorized:
            found = np.asarray(log_prior(values), float)
        else:
            found = np.array([float(log_prior({name: v[i] for name, v in values.items()})) for i in range(len(points))])
        return found + layout.log_jacobian(points, np)

    def draw(rng, n):
        draws = sample_prior(rng, n)
        shapes = {name: np.shape(draws[name]) for name in layout.shapes}
        if any(shape != (n, *layout.shapes[name]) for name, shape in shapes.items()):
            raise ModelError(f"`sample_prior(rng, {n})` must return {n} draws of every parameter; got shapes {shapes}.")
        return layout.points(draws)

    def many_values(points):
        return layout.values(points, np)

    labels = {
        n: "joint prior" if layout.bounds[n] == (None, None) else f"joint prior on {layout.bounds[n]}"
        for n in layout.shapes
    }
    priors = {name: Site(shape, math.prod(shape), labels[name]) for name, shape in layout.shapes.items()}
    one = density if traceable else lambda x: densities(np.asarray(x)[None])[0]
    many = None if traceable else densities
    return JointSpace(priors, layout.values, one, draw, layout.points, many_values, many, traceable)


# -- is it normalised? ----------------------------------------------------------------------------------------------


class Mass(NamedTuple):
    """ln of the integral of a density, with its error: by bridge sampling, and from the proposal's draws alone."""

    bridge: float
    bridge_error: float
    alone: float
    alone_error: float


@in_float64
def measure_mass(space: JointSpace, n: int = 2000, seed: int = 0) -> Mass:
    r"""$\ln \int \pi$ from `n` draws of the sampler and `n` of a Student t density fitted to as many others."""
    rng = np.random.default_rng([seed, 77])
    fitted, own = space.sample_prior(rng, n), space.sample_prior(rng, n)
    proposal = _StudentT.fit(fitted)
    other = proposal.sample(rng, n)
    gap_own = space.log_prior_at(own) - proposal.log_density(own)
    gap_other = space.log_prior_at(other) - proposal.log_density(other)
    if np.any(np.isnan(gap_own)) or not np.all(np.isfinite(gap_own)):
        bad = space.values_at(own[~np.isfinite(gap_own)][:1])
        raise PriorError(
            f"`log_prior` is {space.log_prior_at(own)[~np.isfinite(gap_own)][0]} at the sampler's own draw "
            f"{ {k: np.round(v[0], 6).tolist() for k, v in bad.items()} }. A draw of a prior has a finite density; "
            "one of the two is wrong."
        )
    gap_other = np.where(np.isnan(gap_other), -np.inf, gap_other)
    log_c = float(np.logaddexp.reduce(gap_other) - np.log(n)) if np.any(np.isfinite(gap_other)) else 0.0
    for _ in range(200):  # Meng and Wong's optimal bridge, by its fixed point
        top = -np.logaddexp(0.0, log_c - gap_other)  # ln of pi / (pi + c q) over the proposal's draws
        bottom = -np.logaddexp(log_c, gap_own)  # ln of q / (pi + c q) over the sampler's
        new = float(np.logaddexp.reduce(top) - np.logaddexp.reduce(bottom))
        if abs(new - log_c) < 1e-12:
            break
        log_c = new
    bridge_error = math.hypot(_relative_error(top), _relative_error(bottom))
    alone = float(np.logaddexp.reduce(gap_other) - np.log(n)) if np.any(np.isfinite(gap_other)) else -math.inf
    return Mass(log_c, bridge_error, alone, _relative_error(gap_other))


def _relative_error(logs: np.ndarray) -> float:
    """Relative error of the mean of exp(logs)."""
    if not np.any(np.isfinite(logs)):
        return math.inf
    w = np.exp(logs - logs.max())
    return float(w.std() / w.mean() / math.sqrt(len(w)))


def check_normalised(space: JointSpace) -> None:
    """Refuse a prior that clearly does not integrate to 1, or that its sampler does not follow."""
    mass = measure_mass(space)
    for attempt in range(2):  # a rare alarm is looked at again with more draws
        if not (_is_off(mass.bridge, mass.bridge_error) or _is_off(mass.alone - mass.bridge, mass.alone_error)):
            break
        mass = measure_mass(space, 4000, attempt + 1)
    if mass.bridge_error > 0.3:
        raise PriorError(
            f"whether the prior is normalised could not be found out: the log of its integral is {mass.bridge:.2f} ± "
            f"{mass.bridge_error:.2f}. Give `bounds` for parameters that have them; or make sure yourself, and pass "
            "check=False."
        )
    if _is_off(mass.alone - mass.bridge, math.hypot(mass.alone_error, mass.bridge_error)) and mass.alone_error < 0.3:
        raise PriorError(
            "`sample_prior` and `log_prior` do not belong together: with the sampler's draws the log of the prior's "
            "integral is "
            f"{mass.bridge:.3f} ± {mass.bridge_error:.3f}, without them {mass.alone:.3f} ± {mass.alone_error:.3f}. "
            "Check that both have the same parameters (scale or variance? rate or scale? bounds?)."
        )
    if _is_off(mass.bridge, mass.bridge_error):
        raise PriorError(
            f"the prior is not normalised: the log of its integral is {mass.bridge:.3f} ± {mass.bridge_error:.3f}, not "
            f"0. The evidence is proportional to it, so ln B would be off by {mass.bridge:.3f}. Add the missing "
            "constant to `log_prior`."
        )


def _is_off(value: float, error: float) -> bool:
    return not abs(value) <= 5.0 * error + 0.005


class _StudentT(NamedTuple):
    """A multivariate Student t density with tails like those of the draws, or heavier, so that it covers them."""

    mean: np.ndarray
    factor: np.ndarray
    df: float

    @classmethod
    def fit(cls, points: np.ndarray) -> _StudentT:
        # Quantiles give centre and width: a heavy tail has neither mean nor variance to speak of.
        low, mean, high = np.quantile(points, [0.16, 0.5, 0.84], axis=0)
        width = np.maximum(0.5 * (high - low), 1e-12)
        inner = np.clip((points - mean) / width, -4.0, 4.0)
        correlation = np.corrcoef(inner, rowvar=False).reshape(len(mean), len(mean))
        correlation = 0.999 * np.nan_to_num(correlation) + 0.001 * np.eye(len(mean))
        np.fill_diagonal(correlation, 1.0)
        wide = np.quantile(points, [0.025, 0.975], axis=0)
        reach = float(
            np.max((wide[1] - wide[0]) / width, initial=0.0)
        )  # 3.9 for a normal density, 13.8 for a Cauchy one
        return cls(mean, width[:, None] * np.linalg.cholesky(correlation), 5.0 if reach < 5.5 else 1.0)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        normal = rng.standard_normal((n, len(self.mean)))
        return self.mean + (normal / np.sqrt(rng.chisquare(self.df, n) / self.df)[:, None]) @ self.factor.T

    def log_density(self, points: np.ndarray) -> np.ndarray:
        d = len(self.mean)
        z = np.linalg.solve(self.factor, (points - self.mean).T)
        constant = math.lgamma(0.5 * (self.df + d)) - math.lgamma(0.5 * self.df) - 0.5 * d * math.log(math.pi * self.df)
        return (
            constant
            - np.log(np.diagonal(self.factor)).sum()
            - 0.5 * (self.df + d) * np.log1p(np.sum(z**2, axis=0) / self.df)
        )
