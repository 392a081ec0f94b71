"""Which order of polynomial do the data ask for? Six models, with their exact evidences beside the answer."""

import numpy as np
import numpyro.distributions as dist

import supermodel as sm

rng = np.random.default_rng(1)
x = np.linspace(-1, 1, 40)
sigma = 0.2
data = {"x": x, "y": 0.5 - 0.8 * x + 1.2 * x**3 + sigma * rng.standard_normal(x.size), "sigma": sigma}


def polynomial(order):
    return sm.Model(
        priors={f"c{k}": dist.Normal(0, 1) for k in range(order + 1)},
        predict=lambda p, x: sum(p[f"c{k}"] * x**k for k in range(order + 1)),
    )


models = {f"order {n}": polynomial(n) for n in range(6)}


def exact_log_evidence(order):
    """y ~ N(0, sigma^2 I + X X^T) with unit priors on the coefficients."""
    design = x[:, None] ** np.arange(order + 1)
    covariance = sigma**2 * np.eye(x.size) + design @ design.T
    _, log_det = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * (log_det + data["y"] @ np.linalg.solve(covariance, data["y"]))


truth = {f"order {n}": exact_log_evidence(n) for n in range(6)}

if __name__ == "__main__":
    result = sm.compare(models, data, seed=0)
    print(result)
    print("\nexact ln Z:", {name: round(float(value), 3) for name, value in truth.items()})
