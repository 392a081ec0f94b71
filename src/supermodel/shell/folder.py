"""The folder that a command writes into."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from supermodel.errors import SupermodelError

if TYPE_CHECKING:
    from supermodel.counting.result import Count
    from supermodel.results.comparison import Comparison


def write(result: Comparison | Count, folder: Path) -> dict[str, Path]:
    """Write all there is of a result: its numbers, itself, its page."""
    numbers = write_numbers(folder, result.to_json())
    result.save(folder / "run.nc")
    result.report(folder / "report.html")
    return {"report": folder / "report.html", "run": folder / "run.nc", "numbers": numbers}


def write_numbers(folder: Path, numbers: str) -> Path:
    """Make the folder, if it is not there, and write `result.json` into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(numbers + "\n")
    except OSError as error:
        raise SupermodelError(f"cannot write into {folder}: {error.strerror or error}.") from None
    return folder / "result.json"
