"""Ctrl-C: the first one asks for an end before the next likelihood calls, the second one is obeyed at once.

Both give back what is known, so that a program would go on with its next comparison: that one is not begun, or nobody could
leave a loop over a hundred stars.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

_ended_in: Any = None  # the script, or the cell, in which a run was ended by Ctrl-C and gave an answer all the same
NEXT = (
    "Ctrl-C ended the comparison before this one, so that this one is not begun. A program that is to go on catches "
    "KeyboardInterrupt and calls again."
)


def _statement() -> Any:
    """What a user who presses Ctrl-C means to leave: the script, or the cell of a notebook; at a bare prompt nobody can tell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        return "cell", getattr(shell, "execution_count", 0)
    return None if hasattr(sys, "ps1") else "script"


class Interrupts:
    """Within, the first SIGINT is noted and `check` turns it into KeyboardInterrupt; the next one is raised where it falls.

    Only Python's own handler is replaced, and only in the main thread: a handler of the user's, of a server or of a
    comparison around this one stays what it is.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        global _ended_in
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            before, _ended_in = _ended_in, None
            if before is not None and before == _statement():
                raise KeyboardInterrupt(NEXT)
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        global _ended_in
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
            if self.asked and kind is None:
                _ended_in = _statement()

    def _note(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def check(self) -> None:
        """Called where a run can be left: between blocks and between batches of likelihood calls."""
        if self.asked:
            raise KeyboardInterrupt
