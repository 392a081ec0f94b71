"""A persistent compilation cache, so that the second run of the same models starts at once.

Kept in the user's cache folder (`$XDG_CACHE_HOME/supermodel` or `~/.cache/supermodel`). Turned off by
`SUPERMODEL_CACHE=off`, moved by `SUPERMODEL_CACHE=/some/folder`. A cache that the user has set for JAX is left alone.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


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
