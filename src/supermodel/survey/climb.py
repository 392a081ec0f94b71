r"""Climbs and hills of one data set as traced functions: with `vmap`, of all starts of all data sets at once.

$J(x) \approx J(\hat x) \exp[-\frac12 (x-\hat x)^T H (x-\hat x)]$ makes each maximum a hill of mass
$J(\hat x) (2\pi)^{d/2} |H|^{-1/2}$. The engine climbs each start until it arrives; here all take as many steps, so that one
program does for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supermodel.embedding.reference import LOG_2PI, Hills, log_bell

STEPS, MORE = 6, 20  # of all climbs; of those that are then worth going on with
APART = 0.1  # widths of the prior within which two of them are one
FIRST = 0.1  # widths of the prior that a first step goes at most
SMALLEST = 1e-300
TWIN, LIKE = 1.0, 1.1  # radii within which two maxima are one; ln of the ratio of their widths up to which they are
LEAST, FAINT = 6.0, 12.0  # nats below the heaviest at which a hill still gets its share, and at which it is left out
DOF = 4  # of the hills: heavier than most posteriors, and chi^2_4 is -2 ln(u u')


class Found(NamedTuple):
    """Hills of one data set, heaviest first: (m, d), (m, d, d), (m,). A place without a hill has mass 0."""

    means: Any
    covariances: Any
    log_mass: Any

    @property
    def heights(self) -> Any:
        """ln J at the tops, were all normal."""
        return self.log_mass - 0.5 * jnp.linalg.slogdet(self.covariances)[1] - 0.5 * self.means.shape[1] * LOG_2PI

    @classmethod
    def none(cls, m: int, d: int) -> Found:
        return cls(jnp.zeros((m, d)), jnp.broadcast_to(jnp.eye(d), (m, d, d)), jnp.full(m, -jnp.inf))


def climbs(log_joint: Callable[[Any], Any], starts: Any, n: int) -> tuple[Any, Any, Any]:
    """Tops (n, d), ln J there and its gradient: all starts climb a little, and the `n` best that are apart go on to the end."""
    states = jax.vmap(lambda start: _climbed(log_joint, _start(log_joint, start), STEPS))(starts)
    x, value = states[:2]
    near = jnp.max(jnp.abs(x[:, None] - x[None]), axis=2) < APART

    def pick(left, _):
        best = jnp.argmax(left)
        return jnp.where(near[best], -jnp.inf, left), best

    best = jax.lax.scan(pick, value, None, length=n)[1]
    return jax.vmap(lambda state: _climbed(log_joint, state, MORE)[:3])(jax.tree.map(lambda part: part[best], states))


def _evaluated(log_joint: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """ln J and its gradient; a wall (-inf, 0) where they are not finite."""
    value, gradient = jax.value_and_grad(log_joint)(x)
    known = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    return jnp.where(known, value, -jnp.inf), jnp.where(known, gradient, 0.0)


def _start(log_joint: Callable[[Any], Any], x: Any) -> tuple:
    value, gradient = _evaluated(log_joint, x)
    steep = jnp.linalg.norm(gradient) + SMALLEST
    inverse = jnp.eye(len(x)) * jnp.minimum(FIRST, 1.0 / steep) / steep
    return x, value, gradient, inverse, jnp.ones(()), jnp.asarray(True)


def _climbed(log_joint: Callable[[Any], Any], state: tuple, steps: int) -> tuple:
    """So many steps of BFGS further, one evaluation with gradient each. Coordinates are scaled by the prior."""
    unit = jnp.eye(len(state[0]))

    def step(state, _):
        x, value, gradient, inverse, length, is_first = state
        way = inverse @ gradient
        way = way * jnp.minimum(1.0, 1.0 / (jnp.linalg.norm(way) + SMALLEST))
        new = x + length * way
        new_value, new_gradient = _evaluated(log_joint, new)
        up = new_value >= value + 1e-4 * length * (way @ gradient)
        moved, bent = new - x, gradient - new_gradient
        product = moved @ bent
        curved = up & (product > 1e-10 * jnp.sqrt((moved @ moved) * (bent @ bent)))
        before = jnp.where(is_first, unit * product / (bent @ bent + SMALLEST), inverse)
        rho = 1.0 / jnp.where(curved, product, 1.0)
        turn = unit - rho * jnp.outer(moved, bent)
        inverse = jnp.where(curved, turn @ before @ turn.T + rho * jnp.outer(moved, moved), inverse)
        length = jnp.where(up, jnp.where(curved, 1.0, 2.0 * length), 0.3 * length)
        x, value = jnp.where(up, new, x), jnp.where(up, new_value, value)
        return (x, value, jnp.where(up, new_gradient, gradient), inverse, length, is_first & ~curved), None

    return jax.lax.scan(step, state, None, length=steps)[0]


def hill_at(log_joint: Callable[[Any], Any], top: Any, value: Any, gradient: Any) -> tuple[Any, Any, Any]:
    """Mean, covariance and log mass of the hill at the end of a climb, after a last Newton step.

    Flat or upward directions get the width of the prior: a ridge is not infinitely wide.
    """
    d = len(top)
    curvature = -jax.hessian(log_joint)(top)
    known = jnp.isfinite(value) & jnp.all(jnp.isfinite(curvature))
    values, vectors = jnp.linalg.eigh(jnp.where(known, curvature, jnp.eye(d)))
    values = jnp.maximum(values, 1.0)
    covariance = (vectors / values) @ vectors.T
    step = covariance @ jnp.where(known, gradient, 0.0)
    rise = jnp.where(known, step @ gradient, jnp.inf)
    last = rise < 1.0  # within about one standard deviation
    mean = top + jnp.where(last, step, 0.0)
    mass = value + jnp.where(last, 0.5 * rise, 0.0) - 0.5 * jnp.sum(jnp.log(values)) + 0.5 * d * LOG_2PI
    return mean, covariance, jnp.where(known, mass, -jnp.inf)


def merged(found: Found, more: Found) -> tuple[Found, Any]:
    """The heaviest of both without twins, as many as `found` has places; and which of them are new."""
    m = len(found.log_mass)
    means, covariances, mass = (jnp.concatenate(both) for both in zip(found, more, strict=True))
    inverses = jnp.linalg.inv(covariances)
    apart = means[None] - means[:, None]
    near = jnp.einsum("ija,iab,ijb->ij", apart, inverses, apart) < TWIN**2
    # A spike on top of a slab is none of its twins.
    log_size = 0.5 * jnp.linalg.slogdet(covariances)[1]
    near &= jnp.abs(log_size[:, None] - log_size[None]) < len(means[0]) * LIKE
    places = jnp.arange(len(mass))
    # Known ones stand before new ones, which stand by their mass.
    before = jnp.where(places < m, -jnp.inf, -mass)
    first = (before[:, None] < before[None]) | ((before[:, None] == before[None]) & (places[:, None] < places[None]))
    twin = jnp.any(near & first & jnp.isfinite(mass)[:, None], axis=0)
    mass = jnp.where(twin, -jnp.inf, mass)
    keep = jnp.argsort(-mass)[:m]
    return Found(means[keep], covariances[keep], mass[keep]), (keep >= m) & jnp.isfinite(mass[keep])


def refitted(found: Found, hills: Hills, points: Any, log_weights: Any) -> Found:
    """Each hill with mean, covariance and mass of the weighted draws that belong to it, as far as there are draws.

    The curvature at the top counts as d + 2 draws; it is all there is where a hill has none.
    """
    m, d = found.means.shape
    top = jnp.max(log_weights)
    weights = jnp.where(jnp.isfinite(top), jnp.exp(log_weights - jnp.where(jnp.isfinite(top), top, 0.0)), 0.0)
    parts = responsibilities(hills, points) * weights[:, None]  # (n, m)
    total = parts.sum(0)
    count = total**2 / (jnp.sum(parts**2, axis=0) + SMALLEST)
    share = jnp.where(total > 0, count / (count + d + 2.0), 0.0)
    origin = points[jnp.argmax(log_weights)]
    apart, before = points - origin, found.means - origin
    squares = (apart[:, :, None] * apart[:, None, :]).reshape(len(points), d * d)
    mean = (parts.T @ apart) / (total[:, None] + SMALLEST)
    second = (parts.T @ squares).reshape(m, d, d) / (total[:, None, None] + SMALLEST)
    # Moments of a mixture: `share` of the draws, the rest of the hill as it was.
    new = before + share[:, None] * (mean - before)
    was = found.covariances + before[:, :, None] * before[:, None, :]
    covariances = share[:, None, None] * second + (1 - share)[:, None, None] * was - new[:, :, None] * new[:, None, :]
    means = origin + new
    log_mass = jnp.where(
        (total > 0) & jnp.isfinite(found.log_mass),
        top + jnp.log(total + SMALLEST) - jnp.log(len(weights)),
        found.log_mass,
    )
    return Found(means, covariances, log_mass)


def grown(found: Found, hills: Hills, points: Any, log_weights: Any, n: int) -> Found:
    """The hills and `n` more where weights are largest: there the reference is lowest beside what it should be.

    Each has half the width of the hill that its draw belongs to, and the mass of that one draw.
    """
    best = jax.lax.top_k(log_weights, n)[1]
    owner = jnp.argmax(responsibilities(hills, points[best]), axis=1)
    mass = log_weights[best] - jnp.log(len(log_weights))
    return merged(found, Found(points[best], 0.25 * found.covariances[owner], mass))[0]


def hills_of(found: Found) -> Hills:
    """A Student density at every hill, by their masses."""
    factors = jnp.linalg.cholesky(found.covariances)
    unit = jnp.eye(found.means.shape[1])
    factors = jnp.where(jnp.all(jnp.isfinite(factors), axis=(1, 2))[:, None, None], factors, unit)
    inverses = jax.scipy.linalg.solve_triangular(factors, jnp.broadcast_to(unit, factors.shape), lower=True)
    top = found.log_mass.max()
    weights = jnp.where(found.log_mass > top - FAINT, jnp.maximum(found.log_mass, top - LEAST), -jnp.inf)
    weights = jnp.where(jnp.isfinite(top), weights - jax.nn.logsumexp(weights), -jnp.log(len(weights)))
    return Hills(weights, found.means, factors, inverses, float(DOF))


def bells(hills: Hills, points: Any) -> tuple[Any, Any]:
    r"""$p_m t_m(x)$ at (n, d) points, (n, m), over $e^{c}$; and c.

    As $(1 + q/\nu)^{-(\nu+d)/2}$ by products and a root, which cost a tenth of what a logarithm for each does.
    """
    d = points.shape[1]
    log_det = jnp.log(jnp.diagonal(hills.inverses, axis1=1, axis2=2)).sum(-1)
    heights = hills.log_weights + log_det + log_bell(jnp, 0.0, d, DOF)
    top = heights.max()
    u = 1.0 / (1.0 + hills.squares(jnp, points) / DOF)
    power = jax.lax.integer_pow(u, (DOF + d) // 2)
    return jnp.exp(heights - top) * (power * jnp.sqrt(u) if d % 2 else power), top


def log_density(hills: Hills, points: Any) -> Any:
    r"""$\ln \sum_m p_m t_m(x)$ at (n, d) points."""
    parts, top = bells(hills, points)
    return top + jnp.log(parts.sum(1) + SMALLEST)


def responsibilities(hills: Hills, points: Any) -> Any:
    """The share of each hill in the density at (n, d) points: (n, m)."""
    parts, _ = bells(hills, points)
    return parts / (parts.sum(1, keepdims=True) + SMALLEST)
