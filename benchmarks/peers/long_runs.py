"""`python -m benchmarks.peers.long_runs`: ln B of the logistic regressions, as `problems.LONG` states it.

Roads that share nothing: importance sampling about each posterior's mode (up to 30 parameters it has enough effective draws),
the Savage-Dickey ratio of the one coefficient that is not shared, on draws of NUTS, and a long run of this library.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_t

import supermodel as sm
from benchmarks.fire.problem import Problem, Side
from benchmarks.peers.by_blackjax import nuts_draws
from benchmarks.peers.problems import DESIGNS, questions

FREEDOM = 30
TARGETS = {100: 0.006, 300: 0.02}  # errors of the long runs; 0.003 below


def by_importance(
    design: np.ndarray, y: np.ndarray, n: int, seed: int, batch: int = 20_000
) -> tuple[float, float, float]:
    """ln Z with its error and the effective share of the draws; unit priors, draws of Student's t about the mode."""
    b = np.zeros(design.shape[1])
    for _ in range(50):  # Newton: ln L + ln prior is concave
        mean = 1 / (1 + np.exp(-design @ b))
        curvature = (design * (mean * (1 - mean))[:, None]).T @ design + np.eye(len(b))
        b = b + np.linalg.solve(curvature, design.T @ (y - mean) - b)
    proposal = multivariate_t(b, 1.1 * np.linalg.inv(curvature), df=FREEDOM, seed=seed)
    weights = []
    for _ in range(n // batch):
        x = proposal.rvs(batch)
        eta = x @ design.T
        joint = np.sum(y * eta - np.logaddexp(0.0, eta), axis=1) - 0.5 * np.sum(x**2, axis=1)
        weights.append(joint - 0.5 * len(b) * np.log(2 * np.pi) - proposal.logpdf(x))
    w = np.concatenate(weights)
    share = np.exp(2 * logsumexp(w) - logsumexp(2 * w)) / len(w)
    return float(logsumexp(w) - np.log(len(w))), float(np.sqrt((1 / share - 1) / len(w))), float(share)


def by_savage_dickey(side: Side, design: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float]:
    r"""$\ln Z / Z_0$ against the model without its last column: $\ln\pi(0) - \ln E[p(a = 0 \mid b, y)]$ over draws of the rest.

    The conditional density of one coefficient is one integral for each draw, and varies little. Its error is the spread of chains.
    """
    _, draws = nuts_draws(side, seed)
    grid = np.linspace(-8.0, 8.0, 641)
    means = []
    for chain in draws:
        rest, each = chain[::4, :-1] @ design[:, :-1].T, []
        for eta in rest:
            all_eta = eta + grid[:, None] * design[:, -1]
            log_density = np.sum(y * all_eta - np.logaddexp(0.0, all_eta), axis=1) - 0.5 * grid**2
            each.append(log_density[len(grid) // 2] - logsumexp(log_density) - np.log(grid[1] - grid[0]))
        means.append(logsumexp(each) - np.log(len(each)))
    top = logsumexp(means) - np.log(len(means))
    spread = np.std(np.exp(np.array(means) - top), ddof=1) / np.sqrt(len(means))
    return -0.5 * np.log(2 * np.pi) - float(top), float(spread)


def by_ours(problem: Problem, target: float) -> tuple[float, float, str]:
    result = sm.compare(problem.models("traced"), seed=1234, target_error=target, max_seconds=1500, progress=False)
    found = result.log_bayes_factor(*problem.sides)
    return float(found.value), float(found.error), result.verdict.level


def main(names: list[str]) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    for name, problem in ((name, q.problem) for name, q in questions().items() if name in (names or DESIGNS)):
        designs, y = DESIGNS[name]()
        if designs[0].shape[1] <= 30:
            (first, e1, s1), (second, e2, s2) = (by_importance(x, y, 1_000_000, 7) for x in designs)
            print(
                f"{name}: {first - second:.5f} ± {np.hypot(e1, e2):.5f} by importance, shares {s1:.3f} {s2:.3f}",
                flush=True,
            )
        if len(designs[0]) == 3 * designs[0].shape[1]:
            each = [by_savage_dickey(side, x, y, 7) for side, x in zip(problem.sides.values(), designs, strict=True)]
            value, error = each[0][0] - each[1][0], np.hypot(each[0][1], each[1][1])
            print(f"{name}: {value:.5f} ± {error:.5f} by Savage-Dickey on NUTS", flush=True)
        value, error, level = by_ours(problem, TARGETS.get(designs[0].shape[1], 0.003))
        print(f"{name}: {value:.5f} ± {error:.5f} by ours, {level}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
