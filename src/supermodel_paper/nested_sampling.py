"""Nested sampling by dynesty, an optional extra: on the combined model (Figure 4) and on the sine models (S3)."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from supermodel.estimation.estimate import Estimate
from supermodel_paper import examples
from supermodel_paper.runs import Runs

ABSENT = "Nested sampling was left out: dynesty is not installed (pip install supermodel[nested])."


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


def run(
    log_likelihood: Callable[[np.ndarray], float],
    transform: Callable[[np.ndarray], np.ndarray],
    dimension: int,
    live: int,
    seed: int,
    **options: Any,
) -> Nested:
    """One static nested sampling run, from the unit cube."""
    import dynesty

    options = {"sample": "rwalk", "bound": "multi"} | options
    sampler = dynesty.NestedSampler(
        log_likelihood, transform, dimension, nlive=live, rstate=np.random.default_rng(seed), **options
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


def blend_alpha(runs: Runs) -> Nested | None:
    """alpha of the combined model, f = alpha, linear data (D16); None without dynesty."""
    if not is_available(runs):
        return None
    runs.log("nested sampling of the combined model")
    m1 = examples.linear_exact("M1")
    design, b = m1.scaled_design, m1.y / m1.sigma

    def log_likelihood(v: np.ndarray) -> float:
        theta = v[1:].copy()
        theta[2] *= v[0]
        r = b - design @ theta
        return -0.5 * float(r @ r)

    def transform(u: np.ndarray) -> np.ndarray:
        v = ndtri(np.clip(u, 1e-15, 1 - 1e-15))
        v[0] = u[0]
        return v

    return run(log_likelihood, transform, 5, runs.settings.live, runs.settings.seed, sample="rslice")


def sine(runs: Runs) -> dict[str, Nested] | None:
    """The evidences of the sine models, as the paper has them from PyMultiNest (S3); None without dynesty."""
    if not is_available(runs):
        return None
    runs.log("nested sampling of the sine models")
    d = examples.data("sine")
    x, y, sigma = d["x"], d["y"], float(d["sigma"][0])
    norm = len(x) * (np.log(sigma) + 0.5 * np.log(2 * np.pi))

    def log_likelihood(v: np.ndarray) -> float:
        r = (y - np.sin(v[0] * x + (v[1] if len(v) > 1 else 0.0))) / sigma
        return -0.5 * float(r @ r) - norm

    def transform(u: np.ndarray) -> np.ndarray:
        z = ndtri(np.clip(u, 1e-15, 1 - 1e-15))
        return np.array([1.0, 0.0])[: len(u)] + np.array([2.0, 0.05])[: len(u)] * z

    live = 2 * runs.settings.live  # the paper's error of 0.078 takes a thousand or so
    return {name: run(log_likelihood, transform, k, live, runs.settings.seed + k) for name, k in (("M1", 1), ("M2", 2))}


def linear(runs: Runs) -> dict[str, Nested] | None:
    """The evidences of M1 and M2 of the linear data (D10); None without dynesty."""
    if not is_available(runs):
        return None
    runs.log("nested sampling of the linear models")
    found = {}
    for name in ("M1", "M2"):
        m = examples.linear_exact(name)
        found[name] = gaussian(m.scaled_design, m.y / m.sigma, runs.settings.live, runs.settings.seed)
    return found


def gaussian(design: np.ndarray, b: np.ndarray, live: int, seed: int) -> Nested:
    """A linear model in units of its errors with unit priors; ln L up to the norm of the noise, which all models share."""

    def log_likelihood(theta: np.ndarray) -> float:
        r = b - design @ theta
        return -0.5 * float(r @ r)

    def transform(u: np.ndarray) -> np.ndarray:
        return ndtri(np.clip(u, 1e-15, 1 - 1e-15))

    return run(log_likelihood, transform, design.shape[1], live, seed)
