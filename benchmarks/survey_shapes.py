"""What the quick road of a survey makes of posteriors that are not normal, each with an exact ln Z: what it misses, by numbers.

`python -m benchmarks survey --shapes`. Wrong without a word: settled, and off by more than 4 errors and 0.1.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln

import supermodel as sm
from supermodel.jax_scope import compilation_cache, float64
from supermodel.survey.block import Block
from supermodel.survey.evidences import evidences

Problem = tuple[sm.Model, dict[str, np.ndarray], np.ndarray]
TARGET = 0.2


def ball(x, at, sd):
    return jnp.sum(-0.5 * ((x - at) / sd) ** 2 - jnp.log(sd) - 0.5 * jnp.log(2 * jnp.pi))


def boxed(d: int, half: float, log_density: Callable, data: dict[str, np.ndarray]) -> Problem:
    """A density of x that is normalised well inside a box: ln Z = -d ln(2 half)."""
    model = sm.Model(
        {"x": dist.Uniform(-half, half).expand([d]).to_event(1)}, lambda p, data: log_density(p["x"], data)
    )
    return model, data, np.full(len(next(iter(data.values()))), -d * np.log(2 * half))


def mixed(x, first, second, share):
    return jnp.logaddexp(ball(x, *first) + np.log(share), ball(x, *second) + np.log1p(-share))


def spike(n: int, rng: np.random.Generator, sd: float, d: int = 2, spread: float = 0.0) -> Problem:
    """Nine tenths in a spike inside a slab of sd 2, 0.5 from its middle along each axis, or anywhere."""
    slab = rng.normal(0, 0.3, (n, d))
    at = slab + rng.normal(0, spread, (n, d)) if spread else np.full((n, d), 0.5)
    return boxed(d, 20, lambda x, data: mixed(x, (data["at"], sd), (data["slab"], 2.0), 0.9), {"at": at, "slab": slab})


def two_modes(n: int, rng: np.random.Generator) -> Problem:
    data = {"a": rng.uniform(-5, -1, (n, 2)), "b": rng.uniform(2, 7, (n, 2))}
    return boxed(2, 10, lambda x, data: mixed(x, (data["a"], 1.0), (data["b"], 0.1), 0.5), data)


def shoulder(n: int, rng: np.random.Generator) -> Problem:
    at, way = rng.normal(size=(2, n, 3))
    off = at + way * rng.uniform(1.5, 2.5, (n, 1)) / np.linalg.norm(way, axis=1, keepdims=True)
    return boxed(3, 20, lambda x, data: mixed(x, (data["at"], 0.5), (data["off"], 1.5), 0.6), {"at": at, "off": off})


def banana(n: int, rng: np.random.Generator) -> Problem:
    def log_density(x, data):
        return ball(x[0], 0.0, 1.0) + ball(x[1], data["bend"] * x[0] ** 2, 0.3)

    return boxed(2, 50, log_density, {"bend": rng.uniform(0.3, 1.2, n)})


def funnel(n: int, rng: np.random.Generator) -> Problem:
    """x_0 ~ N(m, 0.7), x_1 ~ N(0, e^x_0)."""
    return boxed(
        2,
        100,
        lambda x, data: ball(x[0], data["m"], 0.7) + ball(x[1], 0.0, jnp.exp(x[0])),
        {"m": rng.uniform(-1, 1, n)},
    )


def plateau(n: int, rng: np.random.Generator) -> Problem:
    """Counts on and off a source: a rate with a log-uniform prior over six decades, most of which are as good as none."""
    background = rng.gamma(2, 2, n)
    source = np.exp(rng.uniform(np.log(1e-4), np.log(30), n)) * (rng.random(n) < 0.5)
    data = {"on": rng.poisson(source + background).astype(float), "off": rng.poisson(5 * background).astype(float)}

    def log_likelihood(p, data, gammaln=gammaln, xp=jnp):
        on, off = p["s"] + p["b"], 5 * p["b"]
        constant = gammaln(data["on"] + 1) + gammaln(data["off"] + 1)
        return data["on"] * xp.log(on) - on + data["off"] * xp.log(off) - off - constant

    from scipy.special import gammaln as of_numbers

    # The midpoint rule in ln s and b, whose prior Gamma(2, 1/2) has the density b e^(-b/2) / 4.
    s, b = (
        np.exp(np.log(1e-4) + np.log(1e6) * (np.arange(1200) + 0.5) / 1200)[:, None],
        60 * (np.arange(4000) + 0.5) / 4000,
    )
    weight = np.log(b) - b / 2 - np.log(4) + np.log(60 / 4000 / 1200)
    truth = [
        np.logaddexp.reduce(np.ravel(weight + log_likelihood({"s": s, "b": b}, {k: v[i] for k, v in data.items()}, of_numbers, np)))
        for i in range(n)
    ]  # fmt: skip
    model = sm.Model({"s": dist.LogUniform(1e-4, 1e2), "b": dist.Gamma(2.0, 0.5)}, log_likelihood)
    return model, data, np.array(truth)


SHAPES: dict[str, tuple[int, Callable[[int, np.random.Generator], Problem]]] = {
    "a spike of sd 0.01 inside a slab of sd 2, 0.35 sd from its middle": (240, lambda n, rng: spike(n, rng, 0.01)),
    "the same anywhere, 0.75 sd from its middle along each axis": (240, lambda n, rng: spike(n, rng, 0.01, spread=1.5)),
    "the same, of sd 0.05": (240, lambda n, rng: spike(n, rng, 0.05, spread=1.5)),
    "the same, of sd 0.01 in three dimensions": (60, lambda n, rng: spike(n, rng, 0.01, 3, 1.5)),
    "two modes of sd 1 and 0.1": (120, two_modes),
    "a shoulder, three dimensions": (120, shoulder),
    "a banana": (120, banana),
    "a funnel": (120, funnel),
    "a plateau (log-uniform and gamma priors)": (120, plateau),
}


def shapes() -> dict[str, dict[str, float]]:
    """What came of each shape."""
    told = {}
    for seed, (name, (n, of)) in enumerate(SHAPES.items()):
        model, data, truth = of(n, np.random.default_rng(seed))
        with float64(), compilation_cache():
            found = evidences(Block(model, 0), data, (seed, 0), np.arange(n), TARGET / np.sqrt(2))
        off = np.abs(found.log_z - truth)
        z, is_wrong = off / found.error, (off > 4 * found.error) & (off > 0.1)
        right = found.settled & ~is_wrong
        told[name] = {
            "rows": n, "to the engine": int(np.sum(~found.settled)), "wrong": int(np.sum(found.settled & is_wrong)),
            "spread of the rest": float(np.sqrt(np.mean(z[right] ** 2))) if right.any() else float("nan"),
            "within 1.96 errors": float(np.mean(z[right] < 1.96)) if right.any() else float("nan"),
            "median error": float(np.median(found.error[right])) if right.any() else float("nan"),
            "evaluations": float(found.evaluations.mean()),
        }  # fmt: skip
        print(name, told[name], flush=True)
    return told
