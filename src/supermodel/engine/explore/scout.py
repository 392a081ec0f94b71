"""A scout: draws far and near whose slopes tell of modes that no look has seen.

A mode that is apart is felt only in its own basin, so that is where a draw must fall; but there its slope leads to none of the
modes that are known, however low it stands. Draws are made of the prior, and of the prior drawn inwards to the known modes: near
a wide hill, a narrow one is a far larger part of what there is. With gradients every draw tells; without, one call on the way to
the summit tells which few draws are worth a gradient by differences.
"""

from __future__ import annotations

import numpy as np

from supermodel.embedding.reference import one_hill
from supermodel.embedding.warp import identity
from supermodel.engine.explore.climb import Climber, Mode, find_modes, hills_of
from supermodel.engine.explore.cloud import Cloud, Drawn, Prior, Proposal, Warped, effective_size, scale_of
from supermodel.engine.explore.native import homeward, odd, strange
from supermodel.engine.explore.probes import Cores, starts
from supermodel.engine.explore.slopes import Slopes
from supermodel.engine.explore.walks import heights
from supermodel.engine.meter import Meter
from supermodel.engine.policy import BATCH, DOF, MOST_HILLS, SIMPLE, Effort
from supermodel.models.joint import Joint

# Probes of a hill that reach to one standard deviation, by the number of parameters: of one, levels see a spike inside a hill;
# of more than three, nothing does.
DENSE = {2: 1100, 3: 150}
WIDEST = 3.0  # standard deviations that probes reach to at most
PROBES, MORE_PROBES = 10, {2: 38, 3: 0}  # times the draws of a level; where levels are not asked, further ones
ALONE = 0.1  # of a hill, in effective number, that the others together must count for to be several
SCOUTS = 1000  # slopes that tell whether ln J is concave
ROUNDS = 8  # of climbs from odd slopes, for as long as they turn up more modes
SUSPICION = 3000  # calls that the slopes of strange points of a black box may take, by differences
MOST_HALVINGS = 6  # of the prior's width, on the way from it to a hill
HEAVY = 1.0  # degrees of freedom of draws that reach from the summit to the prior's far ends


