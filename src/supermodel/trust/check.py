"""The mistakes that users make, looked for before they matter: `check(models)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.comparing import compare
from supermodel.embedding.supermodel import check_models
from supermodel.errors import SupermodelError
from supermodel.jax_scope import in_float64
from supermodel.models.columns import as_columns
from supermodel.models.joint import Joint
from supermodel.models.model import Model
from supermodel.models.priors import Prior
from supermodel.models.unread import unread
from supermodel.results.comparison import Comparison


@dataclass(frozen=True)
class Finding:
    """One question and its answer: passed, failed, or not answerable (None)."""

    question: str
    passed: bool | None
    sentence: str


@dataclass(frozen=True)
class Checkup:
    """All findings of `check`."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return all(f.passed is not False for f in self.findings)

    def __str__(self) -> str:
        marks = {True: "ok  ", False: "FAIL", None: "  - "}
        return "\n".join(f"{marks[f.passed]} {f.question}: {f.sentence}" for f in self.findings)

    __repr__ = __str__


def check(
    models: Mapping[str, Model] | Comparison, data: Any = None, *, seed: int = 0, target_error: float = 0.1
) -> Checkup:
    """Ask of every model what a referee would: are its priors normalised, does its likelihood keep its constants, is it a
    logarithm and does it read every parameter, does the machinery give 0 for the same model twice, and does the order of the
    models matter?

    Given a result, ask it of the models and data that made it. The likelihoods are called anew.
    """
    if isinstance(models, Comparison):
        result, data = models, models.data if data is None else data
        if result.models is None:
            raise SupermodelError("a result from a file has no models to test; give them: check(models, data).")
        models = result.models
    check_models(models, least=1)
    data = as_columns(data)
    findings: list[Finding] = []
    for name, model in models.items():
        findings.append(_priors(name, model))
        findings.append(_constants(name, model, data))
        findings += _draws(name, model, data)
        findings.append(_twice(name, model, data, seed, target_error))
    if len(models) > 1:
        findings.append(_swapped(models, data, seed, target_error))
    return Checkup(tuple(findings))


@in_float64
def _priors(name: str, model: Model) -> Finding:
    question = f"the priors of {name!r} integrate to one"
    totals = {
        p: _total(prior) for p, prior in model.priors.items() if prior.size == 1 and hasattr(prior, "log_density_at")
    }
    wrong = {p: t for p, t in totals.items() if not abs(t - 1) < 1e-3}
    if wrong:
        return Finding(question, False, "; ".join(f"{p} integrates to {t:.4g}" for p, t in wrong.items()))
    if not totals:
        return Finding(question, None, "no scalar prior to integrate")
    return Finding(question, True, f"{len(totals)} of {len(model.priors)} integrated, all within 0.001")


def _total(prior: Prior) -> float:
    """Integral of a scalar prior over its unconstrained coordinate, on a grid stretched to reach heavy tails."""
    t = np.linspace(-14, 14, 20_001)
    grid = np.sinh(t)
    try:
        density = np.exp(prior.log_density_at(grid[:, None]))
    except Exception:  # a site of a joint prior has no density of its own
        return 1.0
    return float(np.trapezoid(np.nan_to_num(density) * np.cosh(t), t))


@in_float64
def _constants(name: str, model: Model, data: Any) -> Finding:
    """For one datum the likelihood, integrated over what might have been observed, must be 1."""
    question = f"the likelihood of {name!r} keeps its constants"
    if not isinstance(data, Mapping) or "y" not in data:
        return Finding(question, None, 'needs data={"y": ...} to try other observations; not checked')
    y = np.asarray(data["y"], float)
    one = {k: np.asarray(v)[:1] if np.shape(v)[:1] == y.shape[:1] else v for k, v in data.items()}
    joint = Joint(name, model, one)
    values = joint.space.values_at(joint.space.sample_prior(np.random.default_rng(0), 1))
    point = {p: v[0] for p, v in values.items()}

    def density(observed: float) -> float:
        return float(np.exp(np.asarray(model.log_likelihood(point, {**one, "y": np.array([observed])}))))

    try:
        total = _integral(density, y)
    except Exception as error:
        return Finding(question, None, f"could not be tried with one datum ({type(error).__name__}); not checked")
    if abs(total - 1) < 0.02:
        return Finding(question, True, f"integrates to {total:.3f} over one datum")
    return Finding(
        question, False,
        f"integrates to {total:.4g} over one datum, not to 1: a constant is missing (2 pi? sigma? a binomial coefficient?). "
        "It cancels only if every model drops the same one.",
    )  # fmt: skip


