"""A count whose every number is known: independent draws in place of a run, and probabilities that are given."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from made_result import made_result
from supermodel.counting.component import Component, model_of, title
from supermodel.counting.result import Count
from supermodel.estimation.estimate import Evidences
from supermodel.models.noise import Gaussian
from supermodel.results.posterior import ModelPosterior
from supermodel.verdict.verdict import Verdict

LEVEL = 5.0
DRAWS = 240
PLACE = {"bump": ((8.0, 6.0), (21.0, 4.5)), "wave": ((3.0, 4.0), (7.0, 2.5))}  # (where, or the period; height) of each
ERRORS = np.array([0.02, 0.03, 0.05])  # of ln Z of 0, 1 and 2


def bump(p, x):
    return p["A"] * jnp.exp(-0.5 * ((x - p["c"]) / 0.8) ** 2)


def wave(p, x):
    return p["A"] * jnp.sin(2 * jnp.pi * x / p["c"])


def line(predict=bump, period=None, name="line"):
    return Component(
        {"c": dist.Uniform(0, 30), "A": dist.Normal(0, 6)}, predict, name, period, units={"c": "d"} if period else {}
    )


def made_count(
    probabilities=(1e-6, 0.2 - 1e-6, 0.8), shape="bump", period=None, n=40, noise=None, combine=None, log_likelihood=None,
    predict=None, level=lambda p, x: p["level"] + 0.0 * x, most=2, verdict=None, columns=None,
) -> Count:  # fmt: skip
    """0, 1 and 2 lines, of which the posterior lies about PLACE; `columns` beside x, y and error."""
    rng = np.random.default_rng(4)
    part = line({"bump": bump, "wave": wave}[shape] if predict is None else predict, period)
    behind = Component({"level": dist.Normal(0, 10)}, level)
    if log_likelihood is not None:
        part, behind = line(None, period), Component({"level": dist.Normal(0, 10)})
    x = np.linspace(0, 30, n)
    truth = LEVEL + sum(np.asarray({"bump": bump, "wave": wave}[shape]({"c": c, "A": a}, x)) for c, a in PLACE[shape])
    data = {"x": x, "y": truth + 0.7 * rng.standard_normal(n), "error": np.full(n, 0.7)} | (columns or {})
    names = [title(part, k) for k in range(3)]
    models = {
        name: model_of(
            part, k, behind, None if log_likelihood else noise or Gaussian("error"), combine, log_likelihood
        )
        for k, name in enumerate(names)
    }  # fmt: skip
    posteriors = {name: _posterior(rng, name, k, PLACE[shape]) for k, name in enumerate(names)}
    log_z = np.log(np.maximum(probabilities, 1e-300)) - 50.0
    prior = [1 / (most + 1)] * (most + 1)
    made = dataclasses.replace(
        made_result(0, dict(zip(names, ("a", "ab", "abc"), strict=True)), draws=40),
        evidences=Evidences(tuple(names), log_z, np.diag(ERRORS**2), True), posteriors=posteriors, models=models, data=data,
        prior_odds=dict.fromkeys(names, 1 / 3), verdict=verdict or Verdict(), priors={}, fingerprints={}, units={},
        settings={"count": {
            "component": "line", "parameters": ["c", "A"], "least": 0, "most": most, "prior": prior, "stop": 0.01,
            "period": period if isinstance(period, str) else None,
        }, "left_out": names[:0] if most == 2 else ["3 lines"], "target_error": 0.1, "ended": "target"},
    )  # fmt: skip
    return Count(made, part, behind)


def _posterior(rng, name, k, places):
    values = {"level": LEVEL + 0.1 * rng.standard_normal(DRAWS)}
    for i, (where, height) in enumerate(places[:k], start=1):
        values |= {
            f"c{i}": where + 0.01 * rng.standard_normal(DRAWS), f"A{i}": height + 0.3 * rng.standard_normal(DRAWS)
        }  # fmt: skip
    flat = np.zeros(DRAWS)
    return ModelPosterior(name, values, flat - np.log(DRAWS), flat, flat, np.repeat(np.arange(4), DRAWS // 4), 0)
