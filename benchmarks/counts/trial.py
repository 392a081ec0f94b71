"""`python -m benchmarks counts [--families a,b] [--seeds 0-19] [--limit SECONDS] [--truths] [--table] [--against-compare SEEDS]`.

Every run of `sm.count` is a line of results/counts.jsonl, every truth one of results/counts_truths.jsonl; what is there is not
made again without `--again`. A run that takes half as much again as the limit, and half a minute, is ended and counts as no answer.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np
from scipy.special import softmax

from benchmarks.counts.families import FAMILIES, Counted
from benchmarks.fire.trial import state_of_code

RESULTS = Path(__file__).resolve().parents[1] / "results"
TRUTHS, RUNS, COMPARED = (RESULTS / f"counts{name}.jsonl" for name in ("_truths", "", "_compared"))
DECISIVE = 0.6


def numbers(text: str) -> list[int]:
    """`0-3,7` as 0, 1, 2, 3, 7."""
    parts = [part.partition("-") for part in text.split(",")]
    return [n for low, _, high in parts for n in range(int(low), int(high or low) + 1)]


def lines(path: Path, *names: str) -> dict[tuple, dict]:
    """The lines of a file; the last for each family, seed and what else tells them apart."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(row["family"], row["seed"], *(row[name] for name in names)): row for row in rows}


