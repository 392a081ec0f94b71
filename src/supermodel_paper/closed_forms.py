"""Evidences, Savage-Dickey ratios and the densities of alpha in closed form (Sec. 1, 2, 3.1 and Appendices A to C)."""

from __future__ import annotations

import math

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha.nested import savage_dickey, savage_dickey_from_conditional
from supermodel.jax_scope import float64
from supermodel.verdict.diagnostics import aic, bic
from supermodel_paper import alpha_laws, appendix_c, examples
from supermodel_paper.examples import LINEAR, THETA2, linear_exact, sine_evidence
from supermodel_paper.runs import Runs
from supermodel_paper.supermodels import supermodel
from supermodel_paper.table import Found, Ours, experiment, ours

MODELS = ("M1", "M2", "full")


@experiment
def evidences(runs: Runs) -> Found:
    """Log evidences, Bayes factors and model probabilities of both examples (A1, A6, D2, D4, D17)."""
    m1, m2 = linear_exact("M1"), linear_exact("M2")
    line = appendix_c.nested_likelihood_line(m1, THETA2)
    written = exact.LinearGaussian(m1.design, m1.y, m1.sigma, np.eye(4))
    return Found(
        {
            "linear": m2.log_evidence - m1.log_evidence,
            "sine": sine_evidence("M2").log_evidence - sine_evidence("M1").log_evidence,
            "probability": 1 / (1 + math.exp(LINEAR)),
            "both ways": (line.log_p - line.log_q) + (m2.log_evidence - m1.log_evidence),
            "unit prior": written.log_evidence - m1.log_evidence,
            "P and Q": line.log_q - line.log_p,
            "ln Z, linear": lambda name: linear_exact(name).log_evidence,
            "ln Z, sine": lambda name: sine_evidence(name).log_evidence,
        }
    )


@experiment
def selection(runs: Runs) -> Found:
    """Order of maximum likelihoods and of evidences; AIC and BIC (D5, A3)."""
    closed = {n: linear_exact(n) for n in MODELS}
    top = {n: m.max_log_likelihood for n, m in closed.items()}
    z = {n: m.log_evidence for n, m in closed.items()}
    by_aic = {n: aic(top[n], m.n_parameters) for n, m in closed.items()}
    by_bic = {n: bic(top[n], m.n_parameters, len(m.y)) for n, m in closed.items()}
    return Found(
        {
            "maximum": lambda name: top[name],
            "likelihoods": top["M1"] - top["M2"],
            "evidences": z["M2"] - max(z["M1"], z["full"]),
            "AIC": [Ours(by_aic[n], exact=m.aic, words={"name": n}) for n, m in closed.items()],
            "BIC": [Ours(by_bic[n], exact=m.bic, words={"name": n}) for n, m in closed.items()],
            "rough": -0.5 * (by_bic["M2"] - by_bic["M1"]),
        }
    )


@experiment
def savage_dickey_ratios(runs: Runs) -> Found:
    """Savage-Dickey ratios in closed form and from posterior draws (A4, D3)."""
    m1, rng = linear_exact("M1"), np.random.default_rng(runs.settings.seed)
    n = runs.settings.exact_draws
    theta = m1.sample_posterior(rng, n)
    at_zero = -0.5 * math.log(2 * math.pi)
    smooth = savage_dickey(theta[:, 2], at_zero)
    known = savage_dickey_from_conditional(_log_conditional_theta2(theta), at_zero)
    phi_prior = -math.log(0.05 * math.sqrt(2 * math.pi))
    covariance = np.eye(4)
    covariance[0, 2] = covariance[2, 0] = 0.8
    correlated = exact.LinearGaussian(m1.design, m1.y, m1.sigma, covariance)
    truth = exact.fix(correlated, THETA2).log_evidence - correlated.log_evidence
    return Found(
        {
            "closed form": exact.savage_dickey(m1, THETA2),
            "logspline": ours(smooth.log_bayes_factor("nested", "larger"), evaluations=n),
            "conditional": ours(known.log_bayes_factor("nested", "larger"), evaluations=n),
            "sine": _sine_sddr() - phi_prior,
            "correlated": Ours(
                exact.log_density_ratio(correlated, THETA2) - truth,
                exact=-float(exact.prior_correction(correlated, THETA2)),
            ),
        }
    )


def _log_conditional_theta2(theta: np.ndarray) -> np.ndarray:
    """ln p(theta2 = 0 | the others, D): Gaussian, one draw each."""
    m1 = linear_exact("M1")
    D = m1.scaled_design
    precision = D[:, 2] @ D[:, 2] + 1.0
    rest = m1.y / m1.sigma - np.delete(theta, 2, 1) @ np.delete(D, 2, 1).T
    mean = rest @ D[:, 2] / precision
    return 0.5 * math.log(precision / (2 * math.pi)) - 0.5 * precision * mean**2


def _sine_sddr() -> float:
    """ln p(phi = 0 | D, M2): the joint on the line phi = 0 over the evidence."""
    on_line = exact.log_evidence_by_quadrature(
        lambda w: examples.sine_log_joint(np.column_stack([w[:, 0], np.zeros(len(w))])), examples.SINE_BOXES["M1"]
    )
    return on_line.log_evidence - sine_evidence("M2").log_evidence


@experiment
def supermodel_condition(runs: Runs) -> Found:
    """The ends of each supermodel are its models; the line, its conversions, its stability (A5, A7, B1-B3, B6, D13, D18, C1)."""
    m1, m2, rng = linear_exact("M1"), linear_exact("M2"), np.random.default_rng(1)
    blend = exact.combined_model_log_density(np.array([1.0, 0.0]), m1, THETA2)
    line = alpha_laws.LineAlpha(-LINEAR)
    theta = m1.sample_prior(rng, 1000)
    direct = m1.log_likelihood(theta) - exact.fix(m1, THETA2).log_likelihood(np.delete(theta, 2, 1))
    gap = appendix_c.log_likelihood_ratio(m1, THETA2, theta) - direct
    x = np.linspace(0, 1, 100_001)
    with float64():
        huge = float(supermodel("linear").combined(np.array([0.5, 0.5]), np.array([1e6, 1e6 - 1.0])))
    return Found(
        {
            "ends": max(abs(blend[0] - m1.log_evidence), abs(blend[1] - m2.log_evidence)),
            "blend": blend[1] - blend[0],
            "appendix B": np.subtract(*exact.combined_model_alpha(m1, THETA2).logpdf(np.array([0.0, 1.0]))),
            "huge": huge - 1e6,
            "norm": np.trapezoid(line.pdf(x), x),
            "slope": line.m - 2 * (1 - line.c),
            "intercept": -alpha_laws.log_bayes_factor_from_intercept(line.c),
            "line": line.pdf(0.5) - 0.5 * (line.pdf(0.0) + line.pdf(1.0)),
            "factor": np.max(np.abs(gap) / (1 + np.abs(m1.log_likelihood(theta)))),
        }
    )


@experiment
def simpson(runs: Runs) -> Found:
    """How fine Simpson's rule must be for Appendix B (D14)."""
    m1 = linear_exact("M1")
    truth = exact.combined_model_alpha(m1, THETA2).log_norm

    def error(n: int) -> float:
        x, w = np.linspace(0, 1, n + 1), np.ones(n + 1)
        w[1:-1:2], w[2:-1:2] = 4, 2
        return float(np.exp(exact.combined_model_log_density(x, m1, THETA2) - truth) @ w / (3 * n) - 1)

    return Found({"error": error, "spike": exact.combined_model_spike(m1, THETA2).half_width})
