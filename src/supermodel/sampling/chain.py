r"""A Metropolis chain on $(\alpha, u)$ that can be continued: where it stands and what it has learnt is plain data.

Begun, it has annealed starts in every model and has been warmed up; every `advance` then adds records. The random
numbers are those of (seed, number of the step): a chain stored, loaded and continued gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.sampling import metropolis, starts, tempered, warmup
from supermodel.sampling.blocks import Record
from supermodel.sampling.draws import Draws
from supermodel.sampling.metropolis import State, Tally, Tuning
from supermodel.sampling.target import Target, Terms

KEPT = ("alpha", "position", "log_joints")  # of a record: the target's level, the others are only its ladder


class Chain:
    """`chains` chains of the sampler "metropolis" or "tempered", one record every `thin` steps."""

    def __init__(self, target: Target, sampler: str, seed: int, chains: int, thin: int, size: int):
        self.target, self.sampler, self.seed = target, sampler, seed
        self.chains, self.thin, self.size = chains, thin, size
        self.records: list[Record] = []
        self.start_evaluations = self.warmed = self.n_draws = 0
        self.state: Any = None  # until `begin` or `restore`

    @in_float64
    def begin(self, rng: np.random.Generator, warm: int | None = None, betas: Any = None) -> None:
        """Starts in every model's own posterior, and warm-up."""
        import jax

        annealed = starts.anneal(self.target.supermodel, rng, executor=self.target.executor)
        self.start_evaluations = annealed.evaluations
        powers, stages = (None, [-1]) if self.sampler == "metropolis" else tempered.levels(annealed, betas)
        self.state, self.tuning = self._start(annealed, stages, powers, rng)
        steps = max(2000, 20 * self.thin) if warm is None else warm
        run, key = metropolis.make_block(self.target, self.size), jax.random.key(self.seed)
        self.state, self.tuning, self.warmed = warmup.warm_up(
            self.target, run, self.size, self.state, self.tuning, key, steps
        )
        self.tally: Any = jax.tree.map(lambda x: 0.0 * np.asarray(x), self.state.tally)

    def _start(self, annealed, stages: list[int], powers, rng):
        """Chains at their models' corners, at each temperature in that temperature's own population."""
        target, sm, levels = self.target, self.target.supermodel, len(stages)
        position = np.stack([starts.starting_points(sm, annealed, s, rng, self.chains) for s in stages])
        alpha = np.stack([starts.starting_alpha(sm, self.chains)] * levels)
        tuning = Tuning(
            np.stack([starts.factors(sm, annealed, s, rng) for s in stages]),
            np.full((levels, target.n_models), 2.4 / max(target.dimension, 1) ** 0.5),
            np.full(levels, 0.3 * warmup.alpha_width(target)),
            powers,
        )
        terms = None if target.is_traceable else target.terms_in_numpy(position)
        return metropolis.initial_state(target, alpha, position, tuning, terms), tuning

    @in_float64
    def advance(self, n: int) -> None:
        """`n` more records (at most `size`)."""
        import jax

        run = metropolis.make_block(self.target, self.size)
        self.state, record = run(self.state, self.tuning, jax.random.key(self.seed), n, self.thin)
        self.records.append(record._replace(**{f: getattr(record, f)[:, 0] for f in KEPT}))
        self.tally = jax.tree.map(lambda total, here: total + np.asarray(here), self.tally, self.state.tally)
        self.n_draws += n

    @property
    def cost(self) -> int:
        """Evaluations per record."""
        return self.target.n_models * len(self.tuning.scales) * self.chains * self.thin

    @property
    def evaluations(self) -> int:
        if self.state is None:
            return 0
        steps = 1 + self.warmed + self.n_draws * self.thin
        return self.start_evaluations + self.cost // self.thin * steps

    def draws(self, **info: Any) -> Draws:
        """All records, chains first."""
        record = stacked(self.records)
        info = {"sampler": self.sampler, "thin": self.thin, "warmup": self.warmed} | info
        info |= {"start_evaluations": self.start_evaluations} | self._acceptance() | self._tempering()
        return Draws(
            self.target.supermodel, record.alpha, record.log_joints, record.position,
            {"likelihood": self.evaluations, "gradient": 0}, record.predictions, info,
        )  # fmt: skip

    def _acceptance(self) -> dict:
        """Rates of the target's level over the whole run."""
        tried, accepted, alpha = self.tally.tried, self.tally.accepted[0], self.tally.alpha_accepted[0]
        return {
            "acceptance": float(accepted.sum() / tried.sum()),
            "acceptance_by_model": (accepted / np.maximum(tried, 1)).tolist(),
            "alpha_acceptance": float(alpha / tried.sum()),
            "scale": np.asarray(self.tuning.scales)[0].tolist(),
            "alpha_scale": float(np.asarray(self.tuning.alpha_scales)[0]),
            "invalid_proposals": int(self.tally.invalid),
        }

    def _tempering(self) -> dict:
        if self.tuning.betas is None:
            return {}
        # Each pair of neighbours is tried at every second step.
        rates = self.tally.swapped[:-1] / max(self.n_draws * self.thin / 2, 1)
        found = {"betas": np.asarray(self.tuning.betas).tolist(), "swap_rates": rates.tolist()}
        warning = tempered.check_overlap(rates)
        return found if warning is None else found | {"warning": warning}

    # -- as arrays ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, dict[str, np.ndarray]]:
        """Everything that is needed to go on, by groups."""
        state = {f: getattr(self.state, f) for f in ("alpha", "position", "log_density", "step")}
        groups = {"state": state, "terms": self.state.terms._asdict(), "tuning": self.tuning._asdict()}
        groups |= {"tally": self.tally._asdict()}
        if self.records:
            groups["record"] = joined(self.records)._asdict()
        numbers = {"start_evaluations": self.start_evaluations, "warmed": self.warmed, "n_draws": self.n_draws}
        groups["numbers"] = numbers
        return {g: {n: np.asarray(a) for n, a in members.items() if a is not None} for g, members in groups.items()}

    @in_float64
    def restore(self, groups: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Go on from what `arrays` gave."""
        state, numbers = groups["state"], groups["numbers"]
        self.start_evaluations, self.warmed, self.n_draws = (int(v) for v in numbers.values())
        self.tuning = Tuning(**groups["tuning"])
        self.tally = Tally(**groups["tally"])
        self.state = State(**state, terms=Terms(**groups["terms"]), tally=self.tally)
        self.records = [Record(**groups["record"])] if "record" in groups else []


def joined(records: list[Record]) -> Record:
    """Blocks as one, draws first."""
    return Record(*(None if parts[0] is None else np.concatenate(parts) for parts in zip(*records, strict=True)))


def stacked(records: list[Record]) -> Record:
    """Blocks as one, chains first: (draws, C, ...) becomes (C, draws, ...)."""
    return Record(*(None if x is None else np.ascontiguousarray(np.swapaxes(x, 0, 1)) for x in joined(records)))
