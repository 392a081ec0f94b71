"""The programs, one row each, and one answer by one of them: ln B of all models against the first, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import supermodel as sm
from benchmarks.fire.cube import Cube, cube
from benchmarks.fire.problem import Problem, Side
from benchmarks.fire.programs import PEERS
from benchmarks.peers.by_blackjax import nested_slices, tempered_smc
from benchmarks.peers.by_bridge import NotAvailable, bridge
from benchmarks.peers.counting import Tally, counted, seconds_of_a_callback

PAPERS_STEPS = 2_000_000  # a tenth of what the paper took for its linear example, a twentieth of its sine


class Found(NamedTuple):
    """ln B of the first model against each other one, with the errors that the program claims, and its own verdict."""

    values: dict[str, float]
    errors: dict[str, float]
    level: str = ""
    own_count: int = 0  # what the program says it has evaluated, where it says so


class Program(NamedTuple):
    """One column of the tables. `gradients`: whether it uses them."""

    title: str
    gradients: bool
    find: Callable[[Problem, int], Found]  # problem, seed; the tally ends it
    set_up: str  # what is not a default


def by_supermodel(kind: str, **options: Any):
    """`sm.compare` as it is, or one of the paper's recipes."""

    def find(problem: Problem, seed: int) -> Found:
        models = problem.models(kind)
        result = sm.compare(models, seed=seed, progress=False, **options)
        first, *others = models
        found = {other: result.log_bayes_factor(first, other) for other in others}
        values = {name: float(estimate.value) for name, estimate in found.items()}
        errors = {name: float(estimate.error) for name, estimate in found.items()}
        return Found(values, errors, result.verdict.level, int(result.evaluations["likelihood"]))

    return find


def by_evidences(evidence: Callable[[Side, int], tuple[float, float]]):
    """Two evidences subtracted, of as many models as there are."""

    def find(problem: Problem, seed: int) -> Found:
        found = {name: evidence(side, seed) for name, side in problem.sides.items()}
        (value, error), *_ = found.values()
        others = list(found)[1:]
        return Found(
            {name: value - found[name][0] for name in others},
            {name: math.hypot(error, found[name][1]) for name in others},
        )

    return find


def in_cube(run: Callable[[Cube, int, float], tuple]):
    """A program that wants the unit cube; those of the trial by fire are asked in the same words."""

    def evidence(side: Side, seed: int) -> tuple[float, float]:
        value, error, _, complete = run(cube(side, seed), seed, float("inf"))
        if not complete:
            raise RuntimeError("stopped at its limit of two million calls")
        return value, error

    return by_evidences(evidence)


def _ultranest(f: Cube, seed: int, until: float) -> tuple[float, float, int, bool]:
    """Its reactive sampler with its defaults; above 20 parameters with the slices that its manual then advises."""
    import logging

    import ultranest
    import ultranest.stepsampler

    del until
    logging.getLogger("ultranest").setLevel(logging.ERROR)
    np.random.seed(seed)  # noqa: NPY002  (it knows no other randomness)
    names = [f"x{i}" for i in range(f.dimension)]
    sampler = ultranest.ReactiveNestedSampler(names, f.log_likelihood_at, f.prior_transform_at, vectorized=True)
    if f.dimension > 20:
        sampler.stepsampler = ultranest.stepsampler.SliceSampler(
            nsteps=2 * f.dimension, generate_direction=ultranest.stepsampler.generate_mixture_random_direction
        )
    found = sampler.run(show_status=False, viz_callback=False)
    return float(found["logz"]), float(found["logzerr"]), int(found["ncall"]), True


def _pocomc(side: Side, seed: int) -> tuple[float, float]:
    """Its sampler and its run with their defaults."""
    import pocomc
    from scipy import stats

    makers = {
        "Normal": lambda d: stats.norm(float(d.loc), float(d.scale)),
        "HalfCauchy": lambda d: stats.halfcauchy(scale=float(d.scale)),
        "InverseGamma": lambda d: stats.invgamma(float(d.concentration), scale=float(d.rate)),
    }
    each = []
    for prior in side.priors().values():
        size = int(np.prod(prior.shape(), dtype=int))
        while type(prior).__name__ in ("ExpandedDistribution", "Independent"):
            prior = prior.base_dist
        each += [makers[type(prior).__name__](prior)] * size
    f = cube(side, seed)
    sampler = pocomc.Sampler(pocomc.Prior(each), f.log_likelihood_at, vectorize=True, random_state=seed)
    sampler.run(progress=False)
    value, error = sampler.evidence()
    return float(value), float("nan") if error is None else float(error)


