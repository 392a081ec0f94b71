"""The sine example of the paper from end to end: is the phase zero, or free?"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from supermodel.comparing import compare
from supermodel.results.comparison import Comparison
from supermodel.spec.toml import read_spec

TRUTH = 5.0222648001  # ln B(free, fixed) by quadrature


def prepare(folder: Path) -> Path:
    """Put the example's data and its TOML file into `folder`, to be looked at and changed; the path of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("sine.csv", "sine.toml"):
        (folder / name).write_text((resources.files("supermodel") / "data" / name).read_text())
    return folder / "sine.toml"


def run(folder: Path, **options: Any) -> Comparison:
    """Compare the two models of the example as the file in `folder` says, save where `options` say otherwise."""
    spec = read_spec(prepare(folder))
    return compare(spec.models, spec.data, **{**spec.run, **options})
