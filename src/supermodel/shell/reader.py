"""Printing to a reader that may go away (`| head`): what is to be written is written all the same."""

from __future__ import annotations

import os
import sys


def say(text: object) -> None:
    """Print; where nobody reads any more, the rest is said to nobody."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        unread()


def unread() -> None:
    """From here on, output goes nowhere: Python would complain once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
