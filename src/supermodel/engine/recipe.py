"""The paper's own recipe behind the front door: one supermodel, one chain on (alpha, theta), Rao-Blackwell, one verdict.

It obeys what the engine obeys: blocks until a goal is met, budgets, Ctrl-C, progress, and a checkpoint from which a run
goes on to the same bits. Evidences are relative: the models are compared with each other and with nothing else.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from supermodel.embedding.coordinate import Hats
from supermodel.embedding.supermodel import Supermodel
from supermodel.embedding.warp import identity as no_warp
from supermodel.engine.checkpoint import check_densities, identity, read
from supermodel.engine.goals import Goals
from supermodel.engine.interrupts import Interrupts
from supermodel.engine.judge import agreement, ending, goes_on, neighbours, rejections, unkept, unused
from supermodel.engine.meter import Meter
from supermodel.engine.roughness import Roughness, covariance, roughness
from supermodel.engine.whiten import by_moments
from supermodel.estimation.conditional import weights_of
from supermodel.estimation.estimate import Evidences
from supermodel.jax_scope import in_float64
from supermodel.models.unread import unread
from supermodel.results.posterior import ModelPosterior, posteriors
from supermodel.results.record import ChainRecord
from supermodel.results.storage import reading, save_arrays
from supermodel.sampling.chain import Chain
from supermodel.sampling.draws import Draws
from supermodel.sampling.target import target_of
from supermodel.verdict.examine import evidences_of, examine, least_certain
from supermodel.verdict.rules import findings, is_settled
from supermodel.verdict.verdict import Verdict, worst

KIND = "recipe checkpoint 1"
CHAINS, THIN = 64, 10
BLOCK = 100  # records of a compiled call: budgets and Ctrl-C are heeded between blocks
FIRST = 500  # records of each chain before the first look
LONGEST = 32_000  # records of each chain: a chain that has not settled by then will not
NEAR = 64  # draws at least, of those where a model has most of the weight, near which its likelihood is looked at
TRIED = 2  # points at which the densities are tried again when a run is resumed


@dataclass
class Recipe:
    """A comparison by `mixture`, `product`, `index`, `blend` or `blend_product`, between its start and its answer."""

    models: Mapping[str, Any]
    data: Any
    seed: int
    share: bool | list[str]
    executor: Any
    goals: Goals
    combine: str
    report_progress: Callable[[Any], None] | None = None
    keep: Callable[[Any], None] | None = None
    began: float = field(default_factory=time.monotonic)
    ended: str = ""  # why the run ended: "target", "decided", "length", ...
    report: Any = None  # a Report, as soon as there are draws
    roughness: dict[str, Roughness] = field(default_factory=dict)  # of every model, at the end
    near: int = 0  # evaluations that looking at neighbours took
    until: int = 0  # records of each chain at the next look
    interrupts: Interrupts = field(default_factory=Interrupts)

    gradients = 0  # Metropolis needs none

    def __post_init__(self):
        hats = len(self.models) > 2 and self.combine in ("product", "blend", "blend_product")
        coordinate = Hats(len(self.models)) if hats else None
        self.supermodel = Supermodel(
            self.models, combine=self.combine, coordinate=coordinate, share=self.share, data=self.data
        )
        sampler = "metropolis" if self.combine == "index" else "tempered"
        self.chain = Chain(target_of(self.supermodel, self.executor), sampler, self.seed, CHAINS, THIN, BLOCK)

    def prepare(self) -> None:
        """Starts and warm-up, unless a checkpoint gave them."""
        if self.chain.state is None:
            rng = np.random.default_rng(self.seed)
            self.supermodel.check_positive_predictions(rng)
            self.chain.begin(rng)
            self._keep()

    def loop(self) -> None:
        """Longer and longer until a goal is met or someone stops it."""
        try:
            while not self.ended:
                if self.chain.n_draws < self.until:
                    self._advance()
                    continue
                if self.chain.n_draws:
                    self._look()
                if not self.ended:
                    self.until = min(self.chain.n_draws + max(FIRST, self.chain.n_draws // 2), LONGEST)
            if self.ended in ("target", "decided", "length"):  # by a look, and with a budget left
                self._look_near()
        except KeyboardInterrupt:
            if self.chain.n_draws < 4:
                raise  # nothing to show yet
            self.ended = "interrupted"
        self._look()

    def _look_near(self) -> None:
        """How rough each likelihood is, near the draws at which its model has most of the weight."""
        meter = Meter(self.goals, self.executor, interrupts=self.interrupts)
        weights = weights_of(self.draws).reshape(-1, len(self.models))
        meter.began, meter.evaluations = self.began, self.chain.evaluations
        points = self.draws.position.reshape(len(weights), -1)
        for k, joint in enumerate(self.supermodel.joints):
            most = np.argsort(weights[:, k], kind="stable")[-max(NEAR, len(weights) // 20) :]
            x = points[most][:, self.supermodel.places[k]]
            warp = by_moments(x) if joint.dimension else no_warp(0)
            rng = np.random.default_rng([self.seed, k, 777])
            self.roughness[joint.name] = roughness(joint, x, warp, rng, meter)
        self.near = meter.evaluations - self.chain.evaluations

    def _advance(self) -> None:
        """Blocks up to the next look, or to the end of the budget."""
        while self.chain.n_draws < self.until:
            self.interrupts.check()
            self.chain.advance(min(BLOCK, self.until - self.chain.n_draws))
            self._keep()
            self.ended = self.goals.over_budget(self.evaluations, self.began)
            if self.ended:
                self.until = self.chain.n_draws  # a limit that is raised later goes on from a look at what is known
                return

    @in_float64
    def _look(self) -> None:
        """Between blocks: estimate, examine, ask whether to go on; a checkpoint, and a line for whoever watches."""
        self.draws: Draws = self.chain.draws()
        self.found, self.report = evidences_of(self.draws), examine(self.draws)
        self.ended = self.ended or self._stop()
        if self.ended != "interrupted":  # a checkpoint holds the border before
            self._keep()
        if self.report_progress is not None:
            self.report_progress(self)

    def _stop(self) -> str:
        if is_settled(self.report) and not self._is_short():
            if len(self.models) == 2 and self.goals.is_decided(self.found.log_bayes_factor(*self.models)):
                return "decided"
            if self.found.log_bayes_factor(*least_certain(self.found)).error <= self.goals.target_error:
                return "target"
        if self.chain.n_draws >= LONGEST:
            return "length"
        return self.goals.over_budget(self.evaluations, self.began)

    def _is_short(self) -> bool:
        return self.goals.min_ess is not None and any(map(self.goals.is_short, self.posteriors().values()))

    def _keep(self) -> None:
        if self.keep is not None:
            self.keep(self)

    # -- what is known --------------------------------------------------------------------------------------------

    @property
    def evaluations(self) -> int:
        return self.chain.evaluations + self.near

    def evidences(self) -> Evidences:
        if not self.roughness:
            return self.found
        floor = covariance([self.roughness[name] for name in self.found.names])
        return replace(self.found, covariance=self.found.covariance + floor)

    def posteriors(self) -> dict[str, ModelPosterior]:
        return posteriors(self.models, [self.draws])

    def verdict(self, made: Mapping[str, ModelPosterior]) -> Verdict:
        found, evidences = findings(self.report) + agreement(made, self.goals), self.evidences()
        found += neighbours(self.roughness, evidences, self.goals) if self.roughness else []
        counts = {joint.name: joint.rejected for joint in self.supermodel.joints}
        counts[" or ".join(self.models)] = int(self.chain.tally.invalid)  # met inside compiled code
        found += rejections(counts, self.evaluations)
        joints = self.supermodel.joints
        points = [joint.space.sample_prior(np.random.default_rng(self.seed), TRIED) for joint in joints]
        # Of traced models only: the paper's recipe has no calls to spare.
        found += unused(
            {j.name: unread(j, x, np.zeros(len(x))) for j, x in zip(joints, points, strict=True)}, self.models
        )
        return worst(found + ending(self.ended, evidences, self.goals, goes_on(self)) + unkept(self))

    def record(self) -> ChainRecord:
        return ChainRecord.of(self.draws, self.report)

    # -- as a file ------------------------------------------------------------------------------------------------

    def snapshot(self) -> Recipe:
        """The run as it stands between two blocks, for a file that is written now or later."""
        held = copy.copy(self)
        held.chain = copy.copy(self.chain)
        held.chain.records = list(self.chain.records)
        return held

    def write(self, path: str | os.PathLike[str]) -> None:
        """Put the run, as it stands between two blocks, into a file."""
        groups = self.chain.arrays()
        groups["probe"] = self._probe()
        attrs = {"kind": KIND, "identity": identity(self) | {"method": self.combine}, "until": self.until}
        save_arrays(path, groups, attrs)

    def _probe(self) -> dict[str, np.ndarray]:
        """Where chains stand highest in each model, and its log likelihood and prior there: by these it is known again."""
        terms, position = self.chain.state.terms, np.asarray(self.chain.state.position)[0]
        heights = np.asarray(terms.log_priors)[0]
        if terms.log_likelihoods is not None:
            heights = heights + np.asarray(terms.log_likelihoods)[0]
        found: dict[str, np.ndarray] = {}
        for k, joint in enumerate(self.supermodel.joints):
            highest = np.argsort(-heights[:, k], kind="stable")[:TRIED]
            x = position[highest][:, self.supermodel.places[k]]
            found |= {f"points_{k}": x, f"likelihood_{k}": joint.log_likelihood_at(x, self.executor)}
            found |= {f"prior_{k}": joint.space.log_prior_at(x)}
        return found

    @in_float64
    def resume(self, path: str | os.PathLike[str]) -> bool:
        """Go on from the file if there is one; refuse one that belongs to another run. False: nothing was there."""
        found = read(path, KIND, identity(self) | {"method": self.combine})
        if found is None:
            return False
        groups, attrs = found
        with reading(path):
            stored, places = groups.pop("probe"), self.supermodel.places
            tried = [
                # Earlier versions stored points of the whole supermodel.
                (stored["points"][:, places[k]] if "points" in stored else stored[f"points_{k}"], stored[f"likelihood_{k}"],
                 stored[f"prior_{k}"])
                for k in range(len(places))
            ]  # fmt: skip
            self.chain.restore(groups)
            self.until = int(attrs.get("until", self.chain.n_draws))
        for joint, (points, log_likelihood, log_prior) in zip(self.supermodel.joints, tried, strict=True):
            check_densities(joint, points, log_likelihood, log_prior, path, self.executor)
        return True
