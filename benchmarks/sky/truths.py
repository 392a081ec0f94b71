r"""$\ln \int e^{f}$: adaptive cells, linear parameters by algebra, and long importance sampling.

Every truth takes `fine`: 1 is the benchmark's, 2 is a finer answer (other cells, nodes or draws) to check it by.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import gammaln, logsumexp

LOG_2PI = np.log(2 * np.pi)


def adaptive(
    log_f, low, high, cells, fine: float = 1.0, tol: float = 3e-4, chunk: int = 20_000, least: int = 1
) -> float:
    r"""$\ln \int e^{f}$ over a box: Gauss-Legendre in every cell, and cells split in two along every axis until they agree.

    `log_f` takes (n, d). The first `cells` must be so fine that a peak shows at some node, be it only by its foot.
    """
    low, high = np.atleast_1d(np.asarray(low, float)), np.atleast_1d(np.asarray(high, float))
    d = len(low)
    counts = np.maximum(1, np.round(np.broadcast_to(cells, d) * (1.0 if fine == 1 else 1.37))).astype(int)
    tol = tol / fine**2
    x, w = np.polynomial.legendre.leggauss(4 if d == 1 else 3)
    nodes = np.array(list(itertools.product(x, repeat=d))) / 2 + 0.5
    log_w = np.log([np.prod(row) for row in itertools.product(w / 2, repeat=d)])
    halves = np.array(list(itertools.product([0.0, 0.5], repeat=d)))

    def integrals(corner, size):
        out = np.empty(len(corner))
        step = max(1, chunk // len(nodes))
        for i in range(0, len(corner), step):
            points = corner[i : i + step, None, :] + nodes * size
            values = np.nan_to_num(log_f(points.reshape(-1, d)), nan=-np.inf, posinf=np.inf)
            out[i : i + step] = logsumexp(values.reshape(-1, len(nodes)) + log_w, axis=1)
        return out + np.sum(np.log(size))

    size = (high - low) / counts
    corner = low + size * np.array(list(itertools.product(*[range(n) for n in counts])), float)
    parents = integrals(corner, size)
    banked = []  # ln of what is settled
    for level in range(25):
        total = logsumexp(np.concatenate([parents, banked]))
        # Cells with nothing in them rest; at first only those with nothing at all, for their nodes may have missed it.
        rest = (45, 25)[level] if level < 2 else 16
        alive = parents > total - rest - np.log(len(parents))
        banked.extend(parents[~alive])
        corner, parents = corner[alive], parents[alive]
        if not len(parents):
            break
        children = (corner[:, None, :] + halves * size).reshape(-1, d)
        size = size / 2
        parts = integrals(children, size).reshape(len(corner), -1)
        sums = logsumexp(parts, axis=1)
        total = logsumexp(np.concatenate([sums, banked]))
        gap = np.abs(np.exp(sums - total) - np.exp(parents - total))
        order = np.argsort(gap)
        settled = np.zeros(len(gap), bool)
        settled[order] = np.sqrt(np.cumsum(gap[order] ** 2)) < tol * 0.5 ** (level + 1)  # the gaps have either sign
        if level < 2:  # the foot of a peak is not settled, however low it lies
            settled &= (np.abs(sums - parents) < 1) | (sums < total - rest)
            if level < least:
                settled &= sums < total - rest
        elif np.sqrt(np.sum(gap**2)) < tol:
            settled[:] = True
        banked.extend(sums[settled])
        if settled.all():
            break
        corner = children.reshape(len(corner), -1, d)[~settled].reshape(-1, d)
        parents = parts[~settled].ravel()
    else:
        banked.extend(parents)
    return float(logsumexp(banked))


def linear(design, y, noise, prior_sd):
    r"""ln of $N(y; 0, \sigma^2 + X S^2 X^T)$ for designs (..., data, columns); noise is (data,) or (..., data)."""
    k = design.shape[-1]
    scaled = design * np.broadcast_to(prior_sd, k) / np.broadcast_to(noise, design.shape[:-1])[..., None]
    white = y / noise
    turned = np.swapaxes(scaled, -1, -2)
    inner = np.eye(k) + turned @ scaled
    b = turned @ (white[:, None] if white.ndim == 1 else white[..., None])
    factor = np.linalg.cholesky(inner)
    solved = np.linalg.solve(inner, b)
    gain = np.sum(b * solved, axis=(-1, -2))
    alone = -0.5 * np.sum(white**2, axis=-1) - np.sum(np.log(noise) + 0.5 * LOG_2PI + 0 * y, axis=-1)
    return alone + 0.5 * gain - np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def tempered(draw, log_prior, log_like, n: int, rng, moves: int = 12, share: float = 0.6):
    r"""Points of $\pi L$ and $\ln Z = \sum \ln \langle L^{\Delta\beta} \rangle$: sequential Monte Carlo, difference moves."""
    x = draw(rng, n)
    d = x.shape[1]
    prior, like = log_prior(x), log_like(x)
    like = np.where(np.isnan(like), -np.inf, like)
    beta, total = 0.0, 0.0
    while beta < 1:
        low, high = 0.0, 1 - beta

        def kept(step, like=like):
            w = np.exp(step * (like - like.max()))
            return w.sum() ** 2 / np.sum(w**2) / n

        if kept(high) < share:
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if kept(middle) > share else (low, middle)
        step = high
        beta = min(1.0, beta + step)
        total += logsumexp(step * like) - np.log(n)
        w = np.exp(step * (like - like.max()))
        at = np.searchsorted(np.cumsum(w) / w.sum(), (rng.random() + np.arange(n)) / n).clip(0, n - 1)
        x, prior, like = x[at], prior[at], like[at]
        for move in range(moves):
            a, b = rng.integers(n, size=(2, n))
            if move % 3 < 2:
                scale = 2.38 / np.sqrt(2 * d) * 10 ** rng.uniform(-1.5 if move % 3 else -4, 0.1, (n, 1))
                some = rng.random((n, d)) < rng.choice([0.3, 1.0], (n, 1))
                new = x + np.where(some, scale * (x[a] - x[b]), 0.0)
            else:
                new = x + 10 ** rng.uniform(-2.5, 0, (n, 1)) / np.sqrt(d) * x.std(axis=0) * rng.normal(size=x.shape)
            new_prior, new_like = log_prior(new), log_like(new)
            new_like = np.where(np.isnan(new_like), -np.inf, new_like)
            with np.errstate(invalid="ignore"):
                go = np.log(rng.random(n)) < new_prior - prior + beta * (new_like - like)
            x[go], prior[go], like[go] = new[go], new_prior[go], new_like[go]
    return x, float(total)


def student_mixture(x, rng, k: int = 6, turns: int = 40):
    """Weights, means and Cholesky factors of a normal mixture fitted to points by expectation-maximisation."""
    n, d = x.shape
    whole = np.cov(x.T).reshape(d, d)
    means, covs, weights = x[rng.choice(n, k, replace=False)], np.repeat(whole[None], k, axis=0), np.full(k, 1 / k)
    for _ in range(turns):
        factors = np.linalg.cholesky(covs)
        log_p = np.log(weights) + np.stack([_normal(x, m, c) for m, c in zip(means, factors, strict=True)], axis=1)
        r = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
        size = r.sum(axis=0) + 1e-9
        weights, means = (size + 1) / (n + k), (r.T @ x) / size[:, None]
        rest = x[None] - means[:, None]
        covs = (
            np.einsum("kni,knj,nk->kij", rest, rest, r) / size[:, None, None]
            + 1e-3 * whole * (d / (size + d))[:, None, None]
        )
        covs += 1e-9 * np.eye(d) * np.trace(whole) / d
    return weights / weights.sum(), means, np.linalg.cholesky(covs)


def _normal(x, mean, factor):
    u = np.linalg.solve(factor, (x - mean).T)
    return -0.5 * np.sum(u**2, axis=0) - np.sum(np.log(np.diag(factor))) - 0.5 * len(factor) * LOG_2PI


def _student(x, mean, factor, nu):
    d = len(factor)
    u = np.sum(np.linalg.solve(factor, (x - mean).T) ** 2, axis=0)
    front = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi) - np.sum(np.log(np.diag(factor)))
    return front - 0.5 * (nu + d) * np.log1p(u / nu)


def importance(
    draw, log_prior, log_like, fine: float = 1.0, n: int = 1_000_000, points: int = 3000, k: int = 6, nu: float = 6.0
):
    r"""(ln Z, its error) as $\langle \pi L / q \rangle$ q a Student mixture fitted to `tempered` points and a tenth the prior."""
    rng = np.random.default_rng([71, round(1000 * fine)])
    x, _ = tempered(draw, log_prior, log_like, points, rng, moves=9)
    n, safe = int(n * fine), 0.1
    weights, means, factors = student_mixture(x, rng, k)
    d = x.shape[1]
    logs = []
    for part in np.array_split(np.arange(n), max(1, n // 25_000)):
        m = len(part)
        which = rng.choice(k, m, p=weights)
        spread = np.sqrt(nu / rng.chisquare(nu, m))[:, None]
        new = means[which] + spread * np.einsum("nij,nj->ni", factors[which], rng.normal(size=(m, d)))
        new = np.where(rng.random(m)[:, None] < safe, draw(rng, m), new)
        prior = log_prior(new)
        q = logsumexp(
            [np.log(w) + _student(new, c, f, nu) for w, c, f in zip(weights, means, factors, strict=True)], axis=0
        )
        logs.append(prior + log_like(new) - np.logaddexp(np.log(safe) + prior, np.log1p(-safe) + q))
    logs = np.nan_to_num(np.concatenate(logs), nan=-np.inf)
    w = np.exp(logs - logs.max())
    return float(np.log(w.mean()) + logs.max()), float(w.std() / w.mean() / np.sqrt(n))


def gaussian(y, model, sd, xp):
    r"""$\sum_i \ln N(y_i; m_i, s_i)$ over the last axis."""
    return xp.sum(-0.5 * ((y - model) / sd) ** 2 - xp.log(sd) - 0.5 * LOG_2PI + 0 * model, axis=-1)
