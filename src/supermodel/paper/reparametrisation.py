r"""Other f and other priors of alpha, above all $f = e^\alpha$: Figures 7 to 10 (Sec. 2.1.1, 2.2 and 5.1)."""

from __future__ import annotations

import math

import numpy as np

from supermodel import exact
from supermodel.diagnostics import autocorrelation_time
from supermodel.embedding import coordinate as coordinates
from supermodel.estimation.averages import averaged
from supermodel.estimation.conditional import prior_mean_weights
from supermodel.estimation.line_fit import line_fit
from supermodel.estimation.precision import information_exponential
from supermodel.paper import examples
from supermodel.paper.examples import CUTOFF, LINEAR, SINE
from supermodel.paper.figures import BLUE, GREEN, RED, bars, canvas, likelihood_curve, say, vertical
from supermodel.paper.numbers import Number, Part, Picture, Quoted, measured, quoted
from supermodel.paper.runs import Runs, alpha_draws, cost


def transformations(runs: Runs) -> Part:
    """The same ln B21 whatever f and whatever the prior of alpha, from independent draws of each exact density (A9, A10, B4, B5)."""
    linear = examples.supermodel("linear")
    rng, n = np.random.default_rng(runs.settings.seed + 1), runs.settings.exact_draws
    cases = [
        ("A9", "f = α²", coordinates.power(2.0), dict(f=lambda a: a**2)),
        ("A9", "tanh, sharpness 10", coordinates.tanh(10.0), dict(f=exact.steep(10.0))),
        ("A9", "f = e^α on [−4, 0]", coordinates.exponential(-4.0), dict(f=np.exp, low=-4.0, high=0.0)),
        ("A10", "f = e^α on [−2, 0]", coordinates.exponential(-2.0), dict(f=np.exp, low=-2.0, high=0.0)),
        ("A10", "f = e^α on [−0.02, 0]: never below 0.98", coordinates.exponential(-0.02), dict(f=np.exp, low=-0.02, high=0.0)),
        ("B4", "Gaussian prior of α, centre ½, s = 0.3", coordinates.identity(coordinates.gaussian(0.5, 0.3)), dict(log_prior=exact.gaussian_prior(0.5, 0.3))),
        ("B4", "Gaussian prior of α, centre ½, s = 1", coordinates.identity(coordinates.gaussian(0.5, 1.0)), dict(log_prior=exact.gaussian_prior(0.5, 1.0))),
        ("B5", "asymmetric prior N(0.6, 0.3²), divided out", coordinates.identity(coordinates.gaussian(0.6, 0.3)), dict(log_prior=exact.gaussian_prior(0.6, 0.3))),
    ]  # fmt: skip
    numbers = []
    for row, label, coordinate, options in cases:
        alpha = exact.MixtureAlpha(-LINEAR, **options).lahiri(rng, n).alpha
        fit = line_fit(alpha_draws(linear.with_coordinate(coordinate), alpha), n_grid=51).log_bayes_factor("M2", "M1")
        numbers.append(measured(row, f"ln B₂₁, {label}", fit, LINEAR))
    naive = line_fit(alpha_draws(linear, alpha), n_grid=51).log_bayes_factor("M2", "M1")
    numbers.append(Number("B5", "the last one fitted by a plain line: bias", naive.value - LINEAR, naive.error, _plain_line_bias(), remark="The norm then depends on ℓ, and fitting m = 2(1 − c) is wrong (ERRATA 1.4)."))
    for s, deviation in ((0.3, 1.23), (1.0, 0.14), (5.0, 0.006)):
        numbers.append(Number("B4", f"largest deviation of p(α) from a line, Gaussian prior, s = {s:g}", _line_deviation(s), exact=deviation, tolerance=6e-4 if s > 2 else 6e-3,
                              paper=Quoted("“the posterior is linear”", holds=False) if s == 0.3 else None,
                              remark="It is prior times line. For a prior symmetric about ½ the plain fit is right all the same." if s == 0.3 else ""))  # fmt: skip
    text = f"{n:,} independent draws from the exact density of α, and the exact form of the fit: no choice of f or prior biases it."
    return Part("Transformations and priors of α", text, numbers)


def _plain_line_bias() -> float:
    """Where the expected log likelihood of a plain line peaks, for draws under N(0.6, 0.3^2); minus the truth."""
    from scipy.optimize import minimize_scalar

    density = exact.MixtureAlpha(-LINEAR, log_prior=exact.gaussian_prior(0.6, 0.3)).density
    loss = lambda l: -density.expectation(lambda a: np.log(exact.LineAlpha(-l).pdf(a)))  # noqa: E731
    return float(minimize_scalar(loss, bounds=(-5, 8), method="bounded").x) - LINEAR


def _line_deviation(sd: float) -> float:
    """The largest gap between p(alpha) and the straight line that joins its ends."""
    a = np.linspace(0, 1, 2001)
    p = exact.MixtureAlpha(-LINEAR, log_prior=exact.gaussian_prior(0.5, sd)).pdf(a)
    return float(np.abs(p - (p[0] + (p[-1] - p[0]) * a)).max())


