"""The command `supermodel`: strings become functions here, and the exit code says whether to trust the answer.

0: ok or caution, 2: bad input, 3: only a limit is known, 4: the answer failed its checks, 130: interrupted before there
was an answer.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supermodel import __version__
from supermodel.errors import SupermodelError, suggestion
from supermodel.options import BY_NAME, FLAGS, OF_COUNT
from supermodel.shell import count, many, regress
from supermodel.shell.folder import write
from supermodel.shell.reader import say, unread

if TYPE_CHECKING:
    from supermodel.counting.result import Count
    from supermodel.results.comparison import Comparison
    from supermodel.verdict.verdict import Verdict

BAD_INPUT, INTERRUPTED = 2, 130
# Of BLAS, which reads them when NumPy is loaded: on a busy machine threads that wait for each other took half of all time.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
FILES = (
    "TOML (data, noise, formulas and priors; never run as code) or Python (defines `models` and perhaps `data`; "
    "it is run, with all that you may do)"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    try:
        args = _parsed(list(sys.argv[1:] if argv is None else argv))
        return args.command(args)
    except SystemExit as stop:  # argparse: help, version, wrong arguments
        return stop.code if isinstance(stop.code, int) else BAD_INPUT if stop.code else 0
    except SupermodelError as error:
        print(f"supermodel: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("supermodel: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader went away, e.g. `| head`
        unread()
        return 0


def _parsed(argv: list[str]) -> argparse.Namespace:
    """The arguments; a word that is no command, or no argument of its command, is told with what it may have been."""
    parser, commands = _parser()
    if argv and not argv[0].startswith("-") and argv[0] not in commands:
        hint = suggestion(argv[0], commands) or "Commands are " + ", ".join(commands) + "."
        raise SupermodelError(f"there is no command {argv[0]!r}. {hint} `supermodel --help` tells what they do.")
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        hint = suggestion(unknown[0], args.parser._option_string_actions) if unknown[0].startswith("-") else ""
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}. {hint}".rstrip(". ") + ("" if hint else "."))
    return args


def _parser() -> tuple[argparse.ArgumentParser, Collection[str]]:
    parser = argparse.ArgumentParser(
        prog="supermodel",
        description="How much more probable do the data make one model than another, and how sure is that number?",
        epilog="exit code: 0 ok or caution, 2 bad input, 3 only a limit, 4 the answer failed its checks, 130 interrupted before "
        "there was an answer",
    )
    parser.add_argument("--version", action="version", version=f"supermodel {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, function: Any, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        added.set_defaults(command=function, parser=added)
        return added

    sub = command("demo", _demo, "run the sine example end to end and write its report")
    sub.add_argument("--out", type=Path, default=Path("report"), metavar="DIR", help="folder (default: report)")
    _run_options(sub, ("seed",))
    _json_option(sub)

    sub = command("compare", _compare, "compare the models of a TOML or Python file")
    _file_argument(sub)
    _run_options(sub)
    _out_option(sub)
    _json_option(sub)

    sub = command("count", _count, "count the components in the data of a TOML file")
    count.add_arguments(sub)
    _data_root_option(sub)
    _run_options(sub, OF_COUNT)
    _out_option(sub)
    _json_option(sub)

    sub = command("regress", _regress, "compare the regressions of a formula on a table")
    regress.add_arguments(sub)
    _run_options(sub, ("seed", "target_error", "max_seconds", "max_evaluations", "explore"))
    _json_option(sub)

    sub = command("many", _many, "compare the models of a file on each of many data sets")
    sub.add_argument("file", type=Path, metavar="FILE.toml|FILE.py", help=FILES + "; data in it are not used")
    many.add_arguments(sub)
    _run_options(sub, many.OPTIONS, target_error=many.TARGET_ERROR)
    _json_option(sub)

    sub = command("check", _check, "look at the models of a file without running them")
    _file_argument(sub)
    _json_option(sub)

    sub = command("show", _show, "print a stored result")
    sub.add_argument("run", type=Path, metavar="RUN.nc")
    _json_option(sub)

    sub = command("report", _report, "write the HTML report of a stored result")
    sub.add_argument("run", type=Path, metavar="RUN.nc")
    sub.add_argument("--out", type=Path, metavar="FILE", help="default: report.html beside the run")

    sub = command("sensitivity", _sensitivity, "how ln B moves with the width of a parameter's prior")
    sub.add_argument("run", type=Path, metavar="RUN.nc|FILE", help="a stored result, or a file: " + FILES)
    _data_root_option(sub)
    sub.add_argument("parameter", metavar="PARAM")
    sub.add_argument("--scales", type=_scales, default=None, metavar="S,S,...", help="factors on the prior's width")
    _run_options(sub)
    _json_option(sub)

    sub = command("reproduce", _reproduce, "run every experiment of the paper")
    sub.add_argument("--fast", action="store_true", help="smaller versions: two minutes, one once compiled")
    sub.add_argument(
        "--out", type=Path, default=Path("reproduction"), metavar="DIR", help="folder (default: reproduction)"
    )
    return parser, commands.choices


def _file_argument(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("file", type=Path, metavar="FILE.toml|FILE.py", help=FILES)
    _data_root_option(sub)


def _data_root_option(sub: argparse.ArgumentParser) -> None:
    text = "the data file of a TOML must lie in this folder (links followed), and a FILE.py is refused; for services"
    sub.add_argument("--data-root", type=Path, metavar="DIR", help=text)


def _run_options(sub: argparse.ArgumentParser, names: Collection[str] = BY_NAME, **defaults: Any) -> None:
    """The flags of `compare`; what they were given is checked by `_given`, with the words of the table."""
    for option in FLAGS:
        if option.name in names:
            default = defaults.get(option.name, option.default)
            text = option.help + (f" (default: {default})" if default is not None else "")
            sub.add_argument(*option.flags, dest=option.name, nargs=len(option.words), metavar=option.words, help=text)


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `compare` that stand on the command line."""
    found = {}
    for option in FLAGS:
        if words := getattr(args, option.name, None):
            found[option.name] = option.from_words(words)
    return found


