r"""The run: exploration, tree, warm-up, then blocks until the error is small enough and the checks agree."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from supermodel.engine.arm import Arm
from supermodel.engine.cycles import close_cycles, open_cycle
from supermodel.engine.edge import Edge, padded
from supermodel.engine.explore import Known, Pilot
from supermodel.engine.goals import Goals
from supermodel.engine.interrupts import Interrupts
from supermodel.engine.kernels import KERNELS, Kernel, Tuning, leapfrogs
from supermodel.engine.meter import Meter, Spent
from supermodel.engine.network import Measured, candidates, grow, joined, measure
from supermodel.engine.next_pilot import next_pilot
from supermodel.engine.policy import (
    BATCH,
    BOLD,
    BOLDER,
    CHAINS,
    CHEAP,
    COUNT_FALLS,
    DEAR,
    DEAR_PATH,
    DEAR_STEPS,
    EASY,
    EASY_FEW,
    EFFORTS,
    EXPLORING,
    FEW,
    FEW_CROSSINGS,
    FIRST_BLOCKS,
    GROWTH,
    HOPELESS,
    LEAST_BLOCKS,
    LONG,
    MOST_ROUNDS,
    MOST_WORTH,
    PATIENCE,
    SHORT_PATH,
    STEPS,
    THREE,
    TYPICAL,
    VOUCHED,
    WELCOME,
    WORTH,
    Effort,
)  # fmt: skip
from supermodel.engine.probe import pace, probe, unread_of
from supermodel.engine.roughness import covariance, roughness
from supermodel.engine.rungs import learnt, place
from supermodel.estimation.estimate import UNKNOWN, Estimate, Evidences
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint
from supermodel.models.model import Model
from supermodel.results.paths import paths
from supermodel.results.posterior import posteriors
from supermodel.verdict.rules import findings, is_settled


@dataclass
class Run:
    """All of one comparison between first call and answer. Plain data between blocks, so that it can be stored."""

    models: Mapping[str, Model]
    data: Any
    seed: int
    share: bool | list[str] = True
    executor: Any = None
    goals: Goals = field(default_factory=Goals)
    explore: str = "auto"
    report_progress: Callable[[Run], None] | None = None
    keep: Callable[[Run], None] | None = None  # called when there is something worth a checkpoint
    probes: list[tuple[Joint, Known]] = field(default_factory=list)  # in the order in which models are taken
    pilots: list[Pilot] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    unread: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # parameters that ln L of a model does not depend on
    pace: float = 0.0  # seconds a call of the slowest model, known after the first ones
    is_thrifty: bool = False  # whether calls are spared, by wish, by the clock or by a limit
    # Told a rough ln Z of each model explored so far, the smallest first: whether the larger ones are left out.
    until: Callable[[Mapping[str, float]], bool] | None = None
    left_out: tuple[str, ...] = ()
    cut_short: str = ""  # the limit that ended the exploration of the first of those left out, where one did
    ended: str = ""  # why the run ended: "target", "decided", "max_evaluations", ...
    interrupts: Interrupts = field(default_factory=Interrupts)

    def __post_init__(self):
        self.given = self.models  # also those that will be left out
        self.meter = Meter(self.goals, self.executor, self._watch, self.interrupts)

    def snapshot(self) -> Run:
        """The run as it stands between two blocks, for a file that is written now or later."""
        held = copy.copy(self)
        held.meter = copy.copy(self.meter)
        held.probes = [(copy.copy(joint), known) for joint, known in self.probes]  # a joint counts what it rejects
        held.pilots = list(self.pilots)
        held.arms = [arm.snapshot() for arm in self.arms]
        return held

    @property
    def began(self) -> float:
        return self.meter.began

    @property
    def evaluations(self) -> int:
        return self.meter.evaluations

    @property
    def gradients(self) -> int:
        return self.meter.gradients

    # -- preparation ----------------------------------------------------------------------------------------------

    @in_float64
    def prepare(self) -> None:
        """Probes and pilots of all models, the tree, and the warm-up of its edges; what is there already is kept."""
        try:
            self._prepare()
        except Spent as spent:
            self.ended = str(spent)
        except KeyboardInterrupt:
            if not self.probes:
                raise
            self.ended = "interrupted"

    def _prepare(self) -> None:
        if not self.probes:
            self.probes = probe(self.models, self.data, self.seed, self.meter)
            self.unread = unread_of(self.probes, self.meter)
            for joint, _ in self.probes:
                joint.unread = self.unread[joint.name]
            self.pace = pace(self.probes)  # once, and kept: the clock must not change its mind when a run is resumed
            self._keep()
        effort = self._effort()
        self.is_thrifty = effort.is_thrifty
        self._grant()
        for stream in range(len(self.probes)):
            if stream >= len(self.pilots):
                pilot, self.cut_short = next_pilot(self, stream, effort)
                if pilot is None:
                    self.leave_out(joint.name for joint, _ in self.probes[stream:])
                    break
                self.pilots.append(pilot)
                self._grant()
                rng = np.random.default_rng([self.seed, stream, 777])
                pilot.roughness = roughness(pilot.joint, pilot.points, pilot.warp, rng, self.meter)
                self._keep()
            if self.until is not None and self.until({p.name: p.rough_log_evidence for p in self.pilots[: stream + 1]}):
                self.leave_out(joint.name for joint, _ in self.probes[stream + 1 :])
                break
        if not self.is_joined:
            edges = enumerate(self._tree())
            self.arms = [self._warm(i, j, found, 1000 + n, used) for n, (i, j, found, used) in edges]
            self._keep()

    def leave_out(self, names: Iterable[str]) -> None:
        """Go on without some of the models, which nobody has explored."""
        self.left_out = tuple(names)
        self.models = {name: model for name, model in self.given.items() if name not in self.left_out}
        self.probes = [(joint, known) for joint, known in self.probes if joint.name not in self.left_out]

    def _grant(self) -> None:
        """Where the user sets no limit, what patience has spent on few parameters leaves the ladders their own."""
        if self.goals.max_evaluations is None:
            spent = sum(pilot.evaluations for pilot in self.pilots if pilot.joint.dimension <= FEW)
            self.meter.limit = PATIENCE + spent

    def _effort(self) -> Effort:
        """The effort that was asked for, or as much of it as a limited budget, or the price of a call, allows."""
        effort = EFFORTS[self.effort_name]
        limit = self.goals.max_evaluations or np.inf
        likely = len(self.given) if self.until is None else COUNT_FALLS  # of models that grow most are left out
        return effort.scaled(EXPLORING * limit / (likely * TYPICAL))

    @property
    def is_dear(self) -> bool:
        """Whether calls take so long that thrift is the default."""
        return self.explore == "auto" and self.pace > DEAR

    @property
    def effort_name(self) -> str:
        """How hard this run looks: what was asked for, or what a call costs."""
        if self.explore != "auto":
            return self.explore
        return "thrifty" if self.is_dear else "patient" if self.pace < CHEAP else "auto"

    def _spares(self, is_traced: bool) -> bool:
        """Whether calls of such models are dear: all are by the clock, those of black boxes where thrift was asked for."""
        return self.is_dear or (self.is_thrifty and not is_traced)

    def _draws_of(self, *ends: Pilot | None) -> int:
        """Of either end of a pair, to know the gap between them: ends that are alike need few."""
        return BATCH // 2 if self._spares(all(p.joint.is_traceable for p in ends if p is not None)) else BATCH

    def _keep(self) -> None:
        if self.keep is not None:
            self.keep(self)

    def _watch(self) -> None:
        if self.report_progress is not None:
            self.report_progress(self)

    def _tree(self) -> list[tuple[int, int | None, Measured, bool]]:
        """Edges (first, second or None, measured pair, whether on the tree), nearest the reference first."""
        rng, root = np.random.default_rng([self.seed, 999]), len(self.chained)
        measured = {}
        for i, j in candidates(self.chained, self.goals.target_error):
            first, second = self.chained[i], None if j == root else self.chained[j]
            measured[i, j] = measure(
                joined(first, second, self.share), first, second, rng, self.meter, self._draws_of(first, second)
            )
        # One evaluation a step on an edge to the reference and two on one between models; but through the reference a
        # pair of models needs two edges.
        tree = grow(root, {pair: 2 * found.gap.length**2 for pair, found in measured.items()})
        direct = {k for i, j in tree if j != root for k in (i, j)}
        closing = [
            (k, root) for k in sorted(direct) if (k, root) not in tree and self.chained[k].reference.prior_share > 0
        ]
        edges = [(i, j, True) for i, j in tree] + [(i, j, False) for i, j in closing]
        return [(i, None if j == root else j, measured[i, j], used) for i, j, used in edges]

    def _warm(self, i: int, j: int | None, found: Measured, stream: int, used: bool) -> Arm:
        """Chains from both ends; the balance and the step are learnt here and never changed afterwards."""
        pair, gap, starts = found
        ends = [self.chained[i]] + ([] if j is None else [self.chained[j]])
        kernel = self._kernel(pair, ends)
        edge = Edge(pair, kernel, CHAINS, stream, self.meter)
        table, prior = place(gap)
        top = len(table) - 1
        steps = [p.step for p in ends if p.step > 0]
        step = (
            min(steps, default=kernel.first_step(pair.dimension))
            if kernel.needs_gradients
            else kernel.first_step(pair.dimension)
        )
        bold = BOLDER if min(p.acceptance for p in ends) > WELCOME else BOLD
        tuning = Tuning(*padded(table, prior), step, leapfrogs(step), bold)
        half = CHAINS // 2
        edge.begin(np.concatenate([starts[0][:half], starts[1][:half]]), np.repeat([top, 0], half))
        # The pilots' draws give the balance of a few rungs.
        known = gap.length < (DEAR_PATH if self._spares(edge.is_traced) else SHORT_PATH)
        rounds = 0 if known else min(3 + int(np.ceil(gap.length / 4)), MOST_ROUNDS)
        if kernel.first_blocks > FIRST_BLOCKS:  # jumps: one block forgets the starts, another balances a few rungs
            rounds = min(rounds, 1 + int(np.ceil(gap.length)))
        # No more than a third of what is left of the budget: the draws that count need the rest.
        each = STEPS * edge.cost_of_a_step(tuning)
        for _ in range(int(np.clip(self.meter.room // (3 * len(self.chained) * each), min(1, rounds), rounds))):
            tuning = learnt(edge.kernel, edge.advance(self.seed, STEPS, tuning), tuning)
        return Arm(i, j, edge, gap, tuning, is_used=used)

    @staticmethod
    def _kernel(pair, ends: list[Pilot]) -> Kernel:
        """A trajectory costs about five gradients; a step of one evaluation is cheaper while it is accepted often enough."""
        easy = min(p.acceptance for p in ends) > (EASY_FEW if pair.dimension <= THREE else EASY)
        traced = all(joint.is_traceable for joint in pair.joints)
        if pair.reference is not None and not pair.reference.is_standard_normal:
            return KERNELS["reference_jumps"]
        return KERNELS["crank_nicolson" if easy or not traced else "hamiltonian"]

    # -- the loop -------------------------------------------------------------------------------------------------

    @in_float64
    def loop(self) -> None:
        """Blocks on whichever edge lowers the error most per evaluation, until a goal is met or someone stops it."""
        try:
            if not self.ended:
                self._loop()
        except Spent as spent:
            self.ended = str(spent)
            for arm in self.arms:
                arm.owed = (0, 0)  # a limit that is raised later goes on from what is known by then
        except KeyboardInterrupt:
            self.ended = "interrupted"
        for arm in self.arms:
            if arm.edge.blocks and (arm.report is None or arm.report.n_draws < arm.n_draws):
                arm.look()
        if self.ended != "interrupted":  # a checkpoint holds the border before: resumed, the block is run again
            self._keep()
        self._watch()

    def _loop(self) -> None:
        for arm in self.arms:
            if arm.owed[0]:
                self._add(arm, *arm.owed)
        fresh = [arm for arm in self.arms if arm.report is None]  # the others come from a checkpoint
        for i, arm in enumerate(fresh):
            # Blocks before the first estimate; an edge that no Bayes factor rests on gets the least. Where the budget is
            # short, every edge gets its part of it: an answer needs them all.
            least = arm.gap.length < 0.1 or not self.matters(arm)
            blocks = LEAST_BLOCKS if least else arm.edge.kernel.first_blocks
            if self._spares(arm.edge.is_traced):  # of dear calls no more than the error asks for
                blocks = 1 if arm.gap.length < SHORT_PATH else min(blocks, FIRST_BLOCKS)
            else:
                blocks = max(blocks, self._worth(arm))
            self._add(arm, blocks, self.meter.room // ((len(fresh) - i) * arm.edge.cost_of_a_step(arm.tuning)))
        while not self.ended:
            self._keep()
            self._watch()
            if not self.arms:
                self.ended = self._reached()
                return
            close_cycles(self.arms)
            self.ended = self._stop()
            if not self.ended:
                arm = self._most_useful()
                self._add(arm, max(1, arm.n_blocks // GROWTH))

    def _worth(self, arm: Arm) -> int:
        """Blocks that cost little beside the exploration that led to them: an error from many draws is smaller and better known."""
        edge = arm.edge
        # Beside the exploration of many parameters every draw is cheap.
        is_cheap = edge.is_traced or edge.pair.dimension > FEW
        if arm.second is not None or not is_cheap or self._spares(edge.is_traced) or edge.kernel.needs_gradients:
            return 0
        each = STEPS * edge.cost_of_a_step(arm.tuning)
        return min(int(WORTH[edge.pair.dimension > FEW] * self.chained[arm.first].evaluations // each), MOST_WORTH)

    def _add(self, arm: Arm, blocks: int, most_steps: int = PATIENCE) -> None:
        while blocks > 0 and most_steps > 0:
            steps = DEAR_STEPS if self._spares(arm.edge.is_traced) else STEPS
            block = arm.edge.advance(self.seed, min(steps, most_steps), arm.tuning)
            arm.edge.blocks.append(replace(block, gradients=None))
            blocks, most_steps = blocks - 1, most_steps - steps
            arm.close_chapter()
            arm.owed = (blocks, most_steps)
            self._keep()
        if not arm.edge.blocks:  # the budget ends between two edges
            raise Spent("max_evaluations")
        arm.owed = (0, 0)
        arm.look()

    # -- when to stop, what to do next ----------------------------------------------------------------------------

    def _most_useful(self) -> Arm:
        """Along the worst pair's path, the edge with the largest variance per evaluation already spent on it."""
        path = self._path_of(*self._worst_pair())
        unsettled = [arm for arm in path if not is_settled(arm.report)]
        if not unsettled and self._difference(*self._worst_pair()).error <= self.goals.target_error:
            closing = open_cycle(self.arms)
            if closing is not None:
                return closing
            shallow = self._shallow()
            if shallow is not None:
                return shallow
        return max(unsettled or path, key=lambda arm: arm.report.error**2 / arm.edge.evaluations)

    def _stop(self) -> str:
        if self.meter.over():
            return self.meter.over()
        a, b = self._worst_pair()
        path = self._path_of(a, b)
        settled = all(is_settled(arm.report) or arm.report.n_draws > HOPELESS for arm in path)
        if settled and open_cycle(self.arms) is None and self._shallow() is None:
            if len(self.models) == 2 and self.goals.is_decided(self.evidences().log_bayes_factor(*self.models)):
                return "decided"
            if self._difference(a, b).error <= self.goals.target_error:
                return "target"
        # Chains that have not crossed by now will not: better to say so than to burn the budget.
        return "stuck" if any(a.report.n_draws > LONG and a.report.crossings < FEW_CROSSINGS for a in path) else ""

    def _reached(self) -> str:
        """Whether replicates alone know all that was asked for."""
        errors = [pilot.vouched for pilot in self.pilots]
        return "target" if max(errors) <= self.goals.target_error else "stuck"

    def _shallow(self) -> Arm | None:
        """The edge whose draws make a posterior that has fewer effective ones than were asked for."""
        if self.goals.min_ess is None:
            return None
        sampled = [arm for arm in self.arms if arm.report is not None]
        found = posteriors(self.models, [arm.edge.draws(arm.tuning) for arm in sampled]).values()
        short = [sampled[posterior.record] for posterior in found if self.goals.is_short(posterior)]
        return next((arm for arm in short if arm.report.n_draws < HOPELESS), None)

    # -- what is known --------------------------------------------------------------------------------------------

    @property
    def chained(self) -> list[Pilot]:
        """The models whose evidence comes from chains; those whose replicates know it, and whose reference is poor, need none."""
        return [pilot for pilot in self.pilots if not pilot.is_known]

    @property
    def is_weighed(self) -> bool:
        """Whether every edge of the tree has been sampled: before that, only the looks have something to say."""
        is_explored = len(self.pilots) == len(self.models)
        return is_explored and all(arm.report is not None for arm in self.arms if arm.is_used) and self.is_joined

    @property
    def is_joined(self) -> bool:
        """Whether there are edges for all models that need one."""
        return bool(self.arms) or not self.chained

    def paths(self) -> np.ndarray:
        """(K, edges): +1 where ln Z_k contains an edge as ln Z_first - ln Z_second, -1 where reversed."""
        root = len(self.chained)
        used = [arm for arm in self.arms if arm.is_used]
        found = paths([(arm.first, root if arm.second is None else arm.second) for arm in used], root)
        table = np.zeros((root, len(self.arms)))
        table[:, [i for i, arm in enumerate(self.arms) if arm.is_used]] = np.stack([found[k] for k in range(root)])
        return table

    def matters(self, arm: Arm) -> bool:
        """Whether some Bayes factor rests on this edge (a lone model's evidence rests on its only one)."""
        table = self.paths()[:, self.arms.index(arm)]
        return len(self.chained) == 1 or bool(np.any(table != table[0]))

    def is_concave(self, arm: Arm) -> bool:
        """Whether ln J of every model on this edge seems concave."""
        return all(self.chained[k].is_concave for k in (arm.first, arm.second) if k is not None)

    def _sign(self, a: int, b: int | None) -> np.ndarray:
        """How ln Z_a - ln Z_b is made of edges; `b` None is the reference."""
        table = self.paths()
        return table[a] - (0.0 if b is None else table[b])

    def _path_of(self, a: int, b: int | None) -> list[Arm]:
        return [arm for arm, used in zip(self.arms, self._sign(a, b), strict=True) if used != 0]

    def _difference(self, a: int, b: int | None) -> Estimate:
        sign = self._sign(a, b)
        # Only the edges on the path: another one may have an infinite error, and 0 times that is not a number.
        used = [(s, arm.report) for s, arm in zip(sign, self.arms, strict=True) if s != 0]
        variance = sum(report.error**2 for _, report in used)
        return Estimate(float(sum(s * report.value for s, report in used)), float(np.sqrt(variance)))

    def _worst_pair(self) -> tuple[int, int | None]:
        """The best model and the one whose Bayes factor with it is least certain (a lone model: the reference)."""
        if len(self.chained) == 1:
            return 0, None
        values = self.paths() @ np.array([arm.report.value for arm in self.arms])
        best = int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))
        others = [k for k in range(len(self.chained)) if k != best]
        return best, max(others, key=lambda k: self._difference(best, k).error)

    def evidences(self) -> Evidences:
        """ln Z of every model, in the user's order, with the covariance that shared edges give them."""
        if not self.is_weighed:
            return self._rough()
        places = {p.name: i for i, p in enumerate(self.chained)}
        used = [self._answer(arm) if arm.is_used else Estimate(0.0, 0.0) for arm in self.arms]
        # An infinite error (a limit) is written as one beyond all use: it must cancel in pairs that do not rest on it.
        variances = np.array([min(r.error, UNKNOWN) ** 2 for r in used])
        table, by_name = self.paths(), {p.name: p for p in self.pilots}
        rows = [table[places[name]] if name in places else np.zeros(len(self.arms)) for name in self.models]
        values = np.array([row @ np.nan_to_num([r.value for r in used]) for row in rows])
        sampled = (np.array(rows) * variances) @ np.array(rows).T
        for i, name in enumerate(self.models):
            if name not in places:
                values[i], sampled[i, i] = by_name[name].log_evidence, by_name[name].vouched ** 2
        order = [by_name[name] for name in self.models]
        floor = covariance([pilot.roughness for pilot in order]) + np.diag([pilot.doubt**2 for pilot in order])
        return Evidences(tuple(self.models), values, sampled + floor, True)

    def is_vouched(self, arm: Arm) -> bool:
        """Whether chains to the reference are in trouble, but sealed replicates, which agree among themselves, agree with them too
        (or chains give no number at all).
        """
        if arm.second is not None or arm.report is None:
            return False
        if not any(level == "fail" or reason.code == "heavy_tail" for level, reason in findings(arm.report)):
            return False
        pilot = self.chained[arm.first]
        if not (pilot.is_agreed and np.isfinite(pilot.vouched)):
            return False
        off = abs(arm.report.value - pilot.log_evidence)
        return not np.isfinite(arm.report.error) or bool(off <= VOUCHED * np.hypot(arm.report.error, pilot.vouched))

    def _answer(self, arm: Arm) -> Estimate:
        """ln Z of an edge's first end less that of its second; where the chains are in trouble, what all points of the replicates
        give, with half of the difference in its error.
        """
        report, pilot = arm.report, self.chained[arm.first]
        if not self.is_vouched(arm):
            return Estimate(report.value, report.error)
        apart = report.value - pilot.log_evidence if np.isfinite(report.error) else 0.0
        return Estimate(pilot.log_evidence, float(np.hypot(pilot.vouched, 0.5 * apart)))

    def _rough(self) -> Evidences:
        """What the looks, or the prior draws alone, say: the answer of a run that ended before its edges were sampled."""
        values, errors = [], []
        by_name = {p.name: p for p in self.pilots}
        for name in self.models:
            looks = [look for look in by_name[name].looks if np.isfinite(look.log_evidence)] if name in by_name else []
            best = min(looks, key=lambda look: look.error, default=None)
            values.append(np.nan if best is None else best.log_evidence)
            errors.append(UNKNOWN if best is None else min(best.error, UNKNOWN))
        return Evidences(tuple(self.models), np.array(values), np.diag(np.square(errors)), True)
