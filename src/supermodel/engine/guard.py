"""Worker processes import the script that asks for them anew: one that asks as it is imported would ask for ever."""

from __future__ import annotations

import ast
import multiprocessing
import os
import sys
from pathlib import Path

from supermodel.errors import SupermodelError

SILENT = (
    1  # exit code of a worker that was about to ask for workers: its traceback says nothing that the sentence does not
)


def check_guarded(n: int) -> None:
    """Refuse worker processes, before one is started, where they would run the script's call again as they import it."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(SILENT)  # here a worker imports the script, and has come to the call that started it
    found = unguarded_line()
    if found is not None:
        name, line = found
        raise SupermodelError(
            f"executor={n} starts worker processes, which import {name} anew and would come to line {line} of it again. Write "
            'the line `if __name__ == "__main__":` above it and indent what follows; models and likelihoods stay above.'
        )


def unguarded_line() -> tuple[str, int] | None:
    """(file, line) of the call in the script that is run, if importing the script comes to it too; None if not, or if unsure."""
    main = sys.modules.get("__main__")
    path, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if path is None or (spec is not None and spec.name.rpartition(".")[2] == "__main__"):
        return None  # a prompt, `python -c`, or a package that is run: workers do not import these
    frame = sys._getframe()
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is vars(main)):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return None
    try:
        script = ast.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # a script that is no text, such as one in an archive
        return None
    return None if any(map(_is_guard, script.body)) else (Path(path).name, frame.f_lineno)


def _is_guard(statement: ast.stmt) -> bool:
    """Whether it is an `if` that asks who runs the script: by its name, or by the process."""
    asked = ast.dump(statement.test) if isinstance(statement, ast.If) else ""
    return any(word in asked for word in ("'__name__'", "current_process", "parent_process"))
