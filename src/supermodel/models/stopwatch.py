"""What a call costs: processor time, which a busy machine leaves as it is."""

from __future__ import annotations

import time

WAITING = 8.0  # times its processor time that a call lasts, from which on it waits for something else: another program, a network


class Stopwatch:
    """Started when it is made."""

    def __init__(self) -> None:
        self.processor, self.wall = time.process_time(), time.perf_counter()

    def seconds(self) -> float:
        """Processor seconds since then; of a call that mostly waited, all seconds."""
        processor, wall = time.process_time() - self.processor, time.perf_counter() - self.wall
        return wall if wall > WAITING * processor + SHORT else min(processor, wall)


SHORT = 1e-4  # seconds below which neither clock can tell
