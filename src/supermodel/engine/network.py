r"""Which pairs are joined: the tree of least cost over all models and the reference of evidence 1, and what closes its cycles.

An edge of thermodynamic length $\Lambda$ and c evaluations a step costs about $c \Lambda^2$ for a given error. Models whose
posteriors resemble their reference hang on it directly; models that resemble each other more than they resemble it (high
dimension, shared parameters) are joined to each other. Both ends of such a direct edge may stand on the same cut-off warp, so
it is believed only as long as it agrees with the way through the reference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supermodel.embedding.supermodel import Supermodel
from supermodel.engine.edge import with_reference
from supermodel.engine.explore import Pilot
from supermodel.engine.meter import Meter
from supermodel.engine.policy import BATCH, CHAINS, DIRECT, DIRECT_MANY, FIRST_BLOCKS, MANY, STEPS
from supermodel.engine.rungs import Gap, gap, independent_acceptance


class Measured(NamedTuple):
    """A pair with the gap between its ends, from draws of either, and those draws as starts."""

    pair: Supermodel
    gap: Gap
    starts: tuple[np.ndarray, np.ndarray]


def candidates(pilots: list[Pilot], target_error: float) -> list[tuple[int, int]]:
    """Every model with the reference; two models with each other where both are far from it but share parameters.

    Far: the first blocks of an edge to the reference would not reach the target.
    """
    root = len(pilots)
    least = max(target_error * np.sqrt(FIRST_BLOCKS * STEPS * CHAINS / 2), DIRECT if root <= MANY else DIRECT_MANY)
    far = [i for i, p in enumerate(pilots) if p.spread > least and p.is_normal]
    names = [set(p.joint.space.names) for p in pilots]
    return [(i, root) for i in range(root)] + [(i, j) for i in far for j in far if i < j and names[i] & names[j]]


def joined(first: Pilot, second: Pilot | None, share: bool | list[str] = True) -> Supermodel:
    """The `product` supermodel of two models, or of one and its reference, in warped coordinates."""
    if second is None:
        return with_reference(first.joint, first.warp, first.reference)
    models = {p.name: p.joint.model for p in (first, second)}
    names = {n for model in models.values() for n in model.space.names}
    shared = share if isinstance(share, bool) else [n for n in share if n in names]
    pair = Supermodel(models, combine="product", data=first.joint.data, warps=(first.warp, second.warp), share=shared)
    pair.joints = (first.joint, second.joint)  # compiled already
    return pair


def measure(
    pair: Supermodel, first: Pilot, second: Pilot | None, rng: np.random.Generator, meter: Meter, n: int = BATCH
) -> Measured:
    """The gap between two ends, from `n` draws of either."""
    at_first = _extended(pair, 0, first, n, rng)
    if second is None:
        normal, uniform = rng.standard_normal((n, pair.dimension)), rng.random(n)
        x = first.joint.space.sample_prior(rng, n)
        stretch = _stretch(first, rng, n)
        at_second = first.reference.transform(np, normal, uniform, stretch, first.warp.inverse(x))
    else:
        at_second = _extended(pair, 1, second, n, rng)
    with np.errstate(over="ignore", invalid="ignore"):
        from_first = _known(pair, 0, first, at_first) - pair.log_joint_at(1, at_first, meter.likelihood)
        own = (
            pair.log_joint_at(1, at_second, meter.likelihood) if second is None else _known(pair, 1, second, at_second)
        )
        from_second = pair.log_joint_at(0, at_second, meter.likelihood) - own
    if second is None:
        first.acceptance = independent_acceptance(from_first, from_second)
    return Measured(pair, gap(from_first, from_second), (at_first, at_second))


def _stretch(pilot: Pilot, rng: np.random.Generator, n: int) -> np.ndarray:
    from supermodel.embedding.reference import stretches

    return stretches(rng, float(pilot.reference.hills.dof), (n,))


def _extended(pair: Supermodel, k: int, pilot: Pilot, n: int, rng: np.random.Generator) -> np.ndarray:
    """Points of the pair at draws of model k, the coordinates it does not own from their companion."""
    u = rng.standard_normal((n, pair.dimension))
    u[:, pair.places[k]] = pair.warps[k].inverse(pilot.points[np.arange(n) % len(pilot.points)])
    return u


def _known(pair: Supermodel, k: int, pilot: Pilot, u: np.ndarray) -> np.ndarray:
    """ln J_k at the pilot's own draws, which have been evaluated already."""
    log_det = pair.warps[k].log_det_at(u[:, pair.places[k]])
    return pilot.log_joint[np.arange(len(u)) % len(pilot.log_joint)] + log_det + pair.log_companion_at(k, u)


def grow(n: int, costs: dict[tuple[int, int], float]) -> list[tuple[int, int]]:
    """Prim's algorithm from the reference (node n): the tree of least cost over nodes 0..n, nearest edges first."""
    reached, edges = {n}, []
    while len(reached) < n + 1:
        open_ends = [
            (cost, a, b)
            for (a, b), cost in costs.items()
            if (a in reached) != (b in reached)
        ]  # fmt: skip
        _, a, b = min(open_ends)
        reached |= {a, b}
        edges.append((a, b))
    return edges
