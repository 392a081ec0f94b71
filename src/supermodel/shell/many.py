"""`supermodel many models.toml data.parquet --out results.parquet`: the same models on each of many data sets.

The exit code is 0 if the table is complete, whatever it says: data sets without an answer are flagged there, with the
reason. 2: bad input, 130: interrupted; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from supermodel.errors import SupermodelError
from supermodel.shell.reader import say

INTERRUPTED = 130
TARGET_ERROR = 0.2
OPTIONS = ("seed", "target_error", "missing", "on_error", "explore", "max_seconds", "max_evaluations")  # of `compare`


def add_arguments(sub: argparse.ArgumentParser) -> None:
    """The arguments of the command, without those that all commands have."""
    sub.add_argument(
        "data", metavar="DATA", help="a Parquet or Arrow file, or a folder of them, or a CSV file with --by"
    )
    sub.add_argument("--data-root", type=Path, metavar="DIR", help="a FILE.py is refused; for services")
    sub.add_argument("--out", default="results.parquet", metavar="FILE", help="the table (default: results.parquet); "
                     "a name that ends in / is a folder of parts")  # fmt: skip
    sub.add_argument("--by", metavar="COLUMN", help="one row per point: the column that tells data sets apart")
    sub.add_argument("--id", metavar="COLUMN", help="one row per data set: the column that names it")
    sub.add_argument("--chunk", type=int, default=500, metavar="N", help="data sets that go to a worker at once (500)")
    sub.add_argument("--anew", action="store_true", help="begin anew, whatever there is of an earlier run")
    where = sub.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, metavar="N", help="so many processes on this machine")
    where.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster, HOST:PORT")
    where.add_argument(
        "--mpi", action="store_true", help="the ranks of: mpiexec -n N python -m mpi4py.futures -m supermodel many …"
    )
    sub.add_argument(
        "--report", type=Path, metavar="FILE.html", help="a page of it all, full reports of the worst beside it"
    )
    sub.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace, given: dict[str, Any]) -> int:
    """Do what the command line says."""
    from supermodel.spec.sendable import FileModels
    from supermodel.survey.datasets import collected
    from supermodel.survey.many import compare_many

    datasets = collected(args.data, args.by, args.id)
    models = FileModels(args.file, datasets.columns, args.data_root)
    known = (*OPTIONS, "prior_odds")
    if other := sorted(set(models.spec.run) - set(known)):
        raise SupermodelError(f"{args.file} sets {other}, which `many` does not take; it takes {', '.join(known)}.")
    if models.spec.columns:
        datasets = datasets.renamed(models.spec.columns)
    with _executor(args) as executor:
        result = compare_many(
            models,
            datasets,
            executor=executor,
            out=args.out,
            resume=not args.anew,
            chunk=args.chunk,
            progress=not (args.quiet or args.json),
            **{**models.spec.run, **given},
        )
    if args.report is not None:
        result.report(args.report, models=models, datasets=datasets)
    say(json.dumps(told(result), indent=2) if args.json else result)
    return 0 if result.is_complete else INTERRUPTED


def told(result: Any) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "table": str(result.path),
        "complete": result.is_complete,
        "data_sets": len(result),
        "verdicts": result.counts,
        "notes": list(result.notes),
    }


@contextlib.contextmanager
def _executor(args: argparse.Namespace) -> Iterator[Any]:
    if args.dask is not None:
        try:
            from distributed import Client
        except ImportError:
            raise SupermodelError("--dask needs Dask. Install it: pip install 'supermodel-bayes[dask]'.") from None
        try:
            client = Client(args.dask)
        except (OSError, ValueError) as error:
            raise SupermodelError(f"there is no Dask scheduler at {args.dask!r}: {error}.") from None
        with client:
            yield client.get_executor()
    elif args.mpi:
        try:
            from mpi4py.futures import MPIPoolExecutor
        except (ImportError, RuntimeError) as error:
            raise SupermodelError(
                f"--mpi needs mpi4py and an MPI ({error}). Install them: pip install 'supermodel-bayes[mpi]', and the MPI of your "
                "cluster, or pip install mpich."
            ) from None
        with MPIPoolExecutor() as pool:
            yield pool
    else:
        yield args.workers
