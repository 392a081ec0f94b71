"""A comparison written as a TOML file: data, noise, and models as formulas with priors. Nothing in it is run as code.

```toml
[data]
file = "sine.csv"                          # columns by their header
y = "y"                                    # the measured column; "y" if left out
x = "x"                                    # the column over which predictions are drawn; "x" if left out

[noise]
form = "gaussian"                          # gaussian, student_t, poisson, binomial
sigma = "sigma"                            # a column, a number, or a formula that may hold fitted parameters

[models.free]
mean = "sin(omega * x + phi)"
priors = { omega = "Normal(1, 2)", phi = "Normal(0, 0.05)" }

[units]                                    # and [labels], for tables and axes
omega = "rad/s"

[run]
target_error = 0.05
```
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.models.model import Model
from supermodel.models.noise import Binomial, Gaussian, Noise, Poisson, StudentT
from supermodel.models.table_file import Table, read_table
from supermodel.options import IN_TOML, Option
from supermodel.spec.formula import Formula, compile_formula
from supermodel.spec.grammar import FormulaError
from supermodel.spec.prior import parse_prior
from supermodel.spec.source import Place, Source, confined, text_of

RESPONSE = "y"  # what `Model` calls the measured column
FORMULAS = ("noise", "models", "component", "background")  # the tables that hold some


@dataclass(frozen=True, eq=False)
class Spec:
    """What a file describes: `compare(spec.models, spec.data, **spec.run)`."""

    models: dict[str, Model]
    data: Any  # columns by name; of a Python file whatever it calls `data`
    run: dict[str, Any]
    name: str
    formulas: dict[str, str]  # none in a Python file
    columns: dict[str, str] = field(default_factory=dict)  # {key in `data`: column of the file}; none in a Python file


def read_spec(path: str | Path, data_root: str | Path | None = None, columns: Sequence[str] | None = None) -> Spec:
    """The comparison that a TOML file describes; file names in it are relative to its folder.

    `data_root`: a folder that the data file must lie in, links and `..` followed; without it `file` may be any file that
    you may read. For services that are handed TOML by others.
    `columns`: names of columns that data will have which come from elsewhere; those of the file are then not read.
    """
    path = Path(path)
    return parse_spec(text_of(path), path.parent, str(path), data_root, columns)


def parse_spec(
    text: str,
    directory: str | Path = ".",
    name: str = "spec",
    data_root: str | Path | None = None,
    columns: Sequence[str] | None = None,
) -> Spec:
    """The comparison that a TOML text describes."""
    source = Source.of(text, name)
    top = source.tree
    if "component" in top:
        raise source.error(("component",), "components are counted, not compared", f"Run: supermodel count {name}")
    needed = ("data", "models") if columns is None else ("models",)
    source.check_keys((), top, ("data", "noise", "models", "run", *TEXTS), required=needed)
    found = columns_of(source, directory, data_root, columns)
    common = source.table(("noise",), top.get("noise", {}))
    models, formulas = {}, {}
    described = source.table(("models",), top["models"])
    if not described:
        raise source.error(
            ("models",), "there are no models", 'Write at least two, e.g. [models.line] with mean = "a + b * x".'
        )
    for label, given in described.items():
        models[label], formulas[label] = _model(source, ("models", label), given, common, found)
    models = _labelled(source, models)
    run = run_options(source, tuple(models))
    return Spec(models, found.data, run, name, formulas, found.names)


TEXTS = ("labels", "units")  # of parameters, for tables and axes


def _labelled(source: Source, models: dict[str, Model]) -> dict[str, Model]:
    known = tuple(dict.fromkeys(name for model in models.values() for name in model.priors))
    given = {what: texts_of(source, (what,), source.tree.get(what, {}), known) for what in TEXTS}
    return {
        label: model.with_labels(*({n: t for n, t in given[what].items() if n in model.priors} for what in TEXTS))
        for label, model in models.items()
    }


def texts_of(source: Source, where: Place, given: Any, known: Sequence[str]) -> dict[str, str]:
    """The labels, or the units, of the parameters in `known`."""
    texts = source.table(where, given)
    source.check_keys(where, texts, tuple(known))
    for name, text in texts.items():
        if not source.text((*where, name), text):
            raise source.error((*where, name), "a text is needed here")
    return texts


# -- data ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Columns:
    """The data of a file, and what its formulas may call them."""

    data: dict[str, np.ndarray]  # as `Model` gets it, the measured column under "y"
    keys: dict[str, str]  # a column's name in formulas -> its key in `data`
    unusable: dict[str, str]  # names that a formula may not use, columns that are not all numbers, and why
    complete: np.ndarray  # rows in which nothing is missing that a formula may name
    x: str = ""  # the key of the column over which predictions are drawn
    names: dict[str, str] = field(default_factory=dict)  # a key in `data` -> the column

    @classmethod
    def of(cls, source: Source, given: Mapping[str, Any], table: Table, drops: bool) -> Columns:
        why_not = {name: _why_unusable(table, name, drops) for name in table.columns}
        unusable = {name: why for name, why in why_not.items() if why}
        columns = {name: values.astype(float) for name, values in table.columns.items() if name not in unusable}
        response = source.text(("data", "y"), given.get("y", RESPONSE))
        if response not in columns:
            why = unusable.get(response) or f"there is no column {response!r}; columns are {', '.join(columns)}"
            where = ("data", "y") if "y" in given else ("data",)
            raise source.error(where, why, 'Name the measured column with y = "..." in [data].')
        x = source.text(("data", "x"), given["x"]) if "x" in given else ""
        if x and x not in columns:
            why = unusable.get(x) or f"there is no column {x!r}; columns are {', '.join(columns)}"
            raise source.error(("data", "x"), why, "`x` is the column over which predictions are drawn.")
        keys = {name: name for name in columns}
        if response != RESPONSE and RESPONSE in keys:
            keys[RESPONSE] = "y (column)"
        named = {response, *_names_in([source.tree.get(part) for part in FORMULAS])}
        complete = np.all([np.isfinite(values) for name, values in columns.items() if name in named], axis=0)
        names = {**{keys[name]: name for name in columns}, RESPONSE: response}
        data = {key: columns[name] for key, name in names.items()}
        return cls(data, keys, unusable, complete, keys.get(x, ""), names)

    @classmethod
    def stored(
        cls, source: Source, where: Place, written: Mapping[str, Any], data: Mapping[str, np.ndarray]
    ) -> Columns:
        """Those of a stored result, whose formulas are `written`."""
        keys = {str(name): str(key) for name, key in source.table(where, written["keys"]).items()}
        return cls(dict(data), keys, {}, np.ones(len(data[RESPONSE]), bool), source.text(where, written["x"]))

    def without(self, names: Iterable[str], why: str) -> Columns:
        """The same, which tell why a formula may not use some names."""
        return replace(self, unusable=self.unusable | {name: f"{name!r} {why}" for name in names})


def columns_of(
    source: Source, directory: str | Path, data_root: str | Path | None, columns: Sequence[str] | None = None
) -> Columns:
    """The columns of [data]; see `read_spec`."""
    options = source.table(("run",), source.tree.get("run", {}))
    given = source.table(("data",), source.tree.get("data", {}))
    source.check_keys(("data",), given, ("file", "x", "y", "columns"))
    # Data from elsewhere are not known yet: ones stand for them, which are positive, and counts.
    table = _table(source, given, Path(directory), data_root) if columns is None else (
        Table({column: np.ones(1) for column in columns}, "the data")
    )  # fmt: skip
    return Columns.of(source, given, table, options.get("missing") == "drop")


def _table(source: Source, given: Mapping[str, Any], directory: Path, data_root: str | Path | None) -> Table:
    if ("file" in given) == ("columns" in given):
        raise source.error(("data",), "either `file` or `columns` is needed, and not both",
                           'Write file = "data.csv", or columns = { x = [1, 2], y = [3, 4] }.')  # fmt: skip
    return _read_file(source, given, directory, data_root) if "file" in given else _inline(source, given["columns"])


def _why_unusable(table: Table, name: str, drops: bool) -> str:
    """Why a column cannot stand in a formula; empty if it can. Where rows are dropped, numbers may be missing."""
    values = table.columns[name]
    if values.dtype.kind in "biuf":
        wrong = np.isinf(values) | (np.isnan(values) & (not drops))
        row = int(np.flatnonzero(wrong)[0]) if wrong.any() else -1
    else:
        row = next((i for i, text in enumerate(values) if not _is_written_number(text)), 0)
    return "" if row < 0 else (
        f"the column {name!r} is not all finite numbers: {table.where(row)} has {str(values[row])!r}"
    )  # fmt: skip


def _is_written_number(text: Any) -> bool:
    try:
        return math.isfinite(float(text))
    except (TypeError, ValueError):
        return False


def _names_in(tree: Any) -> set[str]:
    """All names in all texts of some tables: those of columns among them are read by formulas."""
    if isinstance(tree, str):
        return set(re.findall(r"[^\W\d]\w*", tree))
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return set().union(*map(_names_in, parts))


def _read_file(source: Source, given: Mapping[str, Any], directory: Path, data_root: str | Path | None) -> Table:
    path = directory / source.text(("data", "file"), given["file"])
    try:
        return read_table(path if data_root is None else confined(path, Path(data_root)))
    except SupermodelError as error:
        raise source.error(("data", "file"), str(error)) from None


def _inline(source: Source, given: Any) -> Table:
    columns = {}
    for name, values in source.table(("data", "columns"), given).items():
        if not isinstance(values, list) or not all(is_number(v) for v in values) or not values:
            raise source.error(("data", "columns", name), f"the column {name!r} must be a list of finite numbers")
        columns[name] = np.array([float(v) for v in values])
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) != 1:
        raise source.error(("data", "columns"), f"columns must be equally long; their lengths are {sizes}")
    return Table(columns, "[data]")


def is_number(value: Any) -> bool:
    """Whether a value of TOML is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 1e300 and math.isfinite(value)


