"""A run as arrays in a file, and back: what was killed goes on as if it had not been, to the bit.

Everything random is drawn from (seed, stream, call number), so no generator needs to be stored. Models and data are not
stored (they are code); their fingerprints are, and the likelihood is tried again at stored points of prior and posterior: a
run is resumed only with what it was begun with.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.embedding.reference import Hills, Reference
from supermodel.embedding.warp import Bent, Conditional, NormalGiven, Warp
from supermodel.engine.arm import Arm
from supermodel.engine.edge import Block, Edge
from supermodel.engine.explore import Look, Pilot
from supermodel.engine.explore.capture import Capture
from supermodel.engine.explore.cloud import Warped
from supermodel.engine.explore.pairs import Pairs
from supermodel.engine.explore.profile import Profile
from supermodel.engine.kernels import KERNELS, State, Tuning
from supermodel.engine.network import joined
from supermodel.engine.policy import BOLD, CHAINS
from supermodel.engine.probe import canonical
from supermodel.engine.roughness import Roughness
from supermodel.engine.run import Run
from supermodel.engine.rungs import Gap
from supermodel.errors import StorageError
from supermodel.jax_scope import in_float64
from supermodel.models.folded import Folded
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Canonical, as_data, from_data
from supermodel.results.fingerprint import fingerprint
from supermodel.results.storage import expect, expect_arrays, load_arrays, reading, save_arrays
from supermodel.verdict.examine import Report

KIND = "checkpoint 2"
TRIED = 2  # prior draws at which a likelihood is tried again
TRIED_HIGH = 4  # and points of the posterior, from the highest down to the median


def identity(run: Any) -> dict[str, Any]:
    """What must be the same for a run to be resumed."""
    return {
        "seed": run.seed,
        "share": run.share,
        "explore": getattr(run, "explore", "auto"),
        "data": fingerprint(run.data),
        "models": {
            name: {p: q.description for p, q in model.priors.items()}
            for name, model in getattr(run, "given", run.models).items()
        },
        "symmetries": {
            name: [str(model.exchangeable), str(model.periodic)]
            for name, model in getattr(run, "given", run.models).items()
        },
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
        "left_out": list(run.left_out),
        "cut_short": run.cut_short,
        "order": [joint.name for joint, _ in run.probes],
        "evaluations": run.meter.evaluations,
        "gradients": run.meter.gradients,
        "rejected": {joint.name: joint.rejected for joint, _ in run.probes},
        "pace": run.pace,
        "unread": run.unread,
        "pilots": [_pilot_attributes(p) for p in run.pilots],
        "arms": [_arm_attributes(arm) for arm in run.arms],
    }
    save_arrays(path, groups, attrs)


WARPS = {kind.__name__: kind for kind in (Warp, Bent, Conditional, NormalGiven)}


def _pilot_arrays(p: Pilot) -> dict[str, np.ndarray]:
    arrays = {"points": p.points, "log_joint": p.log_joint}
    arrays |= {} if p.log_weights is None else {"log_weights": p.log_weights}
    arrays |= {f"warp_{name}": np.asarray(value) for name, value in p.warp._asdict().items()}
    for i, density in enumerate(p.new):
        parts = [density] if isinstance(density, Profile) else [density.warp, density.hills]
        arrays |= {f"new{i}_{name}": np.asarray(value) for part in parts for name, value in part._asdict().items()}
    for i, pair in enumerate(p.pairs):
        arrays |= {f"pair{i}_{name}": np.asarray(value) for name, value in pair._asdict().items()}
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
        "is_concave": bool(p.is_concave),
        "capture": list(p.capture),
        "vouched": [float(p.log_evidence), float(p.vouched)] if np.isfinite(p.vouched) else [],
        "doubt": float(p.doubt),
        "roughness": list(p.roughness),
        "symmetries": [as_data(symmetry) for symmetry in p.symmetries],
        "is_folded": p.joint.origin is not None,
        "base": "" if p.base is None else p.base.name,
        "highest": [float(p.highest)] if np.isfinite(p.highest) else [],
    }


def _restored_pilot(joint: Joint, g: dict[str, np.ndarray], row: dict[str, Any], known: dict[str, Pilot]) -> Pilot:
    declared = joint.model.exchangeable
    canonical = next((s for s in declared if isinstance(s, Canonical)), None) if declared else None
    symmetries = tuple(from_data(s, canonical) for s in row.get("symmetries", ()))
    if row.get("is_folded", False):
        joint = joint.folded(Folded(joint.space, symmetries))
    d, n_hills = joint.dimension, len(g["hills_log_weights"])
    expect_arrays(g, {"points": (len(g["log_joint"]), d), "log_joint": (None,), "hills_log_weights": (None,)})
    expect_arrays(g, {"hills_means": (n_hills, d), "hills_dof": ()})
    expect_arrays(g, dict.fromkeys(("hills_factors", "hills_inverses"), (n_hills, d, d)))
    kind = WARPS[row["warp"]]
    fields = [n for n in kind._fields if f"warp_{n}" in g or n not in kind._field_defaults]  # earlier ones had no skew
    warp = kind(*(g[f"warp_{name}"] for name in fields))
    hills = Hills(*(g[f"hills_{name}"] for name in Hills._fields))
    reference = Reference(hills._replace(dof=float(hills.dof)), float(row["prior_share"]))
    expect(warp.inverse(g["points"]).shape == g["points"].shape, "a warp that does not fit its points")
    looks = [Look(str(name), float(value), float(error), int(n)) for name, value, error, n in row["looks"]]
    return Pilot(
        joint, warp, reference, g["points"], g["log_joint"], float(row["spread"]), looks, bool(row["is_agreed"]),
        float(row["step"]), float(row["acceptance"]), bool(row.get("is_concave", False)), Capture(*row.get("capture", ())),
        *(row.get("vouched") or (np.nan, np.inf)), float(row.get("doubt", 0.0)), symmetries,
        g.get("log_weights"), known.get(row.get("base", "")), *(row.get("highest") or [-np.inf]), _restored_densities(g),
        _restored_pairs(g), Roughness.of(row.get("roughness", ())),
    )  # fmt: skip


def _restored_densities(g: dict[str, np.ndarray]) -> tuple[Any, ...]:
    """What was known of one component that the base lacks."""
    found: list[Any] = []
    while any(name.startswith(f"new{len(found)}_") for name in g):
        label = f"new{len(found)}_"
        if f"{label}edges" in g:
            found.append(Profile(*(g[label + name] for name in Profile._fields)))
            continue
        warp, hills = (kind(*(g[label + name] for name in kind._fields)) for kind in (Warp, Hills))
        found.append(Warped(warp, hills._replace(dof=float(hills.dof))))
    return tuple(found)


def _restored_pairs(g: dict[str, np.ndarray]) -> tuple[Pairs, ...]:
    """What was known of two components in the place of one."""
    n = len({name.partition("_")[0] for name in g if name.startswith("pair")})
    return tuple(Pairs(*(g[f"pair{i}_{name}"] for name in Pairs._fields)) for i in range(n))


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
        "bold": float(arm.tuning.bold),
        "owed": list(arm.owed),
        "chapters": [vars(report) for report in arm.chapters],
    }


@in_float64
def resume(run: Run, path: str | os.PathLike[str]) -> bool:
    """Fill `run` from the file if there is one; refuse one that belongs to another run. False: nothing was there."""
    stored = read(path, KIND, identity(run))
    if stored is None:
        return False
    groups, attrs = stored
    joints = {joint.name: joint for joint in canonical(run.models, run.data)}
    with reading(path):
        order, rows = attrs["order"], attrs["pilots"]
        run.leave_out(map(str, attrs.get("left_out", ())))
        run.cut_short = str(attrs.get("cut_short", ""))
        expect(not order or sorted(order) == sorted(run.models), "the order of the models")
        expect([r["name"] for r in rows] == order[: len(rows)], "pilots of other models")
        for i, name in enumerate(order):
            probe, d = groups[f"probe{i}"], joints[name].dimension
            expect_arrays(
                probe, {"points": (None, d), "log_likelihood": (len(probe["points"]),), "log_prior": (TRIED,)}
            )
            run.probes.append((joints[name], (probe["points"], probe["log_likelihood"])))
        for i, row in enumerate(rows):
            joint = joints[row["name"]]
            run.pilots.append(_restored_pilot(joint, groups[f"pilot{i}"], row, {p.name: p for p in run.pilots}))
        run.meter.evaluations, run.meter.gradients = int(attrs["evaluations"]), int(attrs["gradients"])
        run.arms = [_restored_arm(run, groups[f"arm{i}"], row) for i, row in enumerate(attrs["arms"])]
        run.pace = float(attrs.get("pace", 0.0))
        run.unread = {str(name): tuple(map(str, each)) for name, each in attrs.get("unread", {}).items()}
        for name, joint in joints.items():
            joint.unread = run.unread.get(name, ())
        rejected = {str(name): int(n) for name, n in attrs.get("rejected", {}).items()}
    for i, (joint, (points, values)) in enumerate(run.probes):
        prior = groups[f"probe{i}"]["log_prior"]
        check_densities(joint, points[:TRIED], values[:TRIED], prior, path, run.executor)
    for pilot in run.pilots:
        _check_peak(pilot, path, run.executor)
    for name, joint in joints.items():  # after the trials, which may count too
        joint.rejected = rejected.get(name, 0)
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
    with reading(path):
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
    _check_same(joint, "likelihood", points, log_likelihood, joint.log_likelihood_at(points, executor), path)
    _check_same(joint, "prior", points, log_prior, joint.space.log_prior_at(points), path)


def _check_peak(pilot: Pilot, path: Any, executor: Any) -> None:
    """The same where it matters: at the highest point of the posterior, and at others down to the median."""
    order = np.argsort(pilot.log_joint, kind="stable")
    rows = order[np.unique(np.linspace(len(order) // 2, len(order) - 1, TRIED_HIGH).astype(int))]
    points, then = pilot.points[rows], pilot.log_joint[rows]
    prior = pilot.joint.space.log_prior_at(points)
    now = pilot.joint.log_likelihood_at(points, executor)
    _check_same(pilot.joint, "likelihood", points, then - prior, now, path, SCATTER * pilot.roughness.noise)


SCATTER = 10.0  # times the noise of a rough likelihood that two calls of it may differ by


def _check_same(
    joint: Joint, what: str, points, then: np.ndarray, now: np.ndarray, path: Any, noise: float = 0.0
) -> None:
    differ = ~np.isclose(now, then, rtol=1e-9, atol=1e-9 + noise)
    if not np.any(differ):
        return
    i = int(np.argmax(differ))
    at = {name: np.round(value[i], 6).tolist() for name, value in joint.space.values_at(points).items()}
    raise StorageError(
        f"the checkpoint {str(path)!r} belongs to another run: at {at} the log {what} of model {joint.name!r} was "
        f"{then[i]:.10g} and is now {now[i]:.10g}, so the {what} has changed. Mixing the two would give a wrong answer. "
        "Give another path to `checkpoint`, or remove the file to begin anew."
    )


def _restored_arm(run: Run, g: dict[str, np.ndarray], row: dict[str, Any]) -> Arm:
    first, second = int(row["first"]), None if row["second"] < 0 else int(row["second"])
    pair = joined(run.chained[first], None if second is None else run.chained[second], run.share)
    _check_arm(pair.dimension, g)
    edge = Edge(pair, KERNELS[row["kernel"]], CHAINS, int(row["stream"]), run.meter)
    edge.state = State(*(g[f"state_{name}"] for name in State._fields))
    edge.calls, edge.evaluations = int(row["calls"]), int(row["evaluations"])
    if "u" in g:
        ends = np.cumsum(g["lengths"])[:-1]
        parts = [np.split(g[name], ends, axis=1) for name in ("u", "log_joints", "rung")]
        edge.blocks = [Block(u, j, r, float(a)) for u, j, r, a in zip(*parts, g["acceptances"], strict=True)]
    tuning = Tuning(g["table"], g["log_prior"], float(row["step"]), int(row["leapfrogs"]), float(row.get("bold", BOLD)))
    arm = Arm(first, second, edge, Gap(*map(float, row["gap"])), tuning, is_used=bool(row["is_used"]))
    blocks, steps = row.get("owed", (0, 0))  # earlier versions looked after every addition only, and forgot nothing
    arm.owed, arm.chapters = (int(blocks), int(steps)), [Report(**figures) for figures in row.get("chapters", ())]
    if edge.blocks:
        arm.look()
    return arm


def _check_arm(d: int, g: dict[str, np.ndarray]) -> None:
    """`Malformed` unless chains, ladder and record fit each other."""
    rungs = len(g["table"])
    expect_arrays(g, {"table": (rungs, 2), "log_prior": (rungs,)})
    expect_arrays(g, {"state_u": (CHAINS, d), "state_log_joints": (CHAINS, 2)})
    expect_arrays(g, {"state_rung": (CHAINS,)}, "iu")
    gradients = g["state_gradients"]
    expect(gradients.shape in ((CHAINS, 2, d), (CHAINS, 0, 0)), "gradients of another shape")
    visited = [g["state_rung"]]
    if "u" in g:
        n = int(g["lengths"].sum())
        expect_arrays(g, {"u": (CHAINS, n, d), "log_joints": (CHAINS, n, 2), "acceptances": g["lengths"].shape})
        expect_arrays(g, {"rung": (CHAINS, n), "lengths": (None,)}, "iu")
        expect(n > 0 and g["lengths"].min() > 0, "blocks without draws")
        visited.append(g["rung"])
    used = int(np.isfinite(g["log_prior"]).sum())
    expect(all(0 <= r.min() and r.max() < used for r in visited), "a rung beyond the ladder")
