"""How long the experiments run: the paper's own step counts, two minutes, or a test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Sizes of all runs. `fraction` is of the paper's steps, but never fewer than `least` where the paper took as many."""

    name: str
    fraction: float
    least: int
    own: int  # steps of runs for which the paper gives no number
    exact_draws: int  # independent draws from known densities
    repeats: int  # of Monte Carlo checks of an error
    hmc: int  # HMC transitions of each chain
    live: int  # live points of nested sampling; 0 leaves it out
    dimensions: tuple[int, ...]  # of the scaling experiment
    hmc_dimensions: tuple[int, ...]
    scaling_steps: int  # of each chain
    nested_dimensions: tuple[int, ...]
    warmup: int  # steps of each chain
    chains: int = 64
    seed: int = 2016

    def steps(self, paper: int | None) -> int:
        """Steps of a run over all chains, given the paper's number (None: it has none)."""
        return self.own if paper is None else int(min(paper, max(self.fraction * paper, self.least)))

    def thin(self, paper: int) -> int:
        """Steps between records. A shorter run is thinned less: the paper's 300 and 800 are more than our chains need."""
        return paper if self.fraction == 1.0 or paper <= 100 else paper // 6

    def draws(self, paper: int | None, thin: int, chains: int | None = None) -> int:
        """Draws to record of each chain."""
        return max(8, round(self.steps(paper) / thin / (chains or self.chains)))


FULL = Settings(
    "full", 1.0, 0, 20_000_000, 250_000, 300, 2000, 500, (2, 5, 10, 20, 50, 100), (2, 5, 10, 20, 50, 100), 60_000,
    (2, 5, 10, 20), 20_000,
)  # fmt: skip
FAST = Settings("fast", 0.04, 1_500_000, 300_000, 67_000, 60, 200, 60, (3, 20, 100), (3, 20), 4_000, (2, 6), 4_000)
TINY = Settings("tiny", 0.0, 20_000, 20_000, 4_000, 10, 30, 0, (2, 4), (2,), 500, (), 500, chains=16)