# -- models -------------------------------------------------------------------------------------------------------


def _model(source: Source, where: Place, given: Any, common: Mapping[str, Any], columns: Columns):
    given = source.table(where, given)
    source.check_keys(where, given, ("mean", "priors", "noise"), required=("mean",))
    noise_at: Place = ("noise",)
    noise_given: Mapping[str, Any] = common
    if "noise" in given:
        noise_at, noise_given = (*where, "noise"), source.table((*where, "noise"), given["noise"])
    tables = {(*at, "priors"): table.get("priors", {}) for at, table in ((where, given), (noise_at, noise_given))}
    priors, places = parameters_of(source, tables, columns)
    mean = formula_of(source, (*where, "mean"), given["mean"], columns, priors)
    noise, in_noise = noise_of(source, noise_at, noise_given, columns, priors)
    check_used(source, places, {*mean.names, *in_noise}, ".".join(where))
    found = Model(priors, predict=Mean(mean, columns.keys), noise=noise)
    found.written = {"model": {**given, "noise": dict(noise_given)}, "keys": columns.keys, "x": columns.x}
    return found, mean.text


def rewritten(label: str, written: Mapping[str, Any], data: Mapping[str, np.ndarray]) -> Model:
    """The model that a stored result tells of: its formulas, parsed anew over the stored columns."""
    source = Source("the stored formulas", (), {})
    return _model(source, (label,), written["model"], {}, Columns.stored(source, (label,), written, data))[0]