def keep(path: Path, row: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def truth(family: str, seed: int, again: bool = False) -> dict:
    """The stored truth, or a new one."""
    known = lines(TRUTHS).get((family, seed))
    if known is not None and not again:
        return known
    problem, began = FAMILIES[family](seed), time.monotonic()
    found = problem.log_evidences()
    row = {
        "family": family, "seed": seed, "true": problem.true,
        "log_evidence": {str(k): round(value, 5) for k, (value, _) in found.items()},
        "error": {str(k): round(error, 5) for k, (_, error) in found.items()},
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    keep(TRUTHS, row)
    print(json.dumps(row), flush=True)
    return row


# -- runs -------------------------------------------------------------------------------------------------------------


def counted(problem: Counted, kind: str, limit: float, seed: int) -> dict:
    """What sm.count answers."""
    import supermodel as sm

    found = sm.count(**problem.arguments(kind), seed=seed, max_seconds=limit, progress=False)
    weighed = [int(k) for k in found.numbers]
    estimates = {k: found.log_evidence(k) for k in weighed}
    return {
        "numbers": weighed, "more": float(found.more), "level": found.verdict.level,
        "reasons": [reason.code for reason in found.verdict.reasons],
        "probability": {str(k): float(e.value) for k, e in found.probabilities.items()},
        "probability_error": {str(k): float(e.error) for k, e in found.probabilities.items()},
        "log_evidence": {str(k): float(e.value) for k, e in estimates.items()},
        "error": {str(k): float(e.error) for k, e in estimates.items()},
        "calls": int(found.evaluations["likelihood"]), "stopped": str(found.stopped),
    }  # fmt: skip


def compared(problem: Counted, kind: str, limit: float, seed: int) -> dict:
    """The calls of sm.compare on the same models, which knows neither that they grow nor that components can be exchanged."""
    import supermodel as sm
    from supermodel.counting.component import model_of

    asked = problem.arguments(kind)
    known = {name: asked.get(name) for name in ("background", "noise", "combine", "log_likelihood")}
    models = {}
    for k in range(problem.least, problem.most + 1):
        grown = model_of(asked["component"], k, **known, vectorized=asked.get("vectorized", False))
        given = {"exchangeable": False, "vectorized": grown.vectorized}
        if asked.get("log_likelihood") is not None:
            models[f"{k}"] = sm.Model(grown.priors, grown.log_likelihood, **given)
        else:
            models[f"{k}"] = sm.Model(grown.priors, predict=grown.predict, noise=grown.noise, exchangeable=False)
    found = sm.compare(models, asked.get("data"), seed=seed, max_seconds=limit, progress=False)
    return {"calls": int(found.evaluations["likelihood"]), "level": found.verdict.level}


ASK = {"count": counted, "compare": compared}


def _work(pipe, what: str, family: str, seed: int, kind: str, limit: float) -> None:
    began = time.monotonic()
    try:
        row = ASK[what](FAMILIES[family](seed), kind, limit, seed)
    except Exception as error:
        row = {"note": f"{type(error).__name__}: {error}"}
    pipe.send(row | {"seconds": round(time.monotonic() - began, 1)})


def ask(what: str, family: str, seed: int, kind: str, limit: float) -> dict:
    """The answer of a fresh process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(there, what, family, seed, kind, limit))
    process.start()
    there.close()
    row: dict = {"note": "no answer", "seconds": limit}
    try:
        if here.poll(limit + 30 + 0.5 * limit):
            row = here.recv()
    except EOFError:
        row["note"] = "the process died"
    process.kill()
    process.join()
    return row


# -- tables -----------------------------------------------------------------------------------------------------------


def judged(row: dict, known: dict) -> dict:
    r"""How far an answer is from the truth, in joint errors: probabilities, with $dp_k = \sum_j p_k (\delta_{kj} - p_j) d\ln Z_j$.

    `steps` are the deviations of ln Z from that of the most probable number. Only the numbers that were weighed are looked at.
    """
    weighed = [str(k) for k in row["numbers"]]
    log_z, error = (np.array([known[name][k] for k in weighed]) for name in ("log_evidence", "error"))
    whole = softmax(list(known["log_evidence"].values()))
    p = softmax(log_z)
    slopes = np.diag(p) - np.outer(p, p)
    of_truth = np.sqrt(np.sum((slopes * error) ** 2, axis=1))
    given, given_error = (np.array([row[name][k] for k in weighed]) for name in ("probability", "probability_error"))
    joint = np.maximum(np.hypot(given_error, of_truth), 1e-12)
    best = int(np.argmax(log_z))
    others = [i for i in range(len(weighed)) if i != best]
    ours, our_error = (np.array([row[name][k] for k in weighed]) for name in ("log_evidence", "error"))
    gap = (ours - ours[best]) - (log_z - log_z[best])
    wide = np.sqrt(our_error**2 + error**2 + our_error[best] ** 2 + error[best] ** 2)
    labels = list(known["log_evidence"])
    missed = float(sum(share for k, share in zip(labels, whole, strict=True) if k not in weighed))
    return {
        "z": np.where(np.abs(given - p) < 1e-9, 0.0, (given - p) / joint), "steps": (gap / np.maximum(wide, 1e-12))[others],
        "decisive": whole.max() > DECISIVE, "missed": missed, "more": row["more"],
        "agrees": labels[int(np.argmax(whole))] == max(row["probability"], key=row["probability"].get),
    }  # fmt: skip


HEADER = (
    "family", "runs", "no answer", "all p within 2", "within 3", "ln Z steps: rms z", "within 2", "most probable: decisive",
    "right", "fail", "p beyond", "median calls", "median s",
)  # fmt: skip


def table(kind: str, families: list[str]) -> str:
    """A line per family."""
    rows, known = lines(RUNS, "kind"), lines(TRUTHS)
    out = ["| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|"]
    for family in families:
        mine = [row for (name, _, way), row in rows.items() if (name, way) == (family, kind)]
        answers = [row for row in mine if np.all(np.isfinite([*row.get("probability", {"": np.nan}).values()]))]
        if not answers:
            continue
        found = [judged(row, known[family, row["seed"]]) for row in answers]
        worst = np.array([np.max(np.abs(f["z"])) for f in found])
        steps = np.concatenate([f["steps"][np.isfinite(f["steps"])] for f in found])
        decisive = [f for f in found if f["decisive"]]
        over = sum(f["missed"] > max(f["more"], 0.01) for f in found)  # more is missed than the answer says
        cells = (
            family, len(mine), len(mine) - len(answers), np.sum(worst < 2), np.sum(worst < 3), f"{np.sqrt(np.mean(steps**2)):.2f}",
            f"{np.mean(np.abs(steps) < 2):.0%}", len(decisive), sum(f["agrees"] for f in decisive),
            f"{np.mean([row.get('level') == 'fail' for row in mine]):.0%}", over,
            f"{np.median([row['calls'] for row in answers]):,.0f}", f"{np.median([row['seconds'] for row in answers]):.0f}",
        )  # fmt: skip
        out.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(out)


def against(families: list[str], seeds: list[int], args: argparse.Namespace) -> None:
    """The calls of sm.compare over those of sm.count."""
    runs, code = lines(RUNS, "kind"), state_of_code()
    print("| family | seed | calls of count | of compare | ratio | verdicts |\n|---|---|---|---|---|---|")
    for family in families:
        for seed in seeds:
            row = lines(COMPARED, "kind").get((family, seed, args.kind))
            if row is None or args.again:
                row = {"family": family, "seed": seed, "kind": args.kind, "code": code}
                row |= ask("compare", family, seed, args.kind, args.limit)
                keep(COMPARED, row)
            mine = runs.get((family, seed, args.kind), {})
            both = [r.get("calls", float("nan")) for r in (mine, row)]
            levels = " ".join(str(r.get("level", r.get("note"))) for r in (mine, row))
            print(f"| {family} | {seed} | {both[0]} | {both[1]} | {both[1] / both[0]:.2f} | {levels} |", flush=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks counts", description=__doc__)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--seeds", type=numbers, default=numbers("0-19"))
    parser.add_argument("--kind", default="traced", choices=("traced", "black"))
    parser.add_argument("--limit", type=float, default=900.0, help="max_seconds of one run")
    parser.add_argument("--truths", action="store_true", help="only make the truths that are missing")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--against-compare", type=numbers, metavar="SEEDS")
    parser.add_argument("--again", action="store_true")
    args = parser.parse_args(argv)
    families = args.families.split(",")
    jobs = [] if args.table or args.against_compare else [(f, s) for s in args.seeds for f in families]
    code = state_of_code()
    for family, seed in jobs:
        known = truth(family, seed, again=args.again and args.truths)
        if args.truths or (not args.again and (family, seed, args.kind) in lines(RUNS, "kind")):
            continue
        row = {"family": family, "seed": seed, "kind": args.kind, "code": code, "true": known["true"]}
        row |= ask("count", family, seed, args.kind, args.limit)
        row |= {"truth": known["log_evidence"], "truth_error": known["error"]}
        keep(RUNS, row)
        shown = {k: round(p, 3) for k, p in row.get("probability", {}).items()}
        exact = softmax(list(known["log_evidence"].values())).round(3).tolist()
        print(f"{family} {seed} ({known['true']}): {shown} for {exact}, ", end="")
        print(f"{row.get('level', row.get('note'))}, {row.get('calls')} calls, {row['seconds']} s", flush=True)
    if args.against_compare:
        against(families, args.against_compare, args)
    elif not args.truths:
        print(table(args.kind, families))
    return 0
