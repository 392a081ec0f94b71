"""The models of a file, as they go to workers: by its path, so that lambdas and formulas can go as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from supermodel.models.model import Model
from supermodel.spec.file import read_file
from supermodel.spec.toml import Spec


class FileModels(Mapping[str, Model]):
    """{name: model} of a FILE.toml or FILE.py; a worker that receives it reads the file anew, once."""

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None, data_root: str | Path | None = None):
        self.path, self.columns, self.data_root = Path(path).resolve(), columns, data_root

    @cached_property
    def spec(self) -> Spec:
        return read_file(self.path, self.data_root, self.columns)

    def __getitem__(self, name: str) -> Model:
        return self.spec.models[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.spec.models)

    def __len__(self) -> int:
        return len(self.spec.models)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileModels, (self.path, self.columns, self.data_root)
