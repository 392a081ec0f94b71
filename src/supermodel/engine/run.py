r"""The run: pilots, tree, warm-up, then blocks until the error is small enough and the checks agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supermodel.engine.edge import Block, Edge
from supermodel.engine.goals import Goals
from supermodel.engine.kernels import Tuning
from supermodel.engine.pilot import BATCH, Known, Pilot, leapfrogs, padded, pilot
from supermodel.engine.rungs import Gap, place, rebalance
from supermodel.engine.tree import grow, measure, pair_supermodel
from supermodel.estimation.estimate import UNKNOWN, Estimate, Evidences
from supermodel.estimation.mbar import multistate
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint
from supermodel.models.model import Model
from supermodel.models.space import Space
from supermodel.verdict.examine import examine
from supermodel.verdict.rules import is_settled

PATIENCE = 2_000_000  # evaluations, where the user sets no limit
LONG, FEW = 25_000, 4  # draws of an edge after which fewer crossings than this will not become more
HOPELESS = 200_000  # draws of an edge beyond which more of the same would not mend it
CHAINS, STEPS = 16, 16  # one block: few enough that a cheap problem ends early


@dataclass
class Arm:
    """An edge at work: from model `first` to `second` (None is the reference), with what warm-up learnt."""

    first: int
    second: int | None
    edge: Edge
    gap: Gap
    tuning: Tuning
    report: Any = None  # a Report, as soon as there are draws

    @property
    def n_draws(self) -> int:
        return sum(block.rung.size for block in self.edge.blocks)


@dataclass
class Run:
    """All of one comparison between pilot and answer. Plain data between blocks, so that it can be stored."""

    models: Mapping[str, Model]
    data: Any
    seed: int
    share: bool | list[str] = True
    executor: Any = None
    goals: Goals = field(default_factory=Goals)
    report_progress: Callable[[Run], None] | None = None
    keep: Callable[[Run], None] | None = None  # called when there is something worth a checkpoint
    probes: list[tuple[Joint, Known]] = field(default_factory=list)  # in the order in which models are taken
    pilots: list[Pilot] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    spent: int = 0  # evaluations outside pilots and edges
    began: float = field(default_factory=time.monotonic)
    ended: str = ""  # why the run ended: "target", "decided", "max_evaluations", ...

    # -- preparation ----------------------------------------------------------------------------------------------

    @in_float64
    def prepare(self) -> None:
        """Probes and pilots of all models, the tree, and the warm-up of its edges; what is there already is kept."""
        if not self.probes:
            self.probes = self._probe()
            self._keep()
        for stream, (joint, known) in enumerate(self.probes):
            if stream >= len(self.pilots):
                self.pilots.append(pilot(joint, known, self.seed, stream, self.executor))
                self._keep()
        if not self.arms:
            self.spent = 0
            edges = enumerate(self._tree())
            self.arms = [self._warm(i, j, gap, pair, starts, 1000 + n) for n, (i, j, gap, pair, starts) in edges]
            self._keep()

    def _probe(self) -> list[tuple[Joint, Known]]:
        joints = canonical(self.models, self.data)
        probed = [(joint, joint.probe(np.random.default_rng(self.seed), BATCH, self.executor)) for joint in joints]
        # Models are taken in an order that depends on what they say, not on how they are listed or named:
        # swapping two models then flips the sign of ln B to the last bit.
        return sorted(probed, key=lambda item: (item[0].dimension, tuple(item[1][1])))

    def _keep(self) -> None:
        if self.keep is not None:
            self.keep(self)

    def _tree(self) -> list[tuple]:
        """Edges (first, second or None, gap, supermodel, starts), nearest the reference first."""
        rng = np.random.default_rng([self.seed, 999])
        root = len(self.pilots)
        measured, costs = {}, {}
        for i, j in self._candidates():
            first, second = self.pilots[i], None if j == root else self.pilots[j]
            pair = pair_supermodel(first, second, self.share)
            gap, starts, paid = measure(pair, first, second, rng, self.executor)
            self.spent += paid
            measured[i, j] = (gap, pair, starts)
            # One evaluation a step on an edge to the reference and two on one between models; but through the
            # reference a pair of models needs two edges.
            costs[i, j] = 2 * gap.length**2
        edges = grow(self.pilots, costs, root)
        result = []
        for i, j in edges:
            flip = (i, j) not in measured
            gap, pair, starts = measured[(j, i) if flip else (i, j)]
            a, b = (j, i) if flip else (i, j)
            result.append((a, None if b == root else b, gap, pair, starts))
        return result

    def _candidates(self) -> list[tuple[int, int]]:
        """Every model with the reference; two models with each other where both are far from it but share parameters."""
        root = len(self.pilots)
        pairs = [(i, root) for i in range(root)]
        least = 0.05 if root <= 4 else 1.0  # measuring a pair has its price too
        far = [i for i, p in enumerate(self.pilots) if p.spread > least and not p.is_hilly]
        for i in far:
            for j in far:
                common = set(self.pilots[i].joint.space.names) & set(self.pilots[j].joint.space.names)
                if i < j and common:
                    pairs.append((i, j))
        return pairs

    def _warm(self, i: int, j: int | None, gap: Gap, pair, starts, stream: int) -> Arm:
        """Chains from both ends; the balance and the step are learnt here and never changed afterwards."""
        ends = [self.pilots[i]] + ([] if j is None else [self.pilots[j]])
        compiled = all(joint.is_traceable for joint in pair.joints)
        # A trajectory costs about five gradients; a Crank-Nicolson step is cheaper while it is accepted often enough.
        easy = min(p.acceptance for p in ends) > (0.25 if pair.dimension <= 3 else 0.6)
        kernel = "crank_nicolson" if easy or not compiled else "hamiltonian"
        mixture = ends[0].mixture if j is None else None
        if mixture is not None:
            kernel = "hill_jumping"
        edge = Edge(pair, kernel, CHAINS, stream, self.executor, mixture)
        table, prior = place(gap)
        top = len(table) - 1
        table, prior = padded(table, prior)
        steps = [p.step for p in ends if p.step > 0]
        by_kernel = {
            "hamiltonian": min(steps, default=0.9 * max(pair.dimension, 1) ** -0.25),
            "crank_nicolson": 0.3,
            "hill_jumping": 1.2 * max(pair.dimension, 1) ** -0.5,
        }
        step = by_kernel[kernel]
        tuning = Tuning(table, prior, step, leapfrogs(step))
        half = CHAINS // 2
        edge.begin(np.concatenate([starts[0][:half], starts[1][:half]]), np.repeat([top, 0], half))
        rounds = 1 if gap.length < 0.3 else 3 + int(np.ceil(gap.length / 4))
        for _ in range(rounds):
            block = edge.advance(self.seed, STEPS, tuning)
            tuning = self._learn(edge, block, tuning)
        return Arm(i, j, edge, gap, tuning)

    @staticmethod
    def _learn(edge: Edge, record: Block, tuning: Tuning) -> Tuning:
        """A better balance (by MBAR on the warm-up draws) and, for trajectories, a better step."""
        table, prior = np.asarray(tuning.table), np.asarray(tuning.log_prior)
        used = np.isfinite(prior)
        fit = multistate(record.log_joints, record.rung, table[used])
        log_z = np.full(len(prior), np.nan)
        log_z[used] = fit.log_z
        step = float(tuning.step)
        if edge.kernel == "hamiltonian":
            step = float(np.clip(step * np.exp(record.acceptance - 0.8), 0.01, 1.2))
        return Tuning(table, rebalance(log_z, prior), step, leapfrogs(step))

    # -- the loop -------------------------------------------------------------------------------------------------

    @in_float64
    def loop(self) -> None:
        """Blocks on whichever edge lowers the error most per evaluation, until a goal is met or someone stops it."""
        try:
            self._loop()
        except KeyboardInterrupt:
            if any(arm.report is None for arm in self.arms):
                raise  # nothing to show yet
            self.ended = "interrupted"
        self._tell()

    def _loop(self) -> None:
        for arm in self.arms:
            if arm.report is None:  # else it comes from a checkpoint
                # Blocks before the first estimate; an edge that no Bayes factor rests on gets the least.
                self._add(arm, 2 if arm.gap.length < 0.1 or not self.matters(arm) else 4)
        self._tell()
        while not self.ended:
            self.ended = self._stop()
            if not self.ended:
                arm = self._most_useful()
                self._add(arm, max(1, len(arm.edge.blocks) // 3))
                self._tell()

    def _tell(self) -> None:
        """Between blocks: a checkpoint, and a line for whoever watches."""
        self._keep()
        if self.report_progress is not None and all(arm.report is not None for arm in self.arms):
            self.report_progress(self)

    def _add(self, arm: Arm, blocks: int) -> None:
        for _ in range(blocks):
            arm.edge.blocks.append(arm.edge.advance(self.seed, STEPS, arm.tuning))
            if self._over_budget() and len(arm.edge.blocks) > 1:
                break
        arm.report = examine(arm.edge.draws(arm.tuning))

    def _most_useful(self) -> Arm:
        """Along the worst pair's path, the edge with the largest variance per evaluation already spent on it."""
        path = self._path_of(*self._worst_pair())
        unsettled = [arm for arm in path if not is_settled(arm.report)]
        choice = unsettled or path
        return max(choice, key=lambda arm: arm.report.error**2 / arm.edge.evaluations)

    def _stop(self) -> str:
        if self._over_budget():
            return self._over_budget()
        a, b = self._worst_pair()
        path = self._path_of(a, b)
        worst = self._difference(a, b)
        settled = all(is_settled(arm.report) or arm.report.n_draws > HOPELESS for arm in path)
        if len(self.pilots) == 2 and settled:
            if self.goals.is_decided(self.evidences().log_bayes_factor(*self.models)):
                return "decided"
        if worst.error <= self.goals.target_error and settled:
            return "target"
        # Chains that have not crossed by now will not: better to say so than to burn the budget.
        return "stuck" if any(a.report.n_draws > LONG and a.report.crossings < FEW for a in path) else ""

    def _over_budget(self) -> str:
        return self.goals.over_budget(self.evaluations, self.began, PATIENCE)

    # -- what is known --------------------------------------------------------------------------------------------

    @property
    def evaluations(self) -> int:
        return self.spent + sum(p.evaluations for p in self.pilots) + sum(a.edge.evaluations for a in self.arms)

    @property
    def gradients(self) -> int:
        return sum(p.gradients for p in self.pilots) + sum(a.edge.gradients for a in self.arms)

    def paths(self) -> np.ndarray:
        """(K, edges): +1 where ln Z_k contains an edge as ln Z_first - ln Z_second, -1 where reversed."""
        root = len(self.pilots)
        paths = np.zeros((root + 1, len(self.arms)))
        reached = {root}
        while len(reached) <= root:
            for e, arm in enumerate(self.arms):
                a, b = arm.first, root if arm.second is None else arm.second
                for new, old, sign in ((a, b, 1.0), (b, a, -1.0)):
                    if old in reached and new not in reached:
                        paths[new] = paths[old]
                        paths[new, e] += sign
                        reached.add(new)
        return paths[:root]

    def matters(self, arm: Arm) -> bool:
        """Whether some Bayes factor rests on this edge (a lone model's evidence rests on its only one)."""
        paths = self.paths()[:, self.arms.index(arm)]
        return len(self.pilots) == 1 or bool(np.any(paths != paths[0]))

    def _sign(self, a: int, b: int | None) -> np.ndarray:
        """How ln Z_a - ln Z_b is made of edges; `b` None is the reference."""
        paths = self.paths()
        return paths[a] - (0.0 if b is None else paths[b])

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
        if len(self.pilots) == 1:
            return 0, None
        values = self.paths() @ np.array([arm.report.value for arm in self.arms])
        best = int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))
        others = [k for k in range(len(self.pilots)) if k != best]
        return best, max(others, key=lambda k: self._difference(best, k).error)

    def evidences(self) -> Evidences:
        """ln Z of every model, in the user's order, with the covariance that shared edges give them."""
        order = [next(i for i, p in enumerate(self.pilots) if p.name == name) for name in self.models]
        paths = self.paths()[order]
        values = np.array([arm.report.value for arm in self.arms])
        variances = np.array([arm.report.error for arm in self.arms]) ** 2
        # An infinite error (a limit) is written as one beyond all use: it must cancel in pairs that do not rest on it.
        variances = np.minimum(variances, UNKNOWN**2)
        covariance = (paths * variances) @ paths.T
        return Evidences(tuple(self.models), paths @ np.nan_to_num(values), covariance, True)


def canonical(models: Mapping[str, Model], data: Any) -> list[Joint]:
    """The models with their parameters in one common order: those that most models have first, then by name."""
    counts: dict[str, int] = {}
    for model in models.values():
        for name in model.space.names:
            counts[name] = counts.get(name, 0) + 1
    found = []
    for name, model in models.items():
        joint = Joint(name, model.reordered(sorted(model.space.names, key=lambda p: (-counts[p], p))), data)
        if not joint.is_traceable and isinstance(joint.space, Space):
            joint = Joint(name, joint.model.with_space(joint.space.with_gaussian_tails()), data)
        found.append(joint)
    return found
