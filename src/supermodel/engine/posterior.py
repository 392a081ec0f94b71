r"""The posterior of each model from the record of its edges, by reweighting: no new likelihood is called.

Every draw on an edge, whatever its rung, serves both ends with the weight $J_k(u) / \sum_m n_m J(u; w_m) / Z_m$.
"""

from __future__ import annotations

import numpy as np

from supermodel.engine.run import Arm, Run
from supermodel.estimation.ladder import multistate, rung_log_densities
from supermodel.results.posterior import ModelPosterior


def posteriors(run: Run) -> dict[str, ModelPosterior]:
    """The weighted draws of every model, from the edge that tells most about it."""
    result = {}
    for k, pilot in enumerate(run.pilots):
        candidates = [(arm, 0) for arm in run.arms if arm.first == k] + [
            (arm, 1) for arm in run.arms if arm.second == k
        ]
        options = [_from_edge(run, arm, end) for arm, end in candidates]
        best = max(options, key=lambda p: p.effective_size)
        result[pilot.name] = best
    return {name: result[name] for name in run.models}


def _from_edge(run: Run, arm: Arm, end: int) -> ModelPosterior:
    record, tuning, pair = arm.edge.record(), arm.tuning, arm.edge.pair
    used = np.isfinite(np.asarray(tuning.log_prior))
    table = np.asarray(tuning.table)[used]
    fit = multistate(record.log_joints, record.rung, table)
    densities = rung_log_densities(record.log_joints, table)
    counts = np.bincount(record.rung.ravel(), minlength=len(table))
    with np.errstate(divide="ignore"):
        mixture = np.logaddexp.reduce(np.log(counts) - fit.log_z + densities, axis=-1)
    log_weights = (record.log_joints[..., end] - mixture).ravel()
    log_weights -= np.logaddexp.reduce(log_weights)
    u = record.u.reshape(record.rung.size, pair.dimension)
    joint, warp = pair.joints[end], pair.warps[end]
    x = warp.points(u[:, pair.places[end]])
    companion = -0.5 * np.sum(u[:, pair.rest[end]] ** 2 + np.log(2 * np.pi), axis=1)
    log_prior = joint.space.log_prior_at(x)
    log_likelihood = record.log_joints[..., end].ravel() - warp.log_det_value() - companion - log_prior
    values = joint.space.values_at(x)
    names = list(run.models[joint.name].space.names)  # the user's order, not the packing's
    chains, n = record.rung.shape
    return ModelPosterior(
        joint.name, {name: values[name] for name in names}, log_weights, log_likelihood, log_prior,
        np.repeat(np.arange(chains), n), run.arms.index(arm),
    )  # fmt: skip
