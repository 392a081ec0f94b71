"""More than two models: one alpha with hat functions, and a simplex (Sec. 2.1.2)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.embedding import coordinate as coordinates
from supermodel.embedding.supermodel import Supermodel
from supermodel.estimation.by_alpha.simplex_fit import piecewise_linear, simplex
from supermodel.estimation.rao_blackwell import shares
from supermodel_paper import examples
from supermodel_paper.examples import linear_exact
from supermodel_paper.figures import BLUE, GREEN, INK, RED, bars, canvas, say
from supermodel_paper.numbers import Number, Part, Picture, Quoted, measured
from supermodel_paper.runs import Runs, alpha_draws, cost

ORDER = ("M2", "M1", "full")  # the model shared by its neighbours stands between them


@cache
def supermodel(kind: str) -> Supermodel:
    """M2, M1 and the full quartic on "hats" or a "simplex", tilted so that each has about a third."""
    models, tilts = examples.linear_models(), -log_evidences()
    where = coordinates.Hats(3) if kind == "hats" else coordinates.Simplex(3)
    tilts = np.round(tilts - tilts[0])  # whole numbers: a guess such as a user might make
    return Supermodel({n: models[n] for n in ORDER}, coordinate=where, data=examples.data("linear"), tilt=tilts)


def log_evidences() -> np.ndarray:
    """Exact ln Z in the order of the supermodels."""
    return np.array([linear_exact(n).log_evidence for n in ORDER])


JOBS: dict[str, Any] = {
    "three models on hats": lambda runs: runs.sample(supermodel("hats"), "three models on hats"),
    "three models on a simplex": lambda runs: runs.sample(supermodel("simplex"), "three models on a simplex"),
}


def three_models(runs: Runs) -> Part:
    """ln Z differences of three models by both constructions (A15, A16)."""
    hats, points = (runs.job(name, make) for name, make in JOBS.items())
    z = dict(zip(ORDER, log_evidences(), strict=True))
    numbers = []
    for row, label, draws, fit in (
        ("A15", "hat functions", hats, piecewise_linear),
        ("A16", "simplex", points, simplex),
    ):
        for name, estimator in (("fit to α", fit), ("Rao-Blackwell", shares)):
            found = estimator(draws)
            for a, b in (("M2", "M1"), ("M1", "full")):
                numbers.append(
                    measured(
                        row,
                        f"ln Z({a}) − ln Z({b}), {label}, {name}",
                        found.log_bayes_factor(a, b),
                        z[a] - z[b],
                        evaluations=cost(draws),
                        paper=Quoted("left to future work") if name == "fit to α" and a == "M2" else None,
                    )
                )
    numbers += _simplex_mean(runs)
    text = (
        "One α with the models at 0, 1, 2 and hat functions between, or a point α of the simplex moved by "
        "barycentric steps. Both are tilted, since the full quartic is e¹⁰ times less probable than M₂."
    )
    return Part("More than two models", text, numbers, [_figure(hats, points)])


def _simplex_mean(runs: Runs) -> list[Number]:
    """E[alpha_i] = (1 + pi_i)/(K + 1), from independent draws; and the fit to them."""
    log_z = np.array([1.0, 0.0, -1.0])
    law = exact.SimplexAlpha(log_z)
    alpha = law.sample(np.random.default_rng(runs.settings.seed), runs.settings.exact_draws)
    error = alpha[:, 0].std() / np.sqrt(len(alpha))
    plain = supermodel("simplex")
    plain = Supermodel(plain.models, coordinate=plain.coordinate, data=plain.data)
    found = simplex(alpha_draws(plain, alpha)).log_bayes_factor("M2", "M1")
    return [
        Number(
            "A16",
            "E[α₁] on the simplex, evidences 1 : e⁻¹ : e⁻²",
            float(alpha[:, 0].mean()),
            float(error),
            float((1 + law.probabilities[0]) / 4),
        ),
        measured("A16", "ln Z₁ − ln Z₂ from those draws", found, 1.0),
    ]


def _figure(hats, points) -> Picture:
    figure, (left, right) = canvas(9.4, 4.2, 1, 2, width_ratios=(1.15, 1))
    edges = np.linspace(0, 2, 61)
    bars(left, edges, np.histogram(hats.alpha, edges, density=True)[0], GREEN)
    truth = exact.HatAlpha(log_evidences() + hats.supermodel.tilt)
    left.plot([0, 1, 2], truth.node_values, color=BLUE, marker="o", markersize=4)
    for x, y, name in zip((0, 1, 2), truth.node_values, ("$M_2$", "$M_1$", "full"), strict=True):
        say(left, x, y + 0.05, name, INK, ha="center", va="bottom")
    say(left, 0.06, 0.1, "Metropolis", GREEN)
    left.set(
        xlabel=r"$\alpha$",
        ylabel=r"$p(\alpha \mid D)$",
        ylim=(0, 1.22 * truth.node_values.max()),
        title="hat functions: piecewise linear",
    )
    alpha = points.alpha.reshape(-1, 3)[:: max(1, points.alpha[..., 0].size // 2500)]
    corners = np.array([[0, 0], [1, 0], [0.5, 0.866]])
    xy = alpha @ corners
    right.plot(xy[:, 0], xy[:, 1], ".", color=RED, markersize=1.6, alpha=0.5, rasterized=True)
    right.plot(*np.vstack([corners, corners[:1]]).T, color=INK, linewidth=1)
    for (x, y), name, side in zip(corners, ("$M_2$", "$M_1$", "full"), ("right", "left", "center"), strict=True):
        say(
            right,
            x + {"right": -0.03, "left": 0.03, "center": 0}[side],
            y + (0.05 if side == "center" else 0),
            name,
            INK,
            ha=side,
        )
    right.set(aspect="equal", title="simplex: barycentric moves", xlim=(-0.16, 1.16), ylim=(-0.06, 0.98))
    right.set_axis_off()
    caption = (
        "Three polynomials in one supermodel. Left: α on a line with hat functions, sampled and exact. Right: "
        "samples of α on the simplex."
    )
    return Picture("three_models", "Three models, two constructions", caption, figure)
