"""Likelihoods with edges: top hats on a floor, regions that are impossible, orderings."""

from __future__ import annotations

import numpy as np
from scipy.special import erf, gammaln, log_ndtr, logsumexp

from benchmarks.fire.problem import Problem, ball, box, normal, one, special, vector
from benchmarks.fire.quadrature import on_grid


def top_hat(radius: float = 0.02, floor: float = -50.0) -> Problem:
    r"""ln L = 0 on a disc, -50 elsewhere in a box of side 2: $Z = \pi r^2 / 4 + e^{-50} (1 - \pi r^2 / 4)$."""

    def log_likelihood(p, xp):
        inside = xp.sum((vector(p, xp) - 0.3) ** 2, axis=-1) < radius**2
        return xp.where(inside, 0.0, floor)

    share = np.pi * radius**2 / 4
    return one("top_hat", "top hat on a floor", box(2, 1), log_likelihood, np.log(share + np.exp(floor) * (1 - share)))


def cut_peak(sd: float = 0.2) -> Problem:
    """-inf where a > b, through the middle of a normalised peak, in a box of side 3: ln Z = -ln 18."""

    def priors():
        import numpyro.distributions as dist

        return {"a": dist.Uniform(0, 3), "b": dist.Uniform(0, 3)}

    def log_likelihood(p, xp):
        x = xp.stack([p["a"], p["b"]], axis=-1)
        return xp.where(p["a"] > p["b"], -xp.inf, ball(x, 1.5, sd, xp))

    return one("cut_peak", "an edge through the peak", priors, log_likelihood, -np.log(18))


def disc_on_plateau(radius: float = 0.05, height: float = 8.0) -> Problem:
    r"""ln L = 8 on a disc, 0 elsewhere in a box of side 2: $Z = 1 + (e^8 - 1) \pi r^2 / 4$."""

    def log_likelihood(p, xp):
        return xp.where(xp.sum((vector(p, xp) + 0.4) ** 2, axis=-1) < radius**2, height, 0.0)

    exact = np.log1p(np.expm1(height) * np.pi * radius**2 / 4)
    return one("disc", "disc on a plateau", box(2, 1), log_likelihood, exact)


def stairs(sd: float = 0.5) -> Problem:
    r"""ln L = -floor(r^2 / 2 sd^2): flat steps, $Z = 2 \pi sd^2 \sum_k e^{-k} / 20^2$."""

    def log_likelihood(p, xp):
        return -xp.floor(0.5 * xp.sum((vector(p, xp) - 1.0) ** 2, axis=-1) / sd**2)

    exact = np.log(2 * np.pi * sd**2 / -np.expm1(-1)) - 2 * np.log(20)
    return one("stairs", "steps", box(2, 10), log_likelihood, exact)


def half_ball(d: int = 5) -> Problem:
    """A ball of which half is impossible, in a box of side 20: ln Z = -ln 2 - d ln 20."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        return xp.where(x[..., 0] < 0.0, -xp.inf, ball(x, 0.0, 1.0, xp))

    return one(f"half_ball_{d}d", "half impossible", box(d, 10), log_likelihood, -np.log(2) - d * np.log(20))


def ordered(d: int = 3) -> Problem:
    """a < b < c or impossible, about one centre: ln Z = -d ln 20 - ln d!."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        in_order = xp.all(x[..., 1:] > x[..., :-1], axis=-1)
        return xp.where(in_order, ball(x, 1.0, 1.0, xp), -xp.inf)

    exact = -d * np.log(20) - gammaln(d + 1)
    return one(f"ordered_{d}d", "an ordering", box(d, 10), log_likelihood, exact)


def sliver(width: float = 0.1) -> Problem:
    r"""Impossible but for |x0 - x1| < 0.1, 1% of the box: $Z = \mathrm{erf}(w / 2 sd) / 20^2$."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        return xp.where(xp.abs(x[..., 0] - x[..., 1]) < width, ball(x, 1.0, 2.0, xp), -xp.inf)

    return one("sliver", "a sliver is possible", box(2, 12), log_likelihood, np.log(erf(width / 4)) - 2 * np.log(24))


def bad_corner(value: float, name: str) -> Problem:
    """NaN or -inf in a corner of 1% of the box, far from the ball: ln Z = -2 ln 20 either way."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        return xp.where(xp.all(x > 8.0, axis=-1), value, ball(x, -2.0, 1.0, xp))

    return one(name, f"{value} in a corner", box(2, 10), log_likelihood, -2 * np.log(20))


def beyond_the_edge() -> Problem:
    """The likelihood rises to the prior's edge: L = e^(50 x) on [0, 1], three times."""

    def priors():
        import numpyro.distributions as dist

        return {f"x{i}": dist.Uniform(0, 1) for i in range(3)}

    exact = 3 * np.log(np.expm1(50) / 50)
    return one("beyond_edge", "peak at an edge", priors, lambda p, xp: 50 * xp.sum(vector(p, xp), axis=-1), exact)


def change_point() -> Problem:
    """40 yearly counts whose rate changes once: the likelihood is a step function of the year. Gamma rates are closed."""
    rng = np.random.default_rng(40)
    years = np.arange(40)
    counts = rng.poisson(np.where(years < 17, 3.2, 1.4))

    def priors():
        import numpyro.distributions as dist

        return {"before": dist.Gamma(2, 0.5), "after": dist.Gamma(2, 0.5), "year": dist.Uniform(0, 40)}

    def log_likelihood(p, xp):
        before, after, year = (p[name][..., None] for name in ("before", "after", "year"))
        rate = xp.where(years < year, before, after)
        return xp.sum(counts * xp.log(rate) - rate, axis=-1) - np.sum(gammaln(counts + 1))

    def closed(n, exposure):
        return 2 * np.log(0.5) - gammaln(2) + gammaln(2 + n) - (2 + n) * np.log(0.5 + exposure)

    def exact():
        first = np.cumsum(counts)
        split = np.arange(1, 41)  # year in (k, k + 1): k + 1 years lie before
        terms = closed(first, split) + closed(counts.sum() - first, 40 - split)
        return logsumexp(terms) - np.log(40) - np.sum(gammaln(counts + 1))

    return one("change_point", "steps", priors, log_likelihood, exact)


def truncated_data() -> Problem:
    """25 data of N(m, s), of which only those above 0 are seen: a long ridge. m ~ N(0, 3), ln s ~ N(0, 1)."""
    rng = np.random.default_rng(25)
    y = rng.normal(-0.5, 1.0, 400)
    y = y[y > 0][:25]

    def priors():
        import numpyro.distributions as dist

        return {"m": dist.Normal(0, 3), "log_s": dist.Normal(0, 1)}

    def log_likelihood(m, u, xp, log_cdf):
        s = xp.exp(u)
        return xp.sum(normal(y, m[..., None], s[..., None], xp), axis=-1) - len(y) * log_cdf(m / s)

    def exact():
        def joint(m, u):
            return log_likelihood(m, u, np, log_ndtr) + normal(m, 0, 3, np) + normal(u, 0, 1, np)

        return on_grid(joint, (-25, 15, 801), (-3, 5, 641))

    return one(
        "truncated_data", "a long ridge", priors,
        lambda p, xp: log_likelihood(p["m"], p["log_s"], xp, special(xp).log_ndtr), exact,
    )  # fmt: skip


PROBLEMS = [
    top_hat(), cut_peak(), disc_on_plateau(), stairs(), half_ball(), ordered(), sliver(), bad_corner(np.nan, "nan_corner"),
    bad_corner(-np.inf, "inf_corner"), beyond_the_edge(), change_point(), truncated_data(),
]  # fmt: skip
