"""The keeper of a checkpoint: the last border between two blocks, in a file, for little of a run's time.

A run hands over a snapshot of itself at every border. The file is written at the first one, and then whenever the time that
the last writing took is below COST of the time since; what is held at the end is written then, whatever ended the run.
What happens after a border (an interrupt inside a block, a likelihood that raises) is in no file: a resumed run does it again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from supermodel.errors import StorageError

COST = 0.02  # share of a run's time that writing checkpoints may take


class Keeper:
    """`keep(run)` at every border, `with` around the run; `trouble` tells why the last writing failed, or is empty."""

    def __init__(self, path: str | os.PathLike[str], write: Callable[[Any, Any], None]):
        self.path, self.write = path, write
        self.held: Any = None
        self.due, self.is_written, self.trouble = 0.0, False, ""

    def __call__(self, run: Any) -> None:
        self.held = run.snapshot()
        if time.monotonic() >= self.due:
            self.flush()

    def flush(self) -> None:
        """Write what is held. A path that never could be written is told at once; later the answer is worth more."""
        if self.held is None:
            return
        since = time.monotonic()
        try:
            self.write(self.held, self.path)
            self.held, self.is_written, self.trouble = None, True, ""
        except StorageError as error:
            if not self.is_written:
                raise
            self.trouble = str(error)
        now = time.monotonic()
        self.due = now + (now - since) / COST

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
