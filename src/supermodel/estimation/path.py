r"""Along the path between the models: the multistate estimator (MBAR) and the path integral.

Both need only that the draws at each alpha are right for that alpha (local equilibrium), where `shares` needs alpha
itself to be in equilibrium. Where the two kinds differ by more than their errors, the chains have not mixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.embedding.coordinate import Ladder
from supermodel.errors import SupermodelError
from supermodel.estimation.conditional import breaks, log_combined, log_sum, record_of, rule, weights_of
from supermodel.estimation.correlation import covariance_of_means
from supermodel.estimation.estimate import Evidences
from supermodel.estimation.shares import influence_of, log_mean_exp
from supermodel.sampling.draws import Draws


class States(NamedTuple):
    """Every draw's state, and the log density of every draw in every state that was visited."""

    label: np.ndarray  # (n,)
    log_density: np.ndarray  # (n, M)


def states_of(draws: Draws, n_bins: int = 24) -> States:
    r"""Rungs as they are; a line of alpha in bins of equal counts, each a state $\int_{bin} p(\alpha) J\,d\alpha$."""
    supermodel, coordinate, record = draws.supermodel, draws.supermodel.coordinate, record_of(draws)
    if isinstance(coordinate, Ladder):
        label = np.ravel(draws.alpha).astype(int)
        visited, label = np.unique(label, return_inverse=True)
        table = coordinate.table[visited]
        return States(label, np.concatenate([log_combined(supermodel, r, table) for r in record.chunks(len(table))]))
    alpha = np.ravel(draws.alpha)
    inner = np.quantile(alpha, np.linspace(0, 1, n_bins + 1)[1:-1])
    cuts = np.unique([breaks(coordinate)[0], *inner, breaks(coordinate)[-1]])
    label = np.clip(np.searchsorted(cuts, alpha, side="right") - 1, 0, len(cuts) - 2)
    nodes = rule(coordinate, np.unique(np.linspace(cuts[:-1], cuts[1:], 5)), n_nodes=6)
    parts = [log_combined(supermodel, r, nodes.weights) + nodes.log_mass for r in record.chunks(len(nodes.alpha))]
    return States(label, np.concatenate([log_sum(p.reshape(len(p), len(cuts) - 1, -1)) for p in parts]))


def mbar(draws: Draws, n_bins: int = 24) -> Evidences:
    r"""$\ln Z_k = \ln\sum_t \frac{J_k(u_t)}{\sum_m e^{b_m} q_m(u_t)}$ + const, with $b_m = \ln n_m - \ln Z_m$ fitted.

    $q_m$ is the density of state m (a rung, or a bin of alpha) and $n_m$ its number of draws. b solves $\sum_t
    p_m(u_t) = n_m$, $p_m = e^{b_m} q_m / \sum_j e^{b_j} q_j$: a logistic regression of the state on the densities, by
    Newton's method in log space. The error is by the influence of each draw, b's included, with autocorrelation.

    Neighbouring states must overlap. Where they do not, the regression has a direction without information, and the
    error is infinite. Bins of a continuous alpha must be in equilibrium within themselves.
    """
    if draws.supermodel.coordinate.is_simplex:
        raise SupermodelError(
            "the multistate estimator needs alpha on a line, hats or a ladder; use `shares` on a simplex."
        )
    states = states_of(draws, n_bins)
    shape = draws.log_joints.shape
    b, p, hessian = intercepts(states)
    tilted = np.asarray(draws.log_joints, float) + draws.supermodel.tilt
    terms = tilted - log_sum(states.log_density + b).reshape(*shape[:2], 1)
    log_means = log_mean_exp(terms)
    influence = influence_of(terms, log_means)
    share = np.exp(terms - log_means).reshape(-1, shape[-1])
    pull = share.T @ p / len(p)  # (K, M): how ln Z_k falls as b_m rises
    score = np.eye(p.shape[1])[states.label] - p
    influence = influence - (score @ np.linalg.pinv(hessian, rcond=1e-13) @ pull.T).reshape(shape)
    covariance = covariance_of_means(influence)
    connected = _is_connected(hessian, p)
    if not connected:
        covariance = np.diag(np.full(shape[-1], np.inf))
    details = {"estimator": "mbar", "n_states": p.shape[1], "is_connected": connected}
    return Evidences(draws.names, log_means - draws.supermodel.tilt, covariance, False, details)