def printed_form(runs: Runs) -> Part:
    """The e^alpha density, printed and exact (F1, F2, F4)."""
    numbers = []
    for l in (LINEAR, -2.0):
        d = exact.ExponentialAlpha(-l, CUTOFF)
        numbers.append(Number("F1", f"∫(a e^α + b) dα over [−4, 0], ℓ = {l:.2f}", float(d.cdf(0.0)), exact=1.0, tolerance=1e-12))
    for l, bias in ((4.88, -0.0183), (5.02, -0.0184), (0.0, 0.0), (-2.0, 0.111), (-4.0, 0.684), (-8.0, 4.018)):
        found = float(-exact.printed_log_bayes_factor(-l, CUTOFF)) - l
        numbers.append(Number("F2", f"bias of the printed ratio (a e^Λ + b)/(a + b), ℓ = {l:g}", found, exact=bias, tolerance=6e-4 if abs(bias) > 0.05 else 6e-5,
                              paper=Quoted("B₂₁ = (a e^Λ + b)/(a + b)", holds=False) if l == -8 else None,
                              remark="It can never fall below Λ. B₂₁ = b/(a + b) is exact for any Λ (E14)." if l == -8 else ""))  # fmt: skip
    residual = float(exact.printed_b(-LINEAR, CUTOFF) * (-CUTOFF) + _printed_a() * (1 - math.exp(CUTOFF)) - 1)
    numbers += [
        Number("F4", "(5.2), b(ℓ, Λ), for its own definition: residual of the norm", residual, exact=0.0, tolerance=4e-14),
        Number("F4", "printed form, cured: 4.77 becomes", float(-exact.cured_log_bayes_factor(-4.77, CUTOFF)), exact=4.788, tolerance=6e-4),
        Number("F4", "printed form, cured: 4.98 becomes", float(-exact.cured_log_bayes_factor(-4.98, CUTOFF)), exact=4.998, tolerance=6e-4),
    ]  # fmt: skip
    return Part("e^α: the printed form and the exact one", "The algebra of (5.2) is right, the definition it serves is not.", numbers)


def _printed_a() -> float:
    """a from b by the printed ratio, (a e^L + b)/(a + b) = e^l."""
    b, B = float(exact.printed_b(-LINEAR, CUTOFF)), math.exp(LINEAR)
    return b * (1 - B) / (B - math.exp(CUTOFF))


def figures_7_to_9(runs: Runs) -> Part:
    """e^alpha on both data sets (F3, F5, F6, F8)."""
    linear, sine = runs["linear exp"], runs["sine exp"]
    fits = [line_fit(linear, printed=True), line_fit(sine, printed=True)]
    values = [f.log_bayes_factor("M2", "M1") for f in fits]
    numbers = [
        measured("F5", f"ln B₂₁, linear, e^α, {linear.alpha.size:,} samples", values[0], LINEAR, paper=quoted(4.77, 0.19, 0.18), evaluations=cost(linear)),
        measured("F6", f"ln B₂₁, sine, e^α, {sine.alpha.size:,} samples", values[1], SINE, paper=quoted(4.98, 0.19), evaluations=cost(sine)),
        Number("F5", "error of 3.3e5 independent samples, exact law", 1 / math.sqrt(3.3e5 * information_exponential(-LINEAR, CUTOFF)), exact=0.209, tolerance=6e-4, paper=Quoted("0.19 (+.19 −.18)", 0.19, 0.02, 0.02)),
        Number("F6", "error of 4e5 independent samples, exact law", 1 / math.sqrt(4e5 * information_exponential(-SINE, CUTOFF)), exact=0.215, tolerance=6e-4, paper=Quoted("0.19", 0.19, 0.026, 0.026)),
        Number("F5", "the printed ratio on the same draws, minus the exact form", -fits[0].details["printed"].value - values[0].value, bounds=(-0.03, 0.0)),
        *_gain(runs),
    ]  # fmt: skip
    pictures = [_figure_7(linear), _figure_8_or_9(fits[1], values[1], SINE, 8, "sine"), _figure_8_or_9(fits[0], values[0], LINEAR, 9, "linear")]
    text = "Flat prior of α on [−4, 0], f = e^α; p(α) = a e^α + b, fitted in its exact form."
    return Part("Combined likelihood, f = e^α", text, numbers, pictures)


def _gain(runs: Runs) -> list[Number]:
    """What e^alpha gains: correlation, and error per independent sample."""
    plain, exponential = runs["sine"], runs["sine exp"]
    from supermodel.estimation.precision import information_line

    per_sample = math.sqrt(information_line(-SINE) / information_exponential(-SINE, CUTOFF))
    per_call = line_fit(exponential).log_bayes_factor("M2", "M1").error * math.sqrt(cost(exponential)) / (line_fit(plain).log_bayes_factor("M2", "M1").error * math.sqrt(cost(plain)))
    return [
        Number("F8", "τ of α after thinning by 25, sine, e^α", autocorrelation_time(exponential.alpha), bounds=(0.0, 10.0), paper=Quoted("thinning ≲ 50 suffices", holds=True)),
        Number("F8", "σ per independent sample, e^α over α, sine", per_sample, exact=135.8 / 60.94, tolerance=0.01, paper=Quoted("error 0.30 → 0.19", holds=False),
               remark="Per independent sample e^α is 2.2 times worse. The paper's gain is all in the thinning, 25 instead of 800 (ERRATA 1.4)."),
        Number("F8", "σ√(likelihood calls), e^α over α, as run here", per_call, remark="What the reader pays: below 1 the reparametrisation gains."),
    ]  # fmt: skip


