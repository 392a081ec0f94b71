"""Several modes: one wide and one narrow, a spike in a slab, two far apart, a shell about a ball."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, k0, logsumexp

from benchmarks.fire.problem import Problem, ball, box, normal, one, vector
from benchmarks.fire.quadrature import linear, on_grid


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


def _shell(x, radius: float, width: float, xp):
    distance = xp.sqrt(xp.sum(x**2, axis=-1) + 1e-300)
    return -0.5 * ((distance - radius) / width) ** 2


def _shell_mass(d: int, radius: float, width: float) -> float:
    r = np.linspace(max(radius - 12 * width, 1e-9), radius + 12 * width, 20_001)
    area = np.log(2) + 0.5 * d * np.log(np.pi) - gammaln(0.5 * d)
    return area + np.log(np.trapezoid(np.exp((d - 1) * np.log(r) - 0.5 * ((r - radius) / width) ** 2), r))


def shell(d: int) -> Problem:
    """Nothing but a thin shell, of radius 2 and width 0.05, in a box of side 8."""
    exact = _shell_mass(d, 2.0, 0.05) - d * np.log(8)
    return one(f"shell_{d}d", "shell", box(d, 4), lambda p, xp: _shell(vector(p, xp), 2.0, 0.05, xp), exact)


def shell_and_ball(d: int, share: float, sd: float, width: float = 0.1, radius: float = 2.0) -> Problem:
    r"""A thin shell about a ball in a box of side 8, normalised so that ln Z = 0; the shell holds `share`.

    While tempered, the shell's volume wins; untempered, the ball holds nearly all: a phase transition of first order.
    The shell's mass is $\int S_d r^{d-1} e^{-(r - R)^2 / 2 w^2} dr$, by quadrature; that outside the box is below 1e-9.
    """
    mass = _shell_mass(d, radius, width)

    def log_likelihood(p, xp):
        x = vector(p, xp)
        inside, about = ball(x, 0.0, sd, xp) + np.log1p(-share), _shell(x, radius, width, xp) - mass + np.log(share)
        return d * np.log(8) + xp.logaddexp(inside, about)

    return one(f"shell_ball_{d}d", "a shell about a ball", box(d, 4), log_likelihood, 0.0)


def grid_of_modes() -> Problem:
    """25 modes of sd 0.3 in a square of side 30, of weights 1 to 25: ln Z = -2 ln 30."""
    centres = np.stack(np.meshgrid(np.arange(-10, 11, 5), np.arange(-10, 11, 5)), axis=-1).reshape(-1, 2).astype(float)
    shares = np.log(np.arange(1, 26) / 325)

    def log_likelihood(p, xp):
        terms = ball(vector(p, xp)[..., None, :], centres, 0.3, xp) + shares
        top = xp.max(terms, axis=-1)
        return top + xp.log(xp.sum(xp.exp(terms - top[..., None]), axis=-1))

    return one("modes_25", "25 modes", box(2, 15), log_likelihood, -2 * np.log(30))


def egg_box() -> Problem:
    """18 equal peaks on a grid."""

    def priors():
        import numpyro.distributions as dist

        return {"a": dist.Uniform(0, 10 * np.pi), "b": dist.Uniform(0, 10 * np.pi)}

    def height(a, b, xp):
        return (2 + xp.cos(a / 2) * xp.cos(b / 2)) ** 5

    def exact():
        side = (0, 10 * np.pi, 2001)
        return on_grid(lambda a, b: height(a, b, np), side, side) - 2 * np.log(10 * np.pi)

    return one("egg_box", "18 modes", priors, lambda p, xp: height(p["a"], p["b"], xp), exact)


def label_switching(k: int, n: int) -> Problem:
    """A mixture of k means, prior N(0, 4): its k! modes are the same. Exact: the k^n allocations of n data, one by one."""
    rng = np.random.default_rng(k)
    y = 2.5 * (np.arange(n) % k - 0.5 * (k - 1)) + 0.6 * rng.standard_normal(n)
    sd, wide = 0.6, 4.0

    def priors():
        import numpyro.distributions as dist

        return {f"x{i}": dist.Normal(0, wide) for i in range(k)}

    def log_likelihood(p, xp):
        means = vector(p, xp)
        each = 0.0
        for value in y:
            terms = normal(value, means, sd, xp)
            top = xp.max(terms, axis=-1)
            each = each + top + xp.log(xp.sum(xp.exp(terms - top[..., None]), axis=-1))
        return each - n * np.log(k)

    def exact():
        labels = np.stack(np.unravel_index(np.arange(k**n), (k,) * n), axis=-1)
        total = np.full(k**n, -n * np.log(k))
        for j in range(k):
            own = labels == j
            count, first, second = own.sum(1), own @ y, own @ y**2
            shrink = wide**2 / (sd**2 + count * wide**2)
            total += -0.5 * (second - shrink * first**2) / sd**2 - count * np.log(sd * np.sqrt(2 * np.pi))
            total += -0.5 * np.log1p(count * wide**2 / sd**2)
        return logsumexp(total)

    return one(f"labels_{k}", "label switching", priors, log_likelihood, exact)


def squares(d: int) -> Problem:
    """4 = x^2 ± 0.3 for d numbers x ~ N(0, 3): 2^d equal modes."""

    def priors():
        import numpyro.distributions as dist

        return {"x": dist.Normal(0, 3).expand([d])}

    def exact():
        return d * on_grid(lambda x: normal(x, 0, 3, np) + normal(4, x**2, 0.3, np), (-6, 6, 20_001))

    return one(
        f"squares_{d}d", f"{2**d} modes", priors,
        lambda p, xp: xp.sum(normal(4.0, p["x"] ** 2, 0.3, xp), axis=-1), exact,
    )  # fmt: skip


def product_ridge() -> Problem:
    r"""1 = a b ± 0.05 with a, b ~ N(0, 1): two hyperbolas. The product has density $K_0(|s|) / \pi$."""

    def priors():
        import numpyro.distributions as dist

        return {"a": dist.Normal(0, 1), "b": dist.Normal(0, 1)}

    def exact():
        return on_grid(lambda s: normal(1, s, 0.05, np) + np.log(k0(s) / np.pi), (0.4, 1.6, 4001))

    return one("product", "two ridges", priors, lambda p, xp: normal(1.0, p["a"] * p["b"], 0.05, xp), exact)


def two_decays() -> Problem:
    """y = a exp(-t/s) + b exp(-t/r) ± 0.05: the two terms can be exchanged. Given s and r, a and b are linear."""
    rng = np.random.default_rng(5)
    t = np.linspace(0.1, 6, 25)
    y = 1.2 * np.exp(-t / 0.6) + 0.7 * np.exp(-t / 3.0) + 0.05 * rng.standard_normal(25)
    ends = np.log(0.1), np.log(10.0)

    def priors():
        import numpyro.distributions as dist

        normal_prior, scale = dist.Normal(0, 2), dist.LogUniform(0.1, 10)
        return {"a": normal_prior, "b": normal_prior, "s": scale, "r": scale}

    def log_likelihood(p, xp):
        a, b, s, r = (p[name][..., None] for name in ("a", "b", "s", "r"))
        return xp.sum(normal(y, a * xp.exp(-t / s) + b * xp.exp(-t / r), 0.05, xp), axis=-1)

    def exact():
        def given(u, v):
            return linear(np.exp(-t[:, None] / np.exp(np.stack([u, v], axis=-1))[..., None, :]), y, 0.05, 2.0)

        return on_grid(given, (*ends, 701), (*ends, 701)) - 2 * np.log(ends[1] - ends[0])

    return one("two_decays", "terms that exchange", priors, log_likelihood, exact)


def periodogram() -> Problem:
    """A faint sine of unknown frequency in 40 uneven times: a forest of peaks. Given the frequency all is linear."""
    rng = np.random.default_rng(8)
    t = np.sort(10 * rng.random(40))
    y = 0.8 * np.sin(12.3 * t + 0.4) + rng.standard_normal(40)

    def priors():
        import numpyro.distributions as dist

        return {"a": dist.Normal(0, 1), "b": dist.Normal(0, 1), "f": dist.Uniform(0, 30)}

    def log_likelihood(p, xp):
        a, b, f = (p[name][..., None] for name in ("a", "b", "f"))
        return xp.sum(normal(y, a * xp.sin(f * t) + b * xp.cos(f * t), 1.0, xp), axis=-1)

    def exact():
        def given(f):
            return linear(np.stack([np.sin(f[:, None] * t), np.cos(f[:, None] * t)], axis=-1), y, 1.0, 1.0)

        return on_grid(given, (0, 30, 12_001)) - np.log(30)

    return one("periodogram", "a forest of modes", priors, log_likelihood, exact)


def cauchy_location() -> Problem:
    """Four data far apart with Cauchy errors: a mode at each."""
    y = np.array([-21.0, -19.5, 3.0, 16.0])

    def given(x, xp):
        return -xp.sum(xp.log1p(((y - x[..., None]) / 0.5) ** 2), axis=-1) - 4 * np.log(0.5 * np.pi)

    def exact():
        return on_grid(lambda x: given(x, np), (-50, 50, 200_001)) - np.log(100)

    return one("cauchy_data", "four modes", box(1, 50), lambda p, xp: given(p["x0"], xp), exact)


PROBLEMS = [
    wide_and_narrow(1, 0.01), wide_and_narrow(2, 0.1), wide_and_narrow(5, 0.2), wide_and_narrow(10, 0.3),
    spike_in_slab(1), spike_in_slab(2), spike_in_slab(5), spike_in_slab(10), two_modes(2), two_modes(10), two_modes(30),
    two_modes(3, 0.95), shell(2), shell(5), shell_and_ball(5, 0.002, 0.12), shell_and_ball(10, 6e-5, 0.2), grid_of_modes(),
    egg_box(), label_switching(2, 14), label_switching(3, 10), squares(4), squares(8), product_ridge(), two_decays(),
    periodogram(), cauchy_location(),
]  # fmt: skip
