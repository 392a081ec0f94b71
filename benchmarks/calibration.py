"""Are the error bars true? Random problems of exactly known ln B; the spread of (estimate - truth) / error must be 1."""

from __future__ import annotations

import sys

import numpy as np

import supermodel as sm
from benchmarks.random_problems import draw


def run(first: int, last: int, vectorized: bool, target_error: float = 0.1) -> list[dict]:
    """One row per problem."""
    rows = []
    for seed in range(first, last):
        problem = draw(seed, vectorized)
        a, b = problem.models
        result = sm.compare(problem.models, seed=seed, target_error=target_error, progress=False)
        estimate = result.log_bayes_factor(a, b)
        rows.append(
            {
                "seed": seed,
                "kind": problem.kind,
                "dimension": sum(len(m.priors) for m in problem.models.values()),
                "truth": problem.log_bayes_factor,
                "z": (estimate.value - problem.log_bayes_factor) / estimate.error,
                "error": estimate.error,
                "evaluations": result.evaluations["likelihood"],
                "level": result.verdict.level,
                "codes": [reason.code for reason in result.verdict.reasons],
            }
        )
    return rows


def summary(rows: list[dict]) -> str:
    """The figures that the docs quote."""
    trusted = [r for r in rows if r["level"] in ("ok", "caution")]
    z = np.array([r["z"] for r in trusted])
    lines = [
        f"{len(rows)} problems, {len(trusted)} trusted, ln B from {min(r['truth'] for r in rows):.1f} to "
        f"{max(r['truth'] for r in rows):.1f}, {min(r['dimension'] for r in rows)} to "
        f"{max(r['dimension'] for r in rows)} parameters in both models",
        f"spread of z {z.std():.3f}, mean {z.mean():+.3f}, within 2 errors {np.mean(np.abs(z) < 1.96):.1%}, "
        f"largest |z| {np.abs(z).max():.1f}; median error {np.median([r['error'] for r in rows]):.3f}, "
        f"median evaluations {np.median([r['evaluations'] for r in rows]):.0f}",
    ]
    for kind in sorted({r["kind"] for r in trusted}):
        part = np.array([r["z"] for r in trusted if r["kind"] == kind])
        lines.append(f"  {kind:<12} n {len(part):3d}  spread {part.std():.3f}  mean {part.mean():+.3f}")
    bad = [r for r in trusted if abs(r["z"]) > 4]
    lines += [f"  far off: {r}" for r in bad]
    return "\n".join(lines)


if __name__ == "__main__":
    first, last, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    print(summary(run(first, last, mode == "numpy")))
