r"""Fitting a `Conditional` warp to weighted draws: which coordinates lead, and how the others follow them.

A coordinate leads where knowing it changes the location or the scale of others by more than a straight line does: the depth
of a funnel, the abscissa of a banana, the hyperparameters of a hierarchy. What decides is the likelihood of draws that were
not fitted.
"""

from __future__ import annotations

import numpy as np

from supermodel.embedding.warp import KNOTS, STEEPEST, Conditional, hinges, lifted_cholesky

MOST_LEADERS = 5
GAIN = 0.05  # nats per draw by which a further leader must make held-out draws more probable
RIDGE = 1e-4


def fit_conditional(x: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> Conditional | None:
    """The warp of weighted draws (n, d), or None where no coordinate leads."""
    n, d = x.shape
    if d < 2:
        return None
    weight = weight / weight.sum()
    mean = weight @ x
    scale = np.sqrt(np.maximum(weight @ (x - mean) ** 2, 1e-300))
    z = (x - mean) / scale
    leaders = _leaders(z, weight, rng)
    if not leaders:
        return None
    order = np.array([*leaders, *(i for i in range(d) if i not in leaders)])
    z = z[:, order]
    k = len(leaders)
    lead = [_regression(_before(z, i, k), z[:, i], weight) for i in range(k)]
    features = hinges(np, z[:, :k])
    rest = [_regression(features, z[:, i], weight) for i in range(k, d)]
    left = np.stack(
        [(z[:, k + j] - features @ a) * np.exp(-_clipped(features @ b)) for j, (a, b) in enumerate(rest)], axis=1
    )
    # What is left after location and scale: its correlations, in one common factor.
    share = (d - k + 1) / (d - k + 1 + 1.0 / np.sum(weight**2))
    centred = left - weight @ left
    covariance = (weight[:, None] * centred).T @ centred
    covariance = (1 - share) * covariance + share * np.diag(np.diagonal(covariance))
    lead_at, lead_by, rest_at, rest_by = (
        np.stack([pair[c] for pair in pairs]) for pairs in (lead, rest) for c in (0, 1)
    )
    return Conditional(order, mean, scale, lead_at, lead_by, rest_at, rest_by, lifted_cholesky(covariance))


def _before(z: np.ndarray, i: int, k: int) -> np.ndarray:
    """Features of the leaders before the i-th; those of the others are constants, and get no weight."""
    return hinges(np, np.where(np.arange(k) < i, z[:, :k], 0.0))


def _clipped(log_scale: np.ndarray) -> np.ndarray:
    return np.clip(log_scale, -STEEPEST, STEEPEST)


def _leaders(z: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Greedy: the coordinate whose hinges explain the others best, as long as held-out draws gain from it."""
    n, d = z.shape
    train = np.asarray(rng.random(n) < 0.5)
    if min(train.sum(), (~train).sum()) < 8 * (1 + len(KNOTS)):
        return []
    chosen: list[int] = []
    best = _held_out(z, weight, train, chosen)
    while len(chosen) < min(MOST_LEADERS, d - 1):
        scores = {j: _held_out(z, weight, train, [*chosen, j]) for j in range(d) if j not in chosen}
        j = max(scores, key=lambda j: scores[j])
        if not scores[j] > best + GAIN:
            break
        chosen, best = [*chosen, j], scores[j]
    return chosen


def _held_out(z: np.ndarray, weight: np.ndarray, train: np.ndarray, leaders: list[int]) -> float:
    """Mean log density of held-out draws under quick fits: least squares for locations, then for log squares."""
    others = [i for i in range(z.shape[1]) if i not in leaders]
    straight = np.concatenate([np.ones((len(z), 1)), z[:, leaders]], axis=1)
    total = 0.0
    for i, j in enumerate(leaders):  # the leaders themselves, each after those before it
        total += _quick(hinges(np, z[:, leaders[:i]]) if i else straight[:, :1], z[:, [j]], weight, train)
    features = hinges(np, z[:, leaders]) if leaders else straight
    return total + _quick(features, z[:, others], weight, train)


def _quick(features: np.ndarray, targets: np.ndarray, weight: np.ndarray, train: np.ndarray) -> float:
    w = np.sqrt(weight[train])[:, None]
    gram = (features[train] * w).T @ (features[train] * w)
    gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    location = np.linalg.solve(gram, (features[train] * w).T @ (targets[train] * w))
    left = targets - features @ location
    log_squares = np.log(left[train] ** 2 + 1e-12) + 1.27  # E ln chi^2_1 = -1.27
    scale = np.linalg.solve(gram, (features[train] * w).T @ (log_squares * w))
    log_scale = np.clip(0.5 * features @ scale, -STEEPEST, STEEPEST)
    held = weight[~train] / weight[~train].sum()
    # Whitened residuals would still be decorrelated by one factor, with or without leaders: their covariance counts.
    u = np.clip(left * np.exp(-log_scale), -30, 30)
    covariance = (weight[train, None] * u[train]).T @ u[train] / weight[train].sum() + 1e-6 * np.eye(u.shape[1])
    quadratic = np.sum(u * np.linalg.solve(covariance, u.T).T, axis=1)
    log_density = -log_scale.sum(1) - 0.5 * quadratic - 0.5 * np.linalg.slogdet(covariance)[1]
    return float(held @ np.maximum(log_density[~train], -1e3))


def _regression(features: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Coefficients of location and log scale that make $y \sim N(\phi a, e^{2 \phi b})$ most probable, slightly ridged."""
    from scipy.optimize import minimize

    m = features.shape[1]
    root = np.sqrt(weight)[:, None]
    a = np.linalg.lstsq(
        np.concatenate([features * root, np.sqrt(RIDGE) * np.eye(m)]),
        np.concatenate([y * root[:, 0], np.zeros(m)]),
        rcond=None,
    )[0]
    b = np.zeros(m)
    b[0] = 0.5 * np.log(weight @ (y - features @ a) ** 2 + 1e-12)

    def negative(p):
        a, b = p[:m], p[m:]
        log_scale = _clipped(features @ b)
        left = (y - features @ a) * np.exp(-log_scale)
        value = weight @ (0.5 * left**2 + log_scale) + RIDGE * np.sum(p**2)
        by_a = -features.T @ (weight * left * np.exp(-log_scale))
        by_b = features.T @ (weight * (1 - left**2))
        return value, np.concatenate([by_a, by_b]) + 2 * RIDGE * p

    found = minimize(negative, np.concatenate([a, b]), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    return found[:m], found[m:]
