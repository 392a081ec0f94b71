r"""Evidences from draws in several states $q_m$ (rungs of a ladder, bins of alpha): the multistate estimator, MBAR.

It is the logistic regression of the state on $\ln q_m$: $\sum_i p_m(u_i) = n_m$ with $p_m \propto e^{b_m} q_m$ gives
$b_m = \ln n_m - \ln Z_m$, and any other density $q$ follows by reweighting, $Z_q = \sum_i q(u_i) / \sum_m e^{b_m}
q_m(u_i)$. It needs only that the draws of each state are right for that state (local equilibrium), where
`rao_blackwell` needs alpha itself to be in equilibrium: where the two differ by more than their errors, the chains have
not mixed. Every number comes with the influence of each draw on it, $\hat f - f \approx \frac1N \sum_i \varphi_i$, so
that an error can allow for autocorrelation.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from supermodel.embedding.combine import weighted
from supermodel.embedding.coordinate import Ladder
from supermodel.errors import SupermodelError
from supermodel.estimation.conditional import breaks, log_combined, log_marginal, log_sum, record_of, rule
from supermodel.estimation.error import covariance_of_means, standard_error
from supermodel.estimation.estimate import Evidences
from supermodel.sampling.draws import Draws

SOLVED = 1e-6  # of the draws: a regression that leaves more than this unexplained has found no top
EMPTY = 1e-12  # of the largest eigenvalue of the information: a common constant has 0, which rounding makes 1e-15 of it
OVERLAP = 1e-3  # draws: two groups of states that share less than this say nothing of each other (error above 30 nats)


class Fit(NamedTuple):
    r"""$\ln Z$ of several densities, up to one constant, and the influence of every draw on each."""

    log_z: NDArray  # (M,)
    influence: NDArray  # (chains, draws, M)
    is_connected: bool = True  # whether the states overlap; if not, nothing is known of their ratios

    def difference(self, a: int, b: int) -> tuple[float, float]:
        r"""$\ln Z_a - \ln Z_b$ and its standard error, infinite where it is not known."""
        error = standard_error(self.influence[..., a] - self.influence[..., b])
        return float(self.log_z[a] - self.log_z[b]), error if self.is_connected and error == error else float("inf")


class States:
    """Draws labelled by the state that each was made in, and the log density of every state at every draw."""

    def __init__(self, label: NDArray, log_density: NDArray):
        self.shape = label.shape  # (chains, draws)
        self.label = label.reshape(-1)
        self.log_density = log_density.reshape(len(self.label), -1)  # (n, M)
        self.counts = np.bincount(self.label, minlength=self.log_density.shape[1]).astype(float)
        self.visited = self.counts > 0

    @cached_property
    def regression(self) -> tuple[NDArray, NDArray, NDArray]:
        """b of the visited states, their probabilities p (n, V) at each draw, and the information H (V, V)."""
        onehot = (self.label[:, None] == np.flatnonzero(self.visited)).astype(float)
        return _logistic_fit(self.log_density[:, self.visited], onehot)

    @cached_property
    def log_mixture(self) -> NDArray:
        r"""$\ln \sum_m e^{b_m} q_m(u)$, the density that the pooled draws follow: (n,)."""
        return log_sum(self.log_density[:, self.visited] + self.regression[0])

    @cached_property
    def is_connected(self) -> bool:
        """Whether every state overlaps with the rest: one direction, a common constant, is empty; a second must not be."""
        _, p, hessian = self.regression
        total = p.sum(axis=0)
        if len(hessian) == 1:
            return True
        is_solved = np.max(np.abs(total - self.counts[self.visited])) < SOLVED * len(p)
        scale = np.sqrt(total)
        return bool(is_solved and len(p) * np.linalg.eigvalsh(hessian / np.outer(scale, scale))[1] > OVERLAP)

    @cached_property
    def _pulls(self) -> tuple[NDArray, NDArray]:
        """(state by state one-hot labels, influence of every draw on b): (n, V) each."""
        _, p, hessian = self.regression
        onehot = (self.label[:, None] == np.flatnonzero(self.visited)).astype(float)
        return onehot, len(p) * (onehot - p) @ np.linalg.pinv(hessian, rcond=EMPTY, hermitian=True)

    def of_states(self) -> Fit:
        """Every state; one without draws is reached by reweighting the others."""
        n, m = self.log_density.shape
        b, visited = self.regression[0], self.visited
        onehot, pull = self._pulls
        log_z, influence = np.full(m, np.nan), np.full((n, m), np.nan)
        log_z[visited] = np.log(self.counts[visited]) - b
        influence[:, visited] = onehot / (self.counts[visited] / n) - pull
        if not np.all(visited):
            rest = self.of(self.log_density[:, ~visited])
            log_z[~visited], influence[:, ~visited] = rest.log_z, rest.influence.reshape(n, -1)
        return Fit(log_z, influence.reshape(*self.shape, m), self.is_connected)

    def of(self, log_density: NDArray) -> Fit:
        r"""Densities (n, T) that need not be states: $\ln Z_q = \ln \sum_i e^{\ln q(u_i) - \ln mixture(u_i)}$."""
        ratio = log_density.reshape(len(self.label), -1) - self.log_mixture[:, None]
        top = np.maximum(ratio.max(axis=0), -1e300)  # finite even for a density that is 0 at all draws
        with np.errstate(invalid="ignore", divide="ignore"):
            w = np.exp(ratio - top)
            total = w.sum(axis=0)
            share = w / total
            # ln Z_q falls as b_m rises, by the part of q that is m's.
            influence = len(share) * share - self._pulls[1] @ (self.regression[1].T @ share)
            return Fit(top + np.log(total), influence.reshape(*self.shape, -1), self.is_connected)


def rung_log_densities(log_joints: NDArray, table: NDArray) -> NDArray:
    r"""$\ln J(u_i; w_m)$ for every draw and rung; a weight of 0 silences even $-\infty$."""
    return weighted(np, np.asarray(table), log_joints[..., None, :])


def multistate(log_joints: NDArray, rung: NDArray, table: NDArray) -> Fit:
    r"""MBAR of every rung $\prod_k J_k^{w_{mk}}$ of a ladder, from plain arrays."""
    return States(rung, rung_log_densities(log_joints, table)).of_states()


BAD_FIT = 0.5  # ratio of errors below which the prior's part of a reference, not its hills, holds the answer


def anchored(fit: Fit, states: States, log_anchor: NDArray) -> Fit | None:
    r"""The first end against another density of evidence 1 in place of the second; None where it is the worse anchor.

    A reference $r = (1 - e)\,q + e\,\pi$ is known to have evidence 1, and so are its hills q alone. Against r, the number
    of draws that happened to fall in the prior's small share is noise, and a run that saw none of them is off by e with a
    small error; against q it does not matter. So q serves, unless r gives a much smaller error (hills that fit badly).
    """
    hills = states.of(log_anchor.reshape(-1, 1))
    log_z = np.array([fit.log_z[0], hills.log_z[0]])
    found = Fit(log_z, np.stack([fit.influence[..., 0], hills.influence[..., 0]], axis=-1), fit.is_connected)
    return None if fit.difference(0, 1)[1] < BAD_FIT * found.difference(0, 1)[1] else found


def ends(log_joints: NDArray, rung: NDArray, table: NDArray, log_anchor: NDArray | None = None) -> Fit:
    """Both ends of a ladder, the last rung first; the second by its anchor, where it has one."""
    states = States(rung, rung_log_densities(log_joints, table))
    rungs = states.of_states()
    fit = Fit(rungs.log_z[[-1, 0]], rungs.influence[..., [-1, 0]], rungs.is_connected)
    return fit if log_anchor is None else anchored(fit, states, log_anchor) or fit


def _logistic_fit(a: NDArray, onehot: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Intercepts of the multinomial regression with given offsets `a`; concave, so Newton with halving finds the top."""
    n, m = a.shape
    counts = onehot.sum(0)
    b = np.log(counts) - _median_start(a, onehot)
    own = onehot.astype(bool)  # not a product with `onehot`: 0 times the -inf of an impossible state is no number

    def evaluate(b):
        logits = a + b
        log_norm = log_sum(logits)
        return float(np.sum(np.where(own, logits, 0.0)) - log_norm.sum()), np.exp(logits - log_norm[:, None])

    value, p = evaluate(b)
    for _ in range(400):
        gradient = counts - p.sum(0)
        hessian = np.diag(p.sum(0)) - p.T @ p
        if np.max(np.abs(gradient)) < 1e-9 * n:
            break
        step = np.linalg.lstsq(hessian + 1e-12 * n * np.eye(m), gradient, rcond=None)[0]
        step -= step.mean()
        step *= min(1.0, 5.0 / max(np.max(np.abs(step)), 1e-300))
        for _ in range(30):
            new_value, new_p = evaluate(b + step)
            if new_value >= value - 1e-12 * abs(value):
                break
            step *= 0.5
        b, value, p = b + step, new_value, new_p
    return b, p, np.diag(p.sum(0)) - p.T @ p


