"""Exploration of a model that extends a smaller one: what is new is searched for in what the smaller one leaves.

The further component is explored alone, at draws of what the smaller model knows; then all parameters move together. In place of
levels of the likelihood the points come from what is known of the smaller model with a further component (`extended.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supermodel.engine.explore.climb import Mode
from supermodel.engine.explore.cloud import Cloud
from supermodel.engine.explore.extended import Extended, drawn, extended, with_smaller
from supermodel.engine.explore.few import Explorer
from supermodel.engine.explore.fold import refuted
from supermodel.engine.explore.hills import lottery
from supermodel.engine.explore.pilot import Pilot
from supermodel.engine.explore.race import race, rough, starts_for, stratified
from supermodel.engine.meter import Meter
from supermodel.engine.policy import BASE, BATCH, FITTED, GROWN_DRAWS, GROWN_FIRST, GROWN_FITS, POOR, Effort
from supermodel.models.joint import Joint

Known = tuple[np.ndarray, np.ndarray]  # prior draws and ln L there


class Growing(Explorer):
    """Sealed replicates that begin at what a smaller model knows."""

    always_folds = True

    def __init__(self, smaller: Pilot, joint: Joint, meter: Meter, seed: int, stream: int, effort: Effort, may_fold: bool):
        super().__init__(joint, meter, seed, stream, effort, may_fold)
        self.smaller = smaller
        self.proposal: Extended | None = None  # the same in all replicates: what it knows of points is asked for once

    def _plain(self, known: Known) -> None:
        """The smaller model tells where to look; no other road is shorter."""

    def _searched(self, known: Known, size: int, rng: np.random.Generator, is_first: bool) -> tuple[Cloud, list[Mode]]:
        """Some draws of the prior, for a scale; and modes by climbs that begin at draws of the smaller model."""
        cloud = self._begun(known, min(size * self.effort.first_black, GROWN_FIRST), rng)
        climber, opened, smaller = self._climber(cloud), self.joint.opened, self.smaller
        x = with_smaller(smaller, self.joint, opened.space.sample_prior(rng, BATCH), drawn(smaller, rng, BATCH))
        held = rough(opened, self.meter, x, climber.scale)
        names = set(smaller.joint.space.names)
        new = np.concatenate([np.full(opened.space.priors[n].size, n not in names) for n in opened.space.names])
        most = max(self._starts(size, bool(held.any())), BATCH)
        n = max(starts_for(opened, self.meter, x, climber.scale, held & new, most), BATCH)
        starts = stratified(opened, n, np.flatnonzero(held & new if np.any(held & new) else new), rng)
        starts = with_smaller(smaller, self.joint, starts, drawn(smaller, rng, len(starts)))
        tops = race(climber, starts, held & new, rng, ~new)
        best = sorted(tops, key=lambda top: -top[1])[:BATCH]
        modes = self._distinct(climber, tops, [])
        if np.any(held & ~new):  # what the smaller model had found may have to move
            modes = self._distinct(climber, race(climber, np.array([point for point, _ in best]), held, rng), modes)
        return self._folded(cloud, modes) if is_first else (cloud, modes)

    def _onwards(self, cloud: Cloud, size: int, rng: np.random.Generator) -> None:
        """Draws of the smaller model with what is new, which is fitted again and again; levels where there is no such proposal."""
        if not self.sealed:
            self.proposal = extended(self.joint, self.smaller, self.symmetries or ())
        if self.proposal is None:
            super()._onwards(cloud, size, rng)
            return
        n = size * self.effort.first_black
        cloud.grow(self.proposal, GROWN_DRAWS * n, rng)
        for _ in range(GROWN_FITS):
            cloud.grow(self.proposal.fitted(cloud, rng), n, rng)

    def _pilot(self, cloud: Cloud) -> Pilot:
        """Where the reference is poor, weighted points answer for the posterior, and larger models extend what this one did."""
        pilot = super()._pilot(cloud)
        if len(self.sealed) > 1 and pilot.spread >= POOR:
            log_w = cloud.log_weights()
            rows, w = lottery(np.exp(log_w - log_w.max()), FITTED, self.rng(6))
            points = {"points": cloud.x[rows], "log_joint": cloud.log_joint[rows], "log_weights": np.log(w / w.sum())}
            pilot = replace(pilot, **points)
        if self.proposal is not None and pilot.spread >= BASE:
            fitted = self.proposal.fitted(cloud, self.rng(16))
            pilot = replace(pilot, base=fitted.base, new=fitted.new)
        return pilot


def look_at_few(
    joint: Joint, known: Known, seed: int, stream: int, meter: Meter, effort: Effort, smaller: Pilot | None = None
) -> Pilot:
    """Explore a model of few parameters; one that is symmetric only as far as prior draws and modes tell, again without that."""

    def explorer(may_fold: bool) -> Explorer:
        given = joint, meter, seed, stream, effort, may_fold
        return Explorer(*given) if smaller is None else Growing(smaller, *given)

    first = explorer(True)
    pilot = first.explore(known)
    wrong = first.refuted or refuted(pilot.joint, pilot.points, None, first.ask)
    if wrong:
        pilot = explorer(False).explore(known)
        pilot.symmetries = wrong
    return pilot
