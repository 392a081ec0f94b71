"""Evidences, Savage-Dickey ratios and the densities of alpha in closed form (Sec. 1, 2, 3.1 and Appendices A to C)."""

from __future__ import annotations

import math

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha.nested import savage_dickey, savage_dickey_from_conditional
from supermodel.jax_scope import float64
from supermodel.verdict.diagnostics import aic, bic
from supermodel_paper import examples
from supermodel_paper.examples import LINEAR, SINE, THETA2, linear_exact, sine_evidence
from supermodel_paper.numbers import Number, Part, Quoted, measured
from supermodel_paper.runs import Runs

TABLE = {  # /shared/data: 50-digit arithmetic
    "M1": (220.4694086057, 246.438075),
    "M2": (225.3486558041, 246.162428),
    "full": (215.1998539561, 247.604006),
}
SINE_TABLE = {"M1": 66.0844029432, "M2": 71.1066677433}


def evidences(runs: Runs) -> Part:
    """Log evidences, Bayes factors and model probabilities of both examples (A1, A6, D2, D4, D17)."""
    m1, m2 = linear_exact("M1"), linear_exact("M2")
    line = exact.nested_likelihood_line(m1, THETA2)
    numbers = [
        Number(
            "A1",
            "ln B₂₁, linear data, closed form",
            m2.log_evidence - m1.log_evidence,
            exact=LINEAR,
            tolerance=1e-9,
            paper=Quoted("4.88", 4.88, 0.005, 0.005),
        ),
        Number(
            "A1",
            "ln B₂₁, sine data, quadrature",
            sine_evidence("M2").log_evidence - sine_evidence("M1").log_evidence,
            exact=SINE,
            tolerance=1e-9,
            paper=Quoted("5.023 ± 0.078", 5.023, 0.078, 0.078),
        ),
        Number("A1", "P(M₁ | D) at equal odds, linear", 1 / (1 + math.exp(LINEAR)), exact=0.00755, tolerance=5e-6),
        Number(
            "A6",
            "ln B₁₂ + ln B₂₁, linear",
            (line.log_p - line.log_q) + (m2.log_evidence - m1.log_evidence),
            exact=0.0,
            tolerance=1e-9,
            remark="(2.1) and (2.2) put M₁ at α = 0, all later equations at α = 1: mixing them flips the sign (E15). "
            "Here weight 1 is always M₁.",
        ),
        Number(
            "D4",
            "ln Z of M₁ with P = I written out, minus the default",
            exact.LinearGaussian(m1.design, m1.y, m1.sigma, np.eye(4)).log_evidence - m1.log_evidence,
            exact=0.0,
            tolerance=1e-12,
        ),
        Number(
            "D17",
            "ln Q/P (Appendix C, corrected)",
            line.log_q - line.log_p,
            exact=LINEAR,
            tolerance=1e-9,
            remark="As printed, v is undefined and |2πC₂⁻¹| should be |2πC₂| (E9, E10); without consequence at C = I.",
        ),
    ]
    numbers += [
        Number("D2", f"ln Z of {name}, linear", linear_exact(name).log_evidence, exact=value, tolerance=1e-9)
        for name, (value, _) in TABLE.items()
    ]
    numbers += [
        Number("D2", f"ln Z of {name}, sine", sine_evidence(name).log_evidence, exact=value, tolerance=1e-9)
        for name, value in SINE_TABLE.items()
    ]
    text = "The two data sets have exact answers. The closed form of Appendix A is used as corrected (E1 to E4)."
    return Part("Evidences", text, numbers)


