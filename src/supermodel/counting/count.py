r"""How many components do the data hold? Models of 0, 1, 2, … of them, each begun at what the one before leaves.

$P(k \mid D) \propto \pi(k) Z_k$. The model of k + 1 components is explored by searching its new component in what draws of the
first k leave, and then by moving all together (`engine/explore/extended.py`). No larger model is tried once further components
are too improbable, as far as those before tell: see `Enough`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from supermodel.comparing import compare_growing
from supermodel.counting.component import Component, check, model_of, title
from supermodel.counting.numbers import LEAST, MOST, check_stop, numbers_of, shares_of
from supermodel.counting.result import Count
from supermodel.counting.stopping import Enough
from supermodel.engine.policy import COUNT_STOP
from supermodel.errors import DataError, ModelError
from supermodel.models.columns import as_columns


def count(
    component: Component,
    data: Any = None,
    *,
    most: int = MOST,
    least: int = LEAST,
    background: Component | None = None,
    noise: Any = None,
    combine: Callable[..., Any] | None = None,
    log_likelihood: Callable[..., Any] | None = None,
    vectorized: bool = False,
    prior: Any = None,
    stop: float = COUNT_STOP,
    seed: int = 0,
    target_error: float = 0.1,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    min_ess: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    executor: Any = None,
    explore: str = "auto",
    on_error: str = "raise",
    missing: str = "raise",
    progress: bool | None = None,
) -> Count:
    """How many planets, lines, sources, … are in the data: the probability of each number, with errors and a verdict.

    `component`: the priors of one component and what it predicts; each has the same, independent, priors.
    `most`, `least`: the numbers that are weighed, at most.
    `background`: what is there once, whatever the number: priors, and a `predict` where it predicts something.
    `noise`: as of a `Model`; its parameters (a jitter) belong to the background.
    `combine`: `combine(background, parts)` makes one prediction of that of the background and of a list of those of the
    components; by default they add up.
    `log_likelihood`: in place of all predictions, `log_likelihood(values, data)`, which gets each parameter of a component as an
    array over the components (its last axis), for mixtures and all else; `vectorized` as of a `Model`.
    `prior`: on the number: uniform by default, a distribution (`dist.Poisson(1.5)`), or {number: probability}.
    `stop`: larger numbers are not tried once the probability of more components is below this, as far as ln Z of the smaller
    ones tells: it fell twice, and is taken to fall on as it did.
    All others are those of `compare`.
    """
    numbers = numbers_of(most, least)
    _check(component, data, background, noise, combine, log_likelihood, stop)
    shares = shares_of(prior, numbers)
    names = [title(component, k) for k in numbers]
    models: dict[str, Any] = {}
    for k, name in zip(numbers, names, strict=True):
        model = model_of(component, k, background, noise, combine, log_likelihood, vectorized)
        models[name] = model.extending(names[k - 1 - least]) if k > least else model
    rule = Enough(dict(zip(names, shares, strict=True)), stop)
    found = compare_growing(
        models, data, rule, told={"count": _told(component, numbers, shares, stop)},
        prior_odds=dict(zip(names, shares, strict=True)), seed=seed, target_error=target_error,
        max_evaluations=max_evaluations, max_seconds=max_seconds, min_ess=min_ess, checkpoint=checkpoint, executor=executor,
        explore=explore, on_error=on_error, missing=missing, progress=progress,
    )  # fmt: skip
    return Count(found, component, background)


# -- what was given ---------------------------------------------------------------------------------------------------


def _check(
    component: Any, data: Any, background: Any, noise: Any, combine: Any, log_likelihood: Any, stop: Any
) -> None:
    for label, given in (("component", component), ("background", background)):
        if not isinstance(given, Component) and not (label == "background" and given is None):
            raise ModelError(
                f"`{label}` must be a Component(priors, predict=...); got {type(given).__name__}. "
                'Write e.g. sm.Component({"P": dist.LogUniform(1, 1000), "K": ...}, predict=velocity, name="planet").'
            )
    check_stop(stop)
    check(component, background)
    if (component.predict is None) == (log_likelihood is None):
        raise ModelError(
            f"the likelihood comes from what the {component.name} predicts, Component(priors, predict=...), or from "
            f"`log_likelihood`, and not from both; got predict={component.predict!r}, log_likelihood={log_likelihood!r}."
        )
    for label, given in (("noise", noise), ("combine", combine)):
        if log_likelihood is not None and given is not None:
            raise ModelError(f"with `log_likelihood` there are no predictions, and `{label}` has no meaning.")
    if log_likelihood is None:
        columns = None if data is None else as_columns(data)
        if not isinstance(columns, Mapping) or "y" not in columns:
            got = "none" if data is None else f"columns {sorted(columns)}" if isinstance(columns, Mapping) else type(data).__name__
            raise DataError(
                f'there are no data to count {component.name}s in: `data` needs a column "y" of what was measured, e.g. '
                f'data={{"x": x, "y": y, "error": e}}; got {got}.'
            )


def _told(component: Component, numbers: Sequence[int], prior: Sequence[float], stop: float) -> dict[str, Any]:
    """What a stored result needs to be read as one of numbers."""
    return {
        "component": component.name, "parameters": list(component.priors), "least": int(numbers[0]), "most": int(numbers[-1]),
        "prior": list(prior), "stop": float(stop), "period": component.period if isinstance(component.period, str) else None,
    }  # fmt: skip
