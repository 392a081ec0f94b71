"""Model-averaged posteriors from the same draws, and how few samples they need (Sec. 2.1.1 and 6)."""

from __future__ import annotations

import math

import numpy as np

from supermodel.estimation.by_alpha.averages import averaged
from supermodel.estimation.by_alpha.counts import counts
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.rao_blackwell import shares
from supermodel_paper.examples import LINEAR, SINE, linear_exact
from supermodel_paper.figures import BLUE, RED, canvas, say
from supermodel_paper.numbers import Number, Part, Picture, Quoted, measured
from supermodel_paper.runs import Runs, cost, first_part


def exact_moments(odds: float = 1.0) -> tuple[float, float, float]:
    """P(M1), and the evidence-weighted mean and sd of theta0, at prior odds M1 : M2."""
    p1 = 1 / (1 + math.exp(LINEAR) / odds)
    m, s = zip(
        *(
            (linear_exact(n).posterior_mean[0], math.sqrt(linear_exact(n).posterior_covariance[0, 0]))
            for n in ("M1", "M2")
        ),
        strict=True,
    )
    mean = p1 * m[0] + (1 - p1) * m[1]
    second = p1 * (s[0] ** 2 + m[0] ** 2) + (1 - p1) * (s[1] ** 2 + m[1] ** 2)
    return p1, mean, math.sqrt(second - mean**2)


def averages(runs: Runs) -> Part:
    """Weights and moments of model averages (A13, A14, A11, G5)."""
    index, balanced = runs["linear index"], runs["linear tilt"]
    numbers = [
        measured(
            "A11",
            "ln B₂₁ by counting visits of the index",
            counts(index).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(index),
            paper=Quoted("no supermodel needed", holds=True),
        ),
        measured(
            "A11",
            "ln B₂₁ by Rao-Blackwell on the same index chain",
            shares(index).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(index),
        ),
    ]
    for name, truth in (("linear", LINEAR), ("sine", SINE)):
        found = shares(runs[name]).log_bayes_factor("M2", "M1")
        p = averaged(runs[name], "theta0" if name == "linear" else "omega").probabilities["M1"]
        expected = 0.00755 if name == "linear" else 0.00655
        numbers.append(
            Number(
                "A13",
                f"P(M₁ | D) at equal odds, {name}",
                p,
                found.error * p * (1 - p),
                1 / (1 + math.exp(truth)),
                remark=f"Tabulated: {expected}.",
            )
        )
    for odds in (1.0, 100.0):
        p1, mean, sd = exact_moments(odds)
        found = averaged(balanced, "theta0", (odds, 1.0))
        label = "equal odds" if odds == 1 else "odds 100 : 1 for M₁"
        numbers += [
            measured(
                "A14",
                f"averaged mean of θ₀, {label}",
                Estimate(float(found.mean), float(found.mean_error)),
                mean,
                evaluations=cost(balanced),
            ),
            measured(
                "A14",
                f"averaged sd of θ₀, {label}",
                Estimate(float(found.sd), float(found.sd_error)),
                sd,
                evaluations=cost(balanced),
            ),
        ]
    curve = _errors(runs)
    few = min(int(curve["n"].searchsorted(1000)), len(curve["n"]) - 1)
    numbers.append(
        Number(
            "G5",
            f"error of the averaged mean of θ₀ from {curve['n'][few]:,} samples, in its sd",
            float(curve["mean"][few]),
            bounds=(0.0, 0.25),
            paper=Quoted("small N suffices", holds=True),
            remark="Where ln B₂₁ itself is known to " + f"{curve['bayes'][few]:.2f}.",
        )
    )
    text = (
        "All draws of the combined likelihood, whatever their α, are draws of the model-averaged posterior, for "
        "prior odds E[f] : 1 − E[f]; weights give any "
        "other odds. (“Keep the elements with α = 0 or 1”, as the paper has it, keeps none: E19.)"
    )
    return Part("Model-averaged posteriors", text, numbers, [_figure(curve)])


def _errors(runs: Runs) -> dict[str, np.ndarray]:
    """Errors of the averaged mean (in sd) and of ln B21 against the number of samples, index chain."""
    draws = runs["linear index"]
    _, _, sd = exact_moments()
    fractions = np.geomspace(8 / draws.n_draws, 1.0, 9)
    rows = []
    for fraction in fractions:
        part = first_part(draws, fraction)
        rows.append(
            (
                part.alpha.size,
                float(averaged(part, "theta0").mean_error) / sd,
                shares(part).log_bayes_factor("M2", "M1").error,
            )
        )
    n, mean, bayes = np.array(rows).T
    return {"n": n.astype(int), "mean": mean, "bayes": bayes}


def _figure(curve: dict[str, np.ndarray]) -> Picture:
    figure, ax = canvas()
    ax.plot(curve["n"], curve["bayes"], color=RED, marker="o", markersize=4)
    ax.plot(curve["n"], curve["mean"], color=BLUE, marker="o", markersize=4)
    ax.set(xscale="log", yscale="log", xlabel="samples", ylabel="error")
    middle = len(curve["n"]) // 2
    say(ax, curve["n"][middle] * 1.3, curve["bayes"][middle] * 0.72, r"of $\ln B_{21}$", RED)
    say(
        ax,
        curve["n"][middle] * 1.3,
        curve["mean"][middle] * 1.6,
        r"of the averaged mean of $\theta_0$, in its sd",
        BLUE,
    )
    ax.grid(axis="y")
    caption = (
        "Averages need few samples: the error of an averaged mean is a small part of its spread long before "
        "the Bayes factor is known."
    )
    return Picture("averages", "Model averages need few samples", caption, figure)
