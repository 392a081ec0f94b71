"""A run as arrays in a file, and back: what was killed goes on as if it had not been, to the bit.

Everything random is drawn from (seed, stream, call number), so no generator needs to be stored. Models and data are not
stored (they are code); their fingerprints are, and the likelihood is tried again at two stored points: a run is resumed
only with what it was begun with.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.embedding.warp import Warp
from supermodel.engine.edge import Block, Edge
from supermodel.engine.kernels import State, Tuning
from supermodel.engine.mixture import Mixture
from supermodel.engine.pilot import Pilot
from supermodel.engine.run import CHAINS, Arm, Run, canonical
from supermodel.engine.rungs import Gap
from supermodel.engine.tree import pair_supermodel
from supermodel.errors import StorageError
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint
from supermodel.results.fingerprint import fingerprint
from supermodel.results.storage import load_arrays, save_arrays
from supermodel.verdict.examine import examine

KIND = "checkpoint 1"
TRIED = 2  # stored points at which a likelihood is tried again


def identity(run: Any) -> dict[str, Any]:
    """What must be the same for a run to be resumed."""
    return {
        "seed": run.seed,
        "share": run.share,
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
        groups[f"pilot{i}"] = {
            "mean": np.asarray(p.warp.mean), "factor": np.asarray(p.warp.factor), "points": p.points,
            "log_joint": p.log_joint,
        }  # fmt: skip
        if p.mixture is not None:
            groups[f"pilot{i}"] |= {f"mixture_{name}": value for name, value in p.mixture._asdict().items()}
    for i, arm in enumerate(run.arms):
        groups[f"arm{i}"] = _arm_arrays(arm)
    attrs = {
        "kind": KIND,
        "identity": identity(run),
        "order": [joint.name for joint, _ in run.probes],
        "spent": run.spent,
        "pilots": [_scalars(p, ("joint", "warp", "points", "log_joint", "mixture")) for p in run.pilots],
        "arms": [_arm_attributes(arm) for arm in run.arms],
    }
    save_arrays(path, groups, attrs)


def _scalars(item: Any, leave: tuple[str, ...]) -> dict[str, Any]:
    row = {f.name: getattr(item, f.name) for f in fields(item) if f.name not in leave}
    return {
        k: v if isinstance(v, str | list) else float(v) if isinstance(v, float) else int(v) for k, v in row.items()
    } | {"name": item.name}


def _arm_arrays(arm: Arm) -> dict[str, np.ndarray]:
    state, edge = arm.edge.state, arm.edge
    arrays = {f"state_{name}": np.asarray(value) for name, value in state._asdict().items()}
    arrays |= {"table": np.asarray(arm.tuning.table), "log_prior": np.asarray(arm.tuning.log_prior)}
    if edge.blocks:
        record = edge.record()
        arrays |= {"u": record.u, "log_joints": record.log_joints, "rung": record.rung}
        arrays["acceptances"] = np.array([b.acceptance for b in edge.blocks])
    return arrays


def _arm_attributes(arm: Arm) -> dict[str, Any]:
    edge = arm.edge
    return {
        "first": arm.first,
        "second": -1 if arm.second is None else arm.second,
        "gap": list(map(float, arm.gap)),
        "kernel": edge.kernel,
        "stream": edge.stream,
        "calls": edge.calls,
        "evaluations": edge.evaluations,
        "gradients": edge.gradients,
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
        g = groups[f"pilot{i}"]
        joint = joints[row.pop("name")]
        notes = [tuple(note) for note in row.pop("notes")]
        warp = Warp(g["mean"], g["factor"])
        hills = Mixture(*(g[f"mixture_{name}"] for name in Mixture._fields)) if "mixture_means" in g else None
        run.pilots.append(Pilot(joint, warp, g["points"], g["log_joint"], notes=notes, mixture=hills, **row))
    run.spent = attrs["spent"]
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
    pair = pair_supermodel(run.pilots[row["first"]], None if second is None else run.pilots[second], run.share)
    mixture = run.pilots[row["first"]].mixture if second is None else None
    edge = Edge(pair, row["kernel"], CHAINS, row["stream"], run.executor, mixture)
    edge.state = State(*(g[f"state_{name}"] for name in State._fields))
    edge.calls, edge.evaluations, edge.gradients = row["calls"], row["evaluations"], row["gradients"]
    if "u" in g:
        n = len(g["acceptances"])
        parts = [np.split(g[name], n, axis=1) for name in ("u", "log_joints", "rung")]
        edge.blocks = [Block(u, j, r, float(a)) for u, j, r, a in zip(*parts, g["acceptances"], strict=True)]
    tuning = Tuning(g["table"], g["log_prior"], row["step"], row["leapfrogs"])
    arm = Arm(row["first"], second, edge, Gap(*row["gap"]), tuning)
    if edge.blocks:
        arm.report = examine(edge.draws(tuning))
    return arm
