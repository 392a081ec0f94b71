"""A comparison as a file and back: everything but the models' code, to the bit.

Groups of the netCDF file: `comparison` (evidences), `posterior_0...` (weighted draws), `edge_0...` or `chain` (records), `data`
(where it is a mapping of arrays). Names, settings and priors are JSON attributes. Priors of known families come back as
densities, so that prior sensitivity works on a loaded result; others come back as descriptions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.errors import StorageError
from supermodel.estimation.estimate import Evidences
from supermodel.estimation.mbar import multistate, rung_log_densities
from supermodel.jax_scope import in_float64
from supermodel.models.families import FAMILIES, Member, member_of
from supermodel.models.priors import Bijected, as_prior
from supermodel.results.comparison import SCHEMA, Comparison
from supermodel.results.export import plain
from supermodel.results.layout import check_comparison
from supermodel.results.posterior import ModelPosterior
from supermodel.results.record import ChainRecord, EdgeRecord
from supermodel.results.storage import load_arrays, reading, save_arrays
from supermodel.verdict.verdict import Reason, Verdict

KIND = "comparison"
POSTERIOR = ("log_weights", "log_likelihood", "log_prior", "chain")
EDGE = ("table", "log_prior", "rung", "log_joints", "log_anchor")  # the last: since there are anchors
CHAIN = ("weights", "log_shares", "grid", "density")


@dataclass(frozen=True)
class Described:
    """A prior of which a file tells no more than the name."""

    description: str
    shape: tuple[int, ...]


def save(result: Comparison, path: str | os.PathLike[str]) -> None:
    """See `Comparison.save`."""
    groups: dict[str, dict[str, np.ndarray]] = {
        "comparison": {
            "model": np.array(result.names),
            "log_evidence": result.evidences.values,
            "covariance": result.evidences.covariance,
        }
    }
    for k, name in enumerate(result.names):
        posterior = result.posteriors[name]
        arrays = {label: getattr(posterior, label) for label in POSTERIOR}
        groups[f"posterior_{k}"] = arrays | {f"parameter_{i}": v for i, v in enumerate(posterior.parameters.values())}
    for e, edge in enumerate(result.edges):
        groups[f"edge_{e}"] = {label: getattr(edge, label) for label in EDGE if getattr(edge, label) is not None}
    if result.chain is not None:
        groups["chain"] = {label: getattr(result.chain, label) for label in CHAIN}
    columns = _columns(result.data)
    if columns is not None:
        groups["data"] = {f"column_{i}": v for i, v in enumerate(columns.values())}
    attrs = {
        "kind": KIND,
        "schema": result.schema,
        "names": list(result.names),
        "parameters": [list(result.posteriors[name].parameters) for name in result.names],
        "records": [result.posteriors[name].record for name in result.names],
        "edges": [[edge.first, edge.second, plain(edge.report)] for edge in result.edges],
        "chain": None if result.chain is None else [result.chain.is_discrete, plain(result.chain.report)],
        "columns": None if columns is None else list(columns),
        "absolute": result.evidences.absolute,
        "details": plain(result.evidences.details),
        "verdict": [result.verdict.level, [list(reason) for reason in result.verdict.reasons]],
        "scopes": [[reason.level, list(reason.models), list(reason.behind)] for reason in result.verdict.reasons],
        "evaluations": plain(result.evaluations),
        "seed": int(result.seed),
        "prior_odds": plain(result.prior_odds),
        "settings": plain(result.settings),
        "seconds": float(result.seconds),
        "priors": {n: {p: _prior_as_data(prior) for p, prior in priors.items()} for n, priors in result.priors.items()},
        "versions": result.versions,
        "fingerprints": result.fingerprints,
        "formulas": result.formulas,
        "labels": result.labels,
        "units": result.units,
    }
    save_arrays(path, groups, attrs)


def load(path: str | os.PathLike[str], models: Mapping[str, Any] | None = None) -> Comparison:
    """The comparison that `save` wrote, with the models that are given."""
    groups, attrs = load_arrays(path)
    if attrs.get("kind") != KIND:
        raise StorageError(
            f"{str(path)!r} is a file of supermodel, but of the kind {attrs.get('kind')!r}, not a finished comparison. "
            "A checkpoint is continued by running again with the same arguments."
        )
    with reading(path):
        if attrs["schema"] > SCHEMA:
            raise StorageError(
                f"{str(path)!r} has schema {attrs['schema']}, made by supermodel {attrs['versions'].get('supermodel')}; "
                f"this version reads up to {SCHEMA}. Upgrade supermodel to read it."
            )
        check_comparison(groups, attrs)
        return _comparison(groups, attrs, models)


def _comparison(groups: Mapping[str, Any], attrs: Mapping[str, Any], models: Mapping[str, Any] | None) -> Comparison:
    names = tuple(attrs["names"])
    table = groups["comparison"]
    edges = tuple(
        EdgeRecord(first, second, report=report, **_arrays(groups[f"edge_{e}"], EDGE))
        for e, (first, second, report) in enumerate(attrs["edges"])
    )
    return Comparison(
        evidences=Evidences(names, table["log_evidence"], table["covariance"], attrs["absolute"], attrs["details"]),
        verdict=_verdict(*attrs["verdict"], attrs.get("scopes")),
        evaluations=attrs["evaluations"],
        posteriors={n: _posterior(n, attrs, k, groups[f"posterior_{k}"], edges) for k, n in enumerate(names)},
        edges=edges,
        seed=attrs["seed"],
        prior_odds=attrs["prior_odds"],
        settings=attrs["settings"],
        seconds=attrs["seconds"],
        models=None if models is None else checked_models(models, names, attrs["parameters"]),
        data=None
        if attrs["columns"] is None
        else {c: groups["data"][f"column_{i}"] for i, c in enumerate(attrs["columns"])},
        priors={n: {p: _prior_from_data(p, d) for p, d in priors.items()} for n, priors in attrs["priors"].items()}
        if models is None
        else {},
        versions=attrs["versions"],
        fingerprints=attrs["fingerprints"],
        schema=attrs["schema"],
        chain=_chain(names, groups, attrs.get("chain")),
        formulas=attrs.get("formulas", {}),
        labels=attrs.get("labels", {}),
        units=attrs.get("units", {}),
    )


def _verdict(level: str, reasons: list, scopes: list | None) -> Verdict:
    """A file without `scopes`, of an earlier version, does not say what its findings are of: they are of everything."""
    known = scopes if scopes is not None else [["", [], []]] * len(reasons)
    told = zip(reasons, known, strict=True)
    return Verdict(level, tuple(Reason(*words, own, tuple(a), tuple(b)) for words, (own, a, b) in told))


def _chain(names: tuple[str, ...], groups: Mapping[str, Any], row: list | None) -> ChainRecord | None:
    if row is None:
        return None
    return ChainRecord(names, *(groups["chain"][label] for label in CHAIN), *row)


def _posterior(
    name: str, attrs: Mapping[str, Any], k: int, group: Mapping[str, np.ndarray], edges: tuple[EdgeRecord, ...]
) -> ModelPosterior:
    values = {p: group[f"parameter_{i}"] for i, p in enumerate(attrs["parameters"][k])}
    record = attrs["records"][k] if "records" in attrs else _record_of(name, group["log_weights"], edges)
    return ModelPosterior(name, values, **{label: group[label] for label in POSTERIOR}, record=record)


def _arrays(group: Mapping[str, Any], labels: tuple[str, ...]) -> dict[str, Any]:
    """Those of a group that the file has: earlier versions wrote fewer."""
    return {label: group[label] for label in labels if label in group}


def _record_of(name: str, log_weights: np.ndarray, edges: tuple[EdgeRecord, ...]) -> int:
    """Files of version 0.1.0.dev0 do not say which edge a posterior's draws are those of: the one that gives its weights."""
    for e, edge in enumerate(edges):
        if name in (edge.first, edge.second) and edge.rung.size == len(log_weights):
            counts = np.bincount(edge.rung.ravel(), minlength=len(edge.table))
            densities = rung_log_densities(edge.log_joints, edge.table)
            log_z = multistate(edge.log_joints, edge.rung, edge.table).log_z
            with np.errstate(divide="ignore"):
                pooled = np.logaddexp.reduce(np.log(counts) - log_z + densities, axis=-1)
            logs = (edge.log_joints[..., 0 if name == edge.first else 1] - pooled).ravel()
            if np.allclose(logs - np.logaddexp.reduce(logs), log_weights, rtol=0, atol=1e-8):
                return e
    return -1


