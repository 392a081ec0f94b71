"""Files that were changed and sealed anew: refused as files, whatever was done to their inside, and without a large allocation."""

import copy
import io
import json
import os
import resource

import h5py
import numpy as np
import pytest

import supermodel as sm
from engine_problems import gamma_rates
from made_result import made_result
from supermodel.engine import checkpoint
from supermodel.engine.run import Run
from supermodel.errors import StorageError
from supermodel.results import archive
from supermodel.results.storage import FORMAT, _seal, load_arrays, save_arrays, write_atomically

# -- what is no file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["/dev/zero", "fifo", "folder"])
def test_only_regular_files_are_read_and_replaced(kind, tmp_path):
    path = tmp_path / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kind)  # never replace the device itself, should this fail
    for read in (load_arrays, sm.load, lambda p: sm.compare(gamma_rates()[0], checkpoint=p, progress=False)):
        with pytest.raises(StorageError, match="no regular file"):
            read(path)
    with pytest.raises(StorageError, match="no regular file"):
        write_atomically(path, b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["odd"] and not path.is_file()


# -- netCDF that is not ours ------------------------------------------------------------------------------------------


def sealed(build):
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.attrs["format"] = FORMAT
        build(file)
    return buffer.getvalue() + _seal(buffer.getvalue())


def attribute(text):
    return lambda file: file.attrs.__setitem__("a", text)


def flagged(flag):
    return lambda file: file.create_dataset("g/v", data=np.zeros((), np.uint8)).attrs.__setitem__(
        "supermodel_kind", flag
    )


def wide_text(file):
    texts = np.array(["x" * 10_000] + [""] * 100_000, object)
    file.create_dataset("g/v", data=texts, dtype=h5py.string_dtype()).attrs["supermodel_kind"] = "text"


FORGED = {
    "8 TB": lambda file: file.create_dataset("g/v", shape=(10**12,), dtype=float, chunks=(1000,)),
    "8 TB unwritten": lambda file: file.create_dataset("g/v", shape=(10**12,), dtype=float),
    "beyond all counts": lambda file: file.create_dataset("g/v", shape=(2**40, 2**20), dtype=float, chunks=(10, 10)),
    "a gigabyte of zeros": lambda file: file.create_dataset(
        "g/v", shape=(2**27,), dtype=float, chunks=(2**20,), compression="gzip"
    ),
    "empty, but not": flagged("empty <f8 [1000000000000]"),
    "empty of objects": flagged("empty |O [0]"),
    "empty of nothing": flagged("empty "),
    "deep": attribute("[" * 100_000 + "]" * 100_000),
    "deep enough": attribute("[" * 100 + "]" * 100),
    "no JSON": attribute("{"),
    "a number of a million digits": attribute("1" * 1_000_000),
    "a list": lambda file: file.attrs.__setitem__("a", np.zeros(3)),
    "other types": lambda file: file.create_dataset("g/v", data=np.zeros(2, [("a", float)])),
    "references": lambda file: file.create_dataset("g/v", (2,), dtype=h5py.ref_dtype),
    "complex": lambda file: file.create_dataset("g/v", data=np.zeros(2, complex)),
    "a group in itself": lambda file: file.create_group("g").__setitem__("g", file["g"]),
    "groups in groups": lambda file: file.create_group("g/" * 200),
    "a link": lambda file: file.create_group("g").__setitem__("v", h5py.SoftLink("/g")),
    "another file": lambda file: file.create_group("g").__setitem__("v", h5py.ExternalLink("/etc/passwd", "/")),
    "another file's bytes": lambda file: file.create_dataset("g/v", (9,), "u1", external=[("/etc/passwd", 0, 9)]),
    "outside": lambda file: file.create_dataset("v", data=np.zeros(2)),
    "wide text": wide_text,
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_is_refused_before_anything_is_allocated(name, tmp_path):
    path = tmp_path / "forged.nc"
    path.write_bytes(sealed(FORGED[name]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(StorageError, match="inside is not what supermodel writes"):
        load_arrays(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_bytes_that_are_no_netcdf_and_were_sealed(tmp_path):
    path, rng = tmp_path / "f.nc", np.random.default_rng(0)
    save_arrays(path, {"g": {"v": np.arange(5.0)}}, {"a": 1})
    content = path.read_bytes()[: -len(_seal(b""))]
    for i in range(40):
        damaged = bytearray(content)
        for place in rng.integers(len(content), size=1 + i):
            damaged[place] = rng.integers(256)
        path.write_bytes(bytes(damaged) + _seal(bytes(damaged)))
        try:
            load_arrays(path)  # a number that changed is a number
        except StorageError:
            pass


# -- the inside of our own --------------------------------------------------------------------------------------------

JUNK = [None, True, -1, 0, 10**18, 1e308, float("nan"), "", "x", "\0", [], [[]], {}, {"x": 1}, [1, "x"], [None] * 3]


def damaged(groups, attrs, rng):
    """One random change: a field dropped, put elsewhere or replaced, an array of another shape or type."""
    groups, attrs = {g: dict(members) for g, members in groups.items()}, copy.deepcopy(attrs)
    if rng.random() < 0.5:
        group = rng.choice(list(groups))
        name = rng.choice(list(groups[group]))
        array = groups[group][name]
        changes = [
            lambda: groups.pop(group),
            lambda: groups[group].pop(name),
            lambda: groups[group].update({name: array[..., None]}),
            lambda: groups[group].update({name: array.ravel()[: array.size // 2]}),
            lambda: groups[group].update({name: np.zeros((0, *array.shape[1:]), array.dtype)}),
            lambda: groups[group].update({name: np.resize(array, (*array.shape[:-1], 7))}),
            lambda: groups[group].update({name: array.astype(str)}),
            lambda: groups[group].update({name: np.array("x")}),
            lambda: groups[group].update({name: -array.astype(int) - 1 if array.dtype.kind in "iu" else array.T}),
        ]
        changes[rng.integers(len(changes))]()
        return groups, attrs
    inside, key = attrs, str(rng.choice([k for k in attrs if k != "kind"]))
    while isinstance(inside[key], list | dict) and len(inside[key]) and rng.random() < 0.7:
        inside = inside[key]
        key = rng.integers(len(inside)) if isinstance(inside, list) else str(rng.choice(list(inside)))
    if rng.random() < 0.3:
        del inside[key]
    else:
        inside[key] = copy.deepcopy(JUNK[rng.integers(len(JUNK))])
    return groups, json.loads(json.dumps(attrs))


def test_a_result_that_was_damaged_and_sealed_is_refused_or_sound(tmp_path, monkeypatch):
    made_result().save(tmp_path / "result.nc")
    stored, rng, refused = load_arrays(tmp_path / "result.nc"), np.random.default_rng(5), 0
    for _ in range(400):
        changed = damaged(*stored, rng)
        monkeypatch.setattr(archive, "load_arrays", lambda path, changed=changed: changed)
        try:
            result = sm.load("result.nc")
        except StorageError:
            refused += 1
        else:
            str(result), result.to_json(), result.methods()
    assert 250 < refused < 400  # some changes are harmless: another seed, another number


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.nc"
    sm.compare(gamma_rates()[0], checkpoint=path, seed=2, explore="quick", progress=False)
    return load_arrays(path)


def test_a_checkpoint_that_was_damaged_and_sealed_is_refused_or_sound(stored, monkeypatch):
    models, rng, refused = gamma_rates()[0], np.random.default_rng(6), 0
    for _ in range(200):
        changed = damaged(*stored, rng)
        monkeypatch.setattr(checkpoint, "load_arrays", lambda path, changed=changed: changed)
        try:
            checkpoint.resume(Run(models, None, 2, explore="quick"), __file__)
        except StorageError:
            refused += 1
    assert 120 < refused < 200


def test_a_name_in_a_file_is_never_called(tmp_path):
    """How a prior is dressed stands in the file: two ways are known, and nothing else is looked up."""
    made_result().save(tmp_path / "result.nc")
    groups, attrs = load_arrays(tmp_path / "result.nc")
    name, parameter = attrs["names"][0], attrs["parameters"][0][0]
    for wraps in ([["sample", 1]], [["expand", [10**9]]], [["expand", [-1]]], [["__init__", 3]]):
        attrs["priors"][name][parameter]["wraps"] = wraps
        save_arrays(tmp_path / "forged.nc", groups, attrs)
        with pytest.raises(StorageError, match="a prior of another form"):
            sm.load(tmp_path / "forged.nc")