def parameters_of(
    source: Source, tables: Mapping[Place, Any], columns: Columns
) -> tuple[dict[str, Any], dict[str, Place]]:
    """The priors in some tables, and where each stands."""
    priors: dict[str, Any] = {}
    places: dict[str, Place] = {}
    for path, table in tables.items():
        for name, text in source.table(path, table).items():
            places[name] = (*path, name)
            _check_parameter(source, places[name], name, columns, priors)
            priors[name] = parse_prior(source, places[name], text)
    return priors, places


def check_used(source: Source, places: Mapping[str, Place], used: Collection[str], whose: str) -> None:
    """Refuse parameters that no formula uses."""
    for name, place in places.items():
        if name not in used:
            problem = f"the parameter {name!r} has a prior but appears in no formula of {whose}"
            raise source.error(place, problem, "Use it in `mean` or in the noise, or remove it.")


def _check_parameter(source: Source, where: Place, name: str, columns: Columns, priors: Mapping[str, Any]) -> None:
    if name in columns.keys:
        raise source.error(where, f"{name!r} is a column of the data as well as a parameter", "Rename the parameter.")
    if name in priors:
        raise source.error(where, f"the parameter {name!r} has two priors, in the model and in the noise", "Keep one.")
    if not name.isidentifier():
        raise source.error(where, f"{name!r} is no name that a formula can use", "Use letters, digits and underscores.")


def formula_of(source: Source, where: Place, given: Any, columns: Columns, priors: Mapping[str, Any]) -> Formula:
    """The formula of a text, over columns and parameters."""
    text = str(given) if is_number(given) else source.text(where, given)
    try:
        return compile_formula(text, [*columns.keys, *priors])
    except FormulaError as error:
        word = text[error.start : error.end]
        if word in columns.unusable:
            error.hint = columns.unusable[word] + "."
        raise source.error(where, error.problem, error.hint, text, error.start, error.end) from None


# -- noise --------------------------------------------------------------------------------------------------------

FORMS = {
    "gaussian": "gaussian", "normal": "gaussian", "student_t": "student_t", "studentt": "student_t",
    "student": "student_t", "poisson": "poisson", "binomial": "binomial", "bernoulli": "binomial",
    "logistic": "binomial",
}  # fmt: skip
_KEYS = {"gaussian": ("sigma",), "student_t": ("sigma", "df"), "poisson": ("link",), "binomial": ("trials", "link")}


