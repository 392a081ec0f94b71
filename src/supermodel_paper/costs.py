"""What each method pays in likelihood evaluations for the same answer (Sec. 3.2)."""

from __future__ import annotations

import math

from supermodel.comparing import compare
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.rao_blackwell import shares
from supermodel_paper import examples, nested_sampling
from supermodel_paper.combined_model import few
from supermodel_paper.examples import LINEAR, SINE
from supermodel_paper.figures import BLUE, GREEN, INK, ORANGE, RED, canvas, say
from supermodel_paper.numbers import Number, Part, Picture, Quoted, measured
from supermodel_paper.runs import Runs, cost


def costs(runs: Runs) -> Part:
    """What each method pays in likelihood evaluations for the same answer (D10)."""
    rows: list[tuple[str, Estimate, int, str]] = []
    for name, estimator, label in (
        ("linear", line_fit, "paper: f = α, line fit"),
        ("linear exp", line_fit, "paper: f = e^α, fit"),
        ("linear", shares, "f = α, Rao-Blackwell"),
        ("linear tilt", shares, "tilted, Rao-Blackwell"),
        ("linear blend", None, "combined model, Rao-Blackwell"),
    ):
        if estimator is None:
            draws = runs[name]
            rows.append((label, shares(few(draws)).log_bayes_factor("M2", "M1"), cost(draws), BLUE))
        else:
            draws = runs[name]
            rows.append(
                (
                    label,
                    estimator(draws).log_bayes_factor("M2", "M1"),
                    cost(draws),
                    RED if label.startswith("paper") else BLUE,
                )
            )
    numbers = []
    nested = nested_sampling.linear(runs)
    if nested is not None:
        value = Estimate(
            nested["M2"].log_evidence.value - nested["M1"].log_evidence.value,
            math.hypot(nested["M1"].log_evidence.error, nested["M2"].log_evidence.error),
        )
        calls = nested["M1"].evaluations + nested["M2"].evaluations
        rows.append(("nested sampling (dynesty)", value, calls, GREEN))
        numbers.append(measured("D10", "ln B₂₁ by nested sampling, linear", value, LINEAR, evaluations=calls))
    for example, truth in (("linear", LINEAR), ("sine", SINE)):
        models = examples.linear_models() if example == "linear" else examples.sine_models()
        runs.log(f"supermodel.compare, {example}")
        result = compare(
            {n: models[n] for n in ("M1", "M2")},
            examples.data(example),
            seed=runs.settings.seed,
            target_error=0.02,
            progress=False,
        )
        found = result.log_bayes_factor("M2", "M1")
        if example == "linear":
            rows.append(("supermodel.compare", found, result.evaluations["likelihood"], ORANGE))
        numbers.append(
            Number(
                "D10",
                f"ln B₂₁ by supermodel.compare, {example}",
                found.value,
                found.error,
                truth,
                tolerance=1e-9,
                evaluations=result.evaluations["likelihood"],
                remark="The library's own engine: each model whitened by a pilot, then a balanced path.",
            )
        )
    scaled = {label: n * (e.error / 0.1) ** 2 for label, e, n, _ in rows}
    for label, _, n, _ in rows:
        needed = scaled[label]
        numbers.append(
            Number(
                "D10",
                f"evaluations for σ = 0.1: {label}",
                needed if label != "supermodel.compare" else float(n),
                remark="As run; its error is already far below 0.1." if label == "supermodel.compare" else "",
            )
        )
    if nested is not None:
        ratio = scaled["paper: f = α, line fit"] / scaled["nested sampling (dynesty)"]
        numbers.append(
            Number(
                "D10",
                "combined likelihood with line fit over nested sampling",
                ratio,
                bounds=(1.0, math.inf),
                paper=Quoted("significantly slower than nested sampling", holds=True),
            )
        )
    text = (
        "Likelihood evaluations (runs of one model at one point) for an error of 0.1 in ln B₂₁, from each run's "
        "own error and cost, linear data."
    )
    return Part("What it costs", text, numbers, [_figure_costs(rows, scaled)])


def _figure_costs(rows, scaled) -> Picture:
    figure, ax = canvas(7.4, 3.8)
    for i, (label, _, n, colour) in enumerate(reversed(rows)):
        x = n if label == "supermodel.compare" else scaled[label]
        ax.plot([1e3, x], [i, i], color=colour, linewidth=1.2, alpha=0.5)
        ax.plot(x, i, "o", color=colour, markersize=7)
        say(ax, x * 1.5, i, power_of_ten(x), INK, fontsize=9)
    ax.set_yticks(range(len(rows)), [r[0] for r in reversed(rows)])
    ax.set(
        xscale="log",
        xlabel="likelihood evaluations for σ(ln B₂₁) = 0.1",
        xlim=(1e3, 2e10),
        ylim=(-0.6, len(rows) - 0.4),
    )
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    caption = (
        "Cost of ln B₂₁ ± 0.1 on the linear data. Red: the paper's estimators; blue: the same chains read by "
        "Rao-Blackwell; orange: this library's engine."
    )
    return Picture("costs", "Likelihood evaluations for the same answer", caption, figure)


def power_of_ten(x: float) -> str:
    """A number as digits times a power of ten.

    >>> power_of_ten(4.27e8)
    '4.3 × 10⁸'
    """
    if not math.isfinite(x):
        return "no answer"
    digits, _, exponent = f"{x:.1e}".partition("e")
    return f"{digits} × 10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
