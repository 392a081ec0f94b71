"""A count written as a TOML file: what one component predicts, what is behind it, and how many may be there.

```toml
[data]
file = "velocities.csv"                    # [data], [noise] and [run] as in a comparison
y = "v"

[component]                                # one of them
name = "planet"
mean = "K * cos(2 * pi * t / P + w)"
priors = { P = "LogUniform(1, 1000)", K = "HalfNormal(10)", w = "Uniform(0, 2 * pi)" }
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

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

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
    TEXTS,
    Columns,
    Mean,
    check_used,
    columns_of,
    formula_of,
    is_number,
    noise_of,
    parameters_of,
    run_options,
    texts_of,
)

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
        return models_of(
            self.component, self.background, self.noise, numbers_of(self.asked["most"], self.asked["least"])
        )

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
    for other, are in (("models", "models are"), ("regression", "a regression is")):
        if other in top and "component" not in top:
            inner = list(top[other])[:1] if other == "models" and isinstance(top[other], dict) else []
            raise source.error((other, *inner), f"{are} compared, not counted", f"Run: supermodel compare {name}")
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


def _parts(source: Source, written: Mapping[str, Any], columns: Columns) -> tuple[Component, Component | None, Noise]:
    """The component, the background, and the noise, of which the fitted parameters are the background's."""
    one, behind, scatter = (source.table((part,), written[part]) for part in PARTS)
    source.check_keys(("component",), one, OF_COMPONENT, required=("mean", "priors"))
    source.check_keys(("background",), behind, OF_BACKGROUND)
    own, own_places = parameters_of(source, {("component", "priors"): one["priors"]}, columns)
    tables = {("background", "priors"): behind.get("priors", {}), ("noise", "priors"): scatter.get("priors", {})}
    rest, rest_places = parameters_of(source, tables, columns)

    known = columns.without(
        rest, "belongs to the background, which is there once: a component has parameters of its own."
    )
    mean = formula_of(source, ("component", "mean"), one["mean"], known, own)
    check_used(source, own_places, mean.names, "component")
    given = {"name": source.text(("component", "name"), one["name"])} if "name" in one else {}
    given |= {"period": _period(source, one["period"], columns, own)} if "period" in one else {}
    component = _component(source, "component", one, own, Mean(mean, columns.keys), given)

    known = columns.without(own, f"is a parameter of each {component.name}, of which there may be none, or several.")
    shape = formula_of(source, ("background", "mean"), behind["mean"], known, rest) if "mean" in behind else None
    noise, in_noise = noise_of(source, ("noise",), scatter, known, rest)
    check_used(source, rest_places, {*in_noise, *(shape.names if shape else ())}, "background")
    predict, background = Mean(shape, columns.keys) if shape else None, None
    if behind or rest:
        background = _component(source, "background", behind, rest, predict, {"name": "background"})
    with _placed(source, ("component",)):
        check(component, background)
    return component, background, noise


def _component(
    source: Source,
    part: str,
    given: Mapping[str, Any],
    priors: Mapping[str, Any],
    predict: Any,
    more: Mapping[str, Any],
) -> Component:
    texts = {what: texts_of(source, (part, what), given.get(what, {}), tuple(priors)) for what in TEXTS}
    with _placed(source, (part, "name") if "name" in given else (part,)):
        return Component(priors, predict, **texts, **more)


@contextlib.contextmanager
def _placed(source: Source, where: Place) -> Iterator[None]:
    """Within, what is refused is told with its place in the file."""
    try:
        yield
    except SupermodelError as error:
        raise source.error(where, str(error)) from None


class _Period:
    """A formula of a component's parameters, as a function of a dict of them."""

    def __init__(self, formula: Formula):
        self.formula = formula

    def __call__(self, values: Mapping[str, Any]) -> np.ndarray:
        with float64():
            return np.asarray(self.formula({name: values[name] for name in self.formula.names}))


