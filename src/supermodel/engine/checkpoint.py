"""A run as arrays in a file, and back: what was killed goes on as if it had not been, to the bit.

Everything random is drawn from (seed, stream, call number), so no generator needs to be stored. Models and data are not
stored (they are code); their fingerprints are, and the likelihood is tried again at two stored points: a run is resumed
only with what it was begun with.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.embedding.reference import Hills, Reference
from supermodel.embedding.warp import Conditional, Warp
from supermodel.engine.edge import Block, Edge
from supermodel.engine.explore import Look, Pilot
from supermodel.engine.kernels import KERNELS, State, Tuning
from supermodel.engine.network import joined
from supermodel.engine.policy import CHAINS
from supermodel.engine.roughness import Roughness
from supermodel.engine.run import Arm, Run, canonical
from supermodel.engine.rungs import Gap
from supermodel.errors import StorageError
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint
from supermodel.results.fingerprint import fingerprint
from supermodel.results.storage import load_arrays, save_arrays
from supermodel.verdict.examine import examine

KIND = "checkpoint 2"
TRIED = 2  # stored points at which a likelihood is tried again


def identity(run: Any) -> dict[str, Any]:
    """What must be the same for a run to be resumed."""
    return {
        "seed": run.seed,
        "share": run.share,
        "explore": getattr(run, "explore", "auto"),
        "data": fingerprint(run.data),
        "models": {name: {p: q.description for p, q in model.priors.items()} for name, model in run.models.items()},
    }


def write(run: Run, path: str | os.PathLike[str]) -> None:
    """Put the run, as it stands between two blocks, into a file."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    for i, (joint, (points, values)) in enumerate(run.probes):
        tried = joint.space.log_prior_at(points[:TRIED])
        groups[f"probe{i}"] = {"points": points, "log_likelihood": values, "log_prior": tried}
    for i, p in enumerate(run.pilots):
        groups[f"pilot{i}"] = _pilot_arrays(p)
    for i, arm in enumerate(run.arms):
        groups[f"arm{i}"] = _arm_arrays(arm)
    attrs = {
        "kind": KIND,
        "identity": identity(run),
        "order": [joint.name for joint, _ in run.probes],
        "evaluations": run.meter.evaluations,
        "gradients": run.meter.gradients,
        "rejected": {joint.name: joint.rejected for joint, _ in run.probes},
        "pilots": [_pilot_attributes(p) for p in run.pilots],
        "arms": [_arm_attributes(arm) for arm in run.arms],
    }
    save_arrays(path, groups, attrs)


WARPS = {kind.__name__: kind for kind in (Warp, Conditional)}


def _pilot_arrays(p: Pilot) -> dict[str, np.ndarray]:
    arrays = {"points": p.points, "log_joint": p.log_joint}
    arrays |= {f"warp_{name}": np.asarray(value) for name, value in p.warp._asdict().items()}
    return arrays | {f"hills_{name}": np.asarray(value) for name, value in p.reference.hills._asdict().items()}


def _pilot_attributes(p: Pilot) -> dict[str, Any]:
    return {
        "name": p.name,
        "warp": type(p.warp).__name__,
        "prior_share": float(p.reference.prior_share),
        "spread": float(p.spread),
        "looks": [list(look) for look in p.looks],
        "is_agreed": bool(p.is_agreed),
        "step": float(p.step),
        "acceptance": float(p.acceptance),
        "roughness": list(p.roughness),
    }


def _restored_pilot(joint: Joint, g: dict[str, np.ndarray], row: dict[str, Any]) -> Pilot:
    kind = WARPS[row["warp"]]
    warp = kind(*(g[f"warp_{name}"] for name in kind._fields))
    hills = Hills(*(g[f"hills_{name}"] for name in Hills._fields))
    reference = Reference(hills._replace(dof=float(hills.dof)), row["prior_share"])
    looks = [Look(*look) for look in row["looks"]]
    return Pilot(
        joint, warp, reference, g["points"], g["log_joint"], row["spread"], looks, row["is_agreed"], row["step"],
        row["acceptance"], roughness=Roughness.of(row.get("roughness", ())),
    )  # fmt: skip


def _arm_arrays(arm: Arm) -> dict[str, np.ndarray]:
    state, edge = arm.edge.state, arm.edge
    arrays = {f"state_{name}": np.asarray(value) for name, value in state._asdict().items()}
    arrays |= {"table": np.asarray(arm.tuning.table), "log_prior": np.asarray(arm.tuning.log_prior)}
    if edge.blocks:
        record = edge.record()
        arrays |= {"u": record.u, "log_joints": record.log_joints, "rung": record.rung}
        arrays["acceptances"] = np.array([b.acceptance for b in edge.blocks])
        arrays["lengths"] = np.array([b.rung.shape[1] for b in edge.blocks])
    return arrays


