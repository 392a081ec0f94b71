"""The sampling runs that the experiments share: each is made once, when first asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from supermodel.embedding.supermodel import Supermodel
from supermodel.estimation.estimate import Evidences
from supermodel.estimation.rao_blackwell import shares
from supermodel.sampling.draws import Draws
from supermodel.sampling.sample import sample
from supermodel.verdict.diagnostics import split_rhat
from supermodel_paper.examples import LINEAR, SINE
from supermodel_paper.settings import Settings
from supermodel_paper.supermodels import (
    product_of_likelihoods,
    product_of_predictions,
    replicated_with_companions,
    supermodel,
    three,
    with_companions,
)
from supermodel_paper.table import Ours, ours


class Plan(NamedTuple):
    """A supermodel, the steps that the paper gives for it (None: it gives none), the thinning, and options of `sample`."""

    supermodel: Callable[[], Supermodel]
    paper_steps: int | None
    thin: int
    options: Callable[[Settings], dict[str, Any]] = lambda settings: {}


def _gradients(sampler: str) -> Callable[[Settings], dict[str, Any]]:
    return lambda s: {"sampler": sampler, "chains": s.chains // 4, "draws": s.hmc}


# In the order in which they are needed, for the thread that works ahead.
PLANS = {
    # 2e7 steps give the 6.7e4 draws of Figure 2; 7.5e7 the 2.5e5 of Figure 3. One run serves both.
    "linear": Plan(partial(supermodel, "linear"), 75_000_000, 300),
    "sine": Plan(partial(supermodel, "sine"), 40_000_000, 800),
    "linear exp": Plan(partial(supermodel, "linear", coordinate="exponential"), 5_000_000, 15),
    "sine exp": Plan(partial(supermodel, "sine", coordinate="exponential"), 10_000_000, 25),
    "linear blend exp": Plan(partial(supermodel, "linear", "blend", "exponential"), 2_000_000, 10),
    "linear blend": Plan(partial(supermodel, "linear", "blend"), None, 100),
    "linear blend enlarged": Plan(partial(supermodel, "linear", "blend", "enlarged"), None, 100),
    "linear index": Plan(partial(supermodel, "linear", "index"), None, 50),
    "linear tilt": Plan(partial(supermodel, "linear", tilt=LINEAR), None, 50),
    "sine tilt": Plan(partial(supermodel, "sine", tilt=SINE), None, 50),
    "linear replicated": Plan(partial(supermodel, "linear", share=False), None, 50),
    "linear with companions": Plan(partial(with_companions, "posterior"), None, 10),
    "linear replicated with companions": Plan(replicated_with_companions, None, 10),
    "three models on hats": Plan(partial(three, "hats"), None, 50),
    "three models on a simplex": Plan(partial(three, "simplex"), None, 50),
    "product, linear": Plan(partial(product_of_likelihoods, "linear"), None, 20),
    "product, sine": Plan(partial(product_of_likelihoods, "sine"), None, 20),
    # Each step takes powers of all predictions on all rungs: dear, and the answer needs few.
    "product of predictions": Plan(
        lambda: product_of_predictions()[0], None, 20, lambda s: {"draws": max(8, s.own // 4 // 20 // s.chains)}
    ),
    "tempered": Plan(partial(supermodel, "linear", tilt=LINEAR), None, 5, _gradients("tempered")),
    "Metropolis, every step": Plan(partial(with_companions, "posterior"), None, 1, lambda s: {"draws": s.hmc}),
    "HMC": Plan(partial(with_companions, "posterior"), None, 1, _gradients("hmc")),
}
FIGURE_2 = 20_000_000 / 75_000_000
RAO_BLACKWELL = 8_000  # draws are enough where the conditional of each must be integrated anew


class Runs:
    """Draws by name, made on demand and kept; `log` is told what is going on.

    Other jobs can be kept beside them (`job`), and a second thread may work ahead (`start`): what it has not begun when
    it is asked for is done at once, what it has begun is waited for. The numbers do not depend on who makes them.
    """

    def __init__(self, settings: Settings, log: Callable[[str], Any] = lambda line: None):
        self.settings, self.log = settings, log
        self._kept: dict[Any, Any] = {}
        self._ahead: dict[str, Future] = {}

    def __getitem__(self, name: str) -> Draws:
        return self.job(name, partial(Runs.planned, name=name))

    def planned(self, name: str) -> Draws:
        """Make the run of a plan."""
        plan, s = PLANS[name], self.settings
        return self.sample(plan.supermodel(), name, plan.paper_steps, s.thin(plan.thin), **plan.options(s))

    def job(self, name: Any, make: Callable[[Runs], Any]) -> Any:
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
            self._ahead = {name: pool.submit(jobs[name], self) for name in reversed(list(jobs))}
            try:
                yield
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def sample(
        self, supermodel: Supermodel, name: str, paper_steps: int | None = None, thin: int = 50, **options: Any
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

    def read(self, name: str, estimator: Callable[[Draws], Evidences] = shares) -> Evidences:
        """What an estimator makes of a run, kept: several experiments ask for the same."""
        return self.job((name, estimator), lambda runs: estimator(runs[name]))

    def ours(
        self, name: str, estimator: Callable[[Draws], Evidences] = shares, exact: float | None = None, **words: Any
    ) -> Ours:
        """The same as a number: ln B21 with its error, and what the run cost."""
        return ours(ln_b21(self.read(name, estimator)), exact, cost(self[name]), **words)

    @property
    def finished(self) -> dict[str, Draws]:
        return {name: kept for name, kept in self._kept.items() if isinstance(kept, Draws)}


def ln_b21(evidences: Evidences) -> Any:
    """The paper's ln B21, an Estimate."""
    return evidences.log_bayes_factor("M2", "M1")


