"""One mode of an awkward shape: bananas, funnels, heavy tails, mass piled at an edge, a plateau with a peak."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, erf, erfcx, gammaln, i0e
from scipy.stats import multivariate_normal, t

from benchmarks.fire.problem import Problem, ball, box, normal, one, vector
from benchmarks.fire.quadrature import linear, on_grid


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


def upper_limit() -> Problem:
    """A signal x seen at 2.4 errors, x ~ LogUniform(1e-6, 1e3): six decades of plateau, then a peak of e^3."""
    y, low, high = np.sqrt(6.0), 1e-6, 1e3

    def priors():
        import numpyro.distributions as dist

        return {"x": dist.LogUniform(low, high)}

    def gain(x):
        return x * y - 0.5 * x**2

    def exact():
        return on_grid(lambda u: gain(np.exp(u)), (np.log(low), np.log(high), 200_001)) - np.log(np.log(high / low))

    return one("upper_limit", "plateau and peak", priors, lambda p, xp: gain(p["x"]), exact)


def scale_free() -> Problem:
    r"""12 data of sd 3e-5, the sd ~ LogUniform(1e-12, 1e12): $Z = (2\pi)^{-6}\, \Gamma(6)\, (S/2)^{-6} / 2 \ln 10^{24}$."""
    y = 3e-5 * np.random.default_rng(12).standard_normal(12)

    def priors():
        import numpyro.distributions as dist

        return {"s": dist.LogUniform(1e-12, 1e12)}

    exact = -6 * np.log(np.pi * np.sum(y**2)) + gammaln(6) - np.log(2) - np.log(24 * np.log(10))
    return one(
        "scale_free", "24 decades", priors, lambda p, xp: xp.sum(normal(y, 0.0, p["s"][..., None], xp), axis=-1), exact
    )  # fmt: skip


def scales() -> Problem:
    """Parameters of size 1e-12 to 1e12, each known to a tenth of its prior N(0, s): Gaussian, closed."""
    sizes = np.array([1e-12, 1e-6, 1.0, 1e6, 1e12])

    def priors():
        import numpyro.distributions as dist

        return {f"x{i}": dist.Normal(0, float(s)) for i, s in enumerate(sizes)}

    def log_likelihood(p, xp):
        return xp.sum(normal(vector(p, xp), 0.7 * sizes, 0.1 * sizes, xp), axis=-1)

    return one(
        "scales",
        "sizes 1e-12 to 1e12",
        priors,
        log_likelihood,
        np.sum(normal(0.7 * sizes, 0, np.sqrt(1.01) * sizes, np)),
    )


def vague(k: int = 3, sd: float = 1e9) -> Problem:
    """A straight line (and a parabola) through 20 points, coefficients ~ N(0, 1e9)."""
    rng = np.random.default_rng(20)
    design = np.linspace(-1, 1, 20)[:, None] ** np.arange(k)
    y = design @ np.array([1.0, -2.0, 0.5])[:k] + 0.3 * rng.standard_normal(20)

    def priors():
        import numpyro.distributions as dist

        return {f"x{i}": dist.Normal(0, sd) for i in range(k)}

    def log_likelihood(p, xp):
        return xp.sum(normal(y, vector(p, xp) @ design.T, 0.3, xp), axis=-1)

    return one("vague", "priors N(0, 1e9)", priors, log_likelihood, lambda: linear(design, y, 0.3, sd))


def correlated(d: int, rho: float = 0.9999999) -> Problem:
    """A Gaussian likelihood of correlation 0.9999999 between all d parameters, prior N(0, 3): closed."""
    covariance = (1 - rho) * np.eye(d) + rho
    log_det = (d - 1) * np.log1p(-rho) + np.log1p((d - 1) * rho)
    centre = np.full(d, 0.5)

    def priors():
        import numpyro.distributions as dist

        return {"x": dist.Normal(0, 3).expand([d])}

    def log_likelihood(p, xp):
        r = p["x"] - centre
        # r C^-1 r = |r - mean|^2 / (1 - rho) + d mean^2 / (1 + (d - 1) rho): no cancellation of large terms.
        mean = xp.mean(r, axis=-1)
        apart = xp.sum((r - mean[..., None]) ** 2, axis=-1) / (1 - rho)
        return -0.5 * (apart + d * mean**2 / (1 + (d - 1) * rho)) - 0.5 * log_det - 0.5 * d * np.log(2 * np.pi)

    exact = multivariate_normal(np.zeros(d), covariance + 9 * np.eye(d)).logpdf(centre)
    return one(f"correlated_{d}d", "correlation 0.9999999", priors, log_likelihood, exact)


def product_of(name: str, trouble: str, d: int, half: float, log_density, inside: float) -> Problem:
    """d equal normalised densities in a box; `inside` is the mass of one within it: ln Z = d ln(inside / 2 half)."""
    return one(
        name, trouble, box(d, half), lambda p, xp: xp.sum(log_density(vector(p, xp), xp), axis=-1),
        d * np.log(inside / (2 * half)),
    )  # fmt: skip


def gumbel(x, xp):
    z = (x - 1.0) / 0.5
    return -z - xp.exp(-z) - np.log(0.5)


def laplace(x, xp):
    return -xp.abs(x) / 0.5


def student_3(x, xp):
    return -2 * xp.log1p(x**2 / 3) + np.log(2) - np.log(np.pi * np.sqrt(3))


def at_both_edges(d: int = 3) -> Problem:
    """Uniform(0, 1) priors and a Beta(0.3, 0.4) density as likelihood, infinite at both ends: ln Z = 0."""

    def priors():
        import numpyro.distributions as dist

        return {f"x{i}": dist.Uniform(0, 1) for i in range(d)}

    def log_likelihood(p, xp):
        x = vector(p, xp)
        return xp.sum(-0.7 * xp.log(x) - 0.6 * xp.log1p(-x), axis=-1) - d * betaln(0.3, 0.4)

    return one("both_edges", "mass piled at edges", priors, log_likelihood, 0.0)


def at_the_edge(d: int = 5, width: float = 1e-3) -> Problem:
    """Uniform(0, 1) priors and an exponential of width 0.001 from the edge: ln Z = 0."""

    def priors():
        import numpyro.distributions as dist

        return {f"x{i}": dist.Uniform(0, 1) for i in range(d)}

    def log_likelihood(p, xp):
        return -xp.sum(vector(p, xp), axis=-1) / width - d * np.log(width)

    return one("at_the_edge", "mass piled at edges", priors, log_likelihood, 0.0)


def gaussian(d: int) -> Problem:
    """Nothing hard but the number of parameters: prior N(0, 1), likelihood N(x; 0.5, 0.5)."""

    def priors():
        import numpyro.distributions as dist

        return {"x": dist.Normal(0, 1).expand([d])}

    exact = d * normal(0.5, 0.0, np.sqrt(1.25), np)
    return one(f"gaussian_{d}d", "many parameters", priors, lambda p, xp: ball(p["x"], 0.5, 0.5, xp), exact)


def angles(d: int, concentration: float = 30.0) -> Problem:
    r"""Angles on (-pi, pi) whose mode stands across the cut: ln L = 30 cos(x - pi), $Z = I_0(30)^d$."""

    def priors():
        import numpyro.distributions as dist

        return {f"x{i}": dist.Uniform(-np.pi, np.pi) for i in range(d)}

    def log_likelihood(p, xp):
        return -concentration * xp.sum(xp.cos(vector(p, xp)), axis=-1)

    exact = d * (np.log(i0e(concentration)) + concentration)
    return one(f"angles_{d}", "periodic angles", priors, log_likelihood, exact)


def rough(size: float = 0.1) -> Problem:
    r"""A ball with fast ripples, $0.1 \sin(10^5 x)$ on each axis, as noise would make: $\ln Z = -2 \ln 20 + 2 \ln I_0(0.1)$."""

    def log_likelihood(p, xp):
        x = vector(p, xp)
        return ball(x, 1.0, 1.0, xp) + size * xp.sum(xp.sin(1e5 * x), axis=-1)

    exact = -2 * np.log(20) + 2 * (np.log(i0e(size)) + size)
    return one("rough", "noisy likelihood", box(2, 10), log_likelihood, exact)


def rounded(step: float = 0.01) -> Problem:
    """A ball whose ln L is rounded to 0.01, as one printed to two digits: no gradient anywhere."""

    def log_likelihood(p, xp):
        return step * xp.round(ball(vector(p, xp), 1.0, 1.0, xp) / step)

    def exact():
        # With t = r^2/2 the area is 2 pi dt, and ln L a step function of t - ln 2 pi.
        t = (np.arange(4_000_000) + 0.5) * 1e-5
        return np.log(2 * np.pi * np.sum(np.exp(step * np.round((-t - np.log(2 * np.pi)) / step))) * 1e-5) - 2 * np.log(
            20
        )

    return one("rounded", "noisy likelihood", box(2, 10), log_likelihood, exact)


def outliers() -> Problem:
    """20 data, a share q of them ten times worse: m ~ U(-10, 10), q ~ U(0, 1)."""
    rng = np.random.default_rng(21)
    y = 1.0 + np.where(np.arange(20) % 5 == 0, 10.0, 1.0) * rng.standard_normal(20)

    def priors():
        import numpyro.distributions as dist

        return {"m": dist.Uniform(-10, 10), "q": dist.Uniform(0, 1)}

    def given(m, q, xp):
        m, q = m[..., None], q[..., None]
        return xp.sum(xp.logaddexp(xp.log1p(-q) + normal(y, m, 1.0, xp), xp.log(q) + normal(y, m, 10.0, xp)), axis=-1)

    def exact():
        return on_grid(lambda m, q: given(m, q, np), (-10, 10, 801), (1e-12, 1 - 1e-12, 801)) - np.log(20)

    return one("outliers", "skewed", priors, lambda p, xp: given(p["m"], p["q"], xp), exact)


PROBLEMS = [
    banana(2), banana(4), banana(10), funnel(3), funnel(5), funnel(10), cauchy(2), cauchy(10), plateau_and_peak(),
    upper_limit(), piled_gamma(), scale_free(), scales(), vague(), correlated(2), correlated(10),
    product_of("gumbel_4d", "skewed", 4, 30.0, gumbel, 1.0), product_of("laplace_10d", "a kink", 10, 50.0, laplace, 1.0),
    product_of("student3_5d", "heavy tails", 5, 1000.0, student_3, 1 - 2 * t(3).sf(1000.0)),
    at_both_edges(), at_the_edge(), gaussian(100), angles(1), angles(3), rough(), rounded(), outliers(),
]  # fmt: skip
