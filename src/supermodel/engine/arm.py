"""An edge at work: its draws, what warm-up learnt for them, and the report of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from supermodel.engine.chapters import whole
from supermodel.engine.edge import Edge
from supermodel.engine.kernels import Tuning
from supermodel.engine.policy import CHAINS, CHAPTER, STEPS
from supermodel.engine.rungs import Gap
from supermodel.verdict.examine import examine


@dataclass
class Arm:
    """An edge at work: from model `first` to `second` (None is the reference), with what warm-up learnt."""

    first: int
    second: int | None
    edge: Edge
    gap: Gap
    tuning: Tuning
    report: Any = None  # a Report, as soon as there are draws
    is_used: bool = True  # on the tree; else it only closes a cycle, and checks a direct edge
    owed: tuple[int, int] = (0, 0)  # blocks, and steps at most, of an addition that is under way
    chapters: list[Any] = field(default_factory=list)  # reports of draws that are no longer kept

    @property
    def n_blocks(self) -> int:
        """Blocks that have been run, kept or not."""
        return sum(chapter.n_draws for chapter in self.chapters) // (CHAINS * STEPS) + len(self.edge.blocks)

    @property
    def n_draws(self) -> int:
        """Draws that have been made, kept or not."""
        return sum(part.n_draws for part in self.chapters) + sum(block.rung.size for block in self.edge.blocks)

    def look(self) -> None:
        """The report of all draws so far."""
        self.report = whole([*self.chapters, examine(self.edge.draws(self.tuning))])

    def close_chapter(self) -> None:
        """Of two chapters' worth of draws, keep the first one's report only (unless it says nothing yet)."""
        blocks, size = self.edge.blocks, CHAPTER // (CHAINS * STEPS)
        if len(blocks) < 2 * size or len(blocks) % size:
            return
        found = examine(self.edge.draws(self.tuning, blocks[:size]))
        if np.isfinite(found.error):
            self.chapters.append(found)
            del blocks[:size]

    def snapshot(self) -> Arm:
        """As it stands now: lists that grow are copied, arrays are never changed."""
        return replace(self, edge=self.edge.snapshot(), chapters=list(self.chapters))
