"""Populations with exact evidences: objects are numbers y, of which model k says N(centre_k, 1): ln Z_k = -(y - centre_k)^2 / 2."""

import math

import numpy as np

from supermodel.survey.job import Outcome
from supermodel.survey.population import Known

FALSE_ALARM = 1e-6
CENTRES = np.array([0.7, -0.7])
THREE = np.array([0.0, 1.5, -2.0])


def simulated(rng, f, n, centres=CENTRES, error=0.0):
    """Which model each object is of, and what is known of them when each ln Z has half the squared error of ln B."""
    labels = rng.choice(len(f), size=n, p=f)
    y = rng.normal(size=n) + centres[labels]
    log_z = -0.5 * (y[:, None] - centres) ** 2 + error / math.sqrt(2) * rng.normal(size=(n, len(f)))
    return labels, Known(log_z, error**2 * np.broadcast_to(1 - np.eye(len(f)), (n, len(f), len(f))))


def told(known, models, verdicts=None):
    """The same as a table of compare_many."""
    found = []
    for i, (logs, squares) in enumerate(zip(known.log_z, known.squares, strict=True)):
        pairs = {
            (a, b): (float(logs[j] - logs[k]), float(np.sqrt(squares[j, k])))
            for j, a in enumerate(models) for k, b in enumerate(models) if j < k
        }  # fmt: skip
        found.append(Outcome(i, f"n{i}", {}, pairs, "ok" if verdicts is None else verdicts[i]))
    return found
