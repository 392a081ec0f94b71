"""What a result was made from: fingerprints of data and priors, and the versions of the software."""

from __future__ import annotations

import dataclasses
import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from supermodel import __version__

LIBRARIES = ("numpy", "scipy", "jax", "jaxlib", "numpyro")


def fingerprint(value: Any) -> str:
    """Twelve hexadecimal digits that change with any number, name or shape in `value`.

    Mappings, sequences, arrays, numbers, text, dataclasses and distributions are looked into; of anything else only its
    type is taken, since nothing lasting can be said of it.

    >>> fingerprint({"x": [1.0, 2.0]}) == fingerprint({"x": np.array([1.0, 2.0])})
    True
    >>> fingerprint({"x": [1.0, 2.0]}) == fingerprint({"x": [1.0, 2.5]})
    False
    """
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()[:12]


def _add(digest: Any, value: Any) -> None:
    def mark(text: str) -> None:
        raw = text.encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)

    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a table: its columns by name
        value = {str(name): np.asarray(value[name]) for name in value.columns}
    if isinstance(value, Mapping):
        mark(f"mapping {len(value)}")
        for key in sorted(value, key=str):
            mark(str(key))
            _add(digest, value[key])
        return
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        mark(type(value).__qualname__)
        _add(digest, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
        return
    if hasattr(value, "arg_constraints") and hasattr(value, "log_prob"):  # a numpyro distribution
        mark(type(value).__qualname__)
        inner = {name: getattr(value, name) for name in (*value.arg_constraints, "base_dist") if hasattr(value, name)}
        _add(digest, {**inner, "shape": tuple(value.shape())})
        return
    if value is None or isinstance(value, str | bytes):
        mark(repr(value))
        return
    try:
        array = np.asarray(value)
    except Exception:
        array = np.asarray(None)
    if array.dtype.kind in "biuf":
        mark(f"array {array.shape}")
        digest.update(np.ascontiguousarray(array, dtype=float).tobytes())
    elif array.dtype.kind in "US":
        mark(f"text {array.shape} {array.ravel().tolist()}")
    elif isinstance(value, list | tuple):
        mark(f"sequence {len(value)}")
        for item in value:
            _add(digest, item)
    else:
        mark(f"{type(value).__module__}.{type(value).__qualname__}")


def versions() -> dict[str, str]:
    """Versions of this package, of Python, and of the libraries that decide the numbers."""
    found = {"supermodel": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found
