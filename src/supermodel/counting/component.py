r"""A component, which may be there any number of times, and the model of k of them.

$\mu(x) = b(x; \beta) + \sum_{i=1}^k g(x; \theta_i)$: every $\theta_i$ has the prior of the component, so that the k blocks are
exchangeable. Another rule than the sum, or a likelihood of its own, can be given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supermodel.errors import ModelError
from supermodel.models.model import Model


@dataclass(frozen=True, eq=False)
class Component:
    """The priors of one component's parameters, and what it predicts: `predict(p, x)`, its columns by name as for a `Model`."""

    priors: Mapping[str, Any]
    predict: Callable[..., Any] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self.alone  # noqa: B018: what is wrong is told here

    @property
    def alone(self) -> Model:
        """The component as a model, which checks its priors and knows which columns it reads."""
        given = {"predict": self.predict} if self.predict is not None else {"log_likelihood": _nothing}
        return Model(self.priors, **given, labels=self.labels, units=self.units)


def _nothing(p: Any, data: Any = None) -> float:
    return 0.0


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

    def __call__(self, p: Mapping[str, Any], data: Any) -> Any:
        return self.of(self.behind(p, data), self.parts(p, data))

    def behind(self, p: Mapping[str, Any], data: Any) -> Any:
        """What the background predicts; 0 without one."""
        if self.rest is None or self.rest.predict is None:
            return 0.0
        return self.rest.prediction({name: p[name] for name in self.rest.space.names}, data)

    def parts(self, p: Mapping[str, Any], data: Any) -> list[Any]:
        """What each component predicts."""
        return [
            self.part.prediction({name: p[numbered(name, i)] for name in self.names}, data)
            for i in range(1, self.k + 1)
        ]

    def of(self, background: Any, parts: Sequence[Any]) -> Any:
        """The parts as one."""
        return sum(parts, background) if self.combine is None else self.combine(background, list(parts))


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
    labels, units = (_told(component, background, named, what) for what in ("labels", "units"))
    given: dict[str, Any] = {"labels": labels, "units": units, "exchangeable": _exchangeable(named, combine, log_likelihood)}
    if log_likelihood is not None:
        return Model(priors, Stacked(component, k, background, log_likelihood), vectorized=vectorized, **given)
    return Model(priors, predict=Combined(component, k, background, combine), noise=noise, **given)


def _exchangeable(named: list[tuple[str, ...]], combine: Any, log_likelihood: Any) -> Any:
    """A sum has no order; of what else a user wrote it is asked."""
    return named if len(named) > 1 and named[0] and combine is None and log_likelihood is None else None


def _told(component: Component, background: Component | None, named: Iterable[tuple[str, ...]], what: str) -> dict[str, str]:
    own = {} if background is None else dict(getattr(background, what))
    each = getattr(component, what)
    return own | {
        name: _with_number(each[of], i)
        for i, block in enumerate(named, start=1)
        for name, of in zip(block, component.priors, strict=True)
        if of in each
    } if what == "labels" else own | {
        name: each[of] for block in named for name, of in zip(block, component.priors, strict=True) if of in each
    }  # fmt: skip


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