def selection(runs: Runs) -> Part:
    """Order of maximum likelihoods and of evidences; AIC and BIC (D5, A3)."""
    names = ("M1", "M2", "full")
    top = {n: linear_exact(n).max_log_likelihood for n in names}
    numbers = [Number("D5", f"maximum ln L of {n}", top[n], exact=TABLE[n][1], tolerance=1e-6) for n in names]
    numbers.append(
        Number(
            "D5",
            "max ln L of M₁ minus that of M₂",
            top["M1"] - top["M2"],
            bounds=(0.0, math.inf),
            paper=Quoted("max ln L of M₂ is higher than of M₁", holds=False),
            remark="M₁ contains M₂, so its maximum cannot be lower.",
        )
    )
    z = {n: linear_exact(n).log_evidence for n in names}
    numbers.append(
        Number(
            "D5",
            "ln Z of M₂ minus the best other",
            z["M2"] - max(z["M1"], z["full"]),
            bounds=(0.0, math.inf),
            paper=Quoted("M₂ has the highest evidence", holds=True),
        )
    )
    for name in names:
        k, n_data = linear_exact(name).n_parameters, len(linear_exact(name).y)
        numbers.append(Number("A3", f"AIC of {name}", aic(top[name], k), exact=linear_exact(name).aic, tolerance=1e-9))
        numbers.append(
            Number("A3", f"BIC of {name}", bic(top[name], k, n_data), exact=linear_exact(name).bic, tolerance=1e-9)
        )
    rough = -0.5 * (bic(top["M2"], 3, 100) - bic(top["M1"], 4, 100))
    numbers.append(
        Number(
            "A3",
            "ln B₂₁ as BIC has it (crude)",
            rough,
            remark=f"Exact: {LINEAR:.2f}. BIC knows nothing of the prior's width.",
        )
    )
    return Part(
        "Occam's razor",
        "The largest likelihood goes to the model of most freedom, the largest evidence to the true one.",
        numbers,
    )


def savage_dickey_ratios(runs: Runs) -> Part:
    """Savage-Dickey ratios in closed form and from posterior draws (A4, D3)."""
    m1, rng = linear_exact("M1"), np.random.default_rng(runs.settings.seed)
    n = runs.settings.exact_draws
    theta = m1.sample_posterior(rng, n)
    at_zero = -0.5 * math.log(2 * math.pi)
    conditional = _log_conditional_theta2(theta)
    phi_prior = -math.log(0.05 * math.sqrt(2 * math.pi))
    correlated = exact.LinearGaussian(m1.design, m1.y, m1.sigma, _correlated(0.8))
    naive = exact.log_density_ratio(correlated, THETA2)
    truth = exact.fix(correlated, THETA2).log_evidence - correlated.log_evidence
    numbers = [
        Number(
            "D3",
            "ln SDDR at θ₂ = 0, closed form (corrected)",
            exact.savage_dickey(m1, THETA2),
            exact=LINEAR,
            tolerance=1e-9,
            remark="Appendix A as printed has a sign and a transpose wrong (E5 to E7).",
        ),
        measured(
            "A4",
            "the same from posterior draws of M₁, logspline",
            savage_dickey(theta[:, 2], at_zero).log_bayes_factor("nested", "larger"),
            LINEAR,
            evaluations=n,
        ),
        measured(
            "A4",
            "the same, by the known conditional of θ₂",
            savage_dickey_from_conditional(conditional, at_zero).log_bayes_factor("nested", "larger"),
            LINEAR,
            evaluations=n,
        ),
        Number("A4", "sine: ln SDDR at φ = 0 inside M₂", _sine_sddr() - phi_prior, exact=-SINE, tolerance=1e-8),
        Number(
            "A4",
            "prior correlated by 0.8: plain ratio minus the truth",
            naive - truth,
            exact=-float(exact.prior_correction(correlated, THETA2)),
            tolerance=1e-9,
            remark="(1.1) needs π(θ | φ = 0) of M₁ to be the prior of M₂, which the paper does not say (E17). The "
            "library refuses or corrects.",
        ),
    ]
    return Part(
        "The Savage-Dickey density ratio",
        "Nested models need no supermodel: posterior over prior density at the nested value.",
        numbers,
    )


def _log_conditional_theta2(theta: np.ndarray) -> np.ndarray:
    """ln p(theta2 = 0 | the others, D): Gaussian, one draw each."""
    m1 = linear_exact("M1")
    D = m1.scaled_design
    precision = D[:, 2] @ D[:, 2] + 1.0
    rest = m1.y / m1.sigma - np.delete(theta, 2, 1) @ np.delete(D, 2, 1).T
    mean = rest @ D[:, 2] / precision
    return 0.5 * math.log(precision / (2 * math.pi)) - 0.5 * precision * mean**2


def _correlated(rho: float) -> np.ndarray:
    covariance = np.eye(4)
    covariance[0, 2] = covariance[2, 0] = rho
    return covariance


def _sine_sddr() -> float:
    """ln p(phi = 0 | D, M2): the joint on the line phi = 0 over the evidence."""
    on_line = exact.log_evidence_by_quadrature(
        lambda w: examples.sine_log_joint(np.column_stack([w[:, 0], np.zeros(len(w))])), examples.SINE_BOXES["M1"]
    )
    return on_line.log_evidence - sine_evidence("M2").log_evidence


