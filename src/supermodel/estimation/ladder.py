r"""Evidence ratios from draws on a ladder of rungs $J(u; w_m) = \prod_k J_k^{w_{mk}}$: two estimators, one set of draws.

`multistate` (MBAR) is the logistic regression of the rung on $\ln J_k$: it needs only that draws at each rung are right
for that rung. `rao_blackwell` averages $p(m \mid u)$: it needs the rungs to be visited in the right proportions as well.
Where the two differ by more than their errors, the chains have not mixed. Both return an influence per draw, so that an
error can allow for autocorrelation: $\hat f - f \approx \frac1N \sum_i \varphi_i$.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from supermodel.estimation.correlation import autocorrelation_time


class LadderFit(NamedTuple):
    r"""$\ln Z_m$ of every rung, up to one constant, and the influence of every draw on it."""

    log_z: NDArray  # (M,)
    influence: NDArray  # (chains, draws, M)

    def difference(self, a: int, b: int) -> tuple[float, float]:
        r"""$\ln Z_a - \ln Z_b$ of two rungs and its standard error."""
        return float(self.log_z[a] - self.log_z[b]), self.error(a, b)

    def error(self, a: int, b: int) -> float:
        return standard_error(self.influence[..., a] - self.influence[..., b])


def rung_log_densities(log_joints: NDArray, table: NDArray) -> NDArray:
    r"""$\ln J(u_i; w_m)$ for every draw and rung; a weight of 0 silences even $-\infty$."""
    table = np.asarray(table)
    result = np.zeros(log_joints.shape[:-1] + (len(table),))
    for k in range(table.shape[1]):
        w = table[:, k]
        with np.errstate(invalid="ignore"):
            term = log_joints[..., k, None] * w
        result += np.where(w > 0, term, 0.0)
    return result


def multistate(log_joints: NDArray, rung: NDArray, table: NDArray) -> LadderFit:
    r"""MBAR: $\sum_i p_m(i) = n_m$ with $p_m(i) \propto n_m e^{a_{im} - f_m}$, by Newton's method in $b_m = \ln n_m - f_m$."""
    a = rung_log_densities(log_joints, table)
    chains, draws, m = a.shape
    flat, labels = a.reshape(-1, m), rung.reshape(-1)
    counts = np.bincount(labels, minlength=m).astype(float)
    visited = counts > 0
    onehot = (labels[:, None] == np.arange(m)[visited]).astype(float)
    b, p, hessian = _logistic_fit(flat[:, visited], onehot)
    n = len(flat)
    step = n * (onehot - p) @ np.linalg.pinv(hessian)
    log_z = np.full(m, np.nan)
    influence = np.full((n, m), np.nan)
    log_z[visited] = np.log(counts[visited]) - b
    influence[:, visited] = onehot / (counts[visited] / n) - step
    if not np.all(visited):
        # A rung without draws is reached by reweighting the others.
        log_mix = _log_sum(flat[:, visited] + b)
        for j in np.flatnonzero(~visited):
            ratio = flat[:, j] - log_mix
            top = ratio.max()
            w = np.exp(ratio - top)
            log_z[j] = top + np.log(w.sum())
            influence[:, j] = n * w / w.sum()
    return LadderFit(log_z, influence.reshape(chains, draws, m))


def _log_sum(x: NDArray) -> NDArray:
    top = x.max(axis=-1, keepdims=True)
    return (top + np.log(np.exp(x - top).sum(-1, keepdims=True)))[..., 0]


def _logistic_fit(a: NDArray, onehot: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Intercepts of the multinomial regression with given offsets `a`; concave, so Newton with halving finds the top."""
    n, m = a.shape
    counts = onehot.sum(0)
    b = np.log(counts) - _median_start(a, onehot)

    def evaluate(b):
        logits = a + b
        log_norm = _log_sum(logits)
        return float(np.sum(onehot * logits) - log_norm.sum()), np.exp(logits - log_norm[:, None])

    value, p = evaluate(b)
    for _ in range(100):
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
    """A first guess of $f_m$: neighbouring rungs compared at the median of each other's draws."""
    f = np.zeros(a.shape[1])
    for j in range(1, len(f)):
        here = onehot[:, j - 1].astype(bool) | onehot[:, j].astype(bool)
        gap = a[here, j] - a[here, j - 1]
        gap = gap[np.isfinite(gap)]
        f[j] = f[j - 1] + (np.median(gap) if len(gap) else 0.0)
    return f


def rao_blackwell(log_joints: NDArray, table: NDArray, log_prior: NDArray) -> LadderFit:
    r"""$\ln Z_m = \ln \langle p(m \mid u) \rangle - \ln p(m)$."""
    logits = rung_log_densities(log_joints, table) + log_prior
    p = np.exp(logits - _log_sum(logits)[..., None])
    mean = p.mean(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return LadderFit(np.log(mean) - log_prior, p / mean)


def capped_time(x: NDArray) -> float:
    """The autocorrelation time of (chains, draws), at least 1 (no effective size exceeds the draws); 1 if nothing moves."""
    tau = autocorrelation_time(x)
    return max(tau, 1.0) if tau == tau else 1.0


def standard_error(x: NDArray) -> float:
    r"""Standard error of the mean of (chains, draws).

    Two estimates of it: $\sigma \sqrt{\tau / N}$, precise but low where chains are short, and the spread of the chains'
    means, true but noisy. Their variances are averaged 2 : 1, unless the chains stand apart more than chance allows (99.9%
    point): then their spread alone counts.
    """
    chains, n = x.shape
    if not np.all(np.isfinite(x)):
        return float("inf")
    within = float(np.sqrt(x.var() * capped_time(x) / x.size))
    if chains < 4:
        return within
    between = float(x.mean(axis=1).std(ddof=1) / np.sqrt(chains))
    if between > within * np.sqrt(_chi2_999(chains - 1)):
        return between
    return float(np.sqrt((2 * within**2 + between**2) / 3))


def _chi2_999(dof: int) -> float:
    """99.9% point of chi-square over its degrees of freedom (Wilson-Hilferty)."""
    return (1 - 2 / (9 * dof) + 3.0902 * np.sqrt(2 / (9 * dof))) ** 3
