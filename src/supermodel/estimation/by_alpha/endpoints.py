r"""End-point densities: $\ln B = \ln\frac{p(\alpha_1|D)}{p(\alpha_1)} - \ln\frac{p(\alpha_2|D)}{p(\alpha_2)}$ (2.2).

Only draws near the two ends count, so these are the weakest estimators, kept because the paper uses them. What all of
them share: the density between the ends is smoothed over a width, which biases the ratio by (width x slope of ln p)
at each end; a coordinate that stops short of a corner ($e^\alpha$) gives the density at its end, not at the model.
`shares` has neither fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from supermodel.embedding.coordinate import Line
from supermodel.errors import SupermodelError
from supermodel.estimation.conditional import rule
from supermodel.estimation.error import effective_size, standard_error
from supermodel.estimation.estimate import Evidences
from supermodel.sampling.draws import Draws


def histogram(draws: Draws, bins: int = 50, sensitivity: Sequence[int] = (10, 20, 50, 100, 200)) -> Evidences:
    r"""$\ln B = \ln\frac{n_1}{N P_1} - \ln\frac{n_2}{N P_2}$: counts in the end bins over the prior mass there.

    The error allows for autocorrelation, not for the bias of wide bins: `details["sensitivity"]` = {bins: (value,
    error)} shows it as a drift with the number of bins. An empty end bin gives an infinite error, never zero.
    """
    value, error, counts = _from_kernel(draws, _box(draws, bins))
    drift = {b: _from_kernel(draws, _box(draws, b))[:2] for b in sensitivity}
    details = {"estimator": "histogram", "bins": bins, "counts": counts, "sensitivity": drift}
    return Evidences.of_pair(draws.names, value, error, **details)


def kde(draws: Draws, bandwidth: float | None = None) -> Evidences:
    r"""$\hat p(\alpha_e) = \frac{1}{N}\sum_t K_h(\alpha_t - \alpha_e)$ reflected at the ends, over such a prior.

    Gaussian kernel; `bandwidth` h defaults to Silverman's rule with the effective number of draws. Reflection makes
    the slope zero at an end, where for a mixture it is largest: a bias of order h that the error does not show.
    `details["sensitivity"]` has the value at h/2 and 2h.
    """
    h = bandwidth or _silverman(draws.alpha)
    value, error, _ = _from_kernel(draws, _gauss(h))
    drift = {scale * h: _from_kernel(draws, _gauss(scale * h))[:2] for scale in (0.5, 2.0)}
    return Evidences.of_pair(draws.names, value, error, estimator="kde", bandwidth=h, sensitivity=drift)


def _line(draws: Draws) -> Line:
    coordinate = draws.supermodel.coordinate
    if not isinstance(coordinate, Line):
        raise SupermodelError(
            f"end-point densities need a continuous alpha between two models; these draws have a "
            f"{type(coordinate).__name__.lower()}. Use `shares`, or `counts` for a ladder."
        )
    return coordinate


def _box(draws: Draws, bins: int):
    """The end bin: inside the interval at a boundary, centred on an end that is an interior point."""
    width = abs(np.diff(_line(draws).ends)[0]) / bins
    return lambda distance, is_interior: np.abs(distance) <= (width / 2 if is_interior else width)


def _gauss(h: float):
    # Reflection doubles the kernel at a boundary; the smoothed prior is doubled alike, so the factor drops out.
    return lambda distance, is_interior: np.exp(-0.5 * (distance / h) ** 2)


def _silverman(alpha: np.ndarray) -> float:
    spread = min(alpha.std(), np.subtract(*np.quantile(alpha, [0.75, 0.25])) / 1.349)
    n = effective_size(alpha)
    return float(0.9 * (spread or alpha.std() or 1e-3) * (alpha.size if math.isnan(n) else n) ** -0.2)


def _from_kernel(draws: Draws, kernel) -> tuple[float, float, list[float]]:
    """ln B, its error, and the sum of the kernel at either end."""
    coordinate, tilt = _line(draws), draws.supermodel.tilt
    logs, influences, sums = [], [], []
    for end in coordinate.ends:
        interior = coordinate.low < end < coordinate.high
        prior = rule(coordinate, np.linspace(coordinate.low, coordinate.high, 2001), n_nodes=4)
        k = np.asarray(kernel(draws.alpha - end, interior), float)
        expected = np.exp(prior.log_mass) @ np.asarray(kernel(prior.alpha - end, interior), float)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs.append(float(np.log(k.mean()) - np.log(expected)))
            influences.append(k / k.mean())
        sums.append(float(k.sum()))
    if min(sums) == 0.0:
        return logs[0] - logs[1] - (tilt[0] - tilt[1]), math.inf, sums
    return logs[0] - logs[1] - float(tilt[0] - tilt[1]), standard_error(influences[0] - influences[1]), sums


# -- the tanh fit of section 5.2 ----------------------------------------------------------------------------------


def tanh_fit(
    draws: Draws | tuple[np.ndarray, np.ndarray], bins: int = 100, names: Sequence[str] = ("first", "second")
) -> Evidences:
    r"""$p(\alpha|D)/p(\alpha) \approx a \tanh(b\alpha + c) + d$ by least squares; $\ln B$ from its two ends.

    Takes draws, or (grid, density) with the first model at the last point of the grid, where the density may be
    exact. The form is a guess of the paper's and wrong: on the exact density of linear.csv it gives 3.90, 4.09, 3.77,
    3.71 for $\Lambda$ = -4, -6, -8, -10 where 4.88 is true (errata 1.3). Use `shares`. The error (spread of the fit
    when one chain or block is left out) is of the sampling alone and knows nothing of that.
    """
    if isinstance(draws, tuple):
        grid, density = (np.asarray(a, float) for a in draws)
        parameters = _fit_tanh(grid, density)
        value = _log_ratio(parameters, grid[-1], grid[0])
        return Evidences.of_pair(names, value, math.nan, estimator="tanh_fit", parameters=parameters)
    coordinate = _line(draws)
    blocks = draws.alpha if len(draws.alpha) > 1 else np.array_split(draws.alpha[0], 10)
    parts = np.stack([_ratio_histogram(coordinate, block, bins)[1] for block in blocks])
    centres = _ratio_histogram(coordinate, draws.alpha, bins)[0]
    parameters = _fit_tanh(centres, parts.mean(axis=0))
    shift = float(draws.supermodel.tilt[0] - draws.supermodel.tilt[1])
    value = _log_ratio(parameters, *coordinate.ends) - shift
    left_out = [
        _log_ratio(_fit_tanh(centres, np.delete(parts, i, axis=0).mean(axis=0), parameters), *coordinate.ends)
        for i in range(len(parts))
    ]
    error = math.sqrt((len(parts) - 1) * np.var(left_out))
    details = {"estimator": "tanh_fit", "parameters": parameters, "grid": centres, "density": parts.mean(axis=0)}
    return Evidences.of_pair(draws.names, value, error, **details)


def _ratio_histogram(coordinate: Line, alpha: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Posterior over prior mass in bins."""
    cuts = np.linspace(coordinate.low, coordinate.high, bins + 1)
    prior = np.exp(rule(coordinate, cuts, n_nodes=8).log_mass).reshape(bins, 8).sum(axis=1)
    return 0.5 * (cuts[1:] + cuts[:-1]), np.histogram(alpha, cuts)[0] / np.size(alpha) / prior


