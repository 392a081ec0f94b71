"""Likelihoods with edges: top hats on a floor, regions that are impossible, orderings."""

from __future__ import annotations

import numpy as np

from benchmarks.fire.problem import Problem, ball, box, one, vector


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


PROBLEMS = [top_hat(), cut_peak()]
