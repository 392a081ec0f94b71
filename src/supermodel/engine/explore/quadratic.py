r"""A quadratic through all points seen: for smooth black boxes, whose calls are dear.

$\ln J(x) \approx c + b'x - \frac12 x'Hx$ by least squares over every point evaluated so far, weighed by $J^{1/\tau}$ with the
least $\tau \ge 1$ that leaves some of them to rest on; new points are drawn from the Gaussian that it stands for. Curvatures
are shrunk towards a common one as far as predictions gain by it (generalised cross-validation), so that fewer points than
there are coefficients lead the way. A nearly normal posterior is reached from its prior in about $5 (d + 1)(d + 2)$ calls.
"""

from __future__ import annotations

import numpy as np

from supermodel.embedding.reference import joined, one_hill
from supermodel.embedding.warp import Warp, from_covariance, identity, lifted_cholesky, solved
from supermodel.engine.explore.cloud import Cloud, Warped, effective_size, flattened

FEWEST = (3, 8)  # effective points that a fit rests on: 3 d + 8, but no more than
MARGIN = 1.5  # per coefficient
REACH = 0.7  # widths of those points, and per root of d, that the centre of a fit may lie off theirs,
STRIDE = 3.0  # times as many after each step that went up
WIDTH = (1.0, 2.0)  # of theirs that a fit may have: on the way, where a bold one falls off cliffs, and at the posterior
WIDER = (
    (0.8, 1.15),
    (0.2, 2.0),
)  # shares of the draws, and how much wider than the fit: the last see what tails there are
ARRIVED = 0.6  # effective share of a batch of the posterior's own fit, of what a normal posterior would give
BATCH, SHARE = 16, 0.2  # points of a round at least, and per coefficient
LONGEST = 25  # calls per coefficient beyond which it is another road's turn
NO_BETTER = 10  # rounds at the posterior without a better share: it is no Gaussian
RIDGES = 10.0 ** np.array([-18, *range(-6, 4)])  # the first leaves an exact quadratic exact


def coefficients(d: int) -> int:
    """Of a quadratic in d coordinates."""
    return (d + 1) * (d + 2) // 2


def best_share(d: int) -> float:
    r"""Effective share of draws of a normal posterior's own fit, those of its wide part counting for nothing.

    Of draws of $N(0, s^2)$ for $N(0, 1)$ a share $\sqrt{2 s^2 - 1} / s^2$ is effective in each coordinate.
    """
    part, wider = WIDER[0]
    return part * (np.sqrt(2 * wider**2 - 1) / wider**2) ** d


def by_quadratic(cloud: Cloud, rng: np.random.Generator, least: float) -> Warp | None:
    """Draw from better and better fits until one is the posterior's, and until `least` effective points are there.

    Returns the last fit, or None where the posterior is not near enough to a Gaussian.
    """
    d = cloud.joint.dimension
    size, batch = coefficients(d), max(BATCH, int(SHARE * coefficients(d)))
    most, best, waited, arrived = len(cloud) + max(LONGEST * size, 8 * BATCH), 0.0, 0, False
    reach = REACH
    while len(cloud) < most and waited < NO_BETTER:
        log_joint = cloud.log_joint
        if not np.isfinite(log_joint.max()):
            return None
        log_w = flattened(log_joint - log_joint.max(), min(MARGIN * size, FEWEST[0] * d + FEWEST[1]))
        there = bool(np.all(log_w == log_joint - log_joint.max()))
        warp = fitted_quadratic(cloud.x, log_joint, np.exp(log_w), WIDTH[there], reach)
        if warp is None or (arrived and effective_size(cloud.log_weights()) >= least):
            return warp
        hills = [(part, one_hill(warp.mean, np.asarray(warp.factor) * wider)) for part, wider in WIDER]
        proposal = Warped(identity(d), joined(hills))
        cloud.grow(proposal, batch, rng)
        reach = reach * STRIDE if cloud.log_joint[-batch:].max() > log_joint.max() else REACH
        drawn = cloud.log_joint[-batch:] - proposal.log_density(cloud.x[-batch:])
        share = effective_size(drawn) / batch if there else 0.0
        if not arrived and share > ARRIVED * best_share(d):
            arrived, most = True, len(cloud) + int(4 * least)
        waited = waited + 1 if there and share < 1.1 * best else 0
        best = max(best, share)
    return None


def fitted_quadratic(
    x: np.ndarray, log_joint: np.ndarray, weight: np.ndarray, width: float, reach: float = REACH
) -> Warp | None:
    """The Gaussian of the weighted quadratic, no wider than `width` of the points' own widths, nor further than `reach`."""
    rows = np.isfinite(log_joint) & (weight > 1e-12)
    x, y, w, d = x[rows], log_joint[rows], weight[rows] / weight[rows].sum(), x.shape[1]
    n = 1 / np.sum(w**2) if len(w) else 0.0
    if n < d + 2:
        return None
    # In coordinates whitened by the points' own moments a common curvature is a fair first guess.
    middle = w @ x
    moments = ((x - middle) * w[:, None]).T @ (x - middle)
    guess = (d + 1) / (d + 1 + n)  # as if a diagonal one had been seen in d + 1 points
    factor = lifted_cholesky((1 - guess) * moments + guess * np.diag(np.diagonal(moments)))
    z = solved(factor, x - middle)
    slope, curvature = _regressed(z, y - y.max(), w, n)
    values, vectors = np.linalg.eigh(curvature)
    covariance = (vectors / np.maximum(values, max(width**-2, 1e-12))) @ vectors.T
    step = covariance @ slope
    step *= min(1.0, reach * np.sqrt(d) / max(float(np.linalg.norm(step)), 1e-300))
    return from_covariance(middle + factor @ step, factor @ covariance @ factor.T)


def _regressed(z: np.ndarray, y: np.ndarray, weight: np.ndarray, n: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Slope b and curvature H of $y \approx c + b'z - \frac12 z'Hz$ at z = 0.

    A common curvature is free; the rest carries the ridge that generalised cross-validation with `n` points prefers.
    """
    d, root = z.shape[1], np.sqrt(weight)
    i, j = np.triu_indices(d)
    twice = np.where(i == j, 1.0, np.sqrt(2.0))  # so that the ridge knows no axes
    free = np.concatenate([np.ones((len(z), 1)), z, np.sum(z**2, axis=1, keepdims=True)], axis=1) * root[:, None]
    bound, target = z[:, i] * z[:, j] * (twice * root[:, None]), y * root
    basis = np.linalg.qr(free)[0]
    left, values, right = np.linalg.svd(bound - basis @ (basis.T @ bound), full_matrices=False)
    rest = target - basis @ (basis.T @ target)
    along = left.T @ rest
    beyond = max(float(rest @ rest - along @ along), 0.0)  # what no quadratic explains

    def score(ridge: float) -> float:
        kept = values**2 / (values**2 + ridge)
        taken = (free.shape[1] + kept.sum()) / n
        return (beyond + np.sum(((1 - kept) * along) ** 2)) / (1 - taken) ** 2 if taken < 0.9 else np.inf

    scores = [score(ridge) for ridge in RIDGES]
    ridge = RIDGES[int(np.argmin(scores))] if np.isfinite(min(scores)) else RIDGES[-1]
    quadratic = right.T @ (values / (values**2 + ridge) * along)
    linear = np.linalg.lstsq(free, target - bound @ quadratic, rcond=None)[0]
    products = np.zeros((d, d))
    products[i, j] = quadratic * twice
    return linear[1 : 1 + d], -(products + products.T) - 2 * linear[-1] * np.eye(d)
