"""A comparison from a file: TOML, where nothing is run as code, or the user's own Python."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path

from supermodel.errors import SupermodelError
from supermodel.models.model import Model
from supermodel.options import BY_NAME
from supermodel.spec.toml import Spec, read_spec


def read_file(path: str | Path, data_root: str | Path | None = None, columns: Sequence[str] | None = None) -> Spec:
    """Models, data and options of `FILE.toml` or `FILE.py`; the latter is run, like any script of yours.

    `data_root` confines the data file of a TOML; a FILE.py, which may open what it likes, is then refused. `columns`: the
    names that formulas may use where data come from elsewhere.
    """
    path = Path(path)
    if not path.is_file():
        raise SupermodelError(f"there is no file {str(path)!r}.")
    if path.suffix == ".toml":
        return read_spec(path, data_root, columns)
    if path.suffix == ".py" and data_root is not None:
        raise SupermodelError(
            f"{str(path)!r} is run as Python and may open any file: a data root ({str(data_root)!r}) cannot confine it. "
            "Describe the comparison in a FILE.toml, or leave the data root out if you trust the script."
        )
    if path.suffix == ".py":
        return _from_python(path)
    raise SupermodelError(f"{str(path)!r} is neither FILE.toml nor FILE.py; a comparison is one or the other.")


def _from_python(path: Path) -> Spec:
    found = util.spec_from_file_location(path.stem.replace("-", "_"), path)
    if found is None or found.loader is None:
        raise SupermodelError(f"{str(path)!r} cannot be loaded as Python.")
    module = util.module_from_spec(found)
    sys.modules[found.name] = module  # worker processes and dataclasses look a module up by name
    home = str(path.parent.resolve())
    if home not in sys.path:
        sys.path.insert(
            0, home
        )  # as `python FILE.py` does; it stays, for worker processes and for imports inside functions
    try:
        found.loader.exec_module(module)
    except SupermodelError:
        raise
    except (Exception, SystemExit) as error:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).resolve() == path.resolve()
        ]
        line = (
            getattr(error, "lineno", None) if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
        )
        where = f"{path}, line {line}" if line else f"{path}"
        raise SupermodelError(f"{where}: {type(error).__name__}: {error}") from error
    models = getattr(module, "models", None)
    if not isinstance(models, Mapping) or not all(isinstance(model, Model) for model in models.values()):
        raise SupermodelError(
            f"{path} must define `models`, a dict {{name: supermodel.Model}}; it is {type(models).__name__}. "
            "It may also define `data` and `options` (arguments of compare)."
        )
    options = getattr(module, "options", {})
    if not isinstance(options, Mapping):
        raise SupermodelError(
            f"{path}: `options` must be a dict of arguments of compare; it is {type(options).__name__}."
        )
    if unknown := sorted(set(options) - set(BY_NAME)):
        raise SupermodelError(
            f"{path}: `options` has {unknown}, which compare does not take; it takes {sorted(BY_NAME)}."
        )
    return Spec(dict(models), getattr(module, "data", None), dict(options), str(path), {})
