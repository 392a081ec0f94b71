"""The claim that the paper never tested: how the cost grows with the number of shared parameters (Sec. 1, 3.2, 6; D12)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from supermodel import exact
from supermodel.comparing import compare
from supermodel.embedding.supermodel import Supermodel
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.rao_blackwell import shares
from supermodel.models.model import Model
from supermodel_paper import nested_sampling
from supermodel_paper.figures import BLUE, GREEN, MUTED, ORANGE, RED, canvas, say
from supermodel_paper.numbers import Number, Part, Picture, Quoted
from supermodel_paper.runs import Runs, cost, worst_rhat

N_DATA = 400
EXTRA_SD = 0.2  # prior width of the one parameter that M2 lacks


@dataclass(frozen=True, eq=False)
class Problem:
    """y = X theta + e x + noise, D shared parameters theta ~ N(0, 1); M1 has e as well, M2 is true."""

    dimension: int
    triangle: np.ndarray  # the data rotated so that only D + 1 numbers are left to fit
    target: np.ndarray
    rest: float  # ln L of what no parameter can reach
    log_bayes_factor: float  # ln B21, closed form

    @property
    def models(self) -> dict[str, Model]:
        import jax.numpy as jnp
        import numpyro.distributions as dist

        R, z, d = self.triangle, self.target, self.dimension
        priors = {"theta": dist.Normal(0, 1).expand((d,))}

        def residual(theta, extra):
            r = z - R[:, :d] @ theta - R[:, d] * extra
            return self.rest - 0.5 * jnp.dot(r, r)

        return {
            "M1": Model({**priors, "extra": dist.Normal(0, EXTRA_SD)}, lambda p: residual(p["theta"], p["extra"])),
            "M2": Model(priors, lambda p: residual(p["theta"], 0.0)),
        }


@cache
def problem(dimension: int) -> Problem:
    """The same recipe at every dimension."""
    rng = np.random.default_rng(1000 + dimension)
    X = rng.standard_normal((N_DATA, dimension + 1))
    y = X[:, :dimension] @ rng.standard_normal(dimension) + rng.standard_normal(N_DATA)
    Q, R = np.linalg.qr(X)
    z = Q.T @ y
    rest = -0.5 * float(y @ y - z @ z) - 0.5 * N_DATA * math.log(2 * math.pi)
    variances = np.r_[np.ones(dimension), EXTRA_SD**2]
    larger = exact.LinearGaussian(X, y, 1.0, variances)
    return Problem(
        dimension, R, z, rest, exact.LinearGaussian(X[:, :dimension], y, 1.0).log_evidence - larger.log_evidence
    )


@dataclass(frozen=True)
class Point:
    """One method at one dimension."""

    method: str
    dimension: int
    estimate: Estimate
    evaluations: int
    tau: float  # of the share, in samples; NaN where it has no meaning
    rhat: float = math.nan

    @property
    def needed(self) -> float:
        """Evaluations for an error of 0.1, by this run's error and cost; an engine that stops earlier has spent what it has."""
        scale = (self.estimate.error / 0.1) ** 2
        return self.evaluations * (max(scale, 1.0) if self.method == "compare" else scale)


