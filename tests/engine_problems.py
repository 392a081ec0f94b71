"""Problems for the engine with exact answers, written as users write them."""

import importlib.resources

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from scipy import stats

import supermodel as sm

SINE = 5.0222648001
LINEAR = 4.8792471984


def data(name):
    with (importlib.resources.files("supermodel.data") / f"{name}.csv").open() as file:
        table = np.genfromtxt(file, delimiter=",", names=True)
    return {column: table[column] for column in table.dtype.names}


def sine():
    fixed = sm.Model({"omega": dist.Normal(1, 2)}, predict=lambda p, x: jnp.sin(p["omega"] * x))
    free = sm.Model(
        {"omega": dist.Normal(1, 2), "phi": dist.Normal(0, 0.05)},
        predict=lambda p, x: jnp.sin(p["omega"] * x + p["phi"]),
    )
    return {"free": free, "fixed": fixed}


def polynomial(powers, scale=1.0):
    return sm.Model(
        {f"t{i}": dist.Normal(0, scale) for i in powers},
        predict=lambda p, x: sum(p[f"t{i}"] * x**i for i in powers),
    )


def linear():
    return {"M2": polynomial((0, 1, 4)), "M1": polynomial((0, 1, 2, 4))}


def gamma_rates(counts=(3, 9, 4, 7), shape=2.3, rate=0.4, constant=0.0):
    """Black boxes: one Poisson rate each, against one for all; closed evidences."""
    from scipy.special import gammaln

    counts = np.asarray(counts)
    labels = [f"r{j}" for j in range(len(counts))]

    def separate(p):
        r = np.stack([p[n] for n in labels], axis=-1)
        return constant + np.sum(counts * np.log(r) - r - gammaln(counts + 1), axis=-1)

    def pooled(p):
        r = np.asarray(p["r"])[:, None]
        return constant + np.sum(counts * np.log(r) - r - gammaln(counts + 1), axis=-1)

    def closed(n, t):
        return shape * np.log(rate) - gammaln(shape) + gammaln(shape + n) - (shape + n) * np.log(rate + t)

    norm = -np.sum(gammaln(counts + 1))
    truth = {"separate": norm + np.sum(closed(counts, 1.0)), "pooled": norm + closed(counts.sum(), float(len(counts)))}
    prior = stats.gamma(shape, scale=1 / rate)
    models = {
        "separate": sm.Model(dict.fromkeys(labels, prior), separate, vectorized=True),
        "pooled": sm.Model({"r": prior}, pooled, vectorized=True),
    }
    return models, {name: float(value) + constant for name, value in truth.items()}


def assert_within(estimate, truth, most=0.1, planted=0.5, errors=5.0):
    """Within five errors of the truth (6e-7 of false alarms if it is normal), an error that is positive and below `most`.

    The same rule must refuse a truth that is off by `planted` nats to either side: it does not follow from the rest (an
    error of 0.09 would let it pass), and bounds what the rule can see.
    """

    def is_within(value):
        return abs(estimate.value - value) < errors * estimate.error

    assert 0 < estimate.error < most, (estimate, most)
    assert is_within(truth), (estimate, truth)
    assert not is_within(truth + planted) and not is_within(truth - planted), (estimate, truth, planted)
