r"""The paper's estimator: the likelihood of ln B given the draws of alpha, for any f and any prior of alpha."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from supermodel.embedding.coordinate import Line
from supermodel.errors import SupermodelError
from supermodel.estimation.conditional import prior_mean_weights, weights_of
from supermodel.estimation.error import autocorrelation_time, standard_error
from supermodel.estimation.estimate import Estimate, Evidences
from supermodel.sampling.draws import Draws

FARTHEST = 700.0  # of ln B from the tilt; beyond, e^lambda is no number any more
LIMIT_DROP = 0.5 * 1.6448536269514722**2  # of the log likelihood, at a one-sided 95% limit


def line_fit(draws: Draws, printed: bool = False, n_grid: int = 401) -> Evidences:
    r"""$\ln L(\lambda) = \sum_t \ln\frac{f_t e^\lambda + 1 - f_t}{\bar f e^\lambda + 1 - \bar f}$, at its maximum.

    $f_t = f(\alpha_t)$ is the first model's weight, $\bar f = E_{p(\alpha)}[f]$ and $\lambda = \ln Z_1 - \ln Z_2 +
    \eta_1 - \eta_2$: the exact form of (3.2) for any f and p(alpha), with no need to reach the corners (errata 1.2,
    1.4). The error is $\sqrt{\tau_w/(N I)}$ with $I = \mathrm{Var}[w]$, $w_t = f_t e^\lambda/(f_t e^\lambda + 1 -
    f_t)$ and $\tau_w$ the autocorrelation time of w: honest for correlated chains, where `details["nominal"]` (the
    paper's) is not.

    Needs `mixture` and two models. If all draws crowd at one end the likelihood has no maximum: the value is then a
    one-sided 95% limit (`details["limit"]`), the error infinite. Much is lost beyond |ln B| of about 5: tilt, or use
    `shares`.

    `details`: `grid`, `curve` (the likelihood of ln B, normalised), `mean`, `interval` (68%, highest density),
    `nominal`, `tau`; with `printed`, the paper's ratio of the ends for $e^\alpha$, which stops at f > 0 and is biased
    (errata 1.2).
    """
    log_f, log_rest, log_odds = _log_weights(draws)
    shift = float(draws.supermodel.tilt[0] - draws.supermodel.tilt[1])
    peak = _maximum(log_f, log_rest, log_odds)
    if not math.isfinite(peak):
        return _limit(draws, peak, log_f, log_rest, log_odds, shift)
    w = expit(peak + log_f - log_rest)
    information = float(w.var())
    error, nominal = standard_error(w) / information, 1.0 / math.sqrt(w.size * information)
    grid, curve = _curve(log_f, log_rest, log_odds, peak, nominal, n_grid)
    details = {
        "estimator": "line_fit",
        "grid": grid - shift,
        "curve": curve,
        "mean": float(np.trapezoid(grid * curve, grid)) - shift,
        "interval": tuple(x - shift for x in _highest_density(grid, curve)),
        "nominal": nominal,
        "tau": autocorrelation_time(w),
    }
    if printed:
        details["printed"] = _printed(draws, peak, error, shift)
    return Evidences.of_pair(draws.names, peak - shift, error, **details)


def _log_weights(draws: Draws) -> tuple[np.ndarray, np.ndarray, float]:
    r"""$\ln f$, $\ln(1-f)$ and $\operatorname{logit}\bar f$."""
    supermodel = draws.supermodel
    if supermodel.combine not in ("mixture", "index") or len(draws.names) != 2:
        raise SupermodelError(
            f"the line fit knows the density of alpha for a mixture of two models; these are draws of {supermodel}. "
            "Use `shares`, or `piecewise_linear` and `simplex` for a mixture of more models."
        )
    weights, mean = weights_of(draws), prior_mean_weights(supermodel.coordinate)
    with np.errstate(divide="ignore"):
        return np.log(weights[..., 0]), np.log(weights[..., 1]), float(np.log(mean[0]) - np.log(mean[1]))


def _log_likelihood(grid: np.ndarray, log_f: np.ndarray, log_rest: np.ndarray, log_odds: float) -> np.ndarray:
    norm = np.logaddexp(grid + log_odds, 0.0) - np.logaddexp(log_odds, 0.0)
    return np.array([np.sum(np.logaddexp(log_f + x, log_rest) - z) for x, z in zip(grid, norm, strict=True)])


def _maximum(log_f: np.ndarray, log_rest: np.ndarray, log_odds: float) -> float:
    r"""The root of $\bar w(\lambda) - \overline{w_t}(\lambda)$; infinite where all draws crowd at one end."""
    from scipy.optimize import brentq

    odds = (log_f - log_rest).ravel()
    if np.any(np.isnan(odds)):
        return math.nan

    def score(x: float) -> float:  # in units in which neither tail vanishes
        return float(np.mean(expit(x + odds) - expit(x + log_odds)) / (expit(x + log_odds) * expit(-x - log_odds)))

    # The likelihood is concave in the share of the first model, so its slopes at the ends tell whether there is a top.
    with np.errstate(over="ignore"):
        if np.mean(np.exp(np.minimum(odds - log_odds, FARTHEST))) <= 1.0:
            return -math.inf
        if np.mean(np.exp(np.minimum(log_odds - odds, FARTHEST))) <= 1.0:
            return math.inf
    reach = 1.0
    while (score(-reach) < 0 or score(reach) > 0) and reach < FARTHEST:
        reach *= 2
    return float(brentq(score, -reach, reach, xtol=1e-13, rtol=1e-14)) if score(-reach) * score(reach) < 0 else math.nan


def _curve(log_f, log_rest, log_odds, peak, nominal, n_grid) -> tuple[np.ndarray, np.ndarray]:
    """The normalised likelihood out to where it has fallen by e^-12 (or far enough, on a side that never does)."""
    from scipy.interpolate import CubicSpline

    reach = []
    for side in (-1.0, 1.0):
        step = 5.0 * nominal
        for _ in range(6):
            ends = _log_likelihood(np.array([peak, peak + side * step]), log_f, log_rest, log_odds)
            if ends[0] - ends[1] > 12.0:
                break
            step *= 1.4
        reach.append(peak + side * step)
    coarse = _closer_at_the_peak(reach, peak, 49)
    values = _log_likelihood(coarse, log_f, log_rest, log_odds)
    grid = _closer_at_the_peak(reach, peak, n_grid)
    curve = np.exp(CubicSpline(coarse, values - values.max())(grid))
    return grid, curve / np.trapezoid(curve, grid)


def _closer_at_the_peak(reach: list[float], peak: float, n: int) -> np.ndarray:
    """Points from end to end, dense at the peak: a side that never falls is long, and even steps would miss the other."""
    t = np.linspace(-1.0, 1.0, n)
    return peak + np.where(t < 0, peak - reach[0], reach[1] - peak) * t * np.abs(t)


def _highest_density(grid: np.ndarray, curve: np.ndarray, mass: float = 0.6826894921370859) -> tuple[float, float]:
    """The shortest interval that holds `mass` of a curve with one peak."""
    below = np.concatenate([[0.0], np.cumsum(0.5 * (curve[1:] + curve[:-1]) * np.diff(grid))])
    start = np.linspace(0.0, (1 - mass) * below[-1], 2001)
    low, high = np.interp(start, below, grid), np.interp(start + mass * below[-1], below, grid)
    best = np.argmin(high - low)
    return float(low[best]), float(high[best])


def _limit(draws: Draws, peak: float, log_f, log_rest, log_odds: float, shift: float) -> Evidences:
    """No maximum: where the likelihood has fallen from its supremum by what a one-sided 95% limit allows."""
    from scipy.optimize import brentq

    if math.isnan(peak):
        return Evidences.of_pair(draws.names, math.nan, math.nan, estimator="line_fit")
    side = math.copysign(1.0, peak)
    top = _log_likelihood(np.array([side * FARTHEST]), log_f, log_rest, log_odds)[0]
    drop = lambda x: top - _log_likelihood(np.array([x]), log_f, log_rest, log_odds)[0] - LIMIT_DROP  # noqa: E731
    centre = 0.0
    while drop(centre) < 0 and abs(centre) < FARTHEST / 2:
        centre -= side * 5.0
    bound = brentq(drop, centre, side * FARTHEST) if drop(centre) > 0 else math.nan
    kind = "lower" if side > 0 else "upper"
    limit = {"kind": kind, "log_bayes_factor": bound - shift, "probability": 0.95}
    return Evidences.of_pair(draws.names, bound - shift, math.inf, estimator="line_fit", limit=limit)


def _printed(draws: Draws, peak: float, error: float, shift: float) -> Estimate:
    r"""$\ln B' = -\ln(f_e + (1 - f_e) e^{-\lambda})$: the fitted density at its two ends; $f_e$ is f at the second."""
    coordinate = draws.supermodel.coordinate
    if not isinstance(coordinate, Line):
        raise SupermodelError("the printed form of section 5.1 is one for a line of alpha, with f at its two ends.")
    end = float(coordinate.f_of(np.array(coordinate.ends[1])))
    with np.errstate(divide="ignore"):
        log_end, log_far = np.log(end), np.log1p(-end) - peak
    biased = float(np.logaddexp(log_end, log_far))
    return Estimate(-biased - shift, error * math.exp(log_far - biased))
