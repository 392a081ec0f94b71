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
from dataclasses import replace
from typing import Any

import numpy as np

from supermodel.embedding.reference import Hills, standard_normal
from supermodel.embedding.warp import Bent, identity
from supermodel.engine.explore.capture import Capture, captured
from supermodel.engine.explore.climb import Climber, Mode, distinct, find_modes, hills_of, summits
from supermodel.engine.explore.cloud import Cloud, Prior, Warped, effective_size, scale_of
from supermodel.engine.explore.fold import ASKED, By, checked_symmetries, folded, refuted
from supermodel.engine.explore.paths import by_level, is_floor, off_the_floor, polish
from supermodel.engine.explore.pilot import Fit, Look, Pilot, fitted_reference
from supermodel.engine.explore.plain import is_exact, is_smooth, look_far, through_all
from supermodel.engine.explore.quadratic import by_quadratic, coefficients, fitted_quadratic
from supermodel.engine.explore.race import race, rough, seems_concave, standing_out, stratified
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
    FLOOR,
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
    VAGUE,
    Effort,
)  # fmt: skip
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Refuted, Symmetry

SLACK = 0.03  # nats: the least error that a look claims


class Explorer:
    """Sealed replicates of one model; their clouds share nothing but the model until they are merged."""

    order: By | None = None  # which number puts components in order, where that is known beforehand

    def __init__(self, joint: Joint, meter: Meter, seed: int, stream: int, effort: Effort, may_fold: bool):
        self.joint, self.meter, self.effort = joint, meter, effort
        self.symmetries: tuple[Symmetry, ...] | None = None  # that were found, once they have been looked for
        self.refuted: tuple[Refuted, ...] = ()  # those that did not hold at the top of a climb
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

    def ask(self, x: np.ndarray) -> np.ndarray:
        """ln L as the model was given, without a fold."""
        return self.meter.likelihood(self.joint.origin or self.joint, x)

    def explore(self, known: tuple[np.ndarray, np.ndarray]) -> Pilot:
        """What is plain, or replicates; and the reference fitted to all of their points."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            since = self.meter.evaluations
            try:
                self._check_declared(known)
                plain = self._plain(known)
                if plain is not None:
                    return plain
                self._replicates(known)
            except Enough as limit:
                # A limited budget: what was found so far has to do, and the verdict says whether replicates agreed.
                merged = self._merged()
                if not np.isfinite(merged.log_evidence()[0]):
                    raise
                if not self.looks:
                    self._note("cut short", merged, since)
                    return replace(self._pilot(self._merged()), cut_short=str(limit))
            return self._pilot(self._merged())

    def _check_declared(self, known: tuple[np.ndarray, np.ndarray]) -> None:
        """What the user says is symmetric must be, whether it will be folded or not."""
        if self.may_fold and self.joint.model.exchangeable and self.symmetries is None:
            self.symmetries = checked_symmetries(self.joint, *known, self.ask)

    def _plain(self, known: tuple[np.ndarray, np.ndarray]) -> Pilot | None:
        """A posterior that needs no replicates, or None."""
        return self._traced(known) if self.joint.is_traceable else self._quadratically(known)

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
            off_the_floor(cloud, rng, FLOOR * self.effort.first_black)
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
            if plain is not None and is_exact(cloud, plain):
                self.warps = (plain,)
        return cloud

    # -- sealed replicates ----------------------------------------------------------------------------------------

    def _replicates(self, known: tuple[np.ndarray, np.ndarray]) -> None:
        """At least two, and further ones while too much may be unseen and patience lasts."""
        if self.clouds:  # what is known has been used, by a path that did not arrive
            known = (known[0][:0], known[1][:0])
        if not self.effort.is_thrifty:
            self.looks = []
        smaller = self.effort.scaled(self._affordable())
        self.effort = smaller._replace(is_thrifty=self.effort.is_thrifty)
        most = self.effort.replicates
        if self.scout.modes and self.clouds:
            self._folded(self._merged(), self.scout.modes)
        for k in range(most):
            began, size = self.meter.evaluations, 2 ** max(k - 1, 0)
            self._replicate(k, size, known if k == 0 else (known[0][:0], known[1][:0]))
            if k + 1 >= min(2, most) and self._is_settled(self._merged()):
                break
            if k and 2 * (self.meter.evaluations - began) > self._patience():  # the next is of twice the size
                break

    def _affordable(self) -> float:
        """The part of a full effort that there is room for."""
        return self._patience() / REPLICATED

    def _patience(self) -> float:
        """Evaluations that may still be spent on exploring."""
        return min(self.effort.patience - (self.meter.evaluations - self.began), self.meter.left)

    def _replicate(self, k: int, size: int, known: tuple[np.ndarray, np.ndarray]) -> None:
        """From the prior to a sealed ln Z, with nothing but its own random numbers."""
        since, rng, level = self.meter.evaluations - len(known[0]), self.rng(20 + k), size * self.effort.level
        cloud, modes = self._searched(known, size, rng, is_first=k == 0)
        hills = hills_of(modes, DOF).hills if modes else None
        if hills is not None:
            cloud.grow(Warped(identity(self.joint.dimension), hills), BATCH * min(len(hills.log_weights), 16), rng)
        self._onwards(cloud, size, rng)
        polish(cloud, rng, level, start=hills, least=int(len(modes) > 1))
        self.modes += modes
        self._note("replicate" if k < 2 else f"replicate × {size}", cloud, since)
        self.sealed.append((cloud, self.looks[-1]))

    def _searched(
        self, known: tuple[np.ndarray, np.ndarray], size: int, rng: np.random.Generator, is_first: bool
    ) -> tuple[Cloud, list[Mode]]:
        """Draws of the prior, and modes."""
        cloud = self._begun(known, self._fewer(size * self.effort.first_black, size * self.effort.level), rng)
        off_the_floor(cloud, rng, FLOOR * self.effort.first_black)
        return self._found(cloud, size, rng, is_first)

    def _onwards(self, cloud: Cloud, size: int, rng: np.random.Generator) -> None:
        """From the prior to the posterior: levels."""
        by_level(cloud, rng, size * self.effort.level)

    def _fewer(self, n: int, least: int) -> int:
        """Of draws that are to be as dense in the part of the prior that is explored as `n` in the whole."""
        return n if self.joint.origin is None else min(n, max(int(n / self.joint.space.copies), least))

    def _found(
        self, cloud: Cloud, size: int, rng: np.random.Generator, is_first: bool = False
    ) -> tuple[Cloud, list[Mode]]:
        """Modes by climbs from draws of the prior: from the highest, from any, and from those that the modes found so do not
        explain; and from thousands, in a race, where ln J is not concave.
        """
        if is_floor(cloud) or not self.effort.race:
            return cloud, []
        climber, d = self._climber(cloud), self.joint.dimension
        if d > RESOLVED:
            n = min(SCAN * size * self.effort.first_black, SCAN_SHARE * self._patience())
            cloud.grow(Prior(self.joint), self._fewer(int(n), self.effort.level), rng)
        rows = summits(cloud.x, cloud.log_joint, self.effort.climbs)
        possible = np.flatnonzero(np.isfinite(cloud.log_joint))
        others = rng.choice(possible, min(self.effort.climbs, len(possible)), replace=False)
        modes = self._distinct(climber, climber.climb(cloud.x[np.concatenate([rows, others])]), [])
        odd = standing_out(self.joint, cloud.x, cloud.log_likelihood, self.effort.climbs)
        modes = self._distinct(climber, climber.climb(cloud.x[odd]), modes)
        if is_first:
            whole, (cloud, modes) = cloud, self._folded(cloud, modes)
            if cloud is not whole:  # other rows
                climber, possible = self._climber(cloud), np.flatnonzero(np.isfinite(cloud.log_joint))
                odd = standing_out(self.joint, cloud.x, cloud.log_likelihood, self.effort.climbs)
                others = rng.choice(possible, min(self.effort.climbs, len(possible)), replace=False)
        first = np.concatenate(
            [odd, others, rng.choice(possible, min(self.effort.first_black, len(possible)), replace=False)]
        )
        if len(modes) == 1 and seems_concave(self.joint, self.meter, cloud.x[first], cloud.log_joint[first], rng):
            return cloud, modes
        if d <= RESOLVED and self._resolves(cloud, size * self.effort.first_black):
            return cloud, modes
        held = rough(self.joint, self.meter, cloud.x[:BATCH], climber.scale)
        n = self._starts(size, bool(held.any()) or len(modes) > 1)
        if n < BATCH:
            return cloud, modes
        axes = np.flatnonzero(held) if held.any() else np.arange(d)
        x = stratified(self.joint, n if held.any() else n // 2, axes, rng)
        odd = standing_out(self.joint, cloud.x, cloud.log_likelihood, n - len(x))
        starts = np.concatenate([x, cloud.x[odd]])
        cloud.add(Prior(self.joint), x, cloud.evaluate(x))
        if (
            self.joint.origin is not None
        ):  # from all of the prior: what is not symmetric after all is met, and refutes it
            starts = self.joint.space.anywhere(rng, starts)
        modes = self._distinct(climber, race(climber, starts, held, rng), modes)
        return self._folded(cloud, modes) if is_first else (cloud, modes)

    def _starts(self, size: int, is_odd: bool) -> int:
        """Climbs of a race: about ten steps of each, by differences d + 1 calls a step, are a part of the patience."""
        each = RACE_STEPS * (1 if self.joint.is_traceable else self.joint.dimension + 1)
        full = size * self.effort.race / (1 if is_odd else CALM)
        return self._fewer(int(min(full, RACE_SHARE * self._patience() / each)), BATCH)

    def _distinct(self, climber: Climber, tops: list, known: list[Mode]) -> list[Mode]:
        """The modes among the tops of climbs, in the one labelling that is kept."""
        if tops and self.joint.origin is not None:
            points = np.array([point for point, _ in tops])
            x = self.joint.space.in_order(points)
            away = np.flatnonzero(np.any(x != points, axis=1))
            highest = away[np.argsort([-tops[i][1] for i in away], kind="stable")][:ASKED]
            if not self.refuted:
                self.refuted = refuted(self.joint, points[highest], x[highest], self.ask)
            tops = [(point, value) for point, (_, value) in zip(x, tops, strict=True)]
        return distinct(climber, tops, MOST_MODES, known)[0]

    # -- symmetries -----------------------------------------------------------------------------------------------

    def _folded(self, cloud: Cloud, modes: list[Mode]) -> tuple[Cloud, list[Mode]]:
        """Of a symmetric model one labelling is kept from here on, with the prior draws and the modes that are known."""
        if not self.may_fold or not modes or self.joint.origin is not None:
            return cloud, modes
        rows, whole = np.flatnonzero(cloud.is_prior), self.joint
        x, value = cloud.x[rows], cloud.log_likelihood[rows]
        if self.symmetries is None:
            self.symmetries = checked_symmetries(whole, x, value, self.ask)
        self.joint, self.symmetries = folded(whole, self.symmetries, modes, self.ask, self.order)
        if self.joint is whole:
            return cloud, modes
        self.clouds, self.looks, self.warps, self.bent = [], [], (), None
        self.scout, self.is_flat = Scout(self.joint, self.meter, self.effort), False
        fresh = self.cloud()
        fresh.add(Prior(self.joint), self.joint.space.points_from(whole.space, x), value)
        tops = self.joint.space.points_from(whole.space, np.array([mode.point for mode in modes]))
        known = [(top, mode.log_joint) for top, mode in zip(tops, modes, strict=True)]
        return fresh, self._distinct(self._climber(fresh), known, [])

    # -- where calls are dear -------------------------------------------------------------------------------------

    def _is_simple(self) -> bool:
        """Whether a black box needs no more than a quadratic and a look over its whole prior that agrees with it."""
        if not self.warps:
            return False
        merged = self._merged()
        if effective_size(merged.log_weights()) < ENOUGH:
            by_quadratic(merged, self.rng(9), ENOUGH)
            self.clouds = [merged]
        return self._is_settled(merged) and is_smooth(merged, self.rng(13))

    def _climb(self, cloud: Cloud, rng: np.random.Generator) -> None:
        """Modes from the draws that stand above their neighbours, and draws from the hills that they make."""
        climber = Climber(self.joint, self.meter, *scale_of(cloud))
        rows = summits(cloud.x, cloud.log_joint, self.effort.climbs)
        self.scout.modes, _ = find_modes(climber, cloud.x[rows], self.effort.climbs)
        if not self.scout.modes:
            by_level(cloud, rng, max(self.effort.second, 60))
            return
        self.warps, self.bent = self.scout.scores(cloud, rng)
        if len(self.scout.modes) > 1:
            cloud.grow(self.scout.hills, BATCH * min(len(self.scout.modes), 4), rng)

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
        off_the_floor(cloud, rng, FLOOR * self.effort.first_black)
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
        if not self.warps or not is_exact(cloud, self.warps[0]):
            return None
        if self.effort.second or not self.joint.is_traceable:  # of few draws of its prior
            look_far(self.scout, cloud, self.rng(10), self.rng(11))
        if len(self.scout.modes) > 1 or not is_exact(cloud, self.warps[0]):
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
            found = through_all(cloud)
            warps = (found, *warps) if found is not None else warps
        fit: Fit = fitted_reference(
            self.joint, cloud.x, weight, log_joint, self.rng(7), warps, known, self.bent, self._hills()
        )
        rows = self._rows(cloud)
        agreed, capture = len(self.looks) < 2 or self._is_settled(cloud), self._capture(cloud)
        doubt = 0.0 if agreed else float(np.hypot(np.sqrt(capture.missed) * MISSED_MASS, capture.scatter))
        return Pilot(
            self.joint, fit.warp, fit.reference, cloud.x[rows], log_joint[rows], fit.spread, self.looks,
            agreed, is_concave=self.is_concave, capture=capture, doubt=doubt, log_evidence=known,
            vouched=self._vouched(capture), symmetries=self.symmetries or (),
        )  # fmt: skip
