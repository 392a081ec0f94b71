"""The linear example by the combined likelihood: Figures 1 to 3 and what was said of the sampling (Sec. 2.2, 3.1, 3.2)."""

from __future__ import annotations

import math

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha.endpoints import histogram
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.by_alpha.precision import sigma_line
from supermodel.estimation.rao_blackwell import shares
from supermodel.verdict.diagnostics import autocorrelation_time
from supermodel_paper import examples
from supermodel_paper.examples import LINEAR, linear_exact
from supermodel_paper.figures import BLUE, GREEN, INK, MUTED, RED, canvas, likelihood_curve, mark, say
from supermodel_paper.numbers import Number, Part, Picture, Quoted, measured, quoted
from supermodel_paper.runs import FIGURE_2, Runs, alpha_draws, cost, first_part


def figure_1(runs: Runs) -> Part:
    """The data and the two MAP fits (D1)."""
    d = examples.data("linear")
    x = np.linspace(-2, 2, 401)
    curves = {n: exact.polynomial(x, examples.POWERS[n]) @ linear_exact(n).map for n in ("M1", "M2")}
    truth = 1.0 + 0.2 * x + 0.1 * x**4
    figure, axes = canvas(7, 5, 2, 1, sharex=True, height_ratios=(3, 1))
    top, low = axes
    top.plot(x, truth, color=SOFT, linewidth=7, solid_capstyle="round")
    top.errorbar(d["x"], d["y"], d["sigma"], fmt="o", color=INK, markersize=2.2, linewidth=0.8)
    top.plot(x, curves["M2"], color=RED)
    top.plot(x, curves["M1"], color=BLUE, linestyle=(0, (4, 3)))
    say(top, -0.05, 2.3, "truth: quartic without quadratic term", "#5a9bc4", ha="center")
    say(top, -0.05, 2.05, r"MAP of $M_2$, $\theta_0+\theta_1x+\theta_4x^4$", RED, ha="center")
    say(top, -0.05, 1.8, r"MAP of $M_1$, with $\theta_2x^2$ as well", BLUE, ha="center")
    top.set(ylabel="y")
    gap = (curves["M1"] - curves["M2"]) / 0.02
    low.axhline(0, color=MUTED, linewidth=0.8)
    low.plot(x, gap, color=INK, linewidth=1.6)
    low.set(xlabel="x", ylabel="(M₁ − M₂)/σ", ylim=(-0.3, 0.3))
    numbers = [
        Number(
            "D1",
            "largest difference of the two MAP curves, in σ",
            float(np.abs(gap).max()),
            bounds=(0.0, 0.15),
            paper=Quoted("“so similar”", holds=True),
        ),
        Number(
            "D1",
            "noise σ of the data",
            float(d["sigma"][0]),
            exact=0.02,
            tolerance=1e-12,
            paper=Quoted("0.02", 0.02, 0.0, 0.0),
        ),
    ]
    caption = (
        "Data from a quartic without quadratic term, σ = 0.02, and both maximum-a-posteriori fits. The paper prints "
        "no data; this "
        "set is a stand-in with every stated feature. Below: the two fits differ by less than 0.15 σ."
    )
    return Part(
        "Data of the linear example", "", numbers, [Picture("figure_01", "Figure 1: the linear data", caption, figure)]
    )


SOFT = "#a8d0e8"


