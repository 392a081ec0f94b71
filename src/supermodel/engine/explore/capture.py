r"""Capture and recapture: what sealed replicates have found in common tells how likely all of them have missed a mode.

The union of all clouds is parted into islands $j$ with shares $w_j$ of the evidence. Replicate $k$ has captured an island if its
own cloud, by itself, gives at least half of that island's evidence. Of K captures each, $h = \sum_j w_j t_j$ came about, $t_j$
being the number of replicates that found island j. With a Beta(a, b) law of the chance p that a replicate finds a mode, updated
to Beta(a + h, b + K - h), all miss one with probability $E (1 - p)^K = B(a + h, b + 2K - h) / B(a + h, b + K - h)$.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from supermodel.embedding.reference import Hills
from supermodel.engine.explore.cloud import Cloud, effective_size, fitted, log_sum
from supermodel.engine.policy import CAPTURE_PRIOR, CAPTURED, CAPTURED_BY, DOF, MOST_HILLS


class Capture(NamedTuple):
    """How many replicates there were, and what follows for what they did not find."""

    replicates: int = 0
    missed: float = 0.0  # chance that a mode was missed by all
    scatter: float = 0.0  # nats: of their ln Z about the union's, on the islands that each has captured


def captured(
    union: Cloud, replicates: Sequence[Cloud], counts: Sequence[bool], rng: np.random.Generator, start: Hills | None
) -> Capture:
    """Of the islands of `union`, which replicates have captured which; those that do not count have captured nothing."""
    found = fitted(union, union.log_weights(), rng, MOST_HILLS, DOF, 1.0, start)
    label = found.hills.island_of()

    def by_island(cloud: Cloud) -> list[np.ndarray]:
        of = label[np.argmax(found.hills.log_parts(np, found.warp.inverse(cloud.x)), axis=1)]
        log_w = cloud.log_weights()
        return [np.where(of == j, log_w, -np.inf) for j in range(label.max() + 1)]

    whole = np.array([log_sum(w) for w in by_island(union)])  # (islands,)
    each = [by_island(cloud) for cloud in replicates]
    parts = np.array([[log_sum(w) for w in islands] for islands in each])  # (K, islands)
    # A few lucky points are no capture.
    rests = np.array([[effective_size(w) >= CAPTURED_BY for w in islands] for islands in each])
    has = (parts > whole + np.log(CAPTURED)) & rests & np.array(counts)[:, None]
    k, hits = len(replicates), float(np.exp(whole - log_sum(whole)) @ has.sum(axis=0))
    a, b = CAPTURE_PRIOR[0] + hits, CAPTURE_PRIOR[1] + k - hits
    missed = float(np.exp(betaln(a, b + k) - betaln(a, b)))
    apart = [log_sum(part[row]) - log_sum(whole[row]) for part, row in zip(parts, has, strict=True) if row.any()]
    return Capture(k, missed, float(np.sqrt(np.mean(np.square(apart)))) if apart else 0.0)
