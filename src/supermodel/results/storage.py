"""Arrays in a file: netCDF, written whole or not at all, checked on reading. Nothing in a file is ever run as code.

A file holds groups of named arrays and a dictionary of attributes (anything JSON can say). It is made in memory,
written to a temporary file in the same folder, flushed to the disk and renamed: a crash, a full disk or a `kill -9`
leaves either the old file or the new one. Behind the netCDF content, where readers of netCDF do not look, stands its
SHA-256: damage is seen before anything is read, let alone computed with. A digest is no signature: who means to forge a
file can seal it anew. So sizes and types are checked before anything is allocated, and whatever is malformed is told as that.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.errors import StorageError

FORMAT = "supermodel record 1"
SEAL = b"supermodel sha256 "
HDF5 = b"\x89HDF\r\n\x1a\n"
_FLAG = "supermodel_kind"  # how an array was dressed for netCDF, which knows no booleans
DEEPEST = 16  # nested lists and tables in an attribute: ours have six
WIDEST = 2**30  # bytes of a text array, all of whose entries take the room of the longest

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
        _check_regular(Path(path))
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, StorageError):
            raise
        why = getattr(error, "strerror", None) or error
        raise StorageError(f"cannot read {str(path)!r}: {why}. Is the path right?") from None
    content, seal = content[: -len(_seal(b""))], content[-len(_seal(b"")) :]
    if not seal.startswith(SEAL):
        raise StorageError(_why_unsealed(content + seal, path))
    if seal != _seal(content):
        raise StorageError(
            f"{str(path)!r} is damaged: its contents do not match the digest stored with them, so something in it has "
            "changed. Take a copy from a backup, or run again."
        )
    with reading(path):
        return _from_netcdf(content)


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within, the inside of a file is taken apart: whatever does not fit is told as a malformed file."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:  # what a forged file can break has no end: KeyError, RecursionError, any of HDF5's own
        told = str(error) if isinstance(error, Malformed) else f"{type(error).__name__}: {str(error)[:200]}"
        raise StorageError(
            f"{str(path)!r} has the seal of supermodel, but its inside is not what supermodel writes ({told}). It was changed "
            "and sealed again, or made by a version with a mistake. Take a copy from a backup, or run again."
        ) from error


class Malformed(Exception):
    """What is wrong inside a file, for `reading` to tell."""


def expect(holds: Any, what: str) -> None:
    """`Malformed` unless it holds."""
    if not holds:
        raise Malformed(what)


def expect_arrays(
    group: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int | None, ...]], kinds: str = "iuf"
) -> None:
    """`Malformed` unless the group has these arrays, of numbers, in these shapes (None: any length)."""
    for name, shape in shapes.items():
        found = group[name]
        fits = len(found.shape) == len(shape) and all(b in (None, a) for a, b in zip(found.shape, shape, strict=True))
        expect(fits and found.dtype.kind in kinds, f"{name!r} is an array {found.shape} of {found.dtype}")


def _check_regular(path: Path) -> None:
    """Refuse folders, devices and pipes: some have no end, others block, and none can be replaced."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise StorageError(
            f"{str(path)!r} is no regular file but a folder, a device or a pipe. Give the path of a file."
        )


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
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            _check_regular(path)
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise StorageError(explained(path, error, len(content))) from error
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


def explained(path: Path, error: OSError, size: int = 0) -> str:
    """Why a file could not be written, and what to do."""
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
    import h5py

    with h5py.File(io.BytesIO(content), "r") as file:
        _check_layout(file)
    with h5netcdf.File(io.BytesIO(content), "r") as file:
        attrs = {key: _attribute(key, str(file.attrs[key])) for key in file.attrs if key != "format"}
        variables = [v for group in file.groups.values() for v in group.variables.values()]
        claimed = sum(math.prod(v.shape) * v.dtype.itemsize for v in variables)
        expect(claimed <= len(content), f"arrays of {claimed} bytes in a file of {len(content)}")
        return {
            name: {n: _read(n, v) for n, v in group.variables.items()} for name, group in file.groups.items()
        }, attrs


def _check_layout(file: Any) -> None:
    """Groups of plain arrays, one level deep; no links, and nothing that is kept in another file."""
    import h5py

    for name in _members(file):
        expect(isinstance(file[name], h5py.Group), f"{name!r} stands outside a group")
        for inner in _members(file[name]):
            array = file[name][inner]
            expect(isinstance(array, h5py.Dataset) and array.shape is not None, f"{inner!r} is no array")
            expect(not array.is_virtual and array.external is None, f"{inner!r} is kept in another file")
            is_text = h5py.check_string_dtype(array.dtype) is not None
            expect(is_text or array.dtype.kind in "iuf", f"{inner!r} is of the type {array.dtype}")


def _members(group: Any) -> list[str]:
    import h5py

    links = {name: group.get(name, getlink=True) for name in group}
    expect(all(type(link) is h5py.HardLink for link in links.values()), "a link to another place")
    return list(links)


def _attribute(key: str, text: str) -> Any:
    value = json.loads(text)
    level = [value]
    for _ in range(DEEPEST):
        level = [part for item in level if isinstance(item, list | dict) for part in _parts(item)]
    expect(not level, f"the attribute {key!r} is nested more than {DEEPEST} times")
    return value


def _parts(item: list | dict) -> list:
    return list(item.values()) if isinstance(item, dict) else item


def _read(name: str, variable: Any) -> np.ndarray:
    flag = str(variable.attrs[_FLAG]) if _FLAG in variable.attrs else ""
    if flag.startswith("empty "):
        _, dtype, shape = flag.split(" ", 2)
        lengths = json.loads(shape)
        expect(0 in lengths and np.dtype(dtype).kind in "biufU", f"the array {name!r} is said to be empty, but is not")
        return np.zeros(lengths, np.dtype(dtype))
    data = np.asarray(variable[...])
    if flag == "bool":
        return data.astype(bool)
    if flag == "text":
        texts = [s.decode() if isinstance(s, bytes) else str(s) for s in data.ravel()]
        expect(
            4 * len(texts) * max(map(len, texts), default=0) <= WIDEST,
            f"the text {name!r} would take over {WIDEST} bytes",
        )
        return np.array(texts, dtype=str).reshape(data.shape)
    return data
