r"""Capture and recapture: what sealed replicates have found in common tells how much of a posterior none has found.

The union of all clouds is parted into islands $j$ with shares $w_j$ of the evidence. Replicate $k$ has captured an island if its own
cloud, by itself, gives at least half of that island's evidence. With $K$ replicates the mass that none has seen is estimated, as by
Good and Turing, from what one alone has seen: $\hat u = \frac1K \sum_j w_j\,[j \text{ captured by exactly one}]$.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from supermodel.embedding.reference import Hills
from supermodel.engine.explore.cloud import Cloud, fitted, log_sum
from supermodel.engine.policy import CAPTURE_PRIOR, CAPTURED, DOF, MOST_HILLS


class Capture(NamedTuple):
    """How many replicates there were, the islands that they found, and what follows for what they did not find."""

    replicates: int
    islands: int
    unseen: float  # share of the evidence that no replicate has found
    missed: float  # chance that an island was missed by all

    @classmethod
    def none(cls) -> Capture:
        return cls(0, 1, 0.0, 0.0)


def captured(union: Cloud, replicates: list[Cloud], rng: np.random.Generator, start: Hills | None = None) -> Capture:
    """Of the islands of `union`, which replicates have captured which."""
    found = fitted(union, union.log_weights(), rng, MOST_HILLS, DOF, 1.0, start)
    label = found.hills.island_of()

    def by_island(cloud: Cloud) -> np.ndarray:
        of = label[np.argmax(found.hills.log_parts(np, found.warp.inverse(cloud.x)), axis=1)]
        log_w = cloud.log_weights()
        return np.array([log_sum(np.where(of == j, log_w, -np.inf)) for j in range(label.max() + 1)])

    whole = by_island(union)
    share = np.exp(whole - log_sum(whole))
    has = np.array([by_island(cloud) > whole + np.log(CAPTURED) for cloud in replicates])  # (K, islands)
    times, k = has.sum(axis=0), len(replicates)
    unseen = float(np.sum(share[times <= 1])) / k
    # The chance p that a replicate captures an island has a Beta law, updated by what was captured; all miss by (1 - p)^K.
    hits = float(share @ times)
    a, b = CAPTURE_PRIOR[0] + hits, CAPTURE_PRIOR[1] + k - hits
    return Capture(k, int(np.sum(share > 1e-3)), unseen, float(np.exp(betaln(a, b + k) - betaln(a, b))))
