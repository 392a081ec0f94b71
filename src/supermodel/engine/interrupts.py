"""Ctrl-C: the first one asks for an end before the next likelihood calls, the second one is obeyed at once."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Interrupts:
    """Within, the first SIGINT is noted and `check` turns it into KeyboardInterrupt; the next one is raised where it falls.

    Only Python's own handler is replaced, and only in the main thread: a handler of the user's, of a server or of a
    comparison around this one stays what it is.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _note(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def check(self) -> None:
        """Called where a run can be left: between blocks and between batches of likelihood calls."""
        if self.asked:
            raise KeyboardInterrupt
