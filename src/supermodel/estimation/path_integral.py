r"""The path integral $\ln Z_b - \ln Z_a = \int_a^b E_w[\ln J]\cdot dw$ along a `product` path.

Like MBAR it needs only that the draws at each alpha are right for that alpha (local equilibrium).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.embedding.coordinate import Ladder
from supermodel.errors import SupermodelError
from supermodel.estimation.conditional import weights_of
from supermodel.estimation.error import covariance_of_means
from supermodel.estimation.estimate import Evidences
from supermodel.sampling.draws import Draws


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
