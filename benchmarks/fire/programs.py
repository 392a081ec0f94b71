"""One answer by one program: what it found, what it cost, and what it said of itself."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import supermodel as sm
from benchmarks.fire.cube import Cube, cube
from benchmarks.fire.problem import Problem

MOST_CALLS = 2_000_000  # of a peer, so that it ends


@dataclass(frozen=True)
class Answer:
    """One run. `level` is the verdict ("ok", "caution", "limit", "fail"), "refused" (an error that explains) or "none"."""

    value: float
    error: float
    level: str
    evaluations: int
    seconds: float
    truth: float
    note: str = ""

    @property
    def outcome(self) -> str:
        """right, flagged, wrong (and nobody said so) or none."""
        if self.level == "none":
            return "none"
        if self.level in ("fail", "limit", "refused"):
            return "flagged"
        off = abs(self.value - self.truth)
        return "right" if off <= 0.05 or off <= 4 * self.error else "wrong"

    def asdict(self) -> dict[str, Any]:
        """For JSON, which has no NaN."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


def no_answer(problem: Problem, seconds: float, note: str) -> Answer:
    return Answer(math.nan, math.nan, "none", 0, seconds, problem.truth, note)


def by_supermodel(problem: Problem, kind: str, seed: int, max_seconds: float, options: dict[str, Any]) -> Answer:
    """`sm.evidence` of one model, `sm.compare` of several: of all ln B against the first, the one that is off the most."""
    models = problem.models(kind)
    options = {"seed": seed, "max_seconds": max_seconds, "progress": False, **options}
    began = time.monotonic()
    try:
        result = sm.compare(models, **options) if len(models) > 1 else sm.evidence(models["model"], **options)
    except sm.SupermodelError as refusal:
        return Answer(math.nan, math.nan, "refused", 0, time.monotonic() - began, problem.truth, str(refusal))
    if len(models) == 1:
        truth, found = problem.truth, result.log_evidence("model")
    else:
        first, *others = models
        exact = problem.log_evidences
        pairs = [(exact[first] - exact[other], result.log_bayes_factor(first, other)) for other in others]
        truth, found = max(pairs, key=lambda pair: abs(pair[1].value - pair[0]) / max(pair[1].error, 0.0125))
    note = ", ".join(sorted({reason.code for reason in result.verdict.reasons}))
    calls, seconds = int(result.evaluations["likelihood"]), time.monotonic() - began
    return Answer(float(found.value), float(found.error), result.verdict.level, calls, seconds, float(truth), note)


def _constant(f: Cube) -> float:
    return f.log_likelihood(np.zeros(0))


def _by_peer(run, problem: Problem, seed: int, max_seconds: float) -> Answer:
    """ln B from one run for each model. A peer has no verdict: what ends by itself is `ok`, what was cut short `limit`."""
    began = time.monotonic()
    value, variance, calls, ended, sign = 0.0, 0.0, 0, True, 1.0
    for name in list(problem.sides)[:2]:
        f = cube(problem.sides[name], seed)
        found, error, cost, complete = (
            run(f, seed, began + max_seconds) if f.dimension else (_constant(f), 0.0, 1, True)
        )
        value, variance, calls, ended = value + sign * found, variance + error**2, calls + cost, ended and complete
        sign = -1.0
    level = "ok" if ended else "limit"
    return Answer(value, math.sqrt(variance), level, calls, time.monotonic() - began, problem.truth)


def _dynesty(f, seed: int, until: float) -> tuple[float, float, int, bool]:
    """Static nested sampling, which is for evidences, with its defaults."""
    import dynesty

    sampler = dynesty.NestedSampler(
        f.log_likelihood, f.prior_transform, f.dimension, rstate=np.random.default_rng(seed)
    )
    sampler.run_nested(print_progress=False, maxcall=MOST_CALLS)
    found = sampler.results
    calls = int(np.sum(found.ncall))
    return float(found.logz[-1]), float(found.logzerr[-1]), calls, calls < MOST_CALLS


def _nautilus(f, seed: int, until: float) -> tuple[float, float, int, bool]:
    """Importance nested sampling with its defaults; of its error, an importance sampler's of that effective size."""
    import nautilus

    d = f.dimension  # it takes no fewer than two: a single parameter gets an idle companion
    sampler = nautilus.Sampler(
        lambda u: f.prior_transform_at(u[..., :d]), f.log_likelihood_at, n_dim=max(d, 2), vectorized=True,
        pass_dict=False, seed=seed,
    )  # fmt: skip
    left = max(until - time.monotonic(), 1.0)
    complete = sampler.run(verbose=False, n_like_max=MOST_CALLS, timeout=left)
    return float(sampler.log_z), max(float(sampler.n_eff) ** -0.5, 0.01), int(sampler.n_like), bool(complete)


PEERS = {"dynesty": _dynesty, "nautilus": _nautilus}


def answer(program: str, problem: Problem, kind: str, seed: int, max_seconds: float, options: dict[str, Any]) -> Answer:
    if program == "supermodel":
        return by_supermodel(problem, kind, seed, max_seconds, options)
    return _by_peer(PEERS[program], problem, seed, max_seconds)
