r"""Fitting hills to weighted draws by expectation-maximisation, one hill at a time.

Each new hill is set where the target exceeds the fit most, so that a narrow mode of a few draws gets a hill of its own.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from supermodel.embedding.reference import Hills
from supermodel.embedding.warp import lifted_cholesky


class Sample(NamedTuple):
    """Weighted draws of a target in whitened coordinates, with its log density (up to a constant) at them."""

    x: np.ndarray  # (n, d)
    weight: np.ndarray  # (n,), sum 1
    log_target: np.ndarray  # (n,)


def lottery(weight: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(rows, weights) of about `size` draws that stand for all: the heaviest whole, the rest by a fair lottery."""
    used = np.flatnonzero(weight > 0)
    w = weight[used]
    if len(used) <= size:
        return used, w
    heaviest = np.sort(np.argsort(-w)[:size])
    if w[heaviest].sum() >= 0.98 * w.sum():
        return used[heaviest], w[heaviest]
    chance = np.minimum(1.0, size * w / w.sum())
    drawn = np.flatnonzero(rng.random(len(w)) < chance)
    return used[drawn], (w / chance)[drawn]


def fit(sample: Sample, rng: np.random.Generator, most: int, dof: float, start: Hills | None = None) -> Hills:
    """The hills under which draws that were not fitted are most probable: grown one by one on one half, judged on the other.

    The weighted mean of ln q is minus its cross-entropy to the target: a hill that covers empty land lowers it. `start`: hills that
    are known otherwise, of which there may be more: climbs find more modes than can be grown one by one.
    """
    n, d = sample.x.shape
    half = rng.permutation(n)
    train, test = (Sample(*(part[rows] for part in sample)) for rows in (half[: n // 2], half[n // 2 :]))
    train, test = (s._replace(weight=s.weight / max(s.weight.sum(), 1e-300)) for s in (train, test))
    hills = _grown(None, train, dof)
    best, chosen, failures = _score(hills, test), hills, 0
    while len(hills.log_weights) < most and failures < 2:
        hills = _grown(hills, train, dof)
        score = _score(hills, test)
        if score > best + BETTER:
            best, chosen, failures = score, hills, 0
        else:
            failures += 1
    # One hill at a time sees nothing to gain where sixteen modes surround an empty middle: many at once do.
    for number in MANY_AT_ONCE:
        if number > most or 2 * number * (d + 1) > n // 2:
            break
        hills = _clustered(train, number, rng, dof)
        score = _score(hills, test)
        if score > best + BETTER:
            best, chosen = score, hills
    if start is not None:
        hills = _settled(_seen(start, train), train, dof)
        if _score(hills, test) > best + BETTER:
            chosen = hills
    return _settled(chosen, sample, dof)


def _seen(hills: Hills, sample: Sample) -> Hills:
    """Those that stand for a part of the draws: the others have no shape to be fitted."""
    parts = hills.log_parts(np, sample.x)
    totals = sample.weight @ np.exp(parts - _log_total(parts)[:, None])
    rows = np.flatnonzero(totals > 0.5 / len(sample.x))
    return Hills(*(part[rows] for part in hills[:4]), hills.dof)


BETTER = 0.01  # nats per draw by which a richer fit must make held-out draws more probable
MANY_AT_ONCE = (4, 8, 16, 32)


def _clustered(sample: Sample, number: int, rng: np.random.Generator, dof: float) -> Hills:
    """Hills from a k-means start on draws resampled by weight."""
    from scipy.cluster.vq import kmeans2, vq

    rows = rng.choice(len(sample.x), len(sample.x), p=sample.weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty clusters
        centres, _ = kmeans2(sample.x[rows], number, minit="++", seed=rng)
    share = np.eye(number)[vq(sample.x, centres)[0]]
    return _settled(_maximised(sample, share, np.ones_like(share), dof), sample, dof)


def _score(hills: Hills, test: Sample) -> float:
    return float(test.weight @ np.maximum(hills.log_density(np, test.x), -1e3))


def _grown(hills: Hills | None, sample: Sample, dof: float) -> Hills:
    """One hill more, where ln target - ln q is largest (the first: everywhere), then a few rounds of EM."""
    n, d = sample.x.shape
    if hills is None:
        return _maximised(sample, np.ones((n, 1)), np.ones((n, 1)), dof)
    parts = hills.log_parts(np, sample.x)
    log_q = _log_total(parts)
    gap = np.where(sample.weight > 0, sample.log_target - log_q, -np.inf)
    summit = int(np.argmax(gap))
    # Its first shape: the draws nearest to it, by the metric of the hill that it stands on.
    host = int(np.argmax(parts[summit]))
    distance = np.sum(((sample.x - sample.x[summit]) @ hills.inverses[host].T) ** 2, axis=1)
    near = np.argsort(distance)[: max(2 * d + 2, int(0.03 * n))]
    share = np.concatenate([np.exp(parts - log_q[:, None]), np.zeros((n, 1))], axis=1)
    share[near] *= 0.3
    share[near, -1] = 0.7
    return _settled(_maximised(sample, share, np.ones_like(share), dof), sample, dof)


def _settled(hills: Hills, sample: Sample, dof: float, rounds: int = 10) -> Hills:
    """Rounds of EM until the likelihood hardly rises."""
    d, before = sample.x.shape[1], -np.inf
    for _ in range(rounds):
        squares = hills.squares(np, sample.x)
        parts = hills.log_parts(np, sample.x, squares)
        log_q = _log_total(parts)
        now = float(sample.weight @ np.maximum(log_q, -1e6))
        if now - before < 4e-3:
            break
        # EM for Student hills: far draws count less towards a hill's shape.
        pull = np.ones_like(parts) if not np.isfinite(dof) else (dof + d) / (dof + squares)
        hills, before = _maximised(sample, np.exp(parts - log_q[:, None]), pull, dof), now
    return hills


NARROW = 1e-4  # width of a hill, the whole being 1, below which products of coordinates lose too many digits


def _products(x: np.ndarray) -> np.ndarray:
    """All products of two coordinates: (n, d d). Moments and distances are then products of large matrices."""
    return (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)


def _covariance(x: np.ndarray, weight: np.ndarray, means: np.ndarray) -> np.ndarray:
    r"""$\sum w (x - m)(x - m)'$ of every hill, whose weighted means m are."""
    square = (weight.T @ _products(x)).reshape(len(means), *2 * x.shape[1:])
    outer = weight.sum(0)[:, None, None] * means[:, :, None] * means[:, None, :]
    if np.diagonal(square - outer, axis1=1, axis2=2).min() > NARROW**2 * np.diagonal(square, axis1=1, axis2=2).max():
        return square - outer
    centred = x[None] - means[:, None]  # (M, n, d)
    return np.matmul(np.swapaxes(centred * weight.T[..., None], 1, 2), centred)


def _log_total(parts: np.ndarray) -> np.ndarray:
    top = parts.max(axis=1)
    return top + np.log(np.exp(parts - top[:, None]).sum(1))


def _maximised(sample: Sample, share: np.ndarray, pull: np.ndarray, dof: float) -> Hills:
    """Weights, means and shapes from each draw's share in each hill; shapes are shrunk towards a small copy of the whole."""
    x, w = sample.x, sample.weight
    n, d = x.shape
    mass = w[:, None] * share
    totals = mass.sum(0) + 1e-12
    effective = totals**2 / np.maximum(np.sum(mass**2, axis=0), 1e-300)
    weight = mass * pull
    means = (weight.T @ x) / np.maximum(weight.sum(0), 1e-300)[:, None]
    covariance = _covariance(x, weight, means) / totals[:, None, None]
    # As if a round hill of the same volume had been seen in d + 2 draws.
    prior = ((d + 2) / (d + 2 + effective))[:, None, None]
    size = np.exp(np.mean(np.log(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 1e-24)), axis=1))
    factors = _factors((1 - prior) * covariance + prior * size[:, None, None] * np.eye(d))
    return Hills(np.log(totals / totals.sum()), means, factors, np.linalg.inv(factors), dof)


def _factors(covariances: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        return np.stack([lifted_cholesky(covariance) for covariance in covariances])