def _figure_7(draws) -> Picture:
    truth, edges = exact.ExponentialAlpha(-LINEAR, CUTOFF), np.linspace(CUTOFF, 0, 61)
    figure, ax = canvas()
    bars(ax, edges, np.histogram(draws.alpha, edges, density=True)[0], GREEN)
    grid = np.linspace(CUTOFF, 0, 300)
    ax.plot(grid, truth.pdf(grid), color=BLUE)
    say(ax, -1.35, 0.27, "exact  $a\\,e^\\alpha + b$", BLUE)
    say(ax, -3.3, 0.12, "Metropolis", GREEN)
    ax.set(xlabel=r"$\alpha$   ($f = e^\alpha$; $M_1$ at 0)", ylabel=r"$p(\alpha \mid D)$", xlim=(CUTOFF, 0))
    return Picture("figure_07", "Figure 7: posterior of α, f = e^α, linear data", f"The exact posterior of α and {draws.alpha.size:,} thinned Metropolis samples.", figure)


def _figure_8_or_9(fit, value, truth: float, number: int, name: str) -> Picture:
    figure, ax = canvas()
    likelihood_curve(ax, fit.details, RED)
    vertical(ax, truth, f"exact {truth:.3f}", BLUE, ha="right" if value.value > truth else "left")
    vertical(ax, value.value, f"recovered {value.value:.2f}", RED, 0.88, ha="left" if value.value > truth else "right")
    ax.set(xlabel=r"$\ell = \ln B_{21}$", ylabel="likelihood (normalised)")
    return Picture(f"figure_{number:02d}", f"Figure {number}: likelihood of ln B₂₁, f = e^α, {name} data", "From the samples of α, f = e^α on [−4, 0]. Shaded: 68%.", figure)


def figure_10(runs: Runs) -> Part:
    """Contours of omega and phi with and without reparametrisation (F7)."""
    numbers, figure, ax = [], *canvas(6.4, 5)
    for name, colour, style, label, expected in (("sine", BLUE, "solid", "f = α", 0.00655), ("sine exp", RED, "dashed", r"$f = e^\alpha$", 0.00214)):
        draws = runs[name]
        values = draws.parameters()
        _contours(ax, values["omega"].ravel(), values["phi"].ravel(), colour, style)
        weight = float(prior_mean_weights(draws.supermodel.coordinate)[0])
        found = averaged(draws, "omega", (weight, 1 - weight))
        share = found.probabilities["M1"]
        from supermodel.estimation.shares import shares

        error = shares(draws).log_bayes_factor("M2", "M1").error * share * (1 - share)
        plain = "α" if name == "sine" else "e^α"
        numbers.append(Number("F7", f"posterior weight of M₁ in the chain, f = {plain}", share, error, expected, evaluations=cost(draws),
                              paper=Quoted("“no change in the posteriors”", holds=False) if name == "sine exp" else None,
                              remark="The prior weight of M₁ is E[f]: ½ for α, 0.245 for e^α. Invisible here because M₁ has so little of either." if name == "sine exp" else ""))  # fmt: skip
    weight = float(prior_mean_weights(coordinates.exponential(CUTOFF))[0])
    numbers.append(Number("F7", "prior weight E[f] of M₁ for e^α on [−4, 0]", weight, exact=0.2454, tolerance=6e-5))
    say(ax, 0.964, 0.012, "f = α (solid)", BLUE)
    say(ax, 0.964, 0.003, r"$f = e^\alpha$ (dashed)", RED)
    ax.set(xlabel="ω", ylabel="φ", xlim=(0.96, 1.04), ylim=(-0.012, 0.125))
    caption = "68% and 95% contours of ω and φ from both chains, M₁ and M₂ together: they coincide."
    return Part("Parameters with and without reparametrisation", "", numbers, [Picture("figure_10", "Figure 10: contours of ω and φ", caption, figure)])


def _contours(ax, x: np.ndarray, y: np.ndarray, colour: str, style: str) -> None:
    from scipy.ndimage import gaussian_filter

    h, xe, ye = np.histogram2d(x, y, bins=(70, 70), range=((0.96, 1.04), (-0.02, 0.13)))
    h = gaussian_filter(h, 2.0)
    ordered = np.sort(h.ravel())[::-1]
    mass = np.cumsum(ordered) / ordered.sum()
    levels = [ordered[np.searchsorted(mass, p)] for p in (0.954, 0.683)]
    ax.contour(0.5 * (xe[1:] + xe[:-1]), 0.5 * (ye[1:] + ye[:-1]), h.T, levels=levels, colors=colour, linestyles=style, linewidths=1.8)