def supermodel_condition(runs: Runs) -> Part:
    """The ends of each supermodel are its models; the line, its conversions, its stability (A5, A7, B1-B3, B6, D13, D18, C1)."""
    m1, rng = linear_exact("M1"), np.random.default_rng(1)
    blend = exact.combined_model_log_density(np.array([1.0, 0.0]), m1, THETA2)
    line = exact.LineAlpha(-LINEAR)
    theta = m1.sample_prior(rng, 1000)
    without = exact.fix(m1, THETA2)
    gap = exact.log_likelihood_ratio(m1, THETA2, theta) - (
        m1.log_likelihood(theta) - without.log_likelihood(np.delete(theta, 2, 1))
    )
    x = np.linspace(0, 1, 100_001)
    mixture = examples.supermodel("linear")
    with float64():
        huge = float(mixture.combined(np.array([0.5, 0.5]), np.array([1e6, 1e6 - 1.0])))
    numbers = [
        Number(
            "A5",
            "combined model at f = 1 and 0 against ln Z₁, ln Z₂: worst gap",
            float(max(abs(blend[0] - m1.log_evidence), abs(blend[1] - linear_exact("M2").log_evidence))),
            exact=0.0,
            tolerance=1e-8,
        ),
        Number(
            "C1", "ln Z(f = 0) − ln Z(f = 1), combined model", float(blend[1] - blend[0]), exact=LINEAR, tolerance=1e-8
        ),
        Number(
            "D13",
            "the same from Appendix B's density, normalised",
            float(np.subtract(*exact.combined_model_alpha(m1, THETA2).logpdf(np.array([0.0, 1.0])))),
            exact=LINEAR,
            tolerance=1e-8,
        ),
        Number(
            "B1",
            "ln(½e^L + ½e^(L−1)) − L at L = 10⁶",
            huge - 1e6,
            exact=math.log(0.5 * (1 + math.exp(-1))),
            tolerance=1e-9,
            remark="In logarithms; the likelihoods themselves would overflow.",
        ),
        Number("B2", "∫ p(α) dα of the exact line", float(np.trapezoid(line.pdf(x), x)), exact=1.0, tolerance=1e-12),
        Number("B3", "m − 2(1 − c)", line.m - 2 * (1 - line.c), exact=0.0, tolerance=1e-12),
        Number(
            "B6", "ln[c/(2 − c)]", float(-exact.log_bayes_factor_from_intercept(line.c)), exact=LINEAR, tolerance=1e-9
        ),
        Number(
            "A7",
            "p(½) − ½[p(0) + p(1)]: p(α) is a line",
            float(line.pdf(0.5) - 0.5 * (line.pdf(0.0) + line.pdf(1.0))),
            exact=0.0,
            tolerance=1e-12,
        ),
        Number(
            "D18",
            "ln L₁ − ln L₂ by the factor of Appendix C: worst relative residual",
            float(np.max(np.abs(gap) / (1 + np.abs(m1.log_likelihood(theta))))),
            exact=0.0,
            tolerance=1e-9,
        ),
    ]
    return Part(
        "The supermodel condition", "Every combination must be one model at each end. All hold to rounding.", numbers
    )


def simpson(runs: Runs) -> Part:
    """How fine Simpson's rule must be for Appendix B (D14)."""
    m1 = linear_exact("M1")
    truth = exact.combined_model_alpha(m1, THETA2).log_norm
    numbers = []
    for n, error in ((50, -1.6e-2), (200, -2.7e-4), (500, 3.5e-6), (1000, 5e-10)):
        x = np.linspace(0, 1, n + 1)
        w = np.ones(n + 1)
        w[1:-1:2], w[2:-1:2] = 4, 2
        value = np.exp(exact.combined_model_log_density(x, m1, THETA2) - truth) @ w / (3 * n) - 1
        numbers.append(
            Number(
                "D14",
                f"relative error of Simpson's rule, {n} intervals",
                float(value),
                exact=error,
                tolerance=max(0.06 * abs(error), 2e-10),
            )
        )
    spike = exact.combined_model_spike(m1, THETA2)
    numbers.append(
        Number("D14", "half-width S^(−1/2) of the spike at α = 0", spike.half_width, exact=0.0058, tolerance=5e-5)
    )
    text = (
        "Appendix B normalises by Simpson's rule. The density has a spike at α = 0 that must be resolved: 1000 "
        "intervals do, 50 do not."
    )
    return Part("Normalising the combined model", text, numbers)
