r"""Exploration of a model of few parameters: sealed replicates, whose points are one importance sample.

A posterior that is normal, concave as far as gradients tell, of one or two parameters that prior draws resolve, or (where calls
are dear) a quadratic through all points seen is known after some thousand calls. Any other is explored by one procedure,
`_replicate`, from its own random numbers: draws of the prior, climbs from them, a race of thousands of climbs unless ln J seems
concave, mixtures at the modes, and levels of the likelihood. It is run at least twice, and replicates share nothing until each
has sealed what it found. Then all points are one sample, and what replicates found in common tells how likely all have missed a
mode (`capture.py`). While that is too likely, or they disagree, a further replicate of twice the size is run, if patience lasts.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np

from supermodel.embedding.reference import Hills, one_hill, standard_normal
from supermodel.embedding.warp import Bent, identity
from supermodel.engine.explore.bent import bent_by_slopes, fit_bent
from supermodel.engine.explore.capture import Capture, captured
from supermodel.engine.explore.climb import Climber, Mode, distinct, find_modes, hills_of, summits
from supermodel.engine.explore.cloud import Cloud, Prior, Warped, effective_size, scale_of
from supermodel.engine.explore.extended import drawn, extended, with_smaller
from supermodel.engine.explore.fold import folded
from supermodel.engine.explore.paths import by_level, is_floor, off_the_floor, polish
from supermodel.engine.explore.pilot import Fit, Look, Pilot, fitted_reference
from supermodel.engine.explore.quadratic import by_quadratic, coefficients, fitted_quadratic
from supermodel.engine.explore.race import race, rough, seems_concave, standing_out, starts_for, stratified
from supermodel.engine.explore.scout import Scout
from supermodel.engine.explore.walks import follow
from supermodel.engine.meter import Enough, Meter
from supermodel.engine.policy import (
    AGREE_ERRORS,
    AGREE_NATS,
    BATCH,
    CALM,
    DOF,
    ENOUGH,
    EXACT,
    FLOOR,
    GROWN_DRAWS,
    GROWN_FIRST,
    MISSED,
    MISSED_MASS,
    MOST_MODES,
    RACE_SHARE,
    RACE_STEPS,
    REPLICATED,
    RESOLVED,
    RESOLVES,
    SCAN,
    SCAN_SHARE,
    SMOOTH,
    SMOOTH_BENT,
    VAGUE,
    Effort,
)  # fmt: skip
from supermodel.engine.whiten import by_scores, spread
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Symmetry, same, symmetries

CROWDED = 10.0  # widths of a cloud's highest points within which its posterior is
# Times the draws of a level that must be normal to rounding as well, before a posterior is taken for that: of up to four
# parameters, and of more, where a mode apart is a smaller part of the prior.
FAR_DRAWS = (12, 48)
SLOPES = 3  # times the coefficients of a quadratic, about the heaviest mode
HELD_IN = 0.7  # of the points that bends are fitted to; the others judge them
SLACK = 0.03  # nats: the least error that a look claims
SHUFFLED = 8  # draws of a folded posterior at which other labels must leave ln L as it is


class Explorer:
    """Sealed replicates of one model; their clouds share nothing but the model until they are merged."""

    def __init__(
        self, joint: Joint, meter: Meter, seed: int, stream: int, effort: Effort, smaller: Pilot | None, may_fold: bool
    ):
        self.joint, self.meter, self.effort = joint, meter, effort
        self.smaller = smaller  # what is known of the model that this one extends
        self.symmetries: tuple[Symmetry, ...] = ()
        self.may_fold = may_fold
        self.seeds = [seed, stream]
        self.looks: list[Look] = []
        self.clouds: list[Cloud] = []
        self.warps: tuple = ()  # that curvature suggests
        self.bent: Bent | None = None  # and slopes about the heaviest mode
        self.scout = Scout(joint, meter, effort)
        self.sealed: list[tuple[Cloud, Look]] = []  # of replicates
        self.modes: list[Mode] = []  # that they found
        self.union: Any = None  # of all clouds, and
        self.merged_lengths: list[int] = []  # how long they were then
        self.began = meter.evaluations
        self.is_flat = False  # whether most of the prior is a floor: no slope leads anywhere
        self.is_concave = False  # whether no slopes contradict a concave ln J

    def rng(self, look: int) -> np.random.Generator:
        return np.random.default_rng([*self.seeds, look])

    def cloud(self) -> Cloud:
        """A new cloud, which counts from its first point on."""
        self.clouds.append(Cloud(self.joint, self._likelihood))
        return self.clouds[-1]

    def _likelihood(self, x: np.ndarray) -> np.ndarray:
        """ln L; where the labels are not in order nobody asks."""
        if self.joint.opened is self.joint:
            return self.meter.likelihood(self.joint, x)
        found, inside = np.full(len(x), -np.inf), np.isfinite(self.joint.space.log_prior_at(x))
        found[inside] = self.meter.likelihood(self.joint, x[inside])
        return found

    def _climber(self, cloud: Cloud) -> Climber:
        return Climber(self.joint.opened, self.meter, *scale_of(cloud))

    def explore(self, known: tuple[np.ndarray, np.ndarray]) -> Pilot:
        """What is plain, or replicates; and the reference fitted to all of their points."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            since = self.meter.evaluations
            try:
                plain = None
                if self.smaller is None:
                    plain = self._traced(known) if self.joint.is_traceable else self._quadratically(known)
                if plain is not None:
                    return plain
                self._replicates(known)
            except Enough:
                # A limited budget: what was found so far has to do, and the verdict says whether replicates agreed.
                merged = self._merged()
                if not np.isfinite(merged.log_evidence()[0]):
                    raise
                if not self.looks:
                    self._note("cut short", merged, since)
            return self._pilot(self._merged())

    def _traced(self, known: tuple[np.ndarray, np.ndarray]) -> Pilot | None:
        """A posterior that is normal to rounding, or concave as far as slopes can tell; None if it is neither."""
        first = self._climbs(known)
        exact = self._exact(first)
        if exact is not None:
            return exact
        if not self.effort.second:
            return self._pilot(self._merged())
        if (self._slopes() or self._is_resolved()) and self._is_settled(self._merged()):
            return self._pilot(self._merged())
        return None

    def _quadratically(self, known: tuple[np.ndarray, np.ndarray]) -> Pilot | None:
        """Where calls are dear: a quadratic through all points seen, and another one from elsewhere that agrees."""
        if not self.effort.is_thrifty:
            return None
        first = self._quadratic(known)
        exact = self._exact(first)
        if exact is not None:
            return exact
        if self.effort.second or self._affords_second(first):
            self._second()
        return self._pilot(self._merged()) if self._is_simple() else None

    def _merged(self) -> Cloud:
        """All clouds as one; those that are as they were are not merged anew."""
        lengths = [len(cloud) for cloud in self.clouds]
        done = len(self.merged_lengths)
        if not done or self.merged_lengths != lengths[:done]:
            self.union, done = self.clouds[0], 1
        self.union = functools.reduce(Cloud.merged, self.clouds[done:], self.union)
        self.merged_lengths = lengths
        return self.union

    # -- looks ----------------------------------------------------------------------------------------------------

    def _note(self, name: str, cloud: Cloud, since: int) -> None:
        value, error = cloud.log_evidence()
        size = effective_size(cloud.log_weights())
        # Few effective draws: the spread of the weights that were seen says little of those that were not.
        error = float(np.hypot(error, SLACK) * (1 + 50 / max(size, 1.0)))
        self.looks.append(Look(name, value, error, self.meter.evaluations - since))

    def _begun(self, known: tuple[np.ndarray, np.ndarray], n: int, rng: np.random.Generator) -> Cloud:
        """A cloud of `n` prior draws, of which some are known already."""
        cloud = self.cloud()
        cloud.add(Prior(self.joint), *known)
        if n > len(known[0]):
            cloud.grow(Prior(self.joint), n - len(known[0]), rng)
        return cloud

    def _climbs(self, known: tuple[np.ndarray, np.ndarray]) -> Cloud:
        since, rng = self.meter.evaluations - len(known[0]), self.rng(1)
        cloud, n = self._begun(known, 0, rng), max(self.effort.first - len(known[0]), 0)
        self.is_flat = is_floor(cloud)
        if self.is_flat:
            cloud.grow(Prior(self.joint), n, rng)
            self._off_the_floor(cloud, rng)
        else:
            self.scout.slopes = self.scout.draw(cloud, Prior(self.joint), n, rng)
        self._climb(cloud, rng)
        polish(cloud, rng, max(self.effort.second, BATCH))
        self._note("climbs", cloud, since)
        return cloud

    def _quadratic(self, known: tuple[np.ndarray, np.ndarray]) -> Cloud:
        """A look only if it arrives: where no quadratic fits, its points serve the looks that come."""
        since, rng = self.meter.evaluations - len(known[0]), self.rng(8)
        cloud = self._begun(known, coefficients(self.joint.dimension), rng)
        warp = by_quadratic(cloud, rng, ENOUGH // 3)
        if warp is not None:
            self.warps = (warp,)
            self._note("quadratic", cloud, since)
            # If ln J is a quadratic everywhere, all points tell which, however little they weigh.
            plain = fitted_quadratic(cloud.x, cloud.log_joint, np.ones(len(cloud)), np.inf, np.inf)
            if plain is not None and _is_exact(cloud, plain):
                self.warps = (plain,)
        return cloud

    # -- sealed replicates ----------------------------------------------------------------------------------------

    def _replicates(self, known: tuple[np.ndarray, np.ndarray]) -> None:
        """At least two, and further ones while too much may be unseen and patience lasts."""
        if self.clouds:  # what is known has been used, by a path that did not arrive
            known = (known[0][:0], known[1][:0])
        if not self.effort.is_thrifty:
            self.looks = []
        smaller = self.effort.scaled(self._patience() / REPLICATED)
        self.effort = smaller._replace(is_thrifty=self.effort.is_thrifty)
        most = self.effort.replicates
        for k in range(most):
            began, size = self.meter.evaluations, 2 ** max(k - 1, 0)
            self._replicate(k, size, known if k == 0 else (known[0][:0], known[1][:0]))
            if k + 1 >= min(2, most) and self._is_settled(self._merged()):
                break
            if k and 2 * (self.meter.evaluations - began) > self._patience():  # the next is of twice the size
                break

    def _patience(self) -> float:
        """Evaluations that may still be spent on exploring."""
        return min(self.effort.patience - (self.meter.evaluations - self.began), self.meter.left)

    def _replicate(self, k: int, size: int, known: tuple[np.ndarray, np.ndarray]) -> None:
        """From the prior, or from what a smaller model knows, to a sealed ln Z, with nothing but its own random numbers."""
        since, rng, level = self.meter.evaluations - len(known[0]), self.rng(20 + k), size * self.effort.level
        grows, n = self.smaller is not None, size * self.effort.first_black
        cloud = self._begun(known, min(n, GROWN_FIRST) if grows else n, rng)
        if not grows:
            self._off_the_floor(cloud, rng)
        modes = self._found_in_what_is_left(cloud, size, rng) if grows else self._found(cloud, size, rng)
        if not k and self.may_fold:
            cloud, modes = self._folded(cloud, modes)
        hills = hills_of(modes, DOF).hills if modes else None
        if hills is not None:
            cloud.grow(Warped(identity(self.joint.dimension), hills), BATCH * min(len(hills.log_weights), 16), rng)
        if grows and not k:
            self.joint.defence = extended(self.joint, self.smaller, self.symmetries)
        if self.joint.defence is not None:
            cloud.grow(self.joint.defence, GROWN_DRAWS * n, rng)
        else:
            by_level(cloud, rng, level)
        polish(cloud, rng, level, start=hills, least=int(len(modes) > 1))
        self.modes += modes
        self._note("replicate" if k < 2 else f"replicate × {size}", cloud, since)
        self.sealed.append((cloud, self.looks[-1]))

    def _found(self, cloud: Cloud, size: int, rng: np.random.Generator) -> list[Mode]:
        """Modes by climbs from draws of the prior: from the highest, from any, and from those that the modes found so do not
        explain; and from thousands, in a race, where ln J is not concave.
        """
        if is_floor(cloud) or not self.effort.race:
            return []
        climber, d = self._climber(cloud), self.joint.dimension
        if d > RESOLVED:
            n = min(SCAN * size * self.effort.first_black, SCAN_SHARE * self._patience())
            cloud.grow(Prior(self.joint), int(n), rng)
        rows = summits(cloud.x, cloud.log_joint, self.effort.climbs)
        possible = np.flatnonzero(np.isfinite(cloud.log_joint))
        others = rng.choice(possible, min(self.effort.climbs, len(possible)), replace=False)
        modes = self._distinct(climber, climber.climb(cloud.x[np.concatenate([rows, others])]), [])
        odd = standing_out(self.joint, cloud.x, cloud.log_likelihood, self.effort.climbs)
        modes = self._distinct(climber, climber.climb(cloud.x[odd]), modes)
        first = np.concatenate(
            [odd, others, rng.choice(possible, min(self.effort.first_black, len(possible)), replace=False)]
        )
        if len(modes) == 1 and seems_concave(self.joint, self.meter, cloud.x[first], cloud.log_joint[first], rng):
            return modes
        if d <= RESOLVED and self._resolves(cloud, size * self.effort.first_black):
            return modes
        held = rough(self.joint, self.meter, cloud.x[:BATCH], climber.scale)
        n = self._starts(size, bool(held.any()) or len(modes) > 1)
        if n < BATCH:
            return modes
        axes = np.flatnonzero(held) if held.any() else np.arange(self.joint.dimension)
        x = stratified(self.joint, n if held.any() else n // 2, axes, rng)
        odd = standing_out(self.joint, cloud.x, cloud.log_likelihood, n - len(x))
        starts = np.concatenate([x, cloud.x[odd]])
        cloud.add(Prior(self.joint), x, cloud.evaluate(x))
        return self._distinct(climber, race(climber, starts, held, rng), modes)

    def _starts(self, size: int, is_odd: bool) -> int:
        """Climbs of a race: about ten steps of each, by differences d + 1 calls a step, are a part of the patience."""
        each = RACE_STEPS * (1 if self.joint.is_traceable else self.joint.dimension + 1)
        full = size * self.effort.race / (1 if is_odd else CALM)
        return int(min(full, RACE_SHARE * self._patience() / each))

    def _found_in_what_is_left(self, cloud: Cloud, size: int, rng: np.random.Generator) -> list[Mode]:
        """Modes by climbs that begin at draws of the smaller model: what is new is searched for alone, then all moves."""
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
        return modes

    def _distinct(self, climber: Climber, tops: list, known: list[Mode]) -> list[Mode]:
        """The modes among the tops of climbs, in the one labelling that is kept."""
        if tops and self.joint.opened is not self.joint:
            x = self.joint.space.in_order(np.array([point for point, _ in tops]))
            tops = [(point, value) for point, (_, value) in zip(x, tops, strict=True)]
        return distinct(climber, tops, MOST_MODES, known)[0]

    # -- symmetries -----------------------------------------------------------------------------------------------

    def _folded(self, cloud: Cloud, modes: list[Mode]) -> tuple[Cloud, list[Mode]]:
        """Of a symmetric model one labelling is kept from here on, with the prior draws and the modes that are known."""
        rows = np.flatnonzero(cloud.is_prior)
        x, value, whole = cloud.x[rows], cloud.log_likelihood[rows], self.joint
        ask = functools.partial(self.meter.likelihood, whole)
        self.symmetries = symmetries(whole, x, value, ask, whole.unread)
        self.joint = folded(whole, self.symmetries, modes, self.smaller is not None)
        if self.joint is whole:
            return cloud, modes
        self.symmetries = self.joint.space.symmetries
        self.clouds, self.looks, self.warps, self.bent = [], [], (), None
        self.scout, self.is_flat = Scout(self.joint, self.meter, self.effort), False
        fresh = self.cloud()
        fresh.add(Prior(self.joint), self.joint.space.points_from(whole.space, x), value)
        tops = [
            (p, m.log_joint)
            for p, m in zip(
                self.joint.space.points_from(whole.space, np.array([m.point for m in modes])), modes, strict=True
            )
        ]
        return fresh, self._distinct(self._climber(fresh), tops, [])

    def is_symmetric(self, pilot: Pilot) -> bool:
        """Whether other labels leave ln L as it is where the posterior is: in the prior they did."""
        if self.joint.opened is self.joint:
            return True
        rng = self.rng(15)
        x = pilot.points[rng.choice(len(pilot.points), min(SHUFFLED, len(pilot.points)), replace=False)]
        moved = self.joint.space.shuffled(rng, x)
        found = self.meter.likelihood(self.joint, np.concatenate([x, moved]))
        return bool(np.all(same(found[len(x) :], found[: len(x)])))

    # -- where calls are dear -------------------------------------------------------------------------------------

    def _is_simple(self) -> bool:
        """Whether a black box needs no more than a quadratic and a look over its whole prior that agrees with it."""
        if not self.warps:
            return False
        merged = self._merged()
        if effective_size(merged.log_weights()) < ENOUGH:
            by_quadratic(merged, self.rng(9), ENOUGH)
            self.clouds = [merged]
        return self._is_settled(merged) and self._is_smooth(merged)

    def _is_smooth(self, cloud: Cloud) -> bool:
        """Whether the quadratic through all points leaves little of the posterior unexplained, or bends of it still less."""
        warp, seen = _through_all(cloud), np.isfinite(cloud.log_weights())
        if warp is None:
            return False
        x, log_joint, root = cloud.x[seen], cloud.log_joint[seen], np.sqrt(self.joint.dimension)
        weight = np.exp(cloud.log_weights()[seen] - cloud.log_weights().max())
        if spread(log_joint, x, warp, weight) < SMOOTH * root:
            return True
        fitted = self.rng(13).random(len(x)) < HELD_IN
        bent = fit_bent(x[fitted], weight[fitted], log_joint[fitted], warp)
        held = ~fitted
        return spread(log_joint[held], x[held], bent, weight[held]) < SMOOTH_BENT * root

    def _off_the_floor(self, cloud: Cloud, rng: np.random.Generator) -> None:
        off_the_floor(cloud, rng, FLOOR * self.effort.first_black)

    def _climb(self, cloud: Cloud, rng: np.random.Generator) -> None:
        """Modes from the draws that stand above their neighbours, and draws from the hills that they make."""
        climber = Climber(self.joint, self.meter, *scale_of(cloud))
        rows = summits(cloud.x, cloud.log_joint, self.effort.climbs)
        self.scout.modes, _ = find_modes(climber, cloud.x[rows], self.effort.climbs)
        if not self.scout.modes:
            by_level(cloud, rng, max(self.effort.second, 60))
            return
        self._scores(cloud, self.scout.modes[0], rng)
        if len(self.scout.modes) > 1:
            cloud.grow(self.scout.hills, BATCH * min(len(self.scout.modes), 4), rng)

    def _scores(self, cloud: Cloud, mode: Mode, rng: np.random.Generator) -> None:
        """Draws of the Gaussian at the heaviest mode, with gradients, which mend its warp and bend it."""
        hill = Warped(identity(len(mode.point)), one_hill(mode.point, np.asarray(mode.warp.factor)))
        x, log_joint, gradient = self.scout.draw(
            cloud, hill, max(BATCH, SLOPES * coefficients(self.joint.dimension)), rng
        )
        self.warps = (mode.warp,)
        if np.all(np.isfinite(gradient)) and len(x) >= 4 * self.joint.dimension:
            mended = by_scores(x, gradient, mode.warp)
            if spread(log_joint, x, mended) < spread(log_joint, x, mode.warp):
                self.warps = (mended, mode.warp)
            self.bent = bent_by_slopes(x, gradient, self.warps[0])

    def _slopes(self) -> bool:
        """Whether no slopes, at other draws of the prior and about the mode, contradict a concave ln J: then there is one mode."""
        if self.is_flat or not self.scout.modes:
            return False
        since, rng, cloud = self.meter.evaluations, self.rng(2), self.cloud()
        n = max(self.effort.second, 12 * (self.joint.dimension + 1))  # of which enough stay effective
        self.is_concave = self.scout.look(cloud, max(2 * n - BATCH, self.effort.scouts(self.joint.dimension)), rng)
        if self.is_concave:
            polish(cloud, rng, n)
            self._note("slopes", cloud, since)
        return self.is_concave

    def _is_resolved(self) -> bool:
        """Whether one or two parameters turn so seldom that the draws so far have met every basin; then levels look once more."""
        if self.is_flat or self.joint.dimension > RESOLVED or self.effort.is_thrifty:
            return False
        since, rng, cloud = self.meter.evaluations, self.rng(3), self.clouds[-1]
        if not self._resolves(cloud, self.effort.first):
            return False
        known = len(self.scout.modes)
        self.scout.probe(cloud, rng, is_alone=False)
        n = max(self.effort.second, 12 * (self.joint.dimension + 1))
        by_level(cloud, rng, n)
        polish(cloud, rng, n)
        self._note("levels", cloud, since)
        whole = Look("all", *self._merged().log_evidence(), 0)
        return len(self.scout.modes) == known and self.looks[-1].agrees(whole, AGREE_ERRORS, 0.0)

    def _resolves(self, cloud: Cloud, n: int) -> bool:
        """Whether `n` prior draws lie so close in every coordinate that no basin fits between them."""
        x = cloud.x[cloud.is_prior][: BATCH // 2]
        return not np.any(rough(self.joint, self.meter, x, scale_of(cloud)[1], RESOLVES / n))

    def _affords_second(self, first: Cloud) -> bool:
        """Whether a budget that was too small for the usual second look holds one after a quadratic, which costs little."""
        return self.effort.name != "quick" and bool(self.warps) and self.meter.left > 3 * len(first)

    def _second(self) -> None:
        """From other random numbers and the whole prior: the same road if nothing stands out but the known hill, else levels."""
        since, rng, cloud = self.meter.evaluations, self.rng(2), self.cloud()
        n = max(self.effort.second, 12 * (self.joint.dimension + 1))  # of which enough stay effective
        cloud.grow(Prior(self.joint), 2 * n, rng)
        self._off_the_floor(cloud, rng)
        if self.warps and not follow(cloud, self.warps[0], rng, DOF):
            name, arrived = "quadratic again", by_quadratic(cloud, rng, ENOUGH // 3) is not None
        else:
            name, arrived = "levels", by_level(cloud, rng, 12 * (self.joint.dimension + 1) if self.warps else n)
            polish(cloud, rng, n)
        if arrived:  # a path that thinned out is none
            self._note(name, cloud, since)

    def _is_settled(self, merged: Cloud) -> bool:
        """Whether two looks agree with what was found in all, which rests on enough points, and little can be unseen."""
        value, error = merged.log_evidence()
        whole = Look("all", value, float(np.hypot(error, SLACK)), 0)
        agree = [look.error < VAGUE and look.agrees(whole, AGREE_ERRORS, AGREE_NATS) for look in self.looks]
        enough = effective_size(merged.log_weights()) >= ENOUGH and sum(agree) >= min(len(self.looks), 2)
        return enough and self._capture(merged).missed <= MISSED

    def _capture(self, merged: Cloud) -> Capture:
        """What replicates have in common."""
        if len(self.sealed) < 2:
            return Capture()
        clouds, looks = zip(*self.sealed, strict=True)
        return captured(merged, clouds, [look.error < VAGUE for look in looks], self.rng(5), self._hills())

    def _vouched(self, capture: Capture) -> float:
        """Nats to which replicates that arrived know ln Z: an answer of its own beside the ladder's; infinite of fewer than two."""
        errors = [look.error for _, look in self.sealed if look.error < VAGUE]
        return float(np.hypot(capture.scatter, np.sqrt(np.mean(np.square(errors))))) if len(errors) > 1 else np.inf

    def _hills(self) -> Hills | None:
        """At all modes that any replicate has found."""
        modes = sorted(self.modes, key=lambda mode: -mode.log_mass)[:MOST_MODES]
        return hills_of(modes, DOF).hills if modes else None

    # -- what comes of it -----------------------------------------------------------------------------------------

    def _exact(self, cloud: Cloud) -> Pilot | None:
        """A posterior that is normal to rounding, at the prior draws as well: nothing is left to find."""
        if not self.warps or not _is_exact(cloud, self.warps[0]):
            return None
        if self.effort.second or not self.joint.is_traceable:  # of few draws of its prior
            n, rng = max(self.effort.second, BATCH // 2), self.rng(10)
            far = 2 if self.effort.is_thrifty else FAR_DRAWS[self.joint.dimension > 4]
            cloud.grow(Prior(self.joint), far * n, rng)
            if self.scout.modes:
                self.scout.probe(cloud, self.rng(11))
        if len(self.scout.modes) > 1 or not _is_exact(cloud, self.warps[0]):
            return None
        rows, log_joint = self._rows(cloud), cloud.log_joint
        reference = standard_normal(self.joint.dimension)
        return Pilot(self.joint, self.warps[0], reference, cloud.x[rows], log_joint[rows], 0.0, self.looks)

    def _rows(self, cloud: Cloud) -> np.ndarray:
        w = np.exp(cloud.log_weights() - cloud.log_weights().max())
        return self.rng(6).choice(len(cloud), BATCH, p=w / w.sum())

    def _pilot(self, cloud: Cloud) -> Pilot:
        n = self.effort.level if self.sealed else max(self.effort.second, BATCH)
        with contextlib.suppress(Enough):  # a limited budget: what is there has to do
            polish(cloud, self.rng(14), n, rounds=4 + 2 * bool(self.sealed), start=self._hills())
        log_w = cloud.log_weights()
        weight = np.exp(log_w - log_w.max())
        log_joint = cloud.log_joint
        known = cloud.log_evidence()[0]
        warps = self.warps
        if not self.joint.is_traceable:  # a quadratic through all points
            found = _through_all(cloud)
            warps = (found, *warps) if found is not None else warps
        fit: Fit = fitted_reference(
            self.joint, cloud.x, weight, log_joint, self.rng(7), warps, known, self.bent, self._hills()
        )
        rows, agreed, capture = self._rows(cloud), len(self.looks) < 2 or self._is_settled(cloud), self._capture(cloud)
        told = tuple(str(symmetry) for symmetry in self.symmetries)
        doubt = 0.0 if agreed else float(np.hypot(np.sqrt(capture.missed) * MISSED_MASS, capture.scatter))
        return Pilot(
            self.joint, fit.warp, fit.reference, cloud.x[rows], log_joint[rows], fit.spread, self.looks,
            agreed, is_concave=self.is_concave, capture=capture, doubt=doubt, log_evidence=known,
            vouched=self._vouched(capture), symmetries=told,
        )  # fmt: skip


def _through_all(cloud: Cloud) -> Any:
    """The quadratic through all points of a cloud, which may be crowded about its summit."""
    return fitted_quadratic(cloud.x, cloud.log_joint, np.exp(cloud.log_joint - cloud.log_joint.max()), CROWDED, CROWDED)


def _is_exact(cloud: Cloud, warp: Any) -> bool:
    """Whether the warp makes ln J a normal law's to rounding, at every point of the cloud.

    Rounding grows with ln J, so each point is held to its own: a draw of the prior at -1e16 would else excuse all others, and so
    would a centre so far away that distances from it have no digits left.
    """
    log_joint = cloud.log_joint
    if not np.all(np.isfinite(log_joint)):
        return False
    scale = np.sqrt(np.maximum(np.abs(log_joint), 1.0))
    fall = 0.5 * np.sum(warp.inverse(cloud.x) ** 2, axis=1)
    off = (log_joint + fall - (log_joint + fall)[np.argmax(log_joint)]) / scale
    has_digits = np.all(np.finfo(float).eps * fall < EXACT * scale)
    return bool(has_digits and np.sqrt(np.mean(off**2)) < EXACT)


def look_at_few(
    joint: Joint, known: Any, seed: int, stream: int, meter: Meter, effort: Effort, smaller: Pilot | None = None
) -> Pilot:
    """Explore a model of few parameters; one that is symmetric only as far as prior draws tell, again without that."""
    explorer = Explorer(joint, meter, seed, stream, effort, smaller, True)
    pilot = explorer.explore(known)
    if explorer.is_symmetric(pilot):
        return pilot
    before = pilot.looks
    pilot = Explorer(joint, meter, seed, stream, effort, smaller, False).explore(known)
    pilot.looks = [*before[:0], *pilot.looks]
    return pilot
