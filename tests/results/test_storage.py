"""Files: to the bit, whole or not at all, and never silently wrong."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import h5netcdf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from supermodel.errors import StorageError
from supermodel.results import storage
from supermodel.results.storage import load_arrays, save_arrays, write_atomically

GROUPS = {
    "a": {"x": np.array([1.5, np.nan, -np.inf]), "n": np.arange(6).reshape(2, 3), "flag": np.array([True, False])},
    "b": {
        "name": np.array(["é", "", "<b>&"]),
        "empty": np.zeros((0, 4)),
        "scalar": np.array(3.25),
        "f32": np.ones(2, np.float32),
    },
}
ATTRS = {"text": "ü", "nested": {"k": [1, 2.5, None, True]}, "nan": float("inf")}


def test_everything_comes_back_to_the_bit(tmp_path):
    save_arrays(tmp_path / "f.nc", GROUPS, ATTRS)
    groups, attrs = load_arrays(tmp_path / "f.nc")
    assert attrs == ATTRS and set(groups) == set(GROUPS)
    for g, members in GROUPS.items():
        assert set(groups[g]) == set(members)
        for name, array in members.items():
            assert groups[g][name].dtype == array.dtype and groups[g][name].shape == array.shape
            assert groups[g][name].tobytes() == array.tobytes()
    assert [p.name for p in tmp_path.iterdir()] == ["f.nc"]


@settings(max_examples=40)
@given(arrays(np.float64, st.tuples(st.integers(0, 3), st.integers(0, 4)), elements=st.floats(allow_nan=True)))
def test_any_array_comes_back(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("any") / "f.nc"
    save_arrays(path, {"g": {"v": array}}, {})
    assert load_arrays(path)[0]["g"]["v"].tobytes() == array.tobytes()


def test_others_can_read_it(tmp_path):
    import xarray as xr

    save_arrays(tmp_path / "f.nc", GROUPS, ATTRS)
    with xr.open_dataset(tmp_path / "f.nc", group="a", engine="h5netcdf") as data:
        np.testing.assert_array_equal(data["n"], GROUPS["a"]["n"])


def test_objects_are_refused(tmp_path):
    with pytest.raises(StorageError, match="pickling"):
        save_arrays(tmp_path / "f.nc", {"g": {"v": np.array([object()])}}, {})
    with pytest.raises(StorageError, match="own"):
        save_arrays(tmp_path / "f.nc", {}, {"format": "x"})
    assert list(tmp_path.iterdir()) == []


def test_damage_of_every_kind_is_told(tmp_path):
    path = tmp_path / "f.nc"
    save_arrays(path, GROUPS, ATTRS)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 1, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(StorageError):
            load_arrays(path)
    for _ in range(300):  # any single bit
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(damaged))
        with pytest.raises(StorageError):
            load_arrays(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(StorageError, match="truncated or was changed"):
        load_arrays(path)


def test_foreign_files_are_told(tmp_path):
    (tmp_path / "text.nc").write_text("hello")
    with h5netcdf.File(tmp_path / "other.nc", "w") as file:
        file.dimensions["x"] = 2
        file.create_variable("v", ("x",), data=np.ones(2))
    for name, message in (
        ("text.nc", "not a netCDF"),
        ("other.nc", "not one that supermodel wrote"),
        ("none.nc", "No such file"),
    ):
        with pytest.raises(StorageError, match=message):
            load_arrays(tmp_path / name)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, code, step):
    path = tmp_path / "f.nc"
    save_arrays(path, GROUPS, ATTRS)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(storage.os, step, fail)
    with pytest.raises(StorageError, match="Nothing that was there before"):
        save_arrays(path, {"g": {"v": np.zeros(9)}}, {})
    monkeypatch.undo()
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["f.nc"]


def test_a_disk_that_is_really_full(tmp_path):
    """A limit on file size stands for the full disk: the kernel refuses in the middle of the write."""
    code = (
        "import resource, signal, sys, numpy as np\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from supermodel.results.storage import save_arrays\nfrom supermodel.errors import StorageError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "try:\n    save_arrays(sys.argv[1], {'g': {'v': np.random.default_rng(0).random(100000)}}, {})\n"
        "except StorageError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "f.nc")], capture_output=True, text=True, timeout=60
    )
    assert "larger than allowed" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_folders_that_cannot_be_written(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        write_atomically(tmp_path / "none" / "f.nc", b"x")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="not a folder"):
        write_atomically(tmp_path / "file" / "f.nc", b"x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError):
        write_atomically(tmp_path / "folder", b"x")
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    if os.geteuid() != 0:  # root may write anywhere
        with pytest.raises(StorageError, match="may not be written"):
            write_atomically(locked / "f.nc", b"x")
    with pytest.raises(StorageError):
        write_atomically(Path("/proc/f.nc"), b"x")


def test_killed_while_writing_leaves_a_whole_file(tmp_path):
    """Eight times: killed at a random moment of a loop of writes, the file is one of those written, whole."""
    code = (
        "import sys, numpy as np\nfrom supermodel.results.storage import save_arrays\n"
        "i = 0\nwhile True:\n    i += 1\n"
        "    save_arrays(sys.argv[1], {'g': {'v': np.full(20000, float(i))}}, {'i': i})\n"
        "    if i == 1:\n        print('ready', flush=True)\n"
    )
    rng = np.random.default_rng(0)
    for _ in range(8):
        path = tmp_path / "f.nc"
        path.unlink(missing_ok=True)
        child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
        assert child.stdout.readline()
        try:
            child.wait(timeout=float(rng.uniform(0.01, 0.15)))
        except subprocess.TimeoutExpired:
            child.kill()
        child.wait()
        child.stdout.close()
        groups, attrs = load_arrays(path)
        assert np.all(groups["g"]["v"] == attrs["i"])
