"""Chunks: padded to a handful of lengths, the same whenever they are made, and nobody is lost on the way."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import supermodel as sm
from supermodel.survey.buckets import Bucketing, Refused, bucket, digest
from supermodel.survey.chunk import unpadded
from supermodel.survey.datasets import Unreadable, collected
from survey_problems import models


def pieces(data_sets, size=4, **options):
    return list(Bucketing(models(), size, **options).pieces(collected(data_sets)))


def refusals(data_sets, **options):
    return [o for piece in pieces(data_sets, **options) if isinstance(piece, Refused) for o in piece.outcomes]


@given(st.integers(1, 10**7))
def test_buckets_are_long_enough_and_not_much_longer(n):
    assert n <= bucket(n) <= max(8, 1.5 * n + 1) and bucket(bucket(n)) == bucket(n)


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 7), st.booleans())
def test_every_data_set_comes_once_and_as_it_was(lengths, size, is_padded):
    given = [{"y": np.arange(n) + 100.0 * i, "z": float(i)} for i, n in enumerate(lengths)]
    found = pieces(given, size, is_padded=is_padded)
    assert [piece.number for piece in found] == list(range(len(found)))
    rows = []
    for piece in found:
        assert 1 <= len(piece) <= size
        if isinstance(piece, Refused):
            rows += [o.row for o in piece.outcomes]
            assert all(lengths[o.row] == 0 for o in piece.outcomes)
            continue
        rows += piece.rows.tolist()
        assert list(piece.rows) == sorted(piece.rows) and is_padded | (piece.lengths is None)
        assert piece.columns["y"].shape[1] in {bucket(n) for n in lengths} | set(lengths)
        for i, row in enumerate(piece.rows):
            data = unpadded(piece, i)
            assert np.array_equal(data["y"], given[row]["y"]) and data["z"] == given[row]["z"]
            assert np.all(piece.columns["y"][i, len(data["y"]) :] == given[row]["y"][-1])
    assert sorted(rows) == list(range(len(lengths)))


def test_ragged_data_sets_have_a_handful_of_shapes():
    rng = np.random.default_rng(0)
    given = [{"y": rng.normal(size=n)} for n in rng.integers(20, 200, size=3000)]
    shapes = {piece.columns["y"].shape[1] for piece in pieces(given, 100, is_padded=True)}
    assert len(shapes) <= 7
    notes = Bucketing(models(), 100)
    list(notes.pieces(collected(given)))
    assert "180 shapes" in notes.notes[0]


def test_one_length_needs_no_padding():
    (piece,) = pieces([{"y": np.ones(50)}] * 4, is_padded=True)
    assert piece.lengths is None and piece.columns["y"].shape == (4, 50)


def test_other_columns_and_types_are_other_chunks():
    given = [{"y": np.ones(3)}, {"y": np.ones(3, int)}, {"y": np.ones((3, 2))}, {"y": np.ones(3), "x": np.ones(3)}]
    assert [list(piece.rows) for piece in pieces(given)] == [[0], [1], [2], [3]]
    assert len(pieces([{"y": np.ones(3, np.float32)}, {"y": [1.0, 2.0, 3.0]}, {"y": np.ones(3)}])) == 1


@pytest.mark.parametrize(
    "bad, told",
    [
        (7, "this is int"),
        ({}, "this is dict"),
        (None, "this is NoneType"),
        (Unreadable("torn"), "torn"),
        ({"y": None}, "the column 'y' is missing"),
        ({"y": [{}, 1]}, "no array of numbers or texts"),
        ({"y": [[1, 2], [3]]}, "no array of numbers or texts"),
        ({"y": np.ones(2) * 1j}, "no array of numbers or texts"),
        ({"x": np.ones(3)}, r"\['y'\] are missing"),
        ({"y": np.ones(3), "x": np.ones(2)}, "different lengths"),
        ({"y": np.ones(0)}, "no points"),
        ({"y": np.array([1.0, np.nan])}, "column 'y', row 1"),
        ({"y": np.array([1.0, np.inf])}, "row 1 .* is inf"),
        (pd.DataFrame({"y": [None, 2.0]}), "column 'y', row 0"),
    ],
)
def test_what_cannot_be_read_is_flagged_and_stops_nobody(bad, told):
    import re

    (outcome,) = refusals([{"y": np.ones(2)}, bad, {"y": np.ones(2)}])
    assert (outcome.row, outcome.name, outcome.level, outcome.codes, outcome.route) == (1, 1, "fail", ("data",), "none")
    assert re.search(told, outcome.reason) and "\n" not in outcome.reason
    assert len(refusals([{"y": np.ones(2)}] * 3)) == 0


def test_holes_are_dropped_or_kept():
    holed = {"y": np.array([1.0, np.nan, 3.0]), "x": np.arange(3.0)}
    buckets = Bucketing(models(), 4, "drop")
    (dropped,) = buckets.pieces(collected([holed]))
    assert np.array_equal(dropped.columns["x"], [[0.0, 2.0]]) and "dropped 1 points of 1 data sets" in buckets.notes[0]
    (kept,) = pieces([holed], missing="keep")
    assert np.array_equal(kept.columns["y"], [holed["y"]], equal_nan=True)
    assert "drop all 1 rows" in refusals([{"y": np.array([np.nan])}], missing="drop")[0].reason


def test_columns_that_no_model_reads_are_left_out():
    import numpyro.distributions as dist

    line = sm.Model({"a": dist.Normal(0, 1)}, predict=lambda p, x: p["a"] * x, noise=sm.Gaussian(1.0))
    given = [{"x": np.ones(2), "y": np.ones(2), "kind": {"any": "thing"}}, {"x": np.ones(2), "y": np.ones(2)}]
    (piece,) = Bucketing({"line": line}, 4).pieces(collected(given))
    assert set(piece.columns) == {"x", "y"} and len(piece) == 2


def test_points_that_are_taken_for_data_sets_are_told(caplog):
    frame = pd.DataFrame({"object": [1, 1, 2], "y": [0.1, 0.2, 0.3]})
    for by, notes in ((None, 1), ("object", 0)):
        buckets = Bucketing(models(), 4)
        list(buckets.pieces(collected(frame, by=by)))
        assert len(buckets.notes) == notes
    assert caplog.text.count("by=") == 1


def test_only_some_keep_their_places():
    (piece,) = pieces({"y": np.ones((6, 2))}, only={"1", "4"})
    assert piece.rows.tolist() == [1, 4] and piece.names == (1, 4)


def test_a_digest_tells_other_data():
    given = [{"y": np.ones(2)}, 7]
    assert [digest(p) for p in pieces(given)] == [digest(p) for p in pieces(given)]
    assert digest(pieces(given)[0]) != digest(pieces([{"y": np.full(2, 1 + 1e-15)}, 7])[0])
    assert digest(pieces(given)[1]) != digest(pieces([{"y": np.ones(2)}, 8.0])[1])
