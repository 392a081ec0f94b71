"""What each method pays in likelihood evaluations for the same answer (Sec. 3.2)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

from supermodel.comparing import compare
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.rao_blackwell import shares
from supermodel_paper import examples, nested_sampling
from supermodel_paper.figures import BLUE, GREEN, INK, ORANGE, RED, canvas, say
from supermodel_paper.reparametrisation import printed_fit
from supermodel_paper.runs import Runs, cost, ln_b21, shares_of_few
from supermodel_paper.table import Found, Ours, experiment, ours


class Bill(NamedTuple):
    """The evaluations that a method needs for an error of 0.1."""

    method: str
    needed: float
    colour: str


def _bill(method: str, estimate: Estimate, spent: int, colour: str) -> Bill:
    return Bill(method, spent * (estimate.error / 0.1) ** 2, colour)


@experiment
def costs(runs: Runs) -> Found:
    """What each method pays in likelihood evaluations for the same answer (D10)."""
    bills = [
        _bill(method, ln_b21(runs.read(name, estimator)), cost(runs[name]), colour)
        for name, estimator, method, colour in (
            ("linear", line_fit, "paper: f = α, line fit", RED),
            ("linear exp", printed_fit, "paper: f = e^α, fit", RED),
            ("linear", shares, "f = α, Rao-Blackwell", BLUE),
            ("linear tilt", shares, "tilted, Rao-Blackwell", BLUE),
            ("linear blend", shares_of_few, "combined model, Rao-Blackwell", BLUE),
        )
    ]
    numbers: dict[str, Any] = {}
    nested = nested_sampling.pair(runs, "linear")
    if nested is not None:
        value, calls = nested
        bills.append(_bill("nested sampling (dynesty)", value, calls, GREEN))
        numbers["nested"] = nested_sampling.theirs(value, calls)
        numbers["ratio"] = bills[0].needed / bills[-1].needed
    engine = {name: runs.job(f"compare, {name}", JOBS[f"compare, {name}"]) for name in ("linear", "sine")}
    numbers |= {
        "compare": engine.__getitem__,
        "needed": [Ours(b.needed, words={"method": b.method}) for b in bills],
        "spent": engine["linear"].evaluations,  # its error is already far below 0.1
    }
    return Found(numbers, {"costs": _figure([*bills, Bill("supermodel.compare", numbers["spent"], ORANGE)])})


def _compare(runs: Runs, example: str) -> Ours:
    """The engine's answer and its cost."""
    runs.log(f"supermodel.compare, {example}")
    models, seed = examples.models(example), runs.settings.seed
    result = compare(models, examples.data(example), seed=seed, target_error=0.02, progress=False)
    return ours(result.log_bayes_factor("M2", "M1"), evaluations=result.evaluations["likelihood"])


JOBS = {f"compare, {example}": partial(_compare, example=example) for example in ("linear", "sine")}


def _figure(bills: list[Bill]) -> Any:
    figure, ax = canvas(7.4, 3.8)
    for i, bill in enumerate(reversed(bills)):
        ax.plot([1e3, bill.needed], [i, i], color=bill.colour, linewidth=1.2, alpha=0.5)
        ax.plot(bill.needed, i, "o", color=bill.colour, markersize=7)
        say(ax, bill.needed * 1.5, i, power_of_ten(bill.needed), INK, fontsize=9)
    ax.set_yticks(range(len(bills)), [b.method for b in reversed(bills)])
    ax.set(xscale="log", xlabel="likelihood evaluations for σ(ln B₂₁) = 0.1")
    ax.set(xlim=(1e3, 2e10), ylim=(-0.6, len(bills) - 0.4))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return figure


def power_of_ten(x: float) -> str:
    """A number as digits times a power of ten.

    >>> power_of_ten(4.27e8)
    '4.3 × 10⁸'
    """
    if not math.isfinite(x):
        return "no answer"
    digits, _, exponent = f"{x:.1e}".partition("e")
    return f"{digits} × 10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