def figures_2_and_3(runs: Runs) -> Part:
    """The likelihood of ln B21 from the chain, at two lengths (D6, D8, D9, B3, B7)."""
    longer = runs["linear"]
    shorter = first_part(longer, FIGURE_2)
    fits = [line_fit(shorter), line_fit(longer)]
    estimates = [f.log_bayes_factor("M2", "M1") for f in fits]
    sizes = [d.alpha.size for d in (shorter, longer)]
    numbers = [
        measured(
            "D8",
            f"ln B₂₁, f = α, {sizes[0]:,} samples",
            estimates[0],
            LINEAR,
            paper=quoted(4.83, 0.21, 0.19),
            evaluations=cost(shorter),
        ),
        measured(
            "D9",
            f"ln B₂₁, f = α, {sizes[1]:,} samples",
            estimates[1],
            LINEAR,
            paper=quoted(4.91, 0.10),
            evaluations=cost(longer),
        ),
        Number(
            "D8",
            "error of 66 700 independent samples, exact law",
            float(sigma_line(LINEAR, 6.7e4)),
            exact=0.209,
            tolerance=5e-4,
            paper=Quoted("0.20 (+.21 −.19)", 0.2, 0.01, 0.01),
        ),
        Number(
            "D9",
            "error of 250 000 independent samples, exact law",
            float(sigma_line(LINEAR, 2.5e5)),
            exact=0.108,
            tolerance=5e-4,
            paper=Quoted("0.10", 0.10, 0.01, 0.01),
        ),
        Number(
            "D9",
            "ratio of the two errors",
            math.sqrt(2.5e5 / 6.7e4),
            exact=1.93,
            tolerance=5e-3,
            paper=Quoted("a factor of 2", 2.0, 0.1, 0.1),
        ),
        Number(
            "D6",
            "width of the likelihood over the exact law",
            fits[1].details.get("nominal", math.nan) / float(sigma_line(estimates[1].value, sizes[1])),
            bounds=(0.8, 1.25),
        ),
        Number(
            "B7",
            "best end-bin estimate over the fit: ratio of errors at 6.7e4 samples, exact",
            _end_bin_penalty(6.7e4),
            bounds=(1.0, math.inf),
            remark="Bias and Poisson noise of the bin at α = 1, at the best of all widths. A known form lets all "
            "samples speak.",
        ),
        measured(
            "B7",
            "ln B₂₁ from end bins of width 1/50 on the same chain",
            histogram(longer, 50).log_bayes_factor("M2", "M1"),
            _end_bin_value(0.02),
            evaluations=cost(longer),
            remark=f"The exact value for bins of this width, {_end_bin_value(0.02):.2f}, is far from {LINEAR:.2f}: "
            f"the bin at α = 1 is wider than the feature in it.",
        ),
        measured(
            "G6",
            "Rao-Blackwell on the same chain, no fit",
            shares(longer).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(longer),
            remark="Beyond the paper: the mean share of each draw, from the stored likelihoods (errata 3.4).",
        ),
    ]
    text = (
        "Metropolis-Hastings on the combined likelihood, thinned by 300; the likelihood of ℓ = ln B₂₁ given the "
        "samples, on a grid (eq. 3.2)."
    )
    return Part("Combined likelihood, f = α", text, numbers, [_figure_2(fits[0], sizes[0]), _figure_3(fits, sizes)])


def _end_bin_value(width: float) -> float:
    """ln of the exact mass in the first bin over that in the last: what perfect sampling would give."""
    masses = exact.LineAlpha(-LINEAR).cdf(np.array([width, 1 - width]))
    return float(np.log(masses[0]) - np.log1p(-masses[1]))


def _end_bin_penalty(n: float) -> float:
    """The least root-mean-square error of an end-bin estimate, over all widths, against the exact law of the fit."""
    widths = np.geomspace(1e-4, 0.2, 200)
    counts = n * (1 - exact.LineAlpha(-LINEAR).cdf(1 - widths))
    bias = np.array([_end_bin_value(w) for w in widths]) - LINEAR
    return float(np.sqrt(bias**2 + 1 / counts).min() / sigma_line(LINEAR, n))


def _figure_2(fit, size: int) -> Picture:
    figure, ax = canvas()
    likelihood_curve(ax, fit.details, RED)
    value = fit.log_bayes_factor("M2", "M1")
    mark(ax, (LINEAR, f"analytic {LINEAR:.2f}", BLUE), (value.value, f"recovered {value}", RED))
    ax.set(xlabel=r"$\ell = \ln B_{21}$", ylabel="likelihood (normalised)")
    caption = f"Likelihood of ln B₂₁ from {size:,} thinned Metropolis samples of α. Shaded: 68%."
    return Picture("figure_02", "Figure 2: likelihood of the log Bayes factor", caption, figure)


