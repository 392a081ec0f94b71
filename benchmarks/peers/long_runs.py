"""`python -m benchmarks.peers.long_runs`: ln B of the logistic regressions, as `problems.LONG` states it.

Two roads that share nothing: importance sampling about each posterior's mode (up to 30 parameters it has enough effective
draws), and a long run of this library.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_t

import supermodel as sm
from benchmarks.fire.problem import Problem
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


def by_ours(problem: Problem, target: float) -> tuple[float, float, str]:
    result = sm.compare(problem.models("traced"), seed=1234, target_error=target, max_seconds=1500, progress=False)
    found = result.log_bayes_factor(*problem.sides)
    return float(found.value), float(found.error), result.verdict.level


def main(names: list[str]) -> None:
    for name, problem in ((name, q.problem) for name, q in questions().items() if name in (names or DESIGNS)):
        designs, y = DESIGNS[name]()
        if designs[0].shape[1] <= 30:
            (first, e1, s1), (second, e2, s2) = (by_importance(x, y, 1_000_000, 7) for x in designs)
            print(
                f"{name}: {first - second:.5f} ± {np.hypot(e1, e2):.5f} by importance, shares {s1:.3f} {s2:.3f}",
                flush=True,
            )
        value, error, level = by_ours(problem, TARGETS.get(designs[0].shape[1], 0.003))
        print(f"{name}: {value:.5f} ± {error:.5f} by ours, {level}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
