"""A scout: draws far and near whose slopes tell whether ln J is concave, and a net over the core of its hill for spikes inside."""

from __future__ import annotations

import numpy as np

from supermodel.embedding.reference import one_hill
from supermodel.embedding.warp import Bent, identity
from supermodel.engine.explore.bent import bent_by_slopes
from supermodel.engine.explore.climb import Climber, Mode, find_modes, hills_of
from supermodel.engine.explore.cloud import Cloud, Prior, Proposal, Warped, scale_of
from supermodel.engine.explore.probes import Cores, starts
from supermodel.engine.explore.quadratic import coefficients
from supermodel.engine.explore.slopes import Slopes
from supermodel.engine.explore.walks import heights
from supermodel.engine.meter import Meter
from supermodel.engine.policy import BATCH, DOF, MOST_HILLS, Effort
from supermodel.engine.whiten import by_scores, spread
from supermodel.models.joint import Joint

# Probes of a hill that reach to one standard deviation, by the number of parameters: of one, levels see a spike inside a hill;
# of more than three, nothing does.
DENSE = {2: 1100, 3: 150}
WIDEST = 3.0  # standard deviations that probes reach to at most
PROBES = {2: 48, 3: 10}  # times the draws of a look that checks another
SLOPES = 3  # times the coefficients of a quadratic, about the heaviest mode
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

    def draw(self, cloud: Cloud, proposal: Proposal, n: int, rng: np.random.Generator) -> Slopes:
        """Draws of a proposal with gradients."""
        if n == 0:
            return Slopes.none(self.joint.dimension)
        x = proposal.draw(rng, n)
        log_joint, gradient = self.meter.value_and_gradient(self.joint, x)
        cloud.add(proposal, x, log_joint - self.joint.space.log_prior_at(x))
        return Slopes(x, log_joint, gradient)

    def scores(self, cloud: Cloud, rng: np.random.Generator) -> tuple[tuple, Bent | None]:
        """Warps of the heaviest mode, mended by draws of its Gaussian with gradients, and its bend."""
        mode, d = self.modes[0], self.joint.dimension
        hill = Warped(identity(d), one_hill(mode.point, np.asarray(mode.warp.factor)))
        x, log_joint, gradient = self.draw(cloud, hill, max(BATCH, SLOPES * coefficients(d)), rng)
        if not np.all(np.isfinite(gradient)) or len(x) < 4 * d:
            return (mode.warp,), None
        mended = by_scores(x, gradient, mode.warp)
        better = spread(log_joint, x, mended) < spread(log_joint, x, mode.warp)
        warps = (mended, mode.warp) if better else (mode.warp,)
        return warps, bent_by_slopes(x, gradient, warps[0])

    def look(self, cloud: Cloud, n: int, rng: np.random.Generator) -> bool:
        """Whether no two slopes contradict a concave ln J, at `n` draws of the prior and about the mode: then there is one mode and
        no shoulder.
        """
        mode = self.modes[0]
        around = Warped(identity(self.joint.dimension), one_hill(mode.point, np.asarray(mode.warp.factor), HEAVY))
        for proposal, drawn in ((around, BATCH), (Prior(self.joint), n)):
            self.slopes = self.slopes.joined(self.draw(cloud, proposal, drawn, rng))
        if len(self.modes) > 1 or not self.slopes.is_concave(mode.warp):
            return False
        self.probe(cloud, rng)
        return len(self.modes) == 1

    def probe(self, cloud: Cloud, rng: np.random.Generator, is_alone: bool = True) -> None:
        """An even net over the core of the hill, and climbs from what stands inside: a spike, or a step up. It is finer where it is
        alone, that is, where no levels are asked; there is none where calls are dear.
        """
        d = self.joint.dimension
        if d not in DENSE or self.effort.is_thrifty:
            return
        n = PROBES[d if is_alone else 3] * self.effort.second
        radius = min((n / DENSE[d]) ** (1 / d), WIDEST)
        slopes = self.draw(cloud, Cores(self.modes[:1], radius), n, rng)
        climber, most = Climber(self.joint, self.meter, *scale_of(cloud)), self.effort.climbs // 3
        found = starts(self.modes, slopes, most, heights(cloud, identity(d)))
        self.modes, _ = find_modes(climber, found, 2 * MOST_HILLS, self.modes)
