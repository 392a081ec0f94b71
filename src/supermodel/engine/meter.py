"""The meter: every likelihood call of a run goes past it, so that a budget holds from the first one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from supermodel.engine.goals import Goals
from supermodel.engine.interrupts import Interrupts
from supermodel.engine.policy import BATCH, PATIENCE, TOGETHER
from supermodel.engine.workers import Hanging, Workers
from supermodel.models.joint import Joint


class Spent(Exception):
    """The budget is used up; the argument says which one."""


class Enough(Spent):
    """The share of the budget that exploration may take of one model is used up: what was found has to do."""


class Meter:
    """Counts evaluations, knows the limits, and says so from time to time."""

    def __init__(
        self,
        goals: Goals,
        executor: Any = None,
        tell: Callable[[], None] | None = None,
        interrupts: Interrupts | None = None,
    ):
        self.goals, self.tell = goals, tell
        self.interrupts = interrupts or Interrupts()
        self.workers = None if executor is None else Workers(executor, self._left, self.interrupts)
        self.began = time.monotonic()
        self.evaluations = self.gradients = 0
        self.seconds_calling = 0.0  # inside likelihoods, for the forecast
        self.limit = goals.max_evaluations or PATIENCE
        self.allowance, self.until = np.inf, np.inf  # evaluations, and a moment, at which an exploration must end

    @property
    def room(self) -> int:
        """Evaluations left."""
        return max(self.limit - self.evaluations, 0)

    def over(self) -> str:
        """Which limit has been met, or ""."""
        return self.goals.over_budget(self.evaluations, self.began, self.limit)

    def _left(self) -> float:
        """Seconds left; negative beyond the limit, infinite without one."""
        return (self.goals.max_seconds or np.inf) - (time.monotonic() - self.began)

    @contextlib.contextmanager
    def share(self, part: float):
        """Within, no more than a part of what is left of a limited budget may be spent."""
        if self.goals.max_evaluations is not None:
            self.allowance = self.evaluations + part * self.room
        if self.goals.max_seconds is not None:
            self.until = time.monotonic() + part * self._left()
        try:
            yield
        finally:
            self.allowance = self.until = np.inf

    @property
    def left(self) -> float:
        """Evaluations left, within a `share` of what it allows."""
        return min(self.room, self.allowance - self.evaluations)

    def affords(self, n: int, share: float) -> bool:
        """Whether `n` evaluations cost no more than a share of the evaluations, and of the time, that are left."""
        each = self.seconds_calling / max(self.evaluations, 1)
        return n <= share * self.room and n * each <= share * self._left()

    def count(self, n: int, gradients: int = 0) -> None:
        """Note `n` evaluations, `gradients` of them with gradient."""
        self.evaluations += n
        self.gradients += gradients

    def check(self, n: int = 1) -> None:
        """Refuse to begin `n` evaluations that the budget does not hold, or that someone has asked to leave."""
        self.interrupts.check()
        if self.over():
            raise Spent(self.over())
        if n > self.room:
            raise Spent("max_evaluations")
        if self.evaluations + n > self.allowance:
            raise Enough("max_evaluations")
        if time.monotonic() > self.until:
            raise Enough("max_seconds")
        if self.tell is not None:
            self.tell()

    def likelihood(self, joint: Joint, points: np.ndarray) -> np.ndarray:
        """ln L at many points, in batches, none of which is begun without the budget for it."""
        size = BATCH if joint.is_traceable or joint.model.vectorized else self._polite
        parts = [self._batch(joint, points[i : i + size]) for i in range(0, len(points), size)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _batch(self, joint: Joint, points: np.ndarray) -> np.ndarray:
        self.check(len(points))
        since = time.monotonic()
        try:
            values = joint.log_likelihood_at(points, self.workers, TOGETHER)
        except Hanging:
            raise Spent("max_seconds") from None
        self.seconds_calling += time.monotonic() - since
        self.count(len(points))
        return values

    @property
    def _polite(self) -> int:
        """Plain-Python calls at a time: about a second of them, so that a limit on time is kept (on an executor: more)."""
        if self.workers is not None:
            return BATCH
        each = self.seconds_calling / max(self.evaluations, 1)
        return int(np.clip(1.0 / max(each, 1e-9), 1, BATCH)) if self.evaluations else 4

    def value_and_gradient(self, joint: Joint, points: np.ndarray, free: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """ln J and its gradient at many points; of a black box, and where a gradient is no number, by differences (d + 1 calls).

        `free`: (d,), the coordinates that are asked for; the others are given a slope of zero.
        """
        if not joint.is_traceable:
            return self._by_differences(joint, points, free)
        parts = [self._gradients(joint, points[i : i + BATCH]) for i in range(0, len(points), BATCH)]
        value, gradient = (np.concatenate(column) for column in zip(*parts, strict=True))
        blind = np.flatnonzero(np.isfinite(value) & ~np.all(np.isfinite(gradient), axis=1))
        if len(blind):
            gradient[blind] = self._by_differences(joint, points[blind])[1]
        return value, gradient if free is None else np.where(free, gradient, 0.0)

    def _gradients(self, joint: Joint, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of a traced model, one batch, which is not begun without the budget for it."""
        self.check(len(points))
        found = joint.value_and_gradient_at(points, TOGETHER)
        self.count(len(points), len(points))
        return found

    def _by_differences(self, joint: Joint, points: np.ndarray, free: Any = None) -> tuple[np.ndarray, np.ndarray]:
        n, d = points.shape
        moved = np.arange(d) if free is None else np.flatnonzero(free)
        near = points[:, None] + DIFFERENCE * np.concatenate([np.zeros((1, d)), np.eye(d)[moved]])
        found = self.likelihood(joint, near.reshape(-1, d)) + joint.space.log_prior_at(near.reshape(-1, d))
        found, gradient = found.reshape(n, -1), np.zeros((n, d))
        with np.errstate(invalid="ignore"):
            gradient[:, moved] = (found[:, 1:] - found[:, :1]) / DIFFERENCE
        return found[:, 0], gradient


DIFFERENCE = 1e-5  # widths of the prior: far below those of any mode that can be found, far above rounding
