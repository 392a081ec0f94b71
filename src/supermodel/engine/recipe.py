"""The paper's own recipe behind the front door: one supermodel, one chain on (alpha, theta), Rao-Blackwell, one verdict.

It obeys what the engine obeys: blocks until a goal is met, budgets, Ctrl-C, progress, and a checkpoint from which a run
goes on to the same bits. Evidences are relative: the models are compared with each other and with nothing else.
"""

from __future__ import annotations

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
from supermodel.engine.judge import ending, neighbours, rejections
from supermodel.engine.meter import Meter
from supermodel.engine.roughness import Roughness, covariance, roughness
from supermodel.engine.whiten import by_moments
from supermodel.estimation.conditional import weights_of
from supermodel.estimation.estimate import Evidences
from supermodel.jax_scope import in_float64
from supermodel.results.record import ChainRecord
from supermodel.results.storage import save_arrays
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
                if self.chain.n_draws >= FIRST or self.report is not None:
                    self._look()
                if not self.ended:
                    self._advance(max(FIRST, self.chain.n_draws // 2))
            if self.ended in ("target", "decided", "length"):  # by a look, and with a budget left
                self._look_near()
        except KeyboardInterrupt:
            if self.chain.n_draws < 4:
                raise  # nothing to show yet
            self.ended = "interrupted"
        self._look()

    def _look_near(self) -> None:
        """How rough each likelihood is, near the draws at which its model has most of the weight."""
        meter, weights = Meter(self.goals, self.executor), weights_of(self.draws).reshape(-1, len(self.models))
        meter.began, meter.evaluations = self.began, self.chain.evaluations
        points = self.draws.position.reshape(len(weights), -1)
        for k, joint in enumerate(self.supermodel.joints):
            most = np.argsort(weights[:, k], kind="stable")[-max(NEAR, len(weights) // 20) :]
            x = points[most][:, self.supermodel.places[k]]
            warp = by_moments(x) if joint.dimension else no_warp(0)
            rng = np.random.default_rng([self.seed, k, 777])
            self.roughness[joint.name] = roughness(joint, x, warp, rng, meter)
        self.near = meter.evaluations - self.chain.evaluations

    def _advance(self, n: int) -> None:
        until = min(self.chain.n_draws + n, LONGEST)
        while self.chain.n_draws < until:
            self.chain.advance(min(BLOCK, until - self.chain.n_draws))
            self.ended = self.goals.over_budget(self.evaluations, self.began)
            if self.ended:
                return

    @in_float64
    def _look(self) -> None:
        """Between blocks: estimate, examine, ask whether to go on; a checkpoint, and a line for whoever watches."""
        self.draws: Draws = self.chain.draws()
        self.found, self.report = evidences_of(self.draws), examine(self.draws)
        self.ended = self.ended or self._stop()
        self._keep()
        if self.report_progress is not None:
            self.report_progress(self)

    def _stop(self) -> str:
        if is_settled(self.report):
            if len(self.models) == 2 and self.goals.is_decided(self.found.log_bayes_factor(*self.models)):
                return "decided"
            if self.found.log_bayes_factor(*least_certain(self.found)).error <= self.goals.target_error:
                return "target"
        if self.chain.n_draws >= LONGEST:
            return "length"
        return self.goals.over_budget(self.evaluations, self.began)

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

    def verdict(self) -> Verdict:
        found, evidences = findings(self.report), self.evidences()
        found += neighbours(self.roughness, evidences, self.goals) if self.roughness else []
        counts = {joint.name: joint.rejected for joint in self.supermodel.joints}
        counts[" or ".join(self.models)] = int(self.chain.tally.invalid)  # met inside compiled code
        found += rejections(counts, self.evaluations)
        return worst(found + ending(self.ended, evidences, self.goals))

    def record(self) -> ChainRecord:
        return ChainRecord.of(self.draws, self.report)

    # -- as a file ------------------------------------------------------------------------------------------------

    def write(self, path: str | os.PathLike[str]) -> None:
        """Put the run, as it stands between two looks, into a file."""
        groups = self.chain.arrays()
        groups["probe"] = self._probe(groups["state"]["position"])
        save_arrays(path, groups, {"kind": KIND, "identity": identity(self) | {"method": self.combine}})

    def _probe(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """A few points and the models' log likelihoods and priors there, by which a resumed run knows its models again."""
        points = position.reshape(-1, self.supermodel.dimension)[:TRIED]
        found = {"points": points}
        for k, joint in enumerate(self.supermodel.joints):
            x = points[:, self.supermodel.places[k]]
            found |= {f"likelihood_{k}": joint.log_likelihood_at(x, self.executor)}
            found |= {f"prior_{k}": joint.space.log_prior_at(x)}
        return found

    @in_float64
    def resume(self, path: str | os.PathLike[str]) -> bool:
        """Go on from the file if there is one; refuse one that belongs to another run. False: nothing was there."""
        found = read(path, KIND, identity(self) | {"method": self.combine})
        if found is None:
            return False
        groups = found[0]
        stored = groups.pop("probe")
        for k, joint in enumerate(self.supermodel.joints):
            points = stored["points"][:, self.supermodel.places[k]]
            check_densities(joint, points, stored[f"likelihood_{k}"], stored[f"prior_{k}"], path, self.executor)
        self.chain.restore(groups)
        return True
