r"""The front door: `compare` weighs models against data, `evidence` gives one model's $\ln Z$."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from supermodel.embedding.supermodel import check_models, shared_names
from supermodel.engine.checkpoint import resume, write
from supermodel.engine.goals import Goals
from supermodel.engine.judge import judge
from supermodel.engine.keeper import Keeper
from supermodel.engine.policy import BATCH
from supermodel.engine.probe import canonical
from supermodel.engine.progress import reporter
from supermodel.engine.recipe import Recipe
from supermodel.engine.run import Run
from supermodel.engine.workers import pool_of
from supermodel.errors import DataError
from supermodel.jax_scope import compilation_cache
from supermodel.models.columns import received
from supermodel.models.joint import Joint
from supermodel.models.model import Model
from supermodel.models.symmetry import as_data
from supermodel.options import OPTIONS, checked
from supermodel.results.comparison import Comparison, Evidence
from supermodel.results.fingerprint import fingerprint
from supermodel.results.odds import checked_odds
from supermodel.results.posterior import ModelPosterior, posteriors
from supermodel.results.record import EdgeRecord


def compare(
    models: Mapping[str, Model],
    data: Any = None,
    *,
    seed: int = 0,
    target_error: float = 0.1,
    decide: tuple[float, float] | None = None,
    method: str = "auto",
    share: bool | str | Sequence[str] = True,
    prior_odds: Mapping[str, float] | None = None,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    min_ess: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    executor: Any = None,
    explore: str = "auto",
    on_error: str = "raise",
    missing: str = "raise",
    progress: bool | None = None,
) -> Comparison:
    """Bayes factors between two or more models, each with a calibrated error, and a verdict on the whole.

    The run ends when every model's ln B against the best one is known to `target_error` and the checks are passed;
    or, with `decide=(low, high)` and two models, as soon as the 2-sigma interval of ln B(first, second) lies wholly
    above `high`, below `low` or between them; or at `max_evaluations` or `max_seconds`, which the verdict then says.
    Ctrl-C returns the best answer so far, before the next likelihood calls; a second Ctrl-C at once. The next comparison of the
    script, or of the cell of a notebook, then raises KeyboardInterrupt, so that a loop ends.

    `min_ess`: effective draws that every parameter of every posterior must have, with R-hat below 1.01 as is usual: the run
    goes on until it has them. Without it a run ends with ln B, and its posteriors have some hundred.
    `checkpoint`: a file that is written (atomically) as the run goes on; started again with the same models, data and
    seed, the run resumes from it and ends with the same bits as if it had never stopped.
    `method`: "auto" is the engine; "mixture", "product", "blend" or "index" samples that one supermodel as the paper
    does, at the paper's cost.
    `explore`: how hard to look for all of each posterior. "auto": at least two sealed replicates of one search, unless the
    posterior is plain, and more while they disagree. "quick": one look, as cheap as it gets; a narrow second mode may be missed
    without a word. "thrifty": two looks of some hundred calls, if the posterior is smooth; "auto" is that where a call, or a
    gradient, takes more than 0.01 s. "patient": up to two million calls; "auto" is that where a call takes less than 0.2 ms.
    "thorough": four times as many prior draws, levels and climbs.
    `executor`: for plain-Python likelihoods, a number of worker processes or any `concurrent.futures` executor. The answer is
    the same to the bit. Processes import your script anew: let `compare` stand below `if __name__ == "__main__":`.
    `on_error`: a likelihood that is NaN, or raises, is refused with the point; "reject" counts such points as impossible, and
    the verdict says how many there were. +inf is always refused.
    `missing`: NaN and infinite values in the data are refused with column and row, before any likelihood is called. "drop"
    drops rows in which a column that the models read is missing, and the result says how many; "keep" hands all on.

    `data`: a dict of arrays or lists, a pandas or polars frame, an Arrow table, an xarray dataset, a structured array, or the
    path of a CSV or Parquet file: all but what is no table reach the likelihoods as a dict of NumPy columns.
    """
    given = {
        "seed": seed, "target_error": target_error, "decide": decide, "method": method, "share": share,
        "prior_odds": prior_odds, "max_evaluations": max_evaluations, "max_seconds": max_seconds, "min_ess": min_ess,
        "checkpoint": checkpoint, "executor": executor, "explore": explore, "on_error": on_error, "missing": missing,
        "progress": progress,
    }  # fmt: skip
    return _compared(models, data, given)


def compare_growing(
    models: Mapping[str, Model],
    data: Any,
    until: Callable[[Mapping[str, float]], bool],
    told: Mapping[str, Any],
    **given: Any,
) -> Comparison:
    """`compare` of models that grow: the smallest is explored first, and the larger ones are left out where `until` says so.

    `until({name: rough ln Z})` is asked after each exploration. Those left out stand in `.settings["left_out"]`, and so does
    what is `told`.
    """
    return _compared(models, data, {option.name: option.default for option in OPTIONS} | given, until, told)


def _compared(
    models: Mapping[str, Model], data: Any, given: Mapping[str, Any], until: Any = None, told: Mapping[str, Any] | None = None
) -> Comparison:
    """The result for options by name; each is checked here."""
    check_models(models)
    models = {name: model.with_on_error(checked("on_error", given["on_error"])) for name, model in models.items()}
    data, dropped = _received(data, models, given["missing"])
    goals = _goals(**{name: given[name] for name in Goals.__dataclass_fields__ if name in given})
    seed, shared, explore = (checked(name, given[name]) for name in ("seed", "share", "explore"))
    shared_names(models, shared)  # refuses those that no model has
    method = checked("method", given["method"])
    with pool_of(checked("executor", given["executor"])) as pool:
        run: Any = (
            Run(models, data, seed, shared, pool, goals, explore, until=until)
            if method == "auto"
            else Recipe(models, data, seed, shared, pool, goals, method)
        )
        return _run(run, given["prior_odds"], given["checkpoint"], given["progress"], told=dropped | dict(told or {}))


def evidence(
    model: Model, data: Any = None, *, seed: int = 0, target_error: float = 0.1, max_evaluations: int | None = None,
    max_seconds: float | None = None, min_ess: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None, executor: Any = None, explore: str = "auto", on_error: str = "raise",
    missing: str = "raise", progress: bool | None = None,
) -> Evidence:  # fmt: skip
    """ln Z of a single model, through its Bayes factor against a reference of evidence 1.

    `.value`, `.error`, `.verdict`, and, as of every comparison, `.posterior("model")`, `.report(...)`.
    """
    check_models({"model": model}, least=1)
    model = model.with_on_error(checked("on_error", on_error))
    data, dropped = _received(data, {"model": model}, missing)
    goals = _goals(target_error=target_error, max_evaluations=max_evaluations, max_seconds=max_seconds, min_ess=min_ess)
    seed, explore = checked("seed", seed), checked("explore", explore)
    with pool_of(checked("executor", executor)) as pool:
        run = Run({"model": model}, data, seed, True, pool, goals, explore)
        return _run(run, None, checkpoint, progress, Evidence, dropped)


def _received(data: Any, models: Mapping[str, Model], missing: str) -> tuple[Any, dict[str, int]]:
    """The data as likelihoods get them, and what there is to tell of rows that were dropped."""
    found = received(data, models.values(), checked("missing", missing))
    return found.data, {"dropped": found.dropped, "rows": found.rows} if found.dropped else {}


def _goals(**given: Any) -> Goals:
    return Goals(**{name: checked(name, value) for name, value in given.items()})


def _run(run: Any, prior_odds, checkpoint, progress, kind=Comparison, told: Mapping[str, Any] | None = None):
    odds = checked_odds(checked("prior_odds", prior_odds) or dict.fromkeys(run.models, 1.0), tuple(run.models))
    checkpoint = checked("checkpoint", checkpoint)
    began = time.monotonic()
    run.report_progress = shown = reporter(checked("progress", progress))
    try:
        with compilation_cache(), run.interrupts, _unchanged(run.data):
            with contextlib.nullcontext() if checkpoint is None else _kept(run, checkpoint):
                run.prepare()
                run.loop()
            return finish(run, odds, time.monotonic() - began, kind, told)
    finally:
        if shown is not None:
            shown.close()


@contextlib.contextmanager
def _unchanged(data: Any):
    """Refuse what came of data that a likelihood has changed in place: each of its calls saw other data."""

    def columns() -> dict[str, str]:
        return {
            name: fingerprint(values)
            for name, values in (data if isinstance(data, Mapping) else {"data": data}).items()
        }

    before, trouble = columns(), None
    try:
        yield
    except Exception as error:  # data that run away often end in an overflow: the cause is told, not the symptom
        trouble = error
    after = columns()
    changed = sorted(str(name) for name in before | after if before.get(name) != after.get(name))
    if changed:
        raise DataError(
            f"the data {changed} changed during the run: a likelihood or `predict` works in place on them (x *= ..., "
            "x.sort(), x[i] = ...), so that each call sees what the last one left, and no answer means anything. Let it "
            "work on a copy (x = x * ...), and read the data anew: they are changed in your program as well."
        ) from trouble
    if trouble is not None:
        raise trouble


def _kept(run: Any, checkpoint: str | os.PathLike[str]) -> Keeper:
    """The run as the file has it, if there is one, and who writes it from now on."""
    store, load = (Recipe.write, Recipe.resume) if isinstance(run, Recipe) else (write, resume)
    load(run, checkpoint)
    run.keep = Keeper(checkpoint, store)
    return run.keep


def finish(
    run: Any,
    prior_odds: Mapping[str, float],
    seconds: float,
    kind: Any = Comparison,
    told: Mapping[str, Any] | None = None,
) -> Any:
    """The result of a run, at whatever point it stands; `told` goes with its settings."""
    found = _of_recipe(run) if isinstance(run, Recipe) else _of_engine(run)
    found["settings"] |= told or {}
    return kind(
        evidences=run.evidences(),
        evaluations={"likelihood": run.evaluations, "gradient": run.gradients},
        seed=run.seed,
        prior_odds={name: prior_odds[name] for name in run.models},
        seconds=seconds,
        models=run.models,
        data=run.data,
        **found,
    )


def _of_engine(run: Run) -> dict[str, Any]:
    sampled = [arm for arm in run.arms if arm.report is not None]
    records = [arm.edge.draws(arm.tuning) for arm in sampled]
    pilots = {
        p.name: {
            "method": p.method, "spread": p.spread, "evaluations": p.evaluations,
            "replicates": p.capture.replicates, "missed": p.capture.missed,
            "symmetries": [str(s) for s in p.symmetries], "folds": [as_data(s) for s in p.symmetries],
        }
        for p in run.pilots
    }  # fmt: skip
    found = of_all(run, records) if run.is_weighed else rough_posteriors(run)
    return {
        "verdict": judge(run, found),
        "posteriors": found,
        "edges": tuple(EdgeRecord.of(draws, arm.report) for draws, arm in zip(records, sampled, strict=True)),
        "settings": {
            "target_error": run.goals.target_error,
            "ended": run.ended,
            "explore": run.effort_name,
            "pilots": pilots,
        }
        | ({"left_out": list(run.left_out)} if run.left_out else {})
        | ({"cut_short": run.cut_short} if run.cut_short else {}),
    }


def of_all(run: Run, records: list[Any]) -> dict[str, ModelPosterior]:
    """The posterior of each model: from the draws of chains, or from what replicates have found."""
    chained = {pilot.name: run.models[pilot.name] for pilot in run.chained}
    found = posteriors(chained, records)
    for pilot in run.pilots:
        if pilot.log_weights is not None:
            log_likelihood = pilot.log_joint - pilot.joint.space.log_prior_at(pilot.points)
            found[pilot.name] = _of_points(pilot.joint, run.models, pilot.points, log_likelihood, pilot.log_weights)
    return {name: found[name] for name in run.models}


def rough_posteriors(run: Run) -> dict[str, ModelPosterior]:
    """What the looks found, or prior draws weighed by the likelihood, of a run that ended before its edges were sampled."""
    found = {}
    for joint in canonical(run.models, run.data):  # if the budget ended before the likelihood was asked: the prior
        x = joint.space.sample_prior(np.random.default_rng(run.seed), BATCH)
        found[joint.name] = joint, x, np.full(len(x), np.nan), np.zeros(len(x))
    for joint, (x, log_likelihood) in run.probes:
        log_weights = np.where(np.isfinite(log_likelihood), log_likelihood, -np.inf)
        found[joint.name] = joint, x, log_likelihood, log_weights
    for p in run.pilots:
        log_weights = np.zeros(len(p.points)) if p.log_weights is None else p.log_weights
        found[p.name] = p.joint, p.points, p.log_joint - p.joint.space.log_prior_at(p.points), log_weights
    return {name: _of_points(found[name][0], run.models, *found[name][1:]) for name in run.models}


def _of_points(joint: Joint, models: Mapping[str, Model], x, log_likelihood, log_weights) -> ModelPosterior:
    """Points of one model as draws of its posterior."""
    values = joint.space.values_at(x)
    return ModelPosterior(
        joint.name, {p: values[p] for p in models[joint.name].space.names}, log_weights - np.logaddexp.reduce(log_weights),
        log_likelihood, joint.space.log_prior_at(x), np.zeros(len(x), int),
    )  # fmt: skip


def _of_recipe(run: Recipe) -> dict[str, Any]:
    found = run.posteriors()
    return {
        "verdict": run.verdict(found),
        "posteriors": found,
        "edges": (),
        "chain": run.record(),
        "settings": {"target_error": run.goals.target_error, "ended": run.ended, "method": run.combine},
    }
