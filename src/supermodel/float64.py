"""Double precision for our own work, without touching the user's settings.

JAX computes in single precision unless told otherwise, and a log likelihood of -10^5 then carries
an error of 0.01. Every public entry runs inside `float64()`, a scoped switch: code of the user that
runs outside keeps whatever precision it had. Nothing global is changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def float64():
    """Context in which JAX computes in double precision."""
    import jax

    return jax.enable_x64(True)


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run the whole of `function` in double precision."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with float64():
            return function(*args, **kwargs)

    return wrapped
