r"""What folding is worth: `python -m benchmarks symmetries --seeds 12`.

Label switching of two, three and four components, with `exchangeable=None` (symmetries are looked for) and `False`: how far
ln Z is from the exact one where that is known, how far the two are from each other in units of their joint error, their calls and
their errors.
"""

from __future__ import annotations

import argparse

import numpy as np

import supermodel as sm
from benchmarks.fire.modes import label_switching


def means(k: int, n: int):
    """A mixture of k means of known widths and equal shares: exact by all allocations."""
    problem = label_switching(k, n)
    side = next(iter(problem.sides.values()))

    def model(**said):
        import jax.numpy as jnp

        return sm.Model(side.priors(), lambda p: side.log_likelihood(p, jnp), **said)

    return model, problem.truth


def normals(k: int, n: int):
    """A mixture of k normals with means, widths and shares unknown, in arrays and a Dirichlet."""
    rng = np.random.default_rng(0)
    parts = zip((-4.0, 0.0, 3.5)[:k], (0.7, 0.5, 1.0)[:k], strict=True)
    y = np.concatenate([rng.normal(centre, sd, n // k) for centre, sd in parts])

    def model(**said):
        import jax
        import jax.numpy as jnp
        import numpyro.distributions as dist

        def log_likelihood(p):
            terms = jnp.log(p["w"]) - 0.5 * ((y[:, None] - p["m"]) / p["s"]) ** 2 - jnp.log(p["s"])
            return jnp.sum(jax.scipy.special.logsumexp(terms, axis=-1)) - 0.5 * n * np.log(2 * np.pi)

        priors = {"m": dist.Normal(0, 5).expand([k]), "s": dist.LogNormal(0, 0.5).expand([k])}
        return sm.Model(priors | {"w": dist.Dirichlet(np.full(k, 2.0))}, log_likelihood, **said)

    return model, np.nan


PROBLEMS = {
    "2 means": lambda: means(2, 14), "3 means": lambda: means(3, 10), "4 means": lambda: means(4, 9),
    "2 normals": lambda: normals(2, 40), "3 normals": lambda: normals(3, 60),
}  # fmt: skip


def asked(model, seed: int) -> tuple[float, float, int, str]:
    """ln Z, its error, the calls and the verdict."""
    found = sm.evidence(model, seed=seed, progress=False)
    return found.value, found.error, found.evaluations["likelihood"], found.verdict.level


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks symmetries", description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    options = parser.parse_args(argv)
    header = "problem", "from exact, in errors", "from each other", "calls folded", "calls whole", "ratio"
    print("| " + " | ".join((*header, "error folded", "error whole", "not ok")) + " |")
    print("|---" * 9 + "|")
    for name in options.problems.split(","):
        model, truth = PROBLEMS[name]()
        rows = [(asked(model(), seed), asked(model(exchangeable=False), seed)) for seed in range(options.seeds)]
        value, error, calls = (np.array([[float(r[i]) for r in pair] for pair in rows]) for i in range(3))
        off = np.abs(value[:, 0] - truth) / error[:, 0]
        apart = np.abs(value[:, 0] - value[:, 1]) / np.hypot(*error.T)
        trouble = [sum(pair[k][3] not in ("ok", "caution") for pair in rows) for k in (0, 1)]
        folded, whole = np.median(calls, axis=0)
        cells = (
            name, f"{off.max():.1f}", f"{apart.max():.1f}", f"{folded:.0f}", f"{whole:.0f}", f"{whole / folded:.1f}",
            *(f"{e:.4f}" for e in np.median(error, axis=0)), f"{trouble[0]} and {trouble[1]} of {len(rows)}",
        )  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)
    return 0
