"""A regression written as a TOML file: a formula, a table, a family; priors as text. Nothing in it is run as code.

```toml
[regression]
formula = "mpg ~ wt * hp"
data = "cars.csv"                          # beside this file
family = "gaussian"                        # the default; of categories e.g. "ordinal" with levels = ["low", "high"]
kind = "regression"                        # or "anova": every column is a factor

[run]
seed = 1
```
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supermodel.errors import SupermodelError
from supermodel.options import IN_TOML
from supermodel.spec.prior import parse_prior
from supermodel.spec.source import Source, confined, text_of

if TYPE_CHECKING:
    from supermodel.regressions.result import Regression

KEYS = (
    "formula",
    "data",
    "kind",
    "family",
    "levels",
    "models",
    "rscale",
    "priors",
    "prior_odds",
    "hypothesis",
    "test_groups",
    "missing",
)
KINDS = ("regression", "anova")


@dataclass(frozen=True, eq=False)
class RegressionSpec:
    """What a file describes; `run` answers it."""

    kind: str
    formula: str
    data: Path
    arguments: dict[str, Any]

    def run(self, **options: Any) -> Regression:
        """The answer; `options` go before those of the file."""
        from supermodel.regressions import regress  # not at the top: other files need no pandas

        return getattr(regress, self.kind)(self.formula, self.data, **{**self.arguments, **options})


def regression_of(path: str | Path, data_root: str | Path | None = None) -> RegressionSpec | None:
    """The regression of a TOML file; None if it describes none."""
    path = Path(path)
    if path.suffix != ".toml" or not path.is_file():
        return None
    source = Source.of(text_of(path), str(path))
    if "regression" not in source.tree:
        return None
    source.check_keys((), source.tree, ("regression", "run"))
    given = source.table(("regression",), source.tree["regression"])
    source.check_keys(("regression",), given, KEYS, required=("formula", "data"))
    kind = source.text(("regression", "kind"), given.get("kind", "regression"))
    if kind not in KINDS:
        raise source.error(("regression", "kind"), f"`kind` is regression or anova; got {kind!r}")
    if kind == "anova" and (extra := [key for key in ("family", "levels", "priors") if key in given]):
        raise source.error(("regression", extra[0]), f"an anova has no `{extra[0]}`", 'Write kind = "regression".')
    data = path.parent / source.text(("regression", "data"), given["data"])
    try:
        data = data if data_root is None else confined(data, Path(data_root))
    except SupermodelError as error:
        raise source.error(("regression", "data"), str(error)) from None
    arguments = {key: given[key] for key in KEYS[3:] if key in given}
    if "priors" in given:
        texts = source.table(("regression", "priors"), given["priors"])
        arguments["priors"] = {n: parse_prior(source, ("regression", "priors", n), text) for n, text in texts.items()}
    run = source.table(("run",), source.tree.get("run", {}))
    source.check_keys(("run",), run, tuple(option.name for option in IN_TOML))
    return RegressionSpec(kind, source.text(("regression", "formula"), given["formula"]), data, arguments | run)
