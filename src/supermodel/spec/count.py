"""A count written as a TOML file: what one component predicts, what is behind it, and how many may be there.

```toml
[data]
file = "velocities.csv"                    # [data], [noise] and [run] as in a comparison
y = "v"

[component]                                # one of them
name = "planet"
mean = "K * cos(2 * pi * t / P + w)"
priors = { P = "LogUniform(1, 1000)", K = "Normal(0, 10)", w = "Uniform(0, 2 * pi)" }
period = "P"                               # a parameter, or a formula of parameters; pictures are folded by it

[background]                               # what is there once; fitted parameters of the noise belong to it
mean = "gamma"
priors = { gamma = "Normal(0, 20)" }

[noise]
sigma = "error"

[count]
most = 4
prior = "uniform"                          # or "Poisson(1.5)", "Geometric(0.5)", { 0 = 0.5, 1 = 0.3, 2 = 0.2 }
```

Nothing in it is run as code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.counting.component import Component, check, model_of, title
from supermodel.counting.numbers import LEAST, MOST, check_stop, numbers_of, shares_of
from supermodel.errors import SupermodelError, suggestion
from supermodel.jax_scope import float64
from supermodel.models.model import Model
from supermodel.models.noise import Noise
from supermodel.options import IN_TOML, OF_COUNT
from supermodel.spec.formula import Formula, constant
from supermodel.spec.grammar import Call, FormulaError, parse
from supermodel.spec.source import Place, Source, text_of
from supermodel.spec.toml import (
    TEXTS, Columns, Mean, check_used, columns_of, formula_of, is_number, noise_of, parameters_of, run_options, texts_of,
)  # fmt: skip

if TYPE_CHECKING:
    from supermodel.counting.result import Count

PARTS = ("component", "background", "noise")  # the tables of formulas
OF_COMPONENT = ("name", "mean", "priors", "period", *TEXTS)
OF_BACKGROUND = ("mean", "priors", *TEXTS)
ASKED = ("most", "least", "prior", "stop")
LARGEST = 1000  # number of components that a file may ask for


@dataclass(frozen=True, eq=False)
class CountSpec:
    """What a file describes: `spec.count()`, or `count(spec.component, spec.data, ...)`."""

    component: Component
    background: Component | None
    noise: Noise
    data: dict[str, np.ndarray]
    asked: dict[str, Any]  # `most`, `least`, and what else [count] says, as `count` takes it
    run: dict[str, Any]
    written: dict[str, Any]  # the formulas, as a stored result keeps them
    name: str

    @property
    def models(self) -> dict[str, Model]:
        """The models of all numbers of components, by name."""
        return models_of(self.component, self.background, self.noise, numbers_of(self.asked["most"], self.asked["least"]))

    def count(self, **options: Any) -> Count:
        """The answer; `options` go before those of the file. What it saves comes back with its formulas."""
        from supermodel.counting.count import count  # not at the top: whoever loads a result needs no engine

        given = {**self.asked, **self.run, **options}
        found = count(self.component, self.data, background=self.background, noise=self.noise, **given)
        for model in found.comparison.models.values():  # type: ignore[union-attr]
            model.written = self.written
        return dataclasses.replace(found, comparison=dataclasses.replace(found.comparison, formulas={}))


def read_count(path: str | Path, data_root: str | Path | None = None) -> CountSpec:
    """The count that a TOML file describes; `data_root` as for `read_spec`."""
    path = Path(path)
    if not path.is_file():
        raise SupermodelError(f"there is no file {str(path)!r}.")
    if path.suffix != ".toml":
        raise SupermodelError(
            f"{str(path)!r} is no FILE.toml, and `count` reads no other; a script in Python calls supermodel.count(...) itself."
        )
    return parse_count(text_of(path), path.parent, str(path), data_root)


def count_of(path: str | Path, data_root: str | Path | None = None) -> CountSpec | None:
    """The count of a TOML file; None if it describes none."""
    path = Path(path)
    if path.suffix != ".toml" or not path.is_file():
        return None
    text = text_of(path)
    if "component" not in Source.of(text, str(path)).tree:
        return None
    return parse_count(text, path.parent, str(path), data_root)


def parse_count(
    text: str, directory: str | Path = ".", name: str = "spec", data_root: str | Path | None = None
) -> CountSpec:
    """The count that a TOML text describes."""
    source = Source.of(text, name)
    top = source.tree
    for other in ("models", "regression"):
        if other in top and "component" not in top:
            inner = list(top[other])[:1] if other == "models" and isinstance(top[other], dict) else []
            raise source.error((other, *inner), f"{other} are compared, not counted", f"Run: supermodel compare {name}")
    source.check_keys((), top, ("data", *PARTS, "count", "run"), required=("data", "component"))
    columns = columns_of(source, directory, data_root)
    written = {part: source.table((part,), top.get(part, {})) for part in PARTS}
    component, background, noise = _parts(source, written, columns)
    asked = _asked(source, source.table(("count",), top.get("count", {})))
    run = run_options(source, (), [option for option in IN_TOML if option.name in OF_COUNT])
    written |= {"keys": columns.keys, "x": columns.x}
    return CountSpec(component, background, noise, columns.data, asked, run, written, name)


def rewritten(
    written: Mapping[str, Any], data: Mapping[str, np.ndarray], numbers: Iterable[int]
) -> tuple[Component, Component | None, dict[str, Model]]:
    """The component, the background and the models that a stored count tells of: their formulas, parsed anew."""
    source = Source("the stored formulas", (), {})
    component, background, noise = _parts(source, written, Columns.stored(source, (), written, data))
    models = models_of(component, background, noise, numbers)
    for model in models.values():
        model.written = dict(written)
    return component, background, models


def models_of(
    component: Component, background: Component | None, noise: Noise, numbers: Iterable[int]
) -> dict[str, Model]:
    """The model of each number of components, by its name."""
    return {title(component, k): model_of(component, k, background, noise) for k in numbers}


# -- the parts ----------------------------------------------------------------------------------------------------


def _parts(
    source: Source, written: Mapping[str, Any], columns: Columns
) -> tuple[Component, Component | None, Noise]:
    """The component, the background, and the noise, of which the fitted parameters are the background's."""
    one, behind, scatter = (source.table((part,), written[part]) for part in PARTS)
    source.check_keys(("component",), one, OF_COMPONENT, required=("mean", "priors"))
    source.check_keys(("background",), behind, OF_BACKGROUND)
    own, own_places = parameters_of(source, {("component", "priors"): one["priors"]}, columns)
    tables = {("background", "priors"): behind.get("priors", {}), ("noise", "priors"): scatter.get("priors", {})}
    rest, rest_places = parameters_of(source, tables, columns)

    known = columns.without(rest, "belongs to the background, which is there once: a component has parameters of its own.")
    mean = formula_of(source, ("component", "mean"), one["mean"], known, own)
    check_used(source, own_places, mean.names, "component")
    given = {"name": source.text(("component", "name"), one["name"])} if "name" in one else {}
    given |= {"period": _period(source, one["period"], columns, own)} if "period" in one else {}
    component = _component(source, ("component",), one, own, Mean(mean, columns.keys), given)

    known = columns.without(own, f"is a parameter of each {component.name}, of which there may be none, or several.")
    shape = formula_of(source, ("background", "mean"), behind["mean"], known, rest) if "mean" in behind else None
    noise, in_noise = noise_of(source, ("noise",), scatter, known, rest)
    check_used(source, rest_places, {*in_noise, *(shape.names if shape else ())}, "background")
    if shape is None and not rest:
        source.check_keys(("background",), behind, (), required=("mean",) if behind else ())
        background = None
    else:
        predict = Mean(shape, columns.keys) if shape else None
        background = _component(source, ("background",), behind, rest, predict, {"name": "background"})
    with _told(source, ("component",)):
        check(component, background)
    return component, background, noise
