"""Posterior draws that exist already, as the pilot of a model: only the short supermodel run remains."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.errors import DataError, ModelError
from supermodel.models.model import Model


def from_chains(
    model: Model,
    chains: Any,
    *,
    names: Sequence[str] | Mapping[str, str] | None = None,
    burn_in: float = 0.3,
    draws: int = 2000,
    seed: int = 0,
) -> Model:
    """`model` with posterior draws of it as its pilot. A poor pilot costs time; it cannot bias the answer.

    `chains`: a dict {name: draws}; an emcee sampler or backend; ArviZ InferenceData; a path "chains/run" to the text
    chains of GetDist or Cobaya. `names`: for emcee, the parameters in order (default: the model's own order); otherwise
    {their name: yours}. `burn_in`: share of every chain that is left out (emcee and text chains).
    """
    if not isinstance(model, Model):
        raise ModelError(
            f"from_chains takes the model first, then its chains; got {type(model).__name__} as the model."
        )
    if not 0 <= burn_in < 1:
        raise DataError(f"`burn_in` is a share of each chain, from 0 to below 1; got {burn_in}.")
    samples, weights = _read(model, chains, names, burn_in)
    if isinstance(names, Mapping):
        unknown = sorted(set(names) - set(samples))
        if unknown:
            raise DataError(f"`names` renames {unknown}, but the chains have only {sorted(samples)}.")
        samples = {names.get(name, name): values for name, values in samples.items()}
    missing = sorted(set(model.space.names) - set(samples))
    if missing:
        raise DataError(
            f"the chains have no parameter {', '.join(map(repr, missing))}; they have {', '.join(map(repr, samples))}. "
            'Say which is which, e.g. names={"theirs": "yours"}.'
        )
    samples = {name: samples[name] for name in model.space.names}
    return model.with_pilot(_thinned(samples, weights, draws, seed))


def _thinned(
    samples: dict[str, np.ndarray], weights: np.ndarray | None, draws: int, seed: int
) -> dict[str, np.ndarray]:
    """At most `draws` of equal weight: systematic resampling, which repeats a row only where its weight asks for it."""
    n = len(next(iter(samples.values()), np.zeros(0)))
    w = np.ones(n) if weights is None else weights
    if n < 2 or not (np.all(w >= 0) and w.sum() > 0):
        raise DataError(
            f"the chains hold {n} draws after burn-in, of total weight {w.sum() if n else 0:g}; at least 2 are needed."
        )
    size = min(draws, n)
    rng = np.random.default_rng(seed)
    rows = np.searchsorted(np.cumsum(w) / w.sum(), (rng.random() + np.arange(size)) / size)
    rows = rng.permutation(np.minimum(rows, n - 1))  # neighbours in a chain are alike: the engine takes the first few
    return {name: values[rows] for name, values in samples.items()}


Samples = tuple[dict[str, np.ndarray], np.ndarray | None]


def _read(model: Model, chains: Any, names: Any, burn_in: float) -> Samples:
    if isinstance(chains, str | Path):
        return read_text_chains(chains, burn_in)
    if hasattr(chains, "get_chain"):
        return _from_emcee(model, chains, names, burn_in), None
    if hasattr(chains, "posterior"):
        return _from_arviz(chains.posterior), None
    if isinstance(chains, Mapping):
        return {name: np.asarray(values, float) for name, values in chains.items()}, None
    raise DataError(
        f"chains of type {type(chains).__name__} are not known. Give a dict {{name: draws}}, an emcee sampler or "
        "backend, ArviZ "
        "InferenceData, or the path of GetDist/Cobaya text chains without their ending."
    )


def _from_emcee(model: Model, sampler: Any, names: Any, burn_in: float) -> dict[str, np.ndarray]:
    chain = np.asarray(sampler.get_chain())  # (steps, walkers, d)
    flat = chain[int(burn_in * len(chain)) :].reshape(-1, chain.shape[-1])
    if names is None or isinstance(names, Mapping):
        names = [name for name, prior in model.priors.items() for _ in range(int(np.prod(prior.shape)))]
        if len(names) != len(set(names)):
            raise DataError(
                "the model has vector parameters: say which column is which, with names=[...] and a dict of arrays."
            )
    if len(names) != flat.shape[1]:
        raise DataError(
            f"the emcee chain has {flat.shape[1]} columns, but {len(names)} names: {list(names)}. Give names=[...] in "
            "the order of the chain's columns."
        )
    return {name: flat[:, i] for i, name in enumerate(names)}


def _from_arviz(posterior: Any) -> dict[str, np.ndarray]:
    result = {}
    for name in posterior.data_vars:
        values = posterior[name].transpose("chain", "draw", ...).values
        result[str(name)] = values.reshape(-1, *values.shape[2:]).astype(float)
    return result


def read_text_chains(root: str | Path, burn_in: float = 0.3) -> Samples:
    """Parameters and weights of the text chains `root.txt`, `root_1.txt`, `root.1.txt`, ...: weight, -ln p, parameters.

    Names stand in `root.paramnames`, or in the first line behind `#`, as Cobaya writes it.
    """
    root = Path(root)
    pattern = re.compile(re.escape(root.name) + r"([._]\d+)?\.txt")
    folder = root.parent
    files = sorted(p for p in folder.iterdir() if pattern.fullmatch(p.name)) if folder.is_dir() else []
    if not files:
        raise DataError(
            f"there are no text chains {root}.txt, {root}_1.txt or {root}.1.txt. Give the path without ending."
        )
    columns, rows = _column_names(root, files[0]), []
    for file in files:
        table = np.loadtxt(file, ndmin=2)
        if len(table) and table.shape[1] < 2 + len(columns):
            raise DataError(
                f"{file} has {table.shape[1]} columns; weight, -ln p and the {len(columns)} parameters make "
                f"{2 + len(columns)}."
            )
        rows.append(table[int(burn_in * len(table)) :])
    whole = np.concatenate(rows)
    return {name: whole[:, 2 + i] for i, name in enumerate(columns)}, whole[:, 0]


def _column_names(root: Path, first: Path) -> list[str]:
    listed = root.parent / (root.name + ".paramnames")
    if listed.is_file():
        lines = listed.read_text().splitlines()
        return [line.split()[0].rstrip("*") for line in lines if line.strip()]
    with first.open() as stream:
        header = stream.readline()
    if not header.startswith("#"):
        raise DataError(
            f"the names of the columns of {first} are not known: neither {listed} nor a first line behind '#' is there."
        )
    # Cobaya: weight, minuslogpost, parameters, then minuslogprior, chi2 and their parts.
    names = header.lstrip("#").split()[2:]
    ends = [i for i, name in enumerate(names) if name.startswith(("minuslog", "chi2"))]
    return names[: ends[0]] if ends else names