PROGRAMS: dict[str, Program] = {
    "supermodel": Program("supermodel", True, by_supermodel("traced"), "`compare(models)`"),
    "supermodel_fine": Program(
        "supermodel, to ± 0.01", True, by_supermodel("traced", target_error=0.01), "`compare(models, target_error=0.01)`"
    ),
    "supermodel_black": Program("supermodel, black box", False, by_supermodel("black"), "`compare(models)`, in NumPy"),
    "paper": Program(
        "the paper's recipe", False, by_supermodel("traced", method="mixture", max_evaluations=PAPERS_STEPS),
        '`compare(models, method="mixture")`, at most 2 · 10⁶ evaluations (the paper: 2 · 10⁷ and 4 · 10⁷ steps)',
    ),
    "dynesty": Program("dynesty", False, in_cube(PEERS["dynesty"]), "`NestedSampler`, defaults, at most 2 · 10⁶ calls"),
    "nautilus": Program(
        "nautilus", False, in_cube(PEERS["nautilus"]),
        "defaults, in batches, at most 2 · 10⁶ calls; a lone parameter gets an idle companion",
    ),
    "ultranest": Program(
        "UltraNest", False, in_cube(_ultranest), "defaults, in batches; above 20 parameters its slice sampler, 2 d steps"
    ),
    "pocomc": Program("pocoMC", False, by_evidences(_pocomc), "defaults, in batches"),
    "smc": Program(
        "BlackJAX SMC", True, by_evidences(tempered_smc),
        "1000 particles, effective share 0.5, 10 HMC moves (its default) of 5 leapfrogs with the particles' covariance; it "
        "claims no error",
    ),
    "nss": Program(
        "BlackJAX nested slices", False, by_evidences(nested_slices),
        "500 live points, 50 at once, max(5, 2 d) slices, until e⁻³ is left",
    ),
    "bridge": Program(
        "bridgesampling (R), NUTS", True, by_evidences(bridge),
        "BlackJAX NUTS, 4 chains of 1000 + 1000, each from the best of 100 prior draws; `bridge_sampler`, defaults; "
        "positive parameters by their logarithm",
    ),
}  # fmt: skip


def rms(numbers: Mapping[str, float]) -> float:
    return float(np.sqrt(np.mean(np.square(list(numbers.values())))))


def answer(program: str, problem: Problem, seed: int, seconds: float, latency: float = 0.0) -> dict[str, Any]:
    """One run as a record: each ln B, the claimed error (of several their root mean square), evaluations, seconds."""
    ours = program.startswith("supermodel")  # which looks at what a call costs, and so must be made to wait
    per_callback = seconds_of_a_callback() if PROGRAMS[program].gradients or program in ("paper", "nss") else 0.0
    tally = Tally(seconds, latency, ours, per_callback=per_callback)
    sides = {name: counted(side, tally) for name, side in problem.sides.items()}
    record: dict[str, Any] = {"status": "done", "note": ""}
    try:
        found = PROGRAMS[program].find(replace(problem, sides=sides), seed)
    except Exception as error:
        late = tally.is_late
        kind = "not available" if isinstance(error, NotAvailable) else "failed"
        record |= {"status": "cut" if late else kind, "note": "" if late else f"{type(error).__name__}: {error}"[:300]}
    else:
        record |= {
            "values": found.values,
            "claimed": rms(found.errors),
            "level": found.level,
            "own_count": found.own_count,
        }
        if math.isinf(record["claimed"]):  # ours, when it has nothing to tell
            record |= {"status": "failed", "note": f"no answer, and said so: verdict {found.level}", "claimed": None}
    record |= {"evaluations": tally.evaluations, "gradients": tally.gradients, "seconds": tally.seconds}
    return {name: None if value != value else value for name, value in record.items()}