class Scout:
    """The modes of one model that climbs have found, and the slopes that were looked at for more."""

    def __init__(self, joint: Joint, meter: Meter, effort: Effort):
        self.joint, self.meter, self.effort = joint, meter, effort
        self.modes: list[Mode] = []  # heaviest first
        self.slopes = Slopes.none(joint.dimension)

    @property
    def hills(self) -> Warped:
        """Hills at the modes."""
        return hills_of(self.modes, DOF)

    @property
    def are_several(self) -> bool:
        """Whether more than one mode holds a part of the mass, as far as is known: then there may be further ones."""
        return len(self.modes) > 1 and number(self.hills) > 1

    def draw(self, cloud: Cloud, proposal: Proposal, n: int, rng: np.random.Generator) -> Slopes:
        """Draws of a proposal with gradients."""
        if n == 0:
            return Slopes.none(self.joint.dimension)
        x = proposal.draw(rng, n)
        log_joint, gradient = self.meter.value_and_gradient(self.joint, x)
        cloud.add(proposal, x, log_joint - self.joint.space.log_prior_at(x))
        return Slopes(x, log_joint, gradient)

    def look(self, cloud: Cloud, n: int, rng: np.random.Generator) -> bool:
        """At `n` draws of the prior first; whether ln J seems concave.

        If no two slopes, far and near, contradict that, there is one mode and no shoulder. If some do, more are drawn.
        """
        mode, drawn = self.modes[0], min(n, SCOUTS)
        around = Warped(identity(self.joint.dimension), one_hill(mode.point, np.asarray(mode.warp.factor), HEAVY))
        self.slopes = self.slopes.joined(self.draw(cloud, around, BATCH, rng))
        self._follow(cloud, Prior(self.joint), drawn, rng)
        is_concave = len(self.modes) == 1 and self.slopes.is_concave(mode.warp)
        self.probe(cloud, rng, is_alone=is_concave)
        is_concave = is_concave and len(self.modes) == 1
        while not is_concave and drawn < (most := self.effort.scouts(self.joint.dimension, self.are_several)):
            for proposal in (Prior(self.joint), self.inwards(cloud)):
                self._follow(cloud, proposal, min(most - drawn, 2 * SCOUTS) // 2, rng)
            drawn += 2 * SCOUTS
        return is_concave

    def look_without_gradients(self, cloud: Cloud, tops: np.ndarray, seen: Cloud, rng: np.random.Generator) -> None:
        """From the `tops` of known hills, at what all draws of the prior have seen, and at more that are drawn inwards.

        Where the way to its summit is strange, the slope is taken by differences.
        """
        climber = Climber(self.joint, self.meter, *scale_of(cloud))
        self.modes, _ = find_modes(climber, tops, MOST_HILLS, self.modes)
        if not self.modes:
            return
        d, drawn, x, log_joint = self.joint.dimension, 0, seen.x[seen.is_prior], seen.log_joint[seen.is_prior]
        height = heights(cloud, identity(d))
        while True:
            rows = strange(self.joint.space, x, log_joint, self.modes, height)[: SUSPICION // (d + 1)]
            if len(rows):
                found = Slopes(x[rows], *self.meter.value_and_gradient(self.joint, x[rows]))
                self.slopes = self.slopes.joined(found)
                self._climb_odd(cloud)
            alone = self.effort.first_black if d > 2 else 0
            n = (self.effort.scouts(d, several=True) // 2 if self.are_several else alone) - drawn
            if n <= 0:
                return
            cloud.grow(self.inwards(cloud), n, rng)
            drawn, x, log_joint = drawn + n, cloud.x[-n:], cloud.log_joint[-n:]

    def probe(self, cloud: Cloud, rng: np.random.Generator, is_alone: bool) -> None:
        """An even net over the cores of the hills, and climbs from what stands inside: a spike, or a step up.

        The net is wider where it is alone, that is, where no levels are asked; there is none where calls are dear.
        """
        d, modes = self.joint.dimension, self.modes[: SIMPLE[0]]
        if d not in DENSE or self.effort.is_thrifty:
            return
        n = (PROBES + is_alone * MORE_PROBES[d]) * self.effort.second
        radius = min((n / (len(modes) * DENSE[d])) ** (1 / d), WIDEST)
        slopes = self.draw(cloud, Cores(modes, radius), n, rng)
        climber, most = Climber(self.joint, self.meter, *scale_of(cloud)), self.effort.climbs // 3
        found = starts(self.modes, slopes, most, heights(cloud, identity(d)))
        self.modes, _ = find_modes(climber, found, 2 * MOST_HILLS, self.modes)

    def inwards(self, cloud: Cloud) -> Drawn:
        """The prior drawn towards the heaviest modes, by halves, down to the width of the first."""
        width = np.max(np.linalg.norm(np.asarray(self.modes[0].warp.factor), axis=1) / scale_of(cloud)[1])
        halvings = np.clip(np.ceil(-np.log2(width)), 1, MOST_HALVINGS)
        centres = np.stack([mode.point for mode in self.modes[: SIMPLE[0]]])
        return Drawn(self.joint, centres, 0.5 ** np.arange(1.0, halvings + 1))

    def _follow(self, cloud: Cloud, proposal: Proposal, n: int, rng: np.random.Generator) -> None:
        """Further draws, and climbs from odd slopes."""
        self.slopes = self.slopes.joined(self.draw(cloud, proposal, n, rng))
        self._climb_odd(cloud)

    def _climb_odd(self, cloud: Cloud) -> None:
        """Climb from the slopes that no known mode explains, for as long as that turns up more modes."""
        climber = Climber(self.joint, self.meter, *scale_of(cloud))
        space, most = self.joint.space, 2 * self.effort.climbs // 3
        for _ in range(ROUNDS):
            rows, known = odd(space, self.slopes, self.modes, most), len(self.modes)
            home = homeward(space, self.modes)
            self.modes, _ = find_modes(climber, self.slopes.x[rows], 2 * MOST_HILLS, self.modes, home)
            if len(self.modes) == known:
                break


def number(hills: Warped) -> int:
    """Of the hills that count, by their masses."""
    return int(np.ceil(effective_size(hills.hills.log_weights) - ALONE))
