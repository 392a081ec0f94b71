"""Our scope of JAX: double precision, and a compilation cache, without touching the user's settings.

JAX computes in single precision unless told otherwise, and a log likelihood of -10^5 then carries an error of 0.01. Every
public entry runs inside `float64()`, a scoped switch: code of the user that runs outside keeps whatever precision it had.

Compiled code is kept in the user's cache folder (`$XDG_CACHE_HOME/supermodel` or `~/.cache/supermodel`), so that the second
run of the same models starts at once. Turned off by `SUPERMODEL_CACHE=off`, moved by `SUPERMODEL_CACHE=/some/folder`. A
cache that the user has set for JAX is left alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
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


def numpyro_distributions() -> Any:
    """`numpyro.distributions`; its import adds a filter of warnings, which are the user's own affair."""
    if "numpyro" not in sys.modules:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "IProgress not found"
            )  # tqdm's, in a notebook without widgets: none is used
            import numpyro
    import numpyro.distributions

    return numpyro.distributions


def cache_folder() -> Path | None:
    """Where compiled code is kept, or None if it is not."""
    wish = os.environ.get("SUPERMODEL_CACHE", "")
    if wish.lower() in ("off", "0", "no", "false"):
        return None
    if wish:
        return Path(wish)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "supermodel" / "jax"


@contextlib.contextmanager
def compilation_cache():
    """Within, JAX reads and writes our cache; outside, its settings are what they were."""
    import jax

    folder = cache_folder()
    if folder is None or getattr(jax.config, "jax_compilation_cache_dir") is not None:  # noqa: B009
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:  # a home that cannot be written is no reason to fail
        yield
        return
    wanted = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    _apply(wanted)
    try:
        yield
    finally:
        _apply(before)


def _apply(settings: dict) -> None:
    import jax
    from jax.experimental.compilation_cache import compilation_cache as store

    for name, value in settings.items():
        jax.config.update(name, value)
    store.reset_cache()  # JAX decides once per process whether it has a cache: ask it to decide again
