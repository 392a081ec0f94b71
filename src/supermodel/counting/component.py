r"""A component, which may be there any number of times, and the model of k of them.

$\mu(x) = b(x; \beta) + \sum_{i=1}^k g(x; \theta_i)$: every $\theta_i$ has the prior of the component, so that the k blocks are
exchangeable. Another rule than the sum, or a likelihood of its own, can be given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supermodel.errors import DataError, ModelError, suggestion
from supermodel.models.model import Model


@dataclass(frozen=True, eq=False)
class Component:
    """One planet, line, sinusoid or source: the priors of its parameters, and what it predicts.

    `predict(p, x)` takes its columns by name, as that of a `Model`; it is left out where `count` is given a `log_likelihood`.
    `name` is what one of them is called, as "planet". `period`: the parameter that is its period, or a function of a dict of
    its parameters that gives it; pictures are folded by it.
    """

    priors: Mapping[str, Any]
    predict: Callable[..., Any] | None = None
    name: str = "component"
    period: str | Callable[[Mapping[str, Any]], Any] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    alone: Model = field(init=False, repr=False)  # it as a model, which checks its priors and knows which columns it reads

    def __post_init__(self):
        given: dict[str, Any] = {"log_likelihood": _nothing} if self.predict is None else {"predict": self.predict}
        alone = Model(self.priors, **given, labels=self.labels, units=self.units)
        object.__setattr__(self, "alone", alone)
        if not isinstance(self.name, str) or not self.name.strip():
            raise ModelError(f'`name` says what one component is called, as "planet"; got {self.name!r}.')
        if isinstance(self.period, str) and self.period not in self.priors:
            raise ModelError(
                f"`period` names {self.period!r}, which is no parameter of the {self.name}; its parameters are "
                f"{', '.join(self.priors) or 'none'}. {suggestion(self.period, self.priors)}"
            )
        if not (self.period is None or isinstance(self.period, str) or callable(self.period)):
            raise ModelError(f"`period` is the name of a parameter, or a function of a dict of them; got {self.period!r}.")


def _nothing(p: Any, data: Any = None) -> float:
    return 0.0


def title(component: Component, k: int) -> str:
    """What the model of k components is called: `no planet`, `1 planet`, `2 planets`."""
    return f"no {component.name}" if k == 0 else f"{k} {component.name}" + "s" * (k > 1)


def numbered(name: str, i: int) -> str:
    """The name of a parameter of the i-th component: P1; of `b1`, b1_1."""
    return f"{name}_{i}" if name[-1].isdigit() else f"{name}{i}"


def blocks(component: Component, k: int) -> list[tuple[str, ...]]:
    """The names of the parameters of each of k components."""
    return [tuple(numbered(name, i) for name in component.priors) for i in range(1, k + 1)]


class Combined:
    """The prediction of k components and a background, a function of (p, data) as `Model` calls it."""

    def __init__(self, component: Component, k: int, background: Component | None, combine: Callable[..., Any] | None):
        self.names, self.k, self.combine = tuple(component.priors), k, combine
        self.part, self.rest = component.alone, background.alone if background is not None else None
        self.called = component.name
        read = [getattr(each.predict, "columns", None) for each in (self.part, self.rest) if each and each.predict]
        if None not in read:
            self.columns = set().union(*read)  # that formulas read, see `Model.predicts_from`

    def __call__(self, p: Mapping[str, Any], data: Any) -> Any:
        return self.of(self.behind(p, data), self.parts(p, data))

    def behind(self, p: Mapping[str, Any], data: Any) -> Any:
        """What the background predicts; 0 without one."""
        if self.rest is None or self.rest.predict is None:
            return 0.0
        found = self.rest.prediction({name: p[name] for name in self.rest.space.names}, data)
        if self.combine is None:
            _check_shape("background", found, data)
        return found

    def parts(self, p: Mapping[str, Any], data: Any) -> list[Any]:
        """What each component predicts."""
        found = [
            self.part.prediction({name: p[numbered(name, i)] for name in self.names}, data)
            for i in range(1, self.k + 1)
        ]
        if self.combine is None:
            for part in found:
                _check_shape(self.called, part, data)
        return found

    def of(self, background: Any, parts: Sequence[Any]) -> Any:
        """The parts as one."""
        return sum(parts, background) if self.combine is None else self.combine(background, list(parts))


def _check_shape(name: str, prediction: Any, data: Any) -> None:
    """Refuse what cannot be added to the rest, one number per datum."""
    y = data.get("y") if isinstance(data, Mapping) else None
    if y is None or np.shape(prediction) in ((), np.shape(y)):
        return
    # Other places than those of the data may be asked for, along a column of another length.
    if np.shape(prediction) not in {np.shape(column) for column in data.values() if hasattr(column, "shape")}:
        raise DataError(
            f'the prediction of the {name} has the shape {np.shape(prediction)}, but data["y"] has {np.shape(y)}: the '
            "components could not be added. Return one prediction per datum (or one number for all)."
        )


class Stacked:
    """A user's `log_likelihood(values, data)` of k components, whose parameters stand along the last axis of arrays."""

    def __init__(self, component: Component, k: int, background: Component | None, log_likelihood: Callable[..., Any]):
        self.names, self.k, self.log_likelihood = tuple(component.priors), k, log_likelihood
        self.rest = tuple(background.priors) if background is not None else ()

    def __call__(self, p: Mapping[str, Any], *data: Any) -> Any:
        stacked = {name: _stacked([p[numbered(name, i)] for i in range(1, self.k + 1)], p) for name in self.names}
        return self.log_likelihood(stacked | {name: p[name] for name in self.rest}, *data)