def _figure_3(fits, sizes) -> Picture:
    figure, ax = canvas()
    likelihood_curve(ax, fits[1].details, BLUE, fill=False)
    likelihood_curve(ax, fits[0].details, RED, fill=False)  # the wider one, and its limits, last
    values = [fit.log_bayes_factor("M2", "M1") for fit in fits]
    labels = [f"{size:,} samples: {value}" for size, value in zip(sizes, values, strict=True)]
    mark(ax, (LINEAR, f"analytic {LINEAR:.2f}", INK), (None, labels[0], RED), (None, labels[1], BLUE))
    ax.set_ylim(0, 1.08 * max(fit.details["curve"].max() if "curve" in fit.details else 0.1 for fit in fits))
    ax.set(xlabel=r"$\ell = \ln B_{21}$", ylabel="likelihood (normalised)")
    caption = "More samples, a narrower likelihood: a factor of 3.75 in number is one of 1.93 in precision."
    return Picture("figure_03", "Figure 3: likelihood for different numbers of samples", caption, figure)


def lahiri(runs: Runs) -> Part:
    """Draws from the known density by Lahiri's rejection method (D7)."""
    line = exact.MixtureAlpha(-LINEAR)
    found = line.lahiri(np.random.default_rng(runs.settings.seed), runs.settings.exact_draws)
    fit = line_fit(alpha_draws(examples.supermodel("linear"), found.alpha)).log_bayes_factor("M2", "M1")
    n = len(found.alpha)
    acceptance = 1 / (1 + math.tanh(LINEAR / 2))
    spread = math.sqrt(acceptance * (1 - acceptance) / (n / acceptance))
    numbers = [
        Number("D7", "acceptance of Lahiri's method", found.acceptance, spread, acceptance),
        measured(
            "D7",
            f"ln B₂₁ from {n:,} exact draws of α",
            fit,
            LINEAR,
            paper=Quoted("“agreed with expectations”", holds=True),
        ),
    ]
    return Part("Lahiri's method", "Sampling directly from the analytically known line, without a chain.", numbers)


def linear_p_of_alpha(runs: Runs) -> Part:
    """The line itself, recovered and exact."""
    draws = runs["linear"]
    figure, ax = canvas()
    edges = np.linspace(0, 1, 41)
    heights = np.histogram(draws.alpha, edges, density=True)[0]
    ax.stairs(heights, edges, color=GREEN, alpha=0.3, fill=True, linewidth=0)
    ax.plot([0, 1], [exact.LineAlpha(-LINEAR).c, exact.LineAlpha(-LINEAR).pdf(1.0)], color=BLUE)
    say(ax, 0.03, 0.25, "Metropolis", GREEN)
    say(ax, 0.52, 1.1, r"exact line $m\alpha + c$", BLUE)
    say(ax, 0.015, 2.1, r"$M_2$", INK)
    say(ax, 0.985, 0.13, r"$M_1$", INK, ha="right")
    ax.set(xlabel=r"$\alpha$", ylabel=r"$p(\alpha \mid D)$", xlim=(0, 1), ylim=(0, 2.15))
    n = draws.alpha.size
    expected = np.diff(exact.LineAlpha(-LINEAR).cdf(edges)) * n
    chi2 = float(np.sum((np.histogram(draws.alpha, edges)[0] - expected) ** 2 / expected)) / 39
    tau = autocorrelation_time(draws.alpha)
    numbers = [
        Number(
            "B2",
            "χ²/ν of the sampled α against the exact line, 40 bins",
            chi2,
            bounds=(0.0, max(tau, 1.0) * (1 + 4 * math.sqrt(2 / 39))),
        )
    ]
    caption = "Posterior of α by the combined likelihood: always a line, whose ends are in the ratio of the evidences."
    return Part(
        "The posterior of α",
        "",
        numbers,
        [Picture("alpha_line", "Combined likelihood: p(α | D) is a line", caption, figure)],
    )
