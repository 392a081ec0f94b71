"""Nested sampling by dynesty, an optional extra: on the combined model (Figure 4), the sine models (S3), the linear ones (D10)."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from supermodel.estimation.estimate import Estimate
from supermodel_paper import examples
from supermodel_paper.runs import Runs
from supermodel_paper.table import Ours

ABSENT = "Nested sampling was left out: dynesty is not installed (pip install supermodel-bayes[nested])."


def is_available(runs: Runs) -> bool:
    """Whether dynesty is installed and the settings ask for it."""
    return runs.settings.live > 0 and importlib.util.find_spec("dynesty") is not None


@dataclass(frozen=True, eq=False)
class Nested:
    """The evidence, its error and cost, and weighted posterior draws of the first parameter."""

    log_evidence: Estimate
    evaluations: int
    values: np.ndarray  # (n,), sorted
    weights: np.ndarray  # (n,), sum 1

    def cdf(self, grid: np.ndarray) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(self.weights)])[np.searchsorted(self.values, grid, side="right")]

    def histogram(self, edges: np.ndarray) -> np.ndarray:
        return np.histogram(self.values, edges, weights=self.weights)[0] / np.diff(edges)


def theirs(estimate: Estimate, evaluations: int) -> Ours:
    """An estimate of dynesty's: if it misses, the miss is its own."""
    return Ours(estimate.value, estimate.error, evaluations=evaluations, peer="dynesty")


def normal_quantiles(u: np.ndarray) -> np.ndarray:
    """The unit cube to standard normals, never to infinity."""
    return ndtri(np.clip(u, 1e-15, 1 - 1e-15))


def run(
    log_likelihood: Callable[[np.ndarray], float],
    transform: Callable[[np.ndarray], np.ndarray],
    dimension: int,
    live: int,
    seed: int,
    sample: str = "rwalk",
) -> Nested:
    """One static nested sampling run, from the unit cube."""
    import dynesty

    rng = np.random.default_rng(seed)
    sampler = dynesty.NestedSampler(
        log_likelihood, transform, dimension, nlive=live, rstate=rng, sample=sample, bound="multi"
    )
    sampler.run_nested(print_progress=False, dlogz=0.05)
    found = sampler.results
    weights = np.exp(found.logwt - found.logz[-1])
    order = np.argsort(found.samples[:, 0])
    return Nested(
        Estimate(float(found.logz[-1]), float(found.logzerr[-1])),
        int(np.sum(found.ncall)),
        found.samples[order, 0],
        weights[order] / weights.sum(),
    )


def gaussian(design: np.ndarray, b: np.ndarray, live: int, seed: int) -> Nested:
    """A linear model in units of its errors with unit priors; ln L up to the norm of the noise, which all models share."""

    def log_likelihood(theta: np.ndarray) -> float:
        r = b - design @ theta
        return -0.5 * float(r @ r)

    return run(log_likelihood, normal_quantiles, design.shape[1], live, seed)


def blend_alpha(runs: Runs) -> Nested | None:
    """alpha of the combined model, f = alpha, linear data (D16); None without dynesty."""
    return runs.job("nested, combined model", _blend_alpha) if is_available(runs) else None


def _blend_alpha(runs: Runs) -> Nested:
    runs.log("nested sampling of the combined model")
    m1 = examples.linear_exact("M1")
    design, b = m1.scaled_design, m1.y / m1.sigma

    def log_likelihood(v: np.ndarray) -> float:
        theta = v[1:].copy()
        theta[2] *= v[0]
        r = b - design @ theta
        return -0.5 * float(r @ r)

    def transform(u: np.ndarray) -> np.ndarray:
        return np.concatenate([u[:1], normal_quantiles(u[1:])])

    return run(log_likelihood, transform, 5, runs.settings.live, runs.settings.seed, sample="rslice")


def pair(runs: Runs, example: str) -> tuple[Estimate, int] | None:
    """ln B21 of "sine" (the paper's reference, S3) or "linear" (D10), and its cost; None without dynesty."""
    return runs.job(f"nested, {example}", JOBS[f"nested, {example}"]) if is_available(runs) else None


def difference(m2: Nested, m1: Nested) -> tuple[Estimate, int]:
    """ln Z2 - ln Z1 and the evaluations of both."""
    z1, z2 = m1.log_evidence, m2.log_evidence
    return Estimate(z2.value - z1.value, math.hypot(z1.error, z2.error)), m1.evaluations + m2.evaluations


def _sine(runs: Runs) -> tuple[Estimate, int]:
    runs.log("nested sampling of the sine models")
    d, s = examples.data("sine"), runs.settings
    x, y, sigma = d["x"], d["y"], float(d["sigma"][0])
    norm = len(x) * (np.log(sigma) + 0.5 * np.log(2 * np.pi))

    def log_likelihood(v: np.ndarray) -> float:
        r = (y - np.sin(v[0] * x + (v[1] if len(v) > 1 else 0.0))) / sigma
        return -0.5 * float(r @ r) - norm

    def transform(u: np.ndarray) -> np.ndarray:
        return np.array([1.0, 0.0])[: len(u)] + np.array([2.0, 0.05])[: len(u)] * normal_quantiles(u)

    # The paper's error of 0.078 takes a thousand live points or so.
    return difference(*(run(log_likelihood, transform, k, 2 * s.live, s.seed + k) for k in (2, 1)))


def _linear(runs: Runs) -> tuple[Estimate, int]:
    runs.log("nested sampling of the linear models")
    models = (examples.linear_exact(name) for name in ("M2", "M1"))
    s = runs.settings
    return difference(*(gaussian(m.scaled_design, m.y / m.sigma, s.live, s.seed) for m in models))


JOBS: dict[str, Callable[[Runs], Any]] = {
    "nested, combined model": _blend_alpha,
    "nested, sine": _sine,
    "nested, linear": _linear,
}