def few(draws: Draws) -> Draws:
    """At most some thousand draws, evenly taken."""
    return draws.thin(max(1, draws.alpha.size // RAO_BLACKWELL))


def shares_of_few(draws: Draws) -> Evidences:
    """Rao-Blackwell for a blend: the conditional of alpha is a quadrature for each draw."""
    return shares(few(draws))


def first_part(draws: Draws, fraction: float) -> Draws:
    """The first draws of every chain, with their part of the cost."""
    n = max(4, round(fraction * draws.n_draws))
    part = replace(draws, alpha=draws.alpha[:, :n], log_joints=draws.log_joints[:, :n], position=draws.position[:, :n])
    return replace(part, evaluations={k: int(v * n / draws.n_draws) for k, v in draws.evaluations.items()})


def alpha_draws(supermodel: Supermodel, alpha: np.ndarray) -> Draws:
    """Independent draws of alpha alone, as a record: enough for the fits to alpha."""
    alpha = np.asarray(alpha)[None]
    joints, position = (np.zeros((*alpha.shape[:2], n)) for n in (len(supermodel.names), supermodel.dimension))
    return Draws(supermodel, alpha, joints, position, {"likelihood": 0, "gradient": 0})


def worst_rhat(draws: Draws) -> float:
    """The largest split R-hat over alpha and every coordinate."""
    columns = [draws.alpha] if draws.alpha.ndim == 2 else list(np.moveaxis(draws.alpha, -1, 0))
    return max(split_rhat(x) for x in [*columns, *np.moveaxis(draws.position, -1, 0)])


def largest_gap(draws: Draws, truth: Any, low: float, high: float) -> float:
    """The largest error of the CDF of alpha between two ends."""
    grid = np.linspace(low, high, 400)
    chain = np.searchsorted(np.sort(draws.alpha.ravel()), grid) / draws.alpha.size
    return float(np.abs(chain - truth.cdf(grid)).max())


def cost(draws: Draws) -> int:
    """Likelihood evaluations of a run."""
    return int(draws.evaluations["likelihood"])
