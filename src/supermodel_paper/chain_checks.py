"""Thinning, correlation and convergence of the chains (Sec. 2.2.1)."""

from __future__ import annotations

import math

import numpy as np

from supermodel import exact
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.verdict.diagnostics import autocorrelation_time, end_bin_counts, thinning
from supermodel_paper import examples
from supermodel_paper.numbers import Number, Part, Quoted
from supermodel_paper.runs import Runs, alpha_draws, worst_rhat


def sampling_checks(runs: Runs) -> Part:
    """Thinning, autocorrelation, convergence of the paper's runs (B10-B14, C4)."""
    numbers = []
    thins = {"linear": 300, "sine": 800, "linear exp": 15, "sine exp": 25, "linear blend exp": 10}
    for name, paper_thin in thins.items():
        draws = runs[name]
        tau = autocorrelation_time(draws.alpha)
        numbers.append(
            Number(
                "B11",
                f"τ of α after thinning by {draws.info['thin']}: {name}",
                tau,
                paper=Quoted(f"τ < 10 at n = {paper_thin}", holds=bool(tau < 10)),
                remark=""
                if tau < 10
                else "Not with our Metropolis: these samples are far from independent. A histogram needs no "
                "independence, "
                "an error does.",
            )
        )
        numbers.append(
            Number(
                "B14",
                f"largest split R̂ over all parameters: {name}",
                worst_rhat(draws),
                bounds=(0.0, 1.05),
                paper=Quoted("R̂ < 1.05", holds=True),
            )
        )
    info = runs["linear"].info
    numbers += [
        Number("B10", "Metropolis steps per second, all chains together", info["steps_per_second"]),
        Number("B10", "acceptance", info["acceptance"], bounds=(0.1, 0.6)),
        _ar1(),
        Number(
            "B11",
            "thinning step that the rule τ < 10 finds on an AR(1) chain, τ = 39",
            float(thinning(_ar1_chain(0.95, 200_000)).step),
            bounds=(3, 6),
        ),
        _left_over_correlation(runs),
    ]
    counts = end_bin_counts(runs["linear"])
    numbers.append(
        Number(
            "B7",
            "samples within 0.01 of α = 1",
            float(counts["M1"]),
            bounds=(0.0, 0.01 * runs["linear"].alpha.size),
            remark="End-point estimates rest on these alone.",
        )
    )
    text = (
        "The paper thins until τ < 10 and calls the rest independent. That is not independence: it understates "
        "the error by √τ."
    )
    return Part("Sampling, thinning and convergence", text, numbers)


def _ar1_chain(rho: float, n: int, seed: int = 0) -> np.ndarray:
    from scipy.signal import lfilter

    noise = np.random.default_rng(seed).standard_normal((4, n + 1000))
    return lfilter([math.sqrt(1 - rho**2)], [1, -rho], noise)[:, 1000:]


def _ar1() -> Number:
    rho = 0.9
    taus = [autocorrelation_time(_ar1_chain(rho, 50_000, seed)) for seed in range(8)]
    return Number(
        "B12",
        "autocorrelation time of an AR(1) chain, ρ = 0.9",
        float(np.mean(taus)),
        float(np.std(taus, ddof=1) / math.sqrt(8)),
        (1 + rho) / (1 - rho),
    )


def _left_over_correlation(runs: Runs) -> Number:
    """The spread of the fit over chains of tau about 10, against the error that independence would claim."""
    from scipy.special import ndtr

    line, supermodel = exact.LineAlpha(-2.0), examples.supermodel("linear")
    rng = np.random.default_rng(runs.settings.seed)
    values, claimed, taus = [], [], []
    for seed in rng.integers(0, 2**31, runs.settings.repeats):
        alpha = line.ppf(ndtr(_ar1_chain(0.82, 5000, int(seed))))  # the line's own draws, correlated
        fit = line_fit(alpha_draws(supermodel, alpha.ravel()), n_grid=51)
        values.append(fit.log_bayes_factor("M2", "M1").value)
        claimed.append(fit.details["nominal"])
        taus.append(fit.details["tau"])
    ratio = float(np.std(values, ddof=1) / np.mean(claimed))
    return Number(
        "B13",
        "true error over claimed error, samples with τ ≈ 9 treated as independent",
        ratio,
        ratio / math.sqrt(2 * len(values)),
        math.sqrt(np.mean(taus)),
        paper=Quoted("samples with τ < 10 are independent", holds=False),
        remark="The error of this library is multiplied by √τ of the score (errata 1.4).",
    )
