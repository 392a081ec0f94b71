"""What a scheduler can hand out: tasks a second of a Dask cluster of two worker processes, and so the least chunk.

`python -m benchmarks scheduler [--tasks 100000]`: tasks that do nothing, submitted as `compare_many` submits chunks (a window
of a few for each worker) and all at once (as `client.map` does).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, wait
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results" / "scheduler.json"


def nothing(i: int) -> int:
    return i


def windowed(executor, n: int, width: int) -> float:
    """Tasks a second with at most `width` under way."""
    began, running, left = time.perf_counter(), set(), deque(range(n))
    while left or running:
        while left and len(running) < width:
            running.add(executor.submit(nothing, left.popleft()))
        running = wait(running, return_when=FIRST_COMPLETED).not_done
    return n / (time.perf_counter() - began)


def main(arguments: list[str]) -> int:
    from dask.distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(prog="python -m benchmarks scheduler")
    parser.add_argument("--tasks", type=int, default=100_000)
    args = parser.parse_args(arguments)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        told = {"tasks": args.tasks, "a second, window of 4": windowed(client.get_executor(), args.tasks // 20, 4)}
        began = time.perf_counter()
        assert sum(client.gather(client.map(nothing, range(args.tasks), batch_size=5_000, pure=False))) > 0
        told["a second, all at once"] = args.tasks / (time.perf_counter() - began)
    RESULTS.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told, indent=1))
    return 0
