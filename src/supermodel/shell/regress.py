"""`supermodel regress "mpg ~ wt * hp" cars.csv`, and what is printed and written of a regression."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supermodel.errors import SupermodelError
from supermodel.shell.folder import write_numbers
from supermodel.shell.reader import say

if TYPE_CHECKING:
    from supermodel.regressions.result import Regression
    from supermodel.spec.regression import RegressionSpec

# argument of `regression`, help
FLAGS = {
    "family": "gaussian, student, bernoulli, binomial, poisson, negative binomial, ordinal, cumulative probit, multinomial "
    "(default: gaussian)",
    "rscale": "scale of the Cauchy priors on effects: a number, medium, wide or ultrawide",
    "hypothesis": "an order to be tested, e.g. 'a > b > c'",
    "missing": "raise, or drop: leave out rows with missing values (default: raise)",
}


def add_arguments(sub: argparse.ArgumentParser) -> None:
    """The arguments of the command, without those that all commands have."""
    sub.add_argument("formula", metavar="FORMULA", help="as in R, e.g. 'mpg ~ wt * hp' or 'y ~ x + (1 | group)'")
    sub.add_argument("data", type=Path, metavar="TABLE", help="a CSV or Parquet file whose columns the formula names")
    text = "group-level terms are tested like all others"
    sub.add_argument("--test-groups", action="store_true", default=None, help=text)
    sub.add_argument("--anova", action="store_true", help="every column, numbers as well, is a factor")
    sub.add_argument(
        "--models", nargs="+", metavar="MODEL", help="right-hand sides, e.g. '1' 'wt' 'wt + hp' (default: all)"
    )
    text = "the categories of the response, lowest first (of a multinomial one the baseline first)"
    sub.add_argument("--levels", nargs="+", metavar="LEVEL", help=text)
    for name, text in FLAGS.items():
        sub.add_argument(f"--{name}", metavar=name.upper(), help=text)
    sub.add_argument("--out", type=Path, metavar="DIR", help="write report.html and result.json there")


def asked(args: argparse.Namespace, options: dict[str, Any]) -> Regression:
    """The regression of a command line."""
    from supermodel.regressions.regress import anova, regression

    given: dict[str, Any] = {
        name: value
        for name in (*FLAGS, "levels", "models", "test_groups")
        if (value := getattr(args, name)) is not None
    }
    if "rscale" in given:
        given["rscale"] = _number(given["rscale"])
    if not args.anova:
        return regression(args.formula, args.data, **given, **options)
    if extra := [name for name in ("family", "levels") if name in given]:
        raise SupermodelError(f"--anova is of gaussian noise: leave --{extra[0]} out.")
    return anova(args.formula, args.data, **given, **{name: v for name, v in options.items() if name == "seed"})


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def check(spec: RegressionSpec, as_json: bool) -> int:
    """Say what a file asks for, without computing it."""
    from supermodel.regressions.formula import parse
    from supermodel.regressions.space import marginal_models, name_of, named_models

    formula, chosen = parse(spec.formula), spec.arguments.get("models", "all")
    formula = formula.with_groups_as_terms() if spec.arguments.get("test_groups") else formula
    sets = marginal_models(formula.terms) if chosen == "all" else named_models(chosen, formula)
    found = {"kind": spec.kind, "formula": formula.text, "data": str(spec.data), "models": [name_of(s) for s in sets]}
    print(json.dumps(found) if as_json else "\n".join(f"{key}: {value}" for key, value in found.items()))
    return 0


def show(result: Regression, as_json: bool, folder: Path | None) -> int:
    """Print it, write it, and return the exit code."""
    say(result.to_json() if as_json else result)
    if folder is not None:
        numbers = write_numbers(folder, result.to_json())
        result.report(folder / "report.html")
        if not as_json:
            print(f"\nreport: {folder / 'report.html'}\nnumbers: {numbers}")
    return result.verdict.exit_code
