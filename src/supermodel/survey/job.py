r"""What workers are told and what they tell: a job, chunks of data sets, and one outcome per data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supermodel.models.model import Model


@dataclass(frozen=True, eq=False)
class Job:
    """The same for all data sets. `token` names it: a worker keeps what it has compiled for a job under it."""

    models: Mapping[str, Model]
    token: str
    seed: int = 0
    target_error: float = 0.2
    settings: Mapping[str, Any] = field(
        default_factory=dict
    )  # further options of `compare`, for rows that need the engine


@dataclass(frozen=True, eq=False)
class Chunk:
    """Data sets of one kind: `columns` are padded to one length and stacked, (n, length, ...).

    `lengths` tells how many points of each are data, the rest is padding; None where nothing is padded. `rows` are the
    places of the data sets in what the user gave: the seed of each follows from its own, whatever the chunk.
    """

    number: int
    rows: np.ndarray
    names: tuple[Any, ...]
    columns: Mapping[str, np.ndarray]
    lengths: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Outcome:
    """What came of one data set: {model: ln Z and its error}, {(first, second): ln B and its error}, and whether to trust them.

    A data set that failed has no numbers, the level "fail" and a `reason`; it is never left out.
    """

    row: int
    name: Any
    evidences: Mapping[str, tuple[float, float]]
    pairs: Mapping[tuple[str, str], tuple[float, float]]
    level: str = "ok"
    codes: tuple[str, ...] = ()
    reason: str = ""
    route: str = "quick"  # or "engine", or "none"
    evaluations: int = 0
    seconds: float = 0.0
    scopes: Mapping[tuple[str, str], tuple[str, tuple[str, ...], str]] = field(
        default_factory=dict
    )  # {pair: its own level, codes and reason}, where these are not those of the whole
