"""The sampling runs that the experiments share: each is made once, when first asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.supermodel import Supermodel
from supermodel.sampling.draws import Draws
from supermodel.sampling.sample import sample
from supermodel.verdict.diagnostics import split_rhat
from supermodel_paper import examples
from supermodel_paper.examples import LINEAR, SINE
from supermodel_paper.settings import Settings


class Plan(NamedTuple):
    """A supermodel, and the steps and thinning that the paper gives for it (None: it gives none)."""

    supermodel: Callable[[], Supermodel]
    paper_steps: int | None
    thin: int


def _of(*arguments: Any, **options: Any) -> Callable[[], Supermodel]:
    return lambda: examples.supermodel(*arguments, **options)


PLANS = {
    # 2e7 steps give the 6.7e4 draws of Figure 2; 7.5e7 the 2.5e5 of Figure 3. One run serves both.
    "linear": Plan(_of("linear"), 75_000_000, 300),
    "sine": Plan(_of("sine"), 40_000_000, 800),
    "linear exp": Plan(_of("linear", coordinate="exponential"), 5_000_000, 15),
    "sine exp": Plan(_of("sine", coordinate="exponential"), 10_000_000, 25),
    "linear blend exp": Plan(_of("linear", "blend", "exponential"), 2_000_000, 10),
    "linear blend": Plan(_of("linear", "blend"), None, 100),
    "linear blend enlarged": Plan(_of("linear", "blend", "enlarged"), None, 100),
    "linear index": Plan(_of("linear", "index"), None, 50),
    "linear tilt": Plan(_of("linear", tilt=LINEAR), None, 50),
    "sine tilt": Plan(_of("sine", tilt=SINE), None, 50),
    "linear replicated": Plan(_of("linear", share=False), None, 50),
}
FIGURE_2 = 20_000_000 / 75_000_000


class Runs:
    """Draws by name, made on demand and kept; `log` is told what is going on.

    Other jobs can be kept beside them (`job`), and a second thread may work ahead (`start`): what it has not begun when
    it is asked for is done at once, what it has begun is waited for. The numbers do not depend on who makes them.
    """

    def __init__(self, settings: Settings, log: Callable[[str], Any] = lambda line: None):
        self.settings, self.log = settings, log
        self._kept: dict[str, Any] = {}
        self._ahead: dict[str, Future] = {}

    def __getitem__(self, name: str) -> Draws:
        return self.job(name, lambda runs: runs.planned(name))

    def planned(self, name: str) -> Draws:
        """Make the run of a plan."""
        plan = PLANS[name]
        thin = self.settings.thin(plan.thin)
        return self.sample(plan.supermodel(), name, paper_steps=plan.paper_steps, thin=thin)

    def job(self, name: str, make: Callable[[Runs], Any]) -> Any:
        """What `make` gives: from the shelf, from the thread that works ahead, or made now."""
        if name not in self._kept:
            future = self._ahead.pop(name, None)
            # A job that is cancelled had not begun.
            self._kept[name] = make(self) if future is None or future.cancel() else future.result()
        return self._kept[name]

    @contextlib.contextmanager
    def start(self, jobs: Mapping[str, Callable[[Runs], Any]]) -> Iterator[None]:
        """Within, a second thread does these jobs, the last first: it meets the one that needs them in the middle."""
        with ThreadPoolExecutor(1) as pool:
            self._ahead = {name: pool.submit(make, self) for name, make in reversed(jobs.items())}
            try:
                yield
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def sample(
        self, supermodel: Supermodel, name: str, *, paper_steps: int | None = None, thin: int = 50, **options
    ) -> Draws:
        """Metropolis draws (by default) of any supermodel at these settings."""
        s = self.settings
        chains = options.pop("chains", s.chains)
        draws = options.pop("draws", s.draws(paper_steps, thin, chains))
        self.log(f"sampling {name}: {draws * thin * chains:.1e} steps")
        # Half of the chains start in the losing model: they must all have left it before the first record.
        if options.get("sampler", "metropolis") == "metropolis":
            options.setdefault("warmup", s.warmup)
        # A seed of its own for each run: two runs must not share their random numbers.
        seed = s.seed + sum(name.encode())
        return sample(supermodel, chains=chains, draws=draws, thin=thin, seed=seed, **options)

    @property
    def finished(self) -> dict[str, Draws]:
        return {name: kept for name, kept in self._kept.items() if isinstance(kept, Draws)}


def first_part(draws: Draws, fraction: float) -> Draws:
    """The first draws of every chain, with their part of the cost."""
    n = max(4, round(fraction * draws.n_draws))
    part = replace(draws, alpha=draws.alpha[:, :n], log_joints=draws.log_joints[:, :n], position=draws.position[:, :n])
    return replace(part, evaluations={k: int(v * n / draws.n_draws) for k, v in draws.evaluations.items()})


def alpha_draws(supermodel: Supermodel, alpha: np.ndarray) -> Draws:
    """Independent draws of alpha alone, as a record: enough for the fits to alpha."""
    alpha = np.asarray(alpha)[None]
    shape = alpha.shape[:2]
    k = len(supermodel.names)
    return Draws(
        supermodel,
        alpha,
        np.zeros((*shape, k)),
        np.zeros((*shape, supermodel.dimension)),
        {"likelihood": 0, "gradient": 0},
    )


def worst_rhat(draws: Draws) -> float:
    """The largest split R-hat over alpha and every coordinate."""
    columns = [draws.alpha] if draws.alpha.ndim == 2 else list(np.moveaxis(draws.alpha, -1, 0))
    return max(split_rhat(x) for x in [*columns, *np.moveaxis(draws.position, -1, 0)])


def cost(draws: Draws) -> int:
    """Likelihood evaluations of a run."""
    return int(draws.evaluations["likelihood"])
