r"""A new component explored by itself: $J(\phi \mid \hat\theta)$, all else held at the best point that the smaller model knows.

Its own few parameters are explored as any model of so many is. What is found is a density of one component, for proposals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from supermodel.engine.explore.cloud import Warped, fitted
from supermodel.engine.explore.few import Explorer
from supermodel.engine.meter import Enough, Meter
from supermodel.engine.policy import BATCH, DOF, MOST_MODES, WIDER, Effort
from supermodel.models.joint import Joint
from supermodel.models.model import Model


class Given:
    """ln L of some parameters, given values of the others."""

    def __init__(self, model: Model, values: Mapping[str, Any]):
        self.model, self.values = model, values

    def __call__(self, p: Mapping[str, Any], *data: Any) -> Any:
        fixed = self.values
        if self.model.vectorized:
            n = len(next(iter(p.values())))
            fixed = {name: np.repeat(np.asarray(v)[None], n, axis=0) for name, v in fixed.items()}
        return self.model.log_likelihood({**fixed, **p}, *data)


def alone(joint: Joint, names: Sequence[str], values: Mapping[str, Any]) -> Joint:
    """The model of the parameters `names`, all others having these values."""
    priors = {name: joint.space.priors[name] for name in names}
    model = Model(priors, Given(joint.model, values), vectorized=joint.model.vectorized, exchangeable=False)
    return Joint(joint.name, model.with_on_error(joint.model.on_error), joint.data)


def explored_alone(joint: Joint, seeds: Sequence[int], meter: Meter, effort: Effort, rng: np.random.Generator) -> Warped:
    """Hills at all that sealed replicates have found of such a model."""
    x = joint.space.sample_prior(rng, BATCH)
    explorer = Explorer(joint, meter, *seeds, effort, False)
    try:
        explorer.explore((x, meter.likelihood(joint, x)))
    except Enough:
        if not explorer.clouds:
            raise
    cloud = explorer._merged()
    return fitted(cloud, cloud.log_weights(), rng, MOST_MODES, DOF, WIDER, explorer._hills())
