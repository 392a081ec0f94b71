r"""ln Z of one model for many data sets of one shape: $\hat Z = \frac1n \sum_i J(x_i)/r(x_i)$, $x_i \sim r$.

The reference $r = e\,\pi + (1-e)\sum_m p_m t_m$ is the engine's: hills at the maxima that climbs have found beside a share of
the prior, which leaves nothing uncovered. Where data sets are small and many, independent draws of it are all that is needed:
the supermodel of model and reference is weighed at its end alpha = 0. Four programs are compiled for a shape, each for a
block of data sets at once, and the same whatever the data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import cKDTree

from supermodel.models.model import Model
from supermodel.survey.climb import (
    DOF,
    MORE,
    STEPS,
    Found,
    climbs,
    grown,
    hill_at,
    hills_of,
    log_density,
    merged,
    refitted,
)

LOOK, LOOKS = 1024, 4  # prior draws of a look, and how many sets of them there are
NEIGHBOURS = 8  # a start stands above as many of its nearest draws
LINES, CROSSED = 256, 512  # points on lines through the heaviest hills; points with two parameters of a prior draw
STRATA = 16  # of a line: edges of the prior are among them
FROM_LOOK, FROM_CROSSED, FROM_DRAWN = 16, 12, 4  # climbs that begin at each, and at the draws of largest weight
HEAVY = -4.6  # ln of the share of a hill within which nothing new is looked for,
MUCH = 1.0  # unless a weight is above Z by so many nats there
ENDS = 12  # that go on to the top
HILLS, MOST_HILLS = 8, 32  # kept for each parameter, and at most
GROWN = 8  # that a round adds
PRIOR, HILL = 256, 768  # draws of a round from the prior and from the hills
SHARE = PRIOR / (PRIOR + HILL)
POOL = 2**16  # prior draws from which rounds take theirs
HITS = 3.0  # draws below which a hill counts as hardly seen: there may be others like it
NUMBERS = 2**20  # in the largest array of a block, 8 MiB


class Round(NamedTuple):
    """Logs of sums over the draws of one round, of weights $w = J/r$ and of what they add to the variance of their sum."""

    weights: Any
    squares: Any
    variance: Any  # of v = (w - mean)^2, the mean being that of the draws from the prior, or from the hills
    variance_squares: Any
    points: Any
    log_weights: Any
    best: Any  # its draws of largest weight, from which to climb
    best_weights: Any


class Crossing(NamedTuple):
    """What is random in a look."""

    rank: Any
    place: Any
    prior: Any
    swapped: Any


class Drawing(NamedTuple):
    """What is random in a round."""

    prior: Any
    normal: Any
    place: Any
    stretch: Any


class Block:
    """The programs of one model. Points are in coordinates scaled by the prior's spread."""

    def __init__(self, model: Model, seed: int):
        self.model, self.space, self.d, self.scale = model, model.space, model.space.dimension, np.ones(0)
        if self.d == 0:
            self.at_once = jax.jit(jax.vmap(lambda data: self.log_likelihood(jnp.zeros(0), data)))
            return
        self.reach = (2.0 + 2.0 * np.sqrt(self.d)) ** 2  # squared radius within which a hill explains what there is
        self.hills = min(HILLS * self.d, MOST_HILLS)
        rng = np.random.default_rng(seed)
        pool = self.space.sample_prior(rng, POOL)
        self.scale = np.maximum(pool.std(0), 1e-300)
        self.log_scale = float(np.log(self.scale).sum())
        prior, pool = self.space.log_prior_at(pool) + self.log_scale, pool / self.scale
        self.pool, self.quantiles = pool, np.sort(pool, axis=0)
        self.sets = [self._set(pool, prior, k) for k in range(LOOKS)]
        self.look = jax.jit(jax.vmap(self._look, in_axes=(0, 0, 0, None)))
        self.seek = jax.jit(jax.vmap(self._seek, in_axes=(0, 0, 0, 0, None)))
        self.round = jax.jit(jax.vmap(self._round))

    @staticmethod
    def _set(pool: np.ndarray, prior: np.ndarray, k: int) -> tuple[Any, Any, Any]:
        """Prior draws of a look, their density, and which of them are neighbours: the same for all data sets."""
        rows = slice(k * LOOK, (k + 1) * LOOK)
        near = cKDTree(pool[rows]).query(pool[rows], k=NEIGHBOURS + 1)[1][:, 1:]
        return jnp.asarray(pool[rows]), jnp.asarray(prior[rows]), jnp.asarray(near)

    def rows_at_once(self, width: int) -> int:
        """Data sets of `width` numbers in a block: what is computed of them stays in the processor's cache."""
        return int(np.clip(NUMBERS // (LOOK * max(width, 1)), 4, 64))

    @property
    def cost_of_look(self) -> int:
        """Evaluations, with gradient those of the climbs, curvatures included."""
        return LOOK + LINES + CROSSED + (FROM_LOOK + FROM_CROSSED + FROM_DRAWN) * (STEPS + 1) + ENDS * (MORE + self.d)

    def log_likelihood(self, y, data):
        return jnp.asarray(self.model.log_likelihood(self.space.constrain(y * self.scale), data), float)

    def values(self, y, data):
        """ln L at (n, d) points."""
        return jax.vmap(lambda one: self.log_likelihood(one, data))(y)

    def log_prior(self, y):
        return self.space.log_prior(y * self.scale) + self.log_scale

    def log_joint(self, data):
        return lambda y: self.log_likelihood(y, data) + self.log_prior(y)

    # -- what is random, of NumPy, since JAX's own generator costs more than a likelihood ---------------------------------

    def crossing(self, rng: np.random.Generator) -> Crossing:
        i, places = np.arange(LINES), np.arange(self.d)
        along, stratum, rank = i % self.d, i // self.d % STRATA, i // (self.d * STRATA) % self.hills
        at = ((stratum + rng.random(LINES)) / STRATA * POOL).astype(int)
        line = np.zeros((LINES, self.d))
        line[i, along] = self.quantiles[at, along]
        pair = rng.integers(0, self.d, (CROSSED, 2))
        swapped = np.concatenate([along[:, None] == places, np.any(pair[:, :, None] == places, axis=1)])
        return Crossing(rank, rng.random(CROSSED), np.concatenate([line, self._prior(rng, CROSSED)]), swapped)

    def drawing(self, rng: np.random.Generator) -> Drawing:
        place = (np.arange(HILL) + rng.random()) / HILL  # evenly over the hills
        stretch = np.sqrt(DOF / (2.0 * rng.standard_gamma(DOF / 2, HILL)))
        return Drawing(self._prior(rng, PRIOR), rng.standard_normal((HILL, self.d)), place, stretch)

    def _prior(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Prior draws that no look has used."""
        return self.pool[rng.integers(LOOKS * LOOK, POOL, n)]

    # -- one data set ---------------------------------------------------------------------------------------------------

    def _look(self, data, found, chance, these):
        """Where to climb from: what the hills explain least, above its neighbours. And whether all were numbers."""
        look, prior, near = these
        hills = hills_of(found)
        tops = found.means[jnp.concatenate([chance.rank, hills.component(jnp, chance.place)])]
        crossed = jnp.where(chance.swapped, chance.prior, tops)
        y = jnp.concatenate([look, crossed])
        log_prior = jnp.concatenate([prior, jax.vmap(self.log_prior)(crossed)])
        values = self.values(y, data)
        log_w = jnp.where(values < jnp.inf, values, -jnp.inf) + log_prior - reference(hills, y, log_prior)
        # Within a hill w is about Z, and above what it is on the slopes of one that is not known yet.
        is_heavy = (hills.log_weights > HEAVY) & (found.log_mass > -jnp.inf)
        inside = jnp.any((hills.squares(jnp, y) < self.reach) & is_heavy, axis=1)
        inside &= log_w < jax.nn.logsumexp(found.log_mass) + MUCH
        odd = jnp.where(inside, -jnp.inf, log_w)
        stands = jnp.all(log_w[:LOOK, None] >= log_w[near], axis=1)
        best = jax.lax.top_k(jnp.where(stands, odd[:LOOK], -jnp.inf), FROM_LOOK)[1]
        best = jnp.concatenate([best, LOOK + jax.lax.top_k(odd[LOOK:], FROM_CROSSED)[1]])
        return y[best], jnp.all(values[:LOOK] < jnp.inf) & jnp.any(values > -jnp.inf)

    def _seek(self, data, starts, found, log_z, draws):
        """The hills, and those that climbs from `starts` add; and the share of Z in new ones that had hardly been seen.

        At the top of a hill that the others explain, w = J/r is about Z; a hill of share s in which it is larger is hit by
        s n Z / w of n draws.
        """
        log_joint, before = self.log_joint(data), hills_of(found)
        tops = Found(*jax.vmap(lambda *top: hill_at(log_joint, *top))(*climbs(log_joint, starts, ENDS)))
        found, is_new = merged(found, tops)
        log_w = found.heights - reference(before, found.means, jax.vmap(self.log_prior)(found.means))
        share = jnp.exp(found.log_mass - log_z)
        return found, jnp.sum(jnp.where(is_new & (share * draws * jnp.exp(log_z - log_w) < HITS), share, 0.0))

    def _round(self, data, found, chance):
        """Weights of draws from the reference, as many from the prior and from each hill as their shares say."""
        hills = hills_of(found)
        drawn = hills.transform(jnp, chance.normal, chance.place, chance.stretch)
        y = jnp.concatenate([chance.prior, drawn])
        log_prior = jax.vmap(self.log_prior)(y)
        # NaN stays NaN: a data set that has any goes on to the engine, which says where.
        values = self.values(y, data)
        log_w = jnp.where(log_prior > -jnp.inf, values + log_prior - reference(hills, y, log_prior), -jnp.inf)
        sums = map(jnp.logaddexp, _moments(log_w[:PRIOR]), _moments(log_w[PRIOR:]))
        best_weights, best = jax.lax.top_k(log_w, FROM_DRAWN)
        return Round(*sums, y, log_w, y[best], best_weights)  # type: ignore[call-arg]


@jax.jit
@jax.vmap
def fit(found, points, log_weights):
    """The hills as the draws of a round would have them."""
    log_weights = jnp.nan_to_num(log_weights, nan=-jnp.inf)
    found = refitted(found, hills_of(found), points, log_weights)
    return grown(found, hills_of(found), points, log_weights, GROWN)


def _moments(log_w):
    top = jnp.max(log_w)
    top = jnp.where(top > -jnp.inf, top, 0.0)
    w = jnp.exp(log_w - top)
    v = (w - w.mean()) ** 2 * (len(w) / (len(w) - 1))
    return tuple(jnp.log(part.sum()) + k * top for part, k in ((w, 1), (w**2, 2), (v, 2), (v**2, 4)))


def reference(hills, y, log_prior):
    """ln r at (n, d) points."""
    return jnp.logaddexp(jnp.log(SHARE) + log_prior, jnp.log1p(-SHARE) + log_density(hills, y))
