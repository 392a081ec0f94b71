"""`python -m benchmarks peers [--short] [--only NAME ...] [--programs NAME ...] [--seeds 3] [--seconds 900] [--again] [--page]`.

Every answer is a line of results/peers.jsonl, so that a run that was stopped goes on where it stopped; of two lines for the same
problem, program and seed the later one counts. What did not end in its time is asked again only if it is given more.
`--page` runs nothing and writes page and plots from what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
from pathlib import Path

from benchmarks.fire.trial import ROOT, Lines, state_of_code
from benchmarks.peers.problems import Question, questions
from benchmarks.peers.programs import PROGRAMS

RESULTS = ROOT / "benchmarks" / "results" / "peers.jsonl"
SHORT = ("sine", "linear", "pima", "logistic_10")
PATIENCE = (
    6.0  # times its limit until a program is ended from outside: the limit is of processor time, without the counting
)
Records = dict[tuple[str, str, int], dict]


def load(path: Path) -> Records:
    """{(problem, program, seed): record}."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {(r["problem"], r["program"], r["seed"]): r for r in map(json.loads, lines)}


def is_wanted(record: dict | None, seconds: float, again: bool) -> bool:
    """Whether to ask (again)."""
    return again or record is None or (record["status"] == "cut" and record["limit"] < seconds)


def is_hopeless(question: Question, program: str, records: Records, asked: dict[str, Question]) -> bool:
    """A smaller member of the family was not answered: a larger one is not tried."""
    smaller = [name for name, q in asked.items() if q.family and q.family == question.family and q.size < question.size]
    return any(
        record["status"] in ("cut", "failed") for (problem, who, _), record in records.items()
        if problem in smaller and who == program
    )  # fmt: skip


def ask(program: str, name: str, seed: int, seconds: float) -> dict:
    """One answer from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers.worker", program, name, str(seed), str(seconds)]
    lines = Lines(command)
    try:
        lines.next(300)
        found = lines.next(PATIENCE * seconds + 30) or {"status": "failed", "note": "the process died"}
    except queue.Empty:
        found = {"status": "cut", "note": "ended from outside", "evaluations": 0, "gradients": 0, "seconds": seconds}
    finally:
        lines.end()
    return {"problem": name, "program": program, "seed": seed, "limit": seconds, **found}


def main(argv: list[str]) -> int:
    from benchmarks.peers.page import text, write

    asked = questions()
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="ten minutes: four problems, one seed, 15 s each; prints only"
    )
    parser.add_argument("--only", nargs="+", choices=list(asked), metavar="NAME")
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=None, help="limit of one answer")
    parser.add_argument("--again", action="store_true", help="measure anew what is there")
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core for everyone
    path = RESULTS.with_name("peers-short.jsonl") if args.short else RESULTS
    seeds, seconds = args.seeds or (1 if args.short else 3), args.seconds or (15.0 if args.short else 900.0)
    names = args.only or (SHORT if args.short else list(asked))
    code = state_of_code()
    for seed in [] if args.page else range(seeds):
        for name in names:
            for program in args.programs:
                records, question = load(path), asked[name]
                if question.programs and program not in question.programs:
                    continue
                if not is_wanted(records.get((name, program, seed)), seconds, args.again):
                    continue
                if is_hopeless(question, program, records, asked):
                    continue
                found = ask(program, name, seed, seconds) | {"code": code}
                with path.open("a") as file:
                    file.write(json.dumps(found) + "\n")
                print(json.dumps({key: found.get(key) for key in SHOWN}), flush=True)
    print(text(load(path)))
    if not args.short:
        write(load(path))
    return 0


SHOWN = ("problem", "program", "seed", "status", "values", "claimed", "evaluations", "seconds", "note")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