def _median_start(a: NDArray, onehot: NDArray) -> NDArray:
    """A first guess of ln Z_m: each state against its neighbour at the median of the draws of both."""
    f = np.zeros(a.shape[1])
    for j in range(1, len(f)):
        here = onehot[:, j - 1].astype(bool) | onehot[:, j].astype(bool)
        with np.errstate(invalid="ignore"):
            gap = a[here, j] - a[here, j - 1]
        gap = gap[np.isfinite(gap)]
        f[j] = f[j - 1] + (np.median(gap) if len(gap) else 0.0)
    return f


# -- of draws -----------------------------------------------------------------------------------------------------


def states_of(draws: Draws, n_bins: int = 24) -> States:
    r"""Rungs as they are; a line of alpha in bins of equal counts, each a state $\int_{bin} p(\alpha) J\,d\alpha$."""
    supermodel, coordinate = draws.supermodel, draws.supermodel.coordinate
    if coordinate.is_simplex:
        raise SupermodelError(
            "the multistate estimator needs alpha on a line, hats or a ladder; use `shares` on a simplex."
        )
    alpha = np.asarray(draws.alpha)
    record = record_of(draws)
    if isinstance(coordinate, Ladder):
        table = coordinate.table
        densities = [log_combined(supermodel, r, table) for r in record.chunks(len(table))]
        return States(alpha.astype(int), np.concatenate(densities))
    inner = np.quantile(alpha, np.linspace(0, 1, n_bins + 1)[1:-1])
    cuts = np.unique([breaks(coordinate)[0], *inner, breaks(coordinate)[-1]])
    label = np.clip(np.searchsorted(cuts, alpha, side="right") - 1, 0, len(cuts) - 2)
    nodes = rule(coordinate, np.unique(np.linspace(cuts[:-1], cuts[1:], 5)), n_nodes=6)
    parts = [log_combined(supermodel, r, nodes.weights) + nodes.log_mass for r in record.chunks(len(nodes.alpha))]
    return States(label, np.concatenate([log_sum(p.reshape(len(p), len(cuts) - 1, -1)) for p in parts]))