def _stacked(values: list[Any], known: Mapping[str, Any]) -> Any:
    """Along a last axis, which may be empty; of JAX arrays one of JAX."""
    if any(not isinstance(value, np.ndarray | np.generic | float | int) for value in values):
        import jax.numpy as jnp

        return jnp.stack(values, axis=-1)
    if values:
        return np.stack(values, axis=-1)
    return np.zeros((*np.shape(next(iter(known.values()), 0.0)), 0))


def model_of(
    component: Component,
    k: int,
    background: Component | None = None,
    noise: Any = None,
    combine: Callable[..., Any] | None = None,
    log_likelihood: Callable[..., Any] | None = None,
    vectorized: bool = False,
) -> Model:
    """The model of k components over a background."""
    own = {} if background is None else dict(background.priors)
    named = blocks(component, k)
    priors = own | {name: component.priors[of] for block in named for name, of in zip(block, component.priors, strict=True)}
    given: dict[str, Any] = {
        "labels": _of_all(component, background, named, "labels", _with_number),
        "units": _of_all(component, background, named, "units", lambda unit, i: unit),
        "exchangeable": _exchangeable(named, combine, log_likelihood),
    }
    if log_likelihood is not None:
        return Model(priors, Stacked(component, k, background, log_likelihood), vectorized=vectorized, **given)
    return Model(priors, predict=Combined(component, k, background, combine), noise=noise, **given)


def _exchangeable(named: list[tuple[str, ...]], combine: Any, log_likelihood: Any) -> Any:
    """A sum has no order; of what else a user wrote it is asked."""
    return named if len(named) > 1 and named[0] and combine is None and log_likelihood is None else None


def _of_all(
    component: Component,
    background: Component | None,
    named: Iterable[tuple[str, ...]],
    what: str,
    of: Callable[[str, int], str],
) -> dict[str, str]:
    """The texts of the background and of each of the components."""
    each, texts = getattr(component, what), {} if background is None else dict(getattr(background, what))
    for i, block in enumerate(named, start=1):
        texts |= {name: of(each[p], i) for name, p in zip(block, component.priors, strict=True) if p in each}
    return texts


def _with_number(label: str, i: int) -> str:
    """`$P$` becomes `$P_{1}$`; a label that is no formula has its number behind it."""
    return f"{label[:-1]}_{{{i}}}$" if label.startswith("$") and label.endswith("$") else f"{label} {i}"


def check(component: Component, background: Component | None) -> None:
    """Refuse names that stand for two things."""
    if not component.priors:
        raise ModelError("a component without parameters is the same however often it is there: give it priors.")
    taken = set(background.priors) if background is not None else set()
    for k in range(1, 10):
        twice = [name for block in blocks(component, k) for name in block if name in taken]
        if twice:
            raise ModelError(
                f"the background has a parameter {twice[0]!r}, and so is that of component {k} called: rename one of them."
            )
