"""Several modes: one wide and one narrow, a spike in a slab, two far apart, a shell about a ball."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from benchmarks.fire.problem import Problem, ball, box, one, vector


def wide_and_narrow(d: int, sd: float) -> Problem:
    """Half the mass in N((-4, ...), 1), half in N((5, ...), sd), in a box of side 20: ln Z = -d ln 20."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        return xp.logaddexp(ball(x, -4.0, 1.0, xp), ball(x, 5.0, sd, xp)) - np.log(2)

    return one(f"wide_narrow_{d}d", "a wide and a narrow mode", box(d, 10), log_likelihood, -d * np.log(20))


def spike_in_slab(d: int, sd: float = 0.01) -> Problem:
    """90% of the mass in a spike inside a slab of sd 2, in a box of side 40: ln Z = -d ln 40."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        return xp.logaddexp(ball(x, 0.5, sd, xp) + np.log(0.9), ball(x, 0.0, 2.0, xp) + np.log(0.1))

    return one(f"spike_slab_{d}d", "a spike in a slab", box(d, 20), log_likelihood, -d * np.log(40))


def two_modes(d: int, unequal: float = 0.5) -> Problem:
    """Two unit balls at ±3 on every axis, in a box of side 20: ln Z = -d ln 20."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        return xp.logaddexp(ball(x, 3.0, 1.0, xp) + np.log(unequal), ball(x, -3.0, 1.0, xp) + np.log1p(-unequal))

    name = f"two_modes_{d}d" if unequal == 0.5 else f"unequal_modes_{d}d"
    return one(name, "two modes", box(d, 10), log_likelihood, -d * np.log(20))


def shell_and_ball(d: int, share: float, sd: float, width: float = 0.1, radius: float = 2.0) -> Problem:
    r"""A thin shell about a ball in a box of side 8, normalised so that ln Z = 0; the shell holds `share`.

    While tempered, the shell's volume wins; untempered, the ball holds nearly all: a phase transition of first order.
    The shell's mass is $\int S_d r^{d-1} e^{-(r - R)^2 / 2 w^2} dr$, by quadrature; that outside the box is below 1e-9.
    """
    r = np.linspace(max(radius - 12 * width, 1e-9), radius + 12 * width, 20_001)
    area = np.log(2) + 0.5 * d * np.log(np.pi) - gammaln(0.5 * d)
    shell_mass = area + np.log(np.trapezoid(np.exp((d - 1) * np.log(r) - 0.5 * ((r - radius) / width) ** 2), r))

    def log_likelihood(p, xp):
        x = vector(p, xp)
        distance = xp.sqrt(xp.sum(x**2, axis=-1) + 1e-300)
        shell = -0.5 * ((distance - radius) / width) ** 2 - shell_mass
        return d * np.log(8) + xp.logaddexp(ball(x, 0.0, sd, xp) + np.log1p(-share), shell + np.log(share))

    return one(f"shell_ball_{d}d", "a shell about a ball", box(d, 4), log_likelihood, 0.0)


PROBLEMS = [
    wide_and_narrow(1, 0.01), wide_and_narrow(2, 0.1), wide_and_narrow(5, 0.2), wide_and_narrow(10, 0.3),
    spike_in_slab(1), spike_in_slab(2), spike_in_slab(5), spike_in_slab(10),
    two_modes(30), shell_and_ball(5, 0.002, 0.12), shell_and_ball(10, 6e-5, 0.2),
]  # fmt: skip
