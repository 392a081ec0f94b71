"""Surveys with exact answers: models without parameters, whose ln Z is ln L, and a worker that knows it."""

import itertools
import os
import time

import numpy as np
from scipy import stats

import supermodel as sm
from supermodel.survey.buckets import refused
from supermodel.survey.chunk import unpadded
from supermodel.survey.job import Outcome


def none(p, data):
    return float(-0.5 * np.sum(np.asarray(data["y"], float) ** 2))


def one(p, data):
    return float(-0.5 * np.sum((np.asarray(data["y"], float) - 1.0) ** 2))


def shift(p, data):
    return float(-0.5 * np.sum((np.asarray(data["y"], float) - float(p["mu"])) ** 2))


def shifted():
    """A mean of N(0, 2) against none, as black boxes."""
    return {"shift": sm.Model({"mu": stats.norm(0, 2)}, shift), "none": sm.Model({}, none)}


def models():
    return {"one": sm.Model({}, one), "none": sm.Model({}, none)}


def data_sets(n, lengths=(5,), seed=0):
    rng = np.random.default_rng(seed)
    return [{"y": rng.normal(size=lengths[i % len(lengths)]), "do": 0.0} for i in range(n)]


def instant(job, chunk):
    """`weigh` at once; "do" tells what becomes of a worker: -1 raises, -2 kills it, a positive number is a nap in seconds."""
    found = []
    for i, (row, name) in enumerate(zip(chunk.rows, chunk.names, strict=True)):
        data = unpadded(chunk, i)
        do = float(data.get("do", 0.0))
        if do == -2:
            os._exit(9)
        if do == -1:
            found.append(refused(row, name, "model", "RuntimeError: asked for"))
            continue
        time.sleep(max(do, 0.0))
        known = {m: (float(model.log_likelihood({}, data)), 0.0) for m, model in job.models.items()}
        pairs = {(a, b): (known[a][0] - known[b][0], 0.0) for a, b in itertools.combinations(job.models, 2)}
        found.append(Outcome(int(row), name, known, pairs, evaluations=2, seconds=time.time()))
    return found


def hurried(patch):
    """Let all surveys be weighed by `instant`, here and in workers; `patch` is pytest's, or `setattr`."""
    from supermodel.survey import spread

    patch(spread, "weigh", instant)
    patch(spread, "weighed", instant)


def truth(given):
    return np.array([one({}, data) - none({}, data) for data in given])


def same_but_for_seconds(a, b):
    """Whether two tables are equal, row for row, times aside."""
    return a.drop(columns="seconds").equals(b.drop(columns="seconds"))
