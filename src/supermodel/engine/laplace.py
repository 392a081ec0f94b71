r"""Modes of one model's joint density and their curvature: $J(x) \approx J(\hat x) \exp[-\frac12 (x-\hat x)^T H (x-\hat x)]$."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supermodel.embedding.warp import Warp, from_covariance
from supermodel.models.joint import Joint

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Mode:
    """A local maximum of J, its warp from the curvature, and the mass that a Gaussian there would hold."""

    point: np.ndarray
    log_joint: float
    warp: Warp

    @property
    def log_mass(self) -> float:
        return self.log_joint + self.warp.log_det_value() + 0.5 * len(self.point) * LOG_2PI

    def distance(self, other: np.ndarray) -> float:
        """Mahalanobis distance of a point, per root dimension."""
        return float(np.sqrt(np.mean(self.warp.inverse(other[None]) ** 2))) if len(self.point) else 0.0


@dataclass
class Climb:
    """Local maxima found from several starts, best first, and what they cost."""

    modes: list[Mode]
    evaluations: int
    gradients: int

    @property
    def rivals(self) -> list[Mode]:
        """Other modes whose Gaussian mass is not negligible beside the best one's."""
        best = self.modes[0]
        return [m for m in self.modes[1:] if m.log_mass > best.log_mass - 7.0]


class Climber:
    """Compiled value, gradient and curvature of ln J of one model."""

    def __init__(self, joint: Joint):
        import jax

        self.joint = joint
        self.value_and_gradient = jax.jit(jax.value_and_grad(joint.__call__))
        self.curvature = jax.jit(jax.hessian(joint.__call__))
        self.calls = 0

    def climb(self, start: np.ndarray, iterations: int) -> tuple[np.ndarray, float]:
        """L-BFGS from `start`; returns the highest point met, even if the climb was cut short."""
        from scipy.optimize import minimize

        best: list = [start, -np.inf]

        def negative(x):
            self.calls += 1
            value, gradient = self.value_and_gradient(x)
            value, gradient = float(value), np.asarray(gradient)
            if value > best[1]:
                best[:] = [np.array(x), value]
            if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
                return 1e300, np.zeros_like(x)  # a wall: the line search steps back
            return -value, -gradient

        minimize(
            negative, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations, "maxls": 30, "ftol": 1e-10}
        )
        return best[0], best[1]

    def mode_at(self, point: np.ndarray, value: float) -> Mode | None:
        """Curvature at a climbed point, with one Newton step to finish; None where J has no finite curvature."""
        d = len(point)
        curvature = -np.asarray(self.curvature(point))
        self.calls += d
        if not np.all(np.isfinite(curvature)):
            return None
        curvature = 0.5 * (curvature + curvature.T)
        values, vectors = np.linalg.eigh(curvature)
        if values[-1] <= 0:
            return None
        # Flat or upward directions get the width of a unit prior at most: a ridge is not infinitely wide.
        values = np.maximum(values, max(1e-3, 1e-10 * values[-1]))
        covariance = (vectors / values) @ vectors.T
        gradient = np.asarray(self.value_and_gradient(point)[1])
        self.calls += 1
        step = covariance @ gradient
        if gradient @ step < 1.0 and np.all(np.isfinite(step)):  # within about one sd of the top
            point = point + step
            value = value + 0.5 * float(gradient @ step)
        return Mode(point, value, from_covariance(point, covariance))


def find_modes(joint: Joint, starts: np.ndarray, iterations: int, max_modes: int = 6) -> tuple[Climb, Climber]:
    """Climb from each start and keep the distinct modes, best first."""
    climber = Climber(joint)
    tops = sorted((climber.climb(start, iterations) for start in starts), key=lambda top: -top[1])
    modes: list[Mode] = []
    for point, value in tops:
        if not np.isfinite(value) or (modes and value < modes[0].log_joint - 25.0):
            continue  # a local maximum too low to hold any mass worth counting
        if any(np.sqrt(len(point)) * m.distance(point) < 1.0 for m in modes):
            continue
        mode = climber.mode_at(point, value)
        if mode is not None and len(modes) < max_modes:
            modes.append(mode)
    modes.sort(key=lambda m: -m.log_mass)
    return Climb(modes, climber.calls, climber.calls), climber
