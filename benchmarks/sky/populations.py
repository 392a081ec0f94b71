"""Populations: supernovae, a selected sample, hierarchies of many groups, and shapes whose evidence is known."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from benchmarks.fire.problem import Problem, Side, normal, one, special
from benchmarks.sky.truths import LOG_2PI, adaptive, gaussian, linear


def _dist():
    import numpyro.distributions as dist

    return dist


def supernovae(seed: int) -> Problem:
    r"""$\mu = M + 5 \lg (1 + z) \int dz / E(z; \Omega, w)$ with a full covariance, w free against w = -1."""
    rng = np.random.default_rng([401, seed])
    n = 40
    z = np.sort(np.exp(rng.uniform(np.log(0.02), np.log(1.3), n)))
    x, weights = np.polynomial.legendre.leggauss(12)
    nodes = 1 + z[:, None] * (x + 1) / 2  # 1 + z' at the nodes

    def modulus(om, w, xp):
        om, w = om[..., None, None], w[..., None, None]
        e = xp.sqrt(om * nodes**3 + (1 - om) * nodes ** (3 * (1 + w)))
        return 5 / np.log(10) * xp.log((1 + z) * z / 2 * xp.sum(weights / e, axis=-1))

    cov = np.diag(rng.uniform(0.1, 0.2, n) ** 2) + rng.uniform(0.01, 0.04) ** 2 * (1 + np.outer(z, z))
    factor = np.linalg.cholesky(cov)
    turn = np.linalg.inv(factor)
    y = modulus(np.array(rng.uniform(0.2, 0.45)), np.array(rng.uniform(-1.4, -0.7)), np) + rng.normal(0, 0.3)
    y = y + factor @ rng.normal(size=n)
    white, ones, log_det = turn @ y, turn @ np.ones(n), np.sum(np.log(np.diag(factor)))

    def priors():
        dist = _dist()
        return {"om": dist.Uniform(0.02, 0.98), "w": dist.Uniform(-2.5, 0.3), "M": dist.Normal(0, 0.5)}

    def log_likelihood(p, xp):
        w = p["w"] if "w" in p else -1 + 0 * p["om"]
        model = (modulus(p["om"], w, xp) + p["M"][..., None]) @ turn.T
        return gaussian(white, model, 1.0, xp) - log_det

    def exact(fine=1.0, d=2):
        def log_f(q):
            rest = white - modulus(q[:, 0], q[:, 1] if d == 2 else -1 + 0 * q[:, 0], np) @ turn.T
            return linear(np.broadcast_to(ones[:, None], (len(q), n, 1)), rest, np.ones(n), 0.5) - log_det

        low, high = [0.02, -2.5][:d], [0.98, 0.3][:d]
        return adaptive(log_f, low, high, [16] * d, fine) - np.sum(np.log(np.subtract(high, low)))

    def fixed():
        return {name: prior for name, prior in priors().items() if name != "w"}

    sides = {
        "w free": Side(priors, log_likelihood, exact),
        "w = -1": Side(fixed, log_likelihood, lambda fine=1.0: exact(fine, 1)),
    }
    return Problem("supernovae", "a bent ridge, one parameter more", sides)


def selection(seed: int) -> Problem:
    r"""$N \sim P(\Lambda p), y_i \sim N(\mu, \sqrt{\sigma^2 + s_i^2})$ seen above c only, $p = \Phi((\mu - c) / \sigma_c)$."""
    rng = np.random.default_rng([402, seed])
    mu, sigma, cut, err = rng.uniform(-1, 0.5), rng.uniform(0.6, 1.5), 0.0, 0.4
    y = rng.normal(mu, np.hypot(sigma, err), int(rng.integers(60, 150)))
    y = y[y > cut]
    n, a, b = len(y), 2.0, 0.02

    def priors():
        dist = _dist()
        return {"mu": dist.Normal(0, 3), "sigma": dist.LogNormal(0, 1), "number": dist.Gamma(a, b)}

    def log_likelihood(p, xp):
        mu, sd = p["mu"], xp.sqrt(p["sigma"] ** 2 + err**2)
        log_p = special(xp).log_ndtr((mu - cut) / sd)
        # The density of those seen, n times, and the number of them: p^n of the one takes off p^-n of the other.
        each = gaussian(y, mu[..., None], sd[..., None], xp)
        return each + n * xp.log(p["number"]) - p["number"] * xp.exp(log_p) - gammaln(n + 1.0)

    def exact(fine=1.0):
        def log_f(q):
            mu, sd = q[:, 0], np.sqrt(np.exp(2 * q[:, 1]) + err**2)
            each = np.sum(normal(y, mu[:, None], sd[:, None], np), axis=1)
            rate = a * np.log(b) - gammaln(a) + gammaln(a + n) - (a + n) * np.log(b + ndtr((mu - cut) / sd))
            return each + rate - gammaln(n + 1.0) + normal(mu, 0, 3.0, np) + normal(q[:, 1], 0, 1.0, np)

        return adaptive(log_f, [-24, -7], [24, 7], [80, 40], fine)

    return one("selection", "a long ridge", priors, log_likelihood, exact)


def hierarchy_noncentred(seed: int) -> Problem:
    r"""$y_j \sim N(\mu + \tau z_j, s_j), z_j \sim N(0, 1), \tau \sim C^+(2)$: 25 to 40 groups."""
    rng = np.random.default_rng([403, seed])
    groups = int(rng.integers(25, 41))
    s = rng.uniform(0.5, 2.0, groups)
    tau = (0.1, 0.7, 2.5)[seed % 3] * rng.uniform(0.7, 1.4)
    y = rng.normal(0, 3) + tau * rng.normal(size=groups) + s * rng.normal(size=groups)

    def priors():
        dist = _dist()
        return {"mu": dist.Normal(0, 5), "tau": dist.HalfCauchy(2.0), "z": dist.Normal(0, 1).expand([groups])}

    def log_likelihood(p, xp):
        return gaussian(y, p["mu"][..., None] + p["tau"][..., None] * p["z"], s, xp)

    def exact(fine=1.0):
        def log_f(q):  # tau = 2 tan(pi v / 2), with v uniform
            sd = np.sqrt(s**2 + 4 * np.tan(np.pi * q[:, 1:] / 2) ** 2)
            return np.sum(normal(y, q[:, :1], sd, np), axis=1) + normal(q[:, 0], 0, 5.0, np)

        return adaptive(log_f, [-40, 0], [40, 1], [200, 20], fine)

    return one("hierarchy_noncentred", "a funnel of many groups", priors, log_likelihood, exact)


def hierarchy_selection(seed: int) -> Problem:
    r"""$L_j = N(y_j; \theta_j, s_j) / \Phi((\theta_j - c) / s_j), \theta_j = \mu + \tau z_j$: 30 groups, each seen as y_j > c."""
    rng = np.random.default_rng([404, seed])
    groups, cut = 30, 0.0
    mu, tau = rng.uniform(-0.5, 1.0), rng.uniform(0.4, 1.5)
    s, y = np.zeros(groups), np.zeros(groups)
    for j in range(groups):
        s[j] = rng.uniform(0.5, 1.2)
        theta = mu + tau * rng.normal()
        draws = theta + s[j] * rng.normal(size=10_000)
        y[j] = draws[draws > cut][0] if np.any(draws > cut) else 0.1

    def priors():
        dist = _dist()
        return {"mu": dist.Normal(0, 2), "tau": dist.HalfNormal(1.5), "z": dist.Normal(0, 1).expand([groups])}

    def log_likelihood(p, xp):
        theta = p["mu"][..., None] + p["tau"][..., None] * p["z"]
        return gaussian(y, theta, s, xp) - xp.sum(special(xp).log_ndtr((theta - cut) / s), axis=-1)

    def exact(fine=1.0):
        z = np.linspace(-8.5, 8.5, int(220 * fine))
        log_w = normal(z, 0, 1.0, np) + np.log(z[1] - z[0])

        def log_f(q):
            theta = (q[:, :1] + q[:, 1:] * z)[:, None, :]
            each = normal(y[:, None], theta, s[:, None], np) - log_ndtr((theta - cut) / s[:, None])
            return np.sum(logsumexp(each + log_w, axis=-1), axis=-1) + normal(q[:, 0], 0, 2.0, np) + normal(
                q[:, 1], 0, 1.5, np) + np.log(2)  # fmt: skip

        return adaptive(log_f, [-14, 0], [10, 7], [14, 5], fine, chunk=400, least=0)

    return one("hierarchy_selection", "a selected hierarchy", priors, log_likelihood, exact)


def five_modes(seed: int) -> Problem:
    r"""$L = \sum_k w_k N(x; m_k, s_k^2 1)$ in the box [-10, 10]^7: five unequal modes, one of them narrow, exact."""
    rng = np.random.default_rng([405, seed])
    d = 7
    means = rng.uniform(-7, 7, (5, d))
    sds = np.concatenate([[0.12], rng.uniform(0.3, 1.2, 4)])
    weights = np.concatenate([[0.2], 0.8 * rng.dirichlet([2.0] * 4)])

    def priors():
        return {"x": _dist().Uniform(-10, 10).expand([d])}

    def log_likelihood(p, xp):
        far = xp.sum((p["x"][..., None, :] - means) ** 2, axis=-1) / sds**2
        return special(xp).logsumexp(np.log(weights) - d * np.log(sds) - 0.5 * d * LOG_2PI - 0.5 * far, axis=-1)

    def exact(fine=1.0):
        if fine > 1:  # importance sampling of the likelihood itself from modes 1.3 times as wide
            rng = np.random.default_rng(9)
            which = rng.integers(5, size=200_000)
            x = means[which] + 1.3 * sds[which, None] * rng.normal(size=(len(which), d))
            wide = normal(x[:, None, :], means, 1.3 * sds[:, None], np).sum(axis=-1)
            like = np.where(np.all(np.abs(x) < 10, axis=1), log_likelihood({"x": x}, np), -np.inf)
            return float(logsumexp(like - logsumexp(wide, axis=1) + np.log(5)) - np.log(len(x)) - d * np.log(20))
        inside = ndtr((10 - means) / sds[:, None]) - ndtr((-10 - means) / sds[:, None])
        return float(np.log(np.sum(weights * np.prod(inside, axis=1))) - d * np.log(20))

    return one("five_modes", "five unequal modes", priors, log_likelihood, exact)


def narrow_rotated(seed: int) -> Problem:
    r"""$L = N(\sinh(\mathrm{asinh}\,u + \epsilon)) |dz/du| / \prod w$, u = Q^T (x - m) / w, w = 10^-2.5 .. 10^-0.5: exact."""
    rng = np.random.default_rng([406, seed])
    d, half = 10, 5.0
    q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    w = 10 ** rng.permutation(np.linspace(-2.5, -0.5, d))
    middle = rng.uniform(-1.5, 1.5, d)
    skew = np.zeros(d) if seed % 2 == 0 else rng.uniform(-0.5, 0.5, d)

    def priors():
        return {"x": _dist().Uniform(-half, half).expand([d])}

    def log_likelihood(p, xp):
        u = ((p["x"] - middle) @ q) / w
        turned = xp.arcsinh(u) + skew
        slope = xp.log(xp.cosh(turned)) - 0.5 * xp.log1p(u**2)
        return xp.sum(-0.5 * xp.sinh(turned) ** 2 + slope - np.log(w) - 0.5 * LOG_2PI, axis=-1)

    def exact(fine=1.0):
        if fine > 1:  # importance sampling of the likelihood itself from a Student's t along the axes
            u = np.random.default_rng(9).standard_t(5, size=(400_000, d)) * 1.2
            x = middle + (u * w) @ q.T
            t = np.log(8 / (3 * np.sqrt(5) * np.pi)) - 3 * np.log1p((u / 1.2) ** 2 / 5) - np.log(1.2 * w)
            like = np.where(np.all(np.abs(x) < half, axis=1), log_likelihood({"x": x}, np), -np.inf)
            return float(logsumexp(like - t.sum(axis=1)) - np.log(len(x)) - d * np.log(2 * half))
        return float(-d * np.log(2 * half))

    return one("narrow_rotated", "narrow and rotated", priors, log_likelihood, exact)


FAMILIES = {
    f.__name__: f
    for f in (supernovae, selection, hierarchy_noncentred, hierarchy_selection, five_modes, narrow_rotated)
}  # fmt: skip