def log_mixture(draws: Draws, n_bins: int = 24) -> np.ndarray:
    r"""$\ln\sum_m e^{b_m} q_m(u)$: the density that the pooled positions follow, by `mbar`; (chains, draws)."""
    states = states_of(draws, n_bins)
    return log_sum(states.log_density + intercepts(states)[0]).reshape(draws.log_joints.shape[:2])


def _is_connected(hessian: np.ndarray, p: np.ndarray) -> bool:
    """Whether every state overlaps with the rest: one direction, a common constant, is empty; a second must not be."""
    scale = np.sqrt(p.mean(axis=0))
    return len(hessian) == 1 or bool(np.linalg.eigvalsh(hessian / np.outer(scale, scale))[1] > 1e-10)


def intercepts(states: States) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """b, the probabilities p (n, M) of the states at it, and the information per draw, by Newton: it is concave."""
    n, m = states.log_density.shape
    fraction = np.bincount(states.label, minlength=m) / n
    own = states.log_density[np.arange(n), states.label]
    b = np.log(fraction) - _chained(states)

    def evaluate(b):
        logits = states.log_density + b
        norm = log_sum(logits)
        return float(np.mean(own + b[states.label] - norm)), np.exp(logits - norm[:, None])

    value, p = evaluate(b)
    for _ in range(200):
        gradient = fraction - p.mean(axis=0)
        if np.max(np.abs(gradient) / fraction) < 1e-11:
            break
        hessian = np.diag(p.mean(axis=0)) - p.T @ p / n
        newton = np.linalg.lstsq(hessian, gradient, rcond=1e-13)[0]
        # Far from the top Newton may overshoot; the self-consistent step always rises.
        for step in (newton, newton / 4, np.log(fraction) - np.log(np.maximum(p.mean(axis=0), 1e-300))):
            trial, trial_p = evaluate(b + step)
            if trial >= value:
                break
        is_done = abs(trial - value) <= 1e-16 * abs(value) and np.max(np.abs(step - step.mean())) < 1e-10
        b, value, p = b + step, trial, trial_p
        if is_done:
            break
    return b - b.mean(), p, np.diag(p.mean(axis=0)) - p.T @ p / n


def _chained(states: States) -> np.ndarray:
    """A first guess of ln Z_m: each state against its neighbour at the median of the draws of both."""
    f = np.zeros(states.log_density.shape[1])
    for j in range(1, len(f)):
        here = (states.label == j) | (states.label == j - 1)
        gap = states.log_density[here, j] - states.log_density[here, j - 1]
        gap = gap[np.isfinite(gap)]
        f[j] = f[j - 1] + (np.median(gap) if len(gap) else 0.0)
    return f


class Stations(NamedTuple):
    """Points of the path in order: which draws belong to each (-1: to none), and the weights there."""

    label: np.ndarray  # (chains, draws)
    table: np.ndarray  # (M, K)


