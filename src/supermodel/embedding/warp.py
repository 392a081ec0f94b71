r"""Warps: bijections $u \to x$ under which a posterior looks like $N(0, I)$. The Jacobian leaves $Z$ as it is.

| class | map | for |
|---|---|---|
| `Warp` | $x = m + C u$ | nearly normal posteriors |
| `Bent` | each coordinate is skewed, its location a quadratic in those before it, its log scale a line | smooth posteriors |
| `Conditional` | location and log scale of most coordinates are smooth functions of a few leading ones | funnels, bananas |
| `NormalGiven` | mean and covariance of most coordinates are smooth functions of one to three leading ones | hierarchies |

A warp is a pytree of arrays: an argument of compiled code, never a constant. All kinds have the same five methods: the map
and its log determinant at one point (traced), and `points`, `inverse` and `log_det_at` for many (NumPy).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

FEW = 32  # coordinates up to which rows are solved for one after the other


def solved(factor: np.ndarray, points: np.ndarray) -> np.ndarray:
    r"""$u$ with $C u = x$ for each of the points (n, d); C is lower triangular.

    LAPACK wakes a thread per core for systems as small as (3, 80); on a busy machine waiting for them took ten
    milliseconds a call, and with it more than half the time of a comparison of small models.
    """
    if len(factor) > FEW:
        from scipy.linalg import solve_triangular

        return solve_triangular(factor, points.T, lower=True).T
    u = np.empty(points.shape[::-1])
    for i, row in enumerate(factor):
        u[i] = (points[:, i] - row[:i] @ u[:i]) / row[i]
    return u.T


class Warp(NamedTuple):
    """An affine map with a lower-triangular factor.

    Cholesky, not eigenvectors: with shared parameters first, equal axes of two models then mean equal parameters.
    """

    mean: Any  # (d,)
    factor: Any  # (d, d), lower triangular, positive diagonal

    def __call__(self, u):
        return self.mean + self.factor @ u

    def log_det(self, u):
        import jax.numpy as jnp

        return jnp.log(jnp.diagonal(self.factor)).sum()

    def points(self, u: np.ndarray) -> np.ndarray:
        return self.mean + u @ np.asarray(self.factor).T

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return solved(np.asarray(self.factor), np.asarray(x) - self.mean)

    def log_det_at(self, u: np.ndarray) -> np.ndarray:
        return np.full(len(u), self.log_det_value())

    def log_det_value(self) -> float:
        """The log determinant, which is the same everywhere."""
        return float(np.log(np.diagonal(self.factor)).sum())


# -- warps that are more than affine have x and the log determinant of many points in one `_forward(xp, u)` ----------------


def _point(warp, u):
    import jax.numpy as jnp

    return warp._forward(jnp, u[None])[0][0]


def _log_det(warp, u):
    import jax.numpy as jnp

    return warp._forward(jnp, u[None])[1][0]


KNOTS = np.array([-1.6, -0.8, 0.0, 0.8, 1.6])  # of the hinges, in standard deviations of a leading coordinate
SOFT = 4.0  # sharpness of a hinge
STEEPEST = 12.0  # a log scale beyond is an extrapolation that nothing supports


def hinges(xp, z):
    r"""$1, z, \frac1s \ln(1 + e^{s(z - \kappa)})$ of coordinates (n, k): (n, 1 + 6k)."""
    n, k = z.shape
    x = SOFT * (z[:, :, None] - KNOTS)
    soft = (xp.logaddexp(0.0, x) / SOFT).reshape(n, k * len(KNOTS))
    return xp.concatenate([xp.ones((n, 1)), z, soft], axis=1)


class Conditional(NamedTuple):
    r"""$z_i = a_i(z_<) + e^{b_i(z_<)} u_i$ for the leading coordinates in turn, then the rest at once,
    $z = A \phi(z_{lead}) + e^{B \phi(z_{lead})} \odot C u$; $x$ is $z$ scaled, shifted and put back in order.

    $\phi$ are soft hinges of the leading coordinates: the rows of `lead` and of `rest` are coefficients on them.
    """

    order: Any  # (d,) integers: z_i is the standardised x[order[i]]
    mean: Any  # (d,) of x
    scale: Any  # (d,)
    lead_location: Any  # (k, 1 + 6k), zero beyond the coordinates before
    lead_log_scale: Any
    rest_location: Any  # (d - k, 1 + 6k)
    rest_log_scale: Any
    factor: Any  # (d - k, d - k), lower triangular

    def _forward(self, xp, u):
        """x and the log determinant, for (n, d) points."""
        n, k = len(u), len(self.lead_location)
        columns: list[Any] = []
        log_det = 0.0
        for i in range(k):
            known = xp.stack([*columns, *[xp.zeros(n)] * (k - i)], axis=1)
            features = hinges(xp, known)
            log_scale = xp.clip(features @ self.lead_log_scale[i], -STEEPEST, STEEPEST)
            columns.append(features @ self.lead_location[i] + xp.exp(log_scale) * u[:, i])
            log_det = log_det + log_scale
        lead = xp.stack(columns, axis=1)
        features = hinges(xp, lead)
        log_scale = xp.clip(features @ self.rest_log_scale.T, -STEEPEST, STEEPEST)
        rest = features @ self.rest_location.T + xp.exp(log_scale) * (u[:, k:] @ self.factor.T)
        log_det = log_det + log_scale.sum(1) + xp.log(xp.diagonal(self.factor)).sum()
        return self._outward(xp, xp.concatenate([lead, rest], axis=1)), log_det + xp.log(self.scale).sum()

    def _outward(self, xp, z):
        inverse = np.argsort(np.asarray(self.order)) if xp is np else xp.argsort(self.order)
        return self.mean + self.scale * z[:, inverse]

    def __call__(self, u):
        return _point(self, u)

    def log_det(self, u):
        return _log_det(self, u)

    def points(self, u: np.ndarray) -> np.ndarray:
        return self._forward(np, u)[0]

    def log_det_at(self, u: np.ndarray) -> np.ndarray:
        return self._forward(np, u)[1]

    def inverse(self, x: np.ndarray) -> np.ndarray:
        z = ((np.asarray(x) - self.mean) / self.scale)[:, np.asarray(self.order)]
        k = len(self.lead_location)
        u = np.empty_like(z)
        for i in range(k):
            features = hinges(np, np.where(np.arange(k) < i, z[:, :k], 0.0))
            log_scale = np.clip(features @ self.lead_log_scale[i], -STEEPEST, STEEPEST)
            u[:, i] = (z[:, i] - features @ self.lead_location[i]) * np.exp(-log_scale)
        features = hinges(np, z[:, :k])
        log_scale = np.clip(features @ self.rest_log_scale.T, -STEEPEST, STEEPEST)
        rest = (z[:, k:] - features @ self.rest_location.T) * np.exp(-log_scale)
        u[:, k:] = solved(np.asarray(self.factor), rest)
        return u


FAR = 4.0  # standard deviations at which the coordinates that bend others saturate: beyond, a polynomial extrapolates
STEEP = 3.0  # of a log scale that is fitted to a nearly normal posterior
SKEWED = 0.8  # below 1, where the map would no longer rise everywhere


def saturated(xp, u):
    r"""$t = u / \sqrt{1 + (u/4)^2}$."""
    return u / xp.sqrt(1.0 + (u / FAR) ** 2)


def pairs(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (j, k), j <= k, of all products of two coordinates; those of the first l coordinates come first."""
    k, j = np.tril_indices(d)
    return j, k


