r"""How rough a likelihood is: what $\ln L$ scatters between neighbouring points, below which no error can be believed.

Along a short line in the posterior a smooth $\ln L$ is a polynomial, and what a fit leaves over is noise: rounding (in
doubles some $10^{-13}$ nats), single precision, the tolerance of a solver, a Monte Carlo inside the likelihood. Lines are as
short as $\ln L$ changes by a tenth of a nat, whatever the widths; the median over lines is robust to a step that one crosses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from supermodel.engine.meter import Meter
from supermodel.engine.policy import LINE, LINES, ON_LINE, SMALL_SHARE
from supermodel.models.joint import Joint
from supermodel.models.rounding import REPEATS

DEGREE = 4  # of the polynomial: what is left of a smooth function falls with the fifth power of a line's length
CHANGE = 0.1  # nats of ln L along a line: a posterior is smooth on the scale on which ln L changes by a nat
AVERAGED = 2  # points over which the shift by single precision is averaged
DOUBLES = 4e-9  # of ln L: a fifth of what float32 leaves of it; no careful calculation in doubles is noisier
EXPLAINED = 10.0  # times the shift by single precision: noise beyond has another cause
SAME = 64 * float(np.finfo(float).eps)  # of ln L: threads may add in another order


class Roughness(NamedTuple):
    """What limits the precision of one model's likelihood, in nats. All zero: as smooth as doubles are, or not looked at."""

    noise: float = 0.0  # standard deviation of ln L between neighbouring points
    is_stochastic: bool = False  # two values at one point
    scale: float = 1.0  # the largest |ln L| that was met
    shifts: tuple[float, ...] = (0.0,) * REPEATS  # draws of the shift by numbers of single precision

    @classmethod
    def of(cls, stored: Sequence[Any]) -> Roughness:
        """From a file: `list(roughness)`, or nothing where it was not looked at."""
        if not stored:
            return cls()
        noise, is_stochastic, scale, shifts = stored
        return cls(float(noise), bool(is_stochastic), float(scale), tuple(map(float, shifts)))

    @property
    def single(self) -> float:
        """Root mean square of the shift by numbers of single precision."""
        return float(np.sqrt(np.mean(np.square(self.shifts))))

    @property
    def floor(self) -> float:
        """The error of ln Z that no sampling can lower."""
        return float(np.hypot(self.noise, self.single))

    @property
    def is_rough(self) -> bool:
        """Whether ln L is noisier than doubles, or single precision where there is any, would make it."""
        return self.is_stochastic or self.noise > max(DOUBLES * self.scale, EXPLAINED * self.single)

    def between(self, other: Roughness | None) -> float:
        """What this roughness adds to the error of ln B with another model (None: to that of ln Z)."""
        shared = np.zeros(REPEATS) if other is None else np.array(other.shifts)
        return float(np.hypot(self.noise, np.sqrt(np.mean(np.square(self.shifts - shared)))))


def covariance(found: list[Roughness]) -> np.ndarray:
    """(K, K): what roughness adds to the covariance of ln Z; equal data rounded alike have moved all models alike."""
    shifts = np.array([r.shifts for r in found])
    return np.diag([r.noise**2 for r in found]) + shifts @ shifts.T / REPEATS


def roughness(joint: Joint, points: np.ndarray, warp: Any, rng: np.random.Generator, meter: Meter) -> Roughness:
    """Look at ln L near a few draws of the posterior; nothing is looked at where the budget is small."""
    if not meter.affords(LINES * (ON_LINE + 2) + 1, SMALL_SHARE):
        return Roughness()
    x = points[rng.choice(len(points), LINES, replace=len(points) < LINES)]
    noise, is_stochastic, scale = _noise(joint, x, warp, rng, meter)
    shifts = joint.shifts(x[:AVERAGED])
    if np.any(shifts) and joint.is_traceable:  # of a black box the prior alone is asked
        meter.count(REPEATS * AVERAGED)
    if not np.all(np.isfinite(shifts)):
        shifts = np.resize([1.0, -1.0], REPEATS) * np.finfo(np.float32).eps * scale
    return Roughness(noise, is_stochastic, scale, tuple(map(float, shifts)))


def _noise(joint: Joint, x: np.ndarray, warp: Any, rng: np.random.Generator, meter: Meter) -> tuple[float, bool, float]:
    """The noise of ln L, whether one point has two values, and the largest |ln L|."""
    u = np.asarray(warp.inverse(x))
    way = rng.standard_normal(u.shape)
    way /= np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-300)
    with np.errstate(invalid="ignore", over="ignore"):
        here, there = meter.likelihood(joint, np.concatenate([x, warp.points(u + LINE * way)])).reshape(2, LINES)
        change = np.abs(there - here)
        length = LINE * np.where(np.isfinite(change), np.minimum(1.0, CHANGE / np.maximum(change, CHANGE)), CHANGE**2)
        # Uneven steps: a periodic noise must not be met at equal phases.
        t = (np.arange(ON_LINE) + rng.random((LINES, ON_LINE))) * 2 / ON_LINE - 1
        near = u[:, None] + (length[:, None] * t)[..., None] * way[:, None]
        near = warp.points(near.reshape(LINES * ON_LINE, u.shape[1]))
        values = meter.likelihood(joint, np.concatenate([x[:1], near]))
        again, values = values[0], values[1:].reshape(LINES, ON_LINE)
        left = [_left_over(np.append(0.0, t[i]), np.append(here[i], values[i]) - here[i]) for i in range(LINES)]
    known = np.abs(np.append(here, values))
    scale = float(np.max(known[np.isfinite(known)], initial=1.0))
    is_stochastic = not (again == here[0] or abs(again - here[0]) <= SAME * scale)
    noise = float(np.nanmedian(left)) if np.any(np.isfinite(left)) else 0.0
    return noise, is_stochastic, scale


def _left_over(t: np.ndarray, values: np.ndarray) -> float:
    """Standard deviation of values about the polynomial that fits them best; NaN where some are not finite."""
    if not np.all(np.isfinite(values)):
        return np.nan
    basis, _ = np.linalg.qr(np.vander(t, DEGREE + 1))
    rest = values - basis @ (basis.T @ values)
    return float(np.sqrt(np.sum(rest**2) / (len(t) - DEGREE - 1)))
