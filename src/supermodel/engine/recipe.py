"""The paper's own recipe behind the front door: one supermodel, one sampler, Rao-Blackwell, and the same verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from supermodel.embedding.coordinate import Hats
from supermodel.embedding.supermodel import Supermodel
from supermodel.engine.run import Goals
from supermodel.estimation.shares import log_shares, shares
from supermodel.jax_scope import in_float64
from supermodel.results.comparison import Comparison
from supermodel.results.posterior import ModelPosterior
from supermodel.sampling.draws import Draws
from supermodel.sampling.sample import sample
from supermodel.verdict.verdict import Reason, Verdict, verdict_of, worst

CHAINS, THIN = 64, 10


@in_float64
def by_recipe(
    models: Mapping[str, Any],
    data: Any,
    combine: str,
    seed: int,
    goals: Goals,
    share: Any,
    prior_odds: Mapping[str, float],
) -> Comparison:
    """Sample the supermodel by tempered Metropolis, longer and longer until the goals are met.

    Evidences are relative: the models are compared with each other and with nothing else.
    """
    began = time.monotonic()
    coordinate = Hats(len(models)) if len(models) > 2 and combine in ("product", "blend", "blend_product") else None
    supermodel = Supermodel(models, combine=combine, coordinate=coordinate, share=share, data=data)
    sampler = "tempered" if combine != "index" else "metropolis"
    spent, size, ended = 0, 500, ""
    while not ended:
        draws = sample(supermodel, sampler=sampler, seed=seed, chains=CHAINS, draws=size, thin=THIN)
        spent += draws.evaluations["likelihood"]
        evidences, verdict = shares(draws), verdict_of(draws)
        worst_error = max(evidences.log_bayes_factor(a, b).error for a in models for b in models if a != b)
        if worst_error <= goals.target_error and verdict.is_reliable:
            ended = "target"
        elif goals.max_evaluations is not None and 2 * spent >= goals.max_evaluations:
            ended = "max_evaluations"
        elif goals.max_seconds is not None and 2 * (time.monotonic() - began) >= goals.max_seconds:
            ended = "max_seconds"
        elif size >= 32_000:
            ended = "length"
        size *= 2
    return Comparison(
        evidences=evidences,
        verdict=_with_ending(verdict, worst_error, goals),
        evaluations={"likelihood": spent, "gradient": draws.evaluations.get("gradient", 0)},
        posteriors=_posteriors(draws),
        edges=(),
        seed=seed,
        prior_odds=dict(prior_odds),
        settings={"target_error": goals.target_error, "ended": ended, "method": combine},
        seconds=time.monotonic() - began,
        models=models,
        data=data,
    )


def _with_ending(verdict: Verdict, error: float, goals: Goals) -> Verdict:
    if error <= goals.target_error:
        return verdict
    sentence = f"the run ended at an error of {error:.3g}; the target was {goals.target_error:.3g}."
    return worst([(verdict.level, r) for r in verdict.reasons] + [("caution", Reason("target_not_reached", sentence))])


def _posteriors(draws: Draws) -> dict[str, ModelPosterior]:
    """Every draw serves every model, with its share as weight."""
    terms = log_shares(draws).reshape(-1, len(draws.names))
    points = draws.position.reshape(len(terms), -1)
    chain = np.repeat(np.arange(draws.n_chains), draws.n_draws)
    supermodel, found = draws.supermodel, {}
    for k, name in enumerate(draws.names):
        joint = supermodel.joints[k]
        x = points[:, supermodel.places[k]]
        log_prior = joint.space.log_prior_at(x)
        weights = terms[:, k] - np.logaddexp.reduce(terms[:, k])
        log_likelihood = (
            joint.log_likelihood_at(x) if not joint.is_traceable else np.asarray(joint.log_likelihood_at(x))
        )
        found[name] = ModelPosterior(name, joint.space.values_at(x), weights, log_likelihood, log_prior, chain)
    return found
