r"""Other f and other priors of alpha, above all $f = e^\alpha$: Figures 7 to 10 (Sec. 2.1.1, 2.2 and 5.1)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from supermodel.embedding import coordinate as coordinates
from supermodel.estimation.by_alpha.averages import averaged
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.by_alpha.precision import information_exponential, information_line
from supermodel.estimation.conditional import prior_mean_weights
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import autocorrelation_time
from supermodel_paper import alpha_laws
from supermodel_paper.examples import CUTOFF, LINEAR, SINE
from supermodel_paper.figures import BLUE, GREEN, RED, bars, canvas, likelihood_of, say
from supermodel_paper.runs import Runs, cost, ln_b21
from supermodel_paper.table import Found, Ours, experiment


@experiment
def printed_form(runs: Runs) -> Found:
    """The e^alpha density, printed and exact (F1, F2, F4)."""
    b, B = float(alpha_laws.printed_b(-LINEAR, CUTOFF)), math.exp(LINEAR)
    a = b * (1 - B) / (B - math.exp(CUTOFF))  # from b by the printed ratio, (a e^L + b)/(a + b) = e^l
    return Found(
        {
            "norm": lambda l: alpha_laws.ExponentialAlpha(-l, CUTOFF).cdf(0.0),
            "bias": lambda l: float(-alpha_laws.printed_log_bayes_factor(-l, CUTOFF)) - l,
            "residual": float(b * (-CUTOFF) + a * (1 - math.exp(CUTOFF)) - 1),
            "cured": lambda l: -alpha_laws.cured_log_bayes_factor(-l, CUTOFF),
        }
    )


printed_fit = partial(line_fit, printed=True)


@experiment
def figures_7_to_9(runs: Runs) -> Found:
    """e^alpha on both data sets (F3, F5, F6, F8)."""
    linear, sine, plain = runs["linear exp"], runs["sine exp"], runs["sine"]
    fits = {name: runs.read(f"{name} exp", printed_fit) for name in ("linear", "sine")}
    printed = fits["linear"].details.get("printed")
    information = information_exponential(-SINE, CUTOFF)
    spent = ln_b21(fits["sine"]).error * math.sqrt(cost(sine))
    spent_plain = ln_b21(runs.read("sine", line_fit)).error * math.sqrt(cost(plain))
    numbers = {
        "linear": runs.ours("linear exp", printed_fit, n=linear.alpha.size),
        "sine": runs.ours("sine exp", printed_fit, n=sine.alpha.size),
        "law, linear": 1 / math.sqrt(3.3e5 * information_exponential(-LINEAR, CUTOFF)),
        "law, sine": 1 / math.sqrt(4e5 * information),
        "printed": math.nan if printed is None else -printed.value - ln_b21(fits["linear"]).value,
        "tau": autocorrelation_time(sine.alpha),
        "per sample": math.sqrt(information_line(-SINE) / information),
        "per call": spent / spent_plain,
    }
    pictures = {
        f"figure_{number:02d}": likelihood_of(fits[name], ln_b21(fits[name]), (truth, f"exact {truth:.3f}", BLUE))[0]
        for number, name, truth in ((8, "sine", SINE), (9, "linear", LINEAR))
    }
    return Found(numbers, {"figure_07": _figure_7(linear), **pictures}, {"n": linear.alpha.size})


def _figure_7(draws: Draws) -> Any:
    truth, edges = alpha_laws.ExponentialAlpha(-LINEAR, CUTOFF), np.linspace(CUTOFF, 0, 61)
    figure, ax = canvas()
    bars(ax, edges, np.histogram(draws.alpha, edges, density=True)[0], GREEN)
    grid = np.linspace(CUTOFF, 0, 300)
    ax.plot(grid, truth.pdf(grid), color=BLUE)
    say(ax, -1.35, 0.27, "exact  $a\\,e^\\alpha + b$", BLUE)
    say(ax, -3.3, 0.12, "Metropolis", GREEN)
    ax.set(xlabel=r"$\alpha$   ($f = e^\alpha$; $M_1$ at 0)", ylabel=r"$p(\alpha \mid D)$", xlim=(CUTOFF, 0))
    return figure


@experiment
def figure_10(runs: Runs) -> Found:
    """Contours of omega and phi with and without reparametrisation (F7)."""
    numbers: dict[str, Any] = {"prior": prior_mean_weights(coordinates.exponential(CUTOFF))[0]}
    figure, ax = canvas(6.4, 5)
    for name, colour, style in (("sine", BLUE, "solid"), ("sine exp", RED, "dashed")):
        draws = runs[name]
        values = draws.parameters()
        _contours(ax, values["omega"].ravel(), values["phi"].ravel(), colour, style)
        weight = float(prior_mean_weights(draws.supermodel.coordinate)[0])
        share = averaged(draws, "omega", (weight, 1 - weight)).probabilities["M1"]
        error = ln_b21(runs.read(name)).error * share * (1 - share)
        numbers[name] = Ours(share, error, evaluations=cost(draws))
    say(ax, 0.964, 0.012, "f = α (solid)", BLUE)
    say(ax, 0.964, 0.003, r"$f = e^\alpha$ (dashed)", RED)
    ax.set(xlabel="ω", ylabel="φ", xlim=(0.96, 1.04), ylim=(-0.012, 0.125))
    return Found(numbers, {"figure_10": figure})


def _contours(ax: Any, x: np.ndarray, y: np.ndarray, colour: str, style: str) -> None:
    from scipy.ndimage import gaussian_filter

    h, xe, ye = np.histogram2d(x, y, bins=(70, 70), range=((0.96, 1.04), (-0.02, 0.13)))
    h = gaussian_filter(h, 2.0)
    ordered = np.sort(h.ravel())[::-1]
    mass = np.cumsum(ordered) / ordered.sum()
    levels = [ordered[np.searchsorted(mass, p)] for p in (0.954, 0.683)]
    centres = (0.5 * (edges[1:] + edges[:-1]) for edges in (xe, ye))
    ax.contour(*centres, h.T, levels=levels, colors=colour, linestyles=style, linewidths=1.8)