def _tanh(alpha, a, b, c, d):
    return a * np.tanh(b * alpha + c) + d


def _fit_tanh(grid: np.ndarray, density: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Least squares from several centres; the best of them."""
    import warnings

    from scipy.optimize import OptimizeWarning, curve_fit

    half, middle, size = np.ptp(density) / 2, (density.max() + density.min()) / 2, np.ptp(grid)
    sign = 1.0 if density[-1] > density[0] else -1.0
    starts = (
        [start]
        if start is not None
        else [
            (sign * half, s / size, -s / size * (grid[0] + p * size), middle)
            for p in (0.25, 0.5, 0.75)
            for s in (2.0, 6.0, 20.0)
        ]
    )
    best, least = np.full(4, np.nan), np.inf
    for guess in starts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)
            try:
                found, _ = curve_fit(_tanh, grid, density, guess, maxfev=4000)
            except RuntimeError:  # this start did not converge; another may
                continue
        loss = np.sum((_tanh(grid, *found) - density) ** 2)
        if loss < least:
            best, least = found, loss
    return best


def _log_ratio(parameters: np.ndarray, first: float, second: float) -> float:
    """ln of the curve at the first end over the second; NaN where the fitted curve is not positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.log(_tanh(first, *parameters)) - np.log(_tanh(second, *parameters)))
