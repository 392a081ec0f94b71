r"""Which pairs of models are joined: the tree of least cost over all models and the reference of evidence 1.

An edge of thermodynamic length $\Lambda$ and c evaluations a step costs about $c \Lambda^2$ for a given error. Models whose
posteriors resemble $N(0, I)$ hang on the reference directly; models that resemble each other more than they resemble
it (high dimension, shared parameters) are joined to each other.
"""

from __future__ import annotations

import numpy as np

from supermodel.embedding import warp as warps
from supermodel.embedding.supermodel import Supermodel
from supermodel.engine.edge import REFERENCE, no_data_model
from supermodel.engine.mixture import Mixture
from supermodel.engine.pilot import BATCH, Pilot, evaluate_in_batches
from supermodel.engine.rungs import Gap, gap, independent_acceptance


def pair_supermodel(first: Pilot, second: Pilot | None, share: bool | list[str] = True) -> Supermodel:
    """The `product` supermodel of two models (or of one and the reference) in warped coordinates."""
    models = {first.name: first.joint.model}
    models[REFERENCE if second is None else second.name] = no_data_model() if second is None else second.joint.model
    both = (first.warp, warps.identity(0) if second is None else second.warp)
    names = {n for model in models.values() for n in model.space.names}
    shared = share if isinstance(share, bool) else [n for n in share if n in names]
    pair = Supermodel(models, combine="product", data=first.joint.data, warps=both, share=shared)
    # The joints of the pilots are compiled already: keep them.
    pair.joints = (first.joint, pair.joints[1] if second is None else second.joint)
    return pair


def extended(pair: Supermodel, k: int, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Points u of the pair at draws x of model k, the coordinates it does not own from their companion."""
    u = rng.standard_normal((len(x), pair.dimension))
    u[:, pair.places[k]] = pair.warps[k].inverse(x)
    return u


def log_joint_of(pair: Supermodel, k: int, u: np.ndarray, executor=None, mixture: Mixture | None = None) -> np.ndarray:
    """ln J_k at points of the pair."""
    joint, warp = pair.joints[k], pair.warps[k]
    x = warp.points(u[:, pair.places[k]])
    companion = -0.5 * np.sum(u[:, pair.rest[k]] ** 2 + np.log(2 * np.pi), axis=1)
    if joint.name == REFERENCE:
        return companion if mixture is None else mixture.log_density(np, u)
    likelihood = evaluate_in_batches(joint, x, executor)
    return likelihood + joint.space.log_prior_at(x) + warp.log_det_value() + companion


def measure(
    pair: Supermodel, first: Pilot, second: Pilot | None, rng, executor=None
) -> tuple[Gap, list[np.ndarray], int]:
    """The gap between two ends from draws of either; the draws (as starts); the evaluations spent."""
    n = BATCH
    u_first = extended(pair, 0, first.points[:n], rng)
    log_det = pair.warps[0].log_det_value()
    rest = -0.5 * np.sum(u_first[:, pair.rest[0]] ** 2 + np.log(2 * np.pi), axis=1)
    j_first = first.log_joint[:n] + log_det + rest  # known already
    u_second = rng.standard_normal((n, pair.dimension)) if second is None else extended(pair, 1, second.points[:n], rng)
    if second is None:
        if first.mixture is not None:
            u_second = first.mixture.transform(np, u_second, rng.random(n))
        j_second = log_joint_of(pair, 1, u_second, mixture=first.mixture)
    else:
        rest = -0.5 * np.sum(u_second[:, pair.rest[1]] ** 2 + np.log(2 * np.pi), axis=1)
        j_second = second.log_joint[:n] + pair.warps[1].log_det_value() + rest
    across_first = j_first - log_joint_of(pair, 1, u_first, executor, first.mixture)
    across_second = log_joint_of(pair, 0, u_second, executor) - j_second
    if second is None:
        first.acceptance = independent_acceptance(across_first, across_second)
    paid = n + (n if second is not None else 0)
    return gap(across_first, across_second), [u_first, u_second], paid


def grow(pilots: list[Pilot], lengths: dict[tuple[int, int], float], root: int) -> list[tuple[int, int]]:
    """Prim's algorithm from the reference (`root`): edges (nearer the root second) of the tree of least cost."""
    reached, edges = {root}, []
    while len(reached) < len(pilots) + 1:
        candidates = [
            (cost, i, j)
            for (a, b), cost in lengths.items()
            for i, j in ((a, b), (b, a))
            if j in reached and i not in reached
        ]
        _, i, j = min(candidates)
        reached.add(i)
        edges.append((i, j))
    return edges
