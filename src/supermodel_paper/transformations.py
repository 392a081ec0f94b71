"""Any f and any prior of alpha give the same Bayes factor (Sec. 2.1.1, 2.2)."""

from __future__ import annotations

import numpy as np

from supermodel import exact
from supermodel.embedding import coordinate as coordinates
from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel_paper import examples
from supermodel_paper.examples import LINEAR
from supermodel_paper.numbers import Number, Part, Quoted, measured
from supermodel_paper.runs import Runs, alpha_draws


def transformations(runs: Runs) -> Part:
    """The same ln B21 for any f and any prior of alpha, from independent draws of each density (A9, A10, B4, B5)."""
    linear = examples.supermodel("linear")
    rng, n = np.random.default_rng(runs.settings.seed + 1), runs.settings.exact_draws
    cases = [
        ("A9", "f = α²", coordinates.power(2.0), dict(f=lambda a: a**2)),
        ("A9", "tanh, sharpness 10", coordinates.tanh(10.0), dict(f=exact.steep(10.0))),
        ("A9", "f = e^α on [−4, 0]", coordinates.exponential(-4.0), dict(f=np.exp, low=-4.0, high=0.0)),
        ("A10", "f = e^α on [−2, 0]", coordinates.exponential(-2.0), dict(f=np.exp, low=-2.0, high=0.0)),
        (
            "A10",
            "f = e^α on [−0.02, 0]: never below 0.98",
            coordinates.exponential(-0.02),
            dict(f=np.exp, low=-0.02, high=0.0),
        ),
        (
            "B4",
            "Gaussian prior of α, centre ½, s = 0.3",
            coordinates.identity(coordinates.gaussian(0.5, 0.3)),
            dict(log_prior=exact.gaussian_prior(0.5, 0.3)),
        ),
        (
            "B4",
            "Gaussian prior of α, centre ½, s = 1",
            coordinates.identity(coordinates.gaussian(0.5, 1.0)),
            dict(log_prior=exact.gaussian_prior(0.5, 1.0)),
        ),
        (
            "B5",
            "asymmetric prior N(0.6, 0.3²), divided out",
            coordinates.identity(coordinates.gaussian(0.6, 0.3)),
            dict(log_prior=exact.gaussian_prior(0.6, 0.3)),
        ),
    ]
    numbers = []
    for row, label, coordinate, options in cases:
        alpha = exact.MixtureAlpha(-LINEAR, **options).lahiri(rng, n).alpha
        fit = line_fit(alpha_draws(linear.with_coordinate(coordinate), alpha), n_grid=51).log_bayes_factor("M2", "M1")
        numbers.append(measured(row, f"ln B₂₁, {label}", fit, LINEAR))
    naive = line_fit(alpha_draws(linear, alpha), n_grid=51).log_bayes_factor("M2", "M1")
    numbers.append(
        Number(
            "B5",
            "the last one fitted by a plain line: bias",
            naive.value - LINEAR,
            naive.error,
            _plain_line_bias(),
            remark="The norm then depends on ℓ, and fitting m = 2(1 − c) is wrong (errata 1.4).",
        )
    )
    for s, deviation in ((0.3, 1.23), (1.0, 0.14), (5.0, 0.006)):
        numbers.append(
            Number(
                "B4",
                f"largest deviation of p(α) from a line, Gaussian prior, s = {s:g}",
                _line_deviation(s),
                exact=deviation,
                tolerance=6e-4 if s > 2 else 6e-3,
                paper=Quoted("linear for a wide Gaussian prior of α", holds=False) if s == 0.3 else None,
                remark="It is prior times line. For a prior symmetric about ½ the plain fit is right all the same."
                if s == 0.3
                else "",
            )
        )
    text = (
        f"{n:,} independent draws from the exact density of α, and the exact form of the fit: no choice of f or "
        f"prior biases it."
    )
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
