r"""Are the error bars true where posteriors are not normal? `python -m benchmarks nonnormal --runs 500 --kind traced`.

Random problems of 1 to 6 parameters. The posterior is a product of normalised densities $q_i$ (skewed, shouldered, bounded,
heavy-tailed, two-moded) of coordinates $u_i = x_i - b_i(x_1 \dots x_{i-1})$, a bend that preserves volume; the prior $\pi$ is
normal, uniform, Student t, exponential or another; and $L = C\, \prod_i q_i(u_i) / \pi(x)$, so that $\ln Z = \ln C$ exactly.

Answers are kept in results/nonnormal-<kind>.jsonl: a run that was stopped goes on, and prints what all of them say.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import sys
import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln
from scipy.stats import norm

from benchmarks.fire.problem import Problem, normal, one

HERE = Path(__file__).resolve().parent
FIGURE = HERE.parent / "docs" / "gallery" / "nonnormal.png"
FAMILIES = ("skewed", "shouldered", "bounded", "heavy", "two modes")
TRUSTED = ("ok", "caution")


# -- one coordinate: (prior, ln q, ln pi), the densities as functions of (x, xp) ---------------------------------------


def _sigmoid(x, xp):
    return 0.5 * (1 + xp.tanh(0.5 * x))


def skewed(rng) -> Any:
    """The logarithm of a gamma variable, turned to either side."""
    shape, scale, sign, centre = rng.uniform(1, 4), rng.uniform(0.3, 0.8), rng.choice([-1, 1]), rng.uniform(-2, 2)

    def log_density(x, xp):
        z = sign * (x - centre) / scale
        return shape * z - xp.exp(z) - gammaln(shape) - np.log(scale)

    return log_density


def shouldered(rng) -> Any:
    r"""A normal peak on a plateau with soft ends: $(\sigma((x + a) / w) - \sigma((x - a) / w)) / 2a$."""
    share, sd, width = rng.uniform(0.4, 0.8), rng.uniform(0.2, 0.6), rng.uniform(0.1, 0.3)
    half, centre = rng.uniform(2, 4), rng.uniform(-2, 2)

    def log_density(x, xp):
        z = xp.abs(x - centre)
        # The difference of the two sigmoids without cancellation, at any distance.
        plateau = -xp.logaddexp(0.0, (z - half) / width) - xp.logaddexp(0.0, (-z - half) / width)
        plateau = plateau + np.log(-np.expm1(-2 * half / width)) - np.log(2 * half)
        return xp.logaddexp(np.log(share) + normal(x, centre + 1.5 * sd, sd, xp), np.log1p(-share) + plateau)

    return log_density


def heavy(rng) -> Any:
    """Student t of 2 to 5 degrees of freedom."""
    df, scale, centre = rng.uniform(2, 5), rng.uniform(0.3, 1), rng.uniform(-2, 2)
    constant = gammaln(0.5 * (df + 1)) - gammaln(0.5 * df) - 0.5 * np.log(np.pi * df) - np.log(scale)
    return lambda x, xp: constant - 0.5 * (df + 1) * xp.log1p(((x - centre) / scale) ** 2 / df)


def two_modes(rng) -> Any:
    """Two normal densities, 3 to 6 apart."""
    share, apart, centre = rng.uniform(0.3, 0.7), rng.uniform(3, 6), rng.uniform(-1, 1)
    first, second = rng.uniform(0.3, 0.8, 2)

    def log_density(x, xp):
        left = np.log(share) + normal(x, centre - 0.5 * apart, first, xp)
        return xp.logaddexp(left, np.log1p(-share) + normal(x, centre + 0.5 * apart, second, xp))

    return log_density


def bounded(rng) -> tuple[Any, Any, Any]:
    """On (0, 1) a beta density under a uniform prior, or on (0, inf) a gamma density under an exponential one."""
    import numpyro.distributions as dist

    if rng.random() < 0.5:
        a, b = rng.uniform(0.6, 4, 2)
        log_beta = lambda x, xp: (a - 1) * xp.log(x) + (b - 1) * xp.log1p(-x) - betaln(a, b)  # noqa: E731
        return dist.Uniform(0, 1), log_beta, lambda x, xp: 0.0 * x
    shape, rate, wide = rng.uniform(0.6, 4), rng.uniform(2, 6), float(rng.uniform(0.2, 1))
    constant = shape * np.log(rate) - gammaln(shape)
    log_gamma = lambda x, xp: constant + (shape - 1) * xp.log(x) - rate * x  # noqa: E731
    return dist.Exponential(wide), log_gamma, lambda x, xp: np.log(wide) - wide * x


def wide_prior(rng, tails: bool) -> tuple[Any, Any]:
    """(prior, ln pi), at least as heavy in its tails as the density that it is to carry."""
    import numpyro.distributions as dist

    if tails:
        return dist.Cauchy(0, 5), lambda x, xp: -np.log(5 * np.pi) - xp.log1p((x / 5) ** 2)
    if rng.random() < 0.5:
        return dist.Uniform(-20, 20), lambda x, xp: -np.log(40) + 0.0 * x
    sd = float(rng.uniform(5, 10))
    return dist.Normal(0, sd), lambda x, xp: normal(x, 0.0, sd, xp)


MAKERS = {"skewed": skewed, "shouldered": shouldered, "heavy": heavy, "two modes": two_modes}


def draw(seed: int) -> Problem:
    """The problem of this seed; its trouble is the family of the first coordinate."""
    rng = np.random.default_rng([2026, seed])
    d, first = int(rng.integers(1, 7)), FAMILIES[seed % 5]
    families = [first, *rng.choice(FAMILIES, d - 1)]
    # At most two coordinates of two modes: with six there would be 64 of them, which is another question.
    extra = [i for i, family in enumerate(families) if family == "two modes"][2:]
    families = ["skewed" if i in extra else family for i, family in enumerate(families)]
    priors, parts, bends, source = {}, [], [], None
    for i, family in enumerate(families):
        name = f"x{i}"
        if family == "bounded":
            priors[name], density, prior = bounded(rng)
        else:
            density = MAKERS[family](rng)
            priors[name], prior = wide_prior(rng, family == "heavy")
        # A bend needs a source of light tails, so that what it bends keeps its own, and room on both sides.
        bend = (
            float(rng.uniform(-1.5, 1.5)) if source is not None and family != "bounded" and rng.random() < 0.5 else 0.0
        )
        bends.append((bend, source))
        parts.append((name, density, prior))
        if source is None and family in ("skewed", "shouldered", "two modes"):
            source = name
    log_evidence = float(rng.normal(0, 5))

    def log_likelihood(p, xp):
        total = log_evidence
        for (name, density, prior), (bend, by) in zip(parts, bends, strict=True):
            x = p[name]
            u = x - bend * xp.sqrt(1 + p[by] ** 2) if bend else x
            total = total + density(u, xp) - prior(x, xp)
        return total

    return one(f"nonnormal_{seed}", first, lambda: priors, log_likelihood, log_evidence)


KINDS = ("traced", "black", "thrifty")  # the last: black boxes at the effort of dear calls

# -- running, and what it says -----------------------------------------------------------------------------------------


def worker(kind: str, seeds: list[str], max_seconds: float) -> None:
    """One line of JSON for each seed."""
    import jax

    from benchmarks.fire.programs import by_supermodel
    from benchmarks.fire.worker import end_with

    warnings.simplefilter("ignore")
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    print(json.dumps({"ready": True}), flush=True)
    for seed in seeds:
        problem = draw(int(seed))
        options = {"explore": "thrifty"} if kind == "thrifty" else {}
        found = by_supermodel(problem, "traced" if kind == "traced" else "black", int(seed), max_seconds, options)
        size = len(problem.sides["model"].priors())
        print(json.dumps({"seed": int(seed), "family": problem.trouble, "d": size, **found.asdict()}), flush=True)
        jax.clear_caches()


def run(kind: str, seeds: list[int], path: Path, max_seconds: float) -> None:
    """25 problems in a process; one that hangs is ended and counts as no answer."""
    from benchmarks.fire.trial import PATIENCE, Lines

    while seeds:
        batch = seeds[:25]
        command = [sys.executable, "-m", "benchmarks.nonnormal", "--kind", kind, "--seconds", str(max_seconds)]
        lines = Lines([*command, "--worker", *map(str, batch)])
        try:
            lines.next(300)
            for seed in batch:
                try:
                    record = lines.next(max_seconds + PATIENCE)
                except queue.Empty:
                    record = None
                dead = record is None
                record = record or {
                    "seed": seed,
                    "family": draw(seed).trouble,
                    "level": "none",
                    "value": None,
                    "error": None,
                }
                with path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                seeds = seeds[1:]
                if dead:
                    break
        finally:
            lines.end()


def scores(records: list[dict]) -> np.ndarray:
    """z = (estimate - truth) / error of the answers that may be used."""
    used = [r for r in records if r["level"] in TRUSTED and r["error"]]
    return np.array([(r["value"] - r["truth"]) / r["error"] for r in used])


def summary(records: list[dict]) -> str:
    """rms z, cover and verdicts, of all and of each family."""
    levels = Counter(r["level"] for r in records)
    shares = ", ".join(f"{level} {count / len(records):.1%}" for level, count in levels.most_common())
    calls = np.median([r["evaluations"] for r in records if r.get("evaluations")])
    lines = [f"{len(records)} problems: {shares}; median evaluations {calls:.0f}"]
    for family in ("all", *FAMILIES, *TRUSTED):
        part = [r for r in records if family in ("all", r["family"], r["level"])]
        z = scores(part)
        if len(z):
            rms, far = math.sqrt(np.mean(z**2)), int(np.sum(np.abs(z) > 4))
            # The rms of n standard normal numbers scatters by 1 / sqrt(2 n).
            lines.append(
                f"  {family:<11} n {len(z):4d}  rms z {rms:.3f} (± {1 / math.sqrt(2 * len(z)):.3f})  mean {z.mean():+.3f}  "
                f"95% cover {np.mean(np.abs(z) < 1.96):.1%}  beyond 4: {far}"
            )
    return "\n".join(lines)


def picture(by_kind: dict[str, list[dict]], path: Path = FIGURE) -> None:
    """P-P plot of Phi(z), with the band that 95% of true error bars stay in (Kolmogorov)."""
    import matplotlib.pyplot as plt
    from scipy.stats import kstwo

    figure, axes = plt.subplots(figsize=(4.2, 4.2))
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    for kind, records in by_kind.items():
        p = np.sort(norm.cdf(scores(records)))
        if len(p):
            label = f"{kind}, {len(p)} problems"
            (line,) = axes.step(p, np.arange(1, len(p) + 1) / len(p), where="post", label=label)
            band = kstwo(len(p)).isf(0.05)
            for side in (-band, band):
                axes.plot([0, 1], [side, 1 + side], color=line.get_color(), linewidth=0.6, linestyle=":")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability Φ(z)", ylabel="share of problems")
    axes.legend(loc="upper left", frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks nonnormal", description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, default="traced")
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--again", action="store_true", help="forget what is there")
    parser.add_argument("--worker", nargs="+", metavar="SEED", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.worker:
        worker(args.kind, args.worker, args.seconds)
        return 0
    args.results.mkdir(parents=True, exist_ok=True)
    paths = {kind: args.results / f"nonnormal-{kind}.jsonl" for kind in KINDS}
    if args.again:
        paths[args.kind].unlink(missing_ok=True)
    there = {r["seed"] for r in read(paths[args.kind])}
    wanted = [seed for seed in range(args.first, args.first + args.runs) if seed not in there]
    run(args.kind, wanted, paths[args.kind], args.seconds)
    found = {kind: records for kind, path in paths.items() if (records := read(path))}
    for kind, records in found.items():
        print(f"{kind}: {summary(records)}")
    picture(found, FIGURE if args.results == HERE / "results" else args.results / FIGURE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