def _integral(density, y: np.ndarray) -> float:
    """Over the real line for measured data, as a sum for counts."""
    if np.all(y == np.round(y)) and np.all(y >= 0) and y.max() > 1:
        return sum(density(float(k)) for k in range(int(20 * y.max()) + 50))
    from scipy.integrate import quad

    centre, width = float(np.median(y)), float(np.ptp(y)) or 1.0
    best = max(np.linspace(centre - 20 * width, centre + 20 * width, 4001), key=density)
    pieces = [best + width * s for s in (-1e3, -30, -3, -0.3, -0.03, 0, 0.03, 0.3, 3, 30, 1e3)]
    return float(sum(quad(density, a, b, limit=200)[0] for a, b in zip(pieces, pieces[1:], strict=False)))


N_DRAWS = 256  # of the prior: likelihood calls that a check may take beside its comparisons
TINY = 1e-3  # of the highest: more than half of all ln L between 0 and that are densities, not their logarithms
VANISHING = (
    1e-9  # of the highest: none of them is below 0 and one is this near it, which sums of log densities never are
)


@in_float64
def _draws(name: str, model: Model, data: Any) -> list[Finding]:
    """What prior draws tell of a likelihood: whether it reads every parameter, and whether it looks like a logarithm."""
    joint = Joint(name, model, data)
    points, values = joint.probe(np.random.default_rng(0), N_DRAWS)
    names, unused = joint.space.names, unread(joint, points, values, joint.log_likelihood_at)
    read = f"ln L depends on all of {', '.join(names)}" if names else "there are no parameters"
    if unused:
        read = f"ln L does not depend on {' and '.join(unused)}: is a name misspelt, in the prior or in the likelihood?"
    question = f"the likelihood of {name!r} reads every parameter"
    return [Finding(question, not unused if names else None, read), _logarithm(name, values)]


def _logarithm(name: str, values: np.ndarray) -> Finding:
    """A likelihood is never below 0, and tiny almost everywhere, where its logarithm would be far below 0.

    Above 1 (a narrow density can be) only values that vanish beside the highest tell, for a count or a fit may have ln L > 0.
    """
    question = f"the likelihood of {name!r} is a logarithm"
    seen = values[np.isfinite(values)]
    low, high = float(seen.min()), float(seen.max())
    told = f"between {low:.3g} and {high:.3g} at {len(seen)} prior draws"
    if low < 0 or low == high or (high > 1 and low > VANISHING * high):
        return Finding(question, True, told)
    advice = "as densities are and their logarithms hardly ever. Return ln L, the sum of the log densities of the data, not L"
    return Finding(question, False if np.median(seen) < TINY * high else None, f"{told}, {advice}")


def _twice(name: str, model: Model, data: Any, seed: int, target_error: float) -> Finding:
    question = f"{name!r} against itself gives ln B = 0"
    result = compare({name: model, f"{name} again": model}, data, seed=seed, target_error=target_error, progress=False)
    estimate = result.log_bayes_factor(name, f"{name} again")
    passed = abs(estimate.value) < 4 * estimate.error and result.verdict.is_reliable
    return Finding(question, passed, f"{estimate}, verdict {result.verdict.level}")


def _swapped(models: Mapping[str, Model], data: Any, seed: int, target_error: float) -> Finding:
    first, second = list(models)[:2]
    pair = {first: models[first], second: models[second]}
    a = compare(pair, data, seed=seed, target_error=target_error, progress=False)
    b = compare(dict(reversed(pair.items())), data, seed=seed, target_error=target_error, progress=False)
    x, y = a.log_bayes_factor(first, second), b.log_bayes_factor(second, first)
    return Finding(
        f"swapping {first!r} and {second!r} flips the sign", x.value == -y.value, f"{x} and {y}"
    )  # fmt: skip
