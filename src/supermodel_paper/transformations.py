"""Any f and any prior of alpha give the same Bayes factor (Sec. 2.1.1, 2.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from supermodel import exact
from supermodel.embedding import coordinate as coordinates
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel.estimation.estimate import Estimate
from supermodel_paper import alpha_laws
from supermodel_paper.examples import LINEAR
from supermodel_paper.runs import Runs, alpha_draws, ln_b21
from supermodel_paper.supermodels import supermodel
from supermodel_paper.table import Found, Ours, experiment, ours

ASYMMETRIC = "asymmetric prior N(0.6, 0.3²), divided out"


def _exponential(low: float) -> tuple[Any, dict[str, Any]]:
    return coordinates.exponential(low), {"f": np.exp, "low": low, "high": 0.0}


def _gaussian(mean: float, sd: float) -> tuple[Any, dict[str, Any]]:
    return coordinates.identity(coordinates.gaussian(mean, sd)), {"log_prior": alpha_laws.gaussian_prior(mean, sd)}


CASES: dict[str, tuple[Any, dict[str, Any]]] = {  # the coordinate, and its exact density
    "f = α²": (coordinates.power(2.0), {"f": lambda a: a**2}),
    "tanh, sharpness 10": (coordinates.tanh(10.0), {"f": alpha_laws.steep(10.0)}),
    "f = e^α on [−4, 0]": _exponential(-4.0),
    "f = e^α on [−2, 0]": _exponential(-2.0),
    "f = e^α on [−0.02, 0]: never below 0.98": _exponential(-0.02),
    "Gaussian prior of α, centre ½, s = 0.3": _gaussian(0.5, 0.3),
    "Gaussian prior of α, centre ½, s = 1": _gaussian(0.5, 1.0),
    ASYMMETRIC: _gaussian(0.6, 0.3),
}


@experiment
def transformations(runs: Runs) -> Found:
    """The same ln B21 for any f and any prior of alpha, from independent draws of each density (A9, A10, B4, B5)."""
    linear = supermodel("linear")
    rng, n = np.random.default_rng(runs.settings.seed + 1), runs.settings.exact_draws
    laws = {name: exact.MixtureAlpha(-LINEAR, **known) for name, (_, known) in CASES.items()}
    alphas = {name: alpha_laws.lahiri(law, rng, n).alpha for name, law in laws.items()}

    def fit(name: str, coordinate: Any = None) -> Estimate:
        chosen = linear.with_coordinate(CASES[name][0] if coordinate is None else coordinate)
        return ln_b21(line_fit(alpha_draws(chosen, alphas[name]), n_grid=51))

    naive = fit(ASYMMETRIC, linear.coordinate)
    return Found(
        {
            "fit": lambda name: ours(fit(name)),
            "plain line": Ours(naive.value - LINEAR, naive.error, _plain_line_bias()),
            "deviation": _line_deviation,
        },
        words={"n": n},
    )


def _plain_line_bias() -> float:
    """Where the expected log likelihood of a plain line peaks, for draws under N(0.6, 0.3^2); minus the truth."""
    from scipy.optimize import minimize_scalar

    density = exact.MixtureAlpha(-LINEAR, log_prior=alpha_laws.gaussian_prior(0.6, 0.3)).density
    loss = lambda l: -density.expectation(lambda a: np.log(alpha_laws.LineAlpha(-l).pdf(a)))  # noqa: E731
    return float(minimize_scalar(loss, bounds=(-5, 8), method="bounded").x) - LINEAR


def _line_deviation(sd: float) -> float:
    """The largest gap between p(alpha) and the straight line that joins its ends."""
    a = np.linspace(0, 1, 2001)
    p = exact.MixtureAlpha(-LINEAR, log_prior=alpha_laws.gaussian_prior(0.5, sd)).pdf(a)
    return float(np.abs(p - (p[0] + (p[-1] - p[0]) * a)).max())