def _period(source: Source, given: Any, columns: Columns, priors: Mapping[str, Any]) -> str | _Period:
    if isinstance(given, str) and given in priors:
        return given
    alone = dataclasses.replace(columns.without(columns.keys, "is a column; a period is one of parameters."), keys={})
    return _Period(formula_of(source, ("component", "period"), given, alone, priors))


# -- how many -----------------------------------------------------------------------------------------------------


def _asked(source: Source, given: Mapping[str, Any]) -> dict[str, Any]:
    """What [count] says, as the arguments of `count`."""
    source.check_keys(("count",), given, ASKED)
    asked = {"most": given.get("most", MOST), "least": given.get("least", LEAST)}
    for name in ("least", "most"):
        if not isinstance(asked[name], int) or isinstance(asked[name], bool) or not 0 <= asked[name] <= LARGEST:
            problem = f"`{name}` must be a whole number from 0 to {LARGEST}; got {asked[name]!r}"
            raise source.error(("count", name), problem)
    with _placed(source, ("count", "most" if "most" in given else "least")):
        numbers = numbers_of(**asked)
    if "stop" in given:
        with _placed(source, ("count", "stop")):
            check_stop(given["stop"])
        asked["stop"] = given["stop"]
    if "prior" in given:
        prior = _prior(source, ("count", "prior"), given["prior"])
        with _placed(source, ("count", "prior")):
            shares_of(prior, numbers)
        asked["prior"] = prior
    return asked


def _prior(source: Source, where: Place, given: Any) -> Any:
    """A prior on the number as `count` takes it, from a text or a table."""
    if isinstance(given, dict):
        for number, share in given.items():
            if not number.isdecimal() or not is_number(share):
                problem = f"a prior is {{ number = probability }}; got {number} = {share!r}"
                raise source.error((*where, number), problem, "Write e.g. { 0 = 0.5, 1 = 0.3, 2 = 0.2 }.")
        return {int(number): float(share) for number, share in given.items()}
    text = source.text(where, given)
    if text.strip().lower() == "uniform":
        return None
    try:
        return _law(text)
    except FormulaError as error:
        raise source.error(where, error.problem, error.hint, text, error.start, error.end) from None


LAWS: dict[
    str, tuple[str, float, Callable[[float, np.ndarray], np.ndarray]]
] = {  # argument, its limit, ln p of numbers
    "Poisson": ("rate", inf, lambda rate, k: k * np.log(rate) - rate - gammaln(k + 1)),
    "Geometric": ("probs", 1.0, lambda p, k: np.log(p) + k * np.log1p(-p)),
}


@dataclass(frozen=True)
class Law:
    """A distribution of counts."""

    name: str
    value: float  # of its argument

    def logpmf(self, numbers: np.ndarray) -> np.ndarray:
        """Its logarithm at some numbers."""
        return LAWS[self.name][2](self.value, numbers)


def _law(text: str) -> Law:
    """The distribution of counts that a text describes."""
    tree = parse(text)
    if not isinstance(tree, Call) or tree.name not in LAWS:
        known = "Write uniform, Poisson(1.5), Geometric(0.5), or { 0 = 0.5, 1 = 0.3, 2 = 0.2 }."
        word = getattr(tree, "name", "")
        raise FormulaError("this is no prior on a number", text, tree.start, tree.end, suggestion(word, LAWS) or known)
    name, limit, _ = LAWS[tree.name]
    nodes = [*tree.arguments, *(node for keyword, node in tree.keywords if keyword == name)]
    if len(nodes) != 1 or len(tree.arguments) + len(tree.keywords) != 1:
        raise FormulaError(f"{tree.name} has one argument", text, tree.start, tree.end, f"It is {tree.name}({name}).")
    value = constant(nodes[0], text)
    if not 0 < value < limit:
        problem = f"{name} must be above 0" + (f" and below {limit:g}" if limit < inf else "") + f"; it is {value:g}"
        raise FormulaError(problem, text, nodes[0].start, nodes[0].end)
    return Law(tree.name, value)
