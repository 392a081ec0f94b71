"""One mode of an awkward shape: bananas, funnels, heavy tails, mass piled at an edge, a plateau with a peak."""

from __future__ import annotations

import numpy as np
from scipy.special import erf, erfcx, gammaln

from benchmarks.fire.problem import Problem, box, normal, one, vector


def banana(d: int) -> Problem:
    """d/2 pairs, x1 ~ N(0, 1) and x2 ~ N(x1^2, 0.1), in a box of side 120: ln Z = -d ln 120."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        a, b = x[..., 0::2], x[..., 1::2]
        return xp.sum(normal(a, 0.0, 1.0, xp) + normal(b, a**2, 0.1, xp), axis=-1)

    return one(f"banana_{d}d", "banana", box(d, 60), log_likelihood, -d * np.log(120))


def funnel(d: int, half: float = 200.0) -> Problem:
    r"""Neal's funnel: v ~ N(0, 3); $x_i$ uniform in a box, with likelihood $N(x_i; 0, e^{v/2})$.

    $Z = (2h)^{-(d-1)} \int N(v; 0, 3)\, \mathrm{erf}(h e^{-v/2} / \sqrt 2)^{d-1} dv$.
    """

    def priors():
        import numpyro.distributions as dist

        return {"v": dist.Normal(0, 3), **box(d - 1, half)()}

    def log_likelihood(p, xp):
        x, v = vector(p, xp), p["v"][..., None]
        return xp.sum(-0.5 * x**2 * xp.exp(-v) - 0.5 * v - 0.5 * np.log(2 * np.pi), axis=-1)

    v = np.linspace(-30, 30, 60_001)
    inside = np.trapezoid(np.exp(normal(v, 0, 3, np)) * erf(half * np.exp(-v / 2) / np.sqrt(2)) ** (d - 1), v)
    return one(f"funnel_{d}d", "funnel", priors, log_likelihood, np.log(inside) - (d - 1) * np.log(2 * half))


def cauchy(d: int, sd: float = 100.0) -> Problem:
    r"""A posterior of d Cauchy densities, prior N(0, 100): each gives $e^{1/2s^2} \mathrm{erfc}(1/s\sqrt2) / s\sqrt{2\pi}$."""

    def priors():
        import numpyro.distributions as dist

        return {"x": dist.Normal(0, sd).expand([d])} if d > 5 else {f"x{i}": dist.Normal(0, sd) for i in range(d)}

    def log_likelihood(p, xp):
        return -xp.sum(xp.log1p(vector(p, xp) ** 2), axis=-1) - d * np.log(np.pi)

    exact = d * (np.log(erfcx(1 / (sd * np.sqrt(2)))) - np.log(sd * np.sqrt(2 * np.pi)))
    return one(f"cauchy_{d}d", "heavy tails", priors, log_likelihood, exact)


def plateau_and_peak() -> Problem:
    r"""L = 1 over eight decades and a narrow peak of $e^3$: $Z = 1 + (e^3 - 1) s\sqrt{2\pi} / \ln(b/a) = e^{0.168}$."""
    low, high, middle = 1e-6, 1e2, np.log(3.0)
    decades = np.log(high / low)
    width = np.expm1(0.168) / np.expm1(3.0) * decades / np.sqrt(2 * np.pi)

    def priors():
        import numpyro.distributions as dist

        return {"rate": dist.LogUniform(low, high)}

    def log_likelihood(p, xp):
        return xp.log1p(np.expm1(3.0) * xp.exp(-0.5 * ((xp.log(p["rate"]) - middle) / width) ** 2))

    return one("plateau_peak", "plateau and peak", priors, log_likelihood, 0.168)


def piled_gamma(shape: float = 0.05, y: float = 1.5, sd: float = 0.5) -> Problem:
    r"""Gamma(0.05, 1) prior, nearly all of it at 0, and a datum y = x ± sd three errors away: by quadrature over ln x."""
    u = np.linspace(-800.0, 5.0, 800_001)
    joint = shape * u - np.exp(u) - gammaln(shape) + normal(np.exp(u), y, sd, np)

    def priors():
        import numpyro.distributions as dist

        return {"x": dist.Gamma(shape, 1.0)}

    def log_likelihood(p, xp):
        return normal(p["x"], y, sd, xp)

    return one("gamma_005", "mass piled at 0", priors, log_likelihood, np.log(np.trapezoid(np.exp(joint), u)))


PROBLEMS = [
    banana(2), banana(4), banana(10), funnel(3), funnel(5), funnel(10), cauchy(2), cauchy(10), plateau_and_peak(),
    piled_gamma(),
]  # fmt: skip