def _out_option(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--out", type=Path, metavar="DIR", help="write run.nc, report.html and result.json there")


def _json_option(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", action="store_true", help="print JSON, for machines")


def _scales(text: str) -> list[float]:
    scales = [float(part) for part in text.split(",")]
    if not all(0 < scale < float("inf") for scale in scales):
        raise argparse.ArgumentTypeError(f"{text} are not positive numbers")
    return scales


# -- commands -----------------------------------------------------------------------------------------------------


def _demo(args: argparse.Namespace) -> int:
    from supermodel.shell import demo

    result = demo.run(args.out, **_given(args), **_quiet(args))
    _print(result, args.json)
    found = result.log_bayes_factor("free", "fixed")
    written = write(result, args.out)
    if not args.json:
        print(f"\nln B(free, fixed): {found} here, {demo.TRUTH:.4f} by quadrature.")
        print(f"Report: {written['report']}\nNow with your own data: change {args.out / 'sine.toml'}, then")
        print(f"  supermodel compare {args.out / 'sine.toml'} --out {args.out}")
    return _code(result)


def _regress(args: argparse.Namespace) -> int:
    return regress.show(regress.asked(args, _given(args) | _quiet(args)), args.json, args.out)


def _many(args: argparse.Namespace) -> int:
    return many.run(args, _given(args))


def _compare(args: argparse.Namespace) -> int:
    from supermodel.spec.regression import regression_of

    given = _given(args)  # a wrong flag is told before a file is read
    if (regression := regression_of(args.file, args.data_root)) is not None:
        return regress.show(regression.run(**_quiet(args), **given), args.json, args.out)
    return _answered(_run(args), args)


def _count(args: argparse.Namespace) -> int:
    return _answered(count.asked(args, _given(args) | _quiet(args)), args)


def _check(args: argparse.Namespace) -> int:
    from supermodel.models.columns import received
    from supermodel.report.tables import Cells
    from supermodel.spec.count import count_of
    from supermodel.spec.file import read_file
    from supermodel.spec.regression import regression_of

    if (regression := regression_of(args.file, args.data_root)) is not None:
        return regress.check(regression, args.json)
    file = count_of(args.file, args.data_root) or read_file(args.file, args.data_root)
    data = received(file.data, file.models.values(), file.run.get("missing", "raise")).data
    rows = [_probe(name, model, data) for name, model in file.models.items()]
    if args.json:
        _dump({"models": rows})
        return 0
    header = (
        "model",
        "parameters",
        "dimension",
        "likelihood",
        "possible draws",
        "best ln L of 64 draws",
        "ms per call",
    )
    texts = tuple(tuple(str(value) for value in row.values()) for row in rows)
    print(Cells(header, texts, frozenset({0, 1, 3})).text())
    if len(file.models) > 1:
        from supermodel.embedding.supermodel import Supermodel

        print("\n" + Supermodel(file.models, combine="mixture", data=data).sharing_table())
    else:
        print("\nOnly one model: `compare` needs at least two.")
    return 0


def _probe(name: str, model: Any, data: Any) -> dict[str, Any]:
    import time

    import numpy as np

    from supermodel.models.joint import Joint

    joint = Joint(name, model, data)
    points, values = joint.probe(np.random.default_rng(0))
    began = time.perf_counter()
    joint.log_likelihood_at(points)
    seconds = (time.perf_counter() - began) / len(points)
    kind = "JAX, with gradients" if joint.is_traceable else "Python, vectorized" if model.vectorized else "Python"
    possible = float(np.mean(np.isfinite(values)))
    best = float(values.max())
    return {
        "model": name, "parameters": ", ".join(model.space.names) or "-", "dimension": joint.dimension,
        "likelihood": kind,
        "possible": f"{possible:.0%}", "best": float(f"{best:.6g}") if np.isfinite(best) else None,
        "milliseconds": float(f"{1000 * seconds:.2g}"),
    }  # fmt: skip


def _show(args: argparse.Namespace) -> int:
    result = _load(args.run)
    _print(result, args.json)
    return result.verdict.exit_code


def _report(args: argparse.Namespace) -> int:
    result = _load(args.run)
    print(f"Report: {result.report(args.out or args.run.with_name('report.html'))}")
    return result.verdict.exit_code


def _sensitivity(args: argparse.Namespace) -> int:
    if args.run.suffix in (".toml", ".py"):
        args.file = args.run
        result = _run(args)
    else:
        result = _load(args.run)
        if hasattr(result, "component"):
            raise SupermodelError(
                f"{args.run} is a count: its components have one prior, and `sensitivity` would change that of one of them. "
                "Count again with another prior."
            )
    curve = result.sensitivity(args.parameter, args.scales)
    if args.json:
        _dump({
            "parameter": args.parameter, "first": curve.first, "second": curve.second, "scales": curve.grid,
            "log_bayes_factor": curve.values, "error": curve.errors, "pareto_k": curve.pareto_k,
        })  # fmt: skip
    else:
        print(curve)
    return _code(result, result.verdict_between(curve.first, curve.second))


def _reproduce(args: argparse.Namespace) -> int:
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    from supermodel_paper.reproduce import main as reproduce

    return int(reproduce(args.fast, args.out) or 0)


# -- parts --------------------------------------------------------------------------------------------------------


def _run(args: argparse.Namespace) -> Comparison:
    from supermodel.comparing import compare
    from supermodel.spec.file import read_file

    given = _given(args)  # a wrong flag is told before a file is read
    file = read_file(args.file, args.data_root)
    return compare(file.models, file.data, **{**file.run, **_quiet(args), **given})


def _answered(result: Comparison | Count, args: argparse.Namespace) -> int:
    """Print a result, write it where that is asked for, and return the exit code."""
    _print(result, args.json)
    if args.out is not None:
        written = write(result, args.out)
        if not args.json:
            print("\n" + "\n".join(f"{label}: {path}" for label, path in written.items()))
    return _code(result)


def _code(result: Comparison | Count, verdict: Verdict | None = None) -> int:
    """The exit code of a run, or of this verdict on a pair of it; it may have been interrupted before there was an answer."""
    verdict = result.verdict if verdict is None else verdict
    settings = getattr(result, "comparison", result).settings
    is_stopped = settings.get("ended") == "interrupted" and not verdict.is_reliable
    return INTERRUPTED if is_stopped else verdict.exit_code


def _quiet(args: argparse.Namespace) -> dict[str, bool]:
    return {"progress": False} if args.json else {}


def _load(path: Path) -> Comparison | Count:
    import supermodel

    if path.suffix in (".toml", ".py"):
        raise SupermodelError(
            f"{path} describes a comparison; a stored result is needed. Make one: supermodel compare {path} --out DIR"
        )
    return supermodel.load(path)


def _print(result: Comparison | Count, as_json: bool) -> None:
    if as_json:
        say(result.to_json())
    elif sys.stdout.isatty():
        from supermodel.shell.terminal import show

        show(result)
    else:
        say(result)


def _dump(value: Any) -> None:
    import json

    from supermodel.results.export import finite, plain

    print(json.dumps(finite(plain(value)), indent=2, allow_nan=False, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
