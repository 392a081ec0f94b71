r"""$R = Z_{ab} / (Z_a Z_b)$: one universe for both data sets, against one for each.

Three models are compared in one run: of the first data set, of the second, and of both, whose likelihood is the product.
What is made of the three evidences and posteriors stands in `supermodel.agreement.quantities`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from supermodel.agreement.joint_likelihood import HELD, shared_of, three
from supermodel.agreement.result import Tension
from supermodel.comparing import compare
from supermodel.errors import DataError, ModelError
from supermodel.models.columns import received
from supermodel.models.model import Model
from supermodel.models.space import check_name
from supermodel.options import checked
from supermodel.results.fingerprint import fingerprint

ENOUGH = 1000.0  # effective draws of each posterior: ln S then has an error of about sqrt(3 d / 2000)
HOW = (
    "Write sm.tension(model, data_a, data_b), sm.tension(model_a, data_a, data_b, other=model_b), or "
    'sm.tension({"one": (model_a, data_a), "two": (model_b, data_b)}).'
)


def tension(
    model: Model | Mapping[str, tuple[Model, Any]],
    data_a: Any = None,
    data_b: Any = None,
    *,
    other: Model | None = None,
    names: tuple[str, str] = ("a", "b"),
    seed: int = 0,
    target_error: float = 0.1,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    min_ess: float | None = ENOUGH,
    checkpoint: str | os.PathLike[str] | None = None,
    executor: Any = None,
    explore: str = "auto",
    on_error: str = "raise",
    missing: str = "raise",
    progress: bool | None = None,
) -> Tension:
    r"""$\ln R = \ln Z_{ab} - \ln Z_a - \ln Z_b$ and $\ln S = \ln R - \ln I$: do two data sets agree on a model's parameters?

    R is the Bayes factor of one universe for both data sets against one for each; it grows with the width of the priors. The
    suspiciousness S has that taken out; with the dimensionality d, which counts what both constrain, it becomes a p value
    and so many sigma. The data sets must be independent: the likelihood of both is the product of the two.

    `model`: of both data sets, called with `data_a`, with `data_b`, and with each in turn for both; `other` is that of `data_b`,
    where the likelihoods differ. Or {name: (model, data)} of the two; data that a model brings itself are None there. Parameters of
    one name are one thing, and need one prior; those that only one model has are its own (nuisance), whatever the other says.
    `names`: what the two data sets are called.
    `target_error`: of ln R. `min_ess`: effective draws of each posterior, which the error of ln S and of sigma comes from: 4 times
    as many halve it.
    All others are those of `compare`.
    """
    given = _given(model, data_a, data_b, other, names)
    target, missing = checked("target_error", target_error), checked("missing", missing)
    found = {name: received(part.data, [part.model], missing) for name, part in given.items()}
    _not_twice(given, {name: each.data for name, each in found.items()})
    models = {name: part.model for name, part in given.items()}
    joint = " + ".join(models)
    # ln R has three errors, ln B of a pair two: each pair is asked for less than is wanted in the end.
    comparison = compare(
        three(models, joint), {name: {HELD: each.data} for name, each in found.items()}, seed=seed,
        target_error=target / math.sqrt(2), max_evaluations=max_evaluations, max_seconds=max_seconds, min_ess=min_ess,
        checkpoint=checkpoint, executor=executor, explore=explore, on_error=on_error, missing="keep", progress=progress,
    )  # fmt: skip
    first, second = models
    dropped = {name: (each.dropped, each.rows) for name, each in found.items() if each.dropped}
    return Tension(comparison, (first, second, joint), shared_of(models), target, dropped)


# -- what was given ---------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """One data set with the model of it."""

    model: Model
    data: Any


def _given(model: Any, data_a: Any, data_b: Any, other: Any, names: Any) -> dict[str, Part]:
    """{name: model and data} of the two, however they were written."""
    if isinstance(model, Mapping):
        if data_a is not None or data_b is not None or other is not None:
            raise ModelError(
                f"a dict of (model, data) says all: `data_a`, `data_b` and `other` have no place beside it. {HOW}"
            )
        return _listed(model)
    for label, value in (("model", model), ("other", model if other is None else other)):
        if not isinstance(value, Model):
            raise ModelError(f"`{label}` of tension must be a Model; got {type(value).__name__}. {HOW}")
    if isinstance(names, str) or len(names := tuple(names)) != 2:
        raise ModelError(
            f'`names` must be two texts, what the data sets are called, e.g. ("cmb", "sne"); got {names!r}.'
        )
    first, second = Part(model, data_a), Part(model if other is None else other, data_b)
    for label, part in (("data_a", first), ("data_b", second)):
        if part.data is None:
            raise DataError(
                f"there is no `{label}`: tension compares two data sets, and each must be given. {HOW} (Where a model brings "
                "its own data, give it None in a dict.)"
            )
        if part.model.observed is not None:
            raise ModelError(
                f"the model of `{label}` brings its own data, and would be the same whatever `{label}` is. Make a model with each "
                'data set and give both: sm.tension({"a": (model_a, None), "b": (model_b, None)}).'
            )
    return _named([(names[0], first), (names[1], second)])


def _listed(model: Mapping[str, Any]) -> dict[str, Part]:
    if len(model) != 2:
        raise ModelError(
            f"tension is of two data sets; the dict has {len(model)} ({', '.join(map(repr, model))}). {HOW}"
        )
    parts = []
    for name, value in model.items():
        if not isinstance(value, tuple | list) or len(value) != 2 or not isinstance(value[0], Model):
            got = type(value).__name__
            raise ModelError(f"{name!r} must be a pair (model, data); got {got}. {HOW}")
        parts.append((name, Part(*value)))
    return _named(parts)


def _named(parts: list[tuple[Any, Part]]) -> dict[str, Part]:
    for name, _ in parts:
        check_name(name, "the name of a data set")
    (a, _), (b, _) = parts
    if a == b:
        raise ModelError(f"both data sets are called {a!r}: results are addressed by name. Give two names.")
    return dict(parts)


def _not_twice(given: Mapping[str, Part], data: Mapping[str, Any]) -> None:
    """Refuse one data set given twice: the product of its likelihood with itself is no likelihood."""
    (a, first), (b, second) = given.items()
    one, other = data[a], data[b]
    if first.model is not second.model:
        is_same = False  # two likelihoods may read two parts of one table
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        plain = all(isinstance(v, np.ndarray | float | int) for each in (one, other) for v in each.values())
        is_same = one is other or (plain and fingerprint(one) == fingerprint(other))
    else:
        is_same = one is other or (
            isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and fingerprint(one) == fingerprint(other)
        )
    if is_same:
        raise DataError(
            f"{a!r} and {b!r} are the same data: the joint likelihood would count each datum twice, and data always agree with "
            "themselves. Give two independent data sets, or two models that read different parts of one table."
        )
