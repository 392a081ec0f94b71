r"""The combined model, $M_S = f M_1 + (1-f) M_2$: Figures 4 and 11, the tanh fit, and what repairs it (Sec. 2.3, 3.3, 5.2)."""

from __future__ import annotations

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha.endpoints import histogram, kde
from supermodel.estimation.rao_blackwell import density, shares
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import end_bin_counts
from supermodel_paper.examples import LINEAR, THETA2, linear_exact
from supermodel_paper.figures import BLUE, GREEN, RED, bars, canvas, say
from supermodel_paper.nested_sampling import Nested, blend_alpha
from supermodel_paper.numbers import Number, Part, Picture, Quoted, measured
from supermodel_paper.runs import Runs, cost

RAO_BLACKWELL = 8_000  # draws are enough: the conditional of each is integrated anew


def few(draws: Draws) -> Draws:
    """At most some thousand draws, evenly taken."""
    return draws.thin(max(1, draws.alpha.size // RAO_BLACKWELL))


def alpha_exact() -> exact.Density:
    """p(alpha | D) for f = alpha, Appendix B."""
    return exact.combined_model_alpha(linear_exact("M1"), THETA2)


def figure_4(runs: Runs) -> Part:
    """Posterior and cumulative distribution of alpha: analytic, Metropolis, nested sampling (C1, C2, C4, D15, D16)."""
    draws, truth = runs["linear blend"], alpha_exact()
    nested = blend_alpha(runs)
    sample = few(draws)
    n = draws.alpha.size
    counts = end_bin_counts(draws, 0.01)
    narrow = int(np.sum(draws.alpha < 0.001))
    by_bins = histogram(draws, 50).details["sensitivity"]
    numbers = [
        Number("C4", "P(α > 0.99), exact", float(1 - truth.cdf(0.99)), exact=1.8e-3, tolerance=6e-5),
        Number("C4", "P(α < 0.001), exact", float(truth.cdf(0.001)), exact=2.3e-2, tolerance=6e-4),
        Number(
            "C4",
            f"of {n:,} samples, those with α > 0.99",
            float(counts["M1"]),
            remark=f"{n * float(1 - truth.cdf(0.99)):.0f} expected; {narrow} have α < 0.001, "
            f"{n * float(truth.cdf(0.001)):.0f} expected. Only these count.",
        ),
        *(_binned(draws, truth, bins, value) for bins, value in by_bins.items() if bins <= 100),
        measured(
            "C2",
            "ln B₂₁ from a kernel density at the ends",
            -_pair(kde(draws)),
            None,
            evaluations=cost(draws),
            remark=f"True: {LINEAR:.2f}. No bandwidth suits both a spike at 0 and a tail at 1.",
        ),
        measured(
            "F11",
            "the same draws by Rao-Blackwell: no bins, no fit",
            shares(sample).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(draws),
            remark="The conditional of α given each draw is known; its mean at the two ends is the answer.",
        ),
        *_distances(draws, nested, truth),
    ]
    text = (
        "Mixing the predictions instead of the likelihoods gives a posterior of α of no simple form: a spike at 0, a "
        "long tail to 1. "
        "Its ends decide, and few samples are there."
    )
    return Part("Combined model, f = α", text, numbers, [_figure_4(draws, nested, truth), _figure_ends(sample, truth)])


def _pair(evidences):
    return evidences.log_bayes_factor("M1", "M2")


def _binned(draws: Draws, truth: exact.Density, bins: int, value: tuple[float, float]) -> Number:
    ends = truth.cdf(np.array([1 / bins, 1 - 1 / bins]))
    perfect = float(np.log(ends[0]) - np.log1p(-ends[1]))
    return Number(
        "C2",
        f"ln B₂₁ from a histogram of {bins} bins",
        -value[0],
        value[1],
        perfect,
        evaluations=cost(draws),
        remark=f"Perfect sampling would give {perfect:.2f} with these bins, not {LINEAR:.2f}: the answer depends on "
        f"the binning.",
    )


def _distances(draws: Draws, nested: Nested | None, truth: exact.Density) -> list[Number]:
    grid = np.linspace(0, 1, 400)
    chain = np.searchsorted(np.sort(draws.alpha.ravel()), grid) / draws.alpha.size
    gap = float(np.abs(chain - truth.cdf(grid)).max())
    numbers = [
        Number("D15", "largest error of the CDF of α, Metropolis", gap, bounds=(0.0, 0.05), evaluations=cost(draws))
    ]
    if nested is not None:
        theirs = float(np.abs(nested.cdf(grid) - truth.cdf(grid)).max())
        numbers.append(
            Number(
                "D16",
                "largest error of the CDF of α, nested sampling",
                theirs,
                evaluations=nested.evaluations,
                paper=Quoted("nested sampling better than MCMC (Fig. 4)", holds=theirs < gap),
                remark="Not with dynesty at this number of calls: the spike at α = 0 is a funnel in (α, θ₂), where "
                "steps of one "
                "size fail. The Metropolis of this library has a step for each model, and crosses it.",
            )
        )
    return numbers


def _figure_4(draws: Draws, nested: Nested | None, truth: exact.Density) -> Picture:
    edges = np.linspace(0, 1, 51)
    middle = 0.5 * (edges[1:] + edges[:-1])
    figure, (top, low) = canvas(7, 6.6, 2, 1, sharex=True)
    chain = np.histogram(draws.alpha, edges, density=True)[0]
    with np.errstate(divide="ignore"):
        bars(top, edges, np.log(chain), GREEN, outline=True)
        if nested is not None:
            bars(top, edges, np.log(nested.histogram(edges)), RED, outline=True)
    grid = np.concatenate([np.geomspace(1e-4, 0.02, 60), np.linspace(0.02, 1, 200)])
    top.plot(grid, truth.logpdf(grid), color=BLUE)
    say(top, 0.08, 3.0, "analytic", BLUE)
    say(top, 0.2, 1.9, "Metropolis", GREEN)
    if nested is not None:
        say(top, 0.32, 0.9, "nested sampling", RED)
    top.set(ylabel=r"$\ln p(\alpha \mid D)$", ylim=(-3.4, 4.2))
    low.plot(grid, truth.cdf(grid), color=BLUE)
    low.plot(middle, np.cumsum(chain) * 0.02 - 0.01 * chain, color=GREEN, linewidth=1.6)
    if nested is not None:
        low.plot(grid, nested.cdf(grid), color=RED, linewidth=1.4)
    low.set(xlabel=r"$\alpha$   ($M_2$ at 0, $M_1$ at 1)", ylabel=r"$\Phi(\alpha)$", xlim=(0, 1), ylim=(0, 1.02))
    caption = (
        "Combined model, f = α: log posterior and cumulative distribution of α, analytic, by Metropolis and by "
        "nested sampling (dynesty)."
    )
    return Picture("figure_04", "Figure 4: posterior and CDF of α, combined model", caption, figure)


def _figure_ends(sample: Draws, truth: exact.Density) -> Picture:
    grid = np.concatenate([[0.0], np.geomspace(1e-5, 1, 120)])
    figure, ax = canvas()
    ax.plot(grid, truth.pdf(grid), color=BLUE, linewidth=6, alpha=0.3, solid_capstyle="round")
    ax.plot(grid, density(sample, grid), color=RED, linewidth=1.8)
    edges = np.geomspace(1e-4, 1, 25)
    heights = np.histogram(sample.alpha, edges)[0] / sample.alpha.size / np.diff(edges)
    bars(ax, edges, heights, GREEN, outline=True)
    ax.set(xscale="symlog", yscale="log", xlabel=r"$\alpha$", ylabel=r"$p(\alpha \mid D)$", xlim=(0, 1.02))
    ax.set_xscale("symlog", linthresh=1e-4)
    ax.set_xticks([0, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["0", "10⁻⁴", "10⁻³", "0.01", "0.1", "1"])
    say(ax, 2e-3, 3.2, "Rao-Blackwell", RED)
    say(ax, 2e-3, 1.9, "analytic (broad)", "#6aa9cf")
    say(ax, 2e-3, 1.15, "histogram", GREEN)
    caption = (
        "The density of α from the same draws: the histogram frays at both ends, the mean of the conditionals "
        "is good to the very ends."
    )
    return Picture("blend_rao_blackwell", "Combined model: Rao-Blackwell reaches the ends", caption, figure)


def enlarged_interval(runs: Runs) -> Part:
    """alpha on [-0.1, 1.1], so that both ends are interior (C3)."""
    draws = runs["linear blend enlarged"]
    numbers = [
        measured(
            "C3",
            "ln B₂₁, α in [−0.1, 1.1], Rao-Blackwell",
            shares(few(draws)).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(draws),
        ),
        measured(
            "C3",
            "the same from bins of width 0.02 centred on 0 and 1",
            histogram(draws, 50).log_bayes_factor("M2", "M1"),
            _centred_bins(0.02),
            evaluations=cost(draws),
            remark=f"With bins of this width perfect sampling gives {_centred_bins(0.02):.2f} instead of "
            f"{LINEAR:.2f}: the ends are interior now, but the spike is still there.",
        ),
        Number(
            "C3",
            "p(−0.05) − p(0.05): even in α for nested models",
            _evenness(),
            exact=0.0,
            tolerance=1e-9,
            remark="For the combined likelihood f outside [0, 1] makes the likelihood negative; the library refuses "
            "it (errata 1.4).",
        ),
    ]
    return Part(
        "An enlarged interval",
        "The paper suggests it; it makes both ends interior points, at no cost and with little gain.",
        numbers,
    )


def _centred_bins(width: float) -> float:
    truth = exact.combined_model_alpha(linear_exact("M1"), THETA2, low=-0.1, high=1.1)
    mass = np.diff(truth.cdf(np.array([[-width / 2, width / 2], [1 - width / 2, 1 + width / 2]])))
    return float(np.log(mass[0, 0] / mass[1, 0]))


def _evenness() -> float:
    truth = exact.combined_model_alpha(linear_exact("M1"), THETA2, low=-0.1, high=1.1)
    return float(np.subtract(*truth.logpdf(np.array([-0.05, 0.05]))))
