"""The folder that a command writes into."""

from __future__ import annotations

from pathlib import Path

from supermodel.errors import SupermodelError


def write_numbers(folder: Path, numbers: str) -> Path:
    """Make the folder, if it is not there, and write `result.json` into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(numbers + "\n")
    except OSError as error:
        raise SupermodelError(f"cannot write into {folder}: {error.strerror or error}.") from None
    return folder / "result.json"