def noise_of(
    source: Source, where: Place, given: Mapping[str, Any], columns: Columns, priors
) -> tuple[Noise, set[str]]:
    """The noise, and the parameters that it uses."""
    form = source.text((*where, "form"), given.get("form", "gaussian"))
    kind = FORMS.get(form.lower().replace("-", "_").replace(" ", "_"))
    if kind is None:
        raise source.error((*where, "form"), f"unknown noise {form!r}", f"It is one of {', '.join(sorted(_KEYS))}.")
    source.check_keys(where, given, ("form", "priors", *_KEYS[kind]))
    if kind in ("poisson", "binomial"):
        return _counting(source, where, given, kind, columns), set()
    used: set[str] = set()

    def part(key: str, default: Any) -> Any:
        value = given.get(key, default)
        if value is None or (value == default and value not in columns.keys and value not in priors):
            known = ", ".join([*columns.keys, *priors])
            raise source.error(where, f"the noise needs `{key}`, and there is no column or parameter of that name",
                               f"Write {key} = a number, or a formula in quotes of: {known}.")  # fmt: skip
        if is_number(value):
            if not value > 0:
                raise source.error((*where, key), f"`{key}` must be positive; it is {value:g}")
            return float(value)
        formula = formula_of(source, (*where, key), value, columns, priors)
        used.update(formula.names)
        if RESPONSE in formula.names and RESPONSE not in columns.keys:  # the noise would be given the data in its place
            raise source.error((*where, key), f"the noise cannot hold a parameter {RESPONSE!r}: the measured column is "
                               "called so there", "Rename the parameter.")  # fmt: skip
        if formula.text.strip() in columns.keys:
            _check_positive(source, (*where, key), formula.text.strip(), columns)
        return Known(formula, columns.keys)

    sigma = part("sigma", "sigma")
    noise = Gaussian(sigma) if kind == "gaussian" else StudentT(part("df", None), sigma)
    return noise, used


class Known:
    """A formula as a function of columns and parameters in one mapping."""

    def __init__(self, formula: Formula, keys: Mapping[str, str]):
        self.formula, self.keys = formula, dict(keys)
        self.columns = {keys[name] for name in formula.names if name in keys}  # that it reads

    def __call__(self, known: Mapping[str, Any]) -> Any:
        return self.formula({name: known[self.keys.get(name, name)] for name in self.formula.names})


class Mean(Known):
    """A formula as the `predict` of a model."""

    def __call__(self, values: Mapping[str, Any], __columns__: Mapping[str, Any]) -> Any:  # type: ignore[override]
        return super().__call__({**__columns__, **values})


def _check_positive(source: Source, where: Place, column: str, columns: Columns) -> None:
    values = columns.data[columns.keys[column]]
    if not np.all(values[columns.complete] > 0):
        row = int(np.flatnonzero(~(values > 0) & columns.complete)[0])
        raise source.error(where, f"the column {column!r} must be positive; row {row + 1} is {values[row]:g}")


def _counting(source: Source, where: Place, given: Mapping[str, Any], kind: str, columns: Columns) -> Noise:
    if kind == "poisson":
        noise: Noise = Poisson(_link(source, where, given, ("identity", "log")))
    else:
        trials = given.get("trials", 1)
        if isinstance(trials, str):
            if trials not in columns.keys:
                raise source.error(
                    (*where, "trials"), f"there is no column {trials!r}; columns are {', '.join(columns.keys)}"
                )
            trials = columns.keys[trials]
        elif not (is_number(trials) and trials >= 1 and trials == int(trials)):
            raise source.error(
                (*where, "trials"), f"`trials` must be a whole number or the name of a column; got {trials!r}"
            )
        noise = Binomial(trials, _link(source, where, given, ("logit", "identity")))
    try:
        noise.pointwise(
            0.5, {name: values[columns.complete] for name, values in columns.data.items()}
        )  # counts that are no counts are found here
    except SupermodelError as error:
        raise source.error(where, str(error)) from None
    return noise


def _link(source: Source, where: Place, given: Mapping[str, Any], known: tuple[str, ...]) -> str:
    link = given.get("link", known[0])
    if link not in known:
        raise source.error((*where, "link"), f"`link` must be one of {', '.join(known)}; got {link!r}")
    return link


# -- options ------------------------------------------------------------------------------------------------------


def run_options(source: Source, names: tuple[str, ...], known: Sequence[Option] = IN_TOML) -> dict[str, Any]:
    """The options in [run], out of those that are `known`, of a run with models of these names."""
    given = source.table(("run",), source.tree.get("run", {}))
    source.check_keys(("run",), given, tuple(option.name for option in known))
    if "prior_odds" in given:
        odds = source.table(("run", "prior_odds"), given["prior_odds"])
        source.check_keys(("run", "prior_odds"), odds, names, required=names)
    options = {}
    for option in known:
        if option.name in given:
            try:
                options[option.name] = option.checked(given[option.name])
            except SupermodelError as error:
                raise source.error(("run", option.name), str(error)) from None
    return options
