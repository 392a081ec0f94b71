"""Exploration of a model that extends a smaller one: what is new is searched for in what the smaller one leaves.

The further component is explored alone, at draws of what the smaller model knows; then all parameters move together. Besides
levels of the likelihood the points come from what is known of the smaller model with a further component (`extended.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supermodel.engine.explore.alone import alone, explored_alone
from supermodel.engine.explore.capture import Capture
from supermodel.engine.explore.climb import Climber, Mode
from supermodel.engine.explore.cloud import Cloud, Warped, effective_size
from supermodel.engine.explore.extended import Extended, drawn, extended, with_smaller
from supermodel.engine.explore.few import Explorer
from supermodel.engine.explore.fold import refuted
from supermodel.engine.explore.hills import lottery
from supermodel.engine.explore.pairs import Pairs, pairs_at, shares_of
from supermodel.engine.explore.pilot import Pilot
from supermodel.engine.explore.profile import Profile, profiled
from supermodel.engine.explore.race import race, starts_for, stratified, turning
from supermodel.engine.meter import Meter
from supermodel.engine.policy import (
    ALONE,
    ALONE_STREAM,
    BASE,
    BATCH,
    CLOSE_PAIRS,
    FITTED,
    GROWN_COST,
    GROWN_DRAWS,
    GROWN_ENOUGH,
    GROWN_FIRST,
    GROWN_FITS,
    IMPROBABLE,
    IMPROBABLE_ERRORS,
    MISSED_MASS,
    MOST_FITS,
    PAIR_MODES,
    PAIR_REACH,
    PAIR_SHARE,
    PAIRED,
    PAIRS_FROM,
    PER_NUMBER,
    POOR,
    PROFILE_TRIES,
    ROUGH_TURNS,
    STRATUM,
    THIN,
    VAGUE,
    Effort,
)  # fmt: skip
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Circle, Exchange, coordinate

Known = tuple[np.ndarray, np.ndarray]  # prior draws and ln L there


class Growing(Explorer):
    """Sealed replicates that begin at what a smaller model knows."""

    def __init__(self, smaller: Pilot, joint: Joint, meter: Meter, seed: int, stream: int, effort: Effort, may_fold: bool):
        super().__init__(joint, meter, seed, stream, effort, may_fold)
        self.smaller = smaller
        self.highest = max(smaller.highest, smaller.rough_log_evidence)  # ln Z of the models that this one extends
        self.rough = np.zeros(joint.dimension, bool)  # coordinates along which ln L turns often
        self.proposal: Extended | None = None  # the same in all replicates: what it knows of points is asked for once;
        self.widest: Extended | None = None  # with the profile of the last replicate
        self.axis = 0  # the coordinate of the new component in which ln L turns most, and
        self.profile: Profile | None = None  # what is known along it
        self.pairs: list[Pairs] = []  # two components in the place of one
        self.by_itself: Warped | None = None  # what is known of the new component where several of its coordinates turn

    def _affordable(self) -> float:
        """The same; two replicates have to fit into what a limit leaves."""
        return min(super()._affordable(), self.meter.left / (2 * GROWN_COST))

    def _plain(self, known: Known) -> None:
        """The smaller model tells where to look; no other road is shorter."""

    def _searched(self, known: Known, size: int, rng: np.random.Generator, is_first: bool) -> tuple[Cloud, list[Mode]]:
        """Some draws of the prior, for a scale; and modes by climbs that begin at draws of the smaller model."""
        cloud = self._begun(known, min(size * self.effort.first_black, GROWN_FIRST), rng)
        before, modes = self.joint.opened, self._modes(cloud, size, rng)
        if is_first:
            cloud, modes = self._folded(cloud, modes)
            if self.joint.opened is not before and self.profile is not None:  # circles have been cut: other coordinates
                self._profiled(self._climber(cloud), size, rng)
                self.by_itself = None if self.by_itself is None else self._alone(rng)
        return cloud, modes

    def _modes(self, cloud: Cloud, size: int, rng: np.random.Generator) -> list[Mode]:
        """The new component is searched for alone, then all move."""
        climber, opened, smaller = self._climber(cloud), self.joint.opened, self.smaller
        x = with_smaller(smaller, self.joint, opened.space.sample_prior(rng, BATCH), drawn(smaller, rng, BATCH))
        turns = turning(opened, self.meter, x, climber.scale)
        held, new = turns > ROUGH_TURNS, self._new
        self.rough |= held
        if np.any(held & new):
            self.axis = int(np.argmax(np.where(held & new, turns, 0.0)))
            tops = climber.climb(self._profiled(climber, size, rng))
            if np.sum(held & new) > 1:  # of several that turn one profile does not tell all
                self.by_itself = self._alone(rng)
        else:
            self.profile = None
            starts = stratified(opened, max(self._starts(size, False), BATCH), np.flatnonzero(new), rng)
            tops = race(climber, with_smaller(smaller, self.joint, starts, drawn(smaller, rng, len(starts))), held & new, rng, ~new)
        modes = self._distinct(climber, tops, [])
        if np.any(held & ~new):  # what the smaller model had found may have to move
            best = np.array([point for point, _ in sorted(tops, key=lambda top: -top[1])[:BATCH]])
            modes = self._distinct(climber, race(climber, best, held, rng), modes)
        return modes

    def _profiled(self, climber: Climber, size: int, rng: np.random.Generator) -> np.ndarray:
        """Keep the profile of the new component; the highest points of it, from which all may climb."""
        opened, smaller, axis = self.joint.opened, self.smaller, self.axis
        x = with_smaller(smaller, self.joint, opened.space.sample_prior(rng, BATCH), drawn(smaller, rng, BATCH))
        along, most = np.arange(opened.dimension) == axis, max(self._starts(size, True), BATCH)
        n = max(starts_for(opened, self.meter, x, climber.scale, along, most), BATCH)
        others = np.flatnonzero(self._new & ~along)
        tries = int(np.clip(most // n, 1, PROFILE_TRIES if np.any(self.rough[others]) else 1))
        edges = np.quantile(opened.space.sample_prior(rng, STRATUM * n)[:, axis], np.linspace(0, 1, n + 1))
        starts = opened.space.sample_prior(rng, tries * n)
        best = smaller.points[[np.argmax(smaller.log_joint)]]
        starts = with_smaller(smaller, self.joint, starts, np.repeat(best, tries * n, axis=0))
        starts[:, axis] = np.tile(0.5 * (edges[1:] + edges[:-1]), tries)
        self.profile, tops, log_mass = profiled(climber, starts.reshape(tries, n, -1), edges, axis, others)
        beside = np.pad(log_mass, 1, constant_values=-np.inf)
        summit = (log_mass >= beside[:-2]) & (log_mass >= beside[2:])
        order = np.argsort(-np.where(summit, log_mass, -np.inf), kind="stable")
        return tops[order[: min(BATCH, int(summit.sum()))]]

    def _alone(self, rng: np.random.Generator) -> Warped:
        """The new component by itself, all else at the best point that is known."""
        smaller, known = self.smaller, set(self.smaller.joint.space.names)
        values = smaller.joint.space.values_at(smaller.points[[np.argmax(smaller.log_joint)]])
        names = [name for name in self.joint.opened.space.names if name not in known]
        joint = alone(self.joint.opened, names, {name: value[0] for name, value in values.items()})
        effort = self.effort._replace(patience=int(ALONE * self._patience()))
        return explored_alone(joint, [self.seeds[0], ALONE_STREAM + len(self.sealed)], self.meter, effort, rng)

    @property
    def _new(self) -> np.ndarray:
        """Which coordinates the smaller model lacks."""
        space, names = self.joint.opened.space, set(self.smaller.joint.space.names)
        return np.concatenate([np.full(space.priors[name].size, name not in names) for name in space.names])

    def order(self, exchange: Exchange) -> int | None:
        """By the first number along which ln L turns often, for there no two components are alike; where none does, by that which
        keeps them apart best.
        """
        space = self.joint.space
        at = [coordinate(space, entry) for entry in exchange.blocks[-1]]
        circles = {s.name for s in self.symmetries or () if isinstance(s, Circle)}
        names = [name for name, _ in exchange.blocks[-1]]
        return next((i for i, a in enumerate(at) if a is not None and self.rough[a] and names[i] not in circles), None)

    def _onwards(self, cloud: Cloud, size: int, rng: np.random.Generator) -> None:
        """Draws of the smaller model with what is new, fitted again and again; and levels, for what moves the others too."""
        smaller, found = self.smaller, self.symmetries or ()
        if not self.sealed:
            self.proposal = extended(self.joint, smaller.base or smaller, found, smaller.new)
        if self.proposal is None:
            return super()._onwards(cloud, size, rng)
        n = size * self.effort.first_black
        known = [density for density in (self.profile, self.by_itself) if density is not None]
        self.widest = replace(self.proposal, new=(*self.proposal.new, *known))
        cloud.grow(self.widest, GROWN_DRAWS * n, rng)
        if not self.sealed:
            self.pairs = self._close_pairs(self._climber(cloud))
        for pair, part in zip(self.pairs, shares_of(self.pairs), strict=True):
            cloud.grow(pair, int(part * GROWN_DRAWS * n), rng)
        if smaller.base is not None:  # two more than the data need: a pair, and another one anywhere
            beside = [extended(self.joint, smaller, found, self.widest.new, pair) for pair in smaller.pairs]
            for proposal in [each for each in beside if each is not None]:
                cloud.grow(proposal, n, rng)
        super()._onwards(cloud, size, rng)
        for k in range(MOST_FITS):
            if k >= GROWN_FITS and effective_size(cloud.log_weights()) >= GROWN_ENOUGH:
                break
            cloud.grow(self.widest.fitted(cloud, rng), n, rng)

    def _unpaired(self) -> float:
        """Nats that close components may be worth beyond what proposals tell of them."""
        needless = len(self.proposal.names)  # type: ignore[union-attr]
        return PAIRED if self.pairs and needless == 1 else CLOSE_PAIRS * needless

    def _close_pairs(self, climber: Climber) -> list[Pairs]:
        """For each component of the smaller model, about each of its better modes, two in the place of it.

        By slopes, and where one coordinate of a component turns: of several the cells would be too many.
        """
        exchange, turns = self.proposal and self.proposal.exchange, self.rough & self._new
        if exchange is None or self.joint.origin is None or not self.joint.is_traceable or np.sum(turns) != 1:
            return []
        if self.meter.left < PAIRS_FROM * GROWN_COST:
            return []
        joint, smaller, space = self.joint, self.smaller, self.joint.opened.space
        blocks = np.array([[coordinate(space, entry) for entry in block] for block in exchange.blocks], int)
        places = blocks[:, np.flatnonzero(turns[blocks[-1]])[0]]
        of_own = np.concatenate([np.arange(space.dimension)[space.slices[name]] for name in smaller.joint.space.names])
        own = Climber(smaller.joint.opened, self.meter, climber.centre[of_own], climber.scale[of_own])
        found = []
        for mode in self._better_modes(own, np.array([np.flatnonzero(of_own == place)[0] for place in places[:-1]])):
            width = np.zeros(space.dimension)
            width[of_own] = np.sqrt(np.sum(np.square(mode.warp.factor), axis=1))
            best = with_smaller(smaller, joint, climber.centre[None], mode.point[None])
            for block, place in zip(blocks[:-1], places[:-1], strict=True):
                starts = np.repeat(best, 2, axis=0)  # the second as the first, or as the prior has it
                starts[0, blocks[-1]] = best[0, block]
                starts[1, places[-1]] = best[0, place]
                starts = joint.space.in_order(starts)
                axes = np.sort(places[np.argsort(np.abs(starts[0, places] - best[0, place]), kind="stable")[:2]])
                found.append(pairs_at(climber, starts, axes, float(best[0, place]), float(width[place])))
        return [pair for pair in found if pair is not None]

    def _better_modes(self, climber: Climber, places: np.ndarray) -> list[Mode]:
        """Of the smaller model, by the places of its components: those that hold a good part of its posterior."""
        smaller, found = self.smaller, []
        left = np.ones(len(smaller.points)) if smaller.log_weights is None else np.exp(smaller.log_weights)
        least = PAIR_SHARE * left.sum()
        while len(found) < PAIR_MODES and left.sum() > least:
            i = int(np.argmax(np.where(left > 0, smaller.log_joint, -np.inf)))
            mode = climber.mode_at(smaller.points[i], smaller.log_joint[i])
            width = climber.scale[places] if mode is None else np.sqrt(np.sum(np.square(mode.warp.factor), axis=1))[places]
            near = np.all(np.abs(smaller.points[:, places] - smaller.points[i, places]) < PAIR_REACH * width, axis=1)
            if mode is not None and left[near].sum() > least:
                found.append(mode)
            left[near] = 0.0
            left[i] = 0.0
        return found

    def _is_settled(self, merged: Cloud) -> bool:
        """As ever; and two replicates are enough of a number of components that is far too improbable to matter."""
        return super()._is_settled(merged) or (len(self.sealed) > 1 and self._is_improbable(*merged.log_evidence()))

    def _is_improbable(self, value: float, error: float) -> bool:
        return value + IMPROBABLE_ERRORS * error < self.highest - IMPROBABLE

    def _vouched(self, capture: Capture) -> float:
        """By the errors of the replicates, and by how far each is from all points together: there is no ladder to tell."""
        if not self.sealed:
            return np.inf
        whole = self._merged().log_evidence()[0]
        arrived = [look for _, look in self.sealed if look.error < VAGUE] or [look for _, look in self.sealed]
        off = [(look.error, look.log_evidence - whole) for look in arrived]
        return float(np.sqrt(np.mean(np.sum(np.square(off), axis=1))))

    def _pilot(self, cloud: Cloud) -> Pilot:
        """Where the reference is poor, weighted points answer for the posterior, and larger models extend what this one did."""
        pilot = replace(super()._pilot(cloud), highest=self.highest)
        log_w = cloud.log_weights()
        size = effective_size(log_w)
        if self.sealed and (pilot.spread >= POOR or size < PER_NUMBER * self.joint.dimension):
            rows, w = lottery(np.exp(log_w - log_w.max()), FITTED, self.rng(6))
            # Where few draws are effective, as much may lie where none has come; and of components that are not needed more lies
            # where they stand close together than any proposal tells.
            thin = MISSED_MASS * min(THIN * len(cloud) / max(size, 1.0), 1.0)
            is_needless = self.proposal is not None and self.proposal.exchange and pilot.log_evidence < self.highest
            pairs = self._unpaired() if is_needless else 0.0
            unsure = float(np.hypot(thin, pilot.vouched))
            is_clear = unsure < MISSED_MASS or self._is_improbable(pilot.log_evidence, unsure / IMPROBABLE_ERRORS)
            pilot = replace(
                pilot, points=cloud.x[rows], log_joint=cloud.log_joint[rows], log_weights=np.log(w / w.sum()),
                doubt=float(np.sqrt(pilot.doubt**2 + thin**2 + pairs**2)), is_agreed=pilot.is_agreed and is_clear,
            )  # fmt: skip
        if self.proposal is not None and pilot.spread >= BASE:
            fitted = self.widest.fitted(cloud, self.rng(16))
            pilot = replace(pilot, base=fitted.base, new=fitted.new, pairs=tuple(self.pairs))
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
