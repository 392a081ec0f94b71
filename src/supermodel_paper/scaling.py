"""The claim that the paper never tested: how the cost grows with the number of shared parameters (Sec. 1, 3.2, 6; D12)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.comparing import compare
from supermodel.embedding.supermodel import Supermodel
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.rao_blackwell import shares
from supermodel.models.model import Model
from supermodel.sampling.draws import Draws
from supermodel_paper import nested_sampling
from supermodel_paper.figures import BLUE, GREEN, MUTED, ORANGE, RED, canvas, say
from supermodel_paper.runs import Runs, cost, ln_b21
from supermodel_paper.table import Found, Ours, experiment

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
    larger = exact.LinearGaussian(X, y, 1.0, np.r_[np.ones(dimension), EXTRA_SD**2])
    smaller = exact.LinearGaussian(X[:, :dimension], y, 1.0)
    return Problem(dimension, R, z, rest, smaller.log_evidence - larger.log_evidence)


@dataclass(frozen=True)
class Point:
    """One method at one dimension."""

    method: str
    dimension: int
    estimate: Estimate
    evaluations: int
    tau: float = math.nan  # of the share, in samples; NaN where it has no meaning

    @property
    def needed(self) -> float:
        """Evaluations for an error of 0.1, by this run's error and cost; an engine that stops earlier has spent what it has."""
        scale = (self.estimate.error / 0.1) ** 2
        return self.evaluations * (max(scale, 1.0) if self.method == "supermodel.compare" else scale)


COLOURS = {"Metropolis": RED, "HMC": BLUE, "supermodel.compare": ORANGE, "nested sampling": GREEN}


def measure(runs: Runs) -> list[Point]:
    """Metropolis and HMC on the paper's supermodel, the engine, and nested sampling where affordable."""
    s, points = runs.settings, []
    quarter = s.chains // 4
    for d in s.dimensions:
        p = problem(d)
        supermodel, name = Supermodel(p.models), f"{d} shared parameters"
        thin = max(1, d // 4)
        draws, warmup = max(20, s.scaling_steps // thin), 2000 + 80 * d
        walk = runs.sample(supermodel, f"{name}, Metropolis", thin=thin, draws=draws, chains=quarter, warmup=warmup)
        points.append(_point("Metropolis", d, walk, thin))
        if d in s.hmc_dimensions:
            hmc = runs.sample(supermodel, f"{name}, HMC", sampler="hmc", thin=1, chains=quarter, draws=s.hmc)
            points.append(_point("HMC", d, hmc, 1))
        runs.log(f"{name}, compare")
        result = compare(p.models, seed=s.seed, target_error=0.1, progress=False)
        found, calls = result.log_bayes_factor("M2", "M1"), result.evaluations["likelihood"]
        points.append(Point("supermodel.compare", d, found, calls))
    return points + [_nested(d, runs) for d in s.nested_dimensions if nested_sampling.is_available(runs)]


def _point(method: str, d: int, draws: Draws, thin: int) -> Point:
    found = shares(draws)
    return Point(method, d, ln_b21(found), cost(draws), thin * found.details["tau"][0])


def _nested(d: int, runs: Runs) -> Point:
    runs.log(f"{d} shared parameters, nested sampling")
    p, s = problem(d), runs.settings
    design = p.triangle * np.r_[np.ones(d), EXTRA_SD]
    m1, m2 = (nested_sampling.gaussian(design[:, :k], p.target, s.live, s.seed) for k in (d + 1, d))
    return Point("nested sampling", d, *nested_sampling.difference(m2, m1))


def exponent(points: list[Point], of: str) -> float:
    """The power of D by least squares in logarithms."""
    if len(points) < 2:
        return math.nan
    d = np.log([p.dimension for p in points])
    return float(np.polyfit(d, np.log([getattr(p, of) for p in points]), 1)[0])


def _number(p: Point) -> Ours:
    words = {"d": p.dimension, "method": p.method}
    truth, error = problem(p.dimension).log_bayes_factor, max(p.estimate.error, 1e-9)
    peer = "dynesty" if p.method == "nested sampling" else ""
    return Ours(p.estimate.value, error, truth, evaluations=p.evaluations, words=words, peer=peer)


@experiment
def scaling(runs: Runs) -> Found:
    """tau and cost against the number of shared parameters, up to 100 (D12)."""
    points = runs.job("scaling", measure)
    by = {method: [p for p in points if p.method == method] for method in COLOURS}
    chains = {method: by[method] for method in ("Metropolis", "HMC")}
    numbers: dict[str, Any] = {
        "ln B": [_number(p) for p in points],
        "tau": [Ours(b[-1].tau, words={"d": b[-1].dimension, "method": m}) for m, b in chains.items()],
        "power of tau": [Ours(exponent(b, "tau"), words={"method": m}) for m, b in chains.items()],
        "power of cost": exponent(by["supermodel.compare"], "needed"),
    }
    if len(by["nested sampling"]) > 1:
        numbers["power, nested"] = exponent(by["nested sampling"], "needed")
    return Found(numbers, {"scaling": _figure(by)}, {"data": N_DATA})


def _figure(by: dict[str, list[Point]]) -> Any:
    figure, (left, right) = canvas(9.4, 4.2, 1, 2)
    for method, points in by.items():
        for ax, of in ((left, "tau"), (right, "needed")):
            shown = [(p.dimension, getattr(p, of)) for p in points if math.isfinite(getattr(p, of))]
            if shown:
                ax.plot(*np.transpose(shown), color=COLOURS[method], marker="o", markersize=5)
                name = method.removeprefix("supermodel.")
                say(ax, shown[-1][0] * 1.12, shown[-1][1], name, COLOURS[method])
    d = np.array([p.dimension for p in by["Metropolis"]], float)
    slope = by["Metropolis"][0].tau / d[0]
    left.plot(d, 0.5 * slope * d, color=MUTED, linewidth=1, linestyle=(0, (3, 2)))
    say(left, d[len(d) // 2], 0.32 * slope * d[len(d) // 2], "∝ D", MUTED)
    left.set(ylabel="τ of the share, in steps", title="correlation")
    right.set(ylabel="evaluations for σ = 0.1", title="cost")
    least = min(p.dimension for points in by.values() for p in points)
    for ax, room in ((left, 4.5), (right, 5.5)):
        ax.set(xscale="log", yscale="log", xlabel="shared parameters D", xlim=(0.8 * least, d[-1] * room))
        ax.set_xticks([x for x in (2, 5, 10, 20, 50, 100) if x <= d[-1]])
        ax.set_xticks([], minor=True)
        ax.get_xaxis().set_major_formatter("{x:.0f}")
        ax.grid(axis="y")
    return figure