def _arm_attributes(arm: Arm) -> dict[str, Any]:
    edge = arm.edge
    return {
        "first": arm.first,
        "second": -1 if arm.second is None else arm.second,
        "gap": list(map(float, arm.gap)),
        "kernel": edge.kernel.name,
        "is_used": arm.is_used,
        "stream": edge.stream,
        "calls": edge.calls,
        "evaluations": edge.evaluations,
        "step": float(arm.tuning.step),
        "leapfrogs": int(arm.tuning.leapfrogs),
    }


@in_float64
def resume(run: Run, path: str | os.PathLike[str]) -> bool:
    """Fill `run` from the file if there is one; refuse one that belongs to another run. False: nothing was there."""
    stored = read(path, KIND, identity(run))
    if stored is None:
        return False
    groups, attrs = stored
    joints = {joint.name: joint for joint in canonical(run.models, run.data)}
    for i, name in enumerate(attrs["order"]):
        known = (groups[f"probe{i}"]["points"], groups[f"probe{i}"]["log_likelihood"])
        points, values = known[0][:TRIED], known[1][:TRIED]
        check_densities(joints[name], points, values, groups[f"probe{i}"]["log_prior"], path, run.executor)
        run.probes.append((joints[name], known))
    for i, row in enumerate(attrs["pilots"]):
        run.pilots.append(_restored_pilot(joints[row["name"]], groups[f"pilot{i}"], row))
    run.meter.evaluations, run.meter.gradients = attrs["evaluations"], attrs["gradients"]
    for name, joint in joints.items():
        joint.rejected = attrs.get("rejected", {}).get(name, 0)
    run.arms = [_restored_arm(run, groups[f"arm{i}"], row) for i, row in enumerate(attrs["arms"])]
    return True


def read(path: str | os.PathLike[str], kind: str, now: dict[str, Any]) -> tuple[dict, dict] | None:
    """Groups and attributes of a checkpoint of this kind and run, or None if there is no file."""
    if not Path(path).exists():
        return None
    groups, attrs = load_arrays(path)
    if attrs.get("kind") != kind:
        raise StorageError(
            f"{str(path)!r} is a file of supermodel, but not a checkpoint that this method can resume (it says "
            f"{attrs.get('kind')!r}, not {kind!r}). Give another path to `checkpoint`, or remove the file."
        )
    _check_identity(now, attrs["identity"], path)
    return groups, attrs


def _check_identity(now: dict[str, Any], stored: dict[str, Any], path) -> None:
    """Refuse a file that was begun with something else."""
    differ = [key for key in now if now[key] != stored.get(key)]
    if differ:
        told = "; ".join(f"{key}: {stored.get(key)!r} then, {now[key]!r} now" for key in differ)
        raise StorageError(
            f"the checkpoint {str(path)!r} belongs to another run: {told}. Mixing the two would give a wrong answer. "
            "Give another path to `checkpoint`, or remove the file to begin anew."
        )


def check_densities(joint: Joint, points, log_likelihood: np.ndarray, log_prior: np.ndarray, path, executor) -> None:
    """Refuse a file whose stored densities at a few points are not those of the model that is given now."""
    for what, then, now in (
        ("likelihood", log_likelihood, joint.log_likelihood_at(points, executor)),
        ("prior", log_prior, joint.space.log_prior_at(points)),
    ):
        if not np.allclose(now, then, rtol=1e-9, atol=1e-9):
            raise StorageError(
                f"the checkpoint {str(path)!r} belongs to another run: at a stored point the log {what} of model "
                f"{joint.name!r} was {then[0]:.10g} and is now {now[0]:.10g}, so the {what} has changed. "
                "Give another path to `checkpoint`, or remove the file to begin anew."
            )


def _restored_arm(run: Run, g: dict[str, np.ndarray], row: dict[str, Any]) -> Arm:
    second = None if row["second"] < 0 else row["second"]
    pair = joined(run.pilots[row["first"]], None if second is None else run.pilots[second], run.share)
    edge = Edge(pair, KERNELS[row["kernel"]], CHAINS, row["stream"], run.meter)
    edge.state = State(*(g[f"state_{name}"] for name in State._fields))
    edge.calls, edge.evaluations = row["calls"], row["evaluations"]
    if "u" in g:
        ends = np.cumsum(g["lengths"])[:-1]
        parts = [np.split(g[name], ends, axis=1) for name in ("u", "log_joints", "rung")]
        edge.blocks = [Block(u, j, r, float(a)) for u, j, r, a in zip(*parts, g["acceptances"], strict=True)]
    tuning = Tuning(g["table"], g["log_prior"], row["step"], row["leapfrogs"])
    arm = Arm(row["first"], second, edge, Gap(*row["gap"]), tuning, is_used=row["is_used"])
    if edge.blocks:
        arm.report = examine(edge.draws(tuning))
    return arm
