"""How precise the method can be: the exact law beside the paper's (Sec. 2.2, Appendix D, and the reparametrisations)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha import precision
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel_paper import alpha_laws, printed_laws
from supermodel_paper.examples import LINEAR, SINE
from supermodel_paper.figures import BLUE, DOTS, GREEN, MUTED, ORANGE, PURPLE, RED, canvas, say
from supermodel_paper.runs import Runs, alpha_draws, ln_b21
from supermodel_paper.supermodels import supermodel
from supermodel_paper.table import Found, Ours, experiment

L = 4.88  # the paper's rounded value, at which the errata tabulate


def _exponential(l: float, cutoff: float) -> float:
    """sigma sqrt(N) of f = e^alpha."""
    return 1 / math.sqrt(precision.information_exponential(-l, cutoff))


@experiment
def laws(runs: Runs) -> Found:
    """sigma sqrt(N) of every choice of f, and the planner (B8, B9, A11, A12, G4)."""
    best = precision.optimum_cutoff(-L)
    numbers = {
        "line": precision.sigma_line(-L, 1),
        "index": 1 / math.sqrt(precision.information_index(-L)),
        "planner": precision.samples_needed(-L, 0.17),
        "over the paper's": lambda l: precision.sigma_line(-l, 1) / printed_laws.paper_law(-l, 1),
        "tanh": lambda k: 1 / math.sqrt(precision.information(-L, alpha_laws.steep(k))),
        "cut-off": lambda cutoff: _exponential(L, cutoff),
        "best cut-off": best.cutoff,
        "at the best": best.sigma_sqrt_n,
        "tilt": 1 / math.sqrt(precision.information(-L, tilt=L)),
        "power": Ours(1 / math.sqrt(precision.information(-L, lambda a: a**2)), exact=_power_law()),
    }
    return Found(numbers, {"precision_law": _figure_of_laws(), "cutoff": _figure_of_cutoffs()})


def _power_law() -> float:
    """The same information as int p (d ln p / d l)^2, by a derivative of the density instead of the variance."""
    alpha, h = np.linspace(0, 1, 200_001), 1e-4
    up, down = (exact.MixtureAlpha(-L + s, lambda a: a**2).logpdf(alpha) for s in (h, -h))
    p = exact.MixtureAlpha(-L, lambda a: a**2).pdf(alpha)
    return 1 / math.sqrt(np.trapezoid(p * ((up - down) / (2 * h)) ** 2, alpha))


def _figure_of_laws() -> Any:
    l = np.linspace(0, 10, 81)
    figure, ax = canvas(7, 4.6)
    curves = (  # with the place of its name
        (r"$e^\alpha$ on [−4, 0]", [_exponential(x, -4.0) for x in l], PURPLE, 10.15, 1.35e4),
        ("f = α", precision.sigma_line(-l, 1), BLUE, 10.15, 6.3e3),
        (r"$e^\alpha$, labels swapped", [_exponential(-x, -4.0) for x in l], ORANGE, 10.15, 2.9e3),
        ("index", 1 / np.sqrt(precision.information_index(-l)), GREEN, 10.15, 148),
        ("f = α, tilted by η = ℓ", np.full_like(l, math.sqrt(12)), RED, 10.15, 3.46),
        ("the paper's law × 1", printed_laws.paper_law(-l, 1), MUTED, 0.15, 0.72),
    )
    for text, values, colour, x, y in curves:
        ax.plot(l, values, color=colour, linestyle=(0, (3, 2)) if colour == MUTED else "-")
        say(ax, x, y, text, colour)
    ax.set(yscale="log", xlabel=r"$\ell = \ln B_{21}$", ylabel=r"$\sigma\,\sqrt{N}$ of $\ell$")
    ax.set(xlim=(0, 14.2), ylim=(0.5, 3e4), xticks=range(0, 11, 2))
    ax.grid(axis="y")
    return figure


def _figure_of_cutoffs() -> Any:
    lengths = np.geomspace(2e-3, 20, 120)
    figure, ax = canvas()
    for l, colour in ((LINEAR, BLUE), (SINE, RED), (-L, GREEN)):
        ax.plot(lengths, [_exponential(l, -x) for x in lengths], color=colour)
    ax.axvline(4, color=MUTED, linewidth=1.2, linestyle=DOTS)
    best = precision.optimum_cutoff(-LINEAR)
    ax.plot(-best.cutoff, best.sigma_sqrt_n, "o", color=BLUE)
    say(ax, -best.cutoff, 4.4, f"best: Λ = −{-best.cutoff:.3f}", BLUE, ha="center")
    say(ax, 3.7, 3.6, "the paper's Λ = −4", MUTED, ha="right")
    say(ax, 0.55, 20, "linear, ℓ = 4.88", BLUE, ha="left")
    say(ax, 0.16, 34, "sine, ℓ = 5.02", RED, ha="right")
    say(ax, 0.6, 330, "labels swapped", GREEN, ha="right")
    ax.set(xscale="log", yscale="log", ylim=(3, 500))
    ax.set(xlabel=r"length of the interval, $-\Lambda$", ylabel=r"$\sigma\,\sqrt{N}$ of $\ell$")
    return figure


@experiment
def binned_errors(runs: Runs) -> Found:
    """The binned Poisson error of Appendix D, corrected and as printed (B15)."""
    l, n = 2.0, 5e4
    rng, line = np.random.default_rng(runs.settings.seed), alpha_laws.LineAlpha(-l)
    values = [
        ln_b21(line_fit(alpha_draws(supermodel("linear"), line.sample(rng, 5000)), n_grid=51)).value
        for _ in range(runs.settings.repeats)
    ]
    spread = float(np.std(values, ddof=1))
    return Found(
        {
            "corrected": lambda bins: precision.binned_sigma(-l, printed_laws.expected_counts(-l, n, bins)),
            "printed": lambda bins: printed_laws.printed_binned_sigma(-l, printed_laws.expected_counts(-l, n, bins)),
            "spread": Ours(spread, spread / math.sqrt(2 * len(values)), float(precision.sigma_line(-l, 5000))),
        }
    )
