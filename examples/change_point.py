"""A change point in counts, from `change_point.toml`; the exact answer beside it, since Gamma priors are conjugate."""

from math import lgamma, log
from pathlib import Path

import numpy as np

import supermodel as sm

spec = sm.read_spec(Path(__file__).with_name("change_point.toml"))
models, data, options = spec.models, spec.data, spec.run


def log_evidence_of_one_rate(counts, a=2.0, b=0.8):
    """Poisson counts of one rate with a Gamma(a, b) prior, integrated over the rate."""
    total, n = float(np.sum(counts)), len(counts)
    factorials = sum(lgamma(c + 1) for c in counts)
    return a * log(b) - lgamma(a) + lgamma(a + total) - (a + total) * log(b + n) - factorials


y = data["y"]
# The step may fall before the first year or between any two: 60 intervals of one year, equally probable.
steps = [log_evidence_of_one_rate(y[:k]) + log_evidence_of_one_rate(y[k:]) for k in range(1, len(y) + 1)]
truth = {"constant": log_evidence_of_one_rate(y), "step": float(np.logaddexp.reduce(steps) - log(len(steps)))}

if __name__ == "__main__":
    result = sm.compare(models, data, **options)
    print(result)
    print("\nexact ln Z:", {name: round(value, 3) for name, value in truth.items()})
