"""The record of a run: all that any estimator, plot, sensitivity curve or model average needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from supermodel.embedding.supermodel import Supermodel


@dataclass(frozen=True, eq=False)
class Draws:
    r"""Draws of $(\alpha, u)$ from a supermodel, with $\ln J_k(u)$ of every model at each.

    All arrays are NumPy, float64, chains first.
    """

    supermodel: Supermodel
    alpha: np.ndarray  # (chains, draws); (chains, draws, K) on a simplex; the model's number for `index`
    log_joints: np.ndarray  # (chains, draws, K): ln J_k, companions and Jacobians included
    position: np.ndarray  # (chains, draws, D): unconstrained coordinates of the supermodel
    evaluations: dict[str, int]  # {"likelihood": n, "gradient": n}, all that the run cost
    predictions: np.ndarray | None = None  # (chains, draws, K, n_data), `blend` only
    info: dict = field(default_factory=dict)  # acceptance, step size, thinning, steps per second, ...

    @property
    def names(self) -> tuple[str, ...]:
        return self.supermodel.names

    @property
    def weights(self) -> np.ndarray:
        """f(alpha): (chains, draws, K), on the simplex."""
        return self.supermodel.coordinate.weights_of(self.alpha)

    @property
    def n_chains(self) -> int:
        return self.alpha.shape[0]

    @property
    def n_draws(self) -> int:
        """Draws per chain."""
        return self.alpha.shape[1]

    def thin(self, step: int) -> Draws:
        """Every `step`-th draw."""
        return replace(
            self,
            alpha=self.alpha[:, ::step],
            log_joints=self.log_joints[:, ::step],
            position=self.position[:, ::step],
            predictions=None if self.predictions is None else self.predictions[:, ::step],
        )

    def parameters(self) -> dict[str, np.ndarray]:
        """The draws in the user's own coordinates: {name: (chains, draws, ...)}."""
        return self.supermodel.constrain(self.position)
