r"""What each component of the most probable number contributes to the prediction, over draws of the posterior.

At the data $\mu(x) = b(x) + \sum_i g_i(x)$, on a fine grid between them, and over one turn of a component's period.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.counting.component import Combined
from supermodel.counting.found import labelled
from supermodel.errors import DataError, SupermodelError
from supermodel.jax_scope import in_float64
from supermodel.models.noise import Binomial, Poisson, columns_of, quantity
from supermodel.report.tables import weighted_quantiles
from supermodel.results.averaging import each_draw

if TYPE_CHECKING:
    from supermodel.counting.result import Count

DRAWS, FEWEST = 300, 50
ROOM = 2e7  # numbers that are held at once: of more, fewer draws are taken
FINE, PER_GAP, PER_PERIOD = 400, 4, 24  # points of the grid: on the whole, between two data, in one period
DENSE = 500  # data, more than which are their own grid
CYCLES = 60  # in the range of the data, more than which no curve can be seen
PHASES = 200
LOCAL, SHARE, WIDEST = 0.05, 0.95, 0.6  # of a peak, where it is over; of its variation; of the range, for a close look
MARGIN, NEAR = 0.75, 12  # beside a close look, of its width; data in it, at least

Values = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Curves:
    """Draws of what is predicted at m places, in the units of the data."""

    x: np.ndarray  # (m,)
    whole: np.ndarray | None  # (n, m); None where it depends on further columns, which are known at the data only
    background: np.ndarray | None  # (n, m); None where there is none, or where the parts do not add up
    parts: tuple[np.ndarray, ...]  # of each component (n, m); () where they do not add up


@dataclass(frozen=True, eq=False)
class Contributions:
    """The data, what is predicted of them, and what each component adds."""

    axis: str  # the column that pictures are drawn over
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray | None  # of each datum, by the noise of the model
    adds_up: bool  # whether the components add up in the units of the data
    at_data: Curves
    on_grid: Curves | None
    periods: tuple[tuple[float, float], ...]  # (median, sd) of each component's period; () without
    turns: tuple[np.ndarray | None, ...]  # of each (n, PHASES) over one period, from the middle of the data on

    @property
    def mean(self) -> np.ndarray:
        """The mean prediction of each datum."""
        assert self.at_data.whole is not None  # at the data everything is known
        return self.at_data.whole.mean(axis=0)

    @property
    def left(self) -> np.ndarray:
        """What the mean prediction leaves of each datum."""
        return self.y - self.mean

    def alone(self, i: int) -> np.ndarray:
        """The data without the background and without all components but the i-th, counted from 0."""
        return self.left + self.at_data.parts[i].mean(axis=0)

    def is_folded(self, i: int) -> bool:
        """Whether the i-th component comes round within the data."""
        return bool(self.periods) and 0 < self.periods[i][0] < np.ptp(self.x)

    def phase(self, i: int) -> np.ndarray:
        """Where in the period of the i-th component each datum lies, from 0 to 1."""
        return np.mod((self.x - middle(self.x)) / self.periods[i][0], 1.0)

    def window(self, i: int) -> tuple[float, float] | None:
        """Where the i-th component lives, with a margin; None where that is most of the range, or reaches to its ends."""
        curves = self.at_data if self.on_grid is None else self.on_grid
        order = np.argsort(curves.x)
        x, c = curves.x[order], curves.parts[i].mean(axis=0)[order]
        low, high = x[0], x[-1]
        change = np.abs(np.diff(c))
        if not change.sum() > 0 or max(abs(c[0]), abs(c[-1])) > LOCAL * np.abs(c).max():
            return None
        reached = np.concatenate([[0.0], np.cumsum(change)]) / change.sum()
        ends = np.interp([0.5 - 0.5 * SHARE, 0.5 + 0.5 * SHARE], reached, x)
        if ends[1] - ends[0] >= WIDEST * (high - low):
            return None
        pad = MARGIN * (ends[1] - ends[0])
        while np.sum((self.x >= ends[0] - pad) & (self.x <= ends[1] + pad)) < min(NEAR, len(self.x)):
            pad = 1.5 * pad + 1e-3 * (high - low)
        return max(ends[0] - pad, low), min(ends[1] + pad, high)


def middle(x: np.ndarray) -> float:
    """From where phases are counted: there they are known best."""
    return float(0.5 * (x.min() + x.max()))


@in_float64
def contributions(result: Count) -> Contributions:
    """What the components of the most probable number add, or why that is not known."""
    name, k = result.names[result.best], result.best
    combined, model = _combined(result, name), result.comparison.models[name]  # type: ignore[index]
    data = result.comparison.data
    if not isinstance(data, Mapping) or np.ndim(data.get("y", [[]])) != 1:
        raise DataError('a picture of data with what was found needs a one-dimensional column "y" of the data.')
    own, rest = _read(combined.part, model.noise, data), _read(combined.rest, model.noise, data)
    axis = _axis(own, rest, data, combined.called)
    x, y = np.asarray(data[axis], float), np.asarray(data["y"], float)
    adds_up = combined.combine is None and not _is_linked(model.noise)
    size = min(DRAWS, max(FEWEST, int(ROOM / ((k + 2) * max(len(y), 1)))))
    drawn, periods, each = _drawn(result, name, k, size)

    def to_data(mean: Any, at: Mapping[str, Any]) -> Any:
        return _in_units(model.noise, mean, at)

    at_data = _curves(combined, k, drawn, size, data, x, to_data, adds_up, True)
    means = {p: result.posterior().average(v) for p, v in result.posterior().parameters.items()}
    error = _error(model.noise, means, data, at_data.whole.mean(axis=0))  # type: ignore[union-attr]
    on_grid, turns = None, tuple[np.ndarray | None, ...](None for _ in range(k))
    grid = _grid(x, [p for p, _ in periods])
    if grid is not None and own <= {axis}:
        at = {**data, axis: grid}
        try:
            on_grid = _curves(combined, k, drawn, size, at, grid, to_data, adds_up, rest <= {axis})
        except Exception:  # what the user wrote is bound to the places of the data: nothing is drawn between them
            on_grid = None
    if adds_up and periods and own <= {axis}:
        try:
            turns = tuple(_turn(combined, drawn, i, each[i], size, data, axis, middle(x)) for i in range(k))
        except Exception:  # the same
            pass
    return Contributions(axis, x, y, error, adds_up, at_data, on_grid, periods, turns)


def _combined(result: Count, name: str) -> Combined:
    """The prediction of the model, which knows its parts."""
    models, called = result.comparison.models, result.asked["component"]
    if models is None:
        raise SupermodelError(
            f"what each {called} contributes is told by the models, and a file holds none. Load with load(path, models={{...}})."
        )
    predict = models[name].predict
    if not isinstance(predict, Combined):
        raise SupermodelError(
            f"the {called}s were counted by a `log_likelihood`, which predicts no data: there is nothing to draw beside them. Give "
            "the component a `predict`, and `count` a `noise`."
        )
    return predict


# -- over which column ------------------------------------------------------------------------------------------------


def _read(model: Any, noise: Any, data: Mapping[str, Any]) -> set[str]:
    """The columns of numbers, one for each datum, that a prediction reads; one that gets the data whole may read all."""
    rows = {
        name for name, values in data.items()
        if name != "y" and np.shape(values) == np.shape(data["y"]) and np.asarray(values).dtype.kind in "biufU"
    }  # fmt: skip
    if model is None or model.predict is None:
        return set()
    read = model.predicts_from(data)
    of_noise = {part for part in columns_of(noise) if isinstance(part, str)} | {"sigma", "error"}
    return rows - of_noise if read is None else rows & read


def _axis(own: set[str], rest: set[str], data: Mapping[str, Any], called: str) -> str:
    known = {name for name in own or rest if np.asarray(data[name]).dtype.kind != "U"}
    if "x" in known or not known and "x" in data and np.shape(data["x"]) == np.shape(data["y"]):
        return "x"
    if len(known) != 1:
        raise DataError(
            f"a picture of data with what was found is drawn over one column: the one that each {called} is predicted from, or "
            f'"x" if there are several. The {called} reads {", ".join(sorted(known)) or "no column"}.'
        )
    return known.pop()


def _grid(x: np.ndarray, periods: list[float]) -> np.ndarray | None:
    """Places for a curve that misses nothing that the data can resolve; None where periods are too short for one."""
    low, high = float(x.min()), float(x.max())
    pad = 0.02 * (high - low)
    cycles = max(((high - low) / p for p in periods if p > 0), default=0.0)
    if not high > low or cycles > CYCLES:
        return None
    even = np.linspace(low - pad, high + pad, max(FINE, int(PER_PERIOD * cycles)))
    data = np.unique(x)
    if len(data) <= DENSE:
        data = np.interp(np.arange(0, len(data) - 1 + 1e-9, 1 / PER_GAP), np.arange(len(data)), data)
    return np.unique(np.concatenate([even, data]))


# -- draws of the prediction ------------------------------------------------------------------------------------------


def _drawn(
    result: Count, name: str, k: int, size: int
) -> tuple[Values, tuple[tuple[float, float], ...], list[np.ndarray]]:
    """Equally weighted draws, components in the order of `result.components`; their periods, and those of each draw."""
    posterior = result.posterior(result.best)
    rows, own = posterior.rows(size), list(result.asked["parameters"])
    of_parts = {result.parameters(i)[p] for i in range(1, k + 1) for p in own}
    values = {f"of all {p}": v[rows] for p, v in posterior.parameters.items() if p not in of_parts}
    if k == 0:
        return values, (), []
    components = labelled(posterior, own, k, str(result.components.by))
    values |= {f"of each {p}": v[rows] for p, v in components.items()}
    period = result.asked.get("period") if result.component is None else result.component.period
    if period is None:
        return values, (), []
    found = [_period({p: v[:, i] for p, v in components.items()}, period) for i in range(k)]
    w = posterior.weights
    told = [(float(weighted_quantiles(v, w, (0.5,))[0]), float(np.sqrt(w @ (v - w @ v) ** 2))) for v in found]
    return values, tuple(told), [v[rows] for v in found]


def _period(draws: Values, period: Any) -> np.ndarray:
    values = draws[period] if isinstance(period, str) else period(draws)
    return np.broadcast_to(np.asarray(values, float), (len(next(iter(draws.values()))),))


def _of_background(v: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("of all "): value for name, value in v.items() if name.startswith("of all ")}


def _of_part(v: Mapping[str, Any], i: int) -> dict[str, Any]:
    return {name.removeprefix("of each "): value[i] for name, value in v.items() if name.startswith("of each ")}


def _curves(
    combined: Combined, k: int, drawn: Values, size: int, data: Mapping[str, Any], x: np.ndarray,
    to_data: Callable[[Any, Mapping[str, Any]], Any], adds_up: bool, with_background: bool,
) -> Curves:  # fmt: skip
    """Whole, background and parts at the places `x` of `data`; with `with_background` off the parts alone."""
    has_background = with_background and combined.rest is not None and combined.rest.predict is not None

    def all_of_it(v: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        parts = [combined.part.prediction(_of_part(v, i), data) for i in range(k)]
        found = [] if not adds_up else list(parts)
        if with_background:
            # Not `combined.behind`, which holds shapes to those of the data.
            rest: Any = 0.0
            if combined.rest is not None and has_background:
                names = combined.rest.space.names
                rest = combined.rest.prediction(
                    {n: value for n, value in _of_background(v).items() if n in names}, data
                )
            found += [to_data(combined.of(rest, parts), data), rest if adds_up else 0.0]
        return jnp.concatenate([jnp.broadcast_to(jnp.ravel(jnp.asarray(each, float)), x.shape) for each in found])

    if not (adds_up and k or with_background):
        return Curves(x, None, None, ())
    stacked = each_draw(all_of_it, drawn, size).reshape(size, -1, len(x))
    parts = tuple(stacked[:, i] for i in range(k)) if adds_up else ()
    whole = stacked[:, len(parts)] if with_background else None
    return Curves(x, whole, stacked[:, len(parts) + 1] if has_background and adds_up else None, parts)


def _turn(
    combined: Combined, drawn: Values, i: int, periods: np.ndarray, size: int, data: Mapping[str, Any], axis: str, start: float
) -> np.ndarray:  # fmt: skip
    """(n, PHASES): one component over one period, each draw over its own."""
    places = start + periods[:, None] * np.linspace(0, 1, PHASES)

    def one(v: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        found = combined.part.prediction(_of_part(v, i), {**data, axis: v["places"]})
        return jnp.broadcast_to(jnp.ravel(jnp.asarray(found, float)), (PHASES,))

    return each_draw(one, drawn | {"places": places}, size)


# -- the noise --------------------------------------------------------------------------------------------------------


def _is_linked(noise: Any) -> bool:
    """Whether a prediction is no mean of the data, so that its parts are none of it."""
    return isinstance(noise, Binomial) or getattr(noise, "link", "identity") == "log"


def _in_units(noise: Any, mean: Any, data: Mapping[str, Any]) -> Any:
    """A prediction in the units of the data."""
    import jax.numpy as jnp
    from jax.nn import sigmoid

    if isinstance(noise, Binomial):
        trials = quantity(noise.trials, "trials", data)
        return trials * (sigmoid(jnp.asarray(mean, float)) if noise.link == "logit" else mean)
    return jnp.exp(mean) if _is_linked(noise) else mean


def _error(noise: Any, values: Mapping[str, Any], data: Mapping[str, Any], mean: np.ndarray) -> np.ndarray | None:
    """The error of each datum, at the mean of what is fitted of the noise; of counts the root of the prediction."""
    known = {**values, **data}
    if isinstance(noise, Poisson):
        found: Any = np.sqrt(np.maximum(mean, 0.0))
    elif isinstance(noise, Binomial):
        trials = np.asarray(quantity(noise.trials, "trials", known), float)
        found = np.sqrt(np.maximum(mean * (1 - mean / trials), 0.0))
    elif hasattr(noise, "scale"):
        found = noise.scale(known)
    elif hasattr(noise, "sigma"):
        found = quantity(noise.sigma, "sigma", known)
    else:
        found = next((data[name] for name in ("error", "sigma") if name in data), None)
    return None if found is None else np.broadcast_to(np.asarray(found, float), mean.shape)
