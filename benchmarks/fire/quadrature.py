r"""Exact evidences in one, two and three dimensions, and the closed one of linear parameters: what the truths stand on."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def on_grid(log_integrand, *axes: tuple[float, float, int]) -> float:
    r"""$\ln \int e^{f}$ by the trapezoidal rule; `axes` are (low, high, nodes), and f takes one array for each.

    Of an integrand that dies away at both ends, or is periodic, the rule's error falls faster than any power of the step.
    """
    grids = [np.linspace(*axis) for axis in axes]
    total = log_integrand(*np.meshgrid(*grids, indexing="ij"))
    for grid in reversed(grids):
        weights = np.full(len(grid), grid[1] - grid[0])
        weights[[0, -1]] *= 0.5
        total = logsumexp(total, b=weights, axis=-1)
    return float(total)


def moving_hermite(log_integrand, centre, scale, nodes: int = 48, turns: int = 3) -> float:
    r"""$\ln \int e^{f}$ over a few dimensions: Gauss-Hermite on N(centre, covariance), which is then moved to the moments of f.

    `log_integrand` takes (n, d). The answer settles once centre and covariance are those of the integrand.
    """
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    centre, factor = np.asarray(centre, float), np.diag(np.asarray(scale, float))
    d = len(centre)
    u = np.stack(np.meshgrid(*[x] * d, indexing="ij"), axis=-1).reshape(-1, d)
    log_w = np.sum(np.stack(np.meshgrid(*[np.log(w)] * d, indexing="ij"), axis=-1).reshape(-1, d), axis=-1)
    keep = log_w > log_w.max() - 80
    u, log_w = u[keep], log_w[keep]
    for turn in range(turns):
        points = centre + u @ factor.T
        terms = log_w + 0.5 * np.sum(u**2, axis=-1) + log_integrand(points) + np.linalg.slogdet(factor)[1]
        total = logsumexp(terms)
        if turn + 1 < turns:
            share = np.exp(terms - total)[:, None]
            centre = np.sum(share * points, axis=0)
            rest = points - centre
            # A little wider than the moments: tails heavier than the normal's are then still inside the nodes.
            factor = 1.15 * np.linalg.cholesky(np.einsum("ni,nj,nk->ij", rest, rest, share))
    return float(total)


def linear(design, y, noise: float, prior_sd):
    r"""ln of $N(y; 0, \sigma^2 + X S^2 X^T)$ for designs (..., data, columns): y = X b ± noise, b ~ N(0, S)."""
    design = np.asarray(design, float)
    n, k = design.shape[-2:]
    scaled = design * np.broadcast_to(prior_sd, k)
    inner = np.eye(k) + np.swapaxes(scaled, -1, -2) @ scaled / noise**2
    b = np.einsum("...nk,n->...k", scaled, y) / noise**2
    gain = np.einsum("...k,...k->...", b, np.linalg.solve(inner, b[..., None])[..., 0])
    alone = -0.5 * y @ y / noise**2 - n * np.log(noise * np.sqrt(2 * np.pi))
    return alone + 0.5 * gain - 0.5 * np.linalg.slogdet(inner)[1]
