r"""Looks at a model of few parameters: clouds, whose every point counts.

First look: with gradients, climbs from a crowd of prior draws; without, levels of the likelihood, or where calls are dear a
quadratic through all points seen. Second look, from other random numbers and the whole prior: slopes, and levels unless ln J is
concave, after climbs; a scout and temperatures after levels; another quadratic after a quadratic if no walk
uphill ends elsewhere. What either finds is in the merged cloud, weighed by the balance of all proposals. Where the two do not
agree, or the merged cloud rests on few points, wider levels look a third time, and nested slices a fourth; where no quadratic
fits, levels.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from supermodel.embedding.reference import one_hill, standard_normal
from supermodel.embedding.warp import Bent, identity
from supermodel.engine.explore.bent import bent_by_slopes, fit_bent
from supermodel.engine.explore.climb import Climber, Mode, find_modes, summits
from supermodel.engine.explore.cloud import Cloud, Prior, Warped, effective_size, scale_of
from supermodel.engine.explore.nested import nested_slices
from supermodel.engine.explore.paths import by_level, by_temperature, is_floor, off_the_floor, polish
from supermodel.engine.explore.pilot import Fit, Look, Pilot, fitted_reference
from supermodel.engine.explore.quadratic import by_quadratic, coefficients, fitted_quadratic
from supermodel.engine.explore.scout import Scout, number
from supermodel.engine.explore.walks import follow
from supermodel.engine.meter import Enough, Meter
from supermodel.engine.policy import (
    AGREE_ERRORS,
    AGREE_NATS,
    BATCH,
    DOF,
    ENOUGH,
    EXACT,
    FLOOR,
    MOST_HILLS,
    SIMPLE,
    SMOOTH,
    SMOOTH_BENT,
    UNSEEN,
    VAGUE,
    Effort,
)  # fmt: skip
from supermodel.engine.whiten import by_scores, spread
from supermodel.models.joint import Joint

CROWDED = 10.0  # widths of a cloud's highest points within which its posterior is
# Times the draws of a level that must be normal to rounding as well, before a posterior is taken for that: of up to four
# parameters, and of more, where a mode apart is a smaller part of the prior.
FAR_DRAWS = (12, 48)
SLOPES = 3  # times the coefficients of a quadratic, about the heaviest mode
HELD_IN = 0.7  # of the points that bends are fitted to; the others judge them
SLACK = 0.03  # nats: the least error that a look claims


class Explorer:
    """Two looks and more at one model; the clouds share nothing but the model until they are merged."""

    def __init__(self, joint: Joint, meter: Meter, seed: int, stream: int, effort: Effort):
        self.joint, self.meter, self.effort = joint, meter, effort
        self.seeds = [seed, stream]
        self.looks: list[Look] = []
        self.clouds: list[Cloud] = []
        self.warps: tuple = ()  # that curvature suggests
        self.bent: Bent | None = None  # and slopes about the heaviest mode
        self.scout = Scout(joint, meter, effort)
        self.elsewhere: Warped | None = None  # hills where climbs or walks ended, if not all in one place
        self.again = 0  # evaluations of the first look that were made during the second
        self.is_flat = False  # whether most of the prior is a floor: no slope leads anywhere
        self.is_concave = False  # whether no slopes contradict a concave ln J
        self.kept = True  # whether every path kept enough effective points all along
        self.unseen = 0.0  # chance that one more climb ends at a mode not seen so far

    def rng(self, look: int) -> np.random.Generator:
        return np.random.default_rng([*self.seeds, look])

    def cloud(self) -> Cloud:
        """A new cloud, which counts from its first point on."""
        self.clouds.append(Cloud(self.joint, lambda x: self.meter.likelihood(self.joint, x)))
        return self.clouds[-1]

    def explore(self, known: tuple[np.ndarray, np.ndarray]) -> Pilot:
        """All looks, the merged cloud, and the reference fitted to it."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            since = self.meter.evaluations
            try:
                if self.joint.is_traceable or self.effort.is_thrifty:
                    first = self._climbs(known) if self.joint.is_traceable else self._quadratic(known)
                    exact = self._exact(first)
                    if exact is not None:
                        return exact
                    if self.effort.second or self._affords_second(first):
                        self._second()
                    if not self.joint.is_traceable and not self._is_simple():
                        self._levels(known)
                else:
                    self._levels(known)
                    self._second()
                merged, agreed = self._settled(self._merged())
            except Enough:
                # A limited budget: what was found so far has to do, and the verdict says whether two looks agreed.
                merged = self._merged()
                if not np.isfinite(merged.log_evidence()[0]):
                    raise
                agreed = not self.looks or self._is_settled(merged)
                if not self.looks:
                    self._note("cut short", merged, since)
            return self._pilot(merged, agreed)

    def _merged(self) -> Cloud:
        return functools.reduce(Cloud.merged, self.clouds)

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

    def _levels(self, known: tuple[np.ndarray, np.ndarray]) -> None:
        since, rng = self.meter.evaluations - len(known[0]), self.rng(1)
        if self.clouds:  # what is known has been used
            known, since = (known[0][:0], known[1][:0]), self.meter.evaluations
        cloud = self._begun(known, self.effort.first_black, rng)
        self._off_the_floor(cloud, rng)
        self.kept &= by_level(cloud, rng, self.effort.level) or not self.effort.nested
        polish(cloud, rng, self.effort.level // 2)
        self._note("levels", cloud, since)

    def _is_simple(self) -> bool:
        """Whether a black box needs no more than a quadratic and a look over its whole prior that agrees with it."""
        if not self.warps:
            return False
        merged = self._merged()
        if effective_size(merged.log_weights()) < ENOUGH:
            by_quadratic(merged, self.rng(9), ENOUGH)
            self.clouds = [merged]
        return self._is_clear(merged) and self._is_smooth(merged)

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
        self.scout.modes, self.unseen = find_modes(climber, cloud.x[rows], self.effort.climbs)
        if self.unseen > UNSEEN:  # modes keep turning up: climb on
            rows = summits(cloud.x, cloud.log_joint, 6 * self.effort.climbs)
            self.scout.modes, self.unseen = find_modes(climber, cloud.x[rows], 2 * MOST_HILLS)
        if not self.scout.modes:
            by_temperature(cloud, rng, max(self.effort.second, 60))
            return
        self._scores(cloud, self.scout.modes[0], rng)
        if len(self.scout.modes) > 1:
            self.elsewhere = self.scout.hills
            self._draw_hills(cloud, rng)

    def _draw_hills(self, cloud: Cloud, rng: np.random.Generator) -> None:
        """Draws from where climbs or walks have ended, in several places: looks may differ in what these have not found."""
        if self.elsewhere is not None:
            cloud.grow(self.elsewhere, BATCH * min(number(self.elsewhere), 4), rng)

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

    def _scout(self, cloud: Cloud, n: int, rng: np.random.Generator) -> bool:
        """Look for further modes by slopes; whether ln J seems concave. What is new is drawn from by the first look too."""
        before = len(self.scout.modes)
        is_concave = self.scout.look(cloud, n, rng)
        if len(self.scout.modes) > before:
            self.elsewhere = self.scout.hills
            self._note_again(rng)
        self._draw_hills(cloud, rng)
        return is_concave

    def _note_again(self, rng: np.random.Generator) -> None:
        """The first look anew, after a later one found what it had missed."""
        first, cloud, before = self.looks[0], self.clouds[0], self.meter.evaluations
        self._draw_hills(cloud, rng)
        polish(cloud, rng, max(self.effort.second, BATCH))
        self._note(first.name, cloud, before - first.evaluations)
        self.looks = [self.looks[-1], *self.looks[1:-1]]
        self.again = self.meter.evaluations - before

    def _scout_without_gradients(self, cloud: Cloud, n: int, rng: np.random.Generator) -> None:
        """The same for a black box, from the highest point of each hill that is known."""
        hills = self.clouds[0].proposals[-1]
        if is_floor(cloud) or not isinstance(hills, Warped):
            return
        cloud.grow(Prior(self.joint), max(n - len(cloud), 0), rng)
        seen = self._merged()
        owner = np.argmax(hills.hills.log_parts(np, hills.warp.inverse(seen.x)), axis=1)
        tops = [max(np.flatnonzero(owner == m), key=seen.log_joint.__getitem__) for m in np.unique(owner)]
        tops = sorted(tops, key=lambda top: -seen.log_joint[top])[: self.effort.climbs]
        self.scout.look_without_gradients(cloud, seen.x[tops], seen, rng)
        if self.scout.are_several:
            self.elsewhere = self.scout.hills
            self._note_again(rng)
        self._draw_hills(cloud, rng)

    def _affords_second(self, first: Cloud) -> bool:
        """Whether a budget that was too small for the usual second look holds one after a quadratic, which costs little."""
        return self.effort.name != "quick" and bool(self.warps) and self.meter.left > 3 * len(first)

    def _second(self) -> None:
        """From other random numbers and the whole prior, by another path: levels after climbs, temperatures without gradients."""
        since, rng, cloud = self.meter.evaluations, self.rng(2), self.cloud()
        n = max(self.effort.second, 12 * (self.joint.dimension + 1))  # of which enough stay effective
        scouts = self.effort.scouts(self.joint.dimension)
        if self.scout.modes and not self.is_flat:
            self.is_concave = self._scout(cloud, max(2 * n - BATCH, scouts), rng)
        else:
            cloud.grow(Prior(self.joint), 2 * n, rng)
            self._off_the_floor(cloud, rng)
        if not self.joint.is_traceable and not self.effort.is_thrifty:
            self._scout_without_gradients(cloud, min(20 * self.joint.dimension**3, scouts // 2), rng)
        if self.is_concave:
            name, kept = "slopes", True
        elif self.joint.is_traceable:
            name, kept = "levels", by_level(cloud, rng, n)
        elif self.warps and not follow(cloud, self.warps[0], rng, DOF):
            # Nothing stands out but the hill that is known: the same road from elsewhere is check enough.
            name, kept = "quadratic again", by_quadratic(cloud, rng, ENOUGH // 3) is not None
        else:
            n = 12 * (self.joint.dimension + 1) if self.warps else n
            name, kept = "temperatures", by_temperature(cloud, rng, n)
        if name != "quadratic again":
            # A path may end at the widest of several places with all of its draws.
            polish(cloud, rng, n, least=0 if self.elsewhere is None else 1)
        if kept or self.effort.nested:  # where no further look can settle the doubt, a path that thinned out is none
            self.kept &= kept
            self._note(name, cloud, since + self.again)

    def _wider(self, merged: Cloud) -> Cloud:
        """Levels from new random numbers with many more draws on each: a path that had thinned out is walked again."""
        since, rng, cloud = self.meter.evaluations, self.rng(3), self.cloud()
        n = self.effort.level
        cloud.grow(Prior(self.joint), 2 * n, rng)
        self._off_the_floor(cloud, rng)
        self._draw_hills(cloud, rng)
        self.kept = by_level(cloud, rng, n)
        polish(cloud, rng, n)
        self._note("wider levels", cloud, since)
        return merged.merged(cloud)

    def _nested(self, merged: Cloud) -> Cloud:
        """Nested slices, as a proposal fitted to their draws: its points are weighed like all others."""
        since, rng = self.meter.evaluations, self.rng(4)
        found = nested_slices(self.joint, self.meter, rng, self.effort.nested)
        weight = np.exp(found.log_weights - found.log_evidence)
        log_joint = found.log_likelihood + self.joint.space.log_prior_at(found.x)
        fit = fitted_reference(self.joint, found.x, weight, log_joint, rng)
        merged.grow(Warped(fit.warp, fit.reference.hills), 4 * self.effort.nested, rng)
        self.kept = True  # its live points are never fewer
        self.looks.append(Look("nested slices", found.log_evidence, found.error + 0.1, self.meter.evaluations - since))
        return merged

    def _settled(self, merged: Cloud) -> tuple[Cloud, bool]:
        """Go on until two looks agree with what was found in all, and the whole rests on enough points."""
        rng = self.rng(5)
        if self._is_clear(merged):
            return merged, True
        polish(merged, rng, max(self.effort.second, BATCH), rounds=4)
        further = [(self._wider, 50 * self.effort.level), (self._nested, 2000 * self.effort.nested)]
        for look, price in further if len(self.looks) > 1 and self.effort.nested else []:
            if self._is_clear(merged) or self.meter.room < price:
                break
            merged = look(merged)
            polish(merged, rng, 2 * self.effort.second, rounds=4)
        return merged, self._is_settled(merged)

    def _is_settled(self, merged: Cloud) -> bool:
        value, error = merged.log_evidence()
        whole = Look("all", value, float(np.hypot(error, SLACK)), 0)
        agree = [look.error < VAGUE and look.agrees(whole, AGREE_ERRORS, AGREE_NATS) for look in self.looks]
        enough = effective_size(merged.log_weights()) >= ENOUGH and sum(agree) >= min(len(self.looks), 2)
        if len(self.looks) > 2:  # the last one was asked because the others left a doubt; three that agree leave none
            return enough and agree[-1] and (self.kept or sum(agree) > 2)
        # Where modes keep turning up, even agreeing looks have seen a part only.
        return enough and self.kept and self.unseen <= UNSEEN

    def _is_clear(self, merged: Cloud) -> bool:
        """Settled, and of so few islands that looks which miss the same ones are unlikely: the more, the more looks."""
        last = [cloud.proposals[-1] for cloud in (*self.clouds, merged)]
        islands = max((p.hills.islands() for p in last if isinstance(p, Warped)), default=1)
        further = int(np.searchsorted(SIMPLE, islands))
        return self._is_settled(merged) and (further == 0 or len(self.looks) >= 2 + further)

    # -- what comes of it -----------------------------------------------------------------------------------------

    def _exact(self, cloud: Cloud) -> Pilot | None:
        """A posterior that is normal to rounding, at the prior draws as well: nothing is left to find."""
        if not self.warps or not _is_exact(cloud, self.warps[0]):
            return None
        if self.effort.second or not self.joint.is_traceable:  # of few draws of its prior
            n, rng = max(self.effort.second, BATCH // 2), self.rng(10)
            wide = [Prior(self.joint)] + ([self.scout.inwards(cloud)] if self.scout.modes else [])
            far = 2 if self.effort.is_thrifty else FAR_DRAWS[self.joint.dimension > 4]
            for proposal in wide:
                cloud.grow(proposal, far * n // len(wide), rng)
            if self.scout.modes:
                self.scout.probe(cloud, self.rng(11), is_alone=True)
        if len(self.scout.modes) > 1:
            self.elsewhere = self.scout.hills
            self._draw_hills(cloud, self.rng(12))
        if self.elsewhere is not None or not _is_exact(cloud, self.warps[0]):
            return None
        rows, log_joint = self._rows(cloud), cloud.log_joint
        reference = standard_normal(self.joint.dimension)
        return Pilot(self.joint, self.warps[0], reference, cloud.x[rows], log_joint[rows], 0.0, self.looks)

    def _rows(self, cloud: Cloud) -> np.ndarray:
        w = np.exp(cloud.log_weights() - cloud.log_weights().max())
        return self.rng(6).choice(len(cloud), BATCH, p=w / w.sum())

    def _pilot(self, cloud: Cloud, agreed: bool) -> Pilot:
        log_w = cloud.log_weights()
        weight = np.exp(log_w - log_w.max())
        log_joint = cloud.log_joint
        known = cloud.log_evidence()[0]
        warps = self.warps
        if not self.joint.is_traceable:  # a quadratic through all points
            found = _through_all(cloud)
            warps = (found, *warps) if found is not None else warps
        fit: Fit = fitted_reference(self.joint, cloud.x, weight, log_joint, self.rng(7), warps, known, self.bent)
        rows = self._rows(cloud)
        return Pilot(
            self.joint, fit.warp, fit.reference, cloud.x[rows], log_joint[rows], fit.spread, self.looks, agreed,
            is_concave=self.is_concave,
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


def look_at_few(joint: Joint, known: Any, seed: int, stream: int, meter: Meter, effort: Effort) -> Pilot:
    """Explore a model of few parameters."""
    return Explorer(joint, meter, seed, stream, effort).explore(known)
