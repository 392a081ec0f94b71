r"""The way from the prior to the posterior by levels, and what begins and ends it.

`by_level` follows the prior cut at rising likelihoods, $\pi\,[L > \lambda]$, as nested sampling does, which passes where a
thermal path cannot (a phase transition: a small high peak beside a large low one). Each level's proposal is a mixture fitted to
the importance weights of the one before.
"""

from __future__ import annotations

import numpy as np

from supermodel.embedding.reference import Hills, joined, one_hill
from supermodel.embedding.warp import identity
from supermodel.engine.explore.cloud import Cloud, Prior, Warped, effective_size, fitted, log_sum, scale_of
from supermodel.engine.policy import ENOUGH

HILLS, DOF, WIDER = 16, 5.0, 1.2
IMPOSSIBLE = 0.8  # of the prior: what is left then shapes no hill
AGAIN = 3  # times that a level is drawn from again before it is passed with too few effective points


def least_effective(n: int, d: int) -> float:
    """Effective points that carry a population: fewer lose modes, and shape no hill."""
    return max(0.4 * n, 5.0 * (d + 1))


def by_level(cloud: Cloud, rng: np.random.Generator, n: int, keep: float = 0.3, left: float = 0.05) -> bool:
    """Cut away all but `keep` of the prior's volume, again and again, until less than `left` of the evidence is above.

    A level on which few effective points are left is drawn from again; False if that did not help, at some level.
    """
    volume, again, kept_all = 1.0, 0, True
    least = least_effective(n, cloud.joint.dimension)
    for _ in range(200):
        level, above = _cut(cloud, volume * keep)
        log_above = np.where(above, cloud.log_volume, -np.inf)
        effective = effective_size(log_above)
        is_thin, is_lost = effective < least, effective < 0.5 * least
        before = np.sum(cloud.log_likelihood > level)
        cloud.grow(fitted(cloud, log_above, rng, HILLS, DOF, WIDER), n, rng)
        if is_thin and again < AGAIN:
            again += 1
            continue
        kept_all, again = kept_all and not is_lost, 0
        volume = float(np.exp(log_sum(log_above)))
        log_w = cloud.log_weights()
        share = log_sum(np.where(cloud.log_likelihood > level, log_w, -np.inf)) - log_sum(log_w)
        on_top = level >= cloud.log_likelihood.max() or np.sum(cloud.log_likelihood > level) == before
        if share < np.log(left) or on_top:
            break
    return kept_all


def _fewest(cloud: Cloud) -> int:
    """Points that shape a hill."""
    return 2 * cloud.joint.dimension + 4


def _cut(cloud: Cloud, volume: float) -> tuple[float, np.ndarray]:
    """The likelihood above which a given volume of the prior lies, and which points are there."""
    fewest = _fewest(cloud)
    order = np.argsort(-cloud.log_likelihood, kind="stable")
    cumulative = np.cumsum(np.exp(cloud.log_volume[order]))
    n_above = max(int(np.searchsorted(cumulative, min(volume, cumulative[-1]))), fewest)
    level = float(cloud.log_likelihood[order[min(n_above, len(order) - 1)]])
    above = cloud.log_likelihood > level
    # A plateau is one set.
    return level, above if above.sum() >= fewest else cloud.log_likelihood >= level


def is_floor(cloud: Cloud) -> bool:
    """Whether most points are equally likely; or nearly all impossible, for where some are possible their slopes lead on."""
    floor = np.median(cloud.log_likelihood)
    return bool(np.mean(cloud.log_likelihood == floor) > (0.5 if np.isfinite(floor) else IMPOSSIBLE))


def off_the_floor(cloud: Cloud, rng: np.random.Generator, most: int) -> None:
    """Where most prior draws tie, only more of them can find what rises from that floor; then close in on what did.

    About every point above the floor, draws on all scales from the prior's width down to a millionth of it.
    """
    if not is_floor(cloud):
        return
    floor = np.median(cloud.log_likelihood)
    while not np.any(cloud.log_likelihood > floor) and len(cloud) < most:
        cloud.grow(Prior(cloud.joint), max(most // 10, 1), rng)
    above = np.flatnonzero(cloud.log_likelihood > floor)
    if 0 < len(above) < _fewest(cloud):
        width = np.diag(scale_of(cloud)[1])
        hills = joined([(1.0, one_hill(cloud.x[i], width * 0.5**k, DOF)) for i in above for k in range(20)])
        cloud.grow(Warped(identity(cloud.joint.dimension), hills), max(most // 10, 1), rng)


def polish(
    cloud: Cloud,
    rng: np.random.Generator,
    n: int,
    rounds: int = 3,
    enough: float = 0.5,
    least: int = 0,
    start: Hills | None = None,
) -> None:
    """Fit the posterior itself and draw from it, until its own draws are nearly equally weighted or no longer improve."""
    for k in range(rounds):
        good = effective_size(cloud.log_weights()) > ENOUGH and effective_size(cloud.log_weights()[-n:]) > enough * n
        if good and k >= least:
            break
        cloud.grow(fitted(cloud, cloud.log_weights(), rng, HILLS, DOF, 1.1, start), n, rng)
        if effective_size(cloud.log_weights()[-n:]) > enough * n:
            break
