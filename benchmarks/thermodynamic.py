r"""ln Z of logistic regressions by a method that shares nothing with ours: `python -m benchmarks.thermodynamic 30 100 300`.

$\ln Z = \int_0^1 E_\beta[\ln J - \ln N]\,d\beta$ along $N^{1 - \beta} J^\beta$ from the Gaussian N at the mode, by twelve
Gauss-Legendre nodes and 32 Hamiltonian chains; the chains, which never meet, tell the error.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.peers.problems import shared_design

NODES, CHAINS, ITERATIONS, BURN = 12, 32, 240, 80
TRAJECTORY, STEP = 1.5, 0.35  # in widths of the Gaussian; of a step at 100 parameters


def at_the_mode(x: np.ndarray, y: np.ndarray):
    """ln J and its gradient at (n, d) points, in coordinates that the Gaussian at the mode whitens."""
    d = x.shape[1]

    def log_joint(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        eta = b @ x.T
        prior = -0.5 * np.sum(b**2, axis=-1) - 0.5 * d * np.log(2 * np.pi)
        return np.sum(y * eta - np.logaddexp(0.0, eta), axis=-1) + prior, (y - expit(eta)) @ x - b

    def down(b: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_joint(b)
        return -float(value), -gradient

    mode = minimize(down, np.zeros(d), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-9}).x
    p = expit(x @ mode)
    precision = (x * (p * (1 - p))[:, None]).T @ x + np.eye(d)
    factor = np.linalg.inv(np.linalg.cholesky(precision)).T

    def whitened(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = log_joint(mode + u @ factor.T)
        return value - 0.5 * np.linalg.slogdet(precision)[1], gradient @ factor

    return whitened


def log_normal(u: np.ndarray) -> np.ndarray:
    return -0.5 * np.sum(u**2, axis=1) - 0.5 * u.shape[1] * np.log(2 * np.pi)


def evidence(d: int, seed: int = 1) -> tuple[float, float]:
    """ln Z of model A of `logistic d v d`, and its error."""
    (x, _), y = shared_design(d, "logistic")
    log_joint, rng = at_the_mode(x, y), np.random.default_rng(seed)
    u = rng.standard_normal((CHAINS, d))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    by_chain = np.zeros(CHAINS)
    for beta, weight in zip(0.5 * (nodes + 1), 0.5 * weights, strict=True):
        value, gradient = log_joint(u)
        seen = []
        for _ in range(ITERATIONS):
            momentum, step = rng.standard_normal((CHAINS, d)), STEP * (100 / d) ** 0.25 * rng.uniform(0.7, 1.1)
            before = beta * value + (1 - beta) * log_normal(u) - 0.5 * np.sum(momentum**2, axis=1)
            v, w, g = u, value, gradient
            leaps = int(np.ceil(TRAJECTORY / step))
            momentum = momentum + 0.5 * step * (beta * g - (1 - beta) * v)
            for leap in range(leaps):
                v = v + step * momentum
                w, g = log_joint(v)
                momentum = momentum + (step if leap < leaps - 1 else 0.5 * step) * (beta * g - (1 - beta) * v)
            after = beta * w + (1 - beta) * log_normal(v) - 0.5 * np.sum(momentum**2, axis=1)
            accepted = np.log(rng.random(CHAINS)) < after - before
            u, gradient = (np.where(accepted[:, None], a, b) for a, b in ((v, u), (g, gradient)))
            value = np.where(accepted, w, value)
            seen.append(value - log_normal(u))
        by_chain += weight * np.mean(seen[BURN:], axis=0)
    return float(by_chain.mean()), float(by_chain.std(ddof=1) / np.sqrt(CHAINS))


if __name__ == "__main__":
    for size in sys.argv[1:] or ["30", "100", "300"]:
        print("d = {}: ln Z = {:.3f} ± {:.3f}".format(size, *evidence(int(size))), flush=True)
