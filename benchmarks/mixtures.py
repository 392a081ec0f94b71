r"""Are all modes found? `python -m benchmarks mixtures --runs 80 --programs traced,black`.

Random problems of 1 to 8 parameters in a box of side 20: two to five normal densities of random shares, their widths between 0.08
and 1.2, their axes 0.5 to 2 times as long and turned at random. The whole is normalised, so that $\ln Z = -d \ln 20$, and a mode
of share $w$ that is missed leaves $\ln(1 - w)$. Answers are kept in results/mixtures.jsonl: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.fire.problem import Problem, box, one, vector
from benchmarks.fire.programs import PEERS, Answer, answer

RESULTS = Path(__file__).resolve().parent / "results" / "mixtures.jsonl"
DIMENSIONS = (1, 2, 3, 4, 5, 6, 8)


def draw(seed: int) -> Problem:
    """The problem of this seed."""
    rng = np.random.default_rng([99, seed])
    d, k = int(rng.choice(DIMENSIONS)), int(rng.integers(2, 6))
    means, widths = rng.uniform(-7, 7, (k, d)), np.exp(rng.uniform(np.log(0.08), np.log(1.2), k))
    shares = rng.dirichlet(np.full(k, 2.0))
    whiten = []  # x -> (x - mean) @ M is standard normal
    for width in widths:
        turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
        whiten.append(turn / (width * np.exp(rng.uniform(-0.7, 0.7, d))))
    heights = np.log(shares) + np.linalg.slogdet(np.stack(whiten))[1] - 0.5 * d * np.log(2 * np.pi)

    def log_likelihood(p, xp):
        x = vector(p, xp)
        squares = [xp.sum(((x - mean) @ m) ** 2, axis=-1) for mean, m in zip(means, whiten, strict=True)]
        terms = xp.stack([height - 0.5 * square for height, square in zip(heights, squares, strict=True)], axis=-1)
        top = xp.max(terms, axis=-1)
        return top + xp.log(xp.sum(xp.exp(terms - top[..., None]), axis=-1))

    return one(f"mixture_{seed}", f"{d} parameters", box(d, 10), log_likelihood, -d * np.log(20))


def ask(program: str, seed: int, seconds: float) -> dict:
    kind, name = (program, "supermodel") if program not in PEERS else ("traced", program)
    problem = draw(seed)
    found = answer(name, problem, kind, seed % 7, seconds, {})
    return {"program": program, "seed": seed, "trouble": problem.trouble, **found.asdict()}


def told(record: dict) -> Answer:
    fields = {name: float("nan") if record[name] is None else record[name] for name in Answer.__dataclass_fields__}
    return Answer(**fields)


def table(records: list[dict]) -> str:
    """Right, flagged, silently wrong and the median of the calls, for each program and number of parameters."""
    groups = defaultdict(list)
    for record in records:
        groups[record["program"], record["trouble"]].append(told(record))
        groups[record["program"], "all"].append(told(record))
    lines = [
        "| program | parameters | problems | right | flagged | silently wrong | median distance from exact | calls |"
    ]
    lines.append("|---" * 8 + "|")
    for program in sorted({program for program, _ in groups}):
        for trouble in ["all", *(f"{d} parameters" for d in DIMENSIONS)]:
            answers = groups.get((program, trouble), [])
            if answers:
                n = [sum(a.outcome == outcome for a in answers) for outcome in ("right", "flagged", "wrong")]
                off = np.nanmedian([abs(a.value - a.truth) for a in answers])
                calls = np.median([a.evaluations for a in answers])
                row = (program, trouble.split()[0], len(answers), *n, f"{off:.3f}", f"{calls:.0f}")
                lines.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks mixtures", description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=80)
    parser.add_argument("--programs", default="traced,black", help="traced, black, dynesty, nautilus")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args(argv)
    lines = args.results.read_text().splitlines() if args.results.exists() else []
    records = {(r["program"], r["seed"]): r for r in map(json.loads, lines)}
    for program in args.programs.split(","):
        for seed in range(args.first, args.first + args.runs):
            if (program, seed) not in records:
                records[program, seed] = record = ask(program, seed, args.seconds)
                with args.results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    print(table(list(records.values())))
    return 0
