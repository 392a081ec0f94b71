r"""The conditional of alpha: $p(\alpha \mid u, D) = p(\alpha)\,J(u; f(\alpha)) / \bar J(u)$, from the record alone.

$\bar J(u) = \int p(\alpha)\,J(u; f(\alpha))\,d\alpha$ is what the positions of a run follow once alpha is forgotten.
It is a sum for `mixture` and for a ladder, and a one-dimensional quadrature otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from supermodel.embedding.combine import weighted
from supermodel.embedding.coordinate import Coordinate, Hats, Ladder, Line
from supermodel.embedding.supermodel import Supermodel
from supermodel.errors import SupermodelError
from supermodel.jax_scope import in_float64
from supermodel.models.noise import Gaussian
from supermodel.sampling.draws import Draws

CHUNK = 3_000_000  # numbers held at once


class Record(NamedTuple):
    """The draws in one row each, with what a blend needs to move alpha under fixed parameters."""

    tilted: np.ndarray  # (n, K): ln J_k + eta_k
    log_priors: np.ndarray | None = None  # (n, K): ln (pi_k q_k), blend only
    gram: np.ndarray | None = None  # (n, K, K): products of residuals, Gaussian sum-blend only
    predictions: np.ndarray | None = None  # (n, K, n_data), other blends
    constant: float = 0.0  # of the Gaussian likelihood

    def chunks(self, width: int) -> Iterator[Record]:
        step = max(1, CHUNK // max(width, 1))
        for i in range(0, len(self.tilted), step):
            cut = slice(i, i + step)
            part = {name: p[cut] for name, p in self._asdict().items() if isinstance(p, np.ndarray)}
            yield self._replace(**part)  # type: ignore[arg-type]


def log_sum(terms: np.ndarray) -> np.ndarray:
    """ln sum e^terms over the last axis (scipy's own is several times slower on these shapes); NaN stays NaN."""
    top = terms.max(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isneginf(top), top, top + np.log(np.exp(terms - top[..., None]).sum(axis=-1)))


def weights_of(draws: Draws) -> np.ndarray:
    """f(alpha) as (chains, draws, K), for rungs that are stored as floats too."""
    coordinate = draws.supermodel.coordinate
    if isinstance(coordinate, Ladder):
        return coordinate.table[np.asarray(draws.alpha).astype(int)]
    return np.asarray(draws.weights, float)


def record_of(draws: Draws) -> Record:
    """The rows of `draws`; a blend without its stored predictions is refused."""
    supermodel, k = draws.supermodel, len(draws.names)
    joints = np.asarray(draws.log_joints, float).reshape(-1, k)
    if not supermodel.is_blend:
        return Record(joints + supermodel.tilt)
    if draws.predictions is None:
        raise SupermodelError(
            "these draws of a blend hold no predictions, and a blend at another alpha is made of them. "
            "Keep `predictions` in the record (every sampler of this package does)."
        )
    predictions = np.asarray(draws.predictions, float).reshape(len(joints), k, -1)
    noise = supermodel.joints[0].model.noise
    if supermodel.combine == "blend" and isinstance(noise, Gaussian):
        return _gaussian_record(joints, supermodel, predictions, np.asarray(noise.scale(supermodel.data), float))
    log_likelihoods = _log_likelihoods(supermodel, predictions)
    return Record(joints + supermodel.tilt, joints - log_likelihoods, None, predictions)


def _gaussian_record(joints, supermodel: Supermodel, predictions: np.ndarray, sigma: np.ndarray) -> Record:
    r"""As $\sum w_k = 1$, the residual of a blend is $\sum_k w_k r_k$ and $-2 \ln L = w^T G w$ + const."""
    y = np.asarray(supermodel.data["y"], float)
    gram = np.concatenate([_products((y - part) / sigma) for part in _parts(predictions)])
    constant = -float(np.sum(np.log(np.broadcast_to(sigma, y.shape)))) - 0.5 * y.size * np.log(2 * np.pi)
    log_likelihoods = -0.5 * np.diagonal(gram, axis1=1, axis2=2) + constant
    return Record(joints + supermodel.tilt, joints - log_likelihoods, gram, None, constant)


def _parts(predictions: np.ndarray) -> Iterator[np.ndarray]:
    step = max(1, CHUNK // predictions[0].size) if len(predictions) else 1
    return (predictions[i : i + step] for i in range(0, len(predictions), step))


def _products(residuals: np.ndarray) -> np.ndarray:
    return residuals @ residuals.swapaxes(1, 2)


@in_float64
def _log_likelihoods(supermodel: Supermodel, means: np.ndarray) -> np.ndarray:
    """ln L of predictions (..., n_data), by the models' own noise."""
    import jax

    noise, flat = supermodel.joints[0].model.noise, means.reshape(-1, means.shape[-1])
    assert noise is not None  # a blend has been checked to have one
    each = jax.vmap(lambda mean: noise.pointwise(mean, supermodel.data).sum())
    return np.asarray(each(flat), float).reshape(means.shape[:-1])


def log_combined(supermodel: Supermodel, record: Record, weights: np.ndarray) -> np.ndarray:
    r"""$\ln J(u; w)$ as (n, M), for weights (M, K) common to all rows or (n, M, K), one set for each row."""
    w = weights if weights.ndim == 3 else weights[None]
    if supermodel.combine == "mixture":
        return _log_mixed(record.tilted, w)
    if not supermodel.is_blend:
        return weighted(np, w, record.tilted[:, None, :])
    return _blended(supermodel, record, w) + w @ supermodel.tilt + _log_mixed_priors(record.log_priors, w)


def _log_mixed_priors(log_priors: np.ndarray | None, w: np.ndarray) -> np.ndarray:
    """As `Supermodel.log_blend` has it; the common case, one prior for all models, without the logarithms."""
    assert log_priors is not None
    if np.all(np.ptp(log_priors, axis=1) < 1e-9):
        return log_priors[:, :1]
    inside = np.clip(w, 0.0, 1.0)
    return _log_mixed(log_priors, inside / inside.sum(axis=-1, keepdims=True))


def _log_mixed(logs: np.ndarray, w: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return _log_sum_of(logs, np.log(w))


def _log_sum_of(logs: np.ndarray, log_w: np.ndarray) -> np.ndarray:
    total = logs[:, None, 0] + log_w[..., 0]
    for k in range(1, logs.shape[-1]):
        total = np.logaddexp(total, logs[:, None, k] + log_w[..., k])
    return total


def _blended(supermodel: Supermodel, record: Record, w: np.ndarray) -> np.ndarray:
    if record.gram is not None:
        return record.constant - 0.5 * np.sum((w @ record.gram) * w, axis=-1)
    assert record.predictions is not None
    if supermodel.combine == "blend":
        means = w @ record.predictions
    else:
        means = np.exp(w @ np.log(record.predictions))
    return _log_likelihoods(supermodel, means)


# -- quadrature over alpha ----------------------------------------------------------------------------------------


class Rule(NamedTuple):
    r"""Nodes of alpha with the logarithm of the prior mass that each stands for: $E[g] = \sum_m e^{mass_m} g_m$."""

    alpha: np.ndarray  # (..., M)
    log_mass: np.ndarray  # (..., M)
    weights: np.ndarray  # (..., M, K)


def breaks(coordinate: Coordinate) -> np.ndarray:
    """The ends of the interval, and the models between them: where the conditional may be steep or has a kink."""
    if isinstance(coordinate, Line):
        return np.unique([coordinate.low, coordinate.high, *coordinate.ends])
    if isinstance(coordinate, Hats):
        return np.arange(coordinate.n_models, dtype=float)
    raise SupermodelError(
        f"alpha on a {type(coordinate).__name__.lower()} can be integrated out of a mixture and of nothing else. "
        "Use coordinate.Hats(K) or a Ladder for more than two models."
    )


def edges(points: np.ndarray, depth: int, n_even: int = 32) -> np.ndarray:
    """Panels between the `points`: even ones, and ones that halve `depth` times towards every point."""
    steps = np.concatenate([np.linspace(0.0, 1.0, n_even + 1), 0.5 ** np.arange(1, depth + 1)])
    steps = np.unique(np.concatenate([steps, 1.0 - steps]))
    low, size = points[:-1, None], np.diff(points)[:, None]
    return np.unique(low + size * steps)


def rule(coordinate: Coordinate, panel_edges: np.ndarray | None = None, depth: int = 12, n_nodes: int = 10) -> Rule:
    """Gauss-Legendre on panels (given as edges (..., P + 1)), or the rungs of a ladder."""
    if isinstance(coordinate, Ladder):
        return Rule(np.arange(coordinate.n_rungs), np.asarray(coordinate.log_prior_table), coordinate.table)
    cuts = edges(breaks(coordinate), depth) if panel_edges is None else panel_edges
    z, g = np.polynomial.legendre.leggauss(n_nodes)
    half = 0.5 * np.diff(cuts)[..., None]
    alpha = (cuts[..., :-1, None] + half * (1 + z)).reshape(*cuts.shape[:-1], -1)
    with np.errstate(divide="ignore"):
        log_mass = np.log(half * g).reshape(alpha.shape) + coordinate.log_prior_of(alpha)
    return Rule(alpha, log_mass, coordinate.weights_of(alpha))


def prior_mean_weights(coordinate: Coordinate) -> np.ndarray:
    r"""$\bar w_k = E_{p(\alpha)}[w_k]$: 1/2 each for $f = \alpha$, and (0.245, 0.755) for $e^\alpha$ on [-4, 0]."""
    if coordinate.is_simplex:
        return np.full(coordinate.n_models, 1.0 / coordinate.n_models)
    if isinstance(coordinate, Hats):
        ends = np.r_[0.5, np.ones(coordinate.n_models - 2), 0.5]
        return ends / ends.sum()
    nodes = rule(coordinate)
    mean = np.exp(nodes.log_mass) @ nodes.weights
    return mean / mean.sum()


def log_marginal(draws: Draws) -> np.ndarray:
    r"""$\ln \bar J(u) = \ln \int p(\alpha) J(u; f(\alpha)) d\alpha$ at every draw, flat (chains * draws,)."""
    supermodel, record = draws.supermodel, record_of(draws)
    coordinate = supermodel.coordinate
    if supermodel.combine == "mixture":
        return _log_mixed(record.tilted, prior_mean_weights(coordinate)[None, None])[:, 0]
    if supermodel.is_blend and not coordinate.is_discrete:
        return _log_marginal_of_peaks(supermodel, record)
    nodes = rule(coordinate, depth=0 if coordinate.is_discrete else _depth(record.tilted))
    parts = record.chunks(len(nodes.alpha) * (1 if not supermodel.is_blend else 4))
    return np.concatenate([log_sum(log_combined(supermodel, r, nodes.weights) + nodes.log_mass) for r in parts])


def expected_weights(draws: Draws) -> np.ndarray | None:
    r"""$E[w \mid u, D]$ at every draw, (chains, draws, K): where the draws say that alpha should be; None for blends.

    (A blend's alpha sits in spikes of its own, and on a simplex there is no rule of quadrature.)
    """
    supermodel, record = draws.supermodel, record_of(draws)
    if supermodel.is_blend or supermodel.coordinate.is_simplex:
        return None
    nodes = rule(supermodel.coordinate, depth=0 if supermodel.coordinate.is_discrete else _depth(record.tilted))
    found = []
    for part in record.chunks(len(nodes.alpha)):
        logs = log_combined(supermodel, part, nodes.weights) + nodes.log_mass
        found.append(np.exp(logs - log_sum(logs)[:, None]) @ nodes.weights)
    return np.concatenate(found).reshape(draws.log_joints.shape)


def _depth(tilted: np.ndarray) -> int:
    r"""How often panels must halve towards an end, where the conditional falls as $e^{-|\ln J_1 - \ln J_2| f}$."""
    span = np.ptp(np.where(np.isfinite(tilted), tilted, np.nan), axis=1)
    steepest = np.nanmax(span) if np.any(np.isfinite(span)) else 1.0
    return int(np.clip(np.ceil(np.log2(steepest + 1.0)) + 3, 8, 60))


def _log_marginal_of_peaks(supermodel: Supermodel, record: Record) -> np.ndarray:
    """For a blend, whose alpha given the parameters may sit in a spike finer than any grid: panels close in on it."""
    coordinate = supermodel.coordinate
    points = breaks(coordinate)
    common, size = edges(points, 14, 8), np.ptp(points)
    cuts = size * 0.5 ** np.arange(1, 22)
    offsets = np.concatenate([-cuts, [0.0], cuts])
    n_peaks = len(points) - 1 if isinstance(coordinate, Hats) else 1
    width = (len(common) + n_peaks * len(offsets)) * 6 * len(supermodel.names)
    width *= 1 if record.predictions is None else record.predictions.shape[-1]
    found = []
    for part in record.chunks(width):
        peaks = _peaks(supermodel, part)  # (n, number of peaks)
        own = (peaks[:, :, None] + offsets).reshape(len(peaks), -1).clip(points[0], points[-1])
        panels = np.sort(np.concatenate([np.broadcast_to(common, (len(peaks), len(common))), own], axis=1), axis=1)
        nodes = rule(coordinate, panels, n_nodes=6)
        found.append(log_sum(log_combined(supermodel, part, nodes.weights) + nodes.log_mass))
    return np.concatenate(found)


def _peaks(supermodel: Supermodel, record: Record) -> np.ndarray:
    """Where the conditional is largest: for Gaussian noise the vertex of a parabola, one for each neighbouring pair."""
    coordinate = supermodel.coordinate
    grid = rule(coordinate, depth=14, n_nodes=2)
    if record.gram is None:
        return grid.alpha[np.argmax(log_combined(supermodel, record, grid.weights), axis=1)][:, None]
    peaks = []
    for a in range(len(supermodel.names) - 1):
        g = record.gram[:, a : a + 2, a : a + 2]
        curvature = g[:, 0, 0] - 2 * g[:, 0, 1] + g[:, 1, 1]
        pull = supermodel.tilt[a] - supermodel.tilt[a + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            f = np.nan_to_num((g[:, 1, 1] - g[:, 0, 1] + pull) / curvature, nan=0.5)
        peaks.append(_alpha_at(coordinate, grid, a, f))
    return np.stack(peaks, axis=1)


def _alpha_at(coordinate: Coordinate, grid: Rule, a: int, f: np.ndarray) -> np.ndarray:
    """The alpha of the weight f of model `a` against the next one, roughly; beyond the ends, the end."""
    if isinstance(coordinate, Hats):
        return a + 1.0 - np.clip(f, 0.0, 1.0)
    order = np.argsort(grid.weights[:, 0])
    return np.interp(f, grid.weights[order, 0], grid.alpha[order])