def fit_models(draws: Draws, n_bins: int = 24) -> tuple[Fit, States]:
    """ln Z + tilt of every model (a visited rung of its own where there is one, else by reweighting), and the states."""
    states, coordinate = states_of(draws, n_bins), draws.supermodel.coordinate
    found = [coordinate.corner(k) for k in range(len(draws.names))] if isinstance(coordinate, Ladder) else [None]
    if all(corner is not None for corner in found):
        corners = np.array(found, int)
        rungs = states.of_states()
        return Fit(rungs.log_z[corners], rungs.influence[..., corners], rungs.is_connected), states
    return states.of(np.asarray(draws.log_joints, float) + draws.supermodel.tilt), states


def mbar(draws: Draws, n_bins: int = 24) -> Evidences:
    r"""$\ln Z_k = \ln\sum_t \frac{J_k(u_t)}{\sum_m e^{b_m} q_m(u_t)}$ + const, with $b_m = \ln n_m - \ln Z_m$ fitted.

    $q_m$ is the density of state m (a rung, or a bin of alpha) and $n_m$ its number of draws. The error is by the
    influence of each draw, that on b included, with autocorrelation.

    Neighbouring states must overlap. Where they do not, the regression has a direction without information, and the
    error is infinite. Bins of a continuous alpha must be in equilibrium within themselves.
    """
    fit, states = fit_models(draws, n_bins)
    covariance = covariance_of_means(fit.influence)
    if not fit.is_connected:
        covariance = np.diag(np.full(len(draws.names), np.inf))
    details = {"estimator": "mbar", "n_states": int(states.visited.sum()), "is_connected": fit.is_connected}
    values = fit.log_z - np.log(len(states.label)) - draws.supermodel.tilt
    return Evidences(draws.names, values, covariance, False, details)


def log_pooled(draws: Draws) -> np.ndarray:
    r"""The density that the positions of all draws follow: on a `product` path that of `mbar`, else $\bar J$; (chains, draws).

    $J_k(u)$ over it is the weight that makes every draw, wherever alpha was, a draw of model k.
    """
    if draws.supermodel.combine == "product":
        return states_of(draws).log_mixture.reshape(draws.log_joints.shape[:2])
    return log_marginal(draws).reshape(draws.log_joints.shape[:2])
