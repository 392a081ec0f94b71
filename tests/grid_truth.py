r"""A small supermodel of one parameter whose $p(\alpha, u \mid D)$ is known on a grid, and tolerances for chains.

Three models share "a" with different priors; none of the evidences are equal and nothing is conveniently 0 or 1.
"""

import numpy as np
import numpyro.distributions as dist
from scipy import stats

from supermodel.embedding import Supermodel
from supermodel.jax_scope import float64
from supermodel.models import Gaussian, Model

DATA = {"x": np.array([0.3, 0.8, 1.1, 1.9]), "y": np.array([0.9, 1.3, 0.6, 1.7])}
NOISE = Gaussian(0.9)


def models(k=2):
    constant = Model({"a": dist.Normal(0.2, 0.8)}, predict=lambda p, x: p["a"] + 0.0 * x, noise=NOISE)
    slope = Model({"a": dist.Normal(0.5, 1.1)}, predict=lambda p, x: p["a"] * x, noise=NOISE)
    curve = Model({"a": dist.Normal(-0.1, 1.0)}, predict=lambda p, x: p["a"] * x**2 - 0.2, noise=NOISE)
    return dict(list({"constant": constant, "slope": slope, "curve": curve}.items())[:k])


def positive_models():
    """Two models whose predictions are positive everywhere, for products of predictions."""
    import jax.numpy as jnp

    grow = Model({"a": dist.Normal(0.2, 0.8)}, predict=lambda p, x: jnp.exp(p["a"] * x), noise=NOISE)
    flat = Model({"a": dist.Normal(0.1, 0.5)}, predict=lambda p, x: jnp.exp(p["a"]) + 0.0 * x, noise=NOISE)
    return {"grow": grow, "flat": flat}


def supermodel(k=2, **kwargs):
    return Supermodel(models(k), data=DATA, **kwargs)


def alpha_grid(coordinate, n=201):
    """Points of alpha and their quadrature weights (trapezium; on a simplex of three, cells of equal area)."""
    if coordinate.is_discrete:
        return np.arange(coordinate.n_rungs), np.ones(coordinate.n_rungs)
    if coordinate.is_simplex:
        i, j = np.meshgrid(np.arange(60), np.arange(60), indexing="ij")
        centres = [((i + s) / 60, (j + s) / 60) for s in (1 / 3, 2 / 3)]  # the two triangles of each square
        points = np.concatenate([np.stack([a, b, 1 - a - b], -1).reshape(-1, 3) for a, b in centres])
        points = points[points[:, 2] > 0]
        return points, np.ones(len(points))
    points = np.linspace(coordinate.low, coordinate.high, n)
    weights = np.full(n, 1.0)
    weights[[0, -1]] = 0.5
    return points, weights


def truth(sm):
    """{"alpha", "u", "u2"}: exact posterior means, by summing the density over (alpha, u); one coordinate u."""
    import jax

    alpha, weights = alpha_grid(sm.coordinate)
    u = np.linspace(-7, 8, 401)
    with float64():
        density = jax.jit(jax.vmap(lambda a: jax.vmap(lambda v: sm.log_density(a, v[None])[0])(u)))
        log_p = np.asarray(density(alpha))
    p = np.exp(log_p - log_p.max()) * weights[:, None]
    p /= p.sum()
    first = alpha if alpha.ndim == 1 else alpha[:, 0]
    return {"alpha": p.sum(1) @ first, "u": p.sum(0) @ u, "u2": p.sum(0) @ u**2}


def chain_mean(values, false_alarm=1e-6):
    """Mean of values (chains, draws), and how far it strays with probability `false_alarm`.

    Chains are independent, so the spread of their means gives the error whatever the autocorrelation; Student's t.
    """
    means = np.asarray(values, float).mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means))
    return means.mean(), stats.t.isf(false_alarm / 2, len(means) - 1) * error


def assert_matches(draws, exact, planted):
    """All three means agree with `exact`, and the mean of alpha would not agree if it were `planted`."""
    alpha = draws.alpha if draws.alpha.ndim == 2 else draws.alpha[..., 0]
    u = draws.position[..., 0]
    for name, values in (("alpha", alpha), ("u", u), ("u2", u**2)):
        mean, tolerance = chain_mean(values)
        assert abs(mean - exact[name]) < tolerance, (name, mean, exact[name], tolerance)
    mean, tolerance = chain_mean(alpha)
    assert abs(mean - planted) > tolerance, (mean, planted, tolerance)