def _columns(data: Any) -> dict[str, np.ndarray] | None:
    """Data as named columns of numbers, or None if they are something else (then only their fingerprint is kept)."""
    if not isinstance(data, Mapping):
        return None
    columns = {str(name): np.asarray(values) for name, values in data.items()}
    return columns if all(v.dtype.kind in "biufU" for v in columns.values()) else None


def checked_models(models: Mapping[str, Any], names: tuple[str, ...], parameters: list[list[str]]) -> dict[str, Any]:
    """The models in the order of the file, if they have its names and its parameters."""
    if set(models) != set(names):
        raise StorageError(f"the file holds the models {', '.join(names)}; given were {', '.join(models)}.")
    for name, expected in zip(names, parameters, strict=True):
        if list(models[name].priors) != expected:
            raise StorageError(
                f"model {name!r} has the parameters {', '.join(models[name].priors)}, but in the file they are "
                f"{', '.join(expected)}. Give the model with which the file was made."
            )
    return {name: models[name] for name in names}


def _prior_as_data(prior: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"description": prior.description, "shape": list(prior.shape)}
    member = member_of(prior.distribution) if isinstance(prior, Bijected) else None
    if member is not None:
        arguments = {a: np.asarray(v, float).tolist() for a, v in member.arguments.items()}
        data |= {"family": member.name, "arguments": arguments, "wraps": [list(wrap) for wrap in member.wraps]}
    return data


@in_float64
def _prior_from_data(name: str, data: Mapping[str, Any]) -> Any:
    if data.get("family") not in FAMILIES:  # a name outside the table is never looked up
        return Described(data["description"], tuple(data["shape"]))
    arguments = {a: np.asarray(v) for a, v in data["arguments"].items()}
    return as_prior(name, Member(data["family"], arguments, tuple(map(tuple, data["wraps"]))).build())
