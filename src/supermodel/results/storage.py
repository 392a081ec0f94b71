"""Arrays in a file: netCDF, written whole or not at all, checked on reading. Nothing in a file is ever run as code.

A file holds groups of named arrays and a dictionary of attributes (anything JSON can say). It is made in memory,
written to a temporary file in the same folder, flushed to the disk and renamed: a crash, a full disk or a `kill -9`
leaves either the old file or the new one. Behind the netCDF content, where readers of netCDF do not look, stands its
SHA-256: damage is seen before anything is read, let alone computed with.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.errors import StorageError

FORMAT = "supermodel record 1"
SEAL = b"supermodel sha256 "
HDF5 = b"\x89HDF\r\n\x1a\n"
_FLAG = "supermodel_kind"  # how an array was dressed for netCDF, which knows no booleans

Groups = Mapping[str, Mapping[str, np.ndarray]]


def save_arrays(path: str | os.PathLike[str], groups: Groups, attrs: Mapping[str, Any]) -> None:
    """Write `groups` and `attrs` to `path`, atomically.

    `StorageError` where the folder is read-only, missing or full; whatever stood at `path` before is then untouched.
    """
    write_atomically(path, _as_netcdf(groups, attrs))


def load_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, Any]]:
    """The groups and attributes of a file that `save_arrays` wrote, to the bit.

    `StorageError` where the file is missing, damaged, truncated, or not one of ours.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read {str(path)!r}: {error.strerror or error}. Is the path right?") from None
    content, seal = content[: -len(_seal(b""))], content[-len(_seal(b"")) :]
    if not seal.startswith(SEAL):
        raise StorageError(_why_unsealed(content + seal, path))
    if seal != _seal(content):
        raise StorageError(
            f"{str(path)!r} is damaged: its contents do not match the digest stored with them, so something in it has "
            "changed. Take a copy from a backup, or run again."
        )
    return _from_netcdf(content)


def _seal(content: bytes) -> bytes:
    return SEAL + hashlib.sha256(content).hexdigest().encode()


def _why_unsealed(content: bytes, path: Any) -> str:
    ours = "Give a file made by result.save() or by checkpoint=."
    if not content:
        return f"{str(path)!r} is empty. {ours}"
    if not content.startswith(HDF5):
        return f"{str(path)!r} is not a netCDF-4 file. {ours}"
    if FORMAT.encode() in content:
        return f"{str(path)!r} is truncated or was changed by another program. Take a copy from a backup, or run again."
    return f"{str(path)!r} is a netCDF file, but not one that supermodel wrote. {ours}"


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`: a temporary file beside it, fsync, rename. A failure leaves nothing behind."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise StorageError(_what_happened(path, error, len(content))) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:  # some file systems cannot sync a folder; the rename is still atomic
        pass
    finally:
        os.close(handle)


def _what_happened(path: Path, error: OSError, size: int) -> str:
    folder, megabytes = repr(str(path.parent)), f"{size / 1e6:.1f} MB"
    forbidden = f"the folder {folder} may not be written to. Choose another folder or change its permissions"
    reasons = {
        errno.ENOSPC: f"the disk is full ({megabytes} were to be written). Free some space or choose another folder",
        errno.EDQUOT: f"the disk quota is used up ({megabytes} were to be written). Free some space",
        errno.EFBIG: f"the file would be larger than allowed here ({megabytes})",
        errno.EROFS: f"the folder {folder} is on a read-only file system. Choose another folder",
        errno.EACCES: forbidden,
        errno.EPERM: forbidden,
        errno.ENOENT: f"the folder {folder} does not exist. Make it first",
        errno.ENOTDIR: f"{folder} is not a folder",
        errno.EISDIR: f"{str(path)!r} is a folder. Give the name of a file",
    }
    why = reasons.get(error.errno or 0, error.strerror or str(error))
    return f"cannot write {str(path)!r}: {why}. Nothing that was there before has been changed."


# -- netCDF -----------------------------------------------------------------------------------------------------------


def _as_netcdf(groups: Groups, attrs: Mapping[str, Any]) -> bytes:
    import h5netcdf

    texts = {key: json.dumps(value) for key, value in attrs.items()}
    if "format" in texts:
        raise StorageError("the attribute 'format' is the file's own; choose another name.")
    arrays = {g: {n: np.asarray(a) for n, a in members.items()} for g, members in groups.items()}
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        file.attrs["format"] = FORMAT
        for key, text in texts.items():
            file.attrs[key] = text
        for group_name, members in arrays.items():
            group = file.create_group(group_name)
            for name, array in members.items():
                _write(group, name, array)
    return buffer.getvalue() + _seal(buffer.getvalue())


def _write(group: Any, name: str, array: np.ndarray) -> None:
    import h5py

    flag = ""
    data: Any = array
    if array.dtype.kind == "b":
        flag, data = "bool", array.astype(np.uint8)
    elif array.dtype.kind == "U":
        flag, data = "text", np.array([str(s) for s in array.ravel()], dtype=object).reshape(array.shape)
    elif array.dtype.kind not in "iuf":
        raise StorageError(
            f"the array {name!r} is of the type {array.dtype}, which a file cannot hold without pickling."
        )
    if array.size == 0:  # to netCDF a dimension of length 0 is one without an end
        flag, data = f"empty {array.dtype.str} {json.dumps(array.shape)}", np.zeros((), np.uint8)
    axes = tuple(f"{name}_dim_{i}" for i in range(data.ndim))
    for axis, length in zip(axes, data.shape, strict=True):
        group.dimensions[axis] = length
    dtype = h5py.string_dtype() if data.dtype == object else data.dtype
    variable = group.create_variable(name, axes, dtype=dtype, data=data)
    if flag:
        variable.attrs[_FLAG] = flag


def _from_netcdf(content: bytes) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, Any]]:
    import h5netcdf

    with h5netcdf.File(io.BytesIO(content), "r") as file:
        attrs = {key: json.loads(str(file.attrs[key])) for key in file.attrs if key != "format"}
        return {name: {n: _read(v) for n, v in group.variables.items()} for name, group in file.groups.items()}, attrs


def _read(variable: Any) -> np.ndarray:
    flag = str(variable.attrs[_FLAG]) if _FLAG in variable.attrs else ""
    if flag.startswith("empty "):
        _, dtype, shape = flag.split(" ", 2)
        return np.zeros(json.loads(shape), np.dtype(dtype))
    data = np.asarray(variable[...])
    if flag == "bool":
        return data.astype(bool)
    if flag == "text":
        return np.array([s.decode() if isinstance(s, bytes) else str(s) for s in data.ravel()], dtype=str).reshape(
            data.shape
        )
    return data
