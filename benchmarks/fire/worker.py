"""A process that answers one problem for the seeds it is given, one line of JSON each: it can be ended from outside."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
import warnings

from benchmarks.fire.catalogues import problem_of
from benchmarks.fire.programs import Answer, answer, no_answer


def end_with(parent: int) -> None:
    """Leave when the process that asked is gone: nobody would read the answer."""
    while os.getppid() == parent:
        time.sleep(2.0)
    os._exit(1)


def main(trial: str, program: str, name: str, kind: str, max_seconds: str, options: str, *seeds: str) -> None:
    warnings.simplefilter("ignore")
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    print(json.dumps({"ready": True}), flush=True)
    for seed in seeds:
        problem = problem_of(trial, name, int(seed))
        problem.truth  # noqa: B018  (some take seconds to work out, which is nobody's answer time)
        try:
            found: Answer = answer(program, problem, kind, int(seed), float(max_seconds), json.loads(options))
        except Exception as error:  # a crash is one kind of "no answer", and the table must go on
            traceback.print_exc()
            found = no_answer(problem, 0.0, f"{type(error).__name__}: {error}")
        print(json.dumps({"seed": int(seed), **found.asdict()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
