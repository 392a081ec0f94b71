"""`python -m benchmarks fire|sky [--only NAME ...] [--seeds 3] [--programs supermodel,dynesty,nautilus] [--jobs 1]`.

Every answer is a line of results/<trial>.jsonl: a run that was stopped goes on where it stopped. `--again` measures anew what is
there; `--stale` only what an older state of src/supermodel has answered.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

from benchmarks.fire.catalogues import TRIALS
from benchmarks.fire.programs import no_answer

ROOT = Path(__file__).resolve().parents[2]
KEEPING = threading.Lock()  # one answer is written at a time
PATIENCE = 60.0  # seconds beyond the limit that a program is given to end by itself


def state_of_code() -> str:
    """A short digest of src/supermodel."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src" / "supermodel").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


class Lines:
    """The lines of a process as they come, with a limit on the wait for each."""

    def __init__(self, command: list[str]):
        here = [str(ROOT / "src"), str(ROOT)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(here), "JAX_PLATFORMS": "cpu"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=environment
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with self.process.stdout as stdout:  # type: ignore[union-attr]
            for line in stdout:
                if line.startswith("{"):
                    self.lines.put(line)
        self.lines.put(None)

    def next(self, seconds: float) -> dict | None:
        """The next line; None when the process has died. Raises `queue.Empty` after `seconds`."""
        line = self.lines.get(timeout=seconds)
        return None if line is None else json.loads(line)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def run_group(program: str, name: str, kind: str, seeds: list[int], args: argparse.Namespace) -> None:
    """All seeds of one problem in one process, so that it is compiled once; a new process after one that hung."""
    while seeds:
        limit = args.seconds
        command = [sys.executable, "-m", "benchmarks.fire.worker", args.trial.name, program, name, kind, str(limit)]
        lines = Lines([*command, args.options, *map(str, seeds)])
        try:
            lines.next(600)
            while seeds:
                began = time.monotonic()
                try:
                    record = lines.next(limit + PATIENCE)
                    note = "the process died"
                except queue.Empty:
                    record, note = None, f"nothing after {limit + PATIENCE:.0f} s"
                if record is None:
                    failed = no_answer(args.trial.problem(name, seeds[0]), time.monotonic() - began, note)
                    record = {"seed": seeds[0], **failed.asdict()}
                keep(program, name, kind, record, args)
                seeds = seeds[1:]
                if record["note"].startswith(("nothing after", "the process died")):
                    break
        finally:
            lines.end()


def keep(program: str, name: str, kind: str, record: dict, args: argparse.Namespace) -> None:
    from benchmarks.fire.table import answer_of, recorded

    record |= {"problem": name, "kind": kind, "program": program}
    if program == "supermodel":
        record["code"] = args.code
    with KEEPING:
        records = recorded(args.results) | {(program, name, kind, record["seed"]): record}
        args.results.parent.mkdir(parents=True, exist_ok=True)
        draft = args.results.with_suffix(".draft")
        draft.write_text("".join(json.dumps(record) + "\n" for _, record in sorted(records.items())))
        draft.replace(args.results)
    found = answer_of(record)
    print(
        f"{program} {name} {kind} {record['seed']}: {found.value:.4f} ± {found.error:.2g} for {found.truth:.4f}, "
        f"{found.level}, {found.evaluations} calls, {found.seconds:.0f} s: {found.outcome}",
        flush=True,
    )


def wanted(args: argparse.Namespace) -> list[tuple[str, str, str, list[int]]]:
    """(program, problem, kind, seeds) that are still to be run."""
    groups = []
    for name in args.only or args.trial.names:
        for program in args.programs.split(","):
            for kind in args.kinds.split(",") if program == "supermodel" else ["traced"]:
                seeds = [seed for seed in range(args.seeds) if is_missing(program, name, kind, seed, args)]
                if seeds:
                    groups.append((program, name, kind, seeds))
    return groups


def is_missing(program: str, name: str, kind: str, seed: int, args: argparse.Namespace) -> bool:
    from benchmarks.fire.table import recorded

    record = recorded(args.results).get((program, name, kind, seed))
    if args.again or record is None:
        return True
    if args.trial.name == "fire":  # a truth that moved; of the sky, new data for every seed, it takes seconds to know
        problem = args.trial.problem(name, seed)
        if abs(record["truth"] - problem.truth) > 1e-6 and len(problem.sides) < 3:
            return True
    return args.stale and program == "supermodel" and record["code"] != args.code


def main(argv: list[str], trial: str = "fire") -> int:
    from benchmarks.fire.table import page, write

    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {trial}", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=TRIALS[trial].names)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kinds", default="traced,black")
    parser.add_argument("--programs", default="supermodel")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=240.0, help="limit of one run; over it by 60 s, it is ended")
    parser.add_argument(
        "--options", default="{}", help='further arguments of sm.evidence, as JSON: {"explore": "quick"}'
    )
    parser.add_argument("--results", type=Path, default=TRIALS[trial].results)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--stale", action="store_true")
    parser.add_argument("--table", action="store_true", help="run nothing; write the table from what is there")
    args = parser.parse_args(argv)
    args.code, args.trial = state_of_code(), TRIALS[trial]
    waiting: queue.Queue = queue.Queue()
    for group in [] if args.table else wanted(args):
        waiting.put(group)

    def work() -> None:
        while True:
            try:
                group = waiting.get_nowait()
            except queue.Empty:
                return
            run_group(*group, args)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(args.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(page(args.trial, args.results))
    if args.results == args.trial.results:
        write(args.trial)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
