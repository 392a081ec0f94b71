"""A process that lets one program answer one question once: it can be ended from outside, and shares nothing compiled."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import traceback
import warnings


def main(program: str, name: str, seed: str, seconds: str) -> None:
    import jax

    from benchmarks.fire.worker import end_with
    from benchmarks.peers.problems import questions
    from benchmarks.peers.programs import answer

    warnings.simplefilter("ignore")
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # with it on, a callback that counts can deadlock
    question = questions()[name]
    print(json.dumps({"ready": True}), flush=True)
    try:
        found = answer(program, question.problem, int(seed), float(seconds), question.latency)
    except Exception as error:  # a crash is one kind of answer, and the table must go on
        traceback.print_exc()
        found = {"status": "failed", "note": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SUPERMODEL_CACHE"] = cache  # every run compiles for itself, as a first use does
        main(*sys.argv[1:])
