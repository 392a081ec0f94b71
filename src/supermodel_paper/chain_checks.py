"""Thinning, correlation and convergence of the chains (Sec. 2.2.1)."""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.verdict.diagnostics import autocorrelation_time, end_bin_counts, thinning
from supermodel_paper import alpha_laws
from supermodel_paper.runs import PLANS, Runs, alpha_draws, ln_b21, worst_rhat
from supermodel_paper.supermodels import supermodel
from supermodel_paper.table import Found, Ours, experiment


@experiment
def sampling_checks(runs: Runs) -> Found:
    """Thinning, autocorrelation, convergence of the paper's runs (B10-B14, C4)."""
    linear = runs["linear"]
    return Found(
        {
            "tau": [_tau(runs, name) for name in PAPER_RUNS],
            "rhat": [Ours(worst_rhat(runs[name]), words={"name": name}) for name in PAPER_RUNS],
            "speed": linear.info["steps_per_second"],
            "acceptance": linear.info["acceptance"],
            "AR(1)": _ar1(0.9),
            "thinning": thinning(_ar1_chain(0.95, 200_000)).step,
            "left over": _left_over_correlation(runs),
            "near the end": Ours(float(end_bin_counts(linear)["M1"]), bounds=(0.0, 0.01 * linear.alpha.size)),
        }
    )


PAPER_RUNS = [name for name, plan in PLANS.items() if plan.paper_steps is not None]


def _tau(runs: Runs, name: str) -> Ours:
    tau = autocorrelation_time(runs[name].alpha)
    words = {"name": name, "thin": runs[name].info["thin"], "paper_thin": PLANS[name].thin}
    return Ours(tau, holds=bool(tau < 10), words=words)


def _ar1_chain(rho: float, n: int, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal((4, n + 1000))
    return lfilter([math.sqrt(1 - rho**2)], [1, -rho], noise)[:, 1000:]


def _ar1(rho: float) -> Ours:
    taus = [autocorrelation_time(_ar1_chain(rho, 50_000, seed)) for seed in range(8)]
    return Ours(float(np.mean(taus)), float(np.std(taus, ddof=1) / math.sqrt(8)), (1 + rho) / (1 - rho))


def _left_over_correlation(runs: Runs) -> Ours:
    """The spread of the fit over chains of tau about 10, against the error that independence would claim."""
    line, rng = alpha_laws.LineAlpha(-2.0), np.random.default_rng(runs.settings.seed)
    fits = []
    for seed in rng.integers(0, 2**31, runs.settings.repeats):
        alpha = line.ppf(ndtr(_ar1_chain(0.82, 5000, int(seed))))  # the line's own draws, correlated
        fits.append(line_fit(alpha_draws(supermodel("linear"), alpha.ravel()), n_grid=51))
    claimed, taus = (np.mean([f.details[what] for f in fits]) for what in ("nominal", "tau"))
    ratio = float(np.std([ln_b21(f).value for f in fits], ddof=1) / claimed)
    return Ours(ratio, ratio / math.sqrt(2 * len(fits)), math.sqrt(taus))
