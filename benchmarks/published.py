r"""Are the error bars true on published data? `python -m benchmarks published FOLDER --seeds 12 --kind traced`.

FOLDER holds `priors.py` (`make(family, args)`, a frozen distribution) and one folder for each problem: `problem.py` with
`MODELS = {name: {"parameters": [(name, family, args), ...], "log_likelihood": f(parameters)}}` in NumPy, and `reference.json` with
exact `log_bayes_factors`, {"A/B": ln Z_A - ln Z_B}. Printed: $z = (\hat{\ln B} - \ln B) / error$ of all pairs and seeds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np

import supermodel as sm


def module(path: Path) -> ModuleType:
    """A Python file by its path, each time anew."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def models(folder: Path, kind: str) -> dict[str, sm.Model]:
    """The models of a problem: black boxes as they are, or, with `jax.numpy` in the place of NumPy, such as JAX can trace."""
    problem, priors = module(folder / "problem.py"), module(folder.parent / "priors.py")
    if kind == "traced":
        import jax.numpy

        problem.np = jax.numpy  # type: ignore[attr-defined]
    return {
        name: sm.Model(
            {parameter: priors.make(family, args) for parameter, family, args in parts["parameters"]},
            parts["log_likelihood"],
            vectorized=kind == "black",
        )
        for name, parts in problem.MODELS.items()
    }


def scores(folder: Path, kind: str, seed: int) -> tuple[list[float], str, int]:
    """z of every pair with a known answer, the verdict and the evaluations."""
    exact = json.loads((folder / "reference.json").read_text())["log_bayes_factors"]
    result = sm.compare(models(folder, kind), seed=seed, progress=False)
    z = []
    for pair, truth in exact.items():
        found = result.log_bayes_factor(*pair.split("/"))
        z.append((found.value - truth) / found.error)
    return z, result.verdict.level, int(result.evaluations["likelihood"])


def line(name: str, z: list[float], levels: list[str], calls: list[int]) -> str:
    found = np.array(z)
    rms, cover, far = math.sqrt(np.mean(found**2)), np.mean(np.abs(found) < 1.96), int(np.sum(np.abs(found) > 4))
    shares = ", ".join(f"{level} {levels.count(level)}" for level in sorted(set(levels)))
    return (
        f"  {name:<20} pairs {len(found):4d}  rms z {rms:.2f}  mean {found.mean():+.2f}  95% cover {cover:.1%}  beyond 4: {far}  "
        f"{shares}; median evaluations {np.median(calls):.0f}"
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks published", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="problems; all if none is named")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--kind", choices=("traced", "black"), default="traced")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    names = args.names or sorted(path.parent.name for path in args.folder.glob("*/problem.py"))
    total: tuple[list[float], list[str], list[int]] = ([], [], [])
    print(f"{args.kind}, {args.seeds} seeds each")
    for name in names:
        runs = [scores(args.folder / name, args.kind, seed) for seed in range(args.seeds)]
        part = ([z for run in runs for z in run[0]], [run[1] for run in runs], [run[2] for run in runs])
        print(line(name, *part), flush=True)
        for all_of_it, found in zip(total, part, strict=True):
            all_of_it.extend(found)  # type: ignore[arg-type]
    print(line("all", *total))
    return 0
