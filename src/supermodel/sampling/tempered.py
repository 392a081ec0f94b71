r"""Parallel tempering (the paper's "simulated annealing"): levels $p(\alpha)\,P_0\,(J/P_0)^{\beta_t}$ that swap points.

$P_0$ combines the priors alone, so $\beta = 0$ is the prior of the supermodel and $\beta = 1$ its posterior, the only
level that is recorded. The temperatures are those at which the annealed start kept half of its population effective:
neighbours overlap by construction. A chain that cannot cross between two models at $\beta = 1$ crosses through the
prior.
"""

from __future__ import annotations

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.sampling.starts import Annealed


def levels(annealed: Annealed, betas: np.ndarray | None = None) -> tuple[np.ndarray, list[int]]:
    """The powers of the likelihood, 1 first, and for each the nearest stage of the annealing.

    `betas` are the user's own, in any order; 1 must be among them.
    """
    if betas is None:
        return annealed.betas[::-1].copy(), list(range(len(annealed.betas)))[::-1]
    wanted = np.unique(np.asarray(betas, float))[::-1]
    if not (wanted[0] == 1.0 and wanted[-1] >= 0.0):
        raise SupermodelError(f"`betas` are powers of the likelihood between 0 and 1, with 1 among them; got {betas}.")
    return wanted, [int(np.argmin(abs(annealed.betas - b))) for b in wanted]


def check_overlap(swap_rates: np.ndarray) -> str | None:
    """A sentence if two neighbouring temperatures hardly ever swap: then nothing comes down from the prior."""
    if len(swap_rates) == 0 or np.min(swap_rates) > 0.01:
        return None
    t = int(np.argmin(swap_rates))
    return f"levels {t} and {t + 1} of the tempering swap at a rate of only {swap_rates[t]:.2g}: add a level between."