def measure(runs: Runs) -> list[Point]:
    """Metropolis and HMC on the paper's supermodel, the engine, and nested sampling where affordable."""
    s, points = runs.settings, []
    for d in s.dimensions:
        p = problem(d)
        supermodel = Supermodel(p.models)
        thin, chains = max(1, d // 4), s.chains // 4
        draws = max(20, s.scaling_steps // thin)
        walk = runs.sample(
            supermodel,
            f"{d} shared parameters, Metropolis",
            thin=thin,
            draws=draws,
            chains=chains,
            warmup=2000 + 80 * d,
        )
        points.append(_point("Metropolis", d, walk, thin))
        if d in s.hmc_dimensions:
            hmc = runs.sample(
                supermodel, f"{d} shared parameters, HMC", sampler="hmc", thin=1, chains=s.chains // 4, draws=s.hmc
            )
            points.append(_point("HMC", d, hmc, 1))
        runs.log(f"{d} shared parameters, compare")
        result = compare(p.models, seed=s.seed, target_error=0.1, progress=False)
        points.append(
            Point("compare", d, result.log_bayes_factor("M2", "M1"), result.evaluations["likelihood"], math.nan)
        )
    if nested_sampling.is_available(runs):
        for d in s.nested_dimensions:
            runs.log(f"{d} shared parameters, nested sampling")
            points.append(_nested(d, runs))
    return points


def _point(method: str, d: int, draws, thin: int) -> Point:
    found = shares(draws)
    return Point(
        method, d, found.log_bayes_factor("M2", "M1"), cost(draws), thin * found.details["tau"][0], worst_rhat(draws)
    )


def _nested(d: int, runs: Runs) -> Point:
    p = problem(d)
    scale = np.r_[np.ones(d), EXTRA_SD]
    found = [
        nested_sampling.gaussian((p.triangle * scale)[:, :k], p.target, runs.settings.live, runs.settings.seed)
        for k in (d + 1, d)
    ]
    z1, z2 = (f.log_evidence for f in found)
    return Point(
        "nested",
        d,
        Estimate(z2.value - z1.value, math.hypot(z1.error, z2.error)),
        sum(f.evaluations for f in found),
        math.nan,
    )


def exponent(points: list[Point], of: str) -> float:
    """The power of D by least squares in logarithms."""
    if len(points) < 2:
        return math.nan
    d = np.log([p.dimension for p in points])
    return float(np.polyfit(d, np.log([getattr(p, of) for p in points]), 1)[0])


def scaling(runs: Runs) -> Part:
    """tau and cost against the number of shared parameters, up to 100 (D12)."""
    points = runs.job("scaling", measure)
    by = {m: [p for p in points if p.method == m] for m in ("Metropolis", "HMC", "compare", "nested")}
    names = {"Metropolis": "Metropolis", "HMC": "HMC", "compare": "supermodel.compare", "nested": "nested sampling"}
    numbers = [
        Number(
            "D12",
            f"ln B₂₁, {p.dimension} shared parameters, {names[p.method]}",
            p.estimate.value,
            max(p.estimate.error, 1e-9),
            problem(p.dimension).log_bayes_factor,
            evaluations=p.evaluations,
        )
        for p in points
    ]
    for method in ("Metropolis", "HMC"):
        last = by[method][-1]
        numbers.append(Number("D12", f"τ of the share in steps at {last.dimension} parameters, {method}", last.tau))
        numbers.append(
            Number(
                "D12",
                f"power of D by which τ grows, {method}",
                exponent(by[method], "tau"),
                bounds=(-1.0, 3.0),
                paper=Quoted("polynomial", holds=True),
            )
        )
    numbers.append(
        Number(
            "D12",
            "power of D by which the cost grows, supermodel.compare",
            exponent(by["compare"], "needed"),
            bounds=(-1.0, 3.0),
        )
    )
    if len(by["nested"]) > 1:
        numbers.append(
            Number(
                "D12",
                "power of D by which the cost grows, nested sampling (random walks)",
                exponent(by["nested"], "needed"),
                paper=Quoted("nested sampling scales exponentially", holds=False),
                remark="Exponential cost belongs to rejection from ellipsoids; with random walks inside them, nested "
                "sampling too is polynomial (errata 1.4).",
            )
        )
    text = (
        f"Two linear models that share D parameters; one has one more. {N_DATA} data, exact answers at every D. The "
        f"Gaussian posteriors are whitened "
        "exactly by the engine's pilot, so its cost is the least it ever takes."
    )
    return Part("Scaling with dimension", text, numbers, [_figure(by)])


def _figure(by: dict[str, list[Point]]) -> Picture:
    figure, (left, right) = canvas(9.4, 4.2, 1, 2)
    colours = {"Metropolis": RED, "HMC": BLUE, "compare": ORANGE, "nested": GREEN}
    labels = {"Metropolis": "Metropolis", "HMC": "HMC", "compare": "compare", "nested": "nested sampling"}
    for method in ("Metropolis", "HMC"):
        d, tau = [p.dimension for p in by[method]], [p.tau for p in by[method]]
        left.plot(d, tau, color=colours[method], marker="o", markersize=5)
        say(left, d[-1] * 1.12, tau[-1], labels[method], colours[method])
    for method, points in by.items():
        if points:
            right.plot(
                [p.dimension for p in points],
                [p.needed for p in points],
                color=colours[method],
                marker="o",
                markersize=5,
            )
            say(right, points[-1].dimension * 1.12, points[-1].needed, labels[method], colours[method])
    d = np.array([p.dimension for p in by["Metropolis"]], float)
    left.plot(d, 0.5 * by["Metropolis"][0].tau * d / d[0], color=MUTED, linewidth=1, linestyle=(0, (3, 2)))
    say(left, d[len(d) // 2], 0.32 * by["Metropolis"][0].tau * d[len(d) // 2] / d[0], "∝ D", MUTED)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="shared parameters D",
        ylabel="τ of the share, in steps",
        title="correlation",
        xlim=(d[0] * 0.8, d[-1] * 4.5),
    )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="shared parameters D",
        ylabel="evaluations for σ = 0.1",
        title="cost",
        xlim=(d[0] * 0.8, d[-1] * 5.5),
    )
    for ax in (left, right):
        ax.set_xlim(left=0.8 * min(p.dimension for points in by.values() for p in points))
        ax.set_xticks([x for x in (2, 5, 10, 20, 50, 100) if x <= d[-1]])
        ax.set_xticks([], minor=True)
        ax.get_xaxis().set_major_formatter("{x:.0f}")
        ax.grid(axis="y")
    caption = (
        "Autocorrelation time and cost against the number of shared parameters: polynomial for Metropolis and HMC on "
        "the paper's supermodel, as the "
        "paper expected, nearly flat for this library's engine."
    )
    return Picture("scaling", "Scaling with dimension", caption, figure)