def skewed(xp, u, skew):
    r"""$u + c(\sqrt{1 + u^2} - 1)$, |c| < 1: a tail longer than the other."""
    return u + skew * (xp.sqrt(1.0 + u * u) - 1.0)


def log_slope(xp, u, skew):
    """Of `skewed`, in u."""
    return xp.log(1.0 + skew * u / xp.sqrt(1.0 + u * u))


def straightened(t, skew):
    """u of `skewed` u."""
    v = t + skew
    return (v - skew * np.sqrt(v * v + 1.0 - skew * skew)) / (1.0 - skew * skew)


class Bent(NamedTuple):
    r"""$z_l = a_l(t_<) + e^{b_l(t_<)}\,[u_l + c_l (\sqrt{1 + u_l^2} - 1)]$, $x = m + C z$; one to one, for $|c_l| < 1$.

    $t$ is the saturated $u$; $a_l$ is a quadratic and $b_l$ a line in the coordinates before l. To first order $u \cdot z$ then
    holds every cubic in u once: bends, flares and skews are what the third derivatives of $\ln J$ ask for.
    """

    mean: Any  # (d,)
    factor: Any  # (d, d), lower triangular: C
    shear: Any  # (d, d), strictly lower triangular: the line in a
    bend: Any  # (d, d (d + 1) / 2), on products of two coordinates before: the rest of a
    flare: Any  # (d, d), strictly lower triangular: b
    skew: Any  # (d,): c

    def _forward(self, xp, u):
        """x and the log determinant, for (n, d) points."""
        j, k = pairs(len(self.mean))
        t = saturated(xp, u)
        location = t @ self.shear.T + (t[:, j] * t[:, k]) @ self.bend.T
        log_scale = xp.clip(t @ self.flare.T, -STEEP, STEEP)
        z = location + xp.exp(log_scale) * skewed(xp, u, self.skew)
        log_det = xp.sum(log_scale + log_slope(xp, u, self.skew), axis=1)
        return self.mean + z @ self.factor.T, log_det + xp.log(xp.diagonal(self.factor)).sum()

    def __call__(self, u):
        return _point(self, u)

    def log_det(self, u):
        return _log_det(self, u)

    def points(self, u: np.ndarray) -> np.ndarray:
        return self._forward(np, u)[0]

    def log_det_at(self, u: np.ndarray) -> np.ndarray:
        return self._forward(np, u)[1]

    def inverse(self, x: np.ndarray) -> np.ndarray:
        z = solved(np.asarray(self.factor), np.asarray(x) - self.mean)
        u, t, (j, k) = np.zeros_like(z), np.zeros_like(z), pairs(len(self.mean))
        for i, c in enumerate(np.asarray(self.skew)):
            before = i * (i + 1) // 2
            location = t[:, :i] @ self.shear[i, :i] + (t[:, j[:before]] * t[:, k[:before]]) @ self.bend[i, :before]
            log_scale = np.clip(t[:, :i] @ self.flare[i, :i], -STEEP, STEEP)
            u[:, i] = straightened((z[:, i] - location) * np.exp(-log_scale), c)
            t[:, i] = saturated(np, u[:, i])
        return u

    def pulled_back(self, u: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        r"""$\nabla_u [\ln J(x(u)) + \ln |\partial x / \partial u|]$ from $\nabla_x \ln J$ at the same (n, d) points."""
        d = len(self.mean)
        j, k = pairs(d)
        t, root = saturated(np, u), np.sqrt(1.0 + u * u)
        scale, slope = np.exp(np.clip(t @ self.flare.T, -STEEP, STEEP)), 1.0 + self.skew * u / root
        by_z = gradient @ self.factor
        products = np.zeros((len(u), d, d))
        products[:, j, k] = by_z @ self.bend
        bent = np.matmul(products + products.swapaxes(1, 2), t[:, :, None])[..., 0]
        flared = (1.0 + by_z * scale * (u + self.skew * (root - 1.0))) @ self.flare
        by_t = by_z @ self.shear + bent + flared
        return by_z * scale * slope + self.skew / (root**3 * slope) + by_t * (1.0 + (u / FAR) ** 2) ** -1.5


def straight(warp: Warp) -> Bent:
    """An affine warp as a bent one."""
    d = len(warp.mean)
    none = np.zeros((d, d))
    return Bent(
        np.asarray(warp.mean), np.asarray(warp.factor), none, np.zeros((d, len(pairs(d)[0]))), none, np.zeros(d)
    )


def bells(xp, u, centres, width):
    r"""$1, u, e^{-|u - c|^2 / 2 w^2}$ of coordinates (n, k), centres (m, k): (n, 1 + k + m). Far from all, a straight line."""
    square = xp.sum((u[:, None] - centres[None]) ** 2, axis=-1)
    return xp.concatenate([xp.ones((len(u), 1)), u, xp.exp(-0.5 * square / width**2)], axis=1)


class NormalGiven(NamedTuple):
    r"""$z_{lead} = F u_{lead}$ of the leading coordinates, and given them the rest as a vector whose moments they decide:
    $z = C\,[\,m + (I + N)\, e^{b} \odot (u + c(\sqrt{1 + u^2} - 1))\,]$ with N strictly lower triangular, normal where c = 0.

    $m$, $b$ and $N$ are smooth functions of $u_{lead}$, sums of `bells`; the factor C makes them small.
    """

    order: Any  # (d,) integers: z_i is x[order[i]] - mean[order[i]]
    mean: Any  # (d,) of x
    lead: Any  # (k, k), lower triangular: F
    centres: Any  # (m, k): of the bells
    width: Any  # ()
    location: Any  # (1 + k + m, d - k): m
    log_scale: Any  # (1 + k + m, d - k): b
    shear: Any  # (1 + k + m, d - k, d - k): N
    factor: Any  # (d - k, d - k), lower triangular: C
    skew: Any = 0.0  # (d - k,): c, the same wherever the leaders are

    def _forward(self, xp, u):
        """x and the log determinant, for (n, d) points."""
        k, (size, rest) = len(self.lead), self.location.shape
        phi, log_scale = self._scales(xp, u)
        v = xp.exp(log_scale) * skewed(xp, u[:, k:], self.skew)
        sheared = (v @ self.shear.reshape(size * rest, rest).T).reshape(-1, size, rest)
        y = phi @ self.location + v + xp.sum(phi[:, :, None] * sheared, axis=1)
        z = xp.concatenate([u[:, :k] @ self.lead.T, y @ self.factor.T], axis=1)
        inverse = np.argsort(np.asarray(self.order)) if xp is np else xp.argsort(self.order)
        return self.mean + z[:, inverse], self._log_det(xp, u, log_scale)

    def _scales(self, xp, u):
        phi = bells(xp, u[:, : len(self.lead)], self.centres, self.width)
        return phi, xp.clip(phi @ self.log_scale, -STEEPEST, STEEPEST)

    def _log_det(self, xp, u, log_scale):
        constant = xp.log(xp.diagonal(self.lead)).sum() + xp.log(xp.diagonal(self.factor)).sum()
        return (log_scale + log_slope(xp, u[:, len(self.lead) :], self.skew)).sum(1) + constant

    def __call__(self, u):
        return _point(self, u)

    def log_det(self, u):
        return _log_det(self, u)

    def points(self, u: np.ndarray) -> np.ndarray:
        return self._forward(np, u)[0]

    def log_det_at(self, u: np.ndarray) -> np.ndarray:
        return self._log_det(np, u, self._scales(np, u)[1])  # without the shear, which takes a hundred times as long

    def inverse(self, x: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        k, rest = len(self.lead), len(self.factor)
        z = (np.asarray(x) - self.mean)[:, np.asarray(self.order)]
        lead = solved(np.asarray(self.lead), z[:, :k])
        phi = bells(np, lead, np.asarray(self.centres), self.width)
        v = solved(np.asarray(self.factor), z[:, k:]) - phi @ self.location
        shear = np.asarray(self.shear).reshape(-1, rest * rest)
        for i in range(len(v)):
            v[i] = solve_triangular((phi[i] @ shear).reshape(rest, rest), v[i], lower=True, unit_diagonal=True)
        v *= np.exp(-np.clip(phi @ self.log_scale, -STEEPEST, STEEPEST))
        return np.concatenate([lead, straightened(v, self.skew)], axis=1)


def identity(dimension: int) -> Warp:
    """The map that does nothing."""
    return Warp(np.zeros(dimension), np.eye(dimension))


def from_covariance(mean: np.ndarray, covariance: np.ndarray) -> Warp:
    """Whitens a density of this mean and covariance."""
    return Warp(np.asarray(mean, float), lifted_cholesky(covariance))


def lifted_cholesky(covariance: np.ndarray) -> np.ndarray:
    """The Cholesky factor; a covariance that is not quite positive is lifted a little."""
    covariance = np.atleast_2d(np.asarray(covariance, float))
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    correlation = covariance / np.outer(scale, scale)
    lift = 0.0
    while True:
        try:
            return scale[:, None] * np.linalg.cholesky(correlation + lift * np.eye(len(scale)))
        except np.linalg.LinAlgError:
            lift = max(10 * lift, 1e-12)