def path_integral(draws: Draws, n_bins: int = 24) -> Evidences:
    r"""$\ln Z_b - \ln Z_a = \int_a^b E_w[\ln J]\cdot dw$ along the path of `product` (errata 3.5), from rung to rung.

    By the trapezoid rule corrected by the slopes, $\frac{1}{2}(E_m + E_{m+1}) - \frac{1}{12}(V_{m+1} - V_m)$ with E
    and V the mean and variance of $\ln J \cdot dw$: the slope of E along the path is a variance, which the same draws
    give. A continuous alpha is cut into bins, and the ends are reached by those slopes. Half of that correction
    counts as the error of the finite steps: `details["discretisation"]`, part of the error.

    Needs `product` and a path through the corners, every rung visited. Fails where E is steep between rungs (compare
    `trapezoid` in the details), and is not finite where a model is impossible somewhere: use `mbar`.
    """
    if draws.supermodel.combine != "product":
        raise SupermodelError(f"the path integral runs along J_1^w J_2^(1-w); these draws are of {draws.supermodel}.")
    stations = _stations(draws, n_bins)
    tilted = np.asarray(draws.log_joints, float) + draws.supermodel.tilt
    values, influence = _along(tilted, stations)
    plain, _ = _along(tilted, stations, correction=0.0)
    # Half of what the slopes change: too much where rungs are dense (harmless), about right where they are too few.
    rest = (values - plain) / 2
    covariance = covariance_of_means(influence) + np.outer(rest - rest.mean(), rest - rest.mean())
    details = {"estimator": "path_integral", "discretisation": rest, "trapezoid": plain - draws.supermodel.tilt}
    return Evidences(draws.names, values - draws.supermodel.tilt, covariance, False, details)


def _stations(draws: Draws, n_bins: int) -> Stations:
    coordinate, w = draws.supermodel.coordinate, weights_of(draws)
    if isinstance(coordinate, Ladder):
        visited, label = np.unique(np.asarray(draws.alpha).astype(int), return_inverse=True)
        table = coordinate.table[visited]
        if np.all(np.any(table == 1.0, axis=0)):
            return Stations(label.reshape(draws.alpha.shape), table)
    elif len(draws.names) == 2 and coordinate.corner(1) is not None:
        f = w[..., 0]
        cuts = np.quantile(f, np.linspace(0, 1, n_bins + 1))
        label = np.clip(np.searchsorted(cuts, f, side="right") - 1, 0, n_bins - 1)
        return Stations(label, np.stack([w[label == m].mean(axis=0) for m in range(n_bins)]))
    raise SupermodelError(
        "the path integral needs draws at every model's corner, or a line that reaches both: here one was never "
        "visited or is not on the path. Use `mbar`, which reaches it by reweighting."
    )


def _along(tilted: np.ndarray, stations: Stations, correction: float = 1 / 12) -> tuple[np.ndarray, np.ndarray]:
    """ln Z at the corners, up to a constant, and the influence of each draw on them: (K,), (chains, draws, K)."""
    label, table = stations
    log_z, influence = [0.0], [np.zeros(label.shape)]
    for m in range(len(table) - 1):
        gain, pull = _leg(tilted @ (table[m + 1] - table[m]), label, (m, m + 1), (0.5, 0.5), (correction, -correction))
        log_z.append(log_z[-1] + gain)
        influence.append(influence[-1] + pull)
    values, pulls = [], []
    for corner in np.eye(table.shape[1]):
        m = int(np.argmax(table @ corner))
        gain, pull = _leg(tilted @ (corner - table[m]), label, (m,), (1.0,), (0.5,))
        values.append(log_z[m] + gain)
        pulls.append(influence[m] + pull)
    return np.array(values), np.stack(pulls, axis=-1)


def _leg(g: np.ndarray, label: np.ndarray, ends, of_mean, of_variance) -> tuple[float, np.ndarray]:
    """Sum over `ends` of a E[g] + b Var[g] among the draws there, and its influence."""
    total, influence = 0.0, np.zeros(g.shape)
    for m, a, b in zip(ends, of_mean, of_variance, strict=True):
        here = label == m
        mean, variance = g[here].mean(), g[here].var()
        total += a * mean + b * variance
        influence[here] += (a * (g[here] - mean) + b * ((g[here] - mean) ** 2 - variance)) / here.mean()
    return total, influence
