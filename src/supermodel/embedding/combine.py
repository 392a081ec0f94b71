r"""Densities at a rung and the rung given densities, once, for NumPy and `jax.numpy` alike (the argument `xp`).

In $\sum_k w_k \ln J_k$ a model of weight 0 has no say, not even where its density is 0: $0 \cdot (-\infty) = 0$.
"""

from __future__ import annotations

from typing import Any


def times(xp: Any, weights: Any, logs: Any) -> Any:
    r"""$w \ln J$, and 0 where w is not positive; so is the gradient with respect to $\ln J$ there."""
    has_a_say = weights > 0
    return xp.where(has_a_say, weights * xp.where(has_a_say, logs, 0.0), 0.0)


def weighted(xp: Any, weights: Any, log_joints: Any) -> Any:
    r"""$\sum_k w_k \ln J_k$ over the last axis of both; the others broadcast.

    At the rungs of a table (M, K): `weighted(xp, table, log_joints[..., None, :])` is (..., M). Model by model, so that
    no array of all three sizes is made.
    """
    total = times(xp, weights[..., 0], log_joints[..., 0])
    for k in range(1, log_joints.shape[-1]):
        total = total + times(xp, weights[..., k], log_joints[..., k])
    return total


def rung_given(xp: Any, uniform: Any, log_densities: Any) -> Any:
    """The rung drawn from p ∝ e^log_densities (..., M) by inverting its cumulative sum at `uniform` (...)."""
    p = xp.exp(log_densities - xp.max(log_densities, axis=-1, keepdims=True))
    cumulative = xp.cumsum(p / xp.sum(p, axis=-1, keepdims=True), axis=-1)
    # Against the last sum, not 1: rounding must not leave a gap above the last rung.
    return xp.sum(uniform[..., None] * cumulative[..., -1:] >= cumulative, axis=-1)
