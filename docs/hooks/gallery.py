"""Every plot, made by the code: `python docs/hooks/gallery.py docs/gallery`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib

from supermodel.comparing import compare
from supermodel.counting.component import Component
from supermodel.counting.count import count
from supermodel.models.model import Model
from supermodel.models.noise import Gaussian
from supermodel.report import plots
from supermodel.verdict.verdict import Reason, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from supermodel.counting.result import Count
    from supermodel.results.comparison import Comparison

RESOLUTION = 110  # dots per inch: small files that still read well


def columns(name: str) -> dict[str, Any]:
    """One of the data sets shipped with the package."""
    import numpy as np

    with resources.files("supermodel").joinpath("data", name).open() as file:
        x, y, sigma = np.loadtxt(file, delimiter=",", skiprows=1, unpack=True)
    return {"x": x, "y": y, "sigma": sigma}


def sine() -> Comparison:
    """The paper's sine wave: is its phase free, or zero?"""
    import jax.numpy as jnp
    import numpyro.distributions as dist

    omega = dist.Normal(1, 2)
    fixed = Model({"omega": omega}, predict=lambda p, x: jnp.sin(p["omega"] * x))
    free = Model({"omega": omega, "phi": dist.Normal(0, 0.05)}, predict=lambda p, x: jnp.sin(p["omega"] * x + p["phi"]))
    return compare({"fixed": fixed, "free": free}, columns("sine.csv"), target_error=0.05, progress=False)


def polynomials() -> Comparison:
    """Three polynomials for the paper's linear example."""
    import numpyro.distributions as dist

    def polynomial(*powers: int) -> Model:
        priors = {f"t{i}": dist.Normal(0, 1) for i in powers}
        return Model(priors, predict=lambda p, x: sum(p[f"t{i}"] * x**i for i in powers))

    models = {
        "quartic": polynomial(0, 1, 2, 4),
        "no quadratic": polynomial(0, 1, 4),
        "cubic too": polynomial(0, 1, 2, 3, 4),
    }
    return compare(models, columns("linear.csv"), target_error=0.05, progress=False)


def calibration() -> Any:
    """Is a level zero, or not? Simulated ten times from each model."""
    import numpy as np
    from scipy import stats

    from supermodel.trust.calibrate import calibrate

    def log_likelihood(p: Mapping[str, Any], y: Any) -> Any:
        level = np.asarray(p.get("level", 0.0))
        return -0.5 * ((y[None, :] - np.reshape(level, (-1, 1))) ** 2 + np.log(2 * np.pi)).sum(axis=1)

    models = {
        "signal": Model({"level": stats.norm(0, 1)}, log_likelihood, vectorized=True),
        "nothing": Model({}, lambda p, y: log_likelihood({}, y)[0]),
    }
    simulate = {name: lambda p, y, rng: p.get("level", 0.0) + rng.standard_normal(8) for name in models}
    return calibrate(models, n=10, simulate=simulate, target_error=0.2, progress=False)


def lines() -> Count:
    """How many emission lines are in a spectrum of two?"""
    import jax.numpy as jnp
    import numpy as np
    import numpyro.distributions as dist

    def profile(p: Mapping[str, Any], x: Any) -> Any:
        return p["A"] * jnp.exp(-0.5 * ((x - p["c"]) / 0.8) ** 2)

    rng, x = np.random.default_rng(2), np.linspace(0, 30, 60)
    y = 5 + 6 * np.exp(-0.5 * ((x - 8) / 0.8) ** 2) + 3 * np.exp(-0.5 * ((x - 21) / 0.8) ** 2)
    line = Component({"c": dist.Uniform(0, 30), "A": dist.HalfNormal(6)}, profile, name="line")
    background = Component({"level": dist.Normal(0, 10)}, lambda p: p["level"])
    data = {"x": x, "y": y + 0.7 * rng.standard_normal(60), "error": np.full(60, 0.7)}
    return count(line, data, background=background, noise=Gaussian("error"), most=3, explore="quick", progress=False)


def pictures() -> dict[str, Callable[[], Axes]]:
    """Name of the picture to a function that draws it."""
    import numpyro.distributions as dist

    wave, poly, counted = sine(), polynomials(), lines()
    failed = replace(
        wave, verdict=Verdict("fail", (Reason("few_crossings", "planted, to show how a failed run looks."),))
    )
    limit = replace(wave, verdict=Verdict("limit", (Reason("never_visited", "planted, to show how a limit looks."),)))
    others = {"Cauchy(0, 0.05)": dist.Cauchy(0, 0.05), "Uniform(-0.2, 0.2)": dist.Uniform(-0.2, 0.2)}
    return {
        "bayes_factors": lambda: plots.bayes_factors(poly),
        "matrix": lambda: plots.matrix(poly),
        "alpha": lambda: plots.alpha(wave, 1),
        "trace": lambda: plots.trace(wave),
        "crossings": lambda: plots.crossings(wave, 1),
        "sensitivity": lambda: wave.sensitivity("phi", [10 ** (i / 20 - 1) for i in range(41)]).plot(),
        "replaced": lambda: wave.sensitivity("phi", replace=others).plot(),
        "averaged": lambda: plots.averaged(wave, "omega"),
        "spike": lambda: plots.averaged(wave, "phi", fixed=0.0, prior_odds={"fixed": 50, "free": 1}),
        "predictions": lambda: plots.predictions(wave),
        "corner": lambda: plots.corner(poly, "quartic"),
        "numbers": lambda: counted.plot("numbers"),
        "found": lambda: counted.plot("data")[0],
        "drivers": lambda: wave.drivers().plot(),
        "calibration": lambda: calibration().plot(),
        "fail": lambda: plots.alpha(failed, 1),
        "limit": lambda: plots.bayes_factors(limit),
    }


def main(folder: str | Path) -> list[Path]:
    """Draw every picture into `folder`."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in pictures().items():
        ax = draw()
        written.append(target / f"{name}.png")
        figure: Any = ax.get_figure(root=True)
        figure.savefig(written[-1], dpi=RESOLUTION, metadata={"Software": None})
        plt.close(figure)
    return written


if __name__ == "__main__":
    for path in main(sys.argv[1] if len(sys.argv) > 1 else "gallery"):
        print(path)
