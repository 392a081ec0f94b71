"""More than two models: one alpha with hat functions, and a simplex (Sec. 2.1.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supermodel.embedding.supermodel import Supermodel
from supermodel.estimation.by_alpha.simplex_fit import piecewise_linear, simplex
from supermodel.estimation.rao_blackwell import shares
from supermodel.sampling.draws import Draws
from supermodel_paper import alpha_laws
from supermodel_paper.figures import BLUE, GREEN, INK, RED, bars, canvas, say
from supermodel_paper.runs import Runs, alpha_draws, cost, ln_b21
from supermodel_paper.supermodels import ORDER, log_evidences, three
from supermodel_paper.table import Found, Ours, experiment, ours


@experiment
def three_models(runs: Runs) -> Found:
    """ln Z differences of three models by both constructions (A15, A16)."""
    hats, points = runs["three models on hats"], runs["three models on a simplex"]
    z = dict(zip(ORDER, log_evidences(), strict=True))

    def differences(draws: Draws, estimator: Callable[..., Any]) -> Callable[[list[str]], Ours]:
        found = estimator(draws)
        return lambda names: ours(found.log_bayes_factor(*names), z[names[0]] - z[names[1]], cost(draws))

    mean, fit = _simplex_mean(runs)
    numbers = {
        "hats, fit": differences(hats, piecewise_linear),
        "hats, shares": differences(hats, shares),
        "simplex, fit": differences(points, simplex),
        "simplex, shares": differences(points, shares),
        "mean": mean,
        "fit to those": fit,
    }
    return Found(numbers, {"three_models": _figure(hats, points)})


def _simplex_mean(runs: Runs) -> tuple[Ours, Ours]:
    """E[alpha_i] = (1 + pi_i)/(K + 1), from independent draws; and the fit to them."""
    law = alpha_laws.SimplexAlpha(np.array([1.0, 0.0, -1.0]))
    alpha = law.sample(np.random.default_rng(runs.settings.seed), runs.settings.exact_draws)
    tilted = three("simplex")
    plain = Supermodel(tilted.models, coordinate=tilted.coordinate, data=tilted.data)
    error = float(alpha[:, 0].std() / np.sqrt(len(alpha)))
    mean = Ours(float(alpha[:, 0].mean()), error, float((1 + law.probabilities[0]) / 4))
    return mean, ours(ln_b21(simplex(alpha_draws(plain, alpha))))


def _figure(hats: Draws, points: Draws) -> Any:
    figure, (left, right) = canvas(9.4, 4.2, 1, 2, width_ratios=(1.15, 1))
    edges, names = np.linspace(0, 2, 61), ("$M_2$", "$M_1$", "full")
    bars(left, edges, np.histogram(hats.alpha, edges, density=True)[0], GREEN)
    truth = alpha_laws.HatAlpha(log_evidences() + hats.supermodel.tilt)
    left.plot([0, 1, 2], truth.node_values, color=BLUE, marker="o", markersize=4)
    for x, (y, name) in enumerate(zip(truth.node_values, names, strict=True)):
        say(left, x, y + 0.05, name, INK, ha="center", va="bottom")
    say(left, 0.06, 0.1, "Metropolis", GREEN)
    left.set(xlabel=r"$\alpha$", ylabel=r"$p(\alpha \mid D)$", ylim=(0, 1.22 * truth.node_values.max()))
    left.set(title="hat functions: piecewise linear")
    alpha = points.alpha.reshape(-1, 3)[:: max(1, points.alpha[..., 0].size // 2500)]
    corners = np.array([[0, 0], [1, 0], [0.5, 0.866]])
    right.plot(*(alpha @ corners).T, ".", color=RED, markersize=1.6, alpha=0.5, rasterized=True)
    right.plot(*np.vstack([corners, corners[:1]]).T, color=INK, linewidth=1)
    for corner, name, shift, side in zip(
        corners, names, ((-0.03, 0), (0.03, 0), (0, 0.05)), ("right", "left", "center"), strict=True
    ):
        say(right, corner[0] + shift[0], corner[1] + shift[1], name, INK, ha=side)
    right.set(aspect="equal", title="simplex: barycentric moves", xlim=(-0.16, 1.16), ylim=(-0.06, 0.98))
    right.set_axis_off()
    return figure
