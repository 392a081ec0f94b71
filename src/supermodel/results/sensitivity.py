r"""How ln B moves with a prior, read off the record: no likelihood is called again.

For a new prior $\pi'$ on some parameters of model k, with draws of its posterior of weights $w_i$,
$$\ln Z_k' - \ln Z_k = \ln \sum_i w_i \frac{\pi'(\theta_i)}{\pi(\theta_i)} .$$
The error adds the influence of every draw on this sum to its influence on $\ln Z_k$ itself, since both come from one
record. Weights whose tail is too heavy (Pareto k above 0.7) or that leave too few draws flag a point, and so does a
posterior that leans on an edge which the new prior moves outwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.error import influence_of, log_mean_exp, standard_error
from supermodel.estimation.estimate import Estimate
from supermodel.models.priors import as_prior
from supermodel.report.numbers import shown
from supermodel.report.scales import SIGMAS, Scale
from supermodel.report.scales import scale as chosen_scale
from supermodel.report.tables import Tex
from supermodel.results.rescaling import has_edges, is_cut_off, log_density, log_density_of_rescaled, rescaled
from supermodel.results.reweighting import HEAVY, reweighted
from supermodel.results.words import default_pair

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison

FEWEST = 30  # effective draws that must be left


class Range(NamedTuple):
    """Where a conclusion holds, and what ends it on either side: "grid", "conclusion" or "weights"."""

    low: float
    high: float
    low_end: str
    high_end: str


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """ln B(first : second) for a row of priors; `kind` is "scale", "shift" or "replace"."""

    parameter: str
    kind: str
    grid: np.ndarray  # (n,): scales or shifts; 0, 1, 2... where priors are replaced
    labels: tuple[str, ...]  # one for each point
    first: str
    second: str
    models: tuple[str, ...]  # whose prior is changed
    values: np.ndarray  # (n,)
    errors: np.ndarray  # (n,)
    pareto_k: np.ndarray  # (n,): the worst of the models changed
    effective_size: np.ndarray  # (n,)
    is_cut_off: np.ndarray  # (n,): the posterior leans on an edge that moves outwards
    original: Estimate  # with the priors of the run
    level: str  # of the verdict on this pair
    label: Tex | None = None  # of the parameter, for the axis

    @property
    def is_reliable(self) -> np.ndarray:
        """Where the weights carry the answer."""
        light = ~(self.pareto_k > HEAVY) & (self.effective_size >= FEWEST) & np.isfinite(self.values)
        return light & ~self.is_cut_off & (self.level in ("ok", "caution"))

    def estimate(self, point: int) -> Estimate:
        """ln B at one point of the grid."""
        return Estimate(float(self.values[point]), float(self.errors[point]))

    def holds(self, scale: str | Scale | Mapping[str, float] | None = None, sigmas: float = SIGMAS) -> Range:
        """The widest range about the original prior over which the conclusion stays.

        The conclusion is the sign of ln B (the whole interval of `sigmas` errors on its side), or with `scale` the
        bands that the original interval touches. Points whose weights fail end the range: nothing is known beyond them.
        """
        if self.kind == "replace":
            raise SupermodelError("a range needs scales or shifts; priors that were replaced have no order.")
        start = int(np.argmin(np.abs(np.log(self.grid) if self.kind == "scale" else self.grid)))
        if not self._agrees(start, scale, sigmas) or not self.is_reliable[start]:
            return Range(float(self.grid[start]), float(self.grid[start]), *(2 * ("conclusion",)))

        def walk(step: int) -> tuple[float, str]:
            i = start
            while 0 <= i + step < len(self.grid):
                if not self.is_reliable[i + step]:
                    return float(self.grid[i]), "weights"
                if not self._agrees(i + step, scale, sigmas):
                    return float(self.grid[i]), "conclusion"
                i += step
            return float(self.grid[i]), "grid"

        (low, low_end), (high, high_end) = walk(-1), walk(+1)
        return Range(low, high, low_end, high_end)

    def _agrees(self, point: int, scale: Any, sigmas: float) -> bool:
        low, high = self.estimate(point).interval(sigmas)
        side = np.sign(self.original.value)
        if not (low * side > 0 and high * side > 0):
            return False
        if scale is None:
            return True
        words = chosen_scale(scale)
        return set(words.touched(self.estimate(point), sigmas)) <= set(words.touched(self.original, sigmas))

    def sentence(self) -> str:
        """The finding in words."""
        if self.level not in ("ok", "caution"):
            who = f"ln B({self.first} : {self.second})"
            return f"The verdict on {who} is {self.level!r}, so nothing can be said of its sensitivity to priors."
        who = self.first if self.original.value >= 0 else self.second
        if self.kind == "replace":
            inside = [f"{label}: {shown(self.estimate(i))}" for i, label in enumerate(self.labels)]
            return (
                f"ln B({self.first} : {self.second}) with another prior of {self.parameter}: " + "; ".join(inside) + "."
            )
        found = self.holds()
        unit = " times its width" if self.kind == "scale" else ""
        if found.low == found.high:
            return f"The preference for {who} is not settled at the prior of the run, so no range can be given."
        reasons = {
            "grid": "the end of the grid",
            "conclusion": "beyond it the preference is gone or not settled",
            "weights": "beyond it the draws cannot tell",
        }
        return (
            f"The preference for {who} holds for a prior of {self.parameter} from {found.low:.3g} "
            f"({reasons[found.low_end]}) to {found.high:.3g}{unit} ({reasons[found.high_end]})."
        )

    def __str__(self) -> str:
        head = f"ln B({self.first} : {self.second}) against the prior of {self.parameter} ({self.kind})"
        lines = [
            f"  {label:>12}  {shown(self.estimate(i)):>20}  k {self.pareto_k[i]:5.2f}"
            + ("" if self.is_reliable[i] else "  not reliable")
            for i, label in enumerate(self.labels)
        ]
        return "\n".join([head, *lines, self.sentence()])

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """The curve with its band; returns the Axes."""
        from supermodel.report.plots import sensitivity

        return sensitivity(self, ax=ax)


def sensitivity(
    result: Comparison,
    parameter: str,
    scales: Any = None,
    *,
    shifts: Any = None,
    replace: Any = None,
    pair: tuple[str, str] | None = None,
    models: Sequence[str] | None = None,
) -> Sensitivity:
    """See `Comparison.sensitivity`."""
    owners = tuple(n for n in result.names if parameter in result.priors.get(n, {}))
    if not owners:
        known = sorted({p for priors in result.priors.values() for p in priors})
        raise SupermodelError(f"no model has a parameter {parameter!r}; parameters are {', '.join(known) or 'none'}.")
    for name in models or ():
        if name not in owners:
            raise SupermodelError(
                f"model {name!r} has no parameter {parameter!r}; those that have it: {', '.join(owners)}."
            )
    changed = tuple(models) if models is not None else owners
    if sum(given is not None for given in (scales, shifts, replace)) > 1:
        raise SupermodelError(
            "give one of `scales`, `shifts` and `replace`; to change two things at once use `replace`."
        )
    first, second = default_pair(result, *pair) if pair is not None else _natural_pair(result, changed)
    moving = [name for name in changed if name in (first, second)]
    if replace is not None:
        kind, grid, labels, ratios, cut = _replaced(result, parameter, replace, moving)
    else:
        kind = "scale" if shifts is None else "shift"
        default = np.geomspace(0.2, 5.0, 33) if scales is None else scales
        grid = np.sort(np.atleast_1d(np.asarray(default if shifts is None else shifts, float)))
        labels = tuple(f"× {s:.4g}" if kind == "scale" else f"{s:+.4g}" for s in grid)
        ratios, cut = _rescaled(result, parameter, kind, grid, moving)
    error = _JointError(result, (first, second))
    columns = list(zip(*(_at(error, {n: r[i] for n, r in ratios.items()}) for i in range(len(grid))), strict=True))
    values, errors, k, left = (np.array(column) for column in columns)
    return Sensitivity(
        parameter, kind, grid, labels, first, second, changed, values, errors, k, left, cut,
        result.log_bayes_factor(first, second), result.verdict_between(first, second).level, result.name_of(parameter),
    )  # fmt: skip


Ratios = dict[str, np.ndarray]  # {model: (points, draws)}: ln of new over old prior density


def _replaced(result: Comparison, parameter: str, replace: Any, moving: list[str]):
    choices = dict(replace) if isinstance(replace, Mapping) else {"": replace}
    priors = [as_prior(parameter, d) for d in choices.values()]
    labels = tuple(label or prior.description for label, prior in zip(choices, priors, strict=True))
    ratios, cut = {}, np.zeros(len(priors), bool)
    for name in moving:
        # The prior is one of all images: of a model that was sampled in one labelling, it changes for each of them.
        old, posterior = result.priors[name][parameter], result.posteriors[name].unfolded()
        values = posterior.parameters[parameter]
        ratios[name] = _minus(np.stack([log_density(prior, values) for prior in priors]), log_density(old, values))
        cut |= [is_cut_off(old, prior, values, posterior.weights) for prior in priors]
    return "replace", np.arange(len(priors), dtype=float), labels, ratios, cut


def _rescaled(
    result: Comparison, parameter: str, kind: str, grid: np.ndarray, moving: list[str]
) -> tuple[Ratios, np.ndarray]:
    ratios, cut = {}, np.zeros(len(grid), bool)
    if not np.all(np.isfinite(grid)) or (kind == "scale" and not np.all(grid > 0)):
        raise SupermodelError(f"a prior is scaled by positive numbers and shifted by finite ones; got {grid.tolist()}.")
    for name in moving:
        # The prior is one of all images: of a model that was sampled in one labelling, it changes for each of them.
        old, posterior = result.priors[name][parameter], result.posteriors[name].unfolded()
        values = posterior.parameters[parameter]
        ratios[name] = _minus(log_density_of_rescaled(parameter, old, kind, grid, values), log_density(old, values))
        if has_edges(old):
            for i, x in enumerate(grid):
                new = rescaled(parameter, old, *((float(x),) if kind == "scale" else (1.0, float(x))))
                cut[i] |= is_cut_off(old, new, values, posterior.weights)
    return ratios, cut


def _minus(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """new - old, and 0 for draws that the old prior forbids: they have no weight, and -inf - (-inf) no value."""
    allowed = np.isfinite(old)
    return np.where(allowed, new - np.where(allowed, old, 0.0), 0.0)


def _natural_pair(result: Comparison, changed: tuple[str, ...]) -> tuple[str, str]:
    """The best model whose prior changes against the best whose prior stays, or the best two if all change."""
    if len(result.names) < 2:
        raise SupermodelError("prior sensitivity of ln B needs two models; this result holds one.")
    moving = [n for n in result.ranking if n in changed]
    staying = [n for n in result.ranking if n not in changed]
    if not staying:
        return result.ranking[0], result.ranking[1]
    first, second = moving[0], staying[0]
    return (first, second) if result.ranking.index(first) < result.ranking.index(second) else (second, first)


def _at(error: _JointError, ratios: Mapping[str, np.ndarray]) -> tuple[float, float, float, float]:
    """(ln B, its error, Pareto k, effective draws) when the priors of some models change by the given ratios."""
    result, (first, second) = error.result, error.pair
    moved = {name: reweighted(result.posteriors[name].log_weights, ratio) for name, ratio in ratios.items()}
    value = result.log_bayes_factor(first, second).value
    value += (moved[first].log_mean if first in moved else 0.0) - (moved[second].log_mean if second in moved else 0.0)
    k = max((m.pareto_k for m in moved.values()), default=0.0)
    left = min((m.effective_size for m in moved.values()), default=np.inf)
    return value, error.after({name: m.weights for name, m in moved.items()}), max(k, 0.0), left


class _JointError:
    """The error of ln B when priors change: a draw moves the run's own estimate and the correction to it together."""

    def __init__(self, result: Comparison, pair: tuple[str, str]):
        self.result, self.pair = result, pair
        # The paper's chain is one record, of ln B itself; the engine's edges are several, each with its sign.
        self.signs = [1.0] if result.chain is not None else result.path(*pair)
        self.influence = cache(self._influence)

    def _influence(self, e: int) -> np.ndarray:
        """(chains, draws): of each draw of a record on the record's own ln B."""
        chain = self.result.chain
        if chain is not None:
            terms = chain.log_shares[..., [chain.names.index(name) for name in self.pair]]
            first, second = np.moveaxis(influence_of(terms, log_mean_exp(terms)), -1, 0)
            return first - second
        influence = self.result.edges[e].ends().influence
        return influence[..., 0] - influence[..., 1]

    def _claimed(self, e: int) -> float:
        """The error that the run itself states of a record's ln B."""
        if self.result.chain is not None:
            return self.result.log_bayes_factor(*self.pair).error
        return max(float(self.result.edges[e].report.get("error", 0.0)), 0.0)

    def after(self, weights: Mapping[str, np.ndarray]) -> float:
        """With these new weights of the posteriors' draws."""
        loose = 0.0  # variance of moves whose draws belong to no record
        moved: dict[int, np.ndarray] = {}
        for name, new in weights.items():
            posterior, e = self.result.posteriors[name], self.result.posteriors[name].record
            move = (1.0 if name == self.pair[0] else -1.0) * len(new) * (new - posterior.weights)
            if self.signs is None or not 0 <= e < len(self.signs):
                loose += standard_error(move.reshape(posterior.n_chains, -1)) ** 2
            else:
                moved[e] = moved.get(e, 0.0) + move.reshape(self.influence(e).shape)
        if self.signs is None:
            return float(np.sqrt(self.result.log_bayes_factor(*self.pair).error ** 2 + loose))
        variance = loose
        for e, sign in enumerate(self.signs):
            own = self._claimed(e) if sign else 0.0
            if e in moved:
                joint = sign * self.influence(e) + moved[e]
                # Never below what the run itself claims: that holds whatever the new prior.
                variance += max(standard_error(joint), own) ** 2 if np.all(np.isfinite(joint)) else np.inf
            else:
                variance += own**2
        return float(np.sqrt(variance))
